// SPDX-License-Identifier: Apache-2.0
// What the device of the CUDA backend says of a program whose kernel table does not fit it, and of
// sizes that no kernel takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "backends/cuda/device/kernel_table.h"
#include "backends/cuda/device/program_code.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/session.h"

namespace lathe::cuda {
namespace {

using ::testing::HasSubstr;

// A layer, and its operand as a second output, which is a copy.
Program layer() {
  Graph g;
  const Dim rows = g.dim("rows", 1, 64);
  Tensor x = g.input("x", DType::F32, {rows, 16});
  g.output("y", fused::linear(x, g.weight("w", DType::F32, {8, 16})));
  g.output("same", x);
  return compile(g, {.backend = "cuda"});
}

Error errorOf(Program program, int64_t rows, const std::string& device) {
  try {
    Session session(std::make_shared<Program>(std::move(program)), {.device = device});
    session.bindRandomWeights(1);
    session.run("forward", {{"x", Array(DType::F32, {rows, 16})}});
  } catch (const Error& e) {
    return e;
  }
  return Error(ErrorCode::Numeric, "no error");
}

// After `change` of the variants of the layer's kernels.
Error errorAfter(const std::function<void(std::vector<Variant>&)>& change, int64_t rows = 5) {
  Program program = layer();
  KernelTable table = kernelTableOf(program);
  change(table.at("linear_0"));
  storeKernels(program, table, kernelCodeOf(program));
  return errorOf(std::move(program), rows, "host");
}

TEST(DeviceErrors, KernelTablesThatDoNotFitTheirProgramAreRefused) {
  EXPECT_STREQ(errorAfter([](auto&) {}).what(), "no error");
  struct Bad {
    std::function<void(Variant&)> change;
    const char* said;
  };
  auto buffer = [](int i) { return Argument{Argument::Kind::Buffer, i, 0}; };
  const Bad all[] = {
      {[](Variant& v) { v.launches[0].kernel = "nobody"; }, "the program has no kernel 'nobody'"},
      {[](Variant& v) { v.buffers = 2; },
       "'linear_0' takes 2 operands and results, the call gives 3"},
      {[](Variant& v) { v.launches[0].arguments[0] = {Argument::Kind::Buffer, 3, 0}; },
       "' takes buffer 3 of a call with 3"},
      {[](Variant& v) { v.launches[0].arguments[0] = {Argument::Kind::Scratch, 1, 0}; },
       "' takes scratch buffer 1 of a call with 1"},
      {[](Variant& v) {
         v.temporaries.push_back(64);
         v.launches[0].arguments[0] = {Argument::Kind::Scratch, 2, 0};
       },
       "' takes scratch buffer 2 of a call with 2"},
      {[](Variant& v) { v.launches[0].arguments[0] = {Argument::Kind::Status, 1, 0}; },
       "' takes check 1 of 0"},
      {[](Variant& v) { v.launches[0].unlessSame = {0, 3}; }, "' takes buffer 3 of a call with 3"},
      {[&](Variant& v) {
         v.launches[0].matmul =
             PlainMatmul{DType::F32, 1, 8, 16, buffer(0), buffer(4), buffer(2), {}, {}};
       },
       "' takes buffer 4 of a call with 3"},
      {[&](Variant& v) {
         v.launches[0].matmul =
             PlainMatmul{DType::F32, 1, 8, 16, buffer(0), buffer(1), buffer(2), {}, buffer(5)};
       },
       "' takes buffer 5 of a call with 3"},
      {[&](Variant& v) {
         PlainAttention& a = v.launches[0].attention.emplace();
         a.q.buffer = a.k.buffer = a.v.buffer = a.y.buffer = buffer(0);
         a.lengths = buffer(6);
       },
       "' takes buffer 6 of a call with 3"},
  };
  for (const Bad& bad : all) {
    const Error e = errorAfter([&](std::vector<Variant>& variants) {
      for (Variant& v : variants) bad.change(v);
    });
    EXPECT_EQ(e.code(), ErrorCode::InvalidFile);
    EXPECT_THAT(e.what(), HasSubstr(bad.said));
  }
}

TEST(DeviceErrors, CallsWithoutKernelsAreRefused) {
  auto errorAfter = [](const std::function<void(Program&)>& change) {
    Program program = layer();
    change(program);
    return std::string(errorOf(std::move(program), 5, "host").what());
  };
  EXPECT_THAT(errorAfter([](Program& program) {
                KernelTable table = kernelTableOf(program);
                table.erase("linear_0");
                storeKernels(program, table, kernelCodeOf(program));
              }),
              HasSubstr("the kernel table has no 'linear_0' for 'linear'"));
  EXPECT_THAT(errorAfter([](Program& program) { program.blobs.erase("cuda.table"); }),
              HasSubstr("the program for backend 'cuda' holds no kernel table"));
  EXPECT_THAT(errorAfter([](Program& program) {
                for (Call& call : program.entries.at(0).calls)
                  if (call.kind == "copy") call.operands.push_back(call.operands[0]);
              }),
              HasSubstr("expected 1 operands and 1 results, got 2 and 1"));
}

TEST(DeviceErrors, SizesThatNoKernelTakesAreNamed) {
  const DimExpr rows = DimExpr::symbol("rows");
  auto with = [&](std::vector<Condition> when) {
    return errorAfter([&](std::vector<Variant>& variants) {
      variants.resize(1);
      variants[0].when = when;
    });
  };
  const Error e = with({{rows, 0, 4}});
  EXPECT_EQ(e.code(), ErrorCode::Unsupported);
  EXPECT_THAT(e.what(), HasSubstr("no kernel of 'linear_0' fits these sizes: rows is 5, expected "
                                  "at most 4"));
  EXPECT_THAT(with({{rows, 6, 9}}).what(), HasSubstr("rows is 5, expected at least 6"));
  EXPECT_THAT(with({{rows * 2, 0, 9}, {rows, 7, 9}}).what(),
              HasSubstr(": 2*rows is 10, expected at most 9, rows is 5, expected at least 7"));
}

// A candidate that is to be measured as a library's must not be another's.
TEST(DeviceErrors, LibrariesThatAreRequiredAreNotReplaced) {
  auto buffer = [](int i) { return Argument{Argument::Kind::Buffer, i, 0}; };
  EXPECT_THAT(errorAfter([&](std::vector<Variant>& variants) {
                for (Variant& v : variants) {
                  v.launches[0].matmul =
                      PlainMatmul{DType::F32, 5, 8, 16, buffer(0), buffer(1), buffer(2), {}, {}};
                  v.launches[0].matmul->required = true;
                }
              }).what(),
              HasSubstr("the product is left to cuBLASLt, which is missing here"));
  EXPECT_THAT(errorAfter([&](std::vector<Variant>& variants) {
                for (Variant& v : variants) {
                  PlainAttention& a = v.launches[0].attention.emplace();
                  a.batch = a.queries = a.keys = 1;
                  a.q.buffer = a.k.buffer = a.v.buffer = a.y.buffer = buffer(0);
                  a.required = true;
                }
              }).what(),
              HasSubstr("the attention is left to cuDNN, which is missing here"));
}

TEST(DeviceErrors, DevicesAreNamed) {
  const Error e = errorOf(layer(), 5, "fpga");
  EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
  EXPECT_THAT(e.what(), HasSubstr("device 'fpga' is not known; the cuda backend has gpu and host"));
}

}  // namespace
}  // namespace lathe::cuda
