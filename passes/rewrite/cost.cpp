// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/cost.h"

#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr StringLiteral kNote = "lathe.cost";

bool isDeclaration(Operation* op) { return op->hasTrait<fact::IsDeclaration>(); }

Type elementOf(Value v) { return tensorType(v).getElementType(); }
bool isReal(Value v) { return isa<FloatType>(elementOf(v)); }

// Weights, states and what was written into states.
bool isHeld(Value v) {
  while (Operation* def = v.getDefiningOp()) {
    auto kernel = dyn_cast<KernelOp>(def);
    if (isa<WeightOp>(def)) return true;
    bool passes = isa<ReshapeOp, UpdateOp, PagedUpdateOp, RopeAppendOp>(def) ||
                  (kernel && (kernel.getKind() == "update" || kernel.getKind() == "paged_update" ||
                              kernel.getKind() == "rope_append"));
    if (!passes) return false;
    v = def->getOperand(0);
  }
  auto argument = cast<BlockArgument>(v);
  auto f = dyn_cast_or_null<func::FuncOp>(argument.getOwner()->getParentOp());
  return f && f.getArgAttr(argument.getArgNumber(), "lathe.state");
}

class Model {
 public:
  explicit Model(const SymbolValues& values) : sizes_(values) {}

  std::optional<Cost> of(Operation* op) {
    if (isDeclaration(op)) return Cost{};
    if (auto kernel = dyn_cast<KernelOp>(op)) return noted(kernel);
    if (auto function = dyn_cast<func::FuncOp>(op)) {
      Block& body = function.getBody().front();
      return around(body, body.getTerminator()->getOperands(), body.getArguments());
    }
    if (auto region = dyn_cast<RegionOp>(op)) {
      Block& body = region.getBody().front();
      return around(body, body.getTerminator()->getOperands(), op->getOperands());
    }
    if (!isa<CostedOp>(op)) return std::nullopt;
    // The op alone, or its decomposition, as the body of a kernel.
    Block body;
    IRMapping map;
    SmallVector<Value> operands;  // each once, in the order of the block's arguments
    for (Value v : op->getOperands())
      if (!map.contains(v)) {
        map.map(v, body.addArgument(v.getType(), op->getLoc()));
        operands.push_back(v);
      }
    Operation* copy = op->clone(map);
    body.push_back(copy);
    // A packed weight holds the same numbers: the layout changes no arithmetic.
    if (auto linear = dyn_cast<LinearOp>(copy);
        linear && linear.getLayout() == WeightLayout::packed)
      linear.setLayout(WeightLayout::out_in);
    SmallVector<Value> results(copy->getResults());
    if (auto fused = dyn_cast<DecomposableOp>(copy); fused && !ownFlops(copy)) {
      OpBuilder b(copy);
      auto made = fused.decompose(b);
      if (failed(made)) return std::nullopt;
      results.assign(made->begin(), made->end());
      copy->erase();
    }
    return around(body, results, operands);
  }

 private:
  static std::optional<Cost> noted(KernelOp op) {
    auto note = op->getAttrOfType<DictionaryAttr>(kNote);
    if (!note) return std::nullopt;
    auto item = [&](StringRef key) {
      auto text = note.getAs<StringAttr>(key);
      auto e = text ? DimExpr::parse(text.getValue().str()) : std::nullopt;
      return e.value_or(DimExpr(0));
    };
    return Cost{item("flops"), item("read"), item("written"), item("held"),
                note.contains("narrow")};
  }

  std::optional<DimExpr> ownFlops(Operation* op) {
    auto costed = dyn_cast<CostedOp>(op);
    return costed ? costed.flops(sizes_) : std::nullopt;
  }
  // Nothing for an op whose cost is that of others and is not known.
  std::optional<DimExpr> flops(Operation* op) {
    if (auto own = ownFlops(op)) return own;
    auto cost = of(op);
    return cost ? std::optional(cost->flops) : std::nullopt;
  }

  DimExpr bytes(Value v, const DimExpr& elements) const {
    return bytesOf(*dtypeOf(elementOf(v)), elements);
  }
  // How much of a body's value is read: by users that look at a part of it, that part.
  DimExpr readOf(Value v) {
    DimExpr part;
    for (OpOperand& use : v.getUses()) {
      Operation* user = use.getOwner();
      if (isa<ReshapeOp>(user)) {
        part = part + readOf(user->getResult(0));
        continue;
      }
      auto costed = dyn_cast<CostedOp>(user);
      auto elements = costed ? costed.elementsRead(use.getOperandNumber(), sizes_) : std::nullopt;
      if (!elements) return sizes_.bytes(v);
      part = part + bytes(v, *elements);
    }
    return part;
  }
  // An update writes its block, a view nothing.
  DimExpr writtenOf(Value v) {
    Operation* def = v.getDefiningOp();
    if (!def) return DimExpr(0);
    if (isa<ReshapeOp>(def)) return writtenOf(def->getOperand(0));
    auto costed = dyn_cast<CostedOp>(def);
    auto elements = costed ? costed.elementsWritten(sizes_) : std::nullopt;
    return elements ? bytes(v, *elements) : sizes_.bytes(v);
  }

  std::optional<Cost> around(Block& body, ValueRange results, ValueRange operands) {
    Cost cost;
    for (Operation& inner : body) {
      if (inner.hasTrait<OpTrait::IsTerminator>()) continue;
      auto n = flops(&inner);
      if (!n) return std::nullopt;
      cost.flops = cost.flops + *n;
    }
    for (auto [argument, operand] : llvm::zip(body.getArguments(), operands)) {
      const DimExpr n = readOf(argument);
      cost.read = cost.read + n;
      if (isHeld(operand)) cost.held = cost.held + n;
    }
    for (Value v : results) cost.written = cost.written + writtenOf(v);
    auto real = llvm::find_if(operands, isReal);
    cost.narrow = real != operands.end() && elementOf(*real).getIntOrFloatBitWidth() == 16;
    return cost;
  }

  Sizes sizes_;
};

}  // namespace

std::optional<Cost> costOf(Operation* op, const SymbolValues& values) {
  return Model(values).of(op);
}

void noteCost(Operation* kernel, const std::optional<Cost>& cost) {
  if (!cost) return;
  Builder b(kernel->getContext());
  SmallVector<NamedAttribute> items;
  auto item = [&](StringRef key, const DimExpr& e) {
    items.push_back(b.getNamedAttr(key, b.getStringAttr(e.text())));
  };
  item("flops", cost->flops);
  item("read", cost->read);
  item("written", cost->written);
  item("held", cost->held);
  if (cost->narrow) items.push_back(b.getNamedAttr("narrow", b.getUnitAttr()));
  kernel->setAttr(kNote, b.getDictionaryAttr(items));
}

Cost totalCost(ModuleOp module) {
  Cost total;
  for (auto f : module.getOps<func::FuncOp>()) {
    if (f.isExternal() || f.getName() == "load") continue;
    for (Operation& op : f.getBody().front().without_terminator())
      if (auto cost = costOf(&op)) total += *cost;
  }
  return total;
}

}  // namespace lathe
