// SPDX-License-Identifier: Apache-2.0
#include "runtime/quantized_folder.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace lathe {

void joinQuantizedLayers(StoredWeights& weights, const JsonValue& config) {
  ConfigReader reader(config);
  const JsonValue method = reader.at("quant_method");
  quantized::expectOneOf(method, {"gptq", "awq", "compressed-tensors", "fp8", "fbgemm_fp8"});
  const std::string& name = method.asString();
  if (name == "gptq")
    quantized::joinGptq(weights, reader);
  else if (name == "awq")
    quantized::joinAwq(weights, reader);
  else if (name == "compressed-tensors")
    quantized::joinCompressedTensors(weights, reader);
  else
    quantized::joinFp8(weights, reader);
  reader.finish("the method " + name);
}

namespace quantized {

void expectOneOf(const JsonValue& value, std::initializer_list<std::string_view> texts) {
  if (value.isString() && std::ranges::find(texts, value.asString()) != texts.end()) return;
  throw value.error(fmt::format("expected {}, got {}", fmt::join(texts, " or "), value.show()),
                    ErrorCode::Unsupported);
}

std::vector<std::string> modulesWith(const StoredWeights& weights, std::string_view name) {
  std::vector<std::string> modules;
  const std::string ending = "." + std::string(name);
  for (auto& [tensor, stored] : weights)
    if (tensor.ends_with(ending))
      modules.push_back(tensor.substr(0, tensor.size() - ending.size()));
  return modules;
}

const CheckpointTensor* Module::find(std::string_view name) const {
  auto it = weights_.find(path_ + "." + std::string(name));
  return it == weights_.end() ? nullptr : &it->second.tensor;
}

StoredWeight Module::take(std::string_view name, std::initializer_list<DType> dtypes,
                          const Shape& shape) {
  auto it = weights_.find(path_ + "." + std::string(name));
  if (it == weights_.end()) throw error(name, "the tensor is missing");
  StoredWeight stored = std::move(it->second);
  weights_.erase(it);
  const CheckpointTensor& t = stored.tensor;
  const bool fits = t.dtype && std::ranges::find(dtypes, *t.dtype) != dtypes.end();
  if (!fits || (!shape.empty() && t.shape != shape)) {
    std::string names;
    for (DType dtype : dtypes) names += (names.empty() ? "" : " or ") + std::string(nameOf(dtype));
    throw error(name, fmt::format("expected {}{}, got {}[{}]", names,
                                  shape.empty() ? "" : fmt::format("[{}]", fmt::join(shape, ", ")),
                                  t.dtypeName, fmt::join(t.shape, ", ")));
  }
  return stored;
}

StoredWeight Module::takeBytes(std::string_view name) {
  auto it = weights_.find(path_ + "." + std::string(name));
  StoredWeight stored = std::move(it->second);
  weights_.erase(it);
  return stored;
}

void Module::drop(std::string_view name) { weights_.erase(path_ + "." + std::string(name)); }

void Module::put(StoredWeight weight) {
  weight.tensor.name = path_ + ".weight";
  if (!weights_.emplace(weight.tensor.name, weight).second)
    throw error("weight", "there are a matrix and its quantized form");
}

Error Module::error(std::string_view name, const std::string& message) const {
  return config_.error(fmt::format("{}.{}: {}", path_, name, message));
}

StoredWeight matrixOfParts(
    CheckpointTensor tensor, std::function<Array(WeightPart)> readPart,
    std::function<std::shared_ptr<const StoredWeight>(const AxisPiece&)> cut) {
  StoredWeight matrix;
  matrix.read = [tensor, readPart] { return dequantized(tensor, readPart); };
  matrix.tensor = std::move(tensor);
  matrix.readPart = std::move(readPart);
  matrix.cut = std::move(cut);
  return matrix;
}

bool LayerPiece::cut(StoredWeight& tensor, int64_t axis, int64_t unit) {
  const bool isWhole =
      piece_.begin % unit == 0 && length_ / piece_.groups % unit == 0 && piece_.size % unit == 0;
  // The last element of a row may not be full.
  const bool isLast =
      piece_.groups == 1 && piece_.begin % unit == 0 && piece_.begin + piece_.size == length_;
  if (!isWhole && !isLast) return false;
  return take(tensor, {axis, piece_.begin / unit, (piece_.size + unit - 1) / unit, piece_.groups});
}

bool LayerPiece::cutBlocks(StoredWeight& tensor, int64_t axis, int64_t block) {
  if (piece_.groups > 1) return cut(tensor, axis, block);
  const int64_t first = piece_.begin / block, last = (piece_.begin + piece_.size - 1) / block;
  return piece_.size > 0 && take(tensor, {axis, first, last - first + 1});
}

void LayerPiece::cutBlocks(WeightBlocks& blocks, BlockPlaces& places) {
  if (piece_.groups > 1) return;  // each is of whole blocks
  const int64_t block = blocks.block, end = piece_.begin + piece_.size;
  places.lead = piece_.begin % block;
  const bool isOne = piece_.begin / block == (end - 1) / block;
  const bool isOfWhole = places.lead == 0 && (end % block == 0 || end == length_);
  if (!isOne && !isOfWhole) blocks.block = std::gcd(block, std::gcd(places.lead, piece_.size));
}

Array BlockPlaces::spread(const Array& perBlock, int64_t columns, int64_t block) const {
  const int64_t rows = perBlock.shape()[0], from = perBlock.shape()[1],
                count = (columns + block - 1) / block;
  if (count == from && block == stored) return perBlock;
  Array result(perBlock.dtype(), {rows, count});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < count; ++j)
      result.set(i * count + j, perBlock.at(i * from + (lead + j * block) / stored));
  return result;
}

bool LayerPiece::take(StoredWeight& tensor, const AxisPiece& piece) {
  const auto own = tensor.cut ? tensor.cut(piece) : nullptr;
  if (own) tensor = StoredWeight(*own);
  return own != nullptr;
}

Array readScales(const StoredWeight& stored, DType dtype, int64_t rows, int64_t blocks,
                 bool isTransposed) {
  const Array raw = stored.read();
  if (raw.dtype() == dtype && !isTransposed && raw.size() == rows * blocks)
    return raw.reshaped({rows, blocks});
  const std::vector<float> values = floatsOf(raw);
  Array result(dtype, {rows, blocks});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < blocks; ++j) {
      const int64_t from = values.size() == 1 ? 0 : isTransposed ? j * rows + i : i * blocks + j;
      const float value = values[size_t(from)];
      if (dtype == DType::F32)
        result.as<float>()[size_t(i * blocks + j)] = value;
      else
        result.as<uint16_t>()[size_t(i * blocks + j)] = floatToBf16(value);
    }
  return result;
}

DType scaleDType(const StoredWeight& stored, int64_t blocks) {
  return blocks > 1 && stored.tensor.dtype == DType::BF16 ? DType::BF16 : DType::F32;
}

std::vector<int64_t> orderOfGroups(const Module& module, std::string_view name, const Array& groups,
                                   int64_t group) {
  const int64_t columns = groups.size();
  const int64_t count = (columns + group - 1) / group;
  auto of = [&](int64_t column) { return int64_t(groups.at(column)); };
  for (int64_t i = 0; i < columns; ++i)
    if (of(i) < 0 || of(i) >= count)
      throw module.error(name,
                         fmt::format("element {} is {}, expected 0 to {}", i, of(i), count - 1));
  std::vector<int64_t> order(static_cast<size_t>(columns));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int64_t column) { return std::pair(of(column), column); });
  bool isPlain = true;
  for (int64_t j = 0; j < columns; ++j) {
    isPlain &= order[size_t(j)] == j;
    if (of(order[size_t(j)]) != j / group)
      throw module.error(name, fmt::format("group {} has not {} columns", j / group, group));
  }
  return isPlain ? std::vector<int64_t>() : order;
}

Array toArray(const std::vector<int64_t>& order) {
  return Array::fromInts(order, {int64_t(order.size())});
}

}  // namespace quantized
}  // namespace lathe
