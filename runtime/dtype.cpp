// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/dtype.h"

#include <array>
#include <charconv>
#include <cmath>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {
struct Info {
  std::string_view name;
  uint8_t bits;
  bool isFloat;
};
// Indexed by DType.
constexpr std::array<Info, 12> kInfo{{{"f64", 64, true},
                                      {"f32", 32, true},
                                      {"bf16", 16, true},
                                      {"f16", 16, true},
                                      {"i64", 64, false},
                                      {"i32", 32, false},
                                      {"i16", 16, false},
                                      {"i8", 8, false},
                                      {"u8", 8, false},
                                      {"bool", 8, false},
                                      {"i4", 4, false},
                                      {"u4", 4, false}}};

// Apart, so that infoOf stays small: every call of a program asks for sizes of elements.
[[noreturn, gnu::cold, gnu::noinline]] void failUnknown(DType dtype) {
  throw Error(ErrorCode::InvalidArgument,
              std::to_string(int(dtype)) + " is no dtype; lathe::DType names those there are");
}

[[noreturn, gnu::cold, gnu::noinline]] void failPacked(DType dtype) {
  throw Error(ErrorCode::InvalidArgument,
              "expected a dtype of whole bytes, got " + std::string(kInfo[size_t(dtype)].name) +
                  ", of which two elements share a byte; lathe::bytesOf counts those of a tensor");
}

inline const Info& infoOf(DType dtype) {
  if (size_t(dtype) >= kInfo.size()) [[unlikely]]
    failUnknown(dtype);
  return kInfo[size_t(dtype)];
}
}  // namespace

size_t sizeOf(DType dtype) {
  const Info& info = infoOf(dtype);
  if (info.bits < 8) [[unlikely]]
    failPacked(dtype);
  return info.bits / 8;
}
unsigned bitsOf(DType dtype) { return infoOf(dtype).bits; }
size_t bytesOf(DType dtype, int64_t elements) {
  const size_t bits = infoOf(dtype).bits, count = size_t(elements);  // eight times it may overflow
  return bits < 8 ? (count + 1) / 2 : count * (bits / 8);
}
std::string_view nameOf(DType dtype) { return infoOf(dtype).name; }
bool isFloat(DType dtype) { return infoOf(dtype).isFloat; }

bool inRange(DType dtype, double value) {
  const Info& info = infoOf(dtype);
  if (info.isFloat) return true;
  if (dtype == DType::Bool) return true;  // whatever is not zero, NaN included, is true
  const bool isSigned = dtype != DType::U8 && dtype != DType::U4;
  // Powers of two, exact in a double; a fraction is cut off toward zero.
  const double top = std::ldexp(1.0, info.bits - isSigned);
  const double whole = std::trunc(value);
  return whole >= (isSigned ? -top : 0) && whole < top;
}
bool holds(DType dtype, double value) {
  if (infoOf(dtype).isFloat) return true;
  if (dtype == DType::Bool) return value == 0 || value == 1;
  return inRange(dtype, value) && std::trunc(value) == value;
}
std::string numberText(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::optional<DType> parseDType(std::string_view name) {
  for (size_t i = 0; i < kInfo.size(); ++i)
    if (kInfo[i].name == name) return DType(i);
  return std::nullopt;
}

float f16ToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u,
           mantissa = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    float magnitude = std::ldexp(float(mantissa), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

uint16_t floatToF16(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value);
  uint16_t sign = uint16_t((u >> 16) & 0x8000u);
  u &= 0x7fffffffu;
  if (u > 0x7f800000u) return uint16_t(sign | 0x7e00u | ((u >> 13) & 0x3ffu));
  if (u >= 0x477ff000u) return uint16_t(sign | 0x7c00u);  // 65520 and above round to infinity
  if (u < 0x38800000u) {  // subnormal or zero: an exact multiple of 2^-24 after rounding
    float scaled = std::nearbyint(std::ldexp(std::bit_cast<float>(u), 24));
    return uint16_t(sign | uint16_t(scaled));
  }
  u += 0xfffu + ((u >> 13) & 1u);
  return uint16_t(sign | ((u - 0x38000000u) >> 13));
}

}  // namespace lathe
