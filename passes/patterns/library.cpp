// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/library.h"

#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "passes/patterns/forms.h"

using namespace mlir;

namespace lathe {

PatternLibrary fusionPatterns(MLIRContext* context) {
  context->getOrLoadDialect<LatheDialect>();
  PatternLibrary library;
  addKeepDimsPatterns(library, context);
  addRopePatterns(library, context);
  addAttentionPatterns(library, context);
  addRmsNormPatterns(library, context);
  addLayerNormPatterns(library, context);
  addAdalnPatterns(library, context);
  addGluPatterns(library, context);
  addSoftmaxPatterns(library, context);
  addLinearPatterns(library, context);
  addGroupedLinearPatterns(library, context);
  addEmbeddingPatterns(library, context);
  addPatchifyPatterns(library, context);
  addRowSlicePatterns(library, context);
  addArgmaxPatterns(library, context);
  addPagedAttentionPatterns(library, context);
  addNormRopePatterns(library, context);
  addGatedResidualPatterns(library, context);
  addAddNormPatterns(library, context);
  addNarrowingPatterns(library, context);
  return library;
}

}  // namespace lathe
