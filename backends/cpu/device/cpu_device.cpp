// SPDX-License-Identifier: Apache-2.0
// The CPU backend's run side: it turns the calls of a program into kernels.
#include <map>

#include "backends/cpu/device/gated_config.h"
#include "backends/cpu/device/kernels.h"
#include "backends/cpu/device/linear.h"
#include "backends/cpu/device/loaded_code.h"
#include "lathe/runtime/error.h"
#include "runtime/status_word.h"

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
    if (status)
      throw Error(ErrorCode::InvalidArgument,
                  where_ + "index " + std::to_string(indexOfStatus(status)) +
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

std::unique_ptr<Kernel> makeRegion(const CallInfo& info, std::shared_ptr<const LoadedCode> code) {
  const int64_t wanted = code->region(info.call.callee).buffers;
  const auto buffers = int64_t(info.dtypes.size());
  if (buffers != wanted)
    throw Error(ErrorCode::InvalidFile,
                "region '" + info.call.callee + "' takes " + std::to_string(wanted) +
                    " operands and results, the call gives " + std::to_string(buffers));
  return std::make_unique<RegionKernel>(info, std::move(code));
}

/// Calls of one kind: what makes their kernel, and the operands and results that it takes.
struct Family {
  std::unique_ptr<Kernel> (*make)(const CallInfo&);
  size_t operands, results;
  /// Operands that the config tells of, beyond those.
  size_t (*more)(const JsonValue& config) = [](const JsonValue&) { return size_t(0); };
};

const Family* familyOf(const std::string& kind) {
  static const std::map<std::string, Family, std::less<>> families{
      {"linear",
       {makeLinear, 2, 1,
        [](const JsonValue& json) {
          const auto c = readConfig<LinearConfig>(json);
          return size_t(c.bias) + size_t(c.residual);
        }}},
      {"quantized_linear",
       {makeQuantizedLinear, 3, 1,
        [](const JsonValue& json) {
          const auto c = readConfig<QuantizedLinearConfig>(json);
          return size_t(c.zero) + size_t(c.bias) + size_t(c.residual);
        }}},
      {std::string(kGatedLinear), {makeGatedLinear, 2, 1}},
      {std::string(kGatedQuantizedLinear),
       {makeGatedQuantizedLinear, 3, 1,
        [](const JsonValue& json) { return size_t(readConfig<GatedQuantizedConfig>(json).zero); }}},
      {"grouped_linear", {makeGroupedLinear, 3, 1}},
      {"cast", {makePackedCast, 1, 1}},
      {"attention",
       {makeAttention, 3, 1,
        [](const JsonValue& json) {
          const auto c = readConfig<AttentionConfig>(json);
          return size_t(c.mask) + size_t(c.causal == Causal::positions);
        }}},
      {"paged_attention",
       {makePagedAttention, 5, 1,
        [](const JsonValue& json) { return size_t(readConfig<AttentionConfig>(json).mask); }}},
      {"pack", {makePack, 1, 1}},
      {"matmul", {makeMatmul, 2, 1}},
      {"update", {makeUpdate, 3, 1}},
      {"paged_update", {makePagedUpdate, 4, 1}},
      {"copy", {makeCopy, 1, 1}},
      {"convolution", {makeConvolution, 2, 1}},
      {"top_k", {makeTopK, 1, 2}},
      {"cumsum", {makeCumSum, 1, 1}},
      {"random_bits", {makeRandomBits, 1, 1}}};
  auto it = families.find(kind);
  return it == families.end() ? nullptr : &it->second;
}

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
    if (call.kind == "region") return makeRegion(info, code_);
    const Family* family = familyOf(call.kind);
    if (!family)
      throw Error(ErrorCode::InvalidFile, "the cpu device has no kernel '" + call.kind + "'");
    const size_t operands = family->operands + family->more(info.config);
    if (call.operands.size() != operands || call.results.size() != family->results)
      throw Error(ErrorCode::InvalidFile, "expected " + std::to_string(operands) +
                                              " operands and " + std::to_string(family->results) +
                                              " results, got " +
                                              std::to_string(call.operands.size()) + " and " +
                                              std::to_string(call.results.size()));
    return family->make(info);
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
