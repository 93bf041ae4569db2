// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fusion patterns: recorded through the functions that record models (ir/ops.h), matched
// against IR, and able to say why they did not match.
//
//   DagPattern p(context, "square-root");
//   Tensor x = p.any();
//   p.root(sqrt(mul(x, x)));
//   p.replaceWith(abs(x));
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/tensor.h"
#include "mlir/IR/PatternMatch.h"

#define LATHE_PATTERN_AT std::source_location at = std::source_location::current()

namespace lathe {

class Match;

/// One node of a pattern's DAG. A tensor handle of the pattern is an index into the nodes.
struct PatternNode {
  enum class Kind { Any, Constant, Op, Result, AnyOf, Optional };
  Kind kind = Kind::Any;
  std::string op;  ///< Op: "lathe.mul"
  bool commutative = false;
  bool oneUse = false;
  bool mayEscape = false;  ///< users outside the match are allowed
  /// AnyOf: alternatives; Optional: {op, otherwise}; Result: {op}
  std::vector<std::optional<size_t>> operands;
  unsigned result = 0;  ///< Result: which one of the op
  std::vector<mlir::NamedAttribute> attributes;
  std::vector<std::string> free;         ///< attributes that may have any value
  std::function<bool(double)> constant;  ///< Constant: what the splat's value must satisfy
  std::optional<double> exact;           ///< Constant: the value, within `tolerance`
  double tolerance = 0;
  std::function<bool(mlir::Value)> where;
  std::string text;  ///< says what `where` or `constant` wants
  std::source_location at;
};

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
    Escapes,
    Declined
  };
  Why why = Why::NotAnOp;
  int matched = -1;  ///< ops matched before the failure
  size_t node = 0;
  mlir::Value value;
  std::string detail;  ///< Attribute: its name; Declined: the replacement's reason
};

/// A pattern. Values of its attributes, constants, axes and permutations match exactly unless
/// written as free; interior values must not have users outside the match unless allowed to.
class DagPattern final : public Recorder {
 public:
  /// Builds the replacement of a match; a null value declines (`return match.decline("...")`).
  using Replacement = std::function<mlir::Value(Match&)>;

  DagPattern(mlir::MLIRContext* context, std::string name);
  DagPattern(const DagPattern&) = delete;
  DagPattern& operator=(const DagPattern&) = delete;

  // --- leaves
  /// Any value; used twice it must be the same value twice.
  Tensor any(LATHE_PATTERN_AT);
  /// A constant all of whose elements are `value`, within a relative tolerance or as the value
  /// rounds to the constant's element type. Casts and broadcasts of constants are seen through.
  Tensor constant(double value, double tolerance = 1e-6, LATHE_PATTERN_AT);
  Tensor constantWhere(std::string text, std::function<bool(double)> accepts, LATHE_PATTERN_AT);

  // --- combinators
  Tensor anyOf(const std::vector<Tensor>& alternatives, LATHE_PATTERN_AT);
  /// `op`, or `otherwise` in its place: `optional(cast(x, DType::F32), x)`.
  Tensor optional(const Tensor& op, const Tensor& otherwise, LATHE_PATTERN_AT);

  // --- constraints; each returns the tensor it constrains
  Tensor where(const Tensor& t, std::string text, std::function<bool(mlir::Value)> accepts);
  Tensor anyAttribute(const Tensor& t, std::string_view name);
  Tensor oneUse(const Tensor& t);
  Tensor mayEscape(const Tensor& t);
  /// The two axes (negative: from the back) are provably equal.
  void sameDim(const Tensor& a, int64_t axisA, const Tensor& b, int64_t axisB);

  /// An attribute of the matched op, or the dims of a matched value, for an op of the replacement.
  AttrValue captured(const Tensor& t, std::string_view attribute);
  AttrValue capturedShape(const Tensor& t) const;

  /// What the pattern matches: an op. What is recorded afterwards is the replacement.
  void root(const Tensor& t);
  void replaceWith(const Tensor& t);
  void replaceWith(Replacement build);
  /// With a recorded replacement: a matched value other than the root's that `by` replaces as well.
  /// It may have users outside the match.
  void replaceToo(const Tensor& matched, const Tensor& by);

  /// Patterns of a later phase (default 0) are tried only when those of all earlier ones have
  /// reached their fixed point: for a fusion that must not take what a larger one wants.
  void phase(int number) { phase_ = number; }

  // --- Recorder
  Tensor emit(std::string_view op, const std::vector<Tensor>& operands,
              const std::vector<NamedAttr>& attributes, std::source_location at) override;
  /// A pattern has neither: both throw Error.
  DType dtypeOf(size_t id) const override;
  Dims shapeOf(size_t id) const override;
  void pushScope(std::string_view, std::source_location) override {}
  void popScope() override {}

  // --- use
  /// Matches with `op` as root. On a miss `miss` is the nearest one; `thorough` looks further for it,
  /// where the first operand differs and the others do not.
  bool match(mlir::Operation* op, Match& match, Miss& miss, bool thorough = false) const;
  /// Builds the replacement before the root. Null if it declines, its ops do not hold or cannot be
  /// moved in front of every user of what they replace; nothing is left behind then and
  /// Match::reason says why.
  mlir::Value build(mlir::RewriterBase& rewriter, Match& match) const;
  /// Erases what `build` made.
  void discard(mlir::RewriterBase& rewriter, Match& match) const;
  /// "rope: 5 of 7 ops, then lathe.slice differs in 'strides': wanted ..., found ... at <location>"
  std::string explain(const Miss& miss) const;

  /// Puts what `build` made in the place of the matched ops.
  void commit(mlir::RewriterBase& rewriter, Match& match, mlir::Value value) const;

  const std::string& name() const { return name_; }
  int phase() const { return phase_; }
  size_t root() const { return root_; }
  llvm::StringRef rootOp() const { return nodes_[root_].op; }
  /// Ops of the first spelling: the scale of Miss::matched.
  int opCount() const { return opCount_; }
  mlir::MLIRContext* context() const { return context_; }
  const std::vector<PatternNode>& nodes() const { return nodes_; }

 private:
  friend class Match;
  friend class PatternSearch;
  struct SameDim {
    size_t a, b;
    int64_t axisA, axisB;
  };
  Tensor push(PatternNode node);
  PatternNode& nodeOf(const Tensor& t);
  mlir::Value buildRecorded(Match& match) const;
  bool checkReplaced(Match& match) const;

  mlir::MLIRContext* context_;
  std::string name_;
  std::vector<PatternNode> nodes_;
  std::vector<SameDim> sameDims_;
  std::vector<std::pair<size_t, size_t>> replacedToo_;
  size_t root_ = 0, end_ = 0, replacement_ = 0;
  int opCount_ = 0, phase_ = 0;
  Replacement build_;
};

using PatternLibrary = std::vector<std::shared_ptr<const DagPattern>>;

/// Records one pattern into a library.
void addPattern(PatternLibrary& library, mlir::MLIRContext* context, std::string name,
                const std::function<void(DagPattern&)>& record);
/// A rewrite whose ops carry exactly the origins of the matched ops.
std::unique_ptr<mlir::RewritePattern> toRewrite(std::shared_ptr<const DagPattern> pattern);

}  // namespace lathe
