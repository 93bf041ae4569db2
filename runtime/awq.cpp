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

int shiftOf(int64_t output) { return 4 * kPlace[output % kPerWord]; }

// The tensors of a layer, or of a piece of one: words [inputs, outputs / 8], scales [groups,
// outputs], zero points [groups, outputs / 8].
struct Layer {
  StoredWeight words, scales, zeros;
  int64_t inputs = 0, outputs = 0;
  WeightBlocks blocks;
  BlockPlaces places;

  Array spread(const Array& perBlock) const {
    return places.spread(perBlock, inputs, blocks.block);
  }
  int64_t wide() const { return outputs / kPerWord; }
  int64_t groups() const { return places.count(inputs); }
};

Array readPart(const Layer& layer, WeightPart part) {
  const int64_t outputs = layer.outputs, groups = layer.groups(), wide = layer.wide();
  if (part == WeightPart::Scale)
    return layer.spread(
        readScales(layer.scales, layer.blocks.scale, outputs, groups, /*isTransposed=*/true));
  if (part == WeightPart::Zero) {
    const Array raw = layer.zeros.read();
    Array zero(DType::U8, {outputs, groups});
    for (int64_t n = 0; n < outputs; ++n)
      for (int64_t g = 0; g < groups; ++g)
        zero.as<uint8_t>()[size_t(n * groups + g)] = uint8_t(
            uint32_t(raw.as<int32_t>()[size_t(g * wide + n / kPerWord)]) >> shiftOf(n) & 15);
    return layer.spread(zero);
  }
  const Array raw = layer.words.read();
  const int32_t* from = raw.as<int32_t>().data();
  // Without zero points the middle of the range stands for 0.
  return packIntegers(
      layer.blocks.dtype, outputs, layer.inputs, layer.blocks.zero ? 0 : 8, {},
      [=](int64_t row, int64_t rows, int64_t column, uint8_t* to) {
        for (int64_t i = 0; i < rows; ++i) {
          const int64_t n = row + i;
          to[i] = uint8_t(uint32_t(from[column * wide + n / kPerWord]) >> shiftOf(n) & 15);
        }
      });
}

StoredWeight matrixOf(const Layer& layer);

std::shared_ptr<const StoredWeight> pieceOf(Layer layer, const AxisPiece& piece) {
  const bool ofOutputs = piece.axis == 0, hasZero = layer.blocks.zero.has_value();
  LayerPiece p(piece, ofOutputs ? layer.outputs : layer.inputs);
  const int64_t block = layer.places.stored;
  const bool isCut = ofOutputs ? p.cut(layer.words, 1, kPerWord) && p.cut(layer.scales, 1) &&
                                     (!hasZero || p.cut(layer.zeros, 1, kPerWord))
                               : p.size() % 2 == 0 && p.cut(layer.words, 0) &&
                                     p.cutBlocks(layer.scales, 0, block) &&
                                     (!hasZero || p.cutBlocks(layer.zeros, 0, block));
  if (!isCut) return nullptr;
  if (!ofOutputs) p.cutBlocks(layer.blocks, layer.places);
  (ofOutputs ? layer.outputs : layer.inputs) = p.size();
  return std::make_shared<StoredWeight>(matrixOf(layer));
}

StoredWeight matrixOf(const Layer& layer) {
  return matrixOfParts(
      {.dtypeName = "AWQ int4",
       .dtype = DType::F32,
       .shape = {layer.outputs, layer.inputs},
       .bytes = layer.words.tensor.bytes + layer.zeros.tensor.bytes + layer.scales.tensor.bytes,
       .blocks = layer.blocks},
      [layer](WeightPart part) { return readPart(layer, part); },
      [layer](const AxisPiece& piece) { return pieceOf(layer, piece); });
}

void join(StoredWeights& weights, const std::string& path, int64_t asked, bool hasZero,
          const JsonValue& config) {
  Module module(weights, path, config);
  Layer layer;
  layer.words = module.take("qweight", {DType::I32});
  const Shape& words = layer.words.tensor.shape;
  if (words.size() != 2 || elementCount(words) == 0)
    throw module.error("qweight", "expected a matrix of words");
  layer.inputs = words[0];
  layer.outputs = words[1] * kPerWord;
  if (layer.inputs % 2) throw module.error("qweight", "expected an even number of inputs");
  layer.places.stored = layer.blocks.block = asked ? std::min(asked, layer.inputs) : layer.inputs;
  const int64_t groups = layer.groups();
  layer.scales =
      module.take("scales", {DType::F16, DType::BF16, DType::F32}, {groups, layer.outputs});
  if (hasZero) layer.zeros = module.take("qzeros", {DType::I32}, {groups, layer.wide()});
  layer.blocks.dtype = hasZero ? DType::U4 : DType::I4;
  layer.blocks.scale = scaleDType(layer.scales, groups);
  if (hasZero) layer.blocks.zero = DType::U8;
  module.put(matrixOf(layer));
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
