// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/pattern_trial.h"

#include <cmath>
#include <map>

#include "ir/checked_create.h"
#include "lathe/ir/types.h"
#include "lathe/passes/match.h"
#include "lathe/passes/numbers.h"
#include "lathe/passes/pattern_node.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/rewrite/numerics_scope.h"
#include "passes/rewrite/value_check.h"

using namespace mlir;

namespace lathe {
namespace {

// Mixed draws, and how many graphs with a difference are enough.
constexpr int kMixed = 160, kWrong = 16;

using Sizes = SmallVector<int64_t, 4>;
const Sizes kEqual[] = {{3, 4}, {2, 3, 4}, {4}, {2, 2, 3, 4}, {4, 4}};
const Sizes kShapes[] = {
    {3, 4},    {4, 3},       {4},          {4, 4}, {2, 3, 4}, {2, 4, 3}, {3, 1}, {1, 4},
    {2, 3, 1}, {2, 2, 3, 4}, {2, 2, 4, 3}, {1, 1}, {2, 4, 4}, {1, 3, 4}, {3},    {}};
// What a condition on a constant may ask for.
const double kNumbers[] = {1,  0.5,  2,     1e-5, 0,    -1,    0.125,     3,   1e-6,
                           -2, 0.25, -1e30, -1e9, 16.0, 100.0, -INFINITY, 8.0, 1e-12};

struct PatternDraw {
  DType dtype = DType::F32;      // of most values
  const Sizes* equal = nullptr;  // the shape of all placeholders; without it each has its own
  bool otherSpelling = false;    // choices take their last alternative
  uint64_t seed = 0;
};

class Sample {
 public:
  Sample(const DagPattern& pattern, const PatternDraw& draw)
      : pattern_(pattern),
        draw_(draw),
        state_(draw.seed * 2 + 1),
        b_(pattern.context()),
        module(ModuleOp::create(b_, b_.getUnknownLoc())),
        values_(pattern.nodes().size()) {
    b_.setInsertionPointToEnd(module->getBody());
    is = func::FuncOp::create(b_, b_.getUnknownLoc(), "is", b_.getFunctionType({}, {}));
    block_ = is.addEntryBlock();
    b_.setInsertionPointToEnd(block_);
  }

  // The op that the pattern's root stands for; null if the parts do not fit together.
  Operation* make() {
    Value root = valueOf(pattern_.root());
    if (!root) return nullptr;
    ValueRange results = root.getDefiningOp()->getResults();
    func::ReturnOp::create(b_, b_.getUnknownLoc(), results);
    is.setType(b_.getFunctionType(block_->getArgumentTypes(), results.getTypes()));
    return root.getDefiningOp();
  }
  // "f32[3, 4], f32[4]"
  std::string placeholders() const {
    std::string text;
    for (Type t : leaves_) text += (text.empty() ? "" : ", ") + shortType(t);
    return text.empty() ? "constants" : text;
  }

 private:
  uint64_t below(uint64_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % bound;
  }

  static bool holds(const PatternNode& n, Value v) {
    return v && llvm::all_of(n.conditions, [&](auto& c) { return c.holds(v); });
  }

  Value valueOf(size_t id) {
    Value& known = values_[id];
    if (known) return known;
    const PatternNode& n = pattern_.nodes()[id];
    Value made;
    switch (n.kind) {
      case PatternNode::Kind::Any:
        made = placeholder(n);
        break;
      case PatternNode::Kind::Constant:
        made = constant(n);
        break;
      case PatternNode::Kind::AnyOf:
      case PatternNode::Kind::Optional:
        made = valueOf(*(draw_.otherSpelling ? n.operands.back() : n.operands.front()));
        break;
      case PatternNode::Kind::Result:
        if (Value op = valueOf(*n.operands[0])) made = op.getDefiningOp()->getResult(n.result);
        break;
      case PatternNode::Kind::Op:
        made = op(n);
        break;
    }
    return values_[id] = holds(n, made) ? made : Value();
  }

  Value placeholder(const PatternNode& n) {
    DType dtype = draw_.dtype;
    // Conditions and indices stand beside numbers.
    if (!draw_.equal)
      if (uint64_t kind = below(8); kind < 2) dtype = kind ? DType::Bool : DType::I64;
    const Sizes& sizes = draw_.equal ? *draw_.equal : kShapes[below(std::size(kShapes))];
    auto type =
        RankedTensorType::get(sizes, elementTypeOf(pattern_.context(), n.dtype.value_or(dtype)));
    leaves_.push_back(type);
    Value argument = block_->addArgument(type, b_.getUnknownLoc());
    if (holds(n, argument)) return argument;
    block_->eraseArgument(block_->getNumArguments() - 1);
    return WeightOp::create(b_, b_.getUnknownLoc(), type, "w" + std::to_string(leaves_.size()));
  }

  Value constant(const PatternNode& n) {
    Type element = elementTypeOf(pattern_.context(), n.dtype.value_or(draw_.dtype));
    auto made = [&](double number) -> Value {
      TypedAttr value = asElement(element, number);
      if (!value) return {};
      return ConstantOp::create(
          b_, b_.getUnknownLoc(),
          DenseElementsAttr::get(RankedTensorType::get({}, element), Attribute(value)));
    };
    if (n.exact) return made(*n.exact);
    for (double number : kNumbers)
      if (n.constant(number)) return made(number);
    return {};
  }

  Value op(const PatternNode& n) {
    OperationState state(b_.getUnknownLoc(), n.op);
    SmallVector<int32_t> segments;
    for (auto operand : n.operands) {
      segments.push_back(operand ? 1 : 0);
      if (!operand) continue;
      Value v = valueOf(*operand);
      if (!v) return {};
      state.addOperands(v);
    }
    for (NamedAttribute a : n.attributes)
      state.addAttribute(a.getName(), axesFromFront(a, state.operands));
    if (state.name.hasTrait<OpTrait::AttrSizedOperandSegments>())
      state.addAttribute("operandSegmentSizes", b_.getDenseI32ArrayAttr(segments));
    std::string why;
    Operation* made = createChecked(b_, state, why);
    return made ? made->getResult(0) : Value();
  }

  const DagPattern& pattern_;
  const PatternDraw draw_;
  uint64_t state_;
  OpBuilder b_;

 public:
  OwningOpRef<ModuleOp> module;
  func::FuncOp is;

 private:
  Block* block_;
  std::vector<Value> values_;
  SmallVector<Type> leaves_;
};

std::vector<PatternDraw> allDraws() {
  std::vector<PatternDraw> all;
  for (const Sizes& sizes : kEqual)
    for (bool other : {false, true}) all.push_back({DType::F32, &sizes, other, 0});
  for (DType dtype : {DType::I64, DType::Bool, DType::BF16})
    for (const Sizes& sizes : kEqual) all.push_back({dtype, &sizes, false, 0});
  for (uint64_t i = 0; i < kMixed; ++i) all.push_back({DType::F32, nullptr, i % 4 == 3, i});
  return all;
}

enum class Outcome { NotTaken, Right, OtherValues, OtherType };
struct Found {
  Outcome outcome = Outcome::NotTaken;
  std::string words;
};

Found tried(const DagPattern& pattern, const PatternDraw& draw, const Evaluator& evaluate) {
  Sample sample(pattern, draw);
  Operation* root = sample.make();
  Match match;
  Miss miss;
  if (!root || !pattern.match(root, match, miss)) return {};
  OpBuilder b(root->getContext());
  b.setInsertionPointToEnd(sample.module->getBody());
  auto was = cast<func::FuncOp>(b.clone(*sample.is));
  was.setName("was");
  IRRewriter rewriter(root->getContext());
  const std::string where = " where its placeholders are " + sample.placeholders();
  Value value = pattern.build(rewriter, match);
  if (!value) {
    if (!match.hasOtherType()) return {};
    return {Outcome::OtherType, match.reason() + where};
  }
  const bool compared = !match.isApproximate();
  pattern.commit(rewriter, match, value);
  if (!compared) return {Outcome::Right, ""};
  auto words = valueDifference({std::move(sample.module), was, sample.is}, {}, evaluate);
  if (!words) return {Outcome::Right, ""};
  return {Outcome::OtherValues, *words + where};
}

}  // namespace

std::string whyNeverRight(const DagPattern& pattern, const Evaluator& evaluate) {
  // Whatever mode is compiled for: no mode allows other values. What is weakened is told when the
  // pattern is applied.
  NumericsScope scope(pattern.context(), {});
  RewriteLog*& log = pattern.context()->getLoadedDialect<LatheDialect>()->rewriteLog;
  RewriteLog* const kept = std::exchange(log, nullptr);
  Found first;
  int wrong = 0;
  try {
    for (const PatternDraw& draw : allDraws()) {
      Found found = tried(pattern, draw, evaluate);
      if (found.outcome == Outcome::Right) {
        wrong = 0;
        break;
      }
      if (found.outcome == Outcome::NotTaken) continue;
      // A type may differ where values are compared elsewhere: those say more.
      if (wrong == 0 ||
          (first.outcome == Outcome::OtherType && found.outcome == Outcome::OtherValues))
        first = found;
      if (++wrong >= kWrong && !draw.equal) break;
    }
  } catch (...) {
    wrong = 0;  // a function of the pattern threw: it does so in earnest, too, if it is matched
  }
  log = kept;
  return wrong ? first.words : "";
}

}  // namespace lathe
