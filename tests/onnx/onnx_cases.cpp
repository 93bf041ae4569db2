// SPDX-License-Identifier: Apache-2.0
// Runs models in the layout of ONNX's own test data: folders with model.onnx, input_0.pb, ... and
// output_0.pb, ... Prints a line of JSON for each: right, refused (with the words), or wrong.
//
// usage: onnx_cases [--backend NAME] FOLDER...
//        onnx_cases --write-page docs/onnx.md
#include <cstdio>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "runtime/mapped_file.h"
#include "tests/onnx/onnx_case.h"
#include "tests/onnx/onnx_page.h"

int main(int argc, char** argv) {
  std::string backend = "reference";
  bool bad = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--backend" && i + 1 < argc) {
      backend = argv[++i];
      continue;
    }
    if (argument == "--write-page" && i + 1 < argc) {
      const std::string page = argv[++i];
      lathe::writeFileAtomically(
          page, lathe::withOnnxTable(lathe::readWholeFile(page, lathe::kSourceFile)));
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
