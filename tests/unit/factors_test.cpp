// SPDX-License-Identifier: Apache-2.0
// Which axes of each op are one loop. A wrong factor gives ranks the wrong pieces.
#include "lathe/ir/factors.h"

#include <gtest/gtest.h>

#include "lathe/ir/ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

namespace lathe {
namespace {

// The first factor is a, the second b; an axis that stays whole is -. What the results sum over
// stands behind a semicolon.
std::string textOf(const std::optional<Factors>& factors) {
  if (!factors) return "none";
  auto letter = [](int factor) {
    return factor == Factors::kWhole ? std::string("-") : std::string(1, char('a' + factor));
  };
  auto list = [&](const auto& values) {
    std::string out;
    for (const Factors::Axes& axes : values) {
      if (!out.empty()) out += ", ";
      for (int factor : axes) out += letter(factor);
    }
    return out;
  };
  std::string out = list(factors->operands) + " > " + list(factors->results);
  for (int factor : factors->sums) out += "; " + letter(factor);
  return out;
}

// `arguments`: "%x: tensor<2x3xf32>, ..."; the op is the only one.
std::string factorsOf(const std::string& arguments, const std::string& op) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<LatheDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "func.func @f(" + arguments + ") {\n" + op + "\nreturn\n}", &context);
  if (!module) return "does not parse";
  std::string out = "no op with factors";
  module->walk([&](FactoredOp factored) { out = textOf(factored.factors()); });
  return out;
}

struct Case {
  const char *arguments, *op, *factors;
};
void check(std::initializer_list<Case> cases) {
  for (const Case& c : cases) EXPECT_EQ(factorsOf(c.arguments, c.op), c.factors) << c.op;
}

TEST(Factors, OfElementsAreThoseOfTheResult) {
  check({
      {"%x: tensor<2x1x4xf32>, %y: tensor<3x1xf32>",
       "%0 = lathe.add %x, %y : tensor<2x1x4xf32>, tensor<3x1xf32>", "a-c, b- > abc"},
      {"%c: tensor<3x4xi1>, %x: tensor<3x4xf32>, %y: tensor<f32>",
       "%0 = lathe.select %c, %x, %y : tensor<3x4xi1>, tensor<3x4xf32>, tensor<f32>",
       "ab, ab,  > ab"},
      {"%x: tensor<3x1xf32>", "%0 = lathe.broadcast %x to <2, 3, 4> : tensor<3x1xf32>", "b- > abc"},
      {"%x: tensor<3x8xf32>", "%0 = lathe.glu %x, %x : tensor<3x8xf32>, tensor<3x8xf32>",
       "ab, ab > ab"},
      {"%x: tensor<2x3x8xf32>, %g: tensor<2x1x8xf32>",
       "%0 = lathe.gated_residual %x, %g, %x : tensor<2x3x8xf32>, tensor<2x1x8xf32>",
       "abc, a-c, abc > abc"},
  });
}

TEST(Factors, OfReductionsSumWhatSumsAlone) {
  const char* x = "%x: tensor<2x3x4xf32>";
  check({
      {x, "%0 = lathe.reduce_sum %x axes [1] : tensor<2x3x4xf32>", "abc > ac; b"},
      {x, "%0 = lathe.reduce_sum %x axes [0, 2] keep_dims true : tensor<2x3x4xf32>",
       "abc > -b-; a; c"},
      {x, "%0 = lathe.reduce_max %x axes [1] : tensor<2x3x4xf32>", "a-c > ac"},
      {x, "%0 = lathe.reduce_mean %x axes [1] keep_dims true : tensor<2x3x4xf32>", "a-c > a-c"},
      {x, "%0 = lathe.argmax %x axis 0 : tensor<2x3x4xf32>", "-bc > bc"},
  });
}

TEST(Factors, OfRowsKeepTheRowWhole) {
  check({
      {"%x: tensor<4x8xf32>, %m: tensor<8xi1>",
       "%0 = lathe.softmax %x mask %m axis 0 : tensor<4x8xf32> mask tensor<8xi1>", "-b, b > -b"},
      {"%x: tensor<2x3x8xf32>, %g: tensor<8xf32>",
       "%0 = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<2x3x8xf32>, tensor<8xf32>",
       "ab-, - > ab-"},
      {"%x: tensor<2x3x8xf32>, %g: tensor<8xf32>",
       "%0 = lathe.layer_norm %x gain %g bias %g epsilon 1.0e-5 : tensor<2x3x8xf32> "
       "gain tensor<8xf32> bias tensor<8xf32>",
       "ab-, -, - > ab-"},
      {"%x: tensor<2x3x8xf32>, %g: tensor<8xf32>",
       "%0:2 = lathe.add_norm rms %x, %x gain %g epsilon 1.0e-5 : tensor<2x3x8xf32> "
       "gain tensor<8xf32>",
       "ab-, ab-, - > ab-, ab-"},
      {"%x: tensor<2x3x8xf32>, %r: tensor<2x1x8xf32>",
       "%0 = lathe.adaln_modulate layer %x shift %r scale %r epsilon 1.0e-5 : "
       "tensor<2x3x8xf32>, tensor<2x1x8xf32>",
       "ab-, a--, a-- > ab-"},
      {"%x: tensor<2x3x5x8xf32>, %t: tensor<5x4xf32>",
       "%0 = lathe.rope half %x, %t, %t : tensor<2x3x5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>",
       "abc-, c-, c- > abc-"},
      {"%x: tensor<2x3x5x8xf32>, %g: tensor<8xf32>, %t: tensor<5x4xf32>",
       "%0 = lathe.norm_rope half %x gain %g, %t, %t epsilon 1.0e-5 : tensor<2x3x5x8xf32>, "
       "tensor<8xf32>, tensor<5x4xf32>, tensor<5x4xf32>",
       "abc-, -, c-, c- > abc-"},
  });
}

TEST(Factors, OfProductsSumOverTheInnerAxis) {
  const char* both =
      "%x: tensor<2x3x8xf32>, %w: tensor<6x8xf32>, %b: tensor<6xf32>, "
      "%r: tensor<2x3x6xf32>";
  check({
      {"%a: tensor<2x1x3x4xf32>, %b: tensor<5x4x6xf32>",
       "%0 = lathe.matmul %a, %b : tensor<2x1x3x4xf32>, tensor<5x4x6xf32>", "a-ce, bed > abcd; e"},
      {both,
       "%0 = lathe.linear %x, %w bias %b residual %r : tensor<2x3x8xf32>, tensor<6x8xf32> "
       "bias tensor<6xf32> residual tensor<2x3x6xf32>",
       "abd, cd, c, abc > abc; d"},
      {"%x: tensor<2x3x8xf32>, %w: tensor<8x6xf32>",
       "%0 = lathe.linear %x, %w layout in_out : tensor<2x3x8xf32>, tensor<8x6xf32>",
       "abd, dc > abc; d"},
      {both, "%0 = lathe.linear %x, %w layout packed : tensor<2x3x8xf32>, tensor<6x8xf32>", "none"},
      {"%x: tensor<2x1x8xf32>, %w: tensor<9x6x8xf32>, %i: tensor<2x3xi64>",
       "%0 = lathe.grouped_linear %x, %w by %i : tensor<2x1x8xf32>, tensor<9x6x8xf32>, "
       "tensor<2x3xi64>",
       "a-d, -cd, ab > abc; d"},
      {"%x: tensor<2x3x8xf32>, %w: tensor<9x8x6xf32>, %i: tensor<2x3xi64>",
       "%0 = lathe.grouped_linear %x, %w by %i layout in_out : tensor<2x3x8xf32>, "
       "tensor<9x8x6xf32>, tensor<2x3xi64>",
       "abd, -dc, ab > abc; d"},
      {"%x: tensor<2x8xf32>, %w: tensor<9x6x8xf32>, %i: tensor<2xi64>",
       "%0 = lathe.grouped_linear %x, %w by %i layout packed : tensor<2x8xf32>, "
       "tensor<9x6x8xf32>, tensor<2xi64>",
       "none"},
      {"%x: tensor<2x10xbf16>, %w: tensor<6x10xui4>, %s: tensor<6x3xbf16>, %z: tensor<6x3xui8>, "
       "%b: tensor<6xbf16>, %r: tensor<2x6xbf16>",
       "%0 = lathe.quantized_linear %x, %w, %s zero %z block 4 bias %b residual %r : "
       "tensor<2x10xbf16>, tensor<6x10xui4>, tensor<6x3xbf16> zero tensor<6x3xui8> "
       "bias tensor<6xbf16> residual tensor<2x6xbf16>",
       "a-, b-, b-, b-, b, ab > ab"},
      {"%w: tensor<6x10xbf16>, %s: tensor<6x3xbf16>",
       "%0 = lathe.quantize %w, %s axis 1 block 4 to i4 : tensor<6x10xbf16>, tensor<6x3xbf16>",
       "a-, a- > a-"},
      {"%w: tensor<6x10xui4>, %s: tensor<6x3xbf16>, %z: tensor<6x3xui8>",
       "%0 = lathe.dequantize %w, %s zero %z axis 1 block 4 to f32 : tensor<6x10xui4>, "
       "tensor<6x3xbf16> zero tensor<6x3xui8>",
       "a-, a-, a- > a-"},
      // Pieces of whole blocks; a scale of all columns serves every piece.
      {"%w: tensor<6x12xbf16>, %s: tensor<6x3xbf16>",
       "%0 = lathe.quantize %w, %s axis 1 block 4 to i4 : tensor<6x12xbf16>, tensor<6x3xbf16>",
       "ab, ab > ab"},
      {"%w: tensor<6x12xui4>, %s: tensor<6x1xf32>, %z: tensor<6x1xui8>",
       "%0 = lathe.dequantize %w, %s zero %z axis 1 block 12 to f32 : tensor<6x12xui4>, "
       "tensor<6x1xf32> zero tensor<6x1xui8>",
       "ab, a-, a- > ab"},
  });
}

TEST(Factors, OfAttentionAreSequencesHeadsAndQueries) {
  const std::string types = "tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>";
  const std::string arguments =
      "%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, "
      "%one: tensor<2x1x5x8xf32>, %m: tensor<3x5xi1>, %p: tensor<2xi64>";
  auto attention = [&](const std::string& rest) {
    return factorsOf(arguments, "%0 = lathe.attention %q, %k, %k " + rest);
  };
  EXPECT_EQ(attention("mask %m scale 0.5 : " + types + " mask tensor<3x5xi1>"),
            "abc-, ab--, ab--, c- > abc-");
  // The numbers of the queries count.
  EXPECT_EQ(attention("scale 0.5 causal top_left : " + types), "ab--, ab--, ab-- > ab--");
  EXPECT_EQ(
      attention("positions %p scale 0.5 causal positions : " + types + " positions tensor<2xi64>"),
      "ab--, ab--, ab--, a > ab--");
  // One key head serves the pieces of all query heads.
  EXPECT_EQ(factorsOf(arguments,
                      "%0 = lathe.attention %q, %one, %one scale 0.5 : tensor<2x4x3x8xf32>, "
                      "tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>"),
            "abc-, a---, a--- > abc-");
  EXPECT_EQ(factorsOf("%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>",
                      "%0 = lathe.attention %q, %k, %k scale 0.5 : tensor<2x3x8xf32>, "
                      "tensor<2x5x8xf32>, tensor<2x5x8xf32>"),
            "ab-, a--, a-- > ab-");
  // Every sequence may read every block.
  for (bool shared : {false, true}) {
    const std::string blocks = shared ? "tensor<9x1x4x8xf32>" : "tensor<9x2x4x8xf32>";
    const std::string of = shared ? "----" : "-b--";
    const std::string all = "%q: tensor<2x4x3x8xf32>, %b: " + blocks +
                            ", %t: tensor<2x6xi64>, %p: tensor<2xi64>, %m: tensor<3x24xi1>";
    const std::string head = "%0 = lathe.paged_attention %q, %b, %b table %t positions %p ";
    const std::string operands = "tensor<2x4x3x8xf32>, " + blocks + ", " + blocks +
                                 " table tensor<2x6xi64> positions tensor<2xi64>";
    EXPECT_EQ(factorsOf(all, head + "scale 0.5 : " + operands),
              "ab--, " + of + ", " + of + ", a-, a > ab--");
    EXPECT_EQ(factorsOf(all, head + "mask %m scale 0.5 : " + operands + " mask tensor<3x24xi1>"),
              "ab--, " + of + ", " + of + ", a-, a, -- > ab--");
  }
}

TEST(Factors, OfStatesKeepTheAxisOfPositionsWhole) {
  check({
      {"%c: tensor<2x3x9x8xf32>, %v: tensor<2x3x1x8xf32>, %p: tensor<2xi64>",
       "%0 = lathe.update %c, %v, %p axis 2 : tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>, "
       "tensor<2xi64>",
       "ab-d, ab-d, a > ab-d"},
      {"%c: tensor<9x3x8x4xf32>, %v: tensor<2x3x1x4xf32>, %t: tensor<2x5xi64>, %p: tensor<2xi64>",
       "%0 = lathe.paged_update %c, %v table %t positions %p axis 2 : tensor<9x3x8x4xf32>, "
       "tensor<2x3x1x4xf32> table tensor<2x5xi64> positions tensor<2xi64>",
       "-b-d, -b-d, --, - > -b-d"},
      {"%c: tensor<2x3x9x8xf32>, %v: tensor<2x3x1x8xf32>, %t: tensor<1x4xf32>, %p: tensor<2xi64>",
       "%0 = lathe.rope_append interleaved %c, %v, %t, %t, %p axis 2 : tensor<2x3x9x8xf32>, "
       "tensor<2x3x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<2xi64>",
       "ab--, ab--, --, --, a > ab--"},
  });
}

TEST(Factors, OfMovesFollowTheElements) {
  const char* x = "%x: tensor<4x6x8xf32>";
  check({
      {"%i: tensor<5x2xi64>, %w: tensor<6x4xf32>, %p: tensor<2x4xf32>",
       "%0 = lathe.embedding %i, %w positions %p : tensor<5x2xi64>, tensor<6x4xf32> "
       "positions tensor<2x4xf32>",
       "ab, -c, bc > abc"},
      {"%x: tensor<4x6x8xf32>, %i: tensor<2x3xi64>",
       "%0 = lathe.gather %x, %i axis 1 : tensor<4x6x8xf32>, tensor<2x3xi64>", "a-d, bc > abcd"},
      {x, "%0 = lathe.transpose %x [2, 0, 1] : tensor<4x6x8xf32>", "abc > cab"},
      {"%x: tensor<2x6xf32>", "%0 = lathe.reshape %x to <2, 3, 2> : tensor<2x6xf32>", "ab > ab-"},
      {"%x: tensor<6x2xf32>", "%0 = lathe.reshape %x to <12> : tensor<6x2xf32>", "a- > a"},
      {x,
       "%0 = lathe.slice %x starts <1, 0, 0> sizes <2, 6, 4> strides [1, 1, 2] : "
       "tensor<4x6x8xf32>",
       "-b- > -b-"},
      {x,
       "%0 = lathe.slice %x starts <0, 0, 4> sizes <4, 6, 4> strides [1, 1, 1] : "
       "tensor<4x6x8xf32>",
       "ab- > ab-"},
      {"%x: tensor<2x3xf32>, %y: tensor<2x4xf32>",
       "%0 = lathe.concat %x, %y axis 1 : tensor<2x3xf32>, tensor<2x4xf32>", "a-, a- > a-"},
  });
}

}  // namespace
}  // namespace lathe
