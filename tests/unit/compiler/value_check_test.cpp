// SPDX-License-Identifier: Apache-2.0
// What running both sides of a match sees that a pattern overlooks: broadcasts, casts through
// integers, constants, symbols, large sizes.
#include "passes/rewrite/value_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/backends/interpreter.h"
#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "lathe/passes/numbers.h"
#include "lathe/runtime/error.h"
#include "passes/rewrite/retype.h"

using namespace mlir;
using testing::HasSubstr;

namespace lathe {
namespace {

class ValueCheck : public testing::Test {
 protected:
  ValueCheck() : context_(createContext()) {}

  // The words for two bodies of one signature, `T` standing for a type; "" if they agree.
  std::string difference(const std::string& type, const std::string& was, const std::string& is,
                         const std::string& arguments = "%a: T, %b: T",
                         const std::string& result = "T", const std::string& dims = "",
                         bool special = false) {
    const std::string head = "(" + arguments + ") -> " + result + " {\n";
    std::string text = "func.func @was" + head + was + "\nreturn %y : " + result +
                       " }\nfunc.func @is" + head + is + "\nreturn %y : " + result + " }";
    for (size_t at = 0; (at = text.find('T', at)) != std::string::npos;)
      text.replace(at, 1, type), at += type.size();
    CutOut cut{parseModule(*context_, text, "test"), {}, {}};
    cut.was = cut.module->lookupSymbol<func::FuncOp>("was");
    cut.is = cut.module->lookupSymbol<func::FuncOp>("is");
    // As in a compilation, the graph that says the ranges is not the module of both sides.
    auto graph = parseModule(*context_, dims.empty() ? "module {}" : dims, "graph");
    return valueDifference(cut, *graph, counted(), special).value_or("");
  }
  Evaluator counted() {
    return [this](Operation* f, const std::vector<Array>& arguments, const WeightProvider& weights,
                  const Symbols& symbols) {
      ++runs_;
      for (const Array& a : arguments) largest_ = std::max(largest_, a.size());
      return interpretFunction(f, arguments, weights, symbols);
    };
  }

  std::unique_ptr<MLIRContext> context_;
  int runs_ = 0;
  int64_t largest_ = 0;
};

const char* const kRows = "tensor<?x4xf32, #lathe.dims<rows, 4>>";

TEST_F(ValueCheck, EqualValuesByAnotherFormulaAgree) {
  EXPECT_EQ(difference(kRows, "%y = lathe.mul %a, %b : T, T", "%y = lathe.mul %b, %a : T, T"), "");
  EXPECT_GT(runs_, 4);
}

// Weights have numbers of their own each, the same on both sides.
TEST_F(ValueCheck, EachWeightHasItsOwnNumbers) {
  const std::string weights =
      "%v = lathe.weight \"v\" : tensor<3x4xf32>\n%w = lathe.weight \"w\" : tensor<3x4xf32>\n";
  auto minus = [&](const std::string& operands) {
    return weights + "%y = lathe.sub " + operands + " : tensor<3x4xf32>, tensor<3x4xf32>";
  };
  EXPECT_EQ(difference("tensor<3x4xf32>", minus("%v, %w"), minus("%v, %w")), "");
  EXPECT_THAT(difference("tensor<3x4xf32>", minus("%v, %w"), minus("%w, %v")),
              HasSubstr("and would be"));
}

TEST_F(ValueCheck, SaysWhichElementDiffersAndTheSizes) {
  EXPECT_THAT(difference(kRows, "%y = lathe.mul %a, %b : T, T", "%y = lathe.add %b, %a : T, T"),
              testing::MatchesRegex("element \\[0, 0\\] is .* and would be .* with rows=3"));
}

TEST_F(ValueCheck, ACastThroughIntegersIsNoRounding) {
  for (const char* through : {"i32", "i8", "i1", "i64"})
    EXPECT_NE(difference("tensor<3x4xf32>",
                         "%c = lathe.cast %a to " + std::string(through) +
                             " : T\n %y = lathe.cast %c to f32 : tensor<3x4x" + through + ">",
                         "%y = lathe.add %a, %a : T, T"),
              "");
  EXPECT_EQ(difference("tensor<3x4xf32>",
                       "%c = lathe.cast %a to bf16 : T\n %y = lathe.cast %c to f32 : "
                       "tensor<3x4xbf16>",
                       "%z = lathe.sub %b, %b : T, T\n %y = lathe.add %a, %z : T, T"),
            "");
}

// Whole numbers and conditions have no rounding: every difference counts, in every dtype.
TEST_F(ValueCheck, WholeNumbersAndConditionsAgreeExactly) {
  auto type = [](const std::string& dtype) { return "tensor<3x4x" + dtype + ">"; };
  for (const char* dtype : {"i64", "i32", "i16", "i8", "ui8", "i1"}) {
    const bool condition = dtype == std::string("i1");
    const std::string was = condition ? "logical_and" : "add",
                      is = condition ? "logical_or" : "sub";
    auto body = [](const std::string& op) { return "%y = lathe." + op + " %a, %b : T, T"; };
    EXPECT_EQ(difference(type(dtype), body(was), body(was)), "") << dtype;
    EXPECT_THAT(difference(type(dtype), body(was), body(is)), HasSubstr("and would be")) << dtype;
  }
  for (const char* dtype : {"f64", "f32", "bf16", "i64", "i32", "ui8"}) {
    auto compares = [&](const std::string& predicate) {
      return difference(type(dtype), "%y = lathe.compare lt %a, %b : T, T",
                        "%y = lathe.compare " + predicate + " %a, %b : T, T", "%a: T, %b: T",
                        type("i1"));
    };
    EXPECT_EQ(compares("lt"), "") << dtype;
    EXPECT_THAT(compares("gt"), HasSubstr("and would be")) << dtype;
  }
}

TEST_F(ValueCheck, SymbolsAreDifferentSizesAndOne) {
  // Equal only where rows is 1: mean over rows against the row itself.
  const char* mean =
      "%m = lathe.reduce_mean %a axes [0] keep_dims true : T\n"
      "%y = lathe.add %a, %m : T, tensor<1x4xf32>";
  const char* twice = "%y = lathe.add %a, %a : T, T";
  EXPECT_THAT(difference(kRows, mean, twice), HasSubstr("with rows=3"));
  EXPECT_EQ(difference(kRows, mean, twice, "%a: T, %b: T", "T", "lathe.dim @rows 1 to 1\n"), "");
  // What was found for one range is not taken for another.
  EXPECT_NE(difference(kRows, mean, twice, "%a: T, %b: T", "T", "lathe.dim @rows 1 to 4\n"), "");
}

// What no number of a usual size shows: both sides part where a constant of theirs lies.
TEST_F(ValueCheck, NumbersAboutTheConstantsOfTheOps) {
  auto constant = [](const std::string& name, const std::string& value) {
    return "%" + name + " = lathe.constant dense<" + value + "> : tensor<f32>\n";
  };
  const std::string limits = constant("lo", "-2.0e4") + constant("hi", "2.0e4");
  const std::string low = "%l = lathe.max %a, %lo : T, tensor<f32>\n";
  const std::string same = constant("zero", "0.0") + "%y = lathe.add %a, %zero : T, tensor<f32>";
  EXPECT_THAT(difference(kRows, limits + low + "%y = lathe.min %l, %hi : T, tensor<f32>", same),
              HasSubstr("and would be"));
  // 2e4 after a scale: a quotient of the constants.
  EXPECT_THAT(difference(kRows,
                         constant("s", "0.001") + constant("hi", "20.0") +
                             "%m = lathe.mul %a, %s : T, tensor<f32>\n"
                             "%y = lathe.min %m, %hi : T, tensor<f32>",
                         constant("s", "0.001") + "%y = lathe.mul %a, %s : T, tensor<f32>"),
              HasSubstr("and would be"));
  const std::string wide = "tensor<3x4xi64>",
                    bound = "%hi = lathe.constant dense<70000> : tensor<i64>\n";
  EXPECT_THAT(difference(wide, bound + "%y = lathe.min %a, %hi : T, tensor<i64>",
                         "%y = lathe.min %a, %a : T, T"),
              HasSubstr("and would be"));
}

TEST_F(ValueCheck, InfinitiesOfEitherSignAreAmongSpecialValues) {
  const std::string type = "tensor<64xf32>", was = "%y = lathe.max %a, %a : T, T";
  for (const std::string& by : {"max", "min"}) {
    const std::string is = "%c = lathe.constant dense<" +
                           std::string(by == "max" ? "-3.0e+38" : "3.0e+38") +
                           "> : tensor<f32>\n%y = lathe." + by + " %a, %c : T, tensor<f32>";
    EXPECT_THAT(difference(type, was, is, "%a: T, %b: T", "T", "", /*special=*/true),
                HasSubstr("inf and would be"))
        << by;
  }
}

// Asked for, after the same sides agreed on numbers.
TEST_F(ValueCheck, ANumberInPlaceOfANanShowsAmongSpecialValues) {
  const std::string was = "%y = lathe.mul %a, %b : T, T";
  const std::string is =
      "%p = lathe.mul %a, %b : T, T\n %n = lathe.is_nan %p : T\n"
      "%z = lathe.constant dense<0.0> : tensor<f32>\n"
      "%y = lathe.select %n, %z, %p : tensor<64xi1>, tensor<f32>, T";
  for (bool back : {false, true}) {
    auto found = [&](bool special) {
      return difference("tensor<64xf32>", back ? is : was, back ? was : is, "%a: T, %b: T", "T", "",
                        special);
    };
    EXPECT_EQ(found(false), "");
    EXPECT_THAT(found(true), HasSubstr("nan"));
  }
}

TEST_F(ValueCheck, SmallEpsilonsAndSlightlyOtherConstantsShow) {
  auto scaled = [](const char* c) {
    return "%c = lathe.constant dense<" + std::string(c) +
           "> : tensor<f32>\n %y = lathe.mul %a, %c : T, tensor<f32>";
  };
  EXPECT_NE(difference(kRows, scaled("0.5"), scaled("0.5005")), "");
  EXPECT_EQ(difference(kRows, scaled("0.3"), scaled("0.3000001")), "");
  auto norm = [](const char* e) {
    return "%s = lathe.mul %a, %a : T, T\n %m = lathe.reduce_mean %s axes [1] keep_dims true : T\n"
           "%c = lathe.constant dense<" +
           std::string(e) +
           "> : tensor<f32>\n %v = lathe.add %m, %c : tensor<?x1xf32, #lathe.dims<rows, 1>>, "
           "tensor<f32>\n %r = lathe.rsqrt %v : tensor<?x1xf32, #lathe.dims<rows, 1>>\n"
           "%y = lathe.mul %a, %r : T, tensor<?x1xf32, #lathe.dims<rows, 1>>";
  };
  EXPECT_NE(difference(kRows, norm("1.0e-5"), norm("1.0e-6")), "");
}

TEST_F(ValueCheck, ConstantsOf16BitsExplainHalfAStepOfTheirOwn) {
  auto scaled = [](const char* c) {
    return "%c = lathe.constant dense<" + std::string(c) +
           "> : tensor<bf16>\n %y = lathe.mul %a, %c : T, tensor<bf16>";
  };
  // 1 / sqrt(2) as bf16 holds it, and as it is.
  const char* exact =
      "%f = lathe.cast %a to f32 : T\n"
      "%c = lathe.constant dense<0.70710678> : tensor<f32>\n"
      "%p = lathe.mul %f, %c : tensor<3x4xf32>, tensor<f32>\n"
      "%y = lathe.cast %p to bf16 : tensor<3x4xf32>";
  EXPECT_EQ(difference("tensor<3x4xbf16>", scaled("0.70703125"), exact), "");
  EXPECT_NE(difference("tensor<3x4xbf16>", scaled("0.7109375"), exact), "");
  // The number next to 1 is not 1.
  EXPECT_NE(difference("tensor<3x4xbf16>", scaled("1.0078125"),
                       "%z = lathe.sub %b, %b : T, T\n%y = lathe.add %a, %z : T, T"),
            "");
}

TEST_F(ValueCheck, IntegersAreExactBeyondDoubles) {
  const char* zero = "%z = lathe.sub %a, %a : T, T\n";
  EXPECT_NE(
      difference("tensor<64xi64>", std::string(zero) + "%y = lathe.add %a, %z : T, T",
                 "%f = lathe.cast %a to f64 : T\n %y = lathe.cast %f to i64 : tensor<64xf64>"),
      "");
  EXPECT_EQ(difference("tensor<64xi64>", std::string(zero) + "%y = lathe.add %a, %z : T, T",
                       "%n = lathe.neg %a : T\n %y = lathe.neg %n : T"),
            "");
}

TEST_F(ValueCheck, IndicesAreDrawnUntilTheyFit) {
  const std::string gather = "%y = lathe.gather %t, %i axis 0 : tensor<4x3xf32>, tensor<5xi64>";
  const std::string arguments = "%t: tensor<4x3xf32>, %i: tensor<5xi64>";
  EXPECT_EQ(difference("", gather, gather, arguments, "tensor<5x3xf32>"), "");
  EXPECT_NE(
      difference("", gather, "%g" + gather.substr(2) + "\n%y = lathe.neg %g : tensor<5x3xf32>",
                 arguments, "tensor<5x3xf32>"),
      "");
}

TEST_F(ValueCheck, LargeSizesAreDividedWhereTheOpsStillFit) {
  const std::string type = "tensor<?x4096xf32, #lathe.dims<rows, 4096>>";
  const std::string arguments = "%a: T, %w: tensor<4096x8192xf32>";
  const std::string result = "tensor<?x8192xf32, #lathe.dims<rows, 8192>>";
  const std::string product = "%p = lathe.matmul %a, %w : T, tensor<4096x8192xf32>\n";
  EXPECT_EQ(difference(type, product + "%y = lathe.abs %p : " + result,
                       product + "%y = lathe.abs %p : " + result, arguments, result),
            "");
  EXPECT_LT(largest_, 4096 * 8192 / 64);
  largest_ = 0;
  EXPECT_NE(difference(type, product + "%y = lathe.neg %p : " + result,
                       product + "%y = lathe.sqrt %p : " + result, arguments, result),
            "");
}

// In full size the product of a vocabulary is too dear for several rows and for one.
TEST_F(ValueCheck, WhatIsTooDearInFullIsStillDrawnInEveryKind) {
  const std::string product =
      " = lathe.matmul %a, %b : tensor<?x896xf32, #lathe.dims<rows, 896>>, "
      "tensor<896x151936xf32>\n";
  auto found = [&](const std::string& body) {
    return difference("tensor<?x151936xf32, #lathe.dims<rows, 151936>>", "%y" + product, body,
                      "%a: tensor<?x896xf32, #lathe.dims<rows, 896>>, %b: tensor<896x151936xf32>");
  };
  // The sum of one row is that row.
  EXPECT_THAT(found("%x" + product +
                    "%s = lathe.reduce_sum %x axes [0] keep_dims true : T\n"
                    "%z = lathe.sub %x, %x : T, T\n"
                    "%y = lathe.add %z, %s : T, tensor<1x151936xf32>"),
              HasSubstr("rows=3"));
  // Only large products reach the bound.
  EXPECT_NE(found("%x" + product +
                  "%c = lathe.constant dense<60.0> : tensor<f32>\n"
                  "%y = lathe.min %x, %c : T, tensor<f32>"),
            "");
  EXPECT_EQ(found("%y" + product), "");
  EXPECT_LT(largest_, 1 << 20);
}

TEST_F(ValueCheck, AFailureOfTheNewSideAloneIsADifference) {
  const std::string arguments = "%a: tensor<4x3xf32>, %i: tensor<2xi64>";
  EXPECT_THAT(difference("",
                         "%g = lathe.gather %a, %i axis 0 : tensor<4x3xf32>, tensor<2xi64>\n"
                         "%y = lathe.neg %g : tensor<2x3xf32>",
                         "%o = lathe.constant dense<7> : tensor<i64>\n"
                         "%j = lathe.add %i, %o : tensor<2xi64>, tensor<i64>\n"
                         "%g = lathe.gather %a, %j axis 0 : tensor<4x3xf32>, tensor<2xi64>\n"
                         "%y = lathe.neg %g : tensor<2x3xf32>",
                         arguments, "tensor<2x3xf32>"),
              HasSubstr("the replacement fails where the ops do not"));
}

TEST_F(ValueCheck, WhatWasFoundOnceIsNotRunAgain) {
  const char* twice = "%y = lathe.add %a, %a : T, T";
  difference(kRows, twice, "%y = lathe.mul %a, %b : T, T");
  runs_ = 0;
  EXPECT_NE(difference(kRows, twice, "%y = lathe.mul %a, %b : T, T"), "");
  EXPECT_EQ(runs_, 0);
}

TEST_F(ValueCheck, RetypingInfersAgainAndRefusesWhatNoLongerFits) {
  auto module = parseModule(*context_,
                            "func.func @f(%a: tensor<6x64xf32>) -> tensor<384xf32> {\n"
                            "%y = lathe.reshape %a to <384> : tensor<6x64xf32>\n"
                            "return %y : tensor<384xf32> }",
                            "test");
  auto function = module->lookupSymbol<func::FuncOp>("f");
  auto resize = [&](int64_t from) {
    Retyping change;
    change.dim = [from](StringAttr dim) {
      const int64_t n = *exprOf(dim).asConstant();
      return n % from ? dim : StringAttr::get(dim.getContext(), std::to_string(n / from));
    };
    OpBuilder b(context_.get());
    b.setInsertionPointToEnd(module->getBody());
    return retyped(b, function, change);
  };
  func::FuncOp small = resize(16);
  ASSERT_TRUE(small);
  EXPECT_EQ(shortType(small.getResultTypes()[0]), "f32[24]");
  EXPECT_FALSE(resize(2));  // 3 x 32 elements are not 192
}

TEST_F(ValueCheck, RetypingKeepsConstantsOrRefuses) {
  for (const char* number : {"2.0", "-100.0", "0.5", "1000.0"}) {
    auto module =
        parseModule(*context_,
                    "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
                    "%c = lathe.constant dense<" +
                        std::string(number) +
                        "> : tensor<f32>\n %y = lathe.mul %a, %c : tensor<4xf32>, tensor<f32>\n"
                        "return %y : tensor<4xf32> }",
                    "test");
    OpBuilder b(context_.get());
    b.setInsertionPointToEnd(module->getBody());
    func::FuncOp whole = retyped(b, module->lookupSymbol<func::FuncOp>("f"),
                                 {.element = [&](Type) { return Type(b.getI32Type()); }});
    const double wanted = std::stod(number);
    const bool fits = wanted == 2 || wanted == -100;
    ASSERT_EQ(bool(whole), fits) << number;
    if (whole) whole.walk([&](ConstantOp op) { EXPECT_EQ(splatValue(op.getResult()), wanted); });
  }
}

// What a pattern's number is compared with, behind casts that do more than round.
TEST_F(ValueCheck, NumbersAreReadThroughCasts) {
  struct Case {
    const char *from, *number, *to;
    std::optional<double> want;
  };
  for (const Case& c : {Case{"f32", "0.5", "i1", 1},
                        {"f32", "0.0", "i1", 0},
                        {"f32", "-1.5", "i32", -1},
                        {"i64", "200", "ui8", 200},
                        {"i64", "256", "ui8", {}},
                        {"i64", "-1", "ui8", {}},
                        {"i64", "-128", "i8", -128},
                        {"i64", "128", "i8", {}}}) {
    auto module = parseModule(*context_,
                              std::string("func.func @f() -> tensor<") + c.to +
                                  "> {\n%c = lathe.constant dense<" + c.number + "> : tensor<" +
                                  c.from + ">\n%y = lathe.cast %c to " + c.to + " : tensor<" +
                                  c.from + ">\nreturn %y : tensor<" + c.to + "> }",
                              "test");
    Operation* end = module->lookupSymbol<func::FuncOp>("f").getBody().front().getTerminator();
    EXPECT_EQ(splatValue(end->getOperand(0)), c.want) << c.number << " to " << c.to;
  }
}

TEST_F(ValueCheck, NumbersAreRoundedToATypeOnce) {
  OpBuilder b(context_.get());
  EXPECT_EQ(roundedTo(b.getBF16Type(), 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(roundedTo(b.getF16Type(), -1 - 0x1p-11 - 0x1p-40), -1 - 0x1p-10);
  EXPECT_EQ(roundedTo(b.getF32Type(), 1 + 0x1p-24 + 0x1p-40), 1 + 0x1p-23);
  EXPECT_EQ(roundedTo(b.getBF16Type(), 1 + 0x1p-8), 1);
}

// What lies between whole numbers, ties, zeros, and what overflows.
TEST_F(ValueCheck, HalvesTiesZerosAndThousandsAreSeen) {
  const std::pair<const char*, const char*> wrong[] = {
      {"%y = lathe.round %a : T",
       "%h = lathe.constant dense<0.5> : T\n%s = lathe.add %a, %h : T, T\n%y = lathe.floor %s : T"},
      {"%y = lathe.sign %a : T", "%m = lathe.abs %a : T\n%y = lathe.div %a, %m : T, T"},
      {"%y = lathe.sqrt %a : T", "%r = lathe.rsqrt %a : T\n%y = lathe.mul %a, %r : T, T"},
      {"%c = lathe.compare gt %a, %b : T, T\n%z = lathe.neg %a : T\n%y = lathe.select %c, %a, %z : "
       "tensor<3x4xi1>, T, T",
       "%c = lathe.compare ge %a, %b : T, T\n%z = lathe.neg %a : T\n%y = lathe.select %c, %a, %z : "
       "tensor<3x4xi1>, T, T"},
      {"%y = lathe.tanh %a : T",
       "%d = lathe.add %a, %a : T, T\n%e = lathe.exp %d : T\n%o = lathe.constant dense<1.0> : T\n"
       "%m = lathe.sub %e, %o : T, T\n%p = lathe.add %e, %o : T, T\n%y = lathe.div %m, %p : T, T"}};
  for (const auto& [was, is] : wrong) EXPECT_NE(difference("tensor<3x4xf32>", was, is), "") << is;
  // What f32 has no number for is no difference: x sigmoid(x) in two spellings, far below 0.
  EXPECT_EQ(difference(
                "tensor<3x4xf32>", "%s = lathe.sigmoid %a : T\n%y = lathe.mul %a, %s : T, T",
                "%n = lathe.neg %a : T\n%e = lathe.exp %n : T\n%o = lathe.constant dense<1.0> : T\n"
                "%p = lathe.add %e, %o : T, T\n%y = lathe.div %a, %p : T, T"),
            "");
  // The other way round the graph itself has no number there.
  EXPECT_EQ(difference("tensor<3x4xf32>", wrong[4].second, wrong[4].first), "");
}

// Sizes are those that the graph allows: the largest is a multiple, too.
TEST_F(ValueCheck, SizesAreMultiplesUpToTheEnd) {
  EXPECT_EQ(difference("tensor<?x?xf32, #lathe.dims<a, rows>>", "%y = lathe.mul %a, %b : T, T",
                       "%y = lathe.mul %b, %a : T, T", "%a: T, %b: T", "T",
                       "lathe.dim @a 1 to 100\nlathe.dim @rows 1 to 6 multiple 4"),
            "");
  EXPECT_EQ(largest_, 3 * 4);
}

// Narrow integers are drawn to their ends, conditions hold in no place of some row, and wide
// integers lie about the constants of the ops.
TEST_F(ValueCheck, IntegersAndConditionsOfEveryKindAreSeen) {
  EXPECT_THAT(difference("tensor<64xui8>",
                         "%c = lathe.cast %a to i8 : T\n%y = lathe.cast %c to i32 : tensor<64xi8>",
                         "%y = lathe.cast %a to i32 : T", "%a: T, %b: T", "tensor<64xi32>"),
              HasSubstr("and would be"));
  const char* const none =
      "%f = lathe.cast %a to f32 : T\n"
      "%s = lathe.reduce_sum %f axes [1] keep_dims true : tensor<3x4xf32>\n"
      "%z = lathe.constant dense<0.0> : tensor<f32>\n"
      "%y = lathe.compare gt %s, %z : tensor<3x1xf32>, tensor<f32>";
  EXPECT_THAT(difference("tensor<3x4xi1>", none, "%y = lathe.constant dense<true> : tensor<3x1xi1>",
                         "%a: T, %b: T", "tensor<3x1xi1>"),
              HasSubstr("element [1, 0]"));
  EXPECT_THAT(difference("tensor<3x4xi32>",
                         "%hi = lathe.constant dense<70000> : tensor<i32>\n"
                         "%y = lathe.min %a, %hi : T, tensor<i32>",
                         "%y = lathe.min %a, %a : T, T"),
              HasSubstr("and would be"));
}

// Sizes begin where the graph's do, and the smallest is one of them.
TEST_F(ValueCheck, SizesBeginAtTheLowestOfTheirRange) {
  const char* const twice = "%y = lathe.add %a, %a : T, T";
  EXPECT_EQ(difference("tensor<?xf32, #lathe.dims<rows>>", twice, twice, "%a: T, %b: T", "T",
                       "lathe.dim @rows 9 to 20"),
            "");
  EXPECT_EQ(largest_, 9);
  // The first place is the last one as well where there is but one.
  const char* const alone =
      "%i = lathe.iota <rows, 1> axis 0 dtype i64\n"
      "%r = lathe.reverse %i axes [0] : tensor<?x1xi64, #lathe.dims<rows, 1>>\n"
      "%s = lathe.add %i, %r : tensor<?x1xi64, #lathe.dims<rows, 1>>, "
      "tensor<?x1xi64, #lathe.dims<rows, 1>>\n"
      "%z = lathe.constant dense<0> : tensor<i64>\n"
      "%c = lathe.compare eq %s, %z : tensor<?x1xi64, #lathe.dims<rows, 1>>, tensor<i64>\n"
      "%n = lathe.neg %a : T\n"
      "%y = lathe.select %c, %n, %a : tensor<?x1xi1, #lathe.dims<rows, 1>>, T, T";
  EXPECT_THAT(difference(kRows, alone, "%y = lathe.add %a, %a : T, T"), HasSubstr("rows=3"));
  EXPECT_THAT(difference(kRows, alone, "%n = lathe.neg %a : T\n%y = lathe.neg %n : T"),
              HasSubstr("rows=1"));
}

// A product of numbers in the thousands would be larger than what hides a score.
TEST_F(ValueCheck, ScoresStayBelowWhatHidesThem) {
  const std::string product = " = lathe.matmul %a, %b : T, T";
  EXPECT_EQ(difference("tensor<4x4xf32>",
                       "%s" + product +
                           "\n%hi = lathe.constant dense<2.0e4> : tensor<f32>\n"
                           "%y = lathe.min %s, %hi : T, tensor<f32>",
                       "%y" + product),
            "");
}

// Smaller sizes say only that both agree: a mean of fewer elements is another one. Dear functions
// run once.
TEST_F(ValueCheck, SmallerSizesRefuseNothing) {
  EXPECT_EQ(
      difference("tensor<64x4096xf32>", "%y = lathe.reduce_mean %a axes [1] keep_dims true : T",
                 "%s = lathe.reduce_sum %a axes [1] keep_dims true : T\n"
                 "%n = lathe.constant dense<0.000244140625> : tensor<f32>\n"
                 "%y = lathe.mul %s, %n : tensor<64x1xf32>, tensor<f32>",
                 "%a: T", "tensor<64x1xf32>"),
      "");
  EXPECT_EQ(largest_, 64 * 4096);
  EXPECT_EQ(runs_, 4) << "both sides of the smaller one, and of the whole";
}

// In full size as in small: what equal numbers alone tell apart is looked at with equal numbers.
TEST_F(ValueCheck, WhatToldSmallerSizesApartIsDrawnInFull) {
  auto chosen = [](const std::string& predicate) {
    return "%c = lathe.compare " + predicate +
           " %a, %b : T, T\n%z = lathe.neg %a : T\n"
           "%y = lathe.select %c, %a, %z : tensor<64x4096xi1>, T, T";
  };
  EXPECT_THAT(difference("tensor<64x4096xf32>", chosen("gt"), chosen("ge")),
              HasSubstr("and would be"));
  EXPECT_EQ(largest_, 64 * 4096);
  EXPECT_EQ(difference("tensor<64x4096xf32>", chosen("gt"), chosen("gt")), "");
}

// As far back as is asked: what the new op reads two ops before the old one.
TEST_F(ValueCheck, CutsAreWidenedStepByStep) {
  auto module = parseModule(*context_,
                            "func.func @f(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\n"
                            "%0 = lathe.neg %a : tensor<4xf32>\n"
                            "%1 = lathe.exp %0 : tensor<4xf32>\n"
                            "%y = lathe.abs %1 : tensor<4xf32>\n"
                            "%z = lathe.sqrt %a : tensor<4xf32>\n"
                            "return %y, %z : tensor<4xf32>, tensor<4xf32> }",
                            "test");
  Operation* end = module->lookupSymbol<func::FuncOp>("f").getBody().front().getTerminator();
  Value y = end->getOperand(0), z = end->getOperand(1);
  const std::pair<Value, Value> replaced[] = {{y, z}};
  for (int reach : {0, 1, 2, 3}) {
    CutOut cut = cutOut(replaced, y.getDefiningOp(), z.getDefiningOp(), reach);
    EXPECT_EQ(cut.was.getNumArguments(), reach < 2 ? 2u : 1u) << reach;
    EXPECT_EQ(int(llvm::range_size(cut.was.getBody().front())), 2 + std::min(reach, 2)) << reach;
    EXPECT_EQ(cut.is.getArgumentTypes(), cut.was.getArgumentTypes()) << reach;
  }
}

}  // namespace
}  // namespace lathe
