// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/cases_build.h"

namespace lathe::conformance {
namespace {

using Reduce = Tensor (*)(const Tensor&, Axes, bool, std::source_location);

OpRow reduction(const char* op, Reduce f, std::vector<DType> dtypes, Fill fill, Fill exact) {
  return {
      op, false, dtypes, [=](DType d) {
        auto over = [=](Axes axes, bool keep) {
          return one([=](Ts t) { return f(t[0], axes, keep, std::source_location::current()); });
        };
        return std::vector<Sample>{
            {"axis0", {{d, matrix(), fill}}, over({0}, false)},
            {"axis1", {{d, matrix(), fill}}, over({1}, false)},
            {"axis1_kept", {{d, matrix(), fill}}, over({-1}, true)},
            {"both_kept", {{d, matrix(), fill}}, over({0, 1}, true)},
            {"vector", {{d, {cols()}, fill}}, over({0}, false)},
            {"middle", {{d, {3, 5, 7}, fill}}, over({1}, false)},
            {"leading_one", {{d, {1, cols(), 3}, fill}}, over({1}, false)},
            {"outer", {{d, {3, 5, 7}, fill}}, over({0, 2}, true)},
            {"rank4", {{d, {2, 3, 1, 33}, fill}}, over({1, 3}, false)},
            {"exact0", {{d, matrix(), exact}}, over({0}, false), true},
            {"exact1", {{d, matrix(), exact}}, over({1}, false), true},
            {"special", {{d, {16, 5}, Fill::NonFinite}}, over({1}, false)},
        };
      }};
}

using Axis = Tensor (*)(const Tensor&, int64_t, std::source_location);
OpRow alongAxis(const char* op, Axis f, std::vector<DType> dtypes) {
  return {op, false, dtypes, [=](DType d) {
            auto along = [=](int64_t axis) {
              return one([=](Ts t) { return f(t[0], axis, std::source_location::current()); });
            };
            return std::vector<Sample>{
                {"axis1", {{d, matrix()}}, along(1)},
                {"axis0", {{d, {7, cols()}}}, along(0)},
                {"middle", {{d, {3, 5, 7}}}, along(1)},
                {"leading_one", {{d, {1, cols(), 3}}}, along(1)},
                {"vector", {{d, {cols()}}}, along(-1)},
                // Many equal values.
                {"exact1", {{d, matrix(), Fill::Integers}}, along(1), true},
                {"exact0", {{d, {7, cols()}, Fill::Integers}}, along(0), true},
            };
          }};
}
// The first NaN or tie decides; sums of infinities are left to reduce_sum.
OpRow argReduction(const char* op, Axis f) {
  OpRow row = alongAxis(op, f, numbers());
  row.samples = [plain = row.samples, f](DType d) {
    std::vector<Sample> samples = plain(d);
    samples.push_back({"special", {{d, {16, 9}, Fill::Special}}, one([=](Ts t) {
                         return f(t[0], 1, std::source_location::current());
                       })});
    return samples;
  };
  return row;
}

std::vector<Sample> topKSamples(DType d) {
  auto largest = [](int64_t k) {
    return Record([k](Graph&, Ts t) {
      auto [values, indices] = topK(t[0], k);
      return std::vector<Tensor>{values, indices};
    });
  };
  return {
      {"k1", {{d, matrix()}}, largest(1)},
      {"k7_of_33", {{d, {rows(), 33}}}, largest(7)},
      {"all_of_31", {{d, {2, 3, 31}}}, largest(31)},
      {"k5_of_257", {{d, {257}}}, largest(5)},
      {"ties", {{d, {rows(), 33}, Fill::Integers}}, largest(33), true},
      {"special", {{d, {8, 12}, Fill::Special}}, largest(12)},
  };
}

}  // namespace

void addReductions(Rows& table) {
  const std::vector<DType> n = numbers(), b{DType::Bool};
  const Fill normal = Fill::Normal, small = Fill::Integers, one = Fill::NearOne;
  table.push_back(reduction("lathe.reduce_sum", reduceSum, n, normal, small));
  table.push_back(reduction("lathe.reduce_mean", reduceMean, floats(), normal, normal));
  table.push_back(reduction("lathe.reduce_max", reduceMax, n, normal, small));
  table.push_back(reduction("lathe.reduce_min", reduceMin, n, normal, small));
  table.push_back(reduction("lathe.reduce_prod", reduceProd, n, one, one));
  table.push_back(reduction("lathe.reduce_any", reduceAny, b, normal, normal));
  table.push_back(reduction("lathe.reduce_all", reduceAll, b, normal, normal));
  // A mean divides, and products of numbers near 1 round: nothing about them is exact. Whether a
  // product of denormals and infinities is 0, infinite or NaN depends on its order.
  for (OpRow& row : table)
    if (row.op == "lathe.reduce_mean" || row.op == "lathe.reduce_prod")
      row.samples = [all = row.samples, product = row.op == "lathe.reduce_prod"](DType d) {
        std::vector<Sample> samples = all(d);
        for (Sample& s : samples) s.exact = false;
        if (product) samples.pop_back();
        return samples;
      };
  table.push_back(argReduction("lathe.argmax", argmax));
  table.push_back(argReduction("lathe.argmin", argmin));
  table.push_back(alongAxis("lathe.cumsum", cumsum, n));
  table.push_back({"lathe.top_k", false, n, topKSamples});
}

}  // namespace lathe::conformance
