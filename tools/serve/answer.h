// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the engine tells of a request's texts, on its way to the thread that answers.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lathe/runtime/batch_engine.h"

namespace lathe::serve {

/// A token of a choice and the text that is certain with it; or a choice's end.
struct Piece {
  size_t choice = 0;
  std::optional<GeneratedToken> token = {};
  std::string text = {};
  std::optional<TextEnd> end = {};
};

/// The engine's thread puts pieces in and never waits for one who reads them; as many tokens as the
/// request may have are the most that lie here.
class Answer {
 public:
  /// Submits every text or none; null where one is refused, and `why`.
  static std::shared_ptr<Answer> ask(BatchEngine& engine, std::vector<TextRequest> texts,
                                     Refusal& why);

  /// Moves out what has come, waiting at most so long for something.
  std::vector<Piece> take(double seconds);
  /// Ends what is still running. The pieces that say so come as all others.
  void cancel();

 private:
  explicit Answer(BatchEngine& engine) : engine_(engine) {}
  void put(Piece piece);

  BatchEngine& engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Piece> pieces_;
  std::vector<uint64_t> ids_;
};

}  // namespace lathe::serve
