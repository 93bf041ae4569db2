// SPDX-License-Identifier: Apache-2.0
#pragma once
// Behind loop_text.h: expressions, loops over lanes and statements.
//
// A value is a name, or it has none and is written out where it is used: expressions are made when
// they are read, for the lane that reads them.
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "backends/cuda/lowering/text/loop_text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace lathe::cuda {

/// Precedences of C++, the tightest last.
enum Level { kChoice = 1, kOr, kAnd, kBits, kEqual, kLess, kShift, kSum, kTimes, kUnary, kPrimary };

/// A C++ expression.
struct Expr {
  std::string text;
  int level = kPrimary;
  /// How its C++ type stands to that of the value.
  enum class Type {
    Exact,
    Narrow,  ///< a narrower signed integer or a literal with the same value
    Foreign  ///< becomes the value when it is converted
  } type = Type::Exact;
  bool reads = false;  ///< from memory
};

/// Elements of a vector that are read: those of a loop over lanes, or a single one.
struct Lane {
  std::string text;             ///< "j", "j ^ 1", "3"
  std::vector<int64_t> values;  ///< for each value of `variable`; empty: known only when it runs
  std::string variable;         ///< of the loop; "": none
  int level = kPrimary;
};

/// An element that a lane may take from anywhere.
inline constexpr int64_t kAnyElement = INT64_MIN;

/// An expression of `variable` that has `values` at 0, 1, ...; nothing if none of the usual forms
/// fits.
std::optional<Expr> formulaOf(llvm::ArrayRef<int64_t> values, llvm::StringRef variable);
/// A condition that is true where `values` has 1 and false where it has 0.
Expr conditionOf(llvm::ArrayRef<int64_t> values, llvm::StringRef variable);

/// What an op does to memory: that of buffers, and local arrays by their alloca.
struct Effects {
  bool reads = false, writes = false;
  llvm::SmallPtrSet<mlir::Operation*, 2> localReads, localWrites;

  void add(const Effects& other);
  /// One may not pass the other.
  bool conflict(const Effects& other) const;
};
Effects effectsOf(mlir::Operation* op);

/// Consecutive statements of a block: one op, or a loop over lanes and what follows it.
struct Step {
  mlir::Operation* op = nullptr;
  int64_t lanes = 0;
  std::vector<mlir::Operation*> ops;     ///< in the loop
  std::vector<mlir::Operation*> behind;  ///< stores
  std::vector<unsigned> yields;          ///< operands of the block's yield that are assigned in it
  Effects effects;
  mlir::Block* block = nullptr;

  bool has(mlir::Operation* op) const { return members.contains(op); }
  llvm::DenseSet<mlir::Operation*> members;  ///< `ops` as a set
};

// Facts of the form, without the state of a text.
std::string typeName(mlir::Type type);
std::string hintOf(mlir::Location location);
mlir::VectorType vectorOf(mlir::Type type);
/// To a type that has every value, or to fewer bits of an integer.
bool isConversion(mlir::Operation* op);
/// Prints nothing, wherever it stands: constants, broadcasts, addresses.
bool isFree(mlir::Operation* op);
/// Elementwise on vectors or a shuffle, an access lane by lane, or a loop marked as one over lanes:
/// the number of lanes; else 0.
int64_t lanesOf(mlir::Operation* op);
/// The reading of a lane of the value costs next to nothing anywhere: a loaded vector, what is only
/// converted or moved, short index arithmetic.
bool isRebuildable(mlir::Value value, int depth = 0);
/// `use` takes lane j of the vector in lane j of the loop over lanes that `step` is.
bool isLaneUse(mlir::OpOperand& use, const Step& step);
/// Somebody takes more of the vector than the own lanes in the loop, and it cannot be rebuilt
/// there.
bool needsVector(mlir::Value value, const Step& step);
/// The loop over lanes of `loop`, if it is marked as one: its lanes, else 0.
int64_t laneLoop(mlir::Operation* loop);
/// The alloca that a pointer points into; null for other memory.
mlir::Operation* localArray(mlir::Value pointer);
/// Something in the block of `op`, behind it, writes to the local array.
bool writesBehind(mlir::Operation* array, mlir::Operation* op);
/// The vector that a store needs as a whole: what it rounds to 16 bits, if it does.
mlir::Value storedWhole(mlir::LLVM::StoreOp op);
std::vector<Step> stepsOf(mlir::Block& block, bool assigns);

class LoopPrinter {
 public:
  LoopPrinter(Names& names, int indent, const LoopTextOptions& options)
      : names_(names), options_(options), indent_(indent) {}

  std::string print(mlir::Block& body, llvm::ArrayRef<std::string> arguments);
  std::string failure;

 private:
  struct Bound {
    enum class Form { Scalar, Array, InLane } form;
    Expr expr;
    std::string variable = {};  // of InLane: the loop's
  };
  struct Place {  // p + index, in elements
    std::string base;
    std::optional<Expr> index;
    mlir::Operation* local = nullptr;
  };

  // loop_text_values.cpp: expressions
  Expr read(mlir::Value value, const Lane* lane = nullptr);
  Expr build(mlir::Operation* op, const Lane* lane);
  Expr arithmetic(mlir::Operation* op, const Lane* lane);
  Expr compare(mlir::Operation* op, const Lane* lane);
  Expr convert(mlir::Operation* op, const Lane* lane);
  Expr literal(mlir::Attribute value, mlir::Type type);
  Expr exact(const Expr& e, mlir::Type type);
  Expr valued(const Expr& e, mlir::Type type);
  Expr unsignedOf(const Expr& e, mlir::Type type);
  Expr call(const std::string& function, llvm::ArrayRef<Expr> arguments);
  Expr wrapped(const Expr& e, int level);
  Expr binary(const Expr& a, const char* sign, const Expr& b, int level, bool associates = false);
  Expr cast(const std::string& type, const Expr& e);
  Expr chosen(const Expr& condition, const Expr& a, const Expr& b);

  // loop_text_memory.cpp: vectors and addresses
  Expr element(mlir::Operation* op, const Lane& lane);
  Expr shuffled(mlir::Value a, mlir::Value b, llvm::ArrayRef<int64_t> mask, const Lane& lane);
  Expr tabled(mlir::DenseElementsAttr values, const Lane& lane);
  /// The name of an array of constants in front of the loop over lanes.
  std::string table(const std::string& hint, const std::string& type, size_t count,
                    const std::string& items);
  Lane laneAt(const Expr& position);
  Lane laneAt(int64_t position);
  Lane laneOf(llvm::ArrayRef<int64_t> values, const Lane& lane);
  Place place(mlir::Value pointer, const Lane* lane, mlir::Type access);
  std::string elementText(const Place& place);
  std::string pointerText(const Place& place);
  std::string pointerName(mlir::Value pointer);
  Expr loaded(mlir::Value pointer, mlir::Type type, const Lane* lane);
  std::string whole(mlir::Value vector, const std::string& hint);
  void vectorLoad(mlir::LLVM::LoadOp op);
  void store(mlir::LLVM::StoreOp op);
  void storeLane(mlir::LLVM::StoreOp op, const Lane& lane);
  void alloca(mlir::LLVM::AllocaOp op);

  // loop_text.cpp: statements
  void block(mlir::Block& block, llvm::ArrayRef<std::string> targets);
  void statement(mlir::Operation* op);
  void define(mlir::Operation* op, const Expr& value);
  bool staysInline(mlir::Operation* op, const Expr& value);
  /// Statements for each lane in turn, in a loop over them.
  void overLanes(int64_t count, const std::function<void(const Lane&)>& statements);
  void lanes(const Step& step, mlir::Block& block, llvm::ArrayRef<std::string> targets);
  void laneStatement(mlir::Operation* op, const Step& step, const Lane& lane);
  void call(mlir::Operation* op);
  void branch(mlir::scf::IfOp op);
  void loop(mlir::scf::ForOp op, const Lane* lane);
  std::vector<std::string> startLoop(mlir::scf::ForOp op, const Lane* lane);
  void assign(llvm::ArrayRef<std::pair<std::string, mlir::Value>> targets, const Lane* lane);
  std::string assignment(const std::string& target, mlir::Value value, const Lane* lane);
  void declare(const std::string& name, mlir::Type type, mlir::Value start);
  std::string nameFor(mlir::Value value);
  std::string aside(const std::function<void()>& statements);
  void line(const std::string& text, mlir::Operation* origin = nullptr);
  void inFront(const std::string& text);
  void fail(const std::string& why);
  void fail(mlir::Operation* op, const std::string& why = {});

  Names& names_;
  const LoopTextOptions& options_;
  int indent_;
  std::string out_;
  std::string* front_ = nullptr;  // statements in front of the loop over lanes that is being made
  int frontIndent_ = 0;
  std::vector<const Lane*> laneStack_;
  std::map<std::string, std::string> tables_;  // in front of the same loop, by their declaration
  llvm::DenseMap<mlir::Value, Bound> bound_;
  llvm::DenseSet<mlir::Value> variables_;  // that may be assigned to again
  int counters_ = 0;                       // loops called k that are open
  std::string lastOrigin_;
};

/// How often the text of a value would be written if it had no name.
int occurrences(mlir::Value value);

}  // namespace lathe::cuda
