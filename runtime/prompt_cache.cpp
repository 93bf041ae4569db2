// SPDX-License-Identifier: Apache-2.0
// A generator's cache as a file: a container (runtime/container.h) whose header has the tokens and
// whose sections are the states, cut to the positions that are in use.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/generator.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/container.h"
#include "runtime/language_program.h"

namespace lathe {
namespace {

constexpr const char* kLogitsSection = "logits";
// Kernels of another machine round otherwise. Weights of other numbers are far from this, and those
// that are rounded to few bits may not be.
constexpr double kTolerance = 0.02;

// A state as rows of which the first positions are in use.
struct Rows {
  int64_t count = 1;  // in front of the axis of positions
  size_t bytes = 0;   // of one position
  size_t axis = 0;
};

Rows rowsOf(const TensorInfo& info, const Shape& shape) {
  const DimExpr cache = DimExpr::symbol(kCacheSymbol);
  const auto place = std::ranges::find(info.shape, cache);
  if (place == info.shape.end())
    throw Error(ErrorCode::Unsupported, "state '" + info.name + "' has no size '" + kCacheSymbol +
                                            "': caches of such programs are not saved");
  Rows rows;
  rows.axis = size_t(place - info.shape.begin());
  rows.bytes = sizeOf(info.dtype);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i < rows.axis) rows.count *= shape[i];
    if (i > rows.axis) rows.bytes *= size_t(shape[i]);
  }
  return rows;
}

}  // namespace

void Generator::saveCache(const std::string& path) {
  if (ids_.empty())
    throw Error(ErrorCode::InvalidArgument, "expected tokens in the cache, it is empty");
  const int last = ids_.back();
  rewind(position_ - 1);
  const std::span<const float> logits = next(last);
  ContainerWriter writer;
  writer.setHeader(fmt::format(R"({{"kind": "prompt_cache", "ids": [{}]}})", fmt::join(ids_, ",")));
  writer.addSection(kLogitsSection, std::as_bytes(logits));
  for (const TensorInfo& info : session_.program().states) {
    if (isOfGreedy(info)) continue;
    const Array state = session_.state(info.name);
    const Rows rows = rowsOf(info, state.shape());
    const size_t used = size_t(position_) * rows.bytes, all = size_t(capacity_) * rows.bytes;
    std::vector<std::byte> bytes(size_t(rows.count) * used);
    const auto* from = static_cast<const std::byte*>(state.data());
    for (size_t row = 0; row < size_t(rows.count); ++row)
      std::memcpy(bytes.data() + row * used, from + row * all, used);
    writer.addSection("state." + info.name, bytes);
  }
  writer.save(path);
}

void Generator::loadCache(const std::string& path, int64_t positions) {
  const Container file = Container::open(path);
  const JsonValue header = JsonValue::parse(file.header(), path);
  if (auto kind = header.find("kind"); !kind || kind->asString() != "prompt_cache")
    throw header.error("expected a prompt cache, got another file");
  const JsonValue list = header.at("ids");
  const std::vector<int> ids =
      listFrom(list, [&](const JsonValue& id) { return int(id.asInt(0, limits_.vocab - 1)); });
  const int64_t count = int64_t(ids.size());
  if (count < 1 || count > maxPositions_)
    throw list.error(fmt::format("expected from 1 to {} tokens, got {}", maxPositions_, count));
  reserve(std::max(count, positions));
  auto section = [&](const std::string& name, size_t bytes) {
    const std::span<const std::byte> found = file.section(name);
    if (found.size() != bytes)
      throw Error(ErrorCode::InvalidFile,
                  fmt::format("{}: {}: expected {} bytes for {} tokens of this model, got {}", path,
                              name, bytes, count, found.size()));
    return found;
  };
  for (const TensorInfo& info : session_.program().states) {
    if (isOfGreedy(info)) continue;
    // One text: what is no position and no number of the model is a row.
    Shape shape;
    for (const DimExpr& dim : info.shape)
      shape.push_back(dim == DimExpr::symbol(kCacheSymbol) ? capacity_
                                                           : dim.asConstant().value_or(1));
    const Rows rows = rowsOf(info, shape);
    const size_t used = size_t(count) * rows.bytes, all = size_t(capacity_) * rows.bytes;
    const auto bytes = section("state." + info.name, size_t(rows.count) * used);
    Array state(info.dtype, shape);
    auto* to = static_cast<std::byte*>(state.data());
    for (size_t row = 0; row < size_t(rows.count); ++row)
      std::memcpy(to + row * all, bytes.data() + row * used, used);
    session_.setState(info.name, state);
  }
  ids_ = std::move(ids);
  position_ = count;
  const auto bytes = section(kLogitsSection, size_t(limits_.vocab) * sizeof(float));
  std::vector<float> expected(size_t(limits_.vocab));
  std::memcpy(expected.data(), bytes.data(), bytes.size());
  const int last = ids_.back();
  rewind(count - 1);
  const std::span<const float> logits = next(last);
  double largest = 0, off = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(double(expected[i])));
    const double difference = std::abs(double(expected[i]) - double(logits[i]));
    off = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                 : std::max(off, difference);
  }
  if (off <= kTolerance * largest) return;
  reserve(positions);
  throw Error(
      ErrorCode::InvalidFile,
      fmt::format("{}: the cache is of another model or of other weights: the logits of its "
                  "last token differ by {:.3g}, the largest is {:.3g}",
                  path, off, largest));
}

}  // namespace lathe
