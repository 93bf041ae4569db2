// SPDX-License-Identifier: Apache-2.0
#include "tools/selftest/kernels.h"

#include <chrono>
#include <functional>

#include "lathe/frontend/compile.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/sampler.h"
#include "lathe/runtime/session.h"
#include "lathe/runtime/thread_pool.h"

namespace lathe::selftest {
namespace {

constexpr int64_t kRows = 512, kFeatures = 2048, kHidden = 5632;
constexpr int64_t kHeads = 16, kKeyHeads = 4, kHeadSize = 64, kCache = 4096;
constexpr double kScale = 0.125, kEpsilon = 1e-5;
constexpr size_t kLeastRuns = 5, kMostRuns = 30;
constexpr double kEnoughSeconds = 0.5;

struct Case {
  Kernel kernel;
  std::function<Tensor(Graph&)> record;
};

std::string text(const char* name, int64_t value) {
  return std::string(name) + "=" + std::to_string(value);
}

void addLinear(std::vector<Case>& cases, DType d) {
  for (int64_t m : {1, 16, 512})
    cases.push_back(
        {{"lathe.linear", text("M", m) + text(" K", kFeatures) + text(" N", kHidden), d},
         [=](Graph& g) {
           return fused::linear(g.input("x", d, {m, kFeatures}),
                                g.weight("w", d, {kHidden, kFeatures}));
         }});
}

void addAttention(std::vector<Case>& cases, DType d) {
  const std::string heads =
      text(" heads", kHeads) + "/" + std::to_string(kKeyHeads) + text(" head_dim", kHeadSize);
  cases.push_back(
      {{"lathe.attention", "prefill" + text(" queries", kRows) + heads, d}, [=](Graph& g) {
         const Dims keys{1, kKeyHeads, kRows, kHeadSize};
         return fused::attention(g.input("q", d, {1, kHeads, kRows, kHeadSize}),
                                 g.input("k", d, keys), g.input("v", d, keys),
                                 {.scale = kScale, .causal = Causal::top_left});
       }});
  cases.push_back(
      {{"lathe.attention", "decode" + text(" cache", kCache) + heads, d}, [=](Graph& g) {
         const Dims cache{1, kKeyHeads, kCache, kHeadSize};
         return fused::attention(g.input("q", d, {1, kHeads, 1, kHeadSize}), g.input("k", d, cache),
                                 g.input("v", d, cache),
                                 {.positions = g.input("positions", DType::I64, {1}),
                                  .scale = kScale,
                                  .causal = Causal::positions});
       }});
}

void addRowOps(std::vector<Case>& cases, DType d) {
  auto rows = [](int64_t features) {
    return std::to_string(kRows) + " x " + std::to_string(features);
  };
  const Dims x{kRows, kFeatures}, hidden{kRows, kHidden};
  cases.push_back({{"lathe.rms_norm", rows(kFeatures), d}, [=](Graph& g) {
                     return fused::rmsNorm(g.input("x", d, x), g.weight("gain", d, {kFeatures}),
                                           kEpsilon);
                   }});
  cases.push_back({{"lathe.layer_norm", rows(kFeatures), d}, [=](Graph& g) {
                     return fused::layerNorm(g.input("x", d, x), g.weight("gain", d, {kFeatures}),
                                             g.weight("bias", d, {kFeatures}), kEpsilon);
                   }});
  cases.push_back({{"lathe.softmax", rows(kFeatures), d},
                   [=](Graph& g) { return fused::softmax(g.input("x", d, x), -1); }});
  cases.push_back(
      {{"lathe.rope",
        std::to_string(kHeads) + " x " + std::to_string(kRows) + " x " + std::to_string(kHeadSize),
        d},
       [=](Graph& g) {
         const Dims angles{kRows, kHeadSize / 2};
         return fused::rope(g.input("x", d, {1, kHeads, kRows, kHeadSize}),
                            g.input("cos", DType::F32, angles), g.input("sin", DType::F32, angles),
                            Pairing::half);
       }});
  cases.push_back({{"lathe.glu", rows(kHidden), d}, [=](Graph& g) {
                     return fused::glu(g.input("gate", d, hidden), g.input("up", d, hidden));
                   }});
}

const std::vector<Case>& allCases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> cases;
    for (auto add : {addLinear, addAttention, addRowOps})
      for (DType d : {DType::F32, DType::BF16}) add(cases, d);
    return cases;
  }();
  return all;
}

// Floats in [-1, 1); a position is the cache's last one.
Arrays randomInputs(const Program& program) {
  const EntryPoint& entry = program.entry("forward");
  RandomGenerator random(1);
  Arrays inputs;
  for (const Port& port : entry.inputs) {
    const Slot& slot = entry.slots[size_t(port.slot)];
    Shape shape;
    for (const DimExpr& d : slot.shape) shape.push_back(d.asConstant().value());
    Array values(slot.dtype, shape);
    for (int64_t i = 0; i < values.size(); ++i)
      values.set(i, isFloat(slot.dtype) ? 2 * random.uniform() - 1 : double(kCache - 1));
    inputs[port.name] = values;
  }
  return inputs;
}

// Pushes everything else out of the caches.
class Flush {
 public:
  explicit Flush(int64_t bytes) : lines_(size_t(bytes) / sizeof(Line)) {}
  void operator()() {
    ThreadPool::global().parallelFor(0, int64_t(lines_.size()), 1,
                                     [&](int64_t begin, int64_t end, int) {
                                       for (int64_t i = begin; i < end; ++i)
                                         ++lines_[size_t(i)].words[0];
                                     });
  }

 private:
  struct Line {
    uint64_t words[8] = {};
  };
  std::vector<Line> lines_;
};

double secondsOfCalls(const Session& session) {
  double seconds = 0;
  for (const CallProfile& call : session.profile("forward")) seconds += call.seconds;
  return seconds;
}

std::optional<CostValues> workOf(const Program& program) {
  const CallCosts costs = costsOf(program).at("forward");
  CostValues sum;
  for (const std::optional<Cost>& cost : costs) {
    if (!cost) return std::nullopt;
    sum += evaluate(*cost, {});
  }
  return sum;
}

}  // namespace

std::vector<Kernel> kernels() {
  std::vector<Kernel> all;
  for (const Case& c : allCases()) all.push_back(c.kernel);
  return all;
}

Measurement measure(const std::string& backend, size_t kernel, int64_t flushBytes) {
  using Clock = std::chrono::steady_clock;
  Measurement result;
  Graph graph;
  graph.entry("forward");
  graph.output("y", allCases().at(kernel).record(graph));
  std::shared_ptr<const Program> program;
  try {
    program = std::make_shared<Program>(compile(graph, {.backend = backend}));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::Unsupported) throw;
    result.refused = e.what();
    return result;
  }
  Session session(program, {.profile = true});
  session.bindRandomWeights(1);
  const Arrays inputs = randomInputs(*program);
  result.work = workOf(*program);
  session.run("forward", inputs);
  Flush flush(flushBytes);
  const Clock::time_point start = Clock::now();
  auto enough = [&] {
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    return result.seconds.size() >= kMostRuns ||
           (result.seconds.size() >= kLeastRuns && passed > kEnoughSeconds);
  };
  while (!enough()) {
    flush();
    const double before = secondsOfCalls(session);
    session.run("forward", inputs);
    result.seconds.push_back(secondsOfCalls(session) - before);
  }
  return result;
}

}  // namespace lathe::selftest
