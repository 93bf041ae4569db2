// SPDX-License-Identifier: Apache-2.0
// Attention through cuDNN, where it is installed.
#include "backends/cuda/device/gpu_driver.h"
#include "lathe/runtime/error.h"

namespace lathe::cuda {

bool GpuDriver::attend(const LibraryAttention& attention,
                       const LibraryAttentionOperands& operands) {
  enter("cudnnBackendExecute", /*recordable=*/true);
  if (!askedForAttention_ && !recording_) {
    askedForAttention_ = true;
    attention_ = Cudnn::open(&attentionMissing_);
    if (attention_) attentionWorkspace_ = allocate(Cudnn::kWorkspaceBytes, "cuDNN workspace");
  }
  if (!attention_) return false;
  try {
    attention_->attend(attention, operands, attentionWorkspace_, stream_);
  } catch (const Error& e) {
    // No plan for this attention: the kernel that the program brings computes it.
    if (e.code() != ErrorCode::Unsupported) throw;
    attentionDeclined_ = e.what();
    return false;
  }
  return true;
}

std::string GpuDriver::attentionReport() const {
  if (!askedForAttention_) return {};
  if (!attention_) return "attention of prompts: own kernels; " + attentionMissing_;
  return "attention of prompts: " + attention_->path() +
         (attentionDeclined_.empty() ? ""
                                     : ", own kernels for what it declines: " + attentionDeclined_);
}

}  // namespace lathe::cuda
