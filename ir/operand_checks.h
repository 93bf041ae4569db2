// SPDX-License-Identifier: Apache-2.0
#pragma once
// What functions that record several ops ask of their operands, in words of the caller.
#include <string>
#include <string_view>

#include "lathe/ir/tensor.h"
#include "lathe/runtime/error.h"

namespace lathe {

/// "f32[batch, 4]"
std::string typeTextOf(const Tensor& x);
[[noreturn]] void failIn(std::string_view function, const std::string& text,
                         std::source_location at, ErrorCode code = ErrorCode::InvalidArgument);
/// Throws Error for an empty handle and for one whose graph is gone.
void expectTensor(std::string_view function, const Tensor& x, std::source_location at);
/// An axis counted from the front. Throws Error outside of the rank.
int64_t axisIn(std::string_view function, const Tensor& x, int64_t axis, std::source_location at);
/// The size of an axis that must be a number; `why` says what for.
int64_t fixedSize(std::string_view function, const Tensor& x, int64_t axis, const char* why,
                  std::source_location at);
void expectReals(std::string_view function, const Tensor& x, std::source_location at);
void expectWholeNumbers(std::string_view function, const Tensor& x, std::source_location at);
/// A mask that is no bool: the error names the comparison that makes it one.
void expectMask(std::string_view function, const Tensor& mask, std::source_location at);

}  // namespace lathe
