// SPDX-License-Identifier: Apache-2.0
#include "passes/locations.h"

#include "llvm/Support/Path.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace lathe {

void addOrigins(Origins& origins, Location location) {
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location l : fused.getLocations()) addOrigins(origins, l);
  } else if (!isa<UnknownLoc>(location)) {
    origins.insert(location);
  }
}

Location fuseOrigins(MLIRContext* context, const Origins& origins, StringRef what) {
  if (origins.empty()) return UnknownLoc::get(context);
  if (origins.size() == 1) return origins.front();
  Attribute metadata = what.empty() ? Attribute() : StringAttr::get(context, what);
  return FusedLoc::get(context, origins.getArrayRef(), metadata);
}

std::string originText(Location location) {
  std::string path, line;
  location->walk([&](Location l) {
    if (auto named = dyn_cast<NameLoc>(l); named && path.empty()) path = named.getName().str();
    if (auto file = dyn_cast<FileLineColLoc>(l); file && line.empty())
      line = llvm::sys::path::filename(file.getFilename().getValue()).str() + ":" +
             std::to_string(file.getLine());
    return WalkResult::advance();
  });
  return path + (path.empty() || line.empty() ? "" : " ") + line;
}

bool hasRecordedOrigin(Location location) {
  if (isa<FileLineColRange>(location)) return true;
  if (auto named = dyn_cast<NameLoc>(location)) return hasRecordedOrigin(named.getChildLoc());
  if (auto fused = dyn_cast<FusedLoc>(location))
    return !fused.getLocations().empty() && llvm::all_of(fused.getLocations(), hasRecordedOrigin);
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return hasRecordedOrigin(call.getCallee()) && hasRecordedOrigin(call.getCaller());
  return false;
}

}  // namespace lathe
