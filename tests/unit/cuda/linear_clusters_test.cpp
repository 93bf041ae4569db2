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

}  // namespace
}  // namespace lathe::cuda
