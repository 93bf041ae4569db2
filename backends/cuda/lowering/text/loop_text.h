// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loop form of a kernel's body as CUDA C++: scf, arith, math, vector and LLVM memory ops become
// statements that a person reads. Ops on vectors are loops over their lanes.
#include <string>

#include "backends/cuda/lowering/kernel/text_names.h"
#include "llvm/ADT/ArrayRef.h"

namespace mlir {
class Block;
}

namespace lathe::cuda {

/// The address space of pointers into a block's shared memory.
inline constexpr unsigned kSharedMemory = 3;

struct LoopTextOptions {
  /// Results are rounded to 16 bits: f32 exponentials marked `afn` and divisions marked `arcp` may
  /// be approximate.
  bool fastExp = false;
};

/// The statements of `body`, without its terminator, indented by `indent` levels of two spaces.
/// `arguments` are the texts of its arguments: a name or an expression of the argument's type
/// ("x", "(i64)blockIdx.x"), or a function's u32 for an i32 ("warp_id()"), which is cast. A
/// location named "%mean" gives a value its name; the lines behind locations become comments.
/// `failure` says, in a sentence, what cannot be printed; the text is then of no use.
std::string printLoops(mlir::Block& body, llvm::ArrayRef<std::string> arguments, Names& names,
                       int indent, const LoopTextOptions& options, std::string& failure);

}  // namespace lathe::cuda
