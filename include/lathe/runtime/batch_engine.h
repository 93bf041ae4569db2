// SPDX-License-Identifier: Apache-2.0
#pragma once
// Continuous batching: texts join and leave a running batch at any step.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lathe/runtime/error.h"
#include "lathe/runtime/kv_slots.h"
#include "lathe/runtime/text_generation.h"

namespace lathe {

struct BatchEngineOptions {
  /// Texts that may wait for a slot; more are refused. So that nobody fills all of it, a client may
  /// have no more texts waiting than places are free, and a user no more than the client may still
  /// have: one who asks alone a third of them.
  int64_t maxWaiting = 256;
  /// Tokens of prompts that are read between two tokens of the running texts: how long those may be
  /// held up. Several short prompts fit, each counted as 8 tokens at least. Where nothing runs,
  /// chunks are as long as the slots take them.
  int64_t chunkWhileRunning = 64;
};

/// How a text ended.
struct TextEnd {
  TextGeneration text;         ///< what there was by then
  std::optional<Error> error;  ///< what went wrong, such as NaN logits
  int64_t promptTokens = 0;    ///< of the request
  int64_t reusedTokens = 0;    ///< of these, those that a cache held already
};

struct TextRequest {
  std::vector<int> prompt;  ///< at least one id
  /// Without drafter and resume. `onToken` is called by the thread that steps, and must not wait.
  TextGenerationOptions options;
  /// Those who wait take turns by this name, such as an address, and those of one client by `user`,
  /// which it may choose: one who asks for much does not hold up the others.
  std::string client, user;
  /// Called once for every text that was taken, by the thread that steps. Must not wait.
  std::function<void(TextEnd)> onEnd;
};

/// Why a text was not queued: as many wait as may in all, of the client, or of the user.
enum class Refusal { Stopping, QueueFull, ClientFull, UserFull };

/// Counts since the beginning, and what is going on.
struct BatchEngineCounts {
  int64_t taken = 0, refused = 0;                   ///< requests
  int64_t finished = 0, cancelled = 0, failed = 0;  ///< texts that ended
  int64_t promptTokens = 0, reusedTokens = 0, generatedTokens = 0;
  int64_t steps = 0;      ///< decode calls
  int64_t stepTexts = 0;  ///< texts that these advanced, all together
  int64_t waiting = 0, running = 0, slots = 0;
  KvBlocks blocks = {};  ///< of a cache in blocks
};

/// Reads prompts chunk by chunk between the steps of the texts that run, all of which one decode
/// call advances. A new prompt goes on from the longest beginning that a slot holds of it, its own
/// or another's, and waits where the cache has no room for it with all its tokens, until others
/// have ended. Each text is what generateText() gives alone.
///
/// submit(), cancel() and counts() may be called by any thread; step() and stop() by one at a time.
class BatchEngine {
 public:
  BatchEngine(std::unique_ptr<KvSlots> slots, std::optional<Tokenizer> tokenizer,
              const BatchEngineOptions& options = {});
  ~BatchEngine();

  /// Tokens that a text may have, its prompt included.
  int64_t maxPositions() const;

  /// Queues a text. Nothing where too many wait or the engine stops; `why`, if given, says which.
  /// Throws Error(InvalidArgument) for a prompt that is empty or longer than maxPositions(), and
  /// for options out of their ranges.
  std::optional<uint64_t> submit(TextRequest request, Refusal* why = nullptr);
  /// Ends a text at the next step; its onEnd says Cancelled. One that has ended is no mistake.
  void cancel(uint64_t id);

  /// A chunk of a prompt or some short prompts, if any are to be read, and a token of each running
  /// text. False: there was nothing to do. Throws Error where a text has failed and all others
  /// will: KvSlots::throwIfEnded().
  bool step();
  /// Waits until there is something to do, at most so long.
  void wait(double seconds);
  /// Steps until stop() is called and no text is left.
  void run();
  /// From now on submit() refuses; texts go on for so many seconds, then they are cancelled. May be
  /// called by any thread, and by a second call sooner.
  void stop(double seconds);

  BatchEngineCounts counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lathe
