// SPDX-License-Identifier: Apache-2.0
// Fusions from PDL text: what they find, and every way in which a file can be wrong.
#include "lathe/frontend/compile.h"
#include "lathe/ir/context.h"
#include "lathe/ir/dialect.h"
#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "lathe/passes/match.h"
#include "lathe/passes/passes.h"
#include "mlir/Pass/PassManager.h"
#include "passes/pdl/pdl_natives.h"
#include "passes/pdl/pdl_patterns.h"
#include "passes/pdl/pdll.h"
#include "passes/rewrite/rewrite_log.h"
#include "tests/unit/test_files.h"

using namespace mlir;

namespace lathe {
namespace {

using test::expectError;

// A pattern with `matched` before its rewrite; %root is an exp of %x unless the text says
// otherwise.
std::string pattern(const std::string& matched, const std::string& replacement) {
  return "pdl.pattern @p : benefit(1) {\n" + matched + "\nrewrite %root {\n" + replacement +
         "\n}\n}\n";
}
const std::string kExp =
    "%x = operand\n%t = type\n"
    "%root = operation \"lathe.exp\"(%x : !pdl.value) -> (%t : !pdl.type)\n";
const std::string kAbs = "%new = operation \"lathe.abs\"(%x : !pdl.value)\nreplace %root with %new";

class PatternFilesTest : public testing::Test {
 protected:
  PatternFilesTest() : context_(createContext()) {}

  void refuses(ErrorCode code, const std::string& words, const std::string& text) {
    expectError(code, words, [&] { parsePatterns(context_.get(), text, "p.mlir"); });
  }
  // Applies the patterns to `body`, in which T is f32[seq, 4]; gives the text of the function.
  std::string applied(const std::string& patterns, const std::string& body) {
    PatternLibrary library = parsePatterns(context_.get(), patterns, "p.mlir");
    const std::string type = "tensor<?x4xf32, #lathe.dims<seq, 4>>";
    std::string text = "func.func @f(%a: " + type + ", %b: " + type + ") -> " + type + " {\n";
    for (char c : body) text += c == 'T' ? type : std::string(1, c);
    OwningOpRef<ModuleOp> module = parseModule(*context_, text + "\n}", "test");
    misses_.clear();
    module->walk([&](Operation* op) {
      for (auto& p : library) {
        Match match;
        Miss miss;
        if (op->getName().getStringRef() == p->rootOp() && !p->match(op, match, miss))
          misses_ += p->explain(miss) + "\n";
      }
    });
    PassManager manager(context_.get());
    manager.addPass(createFusePass([&](MLIRContext*) { return library; }));
    EXPECT_TRUE(succeeded(manager.run(*module)));
    std::string result;
    llvm::raw_string_ostream(result) << *module;
    return result;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  std::unique_ptr<MLIRContext> context_;
  std::string misses_;
};

TEST_F(PatternFilesTest, AHitIsReplacedAndAMissExplained) {
  const std::string text = pattern(kExp, kAbs);
  EXPECT_TRUE(has(applied(text, "%y = lathe.exp %a : T\n return %y : T"), "lathe.abs %arg0"));
  const std::string two = pattern(
      "%x = operand\n%s = operation \"lathe.sigmoid\"(%x : !pdl.value)\n%r = result 0 of %s\n"
      "%root = operation \"lathe.exp\"(%r : !pdl.value)\n",
      kAbs);
  applied(two, "%t = lathe.tanh %a : T\n %y = lathe.exp %t : T\n return %y : T");
  EXPECT_TRUE(has(misses_, "p: 1 of 2 ops, then wanted lathe.sigmoid, found lathe.tanh"))
      << misses_;
  EXPECT_TRUE(has(misses_, "(p.mlir:3)")) << misses_;
}

// Of patterns that match, the one of the larger benefit comes first, wherever it stands.
TEST_F(PatternFilesTest, TheLargerBenefitComesFirst) {
  auto of = [](const char* name, int benefit, const char* op) {
    return "pdl.pattern @" + std::string(name) + " : benefit(" + std::to_string(benefit) + ") {\n" +
           kExp + "rewrite %root {\n%new = operation \"lathe." + op +
           "\"(%x : !pdl.value)\nreplace %root with %new\n}\n}\n";
  };
  const std::string body = "%y = lathe.exp %a : T\n return %y : T";
  EXPECT_TRUE(has(applied(of("p", 1, "abs") + of("q", 5, "sigmoid"), body), "lathe.sigmoid"));
  EXPECT_TRUE(has(applied(of("p", 5, "abs") + of("q", 1, "sigmoid"), body), "lathe.abs"));
}

TEST_F(PatternFilesTest, ResultsOfAnOpWithOneResultIsThatResult) {
  const std::string text = pattern(
      "%x = operand\n%types = types\n"
      "%s = operation \"lathe.sigmoid\"(%x : !pdl.value) -> (%types : !pdl.range<type>)\n"
      "%r = results of %s\n"
      "%root = operation \"lathe.exp\"(%r : !pdl.range<value>)\n",
      kAbs);
  std::string ir =
      applied(text, "%s = lathe.sigmoid %a : T\n %y = lathe.exp %s : T\n return %y : T");
  EXPECT_TRUE(has(ir, "lathe.abs %arg0")) << ir;
}

TEST_F(PatternFilesTest, InteriorValuesMayHaveOtherUsersUnlessAskedFor) {
  auto text = [](const std::string& constraint) {
    return pattern(
        "%x = operand\n%s = operation \"lathe.sigmoid\"(%x : !pdl.value)\n"
        "%r = result 0 of %s\n" +
            constraint + "%root = operation \"lathe.exp\"(%r : !pdl.value)\n",
        kAbs);
  };
  const std::string body =
      "%s = lathe.sigmoid %a : T\n %e = lathe.exp %s : T\n %y = lathe.add %s, %e : T, T\n"
      "return %y : T";
  EXPECT_TRUE(has(applied(text(""), body), "lathe.abs"));
  EXPECT_FALSE(has(applied(text("apply_native_constraint \"one_use\"(%r : !pdl.value)\n"), body),
                   "lathe.abs"));
  EXPECT_TRUE(has(misses_, "wanted one_use: v has one use")) << misses_;
}

TEST_F(PatternFilesTest, ConstraintsMayBeNegated) {
  auto text = [](const char* negated) {
    return pattern(kExp +
                       "%n = attribute = 2 : i64\napply_native_constraint \"rank\"(%x, %n : "
                       "!pdl.value, !pdl.attribute)" +
                       negated,
                   kAbs);
  };
  const std::string body = "%y = lathe.exp %a : T\n return %y : T";
  EXPECT_TRUE(has(applied(text(""), body), "lathe.abs"));
  EXPECT_FALSE(has(applied(text(" {isNegated = true}"), body), "lathe.abs"));
  EXPECT_TRUE(has(misses_, "wanted not rank:")) << misses_;
}

// What each constraint accepts and what it does not, on a: f32[seq, 4] and the constant 0.5.
TEST_F(PatternFilesTest, EveryConstraintAcceptsAndRefuses) {
  struct Case {
    const char *name, *call, *accepts, *refuses;
  };
  const std::vector<Case> cases{
      {"splat", "\"splat\"(%c, %n : !pdl.value, !pdl.attribute)", "0.5 : f64", "0.4 : f64"},
      {"splat_between",
       "\"splat_between\"(%c, %n, %one : !pdl.value, !pdl.attribute, !pdl.attribute)", "0.0 : f64",
       "0.75 : f64"},
      {"splat_between",
       "\"splat_between\"(%c, %n, %one : !pdl.value, !pdl.attribute, !pdl.attribute)", "0.5 : f64",
       "0.5000001 : f64"},
      {"splat_between",
       "\"splat_between\"(%c, %zero, %n : !pdl.value, !pdl.attribute, !pdl.attribute)", "0.5 : f64",
       "0.4999999 : f64"},
      {"same_dim",
       "\"same_dim\"(%x, %n, %product, %n : !pdl.value, !pdl.attribute, !pdl.value, "
       "!pdl.attribute)",
       "0 : i64", "2 : i64"},
      {"rank", "\"rank\"(%x, %n : !pdl.value, !pdl.attribute)", "2 : i64", "3 : i64"},
      {"dtype", "\"dtype\"(%x, %n : !pdl.value, !pdl.attribute)", "f32", "bf16"},
      {"dim", "\"dim\"(%x, %last, %n : !pdl.value, !pdl.attribute, !pdl.attribute)", "4 : i64",
       "8 : i64"},
      {"same_dim",
       "\"same_dim\"(%x, %n, %product, %last : !pdl.value, !pdl.attribute, !pdl.value, "
       "!pdl.attribute)",
       "1 : i64", "0 : i64"},
      {"last_axis", "\"last_axis\"(%x, %n : !pdl.value, !pdl.attribute)", "array<i64: 1>",
       "array<i64: 0>"},
      {"last_axis", "\"last_axis\"(%x, %n : !pdl.value, !pdl.attribute)", "array<i64: 1>",
       "array<i64: 0, 1>"},
  };
  for (const Case& c : cases)
    for (bool accepts : {true, false}) {
      const std::string text = pattern(
          "%x = operand\n%c = operand\n%one = attribute = 1.0 : f64\n%zero = attribute = 0.0 : "
          "f64\n%last = attribute = -1 : i64\n"
          "%n = attribute = " +
              std::string(accepts ? c.accepts : c.refuses) +
              "\n%m = operation \"lathe.mul\"(%x, %c : !pdl.value, !pdl.value)\n"
              "%product = result 0 of %m\n%root = operation \"lathe.exp\"(%product : !pdl.value)\n"
              "%half = attribute = 0.5 : f64\n"
              "apply_native_constraint \"splat\"(%c, %half : !pdl.value, !pdl.attribute)\n"
              "apply_native_constraint " +
              c.call,
          kAbs);
      std::string ir = applied(text,
                               "%h = lathe.constant dense<0.5> : tensor<f32>\n"
                               "%m = lathe.mul %a, %h : T, tensor<f32>\n"
                               "%y = lathe.exp %m : T\n return %y : T");
      EXPECT_EQ(has(ir, "lathe.abs"), accepts) << c.name << "\n" << misses_;
    }
}

TEST_F(PatternFilesTest, WeightsAndTypesAreTold) {
  auto text = [](const std::string& constraint) {
    return pattern(
        "%x = operand\n%w = operand\n"
        "%root = operation \"lathe.mul\"(%x, %w : !pdl.value, !pdl.value)\n"
        "apply_native_constraint " +
            constraint,
        "%new = operation \"lathe.add\"(%x, %w : !pdl.value, !pdl.value)\n"
        "replace %root with %new");
  };
  const std::string weight = "\"weight\"(%w : !pdl.value)";
  EXPECT_TRUE(has(applied(text(weight),
                          "%w = lathe.weight \"w\" : tensor<4xf32>\n"
                          "%y = lathe.mul %a, %w : T, tensor<4xf32>\n return %y : T"),
                  "lathe.add"));
  EXPECT_FALSE(
      has(applied(text(weight), "%y = lathe.mul %a, %b : T, T\n return %y : T"), "lathe.add"));
  const std::string same = "\"same_type\"(%x, %w : !pdl.value, !pdl.value)";
  EXPECT_TRUE(
      has(applied(text(same), "%y = lathe.mul %a, %b : T, T\n return %y : T"), "lathe.add"));
}

TEST_F(PatternFilesTest, ATypeUsedTwiceIsOneType) {
  const std::string text = pattern(
      "%t = type\n%x = operand : %t\n%y = operand : %t\n"
      "%root = operation \"lathe.mul\"(%x, %y : !pdl.value, !pdl.value)\n",
      "%new = operation \"lathe.add\"(%x, %y : !pdl.value, !pdl.value)\nreplace %root with %new");
  EXPECT_TRUE(has(applied(text, "%y = lathe.mul %a, %b : T, T\n return %y : T"), "lathe.add"));
  EXPECT_FALSE(has(applied(text,
                           "%h = lathe.constant dense<0.5> : tensor<f32>\n"
                           "%y = lathe.mul %a, %h : T, tensor<f32>\n return %y : T"),
                   "lathe.add"));
  EXPECT_TRUE(has(misses_, "wanted two values of one type")) << misses_;
}

TEST_F(PatternFilesTest, AttributesAreMatchedAndTakenAlong) {
  auto text = [](const std::string& axes) {
    return pattern(
        "%x = operand\n%k = attribute = true\n%axes = attribute" + axes +
            "\n%root = operation \"lathe.reduce_sum\"(%x : !pdl.value) {\"axes\" = %axes, "
            "\"keep_dims\" = %k}\n",
        "%new = operation \"lathe.reduce_max\"(%x : !pdl.value) {\"axes\" = %axes, "
        "\"keep_dims\" = %k}\nreplace %root with %new");
  };
  const std::string body =
      "%s = lathe.reduce_sum %a axes [1] keep_dims true : T\n"
      "%y = lathe.mul %a, %s : T, tensor<?x1xf32, #lathe.dims<seq, 1>>\n return %y : T";
  auto sum = [&](const std::string& axes) {
    try {
      return applied(text(axes), body);
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_TRUE(has(sum(""), "lathe.reduce_max")) << sum("");
  EXPECT_TRUE(has(sum(" = array<i64: -1>"), "lathe.reduce_max"));
  EXPECT_FALSE(has(sum(" = array<i64: 0>"), "lathe.reduce_max"));
  EXPECT_TRUE(has(misses_, "differs in 'axes'")) << misses_;
}

TEST_F(PatternFilesTest, NativeRewritesGiveAttributes) {
  const std::string text = pattern(
      "%x = operand\n%c = operand\n%two = attribute = 2.0 : f64\n"
      "%root = operation \"lathe.mul\"(%x, %c : !pdl.value, !pdl.value)\n"
      "%zero = attribute = 0.0 : f64\n%one = attribute = 1.0 : f64\n"
      "apply_native_constraint \"splat_between\"(%c, %zero, %one : !pdl.value, !pdl.attribute, "
      "!pdl.attribute)",
      "%v = apply_native_rewrite \"splat_of\"(%c : !pdl.value) : !pdl.attribute\n"
      "%p = apply_native_rewrite \"product\"(%v, %two : !pdl.attribute, !pdl.attribute) : "
      "!pdl.attribute\n"
      "%q = apply_native_rewrite \"quotient\"(%p, %two : !pdl.attribute, !pdl.attribute) : "
      "!pdl.attribute\n"
      "%new = operation \"lathe.rms_norm\"(%x : !pdl.value) {\"epsilon\" = %q}\n"
      "replace %root with %new");
  std::string ir = applied(text,
                           "%h = lathe.constant dense<0.5> : tensor<f32>\n"
                           "%y = lathe.mul %a, %h : T, tensor<f32>\n return %y : T");
  EXPECT_TRUE(has(ir, "lathe.rms_norm")) << ir << misses_;
  EXPECT_TRUE(has(ir, "epsilon 5.000000e-01")) << ir;
}

TEST_F(PatternFilesTest, AbsentOptionalOperandsAreTheLastOrSpelt) {
  auto text = [](const std::string& matched) {
    return pattern(matched, "replace %root with (%x : !pdl.value)");
  };
  const std::string body =
      "%w = lathe.weight \"w\" : tensor<4x4xf32>\n"
      "%y = lathe.linear %a, %w residual %b : T, tensor<4x4xf32> residual T\n return %y : T";
  const std::string three =
      "%x = operand\n%w = operand\n%r = operand\n%sizes = attribute = array<i32: SIZES>\n"
      "%root = operation \"lathe.linear\"(%x, %w, %r : !pdl.value, !pdl.value, !pdl.value)"
      " {\"operandSegmentSizes\" = %sizes}\n";
  auto sized = [&](const std::string& sizes) {
    std::string filled = three;
    return text(filled.replace(filled.find("SIZES"), 5, sizes));
  };
  EXPECT_FALSE(has(applied(sized("1, 1, 0, 1"), body), "lathe.linear"));
  EXPECT_TRUE(has(applied(sized("1, 1, 1, 0"), body), "lathe.linear"));
  EXPECT_TRUE(has(misses_, "lathe.linear has other operands")) << misses_;
}

TEST_F(PatternFilesTest, AReplacementThatDoesNotHoldDeclines) {
  const std::string text =
      pattern(kExp,
              "%new = operation \"lathe.matmul\"(%x, %x : !pdl.value, !pdl.value)\n"
              "replace %root with %new");
  std::string ir = applied(text, "%y = lathe.exp %a : T\n return %y : T");
  EXPECT_TRUE(has(ir, "lathe.exp")) << ir;
  EXPECT_FALSE(has(ir, "lathe.matmul")) << ir;
}

TEST_F(PatternFilesTest, RewritesAreNumberedAndStop) {
  PatternLibrary library = parsePatterns(context_.get(), pattern(kExp, kAbs), "p.mlir");
  auto run = [&](uint64_t stopAfter) {
    OwningOpRef<ModuleOp> module = parseModule(
        *context_,
        "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n%x = lathe.exp %a : tensor<4xf32>\n"
        "%y = lathe.exp %x : tensor<4xf32>\n return %y : tensor<4xf32> }",
        "test");
    RewriteLog log(context_.get(), context_->getLoadedDialect<LatheDialect>(),
                   {.stopAfter = stopAfter});
    PassManager manager(context_.get());
    manager.addPass(createFusePass([&](MLIRContext*) { return library; }));
    EXPECT_TRUE(succeeded(manager.run(*module)));
    std::string names;
    for (auto& e : log.entries()) names += std::to_string(e.number) + " " + e.what + "; ";
    return names;
  };
  EXPECT_EQ(run(~uint64_t(0)), "1 p; 2 p; ");
  EXPECT_EQ(run(1), "1 p; ");
}

TEST_F(PatternFilesTest, UnknownNamesAreErrors) {
  refuses(ErrorCode::InvalidFile,
          "p.mlir:5: pattern 'p': unknown native constraint 'nope'; there are splat, ",
          pattern(kExp + "apply_native_constraint \"nope\"(%x : !pdl.value)", kAbs));
  refuses(ErrorCode::InvalidFile, "unknown native rewrite 'nope'; there are splat_of, ",
          pattern(kExp,
                  "%a = apply_native_rewrite \"nope\"(%x : !pdl.value) : !pdl.attribute\n" + kAbs));
  refuses(ErrorCode::InvalidFile, "unknown native rewrite 'nope' for a whole match",
          "pdl.pattern @p : benefit(1) {\n" + kExp + "rewrite %root with \"nope\"\n}");
  refuses(ErrorCode::InvalidFile, "p.mlir:3: pattern 'p': unknown op 'lathe.expo'",
          pattern("%x = operand\n%root = operation \"lathe.expo\"(%x : !pdl.value)", kAbs));
  refuses(ErrorCode::InvalidFile, "unknown op 'elsewhere.exp'",
          pattern("%x = operand\n%root = operation \"elsewhere.exp\"(%x : !pdl.value)", kAbs));
  refuses(ErrorCode::InvalidFile, "unknown op 'lathe.absolute'",
          pattern(kExp,
                  "%new = operation \"lathe.absolute\"(%x : !pdl.value)\n"
                  "replace %root with %new"));
}

TEST_F(PatternFilesTest, NativesTakeTheirArguments) {
  refuses(ErrorCode::InvalidFile, "native constraint 'rank' takes (v: Value, count: Attr)",
          pattern(kExp + "apply_native_constraint \"rank\"(%x : !pdl.value)", kAbs));
  refuses(ErrorCode::InvalidFile, "native rewrite 'product' takes (x: Attr, y: Attr)",
          pattern(kExp,
                  "%a = apply_native_rewrite \"product\"(%x, %x : !pdl.value, !pdl.value) : "
                  "!pdl.attribute\n" +
                      kAbs));
  // And of a kind that some value can meet.
  auto constraint = [](const std::string& name, const std::string& attribute) {
    return pattern(
        kExp + "%a = attribute = " + attribute + "\n%i = attribute = 0\n" +
            "apply_native_constraint \"" + name + "\"(" +
            (name == "same_dim" ? "%x, %i, %x, %a : !pdl.value, !pdl.attribute, " : "%x, %a : ") +
            "!pdl.value, !pdl.attribute)",
        kAbs);
  };
  const struct {
    const char *constraint, *attribute, *message;
  } never[] = {
      {"rank", "\"two\"", "'count' of 'rank' is \"two\", expected an integer"},
      {"rank", "true", "'count' of 'rank' is true, expected an integer"},
      {"same_dim", "2.5", "'other' of 'same_dim' is 2.500000e+00 : f64, expected an integer"},
      {"dtype", "tensor<3xf32>", "'type' of 'dtype' is tensor<3xf32>, expected a dtype"},
      {"dtype", "f80", "'type' of 'dtype' is f80, expected a dtype"},
      {"splat", "\"1\"", "'number' of 'splat' is \"1\", expected a number"},
      {"splat", "0x7FF8000000000000 : f64", "'number' of 'splat' is 0x7FF8"},
      {"last_axis", "1.0", "'axes' of 'last_axis' is 1.000000e+00 : f64, expected an axis or"},
  };
  for (const auto& n : never)
    refuses(ErrorCode::InvalidFile, n.message, constraint(n.constraint, n.attribute));
  const std::pair<const char*, const char*> some[] = {{"rank", "1"},
                                                      {"dtype", "f32"},
                                                      {"splat", "1"},
                                                      {"splat", "1.5"},
                                                      {"splat", "0xFFF0000000000000 : f64"},
                                                      {"last_axis", "-1"},
                                                      {"last_axis", "array<i64: 0>"}};
  for (const auto& [name, attribute] : some)
    EXPECT_NO_THROW(parsePatterns(context_.get(), constraint(name, attribute), "p.mlir"))
        << name << " " << attribute;
  for (const char* axis : {"0.5", "0"})
    refuses(ErrorCode::InvalidFile,
            axis[1] ? "'axis' of 'dim' is 5.000000e-01" : "'size' of 'dim' is 2.500000e+00",
            pattern(kExp + "%a = attribute = " + axis + "\n%n = attribute = 2.5\n" +
                        "apply_native_constraint \"dim\"(%x, %a, %n : !pdl.value, !pdl.attribute, "
                        "!pdl.attribute)",
                    kAbs));
  refuses(ErrorCode::InvalidFile, "'x' of 'product' is \"2\", expected a number",
          pattern(kExp,
                  "%two = attribute = \"2\"\n%a = apply_native_rewrite \"product\"(%two, %two : "
                  "!pdl.attribute, !pdl.attribute) : !pdl.attribute\n" +
                      kAbs));
}

TEST_F(PatternFilesTest, OpsAreCheckedBeforeUse) {
  auto built = [](const std::string& op) {
    return pattern(
        kExp, "%n = attribute = 1.0 : f32\n%new = operation " + op + "\nreplace %root with %new");
  };
  refuses(ErrorCode::InvalidFile, "'lathe.rms_norm' needs the attribute 'epsilon'",
          built("\"lathe.rms_norm\"(%x : !pdl.value)"));
  refuses(ErrorCode::InvalidFile, "'lathe.rms_norm' cannot have 'epsilon' = 1.000000e+00 : f32",
          built("\"lathe.rms_norm\"(%x : !pdl.value) {\"epsilon\" = %n}"));
  refuses(ErrorCode::InvalidFile, "'lathe.abs' has no attribute 'axis'; it has none",
          built("\"lathe.abs\"(%x : !pdl.value) {\"axis\" = %n}"));
  refuses(ErrorCode::InvalidFile, "operand", built("\"lathe.add\"(%x : !pdl.value)"));
  refuses(ErrorCode::InvalidFile, "operand",
          pattern("%x = operand\n%root = operation \"lathe.exp\"(%x, %x : !pdl.value, !pdl.value)",
                  kAbs));
  refuses(ErrorCode::InvalidFile, "'lathe.exp' has no attribute 'speed'",
          pattern("%x = operand\n%s = attribute\n"
                  "%root = operation \"lathe.exp\"(%x : !pdl.value) {\"speed\" = %s}",
                  kAbs));
}

TEST_F(PatternFilesTest, WhatHasNoMeaningHereIsNamed) {
  refuses(ErrorCode::Unsupported, "has not exactly one result",
          pattern("%x = operand\n%root = operation \"lathe.top_k\"(%x : !pdl.value)", kAbs));
  refuses(ErrorCode::Unsupported, "'pdl.operands' among what is matched",
          pattern("%xs = operands\n%root = operation \"lathe.exp\"(%xs : !pdl.range<value>)",
                  "erase %root"));
  refuses(ErrorCode::Unsupported, "an op of any name",
          pattern("%x = operand\n%root = operation (%x : !pdl.value)", kAbs));
  refuses(ErrorCode::InvalidFile, "the root is erased", pattern(kExp, "erase %root"));
  refuses(ErrorCode::Unsupported, "only the root can be replaced",
          pattern("%x = operand\n%s = operation \"lathe.sigmoid\"(%x : !pdl.value)\n"
                  "%r = result 0 of %s\n%root = operation \"lathe.exp\"(%r : !pdl.value)\n",
                  "replace %s with (%x : !pdl.value)"));
  refuses(ErrorCode::InvalidFile, "result 1 of an op that has one",
          pattern("%x = operand\n%s = operation \"lathe.sigmoid\"(%x : !pdl.value)\n"
                  "%r = result 1 of %s\n%root = operation \"lathe.exp\"(%r : !pdl.value)\n",
                  kAbs));
}

TEST_F(PatternFilesTest, ReplacementsGiveTheRootOneValue) {
  const std::string byX = "replace %root with (%x : !pdl.value)";
  refuses(ErrorCode::InvalidFile, "the root is replaced twice", pattern(kExp, byX + "\n" + byX));
  refuses(ErrorCode::InvalidFile, "the root has one result, 2 values replace it",
          pattern(kExp, "replace %root with (%x, %x : !pdl.value, !pdl.value)"));
  refuses(ErrorCode::InvalidFile, "the root is not replaced; write `replace %op with ...`",
          pattern(kExp, "%new = operation \"lathe.abs\"(%x : !pdl.value)"));
  refuses(ErrorCode::InvalidFile, "'lathe.abs' has one result",
          pattern("%x = operand\n%t = type\n"
                  "%root = operation \"lathe.abs\"(%x : !pdl.value) -> (%t, %t : !pdl.type, "
                  "!pdl.type)",
                  byX));
}

// What a value is, given to the ops of a replacement.
TEST_F(PatternFilesTest, NativeRewritesTellOfValues) {
  auto ramp = [&](const char* axis) {
    return applied(
        pattern("%x = operand\n%n = attribute = " + std::string(axis) +
                    "\n%root = operation \"lathe.exp\"(%x : !pdl.value)\n",
                "%s = apply_native_rewrite \"shape_of\"(%x : !pdl.value) : !pdl.attribute\n"
                "%d = apply_native_rewrite \"dtype_of\"(%x : !pdl.value) : !pdl.attribute\n"
                "%i = apply_native_rewrite \"axis_of\"(%x, %n : !pdl.value, !pdl.attribute) : "
                "!pdl.attribute\n"
                "%new = operation \"lathe.iota\" {\"shape\" = %s, \"axis\" = %i, \"dtype\" = %d}\n"
                "replace %root with %new"),
        "%y = lathe.exp %a : T\n return %y : T");
  };
  EXPECT_TRUE(has(ramp("-1 : i64"), "lathe.iota <seq, 4> axis 1 dtype f32")) << ramp("-1 : i64");
  EXPECT_TRUE(has(ramp("0 : i64"), "lathe.iota <seq, 4> axis 0 dtype f32"));
  EXPECT_TRUE(has(ramp("-2 : i64"), "lathe.iota <seq, 4> axis 0 dtype f32"));
  for (const char* outside : {"2 : i64", "-3 : i64"})
    EXPECT_TRUE(has(ramp(outside), "lathe.exp")) << outside;
  auto largest = [&](const char* axis) {
    return applied(
        pattern("%x = operand\n%n = attribute = " + std::string(axis) +
                    "\n%k = attribute = true\n%q = attribute\n%root = operation "
                    "\"lathe.reduce_sum\"(%x : !pdl.value) {\"axes\" = %q, \"keep_dims\" = %k}\n",
                "%i = apply_native_rewrite \"axes_of\"(%x, %n : !pdl.value, !pdl.attribute) : "
                "!pdl.attribute\n"
                "%new = operation \"lathe.reduce_max\"(%x : !pdl.value) {\"axes\" = %i, "
                "\"keep_dims\" = %k}\nreplace %root with %new"),
        "%s = lathe.reduce_sum %a axes [1] keep_dims true : T\n"
        "%y = lathe.mul %a, %s : T, tensor<?x1xf32, #lathe.dims<seq, 1>>\n return %y : T");
  };
  EXPECT_TRUE(has(largest("-1 : i64"), "lathe.reduce_max %arg0 axes [1] keep_dims true"));
  EXPECT_TRUE(has(largest("2 : i64"), "lathe.reduce_sum"));
}

TEST_F(PatternFilesTest, AQuotientByZeroDeclines) {
  auto divided = [&](const char* by) {
    return applied(
        pattern("%x = operand\n%four = attribute = 4.0 : f64\n%by = attribute = " +
                    std::string(by) + " : f64\n%root = operation \"lathe.exp\"(%x : !pdl.value)\n",
                "%q = apply_native_rewrite \"quotient\"(%four, %by : !pdl.attribute, "
                "!pdl.attribute) : !pdl.attribute\n"
                "%new = operation \"lathe.rms_norm\"(%x : !pdl.value) {\"epsilon\" = %q}\n"
                "replace %root with %new"),
        "%y = lathe.exp %a : T\n return %y : T");
  };
  EXPECT_TRUE(has(divided("8.0"), "epsilon 5.000000e-01")) << divided("8.0");
  EXPECT_TRUE(has(divided("1.0"), "epsilon 4.000000e+00"));
  EXPECT_TRUE(has(divided("0.0"), "lathe.exp"));
}

TEST_F(PatternFilesTest, AnAttributeOfTwoOpsHasOneValue) {
  const std::string text = pattern(
      "%x = operand\n%q = attribute\n%k = attribute = true\n"
      "%m = operation \"lathe.reduce_max\"(%x : !pdl.value) {\"axes\" = %q, \"keep_dims\" = %k}\n"
      "%r = result 0 of %m\n"
      "%root = operation \"lathe.reduce_sum\"(%r : !pdl.value) {\"axes\" = %q, \"keep_dims\" = "
      "%k}\n",
      "%n = result 0 of %m\nreplace %root with (%n : !pdl.value)");
  auto sums = [&](const char* axis) {
    return applied(text,
                   "%m = lathe.reduce_max %a axes [1] keep_dims true : T\n"
                   "%s = lathe.reduce_sum %m axes [" +
                       std::string(axis) +
                       "] keep_dims true : tensor<?x1xf32, #lathe.dims<seq, 1>>\n"
                       "%y = lathe.mul %a, %s : T, tensor<" +
                       (*axis == '1' ? "?x1xf32, #lathe.dims<seq, 1>>" : "1x1xf32>") +
                       "\n return %y : T");
  };
  EXPECT_FALSE(has(sums("1"), "lathe.reduce_sum"));
  EXPECT_TRUE(has(sums("0"), "lathe.reduce_sum"));
  EXPECT_TRUE(has(misses_, "wanted one value of 'axes' and 'axes'")) << misses_;
}

TEST_F(PatternFilesTest, TypesMayBeGiven) {
  auto text = [](const std::string& type) {
    return pattern("%t = type : " + type +
                       "\n%x = operand : %t\n%root = operation \"lathe.exp\"(%x : !pdl.value)\n",
                   kAbs);
  };
  const std::string body = "%y = lathe.exp %a : T\n return %y : T";
  EXPECT_TRUE(has(applied(text("tensor<?x4xf32, #lathe.dims<seq, 4>>"), body), "lathe.abs"));
  EXPECT_FALSE(has(applied(text("tensor<2xf32>"), body), "lathe.abs"));
  EXPECT_TRUE(has(misses_, "wanted the type tensor<2xf32>")) << misses_;
  auto typed = [](const std::string& types) {
    return pattern("%types = types : [" + types +
                       "]\n%x = operand\n%root = operation \"lathe.exp\"(%x : !pdl.value) -> "
                       "(%types : !pdl.range<type>)\n",
                   kAbs);
  };
  EXPECT_TRUE(has(applied(typed("tensor<?x4xf32, #lathe.dims<seq, 4>>"), body), "lathe.abs"));
  EXPECT_FALSE(has(applied(typed("tensor<2xf32>"), body), "lathe.abs"));
  refuses(ErrorCode::Unsupported, "several types of one op", typed("tensor<2xf32>, i64"));
  // Those of what is made, too: another one declines.
  auto made = [](const std::string& type) {
    return pattern(kExp, "%u = type : " + type +
                             "\n%new = operation \"lathe.abs\"(%x : !pdl.value) -> (%u : "
                             "!pdl.type)\nreplace %root with %new");
  };
  EXPECT_TRUE(has(applied(made("tensor<?x4xf32, #lathe.dims<seq, 4>>"), body), "lathe.abs"));
  EXPECT_FALSE(has(applied(made("tensor<2xf32>"), body), "lathe.abs"));
}

TEST_F(PatternFilesTest, WhatPdlKnowsAndPatternsDoNotIsRefused) {
  const ErrorCode bad = ErrorCode::InvalidFile, unsupported = ErrorCode::Unsupported;
  refuses(unsupported, "a rewrite without a root; write `rewrite %op`",
          "pdl.pattern @p : benefit(1) {\n" + kExp + "rewrite {\n" + kAbs + "\n}\n}");
  refuses(unsupported, "an attribute of a given type; give its value",
          pattern("%x = operand\n%t = type\n%q = attribute : %t\n%root = operation "
                  "\"lathe.reduce_sum\"(%x : !pdl.value) {\"axes\" = %q}\n",
                  kAbs));
  refuses(bad, "'approximate' cannot be negated: leave it out",
          pattern(kExp + "apply_native_constraint \"approximate\"(%x : !pdl.value) {isNegated = "
                         "true}",
                  kAbs));
  refuses(bad, "native rewrite 'splat_of' gives one attribute",
          pattern(kExp, "apply_native_rewrite \"splat_of\"(%x : !pdl.value)\n" + kAbs));
  refuses(bad, "result 1 of an op that has one",
          pattern(kExp,
                  "%new = operation \"lathe.abs\"(%x : !pdl.value)\n%r = result 1 of %new\n"
                  "replace %root with (%r : !pdl.value)"));
  refuses(bad, "'lathe.abs' has one result",
          pattern(kExp,
                  "%new = operation \"lathe.abs\"(%x : !pdl.value) -> (%t, %t : !pdl.type, "
                  "!pdl.type)\nreplace %root with %new"));
  const std::string three =
      "%x = operand\n%w = operand\n%r = operand\n%sizes = attribute = array<i32: SIZES>\n"
      "%root = operation \"lathe.linear\"(%x, %w, %r : !pdl.value, !pdl.value, !pdl.value)"
      " {\"operandSegmentSizes\" = %sizes}\n";
  auto sized = [&](const std::string& sizes) {
    std::string filled = three;
    return pattern(filled.replace(filled.find("SIZES"), 5, sizes),
                   "replace %root with (%x : !pdl.value)");
  };
  refuses(unsupported, "operand segments of more than one value", sized("1, 2, 0, 0"));
  refuses(bad, "'lathe.linear' has 3 operands here, expected 2", sized("1, 1, 0, 0"));
}

TEST_F(PatternFilesTest, ANativeRewriteWithoutAnAnswerDeclines) {
  const std::string text = pattern(
      "%x = operand\n%e = attribute\n"
      "%root = operation \"lathe.glu\"(%x, %x : !pdl.value, !pdl.value) {\"activation\" = "
      "%e}",
      "%p = apply_native_rewrite \"product\"(%e, %e : !pdl.attribute, !pdl.attribute) : "
      "!pdl.attribute\n"
      "%new = operation \"lathe.rms_norm\"(%x : !pdl.value) {\"epsilon\" = %p}\n"
      "replace %root with %new");
  const std::string ir = applied(text, "%y = lathe.glu %a, %a : T, T\n return %y : T");
  EXPECT_TRUE(has(ir, "lathe.glu")) << ir;
  EXPECT_FALSE(has(ir, "lathe.rms_norm")) << ir;
}

TEST_F(PatternFilesTest, TextThatIsNoPatternIsRefused) {
  refuses(ErrorCode::InvalidFile, "p.mlir:2:", "pdl.pattern @p : benefit(1) {\n  %x = oper\n}");
  refuses(ErrorCode::InvalidFile, "p.mlir: line 1: nesting deeper than 256", std::string(300, '('));
  refuses(ErrorCode::InvalidFile, "MLIR bytecode where text is expected", "ML\xefR and more");
  refuses(ErrorCode::InvalidFile, "p.mlir: expected pdl.pattern ops, found none", "// nothing\n");
  refuses(ErrorCode::InvalidFile, "expected pdl.pattern, got func.func", "func.func private @f()");
  refuses(ErrorCode::InvalidFile, "expected a bindable user",
          "pdl.pattern @p : benefit(1) {\n" + kExp + "}");
  refuses(ErrorCode::InvalidFile, "redefinition of symbol named 'p'",
          pattern(kExp, kAbs) + pattern(kExp, kAbs));
}

// A rewrite that gives other numbers than what it replaces is refused before it meets a graph.
TEST_F(PatternFilesTest, AWrongRewriteIsToldAtItsPlace) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("wrong.mlir", pattern(kExp, kAbs));
  Graph g;
  g.output("y", neg(g.input("x", DType::F32, {4})));
  for (const std::string& words :
       {file + ":",
        std::string("mend the rewrite, constrain the match, or apply `approximate` to it if "
                    "other numbers are meant")})
    expectError(ErrorCode::InvalidFile, words, [&] {
      compile(g, {.backend = "reference", .pipeline = {.patternFiles = {file}}});
    });
}

TEST_F(PatternFilesTest, ARewriteThatNeverEndsIsToldAtItsPlace) {
  const test::TemporaryFolder folder;
  const std::string file =
      folder.write("again.mlir", pattern(kExp,
                                         "%new = operation \"lathe.exp\"(%x : !pdl.value)\n"
                                         "replace %root with %new"));
  Graph g;
  g.output("y", exp(g.input("x", DType::F32, {4})));
  expectError(ErrorCode::InvalidArgument,
              "rewriting does not end: " + file + ":4: pattern 'p' was the last of",
              [&] { compile(g, {.backend = "reference", .pipeline = {.patternFiles = {file}}}); });
}

TEST_F(PatternFilesTest, FilesThatCannotBeReadAreRefused) {
  test::TemporaryFolder folder;
  auto load = [&](const std::string& path) { loadPatternFile(context_.get(), path); };
  expectError(ErrorCode::Io, folder / "none.mlir" + ": cannot open",
              [&] { load(folder / "none.mlir"); });
  expectError(ErrorCode::Io, "none.pdll: cannot open", [&] { load(folder / "none.pdll"); });
  expectError(ErrorCode::InvalidArgument, "expected a pattern file, PDL (.mlir) or PDLL (.pdll)",
              [&] { load(folder.write("p.txt", "")); });
}

TEST_F(PatternFilesTest, PdllBecomesPatterns) {
  test::TemporaryFolder folder;
  std::string file = folder.write("p.pdll",
                                  "#include \"lathe.pdll\"\n"
                                  "Pattern gate {\n"
                                  "  let root = op<lathe.mul>(x: Value, op<lathe.sigmoid>(x));\n"
                                  "  rank(x, attr<\"2 : i64\">);\n"
                                  "  replace root with op<lathe.abs>(x);\n}\n");
  PatternLibrary library = loadPatternFile(context_.get(), file);
  ASSERT_EQ(library.size(), 1u);
  EXPECT_EQ(library[0]->name(), "gate");
  EXPECT_EQ(library[0]->rootOp(), "lathe.mul");
  EXPECT_EQ(library[0]->opCount(), 2);
}

TEST_F(PatternFilesTest, AttributesOfTheDialectAreTextInPdll) {
  test::TemporaryFolder folder;
  auto file = [&](const std::string& attribute) {
    return folder.write("p.pdll",
                        "Pattern p {\n  let root = op<lathe.glu>(x: Value, y: Value) "
                        "{activation = attr<\"" +
                            attribute +
                            "\">};\n"
                            "  replace root with op<lathe.add>(x, y);\n}\n");
  };
  PatternLibrary library = loadPatternFile(context_.get(), file("\\\"#lathe<activation relu>\\\""));
  EXPECT_TRUE(
      isa<ActivationAttr>(library.at(0)->nodes()[library[0]->root()].attributes[0].getValue()));
  // The tool leaves the value out and succeeds, so that every activation would match.
  expectError(ErrorCode::InvalidFile, "unregistered dialect",
              [&] { loadPatternFile(context_.get(), file("#lathe<activation relu>")); });
  expectError(ErrorCode::InvalidFile, "the attribute '#lathe<activation rela>': ", [&] {
    loadPatternFile(context_.get(), file("\\\"#lathe<activation rela>\\\""));
  });
}

TEST_F(PatternFilesTest, MistakesInPdllAreTold) {
  test::TemporaryFolder folder;
  std::string file = folder.write("p.pdll", "Pattern gate {\n  let root = op<;\n}\n");
  expectError(ErrorCode::InvalidFile, "p.pdll:2:", [&] { loadPatternFile(context_.get(), file); });
  std::string unknown = folder.write(
      "q.pdll",
      "Constraint nope(v: Value);\nPattern gate {\n  let root = op<lathe.exp>(x: Value);\n"
      "  nope(x);\n  replace root with op<lathe.abs>(x);\n}\n");
  expectError(ErrorCode::InvalidFile, "q.pdll:4: pattern 'gate': unknown native constraint 'nope'",
              [&] { loadPatternFile(context_.get(), unknown); });
}

TEST_F(PatternFilesTest, AMissingPdllToolIsNamed) {
  test::TemporaryFolder folder;
  std::string file = folder.write("p.pdll", "");
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder.path().c_str(), 1);
  expectError(ErrorCode::Unsupported,
              "needs LLVM's tool mlir-pdll, which is neither on PATH nor in",
              [&] { pdlFromPdll(file, folder.path()); });
  setenv("PATH", path.c_str(), 1);
}

// What has no name may be any size.
TEST_F(PatternFilesTest, UnknownSizesAreNotProvablyEqual) {
  OwningOpRef<ModuleOp> module = parseModule(*context_, R"(
    func.func @f(%a: tensor<?xf32>, %b: tensor<?x4xf32, #lathe.dims<seq, 4>>) { return })",
                                             "test");
  const NativeConstraint* same =
      llvm::find_if(nativeConstraints(), [](auto& c) { return c.name == "same_dim"; });
  auto f = *module->getOps<func::FuncOp>().begin();
  const Attribute first = IntegerAttr::get(IntegerType::get(context_.get(), 64), 0);
  auto equal = [&](unsigned a, unsigned b) {
    return same->holds({{f.getArgument(a), {}}, {{}, first}, {f.getArgument(b), {}}, {{}, first}});
  };
  EXPECT_FALSE(equal(0, 0));
  EXPECT_FALSE(equal(0, 1));
  EXPECT_TRUE(equal(1, 1));
}

// The page that users read names everything that files may use.
TEST(PatternNativesTest, AreDocumented) {
  std::string page = test::readFile(LATHE_SOURCE_DIR "/docs/write-a-fusion.md");
  auto documented = [&](const Native& native) {
    return page.find("| `" + std::string(native.name) + "(" + std::string(native.parameters) +
                     ")` |") != std::string::npos;
  };
  for (const NativeConstraint& c : nativeConstraints()) EXPECT_TRUE(documented(c)) << c.name;
  for (const NativeRewrite& r : nativeRewrites()) EXPECT_TRUE(documented(r)) << r.name;
}

}  // namespace
}  // namespace lathe
