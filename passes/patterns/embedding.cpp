// SPDX-License-Identifier: Apache-2.0
//
//   weight ─ (cast) ── gather axis 0 ──        embedding(ids, table)
//   ids ───────────────┘
#include "ir/ops.h"
#include "ir/types.h"
#include "passes/match.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {

void addEmbeddingPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "embedding", [](DagPattern& p) {
    Tensor ids = p.any();
    Tensor table = p.where(p.any(), "a weight matrix",
                           [](Value v) { return isWeight(v) && tensorType(v).getRank() == 2; });
    p.root(gather(table, ids, 0));
    p.replaceWith(fused::embedding(ids, table));
  });
}

}  // namespace lathe
