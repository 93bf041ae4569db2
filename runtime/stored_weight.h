// SPDX-License-Identifier: Apache-2.0
#pragma once
// A weight as a checkpoint holds it, whatever its format, and what formats of few bits share.
#include <functional>
#include <map>
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
  /// Part `part` of `parts` equal ones along an axis, where it can be read without the others.
  std::function<Array(int64_t axis, int64_t parts, int64_t part)> readPiece = {};
  /// Of a dtype that Array cannot hold: its bytes, as U8 of the same shape.
  std::function<Array()> readBytes = {};
  /// Of a weight with blocks.
  std::function<Array(WeightPart)> readPart = {};
};
using StoredWeights = std::map<std::string, StoredWeight, std::less<>>;

/// Gives the tensors of a language model the prefix `model.` where it is missing or doubled.
void mendPrefixes(StoredWeights& weights);

/// The f32 matrix [n, k] of a weight's parts: `(q - zero) * scale`, rounded once for each product,
/// its columns in the matrix' own order.
Array dequantized(const StoredWeight& weight);

/// q [rows, columns] of `dtype` from unsigned numbers `at(row, column)`, less `center`. Column j of
/// the result is column `order[j]`; as they come where that is empty. `at` is called by several
/// threads.
Array packIntegers(
    DType dtype, int64_t rows, int64_t columns, int center, const std::vector<int64_t>& order,
    const std::function<void(int64_t row, int64_t rows, int64_t column, uint8_t* to)>& readColumn);

/// Values as f32; exact for f16, bf16 and f32. Throws Error(InvalidArgument) for others.
std::vector<float> floatsOf(const Array& array);

}  // namespace lathe
