// SPDX-License-Identifier: Apache-2.0
// Ranks of the backend cuda, whose kernels run on this CPU: their collectives go through NCCL, of
// which a mock joins memory of the host, or without it through what joins the ranks themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "lathe/frontend/compile.h"
#include "tests/cuda_mocks/mock_library.h"
#include "tests/unit/compiler/ranks_runs.h"

namespace lathe {
namespace {

using namespace ranks;
using ::testing::HasSubstr;

// With and without NCCL.
class CudaRanks : public ::testing::TestWithParam<bool> {
 protected:
  CudaRanks() {
    if (GetParam()) nccl_.emplace("LATHE_NCCL", test::mockPath("mock_nccl"));
  }
  static Arrays run(const Graph& g, const Arrays& inputs, const Mesh& mesh,
                    const WeightSource& weights = {}) {
    return runAsThreads(g, int(mesh.ranks), inputs, mesh, weights, {.backend = "cuda"}, "host");
  }
  static Arrays runOnReference(const Graph& g, const Arrays& inputs) {
    return runAlone(compile(g, {.backend = "reference", .backendOptions = {.float64 = true}}),
                    inputs);
  }

  std::optional<test::Variable> nccl_;
};
INSTANTIATE_TEST_SUITE_P(All, CudaRanks, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Nccl" : "OnTheHost"; });

TEST_P(CudaRanks, TheyComputeWhatOneDoes) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    Mlps m(5, dtype);
    m.g.output("y", m.y);
    const Arrays in{{"x", numbers(dtype, {5, 16})}};
    const Arrays whole = runOnReference(m.g, in);
    for (int64_t count : {2, 4})
      EXPECT_LE(apart(run(m.g, in, {.ranks = count}), whole), dtype == DType::F32 ? 1e-5 : 0.06)
          << count << " ranks in " << nameOf(dtype);
  }
}

TEST_P(CudaRanks, StagesOfAPipelineComputeWhatOneDoes) {
  Mlps m(5);
  m.g.output("y", m.y);
  const Arrays in{{"x", numbers(DType::F32, {5, 16})}};
  const Arrays whole = runOnReference(m.g, in);
  EXPECT_LE(apart(run(m.g, in, {.ranks = 2, .stages = 2}), whole), 1e-5);
  EXPECT_LE(apart(run(m.g, in, {.ranks = 3, .stages = 3}), whole), 1e-5);
  const Mesh both{.ranks = 4, .stages = 2};
  if (GetParam())  // a GPU is in one connection of NCCL
    expectIn(errorOf([&] {
               auto ends = threadRanks(4, 60s);
               auto program = std::make_shared<const Program>(
                   compile(m.g, {.backend = "cuda", .pipeline = {.mesh = both}}));
               std::vector<std::thread> others;
               for (int r = 1; r < 4; ++r)
                 others.emplace_back([&, end = ends[size_t(r)]] {
                   errorOf([&] { Session(program, {.device = "host", .ranks = end}); });
                 });
               std::string said =
                   errorOf([&] { Session(program, {.device = "host", .ranks = ends[0]}); });
               for (std::thread& t : others) t.join();
               throw Error(ErrorCode::Io, said);
             }),
             "on GPUs a stage of a pipeline has one rank");
  else
    EXPECT_LE(apart(run(m.g, in, both), whole), 1e-5);
}

TEST_P(CudaRanks, SharesOfRowsAreScatteredAndGathered) {
  Mlps m(8);
  m.g.output("y", m.y);
  const Arrays in{{"x", numbers(DType::F32, {8, 16})}};
  EXPECT_LE(apart(run(m.g, in, {.ranks = 2, .splitRows = true}), runOnReference(m.g, in)), 1e-5);
}

// Of any number: some ranks have fewer, or padding alone.
TEST_P(CudaRanks, SharesOfRowsThatDoNotDivideArePadded) {
  for (const Dims& front : {Dims{}, Dims{2}}) {
    Graph g;
    Dims shape = front;
    shape.push_back(g.dim("rows", 1, 64));
    shape.push_back(16);
    Tensor x = g.input("x", DType::F32, shape);
    g.output("y", nn::RMSNorm(g, "norm", 16)(x + nn::SwiGLU(g, "mlp", 16, 24)(x)));
    std::vector<Arrays> in;
    for (int64_t rows : {1, 5, 8, 5}) {
      Shape numbered = front.empty() ? Shape{rows, 16} : Shape{2, rows, 16};
      in.push_back({{"x", numbers(DType::F32, numbered)}});
    }
    const std::vector<Arrays> whole =
        runsAlone(compile(g, {.backend = "reference", .backendOptions = {.float64 = true}}), in);
    const std::vector<Arrays> got =
        runsAsThreads(g, 4, in, {.ranks = 4, .splitRows = true}, {}, {.backend = "cuda"}, "host");
    for (size_t i = 0; i < in.size(); ++i) EXPECT_LE(apart(got[i], whole[i]), 1e-5) << i;
  }
}

TEST_P(CudaRanks, PiecesAlongAnotherAxisAreExchanged) {
  for (auto [from, to] : {std::pair(0, 1), {1, 0}, {1, 2}}) {
    Graph g;
    Tensor x = shard(g.input("x", DType::F32, {4, 8, 12}), from);
    g.output("y", shard(exp(x), to) * 2.0);
    ASSERT_EQ(occurrences(sharded(g, {.ranks = 4}), "lathe.all_to_all"), 1);
    const Arrays in{{"x", numbers(DType::F32, {4, 8, 12})}};
    for (int64_t count : {2, 4})
      EXPECT_LE(apart(run(g, in, {.ranks = count}), runOnReference(g, in)), 1e-5) << count;
  }
}

// Of experts, too: few rows, and as many as tiles are made for.
TEST_P(CudaRanks, SumsOfExpertsAreRoundedOnceBehindThem) {
  for (DType dtype : {DType::BF16, DType::F16, DType::F32})
    for (int64_t rows : {1, 70}) {
      Graph g;
      const Tensor x = g.input("x", dtype, {rows, 1, 16}),
                   ids = g.input("ids", DType::I64, {rows, 2});
      const Tensor h = fused::groupedLinear(x, g.weight("in", dtype, {2, 16, 16}), ids);
      g.output("y", fused::groupedLinear(h, g.weight("out", dtype, {2, 8, 16}), ids));
      const double large = dtype == DType::F16 ? 2048 : 256;
      const WeightSource weights = [=](const std::string& name) {
        Array w(dtype, name == "in" ? Shape{2, 16, 16} : Shape{2, 8, 16});
        for (int64_t i = 0; i < w.size(); ++i) {
          const int64_t row = i / 16 % 16, column = i % 16;
          const double out = column == 0 ? large : column == 1 ? 1 : column == 8 ? -large : 0;
          w.set(i, name == "out" ? out : double(row == column));
        }
        return w;
      };
      Arrays inputs{{"x", Array(dtype, {rows, 1, 16})}, {"ids", Array(DType::I64, {rows, 2})}};
      for (int64_t i = 0; i < rows * 16; ++i) inputs.at("x").set(i, 1);
      for (int64_t i = 0; i < rows * 2; ++i) inputs.at("ids").set(i, double(i % 2));
      const std::string lowered =
          irAt(g, "lowered", {.backend = "cuda", .pipeline = {.mesh = {.ranks = 2}}});
      EXPECT_EQ(occurrences(lowered, "lathe.kernel \"grouped_linear\""), 2) << lowered;
      const Arrays sums = run(g, inputs, {.ranks = 2}, weights);
      for (int64_t i = 0; i < rows * 2 * 8; ++i)
        ASSERT_EQ(sums.at("y").at(i), 1) << i << " of " << rows << " in " << nameOf(dtype);
    }
}

// 257 has no bf16 of its own: the addends are f32 until they are summed.
TEST_P(CudaRanks, SumsOfBf16AreRoundedOnceBehindThem) {
  for (int64_t rows : {1, 3, 40, 150}) {
    Graph g;
    Tensor x = g.input("x", DType::BF16, {rows, 16});
    Tensor h = fused::linear(x, g.weight("in", DType::BF16, {16, 16}));
    g.output("y", fused::linear(h, g.weight("out", DType::BF16, {8, 16})));
    // What one rank adds is 257, and the other -256.
    const WeightSource weights = [](const std::string& name) {
      Array w(DType::BF16, name == "in" ? Shape{16, 16} : Shape{8, 16});
      for (int64_t i = 0; i < w.size(); ++i) {
        const int64_t row = i / 16, column = i % 16;
        const double out = column == 0 ? 256 : column == 1 ? 1 : column == 8 ? -256 : 0;
        w.set(i, name == "out" ? out : double(row == column));
      }
      return w;
    };
    Array ones(DType::BF16, {rows, 16});
    for (int64_t i = 0; i < ones.size(); ++i) ones.set(i, 1);
    expectIn(sharded(g, {.ranks = 2}), "unrounded true");
    // And on the backend it is one kernel still.
    const std::string lowered =
        irAt(g, "lowered", {.backend = "cuda", .pipeline = {.mesh = {.ranks = 2}}});
    EXPECT_EQ(occurrences(lowered, "lathe.kernel \"linear\""), 2) << lowered;
    const Arrays sums = run(g, {{"x", ones}}, {.ranks = 2}, weights);
    for (int64_t i = 0; i < rows * 8; ++i) ASSERT_EQ(sums.at("y").at(i), 1) << i << " of " << rows;
  }
}

Graph languageModel() {
  Graph g;
  // Room for what is run: kernels for more rows are not made.
  Dim batch = g.dim("batch", 1, 3), cache = g.dim("cache", 1, 64), seq = g.dim("seq", 1, 4);
  nn::TransformerLM model(g, "",
                          {.vocabSize = 32,
                           .dModel = 24,
                           .dHidden = 48,
                           .layers = 1,
                           .heads = 6,
                           .kvHeads = 2,
                           .maxPositions = 64});
  model.declareCache(batch, cache);
  for (auto [entry, length] : {std::pair("prefill", seq), std::pair("decode", Dim(1))}) {
    g.entry(entry);
    Tensor ids = g.input("ids", DType::I64, {batch, length});
    Tensor positions = g.input("positions", DType::I64, {batch});
    g.output("logits", model.step(ids, positions));
  }
  return g;
}

// The logits of a prompt of three rows, and of steps behind it: the first is launched, the second
// recorded, and the others are replays.
std::vector<Arrays> textOf(Session& session) {
  session.bindRandomWeights(7);
  session.setSymbol("cache", 16);
  auto inputs = [](int64_t length, int64_t position) {
    Array ids(DType::I64, {3, length}), positions(DType::I64, {3});
    for (int64_t i = 0; i < ids.size(); ++i) ids.set(i, double((i * 7 + position) % 32));
    for (int64_t i = 0; i < 3; ++i) positions.set(i, double(position));
    return Arrays{{"ids", ids}, {"positions", positions}};
  };
  std::vector<Arrays> all;
  auto run = [&](const char* entry, int64_t length, int64_t position) {
    all.emplace_back();
    for (auto& [name, array] : session.run(entry, inputs(length, position)))
      all.back()[name] = array.clone();
  };
  run("prefill", 4, 0);
  for (int64_t step = 0; step < 5; ++step) run("decode", 1, 4 + step);
  return all;
}

TEST_P(CudaRanks, StepsAreReplayedWithTheirCollectives) {
  const Graph g = languageModel();
  Session reference(compile(g, {.backend = "reference", .backendOptions = {.float64 = true}}));
  const std::vector<Arrays> whole = textOf(reference);
  auto program = std::make_shared<const Program>(
      compile(g, {.backend = "cuda", .pipeline = {.mesh = {.ranks = 2}}}));
  auto ends = threadRanks(2, 60s);
  std::thread other([&] {
    Session session(program, {.device = "host", .ranks = ends[1]});
    session.bindRandomWeights(7);
    session.serve();
  });
  {
    Session session(program, {.device = "host", .ranks = ends[0]});
    EXPECT_THAT(session.device().report(),
                ::testing::Contains(HasSubstr(GetParam() ? "collectives: NCCL 2.28.9"
                                                         : "collectives: on the host")));
    const std::vector<Arrays> got = textOf(session);
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_LE(apart(got[i], whole[i]), 1e-4) << i;
  }
  other.join();
}

// Found by the device, behind the last collective: the other rank waits in the next run's.
TEST_P(CudaRanks, AnIdOutsideOfTheTableEndsAll) {
  auto program = std::make_shared<const Program>(
      compile(languageModel(), {.backend = "cuda", .pipeline = {.mesh = {.ranks = 2}}}));
  auto ends = threadRanks(2, 60s);
  std::string said;
  std::thread other([&] {
    Session session(program, {.device = "host", .ranks = ends[1]});
    session.bindRandomWeights(7);
    said = errorOf([&] { session.serve(); });
  });
  {
    Session session(program, {.device = "host", .ranks = ends[0]});
    session.bindRandomWeights(7);
    session.setSymbol("cache", 16);
    Array ids(DType::I64, {1, 1}), position(DType::I64, {1});
    ids.set(0, 99);
    EXPECT_THAT(errorOf([&] { session.run("decode", {{"ids", ids}, {"positions", position}}); }),
                HasSubstr("index 99 is outside the axis"));
  }
  other.join();
  EXPECT_THAT(said, HasSubstr("index 99 is outside the axis"));
}

TEST(CudaRankFaults, WithoutNcclThePackageIsNamedToAll) {
  test::Variable nowhere("LATHE_NCCL", "/nowhere/libnccl.so.2");
  Mlps m(2);
  m.g.output("y", m.y);
  auto program = std::make_shared<const Program>(
      compile(m.g, {.backend = "cuda", .pipeline = {.mesh = {.ranks = 2}}}));
  auto ends = threadRanks(2, 60s);
  std::string said;
  std::thread other(
      [&] { said = errorOf([&] { Session(program, {.device = "host", .ranks = ends[1]}); }); });
  const std::string own = errorOf([&] { Session(program, {.device = "host", .ranks = ends[0]}); });
  other.join();
  for (const std::string& words : {own, said}) EXPECT_THAT(words, HasSubstr("libnccl2"));
}

}  // namespace
}  // namespace lathe
