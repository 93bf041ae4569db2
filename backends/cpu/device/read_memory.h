// SPDX-License-Identifier: Apache-2.0
#pragma once
// What measurements of the memory are made of: pages, and a loop that reads them.
#include <cstdint>
#include <string>
#include <vector>

namespace lathe::cpu {

/// Page-aligned memory of zeros that is given back to the system at once. Throws
/// Error(OutOfMemory).
class Pages {
 public:
  explicit Pages(int64_t bytes);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  char* data() const { return data_; }

 private:
  int64_t bytes_;
  char* data_;
};

/// Reads `lines` cache lines, a multiple of `turn`, from each of `streams` places `gap` bytes
/// apart, in turns of `turn` lines. Fetches `prefetch` bytes ahead, which have to be mapped; 0:
/// nothing.
void readStreams(const char* base, int64_t gap, int streams, int64_t lines, int64_t prefetch,
                 int64_t turn);

/// The processors that this process may run on.
std::vector<int> ownProcessors();
/// The last level of cache in all the pieces that these processors have, as Linux lists them below
/// `cpus`. Where no third level is listed: what the C library says, which on some virtual machines
/// counts pieces of other processors, or else 32 MiB.
int64_t lastCacheBytes(const std::vector<int>& processors = ownProcessors(),
                       const std::string& cpus = "/sys/devices/system/cpu");
/// What a buffer has to exceed so that reading it is reading memory.
int64_t twiceLastCache();
/// Seconds of a clock that never goes back.
double secondsNow();

}  // namespace lathe::cpu
