// SPDX-License-Identifier: Apache-2.0
// Layers whose outputs gate each other. Where the gate is not applied beside the products, those
// lie in scratch.
#include "backends/cpu/device/calibration.h"
#include "backends/cpu/device/gated.h"
#include "backends/cpu/device/gated_config.h"
#include "backends/cpu/device/kernels.h"
#include "backends/cpu/device/linear.h"
#include "backends/cpu/device/quantized_linear.h"

namespace lathe::cpu {
namespace {

size_t prepare(const LinearSpec& spec, int threads) { return prepareLinear(spec, threads); }
size_t prepare(const QuantizedLinearSpec& spec, int threads) {
  return prepareQuantizedLinear(spec, threads);
}
void multiply(const LinearSpec& spec, const LinearArgs& args, ThreadPool& pool, Scratch scratch) {
  linear(spec, args, pool, scratch);
}
void multiply(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args, ThreadPool& pool,
              Scratch scratch) {
  quantizedLinear(spec, args, pool, scratch);
}

template <class Spec, class Args>
class GatedKernel : public Kernel {
 public:
  GatedKernel(const CallInfo& info, Activation gate)
      : pool_(info.pool), gate_(gate), dtype_(info.out()) {
    calibration();  // now: its buffer would come on top of the weights
  }
  size_t bind(const KernelShapes& s) override {
    const Shape& x = s.shapes[0];  // the weight's buffer is padded: its shape says nothing
    spec_.weights.n = 2 * s.shapes.back().back();
    spec_.weights.k = x.back();
    args_.m = elementCount(std::span(x).first(x.size() - 1));
    spec_.gate.reset();
    matmulBytes_ = prepare(spec_, pool_.threads());
    if (gatesInside(spec_, args_.m)) spec_.gate = gate_;
    const size_t held = size_t(args_.m * spec_.weights.n) * sizeOf(dtype_);
    return alignUp64(matmulBytes_) + (spec_.gate ? 0 : held);
  }

 protected:
  void runTo(void* c, std::byte* scratch) {
    void* products = scratch + alignUp64(matmulBytes_);
    args_.c = spec_.gate ? c : products;
    multiply(spec_, args_, pool_, {scratch, matmulBytes_});
    if (!spec_.gate) gateProducts(products, args_.m, spec_.weights.n, dtype_, gate_, c, pool_);
  }
  ThreadPool& pool_;
  const Activation gate_;
  const DType dtype_;
  Spec spec_;
  Args args_;
  size_t matmulBytes_ = 0;
};

class GatedLinear final : public GatedKernel<LinearSpec, LinearArgs> {
 public:
  explicit GatedLinear(const CallInfo& info)
      : GatedKernel(info, readConfig<GatedLinearConfig>(info.config).gate) {
    spec_.weights.dtype = info.in(0);
    spec_.outDType = info.out();
  }
  void run(void* const* p, std::byte* scratch) override {
    args_.a = p[0];
    args_.weights = p[1];
    runTo(p[2], scratch);
  }
};

class GatedQuantizedLinear final : public GatedKernel<QuantizedLinearSpec, QuantizedLinearArgs> {
 public:
  explicit GatedQuantizedLinear(const CallInfo& info)
      : GatedKernel(info, readConfig<GatedQuantizedConfig>(info.config).gate) {
    const auto config = readConfig<GatedQuantizedConfig>(info.config);
    spec_.weights.dtype = info.in(1);
    spec_.weights.block = config.block;
    spec_.dtype = info.in(0);
    spec_.outDType = info.out();
    spec_.scaleDType = info.in(2);
    spec_.hasZero = config.zero;
    spec_.quantizesX = config.quantizesX;
  }
  void run(void* const* p, std::byte* scratch) override {
    args_.a = p[0];
    args_.weights = p[1];
    args_.scale = p[2];
    args_.zero = spec_.hasZero ? p[3] : nullptr;
    runTo(p[spec_.hasZero ? 4 : 3], scratch);
  }
};

}  // namespace

std::unique_ptr<Kernel> makeGatedLinear(const CallInfo& info) {
  return std::make_unique<GatedLinear>(info);
}
std::unique_ptr<Kernel> makeGatedQuantizedLinear(const CallInfo& info) {
  return std::make_unique<GatedQuantizedLinear>(info);
}

}  // namespace lathe::cpu
