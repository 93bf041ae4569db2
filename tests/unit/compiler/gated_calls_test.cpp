// SPDX-License-Identifier: Apache-2.0
// On the CPU a layer and the gate of its halves become one call, and nothing else does.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>

#include "lathe/lathe.h"
#include "lathe/runtime/cost.h"
#include "tests/closeness.h"
#include "tests/unit/compiler/nn_recording.h"

namespace lathe {
namespace {

constexpr int64_t kWidth = 64, kHalf = 128;

// Two halves of one layer on x, and what is made of them.
using Halves =
    std::function<Tensor(Recording& r, const Tensor& y, const Tensor& first, const Tensor& second)>;

Graph graphOf(const Halves& halves, const fused::LinearOptions& options = {}, bool bias = false,
              bool residual = false) {
  Recording r(DType::BF16);
  const Tensor w = r.g.weight("w", DType::BF16, {2 * kHalf, kWidth});
  fused::LinearOptions with = options;
  if (bias) with.bias = r.g.weight("b", DType::BF16, {2 * kHalf});
  if (residual) with.residual = r.g.input("r", DType::BF16, {r.batch, r.seq, 2 * kHalf});
  const Tensor y = fused::linear(r.x, w, with);
  const Tensor first = slice(y, {0, 0, 0}, {r.batch, r.seq, kHalf}, {1, 1, 1});
  const Tensor second = slice(y, {0, 0, kHalf}, {r.batch, r.seq, kHalf}, {1, 1, 1});
  r.g.output("y", halves(r, y, first, second));
  return std::move(r.g);
}

int64_t callsOf(const Program& p, const std::string& kind) {
  const auto& calls = p.entries.at(0).calls;
  return std::count_if(calls.begin(), calls.end(),
                       [&](const Call& call) { return call.kind.starts_with(kind); });
}
int64_t gatedCalls(const Graph& g) { return callsOf(compile(g, {.backend = "cpu"}), "gated_"); }

// Weights that the compiler brings into few bits.
CompileOptions inFormat(const std::string& backend, const std::string& format) {
  CompileOptions options{.backend = backend};
  options.backendOptions.weights = parseWeightFormats(format);
  return options;
}

Tensor gated(Recording&, const Tensor&, const Tensor& first, const Tensor& second) {
  return fused::glu(first, second);
}

TEST(GatedCalls, HalvesOfALayer) {
  EXPECT_EQ(gatedCalls(graphOf(gated)), 1);
  Recording r(DType::BF16);
  r.g.output("y", nn::SwiGLU(r.g, "mlp", kWidth, kHalf)(r.x));
  EXPECT_EQ(gatedCalls(r.g), 1) << "the merged layers of a model";
}

TEST(GatedCalls, OthersStayApart) {
  EXPECT_EQ(gatedCalls(graphOf([](Recording&, const Tensor&, const Tensor& first,
                                  const Tensor& second) { return fused::glu(second, first); })),
            0)
      << "the gates come second";
  EXPECT_EQ(gatedCalls(graphOf([](Recording&, const Tensor&, const Tensor& first, const Tensor&) {
              return fused::glu(first, first);
            })),
            0);
  EXPECT_EQ(gatedCalls(graphOf(
                [](Recording& r, const Tensor& y, const Tensor& first, const Tensor& second) {
                  r.g.output("all", y);
                  return fused::glu(first, second);
                })),
            0)
      << "the products are wanted, too";
  EXPECT_EQ(
      gatedCalls(graphOf([](Recording&, const Tensor&, const Tensor& first, const Tensor& second) {
        return fused::glu(first, second) + first;
      })),
      0)
      << "more than a gate";
  auto ofParts = [](const Tensor& y, const Dims& gate, const Dims& up, const Dims& sizes) {
    return fused::glu(slice(y, gate, sizes, {1, 1, 1}), slice(y, up, sizes, {1, 1, 1}));
  };
  EXPECT_EQ(gatedCalls(graphOf([&](Recording& r, const Tensor& y, const Tensor&, const Tensor&) {
              return ofParts(y, {0, 0, 0}, {0, 0, kHalf}, {r.batch, 1, kHalf});
            })),
            0)
      << "of the first token alone";
  EXPECT_EQ(gatedCalls(graphOf([&](Recording& r, const Tensor& y, const Tensor&, const Tensor&) {
              return ofParts(y, {0, 0, 0}, {0, 0, kHalf}, {r.batch, r.seq, kHalf - 8});
            })),
            0)
      << "of a part of the columns";
  EXPECT_EQ(gatedCalls(graphOf([&](Recording& r, const Tensor& y, const Tensor&, const Tensor&) {
              return ofParts(y, {0, 0, 8}, {0, 0, kHalf}, {r.batch, r.seq, kHalf});
            })),
            0)
      << "the gates begin later";
  EXPECT_EQ(gatedCalls(graphOf(
                [&](Recording& r, const Tensor& y, const Tensor& first, const Tensor& second) {
                  return fused::glu(reverse(first, {2}), second);
                })),
            0)
      << "the gates are turned";
  EXPECT_EQ(gatedCalls(graphOf(gated, {.activation = Activation::relu})), 0);
  EXPECT_EQ(gatedCalls(graphOf(gated, {}, true)), 0) << "a bias";
  EXPECT_EQ(gatedCalls(graphOf(gated, {}, false, true)), 0) << "a residual";
  EXPECT_EQ(gatedCalls(graphOf([](Recording& r, const Tensor& y, const Tensor&, const Tensor&) {
              auto quarter = [&](int64_t from) {
                return slice(y, {0, 0, from}, {r.batch, r.seq, kHalf / 2}, {1, 1, 1});
              };
              return fused::glu(quarter(0), quarter(kHalf / 2));
            })),
            0)
      << "columns are left over";
  EXPECT_EQ(
      gatedCalls(graphOf([](Recording& r, const Tensor& y, const Tensor&, const Tensor& second) {
        return fused::glu(slice(y, {0, 0, 0}, {r.batch, r.seq, kHalf}, {1, 1, 2}), second);
      })),
      0)
      << "every other column";
}

// The gated kernels take nothing but the products: not of weights in few bits either.
TEST(GatedCalls, WhatElseALayerHasKeepsItApartInEveryFormat) {
  for (const char* format : {"stored", "int8", "int4", "int4:channel", "int4:32:asymmetric"}) {
    SCOPED_TRACE(format);
    auto calls = [&](const Graph& g) {
      return callsOf(compile(g, inFormat("cpu", format)), "gated_");
    };
    EXPECT_EQ(calls(graphOf(gated)), 1);
    EXPECT_EQ(calls(graphOf(gated, {.activation = Activation::relu})), 0);
    EXPECT_EQ(calls(graphOf(gated, {}, /*bias=*/true)), 0);
    EXPECT_EQ(calls(graphOf(gated, {}, false, /*residual=*/true)), 0);
  }
}

// What lies between the layer and its gate is neither written nor read.
TEST(GatedCalls, CostWhatTheyReadAndWrite) {
  const Program p = compile(graphOf(gated), {.backend = "cpu"});
  ASSERT_EQ(callsOf(p, ""), 1);
  const SymbolValues sizes{{"batch", 2}, {"seq", 100}};
  const CostValues cost = evaluate(costsOf(p).at("forward").at(0).value(), sizes);
  const double rows = 200, weights = 2 * kHalf * kWidth * 2;
  EXPECT_EQ(cost.read, rows * kWidth * 2 + weights);
  EXPECT_EQ(cost.held, weights);
  EXPECT_EQ(cost.written, rows * kHalf * 2);
  EXPECT_GE(cost.flops, rows * 2 * kHalf * kWidth * 2);
}

// Some rows, whose gate is applied behind the products, and many.
void checkNumbers(Activation activation, const std::string& format, const std::string& kind) {
  for (int64_t seq : {1, 5, 100}) {
    SCOPED_TRACE(format + " " + std::to_string(seq));
    const Graph g =
        graphOf([=](Recording&, const Tensor&, const Tensor& first, const Tensor& second) {
          return fused::glu(first, second, activation);
        });
    Array x(DType::BF16, {2, seq, kWidth}), w(DType::BF16, {2 * kHalf, kWidth});
    for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i * 7919 % 1009) / 400 - 1.2);
    for (int64_t i = 0; i < w.size(); ++i) w.set(i, double(i * 7907 % 997) / 3000 - 0.16);
    auto resultOn = [&](const std::string& backend) {
      const auto p = std::make_shared<const Program>(compile(g, inFormat(backend, format)));
      if (backend == "cpu") EXPECT_EQ(callsOf(*p, kind), 1);
      Session session(p);
      session.bindWeights({{"w", w}});
      return session.run("forward", {{"x", x}}).at("y");
    };
    const Array want = resultOn("reference"), got = resultOn("cpu");
    // Weights in groups are rounded to bf16 for many rows on AMX tiles (docs/numerics.md).
    const bool rounds =
        seq > 16 && format != "stored" && format.find("channel") == std::string::npos;
    EXPECT_LE(largestError(got, want), (rounds ? 0x1p-6 : 0x1p-7) * largestValue(want)) << seq;
    EXPECT_GT(largestValue(want), 0);
  }
}

TEST(GatedCalls, GiveTheNumbersOfTheReference) {
  for (Activation activation : {Activation::silu, Activation::gelu})
    checkNumbers(activation, "stored", "gated_linear");
}

// One session after another size: a gate that many rows apply inside is behind the products of few.
TEST(GatedCalls, OneSessionServesEveryNumberOfRows) {
  const Graph g = graphOf(gated);
  Array w(DType::BF16, {2 * kHalf, kWidth});
  for (int64_t i = 0; i < w.size(); ++i) w.set(i, double(i * 7907 % 997) / 3000 - 0.16);
  for (const char* format : {"stored", "int8"}) {
    auto open = [&](const std::string& backend) {
      Session session(std::make_shared<const Program>(compile(g, inFormat(backend, format))));
      session.bindWeights({{"w", w}});
      return session;
    };
    Session reference = open("reference"), cpu = open("cpu");
    for (int64_t seq : {1, 100, 1, 40, 3, 100, 2}) {
      SCOPED_TRACE(std::string(format) + " " + std::to_string(seq));
      Array x(DType::BF16, {1, seq, kWidth});
      for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i * 7919 % 1009) / 400 - 1.2);
      const Array want = reference.run("forward", {{"x", x}}).at("y");
      const Array got = cpu.run("forward", {{"x", x}}).at("y");
      ASSERT_EQ(got.shape(), want.shape());
      const bool rounds = seq > 16 && format == std::string("int8");
      EXPECT_LE(largestError(got, want), (rounds ? 0x1p-6 : 0x1p-7) * largestValue(want));
    }
  }
}

TEST(GatedCalls, GiveTheNumbersOfTheReferenceInFewBits) {
  for (const char* format : {"int8", "int4", "int4:channel", "int4:32:asymmetric",
                             "int4:channel:asymmetric", "int8:64:asymmetric"})
    checkNumbers(Activation::silu, format, "gated_quantized_linear");
}

}  // namespace
}  // namespace lathe
