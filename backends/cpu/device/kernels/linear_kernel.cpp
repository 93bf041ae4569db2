// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "backends/cpu/device/kernels/kernels.h"
#include "backends/cpu/device/linear.h"
#include "runtime/error.h"

namespace lathe::cpu {
namespace {

LinearActivation activationOf(const std::string& name) {
  static const std::map<std::string, LinearActivation> table{
      {"none", LinearActivation::None},
      {"silu", LinearActivation::Silu},
      {"gelu", LinearActivation::Gelu},
      {"gelu_tanh", LinearActivation::GeluTanh},
      {"relu", LinearActivation::Relu}};
  auto it = table.find(name);
  if (it == table.end())
    throw Error(ErrorCode::InvalidFile, "a linear call has no activation '" + name + "'");
  return it->second;
}

class LinearKernel final : public Kernel {
 public:
  explicit LinearKernel(const CallInfo& info)
      : pool_(info.pool),
        hasBias_(info.config.at("bias").asBool()),
        hasResidual_(info.config.at("residual").asBool()) {
    spec_.weights.dtype = info.in(0);
    spec_.outDType = info.out();
    spec_.hasBias = hasBias_;
    spec_.biasDType = info.in(0);
    spec_.activation = activationOf(info.config.at("activation").asString());
  }
  size_t bind(const KernelShapes& s) override {
    const Shape& x = s.shapes[0];  // the weight's buffer is padded: its shape says nothing
    spec_.weights.n = s.shapes.back().back();
    spec_.weights.k = x.back();
    args_.m = 1;
    for (size_t i = 0; i + 1 < x.size(); ++i) args_.m *= x[i];
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
  bool hasBias_, hasResidual_;
  LinearSpec spec_;
  LinearArgs args_;
  size_t scratchBytes_ = 0;
};

class PackKernel final : public Kernel {
 public:
  explicit PackKernel(const CallInfo& info)
      : pool_(info.pool), dtype_(info.in(0)), outIn_(info.config.at("out_in").asBool()) {}
  size_t bind(const KernelShapes& s) override {
    const Shape& w = s.shapes[0];
    shape_ = {dtype_, w[outIn_ ? 1 : 0], w[outIn_ ? 0 : 1]};
    return 0;
  }
  void run(void* const* p, std::byte*) override {
    packWeights(shape_, p[0], dtype_, outIn_, p[1], pool_);
  }

 private:
  ThreadPool& pool_;
  DType dtype_;
  bool outIn_;
  PackedShape shape_;
};

}  // namespace

std::unique_ptr<Kernel> makeLinear(const CallInfo& info) {
  return std::make_unique<LinearKernel>(info);
}
std::unique_ptr<Kernel> makePack(const CallInfo& info) {
  return std::make_unique<PackKernel>(info);
}

}  // namespace lathe::cpu
