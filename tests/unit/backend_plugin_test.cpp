// SPDX-License-Identifier: Apache-2.0
// The loader of backends in shared libraries: what it refuses, and what a program needs one for.
#include "lathe/runtime/backend_plugin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "lathe/runtime/session.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;

std::string fixture(const std::string& name) {
  return LATHE_BINARY_DIR "/lib/plugin_" + name + ".so";
}

std::shared_ptr<Program> programFor(const std::string& backend) {
  auto program = std::make_shared<Program>();
  program->backend = backend;
  return program;
}

struct Refusal {
  std::string library, words;
};

TEST(BackendPluginTest, WhatIsNoPluginIsRefused) {
  test::TemporaryFolder folder;
  const Refusal refusals[] = {
      {folder / "none.so", "none.so: expected a backend plugin, No such file"},
      {folder.write("text.so", "no library"),
       "text.so: no backend plugin: expected a shared library, "},
      {LATHE_BINARY_DIR "/lib/liblathe_runtime.so",
       "expected a library with the entry point lathe_backend_plugin; --load-pass-plugin"},
      {fixture("of_version_0"),
       "plugin_of_version_0.so: expected a backend plugin of version 3, "
       "got version 0; build it against this version of Lathe"},
      {fixture("without_name"), "the backend plugin has no name"},
      {fixture("without_sides"), "'idle' has neither a compile side nor a run side"},
      {fixture("named_cpu"), "the backend 'cpu' is built in; give the plugin a name of its own"},
  };
  for (const Refusal& r : refusals) {
    for (int times = 0; times < 2; ++times)  // a library that was refused once stays refused
      expectError(ErrorCode::InvalidFile, r.words, [&] { loadBackendPlugin(r.library); });
    expectError(ErrorCode::InvalidFile, "; see docs/adding-a-backend.md",
                [&] { loadBackendPlugin(r.library); });
  }
  for (const BackendPlugin* plugin : backendPlugins()) EXPECT_STRNE(plugin->name, "idle");
}

// Where the last part ends that the loader maps; what a debugger reads follows.
size_t mappedEnd(const std::string& library) {
  Elf64_Ehdr header;
  std::memcpy(&header, library.data(), sizeof header);
  size_t end = 0;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, library.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD) end = std::max(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}

// The loader would map what is not there, and the process end where it looks at it.
TEST(BackendPluginTest, ALibraryThatEndsEarlyIsRefused) {
  const test::TemporaryFolder folder;
  const std::string whole = test::readFile(LATHE_BINARY_DIR "/lib/liblathe_runtime.so");
  const size_t mapped = mappedEnd(whole);
  for (const size_t size : {size_t(64), size_t(100), size_t(3000), mapped / 2, mapped - 1}) {
    const std::string path = folder.write("short.so", whole.substr(0, size));
    expectError(ErrorCode::InvalidFile,
                "short.so: the shared library ends early, after " + std::to_string(size) + " bytes",
                [&] { loadBackendPlugin(path); });
  }
  for (const size_t size : {size_t(0), size_t(3), size_t(63)}) {
    const std::string path = folder.write("short.so", whole.substr(0, size));
    expectError(ErrorCode::InvalidFile, "expected a shared library",
                [&] { loadBackendPlugin(path); });
  }
}

TEST(BackendPluginTest, ALibraryOfAnotherProcessorIsRefused) {
  const test::TemporaryFolder folder;
  std::string library = test::readFile(LATHE_BINARY_DIR "/lib/liblathe_runtime.so");
  const size_t machine = 18;  // of the ELF header, two bytes
  const int own = library[machine];
  library[machine] = char(own ^ 1);
  expectError(ErrorCode::InvalidFile,
              "other.so: the shared library is for another processor: ELF machine " +
                  std::to_string(own ^ 1) + ", expected " + std::to_string(own),
              [&] { loadBackendPlugin(folder.write("other.so", library)); });
}

TEST(BackendPluginTest, OneNameIsLoadedOnceForEachSide) {
  loadBackendPlugin(fixture("echo"));
  const size_t loaded = backendPlugins().size();
  loadBackendPlugin(fixture("echo"));  // the same library under any path
  loadBackendPlugin(LATHE_BINARY_DIR "/lib/../lib/plugin_echo.so");
  EXPECT_EQ(backendPlugins().size(), loaded);
  expectError(ErrorCode::InvalidFile, "the backend 'echo' was loaded from ",
              [] { loadBackendPlugin(fixture("echo_too")); });
  loadBackendPlugin(fixture("echo_backend"));
  EXPECT_EQ(backendPlugins().size(), loaded + 1);
}

TEST(BackendPluginTest, ADeviceOfTheProgramIsNotReplaced) {
  registerDevice("mine", [](auto, const DeviceOptions&) { return std::unique_ptr<Device>(); });
  expectError(ErrorCode::InvalidFile, "the program has registered a device 'mine' itself",
              [] { loadBackendPlugin(fixture("mine")); });
}

TEST(BackendPluginTest, SessionsLoadTheDevicesThatTheyAreTold) {
  expectError(ErrorCode::Unsupported,
              "--load-backend-plugin (SessionOptions::backendPlugins) loads another from a shared "
              "library",
              [] { Session(programFor("quiet"), SessionOptions{}); });
  EXPECT_FALSE(hasDevice("quiet"));
  Session session(programFor("quiet"), SessionOptions{.backendPlugins = {fixture("quiet")}});
  EXPECT_TRUE(hasDevice("quiet"));
  Session(programFor("quiet"), SessionOptions{});  // for the rest of the process
}

}  // namespace
}  // namespace lathe
