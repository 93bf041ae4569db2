// SPDX-License-Identifier: Apache-2.0
// The reference interpreter around its ops: precision, symbols, errors, observation.
#include "backends/reference/interpreter_ops.h"
#include "backends/reference/sum_rounding.h"
#include "tests/unit/reference_cases.h"

namespace lathe {
namespace {

// Salmon et al., Random123, kat_vectors: philox4x32 10.
TEST(Reference, PhiloxGivesThePublishedVectors) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(reference::philox({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(reference::philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      reference::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Reference, CastsALargeIntegerWithOneRounding) {
  // 2^60 + 2^36 + 1 lies above the middle of two floats; as a double it lies on it.
  ReferenceProgram program(
      "func.func @f(%a: tensor<1xi64>) -> tensor<1xf32> {\n"
      "  %r = lathe.cast %a to f32 : tensor<1xi64>\n  return %r : tensor<1xf32>\n}");
  std::vector<int64_t> value{(int64_t(1) << 60) + (int64_t(1) << 36) + 1};
  EXPECT_EQ(program.run({Array::fromInts(value, {1})})[0].as<float>()[0], 0x1p60f + 0x1p37f);
}

TEST(Reference, KeepsIntegersThatNoDoubleHolds) {
  ReferenceProgram program(
      "func.func @f(%a: tensor<2xi64>) -> tensor<2xi64> {\n"
      "  %r = lathe.add %a, %a : tensor<2xi64>, tensor<2xi64>\n  return %r : tensor<2xi64>\n}");
  std::vector<int64_t> values{(int64_t(1) << 61) + 1, INT64_MAX};
  Array y = program.run({Array::fromInts(values, {2})}, Precision::Float64)[0];
  EXPECT_EQ(y.as<int64_t>()[0], (int64_t(1) << 62) + 2);
  EXPECT_EQ(y.as<int64_t>()[1], -2);
}

// What an op computes with is a value of its operand's dtype, not the bits that are stored at the
// end.
TEST(Reference, IntegersKeepToTheirDtypeBetweenOps) {
  ReferenceProgram program(
      "func.func @f(%a: tensor<1xi8>, %b: tensor<1xui8>) -> (tensor<1xf32>, tensor<1xf32>, "
      "tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) {\n"
      "  %u = lathe.constant dense<200> : tensor<1xui8>\n"
      "  %0 = lathe.cast %u to f32 : tensor<1xui8>\n"
      "  %s = lathe.constant dense<-3> : tensor<1xi16>\n"
      "  %1 = lathe.cast %s to f32 : tensor<1xi16>\n"
      "  %t = lathe.constant dense<true> : tensor<1xi1>\n"
      "  %2 = lathe.cast %t to f32 : tensor<1xi1>\n"
      "  %aa = lathe.add %a, %a : tensor<1xi8>, tensor<1xi8>\n"
      "  %3 = lathe.cast %aa to f32 : tensor<1xi8>\n"
      "  %bb = lathe.add %b, %b : tensor<1xui8>, tensor<1xui8>\n"
      "  %4 = lathe.cast %bb to f32 : tensor<1xui8>\n"
      "  return %0, %1, %2, %3, %4 : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, "
      "tensor<1xf32>\n}");
  std::string seen;
  for (const Array& y :
       program.run({Literal{"1xi8", {100}}.array(), Literal{"1xui8", {200}}.array()}))
    seen += show(y) + " ";
  EXPECT_EQ(seen, "200 -3 1 -56 144 ");
}

constexpr const char* kNarrowing =
    "func.func @f(%a: tensor<1xf32>) -> tensor<1xf32> {\n"
    "  %n = lathe.cast %a to bf16 : tensor<1xf32>\n"
    "  %w = lathe.cast %n to f32 : tensor<1xbf16>\n"
    "  %r = lathe.mul %w, %w : tensor<1xf32>, tensor<1xf32>\n"
    "  return %r : tensor<1xf32>\n}";

TEST(Reference, OwnDtypeRoundsEveryResult) {
  Array x = Literal{"1xf32", {1 + 0x1p-8}}.array();
  EXPECT_EQ(show(ReferenceProgram(kNarrowing).run({x})[0]), "1");
}

TEST(Reference, Float64NeverRounds) {
  Array x = Literal{"1xf64", {1 + 0x1p-30}}.array();
  Array y = ReferenceProgram(kNarrowing).run({x}, Precision::Float64)[0];
  ASSERT_EQ(y.dtype(), DType::F64);
  EXPECT_EQ(y.at(0), (1 + 0x1p-30) * (1 + 0x1p-30));
}

TEST(Reference, Float64TakesArgumentsOfAnyFloatDtype) {
  EXPECT_EQ(show(ReferenceProgram(kNarrowing)
                     .run({Literal{"1xbf16", {3}}.array()}, Precision::Float64)[0]),
            "9");
}

// 3 - 4 + 12 as a sum, the last of running sums, a mean and products.
TEST(Reference, RoughSumsAreMovedByWhatTheirOrderMayRound) {
  const double sums = reference::roundingOfSum(11, 169, 3, DType::F32),
               means = reference::roundingOfSum(11. / 3, 169. / 9, 3, DType::F32);
  auto movedBy = [](const std::string& op, const std::string& result, double exact) {
    ReferenceProgram program(
        "func.func @f(%t: tensor<3xf32>, %a: tensor<1x3xf32>, %b: tensor<3x1xf32>,\n"
        "             %i: tensor<1x1x1x3xf32>, %k: tensor<1x1x1x3xf32>) -> tensor<" +
        result + "> {\n  %r = " + op + "\n  return %r : tensor<" + result + ">\n}");
    const std::vector<double> x{1, 2, 4}, w{3, -2, 3};
    const Array y =
        program.run({Literal{"3xf32", {3, -4, 12}}.array(), Literal{"1x3xf32", x}.array(),
                     Literal{"3x1xf32", w}.array(), Literal{"1x1x1x3xf32", x}.array(),
                     Literal{"1x1x1x3xf32", w}.array()},
                    Precision::RoughSums)[0];
    return std::abs(y.at(y.size() - 1) - exact);
  };
  EXPECT_NEAR(movedBy("lathe.reduce_sum %t axes [0] : tensor<3xf32>", "f32", 11), sums, 1e-12);
  EXPECT_NEAR(movedBy("lathe.cumsum %t axis 0 : tensor<3xf32>", "3xf32", 11), sums, 1e-12);
  EXPECT_NEAR(movedBy("lathe.reduce_mean %t axes [0] : tensor<3xf32>", "f32", 11. / 3), means,
              1e-12);
  EXPECT_NEAR(movedBy("lathe.matmul %a, %b : tensor<1x3xf32>, tensor<3x1xf32>", "1x1xf32", 11),
              sums, 1e-12);
  EXPECT_NEAR(movedBy("lathe.convolution %i, %k strides [1, 1] padding [0, 0, 0, 0] : "
                      "tensor<1x1x1x3xf32>, tensor<1x1x1x3xf32>",
                      "1x1x1x1xf32", 11),
              sums, 1e-12);
}

constexpr const char* kSymbolic =
    "lathe.dim @seq 0 to 16 multiple 2\n"
    "func.func @f(%a: tensor<?x?xf32, #lathe.dims<batch, seq>> {lathe.name = \"ids\"},\n"
    "             %b: tensor<?xf32, #lathe.dims<cache+seq>>) -> tensor<?xf32, "
    "#lathe.dims<batch*seq>> {\n"
    "  %r = lathe.reshape %a to <batch*seq> : tensor<?x?xf32, #lathe.dims<batch, seq>>\n"
    "  return %r : tensor<?xf32, #lathe.dims<batch*seq>>\n}";

TEST(Reference, BindsSymbolsFromTheArguments) {
  ReferenceProgram program(kSymbolic);
  Array y = program.run({Literal{"2x2xf32", {1, 2, 3, 4}}.array(), Array(DType::F32, {5})},
                        Precision::OwnDtype, {{"cache", 3}})[0];
  EXPECT_EQ(y.shape(), Shape({4}));
}

TEST(Reference, NamesTheDimThatContradictsASymbol) {
  EXPECT_EQ(ReferenceProgram(kSymbolic).error({Array(DType::F32, {2, 2}), Array(DType::F32, {9})},
                                              ErrorCode::InvalidArgument, {{"cache", 3}}),
            "argument 1, dim 0: expected cache+seq = 5, got 9; cache = 3 comes from the caller; "
            "seq = 2 comes from argument 'ids', dim 1");
}

TEST(Reference, AsksForASymbolThatNoArgumentBinds) {
  EXPECT_EQ(ReferenceProgram(kSymbolic).error({Array(DType::F32, {2, 2}), Array(DType::F32, {5})}),
            "argument 1, dim 0: expected a value for every symbol of 'cache+seq', got none or an "
            "overflow; pass the symbols that no argument binds");
}

TEST(Reference, ChecksASymbolAgainstItsRange) {
  EXPECT_EQ(ReferenceProgram(kSymbolic).error({Array(DType::F32, {1, 18}), Array(DType::F32, {20})},
                                              ErrorCode::InvalidArgument, {{"cache", 2}}),
            "symbol 'seq': expected 0 to 16 in multiples of 2, got 18");
}

// Multiples are counted from 0, not from the least that the range allows; both ends are allowed.
TEST(Reference, MultiplesAreThoseOfTheSize) {
  ReferenceProgram program(
      "lathe.dim @n 3 to 12 multiple 4\n"
      "func.func @f(%a: tensor<?xf32, #lathe.dims<n>>) -> tensor<?xf32, #lathe.dims<n>> {\n"
      "  return %a : tensor<?xf32, #lathe.dims<n>>\n}");
  for (int64_t size : {4, 8, 12})
    EXPECT_EQ(program.run({Array(DType::F32, {size})})[0].shape(), Shape({size}));
  for (int64_t size : {3, 7, 11})
    EXPECT_EQ(program.error({Array(DType::F32, {size})}),
              "symbol 'n': expected 3 to 12 in multiples of 4, got " + std::to_string(size));
  for (int64_t size : {0, 16})
    EXPECT_EQ(program.error({Array(DType::F32, {size})}),
              "symbol 'n': expected 3 to 12 in multiples of 4, got " + std::to_string(size));
}

constexpr const char* kStatic =
    "func.func @f(%a: tensor<2x3xf32> {lathe.name = \"x\"}) -> tensor<2x3xf32> {\n"
    "  return %a : tensor<2x3xf32>\n}";

TEST(Reference, NamesAnArgumentThatDoesNotFit) {
  ReferenceProgram program(kStatic);
  EXPECT_EQ(program.error({Array(DType::F32, {2, 4})}),
            "argument 'x': expected f32[2, 3], got f32[2, 4]");
  EXPECT_EQ(program.error({Array(DType::F64, {2, 3})}),
            "argument 'x': expected f32[2, 3], got f64[2, 3]");
  EXPECT_EQ(program.error({Array()}), "argument 'x': expected f32[2, 3], got no array");
  EXPECT_EQ(program.error({}), "function 'f': expected 1 arguments, got 0");
}

/// The error of one op of the table's form.
std::string errorOf(const OpCase& c, ErrorCode code = ErrorCode::InvalidArgument) {
  std::vector<Array> arguments;
  for (auto& a : c.arguments) arguments.push_back(a.array());
  return ReferenceProgram(c.text()).error(arguments, code);
}

TEST(Reference, GatherNamesAnIndexOutOfRange) {
  EXPECT_EQ(
      errorOf({"lathe.gather %a, %b axis 0 : $a, $b",
               {{"3x1xf32", {1, 2, 3}}, {"2xi64", {0, -1}}},
               "2x1xf32",
               {""}}),
      "test.mlir:2: 'lathe.gather' expected indices in [0, 3) for axis 0 of size 3, got -1 at "
      "element 1");
}

TEST(Reference, EmbeddingNamesAnIdOutsideItsTable) {
  EXPECT_EQ(errorOf({"lathe.embedding %a, %b : $a, $b",
                     {{"1xi64", {3}}, {"3x1xf32", {1, 2, 3}}},
                     "1x1xf32",
                     {""}}),
            "test.mlir:2: 'lathe.gather' expected indices in [0, 3) for axis 0 of size 3, got 3 at "
            "element 0");
}

TEST(Reference, UpdateNamesAPositionOutOfRange) {
  EXPECT_EQ(errorOf({"lathe.update %a, %b, %c axis 1 : $a, $b, $c",
                     {{"1x3xf32", {1, 2, 3}}, {"1x2xf32", {7, 8}}, {"1xi64", {2}}},
                     "1x3xf32",
                     {""}}),
            "test.mlir:2: 'lathe.update' expected 2 elements to fit into axis 1 of size 3, got "
            "position 2 for batch 0; the largest that fits is 1");
}

// Sequence 1 is the one at fault; what it names are its own positions and its own row of the table.
TEST(Reference, PagedUpdateNamesTheSequenceAndItsEntry) {
  auto error = [](std::vector<double> table, std::vector<double> positions) {
    return errorOf(
        {"lathe.paged_update %a, %b table %c positions %d axis 1 : $a, $b table $c positions $d",
         {{"4x2xf32", {1, 2, 3, 4, 5, 6, 7, 8}},
          {"2x2xf32", {10, 11, 12, 13}},
          {"2x2xi64", table},
          {"2xi64", positions}},
         "4x2xf32",
         {""}});
  };
  const std::string op = "test.mlir:2: 'lathe.paged_update' expected ";
  for (int64_t position : {-1, 3})
    EXPECT_EQ(error({3, 1, 0, 2}, {2, double(position)}),
              op + "2 elements to fit into 2 blocks of 2, got position " +
                  std::to_string(position) + " for sequence 1");
  for (int64_t block : {-1, 4})
    EXPECT_EQ(
        error({3, 1, 0, double(block)}, {2, 1}),
        op + "blocks in [0, 4), got block " + std::to_string(block) + " at entry 1 of sequence 1");
}

TEST(Reference, TopKChecksASymbolicAxis) {
  ReferenceProgram program(
      "func.func @f(%a: tensor<?xf32, #lathe.dims<n>>) -> (tensor<2xf32>, tensor<2xi64>) {\n"
      "  %v, %i = lathe.top_k %a k 2 : tensor<?xf32, #lathe.dims<n>>\n"
      "  return %v, %i : tensor<2xf32>, tensor<2xi64>\n}");
  EXPECT_EQ(program.error({Array(DType::F32, {1})}),
            "test.mlir:2: 'lathe.top_k' expected at least k = 2 elements along axis 0, got size 1");
}

TEST(Reference, SliceChecksADimThatMayBeZero) {
  ReferenceProgram program(
      "func.func @f(%a: tensor<?xf32, #lathe.dims<n>>) -> tensor<1xf32> {\n"
      "  %r = lathe.slice %a starts <0> sizes <1> strides [1] : tensor<?xf32, #lathe.dims<n>>\n"
      "  return %r : tensor<1xf32>\n}");
  EXPECT_EQ(program.error({Array(DType::F32, {0})}),
            "test.mlir:2: 'lathe.slice' expected the slice inside axis 0 of size 0, got start 0, "
            "size 1, stride 1");
}

TEST(Reference, RefusesADimBelowZero) {
  ReferenceProgram program(
      "func.func @f(%a: tensor<?xf32, #lathe.dims<n>>) -> tensor<?xi64, #lathe.dims<n minus 2>> {\n"
      "  %r = lathe.iota <n minus 2> axis 0 dtype i64\n"
      "  return %r : tensor<?xi64, #lathe.dims<n minus 2>>\n}");
  EXPECT_EQ(program.error({Array(DType::F32, {1})}),
            "test.mlir:2: 'lathe.iota' expected a dim of at least 0, got 'n-2' = -1");
}

TEST(Reference, NamesAWeightThatIsMissingOrDoesNotFit) {
  ReferenceProgram program(OpCase{"lathe.weight \"w\" : tensor<2xf32>", {}, "2xf32", {""}}.text());
  EXPECT_EQ(
      program.error({}),
      "test.mlir:2: 'lathe.weight' expected a weight 'w' of f32[2], got none; bind it or check "
      "the name");
  program.weights = [](const std::string&) { return Array(DType::BF16, {2}); };
  EXPECT_EQ(program.error({}), "weight 'w': expected f32[2], got bf16[2]");
}

TEST(Reference, RefusesAKernel) {
  EXPECT_EQ(errorOf({"lathe.kernel \"linear\"(%a) {} : ($a) -> (tensor<2xf32>)",
                     {{"2xf32", {1, 2}}},
                     "2xf32",
                     {""}},
                    ErrorCode::Unsupported),
            "test.mlir:2: 'lathe.kernel' expected an op with a meaning of its own, got a backend's "
            "kernel call; run the stage before 'lowered' on the reference backend");
}

TEST(Reference, ObservesEveryOpOfTheFunctionAndLeavesItAlone) {
  ReferenceProgram program(
      "func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
      "  %s = lathe.softmax %a axis 0 : tensor<2xf32>\n"
      "  %r = lathe.region(%s) : (tensor<2xf32>) -> (tensor<2xf32>) {\n"
      "  ^bb0(%x: tensor<2xf32>):\n"
      "    %n = lathe.neg %x : tensor<2xf32>\n    lathe.yield %n : tensor<2xf32>\n  }\n"
      "  return %r : tensor<2xf32>\n}");
  auto print = [&] {
    std::string s;
    llvm::raw_string_ostream os(s);
    program.function().print(os);
    return s;
  };
  std::string before = print(), seen;
  program.observe = [&](mlir::Operation* op, const std::vector<Array>& results) {
    seen += op->getName().getStringRef().str() + " = " + show(results.at(0)) + "\n";
  };
  program.run({Literal{"2xf32", {0, 0}}.array()});
  EXPECT_EQ(seen, "lathe.softmax = 0.5 0.5\nlathe.neg = -0.5 -0.5\nlathe.region = -0.5 -0.5\n");
  EXPECT_EQ(print(), before);
}

}  // namespace
}  // namespace lathe
