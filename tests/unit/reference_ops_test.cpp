// SPDX-License-Identifier: Apache-2.0
// Every op of the dialect on the reference interpreter, against values worked out by hand.
#include "backends/reference/interpreter_ops.h"
#include "tests/unit/reference_cases.h"

namespace lathe {
namespace {

constexpr double kNan = NAN, kInf = INFINITY;

const std::vector<OpCase>& opCases() {
  static const std::vector<OpCase> cases{
      // elementwise
      {"lathe.neg %a : $a", {{"4xf32", {1, -0., kInf, kNan}}}, "4xf32", {"-1 0 -inf nan"}},
      {"lathe.neg %a : $a", {{"2xi8", {-128, 5}}}, "2xi8", {"-128 -5"}},
      {"lathe.neg %a : $a", {{"1xui8", {1}}}, "1xui8", {"255"}},
      {"lathe.abs %a : $a", {{"3xf32", {-2, -0., -kInf}}}, "3xf32", {"2 0 inf"}},
      {"lathe.abs %a : $a", {{"2xi32", {-3, -2147483648.}}}, "2xi32", {"3 -2147483648"}},
      {"lathe.sign %a : $a", {{"5xf32", {-2, 0, -0., 3, kNan}}}, "5xf32", {"-1 0 0 1 nan"}},
      {"lathe.sign %a : $a", {{"3xi16", {-2, 0, 3}}}, "3xi16", {"-1 0 1"}},
      {"lathe.exp %a : $a", {{"4xf32", {0, -kInf, kInf, 1}}}, "4xf32", {"1 0 inf 2.71828175"}},
      {"lathe.log %a : $a", {{"4xf32", {1, 0, -1, kInf}}}, "4xf32", {"0 -inf nan inf"}},
      {"lathe.sqrt %a : $a", {{"4xf32", {4, -0., -1, 2}}}, "4xf32", {"2 -0 nan 1.41421354"}},
      {"lathe.rsqrt %a : $a", {{"4xf32", {4, 0, -0., kInf}}}, "4xf32", {"0.5 inf -inf 0"}},
      {"lathe.reciprocal %a : $a", {{"3xf32", {2, -0., kInf}}}, "3xf32", {"0.5 -inf 0"}},
      {"lathe.sin %a : $a", {{"3xf64", {M_PI / 2, -0., kInf}}}, "3xf64", {"1 -0 nan"}},
      {"lathe.cos %a : $a", {{"3xf64", {0, M_PI, kInf}}}, "3xf64", {"1 -1 nan"}},
      {"lathe.tanh %a : $a", {{"4xf64", {-0., kInf, -kInf, 1}}}, "4xf64", {"-0 1 -1 0.761594156"}},
      {"lathe.erf %a : $a", {{"3xf64", {0.5, kInf, -0.}}}, "3xf64", {"0.520499878 1 -0"}},
      {"lathe.sigmoid %a : $a",
       {{"5xf64", {0, -kInf, kInf, -1000, 1}}},
       "5xf64",
       {"0.5 0 1 0 0.731058579"}},
      {"lathe.floor %a : $a", {{"3xf32", {-1.5, 1.5, -0.}}}, "3xf32", {"-2 1 -0"}},
      {"lathe.ceil %a : $a", {{"3xf32", {-0.5, 1.5, -kInf}}}, "3xf32", {"-0 2 -inf"}},
      {"lathe.round %a : $a", {{"4xf32", {0.5, 1.5, 2.5, -0.5}}}, "4xf32", {"0 2 2 -0"}},
      {"lathe.logical_not %a : $a", {{"2xi1", {1, 0}}}, "2xi1", {"0 1"}},
      {"lathe.is_nan %a : $a", {{"3xf16", {1, kNan, kInf}}}, "3xi1", {"0 1 0"}},
      {"lathe.add %a, %b : $a, $b",
       {{"3xf32", {1, kInf, -0.}}, {"3xf32", {2, -kInf, -0.}}},
       "3xf32",
       {"3 nan -0"}},
      {"lathe.add %a, %b : $a, $b",
       {{"2x1xi64", {10, 20}}, {"3xi64", {1, 2, 3}}},
       "2x3xi64",
       {"11 12 13 21 22 23"}},
      {"lathe.add %a, %b : $a, $b", {{"1xi8", {127}}, {"1xi8", {1}}}, "1xi8", {"-128"}},
      // bf16 has 8 significant bits: both sums are ties and go to the even neighbour.
      {"lathe.add %a, %b : $a, $b",
       {{"2xbf16", {1, 1 + 0x1p-7}}, {"2xbf16", {0x1p-8, 0x1p-8}}},
       "2xbf16",
       {"1 1.015625"}},
      {"lathe.add %a, %b : $a, $b", {{"1xf16", {65504}}, {"1xf16", {32}}}, "1xf16", {"inf"}},
      {"lathe.sub %a, %b : $a, $b", {{"1xui8", {0}}, {"1xui8", {1}}}, "1xui8", {"255"}},
      {"lathe.sub %a, %b : $a, $b", {{"1xf32", {1}}, {"1xf32", {0x1p-25}}}, "1xf32", {"1"}},
      {"lathe.mul %a, %b : $a, $b", {{"1xi32", {65536}}, {"1xi32", {65536}}}, "1xi32", {"0"}},
      {"lathe.mul %a, %b : $a, $b",
       {{"2xf32", {0, 3}}, {"2xf32", {kInf, -2}}},
       "2xf32",
       {"nan -6"}},
      {"lathe.div %a, %b : $a, $b", {{"2xf32", {-1, 0}}, {"2xf32", {0, 0}}}, "2xf32", {"-inf nan"}},
      {"lathe.div %a, %b : $a, $b",
       {{"4xi32", {7, -7, 5, -2147483648.}}, {"4xi32", {2, 2, 0, -1}}},
       "4xi32",
       {"3 -3 0 -2147483648"}},
      {"lathe.max %a, %b : $a, $b",
       {{"4xf32", {1, kNan, -0., 0}}, {"4xf32", {2, 1, 0, -0.}}},
       "4xf32",
       {"2 nan 0 0"}},
      {"lathe.min %a, %b : $a, $b",
       {{"4xf32", {1, 1, -0., 0}}, {"4xf32", {2, kNan, 0, -0.}}},
       "4xf32",
       {"1 nan -0 -0"}},
      {"lathe.pow %a, %b : $a, $b",
       {{"3xf32", {2, 0, -1}}, {"3xf32", {10, 0, 0.5}}},
       "3xf32",
       {"1024 1 nan"}},
      {"lathe.mod %a, %b : $a, $b",
       {{"6xf32", {5, -5, 5, -5, 5, 0}}, {"6xf32", {3, 3, -3, -3, 0, -3}}},
       "6xf32",
       {"2 1 -1 -2 nan -0"}},
      {"lathe.mod %a, %b : $a, $b",
       {{"6xi32", {5, -5, 5, -5, 5, -2147483648.}}, {"6xi32", {3, 3, -3, -3, 0, -1}}},
       "6xi32",
       {"2 1 -1 -2 0 0"}},
      {"lathe.logical_and %a, %b : $a, $b", {{"2xi1", {1, 1}}, {"2xi1", {0, 1}}}, "2xi1", {"0 1"}},
      {"lathe.logical_or %a, %b : $a, $b", {{"2xi1", {0, 1}}, {"2xi1", {0, 1}}}, "2xi1", {"0 1"}},
      {"lathe.bitwise_and %a, %b : $a, $b",
       {{"2xi8", {12, -1}}, {"2xi8", {10, 7}}},
       "2xi8",
       {"8 7"}},
      {"lathe.bitwise_or %a, %b : $a, $b", {{"1xi8", {12}}, {"1xi8", {10}}}, "1xi8", {"14"}},
      {"lathe.bitwise_xor %a, %b : $a, $b",
       {{"2xi8", {12, -1}}, {"2xi8", {10, 7}}},
       "2xi8",
       {"6 -8"}},
      {"lathe.shift_left %a, %b : $a, $b",
       {{"3xi8", {1, 1, 1}}, {"3xi8", {7, 8, -1}}},
       "3xi8",
       {"-128 0 0"}},
      {"lathe.shift_right %a, %b : $a, $b",
       {{"3xi8", {-128, -1, -1}}, {"3xi8", {7, 4, 8}}},
       "3xi8",
       {"1 15 0"}},
      {"lathe.compare eq %a, %b : $a, $b",
       {{"4xf32", {1, 2, kNan, 0}}, {"4xf32", {2, 2, kNan, -0.}}},
       "4xi1",
       {"0 1 0 1"}},
      {"lathe.compare ne %a, %b : $a, $b",
       {{"3xf32", {1, 2, kNan}}, {"3xf32", {2, 2, kNan}}},
       "3xi1",
       {"1 0 1"}},
      {"lathe.compare lt %a, %b : $a, $b",
       {{"3xf32", {1, 2, kNan}}, {"3xf32", {2, 2, 1}}},
       "3xi1",
       {"1 0 0"}},
      {"lathe.compare le %a, %b : $a, $b",
       {{"3xf32", {1, 2, kNan}}, {"3xf32", {2, 2, 1}}},
       "3xi1",
       {"1 1 0"}},
      {"lathe.compare gt %a, %b : $a, $b", {{"2xi64", {3, 2}}, {"2xi64", {2, 2}}}, "2xi1", {"1 0"}},
      {"lathe.compare ge %a, %b : $a, $b",
       {{"2xui8", {200, 1}}, {"2xui8", {100, 2}}},
       "2xi1",
       {"1 0"}},
      {"lathe.select %a, %b, %c : $a, $b, $c",
       {{"2x1xi1", {1, 0}}, {"2xf32", {1, kNan}}, {"f32", {9}}},
       "2x2xf32",
       {"1 nan 9 9"}},
      {"lathe.cast %a to bf16 : $a", {{"2xf32", {1 + 0x1p-8, kNan}}}, "2xbf16", {"1 nan"}},
      {"lathe.cast %a to i8 : $a", {{"3xf32", {3.9, -3.9, -0.5}}}, "3xi8", {"3 -3 0"}},
      {"lathe.cast %a to i8 : $a", {{"2xi32", {300, -129}}}, "2xi8", {"44 127"}},
      {"lathe.cast %a to i1 : $a", {{"4xf32", {0, -0., kNan, 0.25}}}, "4xi1", {"0 0 1 1"}},
      {"lathe.cast %a to f16 : $a", {{"2xi32", {2049, 70000}}}, "2xf16", {"2048 inf"}},
      {"lathe.bitcast %a to i32 : $a", {{"2xf32", {1, -0.}}}, "2xi32", {"1065353216 -2147483648"}},
      {"lathe.bitcast %a to bf16 : $a", {{"2xi16", {0x3f80, -32768}}}, "2xbf16", {"1 -0"}},
      // reductions
      {"lathe.reduce_sum %a axes [0] : $a", {{"2x2xf32", {1, 2, 3, 4}}}, "2xf32", {"4 6"}},
      {"lathe.reduce_sum %a axes [1] keep_dims true : $a",
       {{"2x2xi8", {100, 100, 1, 2}}},
       "2x1xi8",
       {"-56 3"}},
      {"lathe.reduce_sum %a axes [0] : $a", {{"0x2xf32", {}}}, "2xf32", {"0 0"}},
      // Added up in bf16 every 1 would be lost; 259 is a tie that goes to 260.
      {"lathe.reduce_sum %a axes [0] : $a", {{"4xbf16", {256, 1, 1, 1}}}, "bf16", {"260"}},
      {"lathe.reduce_mean %a axes [0, 2] : $a",
       {{"2x2x2xf32", {1, 2, 3, 4, 5, 6, 7, 8}}},
       "2xf32",
       {"3.5 5.5"}},
      {"lathe.reduce_mean %a axes [0] : $a", {{"0xf32", {}}}, "f32", {"nan"}},
      {"lathe.reduce_max %a axes [1] : $a", {{"2x2xf32", {1, kNan, -0., 0}}}, "2xf32", {"nan 0"}},
      {"lathe.reduce_max %a axes [0] : $a", {{"0xf32", {}}}, "f32", {"-inf"}},
      {"lathe.reduce_max %a axes [0] : $a", {{"0xi8", {}}}, "i8", {"-128"}},
      {"lathe.reduce_min %a axes [1] : $a", {{"2x2xf32", {1, 2, kNan, 0}}}, "2xf32", {"1 nan"}},
      {"lathe.reduce_min %a axes [0] : $a", {{"0xf32", {}}}, "f32", {"inf"}},
      {"lathe.reduce_min %a axes [0] : $a", {{"0xui8", {}}}, "ui8", {"255"}},
      {"lathe.reduce_prod %a axes [0] : $a", {{"3xi32", {2, 3, -4}}}, "i32", {"-24"}},
      {"lathe.reduce_prod %a axes [0] : $a", {{"0xf32", {}}}, "f32", {"1"}},
      {"lathe.reduce_any %a axes [1] : $a", {{"2x2xi1", {0, 0, 0, 1}}}, "2xi1", {"0 1"}},
      {"lathe.reduce_all %a axes [1] : $a", {{"2x2xi1", {1, 1, 0, 1}}}, "2xi1", {"1 0"}},
      {"lathe.reduce_all %a axes [0] : $a", {{"0xi1", {}}}, "i1", {"1"}},
      {"lathe.argmax %a axis 1 : $a", {{"2x3xf32", {1, 3, 3, 9, kNan, kNan}}}, "2xi64", {"1 1"}},
      {"lathe.argmin %a axis 0 : $a", {{"3x2xi32", {2, 5, 1, 4, 1, 6}}}, "2xi64", {"1 1"}},
      {"lathe.cumsum %a axis 1 : $a",
       {{"2x3xf32", {1, 2, 3, 4, kInf, 6}}},
       "2x3xf32",
       {"1 3 6 4 inf inf"}},
      {"lathe.cumsum %a axis 0 : $a", {{"2x2xi8", {100, 1, 100, 2}}}, "2x2xi8", {"100 1 -56 3"}},
      {"lathe.top_k %a k 3 : $a",
       {{"5xf32", {1, 3, 3, kNan, 2}}},
       "3xf32,3xi64",
       {"nan 3 3", "3 1 2"}},
      {"lathe.top_k %a k 1 : $a", {{"2x2xi32", {1, 2, 4, 3}}}, "2x1xi32,2x1xi64", {"2 4", "1 0"}},
      // shape
      {"lathe.transpose %a [1, 0] : $a",
       {{"2x3xi8", {1, 2, 3, 4, 5, 6}}},
       "3x2xi8",
       {"1 4 2 5 3 6"}},
      {"lathe.transpose %a [2, 0, 1] : $a",
       {{"1x2x3xi8", {1, 2, 3, 4, 5, 6}}},
       "3x1x2xi8",
       {"1 4 2 5 3 6"}},
      {"lathe.reshape %a to <3, 2> : $a",
       {{"2x3xi8", {1, 2, 3, 4, 5, 6}}},
       "3x2xi8",
       {"1 2 3 4 5 6"}},
      {"lathe.broadcast %a to <2, 2, 2> : $a",
       {{"2x1xf32", {1, 2}}},
       "2x2x2xf32",
       {"1 1 2 2 1 1 2 2"}},
      {"lathe.slice %a starts <1, 0> sizes <1, 2> strides [1, 2] : $a",
       {{"2x3xi8", {1, 2, 3, 4, 5, 6}}},
       "1x2xi8",
       {"4 6"}},
      {"lathe.concat %a, %b axis 1 : $a, $b",
       {{"2x1xf32", {1, 2}}, {"2x2xf32", {3, 4, 5, 6}}},
       "2x3xf32",
       {"1 3 4 2 5 6"}},
      {"lathe.pad %a, %b low [1, 0] high [0, 1] : $a, $b",
       {{"1x2xf32", {1, 2}}, {"f32", {9}}},
       "2x3xf32",
       {"9 9 9 1 2 9"}},
      {"lathe.reverse %a axes [0, 1] : $a", {{"2x2xi1", {1, 0, 1, 1}}}, "2x2xi1", {"1 1 0 1"}},
      // contraction
      {"lathe.matmul %a, %b : $a, $b",
       {{"2x2xf32", {1, 2, 3, 4}}, {"2x2xf32", {5, 6, 7, 8}}},
       "2x2xf32",
       {"19 22 43 50"}},
      {"lathe.matmul %a, %b : $a, $b",
       {{"2x1x1x2xi8", {1, 2, 3, 4}}, {"2x2x1xi8", {10, 20, 30, 40}}},
       "2x2x1x1xi8",
       {"50 110 110 -6"}},
      {"lathe.matmul %a, %b : $a, $b",
       {{"1x2xf32", {0, 1}}, {"2x1xf32", {kInf, 1}}},
       "1x1xf32",
       {"nan"}},
      // 1 + 2^-8 * 2 fits bf16 only if the products are added before rounding.
      {"lathe.matmul %a, %b : $a, $b",
       {{"1x3xbf16", {1, 0x1p-8, 0x1p-8}}, {"3x1xbf16", {1, 1, 1}}},
       "1x1xbf16",
       {"1.0078125"}},
      {"lathe.matmul %a, %b : $a, $b", {{"1x0xf32", {}}, {"0x2xf32", {}}}, "1x2xf32", {"0 0"}},
      {"lathe.convolution %a, %b strides [1, 1] padding [0, 0, 0, 0] : $a, $b",
       {{"1x1x3x3xf32", {1, 2, 3, 4, 5, 6, 7, 8, 9}}, {"1x1x2x2xf32", {1, 0, 0, 1}}},
       "1x1x2x2xf32",
       {"6 8 12 14"}},
      {"lathe.convolution %a, %b strides [2, 2] padding [1, 0, 1, 0] : $a, $b",
       {{"1x1x3x3xf32", {1, 2, 3, 4, 5, 6, 7, 8, 9}}, {"1x1x2x2xf32", {1, 0, 0, 1}}},
       "1x1x2x2xf32",
       {"1 3 7 14"}},
      // Two channels summed, two filters.
      {"lathe.convolution %a, %b strides [1, 1] padding [0, 0, 0, 0] : $a, $b",
       {{"1x2x1x2xf64", {1, 2, 3, 4}}, {"2x2x1x1xf64", {1, 10, 0, 1}}},
       "1x2x1x2xf64",
       {"31 42 3 4"}},
      // indices
      {"lathe.iota <2, 3> axis 1 dtype i32", {}, "2x3xi32", {"0 1 2 0 1 2"}},
      {"lathe.iota <258> axis 0 dtype bf16", {}, "258xbf16", {"" /* filled in below */}},
      {"lathe.gather %a, %b axis 0 : $a, $b",
       {{"3x2xf32", {1, 2, 3, 4, 5, 6}}, {"2xi32", {2, 0}}},
       "2x2xf32",
       {"5 6 1 2"}},
      {"lathe.gather %a, %b axis 1 : $a, $b",
       {{"2x3xi8", {1, 2, 3, 4, 5, 6}}, {"1x2xi64", {2, 2}}},
       "2x1x2xi8",
       {"3 3 6 6"}},
      {"lathe.update %a, %b, %c axis 1 : $a, $b, $c",
       {{"2x3xf32", {1, 2, 3, 4, 5, 6}}, {"2x1xf32", {7, 8}}, {"2xi64", {2, 0}}},
       "2x3xf32",
       {"1 2 7 8 5 6"}},
      {"lathe.update %a, %b, %c axis 2 : $a, $b, $c",
       {{"1x2x3xi8", {1, 2, 3, 4, 5, 6}}, {"1x2x2xi8", {7, 8, 9, 10}}, {"1xi32", {1}}},
       "1x2x3xi8",
       {"1 7 8 4 9 10"}},
      {"lathe.random_bits %a to <5> : $a",
       {{"i64", {0}}},
       "5xi32",
       {"1713891541 -513161843 -1135104948 -1694442536 " /* completed below */}},
      // constants
      {"lathe.constant dense<[1.5, -0.0]> : tensor<2xbf16>", {}, "2xbf16", {"1.5 -0"}},
      {"lathe.constant dense<[true, false]> : tensor<2xi1>", {}, "2xi1", {"1 0"}},
      {"lathe.constant dense<200> : tensor<2xui8>", {}, "2xui8", {"200 200"}},
      {"lathe.constant dense<-3> : tensor<i16>", {}, "i16", {"-3"}},
      {"lathe.weight \"w\" : tensor<2xf32>", {}, "2xf32", {"5 6"}},
      // fused
      {"lathe.softmax %a axis 0 : $a", {{"2x2xf64", {0, -kInf, 0, 0}}}, "2x2xf64", {"0.5 0 0.5 1"}},
      {"lathe.softmax %a axis 0 : $a", {{"2xf32", {-kInf, -kInf}}}, "2xf32", {"nan nan"}},
      {"lathe.softmax %a axis 0 masked_row zero : $a",
       {{"2xf32", {-kInf, -kInf}}},
       "2xf32",
       {"0 0"}},
      {"lathe.softmax %a axis 0 masked_row uniform : $a",
       {{"2xf32", {-kInf, -kInf}}},
       "2xf32",
       {"0.5 0.5"}},
      {"lathe.rms_norm %a, %b epsilon 0.0 : $a, $b",
       {{"1x2xf64", {3, 4}}, {"2xf64", {1, 2}}},
       "1x2xf64",
       {"0.848528137 2.2627417"}},
      {"lathe.rope half %a, %b, %c : $a, $b, $c",
       {{"1x4xf32", {1, 2, 3, 4}}, {"1x2xf32", {0, 1}}, {"1x2xf32", {1, 0}}},
       "1x4xf32",
       {"-3 2 1 4"}},
      {"lathe.rope interleaved %a, %b, %c : $a, $b, $c",
       {{"1x4xf32", {1, 2, 3, 4}}, {"1x2xf32", {0, 1}}, {"1x2xf32", {1, 0}}},
       "1x4xf32",
       {"-2 1 3 4"}},
      {"lathe.silu_gate %a, %b : $a, $b",
       {{"2xf64", {0, 1}}, {"2xf64", {5, 2}}},
       "2xf64",
       {"0 1.46211716"}},
      {"lathe.silu_gate %a, %a activation relu : $a, $a", {{"2xf32", {-3, 3}}}, "2xf32", {"-0 9"}},
      // Both query heads read the one key head; equal scores average the values.
      {"lathe.attention %a, %b, %c scale 1.0 : $a, $b, $c",
       {{"1x2x1x1xf32", {0, 0}}, {"1x1x2x1xf32", {1, 2}}, {"1x1x2x1xf32", {10, 20}}},
       "1x2x1x1xf32",
       {"15 15"}},
      {"lathe.attention %a, %b, %c scale 1.0 causal top_left : $a, $b, $c",
       {{"1x2x1xf32", {0, 0}}, {"1x2x1xf32", {1, 2}}, {"1x2x1xf32", {10, 20}}},
       "1x2x1xf32",
       {"10 15"}},
      {"lathe.attention %a, %b, %c scale 1.0 causal bottom_right : $a, $b, $c",
       {{"1x1x1xf32", {0}}, {"1x2x1xf32", {1, 2}}, {"1x2x1xf32", {10, 20}}},
       "1x1x1xf32",
       {"15"}},
      {"lathe.linear %a, %b bias %c : $a, $b bias $c",
       {{"1x2xf32", {1, 2}}, {"2x2xf32", {1, 0, 1, 1}}, {"2xf32", {10, 20}}},
       "1x2xf32",
       {"11 23"}},
      {"lathe.linear %a, %b layout packed : $a, $b",
       {{"1x2xf32", {1, 2}}, {"2x2xf32", {1, 0, 1, 1}}},
       "1x2xf32",
       {"1 3"}},
      {"lathe.linear %a, %b layout in_out : $a, $b",
       {{"1x2xf32", {1, 2}}, {"2x2xf32", {1, 0, 1, 1}}},
       "1x2xf32",
       {"3 2"}},
      {"lathe.embedding %a, %b : $a, $b",
       {{"2xi64", {1, 0}}, {"2x2xf32", {1, 2, 3, 4}}},
       "2x2xf32",
       {"3 4 1 2"}},
      // kernels
      {"lathe.pack %a out_in : $a", {{"2x2xf32", {1, 2, 3, 4}}}, "2x2xf32", {"1 2 3 4"}},
      {"lathe.pack %a in_out : $a", {{"2x3xf32", {1, 2, 3, 4, 5, 6}}}, "3x2xf32", {"1 4 2 5 3 6"}},
      {"lathe.region(%a) : ($a) -> (tensor<2xf32>) {\n  ^bb0(%x: $a):\n"
       "    %n = lathe.neg %x : $a\n    lathe.yield %n : $a\n  }",
       {{"2xf32", {1, -2}}},
       "2xf32",
       {"-1 2"}},
  };
  return cases;
}

/// Values that are easier computed than spelled.
std::string completed(const OpCase& c, const std::string& expected) {
  if (c.op.starts_with("lathe.iota <258>")) {
    std::string s;
    for (int i = 0; i < 257; ++i) s += std::to_string(i) + " ";
    return s + "256";  // 257 is no bf16 and lies between 256 and 258
  }
  if (c.op.starts_with("lathe.random_bits"))
    return expected + std::to_string(int32_t(reference::philox({1, 0, 0, 0}, {0, 0})[0]));
  return expected;
}

class ReferenceOp : public testing::TestWithParam<size_t> {};

TEST_P(ReferenceOp, GivesValuesWorkedOutByHand) {
  const OpCase& c = opCases()[GetParam()];
  SCOPED_TRACE(c.text());
  Program program(c.text());
  program.weights = [](const std::string&) {
    return Array::fromFloats(std::vector{5.f, 6.f}, {2});
  };
  std::vector<Array> arguments;
  for (auto& a : c.arguments) arguments.push_back(a.array());
  auto results = program.run(arguments);
  ASSERT_EQ(results.size(), c.expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(show(results[i]), completed(c, c.expected[i]));
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceOp, testing::Range(size_t(0), opCases().size()),
                         [](const auto& info) {
                           const std::string& op = opCases()[info.param].op;
                           std::string name = op.substr(6, op.find_first_of(" (", 6) - 6);
                           return name + "_" + std::to_string(info.param);
                         });

TEST(Reference, EveryOpOfTheDialectHasACase) {
  auto context = createContext();
  for (auto name : context->getRegisteredOperations()) {
    std::string op = name.getStringRef().str();
    // Declarations compute nothing; kernels belong to a backend; a yield ends every region case.
    if (!op.starts_with("lathe.") || op == "lathe.dim" || op == "lathe.state" ||
        op == "lathe.kernel" || op == "lathe.yield")
      continue;
    bool found = false;
    for (auto& c : opCases()) found |= c.op.starts_with(op + " ") || c.op.starts_with(op + "(");
    EXPECT_TRUE(found) << op;
  }
}

}  // namespace
}  // namespace lathe
