// SPDX-License-Identifier: Apache-2.0
#include "passes/canonical/values.h"

#include <cmath>

#include "lathe/passes/region_ops.h"
#include "passes/rewrite/asked_once.h"

using namespace mlir;

namespace lathe {

std::optional<double> constantOf(Value value) { return splatValue(value, /*throughCasts=*/false); }

bool isConstant(Value value, double number) {
  auto c = constantOf(value);
  return c && *c == number;
}

Type elementOf(Value value) { return tensorType(value).getElementType(); }
bool isFloat(Value value) { return isa<FloatType>(elementOf(value)); }

bool isRepresentable(Type element, double number) { return roundedTo(element, number) == number; }

bool hasExactReciprocal(Type element, double number) {
  int exponent;
  return std::isfinite(number) && std::abs(std::frexp(number, &exponent)) == 0.5 &&
         isRepresentable(element, number) && isRepresentable(element, 1 / number);
}

bool broadcastTo(Value result, ArrayRef<Value> operands) {
  SmallVector<Type> inferred;
  // Element types are not asked about here.
  Type element = elementOf(result);
  SmallVector<StringAttr> dims;
  for (Value v : operands) {
    auto other = dimsOf(tensorType(v));
    if (other.size() > dims.size())
      dims.insert(dims.begin(), other.size() - dims.size(), StringAttr::get(v.getContext(), "1"));
    for (size_t i = 0; i < other.size(); ++i) {
      StringAttr& d = dims[dims.size() - other.size() + i];
      if (isOne(d))
        d = other[i];
      else if (!isOne(other[i]) && (!d || d != other[i]))
        return false;
    }
  }
  return tensorOf(dims, element) == result.getType();
}

Value scalarOf(OpMaker& m, TypedAttr element) {
  auto type = RankedTensorType::get({}, element.getType());
  return m.make<ConstantOp>(DenseElementsAttr::get(type, Attribute(element)));
}

Value scalarLike(OpMaker& m, Value like, double number) {
  return m.scalar(elementOf(like), number);
}

static bool isNeverNegative(Value value, AskedOnce<bool>& asked) {
  if (auto c = constantOf(value)) return *c >= 0 && !std::signbit(*c);
  Operation* op = value.getDefiningOp();
  if (!op) return false;
  return asked.of(value, [&] {
    auto isOperand = [&](unsigned i) { return isNeverNegative(op->getOperand(i), asked); };
    if (isa<AbsOp, ExpOp, SigmoidOp>(op)) return true;
    if (auto product = dyn_cast<MulOp>(op); product && product.getA() == product.getB())
      return true;
    if (isa<MulOp, AddOp, MaxOp>(op)) return isOperand(0) && isOperand(1);
    if (isa<ReduceSumOp, ReduceMeanOp>(op) || passesElements(op))
      return isFloat(op->getOperand(0)) && isOperand(0);
    return false;
  });
}
bool isNeverNegative(Value value) {
  AskedOnce<bool> asked;
  return isNeverNegative(value, asked);
}

bool isKeepingReduction(Operation* op) {
  return isa_and_nonnull<ReduceMeanOp, ReduceSumOp, ReduceMaxOp, ReduceMinOp>(op);
}

// The one operand of an elementwise op that is no scalar and has the result's dims.
static Value shapedOperand(Operation* op) {
  if (!op || !isElementwise(op) || !op->hasOneUse()) return {};
  Value shaped;
  for (Value v : op->getOperands()) {
    if (tensorType(v).getRank() == 0) continue;
    if (shaped && shaped != v) return {};
    shaped = v;
  }
  bool same = shaped && dimsOf(tensorType(shaped)) == dimsOf(tensorType(op->getResult(0)));
  return same ? shaped : Value();
}

bool movesToReduction(ReshapeOp op) {
  Value v = op.getX();
  while (v && !isKeepingReduction(v.getDefiningOp())) v = shapedOperand(v.getDefiningOp());
  if (!v || !v.hasOneUse()) return false;
  Operation* reduce = v.getDefiningOp();
  if (reduce->getAttrOfType<BoolAttr>("keep_dims").getValue()) return false;
  SmallVector<StringAttr> dims(dimsOf(tensorType(reduce->getOperand(0))));
  for (int64_t axis : reduce->getAttrOfType<DenseI64ArrayAttr>("axes").asArrayRef())
    dims[size_t(axis)] = dimAttr(op.getContext(), 1);
  return ArrayRef(dims) == ArrayRef(dimsOf(op.getType()));
}

}  // namespace lathe
