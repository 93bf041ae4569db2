// SPDX-License-Identifier: Apache-2.0
#include "passes/dag_pattern.h"

#include "ir/attributes.h"
#include "ir/types.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/dag_placement.h"
#include "passes/match.h"
#include "passes/rewrite_log.h"
#include "runtime/error.h"

using namespace mlir;

namespace lathe {
namespace {

// Attributes of a replacement that come from the match: the keyword's value is "node.attribute".
constexpr llvm::StringLiteral kCaptured("captured"), kCapturedShape("captured-shape");

Attribute placeholder(MLIRContext* context, const Keyword& k) {
  return StringAttr::get(context, std::string(k.enumeration) + ":" + k.value);
}

bool isCapture(const AttrValue& value) {
  auto* k = std::get_if<Keyword>(&value);
  return k && (k->enumeration == std::string_view(kCaptured) ||
               k->enumeration == std::string_view(kCapturedShape));
}

std::string formatted(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

int countOps(const std::vector<PatternNode>& nodes, size_t id, std::vector<bool>& seen) {
  if (seen[id]) return 0;
  seen[id] = true;
  const PatternNode& n = nodes[id];
  switch (n.kind) {
    case PatternNode::Kind::AnyOf:
      return countOps(nodes, *n.operands[0], seen);
    case PatternNode::Kind::Optional:
      return countOps(nodes, *n.operands[1], seen);
    default:
      break;
  }
  int count = n.kind == PatternNode::Kind::Op;
  for (auto operand : n.operands)
    if (operand) count += countOps(nodes, *operand, seen);
  return count;
}

}  // namespace

DagPattern::DagPattern(MLIRContext* context, std::string name)
    : context_(context), name_(std::move(name)) {}

Tensor DagPattern::push(PatternNode node) {
  nodes_.push_back(std::move(node));
  return {this, nodes_.size() - 1};
}

PatternNode& DagPattern::nodeOf(const Tensor& t) {
  if (t.recorder() != this)
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "': the tensor belongs to another pattern or graph");
  return nodes_[t.id()];
}

Tensor DagPattern::any(std::source_location at) { return push({.at = at}); }

Tensor DagPattern::constant(double value, double tolerance, std::source_location at) {
  return push({.kind = PatternNode::Kind::Constant,
               .exact = value,
               .tolerance = tolerance,
               .text = "the constant " + formatted(value),
               .at = at});
}
Tensor DagPattern::constantWhere(std::string text, std::function<bool(double)> accepts,
                                 std::source_location at) {
  return push({.kind = PatternNode::Kind::Constant,
               .constant = std::move(accepts),
               .text = std::move(text),
               .at = at});
}

Tensor DagPattern::anyOf(const std::vector<Tensor>& alternatives, std::source_location at) {
  if (alternatives.empty())
    throw Error(ErrorCode::InvalidArgument, "pattern '" + name_ + "': anyOf of nothing", at);
  PatternNode node{.kind = PatternNode::Kind::AnyOf, .at = at};
  for (const Tensor& t : alternatives) {
    nodeOf(t);
    node.operands.push_back(t.id());
  }
  return push(std::move(node));
}
Tensor DagPattern::optional(const Tensor& op, const Tensor& otherwise, std::source_location at) {
  nodeOf(op);
  nodeOf(otherwise);
  return push(
      {.kind = PatternNode::Kind::Optional, .operands = {op.id(), otherwise.id()}, .at = at});
}

Tensor DagPattern::where(const Tensor& t, std::string text, std::function<bool(Value)> accepts) {
  nodeOf(t).where = std::move(accepts);
  nodeOf(t).text = std::move(text);
  return t;
}
Tensor DagPattern::anyAttribute(const Tensor& t, std::string_view name) {
  nodeOf(t).free.emplace_back(name);
  return t;
}
Tensor DagPattern::oneUse(const Tensor& t) {
  nodeOf(t).oneUse = true;
  return t;
}
Tensor DagPattern::mayEscape(const Tensor& t) {
  nodeOf(t).mayEscape = true;
  return t;
}
void DagPattern::sameDim(const Tensor& a, int64_t axisA, const Tensor& b, int64_t axisB) {
  nodeOf(a);
  nodeOf(b);
  sameDims_.push_back({a.id(), b.id(), axisA, axisB});
}

AttrValue DagPattern::captured(const Tensor& t, std::string_view attribute) {
  anyAttribute(t, attribute);
  return Keyword{kCaptured, std::to_string(t.id()) + "." + std::string(attribute)};
}
AttrValue DagPattern::capturedShape(const Tensor& t) const {
  return Keyword{kCapturedShape, std::to_string(t.id())};
}

void DagPattern::root(const Tensor& t) {
  if (nodeOf(t).kind != PatternNode::Kind::Op)
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "': the root must be an op, not a placeholder or a choice");
  root_ = t.id();
  end_ = nodes_.size();
  std::vector<bool> seen(nodes_.size());
  opCount_ = countOps(nodes_, root_, seen);
}
void DagPattern::replaceWith(const Tensor& t) {
  nodeOf(t);
  replacement_ = t.id();
  build_ = [this](Match& match) { return buildRecorded(match); };
}
void DagPattern::replaceWith(Replacement build) { build_ = std::move(build); }
void DagPattern::replaceToo(const Tensor& matched, const Tensor& by) {
  nodeOf(by);
  nodeOf(matched).mayEscape = true;
  replacedToo_.emplace_back(matched.id(), by.id());
}

Tensor DagPattern::emit(std::string_view op, const std::vector<Tensor>& operands,
                        const std::vector<NamedAttr>& attributes, std::source_location at) {
  // In a pattern a recorded scalar is the constant to look for.
  if (op == "lathe.constant" && end_ == 0) {
    auto* array = std::get_if<Array>(&attributes.at(0).value);
    if (!array || array->size() != 1)
      throw Error(ErrorCode::InvalidArgument,
                  "pattern '" + name_ + "': a constant to match is a scalar; use constantWhere",
                  at);
    return constant(array->at(0), 1e-6, at);
  }
  OperationName name(StringRef(op), context_);
  if (!name.isRegistered())
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "': no op '" + std::string(op) + "' in the dialect", at);
  PatternNode node{.kind = PatternNode::Kind::Op, .op = std::string(op), .at = at};
  node.commutative = name.hasTrait<OpTrait::IsCommutative>();
  for (const Tensor& t : operands) {
    if (t.defined()) nodeOf(t);
    node.operands.push_back(t.defined() ? std::optional(t.id()) : std::nullopt);
  }
  for (const NamedAttr& a : attributes) {
    Attribute value = isCapture(a.value) ? placeholder(context_, std::get<Keyword>(a.value))
                                         : toAttribute(context_, a.value);
    node.attributes.emplace_back(StringAttr::get(context_, StringRef(a.name)), value);
  }
  return push(std::move(node));
}

DType DagPattern::dtypeOf(size_t) const {
  throw Error(ErrorCode::InvalidArgument,
              "pattern '" + name_ +
                  "': a dtype is unknown in a pattern; use constant() for scalars "
                  "and anyAttribute() for casts");
}
Dims DagPattern::shapeOf(size_t) const {
  throw Error(ErrorCode::InvalidArgument,
              "pattern '" + name_ +
                  "': a rank or shape is unknown in a pattern; use axes from the "
                  "front, capturedShape() or a replacement function");
}

Value DagPattern::buildRecorded(Match& match) const {
  for (size_t i = end_; i < nodes_.size(); ++i) {
    const PatternNode& n = nodes_[i];
    if (n.kind == PatternNode::Kind::Result) {
      match.bound_[i] = match.bound_[*n.operands[0]].getDefiningOp()->getResult(n.result);
      continue;
    }
    SmallVector<Value> operands;
    for (auto operand : n.operands) operands.push_back(operand ? match.bound_[*operand] : Value());
    SmallVector<NamedAttribute> attributes;
    for (NamedAttribute a : n.attributes) {
      auto text = dyn_cast<StringAttr>(a.getValue());
      auto [kind, rest] = text ? text.getValue().split(':') : std::pair<StringRef, StringRef>();
      auto [id, attribute] = rest.split('.');
      Value source = kind == kCaptured || kind == kCapturedShape
                         ? match.bound_[std::stoul(id.str())]
                         : Value();
      if (source && kind == kCaptured)
        a.setValue(source.getDefiningOp()->getAttr(attribute));
      else if (source)
        a.setValue(DimsAttr::get(context_, dimsOf(tensorType(source))));
      attributes.push_back(a);
    }
    match.bound_[i] = match.makeWith(n.op, operands, attributes);
    if (!match.bound_[i]) return {};
  }
  for (auto [matched, by] : replacedToo_)
    if (match.bound_[matched]) match.replaceToo(match.bound_[matched], match.bound_[by]);
  return match.bound_[replacement_];
}

Value DagPattern::build(RewriterBase& rewriter, Match& match) const {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(match.root_);
  match.rewriter_ = &rewriter;
  match.reason_.clear();
  match.created_.clear();
  match.replaced_.clear();
  Value value = build_ ? build_(match) : match.decline("the pattern has no replacement");
  if (value) {
    match.replaced_.emplace_back(match.root_->getResult(0), value);
    if (!checkReplaced(match)) value = {};
  }
  if (!value) discard(rewriter, match);
  return value;
}

// The types of all replaced values, and a place for the replacement.
bool DagPattern::checkReplaced(Match& match) const {
  for (auto [matched, by] : match.replaced_) {
    if (matched.getType() == by.getType()) continue;
    match.decline("the replacement is " + shortType(by.getType()) + ", the op is " +
                  shortType(matched.getType()));
    return false;
  }
  for (Value result : match.root_->getResults()) {
    auto isThis = [&](auto& pair) { return pair.first == result; };
    if (result.use_empty() || llvm::any_of(match.replaced_, isThis)) continue;
    match.decline("the replacement leaves a result of the op out");
    return false;
  }
  std::string problem = placementOf(match.root_, match.created_, match.replaced_).problem;
  if (!problem.empty()) match.decline(problem);
  return problem.empty();
}

void DagPattern::commit(RewriterBase& rewriter, Match& match, Value value) const {
  Operation* root = match.root_;
  auto matched = match.ops();
  Placement place = placementOf(root, match.created_, match.replaced_);
  for (Operation* op : place.moved) rewriter.moveOpBefore(op, place.before);
  SmallVector<Value> results(root->getResults());
  results[0] = value;
  for (auto [old, by] : match.replaced_) {
    if (old.getDefiningOp() == root)
      results[cast<OpResult>(old).getResultNumber()] = by;
    else
      rewriter.replaceAllUsesWith(old, by);
  }
  rewriter.replaceOp(root, results);
  matched.remove(root);
  // What the match leaves without users goes now: a dead user must not spoil the next match.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation* dead : SmallVector<Operation*>(matched.begin(), matched.end())) {
      if (!isOpTriviallyDead(dead)) continue;
      matched.remove(dead);
      rewriter.eraseOp(dead);
      changed = true;
    }
  }
}

void DagPattern::discard(RewriterBase& rewriter, Match& match) const {
  for (Operation* op : llvm::reverse(match.created_)) rewriter.eraseOp(op);
  match.created_.clear();
}

namespace {

class DagRewrite final : public RewritePattern {
 public:
  explicit DagRewrite(std::shared_ptr<const DagPattern> pattern)
      : RewritePattern(pattern->rootOp(), PatternBenefit(unsigned(pattern->opCount())),
                       pattern->context()),
        pattern_(std::move(pattern)) {
    setDebugName(pattern_->name());
    addDebugLabels(kExactLocations);
  }

  LogicalResult matchAndRewrite(Operation* op, PatternRewriter& rewriter) const override {
    Match match;
    Miss miss;
    if (!pattern_->match(op, match, miss)) return failure();
    Value value = pattern_->build(rewriter, match);
    if (!value) return failure();
    pattern_->commit(rewriter, match, value);
    return success();
  }

 private:
  std::shared_ptr<const DagPattern> pattern_;
};

}  // namespace

void addPattern(PatternLibrary& library, MLIRContext* context, std::string name,
                const std::function<void(DagPattern&)>& record) {
  auto pattern = std::make_shared<DagPattern>(context, std::move(name));
  record(*pattern);
  library.push_back(std::move(pattern));
}

std::unique_ptr<RewritePattern> toRewrite(std::shared_ptr<const DagPattern> pattern) {
  return std::make_unique<DagRewrite>(std::move(pattern));
}

}  // namespace lathe
