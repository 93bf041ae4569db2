// SPDX-License-Identifier: Apache-2.0
// Device primitives of generated kernels, GPU side: all inline assembly of the compiler's output
// lives in this file, and it needs no header of the CUDA toolkit. The twin in include/host has the
// same name, functions and meaning, so one kernel text is compiled by NVRTC and by a host compiler.
// Functions built from these (conversions, integers, vectors, reductions by name, clusters) are in
// lathe_common.cuh, which both twins include at their end.
#pragma once

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

#define LT_FN static __device__ __forceinline__
#define LT_MEMBER __device__ __forceinline__
// On the host these carry the caller's file and line. LT_FROM and LT_PASS begin with a comma.
#define LT_FROM
#define LT_FROM0
#define LT_PASS
#define LT_PASS0
// An index into a vector's elements; on the host it is checked.
#define LT_INDEX int
#define LT_BELOW(i, n) i
// Shared array of n elements, aligned to 128 bytes; the block's dynamic shared memory, to 1024.
#define LATHE_SHARED(T, name, n) __shared__ __align__(128) T name[n]
#define LATHE_DYN_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]

struct bf16 {
  u16 bits;
};
struct f16 {
  u16 bits;
};

// ---- bits and conversions: round to nearest even ----------------------------------------------
template <class To, class From>
LT_FN To bit_cast(const From& x) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast between types of one size");
  To r;
  memcpy(&r, &x, sizeof(To));
  return r;
}
LT_FN float to_f32(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
LT_FN float to_f32(f16 x) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
  return r;
}
LT_FN bf16 to_bf16(float x) {
  bf16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
  return r;
}
LT_FN f16 to_f16(float x) {
  f16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
  return r;
}
// Two at once, `lo` in the low half.
LT_FN u32 pack_bf16x2(float lo, float hi) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
LT_FN u32 pack_f16x2(float lo, float hi) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}

// ---- global memory: 4, 8 and 16 bytes, aligned to their size ----------------------------------
// `nc`: through the read-only path, for memory that nobody writes during the kernel.
LT_FN uint4 ld_global_16(const void* p) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(__cvta_generic_to_global(p))
               : "memory");
  return v;
}
LT_FN uint2 ld_global_8(const void* p) {
  uint2 v;
  asm volatile("ld.global.v2.u32 {%0,%1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(__cvta_generic_to_global(p))
               : "memory");
  return v;
}
LT_FN u32 ld_global_4(const void* p) {
  u32 v;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
  return v;
}
// Volatile: never moved in front of a wait for the previous kernel.
LT_FN uint4 ld_global_nc_16(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(__cvta_generic_to_global(p)));
  return v;
}
LT_FN uint2 ld_global_nc_8(const void* p) {
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(__cvta_generic_to_global(p)));
  return v;
}
LT_FN u32 ld_global_nc_4(const void* p) {
  u32 v;
  asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];"
               : "=r"(v)
               : "l"(__cvta_generic_to_global(p)));
  return v;
}
LT_FN void st_global_16(void* p, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(__cvta_generic_to_global(p)), "r"(v.x),
               "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
LT_FN void st_global_8(void* p, uint2 v) {
  asm volatile("st.global.v2.u32 [%0], {%1,%2};" ::"l"(__cvta_generic_to_global(p)), "r"(v.x),
               "r"(v.y)
               : "memory");
}
LT_FN void st_global_4(void* p, u32 v) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(v) : "memory");
}
// Hints that memory will be read: one line; `bytes`, a multiple of 16, from a 16-byte boundary.
LT_FN void prefetch_l2(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(p)));
}
LT_FN void prefetch_l2_bulk(const void* p, u32 bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(p)),
               "r"(bytes)
               : "memory");
}

// ---- shared memory ----------------------------------------------------------------------------
// The 32-bit shared address of a pointer, for the functions that take an address.
LT_FN u32 smem_addr(const void* p) { return (u32)__cvta_generic_to_shared(p); }
LT_FN uint4 ld_shared_16(u32 a) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(a)
               : "memory");
  return v;
}
LT_FN uint2 ld_shared_8(u32 a) {
  uint2 v;
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(a) : "memory");
  return v;
}
LT_FN u32 ld_shared_4(u32 a) {
  u32 v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(a) : "memory");
  return v;
}
LT_FN void st_shared_16(u32 a, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(a), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}
LT_FN void st_shared_8(u32 a, uint2 v) {
  asm volatile("st.shared.v2.u32 [%0], {%1,%2};" ::"r"(a), "r"(v.x), "r"(v.y) : "memory");
}
LT_FN void st_shared_4(u32 a, u32 v) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(a), "r"(v) : "memory");
}
LT_FN uint4 ld_shared_16(const void* p) { return ld_shared_16(smem_addr(p)); }
LT_FN uint2 ld_shared_8(const void* p) { return ld_shared_8(smem_addr(p)); }
LT_FN u32 ld_shared_4(const void* p) { return ld_shared_4(smem_addr(p)); }
LT_FN void st_shared_16(void* p, uint4 v) { st_shared_16(smem_addr(p), v); }
LT_FN void st_shared_8(void* p, uint2 v) { st_shared_8(smem_addr(p), v); }
LT_FN void st_shared_4(void* p, u32 v) { st_shared_4(smem_addr(p), v); }

// ---- math -------------------------------------------------------------------------------------
// The IEEE functions within the CUDA library's error bounds.
LT_FN float math_exp(float x) { return expf(x); }
LT_FN double math_exp(double x) { return exp(x); }
LT_FN float math_exp2(float x) { return exp2f(x); }
LT_FN double math_exp2(double x) { return exp2(x); }
LT_FN float math_log(float x) { return logf(x); }
LT_FN double math_log(double x) { return log(x); }
LT_FN float math_sqrt(float x) { return sqrtf(x); }
LT_FN double math_sqrt(double x) { return sqrt(x); }
LT_FN float math_rsqrt(float x) { return 1.0f / sqrtf(x); }
LT_FN double math_rsqrt(double x) { return 1.0 / sqrt(x); }
LT_FN float math_sin(float x) { return sinf(x); }
LT_FN double math_sin(double x) { return sin(x); }
LT_FN float math_cos(float x) { return cosf(x); }
LT_FN double math_cos(double x) { return cos(x); }
LT_FN float math_tanh(float x) { return tanhf(x); }
LT_FN double math_tanh(double x) { return tanh(x); }
LT_FN float math_erf(float x) { return erff(x); }
LT_FN double math_erf(double x) { return erf(x); }
LT_FN float math_pow(float a, float b) { return powf(a, b); }
LT_FN double math_pow(double a, double b) { return pow(a, b); }
LT_FN float math_fmod(float a, float b) { return fmodf(a, b); }
LT_FN double math_fmod(double a, double b) { return fmod(a, b); }
LT_FN float math_floor(float x) { return floorf(x); }
LT_FN double math_floor(double x) { return floor(x); }
LT_FN float math_ceil(float x) { return ceilf(x); }
LT_FN double math_ceil(double x) { return ceil(x); }
LT_FN float math_rint(float x) { return rintf(x); }
LT_FN double math_rint(double x) { return rint(x); }
LT_FN float math_abs(float x) { return fabsf(x); }
LT_FN double math_abs(double x) { return fabs(x); }
LT_FN float math_fma(float a, float b, float c) { return fmaf(a, b, c); }
LT_FN double math_fma(double a, double b, double c) { return fma(a, b, c); }
// IEEE 754-2019 maximum and minimum: NaN if either is, -0 below +0.
LT_FN float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
LT_FN float min_nan(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
// About 2 ulp, denormal numbers are zero; fast_div gives 0 for divisors above 2^126.
LT_FN float fast_ex2(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
LT_FN float fast_lg2(float x) {
  float r;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
LT_FN float fast_rsqrt(float x) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
LT_FN float fast_rcp(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
LT_FN float fast_div(float a, float b) {
  float r;
  asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
// Absolute error 2^-11.
LT_FN float fast_tanh(float x) {
  float r;
  asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

// ---- barriers ---------------------------------------------------------------------------------
LT_FN void block_sync() { __syncthreads(); }
LT_FN void warp_sync() { __syncwarp(0xffffffffu); }
// Barrier `id` in 1..15 of `threads` threads of the block, a multiple of 32, in whole warps.
LT_FN void named_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---- warp shuffles: any type of 4 * n bytes, or smaller than 4 --------------------------------
template <class T, class F>
LT_FN T lt_by_words(const T& v, F f) {
  constexpr int words = (sizeof(T) + 3) / 4;
  u32 w[words];
  w[words - 1] = 0;
  memcpy(w, &v, sizeof(T));
#pragma unroll
  for (int i = 0; i < words; ++i) w[i] = f(w[i]);
  T r;
  memcpy(&r, w, sizeof(T));
  return r;
}
// Lane i gets the value of lane i ^ mask.
template <class T>
LT_FN T shfl_xor(T v, int mask) {
  return lt_by_words(v, [=](u32 x) { return __shfl_xor_sync(0xffffffffu, x, mask); });
}
// Every lane gets the value of its `src` & 31.
template <class T>
LT_FN T shfl_idx(T v, int src) {
  return lt_by_words(v, [=](u32 x) { return __shfl_sync(0xffffffffu, x, src); });
}
// Lane i gets the value of lane i + d (i - d); where there is none, its own.
template <class T>
LT_FN T shfl_down(T v, int d) {
  return lt_by_words(v, [=](u32 x) { return __shfl_down_sync(0xffffffffu, x, (u32)d); });
}
template <class T>
LT_FN T shfl_up(T v, int d) {
  return lt_by_words(v, [=](u32 x) { return __shfl_up_sync(0xffffffffu, x, (u32)d); });
}
// Bit i is lane i's condition.
LT_FN u32 warp_ballot(bool condition) { return __ballot_sync(0xffffffffu, condition); }

// ---- reductions with a commutative `op(T, T)` of an empty functor type (no lambda) -------------
// Every lane gets the result.
template <class T, class Op>
LT_FN T warp_reduce(T v, Op op) {
#pragma unroll
  for (int m = 16; m; m >>= 1) v = op(v, shfl_xor(v, m));
  return v;
}
// The same within groups of LANES neighbours (a power of two).
template <int LANES, class T, class Op>
LT_FN T group_reduce(T v, Op op) {
#pragma unroll
  for (int m = LANES / 2; m; m >>= 1) v = op(v, shfl_xor(v, m));
  return v;
}
// Every thread gets the result. NT = block size, a multiple of 32. Ends with a block barrier, so it
// may be called again at once.
template <int NT, class T, class Op>
LT_FN T block_reduce(T v, Op op) {
  v = warp_reduce(v, op);
  if constexpr (NT > 32) {
    LATHE_SHARED(T, part, NT / 32);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    block_sync();
    v = part[0];
#pragma unroll
    for (int w = 1; w < NT / 32; ++w) v = op(v, part[w]);
    block_sync();
  }
  return v;
}

// ---- tensor cores -----------------------------------------------------------------------------
struct frag_a {
  u32 r[4];
};
struct frag_c {
  float r[4];
};
// 8x8 tiles of 2-byte elements; lanes 8 i .. 8 i + 7 give the row addresses of tile i.
LT_FN void ldmatrix_x2(u32 (&r)[2], u32 addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(addr)
               : "memory");
}
LT_FN void ldmatrix_x2_trans(u32 (&r)[2], u32 addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(addr)
               : "memory");
}
LT_FN void ldmatrix_x4(u32 (&r)[4], u32 addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(addr)
               : "memory");
}
LT_FN void ldmatrix_x4_trans(u32 (&r)[4], u32 addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(addr)
               : "memory");
}
// c += a * b on 16x8 with k = 16. With g = lane / 4, t = lane % 4: c.r[i] is row g + 8 (i / 2),
// column 2 t + i % 2.
#define LT_MMA_ASM(type)                                                    \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type       \
               ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+f"(c.r[0]), "+f"(c.r[1]), "+f"(c.r[2]), "+f"(c.r[3])     \
               : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1))
LT_FN void mma_bf16(frag_c& c, const frag_a& a, u32 b0, u32 b1) { LT_MMA_ASM("bf16"); }
LT_FN void mma_f16(frag_c& c, const frag_a& a, u32 b0, u32 b1) { LT_MMA_ASM("f16"); }

// ---- asynchronous copies global -> shared -----------------------------------------------------
// Aligned to their size. With `bytes`: the first `bytes` are copied, the rest is zero (0: src is
// not read).
LT_FN void cp_async_16(u32 dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst),
               "l"(__cvta_generic_to_global(src))
               : "memory");
}
LT_FN void cp_async_8(u32 dst, const void* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(dst),
               "l"(__cvta_generic_to_global(src))
               : "memory");
}
LT_FN void cp_async_4(u32 dst, const void* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(dst),
               "l"(__cvta_generic_to_global(src))
               : "memory");
}
LT_FN void cp_async_16(u32 dst, const void* src, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst),
               "l"(__cvta_generic_to_global(src)), "r"(bytes)
               : "memory");
}
LT_FN void cp_async_8(u32 dst, const void* src, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(dst),
               "l"(__cvta_generic_to_global(src)), "r"(bytes)
               : "memory");
}
LT_FN void cp_async_4(u32 dst, const void* src, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(dst),
               "l"(__cvta_generic_to_global(src)), "r"(bytes)
               : "memory");
}
LT_FN void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// All but the newest N groups of this thread have landed (other threads see them after a barrier).
template <int N>
LT_FN void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// ---- mbarriers and bulk copies ----------------------------------------------------------------
LT_FN void mbar_init(u64* bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_addr(bar)), "r"(count)
               : "memory");
}
LT_FN void mbar_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
LT_FN void mbar_arrive(u64* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem_addr(bar)) : "memory");
}
LT_FN void mbar_arrive_expect_tx(u64* bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_addr(bar)),
               "r"(bytes)
               : "memory");
}
// Until the phase of this parity has completed.
LT_FN void mbar_wait(u64* bar, u32 parity) {
  asm volatile(
      "{\n.reg .pred p;\nLT_WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra "
      "LT_WAIT;\n}" ::"r"(smem_addr(bar)),
      "r"(parity)
      : "memory");
}
// `bytes`, a multiple of 16; both addresses aligned to 16. Completion is counted on `bar`.
LT_FN void bulk_load(void* dst, const void* src, u32 bytes, u64* bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(smem_addr(dst)),
      "l"(__cvta_generic_to_global(src)), "r"(bytes), "r"(smem_addr(bar))
      : "memory");
}

// ---- cluster ----------------------------------------------------------------------------------
LT_FN u32 cluster_rank() {
  u32 r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
LT_FN u32 cluster_size() {
  u32 r;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
  return r;
}
// Barrier of all threads of the cluster; orders shared memory of all its blocks.
LT_FN void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
// Reads what `local` names in block `rank` of the cluster; T of 4, 8 or 16 bytes.
template <class T>
LT_FN T cluster_read(const T* local, u32 rank) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "4, 8 or 16 bytes");
  u32 a, w[sizeof(T) / 4];
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(smem_addr(local)), "r"(rank));
#pragma unroll
  for (int i = 0; i < (int)sizeof(T) / 4; ++i)
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(w[i]) : "r"(a + 4 * i) : "memory");
  T r;
  memcpy(&r, w, sizeof(T));
  return r;
}

// ---- grid -------------------------------------------------------------------------------------
// Programmatic dependent launch: wait for the previous kernel; let the next one start.
LT_FN void grid_dep_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
LT_FN void grid_dep_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
// Counters in global memory: the old value; add releases and acquires at device scope.
LT_FN u32 counter_add_acq_rel(u32* p, u32 v) {
  u32 r;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(r)
               : "l"(__cvta_generic_to_global(p)), "r"(v)
               : "memory");
  return r;
}
LT_FN u32 counter_load_acquire(const u32* p) {
  u32 r;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(r)
               : "l"(__cvta_generic_to_global(p))
               : "memory");
  return r;
}
LT_FN void counter_store_release(u32* p, u32 v) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(v)
               : "memory");
}
// Tells the host of an index out of range: the last one told wins. 0 is no word of an index.
LT_FN void lt_report_index(i64* status, i64 index) {
  const i64 turned = index ^ (i64)1 << 62;
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(status)),
               "l"(index < 0 ? index : turned | !turned)
               : "memory");
}

#include "lathe_common.cuh"
