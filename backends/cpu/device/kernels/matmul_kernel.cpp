// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/kernels.h"
#include "backends/cpu/device/matmul.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

class MatmulKernel final : public Kernel {
 public:
  explicit MatmulKernel(const CallInfo& info) : pool_(info.pool), where_(at(info.call)) {
    transposeB_ = readConfig<MatmulConfig>(info.config).transposeB;
    args_.dtype = info.in(0);
    args_.outDType = info.out();
  }
  size_t bind(const KernelShapes& s) override {
    Shape a = s.shapes[0], b = s.shapes[1], c = s.shapes[2];
    if (transposeB_) std::swap(b[b.size() - 1], b[b.size() - 2]);
    args_.m = c[c.size() - 2];
    args_.n = c.back();
    args_.k = a.back();
    args_.aRowStride = args_.k;
    args_.aColStride = 1;
    args_.bRowStride = transposeB_ ? 1 : args_.n;
    args_.bColStride = transposeB_ ? args_.k : 1;
    args_.cRowStride = args_.n;
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
    scratchBytes_ = matmulScratchBytes(args_, pool_.threads());
    return scratchBytes_;
  }
  void run(void* const* p, std::byte* scratch) override {
    args_.a = p[0];
    args_.b = p[1];
    args_.c = p[2];
    matmul(args_, pool_, {scratch, scratchBytes_});
  }

 private:
  ThreadPool& pool_;
  std::string where_;
  bool transposeB_ = false;
  MatmulArgs args_;
  size_t scratchBytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> makeMatmul(const CallInfo& info) {
  return std::make_unique<MatmulKernel>(info);
}

}  // namespace lathe::cpu
