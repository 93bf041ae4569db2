// SPDX-License-Identifier: Apache-2.0
#pragma once
// Regions of a source file that are compiled for one instruction set, in clang and gcc alike, so
// that no file needs flags of its own. Rules inside a region: everything lies in an unnamed
// namespace (an inline function shared with baseline code could be linked in its AVX-512 form),
// no lambdas (clang does not pass the target on to them), no standard library calls.

#if !defined(__clang__)
// gcc 12 takes the deliberately undefined pass-through operands inside its own intrinsics for
// uninitialized variables, wherever they are inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#if defined(__clang__)
#define LATHE_PRAGMA(x) _Pragma(#x)
#define LATHE_ISA_BEGIN(features) \
  LATHE_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define LATHE_ISA_END LATHE_PRAGMA(clang attribute pop)
#else
#define LATHE_PRAGMA(x) _Pragma(#x)
#define LATHE_ISA_BEGIN(features) LATHE_PRAGMA(GCC push_options) LATHE_PRAGMA(GCC target(features))
#define LATHE_ISA_END LATHE_PRAGMA(GCC pop_options)
#endif

#define LATHE_TARGET_AVX2 "avx2,fma,f16c,bmi2"
#define LATHE_TARGET_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c,bmi2"
#define LATHE_TARGET_AVX512_VNNI \
  "avx512vnni,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c,bmi2"
#define LATHE_TARGET_AVX512_BF16 \
  "avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c,bmi2"
