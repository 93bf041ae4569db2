// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <fmt/format.h>

namespace lathe::cli {
namespace {

bool isSet(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

bool dumbTerminal() {
  const char* term = std::getenv("TERM");
  return term && std::string_view(term) == "dumb";
}

// After how long a stage is shown; its line is written anew five times as often.
std::chrono::duration<double> progressDelay() {
  const char* text = std::getenv("LATHE_PROGRESS_SECONDS");
  const double seconds = text ? std::atof(text) : 0;
  return std::chrono::duration<double>(seconds > 0 ? seconds : 0.5);
}

// Columns of the terminal that standard error is; 0 where that is not known.
size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// The beginning of `text` that takes at most `most` columns, with "..." for what is left out. A
// character of several bytes is one column or stays away.
std::string cutTo(const std::string& text, size_t most) {
  constexpr size_t kDots = 3;
  size_t end = 0, used = 0, kept = 0;
  auto next = [&](size_t at) {
    do ++at;
    while (at < text.size() && (text[at] & 0xC0) == 0x80);
    return at;
  };
  for (; end < text.size(); end = next(end), ++used)
    if (used + kDots <= most) kept = end;
  return used <= most ? text : most < kDots ? "" : text.substr(0, kept) + "...";
}

}  // namespace

bool wantsColor(ColorMode mode, bool isTerminal) {
  if (mode != ColorMode::Auto) return mode == ColorMode::Always;
  if (isSet("NO_COLOR")) return false;
  if (isSet("CLICOLOR_FORCE") && std::string_view(std::getenv("CLICOLOR_FORCE")) != "0")
    return true;
  return isTerminal && !dumbTerminal();
}

void Console::line(std::string_view label, const char* color, std::string_view message) const {
  std::fflush(stdout);  // keeps the order where both streams go to one place
  if (wantsColor(color_, isatty(STDERR_FILENO)))
    fmt::print(stderr, "\033[{}m{}:\033[0m {}\n", color, label, message);
  else
    fmt::print(stderr, "{}: {}\n", label, message);
}

void Console::error(std::string_view message) const { line("error", "1;31", message); }

void Console::note(std::string_view message) const {
  if (verbosity_ >= 0) line("note", "1;36", message);
}

void Console::detail(std::string_view message) const {
  if (verbosity_ >= 1) line("detail", "2", message);
}

void Console::echo(std::string_view text) const {
  if (verbosity_ < 0) return;
  std::fflush(stdout);
  fmt::print(stderr, "{}", text);
}

bool Console::showsProgress() const {
  return verbosity_ >= 0 && isatty(STDERR_FILENO) && !dumbTerminal();
}

Console& console() {
  static Console instance;
  return instance;
}

double steadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Progress::Ticker {
  std::mutex lock;
  std::condition_variable wake;
  std::string text, bar;
  bool done = false, shown = false, hidden = false;
  std::thread thread;

  void run() {
    const double start = steadySeconds();
    const auto delay = progressDelay();
    std::unique_lock guard(lock);
    while (!wake.wait_for(guard, shown ? delay / 5 : delay, [&] { return done; })) {
      if (hidden) continue;
      const std::string rest =
          fmt::format(" {}{}{:.1f} s", bar, bar.empty() ? "" : " ", steadySeconds() - start);
      // A line that wraps would not be erased whole; the last column stays free for the cursor.
      const size_t width = columns();
      const std::string shorter =
          width ? cutTo(text, width > rest.size() ? width - rest.size() - 1 : 0) : text;
      fmt::print(stderr, "\r\033[K{}{}", shorter, rest);
      std::fflush(stderr);
      shown = true;
    }
    if (shown) fmt::print(stderr, "\r\033[K");
  }
};

Progress::Progress(std::string stage) {
  if (!console().showsProgress()) return;
  ticker_ = std::make_unique<Ticker>();
  ticker_->text = std::move(stage);
  ticker_->thread = std::thread([ticker = ticker_.get()] { ticker->run(); });
}

Progress::~Progress() {
  if (!ticker_) return;
  {
    std::lock_guard guard(ticker_->lock);
    ticker_->done = true;
  }
  ticker_->wake.notify_one();
  ticker_->thread.join();
}

void Progress::stage(std::string text) {
  if (!ticker_) return;
  std::lock_guard guard(ticker_->lock);
  ticker_->text = std::move(text);
  ticker_->bar.clear();
  ticker_->hidden = false;
}

void Progress::at(size_t done, size_t total) {
  if (!ticker_) return;
  std::lock_guard guard(ticker_->lock);
  ticker_->bar = progressBar(done, total);
}

void Progress::clear() {
  if (!ticker_) return;
  std::lock_guard guard(ticker_->lock);
  if (ticker_->shown && !ticker_->hidden) fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  ticker_->hidden = true;
}

std::string progressBar(size_t done, size_t total) {
  constexpr size_t kWidth = 20;
  const size_t filled = total ? std::min(done, total) * kWidth / total : 0;
  return fmt::format("[{}{}] {}/{}", std::string(filled, '#'), std::string(kWidth - filled, '-'),
                     done, total);
}

}  // namespace lathe::cli
