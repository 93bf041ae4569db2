// SPDX-License-Identifier: Apache-2.0
#pragma once
// The types of GGUF's tensors: plain numbers, and blocks of integers with scales.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lathe/runtime/dtype.h"

namespace lathe {

/// Blocks as integers: element i is `q[i] * scale[i / group]`, minus `low[i / group]` where the
/// kind has one. Products and differences are rounded to f32 one after the other, as ggml does.
struct GgufBlocks {
  int64_t group = 32;       ///< neighbours that share a scale
  DType dtype = DType::I8;  ///< the narrowest that holds q: I4, I8; U4 and I8 where there is `low`
  bool hasLow = false;
  /// Reads one block. `low` is null where the kind has none.
  void (*decode)(const uint8_t* block, int8_t* q, float* scale, float* low) = nullptr;
};

struct GgufTensorType {
  uint32_t number;
  std::string_view name;
  int64_t elements;  ///< of a block; 1 for plain numbers
  size_t bytes;      ///< of a block
  std::optional<DType> plain;
  const GgufBlocks* blocks = nullptr;  ///< null too for kinds that can be listed but not read
};

/// Null for a number that the format does not know.
const GgufTensorType* findGgufType(uint32_t number);
/// The names of the types that can be read: "F32, F16, ...".
const char* readableGgufTypes();
/// The floats of one block: `type.blocks` is set, `out` has room for `type.elements`.
void decodeGgufBlock(const GgufTensorType& type, const uint8_t* block, float* out);

/// Elements of the largest block.
inline constexpr int64_t kMostBlockElements = 256;

}  // namespace lathe
