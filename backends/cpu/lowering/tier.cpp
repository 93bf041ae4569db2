// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/tier.h"

namespace lathe::cpu {

std::vector<Tier> codegenTiers() {
  const std::string avx2 =
      "+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+cx16,+sahf";
  // A kernel's vectors are explicit: 512-bit registers stay 512 bits wide under any tuning.
  const std::string avx512 =
      avx2 + ",+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512cd,-prefer-256-bit";
  return {{"avx2", avx2, 16, false, false},
          {"avx512", avx512, 32, true, false},
          {"avx512bf16", avx512 + ",+avx512bf16", 32, true, true}};
}

}  // namespace lathe::cpu
