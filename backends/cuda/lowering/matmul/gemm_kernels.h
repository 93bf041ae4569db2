// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of lathe.linear, lathe.matmul and lathe.convolution: streams over the weights for few
// rows (lathe_gemv.cuh), tensor-core tiles (lathe_gemm.cuh), and tiles without tensor cores for
// every other type (lathe_simt_gemm.cuh).
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "backends/cuda/lowering/tuning/tuning_choice.h"
#include "lathe/runtime/enums.h"

namespace lathe::cuda {

/// What happens to a product on its way in and out, as text that the templates call.
struct MatmulHooks {
  /// Defines `struct Hooks`, whose members lathe_gemv.cuh and lathe_gemm.cuh describe. May use
  /// `kThreads`, the threads of a block.
  std::string definition;
  /// If set, makes `definition` for a number of threads per block, and for a template: that of
  /// tiles norms rows on their way, where that for few rows has `stage`.
  std::function<std::string(int threads, bool tiles)> definitionFor;
  /// What records of measurements know the epilogue by: its text, without what stages rows. Empty:
  /// `definition`.
  std::string epilogue;
  /// An expression of type Hooks. Names come from `parameters`; `batch` is the number of the matrix
  /// (0 without batch axes).
  std::string construction;
  KernelParameters parameters;
  /// Where a cluster computes the only row together (kClusterInput of lathe_gemv.cuh).
  struct ClusterInput {
    std::string header;      ///< the template
    std::string statements;  ///< in front of `construction`
    int cluster = 1;
    int64_t sharedBytes = 0;
  };
  std::optional<ClusterInput> clusterInput = {};
  bool staged = false;  ///< has `stage`: rows of the input are computed, not read
  bool normed = false;  ///< staged, and tiles can do it on their way (kNormed of lathe_gemm.cuh)
  bool pairs = false;   ///< `storePair` instead of `store`
  int sumPairs = 0;     ///< `storePair` takes the sum of `term` over so many adjacent pairs
  bool vectors = true;  ///< has `store8` or `storePair8`
  /// More are served better without the hooks. Up to 16 a stream over the weights does it.
  int64_t mostRows = std::numeric_limits<int64_t>::max();
};

/// c[batch, m, n] = sum over k of a[batch, m, k] b[batch, n, k], a and b dense but for broadcast
/// batch axes.
struct MatmulKernel {
  std::string name;  ///< what the kernels' names begin with
  DType dtype = DType::BF16;
  DimExpr m = 1, n = 1, k = 1;  ///< n: columns, or pairs of columns
  std::vector<DimExpr> batch;
  std::vector<DimExpr> aStrides, bStrides;  ///< in elements per batch axis; 0 broadcasts
  int a = 0, b = 1;                         ///< numbers of the buffers; no `a`: -1
  bool transposedB = false;                 ///< b lies as [k, n]
  bool constantB = true;  ///< no kernel of the program writes b: it may be read ahead
  MatmulHooks hooks;
  std::optional<PlainMatmul> plain = {};  ///< what the hooks make of it, if a library can do it
};

/// The epilogue of lathe.linear: activation(product + bias) + residual. Buffers are numbered, -1:
/// none. `unrounded`: the result is f32 where the operands have 16 bits.
MatmulHooks linearHooks(const MatmulKernel& matmul, int result,
                        Activation activation = Activation::none, int bias = -1, int residual = -1,
                        bool unrounded = false);

/// Library: the vendor's, where it is installed, else the best of the others.
enum class MatmulMethod { GemvDot, GemvMma, Gemm, Simt, Library };

/// How a method is run.
struct MatmulChoice {
  MatmulMethod method = MatmulMethod::Simt;
  int warpsM = 1, warpsN = 1;  ///< Gemv: warps side by side (N)
  int warpsK = 1;              ///< Gemv: warps that share k
  int splits = 1;              ///< blocks that share k
  int columns = 2;             ///< GemvDot: columns of a warp; GemvMma: 4, the loads of a step
  int steps = 4;               ///< Gemv: loads of a lane and column that are under way at least
  int tileM = 64, tileN = 64, stages = 4;
  int rank = 0;  ///< Library: of its algorithms
  bool operator==(const MatmulChoice&) const = default;
};

/// Sizes that stand for all when choices are ranked; `rows` is the most that the kernel is for.
struct MatmulSizes {
  int64_t rows = 1, n = 1, k = 1, batch = 1;
};
/// Choices that serve up to `sizes.rows` rows, the best by the model first.
std::vector<MatmulChoice> matmulCandidates(const MatmulKernel& matmul, const MatmulSizes& sizes);
/// Seconds on an H200 by the model.
double matmulSeconds(const MatmulKernel& matmul, const MatmulSizes& sizes,
                     const MatmulChoice& choice);

/// Raised when a template of products changes so much that measurements of its choices say nothing.
constexpr int kMatmulVersion = 2;
/// "gemv-dot warps=8x1 splits=1 columns=2 steps=4": every number that the method uses.
std::string textOf(const MatmulChoice& choice);
/// For `low` to `high` rows; `sizes` are those by which the candidates were ranked.
TuningQuestion questionOf(const MatmulKernel& matmul, const MatmulSizes& sizes,
                          const std::vector<MatmulChoice>& candidates, const std::string& kernel,
                          int64_t low, int64_t high);

/// One kernel of the call and its launch, for up to `rows` rows; conditions are the caller's.
struct MatmulVariant {
  KernelText text;
  Variant variant;
};
MatmulVariant printMatmul(const MatmulKernel& matmul, const MatmulChoice& choice, int64_t rows,
                          const std::string& name);

/// Kernels for every number of rows that the hooks allow, chosen by what was measured, else by the
/// model (tuning_choice.h).
KernelSet kernelsOf(const MatmulKernel& matmul);
/// What `kernelsOf` takes for one row; `kernel`: the name for which it is asked.
MatmulChoice choiceForOneRow(const MatmulKernel& matmul, const std::string& kernel);

/// y[images, filters, outH, outW] = x[images, channels, height, width] correlated with
/// w[filters, channels, kernelH, kernelW]; buffers in this order.
struct ConvolutionKernel {
  std::string name;
  DType dtype = DType::BF16;
  DimExpr images = 1;
  int64_t channels = 1, height = 1, width = 1, filters = 1, kernelH = 1, kernelW = 1;
  int64_t strideH = 1, strideW = 1;
  int64_t top = 0, bottom = 0, left = 0, right = 0;  ///< zeros around the image

  int64_t outH() const { return (height + top + bottom - kernelH) / strideH + 1; }
  int64_t outW() const { return (width + left + right - kernelW) / strideW + 1; }
};
KernelSet convolutionKernels(const ConvolutionKernel& convolution);

}  // namespace lathe::cuda
