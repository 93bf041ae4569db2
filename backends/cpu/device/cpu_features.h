// SPDX-License-Identifier: Apache-2.0
#pragma once
// What this processor can run, from its feature bits and never from its name.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::cpu {

/// Tiers of generated and hand-written kernels; each includes the ones before it.
/// Avx2 = AVX2 + FMA + F16C; Avx512 = F, BW, DQ, VL, CD on top; Amx = AMX tiles with bf16 and int8,
/// AVX512_BF16 and AVX512_VNNI, with the kernel's permission to use tile data.
enum class Isa { Avx2, Avx512, Amx };

/// Feature bits that are both in the CPU and enabled by the operating system.
struct CpuFeatures {
  bool avx2 = false, fma = false, f16c = false, avxVnni = false;
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false, avx512cd = false;
  bool avx512Vnni = false, avx512Bf16 = false, avx512Fp16 = false;
  bool amxTile = false, amxBf16 = false, amxInt8 = false, amxFp16 = false;

  /// Names as Linux spells them ("avx512_bf16"), in a fixed order; for `lathe env`.
  std::vector<std::string> names() const;
};

/// Read once per process. Asks Linux for the AMX tile permission on the first call.
const CpuFeatures& cpuFeatures();
/// The highest tier of the machine; throws Error(Unsupported) on a CPU without AVX2 and FMA.
Isa machineIsa();
/// machineIsa(), lowered by LATHE_CPU_ISA=avx2|avx512|amx. Throws Error(InvalidArgument) for
/// another word, or for a tier above the machine's.
Isa detectIsa();
/// "avx2", "avx512", "amx"
std::string_view nameOf(Isa isa);

/// How products of bf16 data are made where they, and not memory, are the limit. All are exact
/// products summed in f32.
enum class Bf16Arithmetic {
  Widened,  ///< to f32, by f32 multiply-adds
  Dot,      ///< AVX512_BF16 dot products
  Tiles,    ///< AMX
};
/// "widened", "dot", "tiles"
std::string_view nameOf(Bf16Arithmetic arithmetic);

/// What kernels are chosen by: a tier, the AVX-512 extras that count on it, and how bf16 data are
/// multiplied.
struct KernelIsa {
  Isa tier = Isa::Avx2;
  bool bf16 = false;  ///< AVX512_BF16 instructions may be used
  Bf16Arithmetic arithmetic = bestByFeatures();
  bool vnni = false;  ///< AVX512_VNNI instructions may be used

  /// The extras that `tier` may use on this machine, and the arithmetic of the newest. Throws if
  /// the tier is above the machine's.
  static KernelIsa of(Isa tier);
  /// of(detectIsa()) with the arithmetic that was measured to be fastest (calibration.h), or that
  /// LATHE_CPU_BF16=widened|dot|tiles names. Computed once.
  static KernelIsa current();

 private:
  constexpr Bf16Arithmetic bestByFeatures() const {
    return tier == Isa::Amx ? Bf16Arithmetic::Tiles
           : bf16           ? Bf16Arithmetic::Dot
                            : Bf16Arithmetic::Widened;
  }
};
/// What LATHE_CPU_BF16 names; nothing if it is not set. Throws Error(InvalidArgument) for another
/// word, and for an arithmetic that `isa` does not have.
std::optional<Bf16Arithmetic> pinnedArithmetic(const KernelIsa& isa);

}  // namespace lathe::cpu
