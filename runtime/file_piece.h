// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces of tensors that lie in a file as they are used.
#include <memory>

#include "lathe/runtime/array.h"
#include "lathe/runtime/axis_piece.h"
#include "runtime/mapped_file.h"

namespace lathe {

/// A piece of a tensor that begins at byte `offset`: a view of the mapping where it lies together
/// and is aligned for its dtype, else a copy of what was read of the file, without what lies
/// between. The tensor has such a piece, of whole bytes (CutAxis). Throws Error(Io).
Array pieceInFile(const std::shared_ptr<MappedFile>& file, size_t offset, DType dtype,
                  const Shape& whole, const AxisPiece& piece);

}  // namespace lathe
