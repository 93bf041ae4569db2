// SPDX-License-Identifier: Apache-2.0
#pragma once
// The process's table of oneDNN matmul primitives, all of static shape and single-threaded: the
// callers split the work over their own pool. No dnnl type leaves this header's .cpp file.
#include <cstdint>
#include <memory>

#include "lathe/runtime/dtype.h"

namespace lathe::cpu {

/// C[m, n] = A[m, k] x B[k, n]; equal keys share a primitive.
struct MatmulKey {
  DType dtype = DType::F32;  ///< of A and B: F32 or BF16
  DType outDType = DType::F32;
  int64_t m = 0, k = 0, n = 0;
  int64_t aRow = 0, aCol = 1;  ///< strides in elements
  bool packedB = false;        ///< B in panels (packed_weights.h), strides unused
  int64_t bRow = 0, bCol = 1;
  int64_t cRow = 0;

  bool operator==(const MatmulKey&) const = default;
};

class MatmulPrimitive {
 public:
  explicit MatmulPrimitive(const MatmulKey& key);
  ~MatmulPrimitive();
  /// Memory that `execute` needs, one slice per thread that runs at the same time.
  size_t scratchBytes() const;
  /// oneDNN chose a reference or generic implementation; our own kernels are faster.
  bool slow() const;
  void execute(const void* a, const void* b, void* c, void* scratch) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Finds or makes a primitive. Weights' primitives (packedB) stay for the process; of the others
/// the 256 used last are kept. Throws Error(Unsupported) where oneDNN has none for this CPU.
std::shared_ptr<const MatmulPrimitive> matmulPrimitive(const MatmulKey& key);

}  // namespace lathe::cpu
