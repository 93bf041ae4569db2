// SPDX-License-Identifier: Apache-2.0
// One model in stages of a pipeline: the same values as in one, each stage with its layers' weights
// and states, one message at a border, and stages that are at work on several runs at once.
#include <algorithm>
#include <array>
#include <future>
#include <set>

#include "runtime/container.h"
#include "tests/golden/seed_models.h"
#include "tests/unit/compiler/ranks_runs.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using namespace ranks;

// A decoder of some layers with a cache.
Graph decoder(int64_t layers = 4, int64_t vocabulary = 32, bool tied = false) {
  Graph g;
  Dim batch = g.dim("batch", 1, 8), cache = g.dim("cache", 1, 64), seq = g.dim("seq", 1, 64);
  nn::TransformerLM model(g, "",
                          {.vocabSize = vocabulary,
                           .dModel = 24,
                           .dHidden = 48,
                           .layers = layers,
                           .heads = 4,
                           .kvHeads = 2,
                           .maxPositions = 64,
                           .tiedHead = tied});
  model.declareCache(batch, cache);
  for (auto [entry, length] : {std::pair("prefill", seq), std::pair("decode", Dim(1))}) {
    g.entry(entry);
    Tensor ids = g.input("ids", DType::I64, {batch, length});
    Tensor positions = g.input("positions", DType::I64, {batch});
    g.output("logits", model.step(ids, positions));
  }
  return g;
}

Arrays tokens(std::initializer_list<int64_t> ids, int64_t position) {
  Array a(DType::I64, {1, int64_t(ids.size())}), at(DType::I64, {1});
  std::ranges::copy(ids, a.as<int64_t>().begin());
  at.as<int64_t>()[0] = position;
  return {{"ids", a}, {"positions", at}};
}

std::shared_ptr<const Program> programOf(const Graph& g, const Mesh& mesh,
                                         CompileOptions options = {}) {
  options.pipeline.mesh = mesh;
  return std::make_shared<const Program>(compile(g, options));
}

// Other ranks than the first, which serve. `bound`: they have weights.
class Others {
 public:
  Others(std::shared_ptr<const Program> program,
         const std::vector<std::shared_ptr<Communicator>>& ends,
         std::function<void(int)> beforeServing = {})
      : said_(ends.size()) {
    for (size_t r = 1; r < ends.size(); ++r)
      threads_.emplace_back([=, this, end = ends[r]] {
        try {
          Session session(program, {.ranks = end});
          session.bindRandomWeights(7);
          if (beforeServing) beforeServing(int(r));
          session.serve();
        } catch (const Error& e) {
          said_[r] = e.what();
        }
      });
  }
  ~Others() { join(); }
  std::vector<std::string> join() {
    for (std::thread& t : threads_) t.join();
    threads_.clear();
    return said_;
  }

 private:
  std::vector<std::string> said_;
  std::vector<std::thread> threads_;
};

// What a prompt in two chunks and two tokens give, one logit behind the other.
std::vector<float> textOn(const Graph& g, const Mesh& mesh, CompileOptions options = {}) {
  auto program = programOf(g, mesh, std::move(options));
  const auto ranks = int(program->allRanks());
  auto ends = threadRanks(ranks, 60s);
  Others others(program, ends);
  std::vector<float> all;
  {
    Session session(program, {.ranks = ranks > 1 ? ends[0] : nullptr});
    session.bindRandomWeights(7);
    session.setSymbol("cache", 32);
    auto keep = [&](const Arrays& out) {
      const Array& logits = out.at("logits");
      for (int64_t i = 0; i < logits.size(); ++i) all.push_back(float(logits.at(i)));
    };
    keep(session.run("prefill", tokens({3, 1, 4, 1, 5}, 0)));
    keep(session.run("prefill", tokens({9, 2, 6}, 5)));
    keep(session.run("decode", tokens({5}, 8)));
    keep(session.run("decode", tokens({3}, 9)));
  }
  for (const std::string& said : others.join()) EXPECT_EQ(said, "");
  return all;
}
double apartOf(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = std::max(worst, double(std::abs(a[i] - b[i])));
  return worst;
}

//===--- values -----------------------------------------------------------------------------===//

TEST(RankStages, TheyComputeWhatOneDoes) {
  for (bool tied : {false, true}) {
    const Graph g = decoder(4, 32, tied);
    const std::vector<float> alone = textOn(g, {.ranks = 1});
    for (const Mesh& mesh : {Mesh{.stages = 2}, Mesh{.stages = 3}, Mesh{.stages = 4},
                             Mesh{.ranks = 4, .stages = 2}, Mesh{.ranks = 6, .stages = 3}})
      EXPECT_LE(apartOf(textOn(g, mesh), alone), 1e-5) << mesh.ranks << " in " << mesh.stages;
  }
}

TEST(RankStages, OfTheReferenceTheyAreExact) {
  const CompileOptions exact{.backend = "reference", .backendOptions = {.float64 = true}};
  const Graph g = decoder(3);
  const std::vector<float> alone = textOn(g, {.ranks = 1}, exact);
  EXPECT_EQ(textOn(g, {.stages = 3}, exact), alone);
  EXPECT_LE(apartOf(textOn(g, {.ranks = 4, .stages = 2}, exact), alone), 1e-6);
}

// Nothing is summed in pieces: strict mode keeps what it promises.
TEST(RankStages, StrictModeTakesThem) {
  const Graph g = decoder(2);
  CompileOptions strict;
  strict.pipeline.mode = NumericsMode::Strict;
  EXPECT_LE(apartOf(textOn(g, {.stages = 2}, strict), textOn(g, {.ranks = 1}, strict)), 1e-6);
}

class SeedsInStages : public testing::TestWithParam<size_t> {};

TEST_P(SeedsInStages, ComputeWhatOneDoes) {
  const seeds::SeedModel model = seeds::seedModels()[GetParam()];
  const Graph g = model.build(DType::F32);
  auto run = [&](const Mesh& mesh) {
    auto program =
        programOf(g, mesh, {.backend = "reference", .backendOptions = {.float64 = true}});
    auto ends = threadRanks(int(program->allRanks()), 60s);
    Others others(program, ends);
    Session session(program, {.ranks = program->allRanks() > 1 ? ends[0] : nullptr});
    session.bindRandomWeights(7);
    for (const auto& [name, value] : model.symbols) session.setSymbol(name, value);
    std::vector<Arrays> outputs;
    for (const seeds::SeedCall& call : model.calls(DType::F32)) {
      outputs.emplace_back();
      for (auto& [name, array] : session.run(call.entry, call.inputs))
        outputs.back()[name] = array.clone();
    }
    return outputs;
  };
  const std::vector<Arrays> whole = run({.ranks = 1});
  for (int64_t stages : {2, 3}) {
    std::vector<Arrays> got;
    try {
      got = run({.stages = stages});
    } catch (const Error& e) {
      // A model of one op.
      EXPECT_NE(std::string(e.what()).find("mesh: expected at most"), std::string::npos)
          << e.what();
      continue;
    }
    ASSERT_EQ(got.size(), whole.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LE(apart(got[i], whole[i]), 1e-12) << stages;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SeedsInStages, testing::Range<size_t>(0, seeds::seedModels().size()),
                         [](const auto& info) { return seeds::seedModels()[info.param].name; });

//===--- the cut ----------------------------------------------------------------------------===//

std::string stageText(const Graph& g, int64_t stages, int64_t stage, int64_t ranks = 0) {
  return sharded(g, {.ranks = ranks, .stages = stages, .stage = stage});
}

TEST(RankStages, OneMessageCrossesABorderAndTheLogitsComeBack) {
  const Graph g = decoder(4);
  for (int64_t stage = 0; stage < 4; ++stage) {
    const std::string ir = stageText(g, 4, stage);
    SCOPED_TRACE(ir);
    const int entries = 2, isFirst = stage == 0, isLast = stage == 3;
    EXPECT_EQ(occurrences(ir, "lathe.send"), entries);
    EXPECT_EQ(occurrences(ir, "lathe.receive"), entries);
    EXPECT_EQ(occurrences(ir, "to " + std::to_string(isLast ? 0 : stage + 1) + " over \"pp\" of 4"),
              entries);
    EXPECT_EQ(
        occurrences(ir, "from " + std::to_string(isFirst ? 3 : stage - 1) + " over \"pp\" of 4"),
        entries);
    EXPECT_EQ(occurrences(ir, "of 4 result"), entries * (isFirst + isLast));
    // Positions, masks and angles are computed by each.
    EXPECT_EQ(occurrences(ir, "lathe.attention"), entries);
    EXPECT_EQ(occurrences(ir, "lathe.state @"), 2);
  }
}

TEST(RankStages, WeightsAndStatesAreTheirLayers) {
  const Graph g = decoder(4);
  auto program = programOf(g, {.stages = 2});
  ASSERT_EQ(program->stages(), 2);
  EXPECT_EQ(program->allRanks(), 2);
  const Program whole = compile(g);
  std::set<std::string> all, first, second;
  auto names = [](const Program& p) {
    std::set<std::string> found;
    for (const TensorInfo& info : p.weights) found.insert(info.source());
    return found;
  };
  all = names(whole), first = names(*program), second = names(*program->laterStages[0]);
  std::set<std::string> both = first, shared;
  both.insert(second.begin(), second.end());
  std::ranges::set_intersection(first, second, std::inserter(shared, shared.end()));
  EXPECT_EQ(both, all);
  EXPECT_TRUE(shared.empty()) << *shared.begin();
  EXPECT_EQ(program->states.size() + program->laterStages[0]->states.size(), whole.states.size());
  EXPECT_EQ(program->states.size(), 4u);
  for (const Program* stage : {program.get(), program->laterStages[0].get()}) {
    EXPECT_LE(stage->weights.size(), all.size() / 2 + 2);
    for (size_t e = 0; e < stage->entries.size(); ++e) {
      EXPECT_EQ(stage->entries[e].name, whole.entries[e].name);
      EXPECT_EQ(stage->entries[e].inputs.size(), whole.entries[e].inputs.size());
      EXPECT_EQ(stage->entries[e].outputs.size(), stage == program.get() ? 1u : 0u);
    }
  }
}

// A table of most weights stands alone, and what is left is shared evenly.
TEST(RankStages, StagesAreEvenInBytesOfWeights) {
  const Graph g = decoder(6, 32);
  auto program = programOf(g, {.stages = 3});
  std::vector<int64_t> bytes;
  auto add = [&](const Program& p) {
    int64_t sum = 0;
    for (const TensorInfo& info : p.weights) {
      DimExpr size = 1;
      for (const DimExpr& d : info.shape) size = size * d;
      sum += size.asConstant().value();
    }
    bytes.push_back(sum);
  };
  add(*program);
  for (const auto& later : program->laterStages) add(*later);
  const auto [least, most] = std::ranges::minmax(bytes);
  EXPECT_LE(double(most), 1.5 * double(least)) << bytes[0] << " " << bytes[1] << " " << bytes[2];
}

// Two numbers cross behind the first layer, which would leave all others to the second stage.
TEST(RankStages, ANarrowPlaceIsNoBorderWhereStagesWouldBeUneven) {
  Graph g;
  Tensor y = g.input("x", DType::F32, {4, 64});
  y = tanh(nn::Linear(g, "narrow", 64, 2)(y));
  y = tanh(nn::Linear(g, "wide", 2, 64)(y));
  for (int i = 0; i < 4; ++i) y = tanh(nn::Linear(g, "layer." + std::to_string(i), 64, 64)(y));
  g.output("y", y);
  auto program = programOf(g, {.stages = 2});
  EXPECT_GE(program->weights.size(), 4u);
  EXPECT_GE(program->laterStages[0]->weights.size(), 4u);
}

// The evenest cut would lie between the first and the last op that read it.
TEST(RankStages, AStateIsInOneStage) {
  Graph g;
  g.state("kept", DType::F32, {4, 16});
  const Tensor x = g.input("x", DType::F32, {4, 16}), old = g.readState("kept");
  Tensor y = old + nn::Linear(g, "first", 16, 16)(x);
  g.writeState("kept", y);
  for (const char* name : {"second", "third"}) y = tanh(nn::Linear(g, name, 16, 16)(y));
  g.output("y", nn::Linear(g, "fourth", 16, 16)(y + old));
  int holders = 0;
  for (int64_t stage : {0, 1}) holders += occurrences(stageText(g, 2, stage), "lathe.state @kept");
  EXPECT_EQ(holders, 1);
  const Arrays in{{"x", numbers(DType::F32, {4, 16})}};
  EXPECT_LE(apart(runAsThreads(g, 2, in, {.stages = 2}), runAlone(compile(g), in)), 1e-6);
}

// Values of an early stage that a late one reads go there directly, and outputs come from where
// they are made.
TEST(RankStages, ValuesGoWhereTheyAreRead) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {g.dim("rows", 1, 8), 16});
  const Tensor first = nn::Linear(g, "first", 16, 16)(x);
  Tensor y = first;
  for (int i = 0; i < 3; ++i) y = tanh(nn::Linear(g, "middle." + std::to_string(i), 16, 16)(y));
  g.output("middle", y);
  g.output("first", first);
  g.output("last", nn::Linear(g, "last", 16, 16)(y) * first);
  g.output("input", x * 2.0);
  const Arrays in{{"x", numbers(DType::F32, {5, 16})}};
  const Arrays whole = runAlone(compile(g), in);
  for (int64_t stages : {2, 3, 4}) {
    auto program = programOf(g, {.stages = stages});
    auto ends = threadRanks(int(stages), 60s);
    Others others(program, ends);
    Session session(program, {.ranks = ends[0]});
    session.bindRandomWeights(7);
    EXPECT_LE(apart(session.run("forward", in), whole), 1e-6) << stages;
  }
}

//===--- several runs at once -----------------------------------------------------------------//

// The first stage is through with three chunks of a prompt before the second has begun with any:
// it waits for nobody while no output is wanted.
TEST(RankStages, TheFirstGoesOnWithTheNextChunkWhileTheSecondIsBehind) {
  const Graph g = decoder(2);
  auto program = programOf(g, {.stages = 2});
  auto ends = threadRanks(2, 60s);
  std::promise<void> firstIsThrough;
  auto through = firstIsThrough.get_future().share();
  Others others(program, ends, [&](int) { through.wait(); });
  std::vector<float> got;
  {
    Session session(program, {.ranks = ends[0]});
    session.bindRandomWeights(7);
    session.setSymbol("cache", 32);
    const size_t prefill = session.entryIndex("prefill");
    std::vector<Array> outputs;
    for (int64_t chunk = 0; chunk < 3; ++chunk) {
      const Arrays in = tokens({chunk + 1, chunk + 2}, 2 * chunk);
      session.runAhead(prefill, std::array{in.at("ids"), in.at("positions")}, outputs);
    }
    firstIsThrough.set_value();
    const Array logits = session.run("prefill", tokens({9, 8}, 6)).at("logits");
    for (int64_t i = 0; i < logits.size(); ++i) got.push_back(float(logits.at(i)));
  }
  for (const std::string& said : others.join()) EXPECT_EQ(said, "");
  Session alone(compile(g));
  alone.bindRandomWeights(7);
  alone.setSymbol("cache", 32);
  const size_t prefill = alone.entryIndex("prefill");
  std::vector<Array> outputs;
  for (int64_t chunk = 0; chunk < 3; ++chunk) {
    const Arrays in = tokens({chunk + 1, chunk + 2}, 2 * chunk);
    alone.runAhead(prefill, std::array{in.at("ids"), in.at("positions")}, outputs);
  }
  const Array logits = alone.run("prefill", tokens({9, 8}, 6)).at("logits");
  ASSERT_EQ(logits.size(), int64_t(got.size()));
  for (int64_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(got[size_t(i)], logits.at(i), 1e-5);
}

//===--- what goes wrong ----------------------------------------------------------------------//

TEST(RankStages, AStageThatIsGoneIsNamedAtTheDeadline) {
  auto program = programOf(decoder(2), {.stages = 2});
  auto ends = threadRanks(2, 1s);
  std::thread other([&] {
    Session session(program, {.ranks = ends[1]});
    session.bindRandomWeights(7);  // and never serves
  });
  Session session(program, {.ranks = ends[0]});
  session.bindRandomWeights(7);
  other.join();
  expectIn(errorOf([&] { session.run("decode", tokens({1}, 0)); }),
           "receive of 128 bytes of rank 0 of 2: no sign of rank 1 within 1000 ms");
}

TEST(RankStages, AnErrorOfALaterStageEndsTheFirst) {
  auto program = programOf(decoder(2), {.stages = 2});
  auto ends = threadRanks(2, 60s);
  Others others(program, ends, [&](int) { ends[1]->abort("rank 1: the disk is full"); });
  Session session(program, {.ranks = ends[0]});
  session.bindRandomWeights(7);
  EXPECT_EQ(errorOf([&] { session.run("decode", tokens({1}, 0)); }), "rank 1: the disk is full");
}

// A rank of another stage runs another program on purpose; what all have is the set.
TEST(RankStages, AnotherSetOfStagesIsNamed) {
  auto ends = threadRanks(2, 60s);
  Others others(programOf(decoder(3), {.stages = 2}), ends);
  const std::string said =
      errorOf([&] { Session(programOf(decoder(4), {.stages = 2}), {.ranks = ends[0]}); });
  expectIn(said, "rank 1 has another program than rank 0");
  expectIn(others.join()[1], "rank 0 has another program than rank 1");
}

TEST(RankStages, WhatCannotBeCutIsTold) {
  const Graph g = decoder(2);
  expectIn(errorOf([&] { compile(g, {.pipeline = {.mesh = {.ranks = 3, .stages = 2}}}); }),
           "mesh: expected 2 stages with as many ranks each, got 3 ranks; take a multiple of 2");
  expectIn(errorOf([&] { sharded(g, {.stages = 2, .stage = 2}); }), "mesh: stage 2 is none of 2");
  for (const Mesh& mesh : {Mesh{.splitRows = true}, Mesh{.ranks = 1, .splitRows = true},
                           Mesh{.ranks = 2, .splitRows = true, .stages = 2}})
    expectIn(errorOf([&] { compile(g, {.pipeline = {.mesh = mesh}}); }),
             "mesh: split rows are shared between the ranks of a layer, and each layer has one");
  Graph one;
  const Tensor x = one.input("x", DType::F32, {4, 16});
  one.output("y", nn::Linear(one, "only", 16, 16, {.bias = false})(x));
  expectIn(errorOf([&] { compile(one, {.pipeline = {.mesh = {.stages = 2}}}); }),
           "mesh: expected at most 1 stages");
  expectIn(errorOf([&] { Session session(programOf(g, {.ranks = 4, .stages = 2})); }),
           "the program is for 4 ranks, the session has 1");
}

TEST(RankStages, OneDeviceHasNoStages) {
  const Graph g = decoder(2);
  EXPECT_EQ(sharded(g, {.ranks = 4, .simulate = true, .stages = 2}),
            sharded(g, {.ranks = 2, .simulate = true}));
}

TEST(RankStages, AnArtifactHoldsAllStages) {
  const std::string path = testing::TempDir() + "/ranks_stages_test.lathe";
  auto program = programOf(decoder(3), {.ranks = 6, .stages = 3});
  program->save(path);
  auto read = Program::open(path);
  EXPECT_EQ(read->allRanks(), 6);
  ASSERT_EQ(read->stages(), 3);
  EXPECT_EQ(read->digest(), program->digest());
  // A build that knows no stages says so.
  expectIn(Container::open(path).header(), "\"program_version\":6");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read->laterStages[i]->digest(), program->laterStages[i]->digest());
    EXPECT_EQ(read->laterStages[i]->blobs, program->laterStages[i]->blobs);
  }
  // A later stage is part of what is computed.
  Program changed = compile(decoder(3), {.pipeline = {.mesh = {.ranks = 6, .stages = 3}}});
  EXPECT_EQ(changed.digest(), program->digest());
  std::swap(changed.laterStages[0], changed.laterStages[1]);
  EXPECT_NE(changed.digest(), program->digest());
}

// Of the stages of a pipeline one is watched and its IR saved: the first.
TEST(RankStages, SavedIrIsThatOfTheFirst) {
  Mlps m(3);
  m.g.output("y", m.y);
  const test::TemporaryFolder folder;
  CompileOptions options{.pipeline = {.mesh = {.ranks = 2, .stages = 2}}};
  const std::string first = irAt(m.g, "sharded", options, /*withLocations=*/true);
  options.saveIrDir = folder / "ir";
  compile(m.g, options);
  EXPECT_EQ(test::readFile(folder / "ir/3-sharded.mlir"), first);
  CompileRecord told;
  told.wantSnapshots = true;
  options.record = &told;
  compile(m.g, options);
  EXPECT_EQ(std::ranges::count(told.snapshots, "recorded", &CompileRecord::Snapshot::stage), 1);
}

}  // namespace
}  // namespace lathe
