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

void joinPacked(StoredWeights& weights, const std::string& path, const std::vector<Scheme>& schemes,
                const JsonValue& config) {
  Module module(weights, path, config);
  const StoredWeight words = module.take("weight_packed", {DType::I32});
  const Array shape = module.take("weight_shape", {DType::I64, DType::I32}, {2}).read();
  const Matrix m{int64_t(shape.at(0)), int64_t(shape.at(1))};
  int64_t bits = 0;
  auto wordsOf = [](int64_t numbers, int64_t width) {
    return (numbers + 32 / width - 1) / (32 / width);
  };
  if (m.rows > 0 && m.columns > 0 && m.columns % 2 == 0)
    for (const Scheme& s : schemes)
      if (!s.isFloat && words.tensor.shape == Shape{m.rows, wordsOf(m.columns, s.bits)})
        bits = s.bits;
  if (!bits)
    throw module.error("weight_packed",
                       fmt::format("[{}] words do not hold {} x {} numbers of the bits of a group",
                                   fmt::join(words.tensor.shape, ", "), m.rows, m.columns));
  const StoredWeight scales = module.take("weight_scale", kScales);
  const int64_t block = blockOf(module, scales, m, schemes, bits);
  const int64_t perRow = (m.columns + block - 1) / block, perWord = 32 / bits;
  StoredWeight zeros;
  const bool hasZero = module.find("weight_zero_point") != nullptr;
  if (hasZero)
    zeros = module.take("weight_zero_point", {DType::I32}, {wordsOf(m.rows, bits), perRow});
  std::vector<int64_t> order;
  if (module.find("weight_g_idx")) {
    const Array groups = module.take("weight_g_idx", {DType::I32, DType::I64}, {m.columns}).read();
    order = orderOfGroups(module, "weight_g_idx", groups, block);
  }

  WeightBlocks blocks{
      .block = block, .scale = scaleDType(scales, perRow), .ordered = !order.empty()};
  const bool isSmall = bits == 4;
  blocks.dtype = hasZero ? (isSmall ? DType::U4 : DType::U8) : (isSmall ? DType::I4 : DType::I8);
  if (hasZero) blocks.zero = DType::U8;
  const auto mask = uint32_t((1 << bits) - 1);
  StoredWeight matrix;
  matrix.tensor = {.dtypeName = fmt::format("packed int{}", bits),
                   .dtype = DType::F32,
                   .shape = {m.rows, m.columns},
                   .bytes = words.tensor.bytes + zeros.tensor.bytes + scales.tensor.bytes,
                   .blocks = blocks};
  matrix.readPart = [=](WeightPart part) -> Array {
    if (part == WeightPart::Order) return toArray(order);
    if (part == WeightPart::Scale) return readScales(scales, blocks.scale, m.rows, perRow, false);
    if (part == WeightPart::Zero) {
      const Array raw = zeros.read();  // packed along the rows
      Array zero(DType::U8, {m.rows, perRow});
      for (int64_t n = 0; n < m.rows; ++n)
        for (int64_t g = 0; g < perRow; ++g) {
          const auto word = uint32_t(raw.as<int32_t>()[size_t(n / perWord * perRow + g)]);
          zero.as<uint8_t>()[size_t(n * perRow + g)] =
              uint8_t(word >> (bits * (n % perWord)) & mask);
        }
      return zero;
    }
    const Array raw = words.read();
    const int32_t* from = raw.as<int32_t>().data();
    const int64_t wide = wordsOf(m.columns, bits);
    return packIntegers(
        blocks.dtype, m.rows, m.columns, hasZero ? 0 : 1 << (bits - 1), order,
        [=](int64_t row, int64_t rows, int64_t column, uint8_t* to) {
          const int64_t at = row * wide + column / perWord;
          for (int64_t i = 0; i < rows; ++i)
            to[i] = uint8_t(uint32_t(from[at + i * wide]) >> (bits * (column % perWord)) & mask);
        });
  };
  module.put(std::move(matrix));
}

void joinBytes(Module& module, const std::vector<Scheme>& schemes) {
  const StoredWeight bytes = module.take("weight", {DType::I8});
  if (bytes.tensor.shape.size() != 2) throw module.error("weight", "expected a matrix");
  const Matrix m{bytes.tensor.shape[0], bytes.tensor.shape[1]};
  const StoredWeight scales = module.take("weight_scale", kScales);
  const int64_t block = blockOf(module, scales, m, schemes, 8);
  const int64_t perRow = (m.columns + block - 1) / block;
  StoredWeight zeros;
  const bool hasZero = module.find("weight_zero_point") != nullptr;
  if (hasZero) zeros = module.take("weight_zero_point", {DType::I8}, scales.tensor.shape);
  WeightBlocks blocks{.dtype = DType::I8, .block = block, .scale = scaleDType(scales, perRow)};
  if (hasZero) blocks.zero = DType::I8;
  StoredWeight matrix;
  matrix.tensor = bytes.tensor;
  matrix.tensor.dtype = DType::F32;
  matrix.tensor.blocks = blocks;
  matrix.readPart = [=](WeightPart part) -> Array {
    if (part == WeightPart::Q) return bytes.read();
    if (part == WeightPart::Scale) return readScales(scales, blocks.scale, m.rows, perRow, false);
    const Array raw = zeros.read();
    Array zero(DType::I8, {m.rows, perRow});
    for (int64_t i = 0; i < zero.size(); ++i)
      zero.as<int8_t>()[size_t(i)] = raw.as<int8_t>()[raw.size() == 1 ? 0 : size_t(i)];
    return zero;
  };
  module.put(std::move(matrix));
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
