// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/calibration.h"
#include "backends/cpu/device/kernels.h"
#include "backends/cpu/device/linear.h"

namespace lathe::cpu {
namespace {

class LinearKernel final : public Kernel {
 public:
  explicit LinearKernel(const CallInfo& info) : pool_(info.pool) {
    calibration();  // now: its buffer would come on top of the weights
    const auto config = readConfig<LinearConfig>(info.config);
    hasBias_ = config.bias;
    hasResidual_ = config.residual;
    spec_.activation = config.activation;
    spec_.weights.dtype = info.in(0);
    spec_.outDType = info.out();
    spec_.hasBias = hasBias_;
    spec_.biasDType = info.in(0);
  }
  size_t bind(const KernelShapes& s) override {
    const Shape& x = s.shapes[0];  // the weight's buffer is padded: its shape says nothing
    spec_.weights.n = s.shapes.back().back();
    spec_.weights.k = x.back();
    args_.m = elementCount(std::span(x).first(x.size() - 1));
    scratchBytes_ = prepareLinear(spec_, pool_.threads());
    return scratchBytes_;
  }
  void run(void* const* p, std::byte* scratch) override {
    args_.a = p[0];
    args_.weights = p[1];
    size_t next = 2;
    args_.bias = hasBias_ ? p[next++] : nullptr;
    args_.residual = hasResidual_ ? p[next++] : nullptr;
    args_.c = p[next];
    linear(spec_, args_, pool_, {scratch, scratchBytes_});
  }

 private:
  ThreadPool& pool_;
  bool hasBias_ = false, hasResidual_ = false;
  LinearSpec spec_;
  LinearArgs args_;
  size_t scratchBytes_ = 0;
};

class PackKernel final : public Kernel {
 public:
  explicit PackKernel(const CallInfo& info)
      : pool_(info.pool), dtype_(info.in(0)), outIn_(readConfig<PackConfig>(info.config).outIn) {}
  size_t bind(const KernelShapes& s) override {
    const Shape& w = s.shapes[0];  // [n, k] or [k, n], or a stack of them
    const int64_t rows = w[w.size() - 2], columns = w.back();
    groups_ = w.size() == 3 ? w[0] : 1;
    shape_ = {dtype_, outIn_ ? columns : rows, outIn_ ? rows : columns};
    return 0;
  }
  void run(void* const* p, std::byte*) override {
    const size_t one = size_t(shape_.k * shape_.n) * sizeOf(dtype_);
    for (int64_t g = 0; g < groups_; ++g)
      packWeights(shape_, static_cast<const std::byte*>(p[0]) + size_t(g) * one, dtype_, outIn_,
                  static_cast<std::byte*>(p[1]) + size_t(g) * shape_.bytes(), pool_,
                  KernelIsa::current());
  }

 private:
  ThreadPool& pool_;
  DType dtype_;
  bool outIn_;
  int64_t groups_ = 1;
  PackedShape shape_;
};

}  // namespace

std::unique_ptr<Kernel> makeLinear(const CallInfo& info) {
  if (readConfig<LinearConfig>(info.config).layout) return makeDenseLinear(info);
  return std::make_unique<LinearKernel>(info);
}
std::unique_ptr<Kernel> makePack(const CallInfo& info) {
  if (!isFloat(info.in(0))) return makeQuantizedPack(info);
  return std::make_unique<PackKernel>(info);
}

}  // namespace lathe::cpu
