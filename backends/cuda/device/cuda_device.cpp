// SPDX-License-Identifier: Apache-2.0
// The run side of the CUDA backend: it launches what the program's kernel table says, on a GPU or
// on this CPU. Everything that depends on the model was decided when the program was compiled.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "backends/cuda/device/attention_call.h"
#include "backends/cuda/device/driver.h"
#include "backends/cuda/device/kernel_table.h"
#include "backends/cuda/device/program_code.h"
#include "backends/cuda/device/rank_gpu.h"
#include "lathe/runtime/device.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/status_word.h"

namespace lathe::cuda {
namespace {

/// Where kernels report an index out of range: a word per call that can meet one, zero if all is
/// well. Device memory that never moves, as recorded launches hold its addresses; read after a run.
class StatusWords {
 public:
  explicit StatusWords(Driver& driver) : driver_(driver) {}
  ~StatusWords() {
    for (void* block : blocks_) driver_.release(block);
  }
  StatusWords(const StatusWords&) = delete;
  StatusWords& operator=(const StatusWords&) = delete;

  /// The number of a word that nobody else has.
  size_t take() {
    auto unused = std::find(used_.begin(), used_.end(), false);
    const size_t number = size_t(unused - used_.begin());
    if (unused == used_.end()) {
      blocks_.push_back(driver_.allocate(kBlock * sizeof(int64_t), "status words"));
      driver_.zero(blocks_.back(), kBlock * sizeof(int64_t));
      used_.resize(used_.size() + kBlock);
      checks_.resize(used_.size());
      values_.resize(used_.size());
    }
    used_[number] = true;
    return number;
  }
  void giveBack(size_t number) { used_[number] = false; }
  /// What the kernels that run next check with the word.
  struct Check {
    std::string where;
    int64_t length = 0;            ///< 0: not known
    std::optional<int64_t> count;  ///< new elements; nothing: one is read
    int64_t block = 0;             ///< elements of a block, where the axis consists of blocks
  };
  void describe(size_t number, Check check) { checks_[number] = std::move(check); }
  void* at(size_t number) const {
    return static_cast<int64_t*>(blocks_[number / kBlock]) + number % kBlock;
  }

  void clear() {
    for (void* block : blocks_) driver_.zero(block, kBlock * sizeof(int64_t));
  }
  void check() {
    for (size_t b = 0; b < blocks_.size(); ++b)
      driver_.download(&values_[b * kBlock], blocks_[b], kBlock * sizeof(int64_t));
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!values_[i]) continue;
      clear();
      const int64_t index = indexOfStatus(values_[i]);
      throw Error(ErrorCode::InvalidArgument, messageOf(checks_[i], std::to_string(index)));
    }
  }

 private:
  static std::string messageOf(const Check& check, const std::string& index) {
    const std::string length = std::to_string(check.length);
    if (check.block) {
      const int64_t last = check.length - check.count.value_or(0);
      return check.where + "position " + index + " with " +
             std::to_string(check.count.value_or(0)) + " new elements is outside of the " +
             std::to_string(check.length / check.block) + " blocks of " +
             std::to_string(check.block) + " that a sequence's table has; " +
             (last < 0 ? "expected fewer new elements"
                       : "expected a position of 0 to " + std::to_string(last)) +
             ", or a table with more entries";
    }
    if (check.count)
      return check.where + "position " + index + " with " + std::to_string(*check.count) +
             " new elements is outside an axis of " + length;
    return check.where + "index " + index + " is outside the axis" +
           (check.length ? " of " + length : "") +
           " that it selects from (a token id or position?)";
  }

  static constexpr size_t kBlock = 512;  // words: one download for most models
  Driver& driver_;
  std::vector<void*> blocks_;
  std::vector<bool> used_;
  std::vector<Check> checks_;
  std::vector<int64_t> values_;
};

std::string at(const Call& call) { return call.origin.empty() ? "" : call.origin + ": "; }

/// One call: the variant that fits the sizes, its grids and arguments.
class CudaKernel final : public Kernel {
 public:
  CudaKernel(Driver& driver, StatusWords& status, bool& begins, void* counters,
             const std::vector<Variant>& variants,
             const std::map<std::string, Driver::Function, std::less<>>& functions,
             const EntryPoint& entry, const Call& call)
      : driver_(driver),
        status_(status),
        begins_(begins),
        counters_(counters),
        variants_(variants),
        functions_(functions),
        call_(call) {
    for (const std::vector<int>& slots : {call.operands, call.results})
      for (int slot : slots) dtypes_.push_back(entry.slots.at(size_t(slot)).dtype);
    size_t most = 0;  // checks of a variant
    for (const Variant& v : variants) {
      size_t checks = 0;
      for (const Launch& l : v.launches) checks += l.checks.size();
      most = std::max(most, checks);
    }
    if (!most) return;
    while (words_.size() < most) words_.push_back(status.take());
    const JsonValue config = JsonValue::parse(call.config, "call config");
    if (auto origins = config.find("origins"))
      for (size_t i = 0; i < origins->size(); ++i) origins_.push_back(origins->at(i).asString());
  }
  ~CudaKernel() override {
    for (size_t word : words_) status_.giveBack(word);
  }

  size_t bind(const KernelShapes& shapes) override {
    const Variant* chosen = nullptr;
    std::string unmet;
    for (const Variant& v : variants_) {
      bool fits = true;
      for (const Condition& c : v.when) {
        const int64_t value = valueOf(c.value, shapes);
        if (c.low <= value && value <= c.high) continue;
        fits = false;
        unmet += (unmet.empty() ? ": " : ", ") + c.value.text() + " is " + std::to_string(value) +
                 ", expected " + (value < c.low ? "at least " : "at most ") +
                 std::to_string(value < c.low ? c.low : c.high);
      }
      if (fits) {
        chosen = &v;
        break;
      }
    }
    if (!chosen)
      throw Error(ErrorCode::Unsupported,
                  at(call_) + "no kernel of '" + call_.callee + "' fits these sizes" + unmet);
    // Scratch buffers lie one behind the other, each from a multiple of 256 bytes.
    std::vector<int64_t> begins{0}, sizes;
    auto after = [&](const DimExpr& bytes) {
      sizes.push_back(valueOf(bytes, shapes));
      begins.push_back(begins.back() + (sizes.back() + 255) / 256 * 256);
    };
    after(chosen->scratchBytes);
    for (const DimExpr& bytes : chosen->temporaries) after(bytes);
    ready_.clear();
    size_t checked = 0;
    for (const Launch& l : chosen->launches) {
      const size_t firstWord = checked;
      for (const IndexCheck& c : l.checks) {
        const bool own = c.op < 0 || size_t(c.op) >= origins_.size();
        StatusWords::Check check{
            own ? at(call_) : origins_[size_t(c.op)] + ": ", valueOf(c.length, shapes), {}};
        if (!(c.count == DimExpr(0))) check.count = valueOf(c.count, shapes);
        check.block = valueOf(c.block, shapes);
        status_.describe(words_[checked++], std::move(check));
      }
      Ready r{&l, functions_.find(l.kernel)->second, {}, {}, true};
      try {
        const auto grid = gridOf(l, [&](const DimExpr& e) { return valueOf(e, shapes); });
        std::ranges::copy(grid, r.config.grid);
        r.some = std::ranges::count(grid, 0u) == 0;
      } catch (const Error& e) {
        throw Error(e.code(), at(call_) + e.what());
      }
      r.config.threads = uint32_t(l.threads);
      r.config.cluster = uint32_t(l.cluster);
      r.config.sharedBytes = size_t(l.sharedBytes);
      for (const Argument& a : l.arguments) {
        const auto i = size_t(a.index);
        switch (a.kind) {
          case Argument::Kind::Buffer:
            r.values.push_back(a.index);
            r.config.extents.push_back(
                int64_t(bytesOf(dtypes_.at(i), elementCount(shapes.shapes.at(i)))));
            break;
          case Argument::Kind::Size:
            r.values.push_back(valueOf(a.value, shapes));
            r.config.extents.push_back(-1);
            break;
          case Argument::Kind::Scratch: {
            const int64_t offset = valueOf(a.value, shapes);
            r.values.push_back(begins.at(i) + offset);
            r.config.extents.push_back(std::max(sizes.at(i) - offset, int64_t(0)));
            break;
          }
          case Argument::Kind::Status:
            r.values.push_back(int64_t(words_.at(firstWord + i)));
            r.config.extents.push_back(sizeof(int64_t));
            break;
          case Argument::Kind::Counters:
            r.values.push_back(0);
            r.config.counters = int(r.config.extents.size());
            r.config.extents.push_back(a.index);
        }
      }
      if (l.matmul) {
        const PlainMatmul& p = *l.matmul;
        r.matmul = LibraryMatmul{.rows = valueOf(p.rows, shapes),
                                 .columns = valueOf(p.columns, shapes),
                                 .depth = valueOf(p.depth, shapes),
                                 .dtype = p.dtype,
                                 .result = p.resultDType.value_or(p.dtype),
                                 .beta = p.residual ? 1.0f : 0.0f,
                                 .rank = p.rank};
        const auto arguments = argumentsOf(p);
        for (size_t i = 0; i < 5; ++i)
          if (arguments[i] && arguments[i]->kind == Argument::Kind::Scratch)
            r.scratchOf[i] =
                begins.at(size_t(arguments[i]->index)) + valueOf(arguments[i]->value, shapes);
      }
      if (l.attention)
        r.attention.emplace(
            *l.attention, [&](const DimExpr& e) { return valueOf(e, shapes); },
            [&](const Argument& a) {
              return begins.at(size_t(a.index)) + valueOf(a.value, shapes);
            });
      ready_.push_back(std::move(r));
    }
    return size_t(begins.back());
  }

  void run(void* const* pointers, std::byte* scratch) override {
    for (Ready& r : ready_) {
      const auto [a, b] = r.launch->unlessSame;
      if (!r.some || (a >= 0 && pointers[a] == pointers[b])) continue;
      const size_t count = r.values.size();
      values_.resize(count);
      arguments_.resize(count);
      for (size_t i = 0; i < count; ++i) {
        using Kind = Argument::Kind;
        const Kind kind = r.launch->arguments[i].kind;
        values_[i] = kind == Kind::Size       ? uint64_t(r.values[i])
                     : kind == Kind::Buffer   ? address(pointers[r.values[i]])
                     : kind == Kind::Scratch  ? address(scratch + r.values[i])
                     : kind == Kind::Counters ? address(counters_)
                                              : address(status_.at(size_t(r.values[i])));
        arguments_[i] = &values_[i];
      }
      const bool isFirst = std::exchange(begins_, false);
      if (r.matmul && driver_.multiply(*r.matmul, operandsOf(r, pointers, scratch))) continue;
      if (r.matmul && r.launch->matmul->required)
        throw Error(ErrorCode::Unsupported,
                    at(call_) + "the product is left to cuBLASLt, which is missing here; " +
                        driver_.matmulsReport());
      if (r.attention && r.attention->some() &&
          driver_.attend(r.attention->attention(), r.attention->operands(pointers, scratch)))
        continue;
      if (r.attention && r.launch->attention->required)
        throw Error(ErrorCode::Unsupported,
                    at(call_) + "the attention is left to cuDNN, which is missing here; " +
                        driver_.attentionReport());
      r.config.overlaps = r.launch->waits && !isFirst;
      driver_.launch(r.function, r.config, arguments_.data());
    }
  }

 private:
  struct Ready {
    const Launch* launch;
    Driver::Function function;
    LaunchConfig config;
    std::vector<int64_t> values;  // by argument: number of the pointer or word, size, offset
    bool some;                    // no axis of the grid is empty
    std::optional<LibraryMatmul> matmul = {};  // that a library is to compute
    int64_t scratchOf[5] = {};                 // of its operands that are scratch memory
    std::optional<AttentionCall> attention = {};
  };

  static std::array<const Argument*, 5> argumentsOf(const PlainMatmul& p) {
    return {&p.x, &p.weight, p.bias ? &*p.bias : nullptr, p.residual ? &*p.residual : nullptr,
            &p.result};
  }
  LibraryOperands operandsOf(const Ready& r, void* const* pointers, std::byte* scratch) const {
    void* found[5] = {};
    const auto arguments = argumentsOf(*r.launch->matmul);
    for (size_t i = 0; i < 5; ++i)
      if (arguments[i])
        found[i] = arguments[i]->kind == Argument::Kind::Buffer ? pointers[arguments[i]->index]
                                                                : scratch + r.scratchOf[i];
    return {found[0], found[1], found[2], found[3], found[4]};
  }

  static uint64_t address(const void* p) { return uint64_t(reinterpret_cast<uintptr_t>(p)); }
  int64_t valueOf(const DimExpr& e, const KernelShapes& shapes) const {
    auto v = e.evaluate(*shapes.symbols);
    if (!v)
      throw Error(ErrorCode::InvalidArgument, at(call_) + "size " + e.text() + " has no value");
    return *v;
  }

  Driver& driver_;
  StatusWords& status_;
  bool& begins_;  // no kernel of the run has been launched yet
  void* counters_;
  const std::vector<Variant>& variants_;
  const std::map<std::string, Driver::Function, std::less<>>& functions_;
  const Call& call_;
  std::vector<DType> dtypes_;         // of operands and results
  std::vector<size_t> words_;         // status words, by check
  std::vector<std::string> origins_;  // of the ops that check an index
  std::vector<Ready> ready_;
  std::vector<uint64_t> values_;
  std::vector<void*> arguments_;
};

/// A dense copy within device memory.
class CopyKernel final : public Kernel {
 public:
  CopyKernel(Driver& driver, DType dtype) : driver_(driver), dtype_(dtype) {}
  size_t bind(const KernelShapes& s) override {
    bytes_ = bytesOf(dtype_, elementCount(s.shapes[0]));
    return 0;
  }
  void run(void* const* pointers, std::byte*) override {
    if (bytes_) driver_.copy(pointers[1], pointers[0], bytes_);
  }

 private:
  Driver& driver_;
  DType dtype_;
  size_t bytes_ = 0;
};

// What a launch refers to exists: buffers of the call, scratch buffers besides number 0, checks.
void checkIndices(const Launch& l, int64_t buffers, int64_t temporaries) {
  auto check = [&](const Argument& a) {
    if (a.kind == Argument::Kind::Status && (a.index < 0 || size_t(a.index) >= l.checks.size()))
      throw Error(ErrorCode::InvalidFile, "kernel '" + l.kernel + "' takes check " +
                                              std::to_string(a.index) + " of " +
                                              std::to_string(l.checks.size()));
    const bool isBuffer = a.kind == Argument::Kind::Buffer;
    if (!isBuffer && a.kind != Argument::Kind::Scratch) return;
    const int64_t end = isBuffer ? buffers : temporaries + 1;
    if (a.index < 0 || a.index >= end)
      throw Error(ErrorCode::InvalidFile,
                  "kernel '" + l.kernel + "' takes " + (isBuffer ? "buffer " : "scratch buffer ") +
                      std::to_string(a.index) + " of a call with " + std::to_string(end));
  };
  for (const Argument& a : l.arguments) check(a);
  if (l.matmul) {
    for (const Argument* a : {&l.matmul->x, &l.matmul->weight, &l.matmul->result}) check(*a);
    if (l.matmul->bias) check(*l.matmul->bias);
    if (l.matmul->residual) check(*l.matmul->residual);
  }
  if (l.attention)
    for (const Argument* a : AttentionCall::argumentsOf(*l.attention)) check(*a);
  if (l.unlessSame[0] >= 0)
    for (int index : l.unlessSame) check({Argument::Kind::Buffer, index, 0});
}

class CudaDevice final : public Device {
 public:
  CudaDevice(const Program& program, std::unique_ptr<Driver> driver,
             const std::shared_ptr<Communicator>& ranks)
      : driver_(std::move(driver)),
        table_(kernelTableOf(program)),
        status_(std::make_unique<StatusWords>(*driver_)) {
    std::vector<KernelCode> codes = kernelCodeOf(program);
    std::vector<Driver::Function> functions = driver_->load(codes);
    for (size_t i = 0; i < codes.size(); ++i) functions_[codes[i].name] = functions[i];
    for (auto& [callee, variants] : table_)
      for (const Variant& v : variants)
        for (const Launch& l : v.launches) {
          if (!functions_.count(l.kernel))
            throw Error(ErrorCode::InvalidFile, "the program has no kernel '" + l.kernel + "'");
          for (const Argument& a : l.arguments)
            if (a.kind == Argument::Kind::Counters)
              counterBytes_ = std::max(counterBytes_, size_t(std::max(a.index, 0)));
        }
    // Kernels follow each other and leave them as they were: one buffer is enough.
    if (counterBytes_) {
      counters_ = driver_->allocate(counterBytes_, "counters");
      driver_->zero(counters_, counterBytes_);
    }
    // At the end: a rank whose kernels cannot be loaded fails before the others wait for it there.
    if (ranks) ranks_ = driver_->join(ranks);
  }
  ~CudaDevice() override {
    recordings_.clear();
    status_.reset();
    if (counters_) driver_->release(counters_);
  }

  DeviceMemory* memory() override { return driver_.get(); }
  Communicator* collectives() override { return ranks_; }

  void start() override {
    // A run that ended in an error was not checked: what it reported is not the next one's.
    if (unchecked_) {
      status_->clear();
      if (counters_) driver_->zero(counters_, counterBytes_);
    }
    unchecked_ = true;
  }

  // The first run of an entry point launches; the second, if nothing moved, is recorded; later
  // ones are one call to the driver.
  void run(const void* entry, bool same, const std::function<void()>& launch) override {
    // What kernels request before they wait may have been written by the run before: the first one
    // of a run begins when that has ended.
    begins_ = true;
    if (!same) {
      recordings_.erase(entry);
      return launch();
    }
    std::unique_ptr<Driver::Recorded>& recorded = recordings_[entry];
    if (!recorded) recorded = driver_->record(launch);
    driver_->replay(*recorded);
  }

  void finish() override {
    driver_->synchronize();
    unchecked_ = false;
    status_->check();
  }

  std::unique_ptr<Kernel> makeKernel(const Program&, const EntryPoint& entry,
                                     const Call& call) override {
    if (call.kind == "copy") {
      if (call.operands.size() != 1 || call.results.size() != 1)
        throw Error(ErrorCode::InvalidFile, "expected 1 operands and 1 results, got " +
                                                std::to_string(call.operands.size()) + " and " +
                                                std::to_string(call.results.size()));
      return std::make_unique<CopyKernel>(*driver_, entry.slots[size_t(call.operands[0])].dtype);
    }
    auto it = table_.find(call.callee);
    if (it == table_.end())
      throw Error(ErrorCode::InvalidFile,
                  "the kernel table has no '" + call.callee + "' for '" + call.kind + "'");
    const int64_t buffers = int64_t(call.operands.size() + call.results.size());
    for (const Variant& v : it->second) {
      if (v.buffers && v.buffers != buffers)
        throw Error(ErrorCode::InvalidFile,
                    "'" + call.callee + "' takes " + std::to_string(v.buffers) +
                        " operands and results, the call gives " + std::to_string(buffers));
      for (const Launch& l : v.launches) checkIndices(l, buffers, int64_t(v.temporaries.size()));
    }
    return std::make_unique<CudaKernel>(*driver_, *status_, begins_, counters_, it->second,
                                        functions_, entry, call);
  }

  std::vector<std::string> report() const override {
    DeviceFacts facts = driver_->facts();
    std::vector<std::string> lines{"device: " + facts.name +
                                   (facts.driver.empty() ? "" : ", " + facts.driver)};
    lines.push_back(std::to_string(functions_.size()) + " kernels");
    if (std::string products = driver_->matmulsReport(); !products.empty())
      lines.push_back(products);
    if (std::string attention = driver_->attentionReport(); !attention.empty())
      lines.push_back(attention);
    if (std::string ranks = driver_->ranksReport(); !ranks.empty()) lines.push_back(ranks);
    return lines;
  }

 private:
  std::unique_ptr<Driver> driver_;
  Communicator* ranks_ = nullptr;  // the driver's; null where one runs the program
  KernelTable table_;
  std::map<std::string, Driver::Function, std::less<>> functions_;
  std::unique_ptr<StatusWords> status_;
  void* counters_ = nullptr;
  size_t counterBytes_ = 0;
  bool unchecked_ = false, begins_ = true;
  std::map<const void*, std::unique_ptr<Driver::Recorded>> recordings_;
};

std::unique_ptr<Driver> openDriver(std::string which, Communicator* ranks) {
  const char* variable = std::getenv("LATHE_CUDA_DEVICE");
  if (which.empty() && variable) which = variable;
  if (which.empty() || which == "gpu") return openGpu(ranks ? placeOnHost(*ranks) : 0);
  if (which == "host") return openHost();
  throw Error(ErrorCode::InvalidArgument,
              "device '" + which + "' is not known; the cuda backend has gpu and host");
}

// Products of 512 rows leave half of a large GPU's multiprocessors without a tile.
constexpr int64_t kPromptRows = 2048;

const bool registered = [] {
  registerDevice(
      "cuda",
      [](std::shared_ptr<const Program> program, const DeviceOptions& options) {
        return std::make_unique<CudaDevice>(
            *program, openDriver(options.device, options.ranks.get()), options.ranks);
      },
      kPromptRows);
  return true;
}();

}  // namespace
}  // namespace lathe::cuda
