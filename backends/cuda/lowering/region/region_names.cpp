// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region/region_names.h"

#include <map>

#include "backends/cuda/lowering/kernel/text_names.h"
#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// What operands are to the op that takes them.
void findRoles(Operation& op, llvm::DenseMap<Value, std::string>& roles) {
  // In the order of the ops' definitions.
  static const std::map<StringRef, std::vector<const char*>> words{
      {"glu", {"gate", "up"}},
      {"rms_norm", {"x", "gain"}},
      {"layer_norm", {"x", "gain", "bias"}},
      {"add_norm", {"x", "residual", "gain", "bias"}},
      {"adaln_modulate", {"x", "shift", "scale"}},
      {"linear", {"x", "weight", "bias", "residual"}},
      {"update", {"cache", "value", "positions"}},
      {"gated_residual", {"x", "gate", "branch"}},
      {"rope", {"x", "cosines", "sines"}},
      {"norm_rope", {"x", "gain", "cosines", "sines"}},
      {"softmax", {"scores", "mask"}},
      {"embedding", {"ids", "table", "positions"}},
      {"gather", {"table", "ids"}},
      {"select", {"condition"}},
      {"pad", {"", "filling"}},
      {"random_bits", {"seed"}}};
  auto known = words.find(op.getName().stripDialect());
  if (known == words.end()) return;
  // Of several optional operands some may be left out.
  auto segments = dyn_cast_or_null<DenseI32ArrayAttr>(
      op.getInherentAttr("operandSegmentSizes").value_or(Attribute()));
  auto operand = op.operand_begin();
  for (auto [i, role] : llvm::enumerate(known->second)) {
    if (operand == op.operand_end()) return;
    if (segments && segments[i] == 0) continue;
    if (*role) roles.try_emplace(*operand, role);
    ++operand;
  }
}

// The last part of the module path: "q_proj" of "blocks.3.attn.q_proj".
std::string pathName(Location location) {
  std::string name;
  location->walk([&](Location l) {
    if (auto named = dyn_cast<NameLoc>(l); named && name.empty())
      name = named.getName().getValue().rsplit('.').second.str();
    return WalkResult::advance();
  });
  // The number of a layer says nothing.
  if (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0]))) name.clear();
  return name;
}

}  // namespace

std::string nameOf(Operation* op) {
  const std::string mnemonic = op->getName().stripDialect().str();
  std::string name = wordFor(mnemonic);
  if (mnemonic == "cast")
    name += "_" + std::string(nameOf(*dtypeOf(tensorType(op->getResult(0)).getElementType())));
  return name.empty() ? mnemonic : name;
}

std::vector<std::string> namesOf(func::FuncOp region) {
  Names taken;
  for (const char* word : {"row", "lane", "c", "t", "i", "place", "warp", "piece"})
    taken.unique(word);
  Block& block = region.getBody().front();
  llvm::DenseMap<Value, std::string> roles;
  for (Operation& op : block) findRoles(op, roles);
  std::vector<std::string> names;
  for (BlockArgument argument : block.getArguments()) {
    std::string name = roles.lookup(argument);
    if (name.empty()) name = pathName(argument.getLoc());
    if (name.empty()) name = tensorType(argument).getRank() == 0 ? "s" : "x";
    names.push_back(taken.unique(name));
  }
  const size_t results = block.getTerminator()->getNumOperands();
  for (size_t i = 0; i < results; ++i)
    names.push_back(taken.unique(results == 1 ? "out" : "out" + std::to_string(i)));
  return names;
}

}  // namespace lathe::cuda
