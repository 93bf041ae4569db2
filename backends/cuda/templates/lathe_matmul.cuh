// SPDX-License-Identifier: Apache-2.0
// What the products (GEMV, GEMM, convolution) share: element types, 16-byte chunks, the epilogue of
// lathe.linear.
#pragma once
#include "lathe_device.cuh"

template <class Int>
constexpr Int ceilDiv(Int a, Int b) {
  return (a + b - 1) / b;
}

/// How an element type accumulates: floats up to 32 bits in f32, f64 in f64, integers modulo 2^32
/// or 2^64 (after narrowing, their own wrap-around).
template <class T>
struct MatmulElement {
  typedef typename lt_if<element<T>::is_integer, typename lt_if<sizeof(T) == 8, u64, u32>::type,
                         typename element<T>::compute>::type Sum;
  LT_FN Sum wide(T x) {
    if constexpr (element<T>::is_small_float)
      return to_f32(x);
    else
      return (Sum)x;
  }
  LT_FN T narrow(Sum x) {
    if constexpr (element<T>::is_small_float)
      return from_f32<T>(x);
    else
      return (T)x;
  }
  LT_FN Sum multiplyAdd(Sum a, Sum b, Sum sum) {
    if constexpr (element<T>::is_float)
      return math_fma(a, b, sum);
    else
      return a * b + sum;
  }
  LT_FN void mma(frag_c& c, const frag_a& a, u32 b0, u32 b1) {
    if constexpr (lt_same<T, bf16>::value)
      mma_bf16(c, a, b0, b1);
    else
      mma_f16(c, a, b0, b1);
  }
};

/// What the hooks read for one result beside its sum. Hooks that have a type `Early` say what that
/// is: it is requested before it is needed, and store and storePair take it as their last argument.
template <class Hooks, class = void>
struct MatmulEarly {
  static constexpr bool kAny = false;
  struct Values {};
  LT_FN Values request(const Hooks&, long long, long long) { return {}; }
};
template <class Hooks>
struct MatmulEarly<Hooks, typename lt_void<typename Hooks::Early>::type> {
  static constexpr bool kAny = true;
  typedef typename Hooks::Early Values;
  LT_FN Values request(const Hooks& hooks, long long row, long long index) {
    return hooks.early(row, index);
  }
};

/// The elements of 16 bytes as f32, and back.
template <class T>
LT_FN vec<float, 16 / sizeof(T)> widenChunk(uint4 chunk) {
  vec16<T> elements;
  memcpy(&elements, &chunk, 16);
  return to_f32(elements);
}

/// The activations of lathe.linear by their names there, operation by operation as they decompose.
enum MatmulActivation {
  activation_none,
  activation_silu,
  activation_gelu,
  activation_gelu_tanh,
  activation_relu,
};

template <int kKind, class S>
LT_FN S matmulActivation(S x) {
  if constexpr (kKind == activation_silu) {
    return x * ((S)1 / ((S)1 + math_exp(-x)));
  } else if constexpr (kKind == activation_gelu) {
    return x * (S)0.5 * (math_erf(x * (S)0.70710678118654752440) + (S)1);
  } else if constexpr (kKind == activation_gelu_tanh) {
    const S inner = x + x * x * x * (S)0.044715;
    return x * (S)0.5 * (math_tanh(inner * (S)0.79788456080286535588) + (S)1);
  } else if constexpr (kKind == activation_relu) {
    return max_nan(x, (S)0);
  } else {
    return x;
  }
}

/// The default hooks: x [M, K] dense, y [M, N] = activation(product + bias[N]) + residual[M, N],
/// rounded to T and stored as Out: T or float. kUnrounded: Out is float, and holds the sum as it
/// is.
template <class T, int kActivation, bool kBias, bool kResidual, class Out = T,
          bool kUnrounded = false>
struct LinearHooks {
  typedef MatmulElement<T> Element;
  typedef typename Element::Sum Sum;
  const T* x;
  const T* bias;
  const T* residual;
  Out* y;
  long long n;

  /// What a result takes beside its sum: it may be requested long before.
  struct Early {
    T bias, residual;
  };
  __device__ Early early(long long row, long long column) const {
    Early e{};
    if constexpr (kBias) e.bias = bias[column];
    if constexpr (kResidual) e.residual = residual[row * n + column];
    return e;
  }
  __device__ Sum finish(Sum value, T addedBefore, T addedBehind) const {
    if constexpr (kBias) value += Element::wide(addedBefore);
    value = matmulActivation<kActivation>(value);
    if constexpr (kResidual) value += Element::wide(addedBehind);
    return value;
  }
  __device__ void store(long long row, long long column, Sum value, const Early& e) const {
    value = finish(value, e.bias, e.residual);
    if constexpr (kUnrounded)
      y[row * n + column] = value;
    else if constexpr (lt_same<T, Out>::value)
      y[row * n + column] = Element::narrow(value);
    else
      y[row * n + column] = Element::wide(Element::narrow(value));
  }
  __device__ void store(long long row, long long column, Sum value) const {
    store(row, column, value, early(row, column));
  }
  // Eight neighbours, not yet rounded.
  __device__ vec<float, 8> finish8(long long row, long long column, const float (&value)[8]) const {
    vec<T, 8> addends{};
    if constexpr (kResidual) addends = load_vec<8>(residual + row * n + column);
    vec<float, 8> out;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      out[i] = finish(value[i], kBias ? bias[column + i] : T{}, addends[i]);
    return out;
  }
  /// Only where n is a multiple of 8.
  __device__ void store8(long long row, long long column, const float (&value)[8]) const {
    vec<float, 8> out = finish8(row, column, value);
    if constexpr (!kUnrounded && !lt_same<T, Out>::value) out = to_f32(from_f32<T>(out));
    store_f32(y + row * n + column, out);
  }
};
