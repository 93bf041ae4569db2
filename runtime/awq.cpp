// SPDX-License-Identifier: Apache-2.0
// AWQ: Lin et al., "AWQ: Activation-aware Weight Quantization for LLM Compression and
// Acceleration", 2024, as AutoAWQ's version "gemm" writes it. Words of 32 bits hold eight
// neighbours along the outputs, the even ones in front.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/quantized_folder.h"

namespace lathe::quantized {
namespace {

constexpr int64_t kPerWord = 8;
// Of output i of a word, the place of its four bits.
constexpr int kPlace[kPerWord] = {0, 4, 1, 5, 2, 6, 3, 7};

void join(StoredWeights& weights, const std::string& path, int64_t asked, bool hasZero,
          const JsonValue& config) {
  Module module(weights, path, config);
  const StoredWeight words = module.take("qweight", {DType::I32});
  if (words.tensor.shape.size() != 2 || elementCount(words.tensor.shape) == 0)
    throw module.error("qweight", "expected a matrix of words");
  const int64_t inputs = words.tensor.shape[0], wide = words.tensor.shape[1];
  const int64_t outputs = wide * kPerWord, group = asked ? std::min(asked, inputs) : inputs;
  const int64_t groups = (inputs + group - 1) / group;
  if (inputs % 2) throw module.error("qweight", "expected an even number of inputs");
  const StoredWeight scales =
      module.take("scales", {DType::F16, DType::BF16, DType::F32}, {groups, outputs});
  StoredWeight zeros;
  if (hasZero) zeros = module.take("qzeros", {DType::I32}, {groups, wide});

  WeightBlocks blocks{.dtype = hasZero ? DType::U4 : DType::I4,
                      .block = group,
                      .scale = scaleDType(scales, groups)};
  if (hasZero) blocks.zero = DType::U8;
  auto shiftOf = [](int64_t output) { return 4 * kPlace[output % kPerWord]; };
  StoredWeight matrix;
  matrix.tensor = {.dtypeName = "AWQ int4",
                   .dtype = DType::F32,
                   .shape = {outputs, inputs},
                   .bytes = words.tensor.bytes + zeros.tensor.bytes + scales.tensor.bytes,
                   .blocks = blocks};
  matrix.readPart = [=](WeightPart part) -> Array {
    if (part == WeightPart::Scale)
      return readScales(scales, blocks.scale, outputs, groups, /*isTransposed=*/true);
    if (part == WeightPart::Zero) {
      const Array raw = zeros.read();
      Array zero(DType::U8, {outputs, groups});
      for (int64_t n = 0; n < outputs; ++n)
        for (int64_t g = 0; g < groups; ++g)
          zero.as<uint8_t>()[size_t(n * groups + g)] = uint8_t(
              uint32_t(raw.as<int32_t>()[size_t(g * wide + n / kPerWord)]) >> shiftOf(n) & 15);
      return zero;
    }
    const Array raw = words.read();
    const int32_t* from = raw.as<int32_t>().data();
    // Without zero points the middle of the range stands for 0.
    return packIntegers(
        blocks.dtype, outputs, inputs, hasZero ? 0 : 8, {},
        [=](int64_t row, int64_t rows, int64_t column, uint8_t* to) {
          for (int64_t i = 0; i < rows; ++i) {
            const int64_t n = row + i;
            to[i] = uint8_t(uint32_t(from[column * wide + n / kPerWord]) >> shiftOf(n) & 15);
          }
        });
  };
  module.put(std::move(matrix));
}

}  // namespace

void joinAwq(StoredWeights& weights, ConfigReader& config) {
  for (const char* key : {"bits", "w_bit"})
    if (auto bits = config.find(key); bits && bits->asInt(1, 32) != 4)
      throw bits->error("expected 4, got " + bits->show(), ErrorCode::Unsupported);
  if (!config.has("bits") && !config.has("w_bit")) config.at("bits");
  for (const char* key : {"version", "format"})
    if (auto version = config.find(key)) expectOneOf(*version, {"gemm", "GEMM"});
  int64_t group = 128;
  for (const char* key : {"group_size", "q_group_size"})
    if (auto given = config.find(key)) group = given->asInt(-1, kMaxHidden);
  if (group == -1) group = 0;
  const bool hasZero = config.flag("zero_point", true);
  config.ignore({"quant_method", "modules_to_not_convert", "backend", "do_fuse", "fuse_max_seq_len",
                 "modules_to_fuse", "exllama_config", "desc_act", "sym"});
  for (const std::string& path : modulesWith(weights, "qweight"))
    join(weights, path, group, hasZero, config.json());
}

}  // namespace lathe::quantized
