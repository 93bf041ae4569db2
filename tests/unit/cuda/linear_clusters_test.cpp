// SPDX-License-Identifier: Apache-2.0
// What stands around a layer and becomes one region with it.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "backends/cuda/lowering/kernel/steps.h"
#include "lathe/ir/context.h"
#include "lathe/ir/ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

using Names = std::multiset<std::string>;

// The ops of the only region that a body has, which returns %y; none where it has no region. %x is
// f32[4, 4], `L` stands for f32[4, 8], the type of a layer on the weight %w.
Names regionOf(const std::string& body, const std::string& type = "L") {
  auto context = createContext();
  std::string text = "func.func @f(%x: tensor<4x4xf32>, %v: tensor<8x4xf32>, %z: L) -> " + type +
                     " {\n%w = lathe.weight \"w\" : tensor<8x4xf32>\n" + body +
                     "\nreturn %y : " + type + " }";
  for (size_t at = 0; (at = text.find('L', at)) != text.npos;)
    text.replace(at, 1, "tensor<4x8xf32>");
  auto module = parseModule(*context, text, "test");
  formLinearRegions(*module);
  EXPECT_TRUE(succeeded(verify(*module))) << body;
  Names names;
  int regions = 0;
  module->walk([&](RegionOp region) {
    ++regions;
    for (Operation& op : region.getBody().front().without_terminator())
      names.insert(op.getName().stripDialect().str());
  });
  EXPECT_LE(regions, 1) << body;
  return names;
}

const std::string kLayer = "%p = lathe.linear %x, %w : tensor<4x4xf32>, tensor<8x4xf32>\n";

TEST(LinearClusters, HalvesOfTheColumnsAndNoOtherParts) {
  auto product = [](const char* first, const char* second, const char* sizes, const char* type) {
    const std::string t = type;
    return regionOf(kLayer + "%a = lathe.slice %p starts " + first + " sizes " + sizes +
                        " strides [1, 1] : L\n%b = lathe.slice %p starts " + second + " sizes " +
                        sizes + " strides [1, 1] : L\n%y = lathe.mul %a, %b : " + t + ", " + t,
                    t);
  };
  EXPECT_EQ(product("<0, 0>", "<0, 4>", "<4, 4>", "tensor<4x4xf32>"),
            (Names{"linear", "mul", "slice", "slice"}));
  EXPECT_EQ(product("<0, 0>", "<0, 2>", "<4, 2>", "tensor<4x2xf32>"), Names{});
  EXPECT_EQ(product("<0, 0>", "<2, 0>", "<2, 8>", "tensor<2x8xf32>"), Names{});
}

// What reads the layer through others comes behind them: as much joins as stands in front of these.
TEST(LinearClusters, NobodyReadsTheLayerBeforeItIsThere) {
  EXPECT_EQ(regionOf(kLayer + "%e = lathe.exp %p : L\n%y = lathe.add %e, %z : L, L"),
            (Names{"add", "exp", "linear"}));
  const std::string between =
      "%t = lathe.transpose %p [1, 0] : L\n%m = lathe.matmul %p, %t : L, tensor<8x4xf32>\n"
      "%q = lathe.matmul %m, %z : tensor<4x4xf32>, L\n%y = lathe.add %e, %q : L, L";
  EXPECT_EQ(regionOf(kLayer + "%e = lathe.exp %p : L\n" + between), (Names{"exp", "linear"}));
  EXPECT_EQ(regionOf("%e = lathe.exp %z : L\n" + kLayer + between), Names{});
}

TEST(LinearClusters, WeightsAreThoseOfACheckpoint) {
  const std::string behind = "%y = lathe.exp %p : L";
  EXPECT_EQ(regionOf(kLayer + behind), (Names{"exp", "linear"}));
  EXPECT_EQ(regionOf("%p = lathe.linear %x, %v : tensor<4x4xf32>, tensor<8x4xf32>\n" + behind),
            Names{});
}

// Queries, keys and values of one projection, which are rotated and written into caches: the names
// of what is one region with it.
struct Projection {
  int columns = 16;
  const char *pairing = "half", *cache = "%c", *behind = "";
};
Names projected(const Projection& p) {
  auto context = createContext();
  const std::string heads = "tensor<1x2x5x4xf32>", one = "tensor<1x1x5x4xf32>",
                    cache = "tensor<1x1x9x4xf32>", table = "tensor<5x2xf32>",
                    all = "tensor<1x5x" + std::to_string(p.columns) + "xf32>";
  auto part = [&](const std::string& name, int from, int count, const std::string& type) {
    const std::string width = std::to_string(4 * count), sliced = "tensor<1x5x" + width + "xf32>";
    return "%" + name + "s = lathe.slice %p starts <0, 0, " + std::to_string(from) +
           "> sizes <1, 5, " + width + "> strides [1, 1, 1] : " + all + "\n%" + name +
           "h = lathe.reshape %" + name + "s to <1, 5, " + std::to_string(count) +
           ", 4> : " + sliced + "\n%" + name + " = lathe.transpose %" + name +
           "h [0, 2, 1, 3] : tensor<1x5x" + std::to_string(count) + "x4xf32>\n";
  };
  const std::string rotated = ", %t, %t : ", tables = ", " + table + ", " + table + "\n",
                    written = ", %at axis 2 : " + cache + ", " + one + ", tensor<1xi64>\n";
  const std::string text =
      "func.func @f(%x: tensor<1x5x8xf32>, %t: " + table + ", %c: " + cache + ", %d: " + cache +
      ", %at: tensor<1xi64>) -> (" + heads + ", " + cache + ", " + cache + ") {\n" +
      "%w = lathe.weight \"w\" : tensor<" + std::to_string(p.columns) + "x8xf32>\n" +
      "%p = lathe.linear %x, %w : tensor<1x5x8xf32>, tensor<" + std::to_string(p.columns) +
      "x8xf32>\n" + part("q", 0, 2, heads) + part("k", 8, 1, one) + part("v", 12, 1, one) +
      p.behind + "%y = lathe.rope half %q" + rotated + heads + tables + "%kr = lathe.rope " +
      p.pairing + " %k" + rotated + one + tables + "%n = lathe.neg %c : " + cache +
      "\n%kc = lathe.update " + p.cache + ", %kr" + written + "%vc = lathe.update %d, %v" +
      written + "return %y, %kc, %vc : " + heads + ", " + cache + ", " + cache + " }";
  auto module = parseModule(*context, text, "test");
  formLinearRegions(*module);
  EXPECT_TRUE(succeeded(verify(*module)));
  Names names;
  module->walk([&](RegionOp region) {
    for (Operation& op : region.getBody().front().without_terminator())
      names.insert(op.getName().stripDialect().str());
  });
  return names;
}

TEST(LinearClusters, ProjectionsAreRotatedAndWrittenAsAWhole) {
  const Names whole{"linear", "reshape", "reshape",   "reshape",   "rope",      "rope",   "slice",
                    "slice",  "slice",   "transpose", "transpose", "transpose", "update", "update"};
  EXPECT_EQ(projected({}), whole);
  EXPECT_EQ(projected({.columns = 20}), Names{}) << "columns are left over";
  EXPECT_EQ(projected({.pairing = "interleaved"}), Names{}) << "keys are rotated in other pairs";
  EXPECT_EQ(projected({.cache = "%n"}), Names{})
      << "a computed cache takes the keys before the values are in theirs";
  EXPECT_EQ(projected({.behind = "%o = lathe.exp %q : tensor<1x2x5x4xf32>\n"}), Names{})
      << "others read the queries";
}

}  // namespace
}  // namespace lathe::cuda
