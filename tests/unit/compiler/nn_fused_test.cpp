// SPDX-License-Identifier: Apache-2.0
// A module that records a fused op computes what it computes without: `useFused` changes no number
// beyond the order of a sum.
#include <functional>
#include <limits>

#include "lathe/lathe.h"
#include "runtime/bound_weights.h"
#include "tests/closeness.h"
#include "tests/unit/compiler/nn_recording.h"

namespace lathe {
namespace {

// What a module makes of x [2, 3, 64]; `ids` are integers below 10.
using Module = std::function<Tensor(Graph& g, const Tensor& x, const Tensor& ids, bool useFused)>;

Array resultOf(const Module& module, DType dtype, bool useFused) {
  Graph g;
  const Tensor x = g.input("x", dtype, {2, 3, 64}), ids = g.input("ids", DType::I64, {2, 3});
  g.output("y", module(g, x, ids, useFused));
  // Op by op, as recorded, every result rounded once.
  Session session(compile(g, {.backend = "reference", .stopAfterRewrite = 0}));
  Arrays weights;
  for (const TensorInfo& info : session.program().weights)
    weights[info.name] = randomWeight(info, 5);
  session.bindWeights(weights);
  Array values(dtype, {2, 3, 64}), places(DType::I64, {2, 3});
  for (int64_t i = 0; i < values.size(); ++i) values.set(i, double(i * 7919 % 1009) / 400 - 1.2);
  for (int64_t i = 0; i < places.size(); ++i) places.set(i, double(i * 7 % 10));
  return session.run("forward", {{"x", values}, {"ids", places}}).at("y");
}

class NnFused : public ::testing::TestWithParam<DType> {
 protected:
  // The same bits, or a sum's order apart.
  void expectSame(const std::string& what, const Module& module, bool sums = false) {
    SCOPED_TRACE(what);
    const Array fused = resultOf(module, GetParam(), true);
    const Array spelled = resultOf(module, GetParam(), false);
    EXPECT_TRUE(isFinite(spelled));
    const double step = GetParam() == DType::F32   ? 0x1p-20
                        : GetParam() == DType::F16 ? 0x1p-9
                                                   : 0x1p-6;
    EXPECT_LE(largestError(fused, spelled), sums ? step * largestValue(spelled) : 0);
    EXPECT_GT(largestValue(spelled), 0);
  }
};
INSTANTIATE_TEST_SUITE_P(DTypes, NnFused, ::testing::Values(DType::F32, DType::BF16, DType::F16),
                         [](const auto& info) { return std::string(nameOf(info.param)); });

TEST_P(NnFused, RmsNormRoundsWhereItsGainSays) {
  for (GainRounding rounding : valuesOf<GainRounding>())
    expectSame(std::string(nameOf(rounding)),
               [=](Graph& g, const Tensor& x, const Tensor&, bool useFused) {
                 return nn::RMSNorm(g, "n", 64, {.rounding = rounding, .useFused = useFused})(x);
               });
}

TEST_P(NnFused, GatesOfEveryActivation) {
  for (Activation activation : valuesOf<Activation>())
    expectSame(
        std::string(nameOf(activation)),
        [=](Graph& g, const Tensor& x, const Tensor&, bool useFused) {
          return nn::SwiGLU(g, "m", 64, 96, {.activation = activation, .useFused = useFused})(x);
        },
        true);
}

TEST_P(NnFused, LinearWithAndWithoutBiasInBothLayouts) {
  for (bool bias : {false, true})
    for (WeightLayout layout : {WeightLayout::out_in, WeightLayout::in_out})
      expectSame((bias ? "bias " : "no bias ") + std::string(nameOf(layout)),
                 [=](Graph& g, const Tensor& x, const Tensor&, bool useFused) {
                   return nn::Linear(g, "l", 64, 24,
                                     {.bias = bias, .layout = layout, .useFused = useFused})(x);
                 },
                 true);
}

TEST_P(NnFused, Embedding) {
  expectSame("rows", [&](Graph& g, const Tensor&, const Tensor& ids, bool useFused) {
    return nn::Embedding(g, "e", 10, 8, {.dtype = GetParam(), .useFused = useFused})(ids);
  });
}

TEST_P(NnFused, RotationsOfBothPairings) {
  for (Pairing pairing : valuesOf<Pairing>())
    expectSame(
        std::string(nameOf(pairing)),
        [=](Graph& g, const Tensor& x, const Tensor& ids, bool useFused) {
          const nn::RoPE rope(g, "r", {.headDim = 16, .pairing = pairing, .useFused = useFused});
          return rope(nn::splitHeads(x, 4), rope.angles(ids));
        },
        true);
}

TEST_P(NnFused, AttentionOfEveryForm) {
  using nn::AttentionOptions;
  for (bool causal : {false, true})
    for (bool masked : {false, true})
      for (auto form : {AttentionOptions::ScaleForm::Divide, AttentionOptions::ScaleForm::Multiply,
                        AttentionOptions::ScaleForm::Query})
        for (std::optional<double> scale : {std::optional<double>(), std::optional<double>(0.3)})
          expectSame(
              "form " + std::to_string(int(form)) + (causal ? ", causal" : "") +
                  (masked ? ", mask" : ""),
              [=](Graph& g, const Tensor& x, const Tensor& ids, bool useFused) {
                AttentionOptions o{
                    .causal = causal, .scaleForm = form, .scale = scale, .useFused = useFused};
                // Every query sees itself.
                if (masked) o.mask = nn::causalMask(x, 3, 3);
                const Tensor heads = nn::splitHeads(x, 4);
                return nn::attention(heads, heads * 0.5, heads + 1.0, o);
              },
              true);
}

// A bias and masks of either kind, alone and together, with every order of the keys. The masks of
// bools hide all keys from the first query.
TEST_P(NnFused, AttentionOfEveryMask) {
  enum class Mask { None, Bools, Floats };
  enum class Order { None, Causal, Positions };
  for (bool biased : {false, true})
    for (Mask mask : {Mask::None, Mask::Bools, Mask::Floats})
      for (Order order : {Order::None, Order::Causal, Order::Positions})
        for (double fill : {-std::numeric_limits<double>::infinity(), -1e4})
          expectSame(
              "bias " + std::to_string(biased) + ", mask " + std::to_string(int(mask)) +
                  ", order " + std::to_string(int(order)) + ", fill " + std::to_string(fill),
              [=](Graph&, const Tensor& x, const Tensor& ids, bool useFused) {
                nn::AttentionOptions o{.causal = order == Order::Causal,
                                       .maskedRow = MaskedRow::zero,
                                       .maskFill = fill,
                                       .useFused = useFused};
                const Tensor query = iota(x, {3, 1}, 0, DType::F32),
                             key = iota(x, {1, 3}, 1, DType::F32);
                if (biased) o.bias = reshape(sin(query + key * 3.0), {1, 1, 3, 3});
                if (mask == Mask::Bools) o.mask = reshape(key < query, {1, 1, 3, 3});
                if (mask == Mask::Floats) o.mask = reshape(cos(query * 2.0 - key), {1, 1, 3, 3});
                if (order == Order::Positions) {
                  o.positions = reshape(sliceAxis(ids, 1, 0, 1), {2});
                  o.window = 2;
                }
                if (!biased && mask == Mask::Floats) o.softcap = 0.5;
                const Tensor heads = nn::splitHeads(x, 4);
                return nn::attention(heads, heads * 0.5, heads + 1.0, o);
              },
              true);
}

}  // namespace
}  // namespace lathe
