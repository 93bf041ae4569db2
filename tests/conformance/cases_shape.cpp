// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/cases_build.h"

namespace lathe::conformance {
namespace {

Samples transposeSamples(DType d) {
  Samples samples;
  for (Axes p :
       {Axes{0, 1, 2}, Axes{0, 2, 1}, Axes{1, 0, 2}, Axes{1, 2, 0}, Axes{2, 0, 1}, Axes{2, 1, 0}})
    samples.push_back({"p" + std::to_string(p[0]) + std::to_string(p[1]) + std::to_string(p[2]),
                       {{d, {3, 5, 33}}},
                       one([p](Ts t) { return transpose(t[0], p); })});
  samples.push_back({"matrix", {{d, matrix()}}, one([](Ts t) { return swapAxes(t[0], 0, 1); })});
  samples.push_back({"heads", {{d, {2, rows(), 3, cols()}}}, one([](Ts t) {
                       return transpose(t[0], {0, 2, 1, 3});
                     })});
  return samples;
}

Samples reshapeSamples(DType d) {
  auto to = [](Dims shape) { return one([=](Ts t) { return reshape(t[0], shape); }); };
  return {
      {"flat", {{d, matrix()}}, to({rows() * cols()})},
      {"split", {{d, {rows(), cols() * 6}}}, to({rows(), cols(), 2, 3})},
      {"merge", {{d, {2, 3, 5}}}, to({6, 5})},
      {"ones", {{d, matrix()}}, to({1, rows(), 1, cols()})},
      {"scalar", {{d, {1, 1}}}, to({})},
  };
}

Samples broadcastSamples(DType d) {
  auto to = [](Dims shape) { return one([=](Ts t) { return broadcast(t[0], shape); }); };
  return {
      {"row", {{d, {cols()}}}, to({3, cols()})},
      {"column", {{d, {7, 1}}}, to({2, 7, 33})},
      {"scalar", {{d, {}}}, to({5, 31})},
      {"middle", {{d, {3, 1, 5}}}, to({3, 4, 5})},
  };
}

Samples sliceSamples(DType d) {
  return {
      {"whole", {{d, matrix()}}, one([](Ts t) { return slice(t[0], {0, 0}, matrix(), {1, 1}); })},
      {"box", {{d, {7, 13}}}, one([](Ts t) { return slice(t[0], {1, 2}, {4, 7}, {1, 1}); })},
      {"strided", {{d, {7, 33}}}, one([](Ts t) { return slice(t[0], {0, 1}, {3, 16}, {3, 2}); })},
      {"empty", {{d, {7, 13}}}, one([](Ts t) { return slice(t[0], {3, 0}, {0, 13}, {1, 1}); })},
      {"columns", {{d, {rows(), 257}}}, one([](Ts t) { return sliceAxis(t[0], 1, 31, 33); })},
      {"symbolic", {{d, {rows(), cols() + 5}}}, one([](Ts t) {
         return sliceAxis(t[0], -1, 5, cols());
       })},
      {"rank4", {{d, {2, 3, 4, 5}}}, one([](Ts t) {
         return slice(t[0], {0, 1, 0, 2}, {2, 2, 2, 1}, {1, 1, 2, 1});
       })},
  };
}

Samples concatSamples(DType d) {
  auto along = [](int64_t axis) { return one([=](Ts t) { return concat(t, axis); }); };
  return {
      {"rows", {{d, matrix()}, {d, {3, cols()}}}, along(0)},
      {"columns", {{d, matrix()}, {d, {rows(), 31}}, {d, {rows(), 1}}}, along(1)},
      {"middle", {{d, {2, 3, 5}}, {d, {2, 1, 5}}, {d, {2, 4, 5}}}, along(1)},
      {"one", {{d, matrix()}}, along(0)},
      {"empty", {{d, {0, 5}}, {d, {2, 5}}}, along(0)},
  };
}

Samples padSamples(DType d) {
  auto by = [](Axes low, Axes high) {
    return one([=](Ts t) { return pad(t[0], t[1], low, high); });
  };
  return {
      {"both", {{d, {3, 5}}, {d, {}}}, by({1, 2}, {0, 3})},
      {"columns", {{d, matrix()}, {d, {}}}, by({0, 1}, {0, 1})},
      {"rows", {{d, matrix()}, {d, {}}}, by({2, 0}, {1, 0})},
      {"nothing", {{d, {3, 5}}, {d, {}}}, by({0, 0}, {0, 0})},
  };
}

Samples reverseSamples(DType d) {
  auto over = [](Axes axes) { return one([=](Ts t) { return reverse(t[0], axes); }); };
  return {
      {"columns", {{d, matrix()}}, over({-1})},
      {"rows", {{d, matrix()}}, over({0})},
      {"two", {{d, {2, 3, 5}}}, over({0, 2})},
      {"none", {{d, {2, 3}}}, over({})},
  };
}

// Literals and weights: shapes without arithmetic.
Samples constantSamples(DType d) {
  auto literal = [d](Shape shape, Fill fill) {
    return [=](Graph& g, Ts) {
      Sample s{"literal", {{d, Dims(shape.begin(), shape.end()), fill}}, {}};
      return std::vector<Tensor>{g.constant(makeData({s}, {1, 1}, "constant").inputs.at("0.in0"))};
    };
  };
  return {
      {"scalar", {}, literal({}, Fill::Normal)},
      {"matrix", {}, literal({3, 33}, Fill::Normal)},
      {"special", {}, literal({32}, Fill::Special)},
      {"empty", {}, literal({0, 3}, Fill::Normal)},
  };
}
Samples weightSamples(DType d) {
  auto itself = one([](Ts t) { return t[0]; });
  return {
      {"matrix", {{d, {3, 33}, Fill::Normal, 0, true}}, itself},
      {"scalar", {{d, {}, Fill::Normal, 0, true}}, itself},
      {"empty", {{d, {0, 3}, Fill::Normal, 0, true}}, itself},
  };
}

OpRow moves(const char* op, std::vector<Sample> (*samples)(DType)) {
  return {op, false, everything(), [samples](DType d) {
            std::vector<Sample> all = samples(d);
            // Values are moved, never rounded: any bits will do.
            for (Sample& s : all) {
              s.exact = true;
              for (Input& i : s.inputs) i.fill = Fill::Special;
            }
            return all;
          }};
}

}  // namespace

void addShapes(Rows& table) {
  table.push_back(moves("lathe.transpose", transposeSamples));
  table.push_back(moves("lathe.reshape", reshapeSamples));
  table.push_back(moves("lathe.broadcast", broadcastSamples));
  table.push_back(moves("lathe.slice", sliceSamples));
  table.push_back(moves("lathe.concat", concatSamples));
  table.push_back(moves("lathe.pad", padSamples));
  table.push_back(moves("lathe.reverse", reverseSamples));
  table.push_back(moves("lathe.constant", constantSamples));
  table.push_back(moves("lathe.weight", weightSamples));
}

}  // namespace lathe::conformance
