// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which of a kernel's candidates is printed: what was measured says so, else the model's order. A
// scope of the caller's sees every question, and may answer some itself.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/device/kernel_table.h"

namespace lathe::cuda {

/// A kernel that can be printed in several ways.
struct TuningQuestion {
  std::string problem;  ///< all that the answer depends on, one line: "product bf16 m=8 ..."
  int version = 0;      ///< raised when a template changes so that old measurements mislead
  std::string kernel;   ///< the name of the kernel that is about to be printed
  std::vector<std::string> candidates;  ///< as text, the best by the model first
  std::vector<double> seconds;          ///< of the candidates by the model, where it has a number
  std::vector<Condition> sizes;         ///< that the kernel is for; measured at the largest
  std::set<size_t> withoutText;         ///< candidates for which another has to be printed
  DimExpr integers = 0;                 ///< what a buffer of integers holds when it is measured
};

/// The number of a candidate: a scope's answer, else a record's (tuning_database.h) where the
/// record's version is the question's and the choice is still a candidate, else 0.
size_t chosenCandidate(const TuningQuestion& question);
/// The candidate that is printed where `chosen`, the answer to the question asked last, has no text
/// of its own: the first of the others that was not rejected.
size_t standInFor(const TuningQuestion& question, size_t chosen);

/// Sees the questions that this thread asks while it lives. Scopes nest; the innermost counts.
class TuningScope {
 public:
  TuningScope();
  ~TuningScope();
  TuningScope(const TuningScope&) = delete;
  TuningScope& operator=(const TuningScope&) = delete;

  struct Asked {
    TuningQuestion question;
    size_t answer = 0;
    size_t printed = 0;  ///< the answer, or what stands in for it
  };
  std::vector<Asked> asked;
  std::map<std::string, size_t> answers;  ///< by problem
  /// Candidates that are not taken while others are left, by problem.
  std::map<std::string, std::set<size_t>> rejected;

  /// Rejects the candidate that `kernel` was printed from; false if it is the last one.
  bool reject(const std::string& kernel);

 private:
  TuningScope* outer_;
};

/// Sizes of a range by which records are found: exact up to 16, then the next power of two.
int64_t sizeBucket(int64_t size);

/// 8 hexadecimal digits of `text`.
std::string shortHash(std::string_view text);

}  // namespace lathe::cuda
