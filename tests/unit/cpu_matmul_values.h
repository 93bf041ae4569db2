// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operands of matrix products, as stored and as doubles, and scratch that guards its end.
#include <sys/mman.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "backends/cpu/device/scratch.h"
#include "lathe/runtime/dtype.h"

namespace lathe::cpu {

/// 64-byte aligned scratch with guard bytes behind it. It holds NaN of every float, as what another
/// kernel has left may: times a zero of the padding they would reach a result.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes), data_(bytes + 128, kFill) {}
  Scratch scratch() { return {start(), bytes_}; }
  char* start() {
    auto at = reinterpret_cast<uintptr_t>(data_.data());
    return data_.data() + (64 - at % 64) % 64;
  }
  bool guardsHold() {
    for (char* p = start() + bytes_; p < data_.data() + data_.size(); ++p)
      if (*p != kFill) return false;
    return true;
  }

 private:
  static constexpr char kFill = char(0xff);
  size_t bytes_;
  std::vector<char> data_;
};

/// Memory that ends where no page follows: to touch what lies behind it ends the program.
class EndOfPages {
 public:
  explicit EndOfPages(size_t bytes) : pages_((bytes + kPage - 1) / kPage * kPage) {
    void* p =
        mmap(nullptr, pages_ + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(static_cast<char*>(p) + pages_, kPage, PROT_NONE) != 0)
      std::abort();
    base_ = static_cast<char*>(p);
    start_ = base_ + pages_ - bytes;
  }
  EndOfPages(const EndOfPages&) = delete;
  ~EndOfPages() { munmap(base_, pages_ + kPage); }
  char* start() { return start_; }

 private:
  static constexpr size_t kPage = 4096;
  size_t pages_;
  char *base_ = nullptr, *start_ = nullptr;
};

/// Values of a dtype, kept both as stored and as doubles.
struct Values {
  DType dtype;
  std::vector<float> f32;
  std::vector<uint16_t> narrow;  // bf16 or f16
  std::vector<double> exact;
  const void* data() const {
    return dtype == DType::F32 ? static_cast<const void*>(f32.data()) : narrow.data();
  }
};

/// To bf16 or f16, to nearest even.
inline uint16_t narrowed(DType dtype, float x) {
  return dtype == DType::BF16 ? floatToBf16(x) : floatToF16(x);
}
inline float widened(DType dtype, uint16_t bits) {
  return dtype == DType::BF16 ? bf16ToFloat(bits) : f16ToFloat(bits);
}

inline Values randomValues(DType dtype, int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Values v{dtype, {}, {}, {}};
  for (int64_t i = 0; i < count; ++i) {
    float x = normal(random);
    if (dtype == DType::F32) {
      v.f32.push_back(x);
      v.exact.push_back(x);
    } else {
      v.narrow.push_back(narrowed(dtype, x));
      v.exact.push_back(widened(dtype, v.narrow.back()));
    }
  }
  return v;
}

/// Integers of at most 48 in size: sums of a few products are exact in f32, and most of them have
/// more bits than a 16-bit float, ties among them.
inline Values integerValues(DType dtype, int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  Values v{dtype, {}, {}, {}};
  for (int64_t i = 0; i < count; ++i) {
    v.exact.push_back(double(random() % 97) - 48);
    v.f32.push_back(float(v.exact.back()));
    v.narrow.push_back(narrowed(dtype, v.f32.back()));
  }
  return v;
}

/// Sums of k products of unit variance, in f32, then one rounding to the output.
inline double tolerance(DType out, int64_t k, double expected) {
  double sum = 2e-6 * std::sqrt(double(k) + 1) * 4;
  // Half a step of 16-bit dtypes, and of f32 a few.
  const double step = out == DType::BF16 ? 0x1p-8 : out == DType::F16 ? 0x1p-11 : 1e-6;
  return sum + step * std::abs(expected);
}

}  // namespace lathe::cpu
