// SPDX-License-Identifier: Apache-2.0
#pragma once
// AddressSanitizer's runtime, where the process has one: linked into the program or preloaded. The
// symbols are weak, so one build of this library serves both cases.
#include <cstddef>

extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** save, const void* bottom, size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* save, const void** bottom, size_t* size);
[[gnu::weak]] void __asan_poison_memory_region(const volatile void* p, size_t bytes);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* p, size_t bytes);
}

namespace lathe::cuda::host {

inline bool haveAsan() { return __asan_poison_memory_region != nullptr; }
inline void poison(const void* p, size_t bytes) {
  if (haveAsan()) __asan_poison_memory_region(p, bytes);
}
inline void unpoison(const void* p, size_t bytes) {
  if (haveAsan()) __asan_unpoison_memory_region(p, bytes);
}

}  // namespace lathe::cuda::host
