// SPDX-License-Identifier: Apache-2.0
#pragma once
// Executor: one entry point bound to a device: symbol values, shapes, memory plan, kernels.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/memory_plan.h"
#include "runtime/session.h"

namespace lathe {

/// 64-byte aligned memory that only grows.
class GrowingBuffer {
 public:
  std::byte* reserve(int64_t bytes);
  int64_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<std::byte[], void (*)(std::byte*)> data_{nullptr, nullptr};
  int64_t bytes_ = 0;
};

/// Counts memory taken by sessions; Session::allocations() reads it.
void noteAllocation();
uint64_t allocationCount();

class Executor {
 public:
  Executor(const Program& program, const EntryPoint& entry, Device& device, bool profile);

  /// Checks the inputs, takes the symbols' values from their shapes and, where these changed, plans
  /// anew. `fixed` gives symbols that no input has.
  void bind(std::span<const Array> inputs, const SymbolValues& fixed);
  /// Runs the calls. Outputs are (re)allocated as needed.
  void run(std::span<const Array> inputs, const BoundWeights& weights, std::vector<Array>& states,
           GrowingBuffer& arena, GrowingBuffer& scratch, std::vector<Array>& outputs);

  /// `done(i)` is called when call i of the entry point has run.
  void afterEachCall(std::function<void(size_t)> done) { done_ = std::move(done); }

  const EntryPoint& entry() const { return entry_; }
  const SymbolValues& symbols() const { return symbols_; }
  const std::vector<CallProfile>& profile() const { return profile_; }

 private:
  void bindSymbols(std::span<const Array> inputs, const SymbolValues& fixed);
  void plan();
  [[noreturn]] void reject(size_t input, const Array& got, const std::string& why) const;

  const Program& program_;
  const EntryPoint& entry_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<int> owners_;  // the slot that owns each slot's storage
  // Where an input's dim is a bare symbol, its value is read; all dims are checked afterwards.
  std::vector<int64_t> values_, last_;  // by symbol, in program order; -1 = unknown
  SymbolValues symbols_;
  bool bound_ = false;
  std::vector<Shape> shapes_;
  std::vector<int64_t> bytes_;
  MemoryPlan plan_;
  size_t scratchBytes_ = 0;
  std::vector<void*> pointers_, callPointers_;
  std::vector<Array> kept_;  // outputs, reused when nobody else holds them
  std::function<void(size_t)> done_;
  bool timed_;
  std::vector<CallProfile> profile_;
};

}  // namespace lathe
