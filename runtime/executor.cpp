// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>

#include "lathe/runtime/error.h"
#include "runtime/bound_weights.h"
#include "runtime/collective_kernels.h"
#include "runtime/mapped_file.h"
#include "runtime/session_states.h"

namespace lathe {
namespace {
std::atomic<uint64_t> allocations{0};

std::string describeSymbolic(DType dtype, const SymbolicShape& shape) {
  std::string s = std::string(nameOf(dtype)) + "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + shape[i].text();
  return s + "]";
}
}  // namespace

void noteAllocation() { ++allocations; }
uint64_t allocationCount() { return allocations; }

std::byte* GrowingBuffer::reserve(int64_t bytes, DeviceMemory* memory) {
  if (bytes > bytes_) {
    int64_t rounded = (bytes + 4095) / 4096 * 4096;
    if (memory) {
      data_.reset();
      bytes_ = 0;
      data_ = {memory->allocate(size_t(rounded), "arena"), [=](void* p) { memory->release(p); }};
    } else {
      void* fresh = std::aligned_alloc(4096, size_t(rounded));
      if (!fresh)
        throw Error(ErrorCode::OutOfMemory,
                    "no memory for an arena of " + std::to_string(bytes) + " bytes");
      data_ = {fresh, [](void* p) { std::free(p); }};
    }
    noteAllocation();
    bytes_ = rounded;
  }
  return static_cast<std::byte*>(data_.get());
}

static Array allocateOn(DeviceMemory* memory, DType dtype, Shape shape, std::string_view name) {
  const size_t bytes = bytesOf(dtype, elementCount(shape));
  std::shared_ptr<void> owner(memory->allocate(bytes, name), [=](void* p) { memory->release(p); });
  void* data = owner.get();
  return Array(dtype, std::move(shape), data, std::move(owner));
}

Array arrayOn(DeviceMemory* memory, DType dtype, Shape shape, std::string_view name) {
  if (!memory) return Array(dtype, std::move(shape));
  Array a = allocateOn(memory, dtype, std::move(shape), name);
  if (a.bytes()) memory->zero(a.data(), a.bytes());
  return a;
}

Array copyTo(DeviceMemory* memory, const Array& array, std::string_view name) {
  if (!memory) return array;
  Array a = allocateOn(memory, array.dtype(), array.shape(), name);
  if (a.bytes()) memory->upload(a.data(), array.data(), a.bytes());
  return a;
}

Array copyToHost(DeviceMemory* memory, const Array& array) {
  if (!memory) return array.clone();
  Array a(array.dtype(), array.shape());
  if (a.bytes()) memory->download(a.data(), array.data(), a.bytes());
  return a;
}

Executor::Executor(const Program& program, const EntryPoint& entry, Device& device, bool profile,
                   Communicator* ranks)
    : device_(device),
      memory_(device.memory()),
      ranks_(ranks),
      program_(program),
      entry_(entry),
      timed_(profile) {
  Communicator* joins = memory_ ? device.collectives() : ranks;
  if (ranks && !joins)
    throw Error(ErrorCode::Unsupported, "the device of backend '" + program.backend +
                                            "' cannot join what ranks hold in its memory");
  for (const Call& call : entry.calls) {
    try {
      auto collective = makeCollective(program, entry, call, joins, memory_);
      isCollective_.push_back(collective != nullptr);
      isOfOutputs_.push_back(isMessageOfOutputs(call));
      kernels_.push_back(collective ? std::move(collective)
                                    : device.makeKernel(program, entry, call));
    } catch (const Error& e) {
      throw Error(e.code(), "call " + std::to_string(kernels_.size()) + " of entry point '" +
                                entry.name + "', '" + call.kind + "': " + e.what());
    }
    profile_.push_back({call.callee.empty() ? call.kind : call.callee, call.origin, 0, 0});
  }
  for (size_t i = 0; i < entry.slots.size(); ++i) owners_.push_back(ownerOf(entry, int(i)));
  values_.assign(program.symbols.size(), -1);
  shapes_.resize(entry.slots.size());
  bytes_.resize(entry.slots.size());
  pointers_.resize(entry.slots.size());
  size_t most = 0;
  for (const Call& c : entry.calls) most = std::max(most, c.operands.size() + c.results.size());
  callPointers_.resize(most);
  results_.resize(entry.outputs.size());
  kept_.resize(entry.outputs.size());
  inputs_.resize(entry.inputs.size());
  constants_.resize(program.constants.size());
  for (const Slot& s : entry.slots)
    if (s.kind == SlotKind::Constant && !constants_[size_t(s.index)].defined())
      constants_[size_t(s.index)] = copyTo(memory_, program.constants[size_t(s.index)], "constant");
}

void Executor::reject(size_t input, const Array& got, const std::string& why) const {
  const Port& port = entry_.inputs[input];
  const Slot& slot = entry_.slots[size_t(port.slot)];
  throw Error(ErrorCode::InvalidArgument, "input '" + port.name + "' of entry point '" +
                                              entry_.name + "': expected " +
                                              describeSymbolic(slot.dtype, slot.shape) + ", got " +
                                              describe(got.dtype(), got.shape()) + "; " + why);
}

void Executor::bindSymbols(std::span<const Array> inputs, const SymbolValues& fixed,
                           const SessionStates* states) {
  std::fill(values_.begin(), values_.end(), -1);
  auto indexOf = [&](const DimExpr& d) -> int {
    if (d.terms().size() != 1) return -1;
    auto& [monomial, coefficient] = *d.terms().begin();
    if (coefficient != 1 || monomial.size() != 1) return -1;
    for (size_t s = 0; s < program_.symbols.size(); ++s)
      if (program_.symbols[s].name == monomial[0]) return int(s);
    return -1;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Slot& slot = entry_.slots[size_t(entry_.inputs[i].slot)];
    const Array& a = inputs[i];
    if (!a.defined()) reject(i, a, "it is missing");
    if (a.dtype() != slot.dtype) reject(i, a, "convert it first, in C++ with Array::to");
    if (a.shape().size() != slot.shape.size()) reject(i, a, "the ranks differ");
    for (size_t axis = 0; axis < slot.shape.size(); ++axis) {
      int s = indexOf(slot.shape[axis]);
      if (s < 0) continue;
      int64_t& value = values_[size_t(s)];
      if (value >= 0 && value != a.shape()[axis])
        reject(i, a,
               "'" + program_.symbols[size_t(s)].name + "' is " + std::to_string(value) +
                   " in another input");
      value = a.shape()[axis];
    }
  }
  // Where no input tells, a state that is there does.
  auto held = [&](size_t s) { return states ? states->sizeOf(s) : std::nullopt; };
  for (size_t s = 0; s < values_.size(); ++s) {
    const SymbolInfo& symbol = program_.symbols[s];
    if (values_[s] < 0) {
      auto it = fixed.find(symbol.name);
      values_[s] = it == fixed.end() ? held(s).value_or(symbol.lo) : it->second;
    }
    if (values_[s] < symbol.lo || values_[s] > symbol.hi || values_[s] % symbol.multiple)
      throw Error(
          ErrorCode::InvalidArgument,
          "'" + symbol.name + "' = " + std::to_string(values_[s]) + " is outside its range " +
              std::to_string(symbol.lo) + " to " + std::to_string(symbol.hi) +
              (symbol.multiple > 1 ? ", multiples of " + std::to_string(symbol.multiple) : "") +
              " in entry point '" + entry_.name + "'");
  }
}

void Executor::bind(std::span<const Array> inputs, const SymbolValues& fixed,
                    const SessionStates* states) {
  if (inputs.size() != entry_.inputs.size())
    throw Error(ErrorCode::InvalidArgument, "entry point '" + entry_.name + "' takes " +
                                                std::to_string(entry_.inputs.size()) +
                                                " inputs, got " + std::to_string(inputs.size()));
  bindSymbols(inputs, fixed, states);
  if (!bound_ || values_ != last_) {
    bound_ = false;
    plan();
    last_ = values_;
    bound_ = true;
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].shape() != shapes_[size_t(entry_.inputs[i].slot)])
      reject(i, inputs[i],
             "with the symbols so far it would be " +
                 describe(inputs[i].dtype(), shapes_[size_t(entry_.inputs[i].slot)]) +
                 symbolsWithoutValue(i, fixed));
}

std::string Executor::symbolsWithoutValue(size_t input, const SymbolValues& fixed) const {
  std::string text;
  // A size that a run sets itself stands for the symbols that it is of.
  std::vector<std::string> names;
  for (const DimExpr& d : entry_.slots[size_t(entry_.inputs[input].slot)].shape)
    for (const std::string& name : d.symbols()) {
      const auto part = std::ranges::find(program_.sizeParts, name, &SizePart::name);
      const auto of = part == program_.sizeParts.end() ? std::vector{name} : part->of.symbols();
      names.insert(names.end(), of.begin(), of.end());
    }
  std::set<std::string> told;
  auto isGiven = [&](const std::string& name) {
    const DimExpr dim = DimExpr::symbol(name);
    for (const Port& port : entry_.inputs)
      for (const DimExpr& d : entry_.slots[size_t(port.slot)].shape)
        if (d == dim) return true;
    return fixed.contains(name);
  };
  for (const std::string& name : names)
    if (!isGiven(name) && told.insert(name).second)
      text += "; '" + name + "' has no value, because no dim of an input is '" + name +
              "' alone, and stands at " + std::to_string(symbols_.at(name)) +
              ": give it by Session::setSymbol, or --symbol " + name + "=N of `lathe run`";
  return text;
}

void Executor::plan() {
  noteAllocation();
  symbols_.clear();
  for (size_t s = 0; s < values_.size(); ++s) symbols_[program_.symbols[s].name] = values_[s];
  program_.addSizeParts(symbols_);
  for (size_t i = 0; i < entry_.slots.size(); ++i) {
    shapes_[i].clear();
    for (const DimExpr& d : entry_.slots[i].shape) {
      auto value = d.evaluate(symbols_);
      if (!value || *value < 0)
        throw Error(
            ErrorCode::InvalidArgument,
            "size " + d.text() + " has no valid value in entry point '" + entry_.name + "'");
      shapes_[i].push_back(*value);
    }
    bytes_[i] = int64_t(bytesOf(entry_.slots[i].dtype, elementCount(shapes_[i])));
  }
  for (size_t i = 0; i < bytes_.size(); ++i)
    if (bytes_[i] > bytes_[size_t(owners_[i])])
      throw Error(ErrorCode::InvalidFile,
                  "entry point '" + entry_.name + "': slot " + std::to_string(i) + " of " +
                      std::to_string(bytes_[i]) + " bytes shares the memory of slot " +
                      std::to_string(owners_[i]) + ", which has " +
                      std::to_string(bytes_[size_t(owners_[i])]) + "; compile the model again");
  plan_ = planArena(entry_, bytes_);
  lifetimes_ = lifetimesOf(entry_);
  lastPointers_.clear();
  scratchBytes_ = 0;
  for (size_t c = 0; c < kernels_.size(); ++c) {
    KernelShapes shapes;
    for (auto* slots : {&entry_.calls[c].operands, &entry_.calls[c].results})
      for (int s : *slots) shapes.shapes.push_back(shapes_[size_t(s)]);
    shapes.symbols = &symbols_;
    scratchBytes_ = std::max(scratchBytes_, kernels_[c]->bind(shapes));
  }
}

void Executor::placeInputs(std::span<const Array> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!memory_) {
      inputs_[i] = inputs[i];
      continue;
    }
    // The same address as before where that is possible: recorded launches hold it.
    if (!inputs_[i].defined() || inputs_[i].shape() != inputs[i].shape()) {
      inputs_[i] = copyTo(memory_, inputs[i], entry_.inputs[i].name);
      noteAllocation();
    } else if (inputs[i].bytes()) {
      memory_->upload(inputs_[i].data(), inputs[i].data(), inputs[i].bytes());
    }
  }
}

void Executor::placeOutputs(std::vector<Array>& outputs) {
  outputs.resize(entry_.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Slot& slot = entry_.slots[size_t(entry_.outputs[i].slot)];
    const Shape& shape = shapes_[size_t(entry_.outputs[i].slot)];
    outputs[i] = Array();  // release the caller's copy of an earlier run, if this is one
    auto renew = [&](Array& a, DeviceMemory* memory) {
      if (a.defined() && a.shape() == shape && !a.shared()) return;
      a = arrayOn(memory, slot.dtype, shape, entry_.outputs[i].name);
      noteAllocation();
    };
    renew(results_[i], memory_);
    if (memory_) renew(kept_[i], nullptr);
  }
}

void Executor::placeSlots(const BoundWeights& weights, const std::vector<Array>& states,
                          std::byte* arena) {
  auto place = [](const Array& a) { return const_cast<void*>(a.data()); };
  for (size_t i = 0; i < pointers_.size(); ++i) {
    const Slot& slot = entry_.slots[i];
    if (owners_[i] != int(i)) continue;
    size_t index = size_t(slot.index);
    switch (slot.kind) {
      case SlotKind::Arena:
        // No call touches one without a place.
        pointers_[i] = plan_.offsets[i] < 0 ? nullptr : arena + plan_.offsets[i];
        break;
      case SlotKind::Argument:
        pointers_[i] = place(inputs_[index]);
        break;
      case SlotKind::Result:
        pointers_[i] = place(results_[index]);
        break;
      case SlotKind::State:
        pointers_[i] = place(states[index]);
        break;
      case SlotKind::Constant:
        pointers_[i] = place(constants_[index]);
        break;
      case SlotKind::Weight:
        break;
    }
  }
  placeWeights(weights);
}

void Executor::placeWeights(const BoundWeights& weights) {
  for (size_t i = 0; i < pointers_.size(); ++i) {
    const Slot& slot = entry_.slots[i];
    if (owners_[i] != int(i) || slot.kind != SlotKind::Weight) continue;
    const auto index = size_t(slot.index);
    const Array& a = index < weights.raw.size() ? weights.raw[index]
                                                : weights.derived[index - weights.raw.size()];
    pointers_[i] = const_cast<void*>(a.data());
  }
}

void Executor::giveBack(size_t call) {
  // Smaller ones are written again soon, by the same calls for the next layer: taking their memory
  // anew would cost more than they hold.
  constexpr int64_t kLarge = int64_t(8) << 20;
  for (size_t i = 0; i < lifetimes_.size(); ++i)
    if (owners_[i] == int(i) && entry_.slots[i].kind == SlotKind::Arena &&
        lifetimes_[i].last == int(call) && bytes_[i] >= kLarge)
      discardPages(pointers_[i], size_t(bytes_[i]));
}

void Executor::launch(const BoundWeights& weights, std::byte* scratch, bool wantsOutputs) {
  auto pointerOf = [&](int slot) { return pointers_[size_t(owners_[size_t(slot)])]; };
  using Clock = std::chrono::steady_clock;
  for (size_t c = 0; c < kernels_.size(); ++c) {
    const Call& call = entry_.calls[c];
    if (!wantsOutputs && isOfOutputs_[c]) continue;
    if (fetch_ && fetch_(c)) placeWeights(weights);
    size_t n = 0;
    for (int s : call.operands) callPointers_[n++] = pointerOf(s);
    for (int s : call.results) callPointers_[n++] = pointerOf(s);
    // A device is not waited for, and launches that are recorded cannot be.
    const bool timed = timed_ || (isCollective_[c] && !memory_);
    auto start = timed ? Clock::now() : Clock::time_point();
    kernels_[c]->run(callPointers_.data(), scratch);
    if (timed) {
      if (memory_) memory_->synchronize();
      profile_[c].seconds += std::chrono::duration<double>(Clock::now() - start).count();
      ++profile_[c].runs;
    }
    if (ranks_) ranks_->advance();
    if (!done_) continue;
    done_(c);
    if (!memory_) giveBack(c);
  }
  // A new state value that was not computed in place.
  for (const Port& port : entry_.statesOut)
    for (const Port& in : entry_.statesIn) {
      void *to = pointerOf(in.slot), *from = pointerOf(port.slot);
      const size_t bytes = size_t(bytes_[size_t(in.slot)]);
      if (in.name != port.name || to == from || !bytes) continue;
      memory_ ? memory_->copy(to, from, bytes) : void(std::memcpy(to, from, bytes));
    }
}

void Executor::run(std::span<const Array> inputs, const BoundWeights& weights,
                   std::vector<Array>& states, GrowingBuffer& arena, GrowingBuffer& scratch,
                   std::vector<Array>& outputs, const RunOptions& options) {
  std::byte* base = arena.reserve(plan_.bytes, memory_);
  std::byte* work = scratch.reserve(int64_t(scratchBytes_) + 64, memory_);
  placeInputs(inputs);
  placeOutputs(outputs);
  placeSlots(weights, states, base);
  if (memory_) {
    device_.start();
    for (int64_t i = 0; i < options.times; ++i) {
      pointers_.push_back(work);
      const bool same =
          pointers_ == lastPointers_ && options.wantsOutputs == lastWanted_ && !timed_ && !done_;
      lastPointers_ = pointers_;
      lastWanted_ = options.wantsOutputs;
      pointers_.pop_back();
      device_.run(this, same, [&] { launch(weights, work, options.wantsOutputs); });
    }
  } else {
    for (int64_t i = 0; i < options.times; ++i) launch(weights, work, options.wantsOutputs);
    for (Array& a : inputs_) a = Array();  // the caller's
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool download = memory_ && !options.keepOnDevice;
    if (download && kept_[i].bytes())
      memory_->download(kept_[i].data(), results_[i].data(), kept_[i].bytes());
    outputs[i] = download ? kept_[i] : results_[i];
  }
  device_.finish();
}

}  // namespace lathe
