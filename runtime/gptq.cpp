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
  config.ignore({"quant_method"});
  for (const std::string_view note : kGptqNotes) config.ignore({note});
  return gptq;
}

// The tensors of a layer, or of a piece of one: words [inputs / numbers of a word, outputs], scales
// [groups, outputs], zero points [groups, outputs / numbers of a word].
struct Layer {
  StoredWeight words, scales, zeros;
  int64_t inputs = 0, outputs = 0, perWord = 0;
  bool storesLess = true, isSymmetric = false;
  std::vector<int64_t> order;
  WeightBlocks blocks;
  BlockPlaces places;

  int bits() const { return int(32 / perWord); }
  int center() const { return 1 << (bits() - 1); }
  int64_t groups() const { return places.count(inputs); }
  Array spread(const Array& perBlock) const {
    return places.spread(perBlock, inputs, blocks.block);
  }
  int zeroOf(const int32_t* packed, int64_t group, int64_t output) const {
    const int mask = (1 << bits()) - 1;
    const auto word = uint32_t(packed[group * (outputs / perWord) + output / perWord]);
    const int stored = int(word >> (bits() * int(output % perWord))) & mask;
    return (stored + (storesLess ? 1 : 0)) & mask;
  }
};

Array readPart(const Layer& layer, WeightPart part) {
  const int64_t outputs = layer.outputs, perWord = layer.perWord, groups = layer.groups();
  const int bits = layer.bits();
  switch (part) {
    case WeightPart::Q: {
      const Array raw = layer.words.read();
      const int32_t* from = raw.as<int32_t>().data();
      const auto mask = uint32_t((1 << bits) - 1);
      return packIntegers(layer.blocks.dtype, outputs, layer.inputs,
                          layer.isSymmetric ? layer.center() : 0, layer.order,
                          [=](int64_t row, int64_t rows, int64_t column, uint8_t* to) {
                            const int32_t* at = from + column / perWord * outputs + row;
                            const int shift = bits * int(column % perWord);
                            for (int64_t i = 0; i < rows; ++i)
                              to[i] = uint8_t(uint32_t(at[i]) >> shift & mask);
                          });
    }
    case WeightPart::Scale:
      return layer.spread(
          readScales(layer.scales, layer.blocks.scale, outputs, groups, /*isTransposed=*/true));
    case WeightPart::Zero: {
      const Array raw = layer.zeros.read();
      Array zero(DType::U8, {outputs, groups});
      for (int64_t n = 0; n < outputs; ++n)
        for (int64_t g = 0; g < groups; ++g)
          zero.as<uint8_t>()[size_t(n * groups + g)] =
              uint8_t(layer.zeroOf(raw.as<int32_t>().data(), g, n));
      return layer.spread(zero);
    }
    case WeightPart::Order:
      return toArray(layer.order);
  }
  return Array();
}

StoredWeight matrixOf(const Layer& layer);

std::shared_ptr<const StoredWeight> pieceOf(Layer layer, const AxisPiece& piece) {
  const bool ofOutputs = piece.axis == 0;
  LayerPiece p(piece, ofOutputs ? layer.outputs : layer.inputs);
  const int64_t perWord = layer.perWord, block = layer.places.stored;
  // Columns in an order of their own lie anywhere.
  if (!ofOutputs && !layer.order.empty()) return nullptr;
  const bool isCut =
      ofOutputs ? p.cut(layer.words, 1) && p.cut(layer.scales, 1) && p.cut(layer.zeros, 1, perWord)
                : p.cut(layer.words, 0, perWord) && p.cutBlocks(layer.scales, 0, block) &&
                      p.cutBlocks(layer.zeros, 0, block);
  if (!isCut) return nullptr;
  if (!ofOutputs) p.cutBlocks(layer.blocks, layer.places);
  (ofOutputs ? layer.outputs : layer.inputs) = p.size();
  return std::make_shared<StoredWeight>(matrixOf(layer));
}

StoredWeight matrixOf(const Layer& layer) {
  return matrixOfParts(
      {.dtypeName = fmt::format("GPTQ int{}", layer.bits()),
       .dtype = DType::F32,
       .shape = {layer.outputs, layer.inputs},
       .bytes = layer.words.tensor.bytes + layer.zeros.tensor.bytes + layer.scales.tensor.bytes,
       .blocks = layer.blocks},
      [layer](WeightPart part) { return readPart(layer, part); },
      [layer](const AxisPiece& piece) { return pieceOf(layer, piece); });
}

void join(StoredWeights& weights, const std::string& path, const Gptq& gptq,
          const JsonValue& config) {
  Module module(weights, path, config);
  Layer layer{.perWord = 32 / gptq.bits, .storesLess = gptq.storesLess};
  const int64_t perWord = layer.perWord;
  layer.words = module.take("qweight", {DType::I32});
  const Shape& words = layer.words.tensor.shape;
  if (words.size() != 2) throw module.error("qweight", "expected a matrix of words");
  const int64_t inputs = layer.inputs = words[0] * perWord, outputs = layer.outputs = words[1];
  layer.places.stored = layer.blocks.block = gptq.group ? std::min(gptq.group, inputs) : inputs;
  if (outputs % perWord || inputs == 0 || outputs == 0)
    throw module.error("qweight",
                       fmt::format("{} outputs are no multiple of {}", outputs, perWord));
  const int64_t groups = layer.groups();
  layer.scales = module.take("scales", {DType::F16, DType::BF16, DType::F32}, {groups, outputs});
  layer.zeros = module.take("qzeros", {DType::I32}, {groups, outputs / perWord});
  if (module.find("g_idx"))
    layer.order = orderOfGroups(
        module, "g_idx", module.take("g_idx", {DType::I32}, {inputs}).read(), layer.blocks.block);

  // Symmetric layers have the middle everywhere: they need no zero points.
  const Array packedZeros = layer.zeros.read();
  layer.isSymmetric = true;
  for (int64_t g = 0; g < groups && layer.isSymmetric; ++g)
    for (int64_t n = 0; n < outputs && layer.isSymmetric; ++n)
      layer.isSymmetric = layer.zeroOf(packedZeros.as<int32_t>().data(), g, n) == layer.center();

  const bool isSmall = layer.bits() == 4;
  layer.blocks.scale = scaleDType(layer.scales, groups);
  layer.blocks.dtype =
      layer.isSymmetric ? (isSmall ? DType::I4 : DType::I8) : (isSmall ? DType::U4 : DType::U8);
  if (!layer.isSymmetric) layer.blocks.zero = DType::U8;
  layer.blocks.ordered = !layer.order.empty();
  module.put(matrixOf(layer));
}

}  // namespace

void joinGptq(StoredWeights& weights, ConfigReader& config) {
  const Gptq gptq = readGptqConfig(config);
  for (const std::string& path : modulesWith(weights, "qweight"))
    join(weights, path, gptq, config.json());
}

}  // namespace lathe::quantized
