// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bodies of /v1/completions and /v1/chat/completions.
#include <string>
#include <vector>

#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/text_generation.h"
#include "tools/serve/serve_api.h"

namespace lathe::serve {

struct CompletionRequest {
  bool isChat = false, streams = false, includesUsage = false;
  std::vector<std::vector<int>> prompts;  ///< one for a conversation
  int64_t choices = 1;                    ///< of each prompt
  std::string user;
  TextGenerationOptions options;  ///< choice i draws with the seed plus i
};

/// A request's body as JSON. Throws ApiError (400) unless it is an object.
JsonValue parseBody(const std::string& body);
/// Throws ApiError where the request names another model.
void checkModel(const JsonValue& body, const Model& model);
/// Throws ApiError that names the field for what is wrong, unknown or not obeyed.
CompletionRequest readCompletionRequest(const JsonValue& body, bool isChat, const Model& model,
                                        const Limits& limits);

}  // namespace lathe::serve
