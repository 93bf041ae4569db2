// SPDX-License-Identifier: Apache-2.0
#include "runtime/regex.h"

#include <algorithm>
#include <mutex>

#include <fmt/format.h>
#include <oniguruma.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

constexpr size_t kMaxPatternBytes = 16384;
constexpr unsigned long kMaxCalls = 100'000;
// A match of n characters pushes up to n stack entries: there is room for a megabyte in one match.
constexpr size_t kMaxStackEntries = 4'000'000, kMinStackEntries = 65'536, kStackPerByte = 4;
// The engine counts steps back within a match, and tells neither how many there were nor how far it
// went forward between them. So each position is tried by itself, with few of them first and with
// twice as many when they were not enough: between the calls the budget is asked. A search over a
// part of the positions would not do: it takes the end of the part for the end of the text.
constexpr unsigned long kFirstRetries = 256;

std::string errorText(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  int n = info ? onig_error_code_to_str(text, code, info) : onig_error_code_to_str(text, code);
  return std::string(reinterpret_cast<const char*>(text), size_t(std::max(n, 0)));
}

const OnigUChar* bytes(std::string_view s) { return reinterpret_cast<const OnigUChar*>(s.data()); }

}  // namespace

Regex::Regex(const std::string& pattern, std::string where)
    : pattern_(pattern), where_(std::move(where)) {
  if (pattern.size() > kMaxPatternBytes)
    throw Error(ErrorCode::InvalidFile,
                fmt::format("{}: expected a pattern of at most {} bytes, got {}", where_,
                            kMaxPatternBytes, pattern.size()));
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
    onig_set_subexp_call_limit_in_search(kMaxCalls);  // of groups that call themselves
  });
  regex_t* regex = nullptr;
  OnigErrorInfo info;
  int code = onig_new(&regex, bytes(pattern), bytes(pattern) + pattern.size(), ONIG_OPTION_NONE,
                      ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
  if (code != ONIG_NORMAL)
    throw Error(ErrorCode::InvalidFile,
                fmt::format("{}: the pattern {} does not compile: {}", where_, inQuotes(pattern),
                            errorText(code, &info)));
  regex_ = std::shared_ptr<const void>(regex, [](void* r) { onig_free(static_cast<regex_t*>(r)); });
}

namespace {

class Search {
 public:
  Search(regex_t* regex, std::string_view text)
      : regex_(regex),
        text_(text),
        region_(onig_region_new(), [](OnigRegion* r) { onig_region_free(r, 1); }),
        limits_(onig_new_match_param(), onig_free_match_param) {
    onig_initialize_match_param(limits_.get());
    onig_set_match_stack_limit_size_of_match_param(
        limits_.get(),
        unsigned(std::min(kMaxStackEntries, kMinStackEntries + kStackPerByte * text.size())));
  }

  /// The next match at or after `from`, false if there is none. What stops it is in `problem`.
  bool next(size_t from, TextBudget& budget, std::string& problem) {
    while (true) {
      const int length = matchAt(from, budget, problem);
      if (length >= 0) return true;
      if (length != ONIG_MISMATCH || from == text_.size()) return false;
      nextCodePoint(text_, from);
    }
  }
  size_t begin() const { return size_t(region_->beg[0]); }
  size_t end() const { return size_t(region_->end[0]); }

 private:
  // Its length, ONIG_MISMATCH, or what else the engine says, which is in `problem` then.
  int matchAt(size_t position, TextBudget& budget, std::string& problem) {
    const OnigUChar* start = bytes(text_);
    for (unsigned long retries = kFirstRetries;; retries *= 2) {
      if (++calls_ % 8 == 0 && budget.isLate()) {
        problem = "it takes too long";
        return ONIG_ABORT;
      }
      onig_set_retry_limit_in_match_of_match_param(limits_.get(), retries);
      onig_region_clear(region_.get());
      const int length =
          onig_match_with_param(regex_, start, start + text_.size(), start + position,
                                region_.get(), ONIG_OPTION_NONE, limits_.get());
      if (length >= 0 || length == ONIG_MISMATCH) return length;
      if (length != ONIGERR_RETRY_LIMIT_IN_MATCH_OVER || !budget.retry(retries)) {
        problem = errorText(length, nullptr);
        return length;
      }
    }
  }

  regex_t* regex_;
  std::string_view text_;
  std::unique_ptr<OnigRegion, void (*)(OnigRegion*)> region_;
  std::unique_ptr<OnigMatchParam, void (*)(OnigMatchParam*)> limits_;
  size_t calls_ = 0;
};

}  // namespace

std::vector<TextRange> Regex::split(std::string_view text, TextBudget& budget) const {
  Search search(static_cast<regex_t*>(const_cast<void*>(regex_.get())), text);
  std::string problem;
  std::vector<TextRange> ranges;
  size_t from = 0, done = 0;
  bool any = false;
  while (from <= text.size() && search.next(from, budget, problem)) {
    const size_t begin = search.begin(), end = search.end();
    // \K inside a lookahead can report a match that ends before it begins.
    if (end < begin || begin < done) {
      problem = "a match outside the text that is left";
      break;
    }
    if (begin == end && any && end == done) {
      // An empty match right after a match is no match: go on behind the next character.
      if (from == text.size()) break;
      nextCodePoint(text, from);
      continue;
    }
    if (begin > done) ranges.push_back({done, begin, false});
    ranges.push_back({begin, end, true});
    from = done = end;
    any = true;
  }
  if (!problem.empty())
    throw Error(ErrorCode::InvalidFile,
                fmt::format("{}: the pattern {} is too costly on {} bytes of text: {}", where_,
                            inQuotes(pattern_), text.size(), problem));
  if (done < text.size()) ranges.push_back({done, text.size(), false});
  return ranges;
}

}  // namespace lathe
