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
[[gnu::weak]] void __asan_set_shadow_00(size_t shadow, size_t bytes);
[[gnu::weak]] void __asan_get_shadow_mapping(size_t* scale, size_t* offset);
}

namespace lathe::cuda::host {

inline bool haveAsan() { return __asan_poison_memory_region != nullptr; }
inline void poison(const void* p, size_t bytes) {
  if (haveAsan()) __asan_poison_memory_region(p, bytes);
}
inline void unpoison(const void* p, size_t bytes) {
  if (haveAsan()) __asan_unpoison_memory_region(p, bytes);
}
/// Of a stack that is used again what abandoned frames have poisoned: that holds under the option
/// allow_user_poisoning=0 too, which `unpoison` heeds. Both are multiples of 8 bytes.
inline void unpoisonStack(const void* stack, size_t bytes) {
  if (!__asan_set_shadow_00 || !__asan_get_shadow_mapping) return;
  size_t scale = 0, offset = 0;
  __asan_get_shadow_mapping(&scale, &offset);
  __asan_set_shadow_00((size_t(stack) >> scale) + offset, bytes >> scale);
}

}  // namespace lathe::cuda::host
