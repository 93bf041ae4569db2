// SPDX-License-Identifier: Apache-2.0
#include "passes/cost.h"

#include "ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr StringLiteral kNote = "lathe.cost";

template <class... Ops>
bool isAny(OperationName name) {
  return ((name.getTypeID() == TypeID::get<Ops>()) || ...);
}

// How many floating-point operations an op of the dialect is.
enum class Work {
  PerResult,   // one for every element of the result
  PerOperand,  // one for every element that is reduced
  Product,     // two for every product of a contraction
  Decomposed,  // those of the decomposition
  Attention,   // those of the visible scores
  Body,        // those of the region's ops
  Noted,       // what the kernel call says
  None,        // moves, compares or converts
  Declared,    // holds no arithmetic and moves nothing
};

std::optional<Work> workOf(OperationName name) {
  if (isAny<NegOp, AbsOp, SignOp, ExpOp, LogOp, SqrtOp, RsqrtOp, ReciprocalOp, SinOp, CosOp, TanhOp,
            ErfOp, SigmoidOp, FloorOp, CeilOp, RoundOp, AddOp, SubOp, MulOp, DivOp, MaxOp, MinOp,
            PowOp, ModOp>(name))
    return Work::PerResult;
  if (isAny<ReduceSumOp, ReduceMeanOp, ReduceMaxOp, ReduceMinOp, ReduceProdOp, CumSumOp>(name))
    return Work::PerOperand;
  if (isAny<MatmulOp, ConvolutionOp>(name)) return Work::Product;
  if (isAny<AttentionOp>(name)) return Work::Attention;
  if (isAny<RegionOp>(name)) return Work::Body;
  if (isAny<KernelOp>(name)) return Work::Noted;
  if (isAny<ConstantOp, WeightOp, DimOp, StateOp, YieldOp>(name)) return Work::Declared;
  if (isAny<LogicalNotOp, IsNanOp, LogicalAndOp, LogicalOrOp, BitwiseAndOp, BitwiseOrOp,
            BitwiseXorOp, ShiftLeftOp, ShiftRightOp, CompareOp, SelectOp, CastOp, BitcastOp,
            ReduceAnyOp, ReduceAllOp, ArgMaxOp, ArgMinOp, TopKOp, TransposeOp, ReshapeOp,
            BroadcastOp, SliceOp, ConcatOp, PadOp, ReverseOp, IotaOp, GatherOp, UpdateOp,
            RandomBitsOp, PackOp>(name))
    return Work::None;
  if (name.hasInterface<DecomposableOp>()) return Work::Decomposed;
  return std::nullopt;
}

bool isDeclaration(Operation* op) { return workOf(op->getName()) == Work::Declared; }

Type elementOf(Value v) { return tensorType(v).getElementType(); }
bool isReal(Value v) { return isa<FloatType>(elementOf(v)); }

// Weights, states and what was written into states.
bool isHeld(Value v) {
  while (Operation* def = v.getDefiningOp()) {
    auto kernel = dyn_cast<KernelOp>(def);
    if (isa<WeightOp>(def)) return true;
    bool passes = isa<ReshapeOp, UpdateOp, RopeAppendOp>(def) ||
                  (kernel && (kernel.getKind() == "update" || kernel.getKind() == "rope_append"));
    if (!passes) return false;
    v = def->getOperand(0);
  }
  auto argument = cast<BlockArgument>(v);
  auto f = dyn_cast_or_null<func::FuncOp>(argument.getOwner()->getParentOp());
  return f && f.getArgAttr(argument.getArgNumber(), "lathe.state");
}

class Model {
 public:
  explicit Model(const SymbolValues& values) : values_(values) {}

  std::optional<Cost> of(Operation* op) {
    if (isDeclaration(op)) return Cost{};
    if (auto kernel = dyn_cast<KernelOp>(op)) return noted(kernel);
    if (auto region = dyn_cast<RegionOp>(op)) {
      Block& body = region.getBody().front();
      return around(op, body, body.getTerminator()->getOperands());
    }
    if (auto attention = dyn_cast<AttentionOp>(op)) return ofAttention(attention);
    if (op->getName().getDialectNamespace() != "lathe") return std::nullopt;
    // The op alone, or its decomposition, as the body of a kernel.
    Block body;
    IRMapping map;
    for (Value v : op->getOperands())
      if (!map.contains(v)) map.map(v, body.addArgument(v.getType(), op->getLoc()));
    Operation* copy = op->clone(map);
    body.push_back(copy);
    // A packed weight holds the same numbers: the layout changes no arithmetic.
    if (auto linear = dyn_cast<LinearOp>(copy);
        linear && linear.getLayout() == WeightLayout::packed)
      linear.setLayout(WeightLayout::out_in);
    SmallVector<Value> results(copy->getResults());
    if (auto fused = dyn_cast<DecomposableOp>(copy)) {
      OpBuilder b(copy);
      auto made = fused.decompose(b);
      if (failed(made)) return std::nullopt;
      results.assign(made->begin(), made->end());
      copy->erase();
    }
    // Each operand once, in the order of the block's arguments.
    SmallVector<Value> operands;
    for (Value v : op->getOperands())
      if (!llvm::is_contained(operands, v)) operands.push_back(v);
    return around(op, body, results, operands);
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

  DimExpr dim(Value v, int64_t axis) const {
    auto d = dimExprOf(tensorType(v), axis);
    return d ? substitute(*d, values_) : DimExpr::symbol("?");
  }
  DimExpr count(Value v) const {
    DimExpr n = 1;
    for (int64_t i = 0; i < tensorType(v).getRank(); ++i) n = n * dim(v, i);
    return n;
  }
  DimExpr bytes(Value v) const { return count(v) * int64_t(sizeOf(*dtypeOf(elementOf(v)))); }

  // Nothing for an op whose cost is that of others and is not known. An op of the dialect that no
  // rule names counts its bytes alone.
  std::optional<DimExpr> flops(Operation* op) {
    const Work work = workOf(op->getName()).value_or(Work::None);
    Value y = op->getNumResults() ? op->getResult(0) : Value();
    switch (work) {
      case Work::None:
      case Work::Declared:
        return DimExpr(0);
      case Work::PerResult:
        return isReal(y) ? count(y) : DimExpr(0);
      case Work::PerOperand:
        return isReal(y) ? count(op->getOperand(0)) : DimExpr(0);
      case Work::Product:
        if (auto convolution = dyn_cast<ConvolutionOp>(op)) {
          Value w = convolution.getW();
          return DimExpr(2) * count(y) * dim(w, 1) * dim(w, 2) * dim(w, 3);
        } else {
          Value a = cast<MatmulOp>(op).getA();
          return DimExpr(2) * count(y) * dim(a, tensorType(a).getRank() - 1);
        }
      case Work::Decomposed:
      case Work::Attention:
      case Work::Body:
      case Work::Noted:
        break;
    }
    auto cost = of(op);
    return cost ? std::optional(cost->flops) : std::nullopt;
  }

  // How much of a body's value is read: by users that look at a part of it, that part.
  DimExpr readOf(Value v) const {
    DimExpr part;
    for (OpOperand& use : v.getUses()) {
      Operation* user = use.getOwner();
      const bool first = use.getOperandNumber() == 0;
      if (isa<GatherOp, SliceOp>(user) && first)
        part = part + bytes(user->getResult(0));
      else if (isa<ReshapeOp>(user))
        part = part + readOf(user->getResult(0));
      else if (isa<EmbeddingOp>(user) && use.getOperandNumber() == 1)
        part = part + bytes(user->getResult(0));
      else if (!(isa<UpdateOp, RopeAppendOp>(user) && first))
        return bytes(v);
    }
    return part;
  }
  // An update writes its block, a view nothing.
  DimExpr writtenOf(Value v) const {
    Operation* def = v.getDefiningOp();
    if (auto update = dyn_cast_or_null<UpdateOp>(def)) return bytes(update.getValue());
    if (auto append = dyn_cast_or_null<RopeAppendOp>(def)) return bytes(append.getX());
    if (isa_and_nonnull<ReshapeOp>(def)) return writtenOf(def->getOperand(0));
    return def ? bytes(v) : DimExpr(0);
  }

  std::optional<Cost> around(Operation* op, Block& body, ValueRange results) {
    return around(op, body, results, op->getOperands());
  }
  std::optional<Cost> around(Operation* op, Block& body, ValueRange results, ValueRange operands) {
    Cost cost;
    for (Operation& inner : body) {
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
    cost.narrow = isNarrow(op);
    return cost;
  }
  static bool isNarrow(Operation* op) {
    for (Value v : op->getOperands())
      if (isReal(v)) return elementOf(v).getIntOrFloatBitWidth() == 16;
    return false;
  }

  static bool atLeast(const DimExpr& a, const DimExpr& b) { return (a - b).provablyNonNegative(); }

  // Twice the number of scores that are visible in one head, and the keys that any query sees.
  // Query i of s sees the keys before first + i.
  struct Visible {
    DimExpr twicePairs, keys;
  };
  static Visible visible(AttentionOp op, const DimExpr& s, const DimExpr& t) {
    const Visible all{DimExpr(2) * s * t, t};
    if (op.getCausal() == Causal::none) return all;
    const bool topLeft = op.getCausal() == Causal::top_left;
    if (topLeft && !atLeast(t, s))
      return atLeast(s, t) ? Visible{DimExpr(2) * s * t - t * t + t, t} : all;
    if (!topLeft && !(t == s) && atLeast(s, t)) return {t * t + t, t};
    const DimExpr first = topLeft ? DimExpr(1) : t - s + 1, window = int64_t(op.getWindow());
    const DimExpr seen = topLeft ? s : t;
    const Visible whole{s * (DimExpr(2) * first + s - 1), seen};
    if (op.getWindow() == 0 || atLeast(window, first + s - 1)) return whole;
    if (atLeast(first, window)) return {DimExpr(2) * s * window, s + window - 1};
    if (!atLeast(window, first) || !atLeast(first + s - 1, window)) return whole;
    const DimExpr growing = window - first;  // queries that see less than a window
    return {growing * (first + window - 1) + DimExpr(2) * (s - growing) * window, seen};
  }

  Cost ofAttention(AttentionOp op) const {
    Value q = op.getQ(), k = op.getK(), v = op.getV(), y = op.getY();
    const int64_t rank = tensorType(q).getRank();
    const DimExpr s = dim(q, rank - 2), t = dim(k, rank - 2);
    const Visible seen = visible(op, s, t);
    DimExpr rows = 1;  // of heads
    for (int64_t i = 0; i + 2 < rank; ++i) rows = rows * dim(q, i);
    // Two products, and per score the scale, the maximum, a difference, an exponential, the sum
    // and a quotient; a soft cap and a float mask on top. Halves stay whole in pairs.
    int64_t perScore = 6;
    if (!op.getSoftcap().isZero()) perScore += 3;
    if (op.getMask() && isReal(op.getMask())) perScore += 1;
    perScore += perScore % 2;
    const DimExpr half = dim(q, rank - 1) + dim(v, rank - 1) + perScore / 2;
    Cost cost;
    cost.flops = rows * seen.twicePairs * half;
    const auto read = [&](Value operand, const DimExpr& n) {
      cost.read = cost.read + n;
      if (isHeld(operand)) cost.held = cost.held + n;
    };
    for (Value operand : op->getOperands()) {
      DimExpr n = bytes(operand);
      if (operand == k || operand == v)
        n = n.dividedBy(t).value_or(n) * (n.dividedBy(t) ? seen.keys : DimExpr(1));
      read(operand, n);
    }
    cost.written = bytes(y);
    cost.narrow = isNarrow(op);
    return cost;
  }

  const SymbolValues& values_;
};

}  // namespace

bool hasCostRule(OperationName op) { return workOf(op).has_value(); }

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
