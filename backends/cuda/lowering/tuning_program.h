// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is measured to fill the tuning database: a program whose entry points are kernel problems of
// a model, and whose calls are the candidates of each, all over the same operands.
#include <string>

#include "lathe/runtime/program.h"
#include "mlir/IR/BuiltinOps.h"

namespace lathe::cuda {

/// Targets of the backend that ask for such a program: "candidates" (texts alone) and
/// "sm_90a,candidates", with ":TEXT,TEXT" behind for problems that contain one of the texts.
bool isTuningTarget(std::string_view target);

/// From a lowered module and the program that buildProgram made of it. Every problem that several
/// candidates answer is there once, with the 12 that rank first and do not spill registers. The
/// metadata `tuning` is a JSON list, one object per entry point: entry, problem, version, symbols,
/// integers (what integer operands hold), candidates [{choice, model_us}].
Program tuningProgram(mlir::ModuleOp module, const Program& program, const std::string& target);

}  // namespace lathe::cuda
