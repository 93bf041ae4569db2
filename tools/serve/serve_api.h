// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `lathe serve` asks of liblathe_serve.so, which is loaded when the verb runs: HTTP and what
// it brings along are nobody else's business.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lathe/runtime/batch_engine.h"
#include "lathe/runtime/model_config.h"
#include "lathe/runtime/text_embedder.h"
#include "lathe/runtime/tokenizer.h"

namespace lathe::serve {

struct Limits {
  int64_t bodyBytes = int64_t(8) << 20;
  int64_t headerBytes = 16 << 10;
  int64_t connections = 256;
  int64_t choices = 32;         ///< texts of one request: its prompts times n
  int64_t newTokens = 4096;     ///< of one text
  double requestSeconds = 600;  ///< from the request's headers to the end of its answer
  double headerSeconds = 10;    ///< from a request's first byte to the end of its headers
  double writeSeconds = 20;     ///< without the client taking anything
  double idleSeconds = 30;      ///< between two requests of a connection
  double stopSeconds = 30;      ///< for running texts after the first signal
};

struct Options {
  std::string host = "127.0.0.1";
  int port = 8080;     ///< 0: a free one
  std::string apiKey;  ///< empty: nobody is asked for one
  Limits limits;
  /// Told once connections are accepted, with the port.
  std::function<void(int)> onListening;
};

/// Either `engine` or `embedder` is there.
struct Model {
  std::string name;
  BatchEngine* engine = nullptr;
  TextEmbedder* embedder = nullptr;
  std::optional<Tokenizer> tokenizer;
  /// Token ids of a text to continue, and of a conversation as a JSON list of messages; null where
  /// the model has no chat template. Throw Error for texts that are refused.
  std::function<std::vector<int>(const std::string&)> encodeText, encodeMessages;
  SamplingOptions sampling;  ///< what a request does not say
  std::vector<int64_t> endIds;
  std::vector<std::string> stopTexts;
  std::optional<int64_t> newTokens;
};

/// Serves until SIGINT or SIGTERM; the engine's run() is called here. Throws Error(Io) where the
/// address cannot be had.
using ServeFunction = void (*)(Model&, const Options&);
inline constexpr const char* kServeSymbol = "lathe_serve_v1";

}  // namespace lathe::serve
