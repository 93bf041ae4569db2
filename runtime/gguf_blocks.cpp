// SPDX-License-Identifier: Apache-2.0
#include "runtime/gguf_blocks.h"

#include <array>
#include <cstring>

namespace lathe {
namespace {

float half(const uint8_t* at) {
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return f16ToFloat(bits);
}

int nibble(const uint8_t* at, int i) {
  // Two halves of a block in the two halves of its bytes.
  return i < 16 ? at[i] & 15 : at[i - 16] >> 4;
}
int fifthBit(const uint8_t* at, int i) { return (at[i / 8] >> (i % 8) & 1) << 4; }

// 32 elements with one scale, and from Q4_1 on with one offset, which is added.
void decodeQ4_0(const uint8_t* b, int8_t* q, float* scale, float*) {
  *scale = half(b);
  for (int i = 0; i < 32; ++i) q[i] = int8_t(nibble(b + 2, i) - 8);
}
void decodeQ4_1(const uint8_t* b, int8_t* q, float* scale, float* low) {
  *scale = half(b);
  *low = -half(b + 2);
  for (int i = 0; i < 32; ++i) q[i] = int8_t(nibble(b + 4, i));
}
void decodeQ5_0(const uint8_t* b, int8_t* q, float* scale, float*) {
  *scale = half(b);
  for (int i = 0; i < 32; ++i) q[i] = int8_t((nibble(b + 6, i) | fifthBit(b + 2, i)) - 16);
}
void decodeQ5_1(const uint8_t* b, int8_t* q, float* scale, float* low) {
  *scale = half(b);
  *low = -half(b + 2);
  for (int i = 0; i < 32; ++i) q[i] = int8_t(nibble(b + 8, i) | fifthBit(b + 4, i));
}
void decodeQ8_0(const uint8_t* b, int8_t* q, float* scale, float*) {
  *scale = half(b);
  std::memcpy(q, b + 2, 32);
}

// The K kinds: 256 elements in groups of 16 or 32, whose scales are integers times one f16.
void decodeQ2_K(const uint8_t* b, int8_t* q, float* scale, float* low) {
  const float d = half(b + 80), dmin = half(b + 82);
  for (int g = 0; g < 16; ++g) {
    scale[g] = d * float(b[g] & 15);
    low[g] = dmin * float(b[g] >> 4);
  }
  const uint8_t* bits = b + 16;
  for (int i = 0; i < 256; ++i)
    q[i] = int8_t(bits[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3);
}
void decodeQ3_K(const uint8_t* b, int8_t* q, float* scale, float*) {
  const uint8_t *high = b, *bits = b + 32, *packed = b + 96;
  const float d = half(b + 108);
  for (int g = 0; g < 16; ++g) {
    const int lower = g < 8 ? packed[g] & 15 : packed[g - 8] >> 4;
    const int upper = packed[8 + g % 4] >> (g / 4 * 2) & 3;
    scale[g] = d * float((lower | upper << 4) - 32);
  }
  for (int i = 0; i < 256; ++i) {
    const int two = bits[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    // A bit that is clear takes 4 off.
    q[i] = int8_t(two - ((high[i % 32] >> (i / 32) & 1) ? 0 : 4));
  }
}
// Eight scales and eight minima of 6 bits in 12 bytes.
void decodeSixBits(const uint8_t* s, int g, int& scale, int& low) {
  if (g < 4) {
    scale = s[g] & 63;
    low = s[g + 4] & 63;
  } else {
    scale = (s[g + 4] & 15) | (s[g - 4] >> 6) << 4;
    low = s[g + 4] >> 4 | (s[g] >> 6) << 4;
  }
}
void decodeKScales(const uint8_t* b, float* scale, float* low) {
  const float d = half(b), dmin = half(b + 2);
  for (int g = 0; g < 8; ++g) {
    int s, m;
    decodeSixBits(b + 4, g, s, m);
    scale[g] = d * float(s);
    low[g] = dmin * float(m);
  }
}
int halfByte(const uint8_t* bits, int i) {
  const uint8_t byte = bits[i / 64 * 32 + i % 32];
  return i % 64 < 32 ? byte & 15 : byte >> 4;
}
void decodeQ4_K(const uint8_t* b, int8_t* q, float* scale, float* low) {
  decodeKScales(b, scale, low);
  for (int i = 0; i < 256; ++i) q[i] = int8_t(halfByte(b + 16, i));
}
void decodeQ5_K(const uint8_t* b, int8_t* q, float* scale, float* low) {
  decodeKScales(b, scale, low);
  const uint8_t* high = b + 16;
  for (int i = 0; i < 256; ++i)
    q[i] = int8_t(halfByte(b + 48, i) | (high[i % 32] >> (i / 32) & 1) << 4);
}
void decodeQ6_K(const uint8_t* b, int8_t* q, float* scale, float*) {
  const uint8_t *lower = b, *upper = b + 128;
  const auto* scales = reinterpret_cast<const int8_t*>(b + 192);
  const float d = half(b + 208);
  for (int g = 0; g < 16; ++g) scale[g] = d * float(scales[g]);
  for (int i = 0; i < 256; ++i) {
    const int part = i / 128, in = i % 128;
    const uint8_t four = lower[part * 64 + in % 64];
    const int two = upper[part * 32 + in % 32] >> (in / 32 * 2) & 3;
    q[i] = int8_t(((in < 64 ? four & 15 : four >> 4) | two << 4) - 32);
  }
}

constexpr GgufBlocks kQ4_0{32, DType::I4, false, decodeQ4_0};
constexpr GgufBlocks kQ4_1{32, DType::U4, true, decodeQ4_1};
constexpr GgufBlocks kQ5_0{32, DType::I8, false, decodeQ5_0};
constexpr GgufBlocks kQ5_1{32, DType::I8, true, decodeQ5_1};
constexpr GgufBlocks kQ8_0{32, DType::I8, false, decodeQ8_0};
constexpr GgufBlocks kQ2_K{16, DType::U4, true, decodeQ2_K};
constexpr GgufBlocks kQ3_K{16, DType::I4, false, decodeQ3_K};
constexpr GgufBlocks kQ4_K{32, DType::U4, true, decodeQ4_K};
constexpr GgufBlocks kQ5_K{32, DType::I8, true, decodeQ5_K};
constexpr GgufBlocks kQ6_K{16, DType::I8, false, decodeQ6_K};

// Kinds without a dtype and blocks are listed, and refused where they are read.
constexpr auto kTypes = std::to_array<GgufTensorType>({
    {0, "F32", 1, 4, DType::F32},       {1, "F16", 1, 2, DType::F16},
    {2, "Q4_0", 32, 18, {}, &kQ4_0},    {3, "Q4_1", 32, 20, {}, &kQ4_1},
    {6, "Q5_0", 32, 22, {}, &kQ5_0},    {7, "Q5_1", 32, 24, {}, &kQ5_1},
    {8, "Q8_0", 32, 34, {}, &kQ8_0},    {9, "Q8_1", 32, 36, {}},
    {10, "Q2_K", 256, 84, {}, &kQ2_K},  {11, "Q3_K", 256, 110, {}, &kQ3_K},
    {12, "Q4_K", 256, 144, {}, &kQ4_K}, {13, "Q5_K", 256, 176, {}, &kQ5_K},
    {14, "Q6_K", 256, 210, {}, &kQ6_K}, {15, "Q8_K", 256, 292, {}},
    {16, "IQ2_XXS", 256, 66, {}},       {17, "IQ2_XS", 256, 74, {}},
    {18, "IQ3_XXS", 256, 98, {}},       {19, "IQ1_S", 256, 50, {}},
    {20, "IQ4_NL", 32, 18, {}},         {21, "IQ3_S", 256, 110, {}},
    {22, "IQ2_S", 256, 82, {}},         {23, "IQ4_XS", 256, 136, {}},
    {24, "I8", 1, 1, DType::I8},        {25, "I16", 1, 2, DType::I16},
    {26, "I32", 1, 4, DType::I32},      {27, "I64", 1, 8, DType::I64},
    {28, "F64", 1, 8, DType::F64},      {29, "IQ1_M", 256, 56, {}},
    {30, "BF16", 1, 2, DType::BF16},    {34, "TQ1_0", 256, 54, {}},
    {35, "TQ2_0", 256, 66, {}},         {39, "MXFP4", 32, 17, {}},
    {40, "NVFP4", 64, 36, {}},          {41, "Q1_0", 128, 18, {}},
});

}  // namespace

const GgufTensorType* findGgufType(uint32_t number) {
  for (const GgufTensorType& type : kTypes)
    if (type.number == number) return &type;
  return nullptr;
}

const char* readableGgufTypes() {
  return "F32, F16, BF16, F64, I8, I16, I32, I64, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, "
         "Q5_K and Q6_K";
}

void decodeGgufBlock(const GgufTensorType& type, const uint8_t* block, float* out) {
  const GgufBlocks& kind = *type.blocks;
  std::array<int8_t, kMostBlockElements> q;
  std::array<float, kMostBlockElements / 16> scale, low;
  kind.decode(block, q.data(), scale.data(), low.data());
  for (int64_t i = 0; i < type.elements; ++i) {
    const auto g = size_t(i / kind.group);
    // Two statements: one rounding each.
    const float product = scale[g] * float(q[size_t(i)]);
    out[i] = product;
    if (kind.hasLow) out[i] = product - low[g];
  }
}

}  // namespace lathe
