// SPDX-License-Identifier: Apache-2.0
// Weights in 8-bit floats (E4M3: Micikevicius et al., "FP8 Formats for Deep Learning", 2022) with
// one scale, one for each row, or one for each tile, as DeepSeek's and Qwen's folders have them.
#include "runtime/fp8.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "lathe/runtime/thread_pool.h"

namespace lathe::quantized {
namespace {

// Four bits of exponent with a bias of 7, three of mantissa; no infinities, one NaN of each sign.
float valueOf(int byte) {
  const int exponent = byte >> 3 & 15, mantissa = byte & 7;
  float value =
      exponent ? std::ldexp(float(8 + mantissa), exponent - 10) : std::ldexp(float(mantissa), -9);
  if ((byte & 127) == 127) value = NAN;
  return byte & 128 ? -value : value;
}

std::array<float, 256> makeTable() {
  std::array<float, 256> table;
  for (int byte = 0; byte < 256; ++byte) table[size_t(byte)] = valueOf(byte);
  return table;
}

// A matrix, or a piece of one that begins at `row` and `column` of it. Each scale of the matrix
// serves a block, and there are so many in a row of them.
struct Layer {
  StoredWeight raw, scales;
  Shape block;
  int64_t perRow = 1, row = 0, column = 0;
};

Array floatsOf(const Layer& layer) {
  static const std::array<float, 256> table = makeTable();
  const Array bytes = layer.raw.readBytes();
  const std::vector<float> scale = lathe::floatsOf(layer.scales.read());
  const uint8_t* from = bytes.as<uint8_t>().data();
  const int64_t rows = bytes.shape()[0], columns = bytes.shape()[1];
  Array result(DType::F32, bytes.shape());
  float* to = result.as<float>().data();
  ThreadPool::global().parallelFor(0, rows, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = (layer.row + i) / layer.block[0] * layer.perRow;
      for (int64_t j = 0; j < columns; ++j)
        to[i * columns + j] = table[from[i * columns + j]] *
                              scale[size_t(first + (layer.column + j) / layer.block[1])];
    }
  });
  return result;
}

StoredWeight matrixOf(const Layer& layer) {
  StoredWeight matrix;
  matrix.tensor = layer.raw.tensor;
  matrix.tensor.dtype = DType::F32;
  matrix.read = [layer] { return floatsOf(layer); };
  // The scales, few beside the numbers, are read whole.
  matrix.cut = [layer](const AxisPiece& piece) -> std::shared_ptr<const StoredWeight> {
    const auto own = piece.groups == 1 && layer.raw.cut ? layer.raw.cut(piece) : nullptr;
    if (!own) return nullptr;
    Layer cut = layer;
    cut.raw = StoredWeight(*own);
    (piece.axis == 0 ? cut.row : cut.column) = piece.begin;
    return std::make_shared<StoredWeight>(matrixOf(cut));
  };
  return matrix;
}

}  // namespace

bool isFp8(const CheckpointTensor& tensor) { return tensor.dtypeName == "F8_E4M3"; }

void joinFp8Layer(Module& module, std::string_view scaleName, const Shape& tile) {
  const CheckpointTensor* found = module.find("weight");
  const StoredWeight scales = module.take(scaleName, {DType::F32, DType::BF16, DType::F16});
  if (!found || !isFp8(*found) || found->shape.size() != 2 || elementCount(found->shape) == 0)
    throw module.error("weight", "expected a matrix of F8_E4M3 beside " + std::string(scaleName));
  const int64_t rows = found->shape[0], columns = found->shape[1];
  Shape block = tile;
  const Shape& shape = scales.tensor.shape;
  auto count = [](int64_t size, int64_t part) { return (size + part - 1) / part; };
  if (elementCount(shape) == 1)
    block = {rows, columns};
  else if (shape == Shape{rows} || shape == Shape{rows, 1})
    block = {1, columns};
  else if (tile.empty() || shape != Shape{count(rows, tile[0]), count(columns, tile[1])})
    throw module.error(
        scaleName,
        fmt::format("expected one scale, one for each of {} rows{}, got [{}]", rows,
                    tile.empty() ? "" : ", or one for each tile", fmt::join(shape, ", ")));
  module.put(matrixOf({module.takeBytes("weight"), scales, block, count(columns, block[1])}));
}

void joinFp8(StoredWeights& weights, ConfigReader& config) {
  if (auto format = config.find("fmt")) expectOneOf(*format, {"e4m3"});
  Shape tile;
  if (auto size = config.find("weight_block_size")) {
    if (!size->isArray() || size->size() != 2)
      throw size->error("expected the rows and columns of a tile, got " + size->show());
    tile = {size->at(0).asInt(1, kMaxIntermediate), size->at(1).asInt(1, kMaxIntermediate)};
  }
  // Activations stay floats here: what a kernel rounds them to is its own.
  config.ignore({"quant_method", "activation_scheme", "scale_fmt", "modules_to_not_convert",
                 "ignored_layers", "activation_scale_ub"});
  for (const char* name : {"weight_scale_inv", "weight_scale"})
    for (const std::string& path : modulesWith(weights, name)) {
      Module module(weights, path, config.json());
      joinFp8Layer(module, name, tile);
      module.drop("input_scale");
    }
  for (auto& [name, stored] : weights)
    if (isFp8(stored.tensor) && !stored.tensor.dtype)
      throw config.json().error(name + ": the matrix of F8_E4M3 has no scale");
}

}  // namespace lathe::quantized
