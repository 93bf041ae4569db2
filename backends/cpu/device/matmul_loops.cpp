// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/matmul_loops.h"

#include <cstring>

namespace lathe::cpu {
namespace {

// How an element is stored, and what its products are summed in. Integers are summed unsigned, so
// that overflow wraps, and in at least 32 bits: narrower products would be signed.
struct F64 {
  using Stored = double;
  using Sum = double;
  static Sum load(Stored x) { return x; }
};
struct F32 {
  using Stored = float;
  using Sum = float;
  static Sum load(Stored x) { return x; }
};
struct Bf16 {
  using Stored = uint16_t;
  using Sum = float;
  static Sum load(Stored x) { return bf16ToFloat(x); }
};
struct F16 {
  using Stored = uint16_t;
  using Sum = float;
  static Sum load(Stored x) { return f16ToFloat(x); }
};
template <class Signed, class Unsigned>
struct Integer {
  using Stored = Signed;
  using Sum = Unsigned;
  static Sum load(Stored x) { return Unsigned(x); }
};

void storeValue(DType dtype, void* c, int64_t at, double value) {
  static_cast<double*>(c)[at] = value;
}
void storeValue(DType dtype, void* c, int64_t at, float value) {
  if (dtype == DType::F32)
    static_cast<float*>(c)[at] = value;
  else
    static_cast<uint16_t*>(c)[at] = dtype == DType::BF16 ? floatToBf16(value) : floatToF16(value);
}
void storeValue(DType dtype, void* c, int64_t at, uint64_t value) {
  static_cast<int64_t*>(c)[at] = int64_t(value);
}
void storeValue(DType dtype, void* c, int64_t at, uint32_t value) {
  if (dtype == DType::I32)
    static_cast<int32_t*>(c)[at] = int32_t(value);
  else if (dtype == DType::I16)
    static_cast<int16_t*>(c)[at] = int16_t(value);
  else
    static_cast<uint8_t*>(c)[at] = uint8_t(value);
}

template <class T>
void loops(const MatmulArgs& x, const void* a, const void* b, void* c, int64_t row0, int64_t row1,
           int64_t col0, int64_t col1) {
  const auto* from = static_cast<const typename T::Stored*>(a);
  const auto* with = static_cast<const typename T::Stored*>(b);
  for (int64_t i = row0; i < row1; ++i)
    for (int64_t j = col0; j < col1; ++j) {
      typename T::Sum sum = 0;
      for (int64_t k = 0; k < x.k; ++k)
        sum += T::load(from[i * x.aRowStride + k * x.aColStride]) *
               T::load(with[k * x.bRowStride + j * x.bColStride]);
      storeValue(x.outDType, c, i * x.cRowStride + j, sum);
    }
}

}  // namespace

void matmulLoops(const MatmulArgs& x, const void* a, const void* b, void* c, int64_t row0,
                 int64_t row1, int64_t col0, int64_t col1) {
  auto call = [&](auto tag) { loops<decltype(tag)>(x, a, b, c, row0, row1, col0, col1); };
  switch (x.dtype) {
    case DType::F64:
      return call(F64{});
    case DType::F32:
      return call(F32{});
    case DType::BF16:
      return call(Bf16{});
    case DType::F16:
      return call(F16{});
    case DType::I64:
      return call(Integer<int64_t, uint64_t>{});
    case DType::I16:
      return call(Integer<int16_t, uint32_t>{});
    case DType::I8:
      return call(Integer<int8_t, uint32_t>{});
    case DType::U8:
      return call(Integer<uint8_t, uint32_t>{});
    default:
      return call(Integer<int32_t, uint32_t>{});
  }
}

void widenBlock(DType dtype, const void* from, int64_t rowStride, int64_t colStride, int64_t rows,
                int64_t cols, float* to) {
  auto copy = [&](auto load) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) to[i * cols + j] = load(i * rowStride + j * colStride);
  };
  if (dtype == DType::F32)
    copy([&](int64_t at) { return static_cast<const float*>(from)[at]; });
  else if (dtype == DType::BF16)
    copy([&](int64_t at) { return bf16ToFloat(static_cast<const uint16_t*>(from)[at]); });
  else
    copy([&](int64_t at) { return f16ToFloat(static_cast<const uint16_t*>(from)[at]); });
}

void narrowBlock(const float* from, int64_t rows, int64_t cols, DType dtype, void* to,
                 int64_t rowStride) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) storeValue(dtype, to, i * rowStride + j, from[i * cols + j]);
}

}  // namespace lathe::cpu
