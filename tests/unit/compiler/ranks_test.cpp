// SPDX-License-Identifier: Apache-2.0
// One model on several ranks: the same values as on one, with the collectives that it needs and no
// more, and a word to all when something goes wrong on one.
#include <algorithm>
#include <atomic>
#include <map>
#include <regex>
#include <span>
#include <thread>

#include "gtest/gtest.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/nn/nn.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/session.h"
#include "tests/closeness.h"
#include "tests/depth.h"
#include "tests/golden/seed_models.h"

namespace lathe {
namespace {

using namespace std::chrono_literals;
constexpr uint64_t kSeed = 7;

// The outputs of every call.
std::vector<Arrays> callAll(Session& session, const seeds::SeedModel& model, DType dtype) {
  session.bindRandomWeights(kSeed);
  for (const auto& [name, value] : model.symbols) session.setSymbol(name, value);
  std::vector<Arrays> outputs;
  for (const seeds::SeedCall& call : model.calls(dtype)) {
    outputs.emplace_back();
    for (auto& [name, array] : session.run(call.entry, call.inputs))
      outputs.back()[name] = array.clone();
  }
  return outputs;
}

// The largest difference, as a share of the largest value.
double difference(const std::vector<Arrays>& got, const std::vector<Arrays>& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i)
    for (const auto& [name, array] : expected[i]) {
      const Array& other = got[i].at(name);
      EXPECT_EQ(other.shape(), array.shape()) << name;
      double largest = 1e-30, apart = 0;
      for (int64_t j = 0; j < array.size(); ++j) {
        largest = std::max(largest, std::abs(array.at(j)));
        const double d = std::abs(other.at(j) - array.at(j));
        apart = std::isnan(d) ? 1e300 : std::max(apart, d);
      }
      worst = std::max(worst, apart / largest);
    }
  return worst;
}

// What follower ranks of a test do: open a session, bind the same weights, serve. Returns what they
// ended with: an empty text, or their error's.
class Followers {
 public:
  template <class Serve>
  Followers(const std::vector<std::shared_ptr<Communicator>>& ends, Serve serve)
      : said_(ends.size()) {
    for (size_t r = 1; r < ends.size(); ++r)
      threads_.emplace_back([this, r, end = ends[r], serve] {
        try {
          serve(end);
        } catch (const Error& e) {
          said_[r] = e.what();
        }
      });
  }
  ~Followers() { join(); }
  std::vector<std::string> join() {
    for (std::thread& t : threads_) t.join();
    threads_.clear();
    return said_;
  }

 private:
  std::vector<std::string> said_;
  std::vector<std::thread> threads_;
};

auto serving(std::shared_ptr<const Program> program) {
  return [program](std::shared_ptr<Communicator> end) {
    Session session(program, {.ranks = end});
    session.bindRandomWeights(kSeed);
    session.serve();
  };
}

std::map<std::string, int> opsOf(const std::string& ir) {
  std::map<std::string, int> counts;
  for (size_t at = ir.find("lathe."); at != ir.npos; at = ir.find("lathe.", at + 1)) {
    size_t end = at + 6;
    while (end < ir.size() && (std::isalnum(static_cast<unsigned char>(ir[end])) || ir[end] == '_'))
      ++end;
    ++counts[ir.substr(at + 6, end - at - 6)];
  }
  return counts;
}

class SeedsOnRanks : public testing::TestWithParam<size_t> {
 protected:
  seeds::SeedModel model() const { return seeds::seedModels()[GetParam()]; }
};

TEST_P(SeedsOnRanks, SimulatedTheyComputeWhatOneDoes) {
  const Graph graph = model().build(DType::F32);
  auto run = [&](const Mesh& mesh) {
    Session session(compile(
        graph,
        {.backend = "reference", .backendOptions = {.float64 = true}, .pipeline = {.mesh = mesh}}));
    return callAll(session, model(), DType::F32);
  };
  const std::vector<Arrays> whole = run({});
  for (int64_t ranks :
       test::inDepth() ? std::vector<int64_t>{2, 3, 4, 6, 8} : std::vector<int64_t>{2, 3})
    EXPECT_LE(difference(run({.ranks = ranks, .simulate = true}), whole), 1e-12) << ranks;
}

TEST_P(SeedsOnRanks, AsThreadsTheyComputeWhatOneDoes) {
  for (DType dtype : model().dtypes) {
    const Graph graph = model().build(dtype);
    Session alone(compile(graph));
    const std::vector<Arrays> whole = callAll(alone, model(), dtype);
    for (int64_t ranks : {2, 3, 4}) {
      auto program =
          std::make_shared<const Program>(compile(graph, {.pipeline = {.mesh = {.ranks = ranks}}}));
      ASSERT_EQ(program->ranks, ranks);
      auto ends = threadRanks(int(ranks), 60s);
      Followers followers(ends, serving(program));
      {
        Session session(program, {.ranks = ends[0]});
        EXPECT_LE(difference(callAll(session, model(), dtype), whole),
                  dtype == DType::F32 ? 1e-5 : 3e-2)
            << ranks << " ranks in " << nameOf(dtype);
      }
      for (const std::string& said : followers.join()) EXPECT_EQ(said, "");
    }
  }
}

// Rounded nowhere, so that nothing but the order of sums is between them.
TEST_P(SeedsOnRanks, AsThreadsOfTheReferenceTheyComputeWhatOneDoes) {
  const Graph graph = model().build(DType::F32);
  CompileOptions options{.backend = "reference", .backendOptions = {.float64 = true}};
  Session alone(compile(graph, options));
  const std::vector<Arrays> whole = callAll(alone, model(), DType::F32);
  for (int64_t ranks : {2, 4}) {
    options.pipeline.mesh.ranks = ranks;
    auto program = std::make_shared<const Program>(compile(graph, options));
    ASSERT_EQ(program->ranks, ranks);
    auto ends = threadRanks(int(ranks), 60s);
    Followers followers(ends, serving(program));
    {
      Session session(program, {.ranks = ends[0]});
      EXPECT_LE(difference(callAll(session, model(), DType::F32), whole), 1e-12) << ranks;
    }
    for (const std::string& said : followers.join()) EXPECT_EQ(said, "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, SeedsOnRanks, testing::Range<size_t>(0, seeds::seedModels().size()),
                         [](const auto& info) { return seeds::seedModels()[info.param].name; });

//===--- the plan ---------------------------------------------------------------------------===//

Graph languageModel(int64_t heads, int64_t kvHeads, int64_t vocabulary = 32, bool tied = false) {
  Graph g;
  Dim batch = g.dim("batch", 1, 8), cache = g.dim("cache", 1, 64), seq = g.dim("seq", 1, 64);
  nn::TransformerLM model(g, "",
                          {.vocabSize = vocabulary,
                           .dModel = 24,
                           .dHidden = 48,
                           .layers = 2,
                           .heads = heads,
                           .kvHeads = kvHeads,
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

TEST(Ranks, ALayerNeedsTwoSumsAndTheLogitsOneGather) {
  for (auto [heads, kvHeads, ranks] :
       {std::tuple(6, 6, 2), {6, 2, 2}, {6, 2, 6}, {12, 4, 4}, {12, 2, 4}, {12, 1, 4}}) {
    auto ops = opsOf(
        irAt(languageModel(heads, kvHeads), "sharded", {.pipeline = {.mesh = {.ranks = ranks}}}));
    SCOPED_TRACE(std::to_string(heads) + " heads, " + std::to_string(kvHeads) + " of keys, " +
                 std::to_string(ranks) + " ranks");
    EXPECT_EQ(ops["all_reduce"], 2 * 2 * 2);  // entries, layers, sums
    EXPECT_EQ(ops["all_gather"], 32 % ranks ? 0 : 2);
    EXPECT_EQ(ops["all_slice"], 0);
    EXPECT_EQ(ops["attention"], 2 * 2);
    // What the sums left is fused again; nothing but the last norm reads the last sum.
    EXPECT_EQ(ops["add_norm"], 2 * (2 * 2 - 1));
  }
}

TEST(Ranks, PiecesOfWeightsAndStatesAreShares) {
  const Program whole = compile(languageModel(12, 4)),
                piece = compile(languageModel(12, 4), {.pipeline = {.mesh = {.ranks = 4}}});
  auto elements = [](const std::vector<TensorInfo>& tensors) {
    int64_t n = 0;
    for (const TensorInfo& t : tensors) {
      DimExpr size = 1;
      for (const DimExpr& d : t.shape) size = size * d;
      n += size.evaluate({{"batch", 1}, {"cache", 64}}).value();
    }
    return n;
  };
  EXPECT_EQ(elements(piece.states) * 4, elements(whole.states));
  // The embedding's table, norms and the like stay whole.
  EXPECT_LE(elements(piece.weights), elements(whole.weights) / 4 + 32 * 24 + 5 * 24);
}

// What simulated ranks, and ranks that are threads, compute of an input of every entry.
void expectTheSameAsOne(const Graph& graph, const std::map<std::string, Arrays>& calls,
                        const SymbolValues& symbols = {}) {
  auto callEntries = [&](Session& session) {
    session.bindRandomWeights(kSeed);
    for (const auto& [name, value] : symbols) session.setSymbol(name, value);
    std::vector<Arrays> outputs;
    for (const auto& [entry, inputs] : calls) {
      outputs.emplace_back();
      for (auto& [name, array] : session.run(entry, inputs)) outputs.back()[name] = array.clone();
    }
    return outputs;
  };
  auto simulated = [&](const Mesh& mesh) {
    Session session(compile(
        graph,
        {.backend = "reference", .backendOptions = {.float64 = true}, .pipeline = {.mesh = mesh}}));
    return callEntries(session);
  };
  Session alone(compile(graph));
  const std::vector<Arrays> exact = simulated({}), whole = callEntries(alone);
  for (int64_t ranks : {2, 3, 4}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    EXPECT_LE(difference(simulated({.ranks = ranks, .simulate = true}), exact), 1e-12);
    for (const char* backend : {"cpu", "reference"}) {
      SCOPED_TRACE(backend);
      auto program = std::make_shared<const Program>(
          compile(graph, {.backend = backend, .pipeline = {.mesh = {.ranks = ranks}}}));
      auto ends = threadRanks(int(ranks), 60s);
      Followers followers(ends, serving(program));
      {
        Session session(program, {.ranks = ends[0]});
        EXPECT_LE(difference(callEntries(session), whole), 1e-5);
      }
      for (const std::string& said : followers.join()) EXPECT_EQ(said, "");
    }
  }
}

Array idsUpTo(int64_t end, Shape shape, DType dtype = DType::I64) {
  Array ids(dtype, shape);
  for (int64_t i = 0; i < ids.size(); ++i) ids.set(i, double((i * 7 + 3) % end));
  return ids;
}

TEST(Ranks, TheTableAndTheHeadThatIsTiedToItAreOnePiece) {
  const Graph g = languageModel(6, 2, 36, true);
  const std::string ir = irAt(g, "sharded", {.pipeline = {.mesh = {.ranks = 2}}});
  auto ops = opsOf(ir);
  EXPECT_EQ(ops["all_reduce"], 2 * (2 * 2 + 1));  // and one for the ids that a rank found
  EXPECT_EQ(ops["all_gather"], 2);
  const Program piece = compile(g, {.pipeline = {.mesh = {.ranks = 2}}});
  int64_t tables = 0;
  for (const TensorInfo& info : piece.weights)
    if (info.sourceShape() == SymbolicShape{36, 24}) {
      ++tables;
      EXPECT_EQ(info.name, info.source() + "@0/2");
    }
  EXPECT_EQ(tables, 1) << ir;
  const Arrays prompt{{"ids", idsUpTo(36, {2, 5})}, {"positions", Array(DType::I64, {2})}};
  expectTheSameAsOne(g, {{"prefill", prompt}}, {{"cache", 16}});
}

TEST(Ranks, ALargeTableIsCutAndASmallOneIsNot) {
  auto sums = [](int64_t vocabulary) {
    return opsOf(irAt(languageModel(6, 2, vocabulary), "sharded",
                      {.pipeline = {.mesh = {.ranks = 2}}}))["all_reduce"];
  };
  EXPECT_EQ(sums(48), 2 * (2 * 2 + 1));
  EXPECT_EQ(sums(46), 2 * 2 * 2);
}

// In bf16, with a scale and rows of positions that are added: rounded once, on the rank that has
// the row.
TEST(Ranks, PiecesOfATableChangeNoBit) {
  for (DType idType : {DType::I64, DType::I32}) {
    Graph g;
    Dim n = g.dim("n", 1, 64);
    Tensor ids = g.input("ids", idType, {n});
    Tensor table = g.weight("table", DType::BF16, {12, 8});
    Tensor x = fused::embedding(ids, table,
                                {.positions = g.input("p", DType::BF16, {n, 8}), .scale = 3.1});
    g.output("x", x);
    g.output("y",
             fused::linear(fused::rmsNorm(x, g.weight("gain", DType::BF16, {8}), 1e-5), table));
    ASSERT_EQ(opsOf(irAt(g, "sharded", {.pipeline = {.mesh = {.ranks = 3}}}))["all_reduce"], 1);
    Array p(DType::BF16, {40, 8});
    for (int64_t i = 0; i < p.size(); ++i) p.set(i, 0.37 * double(i % 11) - 1);
    const Arrays inputs{{"ids", idsUpTo(12, {40}, idType)}, {"p", p}};
    Session alone(compile(g));
    alone.bindRandomWeights(kSeed);
    const Array expected = alone.run("forward", inputs).at("x").clone();
    auto program =
        std::make_shared<const Program>(compile(g, {.pipeline = {.mesh = {.ranks = 3}}}));
    auto ends = threadRanks(3, 60s);
    Followers followers(ends, serving(program));
    Session session(program, {.ranks = ends[0]});
    session.bindRandomWeights(kSeed);
    const Array got = session.run("forward", inputs).at("x");
    for (int64_t i = 0; i < got.size(); ++i) ASSERT_EQ(got.at(i), expected.at(i)) << i;
    // No rank has such a row: that is an error, as it is on one.
    for (int64_t id : {-1, 12, 13, 99}) {
      Arrays wrong{{"ids", Array(idType, {1})}, {"p", Array(DType::BF16, {1, 8})}};
      wrong.at("ids").set(0, double(id));
      auto ownEnds = threadRanks(3, 60s);
      Followers others(ownEnds, serving(program));
      Session own(program, {.ranks = ownEnds[0]});
      own.bindRandomWeights(kSeed);
      EXPECT_THROW(own.run("forward", wrong), Error) << id;
    }
  }
}

// Queries, keys and values of one weight, gate and up of another: slices are read of both.
TEST(Ranks, LayersOfOneWeightAreCutEachForItself) {
  auto build = [](int64_t heads, int64_t kvHeads, bool wantsRest = false) {
    Graph g;
    Dim rows = g.dim("rows", 1, 16);
    Tensor x = g.input("x", DType::F32, {1, rows, 24});
    const int64_t depth = 4, wide = heads * depth, narrow = kvHeads * depth;
    Tensor qkv = fused::linear(x, g.weight("qkv", DType::F32, {wide + 2 * narrow, 24}),
                               {.bias = g.weight("qkv.bias", DType::F32, {wide + 2 * narrow})});
    auto part = [&](int64_t from, int64_t size) {
      Tensor columns = sliceAxis(qkv, -1, from, size);
      return transpose(reshape(columns, {1, rows, size / depth, depth}), {0, 2, 1, 3});
    };
    Tensor a = fused::attention(part(0, wide), part(wide, narrow), part(wide + narrow, narrow));
    a = reshape(transpose(a, {0, 2, 1, 3}), {1, rows, wide});
    Tensor y = x + fused::linear(a, g.weight("o", DType::F32, {24, wide}));
    y = y + nn::SwiGLU(g, "mlp", 24, 48, {.gateUp = "gate_up"})(nn::RMSNorm(g, "norm", 24)(y));
    g.output("y", y);
    if (wantsRest) g.output("qkv", qkv);
    return g;
  };
  const Graph g = build(12, 4);
  auto ops = opsOf(irAt(g, "sharded", {.pipeline = {.mesh = {.ranks = 4}}}));
  EXPECT_EQ(ops["all_reduce"], 2);
  EXPECT_EQ(ops["all_gather"] + ops["all_slice"], 0);
  // A rank reads its queries, keys and values, and no more of them.
  int parts = 0;
  for (const TensorInfo& info : compile(g, {.pipeline = {.mesh = {.ranks = 4}}}).weights) {
    EXPECT_EQ(info.piece.has_value(), info.name != "norm.weight") << info.name;
    if (info.source() != "qkv" && info.source() != "qkv.bias") continue;
    EXPECT_EQ(info.sourceShape()[0], DimExpr(80));
    const AxisPiece own = info.own(3, 4);
    parts += int(own.size);
    EXPECT_TRUE((own.begin == 36 && own.size == 12) || (own.begin == 60 && own.size == 4) ||
                (own.begin == 76 && own.size == 4))
        << info.name;
  }
  EXPECT_EQ(parts, 2 * (12 + 4 + 4));
  Array x(DType::F32, {1, 5, 24});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, std::sin(double(i)));
  for (auto [heads, kvHeads] : {std::pair(12, 4), {12, 1}, {12, 2}, {5, 5}})
    expectTheSameAsOne(build(heads, kvHeads), {{"forward", {{"x", x}}}});
  // Read whole by something else it stays one layer.
  ops = opsOf(irAt(build(12, 4, true), "sharded", {.pipeline = {.mesh = {.ranks = 4}}}));
  EXPECT_EQ(ops["all_reduce"], 1);
  // What is not cut is merged again.
  EXPECT_EQ(opsOf(irAt(build(5, 5), "laid-out", {.pipeline = {.mesh = {.ranks = 2}}}))["linear"],
            4);
}

// Where a weight lies [inputs, outputs], its columns are its second axis.
TEST(Ranks, LayersOfOneWeightAreCutInEitherLayout) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {g.dim("rows", 1, 16), 24});
  const Tensor h = fused::linear(
      x, g.weight("up", DType::F32, {24, 48}),
      {.bias = g.weight("up.bias", DType::F32, {48}), .layout = WeightLayout::in_out});
  const Tensor gate = fused::glu(sliceAxis(h, -1, 0, 24), sliceAxis(h, -1, 24, 24));
  g.output("y", fused::linear(gate, g.weight("down", DType::F32, {24, 24})));
  auto ops = opsOf(irAt(g, "sharded", {.pipeline = {.mesh = {.ranks = 2}}}));
  EXPECT_EQ(ops["all_reduce"], 1);
  EXPECT_EQ(ops["all_gather"] + ops["all_slice"], 0);
  Array numbers(DType::F32, {5, 24});
  for (int64_t i = 0; i < numbers.size(); ++i) numbers.set(i, std::sin(double(i)));
  expectTheSameAsOne(g, {{"forward", {{"x", numbers}}}});
}

// The weight of several layers may be made of others, of which slices are taken in its place: of
// one operand of a product with itself, and of all rows of a slice.
TEST(Ranks, LayersOfOneComputedWeightAreCutEachForItself) {
  for (bool isProduct : {false, true})
    for (auto layout : {WeightLayout::out_in, WeightLayout::in_out}) {
      SCOPED_TRACE(std::string(isProduct ? "a product" : "a slice") +
                   (layout == WeightLayout::out_in ? ", outputs first" : ", inputs first"));
      Graph g;
      const Tensor x = g.input("x", DType::F32, {g.dim("rows", 1, 16), 16});
      Tensor w;
      if (isProduct)
        w = matmul(g.weight("up", DType::F32, {16, 16}), g.weight("up", DType::F32, {16, 16}));
      else if (layout == WeightLayout::out_in)
        w = sliceAxis(g.weight("wide", DType::F32, {16, 20}), 1, 3, 16);
      else
        w = sliceAxis(g.weight("wide", DType::F32, {20, 16}), 0, 3, 16);
      const Tensor h = fused::linear(x, w, {.layout = layout});
      const Tensor gate = fused::glu(sliceAxis(h, -1, 0, 8), sliceAxis(h, -1, 8, 8));
      g.output("y", fused::linear(gate, g.weight("down", DType::F32, {16, 8})));
      auto ops = opsOf(irAt(g, "sharded", {.pipeline = {.mesh = {.ranks = 2}}}));
      EXPECT_EQ(ops["all_reduce"], 1);
      EXPECT_EQ(ops["all_gather"] + ops["all_slice"], 0);
      Array numbers(DType::F32, {5, 16});
      for (int64_t i = 0; i < numbers.size(); ++i) numbers.set(i, std::sin(double(i)));
      expectTheSameAsOne(g, {{"forward", {{"x", numbers}}}});
    }
}

// As OLMo 2 has them: each rank sums the squares of its heads, and no operand is gathered. The
// table of the first layer has no columns that two readers would gather.
TEST(Ranks, ANormOverAllHeadsIsASumOverTheRanks) {
  auto build = [](int64_t heads, int64_t kvHeads, bool isLayer) {
    Graph g;
    const Dim rows = g.dim("rows", 1, 16);
    const Tensor ids = g.input("ids", DType::I64, {1, rows});
    const Tensor x = fused::embedding(ids, g.weight("table", DType::F32, {7, 24}));
    auto part = [&](const std::string& name, int64_t count) {
      Tensor y = fused::linear(x, g.weight(name, DType::F32, {count * 4, 24}));
      const Tensor gain = g.weight(name + ".gain", DType::F32, {count * 4});
      if (name != "v" && isLayer)
        y = fused::layerNorm(y, gain, g.weight(name + ".bias", DType::F32, {count * 4}), 1e-5);
      else if (name != "v")
        y = fused::rmsNorm(y, gain, 1e-5);
      return transpose(reshape(y, {1, rows, count, 4}), {0, 2, 1, 3});
    };
    Tensor a = fused::attention(part("q", heads), part("k", kvHeads), part("v", kvHeads));
    a = reshape(transpose(a, {0, 2, 1, 3}), {1, rows, heads * 4});
    g.output("y", x + fused::linear(a, g.weight("o", DType::F32, {24, heads * 4})));
    return g;
  };
  for (bool isLayer : {false, true}) {
    const std::string ir =
        irAt(build(12, 4, isLayer), "sharded", {.pipeline = {.mesh = {.ranks = 4}}});
    auto ops = opsOf(ir);
    // The mean of the squares, of a layer norm also that of the values, of queries and of keys.
    EXPECT_EQ(ops["all_reduce"], 1 + (isLayer ? 4 : 2)) << ir;
    EXPECT_EQ(ops["all_gather"] + ops["all_slice"] + ops["rms_norm"] + ops["layer_norm"], 0) << ir;
    EXPECT_TRUE(std::regex_search(ir, std::regex("lathe.all_reduce [^\n]*dims<1, rows, 1>>")))
        << ir;
    for (auto [heads, kvHeads] : {std::pair(12, 4), {12, 2}, {6, 6}, {5, 5}})
      expectTheSameAsOne(build(heads, kvHeads, isLayer),
                         {{"forward", {{"ids", idsUpTo(7, {1, 5})}}}});
  }
  // What is not cut stays a norm.
  EXPECT_EQ(
      opsOf(irAt(build(5, 5, false), "sharded", {.pipeline = {.mesh = {.ranks = 2}}}))["rms_norm"],
      2);
}

Graph mixtureModel(int64_t experts, int64_t hidden) {
  Graph g;
  Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 64);
  nn::Mixture mixture(g, "moe", {.dModel = 24, .dHidden = hidden, .experts = experts, .chosen = 2});
  for (auto [entry, length] : {std::pair("prefill", seq), std::pair("decode", Dim(1))}) {
    g.entry(entry);
    Tensor x = g.input("x", DType::F32, {batch, length, 24});
    g.output("y", x + mixture(x));
  }
  return g;
}

TEST(Ranks, OfEveryExpertARankHasAPiece) {
  for (int64_t experts : {4, 3}) {
    const Graph g = mixtureModel(experts, 36);
    const std::string ir = irAt(g, "sharded", {.pipeline = {.mesh = {.ranks = 2}}});
    auto ops = opsOf(ir);
    EXPECT_EQ(ops["all_reduce"], 2) << ir;
    EXPECT_EQ(ops["all_gather"] + ops["all_slice"], 0) << ir;
    // Of a token, behind the sum over its experts.
    for (const char* sizes : {"batch, seq, 24", "batch, 1, 24"})
      EXPECT_TRUE(std::regex_search(
          ir, std::regex("lathe.all_reduce [^\n]*dims<" + std::string(sizes) + ">>")))
          << ir;
    const Program piece = compile(g, {.pipeline = {.mesh = {.ranks = 2}}});
    // One of each for both entries, and the router, which stays whole.
    EXPECT_EQ(piece.weights.size(), size_t(3 * experts + 1));
    for (const TensorInfo& info : piece.weights)
      EXPECT_EQ(info.piece.has_value(), info.name != "moe.gate.weight") << info.name;
    std::map<std::string, Arrays> calls;
    for (auto [entry, length] : {std::pair("prefill", 7), std::pair("decode", 1)}) {
      Array x(DType::F32, {3, length, 24});
      for (int64_t i = 0; i < x.size(); ++i) x.set(i, std::sin(double(i)));
      calls[entry] = {{"x", x}};
    }
    expectTheSameAsOne(g, calls);
  }
}

// Both factors are sums over the ranks: one of them is added up before.
TEST(Ranks, AProductOfTwoSumsIsNoSumOfProducts) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {3, 24}), ids = g.input("ids", DType::I64, {3, 2});
  auto chosen = [&](const std::string& name, int64_t out, int64_t in, const Tensor& rows) {
    const Tensor weights = g.weight(name, DType::F32, {4, out, in});
    return squeeze(matmul(gather(weights, ids, 0), unsqueeze(rows, -1)), -1);
  };
  const Tensor h = nn::relu(chosen("up", 36, 24, unsqueeze(x, -2)));
  g.output("y", reduceSum(chosen("a", 24, 36, h) * chosen("b", 24, 36, h), {-2}));
  Array values(DType::F32, {3, 24}), places(DType::I64, {3, 2});
  for (int64_t i = 0; i < values.size(); ++i) values.set(i, std::sin(double(i)));
  for (int64_t i = 0; i < places.size(); ++i) places.set(i, double(i * 3 % 4));
  expectTheSameAsOne(g, {{"forward", {{"x", values}, {"ids", places}}}});
}

std::string toldOfMesh(const Graph& g, int64_t ranks, std::string* ir) {
  CompileRecord record;
  record.wantMisses = true;
  *ir = irAt(g, "sharded", {.pipeline = {.mesh = {.ranks = ranks}}, .record = &record});
  std::string told;
  for (const CompileRecord::Miss& miss : record.misses)
    if (miss.by == "mesh") told += miss.reason + "\n";
  return told;
}

TEST(Ranks, WhatDoesNotDivideStaysWholeAndIsTold) {
  std::string ir;
  const std::string told = toldOfMesh(languageModel(3, 3), 4, &ir);
  EXPECT_EQ(opsOf(ir)["all_reduce"], 2 * 2);  // the MLPs' alone
  EXPECT_NE(told.find("3 along axis 1"), std::string::npos) << told;
  EXPECT_NE(told.find("do not divide by 4 ranks\n"), std::string::npos) << told;
}

// 6 heads are no 4 pieces, but 2, each of which 2 ranks hold.
TEST(Ranks, NeighboursHoldTheSameWhereFewerPiecesDivide) {
  std::string ir;
  const Graph g = languageModel(6, 2);
  const std::string told = toldOfMesh(g, 4, &ir);
  EXPECT_EQ(opsOf(ir)["all_reduce"], 2 * 2 * 2) << ir;
  EXPECT_NE(told.find("do not divide by 4 ranks: 2 neighbours hold the same piece"),
            std::string::npos)
      << told;
  for (const TensorInfo& info : compile(g, {.pipeline = {.mesh = {.ranks = 4}}}).weights)
    if (info.source().find("attn.q") != std::string::npos) {
      ASSERT_TRUE(info.piece.has_value()) << info.name;
      EXPECT_EQ(info.piece->parts, 2);
      EXPECT_EQ(info.own(1, 4).begin, 0);
      EXPECT_EQ(info.own(2, 4).begin, 12);
    }
  const Arrays prompt{{"ids", idsUpTo(32, {2, 5})}, {"positions", Array(DType::I64, {2})}};
  expectTheSameAsOne(g, {{"prefill", prompt}}, {{"cache", 16}});
}

// A mask of each head is whole on every rank; a rank takes that of the heads whose piece it holds.
TEST(Ranks, NeighboursTakeTheSamePieceOfWhatIsWhole) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {2, 3, 12});
  const Tensor mask = g.input("mask", DType::F32, {2, 6, 3, 3});
  auto heads = [&](const char* name) {
    const Tensor y = fused::linear(x, g.weight(name, DType::F32, {24, 12}));
    return transpose(reshape(y, {2, 3, 6, 4}), {0, 2, 1, 3});
  };
  const Tensor a =
      fused::attention(heads("q"), heads("k"), heads("v"), {.mask = mask, .scale = 0.5});
  const Tensor rows = reshape(transpose(a, {0, 2, 1, 3}), {2, 3, 24});
  g.output("y", fused::linear(rows, g.weight("o", DType::F32, {12, 24})));
  auto ops = opsOf(irAt(g, "sharded", {.pipeline = {.mesh = {.ranks = 4}}}));
  ASSERT_EQ(ops["all_slice"], 1);
  Array numbers(DType::F32, {2, 3, 12}), added(DType::F32, {2, 6, 3, 3});
  for (int64_t i = 0; i < numbers.size(); ++i) numbers.set(i, std::sin(double(i)));
  for (int64_t i = 0; i < added.size(); ++i) added.set(i, double(i * 7 % 11) / 2);
  expectTheSameAsOne(g, {{"forward", {{"x", numbers}, {"mask", added}}}});
}

TEST(Ranks, StrictModeAndEmptyMeshesAreRefused) {
  auto refusal = [](const CompileOptions& options) {
    try {
      compile(languageModel(6, 6), options);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal({.pipeline = {.mode = NumericsMode::Strict, .mesh = {.ranks = 2}}})
                .find("'sum-split'"),
            std::string::npos);
  EXPECT_NE(refusal({.pipeline = {.mesh = {.ranks = -1}}})
                .find("expected at least one rank along 'tp', got -1"),
            std::string::npos);
  for (bool simulate : {false, true})
    EXPECT_EQ(
        refusal({.backend = "reference", .pipeline = {.mesh = {.ranks = 2, .simulate = simulate}}}),
        "");
}

TEST(Ranks, TheTextOfOneRankIsNoModel) {
  const std::string text =
      irAt(languageModel(6, 6), "sharded", {.pipeline = {.mesh = {.ranks = 2}}});
  const Graph piece = Graph::parse(text, "rank.mlir");
  try {
    compile(piece);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("one that holds the pieces of one of several ranks"),
              std::string::npos)
        << e.what();
  }
}

//===--- what goes wrong --------------------------------------------------------------------===//

Graph mlp(int64_t hidden = 8) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {g.dim("rows", 1, 8), 4});
  g.output("y", nn::SwiGLU(g, "mlp", 4, hidden)(x));
  return g;
}
std::shared_ptr<const Program> forTwo(int64_t hidden = 8) {
  return std::make_shared<const Program>(
      compile(mlp(hidden), {.pipeline = {.mesh = {.ranks = 2}}}));
}
std::string errorOf(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(RankFaults, ARankThatNeverComesIsNamed) {
  auto program = forTwo();
  auto ends = threadRanks(2, 100ms);
  EXPECT_NE(errorOf([&] { Session(program, {.ranks = ends[0]}); }).find("no sign of rank 1"),
            std::string::npos);
}

TEST(RankFaults, AnotherProgramIsNamed) {
  auto ends = threadRanks(2, 60s);
  Followers followers(ends, serving(forTwo(16)));
  const std::string said =
      errorOf([&, program = forTwo()] { Session(program, {.ranks = ends[0]}); });
  EXPECT_NE(said.find("rank 1 has another program than rank 0"), std::string::npos) << said;
  EXPECT_NE(followers.join()[1].find("rank 0 has another program than rank 1"), std::string::npos);
}

TEST(RankFaults, AnotherValueOfAWeightThatAllHaveIsNamed) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {g.dim("rows", 1, 8), 4});
  g.output("y", nn::SwiGLU(g, "mlp", 4, 8)(nn::RMSNorm(g, "norm", 4)(x)));
  auto program = std::make_shared<const Program>(compile(g, {.pipeline = {.mesh = {.ranks = 2}}}));
  auto ends = threadRanks(2, 60s);
  Followers followers(ends, [program](std::shared_ptr<Communicator> end) {
    Session session(program, {.ranks = end});
    session.bindRandomWeights(kSeed + 1);
  });
  Session session(program, {.ranks = ends[0]});
  const std::string said = errorOf([&] { session.bindRandomWeights(kSeed); });
  EXPECT_NE(said.find("rank 1 has other values of the weight 'norm.weight' than rank 0"),
            std::string::npos)
      << said;
  EXPECT_NE(followers.join()[1].find("'norm.weight'"), std::string::npos);
}

TEST(RankFaults, AnErrorOfOneEndsAll) {
  auto program = forTwo();
  auto ends = threadRanks(2, 60s);
  Followers followers(ends, [program](std::shared_ptr<Communicator> end) {
    Session session(program, {.ranks = end});
    session.bindRandomWeights(kSeed);
    end->abort("rank 1: the disk is full");
  });
  Session session(program, {.ranks = ends[0]});
  session.bindRandomWeights(kSeed);
  followers.join();
  const std::string said =
      errorOf([&] { session.run("forward", {{"x", Array(DType::F32, {1, 4})}}); });
  EXPECT_EQ(said, "rank 1: the disk is full");
}

// Whatever fails on a rank alone, the others are told at once and not by their deadline.
TEST(RankFaults, AMissingWeightOfOneRankEndsAll) {
  auto program = forTwo();
  auto ends = threadRanks(2, 60s);
  Followers followers(ends, [program](std::shared_ptr<Communicator> end) {
    Session session(program, {.ranks = end});
    session.bindWeights([](const std::string&) { return Array(); });
    session.serve();
  });
  Session session(program, {.ranks = ends[0]});
  const std::string said = errorOf([&] {
    session.bindRandomWeights(kSeed);
    session.run("forward", {{"x", Array(DType::F32, {1, 4})}});
  });
  EXPECT_NE(said.find("rank 1: "), std::string::npos) << said;
  EXPECT_NE(said.find("weight"), std::string::npos) << said;
}

// Whoever returns writes into the buffers that it gave and got: the others have read them.
TEST(Ranks, BuffersAreFreeWhenACallReturns) {
  constexpr size_t kCount = 16 << 10;
  constexpr int kRounds = 400, kRanks = 3;
  auto ends = threadRanks(kRanks, 60s);
  std::atomic<int> wrong = 0;
  auto work = [&](Communicator& end) {
    std::vector<float> mine(kCount), all(kCount * kRanks), sum(kCount), told(kCount);
    auto areAll = [](std::span<const float> values, float expected) {
      return std::ranges::all_of(values, [&](float v) { return v == expected; });
    };
    for (int round = 0; round < kRounds; ++round) {
      const float value = float(round * kRanks + end.rank());
      std::ranges::fill(mine, value);
      end.allGather(mine.data(), all.data(), kCount * sizeof(float));
      std::ranges::fill(mine, -1.0f);
      for (int r = 0; r < kRanks; ++r)
        wrong +=
            !areAll(std::span(all).subspan(size_t(r) * kCount, kCount), float(round * kRanks + r));
      std::ranges::fill(sum, value);
      end.allReduce(sum.data(), kCount, DType::F32, Combine::sum);
      wrong += !areAll(sum, float(kRanks * round * kRanks + 3));
      std::ranges::fill(sum, -1.0f);
      std::vector<float> parts(kRanks * kRanks, value);
      end.allToAll(parts.data(), all.data(), kRanks * sizeof(float));
      std::ranges::fill(parts, -1.0f);
      for (int r = 0; r < kRanks; ++r)
        wrong +=
            !areAll(std::span(all).subspan(size_t(r) * kRanks, kRanks), float(round * kRanks + r));
      std::ranges::fill(told, value);
      end.broadcast(told.data(), kCount * sizeof(float));
      wrong += !areAll(told, float(round * kRanks));
      std::ranges::fill(told, -1.0f);
    }
  };
  std::vector<std::thread> threads;
  for (auto& end : ends) threads.emplace_back([&work, &end] { work(*end); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(RankFaults, UnequalCallsAreNamed) {
  auto ends = threadRanks(2, 60s);
  Followers followers(ends, [](std::shared_ptr<Communicator> end) {
    float x[2] = {};
    end->allReduce(x, 2, DType::F32, Combine::sum);
  });
  float x[3] = {};
  const std::string said = errorOf([&] { ends[0]->allReduce(x, 3, DType::F32, Combine::sum); });
  EXPECT_NE(said.find("the ranks have parted"), std::string::npos) << said;
  followers.join();
}

// Sums of bf16 fall between two numbers as often as not: halfway they go to the even one.
TEST(Ranks, SumsInBf16AreRoundedToTheNearestAndHalfwayToTheEven) {
  constexpr size_t kCount = 3000;
  std::vector<uint16_t> parts[2];
  uint32_t random = 1;
  for (auto& part : parts)
    for (size_t i = 0; i < kCount; ++i) {
      random = random * 1664525 + 1013904223;
      part.push_back(floatToBf16(float(int(random >> 16) % 997 - 498) / 64));
    }
  parts[0][1] = floatToBf16(INFINITY), parts[0][2] = floatToBf16(NAN);
  auto ends = threadRanks(2, 60s);
  std::vector<uint16_t> sums[2] = {parts[0], parts[1]};
  Followers followers(ends, [&](std::shared_ptr<Communicator> end) {
    end->allReduce(sums[1].data(), kCount, DType::BF16, Combine::sum);
  });
  ends[0]->allReduce(sums[0].data(), kCount, DType::BF16, Combine::sum);
  followers.join();
  size_t halfway = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const float sum = bf16ToFloat(parts[0][i]) + bf16ToFloat(parts[1][i]);
    halfway += (std::bit_cast<uint32_t>(sum) & 0xffff) == 0x8000;
    ASSERT_EQ(sums[0][i], floatToBf16(sum))
        << bf16ToFloat(parts[0][i]) << " + " << bf16ToFloat(parts[1][i]);
    ASSERT_EQ(sums[1][i], sums[0][i]);
  }
  EXPECT_GT(halfway, kCount / 20);
}

TEST(RankFaults, SessionsOfOtherCountsAreRefused) {
  EXPECT_NE(errorOf([program = forTwo()] {
              Session session(program);
            }).find("the program is for 2 ranks, the session has 1; give it one's end"),
            std::string::npos);
  auto ends = threadRanks(2, 1s);
  EXPECT_NE(errorOf([&] {
              Session(compile(mlp()), {.ranks = ends[0]});
            }).find("the program is for 1 ranks, the session has 2; compile it for them"),
            std::string::npos);
}

TEST(RankFaults, OnlyRankZeroIsAsked) {
  auto program = forTwo();
  auto ends = threadRanks(2, 60s);
  std::string run, serve;
  Followers followers(ends, [&, program](std::shared_ptr<Communicator> end) {
    Session session(program, {.ranks = end});
    session.bindRandomWeights(kSeed);
    run = errorOf([&] { session.run("forward", {{"x", Array(DType::F32, {1, 4})}}); });
    session.serve();
  });
  {
    Session session(program, {.ranks = ends[0]});
    session.bindRandomWeights(kSeed);
    serve = errorOf([&] { session.serve(); });
    session.run("forward", {{"x", Array(DType::F32, {1, 4})}});
    // A mistake of the caller's is told before the others hear of it, and ends nothing.
    EXPECT_NE(errorOf([&] { session.run("forward", {{"x", Array(DType::F32, {1, 5})}}); }), "");
    session.run("forward", {{"x", Array(DType::F32, {2, 4})}});
  }
  followers.join();
  EXPECT_NE(run.find("this is rank 1, which does what rank 0 does: call serve()"),
            std::string::npos);
  EXPECT_NE(serve.find("serve() is for the ranks that follow rank 0"), std::string::npos);
}

//===--- the artifact -----------------------------------------------------------------------===//

TEST(Ranks, AProgramKeepsItsPiecesInAnArtifact) {
  const std::string path = testing::TempDir() + "/ranks_test.lathe";
  auto program = forTwo();
  program->save(path);
  auto read = Program::open(path);
  EXPECT_EQ(read->ranks, 2);
  EXPECT_EQ(read->digest(), program->digest());
  ASSERT_EQ(read->weights.size(), program->weights.size());
  for (size_t i = 0; i < read->weights.size(); ++i) {
    ASSERT_EQ(read->weights[i].piece.has_value(), program->weights[i].piece.has_value());
    if (!read->weights[i].piece) continue;
    EXPECT_EQ(read->weights[i].source(), program->weights[i].source());
    EXPECT_EQ(read->weights[i].piece->axis, program->weights[i].piece->axis);
    EXPECT_EQ(read->weights[i].piece->parts, program->weights[i].piece->parts);
  }
}

}  // namespace
}  // namespace lathe
