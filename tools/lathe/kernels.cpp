// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/kernels.h"

#include <filesystem>

#include "backends/cuda/device/headers.h"
#include "backends/cuda/device/program_code.h"
#include "lathe/runtime/error.h"
#include "runtime/mapped_file.h"

namespace lathe::cli {

size_t writeKernels(const Program& program, const std::string& folder) {
  if (program.backend != "cuda")
    throw Error(ErrorCode::InvalidArgument,
                "--kernels writes the kernels of the cuda backend, this program is for " +
                    program.backend + "; add --backend cuda");
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw Error(ErrorCode::Io, "cannot create the folder " + folder + ": " + failed.message());
  auto write = [&](const std::string& name, const std::string& text) {
    if (!text.empty()) writeFileAtomically(folder + "/" + name, text);
  };
  const std::vector<cuda::KernelCode> kernels = cuda::kernelCodeOf(program);
  for (const cuda::KernelCode& k : kernels) {
    write(k.name + ".cu", k.source);
    write(k.name + ".ptx", k.ptx);
    write(k.name + ".cubin", k.cubin);
  }
  for (const auto& [name, text] : cuda::deviceHeaders()) write(name, text);
  write("kernels.json", cuda::toJson(cuda::kernelTableOf(program)));
  return kernels.size();
}

}  // namespace lathe::cli
