// SPDX-License-Identifier: Apache-2.0
// Any bytes give a checked header, whose tensors lie in the file, or an error that names the file.
#include <span>

#include "lathe/runtime/gguf.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> lathe::fuzz::seeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using lathe::fuzz::check;
  try {
    const lathe::GgufHeader header =
        lathe::parseGgufHeader(std::as_bytes(std::span(data, size)), "fuzz.gguf");
    size_t end = 0;
    for (const lathe::GgufTensor& tensor : header.tensors) {
      check(tensor.offset >= end, "no overlap");
      check(tensor.offset <= size && tensor.bytes <= size - tensor.offset, "inside the file");
      end = tensor.offset + tensor.bytes;
    }
    // Values are read as what they are, whatever their key.
    for (auto& [key, value] : header.metadata) {
      check(!value.show().empty(), "a value can be shown");
      try {
        if (value.isArray()) check(value.asStrings().size() == value.size(), "all texts are there");
      } catch (const lathe::Error& e) {
        lathe::fuzz::checkNamed(e, "fuzz.gguf: ");
      }
    }
  } catch (const lathe::Error& e) {
    lathe::fuzz::checkNamed(e, "fuzz.gguf: ");
  }
  return 0;
}
