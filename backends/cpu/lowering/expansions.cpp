// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/expansions.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

bool isSmallFloat(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isBF16() || element.isF16();
}
bool isNumber(Value v) {
  Attribute a;
  if (!matchPattern(v, m_Constant(&a))) return false;
  if (auto splat = dyn_cast<SplatElementsAttr>(a)) a = splat.getSplatValue<Attribute>();
  auto number = dyn_cast<FloatAttr>(a);
  return number && !number.getValue().isNaN();
}

/// Emits in front of an op; constants once a function, at its start.
class Leaf : public ScalarBuilder {
 public:
  Leaf(OpBuilder& builder, ModuleOp module, const Tier& tier)
      : ScalarBuilder(builder, module.getLoc()), tier_(tier) {}

  void enter(FunctionOpInterface function) {
    entry_ = &function.getFunctionBody().front();
    constants_.clear();
  }
  /// The value in the op's place; null if it stays. `hasErf`, `hasSmallFloats` remember what else
  /// is to be done.
  Value replacement(Operation* op);
  bool hasErf = false, hasSmallFloats = false;

 protected:
  Value constant(TypedAttr value) override {
    Value& known = constants_[value];
    if (!known) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(entry_);
      known = make<arith::ConstantOp>(value);
    }
    return known;
  }

 private:
  Value extreme(Value x, Value y, Compare better);
  Value roundedBf16(Value x);
  Value widened(Value x);
  Value narrowed(Value x, Type type);

  const Tier& tier_;
  Block* entry_ = nullptr;
  DenseMap<Attribute, Value> constants_;
};

Value Leaf::replacement(Operation* op) {
  const bool isWide =
      op->getNumResults() == 1 && getElementTypeOrSelf(op->getResult(0).getType()).isF64();
  return llvm::TypeSwitch<Operation*, Value>(op)
      .Case([&](math::ExpOp exp) {
        return isWide ? Value() : expandExp(*this, exp.getOperand(), tier_);
      })
      .Case([&](math::TanhOp tanh) {
        return isWide ? Value() : expandTanh(*this, tanh.getOperand());
      })
      .Case([&](math::ErfOp) {
        hasErf |= !isWide;
        return Value();
      })
      .Case([&](arith::MaximumFOp max) { return extreme(max.getLhs(), max.getRhs(), Compare::gt); })
      .Case([&](arith::MinimumFOp min) { return extreme(min.getLhs(), min.getRhs(), Compare::lt); })
      .Case([&](arith::DivFOp quotient) {
        quotient.setFastmath(arith::FastMathFlags::none);
        return Value();
      })
      .Case([&](arith::ExtFOp ext) {
        return isSmallFloat(ext.getIn().getType()) ? widened(ext.getIn()) : Value();
      })
      .Case([&](arith::TruncFOp trunc) {
        return isSmallFloat(trunc.getType()) ? narrowed(trunc.getIn(), trunc.getType()) : Value();
      })
      .Default(Value());
}

Value Leaf::extreme(Value x, Value y, Compare better) {
  if (isNumber(y)) std::swap(x, y);
  // One vmaxps: it gives y if either is NaN, so only a NaN in x is left to be seen to.
  Value best = make<arith::SelectOp>(compare(better, x, y), x, y);
  return isNumber(x) ? best : make<arith::SelectOp>(isNan(x), x, best);
}

Value Leaf::roundedBf16(Value x) {
  Type type = x.getType();
  Type i16 = withElementOf(type, b.getI16Type()), i32 = withElementOf(type, b.getI32Type());
  if (tier_.avx512Bf16 && widthOf(type) >= 8)
    return make<LLVM::BitcastOp>(i16,
                                 make<LLVM::FPTruncOp>(withElementOf(type, b.getBF16Type()), x));
  // Nearest even by adding just under half; a NaN must not carry into infinity.
  Value bits = make<arith::BitcastOp>(i32, x);
  Value high = make<arith::ShRUIOp>(bits, integer(i32, 16));
  Value odd = make<arith::AndIOp>(high, integer(i32, 1));
  Value rounded = make<arith::ShRUIOp>(sum(sum(bits, integer(i32, 0x7fff)), odd), integer(i32, 16));
  Value nan = isNan(x), quiet = make<arith::OrIOp>(high, integer(i32, 0x40));
  return make<arith::TruncIOp>(i16, make<arith::SelectOp>(nan, quiet, rounded));
}

Value Leaf::narrowed(Value x, Type type) {
  Type i16 = withElementOf(type, b.getI16Type());
  Value bits = getElementTypeOrSelf(type).isBF16()
                   ? roundedBf16(x)
                   : make<LLVM::BitcastOp>(i16, make<LLVM::FPTruncOp>(type, x));
  return make<arith::BitcastOp>(type, bits);
}

Value Leaf::widened(Value x) {
  Type type = x.getType(), f32 = withElementOf(type, b.getF32Type());
  Value bits = make<arith::BitcastOp>(withElementOf(type, b.getI16Type()), x);
  if (!getElementTypeOrSelf(type).isBF16())
    return make<LLVM::FPExtOp>(f32, make<LLVM::BitcastOp>(type, bits));
  Type i32 = withElementOf(type, b.getI32Type());
  Value high = make<arith::ShLIOp>(make<arith::ExtUIOp>(i32, bits), integer(i32, 16));
  return make<arith::BitcastOp>(f32, high);
}

// Loads, stores, choices and permutations of bf16 and f16 become those of i16. What stays is
// between the conversion of a register, which LLVM's dialect spells, and the bits beside it.
void moveAsWords(ModuleOp kernels) {
  Type i16 = IntegerType::get(kernels.getContext(), 16);
  kernels.walk([&](Operation* op) {
    for (Region& region : op->getRegions())
      for (Block& block : region)
        for (BlockArgument argument : block.getArguments())
          if (isSmallFloat(argument.getType()))
            argument.setType(withElementOf(argument.getType(), i16));
    if (isa<LLVM::FPTruncOp, LLVM::BitcastOp>(op)) return;
    for (Value result : op->getResults())
      if (isSmallFloat(result.getType())) result.setType(withElementOf(result.getType(), i16));
  });
  kernels.walk([&](Operation* op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (!isSmallFloat(constant.getValue().getType())) return;
      if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
        constant.setValueAttr(IntegerAttr::get(i16, number.getValue().bitcastToAPInt()));
      else
        constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).bitcast(i16));
    } else if (auto same = dyn_cast<arith::BitcastOp>(op);
               same && same.getIn().getType() == same.getType()) {
      same.replaceAllUsesWith(same.getIn());
      same.erase();
    }
  });
}

// f32 vectors and scalars: a rational approximation.
LogicalResult expandErf(ModuleOp kernels) {
  RewritePatternSet patterns(kernels.getContext());
  populateMathPolynomialApproximationPatterns(
      patterns, [](StringRef name) { return name == math::ErfOp::getOperationName(); });
  return applyPatternsGreedily(kernels, std::move(patterns));
}

}  // namespace

LogicalResult expandForX86(ModuleOp kernels, const Tier& tier) {
  OpBuilder b(kernels.getContext());
  Leaf leaf(b, kernels, tier);
  for (auto function : llvm::to_vector(kernels.getOps<FunctionOpInterface>())) {
    if (function.isExternal()) continue;
    leaf.enter(function);
    function.walk([&](Operation* op) {
      leaf.hasSmallFloats |= llvm::any_of(op->getResultTypes(), isSmallFloat);
      b.setInsertionPoint(op);
      leaf.loc = op->getLoc();
      if (Value value = leaf.replacement(op)) {
        op->getResult(0).replaceAllUsesWith(value);
        op->erase();
      }
    });
  }
  if (leaf.hasSmallFloats) moveAsWords(kernels);
  return leaf.hasErf ? expandErf(kernels) : success();
}

}  // namespace lathe::cpu
