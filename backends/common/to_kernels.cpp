// SPDX-License-Identifier: Apache-2.0
#include "lathe/backends/to_kernels.h"

#include "lathe/passes/region_ops.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/rewrite/cost.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe {
namespace {

class Converter {
 public:
  Converter(ModuleOp module, const ConfigOf& configOf)
      : module(module), configOf(configOf), b(module.getContext()) {}

  void run() {
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    for (func::FuncOp f : functions)
      for (Operation& op : llvm::make_early_inc_range(f.getBody().front().without_terminator()))
        convert(&op);
  }

 private:
  void convert(Operation* op) {
    if (isa<WeightOp, ConstantOp, ReshapeOp, KernelOp>(op)) return;
    b.setInsertionPoint(op);
    if (auto region = dyn_cast<RegionOp>(op)) return outline(region);
    replace(op, op->getName().stripDialect(), FlatSymbolRefAttr(), configOf(op));
  }

  void replace(Operation* op, StringRef kind, FlatSymbolRefAttr callee,
               ArrayRef<NamedAttribute> config) {
    // Errors of a cache write name its own line, the first, not those of what was fused with it and
    // is a kernel of its own again.
    const Location loc =
        isa<UpdateOp, PagedUpdateOp>(op) ? firstOrigin(op->getLoc()) : op->getLoc();
    auto kernel =
        KernelOp::create(b, loc, op->getResultTypes(), op->getOperands(), b.getStringAttr(kind),
                         callee, b.getDictionaryAttr(config), DenseI64ArrayAttr());
    noteCost(kernel, costOf(op));
    op->replaceAllUsesWith(kernel->getResults());
    op->erase();
  }

  // Every element of the result depends on the same element of an operand of its type.
  static bool isReadAtItsPlace(Operation* op) { return isPointwise(op) || isa<ConstantOp>(op); }

  // Whether what is computed of `v`, up to the result, depends at each place on that place of `v`.
  static bool isReadInPlace(Value v) {
    const auto dims = dimsOf(tensorType(v));
    SmallVector<Value> waiting{v};
    SmallPtrSet<Operation*, 16> seen;
    while (!waiting.empty())
      for (Operation* user : waiting.pop_back_val().getUsers()) {
        if (isa<YieldOp>(user) || !seen.insert(user).second) continue;
        if (!isReadAtItsPlace(user) || user->getNumResults() != 1 ||
            dimsOf(tensorType(user->getResult(0))) != dims)
          return false;
        waiting.push_back(user->getResult(0));
      }
    return true;
  }

  // What may be overwritten: a state by its update, an operand by a pointwise result of its type.
  Attribute reuseOf(RegionOp region) {
    Block& body = region.getBody().front();
    SmallVector<int64_t> operands;
    bool some = false;
    for (Value v : body.getTerminator()->getOperands()) {
      auto update = v.getDefiningOp<UpdateOp>();
      auto state = update ? dyn_cast<BlockArgument>(update.getX()) : BlockArgument();
      some |= bool(state);
      operands.push_back(state ? int64_t(state.getArgNumber()) : -1);
    }
    if (some) return b.getDenseI64ArrayAttr(operands);
    // Where a matrix kernel computes the rest on its way, its other operands are read-only.
    if (operands.size() != 1 || llvm::any_of(body, [](Operation& op) { return hasOwnKernel(&op); }))
      return {};
    for (auto [i, v] : llvm::enumerate(region.getInputs()))
      if (v.getType() == region.getOutputs()[0].getType() &&
          isReadInPlace(body.getArgument(unsigned(i))))
        return b.getI64IntegerAttr(int64_t(i));
    return {};
  }

  void outline(RegionOp region) {
    if (!kernels) {
      OpBuilder at = OpBuilder::atBlockEnd(module.getBody());
      kernels = ModuleOp::create(at, module.getLoc(), "kernels");
    }
    OpBuilder at = OpBuilder::atBlockEnd(kernels.getBody());
    auto f = func::FuncOp::create(
        at, region.getLoc(), "region",
        at.getFunctionType(region.getInputs().getTypes(), region.getOutputs().getTypes()));
    Block* body = f.addEntryBlock();
    IRMapping map;
    map.map(region.getBody().front().getArguments(), body->getArguments());
    at.setInsertionPointToStart(body);
    for (Operation& op : region.getBody().front().without_terminator()) at.clone(op, map);
    SmallVector<Value> results;
    for (Value v : region.getBody().front().getTerminator()->getOperands())
      results.push_back(map.lookup(v));
    func::ReturnOp::create(at, region.getLoc(), results);
    std::string text;
    llvm::raw_string_ostream os(text);
    f.print(os, OpPrintingFlags().useLocalScope());
    std::string& name = names[text];
    if (name.empty()) {
      name = "region_" + std::to_string(names.size() - 1);
      f.setName(name);
    } else {
      f.erase();
    }
    CallAttributes config = configOf(region);
    if (auto reuse = reuseOf(region)) config.push_back(b.getNamedAttr(kReuse, reuse));
    replace(region, "region", FlatSymbolRefAttr::get(b.getContext(), name), config);
  }

  ModuleOp module, kernels;
  const ConfigOf& configOf;
  OpBuilder b;
  std::map<std::string, std::string> names;  // text of a body -> its function
};

}  // namespace

LinearConfig configOf(LinearOp linear) {
  return {.activation = linear.getActivation(),
          .bias = bool(linear.getBias()),
          .residual = bool(linear.getResidual())};
}

CallAttributes attributesOfUpdate(Builder b, const UpdateConfig& config) {
  CallAttributes attributes = attributesOf(b, config);
  attributes.push_back(b.getNamedAttr(kReuse, b.getI64IntegerAttr(0)));
  return attributes;
}

CallAttributes plainConfig(Operation* op) {
  Builder b(op->getContext());
  return TypeSwitch<Operation*, CallAttributes>(op)
      .Case([&](LinearOp linear) { return attributesOf(b, configOf(linear)); })
      .Case([&](QuantizedLinearOp linear) {
        return attributesOf(b, QuantizedLinearConfig{.block = int64_t(linear.getBlock()),
                                                     .activation = linear.getActivation(),
                                                     .zero = bool(linear.getZero()),
                                                     .bias = bool(linear.getBias()),
                                                     .residual = bool(linear.getResidual()),
                                                     .quantizesX = linear.getQuantizesX()});
      })
      .Case([&](GroupedLinearOp grouped) {
        return attributesOf(b, GroupedLinearConfig{.layout = grouped.getLayout()});
      })
      .Case([&](MatmulOp) { return attributesOf(b, MatmulConfig{}); })
      .Case([&](ConvolutionOp convolution) {
        return attributesOf(b, ConvolutionConfig{.strides = convolution.getStrides().vec(),
                                                 .padding = convolution.getPadding().vec()});
      })
      .Case<UpdateOp, PagedUpdateOp>(
          [&](auto update) { return attributesOfUpdate(b, {.axis = int64_t(update.getAxis())}); })
      .Case([&](TopKOp topK) { return attributesOf(b, TopKConfig{int64_t(topK.getK())}); })
      .Case([&](CumSumOp sum) { return attributesOf(b, CumSumConfig{int64_t(sum.getAxis())}); })
      .Case([&](AllReduceOp reduce) {
        CallAttributes attributes = attributesOf(
            b,
            CollectiveConfig{.combine = reduce.getCombine(), .ranks = int64_t(reduce.getRanks())});
        attributes.push_back(b.getNamedAttr(kReuse, b.getI64IntegerAttr(0)));
        return attributes;
      })
      .Case([&](ReduceScatterOp scatter) {
        return attributesOf(b, CollectiveConfig{.combine = scatter.getCombine(),
                                                .axis = int64_t(scatter.getAxis()),
                                                .parts = int64_t(scatter.getRanks()),
                                                .ranks = int64_t(scatter.getRanks())});
      })
      .Case([&](AllToAllOp exchange) {
        return attributesOf(b, CollectiveConfig{.axis = int64_t(exchange.getSplitAxis()),
                                                .parts = int64_t(exchange.getRanks()),
                                                .concat = int64_t(exchange.getConcatAxis()),
                                                .ranks = int64_t(exchange.getRanks())});
      })
      .Case<SendOp, ReceiveOp>([&](auto message) {
        return attributesOf(b, MessageConfig{.stage = int64_t(message.getStage()),
                                             .stages = int64_t(message.getStages()),
                                             .result = message.getResult()});
      })
      .Case<AllGatherOp, AllSliceOp>([&](auto collective) {
        return attributesOf(b, CollectiveConfig{.axis = int64_t(collective.getAxis()),
                                                .parts = int64_t(collective.getParts()),
                                                .ranks = int64_t(collective.getRanks())});
      })
      .Default(CallAttributes());  // the kernel's operands say everything
}

void toKernels(ModuleOp module, const ConfigOf& configOf) { Converter(module, configOf).run(); }

}  // namespace lathe
