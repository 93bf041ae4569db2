// SPDX-License-Identifier: Apache-2.0
// Which number a constant is: at the ends of every type's range, behind layouts, behind casts that
// round and casts that do more.
#include "lathe/passes/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr double kInf = INFINITY;

class Numbers : public testing::Test {
 protected:
  Numbers() : context_(createContext()) {}

  // %y of the text, which may use %x, an argument.
  Value value(const std::string& text, const std::string& type) {
    modules_.push_back(parseModule(
        *context_,
        "func.func @f(%x: tensor<f32>) -> " + type + " {\n" + text + "\nreturn %y : " + type + " }",
        "numbers"));
    auto function = modules_.back()->lookupSymbol<func::FuncOp>("f");
    return function.getBody().front().getTerminator()->getOperand(0);
  }
  Value constant(const std::string& number, const std::string& element) {
    const std::string type = "tensor<" + element + ">";
    return value("%y = lathe.constant dense<" + number + "> : " + type, type);
  }
  Value castOf(const std::string& number, const std::string& from, const std::string& to) {
    return value("%c = lathe.constant dense<" + number + "> : tensor<" + from +
                     ">\n%y = lathe.cast %c to " + to + " : tensor<" + from + ">",
                 "tensor<" + to + ">");
  }
  Type element(const std::string& name) {
    return tensorType(constant(name == "i1"                       ? "false"
                               : name[0] == 'f' || name == "bf16" ? "0.0"
                                                                  : "0",
                               name))
        .getElementType();
  }

  std::unique_ptr<MLIRContext> context_;
  std::vector<OwningOpRef<ModuleOp>> modules_;
};

TEST_F(Numbers, AreReadUpToTheLastThatADoubleHolds) {
  struct Row {
    const char *number, *element;
    std::optional<double> value;
  };
  for (const Row& row : std::vector<Row>{{"1.5", "f32", 1.5},
                                         {"-0.0", "f32", -0.0},
                                         {"0xFF800000", "f32", -kInf},
                                         {"0.1", "f64", 0.1},
                                         {"true", "i1", 1},
                                         {"false", "i1", 0},
                                         {"-128", "i8", -128},
                                         {"255", "ui8", 255},
                                         {"128", "ui8", 128},
                                         {"-1", "i64", -1},
                                         {"9007199254740992", "i64", 0x1p53},
                                         {"9007199254740993", "i64", std::nullopt},
                                         {"-9007199254740992", "i64", -0x1p53},
                                         {"-9007199254740993", "i64", std::nullopt},
                                         {"-9223372036854775808", "i64", std::nullopt},
                                         {"9223372036854775807", "i64", std::nullopt}}) {
    const auto got = splatValue(constant(row.number, row.element));
    EXPECT_EQ(got, row.value) << row.number << " " << row.element;
    if (got) EXPECT_EQ(std::signbit(*got), std::signbit(*row.value)) << row.number;
  }
}

TEST_F(Numbers, StandBehindLayoutsButNotAmongOthers) {
  const std::string three = "%c = lathe.constant dense<3.0> : tensor<f32>\n",
                    wide = "%b = lathe.broadcast %c to <2, 3> : tensor<f32>\n";
  EXPECT_EQ(splatValue(value(three + "%y = lathe.broadcast %c to <2, 3> : tensor<f32>",
                             "tensor<2x3xf32>")),
            3);
  EXPECT_EQ(splatValue(value(three + wide + "%y = lathe.reshape %b to <6> : tensor<2x3xf32>",
                             "tensor<6xf32>")),
            3);
  EXPECT_EQ(
      splatValue(value(three + wide + "%y = lathe.neg %b : tensor<2x3xf32>", "tensor<2x3xf32>")),
      std::nullopt);
  EXPECT_EQ(
      splatValue(value("%y = lathe.constant dense<[1.0, 2.0]> : tensor<2xf32>", "tensor<2xf32>")),
      std::nullopt);
  EXPECT_EQ(
      splatValue(value("%y = lathe.constant dense<[2.0, 2.0]> : tensor<2xf32>", "tensor<2xf32>")),
      2);
  EXPECT_EQ(splatValue(value("%y = lathe.neg %x : tensor<f32>", "tensor<f32>")), std::nullopt);
  EXPECT_EQ(splatInteger(constant("-1", "i8")), llvm::APInt(8, 255));
  EXPECT_EQ(splatInteger(constant("1.0", "f32")), std::nullopt);
}

TEST_F(Numbers, BehindCastsAreWhatTheAuthorWrote) {
  struct Row {
    const char *number, *from, *to;
    std::optional<double> value;
  };
  for (const Row& row : std::vector<Row>{{"0.1", "f64", "f32", 0.1},
                                         {"0.1", "f64", "bf16", 0.1},
                                         {"3", "i32", "f32", 3},
                                         {"2.7", "f32", "i32", 2},
                                         {"-2.7", "f32", "i32", -2},
                                         {"127.9", "f64", "i8", 127},
                                         {"128.0", "f32", "i8", std::nullopt},
                                         {"-128.0", "f32", "i8", -128},
                                         {"-128.9", "f64", "i8", -128},
                                         {"-129.0", "f32", "i8", std::nullopt},
                                         {"255.0", "f32", "ui8", 255},
                                         {"256.0", "f32", "ui8", std::nullopt},
                                         {"-1.0", "f32", "ui8", std::nullopt},
                                         {"200", "ui8", "i8", std::nullopt},
                                         {"0.5", "f32", "i1", 1},
                                         {"-3.0", "f32", "i1", 1},
                                         {"0.0", "f32", "i1", 0},
                                         {"0x7F800000", "f32", "i32", std::nullopt},
                                         {"9007199254740992.0", "f64", "i64", 0x1p53},
                                         {"9007199254740994.0", "f64", "i64", std::nullopt}}) {
    const Value v = castOf(row.number, row.from, row.to);
    EXPECT_EQ(splatValue(v), row.value) << row.number << " " << row.from << " to " << row.to;
    EXPECT_EQ(splatValue(v, false), std::nullopt) << "without a look behind the cast";
  }
}

TEST_F(Numbers, AreThoseOfAPatternWithinTheirOwnRounding) {
  struct Row {
    const char *number, *element;
    double wanted;
    bool is;
  };
  for (const Row& row : std::vector<Row>{{"0.1", "f32", 0.1, true},
                                         {"0.1", "bf16", 0.1, true},
                                         {"0.1", "bf16", 0.101, false},
                                         {"1.0000005", "f64", 1, true},
                                         {"0.9999995", "f64", 1, true},
                                         {"1.00001", "f64", 1, false},
                                         {"0.99999", "f64", 1, false},
                                         {"-1.0", "f32", 1, false},
                                         {"0.0", "f32", 1e-9, false},
                                         {"3", "i32", 3, true},
                                         {"3", "i32", 3.000001, false},
                                         {"0xFF800000", "f32", -kInf, true},
                                         {"0xFF800000", "f32", -1e9, false},
                                         {"-3.40282347E+38", "f32", -kInf, false},
                                         {"0x7F800000", "f32", -kInf, false}})
    EXPECT_EQ(isSplatOf(constant(row.number, row.element), row.wanted), row.is)
        << row.number << " " << row.element << " as " << row.wanted;
}

TEST_F(Numbers, BecomeElementsOfWhatHoldsThem) {
  struct Row {
    const char* element;
    double number;
    bool held;
  };
  for (const Row& row : std::vector<Row>{{"f32", 0.1, true},
                                         {"i8", 127, true},
                                         {"i8", 128, false},
                                         {"i8", -128, true},
                                         {"i8", -129, false},
                                         {"ui8", 255, true},
                                         {"ui8", 256, false},
                                         {"ui8", -1, false},
                                         {"i32", 1.5, false},
                                         {"i1", 1, true},
                                         {"i1", 2, false},
                                         {"i64", -0x1p53, true}}) {
    const TypedAttr got = asElement(element(row.element), row.number);
    EXPECT_EQ(bool(got), row.held) << row.number << " " << row.element;
    if (!got) continue;
    auto integer = dyn_cast<IntegerAttr>(got);
    const bool isSigned = integer && row.element[0] == 'i' && std::string(row.element) != "i1";
    const double back = !integer   ? cast<FloatAttr>(got).getValueAsDouble()
                        : isSigned ? double(integer.getValue().getSExtValue())
                                   : double(integer.getValue().getZExtValue());
    EXPECT_EQ(back, roundedTo(element(row.element), row.number)) << row.element;
  }
}

TEST_F(Numbers, RoundHalvesToTheEvenOne) {
  EXPECT_EQ(roundedTo(element("f64"), 0.1), 0.1);
  EXPECT_EQ(roundedTo(element("f32"), 0.1), double(0.1f));
  EXPECT_EQ(roundedTo(element("i32"), 0.1), 0.1) << "of floats alone";
  EXPECT_EQ(roundedTo(element("bf16"), 1 + 0x1p-8), 1);
  EXPECT_EQ(roundedTo(element("bf16"), 1 + 3 * 0x1p-8), 1 + 0x1p-6);
  EXPECT_EQ(roundedTo(element("f16"), 65519), 65504);
  EXPECT_EQ(roundedTo(element("f16"), 65520), kInf);
}

}  // namespace
}  // namespace lathe
