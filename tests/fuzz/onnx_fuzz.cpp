// SPDX-License-Identifier: Apache-2.0
// Any bytes give a graph or an error that names the file.
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "lathe/frontend/onnx.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> lathe::fuzz::seeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path = (std::filesystem::temp_directory_path() /
                                   ("lathe-fuzz-" + std::to_string(getpid()) + ".onnx"))
                                      .string();
  // A new file each time: a mapped one must not be shortened.
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data), long(size));
  try {
    const lathe::OnnxModel model = lathe::loadOnnx(path);
    lathe::fuzz::check(!model.outputs.empty(), "a graph has an output");
    for (const std::string& name : model.weights.names()) {
      try {
        lathe::fuzz::check(model.weights.find(name).has_value(), "a weight is there");
      } catch (const lathe::Error& e) {
        lathe::fuzz::checkNamed(e, path);
      }
    }
  } catch (const lathe::Error& e) {
    lathe::fuzz::checkNamed(e, path);
  }
  std::filesystem::remove(path);
  return 0;
}
