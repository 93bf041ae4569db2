// SPDX-License-Identifier: Apache-2.0
#pragma once
// A copy of the program beside a library that answers with results that are made up
// (fake_compiler.cpp), and models whose names choose among its answers.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/unit/compiler/cli_runner.h"

namespace lathe::test {

class WithFakeCompiler : public ::testing::Test {
 protected:
  WithFakeCompiler() {
    for (const char* folder : {"bin", "lib", "models"})
      std::filesystem::create_directories(folder_ / folder);
    std::filesystem::copy(LATHE_BINARY_DIR "/bin/lathe", folder_ / "bin/lathe");
    std::filesystem::copy(LATHE_BINARY_DIR "/lib/fake_compiler.so", folder_ / "lib/liblathe.so");
    for (const char* name : {"right.mlir", "right_layouts.mlir", "short.mlir", "rewrite.mlir",
                             "step.mlir", "whole.mlir", "kernel.mlir", "config.json", "a.onnx"})
      folder_.write(std::string("models/") + name, "{}");
  }
  // In the folder of the models.
  CliResult run(const std::string& arguments, const std::string& before = "LATHE_BACKEND=") const {
    return runLathe(arguments, "cd " + folder_.path() + "/models && " + before,
                    folder_ / "bin/lathe");
  }
  // What the compiler was asked, line by line.
  std::string asked(const std::string& arguments,
                    const std::string& before = "LATHE_BACKEND=") const {
    return run(arguments, before).err;
  }
  void expectOutput(int status, const std::string& arguments, const std::string& out,
                    const std::string& err) const {
    const CliResult r = run(arguments);
    EXPECT_EQ(r.status, status) << arguments;
    EXPECT_EQ(r.out, out) << arguments;
    EXPECT_EQ(r.err, err) << arguments;
  }
  nlohmann::json documentOf(int status, const std::string& arguments) const {
    const CliResult r = run(arguments + " --json");
    EXPECT_EQ(r.status, status) << arguments << "\n" << r.err;
    return nlohmann::json::parse(r.out);
  }
  TemporaryFolder folder_;
};

}  // namespace lathe::test
