// SPDX-License-Identifier: Apache-2.0
// Properties of the canonical form, on every sample of every op: a second run changes nothing, what
// it may not weaken it leaves bit by bit, and a fusion in strict mode computes what it replaced.
#include <gtest/gtest.h>

#include "lathe/backends/interpreter.h"
#include "lathe/lathe.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/rewrite/numerics_scope.h"
#include "tests/conformance/cases_build.h"
#include "tests/conformance/rewriting.h"

namespace lathe::conformance {
namespace {

using mlir::ModuleOp;

std::vector<std::string> allOps() {
  std::vector<std::string> ops;
  for (const OpRow& row : opTable()) ops.push_back(row.op);
  return ops;
}

std::vector<Array> resultsOf(ModuleOp module, const Sample& sample, const std::string& salt) {
  const Data data = makeData({sample}, allSizes()[1], salt);
  std::vector<Array> arguments;
  for (size_t i = 0; i < sample.inputs.size(); ++i)
    if (!sample.inputs[i].weight) arguments.push_back(data.inputs.at("0.in" + std::to_string(i)));
  return interpret(module.lookupSymbol<mlir::func::FuncOp>("forward"), arguments,
                   [&](const std::string& name) { return data.weights.at(name); },
                   Precision::OwnDtype, {},
                   {{"rows", allSizes()[1].rows}, {"cols", allSizes()[1].cols}});
}

class CanonicalForm : public ::testing::TestWithParam<std::string> {};

TEST_P(CanonicalForm, IsAFixedPoint) {
  const OpRow& row = rowOf(GetParam());
  for (DType dtype : row.dtypes)
    for (const Sample& sample : row.samples(dtype)) {
      SCOPED_TRACE(std::string(nameOf(dtype)) + " " + sample.name);
      const Graph graph = recordSamples({sample});
      Module module = moduleOf(graph);
      if (row.fused) decompose(*module);
      canonicalize(*module);
      const std::string once = textOf(*module);
      canonicalize(*module);
      EXPECT_EQ(textOf(*module), once);
    }
}

TEST_P(CanonicalForm, KeepsTheBitsInStrictMode) {
  const OpRow& row = rowOf(GetParam());
  for (DType dtype : row.dtypes)
    for (const Sample& sample : row.samples(dtype)) {
      SCOPED_TRACE(std::string(nameOf(dtype)) + " " + sample.name);
      const Graph graph = recordSamples({sample});
      Module plain = moduleOf(graph), canonical = moduleOf(graph);
      if (row.fused) {
        decompose(*plain);
        decompose(*canonical);
      }
      NumericsScope strict(canonical->getContext(), {.mode = NumericsMode::Strict});
      canonicalizeAndFuse(*canonical);
      EXPECT_EQ(firstOtherBits(resultsOf(*plain, sample, GetParam()),
                               resultsOf(*canonical, sample, GetParam())),
                "");
    }
}

// --- spellings that are not what the fused ops compute

struct Spelling {
  const char* fused;  // what relaxed mode makes of it
  Sample sample;
};

std::vector<Spelling> spellings(DType d) {
  const Input x{d, {6, 16}}, gain{d, {16}}, q{d, {2, 8, 16}}, mask{DType::Bool, {8, 8}};
  std::vector<Spelling> all;
  auto add = [&](const char* fused, const char* name, std::vector<Input> inputs, One record) {
    all.push_back({fused, {name, std::move(inputs), one(std::move(record)), false, true}});
  };
  auto meanSquare = [](const Tensor& t) { return reduceSum(t * t, {1}, true) / 16.0 + 0x1p-17; };
  auto softmax = [](const Tensor& t) {
    Tensor e = exp(t - reduceMax(t, {t.rank() - 1}, true));
    return e / reduceSum(e, {t.rank() - 1}, true);
  };
  add("lathe.glu", "silu_quotient", {x, x}, [](Ts t) { return t[0] / (1.0 + exp(-t[0])) * t[1]; });
  add("lathe.glu", "silu_tanh", {x, x},
      [](Ts t) { return t[0] * (0.5 * (1.0 + tanh(t[0] * 0.5))) * t[1]; });
  add("lathe.glu", "gelu_half_outside", {x, x},
      [](Ts t) { return t[0] * (1.0 + erf(t[0] * M_SQRT1_2)) * 0.5 * t[1]; });
  add("lathe.rms_norm", "rms_quotient", {x, gain},
      [=](Ts t) { return t[0] / sqrt(meanSquare(t[0])) * t[1]; });
  add("lathe.rms_norm", "rms_power", {x, gain},
      [=](Ts t) { return t[0] * pow(meanSquare(t[0]), scalarLike(t[0], -0.5)) * t[1]; });
  add("lathe.softmax", "softmax_shifted_twice", {x},
      [=](Ts t) { return softmax(t[0] - reduceMax(t[0], {1}, true)); });
  add("lathe.attention", "attention_scaled_query", {q, q, q},
      [=](Ts t) { return matmul(softmax(matmul(t[0] * 0.3, swapAxes(t[1], 1, 2))), t[2]); });
  add("lathe.attention", "attention_added_mask", {q, q, q, mask}, [=](Ts t) {
    Tensor zero = scalarLike(t[0], 0), low = scalarLike(t[0], -INFINITY);
    Tensor scores = matmul(t[0], swapAxes(t[1], 1, 2)) * 0.25;
    return matmul(softmax(scores + select(t[3], zero, low)), t[2]);
  });
  return all;
}

TEST(Spellings, KeepTheirBitsInStrictModeAndFuseInRelaxed) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (const auto& [fused, s] : spellings(dtype)) {
      SCOPED_TRACE(std::string(nameOf(dtype)) + " " + s.name);
      const Graph graph = recordSamples({s});
      Module plain = moduleOf(graph), strict = moduleOf(graph), relaxed = moduleOf(graph);
      {
        NumericsScope scope(strict->getContext(), {.mode = NumericsMode::Strict});
        canonicalizeAndFuse(*strict);
      }
      canonicalizeAndFuse(*relaxed);
      EXPECT_EQ(firstOtherBits(resultsOf(*plain, s, s.name), resultsOf(*strict, s, s.name)), "");
      EXPECT_LT(opsOf(*relaxed).size(), opsOf(*strict).size()) << textOf(*strict);
      EXPECT_EQ(countOps(*relaxed, fused), 1) << textOf(*relaxed);
    }
}

INSTANTIATE_TEST_SUITE_P(Conformance, CanonicalForm, ::testing::ValuesIn(allOps()),
                         [](const auto& info) { return info.param.substr(6); });

}  // namespace
}  // namespace lathe::conformance
