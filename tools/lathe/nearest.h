// SPDX-License-Identifier: Apache-2.0
#pragma once
// "Did you mean": the nearest of a list of words.
#include <span>
#include <string>
#include <string_view>

namespace lathe::cli {

/// Letters to insert, delete, replace or swap with their neighbour to get from one word to the
/// other (optimal string alignment).
size_t editDistance(std::string_view from, std::string_view to);
/// The candidate nearest to `word`, or an empty string if none is within a third of its length.
std::string nearest(std::string_view word, std::span<const std::string> candidates);
/// "; did you mean 'X'?" or an empty string.
std::string didYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace lathe::cli
