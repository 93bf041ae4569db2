// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/api_error.h"

#include <new>

#include "lathe/runtime/error.h"

namespace lathe::serve {

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json errorJson(const ApiError& error) {
  const char* type = error.status == 401   ? "authentication_error"
                     : error.status == 403 ? "permission_error"
                     : error.status == 429 ? "rate_limit_error"
                     : error.status < 500  ? "invalid_request_error"
                                           : "server_error";
  auto textOrNull = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"error",
           {{"message", error.what()},
            {"type", type},
            {"param", textOrNull(error.param)},
            {"code", textOrNull(error.code)}}}};
}

void answerError(httplib::Response& response, const ApiError& error) {
  response.status = error.status;
  if (error.status == 429 || error.status == 503) response.set_header("Retry-After", "1");
  if (error.status == 401) response.set_header("WWW-Authenticate", "Bearer");
  response.set_content(dump(errorJson(error)), "application/json");
}

ApiError asApiError(std::exception_ptr pointer) {
  try {
    std::rethrow_exception(pointer);
  } catch (const ApiError& e) {
    return e;
  } catch (const Error& e) {
    switch (e.code()) {
      case ErrorCode::InvalidArgument:
      case ErrorCode::InvalidFile:
      case ErrorCode::Unsupported:
        return ApiError(400, e.what());
      case ErrorCode::OutOfMemory:
        return ApiError(503, e.what(), "", "out_of_memory");
      default:
        return ApiError(500, e.what());
    }
  } catch (const std::bad_alloc&) {
    return ApiError(503, "out of memory", "", "out_of_memory");
  } catch (const std::exception& e) {
    return ApiError(500, e.what());
  }
}

}  // namespace lathe::serve
