// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region/region_names.h"

#include "backends/cuda/lowering/kernel/text_names.h"
#include "lathe/ir/types.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

using Roles = std::vector<std::pair<Value, const char*>>;

Roles rolesIn(Operation* op) {
  return TypeSwitch<Operation*, Roles>(op)
      .Case([](GluOp o) -> Roles { return {{o.getGate(), "gate"}, {o.getUp(), "up"}}; })
      .Case<RmsNormOp>([](auto o) -> Roles { return {{o.getX(), "x"}, {o.getGain(), "gain"}}; })
      .Case([](LayerNormOp o) -> Roles {
        return {{o.getX(), "x"}, {o.getGain(), "gain"}, {o.getBias(), "bias"}};
      })
      .Case([](AddNormOp o) -> Roles {
        return {{o.getX(), "x"},
                {o.getResidual(), "residual"},
                {o.getGain(), "gain"},
                {o.getBias(), "bias"}};
      })
      .Case([](AdalnModulateOp o) -> Roles {
        return {{o.getX(), "x"}, {o.getShift(), "shift"}, {o.getScale(), "scale"}};
      })
      .Case([](LinearOp o) -> Roles {
        return {{o.getX(), "x"},
                {o.getW(), "weight"},
                {o.getBias(), "bias"},
                {o.getResidual(), "residual"}};
      })
      .Case([](UpdateOp o) -> Roles {
        return {{o.getX(), "cache"}, {o.getValue(), "value"}, {o.getPositions(), "positions"}};
      })
      .Case([](GatedResidualOp o) -> Roles {
        return {{o.getX(), "x"}, {o.getGate(), "gate"}, {o.getF(), "branch"}};
      })
      .Case([](RopeOp o) -> Roles {
        return {{o.getX(), "x"}, {o.getCos(), "cosines"}, {o.getSin(), "sines"}};
      })
      .Case([](NormRopeOp o) -> Roles {
        return {
            {o.getX(), "x"}, {o.getGain(), "gain"}, {o.getCos(), "cosines"}, {o.getSin(), "sines"}};
      })
      .Case([](SoftmaxOp o) -> Roles { return {{o.getX(), "scores"}, {o.getMask(), "mask"}}; })
      .Case([](EmbeddingOp o) -> Roles {
        return {{o.getIds(), "ids"}, {o.getTable(), "table"}, {o.getPositions(), "positions"}};
      })
      .Case([](GatherOp o) -> Roles { return {{o.getX(), "table"}, {o.getIndices(), "ids"}}; })
      .Case([](SelectOp o) -> Roles { return {{o.getCondition(), "condition"}}; })
      .Case([](PadOp o) -> Roles { return {{o.getValue(), "filling"}}; })
      .Case([](RandomBitsOp o) -> Roles { return {{o.getSeed(), "seed"}}; })
      .Default([](Operation*) -> Roles { return {}; });
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
  for (Operation& op : block)
    for (auto [value, role] : rolesIn(&op))
      if (value) roles.try_emplace(value, role);
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
