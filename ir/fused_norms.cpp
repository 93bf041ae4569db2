// SPDX-License-Identifier: Apache-2.0
// Result types and constraints of the norms, of what surrounds them in a block, and of the rotary
// embedding; decompose_norms.cpp gives their meaning.
#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {
namespace {

using Where = std::optional<Location>;

bool isPerLastDim(Value gain, RankedTensorType x) {
  auto type = tensorType(gain);
  return type.getRank() == 1 && type.getElementType() == x.getElementType() && dimOf(type, 0) &&
         dimOf(type, 0) == dimOf(x, x.getRank() - 1);
}

// What is added to or multiplied into a norm, one element per last dim; null is none.
LogicalResult checkGains(Where loc, StringRef op, StringRef rule, RankedTensorType x, Value gain,
                         Value bias = {}) {
  if (x.getRank() < 1)
    return emitOptionalError(loc, "'", op, "' ", rule, " ", shortType(x), " has no axis");
  for (Value v : {gain, bias})
    if (v && !isPerLastDim(v, x))
      return emitOptionalError(loc, "'", op, "' ", rule, " ", v == gain ? "gain " : "bias ",
                               shortType(v.getType()), " is not one element per last dim of ",
                               shortType(x));
  return success();
}
LogicalResult checkEpsilon(Where loc, StringRef op, StringRef rule, APFloat epsilon) {
  if (epsilon.convertToDouble() >= 0) return success();
  return emitOptionalError(loc, "'", op, "' ", rule, " epsilon is negative");
}

LogicalResult checkRotation(Where loc, StringRef op, StringRef evenRule, StringRef tableRule,
                            RankedTensorType x, Value cosines, Value sines) {
  auto cos = tensorType(cosines), sin = tensorType(sines);
  int64_t last = x.getRank() ? x.getDimSize(x.getRank() - 1) : 1;
  if (ShapedType::isDynamic(last) || last % 2)
    return emitOptionalError(loc, "'", op, "' ", evenRule,
                             " the last dim must be an even number in ", shortType(x));
  auto half = dimsOf(x);
  int64_t angles = cos.getRank() ? cos.getDimSize(cos.getRank() - 1) : 0;
  bool fits = !ShapedType::isDynamic(angles) && angles >= 1 && angles <= last / 2;
  if (fits) half.back() = StringAttr::get(x.getContext(), std::to_string(angles));
  if (cos != sin || !(cos.getElementType().isF32() || cos.getElementType().isF64()) || !fits ||
      !broadcastsTo(cos, half))
    return emitOptionalError(loc, "'", op, "' ", tableRule, " cos ", shortType(cos), " and sin ",
                             shortType(sin), " do not broadcast to half of ", shortType(x),
                             " or less");
  return success();
}

}  // namespace

LogicalResult RmsNormOp::inferReturnTypes(MLIRContext*, Where loc, Adaptor a,
                                          SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX());
  StringRef op = getOperationName();
  if (failed(checkGains(loc, op, "[C1]", x, a.getGain())) ||
      failed(checkEpsilon(loc, op, "[C2]", a.getEpsilon())))
    return failure();
  r.push_back(x);
  return success();
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext*, Where loc, Adaptor a,
                                            SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX());
  StringRef op = getOperationName();
  if (failed(checkGains(loc, op, "[C1]", x, a.getGain(), a.getBias())) ||
      failed(checkEpsilon(loc, op, "[C2]", a.getEpsilon())))
    return failure();
  r.push_back(x);
  return success();
}

LogicalResult AddNormOp::inferReturnTypes(MLIRContext*, Where loc, Adaptor a,
                                          SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX());
  StringRef op = getOperationName();
  if (a.getResidual().getType() != x)
    return emitOptionalError(loc, "'", op, "' [C1] x ", shortType(x), " and residual ",
                             shortType(a.getResidual().getType()), " differ");
  if (a.getNorm() == Norm::rms && a.getBias())
    return emitOptionalError(loc, "'", op, "' [C2] the rms norm has no bias");
  if (failed(checkGains(loc, op, "[C2]", x, a.getGain(), a.getBias())) ||
      failed(checkEpsilon(loc, op, "[C3]", a.getEpsilon())))
    return failure();
  r.append({x, x});
  return success();
}

LogicalResult AdalnModulateOp::inferReturnTypes(MLIRContext*, Where loc, Adaptor a,
                                                SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX()), scale = tensorType(a.getScale());
  if (x.getRank() < 1 || a.getShift().getType() != scale ||
      scale.getElementType() != x.getElementType() || !broadcastsTo(scale, dimsOf(x)))
    return emitOptionalError(loc, "'lathe.adaln_modulate' [C1] shift ",
                             shortType(a.getShift().getType()), " and scale ", shortType(scale),
                             " are not one type that broadcasts to ", shortType(x));
  if (failed(checkEpsilon(loc, getOperationName(), "[C2]", a.getEpsilon()))) return failure();
  r.push_back(x);
  return success();
}

LogicalResult GatedResidualOp::inferReturnTypes(MLIRContext*, Where loc, Adaptor a,
                                                SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX()), gate = tensorType(a.getGate());
  if (a.getF().getType() != x || gate.getElementType() != x.getElementType() ||
      !broadcastsTo(gate, dimsOf(x)))
    return emitOptionalError(loc, "'lathe.gated_residual' [C1] f ", shortType(a.getF().getType()),
                             " and gate ", shortType(gate), " do not fit x ", shortType(x));
  r.push_back(x);
  return success();
}

LogicalResult RopeOp::inferReturnTypes(MLIRContext*, Where loc, Adaptor a,
                                       SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX());
  if (failed(checkRotation(loc, getOperationName(), "[C1]", "[C2]", x, a.getCos(), a.getSin())))
    return failure();
  r.push_back(x);
  return success();
}

LogicalResult NormRopeOp::inferReturnTypes(MLIRContext*, Where loc, Adaptor a,
                                           SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX());
  StringRef op = getOperationName();
  if (failed(checkGains(loc, op, "[C1]", x, a.getGain())) ||
      failed(checkEpsilon(loc, op, "[C1]", a.getEpsilon())) ||
      failed(checkRotation(loc, op, "[C2]", "[C2]", x, a.getCos(), a.getSin())))
    return failure();
  r.push_back(x);
  return success();
}

LogicalResult RopeAppendOp::inferReturnTypes(MLIRContext* c, Where loc, Adaptor a,
                                             SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX());
  StringRef op = getOperationName();
  if (failed(checkGains(loc, op, "[C1]", x, a.getGain())) ||
      (a.getEpsilonAttr() && failed(checkEpsilon(loc, op, "[C1]", a.getEpsilon()))) ||
      failed(checkRotation(loc, op, "[C2]", "[C2]", x, a.getCos(), a.getSin())))
    return failure();
  auto cache = tensorType(a.getCache()), positions = tensorType(a.getPositions());
  int64_t axis = a.getAxis(), rank = cache.getRank();
  bool fits = x.getRank() == rank && x.getElementType() == cache.getElementType() && axis > 0 &&
              axis < rank && positions.getRank() == 1 && dimOf(positions, 0) &&
              dimOf(positions, 0) == dimOf(cache, 0);
  for (int64_t i = 0; fits && i < rank; ++i)
    fits = i == axis || (dimOf(x, i) && dimOf(x, i) == dimOf(cache, i));
  if (!fits)
    return emitOptionalError(loc, "'", op, "' [C3] x ", shortType(x), " and positions ",
                             shortType(positions), " do not fit the cache ", shortType(cache),
                             " along axis ", axis);
  r.push_back(cache);
  return success();
}

}  // namespace lathe
