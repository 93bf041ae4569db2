// SPDX-License-Identifier: Apache-2.0
// Large products of a CUDA program go to cuBLASLt where it is installed.
#include <gtest/gtest.h>

#include <sstream>

#include "backends/cuda/device/program_code.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/session.h"
#include "tests/cuda_mocks/mock_library.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

class LibraryMatmul : public ::testing::Test {
 protected:
  LibraryMatmul()
      : program_(compiled()),
        cuda_("LATHE_LIBCUDA", test::mockPath("mock_cuda")),
        blas_("LATHE_CUBLASLT", test::mockPath("mock_cublaslt")) {
    session_ = std::make_unique<Session>(std::move(program_), SessionOptions{.device = "gpu"});
    session_->bindRandomWeights(1);
    test::mockFunction<void()>("mock_cublaslt", "mockBlasReset")();
  }

  static Program compiled() {
    Graph g;
    Dim rows = g.dim("rows", 1, 512);
    Tensor x = g.input("x", DType::BF16, {rows, 1024});
    Tensor residual = g.input("residual", DType::BF16, {rows, 2048});
    Tensor w = g.weight("w", DType::BF16, {2048, 1024});
    g.output("y", add(matmul(x, transpose(w, {1, 0})), residual));
    Program program = compile(g, {.backend = "cuda"});
    // What the mock driver takes for machine code.
    for (const cuda::KernelCode& k : cuda::kernelCodeOf(program))
      program.blobs["cuda.sm_90a/" + k.name] = "cubin " + k.name;
    return program;
  }

  void run(int64_t rows) {
    session_->run("forward", {{"x", Array(DType::BF16, {rows, 1024})},
                              {"residual", Array(DType::BF16, {rows, 2048})}});
  }
  std::vector<std::string> products() {
    std::istringstream in(test::mockFunction<const char*()>("mock_cublaslt", "mockBlasLog")());
    std::vector<std::string> found;
    for (std::string line; std::getline(in, line);)
      if (line.find("cublasLtMatmul on a stream") != std::string::npos) found.push_back(line);
    return found;
  }

  Program program_;
  test::Variable cuda_, blas_;
  std::unique_ptr<Session> session_;
};

TEST_F(LibraryMatmul, LargeOnesAreTheLibrarys) {
  run(200);
  EXPECT_EQ(products().size(), 1u);
  // Recorded at the second run and played; the third only plays.
  run(200);
  run(200);
  EXPECT_EQ(products().size(), 2u);
  EXPECT_EQ(session_->device().report().back(),
            "large products: " + test::mockPath("mock_cublaslt"));
}

TEST_F(LibraryMatmul, WithoutTheLibraryTheReportSaysSo) {
  test::Variable nowhere("LATHE_CUBLASLT", "/nowhere/libcublasLt.so.13");
  run(200);
  EXPECT_NE(session_->device().report().back().find(
                "large products: own kernels; cuBLASLt was not found:\n  LATHE_CUBLASLT=/nowhere"),
            std::string::npos)
      << session_->device().report().back();
}

TEST_F(LibraryMatmul, SmallOnesAreOurs) {
  run(16);
  EXPECT_TRUE(products().empty());
}

}  // namespace
}  // namespace lathe
