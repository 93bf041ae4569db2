// SPDX-License-Identifier: Apache-2.0
// Whatever a user names as a file: FIFOs, devices, sockets and folders are refused at once, and
// what is read whole has a largest size. Each reader meets each of them.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include <lathe/lathe.h>

#include "backends/cuda/lowering/tuning/tuning_database.h"
#include "lathe/inspect/compiler_api.h"
#include "lathe/ir/context.h"
#include "lathe/passes/plugins.h"
#include "lathe/runtime/backend_plugin.h"
#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/generator.h"
#include "lathe/runtime/model_config.h"
#include "lathe/runtime/npy.h"
#include "lathe/runtime/tokenizer.h"
#include "passes/pdl/pdl_patterns.h"
#include "runtime/container.h"
#include "runtime/mapped_file.h"
#include "tests/bad_input/bad_input.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

// What reads a file, the ending that it asks for, and how large it may be; 0: mapped, of any size.
struct Reader {
  std::string name, ending;
  size_t maxBytes;
  std::function<void(const std::string& path)> read;
};

std::vector<Reader> readers() {
  return {
      {"ir_text", ".mlir", kIrTextFile.maxBytes,
       [](auto& path) { latheCompilerApi()->compile({.path = path}); }},
      {"pdl_patterns", ".mlir", kPatternFile.maxBytes,
       [](auto& path) { loadPatternFile(createContext().get(), path); }},
      {"pdll_patterns", ".pdll", 0,
       [](auto& path) { loadPatternFile(createContext().get(), path); }},
      {"pass_plugin", ".so", 0, [](auto& path) { loadPassPlugin(path); }},
      {"backend_plugin", ".so", 0, [](auto& path) { loadBackendPlugin(path); }},
      {"config", ".json", kConfigFile.maxBytes, [](auto& path) { loadLlamaConfig(path); }},
      {"generation_config", ".json", kConfigFile.maxBytes,
       [](auto& path) { loadGenerationConfig(path); }},
      {"tokenizer", ".json", kTokenizerFile.maxBytes, [](auto& path) { Tokenizer::load(path); }},
      {"shard_index", ".json", kShardIndexFile.maxBytes,
       [](auto& path) { Checkpoint::open(path); }},
      {"checkpoint", ".safetensors", 0, [](auto& path) { Checkpoint::open(path); }},
      {"array", ".npy", 0, [](auto& path) { loadNpy(path); }},
      {"program", ".lathe", 0, [](auto& path) { Program::open(path); }},
      {"tuning_records", ".txt", kTuningFile.maxBytes,
       [](auto& path) {
         setenv("LATHE_TUNING", path.c_str(), 1);
         try {
           cuda::tuningDatabase();
         } catch (...) {
           unsetenv("LATHE_TUNING");
           throw;
         }
         unsetenv("LATHE_TUNING");
       }},
  };
}

struct Special {
  std::string name, words;
  std::function<void(const std::string& path)> make;
};

void makeSocket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(socket);
}

std::vector<Special> specials() {
  return {
      {"fifo", "got a FIFO", [](auto& path) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); }},
      {"endless_device", "got a device", [](auto& path) { fs::create_symlink("/dev/zero", path); }},
      {"waiting_device", "got a device", [](auto& path) { fs::create_symlink("/dev/ptmx", path); }},
  };
}

BadInput row(const Reader& reader, const Special& special) {
  return {reader.name + "_" + special.name,
          ErrorCode::InvalidFile,
          {"input" + reader.ending, "expected a regular file", special.words},
          [=] {
            TemporaryFolder folder;
            const std::string path = folder / ("input" + reader.ending);
            special.make(path);
            reader.read(path);
          }};
}

std::vector<BadInput> rows() {
  std::vector<BadInput> all;
  for (const Reader& reader : readers()) {
    for (const Special& special : specials()) all.push_back(row(reader, special));
    if (reader.maxBytes == 0) continue;
    all.push_back({reader.name + "_too_large",
                   ErrorCode::InvalidFile,
                   {"input" + reader.ending, "of at most " + std::to_string(reader.maxBytes)},
                   [=] {
                     TemporaryFolder folder;
                     const std::string path = folder.write("input" + reader.ending, "");
                     fs::resize_file(path, reader.maxBytes + 1);  // takes no room on the disk
                     reader.read(path);
                   }});
  }
  // A socket cannot even be opened.
  all.push_back({"socket", ErrorCode::Io, {"input.npy: cannot open"}, [] {
                   TemporaryFolder folder;
                   makeSocket(folder / "input.npy");
                   loadNpy(folder / "input.npy");
                 }});
  return all;
}

INSTANTIATE_TEST_SUITE_P(SpecialFiles, BadInputs, ::testing::ValuesIn(rows()), nameOfRow);

}  // namespace
}  // namespace lathe
