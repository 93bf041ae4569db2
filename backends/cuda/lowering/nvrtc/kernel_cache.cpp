// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/nvrtc/kernel_cache.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "backends/cuda/lowering/nvrtc/kernel_cache_entry.h"
#include "lathe/runtime/error.h"
#include "runtime/cache_folder.h"
#include "runtime/mapped_file.h"
#include "runtime/sha256.h"

namespace lathe::cuda {
namespace {

constexpr const char* kHopper = "sm_90a";
constexpr const char* kPortable = "compute_90";
constexpr size_t kCompilers = 2;  // NVRTC takes turns inside for about half of its time

using Shared = std::shared_ptr<const CompiledKernel>;

// What this process has compiled or read, for its whole life.
class Memory {
 public:
  static Memory& get() {
    static Memory memory;
    return memory;
  }
  Shared find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto it = kernels_.find(key);
    return it == kernels_.end() ? nullptr : it->second;
  }
  void add(const std::string& key, Shared kernel) {
    std::lock_guard lock(mutex_);
    kernels_[key] = std::move(kernel);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, Shared> kernels_;
};

// A text without code of its own for sm_90a has one PTX for both but for the line that names the
// architecture: a second compilation would say nothing new.
std::string forEveryLaterGpu(std::string ptx) {
  const std::string hopper = std::string("\n.target ") + kHopper;
  if (const size_t at = ptx.find(hopper); at != ptx.npos) ptx.erase(at + hopper.size() - 1, 1);
  return ptx;
}

CompiledKernel compile(const KernelText& kernel, const Headers& headers) {
  const Nvrtc& nvrtc = Nvrtc::library();
  NvrtcOutput hopper = nvrtc.compile(kernel.name, kernel.source, headers, kHopper);
  CompiledKernel compiled;
  auto resources = readCubin(hopper.cubin, hopper.log);
  auto own = resources.find(kernel.name);
  if (own == resources.end()) {
    std::string has;
    for (auto& [name, unused] : resources) has += " " + name;
    throw Error(ErrorCode::InvalidArgument,
                "the text of kernel '" + kernel.name +
                    "' has no extern \"C\" __global__ function of that name; it has" +
                    (has.empty() ? " none" : ":" + has));
  }
  compiled.report = {own->second, countPtx(hopper.ptx)};
  if (isPortable(hopper.ptx)) compiled.ptx = forEveryLaterGpu(std::move(hopper.ptx));
  compiled.cubin = std::move(hopper.cubin);
  return compiled;
}

Shared readOrCompile(const KernelText& kernel, const std::string& key, const Headers& headers,
                     const std::string& folder) {
  const std::string path = folder.empty() ? "" : cacheEntryPath(folder, kernel.name, key);
  if (!path.empty())
    if (auto kept = readCacheEntry(path, key))
      return std::make_shared<const CompiledKernel>(std::move(*kept));
  auto compiled = std::make_shared<const CompiledKernel>(compile(kernel, headers));
  if (!path.empty()) writeCacheEntry(path, key, kernel, *compiled);
  return compiled;
}

void checkName(const std::string& name) {
  auto isLetter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  auto fits = [&](char c) { return isLetter(c) || (c >= '0' && c <= '9'); };
  if (name.empty() || !isLetter(name[0]) || !std::all_of(name.begin(), name.end(), fits))
    throw Error(ErrorCode::InvalidArgument, "'" + name + "' cannot be the name of a kernel");
}

}  // namespace

std::string kernelCacheFolder() {
  const std::string folder = cacheFolder();
  return folder.empty() ? "" : folder + "/cuda";
}

std::string kernelKey(const KernelText& kernel, const Headers& headers) {
  // Parts are separated by their sizes: no two lists of parts give one text.
  std::string all;
  auto add = [&](const std::string& part) { all += std::to_string(part.size()) + ":" + part; };
  add(kernel.name);
  add(kernel.source);
  for (auto& [name, text] : includedHeaders(kernel.source, headers)) {
    add(name);
    add(text);
  }
  for (const char* arch : {kHopper, kPortable})
    for (const std::string& option : Nvrtc::options(arch)) add(option);
  add(Nvrtc::library().version());
  return sha256Hex(asBytes(all));
}

std::vector<CompiledKernel> compileKernels(const std::vector<KernelText>& kernels,
                                           const Headers& headers, const std::string& folder) {
  struct Job {
    const KernelText* kernel;
    std::string key;
    Shared result;
    std::exception_ptr failure;
  };
  std::vector<Job> jobs;
  std::vector<size_t> jobOf;
  std::unordered_map<std::string, size_t> known;
  for (const KernelText& kernel : kernels) {
    checkName(kernel.name);
    std::string key = kernelKey(kernel, headers);
    auto [it, isNew] = known.insert({key, jobs.size()});
    if (isNew) jobs.push_back({&kernel, key, Memory::get().find(key), nullptr});
    jobOf.push_back(it->second);
  }
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < jobs.size();) {
      Job& job = jobs[i];
      if (job.result) continue;
      try {
        job.result = readOrCompile(*job.kernel, job.key, headers, folder);
        Memory::get().add(job.key, job.result);
      } catch (...) {
        job.failure = std::current_exception();
      }
    }
  };
  const auto missing =
      size_t(std::count_if(jobs.begin(), jobs.end(), [](const Job& job) { return !job.result; }));
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min(kCompilers, missing); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  for (const Job& job : jobs)
    if (job.failure) std::rethrow_exception(job.failure);
  std::vector<CompiledKernel> results;
  for (size_t job : jobOf) results.push_back(*jobs[job].result);
  return results;
}

}  // namespace lathe::cuda
