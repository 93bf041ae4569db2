// SPDX-License-Identifier: Apache-2.0
#pragma once
// Running passes and the interpreter on the module of one sample.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lathe/backends/interpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OwningOpRef.h"
#include "tests/conformance/cases.h"

namespace lathe::conformance {

using Module = mlir::OwningOpRef<mlir::ModuleOp>;

/// A copy of the graph's module; the graph must outlive it.
Module moduleOf(const Graph& graph);
void decompose(mlir::ModuleOp module);
void canonicalize(mlir::ModuleOp module);
/// The fusions alone, and as the pipeline runs them.
void fuse(mlir::ModuleOp module);
void canonicalizeAndFuse(mlir::ModuleOp module);

std::string textOf(mlir::ModuleOp module);
int countOps(mlir::ModuleOp module, const std::string& op);
/// The ops of the dialect in order, without declarations.
std::vector<mlir::Operation*> opsOf(mlir::ModuleOp module);

/// A type's sizes where its symbols have these values. Throws std::invalid_argument where one has
/// none: a mistake of the test, which no handler of lathe::Error takes for one of the graph.
Shape shapeOf(mlir::RankedTensorType type, const Symbols& sizes);

/// The recorded lines behind an op's location, "FILE:LINE:COLUMN", each once.
std::vector<std::string> linesOf(mlir::Operation* op);

/// Where two lists of results differ in dtype, shape or bits, NaN counted as one value; "" if
/// nowhere.
std::string firstOtherBits(const std::vector<Array>& a, const std::vector<Array>& b);
/// All results of `forward` on the sample's data, in float64. Throws Error.
std::vector<Array> evaluate(mlir::ModuleOp module, const Sample& sample, const std::string& salt);

}  // namespace lathe::conformance
