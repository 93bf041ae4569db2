// SPDX-License-Identifier: Apache-2.0
#pragma once
// NAME=SPEC of `lathe run --input`.
#include <string>
#include <string_view>
#include <utility>

#include "lathe/runtime/array.h"

namespace lathe::cli {

/// SPEC is `@x.npy`, `@x.safetensors:key`, or SHAPExDTYPE=VALUES: `4x8xf32=1.0` fills the tensor,
/// `3xi64=1,2,3` lists its elements in row-major order, `i64=5` is a scalar. Throws
/// Error(InvalidArgument) with what was expected, or the readers' errors.
std::pair<std::string, Array> parseInput(std::string_view text);
Array parseInputSpec(std::string_view spec, std::string_view name);

}  // namespace lathe::cli
