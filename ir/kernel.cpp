// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {

LogicalResult PackOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                       SmallVectorImpl<Type>& r) {
  auto type = tensorType(a.getW());
  if ((type.getRank() != 2 && type.getRank() != 3) || !type.hasStaticShape())
    return emitOptionalError(
        loc, "'lathe.pack' [C1] needs a static matrix or a stack of them, got ", shortType(type));
  if (a.getSource() == WeightLayout::packed)
    return emitOptionalError(loc, "'lathe.pack' [C2] the source cannot be packed already");
  SmallVector<int64_t> sizes(type.getShape());
  if (a.getSource() == WeightLayout::in_out) std::swap(sizes.end()[-1], sizes.end()[-2]);
  r.push_back(RankedTensorType::get(sizes, type.getElementType()));
  return success();
}

LogicalResult RegionOp::verify() {
  Block& block = getBody().front();
  if (block.getArgumentTypes() != getInputs().getTypes())
    return emitOpError() << "[C1] the block's arguments do not have the types of the operands";
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getValues().getTypes() != getOutputs().getTypes())
    return emitOpError() << "[C2] the yielded values do not have the types of the results";
  return success();
}

}  // namespace lathe

#define GET_OP_CLASSES
#include "ir/kernel.cpp.inc"
