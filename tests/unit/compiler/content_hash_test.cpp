// SPDX-License-Identifier: Apache-2.0
// What makes two pieces of IR the same for the value check: all that they print but for locations.
#include "passes/rewrite/content_hash.h"

#include <gtest/gtest.h>

#include <map>

#include "lathe/ir/context.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace lathe {
namespace {

const char* const kGraph = R"(module {
  func.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %c = lathe.constant dense<2.5> : tensor<2x3xf32>
    %d = lathe.sub %a, %b : tensor<2x3xf32>, tensor<2x3xf32>
    %e = lathe.reduce_sum %d axes [1] keep_dims true : tensor<2x3xf32>
    %g = lathe.mul %d, %c : tensor<2x3xf32>, tensor<2x3xf32>
    %h = lathe.mul %g, %e : tensor<2x3xf32>, tensor<2x1xf32>
    %i = lathe.rms_norm %h epsilon 1.0e-5 : tensor<2x3xf32>
    return %i : tensor<2x3xf32>
  }
})";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  if (at == std::string::npos) ADD_FAILURE() << "the graph has no " << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

Hash128 hashOf(const std::string& text) {
  auto context = createContext();
  auto module = parseModule(*context, text, "test");
  HashedTexts texts;
  ContentHash hash(texts);
  hash.add(module.get());
  return hash.value();
}

TEST(ContentHash, IsTheSameInEveryContextAndWhereverTheOpsStand) {
  EXPECT_EQ(hashOf(kGraph), hashOf(kGraph));
  EXPECT_EQ(hashOf(kGraph), hashOf(replaced(kGraph, "    %d", "\n\n      // below\n  %d")));
  EXPECT_EQ(hashOf(kGraph), hashOf(replaced(kGraph, "return %i : tensor<2x3xf32>",
                                            "return %i : tensor<2x3xf32> loc(\"other.cpp\":1:2)")));
}

TEST(ContentHash, DiffersWithAllThatIsPrinted) {
  const std::string graph = kGraph;
  const std::map<std::string, std::string> others{
      {"as it is", graph},
      {"another op", replaced(graph, "lathe.sub", "lathe.add")},
      {"operands in another order", replaced(graph, "sub %a, %b", "sub %b, %a")},
      {"one operand twice", replaced(graph, "sub %a, %b", "sub %a, %a")},
      {"another result of equal type", replaced(graph, "mul %d, %c", "mul %c, %c")},
      {"another value returned", replaced(graph, "return %i", "return %h")},
      {"another number", replaced(graph, "2.5", "2.25")},
      {"another attribute", replaced(graph, "1.0e-5", "1.0e-6")},
      {"an attribute of no op", replaced(graph, "2x3xf32> {", "2x3xf32> attributes {lathe.x} {")},
      {"another name", replaced(graph, "@f", "@g")},
      {"an op that nothing reads",
       replaced(graph, "    %g", "    %u = lathe.neg %d : tensor<2x3xf32>\n    %g")},
      {"another type of an argument",
       "module { func.func private @f(tensor<2x3xf32>, tensor<2x3xf32>) }"},
      {"a symbolic size", "module { func.func private @f(tensor<2x3xf32>, tensor<?x3xf32>) }"},
      {"regions beside each other", "module { module @a {} module @b {} }"},
      {"a region in the other", "module { module @a { module @b {} } }"},
      {"modules without names", "module { module {} module {} }"},
      {"such a one in the other", "module { module { module {} } }"}};
  std::map<Hash128, std::string> seen;
  for (const auto& [what, text] : others) {
    auto [first, isNew] = seen.try_emplace(hashOf(text), what);
    EXPECT_TRUE(isNew) << what << " is as " << first->second;
  }
}

// Blocks are told apart as values are.
TEST(ContentHash, DiffersWithTheBlockThatABranchGoesTo) {
  auto branching = [](const char* first, const char* second) {
    return std::string("module { llvm.func @f(%c: i1) { llvm.cond_br %c, ") + first + ", " +
           second + "\n^a: llvm.return\n^b: llvm.unreachable } }";
  };
  EXPECT_NE(hashOf(branching("^a", "^b")), hashOf(branching("^b", "^a")));
  EXPECT_NE(hashOf(branching("^a", "^b")), hashOf(branching("^a", "^a")));
}

// A block may stand in front of the one whose values it reads.
TEST(ContentHash, DiffersWithWhatIsReadBeforeItIsDefined) {
  auto reading = [](const char* first, const char* second) {
    return std::string(
               "module { llvm.func @f(%a: i32) -> i32 { llvm.br ^define\n^use: %s = llvm.sub ") +
           first + ", " + second + " : i32 llvm.return %s : i32\n" +
           "^define: %x = llvm.add %a, %a : i32 %y = llvm.add %a, %a : i32 llvm.br ^use } }";
  };
  EXPECT_NE(hashOf(reading("%x", "%y")), hashOf(reading("%y", "%x")));
}

TEST(ContentHash, DiffersWithTheTypeOfAResultAlone) {
  auto cast = [](const std::string& type) {
    return "module { func.func @f(%a: tensor<2xf32>) { %b = lathe.cast %a to " + type +
           " : tensor<2xf32> return } }";
  };
  EXPECT_NE(hashOf(cast("bf16")), hashOf(cast("f16")));
}

// What was hashed once is not printed again, and gives the same.
TEST(ContentHash, KnowsTextsOfItsContext) {
  auto context = createContext();
  auto module = parseModule(*context, kGraph, "test");
  HashedTexts texts;
  ContentHash first(texts), second(texts);
  first.add(module.get());
  const size_t known = texts.size();
  second.add(module.get());
  EXPECT_EQ(first.value(), second.value());
  EXPECT_EQ(texts.size(), known);
  EXPECT_EQ(first.value(), hashOf(kGraph));
}

}  // namespace
}  // namespace lathe
