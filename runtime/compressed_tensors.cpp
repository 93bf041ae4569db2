// SPDX-License-Identifier: Apache-2.0
// The formats of the library compressed-tensors: `pack-quantized` (words of 32 bits along the
// inputs, each number plus half of its range), `int-quantized` (bytes) and `float-quantized`.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/fp8.h"

namespace lathe::quantized {
namespace {

// What a group of layers says of its weights; tensors say which group they are of.
struct Scheme {
  int64_t bits = 0;
  bool isFloat = false;
  int64_t group = 0;  ///< of inputs; 0: a scale for each row or for the matrix
  Shape tile;         ///< of floats
};

void readWeights(ConfigReader weights, Scheme& scheme) {
  scheme.bits = weights.at("num_bits").asInt(1, 32);
  expectOneOf(weights.at("type"), {"int", "float"});
  scheme.isFloat = weights.at("type").asString() == "float";
  const bool isKnown = scheme.bits == 8 || (scheme.bits == 4 && !scheme.isFloat);
  if (!isKnown)
    throw weights.at("num_bits")
        .error(fmt::format("expected int of 4 or 8 bits or float of 8, got {}", scheme.bits),
               ErrorCode::Unsupported);
  if (auto strategy = weights.find("strategy"))
    expectOneOf(*strategy, {"tensor", "channel", "group", "block"});
  if (auto group = weights.find("group_size"); group && group->asInt(-1, kMaxHidden) != -1)
    scheme.group = group->asInt(1, kMaxHidden);
  if (auto tile = weights.find("block_structure")) {
    if (!tile->isArray() || tile->size() != 2)
      throw tile->error("expected the rows and columns of a tile, got " + tile->show());
    scheme.tile = {tile->at(0).asInt(1, kMaxIntermediate), tile->at(1).asInt(1, kMaxIntermediate)};
  }
  // How the scales were found; whether there are zero points and an order the tensors say.
  weights.ignore(
      {"symmetric", "observer", "observer_kwargs", "actorder", "scale_dtype", "zp_dtype"});
  weights.finish("compressed-tensors");
}

std::vector<Scheme> readSchemes(ConfigReader& config) {
  std::vector<Scheme> schemes;
  const JsonValue groups = config.at("config_groups");
  if (!groups.isObject() || groups.size() == 0)
    throw groups.error("expected at least one group, got " + groups.show());
  auto expectFormat = [](const JsonValue& format) {
    expectOneOf(format, {"pack-quantized", "int-quantized", "float-quantized", "naive-quantized",
                         "mixed-precision"});
  };
  if (auto format = config.find("format")) expectFormat(*format);
  if (auto status = config.find("quantization_status"))
    expectOneOf(*status, {"compressed", "frozen"});
  for (size_t i = 0; i < groups.size(); ++i) {
    ConfigReader group(groups.member(i).second);
    readWeights(ConfigReader(group.at("weights")), schemes.emplace_back());
    if (auto format = group.find("format")) expectFormat(*format);
    // Activations stay floats here: what a kernel rounds them to is its own.
    group.ignore({"targets", "input_activations"});
    group.finish("compressed-tensors");
  }
  if (auto sparsity = config.find("sparsity_config"); sparsity && sparsity->size())
    expectOneOf(sparsity->at("format"), {"dense"});
  config.ignore(
      {"quant_method", "ignore", "global_compression_ratio", "version", "sparsity_config"});
  return schemes;
}

struct Matrix {
  int64_t rows, columns;
};

// What serves a block: the scales' shape decides.
int64_t blockOf(const Module& module, const StoredWeight& scales, const Matrix& m,
                const std::vector<Scheme>& schemes, int64_t bits) {
  const Shape& shape = scales.tensor.shape;
  if (elementCount(shape) == 1 || shape == Shape{m.rows} || shape == Shape{m.rows, 1})
    return m.columns;
  for (const Scheme& s : schemes)
    if (!s.isFloat && s.bits == bits && s.group &&
        shape == Shape{m.rows, (m.columns + s.group - 1) / s.group})
      return s.group;
  throw module.error("weight_scale",
                     fmt::format("expected one scale, one for each of {} rows, or one for each "
                                 "group of a row, got [{}]",
                                 m.rows, fmt::join(shape, ", ")));
}

constexpr auto kScales = {DType::F32, DType::BF16, DType::F16};

// How many words of 32 bits hold so many numbers.
int64_t wordsOf(int64_t numbers, int64_t bits) { return (numbers + 32 / bits - 1) / (32 / bits); }

// The tensors of a layer of integers, or of a piece of one: numbers [rows, columns], as bytes or in
// words; scales, one or [rows] or [rows, blocks]; zero points alike, in words packed along the
// rows.
struct Layer {
  StoredWeight numbers, scales, zeros;
  Matrix m{};
  int64_t bits = 8;
  bool inWords = false;
  std::string dtypeName;
  std::vector<int64_t> order;
  WeightBlocks blocks;
  BlockPlaces places;

  Array spread(const Array& perBlock) const {
    return places.spread(perBlock, m.columns, blocks.block);
  }
  int64_t perRow() const { return places.count(m.columns); }
  int64_t perWord() const { return inWords ? 32 / bits : 1; }
};

Array zeroPoints(const Layer& layer) {
  const Array raw = layer.zeros.read();
  const int64_t rows = layer.m.rows, perRow = layer.perRow(), perWord = layer.perWord();
  Array zero(*layer.blocks.zero, {rows, perRow});
  if (!layer.inWords) {
    for (int64_t i = 0; i < zero.size(); ++i)
      zero.as<int8_t>()[size_t(i)] = raw.as<int8_t>()[raw.size() == 1 ? 0 : size_t(i)];
    return zero;
  }
  const auto mask = uint32_t((1 << layer.bits) - 1);
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t g = 0; g < perRow; ++g) {
      const auto word = uint32_t(raw.as<int32_t>()[size_t(n / perWord * perRow + g)]);
      zero.as<uint8_t>()[size_t(n * perRow + g)] =
          uint8_t(word >> (layer.bits * (n % perWord)) & mask);
    }
  return zero;
}

Array readPart(const Layer& layer, WeightPart part) {
  if (part == WeightPart::Order) return toArray(layer.order);
  if (part == WeightPart::Scale)
    return layer.spread(
        readScales(layer.scales, layer.blocks.scale, layer.m.rows, layer.perRow(), false));
  if (part == WeightPart::Zero) return layer.spread(zeroPoints(layer));
  const Array raw = layer.numbers.read();
  if (!layer.inWords) return raw;
  const int32_t* from = raw.as<int32_t>().data();
  const int64_t bits = layer.bits, perWord = layer.perWord(), wide = wordsOf(layer.m.columns, bits);
  const auto mask = uint32_t((1 << bits) - 1);
  return packIntegers(
      layer.blocks.dtype, layer.m.rows, layer.m.columns, layer.blocks.zero ? 0 : 1 << (bits - 1),
      layer.order, [=](int64_t row, int64_t rows, int64_t column, uint8_t* to) {
        const int64_t at = row * wide + column / perWord;
        for (int64_t i = 0; i < rows; ++i)
          to[i] = uint8_t(uint32_t(from[at + i * wide]) >> (bits * (column % perWord)) & mask);
      });
}

StoredWeight matrixOf(const Layer& layer);

std::shared_ptr<const StoredWeight> pieceOf(Layer layer, const AxisPiece& piece) {
  const bool ofRows = piece.axis == 0;
  const int64_t perWord = layer.perWord(), block = layer.places.stored;
  LayerPiece p(piece, ofRows ? layer.m.rows : layer.m.columns);
  const Shape scales = layer.scales.tensor.shape;
  const bool hasZero = layer.blocks.zero.has_value();
  // One scale serves all rows, or all columns of one.
  const bool isOne = elementCount(scales) == 1, areOfRows = scales.size() < 2 || scales[1] == 1;
  bool isCut = p.cut(layer.numbers, ofRows ? 0 : 1, ofRows ? 1 : perWord);
  if (ofRows) {
    isCut = isCut && (isOne || p.cut(layer.scales, 0)) &&
            (!hasZero || (isOne && !layer.inWords) || p.cut(layer.zeros, 0, perWord));
  } else {
    // Columns in an order of their own lie anywhere; half bytes are two in a byte.
    isCut = isCut && layer.order.empty() && p.size() % 2 == 0 &&
            (isOne || areOfRows || p.cutBlocks(layer.scales, 1, block)) &&
            (!hasZero || isOne || areOfRows || p.cutBlocks(layer.zeros, 1, block));
  }
  if (!isCut) return nullptr;
  if (!ofRows) p.cutBlocks(layer.blocks, layer.places);
  (ofRows ? layer.m.rows : layer.m.columns) = p.size();
  return std::make_shared<StoredWeight>(matrixOf(layer));
}

StoredWeight matrixOf(const Layer& layer) {
  return matrixOfParts(
      {.dtypeName = layer.dtypeName,
       .dtype = DType::F32,
       .shape = {layer.m.rows, layer.m.columns},
       .bytes = layer.numbers.tensor.bytes + layer.zeros.tensor.bytes + layer.scales.tensor.bytes,
       .blocks = layer.blocks},
      [layer](WeightPart part) { return readPart(layer, part); },
      [layer](const AxisPiece& piece) { return pieceOf(layer, piece); });
}

void joinPacked(StoredWeights& weights, const std::string& path, const std::vector<Scheme>& schemes,
                const JsonValue& config) {
  Module module(weights, path, config);
  Layer layer{.inWords = true};
  layer.numbers = module.take("weight_packed", {DType::I32});
  const Array shape = module.take("weight_shape", {DType::I64, DType::I32}, {2}).read();
  const Matrix m = layer.m = {int64_t(shape.at(0)), int64_t(shape.at(1))};
  int64_t bits = 0;
  if (m.rows > 0 && m.columns > 0 && m.columns % 2 == 0)
    for (const Scheme& s : schemes)
      if (!s.isFloat && layer.numbers.tensor.shape == Shape{m.rows, wordsOf(m.columns, s.bits)})
        bits = s.bits;
  if (!bits)
    throw module.error("weight_packed",
                       fmt::format("[{}] words do not hold {} x {} numbers of the bits of a group",
                                   fmt::join(layer.numbers.tensor.shape, ", "), m.rows, m.columns));
  layer.bits = bits;
  layer.dtypeName = fmt::format("packed int{}", bits);
  layer.scales = module.take("weight_scale", kScales);
  const int64_t block = blockOf(module, layer.scales, m, schemes, bits);
  layer.places.stored = layer.blocks.block = block;
  const bool hasZero = module.find("weight_zero_point") != nullptr;
  if (hasZero)
    layer.zeros =
        module.take("weight_zero_point", {DType::I32}, {wordsOf(m.rows, bits), layer.perRow()});
  if (module.find("weight_g_idx")) {
    const Array groups = module.take("weight_g_idx", {DType::I32, DType::I64}, {m.columns}).read();
    layer.order = orderOfGroups(module, "weight_g_idx", groups, block);
  }
  const bool isSmall = bits == 4;
  layer.blocks.scale = scaleDType(layer.scales, layer.perRow());
  layer.blocks.ordered = !layer.order.empty();
  layer.blocks.dtype =
      hasZero ? (isSmall ? DType::U4 : DType::U8) : (isSmall ? DType::I4 : DType::I8);
  if (hasZero) layer.blocks.zero = DType::U8;
  module.put(matrixOf(layer));
}

void joinBytes(Module& module, const std::vector<Scheme>& schemes) {
  Layer layer;
  layer.numbers = module.take("weight", {DType::I8});
  const CheckpointTensor& numbers = layer.numbers.tensor;
  if (numbers.shape.size() != 2 || elementCount(numbers.shape) == 0)
    throw module.error("weight", "expected a matrix");
  layer.m = {numbers.shape[0], numbers.shape[1]};
  layer.dtypeName = numbers.dtypeName;
  layer.scales = module.take("weight_scale", kScales);
  const int64_t block = blockOf(module, layer.scales, layer.m, schemes, 8);
  layer.blocks = {.dtype = DType::I8, .block = block};
  layer.places.stored = block;
  layer.blocks.scale = scaleDType(layer.scales, layer.perRow());
  if (module.find("weight_zero_point")) {
    layer.zeros = module.take("weight_zero_point", {DType::I8}, layer.scales.tensor.shape);
    layer.blocks.zero = DType::I8;
  }
  module.put(matrixOf(layer));
}

}  // namespace

void joinCompressedTensors(StoredWeights& weights, ConfigReader& config) {
  const std::vector<Scheme> schemes = readSchemes(config);
  for (const std::string& path : modulesWith(weights, "weight_packed"))
    joinPacked(weights, path, schemes, config.json());
  Shape tile;
  for (const Scheme& s : schemes)
    if (s.isFloat && !s.tile.empty()) tile = s.tile;
  for (const std::string& path : modulesWith(weights, "weight_scale")) {
    Module module(weights, path, config.json());
    const CheckpointTensor* weight = module.find("weight");
    if (!weight) throw module.error("weight", "the tensor is missing");
    isFp8(*weight) ? joinFp8Layer(module, "weight_scale", tile) : joinBytes(module, schemes);
  }
  for (const std::string& path : modulesWith(weights, "input_scale"))
    Module(weights, path, config.json()).drop("input_scale");
  for (const std::string& path : modulesWith(weights, "input_zero_point"))
    Module(weights, path, config.json()).drop("input_zero_point");
}

}  // namespace lathe::quantized
