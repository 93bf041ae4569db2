// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "bench/gpu/golden.h"

namespace lathe::cuda::golden {
namespace {

double valueAt(const Region& region, const uint32_t* words, size_t i) {
  if (region.type == Region::Type::F32) return std::bit_cast<float>(words[i]);
  double value;
  std::memcpy(&value, words + 2 * i, sizeof value);
  return value;
}

// One step of the type at `x`.
double stepAt(const Region& region, double x) {
  const int digits = region.type == Region::Type::F32 ? 23 : 52;
  const int lowest = region.type == Region::Type::F32 ? -126 : -1022;
  int exponent = lowest;
  if (x != 0 && std::isfinite(x)) exponent = std::max(lowest, std::ilogb(x));
  return std::ldexp(1.0, exponent - digits);
}

Difference compareBits(const uint32_t* got, const uint32_t* want, size_t words) {
  Difference d;
  for (size_t i = 0; i < words; ++i) {
    if (got[i] == want[i]) continue;
    if (!d.words++) {
      char text[80];
      std::snprintf(text, sizeof text, "word %zu is %08x, want %08x", i, got[i], want[i]);
      d.first = text;
    }
  }
  d.outside = d.words;
  return d;
}

}  // namespace

Difference compare(const Region& region, const uint32_t* got, const uint32_t* want) {
  if (region.type == Region::Type::Bits) return compareBits(got, want, region.words);
  Difference d;
  const size_t each = region.type == Region::Type::F32 ? 1 : 2;
  for (size_t i = 0; i < region.words; ++i) d.words += got[i] != want[i];
  for (size_t i = 0; i < region.words / each; ++i) {
    const double a = valueAt(region, got, i), b = valueAt(region, want, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double step = stepAt(region, b), apart = std::abs(a - b);
    const bool far = !(apart <= region.atol + region.ulps * step);  // also for NaN
    if (std::isfinite(apart) && apart > region.atol)
      d.worstUlps = std::max(d.worstUlps, apart / step);
    if (!far) continue;
    if (!d.outside++) {
      char text[120];
      std::snprintf(text, sizeof text, "value %zu is %.17g, want %.17g", i, a, b);
      d.first = text;
    }
  }
  return d;
}

// PTX ISA, "Warp-level matrix load instruction: ldmatrix", fragment layout.
Words ldmatrixByManual() {
  Words out(12 * 32);
  auto element = [](uint32_t tile, uint32_t row, uint32_t column) {
    return (8 * tile + row) * 5 % 32 * 8 + column;
  };
  auto fill = [&](uint32_t at, uint32_t tiles, bool transposed) {
    for (uint32_t tile = 0; tile < tiles; ++tile)
      for (uint32_t l = 0; l < 32; ++l) {
        const uint32_t g = l / 4, t = l % 4 * 2;
        const uint32_t lo = transposed ? element(tile, t, g) : element(tile, g, t);
        const uint32_t hi = transposed ? element(tile, t + 1, g) : element(tile, g, t + 1);
        out[(at + tile) * 32 + l] = lo | hi << 16;
      }
  };
  fill(0, 4, false);
  fill(4, 4, true);
  fill(8, 2, false);
  fill(10, 2, true);
  return out;
}

// PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type".
Words mmaByManual() {
  struct Place {
    uint32_t outer, k;
  };
  auto inA = [](uint32_t lane, uint32_t e) {
    return Place{lane / 4 + 8 * (e / 2 % 2), lane % 4 * 2 + e % 2 + 8 * (e / 4)};
  };
  auto inB = [](uint32_t lane, uint32_t e) {
    return Place{lane / 4, lane % 4 * 2 + e % 2 + 8 * (e / 2)};
  };
  float a[16][16], b[8][16];
  for (uint32_t l = 0; l < 32; ++l) {
    for (uint32_t e = 0; e < 8; ++e) a[inA(l, e).outer][inA(l, e).k] = float(l * 8 + e + 1);
    for (uint32_t e = 0; e < 4; ++e) b[inB(l, e).outer][inB(l, e).k] = float(l * 4 + e + 1);
  }
  Words out(384 * 128);
  for (uint32_t tile = 0; tile < 384; ++tile) {
    const bool oneInA = tile < 256;
    const uint32_t at = oneInA ? tile : tile - 256;
    const Place one = oneInA ? inA(at / 8, at % 8) : inB(at / 4, at % 4);
    for (uint32_t l = 0; l < 32; ++l)
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t row = l / 4 + 8 * (i / 2), column = l % 4 * 2 + i % 2;
        float value = 0;
        if (oneInA && row == one.outer) value = b[column][one.k];
        if (!oneInA && column == one.outer) value = a[row][one.k];
        out[tile * 128 + l * 4 + i] = std::bit_cast<uint32_t>(value);
      }
  }
  return out;
}

// PTX ISA, "shfl.sync" with all lanes and no sub-sections.
Words shufflesByManual(const Words& input) {
  Words out;
  auto row = [&](auto source) {
    for (int l = 0; l < 32; ++l) {
      const int from = source(l);
      out.push_back(input[size_t(from >= 0 && from < 32 ? from : l)]);
    }
  };
  for (int mask : {1, 16, 31}) row([=](int l) { return l ^ mask; });
  row([](int) { return 5; });
  row([](int l) { return l * 7 % 32; });
  row([](int l) { return (l + 40) % 32; });
  for (int d : {1, 24}) row([=](int l) { return l + d; });
  for (int d : {1, 24}) row([=](int l) { return l - d; });
  return out;
}

}  // namespace lathe::cuda::golden
