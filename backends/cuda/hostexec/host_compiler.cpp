// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/hostexec/host_compiler.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "backends/cuda/device/headers.h"
#include "backends/cuda/hostexec/process.h"
#include "backends/cuda/hostexec/sanitizer.h"
#include "lathe/runtime/error.h"
#include "runtime/cache_folder.h"
#include "runtime/mapped_file.h"
#include "runtime/sha256.h"

namespace fs = std::filesystem;

namespace lathe::cuda::host {
namespace {

std::string hashOf(const std::string& text) {
  return sha256Hex(std::as_bytes(std::span(text))).substr(0, 32);
}

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

std::string moduleFolder() {
  const std::string base = cacheFolder();
  return (base.empty() ? "/tmp/lathe-" + std::to_string(getuid()) : base) + "/cuda-host";
}

std::string unusedName(const std::string& folder) {
  static std::atomic<int> count{0};
  return folder + "/new-" + std::to_string(getpid()) + "-" + std::to_string(count++);
}

// What a crash or a full disk left of it before is written anew; so nothing waits for the disk
// here.
void keepFile(const std::string& path, const std::string& text) {
  try {
    if (fs::exists(path) && readWholeFile(path, kCacheFile) == text) return;
  } catch (const Error&) {
  }
  const std::string temporary = unusedName(fs::path(path).parent_path());
  std::ofstream file(temporary, std::ios::binary);
  if (!(file << text).flush()) {
    const int number = errno;
    fs::remove(temporary);
    throw Error(ErrorCode::Io, "cannot write " + path + ": " + strerror(number));
  }
  fs::rename(temporary, path);
}

// In a folder of their own; its name changes with their text.
std::string writeHeaders(const std::string& folder) {
  std::string all;
  for (const auto& [name, text] : hostHeaders()) all += name + "\n" + text;
  const std::string path = folder + "/include-" + hashOf(all);
  fs::create_directories(path);
  for (const auto& [name, text] : hostHeaders()) keepFile(path + "/" + name, text);
  return path;
}

// A module is code: one that somebody else could have changed is as if it were not there.
bool isUsable(const std::string& module) {
  return fs::exists(module) && whyNotPrivate(module).empty();
}

std::vector<std::string> flagsOf(Mode mode, bool clang) {
  // Rounding as on the GPU: no contraction; aliasing as in kernel texts: none assumed.
  std::vector<std::string> flags = {"-x",
                                    "c++",
                                    "-std=c++17",
                                    "-fPIC",
                                    "-fvisibility=hidden",
                                    "-mavx2",
                                    "-mfma",
                                    "-mf16c",
                                    "-w",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fno-strict-aliasing",
                                    "-fno-exceptions",
                                    "-fno-rtti",
                                    "-fno-omit-frame-pointer",
                                    "-fstack-clash-protection",
                                    "-gdwarf-4",
                                    "-g1"};  // binutils up to 2.40 mistake files of DWARF 5
  auto add = [&](std::initializer_list<const char*> more) {
    flags.insert(flags.end(), more.begin(), more.end());
  };
  switch (mode) {
    case Mode::Fast:
      // Most kernels run for less time than what -O1 adds takes.
      add({"-Og"});
      break;
    case Mode::Check:
      // Linked without the sanitizer's library: the twin defines the callbacks. Vectors of 32 bytes
      // have none under clang. At -Og gcc takes half as long as at -O1 for code as fast.
      add({"-Og", "-fsanitize=thread"});
      if (clang)
        add({"-mllvm", "-tsan-instrument-func-entry-exit=0", "-fno-vectorize",
             "-fno-slp-vectorize"});
      else
        add({"--param", "tsan-instrument-func-entry-exit=0", "-fno-tree-vectorize"});
      break;
    case Mode::Asan:
      // A fake stack per fiber would make kernels up to 70 times slower. Calls to the checks
      // instead of their code inline: a quarter of the time to compile.
      add({"-Og", "-fsanitize=address"});
      if (clang)
        add({"-fsanitize-address-use-after-return=never", "-mllvm",
             "-asan-instrumentation-with-call-threshold=0"});
      else
        add({"--param", "asan-use-after-return=0", "--param",
             "asan-instrumentation-with-call-threshold=0"});
      break;
    case Mode::Debug:
      add({"-O0", "-g3"});  // the last -g holds
      break;
  }
  // Registers are chosen for a function at once, not loop by loop: a tenth of gcc's time.
  if (!clang && mode != Mode::Debug) add({"-fira-region=one"});
  return flags;
}

void expectName(const KernelText& kernel) {
  auto word = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  if (kernel.name.empty() || !std::all_of(kernel.name.begin(), kernel.name.end(), word))
    throw Error(ErrorCode::InvalidArgument,
                "kernel \"" + kernel.name + "\": expected a C identifier as its name");
  if (kernel.text.find_first_not_of(" \t\n") == std::string::npos)
    throw Error(ErrorCode::Unsupported,
                "kernel " + kernel.name +
                    ": host execution needs its CUDA C++ text, which this artifact does not hold; "
                    "compile the artifact again with sources");
}

// Lines around the first place that the messages name in the text.
std::string numberedLines(const KernelText& kernel, const std::string& messages) {
  const std::string key = kernel.name + ".cu:";
  int line = 0;
  for (size_t at = 0; line == 0 && (at = messages.find(key, at)) != std::string::npos;) {
    at += key.size();
    line = atoi(messages.c_str() + at);  // 0 for "bad.cu: In function"
  }
  if (line == 0) return "";
  std::istringstream text(kernel.text);
  std::string result = "\n", row;
  for (int i = 1; i <= line + 2 && std::getline(text, row); ++i)
    if (i >= line - 3) result += (i == line ? "> " : "  ") + std::to_string(i) + " | " + row + "\n";
  return result;
}

Error cacheError(const fs::filesystem_error& e) {
  return Error(ErrorCode::Io, std::string("cache of host kernels: ") + e.what() +
                                  "; name another folder with LATHE_CACHE_DIR");
}

// Asked once in a process: every program whose kernels the host runs has a compiler of its own, and
// starting one takes milliseconds.
std::string versionOf(const std::string& compiler) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  std::lock_guard lock(mutex);
  if (auto found = known.find(compiler); found != known.end()) return found->second;
  const ProcessResult asked = runProcess({compiler, "--version"});
  if (asked.status != 0)
    throw Error(ErrorCode::Unsupported, compiler + " --version failed:\n" + asked.output);
  return known[compiler] = asked.output.substr(0, asked.output.find('\n'));
}

std::shared_ptr<Module> loadFresh(const std::string& path, const std::string& folder) {
  try {
    return std::make_shared<Module>(path);
  } catch (const Error& e) {
    throw Error(e.code(), std::string(e.what()) + "; may files in " + folder +
                              " be executed (mount option noexec)? Name another folder with "
                              "LATHE_CACHE_DIR");
  }
}

}  // namespace

HostCompiler::HostCompiler(Mode mode, std::string cache) : mode_(mode) {
  if (const std::string named = variable("LATHE_HOST_CXX"); !named.empty()) {
    compiler_ = findProgram(named);
    if (compiler_.empty())
      throw Error(ErrorCode::Unsupported, "LATHE_HOST_CXX names no program: " + named);
  }
  for (const char* name : {"c++", "g++", "clang++"})
    if (compiler_.empty()) compiler_ = findProgram(name);
  if (compiler_.empty())
    throw Error(ErrorCode::Unsupported,
                "host execution of CUDA kernels needs a C++ compiler: expected c++, g++ or clang++ "
                "on PATH, or its path in LATHE_HOST_CXX");
  if (mode == Mode::Asan && !haveAsan())
    throw Error(ErrorCode::Unsupported,
                "LATHE_CUDA_HOST=asan: AddressSanitizer's runtime is not in this process; start it "
                "with LD_PRELOAD=$(" +
                    compiler_ + " -print-file-name=libasan.so)");
  version_ = versionOf(compiler_);
  flags_ = flagsOf(mode, version_.find("clang") != std::string::npos);
  folder_ = cache.empty() ? moduleFolder() : std::move(cache);
  makePrivateFolder(folder_);
  try {
    headers_ = writeHeaders(folder_);
  } catch (const fs::filesystem_error& e) {
    throw cacheError(e);
  }
  key_ = version_ + "\n" + headers_ + "\n";
  for (const std::string& flag : flags_) key_ += flag + " ";
}

std::string HostCompiler::pathOf(const KernelText& kernel) const {
  return folder_ + "/" + hashOf(key_ + "\n" + kernel.name + "\n" + kernel.text);
}

// One translation unit and shared object for all of them: starting a compiler costs more than a
// kernel. Each has a namespace of its own; headers are included before, in none.
void HostCompiler::build(const std::vector<const KernelText*>& kernels) const {
  std::string unit = "#include \"lathe_device.cuh\"\n", bodies;
  for (const auto& [name, text] : hostHeaders()) {
    auto includes = [&, &name = name](const KernelText* k) {
      return k->text.find("\"" + name + "\"") != std::string::npos;
    };
    if (std::any_of(kernels.begin(), kernels.end(), includes))
      unit += "#include \"" + name + "\"\n";
  }
  for (const KernelText* kernel : kernels) {
    // Stays in the cache, as debuggers show it.
    const std::string source = pathOf(*kernel) + "/" + kernel->name + ".cu";
    fs::create_directories(fs::path(source).parent_path());
    keepFile(source, kernel->text);
    unit += "namespace lathe_" + kernel->name + " {\n#include \"" + source + "\"\nLATHE_KERNEL(" +
            kernel->name + ")\n}\n";
  }
  const std::string temporary = unusedName(folder_), object = temporary + ".o";
  std::vector<std::string> compile = {compiler_}, link = {compiler_, "-shared", "-o", temporary};
  compile.insert(compile.end(), flags_.begin(), flags_.end());
  compile.insert(compile.end(), {"-I", headers_, "-c", "-o", object, "-"});
  // Kernels have no standard library: what a linker reads of one takes it three times as long as
  // the module itself.
  link.insert(link.end(), {object, "-nostdlib", "-lgcc", "-lm"});
  ProcessResult r = runProcess(compile, unit);
  if (r.status == 0) r = runProcess(link);
  fs::remove(object);
  if (r.status != 0) {
    fs::remove(temporary);
    std::string names, messages = r.output, lines;
    for (const KernelText* kernel : kernels) {
      const std::string folder = pathOf(*kernel) + "/";
      bool named = false;
      for (size_t at; (at = messages.find(folder)) != std::string::npos; named = true)
        messages.erase(at, folder.size());
      if (!named) continue;
      names += (names.empty() ? "" : ", ") + kernel->name;
      lines += numberedLines(*kernel, messages);
    }
    if (messages.find("No space left on device") != messages.npos ||
        messages.find("File too large") != messages.npos)
      throw Error(ErrorCode::Io, "no space for compiled kernels in the cache folder " + folder_ +
                                     " or in the compiler's folder for temporary files; name "
                                     "others with LATHE_CACHE_DIR and TMPDIR");
    if (messages.size() > 6000) messages.resize(6000);
    throw Error(ErrorCode::InvalidArgument, "kernel " + (names.empty() ? "text" : names) +
                                                " does not compile for the host (" + version_ +
                                                "):\n" + messages + lines);
  }
  fs::permissions(temporary, fs::perms::owner_all);  // whatever the umask leaves to others
  if (const int file = open(temporary.c_str(), O_RDONLY | O_CLOEXEC); file >= 0) {
    fsync(file);
    close(file);
  }
  // One file under the name of each kernel. A process that was faster has made the same.
  for (const KernelText* kernel : kernels) {
    const std::string path = pathOf(*kernel) + ".so";
    if (::link(temporary.c_str(), path.c_str()) == 0 || isUsable(path)) continue;
    const std::string copy = unusedName(folder_);
    fs::copy_file(temporary, copy);
    fs::rename(copy, path);
  }
  fs::remove(temporary);
}

void HostCompiler::buildAll(const std::vector<const KernelText*>& kernels) {
  // With few kernels, a second process costs as much as it saves; with very many, one compiler
  // takes gigabytes. Names are unique in a unit.
  const size_t count = kernels.size();
  std::vector<std::vector<const KernelText*>> units(count < 4 ? 1 : 2 * (1 + count / 1200));
  for (const KernelText* kernel : kernels) {
    auto holds = [&](const auto& unit) {
      return std::any_of(unit.begin(), unit.end(),
                         [&](const KernelText* other) { return other->name == kernel->name; });
    };
    auto unit = std::min_element(units.begin(), units.end(), [&](const auto& a, const auto& b) {
      return std::pair(holds(a), a.size()) < std::pair(holds(b), b.size());
    });
    if (holds(*unit)) unit = units.emplace(units.end());
    unit->push_back(kernel);
  }
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next++) < units.size();)
      if (!units[i].empty()) build(units[i]);
  };
  std::future<void> other;
  if (units.size() > 1) other = std::async(std::launch::async, work);
  work();
  if (other.valid()) other.get();
  compiled_ += int(kernels.size());
}

std::vector<Kernel> HostCompiler::compile(const std::vector<KernelText>& kernels) {
  std::vector<const KernelText*> missing;
  std::set<std::string> seen;
  try {
    // Ranks that are threads load one program at the same time: the first compiles for all.
    static std::mutex building;
    std::lock_guard lock(building);
    for (const KernelText& kernel : kernels) {
      expectName(kernel);
      const std::string path = pathOf(kernel);
      if (seen.insert(path).second && !isUsable(path + ".so")) missing.push_back(&kernel);
    }
    buildAll(missing);
  } catch (const fs::filesystem_error& e) {
    throw cacheError(e);
  }
  std::vector<Kernel> result;
  for (const KernelText& kernel : kernels) {
    const std::string path = pathOf(kernel) + ".so";
    std::shared_ptr<Module> module;
    try {
      module = std::make_shared<Module>(path);
    } catch (const Error&) {
      // A file that a full disk or another architecture left: once more.
      std::error_code ignored;
      fs::remove(path, ignored);
      buildAll({&kernel});
      module = loadFresh(path, folder_);
    }
    Kernel k{kernel.name, module, nullptr, 0, nullptr};
    k.entry = reinterpret_cast<void (*)(void**)>(module->symbol("lathe_entry_" + kernel.name));
    const auto* bytes = static_cast<const int**>(module->symbol("lathe_parameters_" + kernel.name));
    if (!k.entry || !bytes)
      throw Error(ErrorCode::InvalidFile, path + " does not hold kernel " + kernel.name);
    k.parameterBytes = *bytes;
    while (k.parameterBytes[k.parameters]) ++k.parameters;
    result.push_back(std::move(k));
  }
  return result;
}

}  // namespace lathe::cuda::host
