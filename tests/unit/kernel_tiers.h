// SPDX-License-Identifier: Apache-2.0
#pragma once
// The instruction sets on which tests of CPU kernels run.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/cpu/device/cpu_features.h"

namespace lathe::cpu {

/// In programs of the AMX twin alone, which share the compiled tests of those without it.
[[gnu::weak]] extern const bool runsOnTwin;

/// The tiers of this machine, with and without bf16 dot products, and with slow ones. In a program
/// of the AMX twin the AMX tier alone, on the twin's tiles; it ends as skipped on a machine that
/// lacks what the rest of these kernels needs. The first call prints what runs.
inline const std::vector<KernelIsa>& tiers() {
  static const std::vector<KernelIsa> all = [] {
    std::vector<KernelIsa> out;
    if (&runsOnTwin) {
      if (machineIsa() < Isa::Avx512 || !cpuFeatures().avx512Bf16) {
        std::puts("skipped: all of an AMX kernel but its tiles needs AVX512_BF16");
        std::_Exit(77);
      }
      std::puts("tiers: amx with emulated tiles");
      return std::vector<KernelIsa>{{Isa::Amx, true}};
    }
    out.push_back(KernelIsa::of(Isa::Avx2));
    if (machineIsa() >= Isa::Avx512) {
      out.push_back({Isa::Avx512, false});
      if (cpuFeatures().avx512Bf16) {
        out.push_back(KernelIsa::of(Isa::Avx512));
        out.push_back({Isa::Avx512, true, Bf16Arithmetic::Widened});
      }
      if (cpuFeatures().avx512Vnni) {
        out.push_back({Isa::Avx512, false});
        out.back().vnni = true;
      }
    }
    if (machineIsa() == Isa::Amx) out.push_back(KernelIsa::of(Isa::Amx));
    std::printf("tiers up to %s%s\n", std::string(nameOf(machineIsa())).c_str(),
                machineIsa() == Isa::Amx ? "" : "; amx runs in the programs of its twin alone");
    return out;
  }();
  return all;
}

/// "avx512+bf16 dot"
inline std::string label(KernelIsa isa) {
  return std::string(nameOf(isa.tier)) + (isa.bf16 ? "+bf16" : "") + (isa.vnni ? "+vnni" : "") +
         " " + std::string(nameOf(isa.arithmetic));
}

}  // namespace lathe::cpu
