// SPDX-License-Identifier: Apache-2.0
#pragma once
// The value of any tensor of a region at an index, as statements of kernel text.
//
// Inside a kernel bf16 and f16 are float, i1 is bool and every other type is itself; what is only
// moved stays as it is stored. Each value is computed once per thread, in the outermost scope in
// which its operands are known.
#include <optional>

#include "backends/cuda/device/kernel_table.h"
#include "backends/cuda/lowering/region_text.h"
#include "backends/region_plan.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace lathe::cuda {

using Index = llvm::SmallVector<Linear, 4>;

/// "float", "bf16", "u8": an element type in memory, and the type that kernels compute it in.
std::string storedName(mlir::Type element);
std::string computedName(mlir::Type element);
bool isSmallFloat(mlir::Type element);
bool isReal(mlir::Type element);

/// Reductions by blocks that cannot wait for each other: the kernel of pass n leaves one partial
/// result per block of those that need n - 1 others first, and later kernels start by combining
/// them.
struct Spread {
  static constexpr int64_t kPartBytes = 16;  ///< a double and its index
  llvm::SetVector<mlir::Operation*> reductions = {};
  int pass = 0;
  bool last = false;  ///< the kernel that writes the region's results
};

/// How the threads of a row work together.
struct Team {
  enum class Kind { Thread, Warp, Block, Cluster, Blocks, Columns };
  Kind kind = Kind::Thread;
  int threads = 1;          ///< that share a row, or an element of Columns
  int rowLevel = 0;         ///< the scope in which all of them are together
  Linear rank;              ///< of this thread, in [0, threads)
  std::string suffix = {};  ///< of reductions: "<256>" for blocks and clusters
  int blocks = 1;           ///< of Blocks, at most as many as a block has threads
  Linear piece = {};        ///< number of this block among them
  Spread spread = {};
};

/// What one pass found out about the next: the text of a kernel is made several times.
struct Findings {
  /// Values that several passes over a row read, by key; the text keeps them in registers.
  llvm::SetVector<mlir::Value> kept;
  /// Operands read elsewhere than at the element that is stored next.
  llvm::DenseSet<unsigned> scattered;
  std::set<unsigned> operands;        ///< that are read at all
  llvm::DenseSet<unsigned> replaced;  ///< operands whose buffer a result may use
  std::set<int> checks;  ///< gathers that tell of an index, by their order in the region
  /// Reductions by the whole team: they come before any loop over their results.
  llvm::SetVector<mlir::Operation*> together;
};

/// The length of the longest chain of reductions that ends with each of them.
llvm::DenseMap<mlir::Operation*, int> depthsOf(mlir::func::FuncOp region);

class RegionCode {
 public:
  /// `names` are those of the operands, then of the results.
  RegionCode(mlir::func::FuncOp region, bool flat, RegionText& text, std::vector<std::string> names,
             const Findings& known);

  Val eval(mlir::Value tensor, const Index& index);
  /// Makes the reductions of the own row that are known to be needed, in their order.
  void reduceFirst();
  /// Of a team of blocks: the reductions of its pass.
  void reducePass();
  /// The value as it is computed with: float for bf16, bool for i1.
  Val computed(mlir::Value tensor, const Val& value);
  /// The value as it is stored.
  std::string stored(mlir::Type element, const Val& value);

  llvm::SmallVector<DimExpr> dims(mlir::Value tensor) const;
  Linear size(const DimExpr& dim);
  /// (quotient, remainder) by a dim that is not 0 where it matters.
  std::pair<Linear, Linear> divide(const Linear& x, const DimExpr& by, const std::string& hint,
                                   const std::string& remainderHint);
  Linear times(const Linear& x, const DimExpr& by);
  /// Coordinates of element `at` of a box of these dims.
  Index split(const Linear& at, llvm::ArrayRef<DimExpr> dims);
  /// The position of an index in a dense box.
  Linear linear(llvm::ArrayRef<DimExpr> dims, const Index& index);
  /// A named integer that is constant in its scope.
  const Atom* variable(int level, const std::string& hint, const std::string& expression,
                       int64_t align, int64_t lo, int64_t hi);

  /// A loop over [0, length) of a row in chunks of `width` lanes by the team: `body` gets the lane,
  /// `after` comes once per chunk.
  void overRow(
      const DimExpr& length, int width, llvm::function_ref<void(const Linear& lane)> body,
      llvm::function_ref<void()> after = [] {});
  /// Stores results at a lane; `position` is that element's index in the whole result. Vectors
  /// are written by `finish`, behind the loop over lanes.
  struct Store {
    unsigned result;
    Linear position;
  };
  void store(llvm::ArrayRef<Store> results, const Index& index);
  void finishStores();
  std::string sharedTarget;  ///< where results go instead of their buffers, if not empty
  /// Opens a loop over the lanes j of a chunk; the index of lane j.
  Linear openLanes(const Linear& first, int lanes);
  /// The largest vector width for rows of this length, at most `most`.
  static int widthFor(const DimExpr& length, int most);

  /// Says which row the kernel's threads work on, of as many as the product of `dims`, which are
  /// not 0 wherever the kernel runs.
  void setRow(const Linear& number, llvm::ArrayRef<DimExpr> dims);

  // What the kernel tells.
  Team team;
  Index row;
  llvm::SmallVector<DimExpr> rowDims;
  llvm::SmallVector<DimExpr> positive;  ///< dims that are not 0 wherever the kernel runs
  Linear rowNumber;
  int width = 1;                         ///< lanes of a chunk, at most
  int registers = 0;                     ///< elements of a row that a thread may keep per value
  std::optional<Linear> storedPosition;  ///< of the element that is being computed for a store
  /// Operands that are not in memory: their values at the own row and lane.
  std::set<unsigned> accumulators;
  /// The text is part of a template's kernel, which may start before its operands are written: no
  /// load may be taken for one of constants.
  bool isHook() const { return !sharedTarget.empty() || !accumulators.empty(); }
  // What it learns.
  Findings found;
  llvm::DenseMap<mlir::Value, std::set<int>> readIn;  ///< passes
  std::vector<DimExpr> sizes;
  std::vector<std::string> sizeNames;
  std::vector<std::string> globals;  ///< constants in front of the kernel
  std::string failure;               ///< not empty: the text is of no use

  /// Declarations of all that the text reads and writes in memory or knows of sizes.
  std::vector<std::pair<std::string, Argument>> parameters();
  /// What the next round of making the text should know; there are three. First it is found out
  /// what is read several times, then what of that is worth a register.
  Findings forNextRound(int round) const;

  RegionText& k;

 private:
  Val evalHere(mlir::Value tensor, const Index& index);
  Val nothing(mlir::Type element) const;
  std::string keyOf(mlir::Value tensor, const Index& index) const;
  Index broadcastIndex(mlir::Value operand, const Index& index) const;
  Val operand(mlir::Operation* op, unsigned number, const Index& index);
  Val define(mlir::Operation* op, const std::string& type, const std::string& expression,
             std::initializer_list<Val> operands, bool raw = false);
  std::string commentOf(mlir::Operation* op);
  std::string nameOf(mlir::Operation* op) const;

  // region_values.cpp
  Val elementwise(mlir::Operation* op, const Index& index);
  Val constant(ConstantOp op, const Index& index);
  Val cast(CastOp op, const Val& x);
  Val bitcast(BitcastOp op, const Val& x);
  std::string unary(mlir::Operation* op, const std::string& x, mlir::Type element);
  std::string binary(mlir::Operation* op, const std::string& x, const std::string& y,
                     mlir::Type element);
  bool isSoftmaxQuotient(mlir::Operation* op) const;
  // region_movement.cpp
  Val movement(mlir::Operation* op, const Index& index);
  Val concat(ConcatOp op, const Index& index);
  Val pad(PadOp op, const Index& index);
  Val gather(GatherOp op, const Index& index);
  static std::string statusName(int check);
  Val iota(IotaOp op, const Index& index);
  Val randomBits(RandomBitsOp op, const Index& index);
  Index reshapeIndex(ReshapeOp op, const Index& index);
  Val branch(mlir::Type element, const std::string& hint, const Val& condition,
             llvm::function_ref<Val()> then, llvm::function_ref<Val()> otherwise);
  Val below(const Linear& c, const DimExpr& border);
  Linear within(const Linear& c, const DimExpr& dim);
  // region_memory.cpp
  int loadLevel(int level) const;
  bool isOwnRow(const Index& index) const;
  Val argument(mlir::BlockArgument argument, const Index& index);
  /// `divisor` divides the number of elements.
  Val load(const std::string& name, mlir::Type element, const Linear& at, bool readOnly,
           int64_t divisor);
  // region_reduce.cpp
  Val reduce(mlir::Operation* op, const Index& index);
  bool isCooperative(mlir::Operation* op, const Index& index) const;
  Index ownPlace(size_t rank) const;
  std::string partsOf(mlir::Operation* op, bool written);
  void addPassMates(mlir::Operation* op, const Index& index, const Index& coords,
                    llvm::SmallVectorImpl<std::pair<mlir::Operation*, Index>>& group);
  // region_rows.cpp
  struct Pass {
    DimExpr length = 0;
    int width = 1;
    Linear lane;
    std::string chunk;  ///< number of this thread's chunk; "0" if it has one
    int level = 0;      ///< the scope of the lanes
    int number = 0;
    int chunks = 0;  ///< 0: not known, nothing is kept
  };
  const Val* keptValue(mlir::Value tensor, const Index& index, Val& out);
  void keep(mlir::Value tensor, const Val& value, const Index& index);
  bool inOwnRow(const Index& index) const;

  mlir::func::FuncOp region_;
  bool flat_;
  std::vector<std::string> names_;
  const Findings& known_;
  llvm::DenseMap<mlir::Operation*, int> depth_;
  // x of a quotient and a remainder, by the quotient's atom.
  struct Division {
    Linear x;
    DimExpr by;
    Linear remainder;
  };
  std::map<const Atom*, Division> divisions_;
  /// All results are rounded to 16 bits: exponentials may be approximate.
  bool roundsMuch_ = true;
  Pass* pass_ = nullptr;
  bool teamPass_ = false;  // in a pass that ends before anything is stored
  int passes_ = 0;
  int guard_ = 0;  // Val::guard of what the value being made has read so far
  std::vector<std::string> pendingStores_;
  std::vector<const Atom*> sizeAtoms_;
  std::map<std::string, const Atom*> products_, quotients_;
  std::string lastOrigin_;
  struct Parts {
    std::string name, declaration;
    Argument argument;
  };
  llvm::MapVector<mlir::Operation*, Parts> parts_;
  struct Slot {
    std::string name;
    bool raw;
    int pass;               // the one that filled it
    std::string elsewhere;  // key of the coordinates in front of the lane
    DimExpr length;
    int width;
  };
  llvm::DenseMap<mlir::Value, Slot> slots_;
};

}  // namespace lathe::cuda
