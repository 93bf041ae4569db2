// SPDX-License-Identifier: Apache-2.0
// LATHE_KERNEL(name): the entry point of a kernel in a host module. Included by the host twin.
#pragma once

// Unpacks the launch's argument array (the same as cuLaunchKernel's) and calls the kernel.
template <int... I>
struct LtSeq {};
template <int N, int... I>
struct LtMake : LtMake<N - 1, N - 1, I...> {};
template <int... I>
struct LtMake<0, I...> {
  typedef LtSeq<I...> type;
};
template <class... A, int... I>
LT_UNCHECKED static void lt_apply(void (*f)(A...), void** p, LtSeq<I...>) {
  f(*(A*)p[I]...);
}
template <class... A>
LT_UNCHECKED static void lt_call(void (*f)(A...), void** p) {
  lt_apply(f, p, typename LtMake<(int)sizeof...(A)>::type());
}
// Bytes of each parameter, closed by 0.
template <class... A>
struct LtBytes {
  static constexpr int bytes[sizeof...(A) + 1] = {(int)sizeof(A)..., 0};
};
template <class... A>
constexpr const int* lt_parameters(void (*)(A...)) {
  return LtBytes<A...>::bytes;
}
#define LT_EXPORT extern "C" __attribute__((visibility("default")))
#define LATHE_KERNEL(name)                                                  \
  LT_EXPORT const int* const lathe_parameters_##name = lt_parameters(name); \
  LT_EXPORT LT_UNCHECKED void lathe_entry_##name(void** p) { lt_call(name, p); }

#ifdef LT_CHECKED
// A check build is compiled with -fsanitize=thread and linked without its library: every access
// through a plain pointer calls one of these. They are hidden, so a program that is itself built
// with ThreadSanitizer keeps its own.
LT_EXPORT const char lathe_checked = 1;
#define LT_CALLBACK(name, bytes, write)                                                        \
  extern "C" __attribute__((visibility("hidden"), used, noinline, no_sanitize("thread"))) void \
  lt_on_##name(void* p) asm("__tsan_" #name);                                                  \
  void lt_on_##name(void* p) { lt_access(p, bytes, write, __builtin_return_address(0)); }
#define LT_CALLBACKS(n)                 \
  LT_CALLBACK(read##n, n, 0)            \
  LT_CALLBACK(write##n, n, 1)           \
  LT_CALLBACK(unaligned_read##n, n, 0)  \
  LT_CALLBACK(unaligned_write##n, n, 1) \
  LT_CALLBACK(volatile_read##n, n, 0)   \
  LT_CALLBACK(volatile_write##n, n, 1)
LT_CALLBACKS(1)
LT_CALLBACKS(2)
LT_CALLBACKS(4)
LT_CALLBACKS(8)
LT_CALLBACKS(16)
#define LT_HIDDEN(result, name) \
  extern "C" __attribute__((visibility("hidden"), used, noinline, no_sanitize("thread"))) result
LT_HIDDEN(void, ) lt_on_init() asm("__tsan_init");
void lt_on_init() {}
LT_HIDDEN(void, ) lt_on_func_entry(void*) asm("__tsan_func_entry");
void lt_on_func_entry(void*) {}
LT_HIDDEN(void, ) lt_on_func_exit() asm("__tsan_func_exit");
void lt_on_func_exit() {}
LT_HIDDEN(void, ) lt_on_read_range(void* p, u64 n) asm("__tsan_read_range");
void lt_on_read_range(void* p, u64 n) { lt_access(p, n, 0, __builtin_return_address(0)); }
LT_HIDDEN(void, ) lt_on_write_range(void* p, u64 n) asm("__tsan_write_range");
void lt_on_write_range(void* p, u64 n) { lt_access(p, n, 1, __builtin_return_address(0)); }
LT_HIDDEN(void*, ) lt_on_memcpy(void* d, const void* s, u64 n) asm("__tsan_memcpy");
void* lt_on_memcpy(void* d, const void* s, u64 n) {
  lt_access(s, n, 0, __builtin_return_address(0));
  lt_access(d, n, 1, __builtin_return_address(0));
  return __builtin_memcpy(d, s, n);
}
LT_HIDDEN(void*, ) lt_on_memmove(void* d, const void* s, u64 n) asm("__tsan_memmove");
void* lt_on_memmove(void* d, const void* s, u64 n) {
  lt_access(s, n, 0, __builtin_return_address(0));
  lt_access(d, n, 1, __builtin_return_address(0));
  return __builtin_memmove(d, s, n);
}
LT_HIDDEN(void*, ) lt_on_memset(void* d, int v, u64 n) asm("__tsan_memset");
void* lt_on_memset(void* d, int v, u64 n) {
  lt_access(d, n, 1, __builtin_return_address(0));
  return __builtin_memset(d, v, n);
}
#endif
