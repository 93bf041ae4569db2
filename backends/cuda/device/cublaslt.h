// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plain large products through NVIDIA's cuBLASLt, where it is installed: it is opened when the
// first product is asked for, and its absence is no error.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "backends/cuda/device/cublaslt_api.h"
#include "backends/cuda/device/library_matmul.h"

namespace lathe::cuda {

/// One per device; may be used by several threads at a time.
class CublasLt {
 public:
  static constexpr size_t kWorkspaceBytes = size_t(32) << 20;

  /// Null where the library is not found or has no GPU; `why` then says which. LATHE_CUBLASLT names
  /// the library; else the loader is asked, and then installed CUDA toolkits.
  static std::unique_ptr<CublasLt> open(std::string* why = nullptr);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /// Puts the product on `stream` (a CUstream) of the current context. The algorithm of a shape is
  /// chosen at its first product and kept, and `workspace` has kWorkspaceBytes, so a recorded
  /// product stays valid. Throws Error (Unsupported) for a product that the library has no
  /// algorithm for, or none of its rank, (InvalidArgument) for dtypes and operands that do not fit,
  /// (Io) for what fails.
  void matmul(const LibraryMatmul& matmul, const LibraryOperands& operands, void* workspace,
              void* stream);

  const std::string& path() const { return path_; }

 private:
  struct Plan;
  // Shape, dtypes, layout, whether beta and bias are there, alignments, rank.
  using Key = std::tuple<int64_t, int64_t, int64_t, DType, DType, bool, bool, bool, uint64_t, int>;

  explicit CublasLt(const blas::Api& api);
  void check(blas::Status status, const char* call, const LibraryMatmul& matmul) const;
  std::unique_ptr<Plan> makePlan(const LibraryMatmul& matmul, const LibraryOperands& operands);

  blas::Api api_;
  blas::Handle handle_ = nullptr;
  std::string path_;
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
  std::map<Key, std::string> declined_;  // why there is no plan
};

}  // namespace lathe::cuda
