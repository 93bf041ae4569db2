// SPDX-License-Identifier: Apache-2.0
// What both twins of lathe_device.cuh share: functions that need no assembly. Included by them.
#pragma once

LT_FN u32 lane_id() { return threadIdx.x & 31; }
LT_FN u32 warp_id() { return threadIdx.x >> 5; }
LT_FN float bf16_lo(u32 p) { return bit_cast<float>(p << 16); }
LT_FN float bf16_hi(u32 p) { return bit_cast<float>(p & 0xffff0000u); }
LT_FN float f16_lo(u32 p) { return to_f32(f16{(u16)(p & 0xffff)}); }
LT_FN float f16_hi(u32 p) { return to_f32(f16{(u16)(p >> 16)}); }
LT_FN float fast_exp(float x) { return fast_ex2(x * 1.4426950408889634f); }

template <bool B, class T, class F>
struct lt_if {
  typedef T type;
};
template <class T, class F>
struct lt_if<false, T, F> {
  typedef F type;
};
template <class>
struct lt_void {
  typedef void type;
};
template <class A, class B>
struct lt_same {
  static constexpr bool value = false;
};
template <class A>
struct lt_same<A, A> {
  static constexpr bool value = true;
};

// What the rest needs to know about an element type.
template <class T>
struct element {
  static constexpr bool is_small_float = lt_same<T, bf16>::value || lt_same<T, f16>::value;
  static constexpr bool is_float =
      is_small_float || lt_same<T, float>::value || lt_same<T, double>::value;
  static constexpr bool is_integer = !is_float;
  // The type to compute in: double, float, or for integers 64 or 32 bits.
  typedef typename lt_if<is_small_float, float,
                         typename lt_if<is_integer && sizeof(T) < 4, i32, T>::type>::type compute;
  typedef typename lt_if<sizeof(T) == 8, u64, u32>::type word;
  static constexpr int bits = 8 * (int)sizeof(T);
  static constexpr bool is_signed = !is_float && (T)-1 < (T)0;
};
template <>
struct element<bf16> {
  static constexpr bool is_small_float = true, is_float = true, is_integer = false,
                        is_signed = true;
  typedef float compute;
  static constexpr int bits = 16;
};
template <>
struct element<f16> : element<bf16> {};

// ---- limits -----------------------------------------------------------------------------------
// The neutral elements of max and min: infinities, or an integer type's ends.
template <class T>
LT_FN T lowest_of() {
  if constexpr (element<T>::is_small_float)
    return lt_same<T, bf16>::value ? T{0xff80} : T{0xfc00};
  else if constexpr (lt_same<T, float>::value)
    return bit_cast<float>(0xff800000u);
  else if constexpr (lt_same<T, double>::value)
    return bit_cast<double>(0xfff0000000000000ull);
  else if constexpr (!element<T>::is_signed)
    return (T)0;
  else
    return (T)(1ull << (element<T>::bits - 1));
}
template <class T>
LT_FN T highest_of() {
  if constexpr (element<T>::is_small_float)
    return lt_same<T, bf16>::value ? T{0x7f80} : T{0x7c00};
  else if constexpr (lt_same<T, float>::value)
    return bit_cast<float>(0x7f800000u);
  else if constexpr (lt_same<T, double>::value)
    return bit_cast<double>(0x7ff0000000000000ull);
  else if constexpr (!element<T>::is_signed)
    return (T) ~(T)0;
  else
    return (T)((1ull << (element<T>::bits - 1)) - 1);
}

// ---- conversions ------------------------------------------------------------------------------
// The f32 through which a number becomes bf16 or f16 with one rounding: where f32 does not hold it,
// the neighbour with an odd last bit, which is no tie of 16 bits (lathe/runtime/odd_rounding.h).
LT_FN float odd_f32(double x) {
  const float near = (float)x;
  const u32 bits = bit_cast<u32>(near);
  const double has = near < 0 ? -(double)near : (double)near, wants = x < 0 ? -x : x;
  return bit_cast<float>(bits & 1 ? bits : bits + (has < wants) - (has > wants));
}
LT_FN float odd_f32(i64 x) {
  const i64 held = 1ll << 53;
  if (x > -held && x < held) return odd_f32((double)x);
  return odd_f32((double)((x >> 11 | (i64)((x & 0x7ff) != 0)) * 2048));
}
LT_FN float odd_f32(i32 x) { return odd_f32((double)x); }
// Narrower ones are held.
template <class T>
LT_FN float odd_f32(T x) {
  return (float)x;
}
// Between any two element types: to floats round to nearest even, once; to integers toward zero
// with NaN as 0 and the type's ends for what it cannot hold; integers wrap.
template <class To, class From>
LT_FN To convert(From x) {
  if constexpr (lt_same<To, From>::value)
    return x;
  else if constexpr (element<From>::is_small_float)
    return convert<To>(to_f32(x));
  else if constexpr (lt_same<To, bf16>::value)
    return to_bf16(odd_f32(x));
  else if constexpr (lt_same<To, f16>::value)
    return to_f16(odd_f32(x));
  else if constexpr (element<To>::is_integer && element<From>::is_float) {
    if (x != x) return (To)0;
    // 2^63 and 2^31 are floats, the highest i64 and i32 are not.
    if (x >= (From)highest_of<To>()) return highest_of<To>();
    if (x <= (From)lowest_of<To>()) return lowest_of<To>();
    return (To)(typename lt_if<sizeof(To) == 8, i64, i32>::type) x;
  } else
    return (To)x;
}
template <class T>
LT_FN T from_f32(float x) {
  return convert<T>(x);
}
template <class T>
LT_FN T from_f64(double x) {
  return convert<T>(x);
}
LT_FN float to_f32(float x) { return x; }
LT_FN float to_f32(double x) { return (float)x; }
LT_FN float to_f32(i64 x) { return (float)x; }
LT_FN float to_f32(i32 x) { return (float)x; }
LT_FN float to_f32(i16 x) { return (float)x; }
LT_FN float to_f32(i8 x) { return (float)x; }
LT_FN float to_f32(u8 x) { return (float)x; }
template <class T>
LT_FN double to_f64(T x) {
  return convert<double>(x);
}
// 1 unless x is zero; NaN is 1.
template <class T>
LT_FN u8 to_bool(T x) {
  return (u8)(convert<typename element<T>::compute>(x) != 0);
}
template <class T>
LT_FN bool is_nan(T x) {
  if constexpr (element<T>::is_small_float) {
    const float f = to_f32(x);
    return f != f;
  } else
    return x != x;
}

// ---- arithmetic that no input makes undefined -------------------------------------------------
// Integers wrap. Division is toward zero and 0 by zero; the remainder has the divisor's sign and is
// 0 by zero. A shift count is read as unsigned: at or beyond the width the result is 0; right
// shifts bring in zeros.
template <class T>
LT_FN T int_add(T a, T b) {
  return (T)((typename element<T>::word)a + (typename element<T>::word)b);
}
template <class T>
LT_FN T int_sub(T a, T b) {
  return (T)((typename element<T>::word)a - (typename element<T>::word)b);
}
template <class T>
LT_FN T int_mul(T a, T b) {
  return (T)((typename element<T>::word)a * (typename element<T>::word)b);
}
template <class T>
LT_FN T int_neg(T a) {
  return int_sub((T)0, a);
}
template <class T>
LT_FN bool is_negative(T a) {
  if constexpr (element<T>::is_signed)
    return a < (T)0;
  else
    return false;
}
template <class T>
LT_FN T int_abs(T a) {
  return is_negative(a) ? int_neg(a) : a;
}
template <class T>
LT_FN T int_div(T a, T b) {
  if (b == (T)0) return (T)0;
  if (element<T>::is_signed && b == (T)-1) return int_neg(a);
  return (T)(a / b);
}
template <class T>
LT_FN T int_mod(T a, T b) {
  if (b == (T)0 || (element<T>::is_signed && b == (T)-1)) return (T)0;
  const T r = (T)(a % b);
  return r != (T)0 && is_negative(r) != is_negative(b) ? (T)(r + b) : r;
}
template <class T>
LT_FN T shift_left(T a, T b) {
  typedef typename element<T>::word W;
  return (u64)(i64)b < (u64)element<T>::bits ? (T)((W)a << (W)b) : (T)0;
}
template <class T>
LT_FN T shift_right(T a, T b) {
  typedef typename element<T>::word W;
  const W mask = (W)(~0ull >> (64 - element<T>::bits));
  return (u64)(i64)b < (u64)element<T>::bits ? (T)(((W)a & mask) >> (W)b) : (T)0;
}
LT_FN float math_copysign(float a, float b) {
  return bit_cast<float>((bit_cast<u32>(a) & 0x7fffffffu) | (bit_cast<u32>(b) & 0x80000000u));
}
LT_FN double math_copysign(double a, double b) {
  return bit_cast<double>((bit_cast<u64>(a) & ~(1ull << 63)) | (bit_cast<u64>(b) & 1ull << 63));
}
// Floored remainder: the divisor's sign, also of a zero.
template <class T>
LT_FN T math_mod(T a, T b) {
  const T r = math_fmod(a, b);
  if (r == (T)0) return math_copysign((T)0, b);
  return (r < (T)0) != (b < (T)0) ? r + b : r;
}
LT_FN double max_nan(double a, double b) {
  if (a != a || b != b) return bit_cast<double>(0x7ff8000000000000ull);
  if (a == b) return bit_cast<i64>(a) < 0 ? b : a;
  return a > b ? a : b;
}
LT_FN double min_nan(double a, double b) {
  if (a != a || b != b) return bit_cast<double>(0x7ff8000000000000ull);
  if (a == b) return bit_cast<i64>(a) < 0 ? a : b;
  return a < b ? a : b;
}

// ---- operations for the reductions, on double, float and integers -----------------------------
// Floats: as IEEE 754-2019 (NaN wins); integers wrap.
struct Sum {
  template <class T>
  LT_MEMBER T operator()(T a, T b) const {
    if constexpr (element<T>::is_float)
      return a + b;
    else
      return int_add(a, b);
  }
  template <class T>
  static LT_MEMBER T identity() {
    return (T)0;
  }
};
struct Prod {
  template <class T>
  LT_MEMBER T operator()(T a, T b) const {
    if constexpr (element<T>::is_float)
      return a * b;
    else
      return int_mul(a, b);
  }
  template <class T>
  static LT_MEMBER T identity() {
    return (T)1;
  }
};
struct Max {
  template <class T>
  LT_MEMBER T operator()(T a, T b) const {
    if constexpr (element<T>::is_float)
      return max_nan(a, b);
    else
      return a > b ? a : b;
  }
  template <class T>
  static LT_MEMBER T identity() {
    return lowest_of<T>();
  }
};
struct Min {
  template <class T>
  LT_MEMBER T operator()(T a, T b) const {
    if constexpr (element<T>::is_float)
      return min_nan(a, b);
    else
      return a < b ? a : b;
  }
  template <class T>
  static LT_MEMBER T identity() {
    return highest_of<T>();
  }
};
struct And {
  template <class T>
  LT_MEMBER T operator()(T a, T b) const {
    return a & b;
  }
  template <class T>
  static LT_MEMBER T identity() {
    return (T) ~(T)0;
  }
};
struct Or {
  template <class T>
  LT_MEMBER T operator()(T a, T b) const {
    return a | b;
  }
  template <class T>
  static LT_MEMBER T identity() {
    return (T)0;
  }
};
// A value with its index. The best is the greatest (least) value; of equals the lowest index; NaN
// beats all. Start from {lowest_of<T>(), highest_of<i64>()} (or highest_of<T>()).
template <class T>
struct arg_pair {
  T value;
  i64 index;
};
template <bool GREATEST>
struct ArgBest {
  template <class T>
  LT_MEMBER arg_pair<T> operator()(const arg_pair<T>& a, const arg_pair<T>& b) const {
    const bool an = a.value != a.value, bn = b.value != b.value;
    if (an != bn) return an ? a : b;
    if (an || a.value == b.value) return a.index < b.index ? a : b;
    return (a.value > b.value) == GREATEST ? a : b;
  }
};
typedef ArgBest<true> ArgMax;
typedef ArgBest<false> ArgMin;

// ---- reductions by name: every lane (thread) gets the result ----------------------------------
template <class T>
LT_FN T warp_sum(T v LT_FROM) {
  return warp_reduce(v, Sum {} LT_PASS);
}
template <class T>
LT_FN T warp_prod(T v LT_FROM) {
  return warp_reduce(v, Prod {} LT_PASS);
}
template <class T>
LT_FN T warp_max(T v LT_FROM) {
  return warp_reduce(v, Max {} LT_PASS);
}
template <class T>
LT_FN T warp_min(T v LT_FROM) {
  return warp_reduce(v, Min {} LT_PASS);
}
// Bits that are set, of a ballot for example.
LT_FN int bitCount(u32 x) {
  x = x - (x >> 1 & 0x55555555u);
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  return (int)(((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
}
LT_FN bool warp_any(bool v LT_FROM) { return warp_ballot(v LT_PASS) != 0; }
LT_FN bool warp_all(bool v LT_FROM) { return warp_ballot(v LT_PASS) == 0xffffffffu; }
template <int NT, class T>
LT_FN T block_sum(T v LT_FROM) {
  return block_reduce<NT>(v, Sum {} LT_PASS);
}
template <int NT, class T>
LT_FN T block_prod(T v LT_FROM) {
  return block_reduce<NT>(v, Prod {} LT_PASS);
}
template <int NT, class T>
LT_FN T block_max(T v LT_FROM) {
  return block_reduce<NT>(v, Max {} LT_PASS);
}
template <int NT, class T>
LT_FN T block_min(T v LT_FROM) {
  return block_reduce<NT>(v, Min {} LT_PASS);
}
template <int NT>
LT_FN bool block_any(bool v LT_FROM) {
  return block_reduce<NT>((u32)v, Or {} LT_PASS) != 0;
}
template <int NT>
LT_FN bool block_all(bool v LT_FROM) {
  return block_reduce<NT>((u32)v, And {} LT_PASS) != 0;
}

// ---- vectors: N elements, N * sizeof(T) bytes a power of two up to 16, or a multiple of 16 ----
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) vec {
  static constexpr int size = N;
  T v[N];
  LT_MEMBER T& operator[](LT_INDEX i) { return v[LT_BELOW(i, N)]; }
  LT_MEMBER const T& operator[](LT_INDEX i) const { return v[LT_BELOW(i, N)]; }
};
template <class T>
using vec16 = vec<T, 16 / sizeof(T)>;
template <int BYTES>
struct lt_piece {
  typedef uint4 type;
};
template <>
struct lt_piece<8> {
  typedef uint2 type;
};
template <>
struct lt_piece<4> {
  typedef u32 type;
};
template <>
struct lt_piece<2> {
  typedef u16 type;
};
template <>
struct lt_piece<1> {
  typedef u8 type;
};
// Aligned to the vector's alignment. `nc` as in ld_global_nc_16.
#define LT_VEC_LOAD(name, load)                                               \
  template <int N, class T>                                                   \
  LT_FN vec<T, N> name(const T* p LT_FROM) {                                  \
    constexpr int bytes = N * (int)sizeof(T);                                 \
    static_assert(bytes >= 16 ? bytes % 16 == 0 : (bytes & (bytes - 1)) == 0, \
                  "vectors of 1, 2, 4, 8 or 16 n bytes");                     \
    typedef typename lt_piece<(bytes < 16 ? bytes : 16)>::type P;             \
    constexpr int pieces = bytes / (int)sizeof(P);                            \
    P part[pieces];                                                           \
    _Pragma("unroll") for (int i = 0; i < pieces; ++i) {                      \
      const char* at = (const char*)p + i * sizeof(P);                        \
      if constexpr (sizeof(P) == 16)                                          \
        part[i] = load##_16(at LT_PASS);                                      \
      else if constexpr (sizeof(P) == 8)                                      \
        part[i] = load##_8(at LT_PASS);                                       \
      else if constexpr (sizeof(P) == 4)                                      \
        part[i] = load##_4(at LT_PASS);                                       \
      else                                                                    \
        part[i] = *(const P*)at;                                              \
    }                                                                         \
    vec<T, N> r;                                                              \
    memcpy(&r, part, sizeof(r));                                              \
    return r;                                                                 \
  }
LT_VEC_LOAD(load_vec, ld_global)
LT_VEC_LOAD(load_vec_nc, ld_global_nc)
LT_VEC_LOAD(load_vec_shared, ld_shared)
#define LT_VEC_STORE(name, store)                                             \
  template <class T, int N>                                                   \
  LT_FN void name(T* p, const vec<T, N>& v LT_FROM) {                         \
    constexpr int bytes = N * (int)sizeof(T);                                 \
    static_assert(bytes >= 16 ? bytes % 16 == 0 : (bytes & (bytes - 1)) == 0, \
                  "vectors of 1, 2, 4, 8 or 16 n bytes");                     \
    typedef typename lt_piece<(bytes < 16 ? bytes : 16)>::type P;             \
    constexpr int pieces = bytes / (int)sizeof(P);                            \
    P part[pieces];                                                           \
    memcpy(part, &v, sizeof(v));                                              \
    _Pragma("unroll") for (int i = 0; i < pieces; ++i) {                      \
      char* at = (char*)p + i * sizeof(P);                                    \
      if constexpr (sizeof(P) == 16)                                          \
        store##_16(at, part[i] LT_PASS);                                      \
      else if constexpr (sizeof(P) == 8)                                      \
        store##_8(at, part[i] LT_PASS);                                       \
      else if constexpr (sizeof(P) == 4)                                      \
        store##_4(at, part[i] LT_PASS);                                       \
      else                                                                    \
        *(P*)at = part[i];                                                    \
    }                                                                         \
  }
LT_VEC_STORE(store_vec, st_global)
LT_VEC_STORE(store_vec_shared, st_shared)

// All elements to f32 and back; pairs of bf16 and f16 are packed by one instruction.
template <class T, int N>
LT_FN vec<float, N> to_f32(const vec<T, N>& x) {
  vec<float, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.v[i] = to_f32(x.v[i]);
  return r;
}
template <class T, int N>
LT_FN vec<T, N> from_f32(const vec<float, N>& x) {
  vec<T, N> r;
  if constexpr (element<T>::is_small_float && N % 2 == 0) {
    u32 pairs[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i)
      pairs[i] = lt_same<T, bf16>::value ? pack_bf16x2(x.v[2 * i], x.v[2 * i + 1])
                                         : pack_f16x2(x.v[2 * i], x.v[2 * i + 1]);
    memcpy(&r, pairs, sizeof(r));
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) r.v[i] = from_f32<T>(x.v[i]);
  }
  return r;
}
// N elements of any type, read as f32; written from f32.
template <int N, class T>
LT_FN vec<float, N> load_f32(const T* p LT_FROM) {
  return to_f32(load_vec<N>(p LT_PASS));
}
template <int N, class T>
LT_FN vec<float, N> load_f32_nc(const T* p LT_FROM) {
  return to_f32(load_vec_nc<N>(p LT_PASS));
}
template <int N, class T>
LT_FN vec<float, N> load_f32_shared(const T* p LT_FROM) {
  return to_f32(load_vec_shared<N>(p LT_PASS));
}
template <class T, int N>
LT_FN void store_f32(T* p, const vec<float, N>& v LT_FROM) {
  store_vec(p, from_f32<T>(v) LT_PASS);
}
template <class T, int N>
LT_FN void store_f32_shared(T* p, const vec<float, N>& v LT_FROM) {
  store_vec_shared(p, from_f32<T>(v) LT_PASS);
}

// Eight bf16 in one 16-byte word.
typedef vec<float, 8> f32x8;
LT_FN f32x8 unpack_bf16x8(uint4 v) {
  return f32x8{{bf16_lo(v.x), bf16_hi(v.x), bf16_lo(v.y), bf16_hi(v.y), bf16_lo(v.z), bf16_hi(v.z),
                bf16_lo(v.w), bf16_hi(v.w)}};
}
LT_FN uint4 pack_bf16x8(const f32x8& f) {
  return make_uint4(pack_bf16x2(f.v[0], f.v[1]), pack_bf16x2(f.v[2], f.v[3]),
                    pack_bf16x2(f.v[4], f.v[5]), pack_bf16x2(f.v[6], f.v[7]));
}
LT_FN f32x8 load_bf16x8(const bf16* p LT_FROM) { return unpack_bf16x8(ld_global_nc_16(p LT_PASS)); }
LT_FN void store_bf16x8(bf16* p, const f32x8& f LT_FROM) {
  st_global_16(p, pack_bf16x8(f) LT_PASS);
}

// Reduces over the threads of a block that have the same lane, warps in order; each gets the
// result.
template <int NT, class T, class Op>
LT_FN T columns_reduce(T v, Op op LT_FROM) {
  LATHE_SHARED(T, part, NT);
  const u32 lane = threadIdx.x & 31;
  memcpy(part + threadIdx.x, &v, sizeof(T));  // with its padding
  block_sync(LT_PASS0);
  v = part[lane];
  for (u32 w = 1; w < NT / 32; ++w) v = op(v, part[w * 32 + lane]);
  block_sync(LT_PASS0);  // nobody may write again before all have read
  return v;
}

// ---- cluster and grid -------------------------------------------------------------------------
// Reduces over all threads of the cluster, blocks in rank order; every thread gets the result.
template <int NT, class T, class Op>
LT_FN T cluster_reduce(T v, Op op LT_FROM) {
  LATHE_SHARED(T, part, 1);
  v = block_reduce<NT>(v, op LT_PASS);
  if (threadIdx.x == 0) memcpy(part, &v, sizeof(T));  // with its padding
  cluster_sync(LT_PASS0);
  v = cluster_read(part, 0 LT_PASS);
  for (u32 r = 1; r < cluster_size(); ++r) v = op(v, cluster_read(part, r LT_PASS));
  cluster_sync(LT_PASS0);  // nobody may leave or write again before all have read
  return v;
}
template <int NT, class T>
LT_FN T cluster_sum(T v LT_FROM) {
  return cluster_reduce<NT>(v, Sum {} LT_PASS);
}
template <int NT, class T>
LT_FN T cluster_max(T v LT_FROM) {
  return cluster_reduce<NT>(v, Max {} LT_PASS);
}

// All threads of a block call it once; true in the last of `blocks` blocks that share the counter,
// whose threads then see what the others wrote before. The counter starts at 0 and is left at 0.
LT_FN bool grid_last_block(u32* counter, u32 blocks LT_FROM) {
  LATHE_SHARED(u32, last, 1);
  block_sync(LT_PASS0);
  if (threadIdx.x == 0) {
    last[0] = counter_add_acq_rel(counter, 1) == blocks - 1;
    if (last[0]) counter_store_release(counter, 0);
  }
  block_sync(LT_PASS0);
  return last[0] != 0;
}
