// SPDX-License-Identifier: Apache-2.0
// Whether values are computed alike, asked of two of them directly: what makes an op another one,
// which orders do not, and how a difference is told.
#include "passes/rewrite/exactness.h"

#include <gtest/gtest.h>

#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/rewrite/rewrite_log.h"

using namespace mlir;

namespace lathe {
namespace {

class ExactDifference : public testing::Test {
 protected:
  ExactDifference() : context_(createContext()) {}

  // Of a body that returns values and, in the same order, what replaces them. The words of the
  // difference, with "rounds: " in front where it rounds otherwise; "" if there is none.
  std::string told(const std::string& body, const std::string& results) {
    const std::string text = R"(
      func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>, %h: tensor<4xbf16>, %n: tensor<4xi64>,
                   %a: tensor<4xi1>, %b: tensor<4xi1>, %c: tensor<4xi1>) -> ()" +
                             results.substr(results.find(':') + 1) + ") {\n" + body + "\nreturn " +
                             results + " }";
    OwningOpRef<ModuleOp> module = parseModule(*context_, text, "test");
    auto f = *module->getOps<func::FuncOp>().begin();
    Operation* end = f.getBody().front().getTerminator();
    const unsigned half = end->getNumOperands() / 2;
    std::vector<std::pair<Value, Value>> pairs;
    for (unsigned i = 0; i < half; ++i)
      pairs.emplace_back(end->getOperand(i), end->getOperand(half + i));
    auto behind = [&](unsigned first) {
      llvm::SmallSetVector<Operation*, 16> ops;
      SmallVector<Value> work(end->getOperands().slice(first, half));
      while (!work.empty())
        if (Operation* def = work.pop_back_val().getDefiningOp(); def && ops.insert(def))
          work.append(def->operand_begin(), def->operand_end());
      return ops.takeVector();
    };
    NumericsPolicy policy;
    const auto difference = exactDifference(policy, pairs, behind(0), behind(half));
    return difference ? (difference->rounds ? "rounds: " : "") + difference->what : "";
  }
  std::unique_ptr<MLIRContext> context_;
};

TEST_F(ExactDifference, OperandsOfASumHaveNoOrderThoseOfADifferenceHave) {
  for (const char* op : {"add", "mul", "max", "sub", "div"}) {
    const std::string name = std::string("lathe.") + op, types = " : tensor<4xf32>, tensor<4xf32>";
    const std::string body =
        "%0 = " + name + " %x, %y" + types + "\n%1 = " + name + " %y, %x" + types;
    const bool ordered = op == std::string("sub") || op == std::string("div");
    EXPECT_EQ(told(body, "%0, %1 : tensor<4xf32>, tensor<4xf32>"),
              ordered ? "a value from outside of f32[4] became a value from outside of f32[4]" : "")
        << op;
  }
}

TEST_F(ExactDifference, AttributesMakeAnotherOp) {
  for (const char* kind : {"lt", "le"}) {
    const std::string body =
        "%0 = lathe.compare lt %x, %y : tensor<4xf32>, tensor<4xf32>\n%1 = lathe.compare " +
        std::string(kind) + " %x, %y : tensor<4xf32>, tensor<4xf32>";
    EXPECT_EQ(told(body, "%0, %1 : tensor<4xi1>, tensor<4xi1>"),
              kind == std::string("lt") ? "" : "lathe.compare of bool[4] has other attributes");
  }
}

// The numbers that are chosen and their places are of one dtype here.
TEST_F(ExactDifference, ResultsOfOneOpAreNotEachOther) {
  const std::string body =
      "%0, %1 = lathe.top_k %n k 2 : tensor<4xi64>\n%2, %3 = lathe.top_k %n k 2 : tensor<4xi64>";
  const std::string types = " : tensor<2xi64>, tensor<2xi64>";
  EXPECT_EQ(told(body, "%0, %2" + types), "");
  EXPECT_EQ(told(body, "%1, %3" + types), "");
  EXPECT_NE(told(body, "%0, %3" + types), "");
  EXPECT_NE(told(body, "%1, %2" + types), "");
}

TEST_F(ExactDifference, EveryValueThatIsReplacedIsCompared) {
  const std::string body =
      "%0 = lathe.exp %x : tensor<4xf32>\n%1 = lathe.neg %y : tensor<4xf32>\n"
      "%2 = lathe.exp %x : tensor<4xf32>\n%3 = lathe.abs %y : tensor<4xf32>";
  const std::string types = " : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>";
  EXPECT_EQ(told(body, "%0, %1, %2, %1" + types), "");
  EXPECT_EQ(told(body, "%0, %1, %2, %3" + types), "lathe.neg of f32[4] became lathe.abs of f32[4]");
  EXPECT_EQ(told(body, "%1, %0, %3, %2" + types), "lathe.neg of f32[4] became lathe.abs of f32[4]");
}

// However they are put together, and however often a condition stands there.
TEST_F(ExactDifference, ConditionsAreASet) {
  for (const char* op : {"logical_and", "logical_or"}) {
    const std::string types = " : tensor<4xi1>, tensor<4xi1>\n";
    auto both = [&](const char* to, const char* l, const char* r) {
      return std::string(to) + " = lathe." + op + " " + l + ", " + r + types;
    };
    const std::string pair = "%0, %1 : tensor<4xi1>, tensor<4xi1>";
    EXPECT_EQ(told(both("%p", "%a", "%b") + both("%0", "%p", "%c") + both("%q", "%c", "%b") +
                       both("%1", "%a", "%q"),
                   pair),
              "")
        << op;
    EXPECT_EQ(told(both("%p", "%a", "%b") + both("%q", "%b", "%c") + both("%0", "%p", "%q") +
                       both("%r", "%a", "%b") + both("%1", "%r", "%c"),
                   pair),
              "")
        << op;
    EXPECT_NE(told(both("%0", "%a", "%b") + both("%p", "%a", "%b") + both("%1", "%p", "%c"), pair),
              "")
        << op;
  }
  EXPECT_EQ(told("%0 = lathe.logical_and %a, %b : tensor<4xi1>, tensor<4xi1>\n"
                 "%1 = lathe.logical_or %a, %b : tensor<4xi1>, tensor<4xi1>",
                 "%0, %1 : tensor<4xi1>, tensor<4xi1>"),
            "lathe.logical_and of bool[4] became lathe.logical_or of bool[4]");
}

TEST_F(ExactDifference, OtherRoundingsAreToldFromOtherFormulas) {
  const std::string types = " : tensor<4xf32>, tensor<4xf32>";
  EXPECT_EQ(told("%0 = lathe.add %x, %x : tensor<4xf32>, tensor<4xf32>\n"
                 "%1 = lathe.mul %x, %x : tensor<4xf32>, tensor<4xf32>",
                 "%0, %1" + types),
            "lathe.add of f32[4] became lathe.mul of f32[4]");
  // Rounded to 16 bits once on the way, or computed in 16 bits.
  EXPECT_EQ(told("%0 = lathe.exp %x : tensor<4xf32>\n"
                 "%p = lathe.cast %x to bf16 : tensor<4xf32>\n"
                 "%q = lathe.cast %p to f32 : tensor<4xbf16>\n"
                 "%1 = lathe.exp %q : tensor<4xf32>",
                 "%0, %1" + types)
                .substr(0, 8),
            "rounds: ");
  EXPECT_EQ(told("%0 = lathe.exp %h : tensor<4xbf16>\n"
                 "%p = lathe.cast %h to f32 : tensor<4xbf16>\n"
                 "%q = lathe.exp %p : tensor<4xf32>\n"
                 "%1 = lathe.cast %q to bf16 : tensor<4xf32>",
                 "%0, %1 : tensor<4xbf16>, tensor<4xbf16>"),
            "rounds: lathe.exp of bf16[4] became lathe.cast of bf16[4]");
}

// A trial's rewrites are nobody's, and the log is there for those that follow.
TEST_F(ExactDifference, TheLogIsThatOfTheCompilation) {
  auto* dialect = context_->getOrLoadDialect<LatheDialect>();
  RewriteLog log(context_.get(), dialect, {});
  EXPECT_EQ(told("%p = lathe.neg %x : tensor<4xf32>\n%0 = lathe.neg %p : tensor<4xf32>\n"
                 "%1 = lathe.abs %x : tensor<4xf32>",
                 "%0, %1 : tensor<4xf32>, tensor<4xf32>") == "",
            false);
  EXPECT_EQ(rewriteLogOf(context_.get()), &log);
  EXPECT_TRUE(log.entries().empty());
}

}  // namespace
}  // namespace lathe
