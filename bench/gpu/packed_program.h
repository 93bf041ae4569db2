// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program that is a tensor of bytes in a safetensors file.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "lathe/runtime/program.h"
#include "lathe/runtime/safetensors.h"

namespace lathe::cuda {

inline std::shared_ptr<const Program> packedProgram(const SafetensorsFile& file,
                                                    const std::string& tensor) {
  const auto name = "lathe-program-" + std::to_string(getpid());
  const std::string path = (std::filesystem::temp_directory_path() / name).string();
  const auto bytes = file.bytes(tensor);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  auto program = Program::open(path);
  std::filesystem::remove(path);  // the program keeps what it needs
  return program;
}

}  // namespace lathe::cuda
