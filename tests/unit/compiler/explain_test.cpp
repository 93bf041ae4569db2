// SPDX-License-Identifier: Apache-2.0
// explain(): programs without code, and the same costs in programs with code.
#include "lathe/inspect/explain.h"

#include <gmock/gmock.h>

#include "lathe/frontend/families/llama.h"
#include "lathe/frontend/nn/nn.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/error.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using ::testing::HasSubstr;

Graph mlp() {
  Graph g;
  Dim seq = g.dim("seq", 1, 512);
  Tensor x = g.input("x", DType::F32, {seq, 64});
  g.output("y", nn::SwiGLU(g, "mlp", 64, 128)(x));
  return g;
}

Cost totalOf(const Program& p) {
  Cost total;
  const CallCosts costs = costsOf(p).at("forward");
  for (const auto& c : costs) total += c.value();
  return total;
}

TEST(Explain, EveryCallHasACostAtEveryStage) {
  const Graph g = mlp();
  for (const char* backend : {"cpu", "reference"})
    for (const char* stage : {"fused", "laid-out", "lowered"}) {
      Program p = explain(g, stage, {}, {.backend = backend});
      EXPECT_EQ(p.metadata.at("stage"), stage);
      EXPECT_FALSE(p.entries.at(0).calls.empty());
      // Three products, and one gate at least: less than one in a hundred of it.
      const double flops = evaluate(totalOf(p).flops, {{"seq", 100}});
      EXPECT_GE(flops, 3 * 2 * 64 * 128 * 100) << backend << " " << stage;
      EXPECT_LE(flops, 3 * 2 * 64 * 128 * 100 * 1.01);
      EXPECT_EQ(evaluate(totalOf(p).held, {{"seq", 100}}), 3 * 64 * 128 * 4);
    }
}

TEST(Explain, NoKernelOfAModelIsWithoutACost) {
  const Graph g = buildLlama(loadLlamaConfig(LATHE_TEST_DATA "/golden/llama_tiny_v5"));
  const Program p = explain(g, "lowered");
  const auto costs = costsOf(p);
  for (const EntryPoint& e : p.entries)
    for (size_t i = 0; i < e.calls.size(); ++i)
      EXPECT_TRUE(costs.at(e.name)[i].has_value()) << e.name << ": " << e.calls[i].kind;
}

TEST(Explain, ADecodeStepReadsEveryWeightOnceAndTheCache) {
  const LlamaConfig c = loadLlamaConfig(LATHE_TEST_DATA "/golden/llama_tiny_v5");
  const Program p = explain(buildLlama(c), "lowered");
  Cost total;
  const CallCosts costs = costsOf(p).at("decode");
  for (const auto& cost : costs) total += cost.value();
  const int64_t width = c.heads * c.headDim, kv = c.kvHeads * c.headDim, d = c.hiddenSize;
  const int64_t weights =
      c.layers * (d * (width + 2 * kv) + width * d + 3 * d * c.intermediateSize) + c.vocabSize * d;
  const int64_t context = 100;
  const CostValues one = evaluate(total, {{"batch", 1}, {"seq", 1}, {"cache", context}});
  const double products = 2. * double(weights) + 4. * double(c.layers * width * context);
  EXPECT_GE(one.flops, products);
  EXPECT_LE(one.flops, products * 1.3) << "the rest is norms, rotations and softmax";
  const double bytes = 4. * double(weights + 2 * c.layers * kv * context);
  EXPECT_GE(one.held, bytes);
  EXPECT_LE(one.held, bytes * 1.05) << "the rest is gains, biases and a row of the embedding";
}

TEST(Explain, ACompiledProgramCarriesTheCostsOfItsStageLowered) {
  const Graph g = mlp();
  const Program compiled = compile(g), explained = explain(g, "lowered");
  EXPECT_EQ(totalOf(compiled).flops, totalOf(explained).flops);
  EXPECT_EQ(totalOf(compiled).read, totalOf(explained).read);
  test::TemporaryFolder folder;
  compiled.save(folder / "mlp.lathe");
  EXPECT_EQ(totalOf(*Program::open(folder / "mlp.lathe")).written, totalOf(compiled).written);
}

TEST(Explain, TheReferenceBackendSumsItsOneCall) {
  Program p = compile(mlp(), {.backend = "reference"});
  ASSERT_EQ(costsOf(p).at("forward").size(), 1u);
  EXPECT_GE(evaluate(totalOf(p).flops, {{"seq", 1}}), 3 * 2 * 64 * 128);
}

TEST(Explain, FusionRemovesTraffic) {
  Graph g;
  Dim seq = g.dim("seq", 1, 512);
  Tensor x = g.input("x", DType::F32, {seq, 64});
  g.output("y", nn::RMSNorm(g, "norm", 64)(x));
  const double fused = evaluate(totalOf(explain(g, "fused")), {{"seq", 512}}).bytes();
  EXPECT_EQ(fused, 2 * 512 * 64 * 4 + 64 * 4) << "x once, y once, the gain once";
}

TEST(Explain, MistakesAreTold) {
  auto errorOf = [](auto fn) {
    try {
      fn();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  const Graph g = mlp();
  EXPECT_THAT(errorOf([&] { explain(g, "recorded"); }),
              HasSubstr("expected the stage fused, laid-out or lowered, got recorded"));
  EXPECT_THAT(errorOf([&] { explain(g, "program"); }),
              HasSubstr("expected the stage fused, laid-out or lowered, got program"));
  EXPECT_THAT(errorOf([&] { explain(g, "fused", {{"seq", 513}}); }),
              HasSubstr("symbol 'seq': expected 1 to 512, got 513"));
  EXPECT_THAT(errorOf([&] { explain(g, "fused", {{"cache", 1}}); }),
              HasSubstr("no symbol 'cache'; the model has seq"));
}

// What is written into a state in place is no second one: neither rows nor blocks of a cache, nor
// rows that are rotated first.
TEST(Explain, StatesAreWrittenInPlaceAtEveryStage) {
  Graph g;
  const Dim batch = g.dim("batch", 1, 4);
  g.state("rows", DType::F32, {batch, 2, 16, 8});
  g.state("blocks", DType::F32, {9, 2, 4, 8});
  const Tensor value = g.input("value", DType::F32, {batch, 2, 1, 8});
  const Tensor table = g.input("table", DType::I64, {batch, 3}),
               at = g.input("at", DType::I64, {batch});
  g.writeState("rows", update(g.readState("rows"), value, at, 2));
  g.writeState("blocks", pagedUpdate(g.readState("blocks"), value, table, at, 2));
  g.state("rotated", DType::F32, {batch, 2, 16, 8});
  const Tensor angles = g.input("angles", DType::F32, {1, 4});
  g.writeState("rotated",
               fused::ropeAppend(g.readState("rotated"), value, {}, angles, angles, at, 2));
  g.output("y", value * 2);
  for (const char* stage : {"fused", "laid-out", "lowered"}) {
    const Program p = explain(g, stage);
    const EntryPoint& e = p.entries.at(0);
    ASSERT_EQ(e.statesIn.size(), 3u) << stage;
    for (size_t i = 0; i < 3; ++i) {
      auto ownerOf = [&](int slot) {
        while (e.slots[size_t(slot)].alias >= 0) slot = e.slots[size_t(slot)].alias;
        return slot;
      };
      EXPECT_EQ(ownerOf(e.statesOut[i].slot), e.statesIn[i].slot) << stage << " " << i;
    }
  }
}

}  // namespace
}  // namespace lathe
