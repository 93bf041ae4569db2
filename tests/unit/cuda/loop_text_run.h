// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions in the loop form, printed and run on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "backends/cuda/hostexec/host_driver.h"
#include "backends/cuda/lowering/text/loop_text.h"
#include "lathe/runtime/array.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

namespace lathe::cuda {

class LoopText : public ::testing::Test {
 protected:
  LoopText() : context_(registry(), mlir::MLIRContext::Threading::DISABLED) {
    context_.loadAllAvailableDialects();
  }

  /// The statements of a function `(parameters) { body }`, whose arguments are called `names`.
  std::string print(const std::string& parameters, const std::string& body,
                    const std::vector<std::string>& names, bool fastExp = false) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @f(" + parameters + ") {\n" + body + "\nreturn\n}", &context_);
    if (!module_) {
      ADD_FAILURE() << body;
      return {};
    }
    auto f = *module_->getOps<mlir::func::FuncOp>().begin();
    Names taken;
    for (const std::string& name : names) taken.unique(name);
    failure.clear();
    // The lines of this text are no origins.
    f.walk([](mlir::Operation* op) {
      if (mlir::isa<mlir::FileLineColRange>(op->getLoc()))
        op->setLoc(mlir::UnknownLoc::get(op->getContext()));
    });
    return printLoops(f.getBody().front(), names, taken, 1, {.fastExp = fastExp}, failure);
  }

  /// Runs `text` in the first `active` threads of a block; `parameters` declare the buffers, in
  /// order.
  void run(const std::string& text, const std::string& parameters,
           const std::vector<Array*>& buffers, int active = 32) {
    ASSERT_EQ(failure, "");
    const int threads = (active + 31) / 32 * 32;
    const std::string source =
        "#include \"lathe_device.cuh\"\nextern \"C\" __global__ void __launch_bounds__(" +
        std::to_string(threads) + ") printed(" + parameters +
        ") {\n  if (threadIdx.x >= " + std::to_string(active) + ") return;\n" + text + "}\n";
    SCOPED_TRACE(source);
    auto driver = openHost({.mode = host::Mode::Check});
    auto functions = driver->load({{.name = "printed", .source = source, .cubin = {}, .ptx = {}}});
    std::vector<void*> words;
    for (Array* a : buffers) {
      words.push_back(driver->allocate(a->bytes(), "buffer " + std::to_string(words.size())));
      driver->upload(words.back(), a->data(), a->bytes());
    }
    std::vector<void*> arguments;
    for (void*& w : words) arguments.push_back(&w);
    driver->launch(functions[0], {.grid = {1, 1, 1}, .threads = uint32_t(threads)},
                   arguments.data());
    driver->synchronize();
    for (size_t i = 0; i < buffers.size(); ++i) {
      driver->download(buffers[i]->data(), words[i], buffers[i]->bytes());
      driver->release(words[i]);
    }
  }

  /// What printLoops could not print.
  std::string failure;

 private:
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry r;
    r.insert<mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::func::FuncDialect,
             mlir::scf::SCFDialect, mlir::vector::VectorDialect, mlir::LLVM::LLVMDialect,
             mlir::emitc::EmitCDialect>();
    return r;
  }
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

}  // namespace lathe::cuda
