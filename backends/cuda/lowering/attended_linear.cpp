// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/attended_linear.h"

#include <algorithm>
#include <limits>

#include "backends/cuda/lowering/attention/attention_blocks.h"
#include "backends/cuda/lowering/attention/attention_calls.h"
#include "backends/cuda/lowering/kernel/call_facts.h"
#include "backends/cuda/lowering/kernel/kernel_sequence.h"
#include "backends/cuda/lowering/kernel/steps.h"
#include "backends/cuda/lowering/kernel_builder.h"
#include "backends/cuda/lowering/matmul/gemm_choices.h"
#include "backends/cuda/lowering/matmul/matmul_calls.h"
#include "lathe/backends/call_attributes.h"
#include "lathe/passes/region_ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/rewrite/cost.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

constexpr int kWarps = 8, kLeastKeys = 256;
// Deeper heads, beside two batches of weights, do not fit the registers.
constexpr int64_t kMostDepth = 64;

AttentionChoice attentionChoice() {
  AttentionChoice choice{AttentionMethod::Decode, kWarps};
  choice.leastKeys = kLeastKeys;
  return choice;
}

// The blocks of a cluster have a key head each, and their results in this order are the linear op's
// row.
bool canShare(const AttentionKernel& a, int64_t n, int64_t k) {
  const bool isCluster = a.keyHeads == 2 || a.keyHeads == 4 || a.keyHeads == 8;
  const auto keys = a.keys.asConstant();
  return a.blockKeys == 0 && !a.mask && a.queries == DimExpr(1) && isCluster &&
         groupOf(a) <= rowsPerBlock(attentionChoice()) && whyNotTensorCores(a).empty() &&
         std::max(a.depth, a.valueDepth) <= kMostDepth && (!keys || *keys <= kLeastKeys) &&
         a.queryHeads * a.valueDepth == k && a.y.offset == DimExpr(0) &&
         a.y.head == DimExpr(a.valueDepth) && a.y.batch == DimExpr(k) &&
         k * int64_t(sizeOf(a.dtype)) <= sharedBytes(a, attentionChoice()) &&
         k % (16 / int64_t(sizeOf(a.dtype))) == 0 && n % a.keyHeads == 0;
}

// The linear op's only operand that the call does not have: a row for each of the result's.
RankedTensorType rowsOf(KernelOp call, Value w) {
  auto y = tensorType(call.getOutputs()[0]), weight = tensorType(w);
  auto dims = dimsOf(y);
  dims.back() = dimOf(weight, 1);
  return tensorOf(dims, weight.getElementType());
}

class AttendedLinear {
 public:
  AttendedLinear(KernelOp call, const std::string& name) : call(call), name(name) {
    const auto linear = configOf<LinearConfig>(call);
    const auto inputs = call.getInputs();
    const size_t own = 1 + size_t(linear.bias) + size_t(linear.residual);
    attentionInputs = inputs.size() - own;
    OpBuilder b(call.getContext());
    b.setInsertionPointToEnd(&block);
    auto argument = [&](Type type) { return block.addArgument(type, call.getLoc()); };
    SmallVector<Value> first, second;
    for (Value v : inputs.take_front(attentionInputs)) first.push_back(argument(v.getType()));
    auto rows = rowsOf(call, inputs[attentionInputs]);
    second.push_back(argument(rows));
    for (Value v : inputs.drop_front(attentionInputs)) second.push_back(argument(v.getType()));
    auto make = [&](const char* kind, Type result, ArrayRef<Value> operands) {
      return KernelOp::create(b, call.getLoc(), TypeRange(result), operands, b.getStringAttr(kind),
                              FlatSymbolRefAttr(), call.getConfig(), DenseI64ArrayAttr());
    };
    attention = make("attention", rows, first);
    product = make("linear", call.getOutputs()[0].getType(), second);
  }

  KernelSet kernels() {
    KernelSet all = sequence();
    if (std::optional<KernelSet> one = oneKernel()) {
      all.variants.insert(all.variants.begin(), one->variants[0]);
      all.kernels.push_back(std::move(one->kernels[0]));
    }
    return all;
  }

 private:
  KernelSet sequence() {
    auto buffer = [](size_t i) { return Argument{Argument::Kind::Buffer, int(i), 0}; };
    const Argument between{Argument::Kind::Scratch, 1, 0};
    std::vector<SequenceStep> steps(2);
    steps[0].kernels = kernelsOf(attention, name + "_attention");
    for (size_t i = 0; i < attentionInputs; ++i) steps[0].buffers.push_back(buffer(i));
    steps[0].buffers.push_back(between);
    steps[1].kernels = kernelsOf(product, name + "_linear");
    steps[1].buffers.push_back(between);
    for (size_t i = attentionInputs; i <= call.getInputs().size(); ++i)
      steps[1].buffers.push_back(buffer(i));
    Value rows = product.getInputs()[0];
    return sequenceOf(steps,
                      {productOf(dimExprs(rows)) * DimExpr(int64_t(sizeOf(elementOf(rows))))});
  }

  // Nothing where the product of one row is split otherwise than over the columns of as many blocks
  // as run at a time.
  std::optional<KernelSet> oneKernel() {
    AttentionKernel a = attentionOf(attention, name);
    const auto config = configOf<LinearConfig>(call);
    MatmulKernel p = matmulOf(product.getInputs()[0], product.getInputs()[1], name);
    if (!canShare(a, *p.n.asConstant(), *p.k.asConstant())) return std::nullopt;
    const int w = int(attentionInputs), result = int(call.getInputs().size());
    const DType written = elementOf(call.getOutputs()[0]);
    p.a = -1;
    p.b = w;
    p.constantB = config.constantWeight.value_or(false);
    // As the problem of a product alone is known to records.
    MatmulKernel alone = p;
    alone.a = 0;
    auto hooksOf = [&](const MatmulKernel& matmul) {
      return linearHooks(matmul, result, config.activation, config.bias ? w + 1 : -1,
                         config.residual ? result - 1 : -1, written != p.dtype);
    };
    alone.hooks = hooksOf(alone);
    const std::string kernel = name + "_one";
    const MatmulChoice choice = choiceForOneRow(alone, kernel);
    const GemvPlan plan = gemvPlan(alone, {1, *p.n.asConstant(), *p.k.asConstant(), 1}, choice);
    const bool fits = choice.method == MatmulMethod::GemvDot && choice.splits == 1 &&
                      choice.warpsN * choice.warpsK == kWarps && p.constantB &&
                      plan.blocks % a.keyHeads == 0 && plan.blocks <= kGroups * kGroupProcessors;
    if (!fits) return std::nullopt;
    p.hooks = hooksOf(p);
    const std::string linear = p.hooks.definition;
    const AttentionText text = attentionText(a, attentionChoice(), "Attention", p.hooks.parameters);
    // "typedef LinearHooks<..> Hooks;": the base of what this kernel has.
    p.hooks.definition = text.definition + withName(linear, "Linear") +
                         "typedef AttendedHooks<Linear, Attention> Hooks;\n";
    p.hooks.construction = "{" + p.hooks.construction + ", a}";
    const int64_t part = groupOf(a) * a.valueDepth * int64_t(sizeOf(a.dtype));
    p.hooks.clusterInput =
        MatmulHooks::ClusterInput{"lathe_attended_linear.cuh", text.statements, int(a.keyHeads),
                                  sharedBytes(a, attentionChoice()) + part};
    MatmulVariant made = printMatmul(p, choice, 1, kernel);
    made.variant.what = "attention inside, " + made.variant.what;
    made.variant.launches[0].grid[0] = {plan.blocks, 1, 0};
    if (!addConditions(made.variant.when, {{p.m, 0, 1}, {a.keys, 0, kLeastKeys}}))
      return std::nullopt;
    return KernelSet{{std::move(made.text)}, {std::move(made.variant)}};
  }
  static std::string withName(std::string definition, const std::string& hooks) {
    const size_t at = definition.rfind(" Hooks;");
    return definition.replace(at + 1, 5, hooks);
  }

  KernelOp call, attention, product;
  std::string name;
  Block block;  // of the two
  size_t attentionInputs = 0;
};

// What the two cost as one: the rows between them are neither written nor read.
std::optional<Cost> costOfBoth(KernelOp attention, KernelOp linear) {
  auto first = costOf(attention), second = costOf(linear);
  if (!first || !second) return std::nullopt;
  Value rows = attention.getOutputs()[0];
  const DimExpr between = productOf(dimExprs(rows)) * DimExpr(int64_t(sizeOf(elementOf(rows))));
  return Cost{first->flops + second->flops, first->read + second->read - between,
              first->written + second->written - between, first->held + second->held,
              first->narrow || second->narrow};
}

// The linear op that alone reads the attention's result, as its rows.
KernelOp linearBehind(KernelOp attention) {
  Value y = attention.getOutputs()[0];
  while (y.hasOneUse()) {
    Operation* user = *y.getUsers().begin();
    if (auto view = dyn_cast<ReshapeOp>(user)) {
      y = view.getY();
      continue;
    }
    auto linear = dyn_cast<KernelOp>(user);
    const bool isLinear = linear && linear.getKind() == "linear" && linear.getInputs()[0] == y;
    return isLinear ? linear : KernelOp();
  }
  return {};
}

}  // namespace

KernelSet attendedLinearKernels(KernelOp call, const std::string& name) {
  return AttendedLinear(call, name).kernels();
}

void joinAttention(ModuleOp module) {
  for (auto f : module.getOps<func::FuncOp>()) {
    if (f.isExternal()) continue;
    SmallVector<KernelOp> attentions;
    for (KernelOp call : f.getOps<KernelOp>())
      if (call.getKind() == "attention") attentions.push_back(call);
    for (KernelOp attention : attentions) {
      KernelOp linear = linearBehind(attention);
      if (!linear) continue;
      auto w = tensorType(linear.getInputs()[1]);
      if (!w.hasStaticShape() ||
          w.getElementType() != tensorType(attention.getInputs()[0]).getElementType() ||
          !canShare(attentionOf(attention, ""), w.getDimSize(0), w.getDimSize(1)))
        continue;
      // Where the linear op stands everything is there.
      OpBuilder b(linear);
      SmallVector<Value> inputs(attention.getInputs());
      llvm::append_range(inputs, linear.getInputs().drop_front());
      NamedAttrList config(attention.getConfig());
      config.append(linear.getConfig().getValue());
      auto joined = KernelOp::create(b, b.getFusedLoc({attention.getLoc(), linear.getLoc()}),
                                     linear->getResultTypes(), inputs,
                                     b.getStringAttr(kAttendedLinear), FlatSymbolRefAttr(),
                                     config.getDictionary(b.getContext()), DenseI64ArrayAttr());
      noteCost(joined, costOfBoth(attention, linear));
      SmallVector<Operation*> dead{linear};
      for (Value v = linear.getInputs()[0]; v != attention.getOutputs()[0];) {
        Operation* view = v.getDefiningOp();
        dead.push_back(view);
        v = view->getOperand(0);
      }
      dead.push_back(attention);
      linear->replaceAllUsesWith(joined->getResults());
      for (Operation* op : dead) op->erase();
    }
  }
}

}  // namespace lathe::cuda
