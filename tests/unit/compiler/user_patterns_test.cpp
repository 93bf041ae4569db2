// SPDX-License-Identifier: Apache-2.0
// Builder patterns as a user of the installed package writes them: PipelineOptions::patterns.
#include <algorithm>
#include <map>

#include <lathe/lathe.h>
#include <lathe/match.h>

#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;

using Record = std::function<void(DagPattern&)>;

PatternsFor one(Record record) {
  return [record](mlir::MLIRContext* context) {
    PatternLibrary library;
    addPattern(library, context, "mine", record);
    return library;
  };
}

// How often the pattern was applied to a graph with x: f32[rows, 4] and w: f32[4, 4].
class UserPatternsTest : public testing::Test {
 protected:
  using Body = std::function<Tensor(Graph&, const Tensor& x, const Tensor& w)>;

  std::string ir(const Body& body, const CompileOptions& options) {
    Graph g;
    Tensor x = g.input("x", DType::F32, {g.dim("rows", 1, 64), 4});
    g.output("y", body(g, x, g.weight("w", DType::F32, {4, 4})));
    return irAt(g, "fused", options);
  }
  int applied(const Body& body, const Record& record) {
    CompileRecord told;
    text_ =
        ir(body, {.backend = "reference", .pipeline = {.patterns = one(record)}, .record = &told});
    int count = 0;
    for (auto& rewrite : told.rewrites) count += rewrite.what == "mine";
    return count;
  }
  bool has(const std::string& part) const { return text_.find(part) != std::string::npos; }

  std::string text_;
};

TEST_F(UserPatternsTest, LiteralsAreMatchedAndBuilt) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(tanh(x * 0.5) + 1.0);
    p.replaceWith(sigmoid(x) * 2.0);
  };
  auto half = [](double factor) {
    return [factor](Graph&, const Tensor& x, const Tensor&) { return tanh(x * factor) + 1.0; };
  };
  EXPECT_EQ(applied(half(0.5), record), 1);
  EXPECT_TRUE(has("lathe.sigmoid"));
  EXPECT_TRUE(has("dense<2.000000e+00> : tensor<f32>"));
  EXPECT_EQ(applied(half(0.25), record), 0);
}

TEST_F(UserPatternsTest, LiteralsOnEitherSideOfEveryOperator) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(1.0 - (3.0 / (2.0 + x) - 4.0) / 5.0);
    p.replaceWith(x * 1.0);
    p.approximate();
  };
  EXPECT_EQ(applied([](Graph&, const Tensor& x,
                       const Tensor&) { return 1.0 - (3.0 / (2.0 + x) - 4.0) / 5.0; },
                    record),
            1);
}

TEST_F(UserPatternsTest, APatternThatMatchesItsOwnReplacementIsAnError) {
  auto swap = [](DagPattern& p) {
    Tensor x = p.any(), y = p.any();
    p.root(mul(x, y));
    p.replaceWith(mul(y, x));
  };
  try {
    applied([](Graph&, const Tensor& x, const Tensor&) { return x * exp(x); }, swap);
    FAIL() << "it went on for ever, or not at all";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("pattern 'mine' was the last of"), std::string::npos)
        << e.what();
  }
}

TEST_F(UserPatternsTest, AReplacementCannotUseWhatItReplaces) {
  auto wrap = [](DagPattern& p) {
    Tensor root = exp(p.any());
    p.root(root);
    p.replaceWith(tanh(root));
  };
  auto itself = [](DagPattern& p) {
    Tensor root = exp(p.any());
    p.root(root);
    p.replaceWith(root);
  };
  for (const Record& record : {Record(wrap), Record(itself)}) {
    try {
      applied([](Graph&, const Tensor& x, const Tensor&) { return exp(x); }, record);
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("the value that it replaces"), std::string::npos)
          << e.what();
    }
  }
}

TEST_F(UserPatternsTest, AxesCountFromTheBackOfTheMatchedValue) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(exp(reduceSum(x, {-1}, true)));
    p.replaceWith(reduceMax(x, {-1}, true));
    p.approximate();
  };
  auto along = [](int64_t axis) {
    return [axis](Graph&, const Tensor& x, const Tensor&) {
      return x + exp(reduceSum(x, {axis}, true));
    };
  };
  EXPECT_EQ(applied(along(1), record), 1);
  EXPECT_TRUE(has("lathe.reduce_max"));
  EXPECT_EQ(applied(along(0), record), 0);
}

TEST_F(UserPatternsTest, PlaceholdersCanAskForDTypeRankSizeAndWeight) {
  auto hits = [&](const std::function<Tensor(DagPattern&)>& second) {
    return applied([](Graph&, const Tensor& x, const Tensor& w) { return matmul(exp(x), exp(w)); },
                   [&](DagPattern& p) {
                     Tensor w = second(p);
                     p.root(exp(w));
                     p.replaceWith(abs(w));
                     p.approximate();
                   });
  };
  EXPECT_EQ(hits([](DagPattern& p) { return p.any(); }), 2);
  EXPECT_EQ(hits([](DagPattern& p) { return p.weight(p.any()); }), 1);
  EXPECT_EQ(hits([](DagPattern& p) { return p.any(DType::F32); }), 2);
  EXPECT_EQ(hits([](DagPattern& p) { return p.any(DType::BF16); }), 0);
  EXPECT_EQ(hits([](DagPattern& p) { return p.rank(p.any(), 2); }), 2);
  EXPECT_EQ(hits([](DagPattern& p) { return p.rank(p.any(), 3); }), 0);
  EXPECT_EQ(hits([](DagPattern& p) { return p.dim(p.any(), -1, 4); }), 2);
  EXPECT_EQ(hits([](DagPattern& p) { return p.dim(p.any(), 0, 4); }), 1);
  EXPECT_EQ(hits([](DagPattern& p) { return p.dim(p.any(), 7, 4); }), 0);
  // Several conditions on one tensor all count.
  EXPECT_EQ(hits([](DagPattern& p) { return p.rank(p.weight(p.any()), 3); }), 0);
}

TEST_F(UserPatternsTest, ConditionsHoldForChoicesToo) {
  auto body = [](Graph&, const Tensor& x, const Tensor&) {
    Tensor s = sigmoid(x);
    return exp(s) + s;
  };
  for (bool once : {false, true})
    EXPECT_EQ(applied(body,
                      [&](DagPattern& p) {
                        Tensor x = p.any();
                        Tensor choice = p.anyOf({p.mayEscape(sigmoid(x)), tanh(x)});
                        p.root(exp(once ? p.oneUse(choice) : choice));
                        p.replaceWith(abs(x));
                        p.approximate();
                      }),
              once ? 0 : 1);
}

TEST_F(UserPatternsTest, AMatchedConstantBecomesAnAttribute) {
  EXPECT_EQ(applied([](Graph&, const Tensor& x,
                       const Tensor&) { return x * rsqrt(reduceMean(x * x, {-1}, true) + 0.125); },
                    [](DagPattern& p) {
                      Tensor x = p.any();
                      Tensor epsilon =
                          p.constantWhere("an epsilon", [](double v) { return v >= 0; });
                      p.root(x * rsqrt(reduceMean(x * x, {-1}, true) + epsilon));
                      p.replaceWith(p.emit("lathe.rms_norm", {x, Tensor()},
                                           {{"epsilon", p.captured(epsilon)}},
                                           std::source_location::current()));
                    }),
            1);
  EXPECT_TRUE(has("epsilon 1.250000e-01")) << text_;
}

TEST_F(UserPatternsTest, RequirementsSeeTheWholeMatch) {
  auto record = [](DagPattern& p) {
    Tensor a = p.constantWhere("a number", [](double) { return true; });
    Tensor b = p.constantWhere("a number", [](double) { return true; });
    Tensor x = p.any();
    p.require("b twice a", [=](const Match& m) { return m.constant(b) == 2 * m.constant(a); });
    p.root(tanh(x * a) * b);
    p.replaceWith(x);
    p.approximate();
  };
  auto body = [](double factor) {
    return [factor](Graph&, const Tensor& x, const Tensor&) { return tanh(x * 3.0) * factor + x; };
  };
  EXPECT_EQ(applied(body(6), record), 1);
  EXPECT_EQ(applied(body(7), record), 0);
}

// relu(h) * relu(h) * x contains the built-in gate relu(h) * u.
TEST_F(UserPatternsTest, AUsersFusionComesBeforeTheBuiltInOnes) {
  EXPECT_EQ(applied(
                [](Graph&, const Tensor& x, const Tensor& w) {
                  Tensor h = matmul(x, w), relu = max(h, scalarLike(h, 0));
                  return relu * relu * x;
                },
                [](DagPattern& p) {
                  Tensor h = p.any(), up = p.any();
                  Tensor relu = max(h, p.constant(0));
                  p.root(relu * relu * up);
                  p.replaceWith(abs(h) * up);
                  p.approximate();
                }),
            1);
}

// Right for one axis, which the pattern does not ask for.
TEST_F(UserPatternsTest, WhatIsRightElsewhereIsHeldToEveryMatch) {
  CompileRecord told;
  told.wantMisses = true;
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(cumsum(x, 0));
    p.replaceWith(cumsum(x, -1));
  };
  const std::string kept =
      ir([](Graph&, const Tensor& x, const Tensor&) { return cumsum(x, 0); },
         {.backend = "reference", .pipeline = {.patterns = one(record)}, .record = &told});
  EXPECT_NE(kept.find("axis 0"), std::string::npos) << kept;
  ASSERT_EQ(told.misses.size(), 1u);
  EXPECT_NE(told.misses[0].reason.find("the values differ on a sample: element ["),
            std::string::npos)
      << told.misses[0].reason;
}

// The author of a pattern hears of what it declined, even where the op is then taken by another.
TEST_F(UserPatternsTest, WhatIsDeclinedIsToldThoughABuiltInFusionTakesTheOp) {
  auto declines = [](DagPattern& p) {
    Tensor x = p.any(), y = p.any();
    p.root(mul(x * sigmoid(x), y));
    p.replaceWith([](Match& m) { return m.decline("not on a Monday"); });
  };
  auto gated = [](Graph&, const Tensor& x, const Tensor&) { return nn::silu(x) * exp(x); };
  CompileRecord told;
  told.wantMisses = true;
  text_ =
      ir(gated, {.backend = "reference", .pipeline = {.patterns = one(declines)}, .record = &told});
  EXPECT_TRUE(has("lathe.glu")) << text_;
  std::vector<std::string> reasons;
  for (const CompileRecord::Miss& miss : told.misses)
    if (miss.pattern == "mine") reasons.push_back(miss.reason);
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_NE(reasons[0].find("not on a Monday"), std::string::npos) << reasons[0];
}

// Nor does a larger built-in fusion that nearly took in the op's user hide what stopped the
// pattern.
TEST_F(UserPatternsTest, WhatStopsItIsToldBesideWhatItsUserIsMeantFor) {
  auto wantsTwo = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(exp(x) + p.constant(2));
    p.replaceWith(exp(x) + 2.0);
  };
  Graph g;
  const Tensor q = g.input("q", DType::F32, {2, 3, 4}), k = g.input("k", DType::F32, {2, 5, 4});
  const Tensor scores = matmul(q, swapAxes(k, 1, 2)) * -0.5;
  g.output("y", matmul(fused::softmax(scores, 2), exp(k) + 3.0));
  CompileRecord told;
  told.wantMisses = true;
  compile(g, {.backend = "reference", .pipeline = {.patterns = one(wantsTwo)}, .record = &told});
  std::map<std::string, std::string> reasons;
  for (const CompileRecord::Miss& miss : told.misses) reasons[miss.pattern] = miss.reason;
  EXPECT_NE(reasons["attention"].find("something else than a positive constant"), std::string::npos)
      << reasons["attention"];
  EXPECT_NE(reasons["mine"].find("wanted the constant 2"), std::string::npos) << reasons["mine"];
}

// So does the author of one whose ops all match and whose condition does not hold.
TEST_F(UserPatternsTest, AConditionThatFailsIsToldThoughABuiltInFusionTakesTheOp) {
  auto never = [](DagPattern& p) {
    Tensor x = p.any(), y = p.any();
    p.root(mul(x * sigmoid(x), y));
    p.require("the day is Monday", [](const Match&) { return false; });
    p.replaceWith(x);
  };
  // The second is the pattern's spelling only behind canonicalization.
  for (nn::SigmoidForm form : {nn::SigmoidForm::Op, nn::SigmoidForm::Spelled}) {
    CompileRecord told;
    told.wantMisses = true;
    text_ = ir([&](Graph&, const Tensor& x, const Tensor&) { return nn::silu(x, form) * exp(x); },
               {.backend = "reference", .pipeline = {.patterns = one(never)}, .record = &told});
    EXPECT_TRUE(has("lathe.glu")) << text_;
    EXPECT_EQ(std::ranges::count_if(told.misses,
                                    [](const CompileRecord::Miss& miss) {
                                      return miss.pattern == "mine" &&
                                             miss.reason.find("the day is Monday") !=
                                                 std::string::npos;
                                    }),
              1);
  }
}

// What a condition refused of the graph as it was written, and takes of the canonical one, is a
// rewrite and no miss.
TEST_F(UserPatternsTest, WhatIsAppliedInTheEndIsNotToldAsAMiss) {
  auto squares = [](DagPattern& p) {
    Tensor x = p.any(), y = p.any();
    p.root(x * y);
    p.require("both are one value", [=](const Match& m) { return m[x] == m[y]; });
    p.replaceWith(abs(x));
    p.approximate();
  };
  CompileRecord told;
  told.wantMisses = true;
  text_ = ir([](Graph&, const Tensor& x, const Tensor&) { return exp(x) * exp(x); },
             {.backend = "reference", .pipeline = {.patterns = one(squares)}, .record = &told});
  EXPECT_TRUE(has("lathe.abs")) << text_;
  for (const CompileRecord::Miss& miss : told.misses)
    EXPECT_NE(miss.pattern, "mine") << miss.reason;
}

// A pattern is written as the model is: with the functions of nn::.
TEST_F(UserPatternsTest, FunctionsOfNnAreMatched) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any(DType::F32);
    p.root(nn::gelu(x * 2.0));
    p.replaceWith(nn::relu(x));
    p.approximate();
  };
  EXPECT_EQ(
      applied([](Graph&, const Tensor& x, const Tensor&) { return nn::gelu(x * 2.0); }, record), 1);
  // What is cast to f32 in between is f32, whatever comes in; softmax asks only for a dtype.
  auto cast32 = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(nn::softmax(nn::geluTanh(cast(x, DType::F32))));
    p.replaceWith(cast(x, DType::F32));
    p.approximate();
  };
  EXPECT_EQ(applied(
                [](Graph&, const Tensor& x, const Tensor&) {
                  return cast(nn::softmax(nn::geluTanh(cast(cast(x, DType::F64), DType::F32))),
                              DType::F32);
                },
                cast32),
            1);
  expectError(ErrorCode::InvalidArgument, "a dtype is unknown in a pattern; ask for one with", [&] {
    applied([](Graph&, const Tensor& x, const Tensor&) { return exp(x); },
            [](DagPattern& p) { p.root(nn::gelu(p.any())); });
  });
}

TEST_F(UserPatternsTest, DTypesFollowThroughOps) {
  std::vector<std::string> dtypes;
  applied([](Graph&, const Tensor& x, const Tensor&) { return x + 1.0; },
          [&](DagPattern& p) {
            Tensor x = p.any(DType::BF16), any = p.any(), mask = p.any(DType::Bool);
            auto tell = [&](const Tensor& t) {
              try {
                dtypes.emplace_back(nameOf(t.dtype()));
              } catch (const Error&) {
                dtypes.emplace_back("unknown");
              }
            };
            dtypes.clear();
            for (const Tensor& t :
                 {x * 2.0, any * 2.0, compare(any, any, Compare::lt), select(any, x, x),
                  select(mask, any, x), reduceMax(x, {-1}), argmax(any, -1), topK(x, 2).second,
                  matmul(x, any), cast(any, DType::F16), p.optional(exp(x), x),
                  p.optional(cast(x, DType::F32), x), reshape(x, {4}), gather(x, any, 0)})
              tell(t);
            p.root(exp(x));
            p.replaceWith(exp(x));
          });
  EXPECT_EQ(dtypes,
            (std::vector<std::string>{"bf16", "unknown", "bool", "bf16", "bf16", "bf16", "i64",
                                      "i64", "bf16", "f16", "bf16", "unknown", "bf16", "bf16"}));
}

TEST_F(UserPatternsTest, WhatIsRightNowhereIsRefusedWhereverItWouldMatch) {
  auto body = [](Graph&, const Tensor& x, const Tensor&) { return x + 1.0; };  // no match
  auto refused = [&](const std::string& words, const Record& record) {
    expectError(ErrorCode::InvalidArgument, words, [&] { applied(body, record); });
  };
  auto wrong = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(tanh(x));
    p.replaceWith(erf(x));
  };
  refused("pattern 'mine': element [0, 0] is ", wrong);
  refused(" where its placeholders are f32[3, 4]; mend the replacement", wrong);
  refused("or call approximate() if other numbers are meant", wrong);
  refused("pattern 'mine': the replacement is f32[3], the op is f32[3, 1] where",
          [](DagPattern& p) {
            Tensor x = p.any();
            p.root(reduceSum(x, {-1}, true));
            p.replaceWith(reduceSum(x, {-1}));
          });
  // Of products, indices, masks and weights, which equal shapes do not fit.
  refused("pattern 'mine': element [", [](DagPattern& p) {
    Tensor x = p.any(), w = p.weight(p.rank(p.any(), 2));
    p.root(matmul(x, w));
    p.replaceWith(matmul(x, w * 2.0));
  });
  refused("pattern 'mine': element [", [](DagPattern& p) {
    Tensor table = p.rank(p.any(), 2), ids = p.any(DType::I64);
    p.root(gather(table, ids, 0));
    p.replaceWith(-gather(table, ids, 0));
  });
  refused("pattern 'mine': element [", [](DagPattern& p) {
    Tensor c = p.any(DType::Bool), x = p.any(), y = p.any();
    p.root(select(c, x, y));
    p.replaceWith(select(logicalNot(c), x, y));
  });
  refused("i64[", [](DagPattern& p) {
    Tensor x = p.any(DType::I64);
    p.root(-x);
    p.replaceWith(x * x);
  });
  // Whatever function builds it.
  refused("pattern 'mine': element [", [](DagPattern& p) {
    Tensor x = p.any();
    p.root(exp(x));
    p.replaceWith([=](Match& m) { return m.make("lathe.abs", {m[x]}); });
  });
}

TEST_F(UserPatternsTest, WhatIsRightForSomeSizesOrTypesIsNotRefused) {
  auto body = [](Graph&, const Tensor& x, const Tensor&) { return x + 1.0; };
  auto mean = [](int64_t width, bool asks) {
    return [=](DagPattern& p) {
      Tensor x = p.any();
      if (asks) p.dim(x, -1, width);
      p.root(reduceSum(x, {-1}) * (1.0 / double(width)));
      p.replaceWith(reduceMean(x, {-1}));
    };
  };
  EXPECT_EQ(applied(body, mean(4, false)), 0);
  EXPECT_EQ(applied(body, mean(4096, true)), 0);
  expectError(ErrorCode::InvalidArgument, "ask with dtype(), rank(), dim()",
              [&] { applied(body, mean(4096, false)); });
  // Of matrices alone; of integers alone; of whatever a number is that the pattern asks for.
  EXPECT_EQ(applied(body,
                    [](DagPattern& p) {
                      Tensor x = p.any();
                      p.root(reduceSum(x, {1}));
                      p.replaceWith(reduceSum(x, {-1}));
                    }),
            0);
  EXPECT_EQ(applied(body,
                    [](DagPattern& p) {
                      Tensor x = p.any();
                      p.root(floor(cast(x, DType::F64)));
                      p.replaceWith(cast(x, DType::F64));
                    }),
            0);
  EXPECT_EQ(applied(body,
                    [](DagPattern& p) {
                      Tensor x = p.any();
                      Tensor c = p.constantWhere("a divisor", [](double v) { return v > 1; });
                      p.root(x / c);
                      p.replaceWith([=](Match& m) {
                        return m.make("lathe.mul", {m[x], m.scalar(1 / m.constant(c), m[x])});
                      });
                    }),
            0);
  // Of either of two alternatives, in whatever order they are given.
  for (bool turned : {false, true})
    EXPECT_EQ(applied(body,
                      [=](DagPattern& p) {
                        Tensor wide = cast(p.any(), DType::F32), whole = cast(p.any(), DType::I32);
                        p.root(neg(turned ? p.anyOf({whole, wide}) : p.anyOf({wide, whole})));
                        p.replaceWith(neg(wide));
                      }),
              0);
}

TEST_F(UserPatternsTest, OtherValuesAreNotPutInPlaceUnlessOnPurpose) {
  auto body = [](Graph&, const Tensor& x, const Tensor&) { return tanh(x); };
  auto record = [](bool onPurpose) {
    return [onPurpose](DagPattern& p) {
      Tensor x = p.any();
      p.root(tanh(x));
      p.replaceWith(erf(x));
      if (onPurpose) p.approximate();
    };
  };
  for (NumericsMode mode : {NumericsMode::Relaxed, NumericsMode::Strict, NumericsMode::Fast})
    expectError(ErrorCode::InvalidArgument, "call approximate() if other numbers are meant", [&] {
      ir(body,
         {.backend = "reference", .pipeline = {.mode = mode, .patterns = one(record(false))}});
    });
  CompileRecord told;
  const std::string changed = ir(
      body, {.backend = "reference", .pipeline = {.patterns = one(record(true))}, .record = &told});
  EXPECT_NE(changed.find("lathe.erf"), std::string::npos);
  auto mine = std::find_if(told.rewrites.begin(), told.rewrites.end(),
                           [](auto& rewrite) { return rewrite.what == "mine"; });
  ASSERT_NE(mine, told.rewrites.end());
  EXPECT_EQ(mine->weakened, std::vector<std::string>{"approximation"});
  // Nothing is approximate in strict mode, whoever says so.
  const std::string strict =
      ir(body, {.backend = "reference",
                .pipeline = {.mode = NumericsMode::Strict, .patterns = one(record(true))}});
  EXPECT_EQ(strict.find("lathe.erf"), std::string::npos);
}

TEST_F(UserPatternsTest, RewritesStopAndSkip) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(exp(x));
    p.replaceWith(abs(x));
    p.approximate();
  };
  auto body = [](Graph&, const Tensor& x, const Tensor&) { return exp(tanh(exp(x))); };
  CompileRecord told;
  CompileOptions options{
      .backend = "reference", .pipeline = {.patterns = one(record)}, .record = &told};
  EXPECT_EQ(ir(body, options).find("lathe.exp"), std::string::npos);
  auto first = std::find_if(told.rewrites.begin(), told.rewrites.end(),
                            [](auto& rewrite) { return rewrite.what == "mine"; });
  ASSERT_NE(first, told.rewrites.end());
  auto both = [](const std::string& text) {
    return text.find("lathe.exp") != std::string::npos &&
           text.find("lathe.abs") != std::string::npos;
  };
  CompileOptions stop{.backend = "reference", .pipeline = {.patterns = one(record)}}, skip = stop;
  stop.stopAfterRewrite = first->number;
  EXPECT_TRUE(both(ir(body, stop)));
  skip.skipAttempt = first->attempt;
  EXPECT_TRUE(both(ir(body, skip)));
}

TEST_F(UserPatternsTest, ExceptionsOfAPatternBecomeErrors) {
  auto body = [](Graph&, const Tensor& x, const Tensor&) { return exp(x); };
  auto fails = [&](const std::string& words, const Record& record) {
    expectError(ErrorCode::InvalidArgument, words, [&] { applied(body, record); });
  };
  fails("pattern 'mine': from the replacement", [](DagPattern& p) {
    p.root(exp(p.any()));
    p.replaceWith([](Match&) -> mlir::Value { throw std::runtime_error("from the replacement"); });
  });
  fails("pattern 'mine': from the condition", [](DagPattern& p) {
    Tensor x = p.where(p.any(), "luck",
                       [](mlir::Value) -> bool { throw std::runtime_error("from the condition"); });
    p.root(exp(x));
    p.replaceWith(x);
  });
  fails("expected a tensor matched to a constant", [](DagPattern& p) {
    Tensor x = p.any();
    p.root(exp(x));
    p.replaceWith([=](Match& m) { return m.constant(x) > 0 ? m[x] : mlir::Value(); });
  });
  fails("a dtype is unknown in a pattern", [](DagPattern& p) { p.any().dtype(); });
}

TEST_F(UserPatternsTest, IncompletePatternsAreErrors) {
  auto body = [](Graph&, const Tensor& x, const Tensor&) { return exp(x); };
  auto fails = [&](const std::string& words, const Record& record) {
    expectError(ErrorCode::InvalidArgument, words, [&] { applied(body, record); });
  };
  fails("pattern 'mine' has no root; call root()", [](DagPattern& p) { exp(p.any()); });
  fails("pattern 'mine' has no replacement; call replaceWith()",
        [](DagPattern& p) { p.root(exp(p.any())); });
  fails("replaceWith() before root()", [](DagPattern& p) { p.replaceWith(exp(p.any())); });
  fails("any() after root()", [](DagPattern& p) {
    p.root(exp(p.any()));
    p.replaceWith(p.any());
  });
  fails("it has a root already", [](DagPattern& p) {
    Tensor x = p.any(), first = exp(x), second = abs(x);
    p.root(first);
    p.root(second);
  });
  fails("anyAttribute() of a placeholder or a choice, expected an op",
        [](DagPattern& p) { p.anyAttribute(p.any(), "axis"); });
  fails("'lathe.exp' has no attribute 'axis'; it has none",
        [](DagPattern& p) { p.anyAttribute(exp(p.any()), "axis"); });
  fails("'lathe.reduce_sum' has no attribute 'axis'; it has axes, keep_dims",
        [](DagPattern& p) { p.anyAttribute(reduceSum(p.any(), {0}), "axis"); });
  fails("the replacement uses a tensor that is no part of what root() matches", [](DagPattern& p) {
    Tensor x = p.any(), other = p.any();
    p.root(exp(x));
    p.replaceWith(x + other);
  });
  fails("the replacement is a tensor that is no part", [](DagPattern& p) {
    Tensor x = p.any(), other = p.any();
    p.root(exp(x));
    p.replaceWith(other);
  });
  fails("sameDim() compares a tensor that is no part", [](DagPattern& p) {
    Tensor x = p.any(), other = p.any();
    p.sameDim(x, 0, other, 0);
    p.root(exp(x));
    p.replaceWith(x);
  });
  fails("oneUse() of a tensor recorded after root()", [](DagPattern& p) {
    Tensor x = p.any();
    p.root(exp(x));
    p.oneUse(abs(x));
  });
}

TEST_F(UserPatternsTest, PatternsOfAnotherContextOrNoneAreErrors) {
  auto body = [](Graph&, const Tensor& x, const Tensor&) { return exp(x); };
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(exp(x));
    p.replaceWith(abs(x));
    p.approximate();
  };
  PatternLibrary kept;
  CompileOptions keep{.backend = "reference",
                      .pipeline = {.patterns = [&](mlir::MLIRContext* context) {
                        return kept = one(record)(context);
                      }}};
  Graph alive;  // its context outlives the use of its patterns
  alive.output("y", exp(alive.input("x", DType::F32, {4})));
  irAt(alive, "fused", keep);
  expectError(ErrorCode::InvalidArgument, "pattern 'mine' was recorded for another context", [&] {
    ir(body, {.backend = "reference", .pipeline = {.patterns = [&](auto*) { return kept; }}});
  });
  expectError(ErrorCode::InvalidArgument, "the list of patterns holds a null pointer", [&] {
    ir(body, {.backend = "reference",
              .pipeline = {.patterns = [](auto*) { return PatternLibrary{nullptr}; }}});
  });
}

}  // namespace
}  // namespace lathe
