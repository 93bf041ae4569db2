// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/matmul/gemm_kernels.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/error.h"
#include "tests/unit/cuda/matmul_cases.h"

namespace lathe::cuda {
namespace {

void expectConvolution(ConvolutionKernel c, int64_t images, host::Mode mode, const char* options) {
  c.name = "convolution";
  c.images = DimExpr::symbol("b");
  const int64_t oh = c.outH(), ow = c.outW();
  std::vector<double> x = randomValues(images * c.channels * c.height * c.width, c.dtype, 1),
                      w = randomValues(c.filters * c.channels * c.kernelH * c.kernelW, c.dtype, 2);
  x[0] = INFINITY;
  std::vector<double> want, magnitude;
  for (int64_t b = 0; b < images; ++b)
    for (int64_t f = 0; f < c.filters; ++f)
      for (int64_t r = 0; r < oh; ++r)
        for (int64_t s = 0; s < ow; ++s) {
          double sum = 0, all = 0;
          for (int64_t g = 0; g < c.channels; ++g)
            for (int64_t i = 0; i < c.kernelH; ++i)
              for (int64_t j = 0; j < c.kernelW; ++j) {
                const int64_t row = r * c.strideH + i - c.top, column = s * c.strideW + j - c.left;
                const bool isInside = row >= 0 && row < c.height && column >= 0 && column < c.width;
                const double value =
                    isInside ? x[size_t(((b * c.channels + g) * c.height + row) * c.width + column)]
                             : 0;
                const double term =
                    value * w[size_t(((f * c.channels + g) * c.kernelH + i) * c.kernelW + j)];
                sum += term;
                all += std::abs(term);
              }
          want.push_back(sum);
          magnitude.push_back(all);
        }
  KernelSetRun run(convolutionKernels(c), mode);
  std::vector<RunBuffer> buffers(3);
  buffers[0].bytes = encoded(x, c.dtype);
  buffers[1].bytes = encoded(w, c.dtype);
  buffers[2].bytes.resize(want.size() * sizeOf(c.dtype));
  buffers[2].isOutput = true;
  run.run(buffers, {{"b", images}}, schedule(options));
  expectNear(decoded(buffers[2].bytes, c.dtype), want, magnitude, c.dtype, run.what());
}

// Stride and kernel are equal: every element of the image is in one patch.
TEST(Convolution, PatchEmbedding) {
  for (DType dtype : {DType::BF16, DType::F16, DType::F32, DType::F64}) {
    ConvolutionKernel c;
    c.dtype = dtype;
    c.channels = 3;
    c.height = c.width = 16;
    c.filters = 72;
    c.kernelH = c.kernelW = c.strideH = c.strideW = 4;
    expectConvolution(c, 2, host::Mode::Fast, "fast");
  }
}

TEST(Convolution, PaddingAndStrides) {
  for (DType dtype : {DType::BF16, DType::F32}) {
    ConvolutionKernel c;
    c.dtype = dtype;
    c.channels = 2;
    c.height = 9;
    c.width = 7;
    c.filters = 5;
    c.kernelH = 3;
    c.kernelW = 2;
    c.strideH = 2;
    c.top = 2;
    c.bottom = 1;
    c.left = 1;
    expectConvolution(c, 3, host::Mode::Check, "check,random,seed=4,preempt=97");
  }
}

// The CPU takes such a kernel.
TEST(Convolution, NumbersOfChannelsAndFiltersAreNumbers) {
  for (bool isFilters : {true, false}) {
    Graph g;
    const Dim some = g.dim("some", 1, 8), two = 2;
    const Dim channels = isFilters ? two : some, filters = isFilters ? some : two;
    g.output("y", convolution(g.input("x", DType::F32, {1, channels, 5, 5}),
                              g.input("w", DType::F32, {filters, channels, 3, 3}), {1, 1},
                              {0, 0, 0, 0}));
    EXPECT_NO_THROW(compile(g, {.backend = "cpu"}));
    std::string message;
    try {
      compile(g, {.backend = "cuda"});
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::Unsupported);
      message = e.what();
    }
    EXPECT_NE(message.find("convolution kernels want the numbers of channels and filters"),
              message.npos)
        << message;
  }
}

}  // namespace
}  // namespace lathe::cuda
