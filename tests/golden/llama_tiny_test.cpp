// SPDX-License-Identifier: Apache-2.0
// Small random Llama folders (biases, head size of its own, stretched rotations, both spellings of
// config.json) against the logits of transformers, and the cached path against the full pass.
#include <string>

#include <gtest/gtest.h>

#include "lathe/lathe.h"
#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/model_config.h"
#include "tests/closeness.h"

namespace lathe {
namespace {

struct Parameter {
  std::string folder, backend;
};
class LlamaTiny : public ::testing::TestWithParam<Parameter> {
 protected:
  LlamaTiny()
      : path_(LATHE_TEST_DATA "/golden/" + GetParam().folder),
        checkpoint_(Checkpoint::open(path_)),
        expected_(SafetensorsFile::open(path_ + "/expected.safetensors")),
        session_(compiled(), {.device = "host"}) {
    session_.bindWeights([&](const std::string& name) { return checkpoint_.find(name).value(); });
  }
  Program compiled() const {
    const LlamaConfig config = loadLlamaConfig(path_);
    const DType stored = *checkpoint_.entry("model.norm.weight")->dtype;
    CompileOptions options;
    options.backend = GetParam().backend;
    return compile(buildLlama(config, {.weightDType = stored}), options);
  }
  std::string path_;
  Checkpoint checkpoint_;
  SafetensorsFile expected_;
  Session session_;
};

// ids [batch, seq] -> columns first..first + count.
Array columns(const Array& ids, int64_t first, int64_t count) {
  const int64_t batch = ids.shape()[0], seq = ids.shape()[1];
  Array part(DType::I64, {batch, count});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < count; ++i) part.set(b * count + i, ids.at(b * seq + first + i));
  return part;
}

TEST_P(LlamaTiny, LogitsEqualThoseOfTransformers) {
  const Array logits =
      session_.run("forward", {{"input_ids", expected_.array("input_ids")}}).at("logits");
  const Array truth = expected_.array("logits");
  EXPECT_LE(largestError(logits, truth), 1e-4);
}

TEST_P(LlamaTiny, CachedDecodingEqualsTheFullPassAtEveryPosition) {
  const Array ids = expected_.array("input_ids"), truth = expected_.array("logits");
  const int64_t batch = ids.shape()[0], seq = ids.shape()[1], vocab = truth.shape()[2];
  const int64_t prompt = 6;
  session_.setSymbol("cache", 32);
  for (int64_t at = prompt - 1; at < seq; ++at) {
    const bool first = at == prompt - 1;
    Array positions(DType::I64, {batch});
    for (int64_t b = 0; b < batch; ++b) positions.set(b, first ? 0 : double(at));
    const Array logits =
        session_
            .run(first ? "prefill" : "decode",
                 {{"input_ids", first ? columns(ids, 0, prompt) : columns(ids, at, 1)},
                  {"positions", positions}})
            .at("logits");
    for (int64_t b = 0; b < batch; ++b)
      EXPECT_LE(largestError(elements(logits, b * vocab, vocab),
                             elements(truth, (b * seq + at) * vocab, vocab)),
                1e-4)
          << "row " << b << " position " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Transformers, LlamaTiny,
    ::testing::Values(Parameter{"llama_tiny_llama3", "reference"},
                      Parameter{"llama_tiny_llama3", "cpu"}, Parameter{"llama_tiny_llama3", "cuda"},
                      Parameter{"llama_tiny_linear", "reference"},
                      Parameter{"llama_tiny_linear", "cpu"}, Parameter{"llama_tiny_linear", "cuda"},
                      Parameter{"llama_tiny_v5", "reference"}, Parameter{"llama_tiny_v5", "cpu"},
                      Parameter{"llama_tiny_v5", "cuda"}),
    [](const auto& info) { return info.param.folder + "_" + info.param.backend; });

}  // namespace
}  // namespace lathe
