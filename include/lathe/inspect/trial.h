// SPDX-License-Identifier: Apache-2.0
#pragma once
// A trial: every entry point of a graph, run once on seeded random data. What questions about
// numbers are answered with.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lathe/backends/interpreter.h"
#include "lathe/frontend/compile.h"
#include "lathe/runtime/session.h"

namespace lathe {

struct TrialOptions {
  CompileOptions compile = {};  ///< `record` is not written
  /// What the interpreter computes in. Float64 shows a wrong rewrite most sharply; OwnDtype also
  /// shows what a rewrite does to rounding.
  Precision precision = Precision::Float64;
  /// Symbols by name; the others are those of the given inputs, or take small values of their
  /// range, each another one.
  SymbolValues sizes = {};
  bool larger = false;  ///< the other symbols take values of 16 and more
  /// Inputs by name, of every entry point that has one of the name; the others are random. Ids and
  /// positions stay inside the tables and caches that they index.
  Arrays inputs = {};
  WeightSource weights = {};  ///< nothing: random ones
  uint64_t seed = 0;
  std::string entry = {};   ///< the only entry point that is run; empty: all
  std::string device = {};  ///< where programs run, as SessionOptions::device
  /// Told what is about to be run, "step fuse", and how many of how many are behind; of 0 where
  /// nobody knows.
  std::function<void(const std::string& what, size_t done, size_t total)> progress = {};
  /// Largest |got - want| / (|want| + median of |want|) of a result; 0: the contract of
  /// docs/questions.md.
  double tolerance = 0;
};

/// How far results are from those wanted.
struct Deviation {
  double absolute = 0;     ///< largest |got - want|
  double relative = 0;     ///< largest |got - want| / |want|
  double share = 0;        ///< largest |got - want| / (|want| + median): what the contract bounds
  double ulps = 0;         ///< largest difference in steps of the result's dtype at `want`
  bool identical = true;   ///< the same bits, NaN for NaN
  bool within = true;      ///< inside the contract
  int64_t beyond = 0;      ///< elements that are outside of it
  std::string where = "";  ///< "forward: logits[1, 4, 7] is 0.5, want 0.25"; empty if identical
};

}  // namespace lathe
