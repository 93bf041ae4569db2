// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/tuning_choice.h"

#include <algorithm>
#include <bit>

#include "backends/cuda/lowering/tuning_database.h"

namespace lathe::cuda {
namespace {

thread_local TuningScope* innermost = nullptr;

size_t answerTo(const TuningQuestion& q) {
  static const std::set<size_t> none;
  const std::set<size_t>* rejected = &none;
  if (innermost) {
    if (auto it = innermost->answers.find(q.problem); it != innermost->answers.end())
      return std::min(it->second, q.candidates.size() - 1);
    if (auto it = innermost->rejected.find(q.problem); it != innermost->rejected.end())
      rejected = &it->second;
  }
  if (auto measured = tuningDatabase()->find(q.problem);
      measured && measured->version == q.version) {
    const size_t number =
        size_t(std::ranges::find(q.candidates, measured->choice) - q.candidates.begin());
    if (number < q.candidates.size() && !rejected->contains(number)) return number;
  }
  for (size_t i = 0; i < q.candidates.size(); ++i)
    if (!rejected->contains(i)) return i;
  return 0;
}

}  // namespace

size_t chosenCandidate(const TuningQuestion& question) {
  const size_t answer = answerTo(question);
  if (innermost) innermost->asked.push_back({question, answer});
  return answer;
}

TuningScope::TuningScope() : outer_(innermost) { innermost = this; }
TuningScope::~TuningScope() { innermost = outer_; }

bool TuningScope::reject(const std::string& kernel) {
  for (const Asked& a : asked) {
    if (a.question.kernel != kernel) continue;
    std::set<size_t>& out = rejected[a.question.problem];
    if (out.size() + 1 >= a.question.candidates.size()) continue;
    if (out.insert(a.answer).second) return true;
  }
  return false;
}

int64_t sizeBucket(int64_t size) {
  return size <= 16 ? size : int64_t(std::bit_ceil(uint64_t(size)));
}

}  // namespace lathe::cuda
