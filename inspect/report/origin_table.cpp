// SPDX-License-Identifier: Apache-2.0
#include "inspect/report/origin_table.h"

#include "inspect/report/json_text.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe {

unsigned OriginTable::originOf(Location leaf) {
  auto [known, isNew] = originIds_.try_emplace(leaf, unsigned(origins_.size()));
  if (!isNew) return known->second;
  Origin origin;
  std::string file;
  leaf->walk([&](Location l) {
    if (auto named = dyn_cast<NameLoc>(l); named && origin.path.empty())
      origin.path = named.getName().str();
    if (auto at = dyn_cast<FileLineColLoc>(l); at && file.empty()) {
      file = at.getFilename().str();
      origin.line = at.getLine();
      origin.column = at.getColumn();
    }
    return WalkResult::advance();
  });
  auto [id, isNewFile] = fileIds_.try_emplace(file, unsigned(files_.size()));
  if (isNewFile) files_.push_back(file);
  origin.file = id->second;
  origins_.push_back(std::move(origin));
  return unsigned(origins_.size()) - 1;
}

unsigned OriginTable::setOf(Location location) {
  if (auto known = setIds_.find(location); known != setIds_.end()) return known->second;
  Origins leaves;
  addOrigins(leaves, location);
  std::vector<unsigned> members;
  for (Location leaf : leaves) members.push_back(originOf(leaf));
  auto [set, isNew] = setsByContent_.try_emplace(members, unsigned(sets_.size()));
  if (isNew) sets_.push_back(members);
  setIds_[location] = set->second;
  return set->second;
}

void OriginTable::write(llvm::json::OStream& out) const {
  out.attributeArray("files", [&] {
    for (const std::string& file : files_) out.value(jsonText(file));
  });
  out.attributeArray("origins", [&] {
    for (const Origin& o : origins_)
      out.array([&] {
        out.value(o.file);
        out.value(o.line);
        out.value(o.column);
        out.value(jsonText(o.path));
      });
  });
  out.attributeArray("sets", [&] {
    for (const auto& set : sets_)
      out.array([&] {
        for (unsigned id : set) out.value(id);
      });
  });
}

}  // namespace lathe
