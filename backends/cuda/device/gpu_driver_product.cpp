// SPDX-License-Identifier: Apache-2.0
// Products through cuBLASLt, where it is installed.
#include "backends/cuda/device/gpu_driver.h"
#include "runtime/error.h"

namespace lathe::cuda {

bool GpuDriver::multiply(const LibraryProduct& product, const LibraryOperands& operands) {
  enter("cublasLtMatmul", /*recordable=*/true);
  if (!askedForLibrary_ && !recording_) {
    askedForLibrary_ = true;
    library_ = CublasLt::open();
    if (library_) workspace_ = allocate(CublasLt::kWorkspaceBytes, "cuBLASLt workspace");
  }
  if (!library_) return false;
  try {
    library_->matmul(product, operands, workspace_, stream_);
  } catch (const Error& e) {
    // No algorithm for this product: the kernel that the program brings computes it.
    if (e.code() == ErrorCode::Unsupported) return false;
    throw;
  }
  return true;
}

}  // namespace lathe::cuda
