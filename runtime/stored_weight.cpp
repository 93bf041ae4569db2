// SPDX-License-Identifier: Apache-2.0
#include "runtime/stored_weight.h"

#include <algorithm>

#include "lathe/runtime/error.h"
#include "lathe/runtime/thread_pool.h"

namespace lathe {

std::string_view suffixOf(WeightPart part) {
  constexpr std::string_view suffixes[] = {".q", ".scale", ".zero", ".order"};
  return suffixes[size_t(part)];
}

std::optional<CheckpointTensor> partOf(const CheckpointTensor& whole, WeightPart part) {
  if (!whole.blocks) return std::nullopt;
  const WeightBlocks& b = *whole.blocks;
  const int64_t rows = whole.shape[0], columns = whole.shape[1];
  const Shape perBlock{rows, (columns + b.block - 1) / b.block};
  auto make = [&](DType dtype, Shape shape) -> CheckpointTensor {
    const size_t bytes = bytesOf(dtype, elementCount(shape));
    return {whole.name + std::string(suffixOf(part)), whole.dtypeName, dtype, std::move(shape),
            bytes};
  };
  switch (part) {
    case WeightPart::Q:
      return make(b.dtype, whole.shape);
    case WeightPart::Scale:
      return make(b.scale, perBlock);
    case WeightPart::Zero:
      if (b.zero) return make(*b.zero, perBlock);
      break;
    case WeightPart::Order:
      if (b.ordered) return make(DType::I64, {columns});
      break;
  }
  return std::nullopt;
}

std::optional<AxisPiece> ofMatrix(const CheckpointTensor& whole, WeightPart part,
                                  const AxisPiece& piece) {
  if (part == WeightPart::Q) return piece;
  if (part == WeightPart::Order) return std::nullopt;
  if (piece.axis == 0) return piece;
  if (piece.groups > 1) return std::nullopt;
  const int64_t block = whole.blocks->block, columns = whole.shape[1];
  const int64_t begin = piece.begin * block;
  return AxisPiece{1, begin, std::min(piece.size * block, columns - begin)};
}

StoredWeight storedIn(const std::shared_ptr<const SafetensorsFile>& file,
                      const SafetensorsEntry& entry, const std::string& name) {
  const bool isOfBytes = !entry.dtype && entry.bytes == size_t(elementCount(entry.shape));
  StoredWeight weight;
  weight.tensor = {name, entry.dtypeName, entry.dtype, entry.shape, entry.bytes};
  weight.read = [file, own = entry.name] { return file->array(own); };
  if (isOfBytes)
    weight.readBytes = [file, own = entry.name] {
      const auto bytes = file->bytes(own);
      Array copy(DType::U8, file->find(own)->shape);
      std::ranges::copy(bytes, static_cast<std::byte*>(copy.data()));
      return copy;
    };
  weight.cut = [=, tensor = weight.tensor, own = entry.name](const AxisPiece& piece) {
    auto cut = std::make_shared<StoredWeight>();
    cut->tensor = tensor;
    cut->tensor.shape[size_t(piece.axis)] = piece.size * piece.groups;
    cut->read = [=] { return file->piece(own, piece); };
    if (isOfBytes) cut->readBytes = [=] { return file->bytesOfPiece(own, piece); };
    return cut;
  };
  return weight;
}

Array dequantized(const CheckpointTensor& tensor,
                  const std::function<Array(WeightPart)>& readPart) {
  const WeightBlocks& b = *tensor.blocks;
  const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
  const int64_t perRow = (columns + b.block - 1) / b.block;
  const Array q = readPart(WeightPart::Q);
  const std::vector<float> scale = floatsOf(readPart(WeightPart::Scale));
  Array zero, order;
  if (b.zero) zero = readPart(WeightPart::Zero);
  if (b.ordered) order = readPart(WeightPart::Order);
  Array result(DType::F32, tensor.shape);
  float* to = result.as<float>().data();
  ThreadPool::global().parallelFor(0, rows, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t block = row * perRow + j / b.block;
        const double value = q.at(row * columns + j) - (b.zero ? zero.at(block) : 0.0);
        const int64_t column = b.ordered ? order.as<int64_t>()[size_t(j)] : j;
        to[row * columns + column] = float(value) * scale[size_t(block)];
      }
  });
  return result;
}

Array packIntegers(
    DType dtype, int64_t rows, int64_t columns, int center, const std::vector<int64_t>& order,
    const std::function<void(int64_t row, int64_t rows, int64_t column, uint8_t* to)>& readColumn) {
  Array result(dtype, {rows, columns});
  auto* to = static_cast<uint8_t*>(result.data());
  const bool isSmall = isPacked(dtype);
  if (isSmall && columns % 2)
    throw Error(ErrorCode::Unsupported, "rows of an odd number of 4-bit elements");
  constexpr int64_t kTile = 64;  // rows that are read together: sources lie column by column
  ThreadPool::global().parallelFor(0, rows, kTile, [&](int64_t begin, int64_t end, int) {
    std::vector<uint8_t> numbers(size_t(kTile * columns));
    uint8_t column[kTile];
    for (int64_t first = begin; first < end; first += kTile) {
      const int64_t count = std::min(kTile, end - first);
      for (int64_t j = 0; j < columns; ++j) {
        readColumn(first, count, order.empty() ? j : order[size_t(j)], column);
        for (int64_t i = 0; i < count; ++i)
          numbers[size_t(i * columns + j)] = uint8_t(column[i] - center);
      }
      for (int64_t i = 0; i < count; ++i) {
        const uint8_t* from = &numbers[size_t(i * columns)];
        uint8_t* row = to + bytesOf(dtype, (first + i) * columns);
        if (!isSmall) std::copy(from, from + columns, row);
        for (int64_t j = 0; isSmall && j < columns; j += 2)
          row[j / 2] = uint8_t((from[j] & 15) | from[j + 1] << 4);
      }
    }
  });
  return result;
}

std::vector<float> floatsOf(const Array& array) {
  std::vector<float> values(static_cast<size_t>(array.size()));
  if (values.empty()) return values;
  if (array.dtype() == DType::F32) {
    std::ranges::copy(array.as<float>(), values.begin());
  } else if (array.dtype() == DType::BF16) {
    std::ranges::transform(array.as<uint16_t>(), values.begin(), bf16ToFloat);
  } else if (array.dtype() == DType::F16) {
    std::ranges::transform(array.as<uint16_t>(), values.begin(), f16ToFloat);
  } else {
    throw Error(ErrorCode::InvalidArgument,
                "expected f32, bf16 or f16, got " + describe(array.dtype(), array.shape()));
  }
  return values;
}

}  // namespace lathe
