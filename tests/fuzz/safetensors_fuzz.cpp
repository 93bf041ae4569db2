// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes give a checked header or lathe::Error. With LATHE_FUZZ_REPLAY it is
// an ordinary program that runs the files or folders of its command line and mutants of them, so
// that the corpus is tested without libFuzzer.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "runtime/error.h"
#include "runtime/safetensors.h"

namespace {

// What a reader of the header relies on: every tensor lies in the file, one after the other, and is
// as large as its shape says.
void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise of parseSafetensorsHeader: %s\n", what);
  std::abort();
}

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

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    checkHeader(
        lathe::parseSafetensorsHeader(std::as_bytes(std::span(data, size)), "fuzz.safetensors"),
        size);
  } catch (const lathe::Error&) {
    // The one way to refuse a file.
  }
  return 0;
}

#ifdef LATHE_FUZZ_REPLAY
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/sampler.h"

namespace {

void runOne(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

// Bytes replaced, removed, repeated and swapped for digits: enough to leave the well-trodden paths.
std::string mutate(std::string bytes, lathe::RandomGenerator& random) {
  for (uint64_t n = 1 + random.next() % 4; n > 0 && !bytes.empty(); --n) {
    size_t at = random.next() % bytes.size(), length = 1 + random.next() % 8;
    switch (random.next() % 4) {
      case 0:
        bytes[at] = char(random.next());
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(random.next() % bytes.size(), length));
        break;
      case 3:
        bytes[at] = "0123456789[]{}\",:-."[random.next() % 19];
        break;
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (auto& entry : std::filesystem::directory_iterator(argv[i])) files.push_back(entry.path());
  }
  if (files.empty()) {
    std::fprintf(stderr, "usage: %s FILE_OR_FOLDER...\n", argv[0]);
    return 2;
  }
  lathe::RandomGenerator random(1);
  for (auto& path : files) {
    std::ifstream in(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    runOne(bytes);
    for (int i = 0; i < 2000; ++i) runOne(mutate(bytes, random));
  }
  std::printf("%zu files and 2000 mutants of each: no crash\n", files.size());
  return 0;
}
#endif
