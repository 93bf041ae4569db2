// SPDX-License-Identifier: Apache-2.0
#pragma once
// NVRTC, NVIDIA's compiler of CUDA C++ as a library: opened at first use, needs neither a GPU nor
// a toolkit's headers.
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/device/headers.h"

namespace lathe::cuda {

/// Those of `headers` that `text` includes, and that they include.
Headers includedHeaders(std::string_view text, const Headers& headers);

struct NvrtcOutput {
  std::string cubin;  ///< empty for a virtual architecture
  std::string ptx;
  std::string log;  ///< what ptxas says of registers and spills
};

/// May be used by several threads at a time.
class Nvrtc {
 public:
  /// LATHE_NVRTC names the library; else it is looked for in installed CUDA toolkits, by the loader
  /// and where scripts/setup puts it. Throws Error (Unsupported) with all places.
  static const Nvrtc& library();

  /// "13.0"
  const std::string& version() const { return version_; }
  const std::string& path() const { return path_; }

  /// The options of every compilation: the bytes of a cubin depend on them, so there is one list.
  static std::vector<std::string> options(std::string_view arch);

  /// Compiles `text`, which errors call /lathe/NAME.cu, for "sm_90a" (cubin and PTX) or
  /// "compute_90" (PTX). Throws Error (InvalidArgument) with the lines around each mistake. Equal
  /// arguments give equal bytes in every process and folder.
  NvrtcOutput compile(std::string_view name, const std::string& text, const Headers& headers,
                      std::string_view arch) const;

 private:
  using Program = struct ProgramTag*;
  using Status = int;
  Nvrtc();

  std::string version_, path_;
  Status (*versionOf_)(int*, int*) = nullptr;
  const char* (*errorString_)(Status) = nullptr;
  Status (*createProgram_)(Program*, const char* text, const char* name, int headers,
                           const char* const* headerTexts, const char* const* names) = nullptr;
  Status (*destroyProgram_)(Program*) = nullptr;
  Status (*compileProgram_)(Program, int options, const char* const*) = nullptr;
  using SizeOf = Status (*)(Program, size_t*);
  using TextOf = Status (*)(Program, char*);
  SizeOf logSize_ = nullptr, cubinSize_ = nullptr, ptxSize_ = nullptr;
  TextOf log_ = nullptr, cubin_ = nullptr, ptx_ = nullptr;
};

}  // namespace lathe::cuda
