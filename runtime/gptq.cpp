// SPDX-License-Identifier: Apache-2.0
// GPTQ: Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
// Transformers", 2023, as AutoGPTQ and GPTQModel write it. Words of 32 bits hold neighbours along
// the inputs; version 1 stores zero points less 1; `g_idx` gives every input its group.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/quantized_folder.h"

namespace lathe::quantized {
namespace {

struct Gptq {
  int64_t bits = 4, group = 0;  ///< group of 0: all inputs
  bool storesLess = true;       ///< zero points less 1
};

Gptq readGptqConfig(ConfigReader& config) {
  Gptq gptq;
  gptq.bits = config.at("bits").asInt(1, 32);
  if (gptq.bits != 4 && gptq.bits != 8)
    throw config.at("bits").error(fmt::format("expected 4 or 8, got {}", gptq.bits),
                                  ErrorCode::Unsupported);
  if (auto group = config.find("group_size"); group && group->asInt(-1, kMaxHidden) != -1)
    gptq.group = group->asInt(1, kMaxHidden);
  for (const char* key : {"checkpoint_format", "format"})
    if (auto format = config.find(key)) {
      expectOneOf(*format, {"gptq", "gptq_v2"});
      gptq.storesLess = format->asString() == "gptq";
    }
  if (auto dtype = config.find("pack_dtype")) expectOneOf(*dtype, {"int32"});
  // How the numbers were found, and which kernels multiply them.
  config.ignore({"quant_method",
                 "sym",
                 "desc_act",
                 "lm_head",
                 "true_sequential",
                 "static_groups",
                 "damp_percent",
                 "damp_auto_increment",
                 "quantizer",
                 "meta",
                 "mse",
                 "act_group_aware",
                 "hyb_act",
                 "dataset",
                 "tokenizer",
                 "model_seqlen",
                 "block_name_to_quantize",
                 "module_name_preceding_first_block",
                 "modules_in_block_to_quantize",
                 "modules_to_not_convert",
                 "batch_size",
                 "use_cuda_fp16",
                 "use_exllama",
                 "disable_exllama",
                 "exllama_config",
                 "max_input_length",
                 "cache_block_outputs",
                 "backend",
                 "model_name_or_path",
                 "model_file_base_name",
                 "pack_impl",
                 "offload_to_disk",
                 "offload_to_disk_path"});
  return gptq;
}

void join(StoredWeights& weights, const std::string& path, const Gptq& gptq,
          const JsonValue& config) {
  Module module(weights, path, config);
  const int64_t perWord = 32 / gptq.bits;
  const StoredWeight words = module.take("qweight", {DType::I32});
  if (words.tensor.shape.size() != 2) throw module.error("qweight", "expected a matrix of words");
  const int64_t inputs = words.tensor.shape[0] * perWord, outputs = words.tensor.shape[1];
  const int64_t group = gptq.group ? std::min(gptq.group, inputs) : inputs;
  const int64_t groups = (inputs + group - 1) / group;
  if (outputs % perWord || inputs == 0 || outputs == 0)
    throw module.error("qweight",
                       fmt::format("{} outputs are no multiple of {}", outputs, perWord));
  const StoredWeight scales =
      module.take("scales", {DType::F16, DType::BF16, DType::F32}, {groups, outputs});
  const StoredWeight zeros = module.take("qzeros", {DType::I32}, {groups, outputs / perWord});
  std::vector<int64_t> order;
  if (module.find("g_idx"))
    order =
        orderOfGroups(module, "g_idx", module.take("g_idx", {DType::I32}, {inputs}).read(), group);

  const int bits = int(gptq.bits), mask = (1 << bits) - 1, center = 1 << (bits - 1);
  auto zeroOf = [=](const int32_t* packed, int64_t g, int64_t output) {
    const auto word = uint32_t(packed[g * (outputs / perWord) + output / perWord]);
    const int stored = int(word >> (bits * int(output % perWord))) & mask;
    return (stored + (gptq.storesLess ? 1 : 0)) & mask;
  };
  // Symmetric layers have the middle everywhere: they need no zero points.
  const Array packedZeros = zeros.read();
  bool isSymmetric = true;
  for (int64_t g = 0; g < groups && isSymmetric; ++g)
    for (int64_t n = 0; n < outputs && isSymmetric; ++n)
      isSymmetric = zeroOf(packedZeros.as<int32_t>().data(), g, n) == center;

  WeightBlocks blocks{.block = group, .scale = scaleDType(scales, groups)};
  blocks.dtype =
      isSymmetric ? (bits == 4 ? DType::I4 : DType::I8) : (bits == 4 ? DType::U4 : DType::U8);
  if (!isSymmetric) blocks.zero = DType::U8;
  blocks.ordered = !order.empty();
  StoredWeight matrix;
  matrix.tensor = {.dtypeName = fmt::format("GPTQ int{}", bits),
                   .dtype = DType::F32,
                   .shape = {outputs, inputs},
                   .bytes = words.tensor.bytes + zeros.tensor.bytes + scales.tensor.bytes,
                   .blocks = blocks};
  matrix.readPart = [=](WeightPart part) -> Array {
    switch (part) {
      case WeightPart::Q: {
        const Array raw = words.read();
        const int32_t* from = raw.as<int32_t>().data();
        return packIntegers(blocks.dtype, outputs, inputs, isSymmetric ? center : 0, order,
                            [=](int64_t row, int64_t rows, int64_t column, uint8_t* to) {
                              const int32_t* at = from + column / perWord * outputs + row;
                              const int shift = bits * int(column % perWord);
                              for (int64_t i = 0; i < rows; ++i)
                                to[i] = uint8_t(uint32_t(at[i]) >> shift & uint32_t(mask));
                            });
      }
      case WeightPart::Scale:
        return readScales(scales, blocks.scale, outputs, groups, /*isTransposed=*/true);
      case WeightPart::Zero: {
        const Array raw = zeros.read();
        Array zero(DType::U8, {outputs, groups});
        for (int64_t n = 0; n < outputs; ++n)
          for (int64_t g = 0; g < groups; ++g)
            zero.as<uint8_t>()[size_t(n * groups + g)] =
                uint8_t(zeroOf(raw.as<int32_t>().data(), g, n));
        return zero;
      }
      case WeightPart::Order:
        return toArray(order);
    }
    return Array();
  };
  module.put(std::move(matrix));
}

}  // namespace

void joinGptq(StoredWeights& weights, ConfigReader& config) {
  const Gptq gptq = readGptqConfig(config);
  for (const std::string& path : modulesWith(weights, "qweight"))
    join(weights, path, gptq, config.json());
}

}  // namespace lathe::quantized
