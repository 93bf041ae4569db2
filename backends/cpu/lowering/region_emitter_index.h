// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the lanes of one vector read a tensor: a coordinate per axis.
#include "backends/cpu/lowering/region_emitter_builder.h"

namespace lathe::cpu {

/// One coordinate: `base`, plus a constant offset per lane, or instead of both a vector of i64.
struct Coord {
  static constexpr int64_t kUnbounded = int64_t(1) << 62;

  mlir::Value base;
  Pattern lanes = nullptr;  // null: the same in every lane
  mlir::Value vec;
  // What active lanes are known to lie between.
  int64_t lo = 0, hi = kUnbounded;

  bool uniform() const { return !lanes && !vec; }
};

struct Index {
  llvm::SmallVector<Coord, 4> coords;
  int64_t width = 1;
  mlir::Value mask;  // lanes that may touch memory; null: all

  bool uniform() const {
    return llvm::all_of(coords, [](const Coord& c) { return c.uniform(); });
  }
  Index with(llvm::SmallVector<Coord, 4> other) const { return {std::move(other), width, mask}; }
};

/// Arithmetic on coordinates, exact for any value; constant patterns stay patterns where they can.
class IndexMath {
 public:
  explicit IndexMath(KernelBuilder& k) : k(k) {}

  Coord constant(int64_t value);
  Coord scalar(mlir::Value base) { return {base}; }
  Coord plus(Coord c, mlir::Value offset, int64_t width);
  Coord times(Coord c, mlir::Value factor, int64_t width);
  Coord sum(const Coord& x, const Coord& y, int64_t width);
  /// (quotient, remainder) by a dim.
  std::pair<Coord, Coord> divide(const Coord& c, mlir::Value divisor, int64_t width);
  /// top - c
  Coord mirror(const Coord& c, mlir::Value top, int64_t width);
  /// The chosen lanes only.
  Index pick(const Index& index, llvm::ArrayRef<int32_t> lanes);
  Coord clip(Coord c, int64_t lo, int64_t hi) const;
  /// The coordinate as i64, one per lane if it varies.
  mlir::Value values(const Coord& c, int64_t width);
  mlir::Value vector(const Coord& c, int64_t width);
  /// All lanes lie inside one multiple of `step`, whatever the base is.
  bool insideOne(const Coord& c, int64_t step) const;

 private:
  Coord tidy(Coord c);
  mlir::Value vectorOp(mlir::Value x, mlir::Value y, llvm::StringRef op);

  KernelBuilder& k;
};

}  // namespace lathe::cpu
