// SPDX-License-Identifier: Apache-2.0
#pragma once
// How libraries, papers and exporters spell what a fused op computes, one graph each. Written after
// their sources, not after the patterns: respell.h makes spellings of patterns.
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "lathe/lathe.h"

namespace lathe::conformance {

/// What a spelling is recorded into: a graph with the symbols `s` (queries, tokens), `t` (keys) and
/// `p` (what lies in front of the tokens).
class Sheet {
 public:
  Sheet();

  Tensor in(std::string_view name, const Dims& shape, DType dtype = DType::F32);
  Tensor w(std::string_view name, const Shape& shape, DType dtype = DType::F32);
  /// A constant vector of integers, and a number.
  Tensor list(const std::vector<int64_t>& values);
  Tensor number(double value, DType dtype = DType::F32) { return g.constant(value, dtype); }
  Tensor infinity(DType dtype = DType::F32);
  /// 0, 1, 2, ... along one axis of a shape.
  Tensor ramp(const Dims& shape, int64_t axis, DType dtype = DType::I64);

  /// Heads of 16 elements: 4 of the queries, over s tokens; and over t tokens.
  Tensor q(DType dtype = DType::F32) { return in("q", {2, 4, s, 16}, dtype); }
  Tensor k(DType dtype = DType::F32) { return in("k", {2, 4, t, 16}, dtype); }
  Tensor v(DType dtype = DType::F32) { return in("v", {2, 4, t, 16}, dtype); }

  /// The op that is asked about, where a spelling is not fused: its line is kept.
  Tensor asked(const Tensor& y, LATHE_AT);

  Graph g;
  Dim s, t, p;
  std::string line;  ///< "FILE:LINE" of `asked`
};

/// exp(x - max) over its sum, along the last axis.
Tensor softmaxOf(const Tensor& x, LATHE_AT);
/// The same with a maximum and a sum that stop being axes and are put back.
Tensor scoresOf(const Tensor& q, const Tensor& k, LATHE_AT);

using RecordSpelling = std::function<Tensor(Sheet&)>;

struct KnownSpelling {
  std::string name;
  /// The ops of the fused graph in alphabetical order, without leaves, casts and layouts.
  std::string ops;
  RecordSpelling record;
  std::string holds = "";  ///< words of the fused graph's text
};
using KnownSpellings = std::vector<KnownSpelling>;

/// One that stays, and what `why-not` answers.
struct UnfusedSpelling {
  std::string name;
  std::string op;      ///< the fused op that is asked for
  std::string answer;  ///< words of the reason
  RecordSpelling record;
};
using UnfusedSpellings = std::vector<UnfusedSpelling>;

KnownSpellings softmaxSpellings();
KnownSpellings attentionSpellings();
KnownSpellings maskSpellings();
KnownSpellings headSpellings();
KnownSpellings normSpellings();
KnownSpellings gateSpellings();
KnownSpellings ropeSpellings();
KnownSpellings linearSpellings();
KnownSpellings tokenSpellings();
UnfusedSpellings unfusedSpellings();

}  // namespace lathe::conformance
