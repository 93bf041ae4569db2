// SPDX-License-Identifier: Apache-2.0
#pragma once
// The MLIR side of Graph: one module, one open entry point, the values behind the handles.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace lathe {

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
  void pushScope(std::string_view path, std::source_location at) override;
  void popScope() override;

  Dim dim(std::string_view name, int64_t lo, int64_t hi, int64_t multiple, std::source_location at);
  void entry(std::string_view name, std::source_location at);
  Tensor argument(std::string_view name, mlir::RankedTensorType type, bool isState,
                  std::source_location at);
  void result(std::string_view name, const Tensor& value, bool isState, std::source_location at);
  Tensor weight(std::string_view name, DType dtype, const Shape& shape, std::source_location at);
  void state(std::string_view name, DType dtype, const Dims& shape, std::source_location at);
  Tensor readState(std::string_view name, std::source_location at);
  void writeState(std::string_view name, const Tensor& value, std::source_location at);
  void observe(std::string_view name, const Tensor& value, std::source_location at);
  mlir::RankedTensorType typeFor(DType dtype, const Dims& shape, std::source_location at);

  /// The module with every entry point closed; checks that each has an output and that every state
  /// read is also written. Throws Error.
  mlir::ModuleOp finished();
  mlir::Value value(const Tensor& tensor) const { return values_[tensor.id()]; }

 private:
  mlir::Location locate(std::source_location at);
  /// The line that an error names: of the outermost open scope, else `at`.
  std::source_location blame(std::source_location at) const;
  Tensor push(mlir::Value value);
  void check(const Tensor& tensor, std::source_location at) const;
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

  std::unique_ptr<mlir::MLIRContext> context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::OpBuilder builder_;
  std::vector<OpenEntry> entries_;
  std::vector<mlir::Value> values_;
  std::vector<size_t> entryOf_;  // the entry point that a value belongs to
  std::map<std::string, mlir::RankedTensorType, std::less<>> weightTypes_, stateTypes_;
  std::map<std::string, std::pair<int64_t, int64_t>, std::less<>> symbols_;
  std::vector<std::string> scopes_;
  std::source_location outermost_;
};

}  // namespace lathe
