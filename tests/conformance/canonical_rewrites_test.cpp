// SPDX-License-Identifier: Apache-2.0
// The functions of tests/lit/passes/canonical_*.mlir hold every canonical rewrite. Their values are
// the other half of that test: exact rewrites keep every bit of NaNs, infinities, signed zeros,
// subnormals and the largest numbers; all others are equal in exact arithmetic, up to the rounding
// of constants.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "lathe/ir/context.h"
#include "lathe/runtime/error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/rewrite/numerics_scope.h"
#include "passes/rewrite/rewrite_log.h"
#include "tests/conformance/function_values.h"
#include "tests/conformance/rewriting.h"
#include "tests/conformance/tolerance.h"

namespace lathe::conformance {
namespace {

using namespace mlir;

class CanonicalRewrites : public ::testing::TestWithParam<std::string> {
 protected:
  CanonicalRewrites() : context_(createContext()) {
    std::ifstream in(LATHE_TEST_DATA "/lit/passes/" + GetParam() + ".mlir");
    std::stringstream text;
    text << in.rdbuf();
    plain_ = parseModule(*context_, text.str(), GetParam());
    rewritten_ = Module(plain_->clone());
  }
  void compare(bool special, Precision precision,
               const std::function<std::string(const std::vector<Array>&,
                                               const std::vector<Array>&)>& difference) {
    for (auto function : plain_->getOps<func::FuncOp>())
      for (uint64_t seed : {1, 2, 3}) {
        auto other = rewritten_->lookupSymbol<func::FuncOp>(function.getName());
        EXPECT_EQ(difference(runOn(function, special, precision, seed),
                             runOn(other, special, precision, seed)),
                  "")
            << function.getName().str();
      }
  }
  std::unique_ptr<MLIRContext> context_;
  Module plain_, rewritten_;
};

TEST_P(CanonicalRewrites, KeepEveryBitInStrictMode) {
  NumericsScope strict(context_.get(), {.mode = NumericsMode::Strict});
  canonicalize(*rewritten_);
  compare(true, Precision::OwnDtype, firstOtherBits);
}

TEST_P(CanonicalRewrites, AreEqualInExactArithmeticOtherwise) {
  canonicalize(*rewritten_);
  compare(false, Precision::Float64, [](auto& a, auto& b) {
    for (size_t i = 0; i < a.size(); ++i)
      if (auto d = firstDifference(a[i], b[i], {1e-6, 1e-6}); !d.empty()) return d;
    return std::string();
  });
}

TEST_P(CanonicalRewrites, ReachAFixedPoint) {
  for (NumericsMode mode : {NumericsMode::Strict, NumericsMode::Relaxed}) {
    NumericsScope scope(context_.get(), {.mode = mode});
    Module module(plain_->clone());
    canonicalize(*module);
    const std::string once = textOf(*module);
    canonicalize(*module);
    EXPECT_EQ(textOf(*module), once);
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, CanonicalRewrites, ::testing::ValuesIn(canonicalFiles()),
                         [](const auto& info) { return info.param.substr(10); });

bool holds(const std::string& predicate, int a, int b) {
  if (predicate == "lt") return a < b;
  if (predicate == "le") return a <= b;
  if (predicate == "gt") return a > b;
  if (predicate == "eq") return a == b;
  if (predicate == "ne") return a != b;
  return a >= b;
}

// Ramps that rise and fall, and meet, touch and miss each other by one: what is proved of all
// elements holds for each. What holds of all or of none of them is proved.
TEST(ProvedConditions, HoldForEveryElement) {
  struct Side {
    const char* text;
    int (*value)(int i, int k);
  };
  const Side sides[] = {
      {"lathe.add %i, %k : tensor<4x1xi64>, tensor<i64>", [](int i, int k) { return i + k; }},
      {"lathe.sub %i, %k : tensor<4x1xi64>, tensor<i64>", [](int i, int k) { return i - k; }},
      {"lathe.sub %k, %i : tensor<i64>, tensor<4x1xi64>", [](int i, int k) { return k - i; }}};
  auto context = createContext();
  for (const Side& side : sides)
    for (const char* predicate : {"eq", "ne", "lt", "le", "gt", "ge"})
      for (int offset = -6; offset <= 6; ++offset) {
        const std::string text = R"(func.func @f(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>)
          -> tensor<4x3xf32> {
        %i = lathe.iota <4, 1> axis 0 dtype i64
        %j = lathe.iota <1, 3> axis 1 dtype i64
        %k = lathe.constant dense<)" +
                                 std::to_string(offset) + R"(> : tensor<i64>
        %a = )" + side.text + R"(
        %c = lathe.compare )" + predicate +
                                 R"( %a, %j : tensor<4x1xi64>, tensor<1x3xi64>
        %s = lathe.select %c, %x, %y : tensor<4x3xi1>, tensor<4x3xf32>, tensor<4x3xf32>
        return %s : tensor<4x3xf32>
      })";
        SCOPED_TRACE(text);
        Module plain = parseModule(*context, text, "ramps.mlir"), canonical(plain->clone());
        canonicalize(*canonical);
        auto function = [](Module& m) { return m->lookupSymbol<func::FuncOp>("f"); };
        EXPECT_EQ(firstOtherBits(runOn(function(plain), false, Precision::OwnDtype, 1),
                                 runOn(function(canonical), false, Precision::OwnDtype, 1)),
                  "");
        bool selects = false;
        canonical->walk([&](SelectOp) { selects = true; });
        int holding = 0;
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 3; ++j) holding += holds(predicate, side.value(i, offset), j);
        EXPECT_EQ(selects, holding != 0 && holding != 12);
      }
}

std::set<std::string> codesIn(const std::string& text) {
  std::set<std::string> codes;
  for (size_t at = text.find('`'); at != text.npos; at = text.find('`', at + 1)) {
    const size_t end = text.find('`', at + 1);
    codes.insert(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return codes;
}

// Every rewrite of the page is applied in one of the files, weakens what its last column says, and
// the other way round.
TEST(CanonicalForm, HasATestAndALineForEveryRewrite) {
  std::map<std::string, std::set<std::string>> applied, written;
  for (const std::string& name : canonicalFiles()) {
    auto context = createContext();
    std::ifstream in(LATHE_TEST_DATA "/lit/passes/" + name + ".mlir");
    std::stringstream text;
    text << in.rdbuf();
    auto module = parseModule(*context, text.str(), name);
    RewriteLog log(context.get(), context->getOrLoadDialect<LatheDialect>(), {});
    canonicalize(*module);
    for (const RewriteLog::Entry& e : log.entries()) {
      if (e.what == "fold" || e.what.starts_with("pass ")) continue;
      auto& weakened = applied[e.what];
      for (Contract c : e.weakened) weakened.emplace(rowOf(c).name);
    }
  }
  std::set<std::string> contracts;
  for (const ContractRow& row : contractTable()) contracts.emplace(row.name);
  std::ifstream page(LATHE_SOURCE_DIR "/docs/canonical-form.md");
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    auto& weakened = written[line.substr(3, line.find('`', 3) - 3)];
    const size_t last = line.rfind('|', line.size() - 2);
    for (const std::string& code : codesIn(line.substr(last)))
      if (contracts.contains(code)) weakened.insert(code);
  }
  for (auto& [name, weakened] : applied) {
    ASSERT_TRUE(written.contains(name)) << name << " has no line in docs/canonical-form.md";
    EXPECT_EQ(weakened, written[name]) << name;
  }
  for (auto& [name, weakened] : written)
    EXPECT_TRUE(applied.contains(name)) << name << " is applied in no tests/lit/passes/canonical_*";
}

}  // namespace
}  // namespace lathe::conformance
