// SPDX-License-Identifier: Apache-2.0
// Weights that the checkpoint holds in few bits, on ranks: each reads its pieces of the integers
// and of their scales.
#include <set>

#include "gtest/gtest.h"
#include "lathe/frontend/compile.h"
#include "tests/unit/compiler/ranks_runs.h"

namespace lathe {
namespace {

using namespace ranks;

// An MLP whose weights are integers in blocks along the inputs, the first maybe along the outputs.
struct FewBits {
  int64_t hidden, block;
  DType q = DType::I4;
  bool hasZero = false, isMerged = false, sharesByOutputs = false;

  Tensor weight(Graph& g, const std::string& name, int64_t n, int64_t k) const {
    const int64_t own = std::min(block, k), count = (k + own - 1) / own;
    Tensor zero;
    if (hasZero) zero = g.weight(name + ".zero", DType::U8, {n, count});
    return dequantize(g.weight(name + ".q", q, {n, k}),
                      g.weight(name + ".scale", DType::F32, {n, count}), zero, 1, own, DType::F32);
  }
  Graph graph() const {
    Graph g;
    const Dim rows = g.dim("rows", 1, 16);
    const Tensor x = g.input("x", DType::F32, {rows, 32});
    const int64_t outputs = isMerged ? 2 * hidden : hidden;
    const Tensor w = sharesByOutputs
                         ? dequantize(g.weight("up.q", q, {outputs, 32}),
                                      g.weight("up.scale", DType::F32, {outputs / block, 32}),
                                      Tensor(), 0, block, DType::F32)
                         : weight(g, "up", outputs, 32);
    Tensor h = fused::linear(x, w);
    h = isMerged ? fused::glu(sliceAxis(h, -1, 0, hidden), sliceAxis(h, -1, hidden, hidden))
                 : nn::relu(h);
    g.output("y", fused::linear(h, weight(g, "down", 32, hidden)));
    return g;
  }
};

WeightSource integers(const Program& program) {
  std::map<std::string, Array> arrays;
  for (const TensorInfo& info : program.weights) {
    Shape shape;
    for (const DimExpr& d : info.sourceShape()) shape.push_back(d.asConstant().value());
    Array a(info.dtype, shape);
    const bool isSigned = info.dtype == DType::I4 || info.dtype == DType::I8;
    for (int64_t i = 0; i < a.size(); ++i)
      a.set(i, isFloat(info.dtype) ? 0.01 * double(1 + i % 13)
                                   : double(i * 7 % 15 - (isSigned ? 7 : 0)));
    arrays[info.source()] = a;
  }
  return [arrays](const std::string& name) { return arrays.at(name); };
}

// Values of one rank, exact when simulated.
void expectValues(const FewBits& model, int64_t ranks) {
  SCOPED_TRACE(std::to_string(model.hidden) + " hidden, blocks of " + std::to_string(model.block) +
               ", " + std::to_string(ranks) + " ranks");
  const Graph g = model.graph();
  const Arrays inputs{{"x", numbers(DType::F32, {3, 32})}};
  const WeightSource weights = integers(compile(g));
  auto run = [&](const Mesh& mesh, const std::string& backend) {
    CompileOptions options{.backend = backend, .pipeline = {.mesh = mesh}};
    options.backendOptions.float64 = backend == "reference";
    Session session(compile(g, options));
    session.bindWeights(weights);
    Arrays out;
    for (auto& [name, array] : session.run("forward", inputs)) out[name] = array.clone();
    return out;
  };
  const Mesh simulated{.ranks = ranks, .simulate = true};
  EXPECT_LE(apart(run(simulated, "reference"), run({}, "reference")), 1e-12);
  const Arrays alone = run({}, "cpu");
  EXPECT_LE(apart(run(simulated, "cpu"), alone), 1e-4);
  EXPECT_LE(apart(runAsThreads(g, int(ranks), inputs, {.ranks = ranks}, weights), alone), 1e-4);
}

// And nothing is read whole but what `whole` names.
void expectPieces(const FewBits& model, int64_t ranks, const std::set<std::string>& whole = {}) {
  expectValues(model, ranks);
  const Graph g = model.graph();
  for (const TensorInfo& info : compile(g, {.pipeline = {.mesh = {.ranks = ranks}}}).weights)
    EXPECT_EQ(info.piece.has_value(), !whole.contains(info.name)) << info.name;
}

TEST(FewBitsOnRanks, EachReadsItsPieces) {
  for (DType q : {DType::I4, DType::I8})
    for (int64_t ranks : {2, 4}) expectPieces({.hidden = 64, .block = 16, .q = q}, ranks);
  for (DType q : {DType::U4, DType::U8})
    expectPieces({.hidden = 64, .block = 16, .q = q, .hasZero = true}, 2);
}

TEST(FewBitsOnRanks, LayersOfOneWeightAreCutEachForItself) {
  for (DType q : {DType::I4, DType::I8})
    expectPieces({.hidden = 64, .block = 16, .q = q, .isMerged = true}, 2);
}

// A slice of columns has as many scales as blocks, not as columns.
TEST(FewBitsOnRanks, LayersOfOneWeightMayShareScalesOfColumns) {
  for (int64_t ranks : {2, 4})
    expectValues(
        {.hidden = 64, .block = 16, .q = DType::I8, .isMerged = true, .sharesByOutputs = true},
        ranks);
}

// A scale of all inputs, and blocks that several ranks share.
TEST(FewBitsOnRanks, PiecesOfABlockShareItsScale) {
  expectPieces({.hidden = 64, .block = 64, .q = DType::I8}, 2, {"down.scale"});
  expectPieces({.hidden = 64, .block = 32, .q = DType::I8}, 4);
}

// 48 columns in blocks of 16 are 3 blocks, of which no rank of 2 has some whole.
TEST(FewBitsOnRanks, BlocksThatPiecesDoNotEndWithBecomeSmaller) {
  const FewBits model{.hidden = 48, .block = 16, .q = DType::U8, .hasZero = true};
  expectIn(sharded(model.graph(), {.ranks = 2}), "axis 1 block 8 to f32");
  expectPieces(model, 2, {"down.scale", "down.zero"});
  expectIn(sharded(model.graph(), {.ranks = 2}), "of \"down.q\" axis 1 parts 2");
}

}  // namespace
}  // namespace lathe
