// SPDX-License-Identifier: Apache-2.0
// GGUF's tensors as weights: rows in the order of the family, blocks as parts or as f32.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/thread_pool.h"
#include "runtime/cut_axis.h"
#include "runtime/gguf_blocks.h"
#include "runtime/gguf_model.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

// The rows of a weight in the file that holds its tensor, or of a piece of it.
class Rows {
 public:
  Rows(GgufFile file, const GgufTensor& tensor, GgufWeight weight)
      : file_(std::move(file)), type_(*tensor.type), weight_(std::move(weight)) {
    if (weight_.shape.empty()) weight_.shape = tensor.shape;
    columns_ = tensor.shape.back();
    count_ = elementCount(weight_.shape) / columns_;
    // A vector is a column where its elements are outputs.
    isColumn_ = weight_.rotatedHeads && tensor.shape.size() == 1;
    if (isColumn_) std::swap(columns_, count_);
    run_ = stride_ = wholeCount_ = count_;
    rowBytes_ = rowStride_ = size_t(columns_ / type_.elements) * type_.bytes;
    begin_ = tensor.offset + size_t(weight_.first) * rowBytes_;
  }

  // Rows of the tensor, or a part of each.
  std::shared_ptr<const Rows> piece(const AxisPiece& p) const {
    if (!isColumn_ && weight_.shape.back() != columns_) return nullptr;
    auto own = std::make_shared<Rows>(*this);
    const CutAxis cut(weight_.shape, p);
    own->isPiece_ = true;
    own->weight_.shape = cut.piece;
    if (isColumn_ || p.axis + 1 < int64_t(weight_.shape.size())) {
      // Rows of whole blocks lie as elements do.
      own->run_ = cut.run / columns_;
      own->stride_ = cut.stride / columns_;
      own->first_ = cut.first / columns_;
      own->count_ = own->run_ * cut.runs;
      return own;
    }
    if (p.groups > 1) return nullptr;
    // The blocks that hold the part, of the first and last of which it may have some elements only.
    own->columns_ = p.size;
    own->lead_ = p.begin % type_.elements;
    own->begin_ += size_t(p.begin / type_.elements) * type_.bytes;
    own->rowBytes_ = size_t(own->blocks()) * type_.bytes;
    return own;
  }

  const Shape& shape() const { return weight_.shape; }
  int64_t rows() const { return count_; }
  int64_t columns() const { return columns_; }
  /// Whether the integers of the part are whole bytes.
  bool isOfBytes() const {
    return !isPacked(type_.blocks->dtype) || (lead_ % 2 == 0 && columns_ % 2 == 0);
  }
  size_t bytes() const { return size_t(count_) * rowBytes_; }
  const GgufTensorType& type() const { return type_; }
  const uint8_t* row(int64_t i) const {
    return reinterpret_cast<const uint8_t*>(file_.mapping()->bytes().data()) + begin_ +
           size_t(source(i)) * rowStride_;
  }

  Array plain() const {
    const DType dtype = *type_.plain;
    std::byte* data = file_.mapping()->data() + begin_ + size_t(first_) * rowStride_;
    const bool isAligned = reinterpret_cast<uintptr_t>(data) % sizeOf(dtype) == 0;
    const bool isTogether = rowBytes_ == rowStride_ && (run_ == stride_ || run_ == count_);
    if (!weight_.rotatedHeads && !weight_.lessOne && isAligned && isTogether) {
      fetch();
      return Array(dtype, weight_.shape, data, file_.mapping());
    }
    const Fetched pages(*this);
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
    const Fetched pages(*this);
    Array result(DType::F32, weight_.shape);
    float* to = result.as<float>().data();
    ThreadPool::global().parallelFor(0, count_, 16, [&](int64_t begin, int64_t end, int) {
      float block[kMostBlockElements];
      for (int64_t i = begin; i < end; ++i)
        for (int64_t b = 0; b < blocks(); ++b) {
          decodeGgufBlock(type_, row(i) + size_t(b) * type_.bytes, block);
          const auto [first, last] = elementsOf(b);
          std::copy(block + first, block + last,
                    to + i * columns_ + b * type_.elements + first - lead_);
        }
    });
    return result;
  }

  // Integers or scales of all blocks.
  Array part(WeightPart part) const {
    const Fetched pages(*this);
    const GgufBlocks& kind = *type_.blocks;
    const bool isScale = part == WeightPart::Scale;
    const int64_t columns = isScale ? columns_ / kind.group : columns_;
    Array result(isScale ? DType::F32 : kind.dtype, {count_, columns});
    auto* to = static_cast<uint8_t*>(result.data());
    ThreadPool::global().parallelFor(0, count_, 16, [&](int64_t begin, int64_t end, int) {
      int8_t q[kMostBlockElements];
      float scale[kMostBlockElements / 16], low[kMostBlockElements / 16];
      for (int64_t i = begin; i < end; ++i)
        for (int64_t b = 0; b < blocks(); ++b) {
          kind.decode(row(i) + size_t(b) * type_.bytes, q, scale, low);
          const auto [first, last] = elementsOf(b);
          const int64_t column = b * type_.elements + first - lead_;  // of the first of them
          if (isScale) {
            std::copy(scale + first / kind.group, scale + last / kind.group,
                      reinterpret_cast<float*>(to) + i * columns + column / kind.group);
          } else if (isPacked(kind.dtype)) {
            uint8_t* at = to + (i * columns + column) / 2;
            for (int64_t e = first; e < last; e += 2) *at++ = uint8_t((q[e] & 15) | q[e + 1] << 4);
          } else {
            std::copy(q + first, q + last, reinterpret_cast<int8_t*>(to) + i * columns + column);
          }
        }
    });
    return result;
  }

 private:
  // The pages of a piece, which are read before they are decoded and given back behind that: no
  // more comes from the disk, and none of it stays beside what was decoded.
  class Fetched {
   public:
    explicit Fetched(const Rows& rows) : rows_(rows) { rows.fetch(); }
    ~Fetched() {
      if (!rows_.isPiece_ || rows_.count_ == 0) return;
      const auto [first, end] = rows_.rowsBetween(0, rows_.count_);
      releaseFilePages(
          rows_.file_.mapping()->data() + rows_.begin_ + size_t(first) * rows_.rowStride_,
          size_t(end - first) * rows_.rowStride_);
    }
    Fetched(const Fetched&) = delete;
    Fetched& operator=(const Fetched&) = delete;

   private:
    const Rows& rows_;
  };

  void fetch() const {
    if (!isPiece_ || count_ == 0) return;
    const auto mapping = file_.mapping();
    auto at = [&](int64_t row) { return begin_ + size_t(row) * rowStride_; };
    if (rowBytes_ < rowStride_)
      return mapping->fetchRuns(at(0), rowBytes_, rowStride_, size_t(wholeCount_));
    for (int64_t i = 0; i < count_; i += run_) {
      const auto [first, end] = rowsBetween(i, i + run_);
      mapping->fetch(at(first), size_t(end - first) * rowStride_);
    }
  }

  // The rows of the tensor between which rows [begin, end) lie: of rotated heads whole ones.
  std::pair<int64_t, int64_t> rowsBetween(int64_t begin, int64_t end) const {
    const int64_t unit = weight_.rotatedHeads ? wholeCount_ / weight_.rotatedHeads : 1;
    return {inTensor(begin) / unit * unit, (inTensor(end - 1) / unit + 1) * unit};
  }

  int64_t blocks() const { return (lead_ + columns_ + type_.elements - 1) / type_.elements; }
  // Which elements of block b of a row are in the part.
  std::pair<int64_t, int64_t> elementsOf(int64_t b) const {
    const int64_t begin = b * type_.elements;
    return {std::max<int64_t>(lead_ - begin, 0),
            std::min(lead_ + columns_ - begin, type_.elements)};
  }

  int64_t inTensor(int64_t i) const { return first_ + i / run_ * stride_ + i % run_; }
  // ggml rotates pairs of neighbours, the families pairs from the two halves of a head.
  int64_t source(int64_t i) const {
    i = inTensor(i);
    if (!weight_.rotatedHeads) return i;
    const int64_t head = wholeCount_ / weight_.rotatedHeads, in = i % head;
    return i - in + in % (head / 2) * 2 + in / (head / 2);
  }

  GgufFile file_;
  const GgufTensorType& type_;
  GgufWeight weight_;
  bool isPiece_ = false, isColumn_ = false;
  // Row i of the piece is row first + i / run * stride + i % run of the tensor.
  int64_t count_ = 0, columns_ = 0, lead_ = 0, run_ = 0, stride_ = 0, first_ = 0, wholeCount_ = 0;
  size_t rowBytes_ = 0, rowStride_ = 0, begin_ = 0;
};

StoredWeight stored(const std::string& name, const std::shared_ptr<const Rows>& rows,
                    const std::string& path, bool lessOne, bool isPiece = false) {
  const GgufTensorType& type = rows->type();
  StoredWeight weight;
  weight.tensor = {name, std::string(type.name), {}, rows->shape(), rows->bytes()};
  if (type.plain) {
    weight.tensor.dtype = lessOne ? DType::F32 : *type.plain;
    weight.read = [rows] { return rows->plain(); };
  } else if (type.blocks && !lessOne) {
    weight.tensor.dtype = DType::F32;
    weight.read = [rows] { return rows->floats(); };
    if (!type.blocks->hasLow && rows->shape().size() == 2 && rows->isOfBytes()) {
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
  if (weight.tensor.dtype && !isPiece)
    weight.cut = [=](const AxisPiece& piece) -> std::shared_ptr<const StoredWeight> {
      const auto own = rows->piece(piece);
      if (!own) return nullptr;
      return std::make_shared<StoredWeight>(stored(name, own, path, lessOne, true));
    };
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
  uint64_t tensors = 0;
  for (const GgufFile& file : parts) tensors += file.header().tensors.size();
  const GgufValue* expected = parts[0].find("split.tensors.count");
  if (expected && expected->asInt(0, INT64_MAX) != int64_t(tensors))
    throw expected->error(
        fmt::format("expected the {} tensors of all files, got {}", tensors, expected->show()));
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
                      fmt::format("{}: tensor {}: another tensor is {}, too", file.path(),
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
