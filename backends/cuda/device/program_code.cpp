// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/program_code.h"

#include <map>

#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

constexpr const char* kTable = "cuda.table";

struct Form {
  const char* prefix;
  std::string KernelCode::* text;
};
constexpr Form kForms[] = {{"cuda.source/", &KernelCode::source},
                           {"cuda.sm_90a/", &KernelCode::cubin},
                           {"cuda.compute_90/", &KernelCode::ptx}};

}  // namespace

void storeKernels(Program& program, const KernelTable& table,
                  const std::vector<KernelCode>& kernels) {
  program.blobs[kTable] = toJson(table);
  for (const KernelCode& k : kernels)
    for (const Form& form : kForms)
      if (!(k.*form.text).empty()) program.blobs[form.prefix + k.name] = k.*form.text;
}

KernelTable kernelTableOf(const Program& program) {
  auto it = program.blobs.find(kTable);
  if (it == program.blobs.end())
    throw Error(ErrorCode::InvalidFile, "the program for backend 'cuda' holds no kernel table");
  return parseKernelTable(it->second);
}

std::vector<KernelCode> kernelCodeOf(const Program& program) {
  std::map<std::string, KernelCode> kernels;
  for (auto& [name, bytes] : program.blobs)
    for (const Form& form : kForms)
      if (name.starts_with(form.prefix)) {
        std::string kernel = name.substr(std::string_view(form.prefix).size());
        kernels[kernel].name = kernel;
        kernels[kernel].*form.text = bytes;
      }
  std::vector<KernelCode> all;
  for (auto& [name, code] : kernels) all.push_back(std::move(code));
  return all;
}

}  // namespace lathe::cuda
