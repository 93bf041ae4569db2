// SPDX-License-Identifier: Apache-2.0
// The comment in front of a kernel's text: what it computes, for which sizes, of which lines of the
// model, and what that costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "backends/cuda/device/program_code.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"

namespace lathe::cuda {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::Pair;
using ::testing::StartsWith;

// By kernel.
std::map<std::string, std::string> headsOf(const std::string& text) {
  std::map<std::string, std::string> heads;
  for (const KernelCode& k :
       kernelCodeOf(compile(Graph::parse(text, "model.mlir"), {.backend = "cuda"}))) {
    std::string& head = heads[k.name];
    for (size_t at = 0; k.source.compare(at, 2, "//") == 0;) {
      const size_t end = k.source.find('\n', at) + 1;
      head += k.source.substr(at, end - at);
      at = end;
    }
  }
  return heads;
}

TEST(KernelHeads, OfRegionsListTheirOps) {
  auto heads = headsOf(R"(
func.func @forward(%x: tensor<4x24xf32> {lathe.name = "x"}, %b: tensor<24xf32> {lathe.name = "b"})
    -> (tensor<4x24xf32> {lathe.name = "y"}) {
  %0 = lathe.exp %x : tensor<4x24xf32>
  %1 = lathe.add %0, %b : tensor<4x24xf32>, tensor<24xf32>
  return %1 : tensor<4x24xf32>
})");
  EXPECT_EQ(heads["region_0"],
            "// region_0: flat, 256 threads, 16-byte vectors\n"
            "// x f32[4, 24], x2 f32[24], out f32[4, 24]\n"
            "//   %0 = exp x  (model.mlir:4)\n"
            "//   %1 = add %0 x2  (model.mlir:5)\n"
            "//   return %1\n"
            "// 864 bytes, 192 flops, at least 0.00 us at 4.6 TB/s\n");
}

// Rows that are shared out over many blocks take a kernel for each depth of reductions and a last.
TEST(KernelHeads, NumberThePassesOverARow) {
  auto heads = headsOf(R"(
func.func @forward(%x: tensor<2x70000xf32> {lathe.name = "x"})
    -> (tensor<2x70000xf32> {lathe.name = "y"}) {
  %0 = lathe.softmax %x axis 1 : tensor<2x70000xf32>
  return %0 : tensor<2x70000xf32>
})");
  ASSERT_EQ(heads.size(), 3u);
  const std::string schedule = ": 128 blocks per row, 512 threads, 16-byte vectors, pass ";
  EXPECT_THAT(heads["region_0_pass1"], StartsWith("// region_0_pass1" + schedule + "1 of 3\n"));
  EXPECT_THAT(heads["region_0_pass2"], StartsWith("// region_0_pass2" + schedule + "2 of 3\n"));
  EXPECT_THAT(heads["region_0"], StartsWith("// region_0" + schedule + "3 of 3\n"));
  EXPECT_THAT(heads["region_0"],
              EndsWith("// 1120000 bytes, 700000 flops, at least 0.24 us at 4.6 TB/s\n"));
}

TEST(KernelHeads, TellTheSizesThatAKernelServes) {
  auto heads = headsOf(R"(
lathe.dim @rows 1 to 1048576
func.func @forward(%x: tensor<?x64xbf16, #lathe.dims<rows, 64>> {lathe.name = "x"})
    -> (tensor<?x48xbf16, #lathe.dims<rows, 48>> {lathe.name = "y"}) {
  %w = lathe.weight "w" : tensor<48x64xbf16>
  %0 = lathe.linear %x, %w : tensor<?x64xbf16, #lathe.dims<rows, 64>>, tensor<48x64xbf16>
  return %0 : tensor<?x48xbf16, #lathe.dims<rows, 48>>
})");
  EXPECT_EQ(heads.begin()->second,
            "// linear_0_0: gemv 1 columns/warp, 1 warps along k; 0 <= rows <= 1, 256 threads\n"
            "// linear bf16[rows, 64], bf16[48, 64] -> bf16[rows, 48]\n"
            "// {activation = \"none\", bias = false, constant = true, residual = false}\n"
            "// from model.mlir:6\n"
            "// 224*rows+6144 bytes, 6144*rows flops\n");
  // Without an upper bound there is none to tell.
  heads = headsOf(R"(
lathe.dim @rows 1 to 1048576
func.func @forward(%x: tensor<?x64xbf16, #lathe.dims<rows, 64>> {lathe.name = "x"},
                   %b: tensor<64x48xbf16> {lathe.name = "b"})
    -> (tensor<?x48xbf16, #lathe.dims<rows, 48>> {lathe.name = "y"}) {
  %0 = lathe.matmul %x, %b : tensor<?x64xbf16, #lathe.dims<rows, 64>>, tensor<64x48xbf16>
  return %0 : tensor<?x48xbf16, #lathe.dims<rows, 48>>
})");
  EXPECT_THAT(heads, Contains(Pair(_, ContainsRegex("; [0-9]+ <= rows, [0-9]+ threads\n"))));
}

// Two writes whose values lie differently copy what is old alike: that text is there once.
TEST(KernelHeads, OfTextsThatAreAlikeAreOne) {
  auto heads = headsOf(R"(
func.func @forward(%x: tensor<2x9x8xf32> {lathe.name = "x"}, %z: tensor<2x9x8xf32> {lathe.name = "z"},
                   %v: tensor<2x1x8xf32> {lathe.name = "v"}, %w: tensor<1x2x8xf32> {lathe.name = "w"},
                   %p: tensor<2xi64> {lathe.name = "p"})
    -> (tensor<2x9x8xf32> {lathe.name = "a"}, tensor<2x9x8xf32> {lathe.name = "b"}) {
  %t = lathe.transpose %w [1, 0, 2] : tensor<1x2x8xf32>
  %0 = lathe.update %x, %v, %p axis 1 : tensor<2x9x8xf32>, tensor<2x1x8xf32>, tensor<2xi64>
  %1 = lathe.update %z, %t, %p axis 1 : tensor<2x9x8xf32>, tensor<2x1x8xf32>, tensor<2xi64>
  return %0, %1 : tensor<2x9x8xf32>, tensor<2x9x8xf32>
})");
  EXPECT_TRUE(heads.contains("update_0"));
  EXPECT_TRUE(heads.contains("update_0_copy"));
  EXPECT_FALSE(heads.contains("update_1_copy"));
}

}  // namespace
}  // namespace lathe::cuda
