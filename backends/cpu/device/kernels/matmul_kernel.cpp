// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/kernels.h"
#include "backends/cpu/device/matmul.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

// A product of dense operands a, b and c; the second is [n, k] if it is transposed.
class DenseProduct : public Kernel {
 public:
  void run(void* const* p, std::byte* scratch) override {
    args_.a = p[0];
    args_.b = p[1];
    args_.c = p[2];
    matmul(args_, pool_, {scratch, scratchBytes_});
  }

 protected:
  DenseProduct(const CallInfo& info, bool transposeB)
      : pool_(info.pool), where_(at(info.call)), transposeB_(transposeB) {
    args_.dtype = info.in(0);
    args_.outDType = info.out();
  }
  void setSizes(int64_t m, int64_t n, int64_t k) {
    args_.m = m;
    args_.n = n;
    args_.k = k;
    args_.aRowStride = k;
    args_.aColStride = 1;
    args_.bRowStride = transposeB_ ? 1 : n;
    args_.bColStride = transposeB_ ? k : 1;
    args_.cRowStride = n;
  }
  size_t prepare() {
    scratchBytes_ = matmulScratchBytes(args_, pool_.threads());
    return scratchBytes_;
  }

  ThreadPool& pool_;
  const std::string where_;
  const bool transposeB_;
  MatmulArgs args_;

 private:
  size_t scratchBytes_ = 0;
};

// A layer whose weight is dense: of f16, which is not packed.
class DenseLinearKernel final : public DenseProduct {
 public:
  DenseLinearKernel(const CallInfo& info, const LinearConfig& config)
      : DenseProduct(info, *config.layout == WeightLayout::out_in) {
    if (*config.layout == WeightLayout::packed || config.bias || config.residual ||
        config.activation != Activation::none)
      throw Error(ErrorCode::InvalidFile,
                  where_ + "a layer of dense weights is a product and nothing else");
  }
  size_t bind(const KernelShapes& s) override {
    const Shape& x = s.shapes[0];
    setSizes(elementCount(std::span(x).first(x.size() - 1)), s.shapes.back().back(), x.back());
    return prepare();
  }
};

class MatmulKernel final : public DenseProduct {
 public:
  explicit MatmulKernel(const CallInfo& info)
      : DenseProduct(info, readConfig<MatmulConfig>(info.config).transposeB) {}
  size_t bind(const KernelShapes& s) override {
    Shape a = s.shapes[0], b = s.shapes[1], c = s.shapes[2];
    if (transposeB_) std::swap(b[b.size() - 1], b[b.size() - 2]);
    setSizes(c[c.size() - 2], c.back(), a.back());
    args_.batchDims = int(c.size()) - 2;
    if (args_.batchDims > kMaxBatchDims)
      throw Error(ErrorCode::Unsupported, where_ + "matmul takes at most " +
                                              std::to_string(kMaxBatchDims) + " leading dims");
    int64_t aStride = args_.m * args_.k, bStride = args_.k * args_.n, cStride = args_.m * args_.n;
    for (int i = args_.batchDims - 1; i >= 0; --i) {
      // Axis i of the result, aligned at the matrix axes; a missing or literal-1 dim broadcasts.
      int ia = i - (args_.batchDims - (int(a.size()) - 2)),
          ib = i - (args_.batchDims - (int(b.size()) - 2));
      int64_t da = ia < 0 ? 1 : a[size_t(ia)], db = ib < 0 ? 1 : b[size_t(ib)];
      args_.batch[size_t(i)] = c[size_t(i)];
      args_.aBatchStrides[size_t(i)] = da == 1 ? 0 : aStride;
      args_.bBatchStrides[size_t(i)] = db == 1 ? 0 : bStride;
      args_.cBatchStrides[size_t(i)] = cStride;
      aStride *= da;
      bStride *= db;
      cStride *= c[size_t(i)];
    }
    return prepare();
  }
};

}  // namespace

std::unique_ptr<Kernel> makeMatmul(const CallInfo& info) {
  return std::make_unique<MatmulKernel>(info);
}
std::unique_ptr<Kernel> makeDenseLinear(const CallInfo& info) {
  return std::make_unique<DenseLinearKernel>(info, readConfig<LinearConfig>(info.config));
}

}  // namespace lathe::cpu
