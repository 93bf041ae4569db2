// SPDX-License-Identifier: Apache-2.0
#pragma once
// The MLIR side of Graph: one module, one open entry point, the values behind the handles.
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lathe/frontend/graph.h"
#include "lathe/runtime/error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace lathe {

/// Elements of a tensor, and the largest size that a symbol may have.
inline constexpr int64_t kMostElements = int64_t(1) << 48;

/// No exception crosses an MLIR frame: diagnostics are collected while MLIR runs and thrown after
/// it returned.
class GraphImpl final : public Recorder {
 public:
  GraphImpl(std::string_view name, std::source_location at);
  explicit GraphImpl(std::string_view text, std::string_view fileName);

  Tensor emit(std::string_view op, const std::vector<Tensor>& operands,
              const std::vector<NamedAttr>& attributes, std::source_location at) override;
  DType dtypeOf(size_t id) const override;
  Dims shapeOf(size_t id) const override;
  void expectValue(size_t id, std::source_location at) const override;
  void pushScope(std::string_view path, std::source_location at) override;
  void popScope() override;

  /// The Graph that holds this, wherever it was moved to: what modules follow.
  Graph* owner() const { return owner_; }
  void setOwner(Graph* owner) { owner_ = owner; }
  /// The line that an error names: of the outermost open scope, else `at`.
  std::source_location blame(std::source_location at) const;
  /// One thread at a time compiles a graph: its context is not made for more.
  std::unique_lock<std::recursive_mutex> lock() { return std::unique_lock(mutex_); }

  Dim dim(std::string_view name, int64_t lo, int64_t hi, int64_t multiple, std::source_location at);
  void entry(std::string_view name, std::source_location at);
  Tensor argument(std::string_view name, mlir::RankedTensorType type, bool isState,
                  std::source_location at);
  void result(std::string_view name, const Tensor& value, bool isState, std::source_location at);
  Tensor weight(std::string_view name, DType dtype, const Shape& shape, std::source_location at);
  void state(std::string_view name, DType dtype, const Dims& shape, std::source_location at);
  Tensor readState(std::string_view name, std::source_location at);
  void writeState(std::string_view name, const Tensor& value, std::source_location at);
  void mesh(std::string_view axis, int64_t ranks, std::source_location at);
  /// Without an axis the weights stay whole.
  void shardWeights(std::string_view weights, std::optional<int64_t> axis,
                    std::string_view meshAxis, std::source_location at);
  void observe(std::string_view name, const Tensor& value, std::source_location at);
  Tensor constant(double value, DType dtype, std::source_location at);
  mlir::RankedTensorType typeFor(DType dtype, const Dims& shape, std::source_location at);

  /// The module with every entry point closed; checks that each has an output and that every state
  /// read is also written. Throws Error.
  mlir::ModuleOp finished();
  /// A copy of that module; this one can be recorded in as before.
  mlir::OwningOpRef<mlir::ModuleOp> copy();
  mlir::Value value(const Tensor& tensor) const { return values_[tensor.id()]; }

 private:
  mlir::Location locate(std::source_location at);
  Tensor push(mlir::Value value);
  void check(const Tensor& tensor, std::source_location at) const;
  /// Names the function and the module that record, and the line to blame.
  [[noreturn]] void fail(const std::string& text, std::source_location at,
                         ErrorCode code = ErrorCode::InvalidArgument) const;
  /// Starts "forward" in an empty graph. Throws where the latest entry point was closed.
  void expectOpen(std::source_location at);
  void failClosed(std::source_location at) const;
  void expectDType(DType dtype, std::source_location at) const;
  void expectName(const char* what, std::string_view name, std::source_location at) const;
  /// Names of symbols, states and entry points are those of one table.
  void expectFree(const char* what, std::string_view name, std::source_location at);
  /// What an attribute or a declaration spells: no negative number, only declared symbols.
  void expectDims(const Dims& dims, std::string_view op, std::source_location at) const;
  /// Throws for more elements than kMostElements, with the smallest values of the symbols.
  void expectElements(mlir::RankedTensorType type, std::string_view op,
                      std::source_location at) const;
  std::string origins(const std::vector<Tensor>& operands) const;

  struct Named {
    std::string name;
    bool isState;
    bool isObserved = false;
  };
  struct OpenEntry {
    mlir::func::FuncOp function;
    std::vector<Named> arguments, results;
    std::vector<mlir::Value> returned;
    std::map<std::string, Tensor, std::less<>> weights, states;
    bool closed = false;
  };
  void close(OpenEntry& entry);
  /// Behind the declarations that the module begins with.
  mlir::OpBuilder atDeclarations();
  mlir::ModuleOp verified();

  std::unique_ptr<mlir::MLIRContext> context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::OpBuilder builder_;
  std::vector<OpenEntry> entries_;
  std::vector<mlir::Value> values_;
  std::vector<size_t> entryOf_;  // the entry point that a value belongs to
  std::map<std::string, mlir::RankedTensorType, std::less<>> weightTypes_, stateTypes_;
  struct Range {
    int64_t lo, hi, multiple;
    bool operator==(const Range&) const = default;
  };
  std::map<std::string, Range, std::less<>> symbols_;
  std::vector<std::string> scopes_;
  // How many scopes are open up to the outermost one that has a line, and its line.
  size_t located_ = 0;
  std::source_location outermost_;
  Graph* owner_ = nullptr;
  std::recursive_mutex mutex_;
};

}  // namespace lathe
