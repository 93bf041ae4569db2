// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fusion patterns: recorded through the functions that record models (lathe/ir/ops.h), matched
// against IR, and able to say why they did not match.
//
//   addPattern(library, context, "square-root", [](DagPattern& p) {
//     Tensor x = p.any();
//     p.root(sqrt(x * x));
//     p.replaceWith(abs(x));
//   });
//
// MLIR's headers are needed only for conditions and replacements written as functions of
// mlir::Value; those include lathe/passes/match.h.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lathe/ir/tensor.h"

#define LATHE_PATTERN_AT std::source_location at = std::source_location::current()

namespace mlir {
class Attribute;
class MLIRContext;
class NamedAttribute;
class Operation;
class RankedTensorType;
class RewritePattern;
class RewriterBase;
class Value;
}  // namespace mlir

namespace lathe {

class Match;
struct Miss;
struct PatternNode;

/// A pattern. Values of its attributes, constants, axes and permutations match exactly unless
/// written as free; interior values must not have users outside the match unless allowed to.
class DagPattern final : public Recorder {
 public:
  /// Builds the replacement of a match; a null value declines (`return match.decline("...")`).
  using Replacement = std::function<mlir::Value(Match&)>;

  DagPattern(mlir::MLIRContext* context, std::string name);
  ~DagPattern() override;
  DagPattern(const DagPattern&) = delete;
  DagPattern& operator=(const DagPattern&) = delete;

  // --- leaves
  /// Any value; used twice it must be the same value twice.
  Tensor any(LATHE_PATTERN_AT);
  /// Any value with elements of this dtype.
  Tensor any(DType dtype, LATHE_PATTERN_AT);
  /// A constant all of whose elements are `value`, within a relative tolerance or as the value
  /// rounds to the constant's element type. Casts and broadcasts of constants are seen through.
  Tensor constant(double value, double tolerance = 1e-6, LATHE_PATTERN_AT);
  Tensor constantWhere(std::string text, std::function<bool(double)> accepts, LATHE_PATTERN_AT);

  // --- combinators
  Tensor anyOf(const std::vector<Tensor>& alternatives, LATHE_PATTERN_AT);
  /// `op`, or `otherwise` in its place: `optional(cast(x, DType::F32), x)`.
  Tensor optional(const Tensor& op, const Tensor& otherwise, LATHE_PATTERN_AT);

  // --- constraints; each returns the tensor it constrains, and several may hold of one tensor
  Tensor dtype(const Tensor& t, DType dtype);
  Tensor rank(const Tensor& t, int64_t rank);
  /// The axis (negative: from the back) has this size.
  Tensor dim(const Tensor& t, int64_t axis, int64_t size);
  /// A checkpoint tensor, also behind casts; arithmetic on such values alone runs at load time.
  Tensor weight(const Tensor& t);
  Tensor where(const Tensor& t, std::string text, std::function<bool(mlir::Value)> accepts);
  /// The op may have any value of the attribute. An axis counts from the back if negative.
  Tensor anyAttribute(const Tensor& t, std::string_view name);
  Tensor oneUse(const Tensor& t);
  /// An op whose result may have users outside the match: it stays, and is computed twice.
  Tensor mayEscape(const Tensor& t);
  /// The two axes (negative: from the back) are provably equal.
  void sameDim(const Tensor& a, int64_t axisA, const Tensor& b, int64_t axisB);
  /// What is asked of several values at once, once all of them are found; other orders of
  /// commutative ops and other alternatives are tried where it does not hold.
  void require(std::string text, std::function<bool(const Match&)> holds);

  /// An attribute of the matched op, or the dims of a matched value, for an op of the replacement.
  AttrValue captured(const Tensor& t, std::string_view attribute);
  AttrValue capturedShape(const Tensor& t) const;
  /// The value of a matched constant, for a number among the attributes: `captured(epsilon)`.
  AttrValue captured(const Tensor& constant) const;

  /// What the pattern matches: an op. What is recorded afterwards is the replacement.
  void root(const Tensor& t);
  void replaceWith(const Tensor& t);
  void replaceWith(Replacement build);
  /// With a recorded replacement: a matched value other than the root's that `by` replaces as well.
  /// It may have users outside the match.
  void replaceToo(const Tensor& matched, const Tensor& by);

  /// The replacement computes other values on purpose: it weakens the contract `approximation` and
  /// is not compared with what it replaces. Any other replacement must give the matched ops'
  /// values.
  void approximate() { approximates_ = true; }

  /// Patterns of a later phase (default 0) are tried only when those of all earlier ones have
  /// reached their fixed point: for a fusion that must not take what a larger one wants.
  void phase(int number) { phase_ = number; }

  // --- Recorder
  Tensor emit(std::string_view op, const std::vector<Tensor>& operands,
              const std::vector<NamedAttr>& attributes, std::source_location at) override;
  /// What any(DType), dtype() or an op that makes a dtype of its own say, through the ops between:
  /// so that functions of nn:: can be called. Throws Error where nothing does.
  DType dtypeOf(size_t id) const override;
  /// Shapes are unknown in a pattern: throws Error.
  Dims shapeOf(size_t id) const override;
  std::optional<int64_t> rankOf(size_t) const override { return std::nullopt; }
  void expectValue(size_t id, std::source_location at) const override;
  /// `x * 0.5` looks for the constant 0.5 before `root`, and makes one after it.
  Tensor scalar(double value, size_t like, std::source_location at) override;
  /// Stays as it is: a negative axis is counted from the back of the matched value.
  int64_t axisFromFront(size_t id, int64_t axis) const override;
  void pushScope(std::string_view, std::source_location) override {}
  void popScope() override {}

  // --- for readers of pattern files
  /// Adds a node as it is.
  Tensor add(PatternNode node);
  /// Patterns that could start at one op are tried in descending order; the number of ops by
  /// default.
  void setBenefit(unsigned benefit) { benefit_ = benefit; }

  // --- use
  /// Throws Error if the pattern has no root or no replacement.
  void checkComplete() const;
  /// Matches with `op` as root. On a miss `miss` is the nearest one; `thorough` looks further for
  /// it, where the first operand differs and the others do not.
  bool match(mlir::Operation* op, Match& match, Miss& miss, bool thorough = false) const;
  /// Builds the replacement before the root. Null if it declines, its ops do not hold or cannot be
  /// moved in front of every user of what they replace; nothing is left behind then and
  /// Match::reason says why.
  mlir::Value build(mlir::RewriterBase& rewriter, Match& match) const;
  /// Erases what `build` made.
  void discard(mlir::RewriterBase& rewriter, Match& match) const;
  /// "rope: 5 of 7 ops, then lathe.slice differs in 'strides': wanted ..., found ... at
  /// model.cc:40"
  std::string explain(const Miss& miss) const;

  /// Puts what `build` made in the place of the matched ops.
  void commit(mlir::RewriterBase& rewriter, Match& match, mlir::Value value) const;

  const std::string& name() const { return name_; }
  int phase() const { return phase_; }
  size_t root() const { return root_; }
  /// Nothing where the replacement is a function.
  std::optional<size_t> recordedReplacement() const { return replacement_; }
  const std::string& rootOp() const;
  unsigned benefit() const { return benefit_; }
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
  struct Requirement {
    std::string text;
    std::function<bool(const Match&)> holds;
  };
  Tensor whereType(const Tensor& t, std::string text,
                   std::function<bool(mlir::RankedTensorType)> accepts);
  /// Throws Error, with the pattern's name, for a tensor that is none of its own.
  void expectMine(const Tensor& t) const;
  PatternNode& nodeOf(const Tensor& t);
  PatternNode& opNode(const Tensor& t, const char* what);
  PatternNode& matchedNode(const Tensor& t, const char* what);
  void expectFunction(bool given, const char* what) const;
  void refuseAfterRoot(const char* what, std::source_location at) const;
  mlir::Attribute resolved(mlir::NamedAttribute attribute, Match& match) const;
  mlir::Value buildRecorded(Match& match) const;
  bool checkReplaced(Match& match) const;

  mlir::MLIRContext* context_;
  std::string name_;
  std::vector<PatternNode> nodes_;
  std::vector<SameDim> sameDims_;
  std::vector<std::pair<size_t, size_t>> replacedToo_;
  std::vector<Requirement> requirements_;
  size_t root_ = 0, end_ = 0;
  std::optional<size_t> replacement_;  // a recorded one
  int opCount_ = 0, phase_ = 0;
  bool approximates_ = false;
  unsigned benefit_ = 0;
  Replacement build_;
};

using PatternLibrary = std::vector<std::shared_ptr<const DagPattern>>;

/// Records one pattern into a library. Throws Error for one without root or replacement.
void addPattern(PatternLibrary& library, mlir::MLIRContext* context, std::string name,
                const std::function<void(DagPattern&)>& record);
/// A rewrite whose ops carry exactly the origins of the matched ops.
std::unique_ptr<mlir::RewritePattern> toRewrite(std::shared_ptr<const DagPattern> pattern);

}  // namespace lathe
