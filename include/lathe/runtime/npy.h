// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy's .npy format, versions 1 to 3, C order, little endian.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <cstddef>
#include <span>
#include <string>

#include "lathe/runtime/array.h"

namespace lathe {

/// Reads f2 f4 f8 i1 i2 i4 i8 u1 b1 arrays into storage of their own. Throws Error(Io),
/// Error(InvalidFile) for a broken file and Error(Unsupported) for other element types, big-endian
/// or Fortran-ordered data, which the message tells how to convert.
Array loadNpy(const std::string& path);
Array parseNpy(std::span<const std::byte> bytes, const std::string& file);

/// Writes version 1; atomic. BF16 has no NumPy type and is refused
/// (Unsupported): convert to F32 first.
void saveNpy(const std::string& path, const Array& array);

}  // namespace lathe
