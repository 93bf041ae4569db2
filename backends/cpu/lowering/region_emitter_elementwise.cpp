// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparison and selection.
#include "backends/cpu/lowering/math_expansion.h"
#include "backends/cpu/lowering/region_emitter_evaluator.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

arith::CmpFPredicate floatPredicate(Compare p) {
  switch (p) {
    case Compare::eq:
      return arith::CmpFPredicate::OEQ;
    case Compare::ne:
      return arith::CmpFPredicate::UNE;
    case Compare::lt:
      return arith::CmpFPredicate::OLT;
    case Compare::le:
      return arith::CmpFPredicate::OLE;
    case Compare::gt:
      return arith::CmpFPredicate::OGT;
    case Compare::ge:
      return arith::CmpFPredicate::OGE;
  }
  llvm_unreachable("a predicate");
}
arith::CmpIPredicate integerPredicate(Compare p, bool isUnsigned) {
  using P = arith::CmpIPredicate;
  switch (p) {
    case Compare::eq:
      return P::eq;
    case Compare::ne:
      return P::ne;
    case Compare::lt:
      return isUnsigned ? P::ult : P::slt;
    case Compare::le:
      return isUnsigned ? P::ule : P::sle;
    case Compare::gt:
      return isUnsigned ? P::ugt : P::sgt;
    case Compare::ge:
      return isUnsigned ? P::uge : P::sge;
  }
  llvm_unreachable("a predicate");
}
bool isFloatType(Value v) { return isa<FloatType>(getElementTypeOrSelf(v)); }

}  // namespace

Value Evaluator::compare(Compare p, Value x, Value y, bool isUnsigned) {
  if (isFloatType(x)) return k.make<arith::CmpFOp>(floatPredicate(p), x, y);
  return k.make<arith::CmpIOp>(integerPredicate(p, isUnsigned), x, y);
}

Value Evaluator::larger(Value x, Value y, bool isUnsigned, bool smaller) {
  Compare p = smaller ? Compare::lt : Compare::gt;
  auto isNumber = [](Value v) {
    Attribute a;
    if (!matchPattern(v, m_Constant(&a))) return false;
    if (auto splat = dyn_cast<SplatElementsAttr>(a)) a = splat.getSplatValue<Attribute>();
    auto number = dyn_cast<FloatAttr>(a);
    return number && !number.getValue().isNaN();
  };
  if (isFloatType(x) && isNumber(y)) std::swap(x, y);
  // One vmaxps: it gives y if either is NaN, so only a NaN in x is left to be seen to.
  Value best = k.make<arith::SelectOp>(compare(p, x, y, isUnsigned), x, y);
  if (!isFloatType(x) || isNumber(x)) return best;
  Value nan = k.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
  return k.make<arith::SelectOp>(nan, x, best);
}

Value Evaluator::callEach(StringRef name, ArrayRef<Value> operands) {
  Type type = operands[0].getType(), element = getElementTypeOrSelf(type);
  auto module = kernel_->getParentOfType<ModuleOp>();
  std::string symbol = name.str() + (element.isF32() ? "f" : "");
  auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
  if (!callee) {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(module.getBody());
    SmallVector<Type> inputs(operands.size(), element);
    callee = k.make<LLVM::LLVMFuncOp>(symbol, LLVM::LLVMFunctionType::get(element, inputs));
  }
  if (!isa<VectorType>(type)) return k.make<LLVM::CallOp>(callee, operands).getResult();
  Value result = k.make<LLVM::PoisonOp>(type);
  for (int64_t lane = 0; lane < widthOf(type); ++lane) {
    Value at = k.integer(k.b.getI32Type(), lane);
    SmallVector<Value> scalars;
    for (Value v : operands) scalars.push_back(k.make<LLVM::ExtractElementOp>(v, at));
    Value y = k.make<LLVM::CallOp>(callee, scalars).getResult();
    result = k.make<LLVM::InsertElementOp>(result, y, at);
  }
  return result;
}

Value Evaluator::floatUnary(Operation* op, Value x) {
  bool wide = getElementTypeOrSelf(x).isF64();
  auto one = [&] { return k.number(x.getType(), 1); };
  return TypeSwitch<Operation*, Value>(op)
      .Case([&](ExpOp) { return wide ? callEach("exp", x) : expandExp(k, x); })
      .Case([&](TanhOp) { return wide ? callEach("tanh", x) : expandTanh(k, x); })
      .Case([&](SigmoidOp) -> Value {
        if (!wide) return expandSigmoid(k, x);
        Value e = callEach("exp", Value(k.make<arith::NegFOp>(x)));
        return k.make<arith::DivFOp>(one(), k.make<arith::AddFOp>(one(), e));
      })
      .Case([&](ErfOp) -> Value { return wide ? callEach("erf", x) : k.make<math::ErfOp>(x); })
      .Case([&](LogOp) { return callEach("log", x); })
      .Case([&](SinOp) { return callEach("sin", x); })
      .Case([&](CosOp) { return callEach("cos", x); })
      .Case([&](SqrtOp) { return k.make<math::SqrtOp>(x); })
      .Case([&](RsqrtOp) { return k.make<arith::DivFOp>(one(), k.make<math::SqrtOp>(x)); })
      .Case([&](ReciprocalOp) { return k.make<arith::DivFOp>(one(), x); })
      .Case([&](FloorOp) { return k.make<math::FloorOp>(x); })
      .Case([&](CeilOp) { return k.make<math::CeilOp>(x); })
      .Case([&](RoundOp) { return k.make<math::RoundEvenOp>(x); });
}

Value Evaluator::integerDivide(Value x, Value y, bool isUnsigned, bool remainder) {
  Value zero = k.integer(x.getType(), 0), one = k.integer(x.getType(), 1);
  Value byZero = compare(Compare::eq, y, zero, true);
  if (isUnsigned) {
    Value safe = k.make<arith::SelectOp>(byZero, one, y);
    Value r = remainder ? Value(k.make<arith::RemUIOp>(x, safe)) : k.make<arith::DivUIOp>(x, safe);
    return k.make<arith::SelectOp>(byZero, zero, r);
  }
  // The least integer divided by -1 does not fit: -1 is a negation that wraps.
  Value byMinusOne = compare(Compare::eq, y, k.integer(x.getType(), -1), true);
  Value safe = k.make<arith::SelectOp>(k.make<arith::OrIOp>(byZero, byMinusOne), one, y);
  if (remainder) {
    // Floored; a divisor of 0 or -1 became 1, whose remainder is 0.
    Value r = k.make<arith::RemSIOp>(x, safe);
    Value crosses = compare(Compare::lt, k.make<arith::XOrIOp>(r, safe), zero, false);
    crosses = k.make<arith::AndIOp>(crosses, compare(Compare::ne, r, zero, true));
    return k.make<arith::SelectOp>(crosses, k.make<arith::AddIOp>(r, safe), r);
  }
  Value r = k.make<arith::DivSIOp>(x, safe);
  r = k.make<arith::SelectOp>(byMinusOne, k.make<arith::SubIOp>(zero, x), r);
  return k.make<arith::SelectOp>(byZero, zero, r);
}

Value Evaluator::shift(Value x, Value y, bool left) {
  int64_t bits = getElementTypeOrSelf(x).getIntOrFloatBitWidth();
  Value zero = k.integer(x.getType(), 0);
  Value fits = compare(Compare::lt, y, k.integer(x.getType(), bits), true);
  Value by = k.make<arith::SelectOp>(fits, y, zero);
  Value r = left ? Value(k.make<arith::ShLIOp>(x, by)) : k.make<arith::ShRUIOp>(x, by);
  return k.make<arith::SelectOp>(fits, r, zero);
}

Value Evaluator::numberBinary(Operation* op, Value x, Value y, bool isUnsigned) {
  bool real = isFloatType(x);
  return TypeSwitch<Operation*, Value>(op)
      .Case([&](AddOp) -> Value {
        return real ? Value(k.make<arith::AddFOp>(x, y)) : k.make<arith::AddIOp>(x, y);
      })
      .Case([&](SubOp) -> Value {
        return real ? Value(k.make<arith::SubFOp>(x, y)) : k.make<arith::SubIOp>(x, y);
      })
      .Case([&](MulOp) -> Value {
        return real ? Value(k.make<arith::MulFOp>(x, y)) : k.make<arith::MulIOp>(x, y);
      })
      .Case([&](DivOp) -> Value {
        return real ? Value(k.make<arith::DivFOp>(x, y)) : integerDivide(x, y, isUnsigned, false);
      })
      .Case([&](ModOp) -> Value {
        if (!real) return integerDivide(x, y, isUnsigned, true);
        Value r = callEach("fmod", {x, y}), zero = k.number(x.getType(), 0);
        Value crosses = k.make<arith::XOrIOp>(compare(Compare::lt, r, zero, false),
                                              compare(Compare::lt, y, zero, false));
        crosses = k.make<arith::AndIOp>(crosses, compare(Compare::ne, r, zero, false));
        return k.make<arith::SelectOp>(crosses, k.make<arith::AddFOp>(r, y), r);
      })
      .Case([&](PowOp) { return callEach("pow", {x, y}); })
      .Case([&](MaxOp) { return larger(x, y, isUnsigned, false); })
      .Case([&](MinOp) { return larger(x, y, isUnsigned, true); })
      .Case<LogicalAndOp, BitwiseAndOp>([&](auto) { return k.make<arith::AndIOp>(x, y); })
      .Case<LogicalOrOp, BitwiseOrOp>([&](auto) { return k.make<arith::OrIOp>(x, y); })
      .Case([&](BitwiseXorOp) { return k.make<arith::XOrIOp>(x, y); })
      .Case([&](ShiftLeftOp) { return shift(x, y, true); })
      .Case([&](ShiftRightOp) { return shift(x, y, false); });
}

Value Evaluator::elementwise(Operation* op, const Index& index) {
  Type element = tensorType(op->getOperand(0)).getElementType();
  bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  Value x = operand(op, 0, index);
  if (auto cast = dyn_cast<CastOp>(op)) return convert(x, element, cast.getDtype());
  if (auto cast = dyn_cast<BitcastOp>(op)) return bitcast(x, element, cast.getDtype());
  if (isa<SelectOp>(op))
    return k.make<arith::SelectOp>(x, operand(op, 1, index), operand(op, 2, index));
  if (isa<LogicalNotOp>(op)) return k.make<arith::XOrIOp>(x, k.integer(x.getType(), 1));
  if (isa<IsNanOp>(op)) return k.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
  bool real = isFloatType(x);
  Value zero = real ? k.number(x.getType(), 0) : k.integer(x.getType(), 0);
  if (isa<NegOp>(op))
    return real ? Value(k.make<arith::NegFOp>(x)) : k.make<arith::SubIOp>(zero, x);
  if (isa<AbsOp>(op)) {
    if (real) return k.make<math::AbsFOp>(x);
    if (isUnsigned) return x;
    return k.make<arith::SelectOp>(compare(Compare::lt, x, zero, false),
                                   k.make<arith::SubIOp>(zero, x), x);
  }
  if (isa<SignOp>(op)) {
    Value one = real ? k.number(x.getType(), 1) : k.integer(x.getType(), 1);
    Value minus = real ? k.number(x.getType(), -1) : k.integer(x.getType(), -1);
    Value r = k.make<arith::SelectOp>(compare(Compare::gt, x, zero, isUnsigned), one, x);
    if (isUnsigned) return r;
    return k.make<arith::SelectOp>(compare(Compare::lt, x, zero, false), minus, r);
  }
  if (op->getNumOperands() == 1) return floatUnary(op, x);
  Value y = operand(op, 1, index);
  if (auto c = dyn_cast<CompareOp>(op)) return compare(c.getPredicate(), x, y, isUnsigned);
  return numberBinary(op, x, y, isUnsigned);
}

}  // namespace lathe::cpu
