// SPDX-License-Identifier: Apache-2.0
// Products and convolutions.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {

Table contractions() {
  return {
      {"matmul_of_a_vector",
       [] {
         Model m;
         matmul(m.x, m.g.weight("w", DType::F32, {4}));
       },
       kArgument,
       {"lathe.matmul", "[C1]", "f32[4]"}},
      {"matmul_of_scalars",
       [] {
         Model m;
         matmul(m.g.constant(1), m.g.constant(2));
       },
       kArgument,
       {"lathe.matmul", "[C1]"}},
      {"matmul_of_unequal_depths",
       [] {
         Model m;
         matmul(m.x, m.g.weight("w", DType::F32, {5, 3}));
       },
       kArgument,
       {"lathe.matmul", "f32[5, 3]"}},
      {"matmul_of_two_dtypes",
       [] {
         Model m;
         matmul(m.x, m.g.weight("w", DType::BF16, {4, 3}));
       },
       kArgument,
       {"lathe.matmul", "[C"}},
      {"matmul_of_unequal_batches",
       [] {
         Graph g;
         matmul(g.input("a", DType::F32, {2, 3, 4}), g.input("b", DType::F32, {3, 4, 5}));
       },
       kArgument,
       {"lathe.matmul", "[C"}},
      {"convolution_of_matrices",
       [] {
         Model m;
         convolution(m.x, m.x, {1, 1}, {0, 0, 0, 0});
       },
       kArgument,
       {"lathe.convolution"}},
      {"convolution_larger_than_its_image",
       [] {
         Graph g;
         convolution(g.input("x", DType::F32, {1, 3, 4, 4}),
                     g.weight("k", DType::F32, {2, 3, 5, 5}), {1, 1}, {0, 0, 0, 0});
       },
       kArgument,
       {"lathe.convolution", "[C4]"}},
      {"convolution_of_other_channels",
       [] {
         Graph g;
         convolution(g.input("x", DType::F32, {1, 3, 8, 8}),
                     g.weight("k", DType::F32, {2, 4, 5, 5}), {1, 1}, {0, 0, 0, 0});
       },
       kArgument,
       {"lathe.convolution"}},
      {"convolution_with_stride_zero",
       [] {
         Graph g;
         convolution(g.input("x", DType::F32, {1, 3, 8, 8}),
                     g.weight("k", DType::F32, {2, 3, 5, 5}), {0, 1}, {0, 0, 0, 0});
       },
       kArgument,
       {"lathe.convolution"}},
      {"convolution_with_one_stride",
       [] {
         Graph g;
         convolution(g.input("x", DType::F32, {1, 3, 8, 8}),
                     g.weight("k", DType::F32, {2, 3, 5, 5}), {1}, {0, 0, 0, 0});
       },
       kArgument,
       {"lathe.convolution"}},
      {"convolution_with_two_paddings",
       [] {
         Graph g;
         convolution(g.input("x", DType::F32, {1, 3, 8, 8}),
                     g.weight("k", DType::F32, {2, 3, 5, 5}), {1, 1}, {0, 0});
       },
       kArgument,
       {"lathe.convolution"}},
      {"convolution_with_negative_padding",
       [] {
         Graph g;
         convolution(g.input("x", DType::F32, {1, 3, 8, 8}),
                     g.weight("k", DType::F32, {2, 3, 5, 5}), {1, 1}, {-1, 0, 0, 0});
       },
       kArgument,
       {"lathe.convolution"}},
      {"convolution_with_padding_that_wraps",
       [] {
         Graph g;
         convolution(g.input("x", DType::F32, {1, 3, 8, 8}),
                     g.weight("k", DType::F32, {2, 3, 5, 5}), {1, 1}, {INT64_MAX, INT64_MAX, 0, 0});
       },
       kArgument,
       {"lathe.convolution"}},
  };
}

}  // namespace lathe::misuse
