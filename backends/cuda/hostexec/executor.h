// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of one operating-system thread that executes blocks: one cluster at a time, one fiber
// per CUDA thread. Internal to host execution.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/hostexec/known_blocks.h"
#include "backends/cuda/hostexec/launch.h"
#include "backends/cuda/hostexec/memory_map.h"
#include "backends/cuda/hostexec/module.h"
#include "backends/cuda/hostexec/options.h"
#include "backends/cuda/hostexec/text.h"
#include "backends/cuda/include/host/lathe_rt.h"

namespace lathe::cuda::host {

constexpr size_t kStack = 128 << 10, kGuard = 4096, kArena = 264 << 10, kZone = 256;
constexpr size_t kSharedMax = 227 << 10;
constexpr int kSlab = 64;  // stacks mapped at once
constexpr int kMaxThreads = 1024, kMaxCluster = 16, kNamed = 16;

enum State : u8 { Fresh, Ready, Running, Waiting, Done };

/// What the checks know of two bytes of shared memory: last write, two readers of other warps.
/// Bytes that are accessed one by one have a cell each, the second one in Block::oddCells. Clocks
/// belong to the thread's warp; places as in checks.h.
struct SharedCell {
  u32 writeClock, readClock, read2Clock, writePlace, readPlace;
  u16 writer, reader, reader2;
  u8 state, has;
  bool split;
};
enum : u8 { Uninitialised = 0, Written = 1, InFlight = 2 };  // SharedCell::state
enum : u8 { HasWrite = 1, HasRead = 2, HasRead2 = 4 };       // SharedCell::has

/// cp.async of one thread, until its wait.
struct Copy {
  u32 to;
  const char* from;
  u32 bytes, copied;
  int group;
  bool landed;
};
/// A bulk copy on its way, counted on an mbarrier.
struct Bulk {
  u32 to;
  const char* from;
  u32 bytes;
  u64* bar;
};
struct Mbar {
  u64* at;
  u32 count, pending, phase;
  i64 bytes;
  std::vector<u32> clocks;  ///< what its arrivals release
};
struct Rendezvous {
  int arrived = 0;
  u8 op = LT_NONE;
  const char* file = nullptr;
  int line = 0, threads = 0;
};
struct Warp : Rendezvous {
  void* argument[32];
};
/// A shared array of the kernel text, at one place in every block.
struct Array {
  const void* key;
  const char* name;
  u32 offset, bytes;
};

struct Block {
  char* arena = nullptr;
  u32 index = 0;  ///< in the grid
  int first = 0;  ///< its first thread in the cluster
  int live = 0;   ///< threads that have not returned
  Rendezvous barrier, named[kNamed];
  Warp warps[kMaxThreads / 32];
  std::vector<Mbar> mbars;
  std::vector<Bulk> bulks;
  std::vector<SharedCell> cells, oddCells;
};

/// What one launch shares between its executors.
struct LaunchState {
  const Module* module;
  const Kernel* kernel;
  const Shape3* grid;
  const LaunchRequest* request;
  MemoryMap* memory;
  LaunchHistory* history;
  std::mutex mutex;
  std::atomic<bool> stop{false};
  std::atomic<bool> waited{false};  ///< a thread ran griddepcontrol.wait
  Result result;
  std::map<const u32*, Counter> counters;  ///< those met, in check mode
};

class Executor {
 public:
  Executor();
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void begin(LaunchState& launch);
  void runCluster(u32 firstBlock);
  void end();

  // ---- scheduler.cpp
  void wake(LtFiber& f);
  /// Gives the processor to another fiber; returns when woken.
  void yield();
  /// Puts the running fiber at the end of the queue.
  void preempt();
  [[noreturn]] void abandon();
  void report(const char* message);
  [[noreturn]] void fatal(const char* message) {
    report(message);
    abandon();
  }
  bool contains(const void* stack) const;
  u32 random();

  // ---- copies.cpp
  void land(Block& b, u32 to, const char* from, u32 bytes, u32 copied);
  void finishBulk(Block& b, size_t i);
  /// With random asynchrony something may land at any primitive.
  void maybeLand();
  /// Lands one bulk copy of the cluster; false if there is none.
  bool progress();
  void arrive(Block& b, Mbar& m);

  // ---- clocks: vc(w)[v] is how much of warp v warp w knows. Only in check mode.
  static u32 warpOf(const LtFiber& f) { return f.linear / 32u; }
  u32* knows(u32 warp) { return &known[size_t(warp) * warps]; }
  /// Everybody in [from, to) knows what each of them did before.
  void joinClocks(u32 from, u32 to);
  void joinClocks(const std::vector<u32>& those);
  /// The lanes of a warp know what each of them did before.
  void orderLanes(u32 warp) { synced[warp] = clock[warp]++; }

  Block& blockOf(const LtFiber& f) { return blocks[f.clusterRank]; }

  LaunchState* launch = nullptr;
  Options options;
  bool checked = false;
  std::vector<LtFiber> fibers;
  int threads = 0, live = 0, perBlock = 0, inCluster = 1;
  u32 warps = 0, warpsPerBlock = 0;
  std::vector<Block> blocks;
  std::vector<u32> clock, known;
  std::vector<u32> synced;  ///< by warp: up to here its lanes know of each other
  /// By warp: what counters told it of other blocks.
  std::vector<std::shared_ptr<const KnownBlocks>> others;
  std::vector<u32> taking;  ///< warps at a barrier
  std::vector<Array> arrays;
  u32 staticTop = 0, dynamicAt = 0, dynamicBytes = 0;
  std::vector<std::vector<Copy>> copies;  ///< per thread
  std::vector<int> group;
  int clusterArrived = 0;
  std::set<std::pair<u64, char>> seen;  ///< one report per place and kind
  unsigned budget = 0;
  Traffic traffic;
  u64 switches = 0, barriers = 0, warpOps = 0, bankConflicts = 0;

 private:
  void pushBack(u16 i) { ring_[tail_++ & mask_] = i; }
  void pushFront(u16 i) { ring_[--head_ & mask_] = i; }
  u16 pop();
  LtFiber* next();
  void start();
  void toMain(bool dead);
  void reportDeadlock();
  void* freshStack(LtFiber& f);
  void growStacks();
  void resetBlock(Block& b, u32 index, int rank);
  static void fiberMain();

  std::vector<char*> slabs_, freeStacks_;
  std::vector<u16> ring_;
  u32 head_ = 0, tail_ = 0, mask_ = 0;
  void* mainSp_ = nullptr;
  void* mainFake_ = nullptr;
  void* trash_ = nullptr;  // where a finished fiber leaves its stack pointer
  const void* mainStack_ = nullptr;
  size_t mainStackSize_ = 0;
  u64 rng_ = 0;
  char* signalStack_ = nullptr;
};

/// The executor of this operating-system thread, while it runs a kernel.
extern __thread Executor* current __attribute__((tls_model("initial-exec")));

/// "softmax.cu:17" of a path and line.
Text placeOf(const char* file, int line);
/// "block (0,0,0) thread (3,0,0) [warp 0 lane 3]".
Text whoIs(const LtFiber& f);
/// Reports the first of LaunchRequest::counters that is not 0, when all blocks have ended.
void reportCountersLeft(LaunchState& state);
/// Names what lies at an offset of the block's shared memory.
Text sharedName(const Executor& x, u32 offset);

}  // namespace lathe::cuda::host
