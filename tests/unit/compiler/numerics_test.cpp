// SPDX-License-Identifier: Apache-2.0
// Contracts, modes, and the proof that a replacement computes the same bits.
#include "lathe/passes/numerics.h"

#include <fstream>
#include <sstream>

#include "gtest/gtest.h"
#include "lathe/ir/context.h"
#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "lathe/lathe.h"
#include "lathe/passes/match.h"
#include "lathe/passes/passes.h"
#include "lathe/runtime/error.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/rewrite/exactness.h"
#include "passes/rewrite/rewrite_log.h"

using namespace mlir;

namespace lathe {
namespace {

TEST(NumericsModes, HaveNames) {
  for (NumericsMode mode : {NumericsMode::Strict, NumericsMode::Relaxed, NumericsMode::Fast})
    EXPECT_EQ(parseNumericsMode(nameOf(mode)), mode);
  try {
    parseNumericsMode("loose");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("'loose' is none of strict, relaxed, fast"),
              std::string::npos);
  }
}

TEST(Contracts, AreListedOnceAndStrictKeepsAll) {
  for (size_t i = 0; i < contractTable().size(); ++i) {
    EXPECT_EQ(size_t(contractTable()[i].contract), i);
    EXPECT_FALSE(mayWeaken(contractTable()[i].contract, NumericsMode::Strict));
    EXPECT_TRUE(mayWeaken(contractTable()[i].contract, NumericsMode::Fast));
  }
  EXPECT_FALSE(mayWeaken(Contract::GainPlacement, NumericsMode::Relaxed));
  EXPECT_TRUE(mayWeaken(Contract::Spelling, NumericsMode::Relaxed));
}

// The page holds the table as the code has it.
TEST(Contracts, AreInTheDocumentation) {
  std::ifstream file(std::string(LATHE_SOURCE_DIR) + "/docs/numerics.md");
  std::stringstream page;
  page << file.rdbuf();
  std::string table =
      "| contract | what it promises | strict | relaxed | fast |\n|---|---|---|---|---|\n";
  for (const ContractRow& row : contractTable()) {
    table += "| `" + std::string(row.name) + "` | " + std::string(row.meaning) + " |";
    for (NumericsMode mode : {NumericsMode::Strict, NumericsMode::Relaxed, NumericsMode::Fast})
      table += mayWeaken(row.contract, mode) ? " may be weakened |" : " kept |";
    table += "\n";
  }
  EXPECT_NE(page.str().find(table), std::string::npos) << "docs/numerics.md should hold:\n"
                                                       << table;
}

// `T` in a body is f32[4, 8], `H` the same in bf16; the function's arguments are %x and %h.
class Exactness : public testing::Test {
 protected:
  Exactness() : context_(createContext()) {}
  void parse(const std::string& body) {
    std::string text = "func.func @f(%x: T, %h: H) {\n" + body + "\nreturn }", typed;
    for (size_t i = 0; i < text.size(); ++i) {
      bool alone = !std::isalnum(text[i ? i - 1 : 0]) && !std::isalnum(text[i + 1]);
      typed += text[i] == 'T' && alone   ? "tensor<4x8xf32>"
               : text[i] == 'H' && alone ? "tensor<4x8xbf16>"
                                         : std::string(1, text[i]);
    }
    module_ = parseModule(*context_, typed, "test");
  }
  Operation* last() {
    Operation* found = nullptr;
    module_->walk([&](Operation* op) {
      if (op->getNumResults()) found = op;
    });
    return found;
  }
  // The reason why the last op of the body cannot become what the pattern builds; "" if it can.
  std::string refusal(const std::string& body, NumericsMode mode,
                      const std::function<void(DagPattern&)>& record) {
    parse(body);
    NumericsScope scope(context_.get(), {.mode = mode});
    DagPattern pattern(context_.get(), "p");
    record(pattern);
    Match match;
    Miss miss;
    if (!pattern.match(last(), match, miss)) return pattern.explain(miss);
    IRRewriter rewriter(context_.get());
    return pattern.build(rewriter, match) ? "" : match.reason();
  }
  std::unique_ptr<MLIRContext> context_;
  OwningOpRef<ModuleOp> module_;
};

void siluOf(DagPattern& p, const std::function<Tensor(DagPattern&, Tensor)>& gate) {
  Tensor x = p.any(), up = p.any();
  p.root(mul(gate(p, x), up));
  p.replaceWith(fused::glu(x, up));
}

const char* const kSilu =
    "%s = lathe.sigmoid %x : T\n %a = lathe.mul %x, %s : T, T\n %y = lathe.mul %a, %x : T, T";

TEST_F(Exactness, TheDecompositionItselfIsExact) {
  auto record = [](DagPattern& p) {
    siluOf(p, [](DagPattern&, Tensor x) { return mul(x, sigmoid(x)); });
  };
  EXPECT_EQ(refusal(kSilu, NumericsMode::Strict, record), "");
}

TEST_F(Exactness, AnotherFormulaIsNot) {
  const char* body =
      "%o = lathe.constant dense<1.0> : tensor<f32>\n %n = lathe.neg %x : T\n"
      " %e = lathe.exp %n : T\n %s = lathe.add %e, %o : T, tensor<f32>\n"
      " %a = lathe.div %x, %s : T, T\n %y = lathe.mul %a, %x : T, T";
  auto record = [](DagPattern& p) {
    siluOf(p, [](DagPattern& q, Tensor x) { return div(x, add(exp(neg(x)), q.constant(1))); });
  };
  EXPECT_EQ(refusal(body, NumericsMode::Strict, record),
            "strict: the fused op would not compute the same bits (lathe.div of f32[4, 8] became "
            "lathe.mul of f32[4, 8])");
  EXPECT_EQ(refusal(body, NumericsMode::Relaxed, record), "");
}

TEST_F(Exactness, OtherRoundingsAreNot) {
  const char* body =
      "%s = lathe.sigmoid %h : H\n %a = lathe.mul %h, %s : H, H\n %y = lathe.mul %a, %h : H, H";
  auto record = [](DagPattern& p) {
    siluOf(p, [](DagPattern&, Tensor x) { return mul(x, sigmoid(x)); });
  };
  EXPECT_EQ(refusal(body, NumericsMode::Strict, record),
            "strict: the fused op would not compute the same bits (lathe.mul of bf16[4, 8] became "
            "lathe.cast of bf16[4, 8])");
}

// A wrong replacement is refused as well, whatever its pattern claims.
TEST_F(Exactness, AWrongConstantIsNot) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any(), up = p.any();
    p.root(mul(mul(x, sigmoid(x)), up));
    p.replaceWith(fused::glu(x, up, Activation::gelu));
  };
  EXPECT_NE(refusal(kSilu, NumericsMode::Strict, record).find("would not compute the same bits"),
            std::string::npos);
}

// The same ops with other attributes: another number, as near as two constants of a match are, the
// other axis, the other order.
TEST_F(Exactness, OtherAttributesAreNot) {
  struct Row {
    const char* body;
    std::function<Tensor(Tensor)> was, is;
  };
  for (const Row& row : std::vector<Row>{
           {"%c = lathe.constant dense<0.3> : tensor<f32>\n %y = lathe.mul %x, %c : T, tensor<f32>",
            [](Tensor x) { return x * 0.3; }, [](Tensor x) { return x * 0.3000001; }},
           {"%m = lathe.reduce_max %x axes [1] keep_dims true : T\n"
            "%y = lathe.mul %x, %m : T, tensor<4x1xf32>",
            [](Tensor x) { return x * reduceMax(x, {1}, true); },
            [](Tensor x) { return x * reduceMax(x, {0}, true); }},
           {"%n = lathe.neg %x : T\n %c = lathe.compare lt %x, %n : T, T\n"
            "%y = lathe.select %c, %x, %n : tensor<4x8xi1>, T, T",
            [](Tensor x) { return select(compare(x, neg(x), Compare::lt), x, neg(x)); },
            [](Tensor x) { return select(compare(x, neg(x), Compare::le), x, neg(x)); }},
       }) {
    for (bool same : {true, false}) {
      auto record = [&](DagPattern& p) {
        Tensor x = p.any();
        p.root(row.was(x));
        p.replaceWith(same ? row.was(x) : row.is(x));
      };
      const std::string told = refusal(row.body, NumericsMode::Strict, record);
      EXPECT_EQ(told.find("would not compute the same bits") == told.npos, same) << row.body << "\n"
                                                                                 << told;
    }
  }
}

TEST_F(Exactness, ADeclaredContractIsRefusedByName) {
  auto record = [](DagPattern& p) {
    Tensor x = p.any();
    p.root(neg(x));
    p.replaceWith([=](Match& m) -> Value {
      if (!m.weakens(Contract::IncomingNan)) return {};
      return m.make("lathe.neg", {m[x]});
    });
  };
  EXPECT_EQ(refusal("%y = lathe.neg %x : T", NumericsMode::Strict, record),
            "strict mode keeps the contract 'incoming-nan': a NaN or infinity that comes in is "
            "treated as the graph says");
  EXPECT_EQ(refusal("%y = lathe.neg %x : T", NumericsMode::Relaxed, record), "");
}

// --- through compile()

Graph glu(DType dtype, bool quotient) {
  Graph g("gate");
  Tensor x = g.input("x", dtype, {4, 8}), up = g.input("up", dtype, {4, 8});
  Tensor active = quotient ? x / (1.0 + exp(-x)) : x * sigmoid(x);
  g.output("y", active * up);
  return g;
}

std::string fusedText(const Graph& g, NumericsMode mode) {
  return irAt(g, "fused", {.backend = "reference", .pipeline = {.mode = mode}});
}
bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

TEST(StrictMode, FusesWhatItProvesAndNoMore) {
  EXPECT_TRUE(has(fusedText(glu(DType::F32, false), NumericsMode::Strict), "glu"));
  EXPECT_FALSE(has(fusedText(glu(DType::F32, true), NumericsMode::Strict), "glu"));
  EXPECT_FALSE(has(fusedText(glu(DType::BF16, false), NumericsMode::Strict), "glu"));
  for (DType dtype : {DType::F32, DType::BF16})
    for (bool quotient : {false, true})
      EXPECT_TRUE(has(fusedText(glu(dtype, quotient), NumericsMode::Relaxed), "glu"));
}

std::vector<std::string> weakenedBy(const Graph& g, NumericsMode mode) {
  CompileRecord record;
  compile(g, {.backend = "reference", .pipeline = {.mode = mode}, .record = &record});
  std::vector<std::string> names;
  for (const CompileRecord::Rewrite& r : record.rewrites)
    names.insert(names.end(), r.weakened.begin(), r.weakened.end());
  return names;
}

TEST(WeakenedContracts, AreInTheRecord) {
  EXPECT_TRUE(weakenedBy(glu(DType::F32, false), NumericsMode::Relaxed).empty());
  // The canonical form says so itself.
  EXPECT_EQ(weakenedBy(glu(DType::F32, true), NumericsMode::Relaxed),
            std::vector<std::string>{"spelling"});
  // The fusion does not: it is compared.
  EXPECT_EQ(weakenedBy(glu(DType::BF16, false), NumericsMode::Relaxed),
            std::vector<std::string>{"intermediate-rounding"});
  for (DType dtype : {DType::F32, DType::BF16})
    for (bool quotient : {false, true})
      EXPECT_TRUE(weakenedBy(glu(dtype, quotient), NumericsMode::Strict).empty());
}

// Two formulas of the sigmoid: the first is NaN where its exponential is infinite.
TEST(WeakenedContracts, NameNansThatAPatternDoesNotSpeakOf) {
  auto weakened = [](bool overflows) {
    Graph g("gate");
    Tensor x = g.input("x", DType::F32, {16, 16}), e = exp(overflows ? x : -x);
    g.output("y", overflows ? e / (e + 1.0) : 1.0 / (e + 1.0));
    CompileRecord record;
    CompileOptions options{.backend = "reference", .record = &record};
    options.pipeline.patterns = [=](MLIRContext* context) {
      PatternLibrary library;
      addPattern(library, context, "mine", [=](DagPattern& p) {
        Tensor y = p.any(), f = exp(overflows ? y : -y);
        p.root(overflows ? f / (f + 1.0) : 1.0 / (f + 1.0));
        p.replaceWith(sigmoid(y));
      });
      return library;
    };
    compile(g, options);
    for (const CompileRecord::Rewrite& r : record.rewrites)
      if (r.what == "mine") return r.weakened;
    return std::vector<std::string>{"not applied"};
  };
  EXPECT_EQ(weakened(true), (std::vector<std::string>{"spelling", "incoming-nan"}));
  EXPECT_EQ(weakened(false), std::vector<std::string>{"spelling"});
}

// A pattern that would have weakened a contract and gave up.
TEST(WeakenedContracts, AreNotThoseOfAnAttemptThatWasGivenUp) {
  CompileRecord record;
  CompileOptions options{.backend = "reference", .record = &record};
  int attempts = 0;
  options.pipeline.patterns = [&](MLIRContext* context) {
    PatternLibrary library;
    addPattern(library, context, "gives-up", [&](DagPattern& p) {
      p.root(mul(p.any(), p.any()));
      p.replaceWith([&](Match& m) -> Value {
        attempts += m.weakens(Contract::MaskFill);
        return m.decline("not this one");
      });
    });
    return library;
  };
  compile(glu(DType::F32, false), options);
  EXPECT_GT(attempts, 0);
  ASSERT_FALSE(record.rewrites.empty());
  for (const CompileRecord::Rewrite& r : record.rewrites) EXPECT_TRUE(r.weakened.empty()) << r.what;
}

// Trials are no rewrites: with and without an audit the numbers are the same.
TEST(WeakenedContracts, AnAuditDoesNotCount) {
  Graph g = glu(DType::BF16, true);
  CompileRecord record;
  compile(g, {.backend = "reference", .record = &record});
  std::vector<uint64_t> attempts;
  for (const CompileRecord::Rewrite& r : record.rewrites) {
    EXPECT_EQ(r.number, attempts.size() + 1);
    attempts.push_back(r.attempt);
  }
  EXPECT_TRUE(std::is_sorted(attempts.begin(), attempts.end()));
  auto context = createContext();
  auto module = parseModule(*context, g.text(), "gate");
  RewriteLog log(context.get(), context->getOrLoadDialect<LatheDialect>(), {});
  runPipeline(*module, Stage::Fused, {});
  ASSERT_LE(log.entries().size(), record.rewrites.size());
  for (size_t i = 0; i < log.entries().size(); ++i) {
    EXPECT_EQ(log.entries()[i].what, record.rewrites[i].what);
    EXPECT_EQ(log.entries()[i].attempt, record.rewrites[i].attempt);
  }
}

}  // namespace
}  // namespace lathe
