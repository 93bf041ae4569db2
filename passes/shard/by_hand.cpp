// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/by_hand.h"

#include <map>

#include "lathe/runtime/error.h"
#include "llvm/Support/GlobPattern.h"
#include "passes/rewrite/locations.h"
#include "passes/rewrite/weight_only.h"
#include "passes/shard/op_cuts.h"

using namespace mlir;

namespace lathe {
namespace {

[[noreturn]] void fail(Operation* says, const std::string& text) {
  throw Error(ErrorCode::InvalidArgument,
              "shard: " + text + "; at " + originText(firstOrigin(says->getLoc())));
}

// Names hold brackets and braces as they are; stars and question marks stand for others.
std::string globOf(StringRef name) {
  std::string text;
  for (char c : name) {
    if (StringRef("[]{}\\").contains(c)) text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

CutsByHand::CutsByHand(ModuleOp module, const Mesh& mesh) : mesh_(mesh) {
  // By the weight's name: its type, and who says how it is cut. The last word counts.
  std::map<std::string, std::pair<RankedTensorType, ShardWeightsOp>> said;
  SmallVector<WeightOp> weights;
  module.walk([&](WeightOp weight) { weights.push_back(weight); });
  for (auto says : module.getOps<ShardWeightsOp>()) {
    const std::string text = globOf(says.getWeights());  // which the pattern points into
    auto glob = llvm::GlobPattern::create(text);
    if (!glob) fail(says, "'" + says.getWeights().str() + "': " + toString(glob.takeError()));
    bool isAny = false;
    for (WeightOp weight : weights) {
      if (!glob->match(weight.getName())) continue;
      isAny = true;
      said[weight.getName().str()] = {tensorType(weight.getY()), says};
    }
    if (!isAny)
      fail(says, "no weight of the graph has a name like '" + says.getWeights().str() + "'");
  }
  for (auto& [name, word] : said) {
    auto [type, says] = word;
    weights_[name] = says.getAxis() ? checked(says, type, int64_t(*says.getAxis()),
                                              *says.getMeshAxis(), "the weight '" + name + "'")
                                    : Cut();
  }
  SmallVector<ShardOp> ofWeights;
  module.walk([&](ShardOp shard) {
    if (isLoadedWeight(shard.getX()))
      ofWeights.push_back(shard);
    else
      (void)of(shard);  // a mistake is told before anything is cut
  });
  for (ShardOp shard : ofWeights) {
    const Cut cut = of(shard);
    if (auto weight = shard.getX().getDefiningOp<WeightOp>())
      weights_[weight.getName()] = cut;
    else
      values_[shard.getX()] = cut;
    shard.getY().replaceAllUsesWith(shard.getX());
    shard.erase();
  }
  for (Operation& op : llvm::make_early_inc_range(*module.getBody()))
    if (isa<MeshOp, ShardWeightsOp>(op)) op.erase();
}

Cut CutsByHand::checked(Operation* says, RankedTensorType type, int64_t axis, StringRef meshAxis,
                        const std::string& what) const {
  if (meshAxis != mesh_.axis)
    fail(says, "the mesh has the axis '" + mesh_.axis + "', got '" + meshAxis.str() + "'");
  const int64_t rank = type.getRank(), fromFront = axis < 0 ? axis + rank : axis;
  if (fromFront < 0 || fromFront >= rank)
    fail(says, what + " is " + shortType(type) + ", which has no axis " + std::to_string(axis));
  if (type.isDynamicDim(fromFront) || type.getDimSize(fromFront) % mesh_.ranks)
    fail(says, "axis " + std::to_string(axis) + " of " + what + ", " + shortType(type) +
                   ", does not divide by " + std::to_string(mesh_.ranks) +
                   " ranks; take another axis or number of ranks");
  return {fromFront, mesh_.ranks};
}

Cut CutsByHand::of(ShardOp op) const {
  return checked(op, tensorType(op.getX()), int64_t(op.getAxis()), op.getMeshAxis(), "the value");
}

std::optional<Cut> CutsByHand::said(Value v) const {
  if (auto it = values_.find(v); it != values_.end()) return it->second;
  auto weight = v.getDefiningOp<WeightOp>();
  auto it = weight ? weights_.find(weight.getName()) : weights_.end();
  return it == weights_.end() ? std::nullopt : std::optional(it->second);
}

bool CutsByHand::isSaidOf(Value v) const {
  AskedOnce<bool> asked;
  return isSaidOf(v, asked);
}
bool CutsByHand::isSaidOf(Value v, AskedOnce<bool>& asked) const {
  return asked.of(v, [&] {
    if (said(v)) return true;
    Operation* op = v.getDefiningOp();
    return op && llvm::any_of(op->getOperands(), [&](Value x) { return isSaidOf(x, asked); });
  });
}

Cut CutsByHand::ofLoaded(Value v) const {
  if ((weights_.empty() && values_.empty()) || !isLoadedWeight(v)) return {};
  AskedOnce<Cut> asked;
  return ofLoaded(v, asked);
}
Cut CutsByHand::ofLoaded(Value v, AskedOnce<Cut>& asked) const {
  return asked.of(v, [&] {
    if (auto cut = said(v)) return *cut;
    Operation* op = v.getDefiningOp();
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      const Cut cut = ofLoaded(op->getOperand(i), asked);
      if (cut.isWhole()) continue;
      const std::optional<OpCuts> cuts = cutsOfOperand(op, i, cut);
      if (cuts && !cuts->isSum) return cuts->results[cast<OpResult>(v).getResultNumber()];
    }
    return Cut();
  });
}

bool CutsByHand::agrees(Value v, const Cut& cut, std::string* why) const {
  if (weights_.empty() && values_.empty()) return true;
  AskedOnce<bool, std::pair<Value, Cut>> asked;
  return agrees(v, cut, why, asked);
}
bool CutsByHand::agrees(Value v, const Cut& cut, std::string* why,
                        AskedOnce<bool, std::pair<Value, Cut>>& asked) const {
  if (auto hand = said(v)) {
    if (*hand == cut) return true;
    auto weight = v.getDefiningOp<WeightOp>();
    if (why)
      *why = (weight ? "the weight '" + weight.getName().str() + "'" : "a value of weights") +
             (hand->isWhole() ? " is kept whole by hand"
                              : " is cut along axis " + std::to_string(hand->axis) + " by hand");
    return false;
  }
  Operation* op = v.getDefiningOp();
  if (!op || op->getNumOperands() == 0) return true;
  return asked.of({v, cut}, [&] {
    const std::optional<OpCuts> cuts = cutsOfResult(op, cast<OpResult>(v).getResultNumber(), cut);
    if (!cuts) return ofLoaded(v).isWhole();
    for (auto [operand, its] : llvm::zip_equal(op->getOperands(), cuts->operands))
      if (isLoadedWeight(operand) && !agrees(operand, its, why, asked)) return false;
    return true;
  });
}

}  // namespace lathe
