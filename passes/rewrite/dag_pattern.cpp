// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/dag_pattern.h"

#include <cmath>
#include <exception>

#include "ir/op_complaints.h"
#include "lathe/ir/attributes.h"
#include "lathe/ir/types.h"
#include "lathe/passes/greedy.h"
#include "lathe/passes/match.h"
#include "lathe/runtime/error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/rewrite/dag_placement.h"
#include "passes/rewrite/pattern_dtypes.h"
#include "passes/rewrite/rewrite_log.h"
#include "passes/rewrite/spelled_op.h"

using namespace mlir;

namespace lathe {
namespace {

// Attributes of a replacement that come from the match: the keyword's value is "node.attribute".
constexpr llvm::StringLiteral kCaptured("captured"), kCapturedShape("captured-shape"),
    kCapturedValue("captured-value");

Attribute placeholder(MLIRContext* context, const Keyword& k) {
  return StringAttr::get(context, std::string(k.enumeration) + ":" + k.value);
}

bool isCapture(const AttrValue& value) {
  auto* k = std::get_if<Keyword>(&value);
  return k && (k->enumeration == std::string_view(kCaptured) ||
               k->enumeration == std::string_view(kCapturedShape) ||
               k->enumeration == std::string_view(kCapturedValue));
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

// The results that every op of the name has.
unsigned resultCount(OperationName name) {
  return name.hasTrait<OpTrait::NResults<2>::Impl>() ? 2 : 1;
}

// What lies below a node, in every spelling.
void mark(const std::vector<PatternNode>& nodes, size_t id, std::vector<bool>& marked) {
  if (marked[id]) return;
  marked[id] = true;
  for (auto operand : nodes[id].operands)
    if (operand) mark(nodes, *operand, marked);
}

}  // namespace

DagPattern::DagPattern(MLIRContext* context, std::string name)
    : context_(context), name_(std::move(name)) {}

DagPattern::~DagPattern() = default;

Tensor DagPattern::add(PatternNode node) {
  nodes_.push_back(std::move(node));
  return {this, nodes_.size() - 1};
}

void DagPattern::expectMine(const Tensor& t) const {
  auto fail = [&](const std::string& text) {
    throw Error(ErrorCode::InvalidArgument, "pattern '" + name_ + "': " + text);
  };
  if (!t.defined()) fail("expected a tensor, got an empty handle; was it moved or never assigned?");
  const Recorder* recorder = nullptr;
  try {
    recorder = t.recorder();
  } catch (const Error&) {
    fail("the tensor's pattern or graph no longer exists");
  }
  if (recorder != this) fail("the tensor belongs to another pattern or graph");
  expectValue(t.id(), std::source_location::current());
}
void DagPattern::expectValue(size_t id, std::source_location) const {
  if (id >= nodes_.size())
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "': the tensor names no value of the pattern: id " +
                    std::to_string(id) + " of " + std::to_string(nodes_.size()));
}
PatternNode& DagPattern::nodeOf(const Tensor& t) {
  expectMine(t);
  return nodes_[t.id()];
}

PatternNode& DagPattern::matchedNode(const Tensor& t, const char* what) {
  PatternNode& node = nodeOf(t);
  if (end_ && t.id() >= end_)
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "': " + what +
                    " of a tensor recorded after root(), which belongs to the replacement");
  return node;
}

PatternNode& DagPattern::opNode(const Tensor& t, const char* what) {
  PatternNode& node = matchedNode(t, what);
  if (node.kind != PatternNode::Kind::Op)
    throw Error(ErrorCode::InvalidArgument, "pattern '" + name_ + "': " + what +
                                                " of a placeholder or a choice, expected an op");
  return node;
}

void DagPattern::expectFunction(bool given, const char* what) const {
  if (!given)
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "': " + what + " of a null function");
}

void DagPattern::refuseAfterRoot(const char* what, std::source_location at) const {
  if (end_)
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "': " + what +
                    " after root(), where the replacement is recorded; a number in it is written "
                    "as one operand of an operator (x * 0.5)",
                at);
}

Tensor DagPattern::any(std::source_location at) {
  refuseAfterRoot("any()", at);
  return add({.at = at});
}
Tensor DagPattern::any(DType type, std::source_location at) { return dtype(any(at), type); }

Tensor DagPattern::constant(double value, double tolerance, std::source_location at) {
  refuseAfterRoot("constant()", at);
  if (std::isnan(value) || !(tolerance >= 0))
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ +
                    "': constant() takes a number and a tolerance of at least 0, "
                    "got " +
                    numberText(value) + " and tolerance " + numberText(tolerance),
                at);
  return add({.kind = PatternNode::Kind::Constant,
              .exact = value,
              .tolerance = tolerance,
              .text = "the constant " + formatted(value),
              .at = at});
}
Tensor DagPattern::constantWhere(std::string text, std::function<bool(double)> accepts,
                                 std::source_location at) {
  refuseAfterRoot("constantWhere()", at);
  expectFunction(bool(accepts), "constantWhere()");
  return add({.kind = PatternNode::Kind::Constant,
              .constant = std::move(accepts),
              .text = std::move(text),
              .at = at});
}

Tensor DagPattern::anyOf(const std::vector<Tensor>& alternatives, std::source_location at) {
  refuseAfterRoot("anyOf()", at);
  if (alternatives.empty())
    throw Error(ErrorCode::InvalidArgument, "pattern '" + name_ + "': anyOf of nothing", at);
  PatternNode node{.kind = PatternNode::Kind::AnyOf, .at = at};
  for (const Tensor& t : alternatives) {
    nodeOf(t);
    node.operands.push_back(t.id());
  }
  return add(std::move(node));
}
Tensor DagPattern::optional(const Tensor& op, const Tensor& otherwise, std::source_location at) {
  refuseAfterRoot("optional()", at);
  nodeOf(op);
  nodeOf(otherwise);
  return add(
      {.kind = PatternNode::Kind::Optional, .operands = {op.id(), otherwise.id()}, .at = at});
}

Tensor DagPattern::where(const Tensor& t, std::string text, std::function<bool(Value)> accepts) {
  expectFunction(bool(accepts), "where()");
  matchedNode(t, "where()").conditions.push_back({std::move(text), std::move(accepts)});
  return t;
}
Tensor DagPattern::whereType(const Tensor& t, std::string text,
                             std::function<bool(RankedTensorType)> accepts) {
  where(t, std::move(text),
        [accepts = std::move(accepts)](Value v) { return accepts(tensorType(v)); });
  nodeOf(t).conditions.back().ofType = true;
  return t;
}
Tensor DagPattern::dtype(const Tensor& t, DType dtype) {
  whereType(t, "elements of " + std::string(nameOf(dtype)), [dtype](RankedTensorType type) {
    return lathe::dtypeOf(type.getElementType()) == dtype;
  });
  nodeOf(t).dtype = dtype;
  return t;
}
Tensor DagPattern::rank(const Tensor& t, int64_t rank) {
  if (rank < 0)
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "': nothing has rank " + std::to_string(rank));
  return whereType(t, "rank " + std::to_string(rank),
                   [rank](RankedTensorType type) { return type.getRank() == rank; });
}
Tensor DagPattern::dim(const Tensor& t, int64_t axis, int64_t size) {
  if (size < 0)
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "': no axis has size " + std::to_string(size));
  return whereType(t, "size " + std::to_string(size) + " of axis " + std::to_string(axis),
                   [=](RankedTensorType type) {
                     auto i = axisOf(type, axis);
                     return i && type.getDimSize(unsigned(*i)) == size;
                   });
}
Tensor DagPattern::weight(const Tensor& t) { return where(t, "a weight", isWeight); }
Tensor DagPattern::anyAttribute(const Tensor& t, std::string_view name) {
  PatternNode& node = opNode(t, "anyAttribute()");
  std::string problem = whyNoAttribute(OperationName(node.op, context_), StringRef(name));
  if (!problem.empty())
    throw Error(ErrorCode::InvalidArgument, "pattern '" + name_ + "': " + problem);
  node.free.emplace_back(name);
  return t;
}
Tensor DagPattern::oneUse(const Tensor& t) {
  matchedNode(t, "oneUse()").oneUse = true;
  return t;
}
Tensor DagPattern::mayEscape(const Tensor& t) {
  opNode(t, "mayEscape()").mayEscape = true;
  return t;
}
void DagPattern::sameDim(const Tensor& a, int64_t axisA, const Tensor& b, int64_t axisB) {
  matchedNode(a, "sameDim()");
  matchedNode(b, "sameDim()");
  sameDims_.push_back({a.id(), b.id(), axisA, axisB});
}
void DagPattern::require(std::string text, std::function<bool(const Match&)> holds) {
  expectFunction(bool(holds), "require()");
  requirements_.push_back({std::move(text), std::move(holds)});
}

AttrValue DagPattern::captured(const Tensor& t, std::string_view attribute) {
  anyAttribute(t, attribute);
  return Keyword{kCaptured, std::to_string(t.id()) + "." + std::string(attribute)};
}
AttrValue DagPattern::captured(const Tensor& constant) const {
  expectMine(constant);
  if (nodes_[constant.id()].kind != PatternNode::Kind::Constant)
    throw Error(
        ErrorCode::InvalidArgument,
        "pattern '" + name_ + "': captured() of one tensor takes a constant of the pattern");
  return Keyword{kCapturedValue, std::to_string(constant.id())};
}
AttrValue DagPattern::capturedShape(const Tensor& t) const {
  expectMine(t);
  return Keyword{kCapturedShape, std::to_string(t.id())};
}

void DagPattern::root(const Tensor& t) {
  if (nodeOf(t).kind != PatternNode::Kind::Op)
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "': the root must be an op, not a placeholder or a choice");
  if (end_)
    throw Error(ErrorCode::InvalidArgument, "pattern '" + name_ + "': it has a root already");
  root_ = t.id();
  end_ = nodes_.size();
  std::vector<bool> seen(nodes_.size());
  opCount_ = countOps(nodes_, root_, seen);
  if (!benefit_) benefit_ = unsigned(opCount_);
}
const std::string& DagPattern::rootOp() const { return nodes_[root_].op; }

void DagPattern::checkComplete() const {
  if (!end_)
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "' has no root; call root() with the op that it ends in");
  if (!build_)
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "' has no replacement; call replaceWith() after root()");
  std::vector<bool> matched(nodes_.size());
  mark(nodes_, root_, matched);
  auto check = [&](size_t used, const char* what) {
    if (used < end_ && !matched[used])
      throw Error(ErrorCode::InvalidArgument,
                  "pattern '" + name_ + "': " + what +
                      " a tensor that is no part of what root() matches, so it never has a value",
                  nodes_[used].at);
  };
  for (size_t i = end_; i < nodes_.size(); ++i)
    for (auto operand : nodes_[i].operands)
      if (operand) check(*operand, "the replacement uses");
  if (replacement_) check(*replacement_, "the replacement is");
  for (auto [old, by] : replacedToo_) {
    check(old, "replaceToo() replaces");
    check(by, "replaceToo() gives");
  }
  for (const SameDim& d : sameDims_) {
    check(d.a, "sameDim() compares");
    check(d.b, "sameDim() compares");
  }
}

void DagPattern::replaceWith(const Tensor& t) {
  nodeOf(t);
  if (!end_)
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ +
                    "': replaceWith() before root(); what is recorded before "
                    "root() is matched, what follows is built");
  replacement_ = t.id();
  build_ = [this](Match& match) { return buildRecorded(match); };
}
void DagPattern::replaceWith(Replacement build) {
  expectFunction(bool(build), "replaceWith()");
  build_ = std::move(build);
  replacement_.reset();
}
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
  if (name.hasTrait<OpTrait::ZeroResults>())
    throw Error(ErrorCode::InvalidArgument,
                "pattern '" + name_ + "': '" + std::string(op) + "' has no result to match", at);
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
  Tensor first = add(std::move(node));
  // Further results have the ids that follow.
  for (unsigned i = 1; i < resultCount(name); ++i)
    add({.kind = PatternNode::Kind::Result, .operands = {first.id()}, .result = i, .at = at});
  return first;
}

DType DagPattern::dtypeOf(size_t id) const {
  if (auto dtype = dtypeOfNode(context_, nodes_, id)) return *dtype;
  throw Error(ErrorCode::InvalidArgument,
              "pattern '" + name_ +
                  "': a dtype is unknown in a pattern; ask for one with any(DType) or dtype(), and "
                  "use anyAttribute() for casts");
}
Dims DagPattern::shapeOf(size_t) const {
  throw Error(ErrorCode::InvalidArgument,
              "pattern '" + name_ +
                  "': a rank or shape is unknown in a pattern; ask for one with rank() or dim(), "
                  "use capturedShape() or a replacement function");
}
Tensor DagPattern::scalar(double value, size_t like, std::source_location at) {
  if (!end_) return constant(value, 1e-6, at);
  return add({.kind = PatternNode::Kind::Constant, .operands = {like}, .exact = value, .at = at});
}
int64_t DagPattern::axisFromFront(size_t, int64_t axis) const { return axis; }

// An attribute of a replacement: what the match gives for a capture, else the recorded one. Null,
// with the reason in the match, if there is nothing to capture.
Attribute DagPattern::resolved(NamedAttribute attribute, Match& match) const {
  auto text = dyn_cast<StringAttr>(attribute.getValue());
  auto [kind, rest] = text ? text.getValue().split(':') : std::pair<StringRef, StringRef>();
  if (kind != kCaptured && kind != kCapturedShape && kind != kCapturedValue)
    return attribute.getValue();
  auto [id, name] = rest.split('.');
  Value source = match.bound_[std::stoul(id.str())];
  Operation* op = source ? source.getDefiningOp() : nullptr;
  Attribute found;
  if (kind == kCaptured && op)
    found = op->getAttr(name);
  else if (kind == kCapturedShape && source)
    found = DimsAttr::get(context_, dimsOf(tensorType(source)));
  else if (kind == kCapturedValue && source)
    found = FloatAttr::get(Float64Type::get(context_), *splatValue(source));
  if (!found)
    match.decline("there is no '" + attribute.getName().getValue() +
                  "' to take from the matched ops");
  return found;
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
    for (auto [recorded, value] : llvm::zip(n.operands, operands))
      if (recorded && !value)
        return match.decline("the replacement uses a tensor of an alternative that was not taken");
    if (n.kind == PatternNode::Kind::Constant) {
      match.bound_[i] = match.scalar(*n.exact, operands[0]);
    } else {
      SmallVector<NamedAttribute> attributes;
      for (NamedAttribute a : n.attributes) {
        Attribute value = resolved(a, match);
        if (!value) return {};
        a.setValue(value);
        attributes.emplace_back(a.getName(), axesFromFront(a, operands));
      }
      match.bound_[i] = match.makeWith(n.op, operands, attributes);
    }
    if (!match.bound_[i]) return {};
  }
  for (auto [matched, by] : replacedToo_)
    if (match.bound_[matched]) match.replaceToo(match.bound_[matched], match.bound_[by]);
  return match.bound_[*replacement_];
}

Value DagPattern::build(RewriterBase& rewriter, Match& match) const {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(match.root_);
  match.rewriter_ = &rewriter;
  match.reason_.clear();
  match.created_.clear();
  match.replaced_.clear();
  match.declared_ = match.approximates_ = match.otherType_ = false;
  Value value;
  try {
    value = build_ ? build_(match) : match.decline("the pattern has no replacement");
  } catch (const std::exception& e) {
    // The replacement threw; MLIR's frames above must not see it.
    match.threw_ = true;
    match.reason_ = e.what();
  } catch (...) {
    match.threw_ = true;
    match.reason_ = "the replacement threw something that is no std::exception";
  }
  if (!value && match.reason_.empty()) match.decline("the replacement gave no value");
  if (value == match.root_->getResult(0)) {
    match.threw_ = true;
    value = match.decline("the replacement is the value that it replaces");
  }
  if (value && approximates_ && !match.approximates()) value = {};
  if (value) {
    match.replaced_.emplace_back(match.root_->getResult(0), value);
    if (!checkReplaced(match) || !match.checkNumerics(match.replaced_)) value = {};
  }
  if (!value) discard(rewriter, match);
  return value;
}

// The types of all replaced values, and a place for the replacement.
bool DagPattern::checkReplaced(Match& match) const {
  for (auto [matched, by] : match.replaced_) {
    if (!matched || !by) {
      match.decline("the replacement of a value is of an alternative that was not taken");
      return false;
    }
    if (!matched.getDefiningOp()) {
      match.decline("the replacement takes the place of an input, which no op computes");
      return false;
    }
    if (matched.getType() == by.getType()) continue;
    match.otherType_ = true;
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
      : RewritePattern(pattern->rootOp(), PatternBenefit(pattern->benefit()), pattern->context()),
        pattern_(std::move(pattern)) {
    setDebugName(pattern_->name());
    addDebugLabels(kExactLocations);
  }

  LogicalResult matchAndRewrite(Operation* op, PatternRewriter& rewriter) const override {
    Match match;
    Miss miss;
    Value value;
    if (pattern_->match(op, match, miss)) value = pattern_->build(rewriter, match);
    if (match.threw())
      op->emitError() << "pattern '" << pattern_->name() << "': " << match.reason();
    if (!value) return failure();
    if (RewriteBudget* budget = RewriteBudget::current();
        budget && !budget->take(pattern_->name(), match.opsMade(),
                                pattern_->nodes()[pattern_->root()].place)) {
      pattern_->discard(rewriter, match);
      return failure();
    }
    pattern_->commit(rewriter, match, value);
    return success();
  }

 private:
  std::shared_ptr<const DagPattern> pattern_;
};

}  // namespace

void addPattern(PatternLibrary& library, MLIRContext* context, std::string name,
                const std::function<void(DagPattern&)>& record) {
  const std::string prefix = "pattern '" + name + "'";
  auto refuse = [&](ErrorCode code, const std::string& text) {
    throw Error(code, prefix + ": " + text);
  };
  if (name.empty()) refuse(ErrorCode::InvalidArgument, "its name is empty; give it one");
  if (!context)
    refuse(ErrorCode::InvalidArgument,
           "expected a context, got null; record it in the function that is given as patterns");
  if (!record) refuse(ErrorCode::InvalidArgument, "it is recorded by a null function");
  auto pattern = std::make_shared<DagPattern>(context, std::move(name));
  try {
    record(*pattern);
    pattern->checkComplete();
  } catch (const Error& e) {
    if (StringRef(e.what()).contains(prefix)) throw;
    refuse(e.code(), e.what());
  } catch (const std::exception& e) {
    refuse(ErrorCode::InvalidArgument, std::string("its recorder threw: ") + e.what());
  } catch (...) {
    refuse(ErrorCode::InvalidArgument, "its recorder threw something that is no std::exception");
  }
  library.push_back(std::move(pattern));
}

std::unique_ptr<RewritePattern> toRewrite(std::shared_ptr<const DagPattern> pattern) {
  return std::make_unique<DagRewrite>(std::move(pattern));
}

}  // namespace lathe
