// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/roofs.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "backends/cpu/device/amx_blocks.h"
#include "backends/cpu/device/read_memory.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AVX2)

// For the compiler another value from here on.
inline void keepInRegister(__m256i& value) { __asm__ volatile("" : "+x"(value)); }

// Ten independent chains cover latency 4-5 x two units; returns FLOPs. The operands are chosen so
// that the sums neither overflow nor become subnormal.
double fmaAvx2(int64_t rounds, float* sink) {
  __m256 sum[10], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (int i = 0; i < 10; ++i) sum[i] = _mm256_set1_ps(float(i));
  for (int64_t r = 0; r < rounds; ++r)
    for (int i = 0; i < 10; ++i) sum[i] = _mm256_fmadd_ps(sum[i], x, y);
  for (int i = 0; i < 10; ++i) _mm256_storeu_ps(sink, _mm256_add_ps(_mm256_loadu_ps(sink), sum[i]));
  return double(rounds) * 10 * 8 * 2;
}

// Bytes times bytes, two products in each 16 bits of a sum, as halves of bytes are multiplied.
double maddBytes(int64_t rounds, float* sink) {
  __m256i sum[12], x = _mm256_set1_epi8(3), y = _mm256_set1_epi8(-5);
  for (int i = 0; i < 12; ++i) sum[i] = _mm256_setzero_si256();
  for (int64_t r = 0; r < rounds; ++r)
    for (int i = 0; i < 12; ++i) {
      keepInRegister(x);  // else the product is made once
      sum[i] = _mm256_add_epi16(sum[i], _mm256_maddubs_epi16(x, y));
    }
  for (int i = 0; i < 12; ++i)
    _mm256_storeu_ps(sink, _mm256_add_ps(_mm256_loadu_ps(sink), _mm256_cvtepi32_ps(sum[i])));
  return double(rounds) * 12 * 32 * 2;
}

LATHE_ISA_END

LATHE_ISA_BEGIN(LATHE_TARGET_AVX512)

double fmaAvx512(int64_t rounds, float* sink) {
  __m512 sum[16], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
  for (int i = 0; i < 16; ++i) sum[i] = _mm512_set1_ps(float(i));
  for (int64_t r = 0; r < rounds; ++r)
    for (int i = 0; i < 16; ++i) sum[i] = _mm512_fmadd_ps(sum[i], x, y);
  for (int i = 0; i < 16; ++i) _mm512_storeu_ps(sink, _mm512_add_ps(_mm512_loadu_ps(sink), sum[i]));
  return double(rounds) * 16 * 16 * 2;
}

LATHE_ISA_END

LATHE_ISA_BEGIN(LATHE_TARGET_AVX512_BF16)

double dotBf16(int64_t rounds, float* sink) {
  __m512 sum[16];
  __m512bh x = (__m512bh)_mm512_set1_epi32(0x3f803f80), y = (__m512bh)_mm512_set1_epi32(0x38003800);
  for (int i = 0; i < 16; ++i) sum[i] = _mm512_setzero_ps();
  for (int64_t r = 0; r < rounds; ++r)
    for (int i = 0; i < 16; ++i) sum[i] = _mm512_dpbf16_ps(sum[i], x, y);
  for (int i = 0; i < 16; ++i) _mm512_storeu_ps(sink, _mm512_add_ps(_mm512_loadu_ps(sink), sum[i]));
  return double(rounds) * 16 * 32 * 2;
}

LATHE_ISA_END

LATHE_ISA_BEGIN(LATHE_TARGET_AVX512_VNNI)

double dotBytes(int64_t rounds, float* sink) {
  __m512i sum[16], x = _mm512_set1_epi8(3), y = _mm512_set1_epi8(-5);
  for (int i = 0; i < 16; ++i) sum[i] = _mm512_setzero_si512();
  for (int64_t r = 0; r < rounds; ++r)
    for (int i = 0; i < 16; ++i) sum[i] = _mm512_dpbusd_epi32(sum[i], x, y);
  for (int i = 0; i < 16; ++i)
    _mm512_storeu_ps(sink, _mm512_add_ps(_mm512_loadu_ps(sink), _mm512_cvtepi32_ps(sum[i])));
  return double(rounds) * 16 * 64 * 2;
}

LATHE_ISA_END

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

// Products of tiles of bf16 or of bytes, 64 bytes of each row.
template <Operands operands>
double amxProducts(int64_t rounds, float* sink) {
  alignas(64) unsigned short ones[512];
  for (int i = 0; i < 512; ++i) ones[i] = 0x3800;
  tileConfigure(kAmxTiles);
  tileZero<0>();
  tileZero<1>();
  tileZero<2>();
  tileZero<3>();
  tileLoad<4>(ones, 64);
  tileLoad<5>(ones, 64);
  tileLoad<6>(ones, 64);
  tileLoad<7>(ones, 64);
  for (int64_t r = 0; r < rounds; ++r) {
    tileDot<operands, 0, 4, 6>();
    tileDot<operands, 1, 4, 7>();
    tileDot<operands, 2, 5, 6>();
    tileDot<operands, 3, 5, 7>();
  }
  alignas(64) float sums[256];
  tileStore<0>(sums, 64);
  sink[0] += sums[0];
  tileStore<3>(sums, 64);
  sink[0] += sums[0];
  tileRelease();
  return double(rounds) * 4 * 16 * 16 * (operands == Operands::bf16 ? 32 : 64) * 2;
}

LATHE_ISA_END

// Keeps a result that nothing else reads from being optimized away.
void keep(const void* value) { __asm__ volatile("" : : "g"(value) : "memory"); }

using PeakLoop = double (*)(int64_t rounds, float* sink);

PeakLoop peakLoop(PeakKind kind) {
  const CpuFeatures& f = cpuFeatures();
  Isa isa = machineIsa();
  switch (kind) {
    case PeakKind::F32Fma:
      return isa >= Isa::Avx512 ? fmaAvx512 : fmaAvx2;
    case PeakKind::Bf16Dot:
      if (isa >= Isa::Avx512 && f.avx512Bf16) return dotBf16;
      throw Error(ErrorCode::Unsupported,
                  "expected a CPU with AVX512_BF16 to measure its bf16 peak, got one without");
    case PeakKind::AmxBf16:
    case PeakKind::AmxByte:
      if (isa == Isa::Amx)
        return kind == PeakKind::AmxByte ? amxProducts<Operands::bytes>
                                         : amxProducts<Operands::bf16>;
      throw Error(ErrorCode::Unsupported,
                  "expected a CPU with AMX tiles to measure their peak, got one without");
    case PeakKind::ByteDot:
      return isa >= Isa::Avx512 && f.avx512Vnni ? dotBytes : maddBytes;
  }
  return fmaAvx2;
}

// Bytes that the system could give to programs: unused ones, and what it keeps of files.
int64_t availableBytes() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("MemAvailable:")) return std::atoll(line.c_str() + 13) * 1024;
  return int64_t(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

}  // namespace

TimedRounds timeRounds(FunctionRef<double(int64_t)> pass, int repeats, double least) {
  TimedRounds timed{1000, 0};
  do {
    while (pass(timed.rounds) < least) timed.rounds *= 2;
    timed.seconds = pass(timed.rounds);
    for (int i = 1; i < repeats; ++i) timed.seconds = std::min(timed.seconds, pass(timed.rounds));
  } while (timed.seconds < least / 2 && (timed.rounds *= 2) > 0);
  return timed;
}

double measurePeak(PeakKind kind, ThreadPool& pool, int repeats, double least) {
  PeakLoop loop = peakLoop(kind);
  std::vector<double> flops(size_t(pool.threads()));
  auto pass = [&](int64_t rounds) {
    double start = secondsNow();
    pool.run(pool.threads(), [&](int64_t, int worker) {
      float sink[16] = {};
      flops[size_t(worker)] = loop(rounds, sink);
      keep(sink);
    });
    return secondsNow() - start;
  };
  const double seconds = timeRounds(pass, repeats, least).seconds;
  double total = 0;
  for (double f : flops) total += f;
  return total / seconds;
}

PeakKind bestPeakKind(bool bf16, KernelIsa isa) {
  if (!bf16) return PeakKind::F32Fma;
  switch (isa.arithmetic) {
    case Bf16Arithmetic::Tiles:
      return PeakKind::AmxBf16;
    case Bf16Arithmetic::Dot:
      return PeakKind::Bf16Dot;
    case Bf16Arithmetic::Widened:
      return PeakKind::F32Fma;
  }
  return PeakKind::F32Fma;
}

PeakKind bytePeakKind(bool bf16, KernelIsa isa) {
  if (bf16 && isa.tier == Isa::Amx && isa.arithmetic == Bf16Arithmetic::Tiles)
    return PeakKind::AmxByte;
  return isa.vnni || isa.tier == Isa::Avx2 ? PeakKind::ByteDot : PeakKind::F32Fma;
}

ReadRoofs measureReadRoofs(ThreadPool& pool, int64_t bytes, int repeats) {
  constexpr int64_t kPage = 4096;
  // Every share is a whole number of pages for each of 1, 2, 4, 8 and 16 streams.
  const int64_t unit = pool.threads() * 16 * kPage;
  ReadRoofs roofs;
  const int64_t memory = availableBytes();
  const int64_t wanted =
      std::max(std::min(twiceLastCache(), memory / 2), std::min(bytes, memory / 4));
  roofs.bufferBytes = std::max(unit, wanted / unit * unit);
  Pages pages(roofs.bufferBytes + 2 * kPage);  // the tail keeps prefetches inside the mapping
  const int64_t share = roofs.bufferBytes / pool.threads();
  pool.run(pool.threads(), [&](int64_t index, int) {
    std::memset(pages.data() + index * share, int(index) + 1, size_t(share));
  });
  for (int streams : {1, 2, 4, 8, 16}) {
    for (bool prefetch : {false, true}) {
      double best = 0;
      for (int i = 0; i < repeats; ++i) {
        double start = secondsNow();
        pool.run(pool.threads(), [&](int64_t index, int) {
          constexpr int64_t kTurnLines = 16;
          const int64_t gap = share / streams;
          readStreams(pages.data() + index * share, gap, streams, gap / 64, prefetch ? kPage : 0,
                      kTurnLines);
        });
        best = std::max(best, double(roofs.bufferBytes) / (secondsNow() - start));
      }
      roofs.tried.push_back({streams, prefetch, best});
    }
  }
  std::sort(roofs.tried.begin(), roofs.tried.end(), [](const ReadRoof& a, const ReadRoof& b) {
    return a.bytesPerSecond > b.bytesPerSecond;
  });
  return roofs;
}

}  // namespace lathe::cpu
