// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/locations.h"

#include "llvm/Support/Path.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "passes/rewrite/asked_once.h"

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

Location firstOrigin(Location location) {
  Origins origins;
  addOrigins(origins, location);
  return origins.empty() ? Location(UnknownLoc::get(location.getContext())) : origins.front();
}

StringRef modulePathOf(Location origin) {
  StringRef path;
  origin->walk([&](Location l) {
    auto named = dyn_cast<NameLoc>(l);
    if (named) path = named.getName();
    return named ? WalkResult::interrupt() : WalkResult::advance();
  });
  return path;
}

static bool liesDeeper(StringRef path, StringRef than) {
  return path.consume_front(than) && (than.empty() ? !path.empty() : path.starts_with("."));
}

std::string originText(Location location, bool column) {
  Origins origins;
  addOrigins(origins, location);
  if (origins.empty()) return "";
  Location origin = origins.front();
  for (Location other : origins)
    if (liesDeeper(modulePathOf(other), modulePathOf(origin))) origin = other;
  std::string path = modulePathOf(origin).str(), line;
  origin->walk([&](Location l) {
    if (auto file = dyn_cast<FileLineColRange>(l); file && line.empty()) {
      line = llvm::sys::path::filename(file.getFilename().getValue()).str() + ":" +
             std::to_string(file.getStartLine());
      if (column) line += ":" + std::to_string(file.getStartColumn());
    }
    return WalkResult::advance();
  });
  return path + (path.empty() || line.empty() ? "" : " ") + line;
}

// Locations of a text may name each other any number of times.
static bool hasRecordedOrigin(Location location, AskedOnce<bool, Attribute>& asked) {
  return asked.of(location, [&] {
    auto has = [&](Location l) { return hasRecordedOrigin(l, asked); };
    if (isa<FileLineColRange>(location)) return true;
    if (auto named = dyn_cast<NameLoc>(location)) return has(named.getChildLoc());
    if (auto fused = dyn_cast<FusedLoc>(location))
      return !fused.getLocations().empty() && llvm::all_of(fused.getLocations(), has);
    if (auto call = dyn_cast<CallSiteLoc>(location))
      return has(call.getCallee()) && has(call.getCaller());
    return false;
  });
}
bool hasRecordedOrigin(Location location) {
  AskedOnce<bool, Attribute> asked;
  return hasRecordedOrigin(location, asked);
}

}  // namespace lathe
