// SPDX-License-Identifier: Apache-2.0
// Interface between kernel modules (kernel texts compiled by the host compiler) and the runtime of
// host execution. Plain C++17 without standard headers, so a kernel text parses in milliseconds.
#pragma once

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

struct uint3 {
  u32 x, y, z;
};
struct dim3 {
  u32 x, y, z;
  constexpr dim3(u32 a = 1, u32 b = 1, u32 c = 1) : x(a), y(b), z(c) {}
};

// One CUDA thread. Kernel modules read the fields before `sp`; the rest belongs to the scheduler.
struct LtFiber {
  uint3 tid, bid;
  dim3 bdim, gdim;
  u32 clusterRank, clusterSize;
  void* sp;          // saved stack pointer
  char* stack;       // lowest usable address
  void* fakeStack;   // of AddressSanitizer
  const char* file;  // where it waits
  const void* waitOn;
  int line;
  u16 linear;  // in the cluster
  u16 inBlock, warp, lane;
  u8 state, op;
  bool depWaited;
};

enum LtOp : u8 {
  LT_NONE,
  LT_SHFL,
  LT_BALLOT,
  LT_WREDUCE,
  LT_WSYNC,
  LT_LDSM,
  LT_MMA,  // of a warp
  LT_BAR,
  LT_BREDUCE,  // of a block
  LT_NAMED,
  LT_MBAR,
  LT_CLUSTER  // other waits
};

// The arguments of the warp operations, one per lane.
struct LtShfl {
  const void* in;
  void* out;
  u32 bytes;
  int from;
};
struct LtBallot {
  u32 bits;
  bool condition;
};
struct LtLdsm {
  u32 addr;
  u32* r;
  int tiles;
  bool trans;
};
struct LtMma {
  const u32* a;
  u32 b0, b1;
  float* c;
  bool half;
};
// Reduces the values that `values` points to; the result goes to all of them.
typedef void (*LtTree)(void** values, int count);

// Every primitive knows where the kernel text called it.
#define LT_FROM0 const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define LT_FROM , LT_FROM0
#define LT_PASS0 file, line
#define LT_PASS , LT_PASS0

#if defined(__SANITIZE_THREAD__)
#define LT_CHECKED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LT_CHECKED 1
#endif
#endif
// Fast kernels do without the checks of vectors' elements.
#if defined(LT_CHECKED) || defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
#define LT_CHECKS_ELEMENTS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LT_CHECKS_ELEMENTS 1
#endif
#endif
// A check build inlines all that a kernel calls: gcc does not tell of the write in `*p = f()`.
#ifdef LT_CHECKED
#define LT_KERNEL __attribute__((flatten))
#else
#define LT_KERNEL
#endif

// No checks of its accesses: code that reads what belongs to the runtime.
#define LT_UNCHECKED __attribute__((no_sanitize("thread"), unused))

extern "C" {
// __thread, not thread_local, which adds an initialiser call to each access; initial-exec: one load
// relative to the thread register. A block never changes its OS thread, so an address that the
// compiler keeps across a switch stays right.
extern __thread LtFiber* lt_self __attribute__((tls_model("initial-exec")));
// Rendezvous of all 32 lanes; the last lane performs the operation (LT_WREDUCE: `tree`).
void lt_warp(int op, void* argument, LtTree tree LT_FROM);
// Rendezvous of the block; the last thread runs `tree` on all arguments (LT_BREDUCE).
void lt_block(int op, void* argument, LtTree tree LT_FROM);
void lt_named(int id, int threads LT_FROM);
void* lt_shared(const char* name, u64 bytes, u64 align, const void* key);
void* lt_dyn_shared();
u32 lt_smem_addr(const void* p LT_FROM);
// The memory behind a shared address, checked for alignment.
void* lt_smem_at(u32 address, u32 bytes LT_FROM);
// Copies `from` bytes of src and zeroes the rest of `bytes`.
void lt_cp_async(u32 dst, const void* src, u32 bytes, u32 from LT_FROM);
void lt_cp_commit();
void lt_cp_wait(int groups);
void lt_mbar_init(u64* bar, u32 count LT_FROM);
void lt_mbar_arrive(u64* bar, u32 bytes LT_FROM);
void lt_mbar_wait(u64* bar, u32 parity LT_FROM);
void lt_bulk(void* dst, const void* src, u32 bytes, u64* bar LT_FROM);
void lt_cluster_sync(LT_FROM0);
void lt_cluster_read(void* to, const void* local, u32 bytes, u32 rank LT_FROM);
u32 lt_counter_add(u32* p, u32 v LT_FROM);
u32 lt_counter_load(const u32* p LT_FROM);
void lt_counter_store(u32* p, u32 v LT_FROM);
void lt_store_status(i64* p, i64 v LT_FROM);
// Traps like the hardware on a misaligned vector access.
void lt_misaligned(const void* p, u32 bytes LT_FROM);
// Element `at` of a vector of n is none of them.
void lt_no_element(i64 at, int n, const char* file, int line);
// A check build reads memory that must not change while the kernel runs.
void lt_read_only(const void* p, u32 bytes LT_FROM);
// One access of a check build's kernel text.
void lt_access(const void* p, u64 bytes, int isWrite, const void* pc);
}
static inline __attribute__((always_inline, unused)) void lt_align(const void* p,
                                                                   u32 bytes LT_FROM) {
  if (__builtin_expect((unsigned long)p % bytes != 0, 0)) lt_misaligned(p, bytes LT_PASS);
}
