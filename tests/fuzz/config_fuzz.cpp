// SPDX-License-Identifier: Apache-2.0
// Any bytes give configurations within their limits or an error that names the file.
#include "lathe/frontend/families/llama.h"
#include "lathe/runtime/model_config.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> lathe::fuzz::seeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using lathe::fuzz::check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const lathe::LlamaConfig c = lathe::parseLlamaConfig(text, "config.json");
    check(c.layers >= 1 && c.layers <= 1000, "layers within their limit");
    check(c.heads * c.headDim <= 1 << 20 && c.headDim % 2 == 0 && c.heads % c.kvHeads == 0,
          "heads");
    check(c.maxPositions >= 1 && c.maxPositions <= 1 << 24, "positions within their limit");
    check(c.rmsNormEps > 0 && c.ropeTheta > 0, "positive numbers");
  } catch (const lathe::Error& e) {
    lathe::fuzz::checkNamed(e, "config.json: ");
  }
  try {
    const lathe::ModelConfig c = lathe::parseModelConfig(text, "config.json");
    check(c.layers >= 0 && c.layers <= 1000 && c.maxPositions >= 0, "sizes within their limits");
    for (int64_t id : c.eosIds)
      check(id >= 0 && (!c.vocabSize || id < c.vocabSize), "ids in the vocabulary");
  } catch (const lathe::Error& e) {
    lathe::fuzz::checkNamed(e, "config.json: ");
  }
  try {
    lathe::parseGenerationConfig(text, "generation_config.json");
  } catch (const lathe::Error& e) {
    lathe::fuzz::checkNamed(e, "generation_config.json: ");
  }
  return 0;
}
