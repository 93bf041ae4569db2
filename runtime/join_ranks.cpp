// SPDX-License-Identifier: Apache-2.0
#include "runtime/join_ranks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <type_traits>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {

template <class T>
T larger(T y, T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x) || x > y ? x : y;
  return std::max(x, y);
}

// As floatToBf16, without a branch.
uint16_t roundedToBf16(float value) {
  const auto u = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u), quiet = u | 0x400000u;
  return uint16_t((std::isnan(value) ? quiet : rounded) >> 16);
}

// `read` and `write` go between a stored element and the type that it is joined in. Blocks of that
// type stay in the cache, and each loop over one is simple enough to become vector code.
template <class Stored, class Wide, class Read, class Write>
void join(std::span<const void* const> parts, void* to, size_t count, Combine combine, Read read,
          Write write) {
  constexpr size_t kBlock = 1024;
  Wide block[kBlock];
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t n = std::min(kBlock, count - at);
    const auto* first = static_cast<const Stored*>(parts[0]) + at;
    for (size_t i = 0; i < n; ++i) block[i] = read(first[i]);
    for (const void* part : parts.subspan(1)) {
      const auto* from = static_cast<const Stored*>(part) + at;
      if (combine == Combine::sum)
        for (size_t i = 0; i < n; ++i) block[i] = Wide(block[i] + read(from[i]));
      else
        for (size_t i = 0; i < n; ++i) block[i] = larger(block[i], Wide(read(from[i])));
    }
    auto* out = static_cast<Stored*>(to) + at;
    for (size_t i = 0; i < n; ++i) out[i] = write(block[i]);
  }
}

template <class T>
void joinPlain(std::span<const void* const> parts, void* to, size_t count, Combine combine) {
  auto same = [](T x) { return x; };
  join<T, T>(parts, to, count, combine, same, same);
}
// Sums of integers wrap, which C++ leaves undefined for signed ones.
template <class T>
void joinWhole(std::span<const void* const> parts, void* to, size_t count, Combine combine) {
  using U = std::make_unsigned_t<T>;
  if (combine == Combine::sum) return joinPlain<U>(parts, to, count, combine);
  joinPlain<T>(parts, to, count, combine);
}

}  // namespace

void joinRanks(std::span<const void* const> parts, void* to, size_t count, DType dtype,
               Combine combine) {
  switch (dtype) {
    case DType::F64:
      return joinPlain<double>(parts, to, count, combine);
    case DType::F32:
      return joinPlain<float>(parts, to, count, combine);
    case DType::BF16:
      return join<uint16_t, float>(parts, to, count, combine, bf16ToFloat, roundedToBf16);
    case DType::F16:
      return join<uint16_t, float>(parts, to, count, combine, f16ToFloat, floatToF16);
    case DType::I64:
      return joinWhole<int64_t>(parts, to, count, combine);
    case DType::I32:
      return joinWhole<int32_t>(parts, to, count, combine);
    case DType::I16:
      return joinWhole<int16_t>(parts, to, count, combine);
    case DType::I8:
      return joinWhole<int8_t>(parts, to, count, combine);
    case DType::U8:
      return joinWhole<uint8_t>(parts, to, count, combine);
    case DType::Bool:
    case DType::I4:
    case DType::U4:
      break;
  }
  throw Error(ErrorCode::Unsupported,
              "ranks cannot join values of " + std::string(nameOf(dtype)) + "; cast them first");
}

}  // namespace lathe
