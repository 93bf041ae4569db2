// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory of a search through values, which are no tree: the sum of a value with itself has two
// paths to it, a chain of forty such sums 2^40.
#include <cstddef>
#include <limits>
#include <utility>

#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/Value.h"

namespace lathe {

/// Each question is answered once in one search, however many paths lead to it. A question is a
/// value or an op, with what else tells two of them apart, such as how a value is cut.
template <class Answer, class Question = mlir::Value>
class AskedOnce {
 public:
  AskedOnce() = default;
  /// After `most` questions the answer to all others is `beyond`: nobody spells more than that.
  AskedOnce(size_t most, Answer beyond) : most_(most), beyond_(std::move(beyond)) {}

  /// What `find` gives, which is called for the first of equal questions alone. It may ask others;
  /// none comes back to this one, because no value is made of itself.
  template <class Find>
  Answer of(const Question& question, Find find) {
    if (auto known = answers_.find(question); known != answers_.end()) return known->second;
    if (asked_ == most_) return beyond_;
    ++asked_;
    Answer answer = find();
    answers_.try_emplace(question, answer);
    return answer;
  }

 private:
  size_t most_ = std::numeric_limits<size_t>::max(), asked_ = 0;
  Answer beyond_{};
  llvm::SmallDenseMap<Question, Answer, 8> answers_;
};

}  // namespace lathe
