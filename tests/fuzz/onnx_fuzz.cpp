// SPDX-License-Identifier: Apache-2.0
// Any bytes give a graph or an error that names the file.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include "lathe/frontend/onnx.h"
#include "lathe/runtime/sampler.h"
#include "tests/fuzz/fuzz_target.h"

// Models, and mutants of them in which no byte moves: lengths stay right, so that names, numbers
// and types are what is wrong.
std::vector<std::string> lathe::fuzz::seeds() {
  constexpr int kMutants = 300;
  std::vector<std::string> all;
  RandomGenerator random{1};
  const std::filesystem::path cases = std::string(LATHE_TEST_DATA) + "/onnx/cases";
  for (auto& entry : std::filesystem::directory_iterator(cases)) {
    std::ifstream in(entry.path() / "model.onnx", std::ios::binary);
    const std::string model{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    all.push_back(model);
    for (int i = 0; i < kMutants && !model.empty(); ++i) {
      std::string mutant = model;
      for (uint64_t n = 1 + random.next() % 3; n > 0; --n) {
        char& byte = mutant[random.next() % mutant.size()];
        byte = random.next() % 2 ? char(random.next()) : char(byte + (random.next() % 2 ? 1 : -1));
      }
      all.push_back(std::move(mutant));
    }
  }
  return all;
}

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
