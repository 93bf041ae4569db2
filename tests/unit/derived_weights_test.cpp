// SPDX-License-Identifier: Apache-2.0
// Weights that are computed once when loading: several that come from one tensor of the checkpoint
// and differ in an attribute alone are several.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/lathe.h"
#include "tests/closeness.h"

namespace lathe {
namespace {

/// Several derivations of w f32[24, 24].
using Derive = std::function<std::vector<Tensor>(const Tensor& w)>;
const std::vector<std::pair<std::string, Derive>> kDerivations{
    {"slices",
     [](const Tensor& w) {
       return std::vector{sliceAxis(w, 0, 0, 12), sliceAxis(w, 0, 12, 12),
                          sliceAxis(w, 0, 0, 12, 2)};
     }},
    {"transposes",
     [](const Tensor& w) {
       const Tensor cube = reshape(w, {8, 8, 9});
       return std::vector{transpose(cube, {0, 2, 1}), transpose(cube, {2, 0, 1}),
                          transpose(cube, {1, 0, 2})};
     }},
    {"pads",
     [](const Tensor& w) {
       const Tensor zero = scalarLike(w, 0);
       return std::vector{pad(w, zero, {0, 0}, {2, 0}), pad(w, zero, {2, 0}, {0, 0}),
                          pad(w, zero, {1, 0}, {1, 0})};
     }},
    {"reversals", [](const Tensor& w) { return std::vector{reverse(w, {0}), reverse(w, {1})}; }},
    {"sums", [](const Tensor& w) { return std::vector{reduceSum(w, {0}), reduceSum(w, {1})}; }},
    {"results",
     [](const Tensor& w) {
       auto [sum, normed] = fused::addNorm(w, exp(w), {});
       auto [values, places] = topK(w, 24);
       return std::vector{sum, normed, values, cast(places, DType::F32)};
     }},
    {"constants", [](const Tensor& w) { return std::vector{exp(w * 0.5), exp(w * 0.25)}; }},
};

using Parameter = std::pair<std::string, std::string>;  // derivations, backend
class DerivedWeights : public ::testing::TestWithParam<Parameter> {};

TEST_P(DerivedWeights, OfOneTensorAreToldApart) {
  const auto& [name, backend] = GetParam();
  const Derive& derive = std::find_if(kDerivations.begin(), kDerivations.end(), [&](auto& d) {
                           return d.first == name;
                         })->second;
  Graph g;
  Arrays inputs;
  const std::vector<Tensor> derived = derive(g.weight("w", DType::F32, {24, 24}));
  for (size_t i = 0; i < derived.size(); ++i) {
    const std::string id = std::to_string(i);
    Shape shape;
    for (const Dim& d : derived[i].shape()) shape.push_back(*d.asConstant());
    const Tensor x = g.input("x" + id, DType::F32, derived[i].shape());
    g.output("y" + id, x * derived[i]);
    Array ones(DType::F32, shape);
    for (int64_t e = 0; e < ones.size(); ++e) ones.set(e, 1);
    inputs["x" + id] = ones;
  }
  Session session(compile(g, {.backend = backend}), {.device = "host"});
  Session exact(compile(
      g, {.backend = "reference", .backendOptions = {.float64 = true}, .stopAfterRewrite = 0}));
  session.bindRandomWeights(3);
  exact.bindRandomWeights(3);
  const Arrays got = session.run("forward", inputs), want = exact.run("forward", inputs);
  for (const auto& [output, value] : want) {
    EXPECT_GT(largestValue(value), 0) << output;
    EXPECT_TRUE(isFinite(value)) << output;
    EXPECT_LE(largestError(got.at(output), value), 1e-5 * largestValue(value)) << output;
  }
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const auto& [name, derive] : kDerivations)
    for (const char* backend : {"reference", "cpu", "cuda"}) all.emplace_back(name, backend);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Backends, DerivedWeights, ::testing::ValuesIn(parameters()),
                         [](const auto& info) {
                           return info.param.first + "_on_" + info.param.second;
                         });

}  // namespace
}  // namespace lathe
