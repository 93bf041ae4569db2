// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the common evaluator leaves to a CUDA kernel: parameters, aligned vectors, threads that
// share a row, and values kept in registers between two passes over it.
#include "backends/common/loops/evaluator.h"
#include "backends/cuda/lowering/kernel/text_names.h"
#include "backends/cuda/lowering/region/region_printer.h"
#include "llvm/ADT/SetVector.h"

namespace lathe::cuda {

using loops::Coord;
using loops::Index;

/// Reductions by blocks that cannot wait for each other: the kernel of pass n leaves one partial
/// result per block of those that need n - 1 others first, and later kernels start by combining
/// them.
struct Spread {
  static constexpr int64_t kPartBytes = 16;  ///< a value and its index, 8 bytes each at most
  llvm::SetVector<mlir::Operation*> reductions = {};
  int pass = 0;
  bool last = false;  ///< the kernel that writes the region's results
};

/// How the threads of a row work together.
struct Team {
  using Kind = RegionSchedule::Kind;
  Kind kind = Kind::Flat;
  int threads = 1;   ///< that share a row, or an element of columns
  int ofBlock = 0;   ///< threads of a block, where the device functions of reductions ask for them
  size_t level = 0;  ///< the scope in which all of them are together
  Coord rank = 0;    ///< of this thread, in [0, threads)
  int blocks = 1;    ///< that share a row, at most as many as a block has threads
  Coord piece = 0;   ///< number of this block among them
  Spread spread = {};
};

/// The parameters of a kernel or device function, and the variables of its head.
class Frame {
 public:
  struct Parameter {
    mlir::Value value;
    std::string declaration;  ///< "const float* __restrict__ "; the name stands behind it
    std::string name;
    Argument argument;
    int order;              ///< among the others
    bool isInHead = false;  ///< of a size: the text of the head has it
  };

  Frame(mlir::Block& entry, Names& names) : entry_(entry), names_(names) {}

  /// A value that the text calls by this name.
  mlir::Value variable(mlir::Type type, const std::string& name);
  mlir::Value add(mlir::Type type, Parameter parameter);
  /// "x", "threadIdx.x": of each argument of the entry block.
  const std::vector<std::string>& texts() const { return texts_; }
  /// In the order of the parameter list, without sizes that nothing is computed from.
  std::vector<Parameter> parameters() const;
  Parameter* find(mlir::Value value);
  Names& names() { return names_; }

 private:
  mlir::Block& entry_;
  Names& names_;
  std::vector<std::string> texts_;
  std::vector<Parameter> parameters_;
};

/// "float", "bf16", "u8": an element type in memory.
std::string storedName(mlir::Type element);

class ThreadEvaluator : public loops::Evaluator {
 public:
  using LaneBody = loops::Evaluator::LaneBody;

  /// `names` are those of the operands, then of the results.
  ThreadEvaluator(loops::LoopBuilder& builder, mlir::func::FuncOp region, bool flat, Frame& frame,
                  std::vector<std::string> names);

  /// Says which row the kernel's threads work on, of as many as the product of `dims`, which are
  /// not 0 wherever the kernel runs.
  void setRow(const Coord& number, llvm::ArrayRef<DimExpr> dims);
  /// Makes these reductions of the own row, in their order, before any loop over their results.
  void reduceFirst(const llvm::SetVector<mlir::Operation*>& reductions);
  /// Makes the reductions of the team's pass.
  void reducePass();
  /// A loop over [0, length) of a row in chunks of `lanes` by the team.
  Values overRow(const DimExpr& length, int lanes, mlir::ValueRange init, LaneBody body);
  /// The largest vector width for rows of this length, at most `most`.
  static int widthFor(const DimExpr& length, int most);
  /// Results may be written where operands lie.
  void resultsReplaceOperands();
  std::vector<Frame::Parameter> parameters() const { return frame_.parameters(); }

  Team team;
  int width = 1;                  ///< lanes of a chunk, at most
  std::string sharedTarget = {};  ///< where results go instead of their buffers, if not empty
  /// Operands that are not in memory but in registers, at the own row and lane.
  llvm::DenseMap<unsigned, mlir::Value> accumulators;
  /// Operands of a row's length alone that are requested in the first pass over it, though a later
  /// one reads them: what reduces the row lies between the two.
  llvm::SmallVector<mlir::BlockArgument> requestedFirst;
  llvm::SetVector<mlir::Operation*> together;  ///< reductions of the own row by the whole team
  std::vector<std::string> globals;            ///< constants in front of the kernel
  std::string failure;                         ///< not empty: the code is of no use

 private:
  mlir::Value makePointer(unsigned number) override;
  mlir::Value makeSize(const DimExpr& dim) override;
  mlir::Value makeTable(ConstantOp op) override;
  void report(GatherOp op, mlir::Value bad, mlir::Value index) override;
  mlir::Value heldOperand(mlir::BlockArgument argument, const Index& index) override;
  mlir::Value loadSpan(const loops::Source& source, mlir::Type stored, const Coord& at,
                       const Index& index) override;
  mlir::Value anyLane(mlir::Value mask) override;
  mlir::Location locationOf(mlir::Operation* op) override;
  mlir::Value ownWay(mlir::Operation* op, const Index& index) override;
  mlir::Value randomBits(RandomBitsOp op, const Index& index);
  mlir::Value softmaxQuotient(DivOp op, const Index& index);
  bool isWorthKeeping(mlir::Value v) const override;
  bool keepsInner() const override { return true; }
  void keep(mlir::Value tensor, mlir::Value value, const Index& index) override;
  mlir::Value kept(mlir::Value tensor, const Index& index) override;
  bool isInChunk(const Index& index) const;

  bool spreadsLanes() const override { return false; }
  bool sharesRows() const override { return team.kind != Team::Kind::Flat; }
  bool isShared(mlir::Operation* op, const Index& index) override;
  size_t sharedLevel() const override { return team.level; }
  bool mayJoin(mlir::Operation* other) const override;
  Values overThreads(const DimExpr& elements, const DimExpr& innermost, Values acc,
                     LaneBody body) override;
  Values combineThreads(mlir::Operation* op, Values acc) override;
  bool isMadeBefore(mlir::Operation* op) const override;
  Values madeBefore(mlir::Operation* op, Values acc) override;
  /// Where the blocks of all rows leave their parts of accumulator `number` of a reduction.
  mlir::Value partsOf(mlir::Operation* op, unsigned number, mlir::Type type);

  Coord threadOfBlock();
  bool endsBeforeStores(const Index& index) const override;
  bool isOwnPlace(mlir::Operation* op, const Index& index) const;
  void reduceInOwnRow(mlir::Operation* op);

  Frame& frame_;
  std::vector<std::string> names_;
  /// A chunk of a row that a thread works on.
  struct Chunk {
    DimExpr length = 0;
    int lanes = 1, count = 0, pass = 0;
    size_t level = 0;
    Coord lane, number;
  };
  struct Slot {
    mlir::Value array;
    mlir::Type type;
    Chunk chunk;
    loops::Key elsewhere;  // of the coordinates in front of the lane
  };
  std::optional<Chunk> chunk_;
  int passes_ = 0;
  std::set<int> open_;  // passes that are being filled: others go in front of them
  llvm::DenseMap<mlir::Value, Slot> slots_;
};

}  // namespace lathe::cuda
