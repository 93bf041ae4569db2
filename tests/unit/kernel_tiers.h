// SPDX-License-Identifier: Apache-2.0
#pragma once
// The instruction sets on which tests of CPU kernels run.
#include <string>
#include <vector>

#include "backends/cpu/device/cpu_features.h"

namespace lathe::cpu {

/// The tiers of this machine, with and without bf16 dot products.
inline std::vector<KernelIsa> tiers() {
  std::vector<KernelIsa> out{KernelIsa::of(Isa::Avx2)};
  if (machineIsa() >= Isa::Avx512) {
    out.push_back({Isa::Avx512, false});
    if (cpuFeatures().avx512Bf16) out.push_back(KernelIsa::of(Isa::Avx512));
  }
  if (machineIsa() == Isa::Amx) out.push_back(KernelIsa::of(Isa::Amx));
  return out;
}

/// "avx512+bf16"
inline std::string label(KernelIsa isa) {
  return std::string(nameOf(isa.tier)) + (isa.bf16 ? "+bf16" : "");
}

}  // namespace lathe::cpu
