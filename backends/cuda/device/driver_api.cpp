// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/driver_api.h"

#include "backends/cuda/device/driver_api_library.h"
#include "lathe/runtime/error.h"

namespace lathe::cuda::api {
namespace {

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

[[noreturn]] void unsupported(const std::string& message) {
  throw Error(ErrorCode::Unsupported, message);
}

// Called before getErrorString is known to work.
void require(const DriverApi& api, Result result, const char* call) {
  if (result != kSuccess) unsupported(std::string(call) + " failed: " + api.describe(result));
}

}  // namespace

std::string DriverApi::describe(Result result) const {
  const char *name = nullptr, *text = nullptr;
  if (getErrorName) getErrorName(result, &name);
  if (getErrorString) getErrorString(result, &text);
  if (!name) return "CUDA error " + std::to_string(result);
  return std::string(name) + (text ? ": " + std::string(text) : "");
}

DriverApi DriverApi::open() {
  // Containers mount the driver where their loader may not look.
  FoundLibrary library("LATHE_LIBCUDA", {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"});
  if (!library)
    unsupported("no CUDA driver is installed:\n" + library.tried() +
                "install NVIDIA's driver (580 or later), name its library in LATHE_LIBCUDA, or run "
                "the kernels on this CPU: device host (docs/cuda-host.md)");
  DriverApi api;
  auto tooOld = [&](const std::string& has) {
    unsupported("the CUDA driver " + library.path() + " " + has + ", expected CUDA " +
                versionText(kLowestDriver) + " or later; install driver 580 or later");
  };
  if (!library.get(api.driverGetVersion, "cuDriverGetVersion"))
    unsupported(library.path() + " is no CUDA driver: it has no cuDriverGetVersion");
  library.get(api.getErrorName, "cuGetErrorName");
  library.get(api.getErrorString, "cuGetErrorString");
  int version = 0;
  require(api, api.driverGetVersion(&version), "cuDriverGetVersion");
  if (version < kLowestDriver) tooOld("supports CUDA " + versionText(version));

  Result (*getProcAddress)(const char*, void**, int, uint64_t, int*) = nullptr;
  if (!library.get(getProcAddress, "cuGetProcAddress_v2")) tooOld("has no cuGetProcAddress_v2");
  auto find = [&]<class F>(F*& function, const char* name) {
    void* address = nullptr;
    int status = 0;
    Result result = getProcAddress(name, &address, kInterfaceVersion, 0, &status);
    if (result != kSuccess || !address) tooOld(std::string("has no ") + name);
    function = reinterpret_cast<F*>(address);
  };
#define LATHE_CUDA_FIND(member, name, parameters) find(api.member, #name);
  LATHE_CUDA_FUNCTIONS(LATHE_CUDA_FIND)
#undef LATHE_CUDA_FIND

  Result result = api.init(0);
  int devices = 0;
  if (result == kSuccess) result = api.deviceGetCount(&devices);
  if (result == kNoDevice || (result == kSuccess && devices == 0))
    unsupported("the CUDA driver " + library.path() +
                " sees no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES");
  require(api, result, "cuInit(0)");
  return api;
}

}  // namespace lathe::cuda::api
