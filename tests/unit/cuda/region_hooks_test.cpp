// SPDX-License-Identifier: Apache-2.0
// Regions as device functions, called by small kernels on the host.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cuda/hostexec/host_driver.h"
#include "backends/cuda/lowering/region/region_printer.h"
#include "lathe/ir/dialect.h"
#include "lathe/runtime/array.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

namespace lathe::cuda {
namespace {

class RegionHooks : public ::testing::Test {
 protected:
  RegionHooks() : context_(registry(), mlir::MLIRContext::Threading::DISABLED) {
    context_.loadAllAvailableDialects();
  }

  mlir::func::FuncOp region(const std::string& text) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
    EXPECT_TRUE(module_);
    return *module_->getOps<mlir::func::FuncOp>().begin();
  }

  // Runs `body`, which may use `first` and `second` and calls `f` with what is behind its fixed
  // parameters as CALL, on `buffers` by the region's numbering.
  void run(const PrintedFunction& f, const std::string& head, std::string body, int blocks,
           int threads, const std::vector<Array>& inputs, std::vector<Array*> buffers) {
    std::string parameters = head, call;
    for (const PrintedFunction::Parameter& p : f.parameters) {
      parameters += (parameters.empty() ? "" : ", ") + p.type + p.name;
      call += ", " + p.name;
    }
    body.replace(body.find("CALL"), 4, call);
    const std::string source = "#include \"lathe_device.cuh\"\n" + f.text +
                               "extern \"C\" __global__ void __launch_bounds__(" +
                               std::to_string(threads) + ") hook(" + parameters + ") {\n" + body +
                               "}\n";
    SCOPED_TRACE(source);
    auto driver = openHost({.mode = host::Mode::Check});
    auto functions = driver->load({{.name = "hook", .source = source, .cubin = {}, .ptx = {}}});
    std::vector<void*> words;
    auto upload = [&](const Array& a) {
      words.push_back(driver->allocate(a.bytes(), "buffer " + std::to_string(words.size())));
      driver->upload(words.back(), a.data(), a.bytes());
    };
    for (const Array& a : inputs) upload(a);
    const size_t fixed = words.size();
    for (const PrintedFunction::Parameter& p : f.parameters) {
      ASSERT_EQ(p.argument.kind, Argument::Kind::Buffer);
      upload(*buffers[size_t(p.argument.index)]);
    }
    std::vector<void*> arguments;
    for (void*& w : words) arguments.push_back(&w);
    driver->launch(functions[0], {.grid = {uint32_t(blocks), 1, 1}, .threads = uint32_t(threads)},
                   arguments.data());
    driver->synchronize();
    for (size_t i = 0; i < f.parameters.size(); ++i) {
      Array& a = *buffers[size_t(f.parameters[i].argument.index)];
      driver->download(a.data(), words[fixed + i], a.bytes());
    }
    for (void* w : words) driver->release(w);
  }

  static Array filled(DType dtype, Shape shape, double step) {
    Array a(dtype, std::move(shape));
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, std::sin(double(i) * step) * 2);
    return a;
  }

 private:
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry r;
    r.insert<LatheDialect, mlir::func::FuncDialect>();
    return r;
  }
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(RegionHooks, GatesTwoAccumulators) {
  auto f = printEpilogue(region(R"(func.func @f(%g: tensor<3x40xbf16>, %u: tensor<3x40xbf16>)
      -> tensor<3x40xbf16> {
    %0 = lathe.glu %g, %u : tensor<3x40xbf16>, tensor<3x40xbf16>
    return %0 : tensor<3x40xbf16>
  })"),
                         {0, 1}, "gated", 1);
  ASSERT_TRUE(succeeded(f));
  Array gate = filled(DType::F32, {3, 40}, 1.3), up = filled(DType::F32, {3, 40}, 0.7);
  Array unused(DType::BF16, {1}), out(DType::BF16, {3, 40});
  run(*f, "const float* first, const float* second",
      "  const i64 at = (i64)blockIdx.x * 40 + threadIdx.x;\n"
      "  if (threadIdx.x < 40) gated(blockIdx.x, threadIdx.x, first[at], second[at]CALL);\n",
      3, 64, {gate, up}, {&unused, &unused, &out});
  for (int64_t i = 0; i < out.size(); ++i) {
    const double want = gate.at(i) / (1 + std::exp(-gate.at(i))) * up.at(i);
    EXPECT_NEAR(out.at(i), want, std::abs(want) * 0x1p-8 + 1e-6) << i;
  }
}

TEST_F(RegionHooks, AddsABiasAndAResidualToEightColumns) {
  auto f = printEpilogue(region(R"(func.func @f(%b: tensor<40xbf16>, %y: tensor<2x3x40xf32>,
      %r: tensor<2x3x40xbf16>) -> tensor<6x40xbf16> {
    %wide = lathe.cast %b to f32 : tensor<40xbf16>
    %0 = lathe.add %y, %wide : tensor<2x3x40xf32>, tensor<40xf32>
    %old = lathe.cast %r to f32 : tensor<2x3x40xbf16>
    %1 = lathe.add %0, %old : tensor<2x3x40xf32>, tensor<2x3x40xf32>
    %2 = lathe.cast %1 to bf16 : tensor<2x3x40xf32>
    %3 = lathe.reshape %2 to <6, 40> : tensor<2x3x40xbf16>
    return %3 : tensor<6x40xbf16>
  })"),
                         {1}, "epilogue", 8);
  ASSERT_TRUE(succeeded(f));
  EXPECT_NE(f->text.find("load_vec<8>"), std::string::npos) << f->text;
  Array y = filled(DType::F32, {6, 40}, 1.1), bias = filled(DType::BF16, {40}, 0.3),
        residual = filled(DType::BF16, {6, 40}, 2.3);
  Array unused(DType::F32, {1}), out(DType::BF16, {6, 40});
  run(*f, "const float* first",
      "  if (threadIdx.x < 5) {\n"
      "    vec<float, 8> value;\n"
      "    for (int j = 0; j < 8; ++j) value[j] = first[blockIdx.x * 40 + threadIdx.x * 8 + j];\n"
      "    epilogue(blockIdx.x, threadIdx.x * 8, valueCALL);\n"
      "  }\n",
      6, 32, {y}, {&bias, &unused, &residual, &out});
  for (int64_t i = 0; i < out.size(); ++i) {
    const double want = y.at(i) + bias.at(i % 40) + residual.at(i);
    EXPECT_NEAR(out.at(i), want, std::abs(want) * 0x1p-8 + 1e-6) << i;
  }
}

TEST_F(RegionHooks, NormalizesARowIntoSharedMemory) {
  for (int64_t n : {1, 33, 256, 1000}) {
    const std::string width = std::to_string(n), x = "tensor<3x" + width + "xbf16>",
                      g = "tensor<" + width + "xbf16>";
    auto f = printRowFunction(region("func.func @f(%x: " + x + ", %g: " + g + ") -> " + x +
                                     " { %0 = lathe.rms_norm %x, %g epsilon 1.0e-5 : " + x + ", " +
                                     g + "\n return %0 : " + x + " }"),
                              "normRow", 128);
    ASSERT_TRUE(succeeded(f));
    Array in = filled(DType::BF16, {3, n}, 0.9), gain = filled(DType::BF16, {n}, 1.7);
    Array unused(DType::BF16, {1});
    // What the row function writes, the kernel copies into a buffer of its own.
    PrintedFunction copying = *f;
    copying.parameters.push_back(
        {"bf16* ", "copied", {.kind = Argument::Kind::Buffer, .index = 2, .value = 0}});
    Array out(DType::BF16, {3, n});
    std::string body = "  LATHE_SHARED(bf16, row, " + width +
                       ");\n  normRow(blockIdx.x, rowCALL);\n" +
                       "  block_sync();\n  for (int c = threadIdx.x; c < " + width +
                       "; c += 128) copied[(i64)blockIdx.x * " + width + " + c] = row[c];\n";
    // The function itself does not take the copy.
    copying.text +=
        "template <class... A> LT_FN void normRow(i64 row, bf16* to, const bf16* "
        "x, const bf16* gain, bf16*) { normRow(row, to, x, gain); }\n";
    run(copying, "", body, 3, 128, {}, {&in, &gain, &out});
    for (int64_t i = 0; i < out.size(); ++i) {
      double squares = 0;
      for (int64_t j = 0; j < n; ++j) squares += std::pow(in.at(i / n * n + j), 2);
      const double want = in.at(i) / std::sqrt(squares / double(n) + 1e-5) * gain.at(i % n);
      EXPECT_NEAR(out.at(i), want, std::abs(want) * 0x1p-7 + 1e-6) << n << " " << i;
    }
  }
}

TEST_F(RegionHooks, RefusesToReadAnAccumulatorElsewhere) {
  auto f = region(R"(func.func @f(%y: tensor<3x40xf32>) -> tensor<3x40xf32> {
    %0 = lathe.reverse %y axes [1] : tensor<3x40xf32>
    return %0 : tensor<3x40xf32>
  })");
  std::string said;
  mlir::ScopedDiagnosticHandler quiet(f.getContext(), [&](mlir::Diagnostic& d) {
    said = d.str();
    return mlir::success();
  });
  EXPECT_TRUE(failed(printEpilogue(f, {0}, "epilogue", 8)));
  EXPECT_EQ(said, "an accumulator is read at another place than its own");
}

}  // namespace
}  // namespace lathe::cuda
