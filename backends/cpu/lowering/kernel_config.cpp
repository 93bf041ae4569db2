// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/kernel_calls.h"

#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/quantized_weights.h"
#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe::cpu {

CallAttributes kernelConfig(Operation* op) {
  Builder b(op->getContext());
  if (auto pack = dyn_cast<PackOp>(op)) {
    // Packed bytes are padded to whole panels and blocks: the buffer is larger than the type says.
    auto type = tensorType(pack.getY());
    const DType dtype = *dtypeOf(type.getElementType());
    if (!isFloat(dtype)) {
      const QuantizedShape shape{dtype, type.getDimSize(1), type.getDimSize(0)};
      CallAttributes config = attributesOf(b, PackConfig{true});
      config.push_back(b.getNamedAttr(
          kBuffer, b.getDenseI64ArrayAttr({shape.panels() * kPanelColumns, shape.paddedK()})));
      return config;
    }
    PackedShape shape{dtype, type.getDimSize(1), type.getDimSize(0)};
    CallAttributes config = attributesOf(b, PackConfig{pack.getSource() == WeightLayout::out_in});
    config.push_back(b.getNamedAttr(
        kBuffer,
        b.getDenseI64ArrayAttr({shape.panels() * kPanelColumns, shape.blocks() * shape.blockK()})));
    return config;
  }
  return plainConfig(op);
}

}  // namespace lathe::cpu
