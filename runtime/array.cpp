// SPDX-License-Identifier: Apache-2.0
#include "runtime/array.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

#include "runtime/error.h"

namespace lathe {

namespace {

// From here on memory comes from the system, which zeroes a page when it is first touched: by the
// thread that writes it, and not at all in the unused part of a cache.
constexpr size_t kMappedBytes = size_t(4) << 20;

// Null if there is no memory. Starts at a large page and asks for such: small ones, touched by
// several threads in turn, lie scattered and cost a quarter of the speed of reading them.
void* mapZeros(size_t bytes) {
  constexpr uintptr_t large = uintptr_t(2) << 20;
  void* whole =
      ::mmap(nullptr, bytes + large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED) return nullptr;
  const uintptr_t start = reinterpret_cast<uintptr_t>(whole);
  const uintptr_t begin = (start + large - 1) / large * large;
  const auto page = uintptr_t(::sysconf(_SC_PAGESIZE));
  const uintptr_t end = (begin + bytes + page - 1) / page * page;
  if (begin > start) ::munmap(whole, begin - start);
  if (start + bytes + large > end)
    ::munmap(reinterpret_cast<void*>(end), start + bytes + large - end);
  ::madvise(reinterpret_cast<void*>(begin), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(begin);
}

}  // namespace

int64_t elementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  bool overflow = false, zero = false;
  for (int64_t d : shape) {
    if (d < 0) throw Error(ErrorCode::InvalidArgument, "negative dim " + std::to_string(d));
    zero |= d == 0;
    if (!overflow) overflow = __builtin_mul_overflow(count, d, &count);
  }
  if (zero) return 0;
  if (overflow || count > std::numeric_limits<int64_t>::max() / 16)
    throw Error(ErrorCode::InvalidArgument, "the product of the dims overflows");
  return count;
}

std::string describe(DType dtype, std::span<const int64_t> shape) {
  std::string s(nameOf(dtype));
  s += "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

Array::Array(DType dtype, Shape shape)
    : dtype_(dtype), shape_(std::move(shape)), size_(elementCount(shape_)) {
  const size_t bytes = (size_t(size_) * sizeOf(dtype) + 127) / 64 * 64;
  data_ = bytes >= kMappedBytes ? mapZeros(bytes) : std::aligned_alloc(64, bytes);
  if (!data_)
    throw Error(ErrorCode::OutOfMemory, "no memory for " + describe(dtype_, shape_) + ", " +
                                            std::to_string(bytes) + " bytes");
  if (bytes >= kMappedBytes) {
    owner_ = std::shared_ptr<void>(data_, [bytes](void* p) { ::munmap(p, bytes); });
  } else {
    std::memset(data_, 0, bytes);
    owner_ = std::shared_ptr<void>(data_, std::free);
  }
}

Array::Array(DType dtype, Shape shape, void* data, std::shared_ptr<void> owner)
    : dtype_(dtype),
      shape_(std::move(shape)),
      size_(elementCount(shape_)),
      data_(data),
      owner_(std::move(owner)) {}

Array Array::fromFloats(std::span<const float> values, Shape shape) {
  Array a(DType::F32, std::move(shape));
  if (int64_t(values.size()) != a.size())
    throw Error(ErrorCode::InvalidArgument, "got " + std::to_string(values.size()) +
                                                " values for " + describe(a.dtype_, a.shape_));
  std::memcpy(a.data_, values.data(), a.bytes());
  return a;
}

Array Array::fromInts(std::span<const int64_t> values, Shape shape) {
  Array a(DType::I64, std::move(shape));
  if (int64_t(values.size()) != a.size())
    throw Error(ErrorCode::InvalidArgument, "got " + std::to_string(values.size()) +
                                                " values for " + describe(a.dtype_, a.shape_));
  std::memcpy(a.data_, values.data(), a.bytes());
  return a;
}

double Array::at(int64_t i) const {
  switch (dtype_) {
    case DType::F64:
      return as<double>()[i];
    case DType::F32:
      return as<float>()[i];
    case DType::BF16:
      return bf16ToFloat(as<uint16_t>()[i]);
    case DType::F16:
      return f16ToFloat(as<uint16_t>()[i]);
    case DType::I64:
      return double(as<int64_t>()[i]);
    case DType::I32:
      return as<int32_t>()[i];
    case DType::I16:
      return as<int16_t>()[i];
    case DType::I8:
      return as<int8_t>()[i];
    case DType::U8:
    case DType::Bool:
      return as<uint8_t>()[i];
  }
  return 0;
}

void Array::set(int64_t i, double value) {
  switch (dtype_) {
    case DType::F64:
      as<double>()[i] = value;
      break;
    case DType::F32:
      as<float>()[i] = float(value);
      break;
    // Through f32: double rounding is what every backend does and PyTorch too.
    case DType::BF16:
      as<uint16_t>()[i] = floatToBf16(float(value));
      break;
    case DType::F16:
      as<uint16_t>()[i] = floatToF16(float(value));
      break;
    case DType::I64:
      as<int64_t>()[i] = int64_t(value);
      break;
    case DType::I32:
      as<int32_t>()[i] = int32_t(int64_t(value));
      break;
    case DType::I16:
      as<int16_t>()[i] = int16_t(int64_t(value));
      break;
    case DType::I8:
      as<int8_t>()[i] = int8_t(int64_t(value));
      break;
    case DType::U8:
      as<uint8_t>()[i] = uint8_t(int64_t(value));
      break;
    case DType::Bool:
      as<uint8_t>()[i] = value != 0;
      break;
  }
}

Array Array::to(DType dtype) const {
  Array result(dtype, shape_);
  if (dtype == dtype_) {
    if (size_) std::memcpy(result.data_, data_, bytes());
  } else if (dtype_ == DType::I64 && !isFloat(dtype)) {
    // A double does not hold every i64.
    for (int64_t i = 0; i < size_; ++i) {
      const int64_t value = as<int64_t>()[i];
      result.set(i, dtype == DType::Bool ? double(value != 0) : double(int32_t(value)));
    }
  } else {
    for (int64_t i = 0; i < size_; ++i) result.set(i, at(i));
  }
  return result;
}

Array Array::reshaped(Shape shape) const {
  if (elementCount(shape) != size_)
    throw Error(ErrorCode::InvalidArgument,
                "cannot view " + describe(dtype_, shape_) + " as " + describe(dtype_, shape));
  Array result = *this;
  result.shape_ = std::move(shape);
  return result;
}

Array Array::clone() const { return to(dtype_); }

}  // namespace lathe
