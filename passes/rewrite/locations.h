// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where an op comes from: the set of recorded lines behind its location.
#include <string>

#include "llvm/ADT/SetVector.h"
#include "mlir/IR/Location.h"

namespace lathe {

/// Recorded lines in the order in which they were met, each once. A line keeps its module path.
using Origins = llvm::SmallSetVector<mlir::Location, 8>;

/// Adds the leaves of a location: fused locations are opened, unknown ones left out.
void addOrigins(Origins& origins, mlir::Location location);
/// One location for a set: its only member, or a fused location that carries `what` (the name of
/// the rewrite, may be empty). An empty set gives the unknown location.
mlir::Location fuseOrigins(mlir::MLIRContext* context, const Origins& origins,
                           llvm::StringRef what = {});
/// The first recorded line behind a location, the unknown location if there is none.
mlir::Location firstOrigin(mlir::Location location);
/// The module path of one line: "blocks.3.attn", empty where it was recorded outside of modules.
llvm::StringRef modulePathOf(mlir::Location origin);
/// "blocks.3.attn model.cpp:41" of the first line behind a location, or of one that lies deeper in
/// that one's module: a block's residual sum fused with a layer's product is the layer's.
std::string originText(mlir::Location location, bool column = false);
/// True if every leaf is a line of a file, and there is one.
bool hasRecordedOrigin(mlir::Location location);

}  // namespace lathe
