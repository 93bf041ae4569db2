// SPDX-License-Identifier: Apache-2.0
// Programs as files, and checkpoints beside them.
#include <fstream>

#include <unistd.h>

#include "lathe/runtime/checkpoint.h"
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

// A file of this process with these bytes.
std::string fileOf(const std::string& bytes) {
  const std::string path = "/tmp/lathe_misuse_" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}
struct Removed {
  std::string path;
  ~Removed() { ::unlink(path.c_str()); }
};
void openBytes(const std::string& bytes) {
  Removed file{fileOf(bytes)};
  Program::open(file.path);
}
Program edited(const std::function<void(Program&)>& edit) {
  Graph g;
  g.output("y", exp(g.input("x", DType::F32, {4})));
  Program p = compile(g, {.backend = "reference"});
  edit(p);
  return p;
}

}  // namespace

Table programs() {
  return blamingNobody({
      {"open_of_nothing", [] { Program::open(""); }, kIo, {"cannot open"}},
      {"open_of_a_missing_file",
       [] { Program::open("/nonexistent/m.lathe"); },
       kIo,
       {"/nonexistent/m.lathe"}},
      {"open_of_a_folder", [] { Program::open("/tmp"); }, kFile, {"/tmp", "regular file"}},
      {"open_of_a_device", [] { Program::open("/dev/null"); }, kFile, {"/dev/null"}},
      {"open_of_an_empty_file", [] { openBytes(""); }, kFile, {"lathe_misuse"}},
      {"open_of_words", [] { openBytes("this is no program, by far"); }, kFile, {"lathe_misuse"}},
      {"save_into_no_folder",
       [] { linearProgram()->save("/nonexistent/m.lathe"); },
       kIo,
       {"/nonexistent"}},
      {"save_without_a_name", [] { linearProgram()->save(""); }, kIo, {"cannot"}},
      {"save_over_a_folder",
       [] { linearProgram()->save("/tmp"); },
       kArgument,
       {"/tmp: expected the name of a file to write, got a directory"}},
      {"save_of_metadata_of_bytes",
       [] {
         edited([](Program& p) { p.metadata["by"] = "\xff"; }).save("/tmp/lathe_misuse.lathe");
       },
       kArgument,
       {"invalid UTF-8", "metadata"}},
      {"save_of_a_name_of_bytes",
       [] {
         edited([](Program& p) { p.entries[0].name = "\xff"; }).save("/tmp/lathe_misuse.lathe");
       },
       kArgument,
       {"invalid UTF-8"}},
      {"save_of_an_undefined_constant",
       [] {
         edited([](Program& p) { p.constants.push_back(Array()); }).save("/tmp/lathe_misuse.lathe");
       },
       kArgument,
       {"constant", "undefined Array"}},
      {"entry_of_no_entries",
       [] { Program().entry("forward"); },
       kArgument,
       {"no entry point 'forward'", "has none"}},
      {"checkpoint_that_is_missing",
       [] { Checkpoint::open("/nonexistent"); },
       kIo,
       {"/nonexistent"}},
      {"checkpoint_without_a_name", [] { Checkpoint::open(""); }, kIo, {"cannot open"}},
      {"checkpoint_of_an_empty_folder",
       [] { Checkpoint::open("/proc/self/fdinfo"); },
       kIo,
       {"/proc/self/fdinfo", "safetensors"}},
      {"checkpoint_that_is_a_device", [] { Checkpoint::open("/dev/null"); }, kFile, {"/dev/null"}},
      {"checkpoint_of_words",
       [] {
         Removed file{fileOf("this is no checkpoint at all")};
         Checkpoint::open(file.path);
       },
       kFile,
       {"lathe_misuse"}},
  });
}

}  // namespace lathe::misuse
