// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/cpu_features.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

struct Regs {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Regs cpuid(uint32_t leaf, uint32_t subleaf) {
  Regs r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

bool bit(uint32_t word, int index) { return (word >> index) & 1u; }

// Register state that the operating system saves across context switches (XCR0).
uint64_t enabledState() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

// Linux gives tile data only to processes that asked (ARCH_REQ_XCOMP_PERM of XTILEDATA).
bool requestTileData() {
  constexpr long kReqXcompPerm = 0x1023, kXtileData = 18;
  return syscall(SYS_arch_prctl, kReqXcompPerm, kXtileData) == 0;
}

CpuFeatures read() {
  CpuFeatures f;
  Regs basic = cpuid(1, 0);
  if (!bit(basic.c, 27)) return f;  // no OSXSAVE: nothing beyond SSE is usable
  uint64_t state = enabledState();
  bool ymm = (state & 0x6) == 0x6;
  bool zmm = ymm && (state & 0xe0) == 0xe0;
  bool tiles = (state & 0x60000) == 0x60000;
  Regs seven = cpuid(7, 0), sevenOne = cpuid(7, 1);

  f.fma = ymm && bit(basic.c, 12);
  f.f16c = ymm && bit(basic.c, 29);
  f.avx2 = ymm && bit(seven.b, 5);
  f.avxVnni = ymm && bit(sevenOne.a, 4);
  f.avx512f = zmm && bit(seven.b, 16);
  f.avx512dq = zmm && bit(seven.b, 17);
  f.avx512cd = zmm && bit(seven.b, 28);
  f.avx512bw = zmm && bit(seven.b, 30);
  f.avx512vl = zmm && bit(seven.b, 31);
  f.avx512Vnni = zmm && bit(seven.c, 11);
  f.avx512Bf16 = zmm && bit(sevenOne.a, 5);
  f.avx512Fp16 = zmm && bit(seven.d, 23);
  if (tiles && bit(seven.d, 24) && requestTileData()) {
    f.amxTile = true;
    f.amxBf16 = bit(seven.d, 22);
    f.amxInt8 = bit(seven.d, 25);
    f.amxFp16 = bit(sevenOne.a, 21);
  }
  return f;
}

}  // namespace

std::vector<std::string> CpuFeatures::names() const {
  std::vector<std::string> out;
  auto add = [&](bool has, const char* name) {
    if (has) out.emplace_back(name);
  };
  add(avx2, "avx2");
  add(fma, "fma");
  add(f16c, "f16c");
  add(avxVnni, "avx_vnni");
  add(avx512f, "avx512f");
  add(avx512bw, "avx512bw");
  add(avx512dq, "avx512dq");
  add(avx512vl, "avx512vl");
  add(avx512cd, "avx512cd");
  add(avx512Vnni, "avx512_vnni");
  add(avx512Bf16, "avx512_bf16");
  add(avx512Fp16, "avx512_fp16");
  add(amxTile, "amx_tile");
  add(amxBf16, "amx_bf16");
  add(amxInt8, "amx_int8");
  add(amxFp16, "amx_fp16");
  return out;
}

const CpuFeatures& cpuFeatures() {
  static const CpuFeatures features = read();
  return features;
}

Isa machineIsa() {
  const CpuFeatures& f = cpuFeatures();
  if (!f.avx2 || !f.fma || !f.f16c)
    throw Error(ErrorCode::Unsupported,
                "expected a CPU with AVX2, FMA and F16C, got one without; use --backend reference");
  if (!f.avx512f || !f.avx512bw || !f.avx512dq || !f.avx512vl || !f.avx512cd) return Isa::Avx2;
  if (f.amxTile && f.amxBf16 && f.amxInt8 && f.avx512Bf16 && f.avx512Vnni) return Isa::Amx;
  return Isa::Avx512;
}

Isa detectIsa() {
  Isa machine = machineIsa();
  const char* text = std::getenv("LATHE_CPU_ISA");
  if (!text || !*text) return machine;
  for (Isa isa : {Isa::Avx2, Isa::Avx512, Isa::Amx}) {
    if (nameOf(isa) != text) continue;
    if (isa > machine)
      throw Error(ErrorCode::InvalidArgument,
                  "expected LATHE_CPU_ISA to be at most this machine's tier " +
                      std::string(nameOf(machine)) + ", got " + text + "; unset it");
    return isa;
  }
  throw Error(ErrorCode::InvalidArgument,
              "expected LATHE_CPU_ISA to be avx2, avx512 or amx, got \"" + std::string(text) +
                  "\"; unset it to use " + std::string(nameOf(machine)));
}

std::string_view nameOf(Isa isa) {
  switch (isa) {
    case Isa::Avx2:
      return "avx2";
    case Isa::Avx512:
      return "avx512";
    case Isa::Amx:
      return "amx";
  }
  return "avx2";
}

KernelIsa KernelIsa::of(Isa tier) {
  if (tier > machineIsa())
    throw Error(ErrorCode::InvalidArgument, "expected a kernel tier of at most " +
                                                std::string(nameOf(machineIsa())) + ", got " +
                                                std::string(nameOf(tier)));
  const bool wide = tier >= Isa::Avx512;
  KernelIsa isa{tier, wide && cpuFeatures().avx512Bf16};
  isa.vnni = wide && cpuFeatures().avx512Vnni;
  return isa;
}

std::string_view nameOf(Bf16Arithmetic arithmetic) {
  switch (arithmetic) {
    case Bf16Arithmetic::Widened:
      return "widened";
    case Bf16Arithmetic::Dot:
      return "dot";
    case Bf16Arithmetic::Tiles:
      return "tiles";
  }
  return "widened";
}

std::optional<Bf16Arithmetic> pinnedArithmetic(const KernelIsa& isa) {
  const char* text = std::getenv("LATHE_CPU_BF16");
  if (!text || !*text) return std::nullopt;
  std::string known;
  for (auto arithmetic : {Bf16Arithmetic::Widened, Bf16Arithmetic::Dot, Bf16Arithmetic::Tiles}) {
    if (arithmetic == Bf16Arithmetic::Dot && !isa.bf16) continue;
    if (arithmetic == Bf16Arithmetic::Tiles && isa.tier < Isa::Amx) continue;
    if (nameOf(arithmetic) == text) return arithmetic;
    known += (known.empty() ? "" : ", ") + std::string(nameOf(arithmetic));
  }
  throw Error(ErrorCode::InvalidArgument, "expected LATHE_CPU_BF16 to be one of what the tier " +
                                              std::string(nameOf(isa.tier)) + " has here (" +
                                              known + "), got \"" + text +
                                              "\"; unset it for what was measured to be fastest");
}

}  // namespace lathe::cpu
