// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/tuning_measure.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "backends/cuda/device/driver.h"
#include "backends/cuda/device/program_code.h"
#include "lathe/runtime/array.h"
#include "lathe/runtime/device.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kPool = 1'048'573;  // a prime: rows of a buffer do not repeat one another
constexpr int64_t kMostSets = 256, kMostLaunches = 1024;
constexpr int64_t kCompared = 1 << 16, kPlaces = 64;  // elements of a result, at so many places
constexpr double kLeastGain = 0.02;

// Of a difference, as a share of the value and of the root mean square of all.
double toleranceOf(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 1e-9;
    case DType::F32:
      return 1e-3;
    case DType::F16:
      return 1.0 / 256;
    case DType::BF16:
      return 1.0 / 32;
    default:
      return 0;
  }
}

// Values that fill buffers of one type.
class Pools {
 public:
  explicit Pools(int64_t integers) : integers_(integers) {}
  const Array& of(DType dtype) {
    Array& pool = pools_[dtype];
    if (pool.defined()) return pool;
    pool = Array(dtype, {kPool});
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    const bool isReal = isFloat(dtype);
    for (int64_t i = 0; i < kPool; ++i)
      pool.set(i, isReal ? normal(random) : dtype == DType::Bool ? 1.0 : double(integers_));
    return pool;
  }

 private:
  int64_t integers_;
  std::map<DType, Array> pools_;
};

class Buffers {
 public:
  explicit Buffers(DeviceMemory& memory) : memory_(memory) {}
  ~Buffers() {
    for (void* b : all_) memory_.release(b);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  void* take(size_t bytes) {
    all_.push_back(memory_.allocate(std::max<size_t>(bytes, 256), "an operand of a candidate"));
    return all_.back();
  }

 private:
  DeviceMemory& memory_;
  std::vector<void*> all_;
};

// The program with the kernels of one problem alone: devices load all that there are.
std::shared_ptr<const Program> onlyProblem(const Program& program, const TuningProblem& problem) {
  auto only = std::make_shared<Program>();
  only->backend = program.backend;
  only->symbols = program.symbols;
  only->entries = {program.entry(problem.entry)};
  const KernelTable all = kernelTableOf(program);
  KernelTable table;
  std::set<std::string> launched;
  for (const Call& c : only->entries[0].calls) {
    const auto it = all.find(c.callee);
    if (it == all.end())
      throw Error(ErrorCode::InvalidFile, "the kernel table has no '" + c.callee + "'");
    table.insert(*it);
    for (const Variant& v : it->second)
      for (const Launch& l : v.launches) launched.insert(l.kernel);
  }
  std::vector<KernelCode> codes = kernelCodeOf(program);
  std::erase_if(codes, [&](const KernelCode& k) { return !launched.contains(k.name); });
  storeKernels(*only, table, codes);
  return only;
}

Driver& driverOf(Device& device, const Program& program) {
  auto* driver = dynamic_cast<Driver*>(device.memory());
  if (!driver)
    throw Error(ErrorCode::InvalidFile,
                "candidates of backend '" + program.backend + "'; expected those of cuda");
  return *driver;
}

class Bench {
 public:
  Bench(const Program& program, const TuningProblem& problem, const std::string& device,
        const TuningEffort& effort)
      : program_(onlyProblem(program, problem)),
        entry_(program_->entry(problem.entry)),
        effort_(effort),
        device_(openDevice(program_, {.device = device})),
        driver_(driverOf(*device_, *program_)),
        buffers_(driver_),
        pools_(problem.integers) {
    const Call& call = entry_.calls.at(0);
    slots_ = call.operands;
    slots_.insert(slots_.end(), call.results.begin(), call.results.end());
    operands_ = call.operands.size();
    shapes_.symbols = &problem.symbols;
    int64_t bytes = 0;
    for (int slot : slots_) {
      const Slot& s = entry_.slots[size_t(slot)];
      Shape shape;
      for (const DimExpr& d : s.shape) shape.push_back(d.evaluate(problem.symbols).value());
      bytes += int64_t(lathe::bytesOf(s.dtype, elementCount(shape)));
      shapes_.shapes.push_back(std::move(shape));
    }
    const int64_t sets =
        std::clamp<int64_t>(effort.walkedBytes / std::max<int64_t>(bytes, 1) + 1, 2, kMostSets);
    for (int64_t i = 0; i < sets; ++i) sets_.push_back(newSet());
  }

  std::vector<MeasuredChoice> measure() {
    std::vector<MeasuredChoice> measured;
    for (const Call& call : entry_.calls) {
      MeasuredChoice m;
      bool missing = false;  // a library that is not installed
      try {
        measure(call, m);
      } catch (const Error& e) {
        m.error = e.what();
        missing = e.code() == ErrorCode::Unsupported;
      }
      measured.push_back(std::move(m));
      // Without what the others are compared with, or on a broken device, nothing more is learnt.
      if (reference_.empty() && !missing) break;
    }
    return measured;
  }

 private:
  using Set = std::vector<void*>;

  size_t bytesOf(size_t i) const {
    return lathe::bytesOf(dtypeOf(i), elementCount(shapes_.shapes[i]));
  }
  DType dtypeOf(size_t i) const { return entry_.slots[size_t(slots_[i])].dtype; }

  // Pointers to operands and results; a result in an operand's place shares its buffer.
  Set newSet() {
    std::map<int, void*> places;
    Set set;
    for (size_t i = 0; i < slots_.size(); ++i) {
      int owner = slots_[i];
      while (entry_.slots[size_t(owner)].alias >= 0) owner = entry_.slots[size_t(owner)].alias;
      void*& place = places[owner];
      if (!place) place = buffers_.take(bytesOf(i));
      set.push_back(place);
      if (i < operands_) fill(place, i);
    }
    return set;
  }
  void fill(void* to, size_t i) {
    const Array& pool = pools_.of(dtypeOf(i));
    const size_t bytes = bytesOf(i);
    for (size_t at = 0; at < bytes; at += pool.bytes())
      driver_.upload(static_cast<std::byte*>(to) + at, pool.data(),
                     std::min(pool.bytes(), bytes - at));
  }

  void measure(const Call& call, MeasuredChoice& m) {
    const std::unique_ptr<Kernel> kernel = device_->makeKernel(*program_, entry_, call);
    const size_t scratchBytes = kernel->bind(shapes_);
    Buffers own(driver_);
    auto* scratch = static_cast<std::byte*>(own.take(scratchBytes));
    check(*kernel, scratch, m);
    // One count for all choices, so that what a replay costs by itself is the same share of each.
    if (!launches_) {
      const auto sets = int64_t(sets_.size());
      const double one = std::max(timesOf(*kernel, scratch, sets).median, 1e-7);
      launches_ = std::clamp<int64_t>(int64_t(std::ceil(effort_.secondsPerReplay / one)), sets,
                                      std::max(sets, kMostLaunches));
    }
    const Times times = timesOf(*kernel, scratch, launches_);
    m.microseconds = 1e6 * times.median;
    m.spread = times.spread;
  }

  struct Times {
    double median, spread;  // seconds of one run
  };
  // Of replays with so many runs, after those that warm up.
  Times timesOf(Kernel& kernel, std::byte* scratch, int64_t launches) {
    const auto recorded = driver_.record([&] {
      for (int64_t i = 0; i < launches; ++i)
        kernel.run(sets_[size_t(i) % sets_.size()].data(), scratch);
    });
    std::vector<double> all = driver_.replayTimes(*recorded, effort_.warmUps + effort_.replays);
    device_->finish();
    all.erase(all.begin(), all.begin() + effort_.warmUps);
    std::ranges::sort(all);
    const double median = all[all.size() / 2];
    return {median / double(launches), (all[all.size() * 3 / 4] - all[all.size() / 4]) / median};
  }

  // Runs once on fresh operands and compares with the first choice.
  void check(Kernel& kernel, std::byte* scratch, MeasuredChoice& m) {
    const Set& set = sets_[0];
    for (size_t i = 0; i < operands_; ++i) fill(set[i], i);
    for (size_t i = operands_; i < slots_.size(); ++i)
      if (entry_.slots[size_t(slots_[i])].alias < 0) driver_.zero(set[i], bytesOf(i));
    kernel.run(set.data(), scratch);
    device_->finish();
    std::vector<Array> got;
    for (size_t i = operands_; i < slots_.size(); ++i) got.push_back(sampled(set[i], i));
    if (reference_.empty()) {
      reference_ = std::move(got);
      return;
    }
    for (size_t i = 0; i < got.size(); ++i)
      m.apart = std::max(m.apart, apart(got[i], reference_[i]));
    if (!(m.apart <= 1))
      throw Error(ErrorCode::Numeric, "the result is not that of the first choice");
  }

  // Elements from all over a result.
  Array sampled(const void* from, size_t i) {
    const int64_t count = elementCount(shapes_.shapes[i]), taken = std::min(count, kCompared);
    const int64_t run = (taken + kPlaces - 1) / kPlaces, size = int64_t(sizeOf(dtypeOf(i)));
    Array out(dtypeOf(i), {taken});
    for (int64_t at = 0; at < taken; at += run) {
      const int64_t length = std::min(run, taken - at);
      const int64_t place = int64_t(double(count - taken) * double(at) / double(taken)) + at;
      driver_.download(static_cast<std::byte*>(out.data()) + at * size,
                       static_cast<const std::byte*>(from) + place * size, size_t(length * size));
    }
    return out;
  }

  // A result may be wider than what it was computed in, as f32 logits of a bf16 model.
  double toleranceOfResult(DType dtype) const {
    double tolerance = toleranceOf(dtype);
    if (isFloat(dtype))
      for (size_t i = 0; i < operands_; ++i)
        tolerance = std::max(tolerance, toleranceOf(dtypeOf(i)));
    return tolerance;
  }

  double apart(const Array& a, const Array& b) const {
    const double tolerance = toleranceOfResult(a.dtype());
    double squares = 0, most = 0;
    for (int64_t i = 0; i < b.size(); ++i)
      if (!std::isnan(b.at(i))) squares += b.at(i) * b.at(i);
    const double mean = std::sqrt(squares / double(std::max<int64_t>(b.size(), 1)));
    for (int64_t i = 0; i < b.size(); ++i) {
      const double x = a.at(i), y = b.at(i);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double share = std::abs(x - y) / (tolerance * (std::abs(y) + mean));
      if (!(share <= most)) most = share;  // also what is no number
    }
    return most;
  }

  std::shared_ptr<const Program> program_;
  const EntryPoint& entry_;
  const TuningEffort& effort_;
  std::unique_ptr<Device> device_;
  Driver& driver_;
  Buffers buffers_;
  Pools pools_;
  std::vector<int> slots_;
  size_t operands_ = 0;
  KernelShapes shapes_;
  std::vector<Set> sets_;
  std::vector<Array> reference_;
  int64_t launches_ = 0;  // of a replay
};

}  // namespace

std::vector<TuningProblem> tuningProblemsOf(const Program& program) {
  const auto it = program.metadata.find("tuning");
  if (it == program.metadata.end())
    throw Error(ErrorCode::InvalidFile,
                "the program holds no candidates; `lathe tune` writes one that does");
  std::vector<TuningProblem> problems;
  for (const JsonValue& item : JsonValue::parse(it->second, "tuning").elements()) {
    TuningProblem p;
    p.entry = item.at("entry").asString();
    p.problem = item.at("problem").asString();
    p.version = int(item.at("version").asInt());
    p.integers = item.at("integers").asInt();
    for (const SymbolInfo& s : program.symbols)
      p.symbols[s.name] = item.at("symbols").at(s.name).asInt();
    for (const JsonValue& candidate : item.at("candidates").elements()) {
      p.choices.push_back(candidate.at("choice").asString());
      if (candidate.has("model_us"))
        p.modelMicroseconds.push_back(candidate.at("model_us").asDouble());
    }
    if (program.entry(p.entry).calls.size() != p.choices.size())
      throw Error(ErrorCode::InvalidFile, "entry point '" + p.entry + "' has " +
                                              std::to_string(program.entry(p.entry).calls.size()) +
                                              " calls for " + std::to_string(p.choices.size()) +
                                              " candidates");
    problems.push_back(std::move(p));
  }
  return problems;
}

std::vector<MeasuredChoice> measureChoices(const Program& program, const TuningProblem& problem,
                                           const std::string& device, const TuningEffort& effort) {
  return Bench(program, problem, device, effort).measure();
}

size_t winnerOf(const std::vector<MeasuredChoice>& measured) {
  size_t best = 0;
  for (size_t i = 1; i < measured.size(); ++i) {
    if (!measured[i].error.empty()) continue;
    const double limit =
        best ? measured[best].microseconds : measured[0].microseconds * (1 - kLeastGain);
    if (measured[i].microseconds < limit) best = i;
  }
  return best;
}

}  // namespace lathe::cuda
