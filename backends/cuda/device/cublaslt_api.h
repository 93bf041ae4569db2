// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Lathe uses of cuBLASLt, declared by hand. Sizes and values are compared with cublasLt.h in
// tests/unit/cuda/cublaslt_test.cpp.
#include <cstddef>
#include <cstdint>

namespace lathe::cuda::blas {

using Status = int;
constexpr Status kNotSupported = 15;
using Handle = struct HandleTag*;
using MatmulDesc = struct MatmulDescTag*;  // cublasLtMatmulDesc_t
using Layout = struct LayoutTag*;
using Preference = struct PreferenceTag*;
using Stream = void*;

enum DataType : int { kFloat32 = 0, kFloat16 = 2, kBfloat16 = 14 };
enum ComputeType : int { kCompute32 = 68 };
enum Operation : int { kAsItIs = 0, kTransposed = 1 };
enum Epilogue : int { kNothing = 1, kAddBias = 4 };
enum MatmulDescAttribute : int {
  kTransposeFirst = 3,
  kTransposeSecond = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
};
enum PreferenceAttribute : int {
  kMaxWorkspaceBytes = 1,
  kReductionSchemes = 3,
  kMinAlignmentA = 5,
  kMinAlignmentB = 6,
  kMinAlignmentC = 7,
  kMinAlignmentD = 8,
};

/// How parts of a sum over k meet: in the compute type, through the workspace. The others round the
/// parts to the result's type.
constexpr uint32_t kReducedInComputeType = 2;

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspaceBytes;
  Status state;
  float waves;
  int reserved[4];
};

// F(member, name in the library, parameters)
#define LATHE_CUBLASLT_FUNCTIONS(F)                                                             \
  F(create, cublasLtCreate, (Handle*))                                                          \
  F(destroy, cublasLtDestroy, (Handle))                                                         \
  F(matmulDescCreate, cublasLtMatmulDescCreate, (MatmulDesc*, ComputeType, DataType))           \
  F(matmulDescDestroy, cublasLtMatmulDescDestroy, (MatmulDesc))                                 \
  F(matmulDescSet, cublasLtMatmulDescSetAttribute,                                              \
    (MatmulDesc, MatmulDescAttribute, const void*, size_t))                                     \
  F(layoutCreate, cublasLtMatrixLayoutCreate, (Layout*, DataType, uint64_t, uint64_t, int64_t)) \
  F(layoutDestroy, cublasLtMatrixLayoutDestroy, (Layout))                                       \
  F(preferenceCreate, cublasLtMatmulPreferenceCreate, (Preference*))                            \
  F(preferenceDestroy, cublasLtMatmulPreferenceDestroy, (Preference))                           \
  F(preferenceSet, cublasLtMatmulPreferenceSetAttribute,                                        \
    (Preference, PreferenceAttribute, const void*, size_t))                                     \
  F(heuristic, cublasLtMatmulAlgoGetHeuristic,                                                  \
    (Handle, MatmulDesc, Layout, Layout, Layout, Layout, Preference, int, Heuristic*, int*))    \
  F(matmul, cublasLtMatmul,                                                                     \
    (Handle, MatmulDesc, const void*, const void*, Layout, const void*, Layout, const void*,    \
     const void*, Layout, void*, Layout, const Algorithm*, void*, size_t, Stream))

struct Api {
#define LATHE_CUBLASLT_MEMBER(member, name, parameters) Status(*member) parameters = nullptr;
  LATHE_CUBLASLT_FUNCTIONS(LATHE_CUBLASLT_MEMBER)
#undef LATHE_CUBLASLT_MEMBER
  const char* (*statusString)(Status) = nullptr;
};

}  // namespace lathe::cuda::blas
