// SPDX-License-Identifier: Apache-2.0
#pragma once
// Test values as the bytes of any dtype, and back.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lathe/runtime/dtype.h"

namespace lathe::cuda {

inline std::vector<std::byte> encoded(const std::vector<double>& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * sizeOf(dtype));
  auto put = [&](size_t i, auto x) { std::memcpy(&bytes[i * sizeof(x)], &x, sizeof(x)); };
  for (size_t i = 0; i < values.size(); ++i) {
    double x = values[i];
    switch (dtype) {
      case DType::F64:
        put(i, x);
        break;
      case DType::F32:
        put(i, float(x));
        break;
      case DType::BF16:
        put(i, floatToBf16(float(x)));
        break;
      case DType::F16:
        put(i, floatToF16(float(x)));
        break;
      case DType::I64:
        put(i, int64_t(x));
        break;
      case DType::I32:
        put(i, int32_t(int64_t(x)));
        break;
      case DType::I16:
        put(i, int16_t(int64_t(x)));
        break;
      case DType::I8:
        put(i, int8_t(int64_t(x)));
        break;
      case DType::U8:
      case DType::Bool:
        put(i, uint8_t(int64_t(x)));
        break;
      case DType::I4:
      case DType::U4:
        std::abort();  // two of them share a byte: no buffer here holds any
    }
  }
  return bytes;
}

inline std::vector<double> decoded(const std::vector<std::byte>& bytes, DType dtype) {
  std::vector<double> values(bytes.size() / sizeOf(dtype));
  auto get = [&](size_t i, auto x) {
    std::memcpy(&x, &bytes[i * sizeof(x)], sizeof(x));
    return x;
  };
  for (size_t i = 0; i < values.size(); ++i) switch (dtype) {
      case DType::F64:
        values[i] = get(i, double());
        break;
      case DType::F32:
        values[i] = double(get(i, float()));
        break;
      case DType::BF16:
        values[i] = double(bf16ToFloat(get(i, uint16_t())));
        break;
      case DType::F16:
        values[i] = double(f16ToFloat(get(i, uint16_t())));
        break;
      case DType::I64:
        values[i] = double(get(i, int64_t()));
        break;
      case DType::I32:
        values[i] = double(get(i, int32_t()));
        break;
      case DType::I16:
        values[i] = double(get(i, int16_t()));
        break;
      case DType::I8:
        values[i] = double(get(i, int8_t()));
        break;
      case DType::U8:
      case DType::Bool:
        values[i] = double(get(i, uint8_t()));
        break;
      case DType::I4:
      case DType::U4:
        std::abort();
    }
  return values;
}

}  // namespace lathe::cuda
