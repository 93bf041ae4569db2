// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention of prompts through NVIDIA's cuDNN, where it is installed: it is opened when the first
// one is asked for, and its absence is no error.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/device/cudnn_api.h"
#include "backends/cuda/device/library_attention.h"
#include "lathe/runtime/error.h"

namespace lathe::cuda {

/// A descriptor of cuDNN's, which is destroyed with this.
class DnnDescriptor {
 public:
  DnnDescriptor(const dnn::Api& api, dnn::DescriptorKind kind);
  ~DnnDescriptor();
  DnnDescriptor(DnnDescriptor&& other) noexcept
      : api_(other.api_), raw_(std::exchange(other.raw_, nullptr)) {}
  DnnDescriptor(const DnnDescriptor&) = delete;
  DnnDescriptor& operator=(const DnnDescriptor&) = delete;

  template <class T>
  void set(dnn::Attribute attribute, dnn::AttributeType type, const std::vector<T>& values) {
    setRaw(attribute, type, int64_t(values.size()), values.data());
  }
  void set(dnn::Attribute attribute, const DnnDescriptor& other) {
    setRaw(attribute, dnn::kDescriptorType, 1, &other.raw_);
  }
  void setRaw(dnn::Attribute attribute, dnn::AttributeType type, int64_t count, const void* values);
  void finalize();
  dnn::Descriptor raw() const { return raw_; }
  const dnn::Api& api() const { return api_; }

 private:
  const dnn::Api& api_;
  dnn::Descriptor raw_ = nullptr;
};

/// Throws Error for a status other than 0: Unsupported, or Io where something failed to run.
void checkDnn(const dnn::Api& api, dnn::Status status, const char* call);

/// The ops of an attention as cuDNN wants them: the tensors of one plan have numbers, those of
/// `DnnOperand` are given when it runs.
enum DnnOperand : int64_t { kDnnQ = 1, kDnnK, kDnnV, kDnnY, kDnnKeyLengths, kDnnQueryLengths };
struct DnnGraph {
  std::vector<DnnDescriptor> ops, others;  ///< `others` are what the ops refer to
  /// Tensors of one element, whose value the host gives.
  struct Number {
    int64_t tensor;
    float value;
  };
  std::vector<Number> numbers;
};
DnnGraph attentionGraph(const dnn::Api& api, const LibraryAttention& attention);

/// One per device; may be used by several threads at a time.
class Cudnn {
 public:
  /// Room that every plan gets; one that wants more is declined.
  static constexpr size_t kWorkspaceBytes = size_t(32) << 20;
  /// From 9.10.2 on: before, fused attention of 16-bit floats had faults.
  static constexpr size_t kLowestVersion = 91002;

  /// Null where the library is not found, too old or has no GPU; `why` then says which. LATHE_CUDNN
  /// names the library; else the loader is asked, and then installed CUDA toolkits.
  static std::unique_ptr<Cudnn> open(std::string* why = nullptr);
  /// Makes plans for a device that need not be here, and runs none: `device` is what cuDNN writes
  /// of a device as JSON.
  static std::unique_ptr<Cudnn> openFor(const std::string& device, std::string* why = nullptr);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  /// Puts the attention on `stream` (a CUstream) of the current context. The plan of a shape is
  /// made at its first call, which must not be recorded, and kept; `workspace` has kWorkspaceBytes,
  /// so a recorded call stays valid. Throws Error (Unsupported) for one that the library has no
  /// plan for, (InvalidArgument) for operands that do not fit, (Io) for what fails.
  void attend(const LibraryAttention& attention, const LibraryAttentionOperands& operands,
              void* workspace, void* stream);
  /// Bytes of workspace that the attention's plan takes. Throws Error (Unsupported) without one.
  size_t plan(const LibraryAttention& attention);

  const std::string& path() const { return path_; }

 private:
  struct Plan;
  explicit Cudnn(const dnn::Api& api);
  static std::unique_ptr<Cudnn> load(std::string& why);
  Plan& planOf(const LibraryAttention& attention);
  std::unique_ptr<Plan> makePlan(const LibraryAttention& attention);

  dnn::Api api_;
  dnn::Handle handle_ = nullptr;
  std::unique_ptr<DnnDescriptor> device_;  // where there is no handle
  std::string path_;
  std::mutex mutex_;
  std::vector<std::pair<LibraryAttention, std::unique_ptr<Plan>>> plans_;
  std::vector<std::pair<LibraryAttention, std::string>> declined_;  // why there is no plan
};

}  // namespace lathe::cuda
