// SPDX-License-Identifier: Apache-2.0
#pragma once
// Emission into nested scopes: what does not depend on a loop is put in front of it, and what was
// emitted once is found again.
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "backends/cpu/lowering/tier.h"
#include "ir/scalar_builder.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lathe::cpu {

/// Offsets of the lanes of one vector, interned: equal patterns have one address.
using Pattern = const std::vector<int64_t>*;

class KernelBuilder : public ScalarBuilder {
 public:
  using Key = std::vector<const void*>;

  KernelBuilder(mlir::OpBuilder& builder, mlir::Location at, const Tier& tier, mlir::Block* entry);

  const Tier& tier;

  // Scopes: 0 is the function's entry block.
  size_t top() const { return scopes_.size() - 1; }
  size_t levelOf(mlir::Value value) const;
  /// The innermost scope that runs under a condition: loads must not be put in front of it.
  size_t barrier() const;
  /// Emits into an outer scope, in front of the loop that is being filled there.
  mlir::Value at(size_t level, llvm::function_ref<mlir::Value()> make);
  mlir::Value find(const Key& key) const;
  void remember(const Key& key, mlir::Value value) { scopes_.back().known[key] = value; }
  /// `make()` at a level, once per key.
  mlir::Value shared(size_t level, Key key, llvm::function_ref<mlir::Value()> make);

  /// for (i = lo; i < hi; i += step), carrying values.
  Values loop(mlir::Value lo, mlir::Value hi, int64_t step, mlir::ValueRange init,
              llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body);
  /// Both arms are barriers; they give values of equal types.
  Values branch(mlir::Value condition, llvm::function_ref<Values()> then,
                llvm::function_ref<Values()> otherwise);

  // i64 scalars: folded, shared, as far out as their operands allow.
  mlir::Value i64(int64_t value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  /// Unsigned; a divisor of 0 counts as 1, since a loop that never runs may have it computed.
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value rem(mlir::Value x, mlir::Value y);
  mlir::Value atLeastOne(mlir::Value x) { return binary<mlir::arith::MaxUIOp>(x, i64(1), 1); }
  static std::optional<int64_t> constOf(mlir::Value value);
  /// The value is a multiple of this; 0 for the constant 0.
  int64_t alignOf(mlir::Value value) const;
  void setAlign(mlir::Value value, int64_t align) { aligns_[value] = align; }

  // Constants and vectors.
  mlir::Value constants(mlir::Type element, llvm::ArrayRef<int64_t> values);
  mlir::Value splat(mlir::Value scalar, int64_t width) override;
  mlir::Value shuffle(mlir::Value x, mlir::Value y, llvm::ArrayRef<int32_t> lanes);
  Pattern pattern(std::vector<int64_t> offsets);
  Pattern ramp(int64_t width);

 private:
  struct Scope {
    mlir::Block* block;
    mlir::Operation* anchor = nullptr;  // the op being filled: later ops go in front of it
    bool barrier = false;
    std::map<Key, mlir::Value> known;
  };
  void goTo(const Scope& scope);
  Values fill(mlir::Operation* op, mlir::Block* block, bool barrier,
              llvm::function_ref<Values()> body);
  mlir::Value constant(mlir::TypedAttr attr) override;
  template <class Op>
  mlir::Value binary(mlir::Value x, mlir::Value y, int64_t align);

  std::vector<Scope> scopes_;
  std::set<std::vector<int64_t>> patterns_;
  llvm::DenseMap<mlir::Value, int64_t> aligns_;
};

template <class Op>
mlir::Value KernelBuilder::binary(mlir::Value x, mlir::Value y, int64_t align) {
  static const char kind = 0;
  size_t level = std::max(levelOf(x), levelOf(y));
  mlir::Value v = shared(level, {&kind, x.getAsOpaquePointer(), y.getAsOpaquePointer()},
                         [&] { return make<Op>(x, y); });
  aligns_[v] = align;
  return v;
}

}  // namespace lathe::cpu
