// SPDX-License-Identifier: Apache-2.0
// Products through cuBLASLt, where it is installed.
#include "backends/cuda/device/gpu_driver.h"
#include "lathe/runtime/error.h"

namespace lathe::cuda {

bool GpuDriver::multiply(const LibraryMatmul& matmul, const LibraryOperands& operands) {
  enter("cublasLtMatmul", /*recordable=*/true);
  if (!askedForLibrary_ && !recording_) {
    askedForLibrary_ = true;
    library_ = CublasLt::open(&libraryMissing_);
    if (library_) workspace_ = allocate(CublasLt::kWorkspaceBytes, "cuBLASLt workspace");
  }
  if (!library_) return false;
  try {
    library_->matmul(matmul, operands, workspace_, stream_);
  } catch (const Error& e) {
    // No algorithm for this product: the kernel that the program brings computes it.
    if (e.code() != ErrorCode::Unsupported) throw;
    declined_ = e.what();
    return false;
  }
  return true;
}

std::string GpuDriver::matmulsReport() const {
  if (!askedForLibrary_) return {};
  if (!library_) return "large products: own kernels; " + libraryMissing_;
  return "large products: " + library_->path() +
         (declined_.empty() ? "" : ", own kernels for what it declines: " + declined_);
}

}  // namespace lathe::cuda
