// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/types.h"
#include "lathe/passes/passes.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe {
#define GEN_PASS_DEF_CHECKLOCATIONSPASS
#include "lathe/passes/passes.h.inc"
namespace {

struct CheckLocationsPass : impl::CheckLocationsPassBase<CheckLocationsPass> {
  void runOnOperation() final {
    Operation* first = nullptr;
    int64_t lost = 0;
    getOperation()->walk([&](Operation* op) {
      if (op == getOperation() || hasRecordedOrigin(op->getLoc())) return;
      if (!lost++) first = op;
    });
    if (lost) {
      auto error = first->emitError()
                   << "[L1] " << first->getName()
                   << " has an origin that is no recorded line: " << first->getLoc();
      if (lost > 1)
        error << "; " << lost - 1 << (lost > 2 ? " more ops have" : " more op has") << " none";
      signalPassFailure();
    }
    markAllAnalysesPreserved();
  }
};

}  // namespace
}  // namespace lathe
