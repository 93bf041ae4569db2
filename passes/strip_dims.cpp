// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/types.h"
#include "lathe/passes/passes.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace lathe {
namespace {

class StripDimsPass : public PassWrapper<StripDimsPass, OperationPass<>> {
 public:
  LATHE_PASS(StripDimsPass, "lathe-strip-dims", "tensor types lose their named dims")
  void runOnOperation() final {
    AttrTypeReplacer replacer;
    replacer.addReplacement([](RankedTensorType type) -> std::optional<Type> {
      if (!isa_and_nonnull<DimsAttr>(type.getEncoding())) return std::nullopt;
      return RankedTensorType::get(type.getShape(), type.getElementType());
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false, /*replaceTypes=*/true);
  }
};

}  // namespace

std::unique_ptr<Pass> createStripDimsPass() { return std::make_unique<StripDimsPass>(); }

}  // namespace lathe
