// SPDX-License-Identifier: Apache-2.0
// Any bytes give an array as large as they are or an error that names the file.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include <unistd.h>

#include "lathe/runtime/npy.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> lathe::fuzz::seeds() {
  std::vector<std::string> all;
  const std::string path =
      std::filesystem::temp_directory_path() / ("lathe-fuzz-" + std::to_string(getpid()) + ".npy");
  for (const Array& a : {Array(DType::F32, {2, 3}), Array(DType::Bool, {}), Array(DType::I64, {7}),
                         Array(DType::F16, {0, 5})}) {
    saveNpy(path, a);
    std::ifstream in(path, std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  std::filesystem::remove(path);
  return all;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const lathe::Array a = lathe::parseNpy(std::as_bytes(std::span(data, size)), "fuzz.npy");
    lathe::fuzz::check(a.bytes() <= size, "an array lies in its file");
  } catch (const lathe::Error& e) {
    lathe::fuzz::checkNamed(e, "fuzz.npy: ");
  }
  return 0;
}
