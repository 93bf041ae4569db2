// SPDX-License-Identifier: Apache-2.0
#pragma once
// C[r, n] = A[r, k] x W[index of r][k, n]: rows that each choose one of several weights. The rows
// of a weight are brought together, so that it is read once for many of them and one that nobody
// chooses is not read at all.
#include "backends/cpu/device/linear.h"

namespace lathe::cpu {

/// What is fixed before the number of rows is known. `layout` packed: `groups` packed weights one
/// behind the other (packed_weights.h), of F32 or BF16; else dense [groups, n, k] (out_in) or
/// [groups, k, n] (in_out) of any float.
struct GroupedSpec {
  DType dtype = DType::F32;  ///< of A and the weights
  int64_t groups = 0, k = 0, n = 0;
  WeightLayout layout = WeightLayout::packed;
  std::optional<DType> outDType = {};  ///< of C: F32 or, without it, that of A

  DType out() const { return outDType.value_or(dtype); }
};

/// Operands of one call; nothing is owned.
struct GroupedArgs {
  int64_t rows = 0;
  const void* a = nullptr;              ///< dense rows of k
  const int64_t* rowOfA = nullptr;      ///< which of them each row is
  const int64_t* groupOfRow = nullptr;  ///< each in [0, groups)
  const void* weights = nullptr;
  void* c = nullptr;  ///< dense [rows, n]
};

/// A layer, with what its products want of scratch memory. Creates the primitives that they may
/// use.
class GroupedLinear {
 public:
  GroupedLinear(const GroupedSpec& spec, int threads, KernelIsa isa = KernelIsa::current());

  size_t scratchBytes(int64_t rows) const;
  /// The threads share the work evenly, however unequally the weights are chosen. Products are
  /// summed in f32 (f64 in f64) and rounded once; a row's result depends on other rows' choices
  /// only in so far as another kernel may serve another number of rows. Throws
  /// Error(InvalidArgument) for too little scratch. `pool` has the threads that were said before.
  void run(const GroupedArgs& args, ThreadPool& pool, Scratch scratch) const;

 private:
  GroupedSpec spec_;
  int threads_;
  KernelIsa isa_;
  size_t matmulBytes_ = 0;  ///< of one thread's products
};

}  // namespace lathe::cpu
