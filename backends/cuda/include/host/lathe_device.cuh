// SPDX-License-Identifier: Apache-2.0
// Host twin of include/device/lathe_device.cuh: same names, same meaning, ordinary C++17 without
// standard headers. The comments of the functions are there.
#pragma once
#include "lathe_rt.h"

#define __global__ LT_KERNEL
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)
#define threadIdx (lt_self->tid)
#define blockIdx (lt_self->bid)
#define blockDim (lt_self->bdim)
#define gridDim (lt_self->gdim)
#define __syncthreads() lt_block(LT_BAR, nullptr, nullptr)
#define __syncwarp(...) lt_warp(LT_WSYNC, nullptr, nullptr)
// Arrays in the block's arena, with red zones; a reference keeps sizeof and gdb's array display.
#define LATHE_SHARED(T, name, n)                                                         \
  static const char lt_key_##name = 0;                                                   \
  T(&name)                                                                               \
  [n] = *(T(*)[n])lt_shared(#name, sizeof(T) * (n), alignof(T) < 128 ? 128 : alignof(T), \
                            &lt_key_##name)
#define LATHE_DYN_SHARED(name) unsigned char* const name = (unsigned char*)lt_dyn_shared()
#define LT_FN static inline __attribute__((unused))
#define LT_MEMBER inline

// Elements of a vector are registers on a GPU: an index beyond them is no address that anything
// else would notice.
#ifdef LT_CHECKS_ELEMENTS
struct LtIndex {
  i64 at;
  const char* file;
  int line;
  LtIndex(i64 i LT_FROM) : at(i), file(file), line(line) {}
};
LT_UNCHECKED static inline int lt_below(const LtIndex& i, int n) {
  if (__builtin_expect((u64)i.at >= (u64)n, 0)) lt_no_element(i.at, n, i.file, i.line);
  return (int)i.at;
}
#define LT_INDEX const LtIndex&
#define LT_BELOW(i, n) lt_below(i, n)
#else
#define LT_INDEX int
#define LT_BELOW(i, n) i
#endif

struct alignas(8) uint2 {
  u32 x, y;
};
struct alignas(16) uint4 {
  u32 x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
LT_FN uint2 make_uint2(u32 x, u32 y) { return uint2{x, y}; }
LT_FN uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return uint4{x, y, z, w}; }
LT_FN float2 make_float2(float x, float y) { return float2{x, y}; }
LT_FN float4 make_float4(float x, float y, float z, float w) { return float4{x, y, z, w}; }

struct bf16 {
  u16 bits;
};
struct f16 {
  u16 bits;
};

#define memcpy __builtin_memcpy
#define memset __builtin_memset

// ---- bits and conversions ---------------------------------------------------------------------
template <class To, class From>
LT_FN To bit_cast(const From& x) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast between types of one size");
  To r;
  memcpy(&r, &x, sizeof(To));
  return r;
}
LT_FN u32 __float_as_uint(float x) { return bit_cast<u32>(x); }
LT_FN float __uint_as_float(u32 x) { return bit_cast<float>(x); }
LT_FN float to_f32(bf16 x) { return bit_cast<float>((u32)x.bits << 16); }
LT_FN bf16 to_bf16(float x) {
  const u32 u = bit_cast<u32>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return bf16{0x7fff};  // cvt.rn.bf16 gives the canonical NaN
  return bf16{(u16)((u + 0x7fffu + ((u >> 16) & 1)) >> 16)};
}
// Without _Float16, which not every compiler has. A subnormal f16 is a normal f32, so scaling by a
// power of two is exact.
LT_FN float to_f32(f16 x) {
  const u32 sign = (x.bits & 0x8000u) << 16, rest = (x.bits & 0x7fffu) << 13;
  const float scaled = bit_cast<float>(rest) * bit_cast<float>(0x77800000u);  // 2^112
  const bool special = (x.bits & 0x7c00u) == 0x7c00u;
  return bit_cast<float>(sign | (special ? rest | 0x7f800000u : bit_cast<u32>(scaled)));
}
LT_FN f16 to_f16(float x) {
  if (x != x) return f16{0x7fff};  // as cvt.rn.f16
  const u32 sign = bit_cast<u32>(x) >> 16 & 0x8000u, u = bit_cast<u32>(x) & 0x7fffffffu;
  if (u >= 0x47800000u) return f16{(u16)(sign | 0x7c00u)};  // 65536 and above
  // Below 2^-14 the addition of 0.5 rounds to the subnormal's last bit.
  if (u < 0x38800000u)
    return f16{(u16)(sign | (bit_cast<u32>(bit_cast<float>(u) + 0.5f) - 0x3f000000u))};
  return f16{(u16)(sign | ((u - 0x38000000u + 0xfffu + (u >> 13 & 1)) >> 13))};
}
LT_FN u32 pack_bf16x2(float lo, float hi) { return to_bf16(lo).bits | (u32)to_bf16(hi).bits << 16; }
LT_FN u32 pack_f16x2(float lo, float hi) { return to_f16(lo).bits | (u32)to_f16(hi).bits << 16; }

// ---- global memory ----------------------------------------------------------------------------
#ifdef LT_CHECKED
#define LT_READ_ONLY(...) lt_read_only(__VA_ARGS__)
#else
#define LT_READ_ONLY(...)
#endif
#define LT_GLOBAL(T, bytes)                             \
  LT_FN T ld_global_##bytes(const void* p LT_FROM) {    \
    lt_align(p, bytes LT_PASS);                         \
    return *(const T*)p;                                \
  }                                                     \
  LT_FN T ld_global_nc_##bytes(const void* p LT_FROM) { \
    lt_align(p, bytes LT_PASS);                         \
    LT_READ_ONLY(p, bytes LT_PASS);                     \
    return *(const T*)p;                                \
  }                                                     \
  LT_FN void st_global_##bytes(void* p, T v LT_FROM) {  \
    lt_align(p, bytes LT_PASS);                         \
    *(T*)p = v;                                         \
  }
// Compiled with -fno-strict-aliasing: these types stand for any.
LT_GLOBAL(uint4, 16)
LT_GLOBAL(uint2, 8)
LT_GLOBAL(u32, 4)
LT_FN void prefetch_l2(const void*) {}
LT_FN void prefetch_l2_bulk(const void*, u32) {}

// ---- shared memory ----------------------------------------------------------------------------
LT_FN u32 smem_addr(const void* p LT_FROM) { return lt_smem_addr(p LT_PASS); }
#define LT_SHARED_ACCESS(T, bytes)                                                             \
  LT_FN T ld_shared_##bytes(u32 a LT_FROM) { return *(const T*)lt_smem_at(a, bytes LT_PASS); } \
  LT_FN void st_shared_##bytes(u32 a, T v LT_FROM) { *(T*)lt_smem_at(a, bytes LT_PASS) = v; }  \
  LT_FN T ld_shared_##bytes(const void* p LT_FROM) {                                           \
    lt_align(p, bytes LT_PASS);                                                                \
    return *(const T*)p;                                                                       \
  }                                                                                            \
  LT_FN void st_shared_##bytes(void* p, T v LT_FROM) {                                         \
    lt_align(p, bytes LT_PASS);                                                                \
    *(T*)p = v;                                                                                \
  }
LT_SHARED_ACCESS(uint4, 16)
LT_SHARED_ACCESS(uint2, 8)
LT_SHARED_ACCESS(u32, 4)

// ---- math -------------------------------------------------------------------------------------
LT_FN float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LT_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
LT_FN float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
LT_FN float fminf(float a, float b) { return __builtin_fminf(a, b); }
#define LT_MATH1(name, builtin)                                          \
  LT_FN float math_##name(float x) { return __builtin_##builtin##f(x); } \
  LT_FN double math_##name(double x) { return __builtin_##builtin(x); }
#define LT_MATH2(name, builtin)                                                      \
  LT_FN float math_##name(float a, float b) { return __builtin_##builtin##f(a, b); } \
  LT_FN double math_##name(double a, double b) { return __builtin_##builtin(a, b); }
LT_MATH1(exp, exp)
LT_MATH1(exp2, exp2)
LT_MATH1(log, log)
LT_MATH1(sqrt, sqrt)
LT_MATH1(sin, sin)
LT_MATH1(cos, cos)
LT_MATH1(tanh, tanh)
LT_MATH1(erf, erf)
LT_MATH1(floor, floor)
LT_MATH1(ceil, ceil)
LT_MATH1(rint, rint)
LT_MATH1(abs, fabs)
LT_MATH2(pow, pow)
LT_MATH2(fmod, fmod)
LT_FN float math_rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
LT_FN double math_rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
LT_FN float math_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LT_FN double math_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
LT_FN float max_nan(float a, float b) {
  if (a != a || b != b) return bit_cast<float>(0x7fffffffu);
  if (a == b) return bit_cast<i32>(a) < 0 ? b : a;
  return a > b ? a : b;
}
LT_FN float min_nan(float a, float b) {
  if (a != a || b != b) return bit_cast<float>(0x7fffffffu);
  if (a == b) return bit_cast<i32>(a) < 0 ? a : b;
  return a < b ? a : b;
}
LT_FN float fast_ex2(float x) { return __builtin_exp2f(x); }
LT_FN float fast_lg2(float x) { return __builtin_log2f(x); }
LT_FN float fast_rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
LT_FN float fast_rcp(float x) { return 1.0f / x; }
LT_FN float fast_div(float a, float b) { return a / b; }
LT_FN float fast_tanh(float x) { return __builtin_tanhf(x); }

// ---- barriers ---------------------------------------------------------------------------------
LT_FN void block_sync(LT_FROM0) { lt_block(LT_BAR, nullptr, nullptr LT_PASS); }
LT_FN void warp_sync(LT_FROM0) { lt_warp(LT_WSYNC, nullptr, nullptr LT_PASS); }
LT_FN void named_sync(int id, int threads LT_FROM) { lt_named(id, threads LT_PASS); }

// ---- warp shuffles ----------------------------------------------------------------------------
template <class T>
LT_FN T lt_shuffle(T v, int from LT_FROM) {
  T out;
  LtShfl a{&v, &out, (u32)sizeof(T), from};
  lt_warp(LT_SHFL, &a, nullptr LT_PASS);
  return out;
}
template <class T>
LT_FN T shfl_xor(T v, int mask LT_FROM) {
  return lt_shuffle(v, (lt_self->lane ^ mask) & 31 LT_PASS);
}
template <class T>
LT_FN T shfl_idx(T v, int src LT_FROM) {
  return lt_shuffle(v, src & 31 LT_PASS);
}
template <class T>
LT_FN T shfl_down(T v, int d LT_FROM) {
  return lt_shuffle(v, lt_self->lane + d < 32 ? lt_self->lane + d : lt_self->lane LT_PASS);
}
template <class T>
LT_FN T shfl_up(T v, int d LT_FROM) {
  return lt_shuffle(v, lt_self->lane >= d ? lt_self->lane - d : lt_self->lane LT_PASS);
}
LT_FN u32 warp_ballot(bool condition LT_FROM) {
  LtBallot a{0, condition};
  lt_warp(LT_BALLOT, &a, nullptr LT_PASS);
  return a.bits;
}

// ---- reductions: one rendezvous, in the same tree as the device's -----------------------------
template <class T, class Op, int LANES>
struct LtReduce {
  static T lanes(T* v) {
    for (int m = LANES / 2; m; m >>= 1)
      for (int i = 0; i < m; ++i) v[i] = Op()(v[i], v[i + m]);
    return v[0];
  }
  LT_UNCHECKED static void warp(void** values, int) {
    for (int g = 0; g < 32; g += LANES) {
      T v[LANES];
      for (int i = 0; i < LANES; ++i) v[i] = *(T*)values[g + i];
      const T r = lanes(v);
      for (int i = 0; i < LANES; ++i) *(T*)values[g + i] = r;
    }
  }
  LT_UNCHECKED static void block(void** values, int count) {
    T r{};
    for (int w = 0; w < count; w += 32) {
      T v[32];
      for (int i = 0; i < 32; ++i) v[i] = *(T*)values[w + i];
      const T s = lanes(v);
      r = w == 0 ? s : Op()(r, s);
    }
    for (int i = 0; i < count; ++i) *(T*)values[i] = r;
  }
};
template <class T, class Op>
LT_FN T warp_reduce(T v, Op LT_FROM) {
  lt_warp(LT_WREDUCE, &v, LtReduce<T, Op, 32>::warp LT_PASS);
  return v;
}
template <int LANES, class T, class Op>
LT_FN T group_reduce(T v, Op LT_FROM) {
  lt_warp(LT_WREDUCE, &v, LtReduce<T, Op, LANES>::warp LT_PASS);
  return v;
}
template <int NT, class T, class Op>
LT_FN T block_reduce(T v, Op LT_FROM) {
  if (NT == 32) return warp_reduce(v, Op() LT_PASS);
  lt_block(LT_BREDUCE, &v, LtReduce<T, Op, 32>::block LT_PASS);
  return v;
}

// ---- tensor cores -----------------------------------------------------------------------------
struct frag_a {
  u32 r[4];
};
struct frag_c {
  float r[4];
};
template <int N>
LT_FN void lt_ldmatrix(u32 (&r)[N], u32 addr, bool trans LT_FROM) {
  LtLdsm a{addr, r, N, trans};
  lt_warp(LT_LDSM, &a, nullptr LT_PASS);
}
LT_FN void ldmatrix_x2(u32 (&r)[2], u32 addr LT_FROM) { lt_ldmatrix(r, addr, false LT_PASS); }
LT_FN void ldmatrix_x2_trans(u32 (&r)[2], u32 addr LT_FROM) { lt_ldmatrix(r, addr, true LT_PASS); }
LT_FN void ldmatrix_x4(u32 (&r)[4], u32 addr LT_FROM) { lt_ldmatrix(r, addr, false LT_PASS); }
LT_FN void ldmatrix_x4_trans(u32 (&r)[4], u32 addr LT_FROM) { lt_ldmatrix(r, addr, true LT_PASS); }
LT_FN void lt_mma(frag_c& c, const frag_a& a, u32 b0, u32 b1, bool half LT_FROM) {
  LtMma m{a.r, b0, b1, c.r, half};
  lt_warp(LT_MMA, &m, nullptr LT_PASS);
}
LT_FN void mma_bf16(frag_c& c, const frag_a& a, u32 b0, u32 b1 LT_FROM) {
  lt_mma(c, a, b0, b1, false LT_PASS);
}
LT_FN void mma_f16(frag_c& c, const frag_a& a, u32 b0, u32 b1 LT_FROM) {
  lt_mma(c, a, b0, b1, true LT_PASS);
}

// ---- asynchronous copies, mbarriers -----------------------------------------------------------
LT_FN void cp_async_16(u32 dst, const void* src LT_FROM) { lt_cp_async(dst, src, 16, 16 LT_PASS); }
LT_FN void cp_async_8(u32 dst, const void* src LT_FROM) { lt_cp_async(dst, src, 8, 8 LT_PASS); }
LT_FN void cp_async_4(u32 dst, const void* src LT_FROM) { lt_cp_async(dst, src, 4, 4 LT_PASS); }
LT_FN void cp_async_16(u32 dst, const void* src, int bytes LT_FROM) {
  lt_cp_async(dst, src, 16, (u32)bytes LT_PASS);
}
LT_FN void cp_async_8(u32 dst, const void* src, int bytes LT_FROM) {
  lt_cp_async(dst, src, 8, (u32)bytes LT_PASS);
}
LT_FN void cp_async_4(u32 dst, const void* src, int bytes LT_FROM) {
  lt_cp_async(dst, src, 4, (u32)bytes LT_PASS);
}
LT_FN void cp_async_commit() { lt_cp_commit(); }
template <int N>
LT_FN void cp_async_wait() {
  lt_cp_wait(N);
}
LT_FN void mbar_init(u64* bar, u32 count LT_FROM) { lt_mbar_init(bar, count LT_PASS); }
LT_FN void mbar_init_fence() {}
LT_FN void mbar_arrive(u64* bar LT_FROM) { lt_mbar_arrive(bar, 0 LT_PASS); }
LT_FN void mbar_arrive_expect_tx(u64* bar, u32 bytes LT_FROM) {
  lt_mbar_arrive(bar, bytes LT_PASS);
}
LT_FN void mbar_wait(u64* bar, u32 parity LT_FROM) { lt_mbar_wait(bar, parity LT_PASS); }
LT_FN void bulk_load(void* dst, const void* src, u32 bytes, u64* bar LT_FROM) {
  lt_bulk(dst, src, bytes, bar LT_PASS);
}

// ---- cluster and grid -------------------------------------------------------------------------
LT_FN u32 cluster_rank() { return lt_self->clusterRank; }
LT_FN u32 cluster_size() { return lt_self->clusterSize; }
LT_FN void cluster_sync(LT_FROM0) { lt_cluster_sync(LT_PASS0); }
template <class T>
LT_FN T cluster_read(const T* local, u32 rank LT_FROM) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "4, 8 or 16 bytes");
  T r;
  lt_cluster_read(&r, local, sizeof(T), rank LT_PASS);
  return r;
}
LT_FN void grid_dep_wait() { lt_self->depWaited = true; }
LT_FN void grid_dep_launch() {}
LT_FN u32 counter_add_acq_rel(u32* p, u32 v LT_FROM) { return lt_counter_add(p, v LT_PASS); }
LT_FN u32 counter_load_acquire(const u32* p LT_FROM) { return lt_counter_load(p LT_PASS); }
LT_FN void counter_store_release(u32* p, u32 v LT_FROM) { lt_counter_store(p, v LT_PASS); }
LT_FN void lt_report_index(i64* status, i64 index LT_FROM) {
  const i64 turned = index ^ (i64)1 << 62;
  lt_store_status(status, index < 0 ? index : turned | !turned LT_PASS);
}

#include "lathe_common.cuh"
#include "lathe_entry.h"
