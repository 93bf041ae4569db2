// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/library.h"

#include "ir/ops.h"
#include "ir/types.h"

using namespace mlir;

namespace lathe {

PatternLibrary fusionPatterns(MLIRContext* context) {
  context->getOrLoadDialect<LatheDialect>();
  PatternLibrary library;
  addRopePatterns(library, context);
  addAttentionPatterns(library, context);
  addRmsNormPatterns(library, context);
  addSiluGatePatterns(library, context);
  addSoftmaxPatterns(library, context);
  addLinearPatterns(library, context);
  addEmbeddingPatterns(library, context);
  addNarrowingPatterns(library, context);
  return library;
}

Tensor anyCast(DagPattern& pattern, const Tensor& x, std::source_location at) {
  return pattern.anyAttribute(cast(x, DType::F32, at), "dtype");
}

}  // namespace lathe
