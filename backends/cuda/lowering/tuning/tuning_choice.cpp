// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/tuning/tuning_choice.h"

#include <algorithm>
#include <bit>
#include <span>

#include "backends/cuda/lowering/tuning/tuning_database.h"
#include "runtime/sha256.h"

namespace lathe::cuda {
namespace {

thread_local TuningScope* innermost = nullptr;

const std::set<size_t>& rejectedOf(const TuningQuestion& q) {
  static const std::set<size_t> none;
  if (!innermost) return none;
  auto it = innermost->rejected.find(q.problem);
  return it == innermost->rejected.end() ? none : it->second;
}

size_t answerTo(const TuningQuestion& q) {
  if (innermost)
    if (auto it = innermost->answers.find(q.problem); it != innermost->answers.end())
      return std::min(it->second, q.candidates.size() - 1);
  const std::set<size_t>& rejected = rejectedOf(q);
  if (auto measured = tuningDatabase()->find(q.problem);
      measured && measured->version == q.version) {
    const size_t number =
        size_t(std::ranges::find(q.candidates, measured->choice) - q.candidates.begin());
    if (number < q.candidates.size() && !rejected.contains(number)) return number;
  }
  for (size_t i = 0; i < q.candidates.size(); ++i)
    if (!rejected.contains(i)) return i;
  return 0;
}

}  // namespace

size_t chosenCandidate(const TuningQuestion& question) {
  const size_t answer = answerTo(question);
  if (innermost) innermost->asked.push_back({question, answer, answer});
  return answer;
}

size_t standInFor(const TuningQuestion& question, size_t chosen) {
  const std::set<size_t>& rejected = rejectedOf(question);
  size_t other = chosen;
  for (size_t i = question.candidates.size(); i-- > 0;)
    if (!question.withoutText.contains(i) && !rejected.contains(i)) other = i;
  if (innermost) innermost->asked.back().printed = other;
  return other;
}

TuningScope::TuningScope() : outer_(innermost) { innermost = this; }
TuningScope::~TuningScope() { innermost = outer_; }

bool TuningScope::reject(const std::string& kernel) {
  for (const Asked& a : asked) {
    if (a.question.kernel != kernel) continue;
    std::set<size_t>& out = rejected[a.question.problem];
    // One that has a text must be left.
    const size_t kept = 1 + a.question.withoutText.size();
    if (out.size() + kept >= a.question.candidates.size()) continue;
    if (out.insert(a.printed).second) return true;
  }
  return false;
}

int64_t sizeBucket(int64_t size) {
  return size <= 16 ? size : int64_t(std::bit_ceil(uint64_t(size)));
}

std::string shortHash(std::string_view text) {
  return sha256Hex(std::as_bytes(std::span(text.data(), text.size()))).substr(0, 8);
}

}  // namespace lathe::cuda
