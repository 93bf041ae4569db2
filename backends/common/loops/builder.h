// SPDX-License-Identifier: Apache-2.0
#pragma once
// Emission into nested scopes: what does not depend on a loop is put in front of it, and what was
// emitted once is found again.
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "ir/scalar_builder.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lathe::loops {

/// Offsets of the lanes of one vector, interned: equal patterns have one address.
using Pattern = const std::vector<int64_t>*;

/// How indices are computed. `narrow`: in i32 wherever their bounds allow, by signed operations
/// that are known not to overflow; else all in i64.
enum class IndexStyle { wide, narrow };

/// What tells shared values apart: what they are, a word that one place uses, and what they depend
/// on.
using Key = std::vector<const void*>;
inline void append(Key& key, const void* part) { key.push_back(part); }
inline void append(Key& key, int64_t part) { key.push_back(reinterpret_cast<const void*>(part)); }
inline void append(Key& key, mlir::Value part) { key.push_back(part.getAsOpaquePointer()); }
inline void append(Key& key, mlir::Type part) { key.push_back(part.getAsOpaquePointer()); }
template <class... Parts>
Key keyOf(llvm::StringLiteral what, const Parts&... parts) {
  Key key{what.data()};
  (append(key, parts), ...);
  return key;
}

class LoopBuilder : public ScalarBuilder {
 public:
  LoopBuilder(mlir::OpBuilder& builder, mlir::Location at, mlir::Block* entry, IndexStyle style);

  const IndexStyle style;

  // Scopes: 0 is the function's entry block.
  size_t top() const { return scopes_.size() - 1; }
  size_t levelOf(mlir::Value value) const;
  /// The innermost scope that runs under a condition: loads must not be put in front of it.
  size_t barrier() const;
  /// Where the work begins: the condition of this scope is none for what is inside.
  void setGround(size_t level) { ground_ = level; }
  size_t ground() const { return ground_; }
  /// Emits into an outer scope, in front of the loop that is being filled there.
  mlir::Value at(size_t level, llvm::function_ref<mlir::Value()> make);
  mlir::Value find(const Key& key) const;
  void remember(const Key& key, mlir::Value value) { scopes_.back().known[key] = value; }
  /// `make()` at a level, once per key.
  mlir::Value shared(size_t level, Key key, llvm::function_ref<mlir::Value()> make);

  /// for (i = lo; i < hi; i += step), carrying values. The bounds have one type.
  Values loop(mlir::Value lo, mlir::Value hi, int64_t step, mlir::ValueRange init,
              llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body,
              llvm::StringRef mark = {});
  /// Both arms are barriers; they give values of equal types.
  Values branch(mlir::Value condition, llvm::function_ref<Values()> then,
                llvm::function_ref<Values()> otherwise);
  /// `body` where the condition holds, which is a barrier.
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  /// `body` where the condition holds, else `init`. No barrier: what does not depend on `inner`,
  /// the value that the condition is about, may still be put in front of it.
  Values guard(mlir::Value condition, mlir::Value inner, mlir::ValueRange init,
               llvm::function_ref<Values(mlir::ValueRange)> body);
  /// What kernels that are printed call a value.
  mlir::Value named(llvm::StringRef name, mlir::Value value);

  // Integers of an index: folded, shared, as far out as their operands allow. Of an i32 and an
  // i64 the first is widened.
  mlir::Value index(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value widened(mlir::Value x);
  /// As i32 where indices may be narrow and the value lies in [0, most].
  mlir::Value narrowed(mlir::Value x, int64_t most);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  /// Of numbers that are not negative; a divisor of 0 counts as 1, since a loop that never runs may
  /// have it computed.
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value rem(mlir::Value x, mlir::Value y);
  /// Of a multiple of y that may be negative; y is not 0.
  mlir::Value signedDiv(mlir::Value x, mlir::Value y);
  mlir::Value atLeastOne(mlir::Value x);
  using ScalarBuilder::compare;
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value x, mlir::Value y);
  static std::optional<int64_t> constOf(mlir::Value value);

  // Vectors.
  mlir::Value none(mlir::Type type) { return whole(type, 0); }
  mlir::Value constants(mlir::Type element, llvm::ArrayRef<int64_t> values);
  mlir::Value splat(mlir::Value scalar, int64_t width) override;
  mlir::Value shuffle(mlir::Value x, mlir::Value y, llvm::ArrayRef<int32_t> lanes);
  mlir::Value extract(mlir::Value vector, int64_t lane);
  mlir::Value extract(mlir::Value vector, mlir::Value lane);
  Pattern pattern(std::vector<int64_t> offsets);
  Pattern ramp(int64_t width);

 protected:
  mlir::Value constant(mlir::TypedAttr attr) override;

 private:
  struct Scope {
    mlir::Block* block;
    mlir::Operation* anchor = nullptr;  // the op being filled: later ops go in front of it
    bool barrier = false;
    mlir::Value inner = {};  // counts as one of this scope
    std::map<Key, mlir::Value> known;
  };
  void goTo(const Scope& scope);
  Values fill(mlir::Operation* op, mlir::Block* block, bool barrier,
              llvm::function_ref<Values()> body, mlir::Value inner = {});
  /// An op on integers, once.
  template <class Op>
  mlir::Value binary(mlir::Value x, mlir::Value y);
  /// Indices are called after what they are, not after the op that wants them.
  mlir::Value unnamed(size_t level, Key key, llvm::function_ref<mlir::Value()> make);
  mlir::Value divided(mlir::Value x, mlir::Value y, bool remainder);

  std::vector<Scope> scopes_;
  std::set<std::vector<int64_t>> patterns_;
  size_t ground_ = 0;
};

}  // namespace lathe::loops
