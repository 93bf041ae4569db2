// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/passes.h"

namespace lathe {

void registerRewritePasses() {
  mlir::registerPass([] { return createCanonicalizePass(); });
  mlir::registerPass([] { return createCsePass(); });
  mlir::registerPass([] { return createDecomposePass(); });
  mlir::registerPass([] { return createFusePass(); });
  mlir::registerPass([] { return createWhyNotPass(); });
  mlir::registerPass([] { return createCheckLocationsPass(); });
  mlir::registerPass([] { return createStripDimsPass(); });
  mlir::registerPass([] { return createFoldNormGainPass(); });
  mlir::registerPass([] { return createMergeLinearsPass(); });
  mlir::registerPass([] { return createChooseWeightLayoutPass(); });
  mlir::registerPass([] { return createHoistWeightsPass(); });
  mlir::registerPass([] { return createFormRegionsPass(); });
}

}  // namespace lathe
