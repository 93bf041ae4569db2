// SPDX-License-Identifier: Apache-2.0
#include "ir/axis_groups.h"

#include <gtest/gtest.h>

#include <string>

#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"

namespace lathe {
namespace {

// "0:2=1:2" for each group: axes [0, 2) of the one tensor, [1, 2) of the other.
std::string groups(const std::vector<DimExpr>& from, const std::vector<DimExpr>& to) {
  const auto context = createContext();
  auto type = [&](const std::vector<DimExpr>& dims) {
    llvm::SmallVector<mlir::StringAttr> named;
    for (const DimExpr& d : dims) named.push_back(dimAttr(context.get(), d));
    return tensorOf(named, mlir::Float32Type::get(context.get()));
  };
  std::string text;
  for (const AxisGroup& g : axisGroups(type(from), type(to)))
    text += (text.empty() ? "" : " ") + std::to_string(g.from) + ":" + std::to_string(g.fromEnd) +
            "=" + std::to_string(g.to) + ":" + std::to_string(g.toEnd);
  return text;
}

const DimExpr kSeq = DimExpr::symbol("seq"), kBatch = DimExpr::symbol("batch");

TEST(AxisGroups, EqualAxesAreGroupsOfTheirOwn) {
  EXPECT_EQ(groups({2, 3, 4}, {2, 3, 4}), "0:1=0:1 1:2=1:2 2:3=2:3");
  EXPECT_EQ(groups({kBatch, kSeq}, {kBatch, kSeq}), "0:1=0:1 1:2=1:2");
}

TEST(AxisGroups, AxesThatAreJoinedOrSplitAreOneGroup) {
  EXPECT_EQ(groups({kBatch, kSeq, 4, 16}, {kBatch, kSeq, 64}), "0:1=0:1 1:2=1:2 2:4=2:3");
  EXPECT_EQ(groups({kBatch * kSeq, 64}, {kBatch, kSeq, 4, 16}), "0:1=0:2 1:2=2:4");
  EXPECT_EQ(groups({2, 6, 5}, {4, 3, 5}), "0:2=0:2 2:3=2:3");
  EXPECT_EQ(groups({2, 4, 3, 5}, {8, 3, 5}), "0:2=0:1 2:3=1:2 3:4=2:3");
}

TEST(AxisGroups, AxesOfSizeOneBelongToNone) {
  EXPECT_EQ(groups({1, 6, 1, 5}, {6, 1, 5, 1}), "1:2=0:1 3:4=2:3");
  EXPECT_EQ(groups({1, 1}, {1}), "");
}

// Nothing is left of the one where the other has axes still.
TEST(AxisGroups, AxesBehindOneOfSizeZeroBelongToNone) {
  EXPECT_EQ(groups({0}, {0, 4}), "0:1=0:1");
  EXPECT_EQ(groups({0, 4}, {0}), "0:1=0:1");
}

// Neither product divides the other: nothing behind is told, although it would fit again.
TEST(AxisGroups, EndWhereProductsAreNotProvablyEqual) {
  EXPECT_EQ(groups({5, 2, 3, 7}, {5, 3, 2, 7}), "0:1=0:1");
  EXPECT_EQ(groups({kSeq, 7}, {kBatch, 7}), "");
  EXPECT_EQ(groups({4, kSeq, 2}, {4, kBatch, 2}), "0:1=0:1");
}

}  // namespace
}  // namespace lathe
