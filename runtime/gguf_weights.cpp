// SPDX-License-Identifier: Apache-2.0
// GGUF's tensors as weights: rows in the order of the family, blocks as parts or as f32.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/thread_pool.h"
#include "runtime/gguf_blocks.h"
#include "runtime/gguf_model.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

// The rows of a weight in the file that holds its tensor.
class Rows {
 public:
  Rows(GgufFile file, const GgufTensor& tensor, GgufWeight weight)
      : file_(std::move(file)), type_(*tensor.type), weight_(std::move(weight)) {
    if (weight_.shape.empty()) weight_.shape = tensor.shape;
    columns_ = tensor.shape.back();
    count_ = elementCount(weight_.shape) / columns_;
    // A vector is a column where its elements are outputs.
    if (weight_.rotatedHeads && tensor.shape.size() == 1) std::swap(columns_, count_);
    rowBytes_ = size_t(columns_ / type_.elements) * type_.bytes;
    begin_ = tensor.offset + size_t(weight_.first) * rowBytes_;
  }

  const Shape& shape() const { return weight_.shape; }
  int64_t rows() const { return count_; }
  int64_t columns() const { return columns_; }
  size_t bytes() const { return size_t(count_) * rowBytes_; }
  const GgufTensorType& type() const { return type_; }
  const uint8_t* row(int64_t i) const {
    return reinterpret_cast<const uint8_t*>(file_.mapping()->bytes().data()) + begin_ +
           size_t(source(i)) * rowBytes_;
  }

  Array plain() const {
    const DType dtype = *type_.plain;
    std::byte* data = file_.mapping()->data() + begin_;
    const bool isAligned = reinterpret_cast<uintptr_t>(data) % sizeOf(dtype) == 0;
    if (!weight_.rotatedHeads && !weight_.lessOne && isAligned)
      return Array(dtype, weight_.shape, data, file_.mapping());
    Array copy(dtype, weight_.shape);
    for (int64_t i = 0; i < count_; ++i)
      std::memcpy(static_cast<std::byte*>(copy.data()) + size_t(i) * rowBytes_, row(i), rowBytes_);
    if (!weight_.lessOne) return copy;
    // In f32, as it was added.
    Array less(DType::F32, weight_.shape);
    for (int64_t i = 0; i < copy.size(); ++i)
      less.as<float>()[size_t(i)] = float(copy.at(i)) - 1.0f;
    return less;
  }

  Array floats() const {
    Array result(DType::F32, weight_.shape);
    float* to = result.as<float>().data();
    ThreadPool::global().parallelFor(0, count_, 16, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t b = 0; b < columns_ / type_.elements; ++b)
          decodeGgufBlock(type_, row(i) + size_t(b) * type_.bytes,
                          to + i * columns_ + b * type_.elements);
    });
    return result;
  }

  // Integers or scales of all blocks.
  Array part(WeightPart part) const {
    const GgufBlocks& kind = *type_.blocks;
    const bool isScale = part == WeightPart::Scale;
    const int64_t perBlock = type_.elements / kind.group;
    Array result(isScale ? DType::F32 : kind.dtype,
                 {count_, isScale ? columns_ / kind.group : columns_});
    auto* to = static_cast<uint8_t*>(result.data());
    ThreadPool::global().parallelFor(0, count_, 16, [&](int64_t begin, int64_t end, int) {
      int8_t q[kMostBlockElements];
      float scale[kMostBlockElements / 16], low[kMostBlockElements / 16];
      for (int64_t block = begin * (columns_ / type_.elements);
           block < end * (columns_ / type_.elements); ++block) {
        const int64_t i = block / (columns_ / type_.elements),
                      b = block % (columns_ / type_.elements);
        kind.decode(row(i) + size_t(b) * type_.bytes, q, scale, low);
        if (isScale) {
          std::memcpy(to + size_t(block * perBlock) * sizeof(float), scale,
                      size_t(perBlock) * sizeof(float));
        } else if (isPacked(kind.dtype)) {
          uint8_t* at = to + block * type_.elements / 2;
          for (int64_t e = 0; e < type_.elements; e += 2)
            at[e / 2] = uint8_t((q[e] & 15) | q[e + 1] << 4);
        } else {
          std::memcpy(to + block * type_.elements, q, size_t(type_.elements));
        }
      }
    });
    return result;
  }

 private:
  // ggml rotates pairs of neighbours, the families pairs from the two halves of a head.
  int64_t source(int64_t i) const {
    if (!weight_.rotatedHeads) return i;
    const int64_t head = count_ / weight_.rotatedHeads, in = i % head;
    return i - in + in % (head / 2) * 2 + in / (head / 2);
  }

  GgufFile file_;
  const GgufTensorType& type_;
  GgufWeight weight_;
  int64_t count_ = 0, columns_ = 0;
  size_t rowBytes_ = 0, begin_ = 0;
};

StoredWeight stored(const std::string& name, const std::shared_ptr<const Rows>& rows,
                    const std::string& path, bool lessOne) {
  const GgufTensorType& type = rows->type();
  StoredWeight weight;
  weight.tensor = {name, std::string(type.name), {}, rows->shape(), rows->bytes()};
  if (type.plain) {
    weight.tensor.dtype = lessOne ? DType::F32 : *type.plain;
    weight.read = [rows] { return rows->plain(); };
  } else if (type.blocks && !lessOne) {
    weight.tensor.dtype = DType::F32;
    weight.read = [rows] { return rows->floats(); };
    if (!type.blocks->hasLow && rows->shape().size() == 2) {
      weight.tensor.blocks = WeightBlocks{.dtype = type.blocks->dtype, .block = type.blocks->group};
      weight.readPart = [rows](WeightPart part) { return rows->part(part); };
    }
  } else {
    weight.read = [name, path, type]() -> Array {
      throw Error(ErrorCode::Unsupported,
                  fmt::format("{}: tensor {} is of type {}, expected {}", path, inQuotes(name),
                              type.name, readableGgufTypes()));
    };
  }
  return weight;
}

}  // namespace

std::vector<GgufFile> openGgufParts(const std::string& path) {
  std::vector<GgufFile> parts{GgufFile::open(path)};
  const GgufValue* countValue = parts[0].find("split.count");
  const int64_t count = countValue ? countValue->asInt(0, 9999) : 0;
  if (count <= 1) return parts;
  if (parts[0].at("split.no").asInt(0, 9999) != 0)
    throw parts[0].at("split.no").error("expected the first of the model's files, name that one");
  const std::string ending = fmt::format("-{:05}-of-{:05}.gguf", 1, count);
  if (!path.ends_with(ending))
    throw countValue->error(fmt::format("expected a name that ends in {}", ending));
  for (int64_t i = 1; i < count; ++i) {
    const std::string part = path.substr(0, path.size() - ending.size()) +
                             fmt::format("-{:05}-of-{:05}.gguf", i + 1, count);
    parts.push_back(GgufFile::open(part));
    const GgufFile& file = parts.back();
    if (file.at("split.no").asInt(0, 9999) != i || file.at("split.count").asInt(0, 9999) != count)
      throw file.at("split.no").error(fmt::format("expected part {} of {}", i, count));
  }
  return parts;
}

const GgufTensor* findTensor(const std::vector<GgufFile>& parts, std::string_view name) {
  for (const GgufFile& file : parts)
    if (const GgufTensor* tensor = file.tensor(name)) return tensor;
  return nullptr;
}

StoredWeights readGgufWeights(const std::string& path) {
  const std::vector<GgufFile> parts = openGgufParts(path);
  StoredWeights weights;
  for (const GgufFile& file : parts)
    for (const GgufTensor& tensor : file.header().tensors)
      for (GgufWeight& weight : weightsIn(tensor, parts)) {
        const std::string name = weight.name;
        const bool lessOne = weight.lessOne;
        auto rows = std::make_shared<const Rows>(file, tensor, std::move(weight));
        if (!weights.emplace(name, stored(name, rows, file.path(), lessOne)).second)
          throw Error(ErrorCode::InvalidFile,
                      fmt::format("{}: tensor {}: {} is given twice", file.path(),
                                  inQuotes(tensor.name), name));
      }
  return weights;
}

std::map<std::string, std::string> ggufModelFiles(const std::string& path) {
  const std::vector<GgufFile> parts = openGgufParts(path);
  std::map<std::string, std::string> files{{"config.json", ggufConfig(parts)}};
  if (!parts[0].find("tokenizer.ggml.model")) return files;
  files["tokenizer.json"] = ggufTokenizer(parts[0]);
  files["tokenizer_config.json"] = ggufTokenizerConfig(parts[0]);
  if (const GgufValue* text = parts[0].find("tokenizer.chat_template"))
    files["chat_template.jinja"] = text->asString();
  return files;
}

}  // namespace lathe
