// SPDX-License-Identifier: Apache-2.0
// Every family on several ranks that stand in one graph: in float64 the same values as on one, with
// the collectives that its layers need.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/families/family.h"
#include "lathe/runtime/communicator.h"
#include "lathe/runtime/safetensors.h"
#include "lathe/runtime/session.h"
#include "tests/depth.h"
#include "tests/golden/family_weights.h"

namespace lathe {
namespace {

// Small sizes for every symbol: a cache holds what is written into it.
SymbolValues sizesOf(const Program& program) {
  SymbolValues sizes;
  for (const SymbolInfo& s : program.symbols) {
    const int64_t wanted = s.name == "batch" ? 2 : s.name.find("cache") != s.name.npos ? 12 : 5;
    const int64_t most = s.hi / s.multiple * s.multiple;
    sizes[s.name] =
        std::clamp((wanted + s.multiple - 1) / s.multiple * s.multiple, std::min(s.lo, most), most);
  }
  return sizes;
}

// Numbers that fit every input of a family: ids of small vocabularies, masks of ones, first
// positions.
Arrays inputsOf(const EntryPoint& entry, const SymbolValues& sizes) {
  Arrays inputs;
  for (const Port& port : entry.inputs) {
    const Slot& slot = entry.slots[size_t(port.slot)];
    Shape shape;
    for (const DimExpr& d : slot.shape) shape.push_back(d.evaluate(sizes).value());
    Array a(slot.dtype, shape);
    const bool isMask = port.name.find("mask") != port.name.npos;
    for (int64_t i = 0; i < a.size(); ++i)
      a.set(i, isMask                             ? 1
               : isFloat(slot.dtype)              ? std::sin(double(i))
               : port.name.ends_with("input_ids") ? double((i * 7 + 3) % 11)
                                                  : 0);
    inputs.emplace(port.name, std::move(a));
  }
  return inputs;
}

// The outputs of all entry points, in their order: what one leaves in the states, the next one
// reads. `ranks`: the first one's end, where several run it.
std::vector<Arrays> runAll(std::shared_ptr<const Program> program, uint64_t seed,
                           std::shared_ptr<Communicator> ranks = nullptr) {
  Session session(program, {.ranks = std::move(ranks)});
  session.bindWeights(goldenWeights(session.program(), seed));
  const SymbolValues sizes = sizesOf(*program);
  for (const auto& [name, value] : sizes) {
    bool isGiven = true;
    for (const EntryPoint& e : program->entries) {
      bool inThis = false;
      for (const Port& port : e.inputs)
        for (const DimExpr& d : e.slots[size_t(port.slot)].shape)
          inThis |= d == DimExpr::symbol(name);
      isGiven &= inThis;
    }
    if (!isGiven) session.setSymbol(name, value);
  }
  std::vector<Arrays> outputs;
  for (const EntryPoint& entry : program->entries) {
    outputs.emplace_back();
    for (auto& [name, array] : session.run(entry.name, inputsOf(entry, sizes)))
      outputs.back()[name] = array.clone();
  }
  return outputs;
}

// The largest number of heads that a config names.
int64_t headsOf(const JsonValue& config) {
  int64_t most = 0;
  for (size_t i = 0; i < config.size(); ++i) {
    const auto [key, value] = config.member(i);
    if (value.isObject())
      most = std::max(most, headsOf(value));
    else if (value.isInteger() && (key.ends_with("heads") || key == "n_head"))
      most = std::max(most, value.asInt());
  }
  return most;
}

// A family's golden configs: those with most heads, which there is something to cut of.
class FamilyRanks : public ::testing::TestWithParam<std::string> {
 protected:
  FamilyRanks() {
    const SafetensorsFile file =
        SafetensorsFile::open(LATHE_TEST_DATA "/golden/families/" + GetParam() + ".safetensors");
    const JsonValue all = JsonValue::parse(file.metadata().at("cases"), GetParam());
    for (size_t i = 0; i < all.size(); ++i) cases_.push_back(all.at(i));
    std::ranges::sort(cases_, [](const JsonValue& a, const JsonValue& b) {
      const int64_t left = headsOf(a.at("config")), right = headsOf(b.at("config"));
      return left != right ? left > right : a.at("seed").asUint() < b.at("seed").asUint();
    });
    if (!test::inDepth()) cases_.erase(cases_.begin() + 1, cases_.end());
  }
  std::vector<JsonValue> cases_;
};

// The largest difference, as a share of the largest value.
double difference(const Arrays& got, const Arrays& expected) {
  double worst = 0;
  for (const auto& [name, whole] : expected) {
    const Array& other = got.at(name);
    EXPECT_EQ(other.shape(), whole.shape()) << name;
    double largest = 1e-30, apart = 0;
    for (int64_t i = 0; i < whole.size(); ++i) {
      const double a = whole.at(i), b = other.at(i);
      EXPECT_EQ(std::isnan(a), std::isnan(b)) << name;
      if (std::isnan(a) || a == b) continue;  // -inf, too
      largest = std::max(largest, std::abs(a));
      apart = std::max(apart, std::abs(a - b));
    }
    worst = std::max(worst, apart / largest);
  }
  return worst;
}

TEST_P(FamilyRanks, SimulatedTheyComputeWhatOneDoes) {
  for (const JsonValue& c : cases_) {
    SCOPED_TRACE(c.path());
    const Graph graph = buildFromConfig(c.at("config"));
    auto run = [&](const Mesh& mesh) {
      return runAll(
          std::make_shared<const Program>(compile(graph, {.backend = "reference",
                                                          .backendOptions = {.float64 = true},
                                                          .pipeline = {.mesh = mesh}})),
          c.at("seed").asUint());
    };
    const std::vector<Arrays> whole = run({});
    // Parts of six heads that are equal and that are not; in depth as many ranks as heads, and
    // more.
    const std::vector<int64_t> counts =
        test::inDepth() ? std::vector<int64_t>{2, 3, 4, 6, 8} : std::vector<int64_t>{2, 4};
    for (int64_t ranks : counts) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks");
      const std::vector<Arrays> got = run({.ranks = ranks, .simulate = true});
      for (size_t e = 0; e < whole.size(); ++e) EXPECT_LE(difference(got[e], whole[e]), 1e-12);
    }
  }
}

// In stages of a pipeline, each of which a thread runs.
TEST_P(FamilyRanks, InStagesTheyComputeWhatOneDoes) {
  const JsonValue& c = cases_.front();
  SCOPED_TRACE(c.path());
  const Graph graph = buildFromConfig(c.at("config"));
  const uint64_t seed = c.at("seed").asUint();
  auto programOn = [&](const Mesh& mesh) {
    return std::make_shared<const Program>(compile(
        graph,
        {.backend = "reference", .backendOptions = {.float64 = true}, .pipeline = {.mesh = mesh}}));
  };
  const std::vector<Arrays> whole = runAll(programOn({.ranks = 1}), seed);
  for (const Mesh& mesh : {Mesh{.stages = 2}, Mesh{.stages = 3}, Mesh{.ranks = 4, .stages = 2}}) {
    SCOPED_TRACE(std::to_string(mesh.stages) + " stages");
    auto program = programOn(mesh);
    auto ends = threadRanks(int(program->allRanks()), std::chrono::minutes(1));
    std::vector<std::thread> others;
    for (size_t r = 1; r < ends.size(); ++r)
      others.emplace_back([&, end = ends[r]] {
        try {
          Session session(program, {.ranks = end});
          session.bindWeights(goldenWeights(session.program(), seed));
          session.serve();
        } catch (const std::exception& e) {
          end->abort(e.what());
        }
      });
    try {
      const std::vector<Arrays> got = runAll(program, seed, ends[0]);
      for (size_t e = 0; e < whole.size(); ++e) EXPECT_LE(difference(got[e], whole[e]), 1e-12);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
    for (std::thread& t : others) t.join();
  }
}

// On two ranks no operand is gathered, only results are.
TEST_P(FamilyRanks, SumsFollowAndOnlyResultsAreGathered) {
  const JsonValue& c = cases_.front();
  SCOPED_TRACE(c.path());
  const Graph graph = buildFromConfig(c.at("config"));
  CompileRecord record;
  record.wantMisses = true;
  const std::string ir =
      irAt(graph, "sharded", {.pipeline = {.mesh = {.ranks = 2}}, .record = &record});
  auto count = [&](const std::string& op) {
    size_t n = 0;
    for (size_t at = 0; (at = ir.find(op, at)) != ir.npos; ++at) ++n;
    return n;
  };
  size_t outputs = 0;
  for (const EntryPoint& e : compile(graph, {.backend = "reference"}).entries)
    outputs += e.outputs.size();
  EXPECT_GT(count("lathe.all_reduce"), 0u);
  EXPECT_LE(count("lathe.all_gather"), outputs) << ir;
  for (const CompileRecord::Miss& miss : record.misses)
    EXPECT_EQ(miss.reason.find("are gathered on every rank"), miss.reason.npos)
        << miss.op << " at " << miss.path;
}

// Of a tensor that holds several layers a rank reads its rows of each and none twice: what has a
// part for every rank, and what all have, are no more than the tensor.
TEST_P(FamilyRanks, OfTensorsThatHoldSeveralLayersARankReadsItsRows) {
  const JsonValue& c = cases_.front();
  SCOPED_TRACE(c.path());
  const Program program = compile(buildFromConfig(c.at("config")),
                                  {.backend = "reference", .pipeline = {.mesh = {.ranks = 2}}});
  auto elementsOf = [](const SymbolicShape& shape) {
    int64_t n = 1;
    for (const DimExpr& d : shape) n *= d.asConstant().value();
    return n;
  };
  std::map<std::string, int64_t> read;  // by all ranks, of the tensors that hold several
  for (const TensorInfo& info : program.weights)
    if (info.piece && info.piece->extent) read[info.source()] = 0;
  for (const TensorInfo& info : program.weights)
    if (auto it = read.find(info.source()); it != read.end()) {
      it->second += elementsOf(info.shape) * (info.piece ? info.piece->parts : 1);
      EXPECT_LE(it->second, elementsOf(info.sourceShape())) << info.name;
    }
  for (const char* merges : {"Phi3ForCausalLM", "FalconForCausalLM"})
    if (GetParam() == merges) EXPECT_FALSE(read.empty());
}

INSTANTIATE_TEST_SUITE_P(All, FamilyRanks, ::testing::ValuesIn(architectures()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lathe
