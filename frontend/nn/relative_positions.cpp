// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/relative_positions.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

// Key position minus query position: i64 [queries, keys].
Tensor distances(const Tensor& like, const Dim& queries, const Dim& keys) {
  return iota(like, {1, keys}, 1) - iota(like, {queries, 1}, 0);
}
Tensor atMost(const Tensor& x, int64_t limit) { return min(x, scalarLike(x, double(limit))); }
Tensor atLeast(const Tensor& x, int64_t limit) { return max(x, scalarLike(x, double(limit))); }

}  // namespace

std::vector<int64_t> relativeBuckets(int64_t buckets, int64_t maxDistance,
                                     std::source_location at) {
  expectPositive(buckets, "relativeBuckets, buckets", at, kMostTable);
  expectPositive(maxDistance, "relativeBuckets, maxDistance", at, kMostTable);
  const int64_t exact = buckets / 2;
  if (exact < 1 || maxDistance <= exact)
    throw Error(ErrorCode::InvalidArgument,
                "relativeBuckets: expected at least 2 buckets and a maxDistance of more than half "
                "of them, got " +
                    std::to_string(buckets) + " buckets and " + std::to_string(maxDistance),
                at);
  std::vector<int64_t> result;
  for (int64_t distance = 0; distance <= maxDistance; ++distance) {
    if (distance < exact) {
      result.push_back(distance);
      continue;
    }
    // In f32, as PyTorch does: at powers of two a last bit decides.
    const float part = std::log(float(distance) / float(exact)) /
                       float(std::log(double(maxDistance) / double(exact)));
    result.push_back(std::min(exact + int64_t(part * float(buckets - exact)), buckets - 1));
  }
  return result;
}

std::vector<float> alibiSlopes(int64_t heads, std::source_location at) {
  expectPositive(heads, "alibiSlopes, heads", at, kMostTable);
  const int64_t whole = int64_t(std::bit_floor(uint64_t(heads)));
  std::vector<float> slopes;
  for (int64_t i = 1; i <= whole; ++i)
    slopes.push_back(float(std::exp2(-8.0 * double(i) / double(whole))));
  for (int64_t i = 1; int64_t(slopes.size()) < heads; i += 2)
    slopes.push_back(float(std::exp2(-4.0 * double(i) / double(whole))));
  return slopes;
}

Tensor alibi(Graph& graph, int64_t heads, const Dim& keys, DType rounding,
             std::source_location at) {
  expectFloatDType(rounding, "alibi, rounding", at);
  Tensor slopes = graph.constant(Array::fromFloats(alibiSlopes(heads, at), {heads, 1}), at);
  Tensor products = mul(castTo(slopes, rounding, at),
                        castTo(graph.arange(keys, DType::I64, at), rounding, at), at);
  return reshape(castTo(products, DType::F32, at), {1, heads, 1, keys}, at);
}

RelativePositionBias::RelativePositionBias(Graph& graph, std::string path,
                                           RelativeBiasOptions options, std::source_location at)
    : Module(graph, std::move(path), at), options_(std::move(options)) {
  const std::string module = "RelativePositionBias '" + this->path() + "'";
  expectPositive(options_.heads, module + ", heads", at);
  expectPositive(options_.maxDistance, module + ", maxDistance", at, kMostTable);
  const int64_t side = options_.bothSides ? options_.buckets / 2 : options_.buckets;
  if (side >= 2 && !(options_.bothSides && options_.buckets % 2) && options_.maxDistance > side / 2)
    return;
  throw Error(ErrorCode::InvalidArgument,
              module + ": expected at least 2 buckets per side and a maxDistance of more than " +
                  "half of them, got " + std::to_string(options_.buckets) + " buckets and " +
                  std::to_string(options_.maxDistance) + "; 32 and 128 are usual",
              at);
}

Tensor RelativePositionBias::ofDistances(const Tensor& distance, DType dtype) const {
  const RelativeBiasOptions& o = options_;
  const int64_t side = o.bothSides ? o.buckets / 2 : o.buckets;
  Tensor ladder =
      graph().constant(Array::fromInts(relativeBuckets(side, o.maxDistance), {o.maxDistance + 1}));
  Tensor before = o.bothSides ? abs(distance) : atLeast(neg(distance), 0);
  Tensor bucket = gather(ladder, atMost(before, o.maxDistance), 0);
  if (o.bothSides) {
    Tensor after = compare(distance, scalarLike(distance, 0), Compare::gt);
    bucket = bucket + cast(after, DType::I64) * double(side);
  }
  Tensor bias = gather(weight(o.weightName, dtype, {o.buckets, o.heads}, o.weightDType), bucket, 0);
  return transpose(bias, {0, 3, 1, 2});
}

Tensor RelativePositionBias::operator()(const Tensor& like, const Dim& queries, const Dim& keys,
                                        DType dtype, std::source_location at) const {
  expectDefined(like, "RelativePositionBias '" + path() + "'", at);
  expectFloatDType(dtype, "RelativePositionBias '" + path() + "', dtype", at);
  const Scope scope = opened(like, at);
  return ofDistances(reshape(distances(like, queries, keys), {1, queries, keys}), dtype);
}

Tensor RelativePositionBias::at(const Tensor& positions, const Dim& queries, const Dim& keys,
                                DType dtype, std::source_location at) const {
  expectIntegers(positions, "RelativePositionBias '" + path() + "', positions", at);
  expectFloatDType(dtype, "RelativePositionBias '" + path() + "', dtype", at);
  const Scope scope = opened(positions, at);
  Tensor first = reshape(castTo(positions, DType::I64), {positions.dim(0), 1, 1});
  return ofDistances(distances(positions, queries, keys) - first, dtype);
}

RelativePositionKeys::RelativePositionKeys(Graph& graph, std::string path, int64_t headDim,
                                           int64_t maxDistance, std::optional<DType> weightDType,
                                           std::source_location at)
    : Module(graph, std::move(path), at),
      headDim_(headDim),
      maxDistance_(maxDistance),
      weightDType_(weightDType) {
  expectPositive(headDim_, "RelativePositionKeys '" + this->path() + "', headDim", at);
  expectPositive(maxDistance_, "RelativePositionKeys '" + this->path() + "', maxDistance", at);
}

Tensor RelativePositionKeys::operator()(const Tensor& q, const Dim& keys,
                                        std::source_location at) const {
  const std::string module = "RelativePositionKeys '" + path() + "'";
  expectFeatures(q, headDim_, module, at);
  if (q.rank() != 4)
    throw Error(ErrorCode::InvalidArgument,
                module + ": expected q [batch, heads, seq, headDim], got " + typeText(q), at);
  const Scope scope = opened(q, at);
  const Dim queries = q.dim(2);
  Tensor clipped = atLeast(atMost(distances(q, queries, keys), maxDistance_), -maxDistance_);
  Tensor table = weight("weight", q.dtype(), {2 * maxDistance_ + 1, headDim_}, weightDType_);
  Tensor vectors = gather(table, clipped + double(maxDistance_), 0);  // [queries, keys, headDim]
  Tensor rows = reshape(q, {q.dim(0), q.dim(1), queries, 1, headDim_});
  Tensor products = matmul(rows, swapAxes(vectors, 1, 2));
  return reshape(products, {q.dim(0), q.dim(1), queries, keys});
}

}  // namespace lathe::nn
