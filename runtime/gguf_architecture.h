// SPDX-License-Identifier: Apache-2.0
#pragma once
// What GGUF calls the families, and how its files of them differ from Hugging Face's.
#include <cstdint>
#include <string_view>

#include "lathe/runtime/gguf.h"

namespace lathe {

struct GgufArchitecture {
  std::string_view name;                ///< general.architecture
  std::string_view architecture, type;  ///< of config.json
  bool rotates = false;                 ///< rows of q and k lie for pairs of neighbours
  bool addsOne = false;                 ///< norms are stored as 1 + w
  std::string_view ffnNorm = "post_attention_layernorm";
  std::string_view up = "mlp.up_proj";
};

/// Throws Error(Unsupported) that lists the architectures there are.
const GgufArchitecture& architectureOf(const GgufFile& file);
bool isMixture(const GgufFile& file);
/// A number, or an array of one number for every layer.
int64_t uniformCount(const GgufValue& value, int64_t most);

}  // namespace lathe
