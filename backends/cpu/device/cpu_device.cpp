// SPDX-License-Identifier: Apache-2.0
// The CPU backend's run side: it turns the calls of a program into kernels.
#include <functional>
#include <map>

#include "backends/cpu/device/kernels/kernels.h"
#include "backends/cpu/device/linear.h"
#include "backends/cpu/device/loaded_code.h"
#include "runtime/error.h"

namespace lathe::cpu {
namespace {

/// Work below this many elements runs on one thread: a fork costs about as much as 16 KiB of
/// copying.
constexpr int64_t kElementsPerFork = 8192;

class RegionKernel final : public Kernel {
 public:
  RegionKernel(const CallInfo& info, std::shared_ptr<const LoadedCode> code)
      : pool_(info.pool),
        where_(at(info.call)),
        code_(std::move(code)),
        region_(code_->region(info.call.callee)) {}

  size_t bind(const KernelShapes& s) override {
    auto value = [&](const DimExpr& e) {
      auto v = e.evaluate(*s.symbols);
      if (!v)
        throw Error(ErrorCode::InvalidArgument, where_ + "size " + e.text() + " has no value");
      return *v;
    };
    sizes_.clear();
    for (const DimExpr& e : region_.sizes) sizes_.push_back(value(e));
    rows_ = value(region_.rows);
    int64_t cost = std::max<int64_t>(value(region_.cost), 1);
    grain_ = std::max<int64_t>(1, kElementsPerFork / cost);
    scratchBytes_ = size_t(value(region_.scratchBytes) + 63) / 64 * 64;
    return scratchBytes_ * size_t(pool_.threads());
  }

  void run(void* const* pointers, std::byte* scratch) override {
    int64_t status = 0;
    auto* p = reinterpret_cast<char* const*>(pointers);
    auto rows = [&](int64_t begin, int64_t end, int worker) {
      int64_t mine = 0;
      region_.run(p, sizes_.data(), begin, end,
                  reinterpret_cast<char*>(scratch + size_t(worker) * scratchBytes_), &mine);
      if (mine) __atomic_store_n(&status, mine, __ATOMIC_RELAXED);
    };
    if (rows_ <= grain_)
      rows(0, rows_, 0);
    else
      pool_.parallelFor(0, rows_, grain_, rows);
    // A kernel reports the index with bit 62 set, so that 0 is no report; negative ones have it.
    if (status)
      throw Error(ErrorCode::InvalidArgument,
                  where_ + "index " +
                      std::to_string(status < 0 ? status : status & ~(int64_t(1) << 62)) +
                      " is outside the axis that it selects from (a token id or position?)");
  }

 private:
  ThreadPool& pool_;
  std::string where_;
  std::shared_ptr<const LoadedCode> code_;
  const RegionCode& region_;
  std::vector<int64_t> sizes_;
  int64_t rows_ = 0, grain_ = 1;
  size_t scratchBytes_ = 0;
};

class CpuDevice final : public Device {
 public:
  CpuDevice(std::shared_ptr<const Program> program, const DeviceOptions& options)
      : program_(std::move(program)),
        code_(std::make_shared<LoadedCode>(*program_)),
        pool_(poolOf(options.threads)) {}

  std::unique_ptr<Kernel> makeKernel(const Program&, const EntryPoint& entry,
                                     const Call& call) override {
    CallInfo info{call, JsonValue::parse(call.config, "call config"), {}, pool_};
    for (auto* slots : {&call.operands, &call.results})
      for (int s : *slots) info.dtypes.push_back(entry.slots[size_t(s)].dtype);
    if (call.kind == "region") return std::make_unique<RegionKernel>(info, code_);
    static const std::map<std::string, std::function<std::unique_ptr<Kernel>(const CallInfo&)>>
        makers{{"linear", makeLinear},           {"pack", makePack},     {"matmul", makeMatmul},
               {"attention", makeAttention},     {"update", makeUpdate}, {"copy", makeCopy},
               {"convolution", makeConvolution}, {"top_k", makeTopK},    {"cumsum", makeCumSum},
               {"random_bits", makeRandomBits}};
    auto it = makers.find(call.kind);
    if (it == makers.end())
      throw Error(ErrorCode::InvalidFile, "the cpu device has no kernel '" + call.kind + "'");
    return it->second(info);
  }

  std::vector<std::string> report() const override {
    std::vector<std::string> lines{"generated code: " +
                                   (code_->tier().empty() ? "none" : code_->tier())};
    for (const PrimitiveInfo& p : primitiveReport())
      lines.push_back("oneDNN " + p.shape + ": " + p.impl + (p.slow ? " (slow)" : ""));
    return lines;
  }

 private:
  static ThreadPool& poolOf(int threads) {
    if (threads < 0)
      throw Error(ErrorCode::InvalidArgument,
                  "threads: expected at least 1, got " + std::to_string(threads));
    return threads > 0 ? ThreadPool::setGlobalThreads(threads) : ThreadPool::global();
  }

  std::shared_ptr<const Program> program_;
  std::shared_ptr<const LoadedCode> code_;
  ThreadPool& pool_;
};

const bool registered = [] {
  registerDevice("cpu", [](std::shared_ptr<const Program> program, const DeviceOptions& options) {
    return std::make_unique<CpuDevice>(std::move(program), options);
  });
  return true;
}();

}  // namespace
}  // namespace lathe::cpu
