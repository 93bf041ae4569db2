// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shorthand for the files that fill the table of cases, one per family of ops.
#include "tests/conformance/cases.h"

namespace lathe::conformance {

using Rows = std::vector<OpRow>;
using Samples = std::vector<Sample>;
void addElementwise(Rows& table);
void addReductions(Rows& table);
void addShapes(Rows& table);
void addContractions(Rows& table);
void addIndices(Rows& table);
void addFused(Rows& table);
void addNorms(Rows& table);
void addQuantized(Rows& table);

inline std::vector<DType> floats() { return {DType::F64, DType::F32, DType::BF16, DType::F16}; }
inline std::vector<DType> integers() {
  return {DType::I64, DType::I32, DType::I16, DType::I8, DType::U8};
}
inline std::vector<DType> numbers() {
  std::vector<DType> all = floats();
  for (DType d : integers()) all.push_back(d);
  return all;
}
inline std::vector<DType> everything() {
  std::vector<DType> all = numbers();
  all.push_back(DType::Bool);
  return all;
}

using Ts = const std::vector<Tensor>&;
using One = std::function<Tensor(Ts)>;
/// A record function of one result that needs no graph.
inline Record one(One f) {
  return [f = std::move(f)](Graph&, Ts t) { return std::vector<Tensor>{f(t)}; };
}
/// Of norms. An f32 constant of a decomposition holds it exactly.
inline constexpr double kEpsilon = 0x1p-17;
inline Dims matrix() { return {rows(), cols()}; }

}  // namespace lathe::conformance
