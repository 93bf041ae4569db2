// SPDX-License-Identifier: Apache-2.0
// Models as others spell them: small modules of transformers 5.23.0, exported by torch 2.15.0
// (torch.export, decomposed to core ATen) and written as IR text, one op of the dialect for each of
// ATen's. `_eager` has the attention of transformers, the others that of PyTorch. What their
// authors wrote as one thing is found as one thing again, and the numbers stay.
#include <gtest/gtest.h>

#include <regex>

#include "frontend/graph_impl.h"
#include "inspect/questions/trial_run.h"
#include "lathe/lathe.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

// What is in the graph at the stage `fused`.
struct Imported {
  const char* name;
  int attention, causal, window, masked;  // attention ops, and how many have which attribute
  int norms, ropes, gates, linears;
};

constexpr Imported kModels[] = {
    {"llama", 2, 2, 0, 0, 5, 4, 2, 15},
    {"llama_mqa_eager", 2, 2, 0, 0, 5, 4, 2, 15},
    {"llama_static_cache", 2, 2, 0, 0, 5, 4, 2, 15},
    {"mistral", 2, 2, 2, 0, 5, 4, 2, 15},
    {"qwen3", 2, 2, 0, 0, 9, 4, 2, 15},
    {"gemma2", 2, 2, 1, 0, 9, 4, 2, 15},
    {"gpt2_eager", 2, 2, 0, 0, 5, 0, 0, 9},
    {"gpt_neox", 2, 2, 0, 0, 5, 4, 0, 9},
    {"gpt_j_eager", 2, 2, 0, 0, 3, 4, 0, 13},
    {"bert", 2, 0, 0, 2, 5, 0, 0, 12},
    {"t5_encoder", 2, 0, 0, 2, 5, 0, 2, 14},
    {"clip_text_eager", 2, 2, 0, 0, 5, 0, 0, 12},
    {"vit", 2, 0, 0, 0, 5, 0, 0, 13},
    {"dit", 2, 0, 0, 0, 5, 0, 0, 15},
};

void PrintTo(const Imported& m, std::ostream* os) { *os << m.name; }

int countOf(const std::string& text, const std::string& pattern) {
  const std::regex line(pattern);
  return int(std::distance(std::sregex_iterator(text.begin(), text.end(), line), {}));
}

class ImportedModels : public ::testing::TestWithParam<Imported> {
 protected:
  static Graph graph() {
    const std::string path =
        std::string(LATHE_TEST_DATA) + "/golden/imported/" + GetParam().name + ".mlir";
    return Graph::parse(readWholeFile(path, kIrTextFile), path);
  }
};

TEST_P(ImportedModels, AreFusedAsTheirAuthorsMeant) {
  const Imported& want = GetParam();
  const std::string text = irAt(graph(), "fused");
  EXPECT_EQ(countOf(text, "= lathe\\.attention "), want.attention);
  EXPECT_EQ(countOf(text, "= lathe\\.attention .* causal "), want.causal);
  EXPECT_EQ(countOf(text, "= lathe\\.attention .* window "), want.window);
  EXPECT_EQ(countOf(text, "= lathe\\.attention .* mask "), want.masked);
  EXPECT_EQ(countOf(text,
                    "= lathe\\.(rms_norm|layer_norm|add_norm|norm_rope|adaln_modulate|"
                    "rope_append [^\n]* gain) "),
            want.norms);
  EXPECT_EQ(countOf(text, "= lathe\\.(rope|norm_rope|rope_append) "), want.ropes);
  EXPECT_EQ(countOf(text, "= lathe\\.glu "), want.gates);
  EXPECT_EQ(countOf(text, "= lathe\\.linear "), want.linears);
  EXPECT_EQ(countOf(text, "= lathe\\.(matmul|softmax|cumsum|reduce_any) "), 0);
}

TEST_P(ImportedModels, KeepTheirNumbers) {
  const Graph g = graph();
  const std::string text = irAt(g, "recorded");
  auto options = [&](Precision precision) {
    TrialOptions o{.precision = precision};
    for (auto [name, size] : {std::pair("batch", 2), {"seq", 19}})
      if (text.find(std::string("lathe.dim @") + name + " ") != std::string::npos)
        o.sizes[name] = size;
    return o;
  };
  Trial trial(g.impl().finished(), options(Precision::Float64));
  // T5 rounds logarithms to whole buckets: in another precision other buckets are right.
  Trial own(g.impl().finished(), options(Precision::OwnDtype));
  for (NumericsMode mode : {NumericsMode::Strict, NumericsMode::Relaxed, NumericsMode::Fast}) {
    int steps = 0;
    runStages(g, Stage::Lowered, {.pipeline = {.mode = mode}}, {},
              [&](const StepDone& step, mlir::ModuleOp module) {
                if (!Trial::canRun(module)) return;
                ++steps;
                const Deviation d = trial.compare(trial.run(module, Precision::Float64));
                EXPECT_TRUE(d.within) << nameOf(mode) << " " << step.name << ": " << d.where;
              });
    EXPECT_GE(steps, 6);
    const Deviation d =
        own.compare(own.run(compile(g, {.backend = "cpu", .pipeline = {.mode = mode}})));
    EXPECT_TRUE(d.within) << nameOf(mode) << " on cpu: " << d.where;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, ImportedModels, ::testing::ValuesIn(kModels),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lathe
