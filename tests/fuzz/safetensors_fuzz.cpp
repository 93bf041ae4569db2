// SPDX-License-Identifier: Apache-2.0
// Any bytes give a checked header or an error that names the file.
#include <span>

#include "lathe/runtime/safetensors.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using lathe::fuzz::check;

// What a reader of the header relies on: every tensor lies in the file, one after the other, and is
// as large as its shape says.
void checkHeader(const lathe::SafetensorsHeader& header, size_t fileSize) {
  size_t end = header.dataStart;
  for (const lathe::SafetensorsEntry& e : header.tensors) {
    check(e.offset == end, "no hole and no overlap");
    check(e.bytes <= fileSize - end, "inside the file");
    end += e.bytes;
    if (e.dtype)
      check(size_t(lathe::elementCount(e.shape)) * lathe::sizeOf(*e.dtype) == e.bytes,
            "bytes as the shape says");
  }
  check(end == fileSize, "nothing after the last tensor");
}

}  // namespace

std::vector<std::string> lathe::fuzz::seeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    checkHeader(
        lathe::parseSafetensorsHeader(std::as_bytes(std::span(data, size)), "fuzz.safetensors"),
        size);
  } catch (const lathe::Error& e) {
    lathe::fuzz::checkNamed(e, "fuzz.safetensors: ");
  }
  return 0;
}
