// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a pattern was matched to, and how its replacement is built.
#include <optional>
#include <string>

#include "llvm/ADT/SetVector.h"
#include "passes/dag_pattern.h"

namespace lathe {

class Match {
 public:
  /// The value that a node was matched to; null if the node lies in a spelling not taken.
  mlir::Value operator[](const Tensor& t) const { return bound_[t.id()]; }
  bool has(const Tensor& t) const { return bool(bound_[t.id()]); }
  /// The value of all elements of a matched constant.
  double constant(const Tensor& t) const;
  /// An attribute of a matched op.
  mlir::Attribute attribute(const Tensor& t, llvm::StringRef name) const;
  mlir::Operation* root() const { return root_; }

  /// Refuses the match: `return match.decline("epsilon is not a constant")`.
  mlir::Value decline(const llvm::Twine& reason);
  const std::string& reason() const { return reason_; }

  /// Replaces another matched value than the root's too; the pattern says `mayEscape` of it. The
  /// replacement is moved in front of the value's first user.
  void replaceToo(const Tensor& t, mlir::Value by) { replaceToo(bound_[t.id()], by); }
  void replaceToo(mlir::Value matched, mlir::Value by) { replaced_.emplace_back(matched, by); }

  /// Counts an op that the replacement looked through beyond the pattern as matched.
  void consume(mlir::Operation* op) { consumed_.insert(op); }
  /// Ops matched, in no particular order. A constant counts only if nobody else uses it: a shared
  /// one belongs to other lines as well.
  llvm::SmallSetVector<mlir::Operation*, 16> ops() const;
  /// The origins of exactly those ops.
  mlir::Location location() const;

  /// Records an op of the replacement with inferred result types; an absent optional operand is a
  /// null value. Null if an operand's making or the op's constraints failed.
  mlir::Value make(std::string_view op, llvm::ArrayRef<mlir::Value> operands,
                   const std::vector<NamedAttr>& attributes = {});
  mlir::Value makeWith(std::string_view op, llvm::ArrayRef<mlir::Value> operands,
                       llvm::ArrayRef<mlir::NamedAttribute> attributes);

 private:
  friend class DagPattern;
  friend class PatternSearch;
  const DagPattern* pattern_ = nullptr;
  mlir::Operation* root_ = nullptr;
  llvm::SmallVector<mlir::Value, 32> bound_;
  llvm::SmallSetVector<mlir::Operation*, 8> consumed_;
  mlir::RewriterBase* rewriter_ = nullptr;
  llvm::SmallVector<mlir::Operation*, 4> created_;
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>, 1> replaced_;
  std::string reason_;
};

/// The value that all elements of a constant have, seen through casts, broadcasts and reshapes.
std::optional<double> splatValue(mlir::Value value);

}  // namespace lathe
