// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.h"

#include <atomic>
#include <thread>

#include "runtime/bound_weights.h"
#include "runtime/error.h"
#include "runtime/executor.h"
#include "runtime/mapped_file.h"

namespace lathe {

struct Session::Impl {
  std::shared_ptr<const Program> program;
  std::unique_ptr<Device> device;
  BoundWeights weights;
  bool haveWeights = false;
  std::vector<Array> states;
  SymbolValues fixed;
  std::vector<std::unique_ptr<Executor>> executors;
  GrowingBuffer arena, scratch;
  std::atomic<bool> running{false};
  std::vector<Array> ordered;  // inputs of the named form, by position

  // A session belongs to one thread at a time: a second caller is told, not raced.
  struct Turn {
    explicit Turn(std::atomic<bool>& flag) : flag(flag) {
      if (flag.exchange(true))
        throw Error(ErrorCode::InvalidArgument,
                    "the session is running in another thread; use one session per thread");
    }
    ~Turn() { flag = false; }
    std::atomic<bool>& flag;
  };

  bool isRaw(const Slot& s) const {
    return s.kind == SlotKind::Weight && size_t(s.index) < weights.raw.size();
  }
  // The checkpoint's weights by the call of `load` that reads them last.
  std::vector<std::vector<size_t>> lastReads() const {
    const EntryPoint& load = *program->load;
    std::vector<int> last(weights.raw.size(), -1);
    for (size_t c = 0; c < load.calls.size(); ++c)
      for (int operand : load.calls[c].operands) {
        const Slot& s = load.slots[size_t(ownerOf(load, operand))];
        if (isRaw(s)) last[size_t(s.index)] = int(c);
      }
    std::vector<std::vector<size_t>> byCall(load.calls.size());
    for (size_t w = 0; w < last.size(); ++w)
      if (last[w] >= 0) byCall[size_t(last[w])].push_back(w);
    return byCall;
  }
  std::vector<bool> readByEntries() const {
    std::vector<bool> read(weights.raw.size());
    for (const EntryPoint& e : program->entries)
      for (const Slot& s : e.slots)
        if (isRaw(s)) read[size_t(s.index)] = true;
    return read;
  }

  void load() {
    haveWeights = false;
    weights.derived.clear();
    DeviceMemory* memory = device->memory();
    if (memory)
      for (size_t w = 0; w < weights.raw.size(); ++w) {
        const Array& host = weights.raw[w];
        Array there = copyTo(memory, host, program->weights[w].name);
        releaseFilePages(host.data(), host.bytes());
        weights.raw[w] = std::move(there);
      }
    if (program->load) {
      Executor load(*program, *program->load, *device, false);
      load.bind({}, {});
      // What was packed or merged is not needed twice: its memory goes back at once. Of a table
      // that is read by rows as well, those come back when they are asked for.
      auto reads = lastReads();
      auto kept = readByEntries();
      load.afterEachCall([&](size_t call) {
        for (size_t w : reads[call]) {
          if (!memory) releaseFilePages(weights.raw[w].data(), weights.raw[w].bytes());
          if (!kept[w]) weights.raw[w] = Array();
        }
      });
      load.run({}, weights, states, arena, scratch, weights.derived, true);
    }
    haveWeights = true;
  }

  void resetStates() {
    for (Array& a : states) a = Array();
  }

  void prepareStates(const Executor& executor) {
    for (const Port& port : executor.entry().statesIn) {
      for (size_t i = 0; i < program->states.size(); ++i) {
        const TensorInfo& info = program->states[i];
        if (info.name != port.name) continue;
        Shape shape;
        for (const DimExpr& d : info.shape) shape.push_back(d.evaluate(executor.symbols()).value());
        if (states[i].defined() && states[i].shape() != shape)
          throw Error(ErrorCode::InvalidArgument,
                      "state '" + info.name + "' holds " + describe(info.dtype, states[i].shape()) +
                          ", this run needs " + describe(info.dtype, shape) +
                          "; call resetStates() before a run with other sizes");
        if (!states[i].defined()) {
          states[i] = arrayOn(device->memory(), info.dtype, shape, info.name);
          noteAllocation();
        }
      }
    }
  }
};

Session::Session(std::shared_ptr<const Program> program, const SessionOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->program = std::move(program);
  impl_->device = openDevice(impl_->program, {options.threads, options.device});
  impl_->states.resize(impl_->program->states.size());
  for (const EntryPoint& e : impl_->program->entries)
    impl_->executors.push_back(
        std::make_unique<Executor>(*impl_->program, e, *impl_->device, options.profile));
  if (impl_->program->weights.empty()) impl_->load();
}
Session::Session(Program program, const SessionOptions& options)
    : Session(std::make_shared<const Program>(std::move(program)), options) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

void Session::bindWeights(const WeightSource& source) {
  Impl::Turn turn(impl_->running);
  impl_->weights.raw = fetchWeights(*impl_->program, source);
  impl_->load();
}
void Session::bindWeights(const Arrays& weights) {
  std::string extra;
  for (auto& [name, array] : weights) {
    bool known = false;
    for (const TensorInfo& info : impl_->program->weights) known |= info.name == name;
    if (!known) extra += (extra.empty() ? "" : ", ") + name;
  }
  if (!extra.empty())
    throw Error(ErrorCode::InvalidArgument, "the program has no weights named " + extra);
  bindWeights([&](const std::string& name) {
    auto it = weights.find(name);
    return it == weights.end() ? Array() : it->second;
  });
}
void Session::bindRandomWeights(uint64_t seed) {
  bindWeights([&](const std::string& name) {
    for (const TensorInfo& info : impl_->program->weights)
      if (info.name == name) return randomWeight(info, seed);
    return Array();
  });
}

size_t Session::entryIndex(std::string_view name) const {
  return size_t(&impl_->program->entry(name) - impl_->program->entries.data());
}

void Session::run(size_t entry, std::span<const Array> inputs, std::vector<Array>& outputs) {
  Impl::Turn turn(impl_->running);
  if (!impl_->haveWeights)
    throw Error(ErrorCode::InvalidArgument,
                "the program has weights; call bindWeights before the first run");
  Executor& executor = *impl_->executors.at(entry);
  executor.bind(inputs, impl_->fixed);
  impl_->prepareStates(executor);
  executor.run(inputs, impl_->weights, impl_->states, impl_->arena, impl_->scratch, outputs);
}

Arrays Session::run(std::string_view name, const Arrays& inputs) {
  size_t index = entryIndex(name);
  const EntryPoint& entry = impl_->program->entries[index];
  std::vector<Array> ordered, outputs;
  std::string expected;
  for (const Port& port : entry.inputs) expected += (expected.empty() ? "" : ", ") + port.name;
  for (const Port& port : entry.inputs) {
    auto it = inputs.find(port.name);
    if (it == inputs.end())
      throw Error(ErrorCode::InvalidArgument, "entry point '" + entry.name + "': input '" +
                                                  port.name + "' is missing; it takes " + expected);
    ordered.push_back(it->second);
  }
  if (inputs.size() != ordered.size())
    for (auto& [given, array] : inputs) {
      bool known = false;
      for (const Port& port : entry.inputs) known |= port.name == given;
      if (!known)
        throw Error(ErrorCode::InvalidArgument, "entry point '" + entry.name + "' has no input '" +
                                                    given + "'; it takes " + expected);
    }
  run(index, ordered, outputs);
  Arrays named;
  for (size_t i = 0; i < outputs.size(); ++i) named[entry.outputs[i].name] = outputs[i];
  return named;
}

void Session::setSymbol(std::string_view name, int64_t value) {
  for (const SymbolInfo& s : impl_->program->symbols) {
    if (s.name != name) continue;
    if (value < s.lo || value > s.hi || value % s.multiple)
      throw Error(ErrorCode::InvalidArgument, "'" + s.name + "' = " + std::to_string(value) +
                                                  " is outside its range " + std::to_string(s.lo) +
                                                  " to " + std::to_string(s.hi));
    Impl::Turn turn(impl_->running);
    impl_->fixed[s.name] = value;
    impl_->resetStates();
    return;
  }
  throw Error(ErrorCode::InvalidArgument, "the program has no symbol '" + std::string(name) + "'");
}

void Session::resetStates() {
  Impl::Turn turn(impl_->running);
  impl_->resetStates();
}

Array Session::state(std::string_view name) const {
  for (size_t i = 0; i < impl_->states.size(); ++i)
    if (impl_->program->states[i].name == name)
      return impl_->states[i].defined() ? copyToHost(impl_->device->memory(), impl_->states[i])
                                        : Array();
  throw Error(ErrorCode::InvalidArgument, "the program has no state '" + std::string(name) + "'");
}

Session::Memory Session::memory() const {
  Memory m;
  m.arena = impl_->arena.bytes();
  m.scratch = impl_->scratch.bytes();
  for (const Array& a : impl_->states)
    if (a.defined()) m.states += int64_t(a.bytes());
  for (const Array& a : impl_->weights.derived) m.derived += int64_t(a.bytes());
  return m;
}

uint64_t Session::allocations() { return allocationCount(); }
const Program& Session::program() const { return *impl_->program; }
Device& Session::device() { return *impl_->device; }
std::vector<CallProfile> Session::profile(std::string_view entry) const {
  return impl_->executors[entryIndex(entry)]->profile();
}

}  // namespace lathe
