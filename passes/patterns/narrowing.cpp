// SPDX-License-Identifier: Apache-2.0
//
//   x: bf16 ── cast f32 ── op ── cast bf16 ──        op(x: bf16)
//
// softmax, the norms, adaln_modulate, gated_residual, rope, attention, linear, grouped_linear,
// glu and a scaled embedding compute in f32 and round once, whatever the dtype of their
// operands is (rms_norm with its gain after the rounding does not, nor do the composites of it). So
// casts of all operands from one narrow type and back are the op on that type: the values are the
// same, and half the bytes move.
#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

bool isFusedInF32(Value v) {
  Operation* op = v.getDefiningOp();
  return op && op->hasTrait<fact::RoundsOnce>() && tensorType(v).getElementType().isF32();
}

// Operands that stay f32 (or integers) whatever the op's dtype is.
bool keepsType(Operation* op, unsigned operand) {
  if (isa<RopeOp>(op)) return operand > 0;
  if (isa<AttentionOp, PagedAttentionOp>(op)) return operand > 2;
  if (isa<SoftmaxOp>(op)) return operand > 0;
  if (isa<EmbeddingOp>(op)) return operand == 0;
  if (isa<GroupedLinearOp>(op)) return operand == 2;
  return false;
}

// What a cast from the narrow type widens, laid out as the wide value is. Null if there is no cast.
Value narrowed(Match& m, Value wide, Type narrow) {
  Operation* op = wide.getDefiningOp();
  if (auto cast = dyn_cast_or_null<CastOp>(op)) {
    if (tensorType(cast.getX()).getElementType() != narrow) return {};
    m.consume(op);
    return cast.getX();
  }
  if (!isa_and_nonnull<ReshapeOp, TransposeOp, BroadcastOp, SliceOp>(op)) return {};
  Value x = narrowed(m, op->getOperand(0), narrow);
  if (!x) return {};
  m.consume(op);
  return m.makeWith(std::string_view(op->getName().getStringRef()), {x},
                    SmallVector<NamedAttribute>(op->getAttrDictionary().getValue()));
}

void recordNarrowing(DagPattern& p) {
  Tensor inner = p.where(p.any(), "a fused op that computes in f32", isFusedInF32);
  Tensor outer = roundingCast(p, inner);
  p.root(outer);
  p.replaceWith([=](Match& m) -> Value {
    Operation* op = m[inner].getDefiningOp();
    Type narrow = tensorType(m[outer]).getElementType();
    if (!narrow.isBF16() && !narrow.isF16()) return m.decline("the cast is not to a 16-bit float");
    auto norm = dyn_cast<RmsNormOp>(op);
    if (norm && norm.getGain() && norm.getRounding() == GainRounding::before_gain)
      return m.decline("'rounding' of lathe.rms_norm: a narrow op would round before the gain");
    if (!m[inner].hasOneUse()) return m.decline("the f32 value has another user");
    SmallVector<Value> operands;
    for (OpOperand& operand : op->getOpOperands()) {
      if (keepsType(op, operand.getOperandNumber())) {
        operands.push_back(operand.get());
        continue;
      }
      operands.push_back(narrowed(m, operand.get(), narrow));
      if (!operands.back())
        return m.decline("operand " + Twine(operand.getOperandNumber()) +
                         " is not a cast from the narrow type");
    }
    m.consume(op);
    // Absent optional operands are null values in `makeWith`.
    SmallVector<NamedAttribute> attributes;
    for (NamedAttribute a : op->getAttrDictionary())
      if (a.getName().getValue() != "operandSegmentSizes") attributes.push_back(a);
    if (auto sizes = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes")) {
      SmallVector<Value> slots;
      size_t next = 0;
      for (int32_t size : sizes.asArrayRef()) slots.push_back(size ? operands[next++] : Value());
      operands = slots;
    }
    return m.makeWith(std::string_view(op->getName().getStringRef()), operands, attributes);
  });
}

}  // namespace

void addNarrowingPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "narrowing", recordNarrowing);
}

}  // namespace lathe
