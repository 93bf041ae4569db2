// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/region_kernel.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "backends/cpu/lowering/codegen.h"
#include "backends/cuda/hostexec/host_driver.h"
#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

namespace lathe::test {
namespace {

// Bytes whose end is the end of mapped memory, with a marked zone in front.
class Guarded {
 public:
  explicit Guarded(size_t bytes) : bytes_(bytes) {
    size_t page = size_t(sysconf(_SC_PAGESIZE));
    mapped_ = (bytes + kZone + page - 1) / page * page;
    base_ = static_cast<char*>(
        mmap(nullptr, mapped_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) throw std::runtime_error("mmap");
    mprotect(base_ + mapped_, page, PROT_NONE);
    std::memset(base_, kMark, mapped_);
    total_ = mapped_ + page;
  }
  ~Guarded() {
    if (base_) munmap(base_, total_);
  }
  Guarded(Guarded&& o) noexcept
      : bytes_(o.bytes_),
        mapped_(o.mapped_),
        total_(o.total_),
        base_(std::exchange(o.base_, nullptr)) {}
  char* data() { return base_ + mapped_ - bytes_; }
  bool intact() {
    for (size_t i = 1; i <= kZone; ++i)
      if (data()[-std::ptrdiff_t(i)] != kMark) return false;
    return true;
  }

 private:
  static constexpr size_t kZone = 128;
  static constexpr char kMark = 0x5a;
  size_t bytes_, mapped_, total_;
  char* base_;
};

int64_t valueOf(const std::string& text, const Symbols& symbols) {
  return DimExpr::parse(text)->evaluate(symbols).value();
}

// "f32[m, 4]" is short for tensor<?x4xf32, #lathe.dims<m, 4>>.
std::string withTypes(const std::string& text) {
  static const std::regex shorthand(R"(\b(f64|f32|bf16|f16|i64|i32|i16|i8|ui8|i1)\[([^\]]*)\])");
  std::string out;
  auto last = text.begin();
  for (std::sregex_iterator it(text.begin(), text.end(), shorthand), end; it != end; ++it) {
    out.append(last, (*it)[0].first);
    std::string shape, dims = (*it)[2];
    bool named = false;
    std::stringstream list(dims);
    for (std::string d; std::getline(list, d, ',');) {
      d.erase(0, d.find_first_not_of(' '));
      bool number = d.find_first_not_of("0123456789") == std::string::npos;
      named |= !number;
      shape += (number ? d : "?") + "x";
    }
    out += "tensor<" + shape + (*it)[1].str() + (named ? ", #lathe.dims<" + dims + ">" : "") + ">";
    last = (*it)[0].second;
  }
  return out.append(last, text.end());
}

// With all checks, which tell races of two neighbouring bytes where there are none.
cuda::Driver& hostDriver(bool bytes) {
  static auto checked = cuda::openHost({.mode = cuda::host::Mode::Check});
  static auto fast = cuda::openHost(cuda::host::Options{});
  return bytes ? *fast : *checked;
}

}  // namespace

RegionKernelUnderTest::RegionKernelUnderTest(const std::string& text, const RegionTarget& target) {
  mlir::DialectRegistry registry;
  registry.insert<LatheDialect>();
  cpu::registerKernelDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string messages;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& d) {
    messages += d.str() + "\n";
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(withTypes(text), &context);
  if (!module) throw std::runtime_error(messages);
  auto function = *module->getOps<mlir::func::FuncOp>().begin();
  for (mlir::Type t : function.getResultTypes()) {
    auto type = llvm::cast<mlir::RankedTensorType>(t);
    std::vector<std::string> dims;
    for (int64_t i = 0; i < type.getRank(); ++i) dims.push_back(dimExprOf(type, i)->text());
    results_.push_back({*dtypeOf(type.getElementType()), dims});
  }
  if (!target.tier) {
    auto schedules = cuda::schedulesOf(function);
    if (!schedules.empty()) schedule_ = schedules[std::min(target.schedule, schedules.size() - 1)];
    auto printed = cuda::printRegion(function, "region", schedule_);
    if (failed(printed)) throw std::runtime_error(messages);
    printed_ = *printed;
    kernel_.inPlace = printed_.inPlace;
    std::vector<cuda::KernelCode> code;
    for (const cuda::KernelText& k : printed_.kernels)
      code.push_back({.name = k.name, .source = k.source});
    functions_ = hostDriver(writesBytes()).load(code);
    return;
  }
  const cpu::Tier& tier = *target.tier;
  mlir::OwningOpRef<mlir::ModuleOp> kernels =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  auto kernel = cpu::emitRegion(function, tier, *kernels);
  if (failed(kernel)) throw std::runtime_error(messages);
  if (failed(mlir::verify(*kernels))) throw std::runtime_error(messages);
  kernel_ = *kernel;
  std::string bytes = cpu::compileKernels(*kernels, tier).get();
  char name[] = "/tmp/lathe_region_XXXXXX";
  int file = mkstemp(name);
  if (file < 0 || write(file, bytes.data(), bytes.size()) != ssize_t(bytes.size()))
    throw std::runtime_error("cannot write the kernel");
  close(file);
  library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  std::string failure = library_ ? "" : dlerror();
  unlink(name);
  if (!library_) throw std::runtime_error(failure);
  entry_ = dlsym(library_, kernel_.name.c_str());
  if (!entry_) throw std::runtime_error("the kernel is not exported");
}

RegionKernelUnderTest::~RegionKernelUnderTest() {
  if (library_) dlclose(library_);
}

bool RegionKernelUnderTest::writesBytes() const {
  return std::any_of(results_.begin(), results_.end(),
                     [](const auto& r) { return sizeOf(r.first) == 1; });
}

std::vector<Array> RegionKernelUnderTest::run(const std::vector<Array>& operands,
                                              const Symbols& symbols, bool inPlace) {
  return functions_.empty() ? runOnCpu(operands, symbols, inPlace)
                            : runAsCuda(operands, symbols, inPlace);
}

std::vector<Array> RegionKernelUnderTest::runAsCuda(const std::vector<Array>& operands,
                                                    const Symbols& symbols, bool inPlace) {
  cuda::Driver& driver = hostDriver(writesBytes());
  std::vector<void*> buffers;
  auto allocate = [&](size_t bytes, const std::string& name) {
    buffers.push_back(driver.allocate(std::max<size_t>(bytes, 1), name));
    return buffers.back();
  };
  for (const Array& a : operands) {
    void* memory = allocate(a.bytes(), "operand " + std::to_string(buffers.size()));
    if (a.bytes()) driver.upload(memory, a.data(), a.bytes());
  }
  std::vector<Array> results;
  for (auto& [dtype, dims] : results_) {
    Shape shape;
    for (const std::string& d : dims) shape.push_back(valueOf(d, symbols));
    results.emplace_back(dtype, shape);
    allocate(results.back().bytes(), "result " + std::to_string(results.size()));
  }
  std::vector<void*> pointers = buffers;
  if (inPlace)
    for (auto [operand, result] : kernel_.inPlace)
      pointers[operands.size() + result] = pointers[operand];
  auto number = [&](const DimExpr& e) { return e.evaluate(symbols).value(); };
  void* status = allocate(8, "status");
  driver.zero(status, 8);
  void* scratch = allocate(size_t(number(printed_.variants[0].scratchBytes)), "scratch");
  for (size_t i = 0; i < functions_.size(); ++i) {
    const cuda::Launch& l = printed_.variants[0].launches[i];
    cuda::LaunchConfig config;
    std::ranges::copy(cuda::gridOf(l, number), config.grid);
    config.threads = uint32_t(l.threads);
    config.cluster = uint32_t(l.cluster);
    config.sharedBytes = size_t(l.sharedBytes);
    if (config.grid[0] == 0) continue;
    std::vector<int64_t> words(l.arguments.size());
    std::vector<void*> arguments;
    for (size_t a = 0; a < words.size(); ++a) {
      const cuda::Argument& argument = l.arguments[a];
      using Kind = cuda::Argument::Kind;
      words[a] = argument.kind == Kind::Buffer   ? int64_t(pointers[size_t(argument.index)])
                 : argument.kind == Kind::Size   ? number(argument.value)
                 : argument.kind == Kind::Status ? int64_t(status)
                                                 : int64_t(scratch) + number(argument.value);
      arguments.push_back(&words[a]);
    }
    driver.launch(functions_[i], config, arguments.data());
  }
  driver.synchronize();
  driver.download(&status_, status, 8);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].bytes())
      driver.download(results[i].data(), pointers[operands.size() + i], results[i].bytes());
  for (void* memory : buffers) driver.release(memory);
  return results;
}

std::vector<Array> RegionKernelUnderTest::runOnCpu(const std::vector<Array>& operands,
                                                   const Symbols& symbols, bool inPlace) {
  std::vector<Guarded> buffers;
  for (const Array& a : operands) {
    buffers.emplace_back(a.bytes());
    if (a.bytes()) std::memcpy(buffers.back().data(), a.data(), a.bytes());
  }
  std::vector<Array> results;
  std::vector<char*> pointers;
  for (auto& [dtype, dims] : results_) {
    Shape shape;
    for (const std::string& d : dims) shape.push_back(valueOf(d, symbols));
    results.emplace_back(dtype, shape);
    buffers.emplace_back(results.back().bytes());
  }
  for (Guarded& b : buffers) pointers.push_back(b.data());
  if (inPlace)
    for (auto [operand, result] : kernel_.inPlace)
      pointers[operands.size() + result] = pointers[operand];
  std::vector<int64_t> sizes;
  for (const std::string& s : kernel_.sizes) sizes.push_back(valueOf(s, symbols));
  Guarded scratch(size_t(valueOf(kernel_.scratchBytes, symbols)));
  int64_t rows = valueOf(kernel_.rows, symbols);
  status_ = 0;
  using Kernel = void (*)(char* const*, const int64_t*, int64_t, int64_t, char*, int64_t*);
  auto kernel = reinterpret_cast<Kernel>(entry_);
  int64_t third = rows / 3;
  for (auto [begin, end] : {std::pair{int64_t(0), third}, {third, third + 1}, {third + 1, rows}})
    if (begin < rows)
      kernel(pointers.data(), sizes.data(), begin, std::min(end, rows), scratch.data(), &status_);
  for (Guarded& b : buffers) EXPECT_TRUE(b.intact()) << "bytes in front of a buffer were written";
  EXPECT_TRUE(scratch.intact());
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].bytes())
      std::memcpy(results[i].data(), pointers[operands.size() + i], results[i].bytes());
  return results;
}

std::vector<RegionTarget> regionTargets() {
  std::vector<RegionTarget> targets;
  for (const cpu::Tier& tier : cpu::codegenTiers()) {
    bool runs = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (tier.avx512)
      runs = runs && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512dq");
    if (tier.avx512Bf16) runs = runs && __builtin_cpu_supports("avx512bf16");
    if (runs) targets.push_back({tier.name, tier});
  }
  targets.push_back({"cuda", std::nullopt, 0});
  targets.push_back({"cuda_last", std::nullopt, 1000});
  return targets;
}

}  // namespace lathe::test
