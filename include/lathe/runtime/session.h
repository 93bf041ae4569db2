// SPDX-License-Identifier: Apache-2.0
#pragma once
// Session: a program with weights bound, states and memory of its own. One thread at a time.
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/communicator.h"
#include "lathe/runtime/device.h"
#include "lathe/runtime/program.h"

namespace lathe {

/// Arrays by name: inputs, outputs, weights.
struct Arrays : std::map<std::string, Array, std::less<>> {
  using map::map;
  /// Throws Error (InvalidArgument) naming those that are there.
  const Array& at(std::string_view name) const;
  Array& at(std::string_view name) {
    return const_cast<Array&>(static_cast<const Arrays*>(this)->at(name));
  }
};
/// Gives a checkpoint tensor by name; an undefined Array if there is none.
using WeightSource = std::function<Array(const std::string& name)>;

/// Weights after the program's `load` function has run: shared by sessions of one program.
class BoundWeights;

struct SessionOptions {
  /// 0: what the latest session with a count asked for, else LATHE_NUM_THREADS, else every CPU.
  int threads = 0;
  bool profile = false;  ///< time every call
  /// For programs of the cuda backend: "gpu", "host" (the kernels run on this CPU) or, by default,
  /// what LATHE_CUDA_DEVICE says, else "gpu".
  std::string device = {};
  /// Shared libraries with backends to load first (lathe/runtime/backend_plugin.h): programs!
  std::vector<std::string> backendPlugins = {};
  /// For a program of several ranks: this one's end. Every rank opens a session and binds weights;
  /// then rank 0 is used as any session is, and the others serve().
  std::shared_ptr<Communicator> ranks = {};
};

struct CallProfile {
  std::string kind, origin;
  double seconds = 0;
  int64_t runs = 0;
};

/// It can be moved; a moved-from session throws Error wherever it is used.
class Session {
 public:
  /// Throws Error (InvalidArgument) for a null program and options without meaning, and for ranks
  /// that are more or fewer than the program's or have another program.
  explicit Session(std::shared_ptr<const Program> program, const SessionOptions& options = {});
  explicit Session(Program program, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Checks names, dtypes and shapes of all weights, reporting every mistake at once, then runs the
  /// `load` function. Arrays that the program reads as they are stay referenced, not copied. Nobody
  /// can tell which other tensors a function knows: give a Checkpoint or Arrays to have them told.
  void bindWeights(const WeightSource& source);
  /// Throws Error (InvalidArgument) for names too that the graph did not declare. A weight that it
  /// declared and no output depends on may be there, and is not looked at.
  void bindWeights(const Arrays& weights);
  /// The same from a file or folder. Throws Error (InvalidArgument), too, that names every tensor
  /// of the checkpoint that the graph did not declare, such as the bias of a Linear without one.
  /// What a name of `mayStay` names or ends ("rotary_emb.inv_freq") may be left over. Tensors are
  /// read one after the other as `load` needs them, so that of decoded ones few are in memory at a
  /// time; `reading` is told each name before it is read.
  void bindWeights(const Checkpoint& checkpoint, const std::vector<std::string>& mayStay = {},
                   const std::function<void(const std::string& name)>& reading = {});
  /// Uniform in +-1/sqrt(last dim), the same everywhere for a seed: for benchmarks and examples.
  void bindRandomWeights(uint64_t seed);

  /// Runs an entry point. Symbols take their values from the shapes of the inputs; those that only
  /// states have keep the value of setSymbol, or what the states hold, or take the lowest of their
  /// range. An output stays valid after later runs; its memory is reused once no copy of the Array
  /// is left.
  /// Throws Error (InvalidArgument) for missing, extra or misshaped inputs, and for sizes outside a
  /// symbol's range: nothing has run then. Errors of a run (an index or position out of range) come
  /// when some of its calls are done: states may hold parts of it, until resetStates().
  Arrays run(std::string_view entry, const Arrays& inputs);
  /// The same by position, without building maps: for decode loops. With `times` it runs so often
  /// with the same inputs, of which each run finds the states of the one before. A device is asked
  /// for the outputs, and for what went wrong, after the last run alone.
  void run(size_t entry, std::span<const Array> inputs, std::vector<Array>& outputs,
           int64_t times = 1);
  /// The same where nobody needs the outputs, such as of all chunks of a prompt but the last: of a
  /// pipeline of several stages it returns when the first has done its part, so that they work on
  /// several runs at once. What `outputs` hold then is no value.
  void runAhead(size_t entry, std::span<const Array> inputs, std::vector<Array>& outputs);
  size_t entryIndex(std::string_view name) const;
  /// On ranks other than 0: takes part in what rank 0's session does, until that is destroyed.
  /// Throws Error for what went wrong, here or on another rank; the job is over then.
  void serve();
  /// Throws Error (Io) where the ranks' job has ended because one of them failed: nothing can be
  /// run any more.
  void throwIfEnded() const;

  /// Fixes a symbol that only states have (the cache's capacity). Clears the states that use it.
  void setSymbol(std::string_view name, int64_t value);
  /// Sets every state back to zero.
  void resetStates();
  /// A copy of a state's present value.
  Array state(std::string_view name) const;
  /// Gives a state the values of a host array, which has its dtype and the shape that the next run
  /// needs; memory of that shape is written in place. Throws Error(InvalidArgument) for another
  /// dtype or rank, or an unknown name.
  void setState(std::string_view name, const Array& value);
  /// Row i of every state whose first size is the symbol becomes what its row `rows[i]` was: the
  /// caches of a batch in another order, some of them several times. Throws Error(InvalidArgument)
  /// unless there is a row for each and all are there.
  void gatherStateRows(std::string_view symbol, std::span<const int64_t> rows);
  /// Row `to` of every state whose first size is the symbol becomes what its row `from` is: a block
  /// of caches in blocks. Before the first run there is nothing to copy. Throws
  /// Error(InvalidArgument) for a row that is not there.
  void copyStateBlock(std::string_view symbol, int64_t from, int64_t to);
  /// From now on every state whose first size is the symbol holds `rows` rows, of which a run works
  /// on as many as its inputs have: those from `first` on, as selectStateRows() says. The others
  /// stay as they are, so that sequences of one session come and go by themselves. Clears the
  /// states. Throws Error(InvalidArgument) for rows outside the symbol's range.
  void keepStateRows(std::string_view symbol, int64_t rows);
  /// Runs begin at this row. Throws Error(InvalidArgument) outside of what keepStateRows() keeps;
  /// the run does so for rows behind the last one.
  void selectStateRows(int64_t first);
  /// Row `to` of those states gets what row `from` has: of a size that is the symbol `along`, the
  /// first `count`; of states without it, everything. Before the first run there is nothing to
  /// copy.
  void copyStateRow(int64_t from, int64_t to, std::string_view along, int64_t count);

  /// Bytes of arena, states, scratch and derived weights.
  struct Memory {
    int64_t arena = 0, states = 0, scratch = 0, derived = 0;
  };
  Memory memory() const;
  /// Allocations made by sessions of this process so far: arena, outputs, states, plans. Constant
  /// over a steady state.
  static uint64_t allocations();

  const Program& program() const;
  Device& device();
  std::vector<CallProfile> profile(std::string_view entry) const;

 private:
  struct Impl;
  Impl& impl() const {
    if (!impl_) [[unlikely]]
      failMoved();
    return *impl_;
  }
  [[noreturn]] static void failMoved();
  std::unique_ptr<Impl> impl_;
};

}  // namespace lathe
