// SPDX-License-Identifier: Apache-2.0
// The cost of every op: the walk over the dialect, and the rules of passes/rewrite/cost.h one by
// one.
#include "passes/rewrite/cost.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "frontend/graph_impl.h"
#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/conformance/cases.h"

namespace lathe {
namespace {

using conformance::OpRow;

// The ops of the only entry point that do something.
std::vector<mlir::Operation*> opsOf(const Graph& g) {
  std::vector<mlir::Operation*> ops;
  for (auto f : g.impl().finished().getOps<mlir::func::FuncOp>())
    for (mlir::Operation& op : f.getBody().front().without_terminator())
      if (!llvm::isa<WeightOp, ConstantOp>(op)) ops.push_back(&op);
  return ops;
}

Cost costOfLast(const Graph& g, const SymbolValues& values = {}) {
  auto cost = costOf(opsOf(g).back(), values);
  EXPECT_TRUE(cost.has_value());
  return cost.value_or(Cost{});
}

struct AttentionGraph {
  Graph g;
  Dim batch = g.dim("batch", 1, 64), seq = g.dim("seq", 1, 1 << 20),
      cache = g.dim("cache", 1, 1 << 20);

  void record(Causal causal, const Dim& queries, const Dim& keys, int64_t window = 0) {
    Tensor q = g.input("q", DType::F32, {batch, 8, queries, 64});
    Tensor k = g.input("k", DType::F32, {batch, 2, keys, 64});
    Tensor v = g.input("v", DType::F32, {batch, 2, keys, 64});
    fused::AttentionOptions options;
    options.scale = 0.125;
    options.causal = causal;
    options.window = window;
    if (causal == Causal::positions) options.positions = g.input("positions", DType::I64, {batch});
    g.output("y", fused::attention(q, k, v, options));
  }
};

TEST(OpCosts, EveryOpThatCanBeRecordedHasOne) {
  for (const OpRow& row : conformance::opTable()) {
    if (row.op == "lathe.weight" || row.op == "lathe.constant") continue;  // no calls
    SCOPED_TRACE(row.op);
    const Graph g = conformance::recordSamples(row.samples(row.dtypes.front()));
    int seen = 0;
    for (mlir::Operation* op : opsOf(g)) {
      auto cost = costOf(op);
      ASSERT_TRUE(cost.has_value()) << op->getName().getStringRef().str();
      const bool view = llvm::isa<ReshapeOp>(op);
      const bool empty = elementCountOf(tensorType(op->getResult(0))) == DimExpr(0);
      EXPECT_EQ(cost->written == DimExpr(0), view || empty) << op->getName().getStringRef().str();
      seen += op->getName().getStringRef() == row.op;
    }
    EXPECT_GT(seen, 0);
  }
}

TEST(OpCosts, EveryRegisteredOpSaysItsCost) {
  auto context = createContext();
  int seen = 0;
  for (mlir::RegisteredOperationName op : context->getRegisteredOperations())
    if (op.getDialectNamespace() == "lathe") {
      const bool says = op.hasInterface<CostedOp>() || op.hasTrait<fact::IsDeclaration>() ||
                        op.getStringRef() == RegionOp::getOperationName() ||
                        op.getStringRef() == KernelOp::getOperationName();
      EXPECT_TRUE(says) << op.getStringRef().str() << " does not say what it costs";
      ++seen;
    }
  EXPECT_GT(seen, 60);
}

TEST(OpCosts, WhatIsUnknownHasNoCost) {
  Graph g;
  g.output("y", exp(g.input("x", DType::F32, {8})));
  mlir::Operation* op = opsOf(g).back();
  op->getContext()->allowUnregisteredDialects();
  mlir::OperationState unknown(op->getLoc(), "lathe.unknown");
  unknown.addOperands(op->getOperands());
  unknown.addTypes(op->getResultTypes());
  mlir::Operation* made = mlir::OpBuilder(op).create(unknown);
  EXPECT_FALSE(costOf(made).has_value());
  made->erase();
}

// A fused op is its decomposition: the same arithmetic, no more traffic than op by op.
TEST(OpCosts, FusedOpsCostWhatTheyDecomposeTo) {
  const SymbolValues sizes{{"rows", 3}, {"cols", 33}};
  for (const OpRow& row : conformance::opTable()) {
    if (!row.fused) continue;
    SCOPED_TRACE(row.op);
    const Graph g = conformance::recordSamples(row.samples(DType::F32));
    for (mlir::Operation* op : opsOf(g)) {
      auto fused = llvm::dyn_cast<DecomposableOp>(op);
      if (!fused) continue;
      const CostValues whole = evaluate(*costOf(op), sizes);
      mlir::Operation* before = op->getPrevNode();
      mlir::OpBuilder b(op);
      ASSERT_TRUE(mlir::succeeded(fused.decompose(b)));
      CostValues parts;
      mlir::Block* block = op->getBlock();
      for (mlir::Operation* made = before ? before->getNextNode() : &block->front(); made != op;
           made = made->getNextNode())
        parts += evaluate(costOf(made).value(), sizes);
      EXPECT_LE(whole.bytes(), parts.bytes());
      if (llvm::isa<AttentionOp>(op))  // computes the visible half of the scores alone
        EXPECT_LE(whole.flops, parts.flops * 1.1);
      else if (llvm::isa<QuantizedLinearOp>(op))  // counts its products alone
        EXPECT_LE(whole.flops, parts.flops);
      else
        EXPECT_EQ(whole.flops, parts.flops);
      EXPECT_GT(whole.flops + whole.written, 0);
    }
  }
}

TEST(OpCosts, LinearReadsItsWeightOnce) {
  Graph g;
  Dim batch = g.dim("batch", 1, 64), seq = g.dim("seq", 1, 4096);
  Tensor x = g.input("x", DType::BF16, {batch, seq, 896});
  g.output("y", fused::linear(x, g.weight("w", DType::BF16, {4864, 896})));
  Cost c = costOfLast(g);
  EXPECT_EQ(c.flops, DimExpr(2 * 896 * 4864) * batch * seq);
  EXPECT_EQ(c.read, DimExpr(2 * 896) * batch * seq + DimExpr(2 * 896 * 4864));
  EXPECT_EQ(c.held, DimExpr(2 * 896 * 4864));
  EXPECT_EQ(c.written, DimExpr(2 * 4864) * batch * seq);
  EXPECT_TRUE(c.narrow);
}

TEST(OpCosts, GroupedRowsReadTheWeightsThatTheyCanChoose) {
  for (int64_t experts : {4, 128}) {
    Graph g;
    const Dim seq = g.dim("seq", 1, 4096);
    const Tensor w = g.weight("w", DType::BF16, {experts, 768, 512});
    const Tensor x = g.input("x", DType::BF16, {seq, 1, 512}),
                 chosen = g.input("chosen", DType::I64, {seq, 8});
    g.output("y", fused::groupedLinear(x, w, chosen));
    const DimExpr weight = 2 * 768 * 512, rows = DimExpr(2 * 512 + 8 * 8);
    const Cost any = costOfLast(g);
    EXPECT_EQ(any.flops, DimExpr(8 * 2 * 768 * 512) * seq);
    EXPECT_EQ(any.read, rows * seq + weight * DimExpr(experts));
    EXPECT_EQ(any.written, DimExpr(8 * 2 * 768) * seq);
    // A token chooses eight of them, if there are so many.
    EXPECT_EQ(costOfLast(g, {{"seq", 1}}).read,
              rows + weight * DimExpr(std::min<int64_t>(experts, 8)));
  }
}

TEST(OpCosts, CausalAttentionComputesHalfOfTheScores) {
  AttentionGraph a;
  a.record(Causal::bottom_right, a.seq, a.seq);
  Cost c = costOfLast(a.g);
  // 2*64 for each product and 6 for the softmax, for seq*(seq+1)/2 scores of 8 heads.
  EXPECT_EQ(c.flops, DimExpr(8 * (64 + 64 + 3)) * a.batch * (a.seq * a.seq + a.seq));
  AttentionGraph whole;
  whole.record(Causal::none, whole.seq, whole.seq);
  EXPECT_EQ(costOfLast(whole.g).flops, DimExpr(8 * 2 * (64 + 64 + 3)) * a.batch * a.seq * a.seq);
}

TEST(OpCosts, PositionsCountAsAFullCache) {
  AttentionGraph a;
  a.record(Causal::positions, 1, a.cache);
  Cost c = costOfLast(a.g);
  EXPECT_EQ(c.flops, DimExpr(8 * 2 * (64 + 64 + 3)) * a.batch * a.cache);
  EXPECT_EQ(c.read,
            DimExpr(2 * 2 * 64 * 4) * a.batch * a.cache + DimExpr(8 * 64 * 4 + 8) * a.batch);
}

TEST(OpCosts, AWindowIsExactOnceSizesAreNumbers) {
  for (auto [seq, window] : {std::pair{100, 7}, {5, 7}, {7, 7}, {8, 7}}) {
    AttentionGraph a;
    a.record(Causal::bottom_right, a.seq, a.seq, window);
    int64_t pairs = 0;
    for (int i = 0; i < seq; ++i) pairs += std::min(i + 1, window);
    Cost c = costOfLast(a.g, {{"seq", seq}, {"batch", 1}});
    EXPECT_EQ(c.flops, DimExpr(8 * 2 * (64 + 64 + 3) * pairs)) << seq;
  }
}

// Counted query by query: the scores that are visible, and the keys that any query sees.
TEST(OpCosts, AttentionCostsTheScoresAndTheKeysThatItSees) {
  for (Causal causal : {Causal::top_left, Causal::bottom_right})
    for (int64_t queries = 1; queries <= 4; ++queries)
      for (int64_t keys = queries; keys <= 9; ++keys)
        for (int64_t window = 0; window <= 5; ++window) {
          SCOPED_TRACE(::testing::Message() << nameOf(causal) << " window " << window << ": "
                                            << queries << " queries, " << keys << " keys");
          const int64_t before = causal == Causal::top_left ? 1 : keys - queries + 1;
          int64_t pairs = 0;
          std::set<int64_t> seen;
          for (int64_t i = 0; i < queries; ++i)
            for (int64_t j = 0; j < before + i; ++j) {
              if (window > 0 && j < before + i - window) continue;
              ++pairs;
              seen.insert(j);
            }
          AttentionGraph a;
          a.record(causal, queries, keys, window);
          const Cost c = costOfLast(a.g, {{"batch", 1}});
          EXPECT_EQ(c.flops, DimExpr(8 * 2 * (64 + 64 + 3) * pairs));
          EXPECT_EQ(c.read, DimExpr(4 * 64 * (8 * queries + 2 * 2 * int64_t(seen.size()))));
        }
}

// Numbers that are added to the scores are an operation each, and a cap three; what hides them is
// none. Halves of a score are counted up.
TEST(OpCosts, MasksOfNumbersAndCapsCostOperations) {
  auto flopsWith = [](std::optional<DType> mask, double softcap) {
    Graph g;
    const Tensor q = g.input("q", DType::F32, {3, 8, 5, 64});
    const Tensor k = g.input("k", DType::F32, {3, 2, 7, 64});
    const Tensor v = g.input("v", DType::F32, {3, 2, 7, 32});
    fused::AttentionOptions options;
    options.softcap = softcap;
    if (mask) options.mask = g.input("mask", *mask, {5, 7});
    g.output("y", fused::attention(q, k, v, options));
    return costOfLast(g).flops;
  };
  auto flops = [](int64_t perScore) {
    return DimExpr(3 * 8 * 5 * 7 * (2 * 64 + 2 * 32 + perScore));
  };
  EXPECT_EQ(flopsWith({}, 0), flops(6));
  EXPECT_EQ(flopsWith(DType::Bool, 0), flops(6));
  EXPECT_EQ(flopsWith(DType::F32, 0), flops(8));
  EXPECT_EQ(flopsWith({}, 30), flops(10));
  EXPECT_EQ(flopsWith(DType::Bool, 30), flops(10));
  EXPECT_EQ(flopsWith(DType::F32, 30), flops(10));
}

// A sequence reads the blocks that its row of the table names, once: not those of all sequences.
TEST(OpCosts, PagedAttentionReadsTheBlocksOfItsSequences) {
  for (int64_t window : {0, 4}) {
    Graph g;
    const Tensor q = g.input("q", DType::F32, {3, 8, 1, 64});
    const Tensor k = g.input("k", DType::F32, {50, 2, 4, 64});
    const Tensor v = g.input("v", DType::F32, {50, 2, 4, 32});
    const Tensor table = g.input("table", DType::I64, {3, 6}), at = g.input("at", DType::I64, {3});
    fused::PagedAttentionOptions options;
    options.window = window;
    g.output("y", fused::pagedAttention(q, k, v, table, at, options));
    const int64_t keys = window ? window : 24;
    const Cost c = costOfLast(g);
    EXPECT_EQ(c.flops, DimExpr(3 * 8 * keys * (2 * 64 + 2 * 32 + 6))) << window;
    EXPECT_EQ(c.read, DimExpr(3 * 8 * 64 * 4 + 3 * 2 * keys * (64 + 32) * 4 + 3 * 6 * 8 + 3 * 8))
        << window;
  }
}

TEST(OpCosts, QueriesThatSeeNoKeyCostNothing) {
  AttentionGraph a;
  a.record(Causal::bottom_right, 10, 4);
  EXPECT_EQ(costOfLast(a.g).flops, DimExpr(8 * (64 + 64 + 3) * (4 * 5)) * a.batch);
}

TEST(OpCosts, AGatherReadsRowsAndNotTheTable) {
  Graph g;
  Dim seq = g.dim("seq", 1, 4096);
  Tensor ids = g.input("ids", DType::I64, {seq});
  g.output("y", fused::embedding(ids, g.weight("table", DType::F32, {32000, 64})));
  Cost c = costOfLast(g);
  EXPECT_EQ(c.flops, DimExpr(0));
  EXPECT_EQ(c.read, DimExpr(8 + 64 * 4) * seq);
  EXPECT_EQ(c.held, DimExpr(64 * 4) * seq);
}

// A state of keys, and what a call writes into it.
struct KeyState {
  Dim batch, cache;
  Tensor value, positions;
};
KeyState keyState(Graph& g) {
  Dim batch = g.dim("batch", 1, 64), cache = g.dim("cache", 1, 4096);
  g.state("k", DType::F32, {batch, 2, cache, 64});
  g.entry("forward");
  return {batch, cache, g.input("value", DType::F32, {batch, 2, 1, 64}),
          g.input("positions", DType::I64, {batch})};
}

// What is read back of a state is held in memory between calls, however it was written into it;
// what was computed from it is not.
TEST(OpCosts, WhatIsReadBackOfAStateIsHeld) {
  enum class Way { Read, Updated, Appended, AppendedWithNorm, Reshaped, Computed };
  for (Way way : {Way::Read, Way::Updated, Way::Appended, Way::AppendedWithNorm, Way::Reshaped,
                  Way::Computed}) {
    Graph g;
    const auto [batch, cache, value, positions] = keyState(g);
    Tensor angles = g.input("angles", DType::F32, {batch, 1, 1, 32});
    Tensor gain = way == Way::AppendedWithNorm ? g.weight("gain", DType::F32, {64}) : Tensor();
    Tensor k = g.readState("k");
    if (way == Way::Updated || way == Way::Reshaped) k = update(k, value, positions, 2);
    if (way == Way::Appended || way == Way::AppendedWithNorm)
      k = fused::ropeAppend(k, value, gain, angles, angles, positions, 2);
    g.writeState("k", k);
    if (way == Way::Reshaped) k = reshape(k, {batch * Dim(2), cache, 64});
    if (way == Way::Computed) k = exp(k);
    g.output("y", reduceMax(k, {-1}));
    const Cost cost = costOfLast(g);
    const DimExpr whole = DimExpr(2 * 64 * 4) * batch * cache;
    EXPECT_EQ(cost.read, whole) << int(way);
    EXPECT_EQ(cost.held, way == Way::Computed ? DimExpr(0) : whole) << int(way);
  }
}

TEST(OpCosts, WhatACallWritesIntoAStateIsHeld) {
  for (const char* kind : {"update", "paged_update", "rope_append", "add"}) {
    Graph g;
    const auto [batch, cache, value, positions] = keyState(g);
    Tensor k = update(g.readState("k"), value, positions, 2);
    g.writeState("k", k);
    g.output("y", reduceMax(k, {-1}));
    std::vector<mlir::Operation*> ops = opsOf(g);
    ASSERT_EQ(ops.size(), 2u);
    mlir::OpBuilder b(ops[0]);
    auto call = KernelOp::create(
        b, ops[0]->getLoc(), ops[0]->getResultTypes(), ops[0]->getOperands(), b.getStringAttr(kind),
        mlir::FlatSymbolRefAttr(), b.getDictionaryAttr({}), mlir::DenseI64ArrayAttr());
    ops[0]->replaceAllUsesWith(call->getResults());
    const DimExpr whole = DimExpr(2 * 64 * 4) * batch * cache;
    EXPECT_EQ(costOf(ops[1])->held, kind == std::string("add") ? DimExpr(0) : whole) << kind;
  }
}

TEST(OpCosts, AnUpdateWritesItsBlockAndAReshapeNothing) {
  Graph g;
  Dim batch = g.dim("batch", 1, 64), cache = g.dim("cache", 1, 4096);
  g.state("k", DType::F32, {batch, 2, cache, 64});
  g.entry("forward");
  Tensor value = g.input("value", DType::F32, {batch, 2, 1, 64});
  Tensor positions = g.input("positions", DType::I64, {batch});
  g.writeState("k", update(g.readState("k"), value, positions, 2));
  g.output("flat", reshape(value, {batch, 128}));
  std::vector<mlir::Operation*> ops = opsOf(g);
  ASSERT_EQ(ops.size(), 2u);
  Cost written = costOf(ops[0]).value(), view = costOf(ops[1]).value();
  EXPECT_EQ(written.read, DimExpr(2 * 64 * 4 + 8) * batch);
  EXPECT_EQ(written.written, DimExpr(2 * 64 * 4) * batch);
  EXPECT_EQ(view.read, DimExpr(0));
  EXPECT_EQ(view.written, DimExpr(0));
}

TEST(OpCosts, AKernelCallKnowsWhatWasNoted) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {8});
  g.output("y", exp(x));
  mlir::Operation* op = opsOf(g).back();
  mlir::OpBuilder b(op);
  auto call = KernelOp::create(b, op->getLoc(), op->getResultTypes(), op->getOperands(),
                               b.getStringAttr("exp"), mlir::FlatSymbolRefAttr(),
                               b.getDictionaryAttr({}), mlir::DenseI64ArrayAttr());
  EXPECT_FALSE(costOf(call).has_value());
  noteCost(call, costOf(op));
  ASSERT_TRUE(costOf(call).has_value());
  EXPECT_EQ(costOf(call)->flops, DimExpr(8));
  EXPECT_EQ(costOf(call)->read, DimExpr(32));
  EXPECT_FALSE(costOf(call)->narrow);
}

TEST(OpCosts, ACallKnowsWhetherItsOperandsAreNarrow) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    Graph g;
    g.output("y", exp(g.input("x", dtype, {8})));
    mlir::Operation* op = opsOf(g).back();
    mlir::OpBuilder b(op);
    auto call = KernelOp::create(b, op->getLoc(), op->getResultTypes(), op->getOperands(),
                                 b.getStringAttr("exp"), mlir::FlatSymbolRefAttr(),
                                 b.getDictionaryAttr({}), mlir::DenseI64ArrayAttr());
    noteCost(call, costOf(op));
    EXPECT_EQ(costOf(op)->narrow, dtype != DType::F32) << nameOf(dtype);
    EXPECT_EQ(costOf(call)->narrow, dtype != DType::F32) << nameOf(dtype);
  }
}

// Of a value that several views look at, the parts add up.
TEST(OpCosts, PartsBehindViewsAddUp) {
  auto context = createContext();
  auto module = parseModule(*context, R"(
    func.func @f(%t: tensor<8x4xf32>) -> tensor<4xf32> {
      %y = lathe.region(%t) : (tensor<8x4xf32>) -> tensor<4xf32> {
      ^bb0(%a: tensor<8x4xf32>):
        %r = lathe.reshape %a to <32> : tensor<8x4xf32>
        %s = lathe.slice %r starts <0> sizes <4> strides [1] : tensor<32xf32>
        %q = lathe.reshape %a to <2, 16> : tensor<8x4xf32>
        %u = lathe.slice %q starts <1, 0> sizes <1, 4> strides [1, 1] : tensor<2x16xf32>
        %v = lathe.reshape %u to <4> : tensor<1x4xf32>
        %z = lathe.add %s, %v : tensor<4xf32>, tensor<4xf32>
        lathe.yield %z : tensor<4xf32>
      }
      return %y : tensor<4xf32>
    })",
                            "test");
  module->walk([&](RegionOp region) {
    auto cost = costOf(region);
    ASSERT_TRUE(cost);
    EXPECT_EQ(cost->read, DimExpr(2 * 4 * 4));
    EXPECT_EQ(cost->written, DimExpr(4 * 4));
  });
}

// What weights are brought into once is no cost of a run.
TEST(OpCosts, LoadingIsNoPartOfTheTotal) {
  auto context = createContext();
  auto module = parseModule(*context, R"(
    func.func @load(%x: tensor<8xf32>) -> tensor<8xf32> {
      %y = lathe.exp %x : tensor<8xf32>
      return %y : tensor<8xf32>
    }
    func.func @forward(%x: tensor<3xf32>) -> tensor<3xf32> {
      %y = lathe.neg %x : tensor<3xf32>
      %z = lathe.abs %y : tensor<3xf32>
      return %z : tensor<3xf32>
    })",
                            "test");
  const Cost total = totalCost(*module);
  EXPECT_EQ(total.read, DimExpr(2 * 3 * 4));
  EXPECT_EQ(total.written, DimExpr(2 * 3 * 4));
}

}  // namespace
}  // namespace lathe
