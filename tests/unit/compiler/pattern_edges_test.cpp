// SPDX-License-Identifier: Apache-2.0
// What stands at the edges of a match: results that are left out, axes that a value does not have,
// values that others read, constants that others share.
#include <gmock/gmock.h>

#include <functional>
#include <set>
#include <string>

#include "lathe/ir/context.h"
#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "lathe/passes/greedy.h"
#include "lathe/passes/match.h"
#include "lathe/runtime/error.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "passes/rewrite/dag_types.h"
#include "passes/rewrite/locations.h"
#include "passes/rewrite/numerics_scope.h"
#include "passes/rewrite/rewrite_log.h"

using namespace mlir;
using testing::HasSubstr;
using testing::Not;

namespace lathe {
namespace {

using Record = std::function<void(DagPattern&)>;

// `T` in a body is f32[seq, 4]; the function's arguments are %a and %b, its result is %y.
class PatternEdges : public testing::Test {
 protected:
  PatternEdges() : context_(createContext()) {}

  void parse(const std::string& body) {
    const std::string type = "tensor<?x4xf32, #lathe.dims<seq, 4>>";
    std::string text = "func.func @f(%a: " + type + ", %b: " + type + ") {\n" + body + "\nreturn }";
    for (size_t at = 0; (at = text.find('T', at)) != text.npos; at += type.size())
      text.replace(at, 1, type);
    module_ = parseModule(*context_, text, "test");
    root_ = nullptr;
  }
  // Of the last op with this name.
  template <class Op>
  std::string matched(const std::string& body, const Record& record, bool thorough = false) {
    parse(body);
    module_->walk([&](Op op) { root_ = op; });
    pattern_ = std::make_unique<DagPattern>(context_.get(), "p");
    record(*pattern_);
    Miss miss;
    return pattern_->match(root_, match_, miss, thorough) ? "" : pattern_->explain(miss);
  }
  // The reason why there is no replacement of it; nothing if it was put in the op's place.
  template <class Op>
  std::string replaced(const std::string& body, const Record& record) {
    if (std::string miss = matched<Op>(body, record); !miss.empty()) return miss;
    IRRewriter rewriter(context_.get());
    Value made = pattern_->build(rewriter, match_);
    if (!made) return match_.reason();
    pattern_->commit(rewriter, match_, made);
    return "";
  }
  std::string text() {
    std::string text;
    llvm::raw_string_ostream(text) << *module_;
    return text;
  }

  std::unique_ptr<MLIRContext> context_;
  OwningOpRef<ModuleOp> module_;
  std::unique_ptr<DagPattern> pattern_;
  Operation* root_ = nullptr;
  Match match_;
};

TEST_F(PatternEdges, AResultThatIsReadIsNotLeftOut) {
  auto record = [](DagPattern& p) {
    Tensor a = p.any(), b = p.any();
    Tensor sum = fused::addNorm(a, b, {.norm = Norm::rms}).first;
    p.anyAttribute(sum, "epsilon");
    p.root(sum);
    p.replaceWith(add(a, b));
  };
  const std::string both = "%s, %n = lathe.add_norm rms %a, %b epsilon 1.0e-05 : T\n";
  EXPECT_EQ(replaced<AddNormOp>(both + "%y = lathe.exp %n : T", record),
            "the replacement leaves a result of the op out");
  EXPECT_EQ(replaced<AddNormOp>(both + "%y = lathe.exp %s : T", record), "");
}

TEST_F(PatternEdges, AFurtherResultIsNotTheFirst) {
  auto ofValues = [](DagPattern& p) { p.root(neg(topK(p.any(), 2).first)); };
  const std::string top = "%v, %i = lathe.top_k %a k 2 : T\n %y = lathe.neg ";
  EXPECT_EQ(matched<NegOp>(top + "%v : tensor<?x2xf32, #lathe.dims<seq, 2>>", ofValues), "");
  EXPECT_THAT(matched<NegOp>(top + "%i : tensor<?x2xi64, #lathe.dims<seq, 2>>", ofValues),
              HasSubstr("wanted lathe.top_k"));
}

TEST_F(PatternEdges, AxesThatAValueDoesNotHaveAreTold) {
  for (int64_t axis : {-3, -2, 0, 1, 2}) {
    auto record = [&](DagPattern& p) {
      Tensor x = p.any(), y = exp(x);
      p.sameDim(x, axis, y, axis == -3 || axis == 2 ? 0 : axis);
      p.root(y);
    };
    const std::string miss = matched<ExpOp>("%y = lathe.exp %a : T", record);
    if (axis == -3 || axis == 2)
      EXPECT_THAT(miss, HasSubstr("axis " + std::to_string(axis) + " lies outside of f32[seq, 4]"));
    else
      EXPECT_EQ(miss, "");
  }
}

// Sums of the two before: each matches a sum and a placeholder in both orders, and none of the ways
// ends at a sigmoid.
TEST_F(PatternEdges, AChainThatFitsInTooManyWaysIsGivenUp) {
  std::string body = "%v0 = lathe.exp %a : T\n %v1 = lathe.exp %b : T\n";
  for (int i = 2; i < 45; ++i)
    body += " %v" + std::to_string(i) + " = lathe.add %v" + std::to_string(i - 1) + ", %v" +
            std::to_string(i - 2) + " : T, T\n";
  auto chainOf = [](int length) {
    return [=](DagPattern& p) {
      Tensor x = sigmoid(p.any());
      for (int i = 0; i < length; ++i) x = x + p.any();
      p.root(x);
    };
  };
  EXPECT_THAT(matched<AddOp>(body, chainOf(8)), HasSubstr("wanted lathe.sigmoid"));
  EXPECT_THAT(matched<AddOp>(body, chainOf(40)),
              HasSubstr("its ops would fit in too many ways to try them all"));
}

// In the other order of the operands more of the pattern is found.
TEST_F(PatternEdges, AThoroughSearchBeginsAtEitherSide) {
  auto record = [](DagPattern& p) { p.root(sub(exp(p.any()), sigmoid(tanh(p.any())))); };
  const std::string body =
      "%s = lathe.sqrt %a : T\n %t = lathe.tanh %b : T\n %g = lathe.sigmoid %t : T\n"
      "%y = lathe.sub %s, %g : T, T";
  EXPECT_THAT(matched<SubOp>(body, record), HasSubstr("1 of 4 ops"));
  EXPECT_THAT(matched<SubOp>(body, record, /*thorough=*/true), HasSubstr("3 of 4 ops"));
}

TEST_F(PatternEdges, AWeightIsOneBehindViewsAndCastsAlone) {
  auto record = [](DagPattern& p) { p.root(matmul(p.any(), p.weight(p.any()))); };
  const std::string w = "%w = lathe.weight \"w\" : tensor<16xbf16>\n",
                    product = "%y = lathe.matmul %a, %m : T, tensor<4x4xf32>";
  EXPECT_EQ(matched<MatmulOp>(w +
                                  "%c = lathe.cast %w to f32 : tensor<16xbf16>\n"
                                  "%m = lathe.reshape %c to <4, 4> : tensor<16xf32>\n" +
                                  product,
                              record),
            "");
  EXPECT_THAT(matched<MatmulOp>(w +
                                    "%c = lathe.cast %w to f32 : tensor<16xbf16>\n"
                                    "%r = lathe.reshape %c to <4, 4> : tensor<16xf32>\n"
                                    "%m = lathe.exp %r : tensor<4x4xf32>\n" +
                                    product,
                                record),
              HasSubstr("wanted a weight"));
  EXPECT_EQ(matched<MatmulOp>("%q = lathe.weight \"q\" : tensor<4x4xi8>\n"
                              "%s = lathe.weight \"s\" : tensor<4x1xf32>\n"
                              "%m = lathe.dequantize %q, %s axis 1 block 4 to f32 : "
                              "tensor<4x4xi8>, tensor<4x1xf32>\n" +
                                  product,
                              record),
            "");
}

// Of two alternatives that are as near, and of those that are no nearer than the first.
TEST_F(PatternEdges, OfEqualMissesTheFirstIsTold) {
  const std::string miss =
      matched<NegOp>("%t = lathe.tanh %a : T\n %y = lathe.neg %t : T", [](DagPattern& p) {
        Tensor x = p.any();
        p.root(neg(p.anyOf({sigmoid(x), exp(x)})));
      });
  EXPECT_THAT(miss, HasSubstr("1 of 2 ops, then wanted lathe.sigmoid, found lathe.tanh"));
}

// A pattern has as many ops as its first spelling: what a longer one finds is no more.
TEST_F(PatternEdges, NoMoreOpsAreFoundThanThereAre) {
  const std::string body =
      "%s = lathe.sigmoid %a : T\n %e = lathe.exp %s : T\n %y = lathe.neg %e : T";
  EXPECT_THAT(matched<NegOp>(body,
                             [](DagPattern& p) {
                               Tensor x = p.any();
                               p.root(neg(p.anyOf({tanh(x), exp(tanh(x))})));
                             }),
              HasSubstr("1 of 2 ops, then wanted lathe.tanh, found lathe.sigmoid"));
}

TEST_F(PatternEdges, SizesOfAnAlternativeThatIsNotTakenAreNotCompared) {
  for (const bool turned : {false, true}) {
    auto record = [&](DagPattern& p) {
      Tensor x = p.any(), s = sigmoid(x);
      turned ? p.sameDim(s, 0, x, 1) : p.sameDim(x, 1, s, 0);
      p.root(exp(p.optional(s, x)));
    };
    EXPECT_EQ(matched<ExpOp>("%y = lathe.exp %a : T", record), "");
    EXPECT_EQ(matched<ExpOp>("%s = lathe.sigmoid %a : T\n %y = lathe.exp %s : T", record), "");
  }
}

TEST_F(PatternEdges, TheFirstReasonIsKept) {
  EXPECT_EQ(replaced<ExpOp>("%y = lathe.exp %a : T",
                            [](DagPattern& p) {
                              p.root(exp(p.any()));
                              p.replaceWith([](Match& m) {
                                m.decline("first");
                                return m.decline("second");
                              });
                            }),
            "first");
}

// The replacement stands in front of the first reader of any of the values, whichever is first.
TEST_F(PatternEdges, ValuesThatOthersReadAreThereInTime) {
  for (bool turned : {false, true}) {
    auto record = [&](DagPattern& p) {
      Tensor x = p.any(), n = p.mayEscape(neg(x)), e = p.mayEscape(exp(n));
      p.root(tanh(e));
      Tensor n2 = abs(x), e2 = sigmoid(n2);
      if (turned) p.replaceToo(e, e2);
      p.replaceToo(n, n2);
      if (!turned) p.replaceToo(e, e2);
      p.replaceWith(sqrt(e2));
    };
    EXPECT_EQ(replaced<TanhOp>("%n = lathe.neg %a : T\n %u = lathe.add %n, %b : T, T\n"
                               "%e = lathe.exp %n : T\n %v = lathe.add %e, %b : T, T\n"
                               "%y = lathe.tanh %e : T\n %z = lathe.sub %y, %u : T, T",
                               record),
              "");
    EXPECT_TRUE(succeeded(verify(*module_))) << text();
  }
  // What the new ops read goes along in front of them, where it stands behind that reader.
  EXPECT_EQ(replaced<TanhOp>("%n = lathe.neg %a : T\n %u = lathe.add %n, %b : T, T\n"
                             "%w = lathe.exp %b : T\n %p = lathe.mul %n, %w : T, T\n"
                             "%y = lathe.tanh %p : T\n %z = lathe.sub %y, %u : T, T",
                             [](DagPattern& p) {
                               Tensor x = p.any(), w = p.any(), n = p.mayEscape(neg(x));
                               p.root(tanh(mul(n, w)));
                               Tensor n2 = sub(x, w);
                               p.replaceToo(n, n2);
                               p.replaceWith(sqrt(n2));
                             }),
            "");
  EXPECT_TRUE(succeeded(verify(*module_))) << text();
}

TEST_F(PatternEdges, WhatIsMatchedGoesAtOnce) {
  EXPECT_EQ(replaced<SqrtOp>("%m = lathe.mul %a, %a : T, T\n %y = lathe.sqrt %m : T",
                             [](DagPattern& p) {
                               Tensor x = p.any();
                               p.root(sqrt(mul(x, x)));
                               p.replaceWith(abs(x));
                             }),
            "");
  EXPECT_THAT(text(), Not(HasSubstr("lathe.mul")));
}

// A constant that others read, too, has a line of its own.
TEST_F(PatternEdges, SharedConstantsAreNoOrigins) {
  auto lines = [&](const std::string& other) {
    const std::string body =
        "%c = lathe.constant dense<2.0> : tensor<f32> loc(\"model.cc\":1:1)\n"
        "%y = lathe.mul %a, %c : T, tensor<f32> loc(\"model.cc\":2:1)\n" +
        other;
    EXPECT_EQ(replaced<MulOp>(body,
                              [](DagPattern& p) {
                                Tensor x = p.any();
                                p.root(mul(x, p.constant(2)));
                                p.replaceWith(add(x, x));
                              }),
              "");
    std::set<unsigned> lines;
    module_->walk([&](AddOp op) {
      Origins origins;
      addOrigins(origins, op.getLoc());
      for (Location l : origins) lines.insert(cast<FileLineColLoc>(l).getLine());
    });
    return lines;
  };
  EXPECT_EQ(lines(""), (std::set<unsigned>{1, 2}));
  EXPECT_EQ(lines("%z = lathe.sub %b, %c : T, tensor<f32> loc(\"model.cc\":3:1)"),
            (std::set<unsigned>{2}));
}

// Operands of commutative ops in another order, and conditions that are asked for twice, are the
// same bits.
TEST_F(PatternEdges, TheSameTermsAreExact) {
  NumericsScope strict(context_.get(), {.mode = NumericsMode::Strict});
  EXPECT_EQ(replaced<ExpOp>("%s = lathe.add %a, %b : T, T\n %y = lathe.exp %s : T",
                            [](DagPattern& p) {
                              Tensor x = p.any(), y = p.any();
                              p.root(exp(add(x, y)));
                              p.replaceWith(exp(add(y, x)));
                            }),
            "");
  const std::string conditions =
      "%c = lathe.compare lt %a, %b : T, T\n%d = lathe.is_nan %a : T\n"
      "%e = lathe.logical_and %c, %d : C, C\n%y = lathe.logical_and %e, %c : C, C\n"
      "%n = lathe.logical_not %y : C";
  auto body = [&](std::string text) {
    for (size_t at = 0; (at = text.find('C', at)) != text.npos;)
      text.replace(at, 1, "tensor<?x4xi1, #lathe.dims<seq, 4>>");
    return text;
  };
  EXPECT_EQ(replaced<LogicalNotOp>(body(conditions),
                                   [](DagPattern& p) {
                                     Tensor x = p.any(), y = p.any();
                                     p.root(logicalNot(logicalAnd(logicalAnd(x, y), x)));
                                     p.replaceWith(logicalNot(logicalAnd(x, y)));
                                   }),
            "");
  EXPECT_THAT(replaced<LogicalNotOp>(body(conditions),
                                     [](DagPattern& p) {
                                       Tensor x = p.any(), y = p.any();
                                       p.root(logicalNot(logicalAnd(logicalAnd(x, y), x)));
                                       p.replaceWith(logicalNot(logicalOr(x, y)));
                                     }),
              HasSubstr("would not compute the same bits"));
  // Operands that both sides have are not the difference, in whatever order they come.
  EXPECT_THAT(replaced<AddOp>("%e = lathe.exp %a : T\n %n = lathe.sqrt %b : T\n"
                              "%y = lathe.add %e, %n : T, T",
                              [](DagPattern& p) {
                                Tensor x = p.any(), y = p.any();
                                p.root(add(exp(x), sqrt(y)));
                                p.replaceWith(add(tanh(y), exp(x)));
                              }),
              HasSubstr("lathe.sqrt of f32[seq, 4] became lathe.tanh of f32[seq, 4]"));
}

// A value that many layers share names some of them.
TEST_F(PatternEdges, AMergedValueNamesFewLines) {
  for (int copies : {3, 8, 12}) {
    std::string body;
    for (int i = 1; i <= copies; ++i) {
      const std::string n = std::to_string(i);
      body += "%e" + n + " = lathe.exp %a : T loc(\"model.cc\":" + n + ":1)\n%n" + n +
              " = lathe.neg %e" + n + " : T loc(\"other.cc\":1:1)\n";
    }
    std::string kept = "%s = lathe.add %n1, %n" + std::to_string(copies) + " : T, T";
    parse(body + kept);
    mergeCommonSubexpressions(*module_);
    int ops = 0;
    module_->walk([&](ExpOp op) {
      Origins origins;
      addOrigins(origins, op.getLoc());
      EXPECT_EQ(int(origins.size()), std::min(copies, 8));
      ++ops;
    });
    EXPECT_EQ(ops, 1);
  }
}

// What is one rewrite as a whole has a number if it changes something, but not on top of those that
// its parts have; a contract is named once.
TEST_F(PatternEdges, AWholeIsNumberedOnce) {
  parse("%y = lathe.exp %a : T");
  RewriteLog log(context_.get(), context_->getOrLoadDialect<LatheDialect>(), {});
  auto change = [&] {
    log.weaken(Contract::Spelling);
    log.weaken(Contract::Spelling);
    log.weaken(Contract::SignedZero);
    (*module_)->setAttr("changed", UnitAttr::get(context_.get()));
  };
  log.asOne("nothing", *module_, [] {});
  EXPECT_TRUE(log.entries().empty());
  log.asOne("all", *module_, [&] { log.asOne("part", *module_, change); });
  ASSERT_EQ(log.entries().size(), 1u);
  EXPECT_EQ(log.entries()[0].what, "part");
  EXPECT_EQ(log.entries()[0].weakened,
            (std::vector<Contract>{Contract::Spelling, Contract::SignedZero}));
}

// What an op gives follows from its operands: of two values, and of one that is read twice.
TEST_F(PatternEdges, ReplacementsOfAnotherKindAreKnownBeforeAMatch) {
  auto why = [&](const Record& record) {
    DagPattern p(context_.get(), "p");
    record(p);
    return whyNeverOfItsType(p);
  };
  EXPECT_THAT(why([](DagPattern& p) {
                Tensor x = p.any(), y = p.any();
                p.root(compare(x, y, Compare::lt));
                p.replaceWith(sigmoid(x));
              }),
              HasSubstr("the op that it replaces is bool"));
  EXPECT_THAT(why([](DagPattern& p) {
                Tensor c = p.any(DType::Bool), x = p.any(DType::F32);
                p.root(select(c, x, x));
                p.replaceWith(compare(x, x, Compare::lt));
              }),
              HasSubstr("the op that it replaces is f32"));
  EXPECT_EQ(why([](DagPattern& p) {
              Tensor x = p.any(), y = p.any();
              p.root(compare(x, y, Compare::lt));
              p.replaceWith(compare(y, x, Compare::gt));
            }),
            "");
  // A dtype that comes with the match may be any, whatever was recorded.
  EXPECT_EQ(why([](DagPattern& p) {
              Tensor x = p.any(DType::BF16);
              p.root(p.anyAttribute(cast(x, DType::F32), "dtype"));
              p.replaceWith(abs(x));
            }),
            "");
}

// Of rewrites and of the ops that they make: either ends it, and the last one that fits is taken.
TEST(RewriteBudgets, EndAtTheirLastRewriteOrOp) {
  RewriteBudget ops(1);
  EXPECT_TRUE(ops.take("p", 2031));
  EXPECT_TRUE(ops.take("p", 1));
  EXPECT_FALSE(ops.exhausted());
  EXPECT_FALSE(ops.take("q", 1));
  EXPECT_FALSE(ops.take("p", 0)) << "nothing more once it is used up";
  EXPECT_EQ(ops.text(), "pattern 'q' was the last of 2 rewrites, which made 2032 ops");
  RewriteBudget rewrites(1);
  for (int i = 0; i < 1008; ++i) EXPECT_TRUE(rewrites.take("p", 1));
  EXPECT_FALSE(rewrites.take("q", 1));
  EXPECT_EQ(rewrites.text(), "pattern 'q' was the last of 1008 rewrites, which made 1008 ops");
}

}  // namespace
}  // namespace lathe
