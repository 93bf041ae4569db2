// SPDX-License-Identifier: Apache-2.0
#pragma once
// Facts about ops that their .td definitions state as traits (ir/interfaces.td).
#include "mlir/IR/OpDefinition.h"

namespace lathe::fact {

/// Every element of the result depends on the operands' elements at the same place.
template <class Op>
class IsElementwise : public mlir::OpTrait::TraitBase<Op, IsElementwise> {};
/// Only moves elements, or makes them from their indices.
template <class Op>
class IsMovement : public mlir::OpTrait::TraitBase<Op, IsMovement> {};
/// Combines the elements along axes.
template <class Op>
class IsReduction : public mlir::OpTrait::TraitBase<Op, IsReduction> {};
/// A fused op whose elementary form is row kernels.
template <class Op>
class IsRowOp : public mlir::OpTrait::TraitBase<Op, IsRowOp> {};
/// A fused op that is elementwise: its result depends at each place on its operands there alone.
template <class Op>
class IsPointwise : public mlir::OpTrait::TraitBase<Op, IsPointwise> {};
/// A fused op that norms the rows of its last axis: it keeps the shape, and reads a row whole
/// before it writes one.
template <class Op>
class IsRowNorm : public mlir::OpTrait::TraitBase<Op, IsRowNorm> {};
/// A function that costs many times what an addition does.
template <class Op>
class IsTranscendental : public mlir::OpTrait::TraitBase<Op, IsTranscendental> {};
/// Names or holds something and runs nothing.
template <class Op>
class IsDeclaration : public mlir::OpTrait::TraitBase<Op, IsDeclaration> {};
/// Runs as a kernel of its own on every backend, never as a part of a generated region.
template <class Op>
class HasOwnKernel : public mlir::OpTrait::TraitBase<Op, HasOwnKernel> {};
/// Compares, converts, chooses or moves: no floating-point operation counts.
template <class Op>
class HasNoArithmetic : public mlir::OpTrait::TraitBase<Op, HasNoArithmetic> {};
/// Computes in f32 whatever the dtype of its operands is, and rounds its result once.
template <class Op>
class RoundsOnce : public mlir::OpTrait::TraitBase<Op, RoundsOnce> {};

/// One rank's part of what the ranks of a mesh do together: it only means something on its rank.
template <class Op>
class IsOfOneRank : public mlir::OpTrait::TraitBase<Op, IsOfOneRank> {};

}  // namespace lathe::fact
