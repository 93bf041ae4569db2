// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/hostexec/options.h"

#include <algorithm>
#include <charconv>

#include "lathe/runtime/error.h"

namespace lathe::cuda::host {
namespace {

constexpr std::string_view kModes[] = {"fast", "check", "asan", "debug"};
constexpr int kMostThreads = 4096;  // as in LATHE_NUM_THREADS

template <class T>
bool number(std::string_view word, std::string_view key, T& value) {
  if (!word.starts_with(key)) return false;
  word.remove_prefix(key.size());
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

bool apply(std::string_view word, Options& options) {
  for (int i = 0; i < 4; ++i)
    if (word == kModes[i]) {
      options.mode = Mode(i);
      return true;
    }
  if (word == "eager")
    options.async = Async::Eager;
  else if (word == "late")
    options.async = Async::Late;
  else if (word == "forward")
    options.order = Order::Forward;
  else if (word == "reverse")
    options.order = Order::Reverse;
  else if (word == "count")
    options.count = true;
  else if (word == "random") {
    options.async = Async::Random;
    options.order = Order::Random;
    // A prime, so that it does not keep step with the kernel's loops.
    options.preemptEvery = 97;
  } else {
    return number(word, "seed=", options.seed) || number(word, "preempt=", options.preemptEvery) ||
           number(word, "threads=", options.threads);
  }
  return true;
}

// Refuses an option whose number is out of range, or which the mode has no use for.
void expectEffect(std::string_view word, const Options& options) {
  auto refuse = [&](const std::string& expected) {
    throw Error(ErrorCode::InvalidArgument, "LATHE_CUDA_HOST: expected " + expected + ", got \"" +
                                                std::string(word) + "\" and mode " +
                                                std::string(nameOf(options.mode)));
  };
  if (word.starts_with("preempt=")) {
    if (options.preemptEvery == 0) refuse("preempt=N with N of at least 1");
    if (options.mode != Mode::Check) refuse("preempt=N in mode check alone");
  } else if (word.starts_with("threads=")) {
    if (options.threads < 1 || options.threads > kMostThreads)
      refuse("threads=N with N from 1 to " + std::to_string(kMostThreads));
    if (options.mode == Mode::Check || options.mode == Mode::Debug)
      refuse("threads=N in mode fast or asan alone (check and debug use one)");
  }
}

template <class Use>
void forEachWord(std::string_view text, Use&& use) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    use(text.substr(0, comma));
    text.remove_prefix(comma == text.npos ? text.size() : comma + 1);
  }
}

}  // namespace

Options parseOptions(std::string_view text) {
  Options options;
  std::string_view mode;
  forEachWord(text, [&](std::string_view word) {
    if (std::ranges::find(kModes, word) != std::end(kModes)) {
      if (!mode.empty())
        throw Error(ErrorCode::InvalidArgument, "LATHE_CUDA_HOST: expected one mode, got " +
                                                    std::string(mode) + " and " +
                                                    std::string(word));
      mode = word;
    }
    if (!apply(word, options))
      throw Error(ErrorCode::InvalidArgument,
                  "LATHE_CUDA_HOST: expected fast, check, asan, debug, eager, late, forward, "
                  "reverse, random, count, seed=N, preempt=N or threads=N, got \"" +
                      std::string(word) + "\"");
  });
  // The mode may stand behind its options.
  forEachWord(text, [&](std::string_view word) { expectEffect(word, options); });
  return options;
}

std::string_view nameOf(Mode mode) { return kModes[int(mode)]; }

}  // namespace lathe::cuda::host
