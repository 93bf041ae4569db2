// SPDX-License-Identifier: Apache-2.0
// On the CPU a layer and the gate of its halves become one call, and nothing else does.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>

#include "lathe/lathe.h"
#include "tests/closeness.h"
#include "tests/unit/compiler/nn_recording.h"

namespace lathe {
namespace {

constexpr int64_t kWidth = 64, kHalf = 128;

// Two halves of one layer on x, and what is made of them.
using Halves =
    std::function<Tensor(Recording& r, const Tensor& y, const Tensor& first, const Tensor& second)>;

Graph graphOf(const Halves& halves, const fused::LinearOptions& options = {}) {
  Recording r(DType::BF16);
  const Tensor w = r.g.weight("w", DType::BF16, {2 * kHalf, kWidth});
  const Tensor y = fused::linear(r.x, w, options);
  const Tensor first = slice(y, {0, 0, 0}, {r.batch, r.seq, kHalf}, {1, 1, 1});
  const Tensor second = slice(y, {0, 0, kHalf}, {r.batch, r.seq, kHalf}, {1, 1, 1});
  r.g.output("y", halves(r, y, first, second));
  return std::move(r.g);
}

int64_t gatedCalls(const Graph& g) {
  const Program p = compile(g, {.backend = "cpu"});
  int64_t count = 0;
  for (const Call& call : p.entries.at(0).calls) count += call.kind.starts_with("gated_");
  return count;
}

Tensor gated(Recording&, const Tensor&, const Tensor& first, const Tensor& second) {
  return fused::siluGate(first, second);
}

TEST(GatedCalls, HalvesOfALayer) {
  EXPECT_EQ(gatedCalls(graphOf(gated)), 1);
  Recording r(DType::BF16);
  r.g.output("y", nn::SwiGLU(r.g, "mlp", kWidth, kHalf)(r.x));
  EXPECT_EQ(gatedCalls(r.g), 1) << "the merged layers of a model";
}

TEST(GatedCalls, OthersStayApart) {
  EXPECT_EQ(
      gatedCalls(graphOf([](Recording&, const Tensor&, const Tensor& first, const Tensor& second) {
        return fused::siluGate(second, first);
      })),
      0)
      << "the gates come second";
  EXPECT_EQ(gatedCalls(graphOf([](Recording&, const Tensor&, const Tensor& first, const Tensor&) {
              return fused::siluGate(first, first);
            })),
            0);
  EXPECT_EQ(gatedCalls(graphOf(
                [](Recording& r, const Tensor& y, const Tensor& first, const Tensor& second) {
                  r.g.output("all", y);
                  return fused::siluGate(first, second);
                })),
            0)
      << "the products are wanted, too";
  EXPECT_EQ(
      gatedCalls(graphOf([](Recording&, const Tensor&, const Tensor& first, const Tensor& second) {
        return fused::siluGate(first, second) + first;
      })),
      0)
      << "more than a gate";
  EXPECT_EQ(gatedCalls(graphOf(gated, {.activation = Activation::relu})), 0);
}

// Some rows, whose gate is applied behind the products, and many.
TEST(GatedCalls, GiveTheNumbersOfTheReference) {
  for (Activation activation : {Activation::silu, Activation::gelu})
    for (int64_t seq : {1, 5, 100}) {
      const Graph g =
          graphOf([=](Recording&, const Tensor&, const Tensor& first, const Tensor& second) {
            return fused::siluGate(first, second, activation);
          });
      Array x(DType::BF16, {2, seq, kWidth}), w(DType::BF16, {2 * kHalf, kWidth});
      for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i * 7919 % 1009) / 400 - 1.2);
      for (int64_t i = 0; i < w.size(); ++i) w.set(i, double(i * 7907 % 997) / 3000 - 0.16);
      auto resultOn = [&](const char* backend) {
        Session session(compile(g, {.backend = backend}));
        session.bindWeights({{"w", w}});
        return session.run("forward", {{"x", x}}).at("y");
      };
      const Array want = resultOn("reference"), got = resultOn("cpu");
      EXPECT_LE(largestError(got, want), 0x1p-7 * largestValue(want)) << seq;
      EXPECT_GT(largestValue(want), 0);
    }
}

}  // namespace
}  // namespace lathe
