// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/array.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/odd_rounding.h"

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
  const size_t bytes = (bytesOf(dtype, size_) + 127) / 64 * 64;
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
      owner_(std::move(owner)) {
  const size_t bytes = bytesOf(dtype, size_);  // throws for a value outside the enumeration
  if (!data_ && bytes)
    throw Error(ErrorCode::InvalidArgument,
                "expected the memory of " + describe(dtype_, shape_) + ", got a null pointer");
}

// Before there is memory: a shape may be absurd where the values are few.
static void expectCount(size_t values, DType dtype, const Shape& shape) {
  if (int64_t(values) != elementCount(shape))
    throw Error(ErrorCode::InvalidArgument,
                "got " + std::to_string(values) + " values for " + describe(dtype, shape));
}

Array Array::fromFloats(std::span<const float> values, Shape shape) {
  expectCount(values.size(), DType::F32, shape);
  Array a(DType::F32, std::move(shape));
  if (a.size_) std::memcpy(a.data_, values.data(), a.bytes());
  return a;
}

Array Array::fromInts(std::span<const int64_t> values, Shape shape) {
  expectCount(values.size(), DType::I64, shape);
  Array a(DType::I64, std::move(shape));
  if (a.size_) std::memcpy(a.data_, values.data(), a.bytes());
  return a;
}

void Array::expectDefined(const char* what) const {
  if (!data_)
    throw Error(ErrorCode::InvalidArgument,
                std::string(what) + " of an undefined Array; was it moved or never assigned?");
}

void Array::expectElement(int64_t i) const {
  if (i < 0 || i >= size_)
    throw Error(ErrorCode::InvalidArgument, "element " + std::to_string(i) + " is outside " +
                                                describe(dtype_, shape_) + ", which has " +
                                                std::to_string(size_) + " elements");
}

void Array::refuseElements(size_t bytes, bool isFloat) const {
  expectDefined("as()");
  const std::string wanted =
      isFloat ? "f" + std::to_string(bytes * 8) : std::to_string(bytes * 8) + "-bit integers";
  throw Error(ErrorCode::InvalidArgument, "the elements of " + describe(dtype_, shape_) +
                                              " cannot be read as " + wanted +
                                              "; take the dtype's own C++ type, or convert the "
                                              "Array with to()");
}

double Array::at(int64_t i) const {
  expectDefined("at()");
  expectElement(i);
  return load(i);
}

void Array::set(int64_t i, double value) {
  expectDefined("set()");
  expectElement(i);
  if (!inRange(dtype_, value))
    throw Error(ErrorCode::InvalidArgument, "expected a number in the range of " +
                                                std::string(nameOf(dtype_)) + ", got " +
                                                numberText(value));
  store(i, value);
}

// A packed element's bits.
static uint8_t halfByte(const void* data, int64_t i) {
  return uint8_t(static_cast<const uint8_t*>(data)[i / 2] >> (i % 2 * 4)) & 15;
}

double Array::load(int64_t i) const {
  const void* data = data_;
  switch (dtype_) {
    case DType::F64:
      return static_cast<const double*>(data)[i];
    case DType::F32:
      return static_cast<const float*>(data)[i];
    case DType::BF16:
      return bf16ToFloat(static_cast<const uint16_t*>(data)[i]);
    case DType::F16:
      return f16ToFloat(static_cast<const uint16_t*>(data)[i]);
    case DType::I64:
      return double(static_cast<const int64_t*>(data)[i]);
    case DType::I32:
      return static_cast<const int32_t*>(data)[i];
    case DType::I16:
      return static_cast<const int16_t*>(data)[i];
    case DType::I8:
      return static_cast<const int8_t*>(data)[i];
    case DType::U8:
    case DType::Bool:
      return static_cast<const uint8_t*>(data)[i];
    case DType::I4:
      return double(int8_t(halfByte(data, i) << 4) >> 4);
    case DType::U4:
      return halfByte(data, i);
  }
  return 0;
}

// The value is in the dtype's range.
void Array::store(int64_t i, double value) {
  switch (dtype_) {
    case DType::F64:
      static_cast<double*>(data_)[i] = value;
      break;
    case DType::F32:
      static_cast<float*>(data_)[i] = float(value);
      break;
    case DType::BF16:
      static_cast<uint16_t*>(data_)[i] = doubleToBf16(value);
      break;
    case DType::F16:
      static_cast<uint16_t*>(data_)[i] = doubleToF16(value);
      break;
    case DType::I64:
      static_cast<int64_t*>(data_)[i] = int64_t(value);
      break;
    case DType::I32:
      static_cast<int32_t*>(data_)[i] = int32_t(value);
      break;
    case DType::I16:
      static_cast<int16_t*>(data_)[i] = int16_t(value);
      break;
    case DType::I8:
      static_cast<int8_t*>(data_)[i] = int8_t(value);
      break;
    case DType::U8:
      static_cast<uint8_t*>(data_)[i] = uint8_t(value);
      break;
    case DType::Bool:
      static_cast<uint8_t*>(data_)[i] = value != 0;
      break;
    case DType::I4:
    case DType::U4: {
      uint8_t& byte = static_cast<uint8_t*>(data_)[i / 2];
      const int shift = int(i % 2) * 4;
      byte = uint8_t((byte & ~(15 << shift)) | ((int(value) & 15) << shift));
      break;
    }
  }
}

int64_t Array::loadInteger(int64_t i) const {
  return dtype_ == DType::I64 ? static_cast<const int64_t*>(data_)[i] : int64_t(load(i));
}

// The low bits of an integer, as those of the narrower dtype. Nothing is wider than i64.
static double wrapped(DType dtype, int64_t value) {
  switch (bitsOf(dtype)) {
    case 4:
      return dtype == DType::U4 ? double(value & 15) : double(int8_t(value << 4) >> 4);
    case 8:
      return dtype == DType::U8 ? double(uint8_t(value)) : double(int8_t(value));
    case 16:
      return int16_t(value);
    case 32:
      return int32_t(value);
    default:
      return double(value);  // of a narrower dtype: exact
  }
}

Array Array::to(DType dtype) const {
  expectDefined("to()");
  Array result(dtype, shape_);
  if (dtype == dtype_) {
    if (size_) std::memcpy(result.data_, data_, bytes());
    return result;
  }
  if (!isFloat(dtype_) && !isFloat(dtype)) {
    for (int64_t i = 0; i < size_; ++i) {
      const int64_t value = loadInteger(i);  // a double does not hold every i64
      result.store(i, dtype == DType::Bool ? double(value != 0) : wrapped(dtype, value));
    }
    return result;
  }
  // One rounding from the integer, which double would make two.
  const bool fromInteger = !isFloat(dtype_) && dtype != DType::F64;
  for (int64_t i = 0; i < size_; ++i) {
    if (fromInteger) {
      const int64_t value = loadInteger(i);
      result.store(i, dtype == DType::F32 ? float(value) : oddFloat(value));
      continue;
    }
    const double value = load(i);
    if (!inRange(dtype, value))
      throw Error(ErrorCode::InvalidArgument,
                  "element " + std::to_string(i) + " of " + describe(dtype_, shape_) + " is " +
                      numberText(value) + ", which " + std::string(nameOf(dtype)) + " cannot hold");
    result.store(i, value);
  }
  return result;
}

Array Array::reshaped(Shape shape) const {
  expectDefined("reshaped()");
  if (elementCount(shape) != size_)
    throw Error(ErrorCode::InvalidArgument,
                "cannot view " + describe(dtype_, shape_) + " as " + describe(dtype_, shape));
  Array result = *this;
  result.shape_ = std::move(shape);
  return result;
}

Array Array::clone() const {
  expectDefined("clone()");
  return to(dtype_);
}

}  // namespace lathe
