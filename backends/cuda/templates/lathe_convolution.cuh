// SPDX-License-Identifier: Apache-2.0
// 2-D cross-correlation as a product: filters [o, c kh kw] times patches [c kh kw, pixels], image
// by image. The patches are never stored; an element is fetched where a product's tile needs it.
//
// Config: Input; all sizes and kStrideH, kStrideW, kTop, kLeft as numbers.
#pragma once
#include "lathe_gemm.cuh"
#include "lathe_simt_gemm.cuh"

template <class C>
struct ConvolutionPatches {
  typedef typename C::Input Input;
  static constexpr int kPixels = C::kOutH * C::kOutW,
                       kDepth = C::kChannels * C::kKernelH * C::kKernelW;
  const Input* image;

  LT_MEMBER Input patch(int pixel, int depth) const {
    const int x = pixel % C::kOutW * C::kStrideW + depth % C::kKernelW - C::kLeft;
    const int y = pixel / C::kOutW * C::kStrideH + depth / C::kKernelW % C::kKernelH - C::kTop;
    const int channel = depth / (C::kKernelW * C::kKernelH);
    const bool inside = x >= 0 && x < C::kWidth && y >= 0 && y < C::kHeight;
    return inside ? image[((long long)channel * C::kHeight + y) * C::kWidth + x] : Input{};
  }
};
/// As an operand of `simtGemm`: element (k, n).
template <class C>
struct ConvolutionColumns : ConvolutionPatches<C> {
  LT_MEMBER typename C::Input at(long long depth, long long pixel) const {
    return this->patch((int)pixel, (int)depth);
  }
};
/// As an operand of `gemm`: element (n, k).
template <class C>
struct ConvolutionRows : ConvolutionPatches<C> {
  LT_MEMBER typename C::Input at(long long pixel, long long depth) const {
    return this->patch((int)pixel, (int)depth);
  }
};
