// SPDX-License-Identifier: Apache-2.0
#include "runtime/join_ranks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {

// `read` and `write` go between a stored element and the type that it is joined in.
template <class Stored, class Wide, class Read, class Write>
void join(std::span<const void* const> parts, void* to, size_t count, Combine combine, Read read,
          Write write) {
  auto* out = static_cast<Stored*>(to);
  for (size_t i = 0; i < count; ++i) {
    Wide y = read(static_cast<const Stored*>(parts[0])[i]);
    for (size_t part = 1; part < parts.size(); ++part) {
      const Wide x = read(static_cast<const Stored*>(parts[part])[i]);
      if (combine == Combine::sum)
        y = Wide(y + x);
      else if constexpr (std::is_floating_point_v<Wide>)
        y = std::isnan(x) || x > y ? x : y;
      else
        y = std::max(x, y);
    }
    out[i] = write(y);
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
      return join<uint16_t, float>(parts, to, count, combine, bf16ToFloat, floatToBf16);
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
