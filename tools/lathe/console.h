// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that is not data: errors, notes and progress, on standard error.
#include <memory>
#include <string>
#include <string_view>

namespace lathe::cli {

enum class ColorMode { Auto, Always, Never };

/// Whether to colour a stream. Auto: CLICOLOR_FORCE, then NO_COLOR, TERM=dumb and whether it is a
/// terminal decide (https://no-color.org, https://bixense.com/clicolors).
bool wantsColor(ColorMode mode, bool isTerminal);

/// The process's standard error.
class Console {
 public:
  void setColor(ColorMode mode) { color_ = mode; }
  /// -1: errors alone, 0: notes too, 1 and more: details too.
  void setVerbosity(int level) { verbosity_ = level; }

  void error(std::string_view message) const;
  void note(std::string_view message) const;
  void detail(std::string_view message) const;
  /// `text` as it is; nothing under --quiet.
  void echo(std::string_view text) const;
  /// Whether a line that rewrites itself has a reader.
  bool showsProgress() const;

 private:
  void line(std::string_view label, const char* color, std::string_view message) const;

  ColorMode color_ = ColorMode::Auto;
  int verbosity_ = 0;
};

Console& console();

/// Of a clock that never goes back.
double steadySeconds();

/// "[####----] 3/6": at most as wide as the count needs.
std::string progressBar(size_t done, size_t total);

/// Shows a stage, how far it is and its seconds on the terminal once it has lasted half a second
/// (LATHE_PROGRESS_SECONDS); the line is erased at the end of its life, and where nobody watches
/// there is none.
class Progress {
 public:
  explicit Progress(std::string stage);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// A new stage, of which it is not known yet how far it is.
  void stage(std::string text);
  /// `done` of `total` are behind; a bar shows it.
  void at(size_t done, size_t total);
  /// Takes the line away, for a line of data, until the next stage.
  void clear();

 private:
  struct Ticker;
  std::unique_ptr<Ticker> ticker_;  // none where nobody watches
};

}  // namespace lathe::cli
