// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/nvrtc/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>

#include "backends/cuda/device/driver_api_library.h"
#include "backends/cuda/lowering/nvrtc/nvrtc_errors.h"
#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

std::vector<std::string> places() {
  const std::string file = "libnvrtc.so.13";
  std::vector<std::string> all = inCudaToolkits(file);
  all.push_back(file);
  all.push_back(LATHE_NVRTC_FOLDER "/" + file);
  return all;
}

// Debug information names files by what #line says, not by a folder of this process.
std::string withPlace(const std::string& name, const std::string& text) {
  return "#line 1 \"" + kernelFile(name) + "\"\n" + text;
}

// The name in `#include "name"` if `line` is that.
std::string_view includedName(std::string_view line) {
  auto skip = [&] {
    while (!line.empty() && (line[0] == ' ' || line[0] == '\t')) line.remove_prefix(1);
  };
  auto take = [&](std::string_view word) {
    skip();
    if (!line.starts_with(word)) return false;
    line.remove_prefix(word.size());
    return true;
  };
  if (!take("#") || !take("include") || !take("\"")) return {};
  return line.substr(0, line.find('"'));
}

void addIncluded(std::string_view text, const Headers& headers, Headers& included) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1);
    auto header = headers.find(std::string(includedName(text.substr(0, end + 1))));
    if (header != headers.end() && included.insert(*header).second)
      addIncluded(header->second, headers, included);
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Headers includedHeaders(std::string_view text, const Headers& headers) {
  Headers included;
  addIncluded(text, headers, included);
  return included;
}

const Nvrtc& Nvrtc::library() {
  static const Nvrtc nvrtc;  // a failure is tried again at the next call
  return nvrtc;
}

Nvrtc::Nvrtc() {
  FoundLibrary found("LATHE_NVRTC", places());
  if (!found)
    throw Error(ErrorCode::Unsupported,
                "CUDA kernels are compiled by NVRTC 13, which was not found:\n" + found.tried() +
                    "run scripts/setup, install a CUDA 13 toolkit, or name the library in "
                    "LATHE_NVRTC");
  path_ = found.path();
  auto get = [&](auto& function, const char* symbol) {
    if (!found.get(function, symbol))
      throw Error(ErrorCode::Unsupported, path_ + " is no NVRTC: it has no " + symbol);
  };
  get(versionOf_, "nvrtcVersion");
  get(errorString_, "nvrtcGetErrorString");
  get(createProgram_, "nvrtcCreateProgram");
  get(destroyProgram_, "nvrtcDestroyProgram");
  get(compileProgram_, "nvrtcCompileProgram");
  get(logSize_, "nvrtcGetProgramLogSize");
  get(log_, "nvrtcGetProgramLog");
  get(cubinSize_, "nvrtcGetCUBINSize");
  get(cubin_, "nvrtcGetCUBIN");
  get(ptxSize_, "nvrtcGetPTXSize");
  get(ptx_, "nvrtcGetPTX");
  int major = 0, minor = 0;
  versionOf_(&major, &minor);
  version_ = std::to_string(major) + "." + std::to_string(minor);
  if (major < 13)
    throw Error(ErrorCode::Unsupported,
                path_ + " is NVRTC " + version_ + ", expected 13.0 or later");
  // NVRTC asks the loader for its other half by name, and the loader does not look beside it.
  if (size_t slash = path_.rfind('/'); slash != path_.npos)
    dlopen((path_.substr(0, slash) + "/libnvrtc-builtins.so." + version_).c_str(),
           RTLD_NOW | RTLD_LOCAL);
}

std::vector<std::string> Nvrtc::options(std::string_view arch) {
  return {"--gpu-architecture=" + std::string(arch),
          "--std=c++17",
          "--fmad=false",  // as on the host: a product and a sum are rounded one by one
          "--ptxas-options=-v",
          "--generate-line-info",
          "--device-as-default-execution-space"};
}

NvrtcOutput Nvrtc::compile(std::string_view name, const std::string& text, const Headers& headers,
                           std::string_view arch) const {
  const std::string file = std::string(name) + ".cu";
  Headers given = includedHeaders(text, headers);
  std::vector<std::string> texts;
  std::vector<const char*> textPointers, names;
  for (auto& [header, content] : given) {
    texts.push_back(withPlace(header, content));
    names.push_back(header.c_str());
  }
  for (const std::string& t : texts) textPointers.push_back(t.c_str());
  const std::vector<std::string> flags = options(arch);
  std::vector<const char*> flagPointers;
  for (const std::string& flag : flags) flagPointers.push_back(flag.c_str());

  auto check = [&](Status status, const char* call) {
    if (status)
      throw Error(ErrorCode::Unsupported, std::string(call) + " failed for kernel '" +
                                              std::string(name) + "': " + errorString_(status));
  };
  Program program = nullptr;
  check(createProgram_(&program, text.c_str(), kernelFile(file).c_str(), int(given.size()),
                       textPointers.data(), names.data()),
        "nvrtcCreateProgram");
  struct Destroy {
    const Nvrtc& nvrtc;
    Program& program;
    ~Destroy() { nvrtc.destroyProgram_(&program); }
  } destroy{*this, program};
  const Status compiled = compileProgram_(program, int(flagPointers.size()), flagPointers.data());
  // Texts end with a 0 that counts; a cubin is bytes.
  auto read = [&](SizeOf sizeOf, TextOf textOf, const char* call, bool isText) {
    size_t size = 0;
    check(sizeOf(program, &size), call);
    std::string result(size, '\0');
    if (size) check(textOf(program, result.data()), call);
    if (isText) result.resize(result.find_last_not_of('\0') + 1);
    return result;
  };
  NvrtcOutput output;
  output.log = read(logSize_, log_, "nvrtcGetProgramLog", true);
  if (compiled)
    throw Error(ErrorCode::InvalidArgument, "kernel '" + std::string(name) +
                                                "' does not compile (NVRTC " + version_ + ", " +
                                                std::string(arch) + "): " + errorString_(compiled) +
                                                "\n" + explainLog(output.log, file, text, headers));
  if (arch.starts_with("sm_")) output.cubin = read(cubinSize_, cubin_, "nvrtcGetCUBIN", false);
  output.ptx = read(ptxSize_, ptx_, "nvrtcGetPTX", true);
  return output;
}

}  // namespace lathe::cuda
