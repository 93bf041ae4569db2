// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/read_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "backends/cpu/device/isa_region.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AVX2)

__m256i readAvx2(const char* base, int64_t gap, int streams, int64_t lines, int64_t prefetch,
                 int64_t turn) {
  __m256i sum[4] = {};
  for (int64_t line = 0; line < lines; line += turn) {
    for (int s = 0; s < streams; ++s) {
      const char* p = base + s * gap + line * 64;
      for (int64_t i = 0; i < turn; ++i) {
        if (prefetch) _mm_prefetch(p + prefetch + i * 64, _MM_HINT_T0);
        const __m256i* at = reinterpret_cast<const __m256i*>(p + i * 64);
        sum[i & 1] = _mm256_xor_si256(sum[i & 1], _mm256_load_si256(at));
        sum[2 + (i & 1)] = _mm256_xor_si256(sum[2 + (i & 1)], _mm256_load_si256(at + 1));
      }
    }
  }
  return _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]), _mm256_xor_si256(sum[2], sum[3]));
}
void readAndKeep(const char* base, int64_t gap, int streams, int64_t lines, int64_t prefetch,
                 int64_t turn) {
  const __m256i sum = readAvx2(base, gap, streams, lines, prefetch, turn);
  // Nothing else uses it: without this the loop would be optimized away.
  __asm__ volatile("" : : "g"(&sum) : "memory");
}

LATHE_ISA_END

}  // namespace

Pages::Pages(int64_t bytes) : bytes_(bytes) {
  void* at =
      mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    throw Error(ErrorCode::OutOfMemory,
                "could not map " + std::to_string(bytes) + " bytes to measure the read bandwidth");
  data_ = static_cast<char*>(at);
  madvise(at, size_t(bytes), MADV_HUGEPAGE);  // fewer faults; a system without them goes on
}
Pages::~Pages() { munmap(data_, size_t(bytes_)); }

void readStreams(const char* base, int64_t gap, int streams, int64_t lines, int64_t prefetch,
                 int64_t turn) {
  readAndKeep(base, gap, streams, lines, prefetch, turn);
}

int64_t twiceLastCache() {
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return 2 * (bytes > 0 ? int64_t(bytes) : int64_t(32) << 20);
}

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace lathe::cpu
