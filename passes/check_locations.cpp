// SPDX-License-Identifier: Apache-2.0
#include "ir/types.h"
#include "passes/locations.h"
#include "passes/passes.h"

using namespace mlir;

namespace lathe {
namespace {

class CheckLocationsPass : public PassWrapper<CheckLocationsPass, OperationPass<>> {
 public:
  LATHE_PASS(CheckLocationsPass, "lathe-check-locations", "fails if an op lost its origin")
  void runOnOperation() final {
    bool lost = false;
    getOperation()->walk([&](Operation* op) {
      if (op == getOperation() || hasRecordedOrigin(op->getLoc())) return;
      op->emitError() << "[L1] " << op->getName()
                      << " has an origin that is no recorded line: " << op->getLoc();
      lost = true;
    });
    if (lost) signalPassFailure();
    markAllAnalysesPreserved();
  }
};

}  // namespace

std::unique_ptr<Pass> createCheckLocationsPass() { return std::make_unique<CheckLocationsPass>(); }

}  // namespace lathe
