// SPDX-License-Identifier: Apache-2.0
#pragma once
// The instruction sets that row kernels are generated for.
#include <string>
#include <vector>

namespace lathe::cpu {

struct Tier {
  std::string name;      ///< "avx2", "avx512", "avx512bf16"
  std::string features;  ///< LLVM target features, every one spelled out
  int lanes;             ///< f32 lanes of one virtual vector (LLVM splits it into registers)
  bool avx512;           ///< masked memory operations and vscalefps exist
  bool avx512Bf16;       ///< vcvtneps2bf16 exists
};

/// All tiers, each including the ones before it. A program holds code for every one of them.
std::vector<Tier> codegenTiers();

}  // namespace lathe::cpu
