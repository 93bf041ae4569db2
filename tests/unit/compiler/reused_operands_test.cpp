// SPDX-License-Identifier: Apache-2.0
// Which operand of a region its result may overwrite.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "lathe/backends/to_kernels.h"
#include "lathe/ir/context.h"
#include "lathe/ir/ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace lathe {
namespace {

// Of a region of %x and %y that gives %z, all f32[4, 4]; `T` stands for their type.
std::optional<int64_t> reusedBy(const std::string& body) {
  auto context = createContext();
  std::string text =
      "func.func @f(%a: T, %b: T) -> T {\n%r = lathe.region(%a, %b) : (T, T) -> T {\n"
      "^bb0(%x: T, %y: T):\n" +
      body + "\nlathe.yield %z : T\n}\nreturn %r : T }";
  const std::string type = "tensor<4x4xf32>";
  for (size_t at = 0; (at = text.find('T', at)) != text.npos; at += type.size())
    text.replace(at, 1, type);
  auto module = parseModule(*context, text, "test");
  toKernels(*module, plainConfig);
  std::optional<int64_t> reused;
  module->walk([&](KernelOp call) {
    EXPECT_EQ(call.getKind(), "region");
    if (auto reuse = call.getConfig().getAs<IntegerAttr>(kReuse)) reused = reuse.getInt();
  });
  return reused;
}

TEST(ReusedOperands, AreReadAtThePlaceThatIsWritten) {
  EXPECT_EQ(reusedBy("%z = lathe.add %x, %y : T, T"), 0);
  EXPECT_EQ(reusedBy("%t = lathe.transpose %x [1, 0] : T\n%z = lathe.add %t, %y : T, T"), 1);
  EXPECT_EQ(reusedBy("%t = lathe.transpose %x [1, 0] : T\n%z = lathe.add %t, %x : T, T"), 1)
      << "nothing reads the second";
  EXPECT_EQ(reusedBy("%u = lathe.add %x, %y : T, T\n%z = lathe.transpose %u [1, 0] : T"),
            std::nullopt);
  EXPECT_EQ(reusedBy("%e = lathe.exp %x : T\n%r = lathe.reverse %e axes [0] : T\n"
                     "%s = lathe.reduce_sum %y axes [1] keep_dims true : T\n"
                     "%z = lathe.add %r, %s : T, tensor<4x1xf32>"),
            std::nullopt);
}

// A product reads its rows while its results are written.
TEST(ReusedOperands, AreNotThoseOfAProduct) {
  const std::string product = "%p = lathe.linear %x, %x : T, T\n";
  EXPECT_EQ(reusedBy(product + "%z = lathe.add %p, %y : T, T"), std::nullopt);
  EXPECT_EQ(reusedBy("%p = lathe.exp %x : T\n%z = lathe.add %p, %y : T, T"), 0);
}

}  // namespace
}  // namespace lathe
