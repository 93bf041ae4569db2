// SPDX-License-Identifier: Apache-2.0
#pragma once
// A projection to queries, keys and values whose heads are rotated and written into a cache: what a
// matrix kernel does with each pair of columns as it has their sums.
#include <functional>
#include <optional>
#include <vector>

#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "lathe/ir/types.h"

namespace lathe::cuda {

/// Heads that lie side by side in the projection's columns and share one destination.
struct HeadGroup {
  int64_t firstColumn = 0, heads = 0;
  mlir::Operation* norm = nullptr;  ///< RmsNormOp or NormRopeOp: each head is divided by its root
  mlir::Value gain;                 ///< of the norm; may be null
  mlir::Operation* rope = nullptr;  ///< RopeOp or NormRopeOp; null: stored as it is
  mlir::Value cos, sin;             ///< of the rotation
  UpdateOp update;                  ///< null: stored as a tensor [batch, heads, tokens, depth]
  mlir::Value result;
};

struct RotatedProjection {
  LinearOp linear;
  DimExpr batch, tokens;  ///< rows are batch * tokens + token
  int64_t columns = 0, depth = 0;
  int64_t rotated = 0;  ///< elements of a head that rotate
  Pairing pairing = Pairing::half;
  std::vector<HeadGroup> groups;      ///< cover every column once
  std::vector<mlir::Operation*> ops;  ///< behind the linear op

  int64_t pairs() const { return columns / 2; }
  bool hasNorms() const;
};

/// A linear op all of whose columns are heads that are rotated, written into a cache or both;
/// nothing for a form that the kernel does not have.
std::optional<RotatedProjection> rotatedProjectionOf(LinearOp linear);

/// The part of a hooks struct (templates/lathe_gemv.cuh) that takes pairs of columns.
struct RotationHooks {
  std::string fields;     ///< declarations
  std::string functions;  ///< firstColumn, secondColumn, storePair
  std::string values;     ///< of the fields, in their order: ", cos_0, sin_0, y_0"
};
/// Buffers and sizes that they read are added to `parameters`. `bufferOf` gives the number of a
/// value among the call's buffers.
RotationHooks printRotation(const RotatedProjection& projection, KernelParameters& parameters,
                            const std::function<int(mlir::Value)>& bufferOf);

}  // namespace lathe::cuda
