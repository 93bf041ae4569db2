// SPDX-License-Identifier: Apache-2.0
// 2-D convolution as patches times filters: for patch embedding stride and kernel are equal, and
// the patches are a plain re-ordering of the image.
#include <algorithm>
#include <iterator>

#include "backends/cpu/device/kernels.h"
#include "backends/cpu/device/matmul.h"

namespace lathe::cpu {
namespace {

class ConvolutionKernel final : public Kernel {
 public:
  explicit ConvolutionKernel(const CallInfo& info)
      : pool_(info.pool), elementBytes_(sizeOf(info.in(0))) {
    const auto config = readConfig<ConvolutionConfig>(info.config);
    if (config.strides.size() != std::size(stride_) || config.padding.size() != std::size(padding_))
      throw info.config.error("expected two strides and four paddings");
    std::ranges::copy(config.strides, stride_);
    std::ranges::copy(config.padding, padding_);
    args_.dtype = info.in(0);
    args_.outDType = info.out();
  }

  size_t bind(const KernelShapes& s) override {
    x_ = s.shapes[0];
    w_ = s.shapes[1];
    out_ = s.shapes[2];
    int64_t depth = w_[1] * w_[2] * w_[3], pixels = out_[2] * out_[3];
    // [o, depth] x [depth, pixels] per image; the patches of one image lie in scratch.
    args_.m = w_[0];
    args_.k = depth;
    args_.n = pixels;
    args_.aRowStride = depth;
    args_.bRowStride = pixels;
    args_.cRowStride = pixels;
    patchBytes_ = alignUp64(size_t(depth * pixels) * elementBytes_);
    matmulBytes_ = matmulScratchBytes(args_, pool_.threads());
    return patchBytes_ + matmulBytes_;
  }

  void run(void* const* p, std::byte* scratch) override {
    int64_t image = x_[1] * x_[2] * x_[3], result = out_[1] * out_[2] * out_[3];
    for (int64_t n = 0; n < x_[0]; ++n) {
      gather(static_cast<const std::byte*>(p[0]) + size_t(n * image) * elementBytes_, scratch);
      args_.a = p[1];
      args_.b = scratch;
      args_.c = static_cast<std::byte*>(p[2]) + size_t(n * result) * elementBytes_;
      matmul(args_, pool_, {scratch + patchBytes_, matmulBytes_});
    }
  }

 private:
  void gather(const std::byte* image, std::byte* patches) {
    switch (elementBytes_) {
      case 2:
        return gatherAs(reinterpret_cast<const uint16_t*>(image),
                        reinterpret_cast<uint16_t*>(patches));
      case 4:
        return gatherAs(reinterpret_cast<const uint32_t*>(image),
                        reinterpret_cast<uint32_t*>(patches));
      default:
        return gatherAs(reinterpret_cast<const uint64_t*>(image),
                        reinterpret_cast<uint64_t*>(patches));
    }
  }

  // One row of patches for each element of the window; Word has the elements' size.
  template <class Word>
  void gatherAs(const Word* image, Word* patches) {
    const int64_t height = x_[2], width = x_[3], columns = out_[3], step = stride_[1];
    pool_.run(w_[1] * w_[2] * w_[3], [&](int64_t row, int) {
      const int64_t kx = row % w_[3], ky = row / w_[3] % w_[2], channel = row / (w_[3] * w_[2]);
      Word* to = patches + row * out_[2] * columns;
      // The columns whose element lies inside of the image.
      const int64_t shift = kx - padding_[2];
      const int64_t first =
          std::clamp<int64_t>(ceilDiv(std::max<int64_t>(0, -shift), step), 0, columns);
      const int64_t end =
          std::clamp<int64_t>(ceilDiv(std::max<int64_t>(0, width - shift), step), first, columns);
      for (int64_t oy = 0; oy < out_[2]; ++oy, to += columns) {
        const int64_t y = oy * stride_[0] + ky - padding_[0];
        if (y < 0 || y >= height) {
          std::fill_n(to, columns, Word(0));
          continue;
        }
        const Word* from = image + (channel * height + y) * width + shift;
        std::fill(to, to + first, Word(0));
        if (step == 1)
          std::copy(from + first, from + end, to + first);
        else
          for (int64_t ox = first; ox < end; ++ox) to[ox] = from[ox * step];
        std::fill(to + end, to + columns, Word(0));
      }
    });
  }

  ThreadPool& pool_;
  size_t elementBytes_;
  int64_t stride_[2], padding_[4];
  Shape x_, w_, out_;
  MatmulArgs args_;
  size_t patchBytes_ = 0, matmulBytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> makeConvolution(const CallInfo& info) {
  return std::make_unique<ConvolutionKernel>(info);
}

}  // namespace lathe::cpu
