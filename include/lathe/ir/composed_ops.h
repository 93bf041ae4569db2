// SPDX-License-Identifier: Apache-2.0
#pragma once
// What PyTorch and MLX have as one function and the dialect spells with several ops. Each function
// records elementary ops at the caller's line and throws Error (InvalidArgument) there for operands
// that it does not take. Axes may be negative: they count from the back.
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/ir/recorded_ops.h"

namespace lathe {

// --- shapes ---

/// Takes an axis away whose size is the number 1. Throws Error for another size, where PyTorch
/// would leave the axis.
Tensor squeeze(const Tensor& x, int64_t axis, LATHE_AT);
/// Takes every axis away whose size is the number 1.
Tensor squeeze(const Tensor& x, LATHE_AT);
/// A new axis of size 1: it is axis `axis` of the result, from -rank - 1 to rank.
Tensor unsqueeze(const Tensor& x, int64_t axis, LATHE_AT);
/// Axes `first` to `last` become one: [2, 3, 4] -> [2, 12] for first = 1.
Tensor flatten(const Tensor& x, int64_t first = 0, int64_t last = -1, LATHE_AT);
/// Pieces of `size` along an axis, the last of which may be smaller. The axis's size is a number.
std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t axis = 0, LATHE_AT);
/// Pieces of these sizes, which add up to the axis's: PyTorch's split with a list.
std::vector<Tensor> splitSizes(const Tensor& x, const Dims& sizes, int64_t axis = 0, LATHE_AT);
/// `count` pieces of one size, rounded up; as in PyTorch the last may be smaller, and fewer come
/// where that leaves none. The axis's size is a number.
std::vector<Tensor> chunk(const Tensor& x, int64_t count, int64_t axis = 0, LATHE_AT);
/// Tensors of one shape along a new axis.
Tensor stack(const std::vector<Tensor>& inputs, int64_t axis = 0, LATHE_AT);

// --- values from nothing; `like` only names the graph, Graph::full and the like need none ---

/// All elements are `value`, which the dtype must hold.
Tensor full(const Tensor& like, const Dims& shape, double value, DType dtype = DType::F32,
            LATHE_AT);
Tensor zeros(const Tensor& like, const Dims& shape, DType dtype = DType::F32, LATHE_AT);
Tensor ones(const Tensor& like, const Dims& shape, DType dtype = DType::F32, LATHE_AT);
/// With the shape and dtype of x.
Tensor zerosLike(const Tensor& x, LATHE_AT);
Tensor onesLike(const Tensor& x, LATHE_AT);
/// Integers [...] -> [..., depth]: 1 at the index, 0 elsewhere. An index outside of 0..depth - 1
/// gives zeros, where PyTorch throws.
Tensor oneHot(const Tensor& ids, int64_t depth, DType dtype = DType::I64, LATHE_AT);

// --- ranks ---

/// x, of which each rank of a mesh has a piece along `axis` from here on, whatever the plan that is
/// found says (docs/ranks.md); ops that can only take it whole gather it. On one rank it is x and
/// costs nothing. The axis's size is a number; the ranks divide it, or `compile` throws Error
/// naming this line.
Tensor shard(const Tensor& x, int64_t axis, std::string_view meshAxis = "tp", LATHE_AT);

// --- choices; masks are bool, `mask != 0` makes one of ones and zeros ---

/// a where the condition holds, else b; shapes broadcast as NumPy's. One of both may be a number.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, LATHE_AT);
Tensor where(const Tensor& condition, const Tensor& a, double b, LATHE_AT);
Tensor where(const Tensor& condition, double a, const Tensor& b, LATHE_AT);
/// x with `value` where the mask holds; the mask broadcasts to x.
Tensor maskedFill(const Tensor& x, const Tensor& mask, double value, LATHE_AT);
/// x between two bounds, either of which may be left out; `hi` where lo > hi. NaN stays.
Tensor clamp(const Tensor& x, std::optional<double> lo, std::optional<double> hi = {}, LATHE_AT);
/// The last two axes with zeros above (`tril`) or below (`triu`) the diagonal; a positive
/// `diagonal` is above the main one.
Tensor tril(const Tensor& x, int64_t diagonal = 0, LATHE_AT);
Tensor triu(const Tensor& x, int64_t diagonal = 0, LATHE_AT);

// --- reductions ---

/// log(sum(exp(x))) over axes without overflow; -infinity where all are. Floats.
Tensor logsumexp(const Tensor& x, Axes axes, bool keepDims = false, LATHE_AT);
/// Sum of squared distances from the mean, divided by the count less `correction`: 1 as in
/// PyTorch, 0 for the variance of norms. Floats; bf16 and f16 are computed in f32 and rounded once.
Tensor var(const Tensor& x, Axes axes, bool keepDims = false, int64_t correction = 1, LATHE_AT);

// --- orders and indices ---

/// Values along an axis in order, and their indices (i64). Equal values keep their order when
/// ascending and when descending; NaN counts as the largest. The axis's size is a number.
std::pair<Tensor, Tensor> sort(const Tensor& x, int64_t axis = -1, bool descending = false,
                               LATHE_AT);
Tensor argsort(const Tensor& x, int64_t axis = -1, bool descending = false, LATHE_AT);
/// result[.., i, ..] = x[.., indices[.., i, ..], ..]: PyTorch's gather, where `gather` takes whole
/// slices. `indices` are integers with the rank and other sizes of x; one outside of the axis is an
/// error when the program runs.
Tensor takeAlongAxis(const Tensor& x, const Tensor& indices, int64_t axis, LATHE_AT);
/// x with values[.., i, ..] at place indices[.., i, ..] of the axis; of several for one place the
/// last counts. `indices` and `values` have one shape, and x's other sizes; an index outside of the
/// axis is an error when the program runs. It compares every index with every place: memory and
/// time grow with their product.
Tensor scatter(const Tensor& x, const Tensor& indices, const Tensor& values, int64_t axis,
               LATHE_AT);
/// The same with the values added to x's and to each other. Numbers.
Tensor scatterAdd(const Tensor& x, const Tensor& indices, const Tensor& values, int64_t axis,
                  LATHE_AT);

// --- contractions ---

/// Einstein summation: einsum("bhqd,bhkd->bhqk", {q, k}). Letters name axes; one that the result
/// does not have is summed over. Without "->" the result has the letters that occur once, in
/// alphabetical order. A letter twice in one operand takes the diagonal. "..." stands for the axes
/// that are not named, in the result too: they are laid along each other from the last one, and a
/// size of 1 is repeated. Operands are contracted from the left.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, LATHE_AT);

}  // namespace lathe
