// SPDX-License-Identifier: Apache-2.0
#include "runtime/bound_weights.h"

#include <cmath>
#include <cstring>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/thread_pool.h"
#include "runtime/cut_axis.h"
#include "runtime/mapped_file.h"

namespace lathe {

// The shape in the checkpoint, which has all pieces.
static Shape wholeShape(const TensorInfo& info) {
  Shape shape;
  for (const DimExpr& d : info.sourceShape()) shape.push_back(d.asConstant().value());
  return shape;
}

Array partOf(const Array& whole, const AxisPiece& piece, const std::string& name) {
  const CutAxis cut(whole.shape(), piece);
  const DType dtype = whole.dtype();
  if (!cut.isOfBytes(dtype))
    throw Error(ErrorCode::Unsupported, "weight '" + name + "' " + describe(dtype, whole.shape()) +
                                            ": pieces of half bytes along axis " +
                                            std::to_string(piece.axis));
  const size_t bytes = bytesOf(dtype, cut.run), stride = bytesOf(dtype, cut.stride);
  auto* from = static_cast<const std::byte*>(whole.data()) + bytesOf(dtype, cut.first);
  if (cut.runs == 1 && bytes)
    return Array(dtype, cut.piece, const_cast<std::byte*>(from), std::make_shared<Array>(whole));
  Array copy(dtype, cut.piece);
  auto* to = static_cast<std::byte*>(copy.data());
  for (int64_t i = 0; i < cut.runs && bytes; ++i)
    std::memcpy(to + size_t(i) * bytes, from + size_t(i) * stride, bytes);
  return copy;
}

namespace {

// Collects what does not fit.
class Mistakes {
 public:
  void check(const TensorInfo& info, bool isThere, std::optional<DType> dtype, const Shape& shape) {
    const Shape expected = wholeShape(info);
    const std::string wanted = describe(info.dtype, expected);
    auto got = [&] { return dtype ? describe(*dtype, shape) : "of a dtype that cannot be read"; };
    if (!isThere)
      report("missing: " + info.source() + " " + wanted);
    else if (shape != expected)
      report("wrong shape: " + info.source() + " is " + got() + ", expected " + wanted);
    else if (dtype != info.dtype)
      report("wrong dtype: " + info.source() + " is " + got() + ", expected " + wanted +
             "; convert it or compile for its dtype");
  }
  void throwIfAny() const {
    if (count_)
      throw Error(
          ErrorCode::InvalidArgument,
          std::to_string(count_) + " weights do not fit the program:" + lines_ +
              (count_ > kLines ? "\n  ... and " + std::to_string(count_ - kLines) + " more" : ""));
  }

 private:
  static constexpr int kLines = 20;
  void report(const std::string& line) {
    if (++count_ <= kLines) lines_ += "\n  " + line;
  }
  std::string lines_;
  int count_ = 0;
};

}  // namespace

Array ownPiece(const TensorInfo& info, Array whole, int64_t rank, int64_t ranks) {
  if (!info.piece) return whole;
  const AxisPiece own = info.own(rank, ranks);
  Array piece = partOf(whole, own, info.source());
  const bool isView = CutAxis(whole.shape(), own).runs == 1;
  if (!isView) releaseFilePages(whole.data(), whole.bytes());  // what was copied
  return piece;
}

Array readPiece(const TensorInfo& info, const Checkpoint& checkpoint, int64_t rank, int64_t ranks) {
  // What all ranks have whole is a piece, too, so that it is read without what lies around it.
  if (ranks > 1 && !info.shape.empty())
    if (auto own = checkpoint.findPiece(info.source(), info.own(rank, ranks))) return *own;
  return ownPiece(info, checkpoint.find(info.source()).value_or(Array()), rank, ranks);
}

std::vector<Array> fetchWeights(const Program& program, const WeightSource& source) {
  std::vector<Array> arrays;
  Mistakes mistakes;
  for (const TensorInfo& info : program.weights) {
    arrays.push_back(source(info.source()));
    const Array& a = arrays.back();
    mistakes.check(info, a.defined(), a.dtype(), a.shape());
  }
  mistakes.throwIfAny();
  return arrays;
}

void checkStoredWeights(const Program& program, const Checkpoint& checkpoint) {
  Mistakes mistakes;
  for (const TensorInfo& info : program.weights) {
    const CheckpointTensor* tensor = checkpoint.entry(info.source());
    mistakes.check(info, tensor, tensor ? tensor->dtype : std::nullopt,
                   tensor ? tensor->shape : Shape());
  }
  mistakes.throwIfAny();
}

// A JSON list of names, absent if every weight is read.
static constexpr const char* kUnreadWeights = "unread_weights";

void noteUnreadWeights(Program& program, const std::vector<std::string>& declared) {
  std::set<std::string> unread(declared.begin(), declared.end());
  for (const TensorInfo& info : program.weights) unread.erase(info.source());
  if (unread.empty()) return;
  std::string list;
  for (const std::string& name : unread) list += (list.empty() ? "" : ", ") + jsonString(name);
  program.metadata[kUnreadWeights] = "[" + list + "]";
}

std::set<std::string> unreadWeights(const Program& program) {
  std::set<std::string> names;
  auto it = program.metadata.find(kUnreadWeights);
  if (it == program.metadata.end()) return names;
  for (const JsonValue& name : JsonValue::parse(it->second, kUnreadWeights).elements())
    names.insert(name.asString());
  return names;
}

Array randomWeight(const TensorInfo& info, uint64_t seed, int64_t rank, int64_t ranks) {
  const Shape whole = wholeShape(info);
  // The elements that a piece has, by their places in the whole.
  CutAxis cut(whole, 0);
  if (info.piece) cut = CutAxis(whole, info.own(rank, ranks));
  const int64_t run = cut.run;
  Array a(info.dtype, cut.piece);
  // SplitMix64 (Steele, Lea, Flood 2014), keyed by the name so that order does not matter. Its
  // state is a counter, so that any element can be computed alone.
  constexpr uint64_t step = 0x9e3779b97f4a7c15u;
  uint64_t start = seed * step;
  for (unsigned char c : info.source()) start = (start ^ c) * 0x100000001b3u;
  auto uniform = [start](int64_t index) {
    uint64_t z = start + (uint64_t(index) + 1) * step;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return float(int64_t(z) >> 40) * 0x1p-23f;  // [-1, 1)
  };
  bool vector = whole.size() < 2;
  float scale = vector ? 0.1f : 1.0f / std::sqrt(float(std::max<int64_t>(whole.back(), 1)));
  float center = vector ? 1.0f : 0.0f;
  auto fill = [&](int64_t begin, int64_t end, int64_t index) {
    auto value = [&](int64_t i) { return center + scale * uniform(index + i - begin); };
    if (info.dtype == DType::BF16) {
      uint16_t* to = a.as<uint16_t>().data();
      for (int64_t i = begin; i < end; ++i) to[i] = floatToBf16(value(i));
    } else if (info.dtype == DType::F32) {
      float* to = a.as<float>().data();
      for (int64_t i = begin; i < end; ++i) to[i] = value(i);
    } else {
      for (int64_t i = begin; i < end; ++i) a.set(i, value(i));
    }
  };
  constexpr int64_t kGrain = 1 << 16;  // elements that repay a fork
  ThreadPool::global().parallelFor(0, a.size(), kGrain, [&](int64_t begin, int64_t end, int) {
    while (begin < end) {
      const int64_t next = std::min(end, (begin / run + 1) * run);
      fill(begin, next, cut.first + begin / run * cut.stride + begin % run);
      begin = next;
    }
  });
  return a;
}

}  // namespace lathe
