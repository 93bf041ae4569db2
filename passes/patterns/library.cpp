// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/library.h"

#include <set>

#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "passes/patterns/forms.h"

using namespace mlir;

namespace lathe {

namespace {

PatternLibrary recorded(MLIRContext* context) {
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

// A compilation fuses more than once, a search for a guilty rewrite some dozens of times, and
// recording the library takes as long as fusing a small graph does. Attributes of patterns live in
// their context, so they end with it: a dialect without ops is what a context owns.
class BuiltInFusions final : public Dialect {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BuiltInFusions)
  static constexpr StringLiteral getDialectNamespace() { return "lathe_built_in_fusions"; }
  explicit BuiltInFusions(MLIRContext* context)
      : Dialect(getDialectNamespace(), context, TypeID::get<BuiltInFusions>()),
        library(recorded(context)),
        rewrites(rewritesByPhase(library, context)) {}

  const PatternLibrary library;
  const std::vector<FrozenRewritePatternSet> rewrites;
};

}  // namespace

const PatternLibrary& fusionPatterns(MLIRContext* context) {
  return context->getOrLoadDialect<BuiltInFusions>()->library;
}
const std::vector<FrozenRewritePatternSet>& fusionRewrites(MLIRContext* context) {
  return context->getOrLoadDialect<BuiltInFusions>()->rewrites;
}

std::vector<FrozenRewritePatternSet> rewritesByPhase(const PatternLibrary& library,
                                                     MLIRContext* context) {
  std::set<int> phases{0};
  for (auto& p : library) phases.insert(p->phase());
  std::vector<FrozenRewritePatternSet> sets;
  for (int phase : phases) {
    RewritePatternSet set(context);
    for (auto& p : library)
      if (p->phase() <= phase) set.add(toRewrite(p));
    sets.emplace_back(std::move(set));
  }
  return sets;
}

}  // namespace lathe
