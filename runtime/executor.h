// SPDX-License-Identifier: Apache-2.0
#pragma once
// Executor: one entry point bound to a device: symbol values, shapes, memory plan, kernels.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lathe/runtime/communicator.h"
#include "lathe/runtime/device.h"
#include "lathe/runtime/session.h"
#include "runtime/memory_plan.h"

namespace lathe {

/// Memory that only grows: of the host, 64-byte aligned, or of a device.
class GrowingBuffer {
 public:
  std::byte* reserve(int64_t bytes, DeviceMemory* memory);
  int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<void> data_;
  int64_t bytes_ = 0;
};

/// A zero-filled array where the device's kernels work: its data() is an address there. It must go
/// before the device does.
Array arrayOn(DeviceMemory* memory, DType dtype, Shape shape, std::string_view name);
/// A copy there of an array of the host, which is returned as it is if that is where kernels work.
Array copyTo(DeviceMemory* memory, const Array& array, std::string_view name);
/// The way back.
Array copyToHost(DeviceMemory* memory, const Array& array);

/// Counts memory taken by sessions; Session::allocations() reads it.
void noteAllocation();
uint64_t allocationCount();

class SessionStates;

struct RunOptions {
  bool keepOnDevice = false;  ///< outputs stay where the kernels wrote them
  int64_t times = 1;          ///< one run behind the other
  bool wantsOutputs = true;   ///< else those that other stages of a pipeline have are not sent
};

class Executor {
 public:
  /// `ranks`: this rank's end where several run the program, else null.
  Executor(const Program& program, const EntryPoint& entry, Device& device, bool profile,
           Communicator* ranks);

  /// Checks the inputs, takes the symbols' values from their shapes and, where these changed, plans
  /// anew. `fixed` gives symbols that no input has, then what the states hold, if there are any.
  void bind(std::span<const Array> inputs, const SymbolValues& fixed,
            const SessionStates* states = nullptr);
  /// Runs the calls. Outputs are (re)allocated as needed.
  void run(std::span<const Array> inputs, const BoundWeights& weights, std::vector<Array>& states,
           GrowingBuffer& arena, GrowingBuffer& scratch, std::vector<Array>& outputs,
           const RunOptions& options = {});

  /// `fetch(i)` is called before call i of the entry point runs, and says whether it has put other
  /// arrays into the weights.
  void beforeEachCall(std::function<bool(size_t)> fetch) { fetch_ = std::move(fetch); }
  /// `done(i)` is called when call i of the entry point has run. Large temporaries that it read
  /// last give their memory back, for one run that leaves more behind than it needs in between.
  void afterEachCall(std::function<void(size_t)> done) { done_ = std::move(done); }

  const EntryPoint& entry() const { return entry_; }
  const SymbolValues& symbols() const { return symbols_; }
  const std::vector<CallProfile>& profile() const { return profile_; }

 private:
  void bindSymbols(std::span<const Array> inputs, const SymbolValues& fixed,
                   const SessionStates* states);
  void plan();
  [[noreturn]] void reject(size_t input, const Array& got, const std::string& why) const;
  /// What to say of the symbols in an input's dims that neither an input nor `fixed` gives a value.
  std::string symbolsWithoutValue(size_t input, const SymbolValues& fixed) const;
  void placeInputs(std::span<const Array> inputs);
  void placeOutputs(std::vector<Array>& outputs);
  void placeSlots(const BoundWeights& weights, const std::vector<Array>& states, std::byte* arena);
  void placeWeights(const BoundWeights& weights);
  void launch(const BoundWeights& weights, std::byte* scratch, bool wantsOutputs);
  /// The memory of large temporaries that no call behind this one reads.
  void giveBack(size_t call);

  Device& device_;
  DeviceMemory* memory_;  // null: the host's
  Communicator* ranks_;   // null where one runs the program alone
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
  std::vector<Lifetime> lifetimes_;
  size_t scratchBytes_ = 0;
  std::vector<void*> pointers_, callPointers_;
  std::vector<void*> lastPointers_;  // of the run before, with its scratch
  std::vector<Array> constants_;     // of the program, where kernels work
  std::vector<Array> inputs_;        // of this run, where kernels work
  std::vector<Array> results_;       // what kernels write; reused when nobody else holds them
  std::vector<Array> kept_;          // their copies in host memory
  std::function<bool(size_t)> fetch_;
  std::function<void(size_t)> done_;
  bool timed_;
  std::vector<bool> isCollective_;  // by call: these are always timed on the host
  std::vector<bool> isOfOutputs_;   // by call: these are left out where nobody wants outputs
  bool lastWanted_ = true;          // of the run before
  std::vector<CallProfile> profile_;
};

}  // namespace lathe
