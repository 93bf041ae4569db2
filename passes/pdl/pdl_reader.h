// SPDX-License-Identifier: Apache-2.0
#pragma once
// One pdl.pattern becomes a DagPattern: inside of pdl_patterns.cpp and pdl_rewrite.cpp.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/passes/match.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/PDL/IR/PDL.h"
#include "mlir/Dialect/PDL/IR/PDLOps.h"
#include "mlir/Dialect/PDL/IR/PDLTypes.h"
#include "passes/pdl/pdl_natives.h"

namespace lathe {

/// What a replacement has made so far, by step.
struct MadeParts {
  std::vector<mlir::Value> values;
  std::vector<mlir::Attribute> attributes;
};

class PdlReader {
 public:
  PdlReader(DagPattern& pattern, mlir::pdl::PatternOp text);
  /// Throws Error with the line in the file.
  void read();

 private:
  using ValueSource = std::function<mlir::Value(const Match&, const MadeParts&)>;
  using AttributeSource = std::function<mlir::Attribute(const Match&, const MadeParts&)>;
  using Step = std::function<bool(Match&, MadeParts&)>;
  /// An attribute that is written down, or taken from a matched op.
  struct Source {
    mlir::Attribute constant;
    Tensor op;
    std::string name;
    mlir::Attribute of(const Match& m) const { return constant ? constant : m.attribute(op, name); }
  };
  struct Argument {
    Tensor value;
    Source attribute;
    NativeArgument of(const Match& m) const {
      return value.defined() ? NativeArgument{m[value], {}} : NativeArgument{{}, attribute.of(m)};
    }
  };

  [[noreturn]] void refuse(mlir::Operation* at, const std::string& problem) const;
  [[noreturn]] void unsupported(mlir::Operation* at, const std::string& problem) const;
  mlir::OperationName opName(mlir::pdl::OperationOp op) const;
  /// For each operand of the op its index among the `count` written ones, nothing for an absent
  /// optional one; `attributes` loses operandSegmentSizes.
  std::vector<std::optional<size_t>> placed(
      mlir::pdl::OperationOp op, size_t count,
      llvm::SmallVectorImpl<mlir::NamedAttribute>& attributes) const;
  /// The entry of a table of natives; throws Error for one that is not there or takes other kinds.
  template <class Native>
  const Native& nativeOf(llvm::ArrayRef<Native> table, const char* what, mlir::Operation* op,
                         llvm::StringRef name, mlir::ValueRange arguments) const {
    for (const Native& native : table)
      if (llvm::StringRef(native.name) == name) {
        checkArguments(native, what, op, arguments);
        return native;
      }
    std::string known;
    for (const Native& native : table)
      known += (known.empty() ? "" : ", ") + std::string(native.name);
    refuse(op, "unknown native " + std::string(what) + " '" + name.str() + "'; there are " + known);
  }
  void checkArguments(const Native& native, const char* what, mlir::Operation* op,
                      mlir::ValueRange arguments) const;
  /// The attributes of an op: what is written down, the names of the others and what gives those.
  struct SplitAttributes {
    llvm::SmallVector<mlir::NamedAttribute> known;
    llvm::SmallVector<llvm::StringRef> unknown;
    std::vector<std::pair<mlir::StringAttr, mlir::Value>> sources;
  };
  SplitAttributes splitAttributes(mlir::pdl::OperationOp op) const;
  const Tensor& tensorOf(mlir::Value pdl, mlir::Operation* user) const;
  mlir::Attribute constantOf(mlir::pdl::AttributeOp op) const;
  Source sourceOf(mlir::Value pdl, mlir::Operation* user) const;

  // --- what is matched
  void readMatched(mlir::Operation& op);
  void readOperand(mlir::pdl::OperandOp op);
  void readOperation(mlir::pdl::OperationOp op);
  void readResult(mlir::Operation* op, mlir::Value of, std::optional<uint32_t> index);
  void readConstraint(mlir::pdl::ApplyNativeConstraintOp op);
  void constrainType(const Tensor& t, mlir::Value type);

  // --- what replaces it
  void readRewrite(mlir::pdl::RewriteOp op);
  void readMade(mlir::Operation& op);
  void readMadeOperation(mlir::pdl::OperationOp op);
  void readNativeRewrite(mlir::pdl::ApplyNativeRewriteOp op);
  void readReplace(mlir::pdl::ReplaceOp op);
  ValueSource madeValue(mlir::Value pdl, mlir::Operation* user) const;
  AttributeSource madeAttribute(mlir::Value pdl, mlir::Operation* user) const;

  DagPattern& pattern_;
  mlir::pdl::PatternOp text_;
  mlir::Operation* root_ = nullptr;                 // the pdl.operation to be replaced
  llvm::DenseMap<mlir::Value, Tensor> tensors_;     // pdl values and ops
  llvm::DenseMap<mlir::Value, Source> attributes_;  // pdl.attribute
  llvm::DenseMap<mlir::Value, Tensor> typed_;       // pdl.type: the first that has it
  llvm::DenseMap<mlir::Value, size_t> made_;        // of the replacement: step
  size_t steps_ = 0;
  std::vector<Step> program_;
  ValueSource result_;
};

/// "gate.pdll:5" of a line of a pattern file.
std::string placeOf(mlir::Operation* op);

}  // namespace lathe
