// SPDX-License-Identifier: Apache-2.0
#include "runtime/file_piece.h"

#include "runtime/cut_axis.h"

namespace lathe {

Array pieceInFile(const std::shared_ptr<MappedFile>& file, size_t offset, DType dtype,
                  const Shape& whole, const AxisPiece& piece) {
  const CutAxis cut(whole, piece);
  const size_t first = offset + bytesOf(dtype, cut.first), run = bytesOf(dtype, cut.run);
  std::byte* data = file->data() + first;
  const size_t width = isPacked(dtype) ? 1 : sizeOf(dtype);
  const bool isTogether = cut.runs == 1 || cut.run == cut.stride;
  const size_t bytes = run * size_t(cut.runs);
  if (isTogether && bytes > 0 && reinterpret_cast<uintptr_t>(data) % width == 0) {
    file->fetch(first, bytes);
    return Array(dtype, cut.piece, data, file);
  }
  Array copy(dtype, cut.piece);
  file->readRuns(first, run, bytesOf(dtype, cut.stride), size_t(cut.runs),
                 static_cast<std::byte*>(copy.data()));
  return copy;
}

}  // namespace lathe
