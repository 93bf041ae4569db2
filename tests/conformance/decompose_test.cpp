// SPDX-License-Identifier: Apache-2.0
// Tests made from the decompositions of the fused ops: both forms agree on every backend, and the
// fusions find the op in its decomposition again.
#include <gtest/gtest.h>

#include <set>

#include "lathe/lathe.h"
#include "tests/conformance/agreement.h"
#include "tests/conformance/rewriting.h"
#include "tests/conformance/support.h"
#include "tests/conformance/tolerance.h"
#include "tests/depth.h"

namespace lathe::conformance {
namespace {

class Decompositions : public ::testing::TestWithParam<std::string> {
 protected:
  const OpRow& row() const { return rowOf(GetParam()); }
};

Graph decomposed(const Graph& graph) {
  Module module = moduleOf(graph);
  decompose(*module);
  return Graph::parse(textOf(*module), "decomposed");
}

TEST_P(Decompositions, HoldNoFusedOp) {
  for (DType dtype : row().dtypes) {
    const Graph graph = recordSamples(row().samples(dtype));
    Module module = moduleOf(graph);
    decompose(*module);
    for (const OpRow& other : opTable()) {
      if (!other.fused) continue;
      EXPECT_EQ(countOps(*module, other.op), 0) << other.op << " " << nameOf(dtype);
    }
  }
}

TEST_P(Decompositions, AgreeWithTheFusedOp) {
  std::vector<CompileOptions> targets{{.backend = "reference", .backendOptions = {.float64 = true}},
                                      {.backend = "reference"}};
  for (const std::string& backend : testedBackends()) targets.push_back({.backend = backend});
  for (DType dtype : testedDtypes(row())) {
    SCOPED_TRACE(nameOf(dtype));
    const std::vector<Sample> samples = row().samples(dtype);
    const Graph fused = recordSamples(samples), elementary = decomposed(fused);
    Session wide(compile(fused, {.backend = "reference", .backendOptions = {.float64 = true}}));
    Session narrow(compile(fused, {.backend = "reference"}));
    Data data = makeData(samples, allSizes()[0], GetParam());
    wide.bindWeights(data.weights);
    narrow.bindWeights(data.weights);
    for (const CompileOptions& target : targets) {
      Session session(compile(elementary, target), {.threads = 2, .device = "host"});
      session.bindWeights(data.weights);
      for (Sizes sizes : allSizes()) {
        data.inputs = makeData(samples, sizes, GetParam()).inputs;
        const Arrays got = session.run("forward", data.inputs);
        const Arrays want = wide.run("forward", data.inputs);
        const Arrays rounded = narrow.run("forward", data.inputs);
        for (const auto& [name, value] : got) {
          const Sample& sample = samples[std::stoul(name)];
          const bool sameRounding = sample.ownDtype && !target.backendOptions.float64;
          const Tolerance t = toleranceOf(GetParam().substr(6), dtype, sample.exact);
          EXPECT_EQ(firstDifference(value, (sameRounding ? rounded : want).at(name), t), "")
              << target.backend << (target.backendOptions.float64 ? " f64 " : " ") << sample.name
              << " rows=" << sizes.rows << " cols=" << sizes.cols;
        }
      }
    }
  }
}

// How the fusions find a decomposition.
enum class Found {
  Same,   ///< the op as it was recorded
  Other,  ///< the op, in another form of the same value
  Never,
};
Found expectedForm(const std::string& op, DType dtype, const std::string& sample) {
  struct Exception {
    const char *op, *prefix;
    Found found;
    bool onlyF32 = false;
  };
  static const Exception exceptions[] = {
      // In f32 nothing is rounded before the gain.
      {"lathe.rms_norm", "before_gain", Found::Other, true},
      // Without an activation it is a plain product.
      {"lathe.glu", "none", Found::Never},
      // The mask keeps its cast to f32.
      {"lathe.attention", "added_mask", Found::Other},
      {"lathe.paged_attention", "added_mask", Found::Other},
      // Only products with weights are layers, and only tables of weights are embeddings.
      {"lathe.linear", "computed_weight", Found::Never},
      {"lathe.grouped_linear", "computed_weight", Found::Never},
      {"lathe.embedding", "argument", Found::Never},
      {"lathe.embedding", "i32", Found::Never},
      // The norm alone has its gain in f32.
      {"lathe.add_norm", "rms_before_gain", Found::Other, true},
      {"lathe.norm_rope", "before_gain", Found::Other, true},
      // The vector becomes a matrix of one row.
      {"lathe.linear", "vector", Found::Other},
  };
  for (const Exception& e : exceptions)
    if (e.op == op && sample.starts_with(e.prefix) && (!e.onlyF32 || dtype == DType::F32))
      return e.found;
  return rowOf(op).isFound ? Found::Same : Found::Never;
}

TEST_P(Decompositions, AreFoundByTheFusions) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (const Sample& sample : row().samples(dtype)) {
      SCOPED_TRACE(std::string(nameOf(dtype)) + " " + sample.name);
      const Graph graph = recordSamples({sample});
      Module fused = moduleOf(graph), elementary = moduleOf(graph);
      canonicalizeAndFuse(*fused);
      decompose(*elementary);
      canonicalizeAndFuse(*elementary);
      const Found found = expectedForm(GetParam(), dtype, sample.name);
      EXPECT_EQ(countOps(*elementary, GetParam()), found == Found::Never ? 0 : 1);
      if (found == Found::Same) {
        EXPECT_EQ(textOf(*elementary), textOf(*fused));
      }
    }
}

// Each op of the decomposition at a line of its own: the fused op comes from exactly those lines.
TEST_P(Decompositions, GiveTheirLinesToTheFusedOp) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (const Sample& sample : row().samples(dtype)) {
      if (expectedForm(GetParam(), dtype, sample.name) != Found::Same) continue;
      SCOPED_TRACE(std::string(nameOf(dtype)) + " " + sample.name);
      const Graph graph = recordSamples({sample});
      Module module = moduleOf(graph);
      decompose(*module);
      canonicalize(*module);
      std::set<std::string> recorded;
      unsigned line = 0;
      for (mlir::Operation* op : opsOf(*module)) {
        op->setLoc(mlir::FileLineColLoc::get(op->getContext(), "model.cpp", ++line, 1));
        if (op->getName().getStringRef() != "lathe.weight") recorded.insert(linesOf(op).front());
      }
      fuse(*module);
      for (mlir::Operation* op : opsOf(*module)) {
        if (op->getName().getStringRef() != GetParam()) continue;
        const std::vector<std::string> lines = linesOf(op);
        EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()), recorded);
      }
      EXPECT_EQ(countOps(*module, GetParam()), 1);
    }
}

std::vector<std::string> fusedOps() {
  std::vector<std::string> ops;
  for (const OpRow& row : opTable())
    if (row.fused) ops.push_back(row.op);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Conformance, Decompositions, ::testing::ValuesIn(fusedOps()),
                         [](const auto& info) { return info.param.substr(6); });

}  // namespace
}  // namespace lathe::conformance
