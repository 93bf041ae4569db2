// SPDX-License-Identifier: Apache-2.0
#include "runtime/regex.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include <fmt/format.h>
#include <oniguruma.h>

#include "runtime/error.h"
#include "runtime/json_reader.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

constexpr size_t kMaxPatternBytes = 16384;
// A match of n characters pushes up to n stack entries and takes a few steps for each: both limits
// leave room for a megabyte in one match. Time is checked between matches.
constexpr unsigned kMaxStackEntries = 4'000'000;
constexpr unsigned long kMinRetries = 10'000'000;
constexpr unsigned long kRetriesPerByte = 16;
constexpr std::chrono::seconds kMaxTime{30};

std::string errorText(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  int n = info ? onig_error_code_to_str(text, code, info) : onig_error_code_to_str(text, code);
  return std::string(reinterpret_cast<const char*>(text), size_t(std::max(n, 0)));
}

const OnigUChar* bytes(std::string_view s) { return reinterpret_cast<const OnigUChar*>(s.data()); }

}  // namespace

Regex::Regex(const std::string& pattern) : pattern_(pattern) {
  if (pattern.size() > kMaxPatternBytes)
    throw Error(ErrorCode::InvalidFile,
                fmt::format("expected a pattern of at most {} bytes, got {}", kMaxPatternBytes,
                            pattern.size()));
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
  });
  regex_t* regex = nullptr;
  OnigErrorInfo info;
  int code = onig_new(&regex, bytes(pattern), bytes(pattern) + pattern.size(), ONIG_OPTION_NONE,
                      ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
  if (code != ONIG_NORMAL)
    throw Error(ErrorCode::InvalidFile, fmt::format("the pattern {} does not compile: {}",
                                                    inQuotes(pattern), errorText(code, &info)));
  regex_ = std::shared_ptr<const void>(regex, [](void* r) { onig_free(static_cast<regex_t*>(r)); });
}

std::vector<TextRange> Regex::split(std::string_view text) const {
  std::unique_ptr<OnigRegion, void (*)(OnigRegion*)> region(
      onig_region_new(), [](OnigRegion* r) { onig_region_free(r, 1); });
  std::unique_ptr<OnigMatchParam, void (*)(OnigMatchParam*)> limits(onig_new_match_param(),
                                                                    onig_free_match_param);
  onig_initialize_match_param(limits.get());
  const unsigned long retries = std::max(kMinRetries, kRetriesPerByte * text.size());
  onig_set_match_stack_limit_size_of_match_param(limits.get(), kMaxStackEntries);
  onig_set_retry_limit_in_match_of_match_param(limits.get(), retries);
  onig_set_retry_limit_in_search_of_match_param(limits.get(), retries);
  auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::InvalidFile,
                fmt::format("the pattern {} is too costly on {} bytes of text: {}",
                            inQuotes(pattern_), text.size(), why));
  };

  auto* regex = static_cast<regex_t*>(const_cast<void*>(regex_.get()));
  const OnigUChar* start = bytes(text);
  const auto deadline = std::chrono::steady_clock::now() + kMaxTime;
  std::vector<TextRange> ranges;
  size_t from = 0, done = 0, count = 0;
  bool any = false;
  while (from <= text.size()) {
    if (++count % 64 == 0 && std::chrono::steady_clock::now() > deadline)
      fail(fmt::format("more than {} seconds", kMaxTime.count()));
    onig_region_clear(region.get());
    int at =
        onig_search_with_param(regex, start, start + text.size(), start + from, start + text.size(),
                               region.get(), ONIG_OPTION_NONE, limits.get());
    if (at == ONIG_MISMATCH) break;
    if (at < 0) fail(errorText(at, nullptr));
    size_t begin = size_t(region->beg[0]), end = size_t(region->end[0]);
    // \K inside a lookahead can report a match that ends before it begins.
    if (end < begin || begin < done) fail("a match outside the text that is left");
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
  if (done < text.size()) ranges.push_back({done, text.size(), false});
  return ranges;
}

}  // namespace lathe
