// SPDX-License-Identifier: Apache-2.0
// Random transformers through no passes, the pipeline of each mode, and random legal orders of
// passes: what the interpreter computes in float64 must stay.
//
//   random_transformers_test SEED COUNT    tries other graphs, or more of them
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "frontend/graph_impl.h"
#include "inspect/questions/trial_run.h"
#include "lathe/lathe.h"
#include "lathe/passes/passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "tests/conformance/random_transformers.h"
#include "tests/conformance/rounding.h"
#include "tests/conformance/seeds.h"
#include "tests/depth.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

Seeds seeds{1, test::inDepth() ? 500 : 150};

using MakePass = std::function<std::unique_ptr<Pass>(std::mt19937_64&)>;

// Every pass keeps a graph's meaning, so every order of them is legal.
const std::vector<std::pair<const char*, MakePass>>& passTable() {
  static const std::vector<std::pair<const char*, MakePass>> table{
      {"canonicalize", [](auto&) { return createCanonicalizePass(); }},
      {"cse", [](auto&) { return createCsePass(); }},
      {"fuse", [](auto&) { return createFusePass(); }},
      {"decompose",
       [](std::mt19937_64& random) {
         const uint64_t salt = random();
         return createDecomposePass([salt](Operation* op) {
           return (llvm::hash_value(op->getName().getStringRef()) ^ salt) & 4;
         });
       }},
      {"fold-norm-gain", [](auto&) { return createFoldNormGainPass(); }},
      {"merge-linears", [](auto&) { return createMergeLinearsPass(); }},
  };
  return table;
}

// A random sequence of passes, applied; returns their names.
std::string shuffled(ModuleOp module, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string names;
  for (uint64_t i = 0, n = 3 + random() % 6; i < n; ++i) {
    const auto& [name, make] = passTable()[random() % passTable().size()];
    names += std::string(i ? ", " : "") + name;
    PassManager manager(module.getContext());
    manager.addPass(make(random));
    if (failed(manager.run(module)) || failed(verify(module)))
      throw Error(ErrorCode::InvalidArgument, "after " + names + ": a pass failed");
  }
  return names;
}

std::string differenceOf(uint64_t seed) {
  const Graph graph = randomTransformer(seed);
  ModuleOp recorded = graph.impl().finished();
  Trial trial(recorded, {.seed = seed});
  auto differs = [&](ModuleOp module, const std::string& how) -> std::string {
    const std::string wrong =
        beyondConstants(trial, recorded, trial.run(module, Precision::Float64), seed);
    return wrong.empty() ? "" : how + ": " + wrong;
  };
  for (NumericsMode mode : {NumericsMode::Relaxed, NumericsMode::Fast}) {
    std::string worst;
    runStages(graph, Stage::LaidOut, {.backend = "cpu", .pipeline = {.mode = mode}},
              [&](Stage stage, ModuleOp module) {
                if (worst.empty() && (stage == Stage::Fused || stage == Stage::LaidOut))
                  worst = differs(module, std::string(nameOf(mode)) + " pipeline, " +
                                              std::string(nameOf(stage)));
              });
    if (!worst.empty()) return worst;
  }
  OwningOpRef<ModuleOp> other(recorded.clone());
  const std::string order = shuffled(*other, seed);
  return differs(*other, "after " + order);
}

TEST(RandomTransformers, KeepTheirMeaning) {
  for (uint64_t seed = seeds.first; seed < seeds.end(); ++seed) {
    SCOPED_TRACE("graph " + std::to_string(seed));
    try {
      EXPECT_EQ(differenceOf(seed), "");
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

// On the backend every tenth, fused and as recorded: compiling machine code takes longer than all
// passes.
TEST(RandomTransformers, AgreeOnTheCpu) {
  for (uint64_t seed = seeds.first; seed < seeds.end(); seed += 10) {
    SCOPED_TRACE("graph " + std::to_string(seed));
    try {
      const Graph graph = randomTransformer(seed);
      ModuleOp recorded = graph.impl().finished();
      const Trial trial(recorded, {.seed = seed});
      const TrialResults own = trial.run(recorded, Precision::OwnDtype);
      for (uint64_t rewrites : {uint64_t(0), ~uint64_t(0)}) {
        const CompileOptions options{.backend = "cpu", .stopAfterRewrite = rewrites};
        EXPECT_EQ(beyondRounding(trial.run(compile(graph, options)), own, trial.wanted()), "")
            << (rewrites ? "fused" : "as recorded");
      }
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

// The generator is worth something only if its graphs hold what the fusions look for.
TEST(RandomTransformers, HoldEveryFusedOp) {
  std::map<std::string, int> found;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    runStages(randomTransformer(seed), Stage::Fused, {}, [&](Stage stage, ModuleOp module) {
      if (stage == Stage::Fused)
        module.walk([&](Operation* op) { ++found[op->getName().getStringRef().str()]; });
    });
  }
  for (const char* op : {"rms_norm", "layer_norm", "softmax", "rope", "attention", "linear", "glu",
                         "embedding", "adaln_modulate", "add_norm"})
    EXPECT_GE(found["lathe." + std::string(op)], 10) << op;
}

}  // namespace
}  // namespace lathe::conformance

int main(int argc, char** argv) {
  return lathe::conformance::runWithSeeds(argc, argv, lathe::conformance::seeds);
}
