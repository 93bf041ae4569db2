// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types and the exact conversions of the 16-bit floats.
#include <bit>
#include <cstdint>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lathe {

enum class DType : uint8_t { F64, F32, BF16, F16, I64, I32, I16, I8, U8, Bool, I4, U4 };

/// Whether two elements share a byte (I4, U4): the even one is in the low half. A tensor of an odd
/// number of elements ends with half a byte of zeros.
constexpr bool isPacked(DType dtype) { return dtype == DType::I4 || dtype == DType::U4; }

/// Bytes of one element (Bool is stored as one byte, 0 or 1). This and what follows throw Error
/// (InvalidArgument) for a value outside the enumeration; this also for a packed dtype, whose
/// elements have no address of their own.
size_t sizeOf(DType dtype);
/// Bits of one element: 4 where it is packed, else those of its bytes.
unsigned bitsOf(DType dtype);
/// Bytes of so many elements, whole ones.
size_t bytesOf(DType dtype, int64_t elements);
/// "f32", "bf16", "i64", "bool", ...
std::string_view nameOf(DType dtype);
/// Inverse of nameOf; nothing if the name is unknown.
std::optional<DType> parseDType(std::string_view name);
bool isFloat(DType dtype);

/// Whether a value of the dtype can stand for the number: any for floats, which round; whole
/// numbers of their range for integers; 0 and 1 for Bool.
bool holds(DType dtype, double value);
/// The same where a fraction is cut off: 300.7 is in the range of i16, not in that of i8.
bool inRange(DType dtype, double value);
/// The shortest text that reads back as the number: "0.5", "1e+300", "nan".
std::string numberText(double value);

/// bfloat16 is the upper half of an f32: widening is exact.
inline float bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
/// Rounds to nearest, ties to even; NaN stays a quiet NaN.
inline uint16_t floatToBf16(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return uint16_t((u >> 16) | 0x40u);
  return uint16_t((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
/// IEEE 754 binary16, subnormals included.
float f16ToFloat(uint16_t bits);
/// Rounds to nearest, ties to even; overflows to infinity.
uint16_t floatToF16(float value);

}  // namespace lathe
