// SPDX-License-Identifier: Apache-2.0
#pragma once
// The value of any tensor of a region at an index, as inlined vector code.
//
// bf16 and f16 tensors are f32 inside a kernel; i1 is i1; ui8 is i8. A value at an index whose
// coordinates are the same in every lane is a scalar, otherwise a vector of the index's width.
#include "backends/cpu/lowering/region_emitter_index.h"
#include "ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace lathe::cpu {

/// Accumulators of a loop over lanes: of full vectors, and of single elements left over.
struct Accumulators {
  KernelBuilder::Values vectors, scalars;
};

class Evaluator {
 public:
  Evaluator(KernelBuilder& builder, mlir::func::FuncOp region, mlir::LLVM::LLVMFuncOp kernel,
            bool flat);

  mlir::Value eval(mlir::Value tensor, const Index& index);
  /// Writes a value to a result; `position` is where its first lane lies.
  void store(unsigned result, mlir::Value value, mlir::Value position, const Index& index);

  /// The dims of a tensor as this kernel sees them.
  llvm::SmallVector<DimExpr> dims(mlir::Value tensor) const;
  mlir::Value size(const DimExpr& dim);
  const std::vector<std::string>& sizes() const { return sizes_; }

  using LaneBody = llvm::function_ref<KernelBuilder::Values(const Coord& lane, int64_t width,
                                                            mlir::Value mask, mlir::ValueRange)>;
  /// Runs `body` over [lo, hi) in vectors, the rest masked or one by one. `cuts` are positions at
  /// which a new vector starts.
  Accumulators overLanes(mlir::Value lo, mlir::Value hi, llvm::ArrayRef<int64_t> cuts,
                         int64_t width, Accumulators accumulators, LaneBody body);
  int64_t widthFor(std::optional<int64_t> length, llvm::ArrayRef<int64_t> cuts) const;
  /// Where a vector should start anew along the last axis, because another piece begins.
  llvm::SmallVector<int64_t> cutsOf(mlir::Value tensor) const;

  // What the row loop tells: coordinates of the row, its number, the lane being stored.
  llvm::SmallVector<Coord, 4> row;
  llvm::SmallVector<DimExpr> rowDims;
  mlir::Value rowNumber;
  mlir::Value storedLane;  // null outside the loop that stores
  size_t storedLevel = 0;  // the scope of that loop
  // What it learns: operands read elsewhere than at the stored element; bytes of scratch.
  llvm::DenseSet<unsigned> scattered;
  DimExpr scratchBytes = 0;
  DimExpr reducedElements = 0;

 private:
  friend class Reduction;
  static const void* const kValue;
  mlir::Value evalHere(mlir::Value tensor, const Index& index);
  mlir::Value spread(mlir::Value value, const Index& index);
  mlir::Type typeAt(mlir::Type element, const Index& index);
  Index broadcastIndex(mlir::Value operand, const Index& index);
  mlir::Value operand(mlir::Operation* op, unsigned number, const Index& index);

  mlir::Value elementwise(mlir::Operation* op, const Index& index);
  // region_emitter_shape.cpp
  mlir::Value shape(mlir::Operation* op, const Index& index);
  mlir::Value concat(ConcatOp op, const Index& index);
  mlir::Value pad(PadOp op, const Index& index);
  mlir::Value gather(GatherOp op, const Index& index);
  mlir::Value iota(IotaOp op, const Index& index);
  Index reshapeIndex(ReshapeOp op, const Index& index);
  mlir::Value masked(mlir::Value condition, const Index& index,
                     llvm::function_ref<mlir::Value(const Index&)> inside, mlir::Value otherwise);
  mlir::Value anyLane(mlir::Value mask);
  // region_emitter_memory.cpp
  mlir::Value load(mlir::Value pointer, mlir::Type element, const Coord& at, const Index& index);
  mlir::Value loadSpan(mlir::Value pointer, mlir::Type stored, const Coord& at, const Index& index);
  mlir::Value pointerTo(unsigned number);
  mlir::Value address(mlir::Value pointer, mlir::Type stored, mlir::Value at);
  mlir::Value constant(ConstantOp op, const Index& index);
  mlir::Value argument(mlir::BlockArgument argument, const Index& index);
  Coord linear(mlir::Value tensor, const Index& index);
  mlir::Value tailMask(mlir::Value count, int64_t width);
  mlir::Value spilled(mlir::Value tensor, const Index& index);
  void keep(mlir::Value tensor, mlir::Value value, const Index& index);
  KernelBuilder::Key rowKey(mlir::Value tensor) const;
  bool inOwnRow(const Index& index) const;
  KernelBuilder::Key keyOf(mlir::Value tensor, const Index& index, const void* kind) const;
  // region_emitter_reduce.cpp
  mlir::Value reduce(mlir::Operation* op, const Index& index);
  void findReductions();
  void addPassMates(llvm::ArrayRef<Coord> coords,
                    llvm::SmallVectorImpl<std::pair<mlir::Operation*, Index>>& group);

  KernelBuilder& k;
  IndexMath m;
  mlir::func::FuncOp region_;
  mlir::LLVM::LLVMFuncOp kernel_;
  bool flat_;
  int64_t lanes_;
  std::vector<std::string> sizes_;
  // Reductions by how many others they wait for; values worth keeping in scratch between passes.
  llvm::DenseMap<mlir::Operation*, int> depth_;
  llvm::DenseSet<mlir::Value> kept_;
  // A pass over the last axis of a row that may write kept values to scratch.
  struct Pass {
    DimExpr length = 0;
    Coord lane;
    size_t level = 0;
    int bodies = 0;
    llvm::DenseSet<mlir::Value> done;          // in this body
    llvm::MapVector<mlir::Value, int> stores;  // in how many bodies
  };
  Pass* pass_ = nullptr;
  llvm::DenseMap<mlir::Value, std::pair<DimExpr, mlir::Type>> slots_;
};

}  // namespace lathe::cpu
