// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fusion regions as readable CUDA C++: every op of a region inlined by index maps into one kernel.
#include <string>
#include <vector>

#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "backends/cuda/lowering/tuning/tuning_choice.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::cuda {

/// How a region's elements are spread over threads.
struct RegionSchedule {
  enum class Kind {
    Flat,             ///< a chunk of adjacent elements per thread
    WarpPerRow,       ///< a row is reduced by a warp
    BlockPerRow,      ///< by a block; kept in registers where it fits
    ClusterPerRow,    ///< by a cluster of blocks: long rows, few of them
    BlocksPerRow,     ///< by many blocks, in a kernel per pass: very long rows, very few of them
    BlockPerColumns,  ///< what goes into 32 adjacent elements is reduced by the warps of a block
  };
  Kind kind = Kind::Flat;
  int threads = 256;
  int blocks = 1;                          ///< that share a row
  static constexpr int kVectorBytes = 16;  ///< of a thread's access, where alignment allows

  /// "block per row, 256 threads, 16-byte vectors"
  std::string text() const;
};

/// Empty if the op can be part of a printed region, else the reason why not.
std::string whyNotPrintable(mlir::Operation* op);
/// True for ops that regions are made of; others have kernels of their own, or none.
bool isPrintedFromRegions(mlir::Operation* op);

/// Ways to run a region (a function over elementary or decomposable ops, on tensors whose dims are
/// all numbers or named), the one to take without measuring first. Empty if it has none;
/// printRegion says why.
std::vector<RegionSchedule> schedulesOf(mlir::func::FuncOp region);

/// Raised when kernels of regions change so much that measurements of their schedules say nothing.
constexpr int kRegionVersion = 1;
/// Which of the schedules is taken, asked by the region's ops and types whatever it is called.
TuningQuestion questionOf(mlir::func::FuncOp region, const std::string& kernel,
                          const std::vector<RegionSchedule>& schedules);

/// The kernels of a region and the one variant that launches all of them in their order. Fails with
/// a diagnostic at the op that is at fault.
llvm::FailureOr<KernelSet> printRegion(mlir::func::FuncOp region, const std::string& name,
                                       const RegionSchedule& schedule);

/// A device function for a hook of a kernel template.
struct PrintedFunction {
  struct Parameter {
    std::string type;  ///< "const bf16* "
    std::string name;  ///< "bias"
    Argument argument;
  };
  std::string tables;                 ///< that the function reads: definitions in front of it
  std::string text;                   ///< its own definition
  std::vector<Parameter> parameters;  ///< behind the fixed ones
};

/// `name(i64 row, i64 column, const vec<float, 8>& NAME, parameters)`, or of `float` for width 1:
/// the region's results where its operands `accumulators`, matrices of rows x columns in row-major
/// order, are in registers: one, or the gate's and the up projection's. Results have an
/// accumulator's elements in its order; `column` is a multiple of the width.
llvm::FailureOr<PrintedFunction> printEpilogue(mlir::func::FuncOp region,
                                               llvm::ArrayRef<unsigned> accumulators,
                                               const std::string& name, int width);
/// `name(i64 row, T* to, parameters)`: a block of `threads` threads computes row `row` of the
/// region's single result into shared memory. It ends without a barrier.
llvm::FailureOr<PrintedFunction> printRowFunction(mlir::func::FuncOp region,
                                                  const std::string& name, int threads);

}  // namespace lathe::cuda
