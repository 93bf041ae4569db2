// SPDX-License-Identifier: Apache-2.0
#pragma once
// The value of any tensor of a region at an index, as inlined code: arith, math, vector and scf.
//
// bf16 and f16 tensors are f32 inside a kernel; i1 is i1; ui8 is i8. A value at an index whose
// coordinates are the same in every lane is a scalar, otherwise a vector of the index's width. What
// a kernel's frame and its machine decide (where operands lie, how vectors are loaded, who shares a
// row) is left to a class per backend.
#include "backends/common/loops/index.h"
#include "lathe/ir/types.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace lathe::loops {

/// Elements in memory.
struct Source {
  mlir::Value pointer;
  mlir::Type element;   ///< of the tensor
  int64_t divisor = 1;  ///< of the number of elements
};

/// Accumulators of a loop over lanes: of full vectors, and of single elements.
struct Accumulators {
  LoopBuilder::Values vectors, scalars;
};

class Reduction;

class Evaluator {
 public:
  Evaluator(LoopBuilder& builder, mlir::func::FuncOp region, bool flat);
  virtual ~Evaluator() = default;

  mlir::Value eval(mlir::Value tensor, const Index& index);
  /// Computes results at an index and only then stores them: one may lie in an operand's buffer.
  void storeResults(llvm::ArrayRef<unsigned> which, const Index& index, const Coord& position);
  /// Writes a value of a result to memory; `position` is where its first lane lies.
  void storeResult(unsigned result, mlir::Value value, const Coord& position, const Index& index);

  /// The dims of a tensor as this kernel sees them.
  llvm::SmallVector<DimExpr> dims(mlir::Value tensor) const;
  Coord size(const DimExpr& dim);
  /// Lanes of the own row.
  Index inRow(const Coord& lane, int64_t width, mlir::Value mask = {}) const;
  /// The position of an index in a dense box.
  Coord linear(llvm::ArrayRef<DimExpr> box, const Index& index);
  /// Coordinates of element `at` of a box.
  llvm::SmallVector<Coord, 4> split(const Coord& at, llvm::ArrayRef<DimExpr> box, int64_t width);

  // What the loop over rows tells: coordinates of the row, its number, the element that is being
  // computed for a store, and the scope of that loop.
  llvm::SmallVector<Coord, 4> row;
  llvm::SmallVector<DimExpr> rowDims;
  std::optional<Coord> rowNumber;
  std::optional<Coord> storedPosition;
  size_t storedLevel = 0;
  // What it learns: operands that are read, and those read elsewhere than at the stored element.
  std::set<unsigned> read;
  llvm::DenseSet<unsigned> scattered;
  DimExpr reducedElements = 0;

  LoopBuilder& k;
  IndexMath m;

 protected:
  using Values = LoopBuilder::Values;
  using LaneBody = llvm::function_ref<Values(const Coord& lane, int64_t width, mlir::Value mask,
                                             mlir::ValueRange)>;

  // The frame, each asked once: where operands and, behind them, results lie, sizes, tables; and
  // who is told of an index out of range.
  virtual mlir::Value makePointer(unsigned number) = 0;
  virtual mlir::Value makeSize(const DimExpr& dim) = 0;
  virtual mlir::Value makeTable(ConstantOp op) = 0;
  virtual void report(GatherOp op, mlir::Value bad, mlir::Value index) = 0;
  /// An operand that is not in memory; null if it is.
  virtual mlir::Value heldOperand(mlir::BlockArgument, const Index&) { return {}; }
  /// Lanes of constant offsets in as few accesses as the machine allows; null if there are none.
  virtual mlir::Value loadSpan(const Source& source, mlir::Type stored, const Coord& at,
                               const Index& index) = 0;
  /// What statements about an op's value are located at.
  virtual mlir::Location locationOf(mlir::Operation* op) { return op->getLoc(); }
  /// An op's value where the machine has a way of its own; null otherwise.
  virtual mlir::Value ownWay(mlir::Operation*, const Index&) { return {}; }
  // Values that several passes over a row want.
  virtual bool isWorthKeeping(mlir::Value) const { return false; }
  /// Of two of them, one inside the other, the inner one where the outer one is made.
  virtual bool keepsInner() const { return false; }
  virtual void keep(mlir::Value, mlir::Value, const Index&) {}
  virtual mlir::Value kept(mlir::Value, const Index&) { return {}; }
  /// A pass has kept the value at every place of the row.
  virtual void keptInRow(mlir::Value) {}

  // Reductions.
  /// Float maxima carry their NaN apart, where a machine's maximum loses it.
  virtual bool splitsNan() const { return false; }
  /// A value of a whole row is made along its last axis in vectors, of this many lanes.
  virtual bool spreadsLanes() const { return true; }
  virtual int64_t laneWidth(mlir::Value, int64_t) { return 1; }
  /// Along an axis of the tensor, in vectors of that width and what is left of it.
  virtual Accumulators overLanes(mlir::Value tensor, int64_t axis, Accumulators acc,
                                 LaneBody body) {
    return acc;
  }
  // Threads that share a row, in a scope in which all of them are together.
  virtual bool sharesRows() const { return false; }
  virtual bool isShared(mlir::Operation*, const Index&) { return false; }
  virtual size_t sharedLevel() const { return 0; }
  /// Others that wait for the same may join its pass.
  virtual bool mayJoin(mlir::Operation*) const { return true; }
  /// Over all elements of a box; vectors must not cross the ends of its innermost dim.
  virtual Values overThreads(const DimExpr& elements, const DimExpr& innermost, Values acc,
                             LaneBody body) {
    return acc;
  }
  /// All threads' accumulators into one.
  virtual Values combineThreads(mlir::Operation*, Values acc) { return acc; }
  /// An earlier kernel has left parts of it.
  virtual bool isMadeBefore(mlir::Operation*) const { return false; }
  virtual Values madeBefore(mlir::Operation*, Values acc) { return acc; }

  struct Pass {
    DimExpr length = 0;
    Coord lane;
    size_t level = 0;
    int bodies = 0;
    llvm::DenseSet<mlir::Value> done;          // in this body
    llvm::MapVector<mlir::Value, int> stores;  // in how many bodies
  };
  Pass* pass_ = nullptr;

  mlir::Type pointerType(unsigned addressSpace = 0) const {
    return mlir::LLVM::LLVMPointerType::get(k.b.getContext(), addressSpace);
  }
  mlir::Value pointerTo(unsigned number);
  /// An operand of the region, or behind them a result.
  mlir::Value tensorAt(unsigned number);
  mlir::Value spread(mlir::Value value, const Index& index);
  mlir::Value load(const Source& source, const Coord& at, const Index& index);
  mlir::Value address(mlir::Value pointer, mlir::Type stored, mlir::Value offset);
  /// Whether the mask holds in any lane.
  virtual mlir::Value anyLane(mlir::Value mask);
  bool inOwnRow(const Index& index) const;
  /// All threads that read there in front of the loop that stores have read before any of them
  /// stores.
  virtual bool endsBeforeStores(const Index& index) const { return inOwnRow(index); }
  Key keyAt(mlir::Value tensor, const Index& index) const;
  Index broadcastIndex(mlir::Value operand, const Index& index);
  mlir::Value operand(mlir::Operation* op, unsigned number, const Index& index);
  /// Finds the reductions' order and the values worth keeping.
  void plan();
  int depthOf(mlir::Operation* reduction) const { return depth_.lookup(reduction); }

  mlir::func::FuncOp region_;
  bool flat_;
  llvm::DenseSet<mlir::Value> kept_;

 private:
  mlir::Value evalHere(mlir::Value tensor, const Index& index);
  mlir::Type typeAt(mlir::Type element, const Index& index);
  mlir::Value elementwise(mlir::Operation* op, const Index& index);
  // movement.cpp
  mlir::Value movement(mlir::Operation* op, const Index& index);
  mlir::Value concat(ConcatOp op, const Index& index);
  mlir::Value pad(PadOp op, const Index& index);
  mlir::Value gather(GatherOp op, const Index& index);
  mlir::Value iota(IotaOp op, const Index& index);
  Index reshapeIndex(ReshapeOp op, const Index& index);
  mlir::Value masked(mlir::Value condition, const Index& index,
                     llvm::function_ref<mlir::Value(const Index&)> inside, mlir::Value otherwise);
  // memory.cpp
  mlir::Value constant(ConstantOp op, const Index& index);
  mlir::Value argument(mlir::BlockArgument argument, const Index& index);
  // reduce.cpp
  friend class Reduction;
  mlir::Value reduce(mlir::Operation* op, const Index& index);
  mlir::Value reduceHere(mlir::Operation* op, const Index& index, bool together);
  void addPassMates(llvm::ArrayRef<Coord> coords, llvm::SmallVectorImpl<Reduction>& group);

  llvm::DenseMap<mlir::Operation*, int> depth_;
};

/// The greatest index of an axis of this size, as far as it is known.
int64_t lastOf(const DimExpr& size);
/// The length of the longest chain of reductions that ends with each of them.
llvm::DenseMap<mlir::Operation*, int> depthsOf(mlir::func::FuncOp region);
unsigned bytesOf(mlir::Type stored);

}  // namespace lathe::loops
