// SPDX-License-Identifier: Apache-2.0
// Random transformers, compiled as they are: questions about their numbers accuse nobody. bf16
// makes elements equal between which an argmax chooses.
//
//   accused_test SEED COUNT    tries other graphs, or more of them
#include <gtest/gtest.h>

#include <regex>

#include "lathe/frontend/families/family.h"
#include "lathe/inspect/bisect.h"
#include "lathe/inspect/check_numerics.h"
#include "lathe/runtime/json_reader.h"
#include "tests/conformance/random_transformers.h"
#include "tests/conformance/seeds.h"

namespace lathe::conformance {
namespace {

Seeds seeds{1, 12};

// Those of bf16 in f16 as well.
std::vector<Graph> graphsOf(uint64_t seed) {
  std::vector<Graph> all;
  all.push_back(randomTransformer(seed));
  const std::string text = all[0].text();
  if (text.find("bf16") != text.npos)
    all.push_back(Graph::parse(std::regex_replace(text, std::regex("bf16"), "f16"), "f16"));
  return all;
}

TEST(Accused, NobodyIsByATableOfNumbers) {
  size_t rewrites = 0;
  for (uint64_t seed = seeds.first; seed < seeds.end(); ++seed)
    for (const Graph& graph : graphsOf(seed)) {
      const Precision precision = seed % 2 ? Precision::OwnDtype : Precision::Float64;
      const NumericsTable table = checkNumerics(graph, {.precision = precision, .seed = seed});
      for (const NumericsRow& row : table.rows) {
        rewrites += row.rewrites;
        EXPECT_TRUE(row.deviation.within)
            << "seed " << seed << " " << row.step << ": " << row.deviation.where;
      }
    }
  EXPECT_GT(rewrites, 0u);
}

// The same by bisecting, which tries larger sizes as well: dearer, so fewer of them.
TEST(Accused, NobodyIsByBisecting) {
  for (uint64_t seed = seeds.first; seed < seeds.end(); seed += 5) {
    BisectOptions options;
    options.trial.seed = seed;
    const BisectResult r = bisect(randomTransformer(seed), options);
    EXPECT_EQ(r.culprit, BisectResult::Culprit::Nobody)
        << "seed " << seed << ": " << nameOf(r.culprit) << " " << r.step << " #" << r.rewrite.number
        << " " << r.rewrite.what << " " << r.op << ": " << r.deviation.where;
  }
}

// Norms behind every sum, of nine numbers each: what a rounding changes is a share of the results
// that one run of the recorded graph does not show.
TEST(Accused, NobodyIsInNarrowModelsOf16Bits) {
  const Graph gemma = buildFromConfig(JsonValue::parse(R"({
      "architectures": ["Gemma2ForCausalLM"], "hidden_size": 9, "intermediate_size": 13,
      "num_hidden_layers": 3, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 6,
      "vocab_size": 37, "max_position_embeddings": 64, "query_pre_attn_scalar": 6,
      "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 16,
      "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0})",
                                                       "config.json"),
                                      {.dtype = DType::BF16});
  for (uint64_t seed = 0; seed < 4; ++seed)
    for (Precision precision : {Precision::OwnDtype, Precision::Float64})
      for (const NumericsRow& row :
           checkNumerics(gemma, {.precision = precision, .seed = seed}).rows)
        EXPECT_TRUE(row.deviation.within)
            << "seed " << seed << " " << row.step << ": " << row.deviation.where;
}

}  // namespace
}  // namespace lathe::conformance

int main(int argc, char** argv) {
  return lathe::conformance::runWithSeeds(argc, argv, lathe::conformance::seeds);
}
