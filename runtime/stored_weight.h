// SPDX-License-Identifier: Apache-2.0
#pragma once
// A weight as a checkpoint holds it, whatever its format, and what formats of few bits share.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lathe/runtime/checkpoint.h"

namespace lathe {

enum class WeightPart { Q, Scale, Zero, Order };
/// ".q", ".scale", ".zero", ".order"
std::string_view suffixOf(WeightPart part);
/// What a part of a weight with blocks is; nothing for a part that it does not have.
std::optional<CheckpointTensor> partOf(const CheckpointTensor& whole, WeightPart part);

struct StoredWeight {
  CheckpointTensor tensor;
  std::function<Array()> read;
  /// A piece as a weight of its own, which reads nothing of the rest; null where that cannot be. A
  /// piece has no pieces. Throws Error(InvalidArgument) for one that the tensor does not have.
  std::function<std::shared_ptr<const StoredWeight>(const AxisPiece&)> cut = {};
  /// Of a dtype that Array cannot hold: its bytes, as U8 of the same shape.
  std::function<Array()> readBytes = {};
  /// Of a weight with blocks.
  std::function<Array(WeightPart)> readPart = {};
};
using StoredWeights = std::map<std::string, StoredWeight, std::less<>>;

/// A tensor of a safetensors file under the name `name`.
StoredWeight storedIn(const std::shared_ptr<const SafetensorsFile>& file,
                      const SafetensorsEntry& entry, const std::string& name);

/// The piece of a matrix with blocks that a piece of one of its parts is of: of scales and zero
/// points the columns of whole blocks. Nothing for an order of columns, and in groups of blocks.
std::optional<AxisPiece> ofMatrix(const CheckpointTensor& whole, WeightPart part,
                                  const AxisPiece& piece);

/// The name that a weight of a model has among those of a checkpoint, whose names may begin behind
/// the model's own part, and with `model.` where mendPrefixes put it; the name itself if it has
/// none.
template <class Has>
std::string nameAmong(std::string_view name, const Has& has) {
  const size_t end = name.find('.');
  if (has(name) || end == name.npos) return std::string(name);
  const std::string rest(name.substr(end + 1));
  for (const std::string& bare : {rest, "model." + rest})
    if (has(bare)) return bare;
  return std::string(name);
}

/// Gives the tensors of a language model the prefix `model.` where it is missing or doubled.
void mendPrefixes(StoredWeights& weights);

/// The f32 matrix [n, k] of a weight's parts: `(q - zero) * scale`, rounded once for each product,
/// its columns in the matrix' own order.
Array dequantized(const CheckpointTensor& tensor, const std::function<Array(WeightPart)>& readPart);

/// q [rows, columns] of `dtype` from unsigned numbers `at(row, column)`, less `center`. Column j of
/// the result is column `order[j]`; as they come where that is empty. `at` is called by several
/// threads.
Array packIntegers(
    DType dtype, int64_t rows, int64_t columns, int center, const std::vector<int64_t>& order,
    const std::function<void(int64_t row, int64_t rows, int64_t column, uint8_t* to)>& readColumn);

/// Values as f32; exact for f16, bf16 and f32. Throws Error(InvalidArgument) for others.
std::vector<float> floatsOf(const Array& array);

}  // namespace lathe
