// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/types.h"
#include "lathe/passes/passes.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace lathe {
#define GEN_PASS_DEF_STRIPDIMSPASS
#include "lathe/passes/passes.h.inc"
namespace {

struct StripDimsPass : impl::StripDimsPassBase<StripDimsPass> {
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
}  // namespace lathe
