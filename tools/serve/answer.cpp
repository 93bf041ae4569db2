// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/answer.h"

#include <chrono>
#include <utility>

namespace lathe::serve {

std::shared_ptr<Answer> Answer::ask(BatchEngine& engine, std::vector<TextRequest> texts,
                                    Refusal& why) {
  std::shared_ptr<Answer> answer(new Answer(engine));
  for (size_t choice = 0; choice < texts.size(); ++choice) {
    TextRequest& text = texts[choice];
    // The engine's share of the answer outlives a reader who has gone.
    text.options.onToken = [answer, choice](const GenerationEvent& event) {
      Piece piece{.choice = choice, .text = std::string(event.text)};
      if (event.token) piece.token = *event.token;
      answer->put(std::move(piece));
      return true;
    };
    text.onEnd = [answer, choice](TextEnd end) {
      answer->put({.choice = choice, .end = std::move(end)});
    };
    std::optional<uint64_t> id;
    try {
      id = engine.submit(std::move(text), &why);
    } catch (...) {
      answer->cancel();
      throw;
    }
    if (!id) {
      answer->cancel();
      return nullptr;
    }
    answer->ids_.push_back(*id);
  }
  return answer;
}

void Answer::put(Piece piece) {
  std::lock_guard lock(mutex_);
  pieces_.push_back(std::move(piece));
  changed_.notify_one();
}

std::vector<Piece> Answer::take(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return !pieces_.empty(); });
  return std::exchange(pieces_, {});
}

void Answer::cancel() {
  for (uint64_t id : ids_) engine_.cancel(id);
}

}  // namespace lathe::serve
