// SPDX-License-Identifier: Apache-2.0
// What `lathe inspect --graphviz` draws.
#include <fstream>

#include <gmock/gmock.h>

#include "tests/unit/compiler/cli_runner.h"

namespace lathe {
namespace {

using test::outputOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Graphviz, IsADotGraph) {
  EXPECT_THAT(outputOf("inspect " LATHE_TEST_DATA "/golden/llama_tiny_v5 --graphviz"),
              StartsWith("digraph"));
}

// What tells two nodes of one op apart: constants, axes, permutations, bounds.
TEST(Graphviz, ShowsWhatAnOpIsGiven) {
  test::TemporaryFolder folder;
  const std::string path = folder / "graph.mlir";
  std::ofstream(path) << R"(
    func.func @forward(%x: tensor<2x6xf32> {lathe.name = "x"}) -> (tensor<3x1xf32> {lathe.name = "y"}) {
      %c = lathe.constant dense<2.5> : tensor<f32>
      %d = lathe.constant dense<[1.0, -2.0]> : tensor<2xf32>
      %u = lathe.constant dense<[200, 7]> : tensor<2xui8>
      %i = lathe.constant dense<[-56, 7]> : tensor<2xi8>
      %g = lathe.cast %u to f32 : tensor<2xui8>
      %h = lathe.cast %i to f32 : tensor<2xi8>
      %n = lathe.mul %g, %h : tensor<2xf32>, tensor<2xf32>
      %o = lathe.mul %n, %d : tensor<2xf32>, tensor<2xf32>
      %l = lathe.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]> : tensor<9xf32>
      %m = lathe.reduce_sum %l axes [0] : tensor<9xf32>
      %j = lathe.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
      %q = lathe.reduce_sum %j axes [0] : tensor<8xf32>
      %v = lathe.weight "w\\v" : tensor<f32>
      %p = lathe.mul %q, %v : tensor<f32>, tensor<f32>
      %z = lathe.mul %p, %c : tensor<f32>, tensor<f32>
      %k = lathe.mul %z, %m : tensor<f32>, tensor<f32>
      %t = lathe.transpose %x [1, 0] : tensor<2x6xf32>
      %a = lathe.add %t, %o : tensor<6x2xf32>, tensor<2xf32>
      %s = lathe.slice %a starts <1, 0> sizes <3, 2> strides [2, 1] : tensor<6x2xf32>
      %r = lathe.reduce_max %s axes [1] keep_dims true : tensor<3x2xf32>
      %e = lathe.mul %r, %k : tensor<3x1xf32>, tensor<f32>
      return %e : tensor<3x1xf32>
    })";
  const std::string dot = outputOf("inspect " + path + " --graphviz");
  for (const char* label :
       {"constant 2.5\\n", "constant [1, -2]\\n", "constant [200, 7]\\n", "constant [-56, 7]\\n",
        "constant [1, 2, 3, 4, 5, 6, 7, 8]\\n", "constant of 9 numbers\\n", "weight w\\\\v\\n",
        "transpose\\npermutation=[1, 0]\\n", "reduce_max\\naxes=[1]\\nkeep_dims\\n",
        "reduce_sum\\naxes=[0]\\nf32[]", "starts=[1, 0]\\nstrides=[2, 1]\\n"})
    EXPECT_THAT(dot, HasSubstr(label));
}

// A line for each operand, in the order of the operands, from whatever made it: an argument, a
// weight, an op of another module. Ops of one module stand in a cluster of its path.
TEST(Graphviz, DrawsALineForEachOperand) {
  test::TemporaryFolder folder;
  const std::string path = folder / "lines.mlir";
  std::ofstream(path) << R"(
    func.func @forward(%x: tensor<2x3xf32> {lathe.name = "x"}, %k: tensor<2x3xi1> {lathe.name = "keep"}) -> (tensor<2x3xf32> {lathe.name = "y"}) {
      %w = lathe.weight "w" : tensor<2x3xf32>
      %b = lathe.constant dense<[true, false, true]> : tensor<3xi1>
      %s = lathe.sub %x, %w : tensor<2x3xf32>, tensor<2x3xf32> loc("blocks.0")
      %t = lathe.select %k, %s, %x : tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>
      %u = lathe.select %b, %t, %s : tensor<3xi1>, tensor<2x3xf32>, tensor<2x3xf32>
      return %u : tensor<2x3xf32>
    })";
  EXPECT_EQ(outputOf("inspect " + path + " --graphviz"), R"(digraph lathe {
  node [fontsize=10];
  subgraph "cluster_forward" {
    label="forward";
    n0 [label="x\nf32[2, 3]", shape=ellipse];
    n1 [label="keep\nbool[2, 3]", shape=ellipse];
      n2 [label="weight w\nf32[2, 3]\nlines.mlir:3", shape=box];
      n3 [label="constant [true, false, true]\nbool[3]\nlines.mlir:4", shape=box];
      n4 [label="select\nf32[2, 3]\nlines.mlir:6", shape=box];
      n5 [label="select\nf32[2, 3]\nlines.mlir:7", shape=box];
      n6 [label="return\nlines.mlir:8", shape=box];
    subgraph "cluster_forward.blocks.0" {
      label="blocks.0";
      n7 [label="sub\nf32[2, 3]", shape=box];
    }
  }
  n0 -> n7;
  n2 -> n7;
  n1 -> n4;
  n7 -> n4;
  n0 -> n4;
  n3 -> n5;
  n4 -> n5;
  n7 -> n5;
  n5 -> n6;
}
)");
}

}  // namespace
}  // namespace lathe
