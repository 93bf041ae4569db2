// SPDX-License-Identifier: Apache-2.0
// Precompiled for the steps from operators to kernels, which see MLIR's dialects of loops and
// values.
#pragma once
#include "ir/pch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
