// SPDX-License-Identifier: Apache-2.0
// What comes behind a product that a fused linear op has taken, and beside it: a sum is taken in
// only where it stands in the op's formula, activation(x w + bias) + residual, and products are
// joined only if their weights lie alike.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/lathe.h"
#include "runtime/bound_weights.h"
#include "tests/closeness.h"

namespace lathe {
namespace {

constexpr int64_t kRows = 3, kSize = 16;

struct Parts {
  Graph& g;
  Tensor x, residual;
  Tensor weight(const std::string& name) const {
    return g.weight(name, DType::F32, {kSize, kSize});
  }
  Tensor row(const std::string& name) const { return g.weight(name, DType::F32, {kSize}); }
};

// Results as compiled, and as the reference computes each recorded op.
void expectAsRecorded(const std::string& what, const std::string& backend,
                      const std::function<std::vector<Tensor>(const Parts&)>& build) {
  SCOPED_TRACE(what);
  Graph g;
  const Parts parts{g, g.input("x", DType::F32, {kRows, kSize}),
                    g.input("r", DType::F32, {kRows, kSize})};
  const std::vector<Tensor> results = build(parts);
  for (size_t i = 0; i < results.size(); ++i) g.output("y" + std::to_string(i), results[i]);
  Array x(DType::F32, {kRows, kSize}), r(DType::F32, {kRows, kSize});
  for (int64_t i = 0; i < x.size(); ++i) {
    x.set(i, double(i * 7919 % 101) / 50 - 1);
    r.set(i, double(i * 104729 % 97) / 50 - 1);
  }
  auto run = [&](CompileOptions options) {
    Session session(compile(g, std::move(options)), {.threads = 2, .device = "host"});
    Arrays weights;
    for (const TensorInfo& info : session.program().weights)
      weights[info.name] = randomWeight(info, 3);
    session.bindWeights(weights);
    return session.run("forward", {{"x", x}, {"r", r}});
  };
  const Arrays got = run({.backend = backend});
  const Arrays want = run({.backend = "reference", .stopAfterRewrite = 0});
  for (const auto& [name, value] : want) {
    ASSERT_TRUE(isFinite(value));
    ASSERT_GT(largestValue(value), 0.01);
    EXPECT_LE(largestError(got.at(name), value), 1e-5 * largestValue(value)) << name;
  }
}

class LinearTails : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, LinearTails, ::testing::Values("cpu", "cuda", "reference"),
                         [](const auto& info) { return std::string(info.param); });

constexpr WeightLayout out_in = WeightLayout::out_in, in_out = WeightLayout::in_out;

// Each stands behind activation(x w + bias) + residual, of which the last three may be missing.
const std::vector<std::pair<std::string, std::function<Tensor(const Parts&, const Tensor&)>>>
    kTails{
        {"+ b", [](const Parts& p, const Tensor& y) { return y + p.row("b"); }},
        {"b +", [](const Parts& p, const Tensor& y) { return p.row("b") + y; }},
        {"- b", [](const Parts& p, const Tensor& y) { return y - p.row("b"); }},
        {"b -", [](const Parts& p, const Tensor& y) { return p.row("b") - y; }},
        {"+ r", [](const Parts& p, const Tensor& y) { return y + p.residual; }},
        {"- r", [](const Parts& p, const Tensor& y) { return y - p.residual; }},
        {"+ b + r", [](const Parts& p, const Tensor& y) { return y + p.row("b") + p.residual; }},
        {"+ r + b", [](const Parts& p, const Tensor& y) { return y + p.residual + p.row("b"); }},
        {"sigmoid", [](const Parts&, const Tensor& y) { return y * sigmoid(y); }},
        {"sigmoid + b",
         [](const Parts& p, const Tensor& y) { return y * sigmoid(y) + p.row("b"); }},
        {"parts + b",
         [](const Parts& p, const Tensor& y) {
           return reshape(y, {kRows, 4, kSize / 4}) + reshape(p.row("b"), {4, kSize / 4});
         }},
        {"turned parts + b",
         [](const Parts& p, const Tensor& y) {
           return transpose(reshape(y, {kRows, 4, kSize / 4}), {1, 0, 2}) +
                  reshape(p.row("b"), {4, 1, kSize / 4});
         }},
    };

TEST_P(LinearTails, BehindEveryForm) {
  for (Activation activation : valuesOf<Activation>())
    expectAsRecorded(std::string(nameOf(activation)), GetParam(), [&](const Parts& p) {
      std::vector<Tensor> results;
      for (WeightLayout layout : {out_in, in_out})
        for (bool biased : {false, true})
          for (bool residual : {false, true})
            for (const auto& [name, tail] : kTails) {
              fused::LinearOptions options;
              options.activation = activation;
              options.layout = layout;
              if (biased) options.bias = p.row("own");
              if (residual) options.residual = p.residual;
              // A weight and an input of its own each, so that nothing else is joined with it.
              const std::string w = "w" + std::to_string(results.size());
              const Tensor x = p.x * (1 + 0.125 * double(results.size() % 7));
              results.push_back(tail(p, fused::linear(x, p.weight(w), options)));
            }
      return results;
    });
}

// Products of one x: joined or not, each with its own weight as it lies.
TEST_P(LinearTails, BesideProductsOfOtherLayouts) {
  for (const std::vector<WeightLayout>& layouts :
       {std::vector<WeightLayout>{out_in, out_in, out_in},
        {in_out, in_out, in_out},
        {out_in, in_out},
        {in_out, out_in},
        {out_in, in_out, out_in, in_out}})
    for (int biases : {0, 1, 2})  // of none, of one in two, of all
      expectAsRecorded(
          std::to_string(layouts.size()) + " from " + std::string(nameOf(layouts[0])) +
              ", biases " + std::to_string(biases),
          GetParam(), [&](const Parts& p) {
            std::vector<Tensor> results;
            for (size_t i = 0; i < layouts.size(); ++i) {
              fused::LinearOptions options;
              options.layout = layouts[i];
              if (biases == 2 || (biases == 1 && i % 2))
                options.bias = p.row("b" + std::to_string(i));
              results.push_back(fused::linear(p.x, p.weight("w" + std::to_string(i)), options));
            }
            return results;
          });
}

}  // namespace
}  // namespace lathe
