// SPDX-License-Identifier: Apache-2.0
// Weights in few bits: layers on them, their packing, and two elements a byte as bytes and back.
#include "backends/cpu/device/calibration.h"
#include "backends/cpu/device/kernels.h"
#include "backends/cpu/device/quantized_linear.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

class QuantizedLinearKernel final : public Kernel {
 public:
  explicit QuantizedLinearKernel(const CallInfo& info)
      : pool_(info.pool), config_(readConfig<QuantizedLinearConfig>(info.config)) {
    calibration();  // now: its buffer would come on top of the weights
    spec_.weights.dtype = info.in(1);
    spec_.weights.block = config_.block;
    spec_.dtype = info.in(0);
    spec_.outDType = info.out();
    spec_.scaleDType = info.in(2);
    spec_.hasZero = config_.zero;
    spec_.activation = config_.activation;
    spec_.quantizesX = config_.quantizesX;
  }
  size_t bind(const KernelShapes& s) override {
    const Shape& x = s.shapes[0];  // the weight's buffer is padded: its shape says nothing
    spec_.weights.n = s.shapes.back().back();
    spec_.weights.k = x.back();
    args_.m = elementCount(std::span(x).first(x.size() - 1));
    scratchBytes_ = prepareQuantizedLinear(spec_, pool_.threads());
    return scratchBytes_;
  }
  void run(void* const* p, std::byte* scratch) override {
    args_.a = p[0];
    args_.weights = p[1];
    args_.scale = p[2];
    size_t next = 3;
    args_.zero = config_.zero ? p[next++] : nullptr;
    args_.bias = config_.bias ? p[next++] : nullptr;
    args_.residual = config_.residual ? p[next++] : nullptr;
    args_.c = p[next];
    quantizedLinear(spec_, args_, pool_, {scratch, scratchBytes_});
  }

 private:
  ThreadPool& pool_;
  QuantizedLinearConfig config_;
  QuantizedLinearSpec spec_;
  QuantizedLinearArgs args_;
  size_t scratchBytes_ = 0;
};

class PackQuantizedKernel final : public Kernel {
 public:
  explicit PackQuantizedKernel(const CallInfo& info) : pool_(info.pool) {
    shape_.dtype = info.in(0);
    if (!readConfig<PackConfig>(info.config).outIn)
      throw Error(ErrorCode::InvalidFile,
                  at(info.call) + "quantized weights are packed from [n, k]");
  }
  size_t bind(const KernelShapes& s) override {
    shape_.n = s.shapes[0][0];
    // Where blocks end does not matter here.
    shape_.k = shape_.block = std::max<int64_t>(s.shapes[0][1], 1);
    return 0;
  }
  void run(void* const* p, std::byte*) override { packQuantized(shape_, p[0], p[1], pool_); }

 private:
  ThreadPool& pool_;
  QuantizedShape shape_;
};

class PackedCastKernel final : public Kernel {
 public:
  explicit PackedCastKernel(const CallInfo& info)
      : pool_(info.pool), where_(at(info.call)), from_(info.in(0)), to_(info.out()) {
    auto isByte = [](DType d) { return d == DType::I8 || d == DType::U8; };
    if (!(isPacked(from_) && isByte(to_)) && !(isByte(from_) && isPacked(to_)))
      throw Error(ErrorCode::InvalidFile,
                  where_ + "expected a cast between 4 bits and bytes, got " +
                      std::string(nameOf(from_)) + " to " + std::string(nameOf(to_)));
  }
  size_t bind(const KernelShapes& s) override {
    count_ = elementCount(s.shapes[0]);
    return 0;
  }
  void run(void* const* p, std::byte*) override {
    const auto* from = static_cast<const uint8_t*>(p[0]);
    auto* to = static_cast<uint8_t*>(p[1]);
    constexpr int64_t kGrain = 1 << 14;  // bytes of packed elements that repay a fork
    // By whole bytes of packed elements; the last may hold one alone.
    pool_.parallelFor(0, (count_ + 1) / 2, kGrain, [&](int64_t begin, int64_t end, int) {
      isPacked(from_) ? unpack(from, to, begin, end) : pack(from, to, begin, end);
    });
  }

 private:
  void pack(const uint8_t* from, uint8_t* to, int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      const int high = 2 * i + 1 < count_ ? from[2 * i + 1] : 0;
      to[i] = uint8_t((from[2 * i] & 15) | high << 4);
    }
  }
  void unpack(const uint8_t* from, uint8_t* to, int64_t begin, int64_t end) const {
    auto widened = [&](int bits) {
      return from_ == DType::I4 ? uint8_t(int8_t(bits << 4) >> 4) : uint8_t(bits & 15);
    };
    for (int64_t i = begin; i < end; ++i) {
      to[2 * i] = widened(from[i]);
      if (2 * i + 1 < count_) to[2 * i + 1] = widened(from[i] >> 4);
    }
  }

  ThreadPool& pool_;
  std::string where_;
  DType from_, to_;
  int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> makeQuantizedLinear(const CallInfo& info) {
  return std::make_unique<QuantizedLinearKernel>(info);
}
std::unique_ptr<Kernel> makeQuantizedPack(const CallInfo& info) {
  return std::make_unique<PackQuantizedKernel>(info);
}
std::unique_ptr<Kernel> makePackedCast(const CallInfo& info) {
  return std::make_unique<PackedCastKernel>(info);
}

}  // namespace lathe::cpu
