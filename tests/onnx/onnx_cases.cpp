// SPDX-License-Identifier: Apache-2.0
// Runs models in the layout of ONNX's own test data: folders with model.onnx, input_0.pb, ... and
// output_0.pb, ... Prints a line of JSON for each: right, refused (with the words), or wrong.
//
// usage: onnx_cases [--backend NAME] FOLDER...
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/onnx/onnx_case.h"

int main(int argc, char** argv) {
  std::string backend = "reference";
  bool bad = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--backend" && i + 1 < argc) {
      backend = argv[++i];
      continue;
    }
    const lathe::OnnxOutcome outcome = lathe::runOnnxCase(argument, backend);
    const nlohmann::json line{{"case", std::filesystem::path(argument).filename().string()},
                              {"outcome", outcome.what},
                              {"words", outcome.words},
                              {"constants", outcome.constants}};
    std::printf("%s\n",
                line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    std::fflush(stdout);
    bad |= outcome.what == "wrong";
  }
  return bad;
}
