// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/scores.h"

#include <cmath>

#include "passes/patterns/bounds.h"
#include "passes/rewrite/asked_once.h"
#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe {

namespace {

// Fills in use are -1e9, -1e30, the lowest float; -1e4 may well be a score.
constexpr double kHighestFill = -1e8;
bool isFill(Value v) {
  auto number = splatValue(v);
  return number && *number <= kHighestFill;
}

// What is added to hidden scores: -inf, or a number so large that no score changes it.
constexpr double kAbsorbingFill = -1e30;

// 0 and such a fill, as the condition where it is the fill or (not hidden) 0.
struct Additive {
  Value condition;
  bool hidden;
  double fill;
};
std::optional<Additive> readAdditive(Value bias) {
  auto select = bias.getDefiningOp<SelectOp>();
  if (!select) return std::nullopt;
  auto a = splatValue(select.getA()), b = splatValue(select.getB());
  if (!a || !b) return std::nullopt;
  bool hidden = *a <= kAbsorbingFill;
  double fill = hidden ? *a : *b;
  if (fill > kAbsorbingFill || (hidden ? *b : *a) != 0) return std::nullopt;
  return Additive{select.getCondition(), hidden, fill};
}

// Rows of a table of weights, laid out anew: a learnt bias, no mask.
bool isLearntBias(Value v) {
  while (Operation* op = v.getDefiningOp()) {
    if (isLoadedWeight(v)) return true;
    if (auto rows = dyn_cast<EmbeddingOp>(op))
      v = rows.getTable();
    else if (isa<GatherOp>(op) || (op->hasTrait<fact::IsMovement>() && op->getNumOperands() == 1))
      v = op->getOperand(0);
    else
      return false;
  }
  return false;
}

// Added to the fill a bias changes no digit of it, in f64 neither.
bool isLostIn(double fill, Value bias) {
  auto largest = largestMagnitude(bias);
  return largest && *largest <= -fill * 1e-17;
}

// Whether scales, casts, masks and a cap of what `isEnd` accepts make the value.
using IsEnd = bool (*)(Operation*);
bool leadsTo(Value v, IsEnd isEnd, AskedOnce<bool>& asked) {
  Operation* op = v.getDefiningOp();
  if (!op) return false;
  return asked.of(v, [&] {
    if (isEnd(op)) return true;
    auto from = [&](unsigned i) { return leadsTo(op->getOperand(i), isEnd, asked); };
    if (isa<SelectOp>(op)) return from(1) || from(2);
    if (isa<CastOp, TanhOp>(op)) return from(0);
    return isa<MulOp, DivOp, AddOp>(op) && (from(0) || from(1));
  });
}
bool leadsTo(Value v, IsEnd isEnd) {
  AskedOnce<bool> asked;
  return leadsTo(v, isEnd, asked);
}
bool leadsToMatmul(Value v) {
  return leadsTo(v, [](Operation* op) { return isa<MatmulOp>(op); });
}

// The batch and heads of a product, or of what leads to one, taken apart; nothing else of it
// changes.
bool splitsProduct(Operation* op) {
  auto split = dyn_cast_or_null<ReshapeOp>(op);
  if (!split || !leadsToMatmul(split.getX())) return false;
  auto from = dimsOf(tensorType(split.getX())), to = dimsOf(tensorType(split.getY()));
  return from.size() == 3 && to.size() == 4 && from[1] && from[1] == to[2] && from[2] &&
         from[2] == to[3];
}
// The same, behind scales, casts and masks.
bool leadsToSplitMatmul(Value v) { return leadsTo(v, splitsProduct); }

}  // namespace

ScoreReader::Step ScoreReader::stop(const Twine& reason) {
  if (until_ == Until::Anything) return Step::End;
  m_.decline(reason);
  return Step::Failed;
}

void ScoreReader::readSoftmax(SoftmaxOp softmax) {
  scale = softmax.getScale().convertToDouble();
  softcap = softmax.getSoftcap().convertToDouble();
  capped_ = softcap > 0;
  Value mask = softmax.getMask();
  if (!mask) return;
  if (!tensorType(mask).getElementType().isInteger(1)) {
    biases_.push_back(mask);
    return;
  }
  fill_ = -INFINITY;
  addCondition(mask, false);
}

bool ScoreReader::read() {
  while (true) {
    Step s = step();
    if (s != Step::Read) return s == Step::End;
  }
}

ScoreReader::Step ScoreReader::step() {
  Operation* op = base.getDefiningOp();
  if (!op) return stop("the scores are an argument, wanted lathe.matmul");
  if (!base.hasOneUse())
    return stop(op->getName().getStringRef() +
                " between the product and the softmax has another user");
  if (until_ == Until::Product && isa<MatmulOp>(op)) {
    m_.consume(op);
    return Step::End;
  }
  Value had = base;
  if (until_ == Until::Product && splitsProduct(op)) {
    m_.consume(op);
    base = op->getOperand(0);
    apart_ = dimsOf(type_);
    return Step::Read;
  }
  if (auto cast = dyn_cast<CastOp>(op); cast && until_ == Until::Product) {
    if (!onlyRounds(cast)) {
      std::string types;
      llvm::raw_string_ostream(types)
          << tensorType(cast.getX()).getElementType() << " to " << cast.getDtype();
      return stop("lathe.cast from " + types +
                  " between the product and the softmax is no rounding");
    }
    rounded_.push_back(cast.getDtype());
    base = cast.getX();
  } else if (auto scaling = readScaling(op)) {
    if (readSoftcap(op)) {
      m_.consume(op);
      return Step::Read;
    }
    scale *= scaling->factor;
    base = scaling->x;
  } else if (isa<MulOp, DivOp>(op)) {
    return stop(op->getName().getStringRef() +
                ": the scores are scaled by something else than a positive constant");
  } else if (auto select = dyn_cast<SelectOp>(op)) {
    if (capped_) return stop("the mask lies under the softcap");
    if (!apart_.empty()) return stop("the mask lies where batch and heads are one axis");
    if (Step s = addSelect(select); s != Step::Read) return s;
  } else if (auto sum = dyn_cast<AddOp>(op)) {
    if (capped_) return stop("the added mask lies under the softcap");
    if (Step s = addSum(sum); s != Step::Read) return s;
  } else {
    return stop("wanted the product of q and k, found " + op->getName().getStringRef());
  }
  bool sameShape = dimsOf(tensorType(base)) == dimsOf(tensorType(had));
  if (!sameShape) {
    base = had;
    return stop(op->getName().getStringRef() + " broadcasts the scores");
  }
  m_.consume(op);
  return Step::Read;
}

// product is a constant times tanh of the scores over a constant.
bool ScoreReader::readSoftcap(Operation* product) {
  auto outer = readScaling(product);
  Value t = outer->x;
  for (auto cast = t.getDefiningOp<CastOp>();
       cast && onlyRounds(cast) && t.hasOneUse() && until_ == Until::Product;
       cast = t.getDefiningOp<CastOp>())
    t = cast.getX();
  auto tanh = t.getDefiningOp<TanhOp>();
  if (!tanh || !t.hasOneUse() || !tanh.getX().hasOneUse() || capped_ || scale != 1) return false;
  Operation* inner = tanh.getX().getDefiningOp();
  auto scaling = readScaling(inner);
  // c tanh(s / c): what is left of the inner factor scales the scores.
  softcap = outer->factor;
  capped_ = true;
  m_.consume(tanh);
  base = tanh.getX();
  if (scaling) {
    scale = scaling->factor * softcap;
    if (std::abs(scale - 1) < 1e-6) scale = 1;
    base = scaling->x;
    m_.consume(inner);
  } else {
    scale = softcap;
  }
  return true;
}

ScoreReader::Step ScoreReader::addSelect(SelectOp select) {
  bool hidden = isFill(select.getA());
  if (!hidden && !isFill(select.getB()))
    return stop(
        "lathe.select: the mask puts neither -inf nor a large negative number into the scores");
  Value inner = hidden ? select.getB() : select.getA();
  if (isFill(inner) || inner.getType() != select.getType())
    return stop("lathe.select: the mask hides a constant");
  double fill = *splatValue(hidden ? select.getA() : select.getB());
  if (addsFill_) return stop("lathe.select: the added fill makes -inf of the selected one");
  if (Step s = takeFill(fill, tensorType(select).getElementType()); s != Step::Read) return s;
  base = inner;
  addCondition(select.getCondition(), hidden);
  return Step::Read;
}

ScoreReader::Step ScoreReader::takeFill(double fill, Type element) {
  if (fill_.value_or(fill) != fill)
    return stop("lathe.select: two masks put different numbers into the scores");
  if (!std::isinf(fill)) {
    // A weight of exp(fill - maximum) is 0 as long as scores stay far above the fill.
    if (fill * scale > kHighestFill || element.isF16())
      return stop("lathe.select: the scaled fill is no large negative number");
    // A row of fills is uniform as long as nothing behind the mask makes infinities of them.
    SmallVector<Type, 2> types(rounded_);
    types.push_back(element);
    for (Type type : types)
      if (std::isinf(roundedTo(type, fill)) || std::isinf(roundedTo(type, fill * scale)))
        return stop("lathe.select: the fill becomes -inf behind the mask");
    // Only down to the product is it known that no other mask puts scores near the fill.
    if (until_ == Until::Anything) return Step::End;
    if (!biases_.empty())
      return stop("lathe.add: an added mask tells apart what the fill made equal");
    if (!m_.weakens(Contract::MaskFill)) return Step::Failed;
  }
  fill_ = fill;
  return Step::Read;
}

MaskedRow ScoreReader::maskedRow(SoftmaxOp softmax) const {
  bool finite = fill_ && !std::isinf(*fill_);
  return finite ? MaskedRow::uniform : softmax.getMaskedRow();
}

ScoreReader::Step ScoreReader::addSum(AddOp sum) {
  bool left, right;
  if (until_ == Until::Product) {
    left = leadsToMatmul(sum.getA());
    right = leadsToMatmul(sum.getB());
    if (!left && !right) {
      left = leadsToSplitMatmul(sum.getA());
      right = leadsToSplitMatmul(sum.getB());
    }
  } else {
    // A mask is smaller than the scores, or a condition's 0 and -inf.
    auto isMask = [&](Value v) { return v.getType() != sum.getType() || readAdditive(v); };
    left = !isMask(sum.getA()) && isMask(sum.getB());
    right = !isMask(sum.getB()) && isMask(sum.getA());
  }
  if (left == right) return stop("one operand of lathe.add must come from lathe.matmul");
  Value bias = left ? sum.getB() : sum.getA();
  // The exponential of a score does not tell -0 from 0.
  if (auto number = splatValue(bias); number && *number == 0) {
    base = left ? sum.getA() : sum.getB();
    return base.getType() == sum.getType() ? Step::Read : stop("lathe.add stretches the scores");
  }
  // What the sum hides lies below the fill: a row of both is not uniform.
  // A learnt bias is lost in a fill that was added.
  // Neither is one that stays far above the fill: it hides nothing, and is lost in an added fill.
  if (fill_ && !std::isinf(*fill_) && !(addsFill_ && isLearntBias(bias)) && !isLostIn(*fill_, bias))
    return stop("lathe.add: a mask is added under a finite fill");
  if (auto additive = readAdditive(bias);
      additive && apart_.empty() && (until_ == Until::Product || std::isinf(additive->fill))) {
    if (Step s = takeFill(additive->fill, tensorType(sum).getElementType()); s != Step::Read)
      return s;
    // NaN and infinity stay what they are under a sum.
    if (!m_.weakens(Contract::IncomingNan)) return Step::Failed;
    addsFill_ = !std::isinf(additive->fill);
    m_.consume(bias.getDefiningOp());
    addCondition(additive->condition, additive->hidden);
  } else if (scale != 1) {
    return stop("lathe.add: the added mask is scaled with the scores");
  } else {
    if (!apart_.empty() && !(bias = splitBias(bias))) return Step::Failed;
    biases_.push_back(bias);
  }
  base = left ? sum.getA() : sum.getB();
  return Step::Read;
}

// A bias of scores [b h, s, t] as one of [b, h, s, t].
Value ScoreReader::splitBias(Value bias) {
  auto dims = dimsOf(tensorType(bias));
  if (dims.size() < 3) return bias;
  if (dims.size() == 3 && llvm::all_of(dims, [](StringAttr d) { return bool(d); })) {
    const auto one = StringAttr::get(bias.getContext(), "1");
    const bool isShared = dims[0] == one;
    return reshaped(m_, bias,
                    {isShared ? one : apart_[0], isShared ? one : apart_[1], dims[1], dims[2]});
  }
  m_.decline("lathe.add: an added mask does not have the heads of the scores");
  return {};
}

// Splits what lets a key through only if both parts do.
void ScoreReader::addCondition(Value condition, bool hidden) {
  Operation* op = condition.getDefiningOp();
  bool splits = hidden ? isa_and_nonnull<LogicalOrOp>(op) : isa_and_nonnull<LogicalAndOp>(op);
  if (isa_and_nonnull<LogicalNotOp>(op) &&
      isa_and_nonnull<LogicalOrOp, LogicalAndOp, LogicalNotOp>(op->getOperand(0).getDefiningOp())) {
    m_.consume(op);
    return addCondition(op->getOperand(0), !hidden);
  }
  if (!splits) {
    conditions_.push_back({condition, hidden});
    return;
  }
  m_.consume(op);
  addCondition(op->getOperand(0), hidden);
  addCondition(op->getOperand(1), hidden);
}

bool ScoreReader::readMask(Value mask) {
  if (tensorType(mask).getElementType().isInteger(1)) {
    addCondition(mask, false);
    return true;
  }
  auto additive = readAdditive(mask);
  if (!additive || !std::isinf(additive->fill)) {
    m_.decline("the added mask is not 0 and -inf by a condition");
    return false;
  }
  // NaN and infinity stay what they are under a sum.
  if (!m_.weakens(Contract::IncomingNan)) return false;
  m_.consume(mask.getDefiningOp());
  addCondition(additive->condition, additive->hidden);
  return true;
}

void ScoreReader::readCausal() {
  SmallVector<std::optional<RampBound>> bounds;
  for (const Condition& c : conditions_) bounds.push_back(readBound(c.value, c.hidden, type_));
  SmallVector<Condition, 4> rest;
  std::optional<RampBound> upper;
  SmallVector<bool> taken(bounds.size());
  auto take = [&](size_t i) {
    taken[i] = true;
    for (Operation* op : bounds[i]->ops) m_.consume(op);
  };
  for (size_t i = 0; i < bounds.size() && !upper; ++i) {
    if (!bounds[i] || alignmentOf(*bounds[i], type_) == Causal::none) continue;
    upper = bounds[i];
    causal = alignmentOf(*upper, type_);
    positions = upper->positions;
    take(i);
  }
  for (size_t i = 0; upper && i < bounds.size() && !window; ++i)
    if (bounds[i] && !taken[i] && (window = windowOf(*upper, *bounds[i]))) take(i);
  for (size_t i = 0; i < conditions_.size(); ++i)
    if (!taken[i]) rest.push_back(conditions_[i]);
  conditions_ = rest;
}

Value ScoreReader::mask() {
  Value all;
  for (auto [condition, hidden] : conditions_) {
    if (hidden) condition = m_.make("lathe.logical_not", {condition});
    all = all ? m_.make("lathe.logical_and", {all, condition}) : condition;
  }
  if (biases_.empty()) return all;
  Value sum = biases_[0];
  for (Value bias : ArrayRef(biases_).drop_front()) sum = m_.make("lathe.add", {sum, bias});
  if (!all || !sum) return sum;
  auto element = *dtypeOf(tensorType(sum).getElementType());
  Array low(element, {});
  low.set(0, -INFINITY);
  Value minus = m_.make("lathe.constant", {}, {{"value", low}});
  return m_.make("lathe.select", {all, sum, minus});
}

}  // namespace lathe
