// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a pattern was matched to, and how its replacement is built.
#include <optional>
#include <string>

#include "lathe/passes/dag_pattern.h"
#include "lathe/passes/numbers.h"
#include "lathe/passes/numerics.h"
#include "lathe/passes/pattern_node.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/PatternMatch.h"

namespace lathe {

struct NumericsPolicy;

/// How far a match came and what stopped it.
struct Miss {
  /// Coarse to fine. Of two equally far misses the finer one is kept: the other order of a
  /// commutative op gives the duller reason.
  enum class Why {
    NotAnOp,
    OpName,
    OperandCount,
    Identity,
    Constant,
    Attribute,
    OneUse,
    Where,
    Dim,
    Require,
    Escapes,
    Declined
  };
  Why why = Why::NotAnOp;
  int matched = -1;  ///< ops matched before the failure
  size_t node = 0;
  mlir::Value value;
  std::string detail;  ///< Attribute: its name; the others: what was wanted, or why it declined
};

class Match {
 public:
  /// The value that a node was matched to; null if the node lies in a spelling not taken.
  mlir::Value operator[](const Tensor& t) const;
  bool has(const Tensor& t) const { return bool((*this)[t]); }
  /// The value of all elements of a matched constant. Throws Error if `t` is none.
  double constant(const Tensor& t) const;
  /// An attribute of a matched op; null if it has none of that name. Throws Error if `t` was not
  /// matched to an op.
  mlir::Attribute attribute(const Tensor& t, llvm::StringRef name) const;
  mlir::Operation* root() const { return root_; }

  /// Refuses the match: `return match.decline("epsilon is not a constant")`.
  mlir::Value decline(const llvm::Twine& reason);
  const std::string& reason() const { return reason_; }
  /// Ops of the replacement that was built.
  int64_t opsMade() const { return int64_t(created_.size()); }
  /// A function of the pattern threw; `reason` has the words.
  bool threw() const { return threw_; }
  /// The replacement was refused because its type is not that of what it replaces.
  bool hasOtherType() const { return otherType_; }
  /// The replacement computes other values on purpose.
  bool isApproximate() const { return approximates_; }
  /// Says that the replacement weakens a contract. In a mode that keeps it the match is refused:
  /// `if (!match.weakens(Contract::IncomingNan)) return {};`
  bool weakens(Contract contract);

  /// Says that the replacement computes other values on purpose (contract `approximation`): they
  /// are not compared. `if (!match.approximates()) return {};`
  bool approximates();

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
  /// A scalar of `like`'s dtype, rounded to it. Null, after `decline`, if that is an integer type
  /// that does not hold the number.
  mlir::Value scalar(double value, mlir::Value like);

 private:
  friend class DagPattern;
  friend class PatternSearch;
  // In strict mode refuses replacements (pairs of matched value and replacement) that are not
  // proved to compute the same bits; under an audit notes what they weaken.
  bool checkNumerics(llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> replaced);
  // Refuses replacements that give other values on small samples.
  bool checkValues(const NumericsPolicy& policy,
                   llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> replaced,
                   llvm::ArrayRef<mlir::Operation*> matched);

  const DagPattern* pattern_ = nullptr;
  mlir::Operation* root_ = nullptr;
  llvm::SmallVector<mlir::Value, 32> bound_;
  llvm::SmallSetVector<mlir::Operation*, 8> consumed_;
  mlir::RewriterBase* rewriter_ = nullptr;
  llvm::SmallVector<mlir::Operation*, 4> created_;
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>, 1> replaced_;
  std::string reason_;
  bool threw_ = false;
  bool declared_ = false;  // has named a contract
  bool approximates_ = false;
  bool otherType_ = false;
};

/// An axis counted from the front; nothing if it lies outside of the rank.
std::optional<int64_t> axisOf(mlir::RankedTensorType type, int64_t axis);
/// True for a checkpoint tensor, also behind reshapes, casts of any kind and `dequantize`: they run
/// at load time, and the replacement reads what they give.
bool isWeight(mlir::Value value);
/// The attribute's value with axes that count from the back of the first operand resolved;
/// unchanged if it holds none.
mlir::Attribute axesFromFront(mlir::NamedAttribute attribute, mlir::ValueRange operands);

}  // namespace lathe
