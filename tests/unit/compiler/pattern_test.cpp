// SPDX-License-Identifier: Apache-2.0
// The matcher behind fusion patterns, and the numbering of rewrites.
#include <map>
#include <string>

#include "gtest/gtest.h"
#include "lathe/ir/context.h"
#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "lathe/passes/match.h"
#include "lathe/passes/passes.h"
#include "lathe/runtime/error.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "passes/patterns/library.h"
#include "passes/rewrite/rewrite_log.h"

using namespace mlir;

namespace lathe {
namespace {

// `T` in a body is f32[seq, 4]; the function's arguments are %a and %b.
class PatternTest : public testing::Test {
 protected:
  PatternTest() : context_(createContext()) {}

  void parse(StringRef body) {
    const std::string type = "tensor<?x4xf32, #lathe.dims<seq, 4>>";
    std::string text = "func.func @f(%a: " + type + ", %b: " + type + ") {\n";
    for (char c : body) text += c == 'T' ? type : std::string(1, c);
    module_ = parseModule(*context_, text + "\nreturn }", "test");
  }
  Operation* last() {
    Operation* found = nullptr;
    module_->walk([&](Operation* op) {
      if (op->getNumResults()) found = op;
    });
    return found;
  }
  // Matches the last op of the body: the words of the miss, or nothing.
  std::string miss(StringRef body, const std::function<void(DagPattern&)>& record) {
    parse(body);
    DagPattern pattern(context_.get(), "p");
    record(pattern);
    Match match;
    Miss miss;
    return pattern.match(last(), match, miss) ? "" : pattern.explain(miss);
  }
  // Builds the replacement of the last op: its text, or the reason why there is none.
  std::string built(StringRef body, const std::function<void(DagPattern&)>& record) {
    parse(body);
    DagPattern pattern(context_.get(), "p");
    record(pattern);
    Match match;
    Miss miss;
    if (!pattern.match(last(), match, miss)) return pattern.explain(miss);
    IRRewriter rewriter(context_.get());
    Value made = pattern.build(rewriter, match);
    return made ? print(made.getDefiningOp()) : match.reason();
  }
  static std::string print(Operation* op) {
    std::string result;
    llvm::raw_string_ostream os(result);
    op->print(os);
    return result;
  }
  static bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  }

  std::unique_ptr<MLIRContext> context_;
  OwningOpRef<ModuleOp> module_;
};

TEST_F(PatternTest, OptionalMatchesWithAndWithout) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(exp(p.optional(sigmoid(x), x)));
  };
  EXPECT_EQ(miss("%y = lathe.exp %a : T", record), "");
  EXPECT_EQ(miss("%s = lathe.sigmoid %a : T\n %y = lathe.exp %s : T", record), "");
}

TEST_F(PatternTest, AnyOfTakesEachAlternativeAndNoOther) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(mul(x, p.anyOf({sigmoid(x), exp(x)})));
  };
  EXPECT_EQ(miss("%s = lathe.exp %a : T\n %y = lathe.mul %s, %a : T, T", record), "");
  EXPECT_EQ(miss("%s = lathe.sigmoid %a : T\n %y = lathe.mul %a, %s : T, T", record), "");
  EXPECT_NE(miss("%s = lathe.tanh %a : T\n %y = lathe.mul %s, %a : T, T", record), "");
  EXPECT_NE(miss("%s = lathe.exp %b : T\n %y = lathe.mul %s, %a : T, T", record), "");
}

TEST_F(PatternTest, AChoiceUsedTwiceIsOneValue) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any(), choice = p.anyOf({sigmoid(x), exp(x)});
    p.root(add(choice, neg(choice)));
  };
  EXPECT_EQ(
      miss("%s = lathe.exp %a : T\n %n = lathe.neg %s : T\n %y = lathe.add %s, %n : T, T", record),
      "");
  EXPECT_NE(miss("%s = lathe.exp %a : T\n %t = lathe.sigmoid %a : T\n %n = lathe.neg %t : T\n"
                 " %y = lathe.add %s, %n : T, T",
                 record),
            "");
}

TEST_F(PatternTest, SharedValuesAcrossCommutativeOps) {
  // x is found only in the second order of both products.
  auto record = [](DagPattern& p) {
    Tensor x = p.any(), y = p.any();
    p.root(add(mul(x, y), mul(y, exp(x))));
  };
  EXPECT_EQ(miss("%e = lathe.exp %a : T\n %m = lathe.mul %b, %a : T, T\n"
                 " %n = lathe.mul %b, %e : T, T\n %y = lathe.add %n, %m : T, T",
                 record),
            "");
}

TEST_F(PatternTest, ThreeOperandsKeepTheirOrder) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any(), y = p.any();
    p.root(select(compare(x, y, Compare::lt), exp(x), y));
  };
  const char* compared = "%c = lathe.compare lt %a, %b : T, T\n %e = lathe.exp %a : T\n";
  EXPECT_EQ(
      miss(compared +
               std::string(
                   "%y = lathe.select %c, %e, %b : tensor<?x4xi1, #lathe.dims<seq, 4>>, T, T"),
           record),
      "");
  EXPECT_NE(
      miss(compared +
               std::string(
                   "%y = lathe.select %c, %b, %e : tensor<?x4xi1, #lathe.dims<seq, 4>>, T, T"),
           record),
      "");
}

TEST_F(PatternTest, ConstantsMatchWithinToleranceAndThroughCasts) {
  auto record = [](DagPattern& p) { p.root(mul(p.any(), p.constant(0.1))); };
  EXPECT_EQ(miss("%c = lathe.constant dense<0.1> : tensor<f32>\n"
                 " %y = lathe.mul %a, %c : T, tensor<f32>",
                 record),
            "");
  EXPECT_EQ(miss("%c = lathe.constant dense<0.1> : tensor<bf16>\n %d = lathe.cast %c to f32 : "
                 "tensor<bf16>\n"
                 " %y = lathe.mul %a, %d : T, tensor<f32>",
                 [](DagPattern& p) { p.root(mul(p.any(), p.constant(0.1, 1e-2))); }),
            "");
  std::string text = miss(
      "%c = lathe.constant dense<0.1001> : tensor<f32>\n"
      " %y = lathe.mul %a, %c : T, tensor<f32>",
      record);
  EXPECT_TRUE(has(text, "p: 1 of 1 ops, then wanted the constant 0.1 at test:")) << text;
}

TEST_F(PatternTest, ConstantsMatchAsTheirTypeRoundsThem) {
  auto record = [](DagPattern& p) { p.root(exp(p.constant(0.1))); };
  EXPECT_EQ(miss("%c = lathe.constant dense<0.1> : tensor<bf16>\n %y = lathe.exp %c : tensor<bf16>",
                 record),
            "");
}

TEST_F(PatternTest, ConstantsAreTheNumbersThatIntegersAre) {
  auto two = [](double wanted, const char* value, const char* type, const char* cast = nullptr) {
    return std::tuple(wanted, std::string(value), std::string(type),
                      cast ? std::string(cast) : std::string());
  };
  struct {
    bool matches;
    std::tuple<double, std::string, std::string, std::string> what;
  } cases[] = {
      {true, two(1e6, "1000000", "i32")},
      {false, two(1e6, "1000001", "i32")},  // no tolerance
      {true, two(0x1p53, "9007199254740992", "i64")},
      {false, two(0x1p53, "9007199254740993", "i64")},
      {true, two(7, "7", "i64", "f32")},
      {true, two(2, "2.5", "f32", "i32")},     // truncated
      {false, two(2.5, "2.5", "f32", "i32")},  // not rounded
      {true, two(1, "3", "i64", "i1")},
      {false, two(300, "300", "i32", "i8")},
      {false, two(44, "300", "i32", "i8")},
  };
  for (auto& [matches, what] : cases) {
    auto [wanted, value, type, cast] = what;
    std::string body = "%c = lathe.constant dense<" + value + "> : tensor<" + type + ">\n";
    std::string last = type, name = "%c";
    if (!cast.empty()) {
      body += "%d = lathe.cast %c to " + cast + " : tensor<" + type + ">\n";
      last = cast, name = "%d";
    }
    body += "%y = lathe.compare eq " + name + ", " + name + " : tensor<" + last + ">, tensor<" +
            last + ">";
    const std::string text = miss(body, [wanted = wanted](DagPattern& p) {
      Tensor c = p.constant(wanted);
      p.root(compare(c, c, Compare::eq));
    });
    EXPECT_EQ(text.empty(), matches) << wanted << "\n" << body << "\n" << text;
  }
}
TEST_F(PatternTest, ConstantsByPredicate) {
  auto record = [](DagPattern& p) {
    p.root(mul(p.any(), p.constantWhere("a negative constant", [](double v) { return v < 0; })));
  };
  EXPECT_EQ(
      miss("%c = lathe.constant dense<-2.0> : tensor<f32>\n %y = lathe.mul %c, %a : tensor<f32>, T",
           record),
      "");
  EXPECT_TRUE(has(miss("%c = lathe.constant dense<2.0> : tensor<f32>\n"
                       " %y = lathe.mul %c, %a : tensor<f32>, T",
                       record),
                  "wanted a negative constant"));
}

TEST_F(PatternTest, AttributesMatchExactlyUnlessFree) {
  const char* body = "%y = lathe.reduce_sum %a axes [0] : T";
  auto axis1 = [](DagPattern& p) { p.root(reduceSum(p.any(), {1})); };
  std::string text = miss(body, axis1);
  EXPECT_TRUE(
      has(text, "lathe.reduce_sum differs in 'axes': wanted array<i64: 1>, found array<i64: 0>"))
      << text;
  EXPECT_EQ(
      miss(body, [](DagPattern& p) { p.root(p.anyAttribute(reduceSum(p.any(), {1}), "axes")); }),
      "");
  EXPECT_TRUE(has(miss(body, [](DagPattern& p) { p.root(reduceSum(p.any(), {0}, true)); }),
                  "differs in 'keep_dims'"));
}

TEST_F(PatternTest, AbsentOptionalOperandsMustBeAbsent) {
  const char* body =
      "%w = lathe.weight \"w\" : tensor<4x4xf32>\n"
      " %y = lathe.linear %a, %w residual %b : T, tensor<4x4xf32> residual T";
  auto withResidual = [](DagPattern& p) {
    p.root(p.emit("lathe.linear", {p.any(), p.any(), Tensor(), p.any()}, {},
                  std::source_location::current()));
  };
  auto withBias = [](DagPattern& p) {
    p.root(p.emit("lathe.linear", {p.any(), p.any(), p.any(), Tensor()}, {},
                  std::source_location::current()));
  };
  EXPECT_EQ(miss(body, withResidual), "");
  EXPECT_TRUE(has(miss(body, withBias), "lathe.linear has other operands"));
}

TEST_F(PatternTest, InteriorValuesMustNotEscapeUnlessAllowed) {
  const char* body = "%s = lathe.sigmoid %a : T\n %e = lathe.abs %s : T\n %y = lathe.exp %s : T";
  EXPECT_TRUE(has(miss(body, [](DagPattern& p) { p.root(exp(sigmoid(p.any()))); }),
                  "p: 2 of 2 ops, then lathe.sigmoid has another user at"));
  EXPECT_EQ(miss(body, [](DagPattern& p) { p.root(exp(p.mayEscape(sigmoid(p.any())))); }), "");
}

TEST_F(PatternTest, OneUseCountsUsesInsideTheMatch) {
  const char* body = "%s = lathe.sigmoid %a : T\n %y = lathe.mul %s, %s : T, T";
  auto record = [](bool one) {
    return [one](DagPattern& p) {
      Tensor s = sigmoid(p.any());
      if (one) p.oneUse(s);
      p.root(mul(s, s));
    };
  };
  EXPECT_EQ(miss(body, record(false)), "");
  EXPECT_TRUE(has(miss(body, record(true)), "lathe.sigmoid has another user"));
}

TEST_F(PatternTest, PredicatesAndDims) {
  auto weight = [](DagPattern& p) { p.root(exp(p.where(p.any(), "a weight", isWeight))); };
  EXPECT_TRUE(has(miss("%y = lathe.exp %a : T", weight), "wanted a weight"));
  EXPECT_EQ(
      miss("%w = lathe.weight \"w\" : tensor<4xf32>\n %y = lathe.exp %w : tensor<4xf32>", weight),
      "");
  auto square = [](DagPattern& p) {
    Tensor x = p.any(), y = p.any();
    p.sameDim(x, 0, y, -1);
    p.root(add(x, y));
  };
  EXPECT_TRUE(has(miss("%y = lathe.add %a, %b : T, T", square), "dims cannot be proved equal"));
  auto beyond = [](DagPattern& p) {
    Tensor x = p.any(), y = p.any();
    p.sameDim(x, 0, y, -4);
    p.root(add(x, y));
  };
  std::string text = miss("%y = lathe.add %a, %b : T, T", beyond);
  EXPECT_TRUE(has(text, "axis -4 lies outside of f32[seq, 4]")) << text;
  auto sized = [](DagPattern& p) { p.root(exp(p.dim(p.any(), 5, 8))); };
  text = miss("%y = lathe.exp %a : T", sized);
  EXPECT_TRUE(has(text, "wanted size 8 of axis 5, found f32[seq, 4]")) << text;
}

TEST_F(PatternTest, TheNearestMissIsTold) {
  auto record = [](DagPattern& p) {
    Tensor g = p.any(), u = p.any();
    p.root(mul(mul(g, sigmoid(g)), u));
  };
  std::string text = miss(
      "%t = lathe.tanh %a : T\n %m = lathe.mul %t, %a : T, T\n"
      " %y = lathe.mul %b, %m : T, T",
      record);
  EXPECT_TRUE(has(text, "p: 2 of 3 ops, then wanted lathe.sigmoid, found lathe.tanh at")) << text;
}

TEST_F(PatternTest, ARecordedReplacementTakesCaptures) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    Tensor inner = p.anyAttribute(reduceMax(neg(x), {0}, false), "axes");
    Tensor outer = neg(inner);
    p.root(outer);
    Tensor smallest =
        p.emit("lathe.reduce_min", {x}, {{"axes", p.captured(inner, "axes")}, {"keep_dims", true}},
               std::source_location::current());
    p.replaceWith(p.emit("lathe.reshape", {smallest}, {{"shape", p.capturedShape(outer)}},
                         std::source_location::current()));
  };
  std::string text = built(
      "%n = lathe.neg %a : T\n %m = lathe.reduce_max %n axes [1] : T\n"
      " %y = lathe.neg %m : tensor<?xf32, #lathe.dims<seq>>",
      record);
  EXPECT_TRUE(has(text, "lathe.reshape %2 to <seq> : tensor<?x1xf32, #lathe.dims<seq, 1>>"))
      << text;
  EXPECT_TRUE(has(print(*module_), "lathe.reduce_min %arg0 axes [1] keep_dims true"))
      << print(*module_);
}

TEST_F(PatternTest, FurtherResultsAreMatchedAndReplace) {
  const char* body = "%s = lathe.add %a, %b : T, T\n %y = lathe.exp %s : T";
  for (bool both : {false, true}) {
    std::string text = built(body, [&](DagPattern& p) {
      Tensor a = p.any(), b = p.any();
      Tensor s = p.mayEscape(add(a, b));
      p.root(exp(s));
      auto [sum, y] = fused::addNorm(a, b, {.norm = Norm::rms});
      if (both) p.replaceToo(s, sum);
      p.replaceWith(y);
    });
    EXPECT_TRUE(has(text, "lathe.add_norm rms %arg0, %arg1")) << text;
  }
  auto ofIndices = [](DagPattern& p) {
    auto [values, indices] = topK(p.any(), 2);
    p.root(neg(indices));
  };
  auto top = [](const char* of) {
    return std::string("%v, %i = lathe.top_k %a k 2 : T\n %y = lathe.neg ") + of;
  };
  EXPECT_EQ(miss(top("%i : tensor<?x2xi64, #lathe.dims<seq, 2>>"), ofIndices), "");
  EXPECT_TRUE(
      has(miss(top("%v : tensor<?x2xf32, #lathe.dims<seq, 2>>"), ofIndices), "wanted lathe.top_k"));
}
// Every reader of one of the root's results gets what replaces that one.
TEST_F(PatternTest, ReadersGetWhatReplacesTheirResult) {
  parse(
      "%s, %y = lathe.add_norm rms %a, %b epsilon 1.0e-05 : T\n %u = lathe.exp %s : T\n"
      "%w = lathe.neg %y : T\n %z = lathe.tanh %s : T");
  Operation* root = nullptr;
  module_->walk([&](AddNormOp op) { root = op; });
  DagPattern pattern(context_.get(), "p");
  Tensor a = pattern.any(), b = pattern.any();
  Tensor sum = fused::addNorm(a, b, {.norm = Norm::rms}).first;
  pattern.anyAttribute(sum, "epsilon");
  pattern.root(sum);
  pattern.replaceWith([a = a, b = b](Match& m) -> Value {
    Value other = m.make("lathe.layer_norm", {m[a], Value(), Value()}, {{"epsilon", 1e-5}});
    m.replaceToo(m.root()->getResult(1), other);
    return m.make("lathe.mul", {m[a], m[b]});
  });
  Match match;
  Miss miss;
  ASSERT_TRUE(pattern.match(root, match, miss)) << pattern.explain(miss);
  IRRewriter rewriter(context_.get());
  Value made = pattern.build(rewriter, match);
  ASSERT_TRUE(made) << match.reason();
  pattern.commit(rewriter, match, made);
  std::map<std::string, std::string> madeBy;
  module_->walk([&](Operation* op) {
    if (isa<ExpOp, NegOp, TanhOp>(op))
      if (Operation* def = op->getOperand(0).getDefiningOp())
        madeBy[op->getName().stripDialect().str()] = def->getName().stripDialect().str();
  });
  EXPECT_EQ(madeBy, (std::map<std::string, std::string>{
                        {"exp", "mul"}, {"neg", "layer_norm"}, {"tanh", "mul"}}));
}

TEST_F(PatternTest, AReplacementWithoutAValueSaysSo) {
  EXPECT_EQ(built("%y = lathe.exp %a : T",
                  [](DagPattern& p) {
                    p.root(exp(p.any()));
                    p.replaceWith([](Match&) { return Value(); });
                  }),
            "the replacement gave no value");
}
TEST_F(PatternTest, AReplacementsNumberMustBeOneOfItsType) {
  std::string text = built(
      "%c = lathe.cast %a to i32 : T\n"
      " %y = lathe.neg %c : tensor<?x4xi32, #lathe.dims<seq, 4>>",
      [](DagPattern& p) {
        Tensor x = p.any();
        p.root(neg(x));
        p.replaceWith(x * 0.5);
      });
  EXPECT_TRUE(has(text, "i32 does not hold the number 5.0")) << text;
}
TEST_F(PatternTest, AReplacementMayDecline) {
  auto record = [](DagPattern& p) {
    p.root(exp(p.any()));
    p.replaceWith([](Match& m) { return m.decline("never"); });
  };
  EXPECT_EQ(built("%y = lathe.exp %a : T", record), "never");
}

TEST_F(PatternTest, AReplacementThatDoesNotHoldLeavesNothingBehind) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(exp(x));
    p.replaceWith([=](Match& m) {
      Value negated = m.make("lathe.neg", {m[x]});
      return m.make("lathe.softmax", {negated}, {{"axis", int64_t(7)}});
    });
  };
  std::string text = built("%y = lathe.exp %a : T", record);
  EXPECT_TRUE(
      has(text, "the replacement does not hold: lathe.softmax: [C1] axis 7 is outside rank 2"))
      << text;
  EXPECT_FALSE(has(print(*module_), "lathe.neg"));
}

TEST_F(PatternTest, AReplacementThatLacksAnAttributeIsRefused) {
  for (auto [op, attribute] : {std::pair("lathe.softmax", "axis"), {"lathe.top_k", "k"}}) {
    auto record = [op](DagPattern& p) {
      Tensor x = p.any();
      p.root(exp(x));
      p.replaceWith([=](Match& m) { return m.make(op, {m[x]}); });
    };
    const std::string text = built("%y = lathe.exp %a : T", record);
    const std::string wanted = std::string("requires attribute '") + attribute + "'";
    EXPECT_TRUE(has(text, "the replacement does not hold: ") && has(text, wanted.c_str()))
        << op << ": " << text;
  }
}

// It is there, and not what the op takes: nobody is told that it is missing.
TEST_F(PatternTest, AReplacementWithAnAttributeOfAnotherKindIsRefused) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(exp(x));
    p.replaceWith([=](Match& m) { return m.make("lathe.softmax", {m[x]}, {{"axis", "last"}}); });
  };
  const std::string text = built("%y = lathe.exp %a : T", record);
  EXPECT_TRUE(has(text, "'lathe.softmax': attribute 'axis' cannot be \"last\"")) << text;
  EXPECT_FALSE(has(text, "requires attribute")) << text;
}

TEST_F(PatternTest, AReplacementOfAnotherTypeIsRefused) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(exp(x));
    p.replaceWith(cast(x, DType::BF16));
  };
  EXPECT_EQ(built("%y = lathe.exp %a : T", record),
            "the replacement is bf16[seq, 4], the op is f32[seq, 4]");
}

// A user's own pattern beside the built-in ones.
PatternLibrary squareRoots(MLIRContext* context) {
  PatternLibrary library;
  addPattern(library, context, "square-root", [](DagPattern& p) {
    Tensor x = p.any();
    p.root(sqrt(mul(x, x)));
    p.replaceWith(abs(x));
  });
  return library;
}

// And one that takes every root, of a smaller benefit.
PatternLibrary allRoots(MLIRContext* context) {
  PatternLibrary library = squareRoots(context);
  addPattern(library, context, "root", [](DagPattern& p) {
    Tensor x = p.any();
    p.root(sqrt(x));
    p.replaceWith(sigmoid(x));
  });
  return library;
}

class RewriteLogTest : public PatternTest {
 protected:
  // Two square roots; runs the fusions under the log's options.
  std::vector<RewriteLog::Entry> run(RewriteLog::Options options,
                                     const PatternsFor& patterns = squareRoots) {
    module_ = parseModule(*context_, R"(
      func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
        %0 = lathe.mul %a, %a : tensor<4xf32>, tensor<4xf32> loc("model.cc":1:1)
        %1 = lathe.sqrt %0 : tensor<4xf32> loc("model.cc":2:1)
        %2 = lathe.mul %b, %b : tensor<4xf32>, tensor<4xf32> loc("model.cc":3:1)
        %3 = lathe.sqrt %2 : tensor<4xf32> loc("model.cc":4:1)
        return %1, %3 : tensor<4xf32>, tensor<4xf32>
      })",
                          "test");
    RewriteLog log(context_.get(), context_->getOrLoadDialect<LatheDialect>(), options);
    PassManager manager(context_.get());
    manager.addPass(createFusePass(patterns));
    EXPECT_TRUE(succeeded(manager.run(*module_)));
    return log.entries();
  }
  int count(const char* part) {
    std::string text = print(*module_);
    int n = 0;
    for (size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++n;
    return n;
  }
};

TEST_F(RewriteLogTest, NumbersEveryAppliedRewrite) {
  auto entries = run({});
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].number, 1u);
  EXPECT_EQ(entries[1].number, 2u);
  EXPECT_EQ(entries[0].what, "square-root");
  EXPECT_LT(entries[0].attempt, entries[1].attempt);
  EXPECT_EQ(count("lathe.abs"), 2);
}

TEST_F(RewriteLogTest, StopsAfterTheGivenNumber) {
  EXPECT_EQ(run({.stopAfter = 1}).size(), 1u);
  EXPECT_EQ(count("lathe.abs"), 1);
  EXPECT_EQ(count("lathe.sqrt"), 1);
}

TEST_F(RewriteLogTest, LeavesOutOneAttempt) {
  uint64_t first = run({})[0].attempt;
  EXPECT_EQ(run({.skipAttempt = first}).size(), 1u);
  EXPECT_EQ(count("lathe.abs"), 1);
  EXPECT_TRUE(has(print(*module_), "%1 = lathe.sqrt %0")) << print(*module_);
}

TEST_F(RewriteLogTest, AnAttemptThatIsLeftOutLeavesItsOpToOtherPatterns) {
  const uint64_t first = run({}, allRoots)[0].attempt;
  const auto entries = run({.skipAttempt = first}, allRoots);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].what, "root");
  EXPECT_EQ(entries[1].what, "square-root");
  EXPECT_EQ(count("lathe.sigmoid"), 1);
  EXPECT_EQ(count("lathe.abs"), 1);
}

TEST_F(RewriteLogTest, IsDetachedWhenItEnds) {
  run({.stopAfter = 0});
  EXPECT_EQ(count("lathe.sqrt"), 2);
  EXPECT_EQ(context_->getOrLoadDialect<LatheDialect>()->rewriteLog, nullptr);
  PassManager manager(context_.get());
  manager.addPass(createFusePass(squareRoots));
  EXPECT_TRUE(succeeded(manager.run(*module_)));
  EXPECT_EQ(count("lathe.abs"), 2);
}

TEST_F(RewriteLogTest, AFusedOpHasExactlyTheOriginsOfItsMatch) {
  run({});
  std::vector<std::string> lines;
  module_->walk([&](AbsOp op) {
    Origins origins;
    addOrigins(origins, op.getLoc());
    std::string text;
    for (Location l : origins) text += std::to_string(cast<FileLineColLoc>(l).getLine()) + " ";
    lines.push_back(text);
  });
  EXPECT_EQ(lines, (std::vector<std::string>{"2 1 ", "4 3 "}));
}

TEST_F(PatternTest, APatternHasNoShapes) {
  DagPattern p(context_.get(), "shapes");
  Tensor x = p.any();
  for (auto use :
       {+[](const Tensor& t) { swapAxes(t, 0, 1); }, +[](const Tensor& t) { t.rank(); }}) {
    try {
      use(x);
      FAIL() << "expected an error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
      EXPECT_TRUE(has(e.what(), "pattern 'shapes': a rank or shape is unknown in a pattern"))
          << e.what();
    }
  }
  EXPECT_THROW(x.dtype(), Error);
}

TEST_F(PatternTest, MisusedHandlesAreRefused) {
  DagPattern p(context_.get(), "one"), q(context_.get(), "two");
  Tensor x = p.any();
  auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_TRUE(
      has(message([&] { q.root(x); }), "pattern 'two': the tensor belongs to another pattern"));
  EXPECT_TRUE(has(message([&] { p.root(x); }), "pattern 'one': the root must be an op"));
  EXPECT_TRUE(has(message([&] { p.anyOf({}); }), "pattern 'one': anyOf of nothing"));
  EXPECT_TRUE(
      has(message([&] { p.emit("lathe.nothing", {x}, {}, std::source_location::current()); }),
          "pattern 'one': no op 'lathe.nothing' in the dialect"));
}

TEST(BuiltInPatterns, AreRecordedOnceForAContext) {
  const auto context = createContext(), other = createContext();
  EXPECT_EQ(&fusionPatterns(context.get()), &fusionPatterns(context.get()));
  EXPECT_EQ(&fusionRewrites(context.get()), &fusionRewrites(context.get()));
  for (const auto& p : fusionPatterns(other.get())) EXPECT_EQ(p->context(), other.get());
  EXPECT_EQ(fusionPatterns(other.get()).size(), fusionPatterns(context.get()).size());
}

}  // namespace
}  // namespace lathe
