// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors as OpenAI's API tells them.
#include <stdexcept>
#include <string>

#include <httplib.h>
#include <nlohmann/json.hpp>

namespace lathe::serve {

/// Keys keep their order.
using Json = nlohmann::ordered_json;

struct ApiError : std::runtime_error {
  ApiError(int status, const std::string& message, std::string param = {}, std::string code = {})
      : std::runtime_error(message),
        status(status),
        param(std::move(param)),
        code(std::move(code)) {}
  int status;
  std::string param, code;
};

/// {"error": {"message", "type", "param", "code"}}
Json errorJson(const ApiError& error);
/// One that can be asked for again gets Retry-After.
void answerError(httplib::Response& response, const ApiError& error);
/// Any exception as one: mistakes of a request are 400, the model's 500.
ApiError asApiError(std::exception_ptr error);
/// Text that is valid UTF-8 whatever is in it.
std::string dump(const Json& json);

}  // namespace lathe::serve
