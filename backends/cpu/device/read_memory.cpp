// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/read_memory.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

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

// What a file of one word says; "" without it.
std::string wordIn(const std::filesystem::path& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}
// "3", "32768K" or "1M"; 0 for anything else.
int64_t numberIn(const std::filesystem::path& path) {
  const std::string word = wordIn(path);
  int64_t number = 0;
  const char* end = word.data() + word.size();
  const auto [unit, failure] = std::from_chars(word.data(), end, number);
  if (failure != std::errc() || number < 0 || number > INT64_MAX >> 30) return 0;
  const std::string_view rest(unit, size_t(end - unit));
  return rest.empty() ? number : rest == "K" ? number << 10 : rest == "M" ? number << 20 : 0;
}

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

std::vector<int> ownProcessors() {
  std::vector<int> processors;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) processors.push_back(cpu);
  return processors;
}

int64_t lastCacheBytes(const std::vector<int>& processors, const std::string& cpus) {
  int64_t last = 0;
  std::map<std::string, int64_t> pieces;  // by the processors that share one
  for (int cpu : processors)
    for (int index = 0;; ++index) {
      const std::filesystem::path cache =
          cpus + "/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index);
      const int64_t level = numberIn(cache / "level");
      if (level == 0) break;
      if (level < std::max<int64_t>(last, 3)) continue;
      if (level > last) pieces.clear();
      last = level;
      pieces[wordIn(cache / "shared_cpu_list")] = numberIn(cache / "size");
    }
  int64_t sum = 0;
  for (const auto& [sharers, bytes] : pieces) sum += bytes;
  if (sum == 0) sum = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return sum > 0 ? sum : int64_t(32) << 20;
}

int64_t twiceLastCache() { return 2 * lastCacheBytes(); }

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace lathe::cpu
