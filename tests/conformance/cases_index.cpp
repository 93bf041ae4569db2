// SPDX-License-Identifier: Apache-2.0
// Contractions and indices.
#include "tests/conformance/cases_build.h"

namespace lathe::conformance {
namespace {

Samples matmulSamples(DType d) {
  Record product = one([](Ts t) { return matmul(t[0], t[1]); });
  Samples samples;
  auto pair = [&](const std::string& name, Dims a, Dims b) {
    samples.push_back({name, {{d, a}, {d, b}}, product});
    samples.push_back(
        {name + "_exact", {{d, a, Fill::Integers}, {d, b, Fill::Integers}}, product, true});
  };
  pair("symbolic", matrix(), {cols(), 33});
  pair("outer", {rows(), 1}, {1, cols()});
  pair("wide", {rows(), 31}, {31, 257});
  pair("batched", {2, 3, 5, 33}, {2, 3, 33, 7});
  pair("broadcast", {2, 1, 5, cols()}, {3, cols(), 4});
  // An axis of 1 beside one that is not, on either side.
  pair("broadcast_inner_right", {2, 3, 5, cols()}, {2, 1, cols(), 4});
  pair("broadcast_inner_left", {2, 1, 5, cols()}, {2, 3, cols(), 4});
  pair("shared_right", {2, rows(), 31}, {31, 33});
  pair("shared_left", {3, 31}, {2, 31, cols()});
  // Fewer columns, or rows, than a thread's least share.
  pair("narrow", {rows(), 256}, {256, 7});
  pair("narrow_batch", {2, 5, 64}, {2, 64, 8});
  pair("short", {3, 64}, {64, 15});
  pair("empty_inner", {3, 0}, {0, 5});
  samples.push_back({"transposed", {{d, matrix()}, {d, {31, cols()}}}, one([](Ts t) {
                       return matmul(t[0], swapAxes(t[1], 0, 1));
                     })});
  samples.push_back({"weight", {{d, {rows(), 33}}, {d, {33, 31}, Fill::Normal, 0, true}}, product});
  return samples;
}

Samples convolutionSamples(DType d) {
  auto with = [](Axes strides, Axes padding) {
    return one([=](Ts t) { return convolution(t[0], t[1], strides, padding); });
  };
  return {
      {"plain", {{d, {2, 3, 7, 9}}, {d, {5, 3, 3, 3}}}, with({1, 1}, {0, 0, 0, 0})},
      {"patches", {{d, {rows(), 3, 8, 12}}, {d, {31, 3, 4, 4}}}, with({4, 4}, {0, 0, 0, 0})},
      {"few_pixels", {{d, {2, 32, 5, 5}}, {d, {3, 32, 3, 3}}}, with({1, 1}, {0, 0, 0, 0})},
      {"padded", {{d, {2, 3, 7, 9}}, {d, {4, 3, 3, 2}}}, with({2, 1}, {1, 2, 0, 1})},
      {"exact",
       {{d, {2, 3, 7, 9}, Fill::Integers}, {d, {5, 3, 3, 3}, Fill::Integers}},
       with({1, 1}, {1, 1, 1, 1}),
       true},
  };
}

// `x` only brings the symbols.
Samples iotaSamples(DType d) {
  auto of = [d](Dims shape, int64_t axis) {
    return one([=](Ts t) { return iota(t[0], shape, axis, d); });
  };
  const Input x{DType::F32, matrix()};
  return {
      {"columns", {x}, of(matrix(), 1), true},
      {"rows", {x}, of(matrix(), 0), true},
      {"vector", {x}, of({cols() + rows()}, 0), true},
      {"middle", {x}, of({2, 4, 3}, 1), true},
  };
}

Samples gatherSamples(DType d) {
  auto along = [](int64_t axis) { return one([=](Ts t) { return gather(t[0], t[1], axis); }); };
  auto ids = [](DType dtype, Dims shape, int64_t limit) {
    return Input{dtype, std::move(shape), Fill::Index, limit};
  };
  const DType i64 = DType::I64, i32 = DType::I32;
  return {
      {"rows", {{d, {31, cols()}}, ids(i64, {rows(), 3}, 31)}, along(0), true},
      {"rows_i32", {{d, {31, cols()}}, ids(i32, {rows()}, 31)}, along(0), true},
      {"middle", {{d, {2, 13, 5}}, ids(i32, {2, 3}, 13)}, along(1), true},
      {"scalar", {{d, {2, 13, 5}}, ids(i64, {}, 13)}, along(1), true},
      {"last", {{d, {rows(), 33}}, ids(i64, {cols()}, 33)}, along(-1), true},
      {"weight",
       {{d, {31, 33}, Fill::Normal, 0, true}, ids(i64, {rows(), cols()}, 31)},
       along(0),
       true},
  };
}

Samples updateSamples(DType d) {
  auto along = [](int64_t axis) {
    return one([=](Ts t) { return update(t[0], t[1], t[2], axis); });
  };
  auto at = [](DType dtype, Dims shape, int64_t limit) {
    return Input{dtype, std::move(shape), Fill::Index, limit};
  };
  const DType i64 = DType::I64;
  return {
      {"cache",
       {{d, {2, 3, 40, cols()}}, {d, {2, 3, rows(), cols()}}, at(i64, {2}, 37)},
       along(2),
       true},
      {"append", {{d, {3, 8, 5}}, {d, {3, 1, 5}}, at(i64, {3}, 8)}, along(1), true},
      {"last", {{d, {2, 33}}, {d, {2, 4}}, at(DType::I32, {2}, 29)}, along(1), true},
      {"symbolic_batch",
       {{d, {rows(), 9, 31}}, {d, {rows(), 2, 31}}, at(i64, {rows()}, 7)},
       along(1),
       true},
  };
}

// Tables name some blocks several times: the last write stays.
Samples pagedUpdateSamples(DType d) {
  auto along = [](int64_t axis) {
    return one([=](Ts t) { return pagedUpdate(t[0], t[1], t[2], t[3], axis); });
  };
  auto at = [](DType dtype, Dims shape, int64_t limit) {
    return Input{dtype, std::move(shape), Fill::Index, limit};
  };
  const DType i64 = DType::I64, i32 = DType::I32;
  return {
      {"cache",
       {{d, {7, 3, 8, cols()}}, {d, {2, 3, rows(), cols()}}, at(i64, {2, 5}, 7), at(i64, {2}, 32)},
       along(2),
       true},
      {"append",
       {{d, {5, 8, 5}}, {d, {3, 1, 5}}, at(i64, {3, 2}, 5), at(i64, {3}, 16)},
       along(1),
       true},
      {"one_block",
       {{d, {1, 2, 3}}, {d, {4, 5, 3}}, at(i64, {4, 3}, 1), at(i32, {4}, 2)},
       along(1),
       true},
      {"last", {{d, {6, 3}}, {d, {2, 4}}, at(i32, {2, 3}, 6), at(i32, {2}, 6)}, along(1), true},
      {"symbolic_batch",
       {{d, {5, 9, 31}}, {d, {rows(), 2, 31}}, at(i64, {rows(), 3}, 5), at(i64, {rows()}, 26)},
       along(1),
       true},
  };
}

Samples randomBitsSamples(DType) {
  const Input x{DType::F32, matrix()};
  Record bits = one([](Ts t) { return randomBits(t[0], {33}); });
  return {
      {"vector", {{DType::I64, {}}}, bits, true},
      {"large_seed", {{DType::I64, {}, Fill::Index, int64_t(1) << 62}}, bits, true},
      {"matrix", {{DType::I64, {}}, x}, one([](Ts t) { return randomBits(t[0], matrix()); }), true},
      {"scalar", {{DType::I64, {}}}, one([](Ts t) { return randomBits(t[0], {}); }), true},
  };
}

}  // namespace

void addContractions(Rows& table) {
  table.push_back({"lathe.matmul", false, numbers(), matmulSamples});
  table.push_back({"lathe.convolution", false, floats(), convolutionSamples});
}
void addIndices(Rows& table) {
  table.push_back({"lathe.iota", false, numbers(), iotaSamples});
  table.push_back({"lathe.gather", false, everything(), gatherSamples});
  table.push_back({"lathe.update", false, everything(), updateSamples});
  table.push_back({"lathe.paged_update", false, everything(), pagedUpdateSamples});
  table.push_back({"lathe.random_bits", false, {DType::I32}, randomBitsSamples});
}

}  // namespace lathe::conformance
