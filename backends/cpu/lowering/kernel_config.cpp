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
    const ArrayRef<int64_t> sizes = type.getShape();
    const PackedShape shape{dtype, sizes.back(), sizes[sizes.size() - 2]};
    CallAttributes config = attributesOf(b, PackConfig{pack.getSource() == WeightLayout::out_in});
    SmallVector<int64_t> buffer(sizes.drop_back(2));
    buffer.append({shape.panels() * kPanelColumns, shape.blocks() * shape.blockK()});
    config.push_back(b.getNamedAttr(kBuffer, b.getDenseI64ArrayAttr(buffer)));
    return config;
  }
  if (auto linear = dyn_cast<LinearOp>(op); linear && linear.getLayout() != WeightLayout::packed) {
    LinearConfig config = configOf(linear);
    config.layout = linear.getLayout();
    return attributesOf(b, config);
  }
  return plainConfig(op);
}

}  // namespace lathe::cpu
