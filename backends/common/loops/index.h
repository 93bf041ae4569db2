// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the lanes of one vector read a tensor: a coordinate per axis, each a sum whose terms,
// bounds and lanes are known, so that most divisions disappear and contiguous accesses can be
// proved.
#include "backends/common/loops/builder.h"

namespace lathe::loops {

/// A sum of multiples of integer values and a constant, plus a constant offset per lane; or instead
/// of all that a vector of integers.
struct Coord {
  static constexpr int64_t kUnbounded = int64_t(1) << 62;
  using Term = std::pair<mlir::Value, int64_t>;

  llvm::SmallVector<Term, 2> terms;  // in the order in which their values became known
  int64_t constant = 0;
  Pattern lanes = nullptr;  // null: the same in every lane
  mlir::Value vec;
  // What active lanes are known to lie between.
  int64_t lo = 0, hi = 0;

  Coord() = default;
  Coord(int64_t value) : constant(value), lo(value), hi(value) {}
  bool uniform() const { return !lanes && !vec; }
  /// The number that it is in every lane.
  std::optional<int64_t> number() const {
    if (!terms.empty() || !uniform()) return std::nullopt;
    return constant;
  }
  /// What every lane has in common.
  Coord base() const;
  bool sameAs(const Coord& other) const {
    return terms == other.terms && constant == other.constant && lanes == other.lanes &&
           vec == other.vec;
  }
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

void append(Key& key, const Coord& c);
void append(Key& key, llvm::ArrayRef<Coord> coords);

/// Arithmetic on coordinates, exact for any value; sums stay sums and lanes constants where they
/// can.
class IndexMath {
 public:
  explicit IndexMath(LoopBuilder& k) : k(k) {}

  /// An integer value that lies in [lo, hi] and is a multiple of `align`.
  Coord of(mlir::Value value, int64_t align = 1, int64_t lo = 0, int64_t hi = Coord::kUnbounded);
  /// Lanes that have these offsets from 0.
  Coord of(Pattern lanes);
  /// Lanes that count up from `first`.
  Coord ramp(const Coord& first, int64_t width);
  Coord sum(const Coord& x, const Coord& y, int64_t width);
  Coord times(const Coord& c, int64_t factor, int64_t width);
  Coord times(const Coord& c, const Coord& factor, int64_t width);
  Coord minus(const Coord& x, const Coord& y, int64_t width) {
    return sum(x, times(y, -1, width), width);
  }
  /// c * size + inner, which may be what `divide` took apart.
  Coord join(const Coord& c, const Coord& size, const Coord& inner, int64_t width);
  /// (quotient, remainder) by a dim.
  std::pair<Coord, Coord> divide(const Coord& c, const Coord& divisor, int64_t width);
  /// The chosen lanes only.
  Index pick(const Index& index, llvm::ArrayRef<int32_t> lanes);
  Coord clip(Coord c, int64_t lo, int64_t hi) const;

  /// The coordinate of the first lane, or of all of them, as an integer.
  mlir::Value scalar(const Coord& c);
  mlir::Value vector(const Coord& c, int64_t width);
  /// A scalar, or a vector if it varies.
  mlir::Value values(const Coord& c, int64_t width) {
    return c.uniform() ? scalar(c) : vector(c, width);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, const Coord& x, const Coord& y,
                      int64_t width);
  /// What every lane has in common is a multiple of this; 0 for the constant 0.
  int64_t alignOf(const Coord& c) const;
  size_t levelOf(const Coord& c) const;
  /// All lanes lie inside one multiple of `step`, whatever they have in common is.
  bool insideOne(const Coord& c, int64_t step) const;

 private:
  struct Facts {
    int64_t align, lo, hi;
    size_t number;
  };
  struct Division {
    Coord x, divisor, remainder;
  };
  Coord tidy(Coord c);
  /// Tightens the bounds by those of the terms.
  Coord bounded(Coord c) const;
  bool isWide(const Coord& c) const;

  LoopBuilder& k;
  llvm::DenseMap<mlir::Value, Facts> facts_;
  llvm::DenseMap<mlir::Value, Division> divisions_;  // by the quotient
};

}  // namespace lathe::loops
