// SPDX-License-Identifier: Apache-2.0
// Whatever the passes do to a model, every op still names lines that the user wrote.
#include <gtest/gtest.h>

#include <set>

#include "frontend/graph_impl.h"
#include "lathe/backends/backend.h"
#include "lathe/inspect/check_locations.h"
#include "lathe/lathe.h"
#include "lathe/passes/pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/rewrite/locations.h"
#include "tests/conformance/rewriting.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

Graph transformer() {
  Graph g;
  const Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, 16);
  Tensor ids = g.input("ids", DType::I64, {batch, seq});
  nn::TransformerLM model(g, "model",
                          {.vocabSize = 61,
                           .dModel = 24,
                           .dHidden = 40,
                           .layers = 2,
                           .heads = 3,
                           .kvHeads = 1,
                           .maxPositions = 16});
  g.output("logits", model.forward(ids));
  return g;
}

Graph llama(DType dtype) {
  LlamaConfig config;
  config.vocabSize = 61;
  config.hiddenSize = 24;
  config.intermediateSize = 40;
  config.layers = 2;
  config.heads = 3;
  config.kvHeads = 1;
  config.headDim = 8;
  config.maxPositions = 32;
  return buildLlama(config, {.dtype = dtype, .weightDType = DType::BF16});
}

struct Model {
  std::string name;
  Graph (*record)();
};
void PrintTo(const Model& m, std::ostream* os) { *os << m.name; }

class Locations : public ::testing::TestWithParam<Model> {
 protected:
  // Sees the module at every stage up to `lowered`.
  static void runStages(ModuleOp module, const StageObserver& observe) {
    const Backend& cpu = findBackend("cpu");
    runPipeline(module, Stage::Lowered, {cpu.layOut({}), cpu.lower({}), {}}, {},
                {.stage = observe});
  }
};

TEST_P(Locations, AreRecordedLinesAtEveryStage) {
  const Graph graph = GetParam().record();
  Module module = moduleOf(graph);
  std::set<std::string> recorded;
  module->walk([&](Operation* op) {
    for (const std::string& line : linesOf(op)) recorded.insert(line);
  });
  ASSERT_FALSE(recorded.empty());
  for (const std::string& line : recorded)
    EXPECT_TRUE(line.find(".cpp:") != std::string::npos || line.find(".h:") != std::string::npos)
        << line << " is no line of a source file";
  int stages = 0;
  runStages(*module, [&](Stage stage, ModuleOp m) {
    ++stages;
    int ops = 0;
    m.walk([&](Operation* op) {
      // The box of generated kernels; its functions come from ops.
      if (isa<ModuleOp>(op)) return;
      ++ops;
      ASSERT_TRUE(hasRecordedOrigin(op->getLoc()))
          << nameOf(stage) << ": " << op->getName().getStringRef().str() << " has lost its origin";
      for (const std::string& line : linesOf(op))
        ASSERT_TRUE(recorded.count(line))
            << nameOf(stage) << ": " << op->getName().getStringRef().str() << " comes from " << line
            << ", where nothing was recorded";
    });
    EXPECT_GT(ops, 20) << nameOf(stage);
  });
  EXPECT_EQ(stages, 5);
}

// Module paths survive as well: they are what profiles and the compile report show.
TEST_P(Locations, KeepModulePaths) {
  const Graph graph = GetParam().record();
  Module module = moduleOf(graph);
  int withPath = 0, kernels = 0;
  runStages(*module, [&](Stage stage, ModuleOp m) {
    if (stage != Stage::Lowered) return;
    m.walk([&](Operation* op) {
      if (op->getName().getStringRef() != "lathe.kernel") return;
      ++kernels;
      Origins origins;
      addOrigins(origins, op->getLoc());
      withPath += llvm::any_of(origins, [](Location l) { return isa<NameLoc>(l); });
    });
  });
  EXPECT_GT(kernels, 10);
  EXPECT_EQ(withPath, kernels);
}

INSTANTIATE_TEST_SUITE_P(Models, Locations,
                         ::testing::Values(Model{"TransformerLM", transformer},
                                           Model{"LlamaF32", [] { return llama(DType::F32); }},
                                           Model{"LlamaBf16", [] { return llama(DType::BF16); }}),
                         [](const auto& info) { return info.param.name; });

// A user's own lines, one op each: the fused op names all of them and no other.
// The table's last row counts all calls of the program, those that lay out the weights, too.
TEST(LocationTables, CountTheCallsThatLayOutWeights) {
  const Graph g = transformer();
  for (const char* backend : {"cpu", "reference"}) {
    const LocationTable table = checkLocations(g, {.backend = backend});
    const Program program = compile(g, {.backend = backend});
    size_t calls = program.load ? program.load->calls.size() : 0;
    EXPECT_EQ(calls > 0, backend == std::string("cpu"));
    for (const EntryPoint& entry : program.entries) calls += entry.calls.size();
    EXPECT_EQ(table.rows.back().ops, calls) << backend;
    EXPECT_EQ(table.rows.back().known, calls) << backend;
    EXPECT_TRUE(table.complete);
  }
}

TEST(FusedLocations, AreThoseOfTheOps) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {3, 8});
  Tensor up = g.input("up", DType::F32, {3, 8});
  const unsigned first = std::source_location::current().line() + 1;
  Tensor s = sigmoid(x);
  Tensor active = mul(x, s);
  Tensor y = mul(active, up);
  const unsigned last = std::source_location::current().line() - 1;
  g.output("y", y);
  Module module = moduleOf(g);
  canonicalizeAndFuse(*module);
  ASSERT_EQ(countOps(*module, "lathe.glu"), 1);
  std::set<std::string> lines;
  for (const std::string& line : linesOf(opsOf(*module).front()))
    lines.insert(line.substr(0, line.rfind(':')));
  std::set<std::string> expected;
  for (unsigned line = first; line <= last; ++line)
    expected.insert(std::string(std::source_location::current().file_name()) + ":" +
                    std::to_string(line));
  EXPECT_EQ(lines, expected);
}

// What is told of an op: the first line behind it, or one that lies deeper in that one's module.
TEST(OriginTexts, NameTheDeepestLineOfTheFirstOnesModule) {
  MLIRContext context;
  using Lines = std::vector<const char*>;  // module paths, of lines 1, 2, ...
  struct Row {
    Lines paths;
    const char* text;
  };
  for (const Row& row : std::vector<Row>{
           {{}, ""},
           {{""}, "a.cpp:1"},
           {{"head"}, "head a.cpp:1"},
           {{"", "head"}, "head a.cpp:2"},
           {{"head", ""}, "head a.cpp:1"},
           {{"blocks.1", "blocks.1.mlp"}, "blocks.1.mlp a.cpp:2"},
           {{"blocks.1.mlp", "blocks.1"}, "blocks.1.mlp a.cpp:1"},
           {{"blocks.1", "blocks.1"}, "blocks.1 a.cpp:1"},
           {{"blocks.1", "blocks.10"}, "blocks.1 a.cpp:1"},
           {{"blocks.1", "blocks.10.mlp"}, "blocks.1 a.cpp:1"},
           {{"blocks.1", "blocks.2.mlp"}, "blocks.1 a.cpp:1"},
           {{"blocks.1", "blocks.1.mlp", "blocks.1.attn"}, "blocks.1.mlp a.cpp:2"},
           {{"blocks.1", "blocks.10", "blocks.1.mlp", "blocks.1.mlp.up"},
            "blocks.1.mlp.up a.cpp:4"},
       }) {
    Origins origins;
    for (size_t i = 0; i < row.paths.size(); ++i) {
      Location at = FileLineColLoc::get(&context, "/src/a.cpp", unsigned(i) + 1, 7);
      if (*row.paths[i]) at = NameLoc::get(StringAttr::get(&context, row.paths[i]), at);
      origins.insert(at);
    }
    const Location whole = fuseOrigins(&context, origins, "some-rewrite");
    EXPECT_EQ(originText(whole), row.text);
    const std::string column = *row.text ? ":7" : "";
    EXPECT_EQ(originText(whole, true), row.text + column);
    EXPECT_EQ(hasRecordedOrigin(whole), !row.paths.empty());
  }
}

}  // namespace
}  // namespace lathe::conformance
