// SPDX-License-Identifier: Apache-2.0
// Small models in every format of weights: logits as transformers computes them with the weights
// that the format's own library decodes (scripts/make_checkpoint_goldens.py).
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/families/pretrained.h"
#include "lathe/runtime/session.h"
#include "tests/closeness.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;
using test::expectError;

const std::string kFolder = LATHE_TEST_DATA "/golden/checkpoints/";

struct Case {
  const char* name;
  int quantized;  ///< layers of the forward pass that stay in few bits on the CPU
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

// A Llama has seven layers of products beside its head.
const Case kCases[] = {{"gguf_llama", 7},   {"gguf_qwen3", 1},  // the tied head
                       {"gguf_gemma2", 4},                      // its MLP and its head
                       {"gguf_gemma3", 4},  {"gguf_phi3", 5},
                       {"gguf_mixtral", 5}, {"gptq", 7},
                       {"gptq_sym_v2", 7},  {"gptq_act_order", 7},
                       {"gptq_int8", 7},    {"awq", 7},
                       {"packed_int4", 7},  {"packed_int4_asymmetric", 7},
                       {"packed_int8", 7},  {"int8", 7},
                       {"fp8", 0},          {"fp8_rows", 0},
                       {"fp8_tiles", 0},    {"lora", 0},
                       {"dora", 0}};

std::string pathOf(const Case& c) {
  const std::string folder = kFolder + c.name, file = folder + "/model.gguf";
  return fs::exists(file) ? file : folder;
}
Checkpoint checkpointOf(const Case& c) {
  const std::string adapter = kFolder + c.name + "/lora";
  std::vector<std::string> loras;
  if (fs::exists(adapter)) loras.push_back(adapter);
  return Checkpoint::open(pathOf(c), loras);
}

class Checkpoints : public testing::TestWithParam<Case> {};

TEST_P(Checkpoints, LogitsAreThoseOfTheDecodedWeights) {
  const Checkpoint checkpoint = checkpointOf(GetParam());
  const Graph graph = buildPretrained(pathOf(GetParam()), checkpoint);
  const auto golden = SafetensorsFile::open(kFolder + GetParam().name + "/expected.safetensors");
  const Array ids = golden.array("input_ids"), expected = golden.array("logits");
  auto [low, high] = std::ranges::minmax(expected.as<float>());
  for (const char* backend : {"reference", "cpu"}) {
    Session session(compile(graph, {.backend = backend}));
    session.bindWeights(checkpoint);
    const Array logits = session.run("forward", {{"input_ids", ids}}).at("logits");
    ASSERT_EQ(logits.shape(), expected.shape());
    EXPECT_LT(largestError(logits, expected), 1e-4 * double(high - low)) << backend;
  }
}

TEST_P(Checkpoints, LayersOfIntegersStayInFewBits) {
  const Checkpoint checkpoint = checkpointOf(GetParam());
  const std::string text =
      irAt(buildPretrained(pathOf(GetParam()), checkpoint), "laid-out", {.backend = "cpu"});
  const size_t forward = text.find("func.func @forward"), end = text.find("func.func", forward + 1);
  int count = 0;
  for (size_t at = text.find("lathe.quantized_linear", forward); at < end;
       at = text.find("lathe.quantized_linear", at + 1))
    ++count;
  EXPECT_EQ(count, GetParam().quantized) << text.substr(forward, end - forward);
}

INSTANTIATE_TEST_SUITE_P(All, Checkpoints, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(LoraFolders, OfWhatTheModelLacksAreErrors) {
  expectError(ErrorCode::InvalidFile, "the model has no lm_head.weight of that shape",
              [] { Checkpoint::open(kFolder + "gguf_qwen3/model.gguf", {kFolder + "lora/lora"}); });
}

}  // namespace
}  // namespace lathe
