// SPDX-License-Identifier: Apache-2.0
#pragma once
// A GPU through CUDA's driver API: the primary context (shared with other libraries of the
// process), one stream, kernels as cubin or PTX.
#include <functional>
#include <vector>

#include "backends/cuda/device/cublaslt.h"
#include "backends/cuda/device/cudnn.h"
#include "backends/cuda/device/driver.h"
#include "backends/cuda/device/driver_api.h"
#include "backends/cuda/device/gpu_driver_staging.h"
#include "backends/cuda/device/nccl_ranks.h"

namespace lathe::cuda {

/// One thread at a time. After an error that the GPU does not recover from, every call throws.
class GpuDriver final : public Driver {
 public:
  explicit GpuDriver(int place);
  ~GpuDriver() override;
  GpuDriver(const GpuDriver&) = delete;
  GpuDriver& operator=(const GpuDriver&) = delete;

  DeviceFacts facts() const override { return facts_; }
  /// The CUstream, for libraries that put their own kernels on it.
  void* stream() const { return stream_; }

  void* allocate(size_t bytes, std::string_view name) override;
  /// Never throws: what went wrong is told by the next call.
  void release(void* memory) override;
  void upload(void* to, const void* from, size_t bytes) override;
  void download(void* to, const void* from, size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void copyRows(void* to, size_t toStride, const void* from, size_t fromStride, size_t bytes,
                size_t rows) override;
  void zero(void* to, size_t bytes) override;

  std::vector<Function> load(const std::vector<KernelCode>& kernels) override;
  /// A grid without blocks launches nothing. At most 8 blocks in a cluster.
  void launch(Function function, const LaunchConfig& config, void** arguments) override;
  bool multiply(const LibraryMatmul& matmul, const LibraryOperands& operands) override;
  std::string matmulsReport() const override;
  bool attend(const LibraryAttention& attention, const LibraryAttentionOperands& operands) override;
  std::string attentionReport() const override;
  void synchronize() override;
  /// Throws Error as NcclRanks does, and (InvalidArgument) where two ranks have one GPU. From now
  /// on no wait for the stream goes on when another rank has failed.
  Communicator* join(std::shared_ptr<Communicator> ranks) override;
  std::string ranksReport() const override;

  std::unique_ptr<Recorded> record(const std::function<void()>& body) override;
  void replay(Recorded& recorded) override;
  std::vector<double> replayTimes(Recorded& recorded, int count) override;

 private:
  struct Kernel;
  class RecordedGraph;

  /// Makes the context this thread's; throws if it is lost, or if `call` cannot be recorded while
  /// a recording is under way.
  void enter(const char* call, bool recordable = false);
  /// Throws Error for anything but success: the call, what is in `details`, the driver's text.
  void check(api::Result result, std::string_view call, std::string_view details = {});
  void loadOne(const KernelCode& code, Kernel& kernel);
  void closeAll();
  /// With several ranks, before a call that waits: returns when `query` is no longer kNotReady.
  void awaitRanks(const std::function<api::Result()>& query);
  /// The same for all that is on the stream, before calls that cannot tell that they failed.
  void drain();

  api::DriverApi api_;
  DeviceFacts facts_;
  api::Device device_ = 0;
  api::Context context_ = nullptr;
  api::Stream stream_ = nullptr;
  std::unique_ptr<NcclRanks> ranks_;  // null where there are none
  std::unique_ptr<StagingBuffer> staging_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::unique_ptr<CublasLt> library_;  // opened by the first product
  bool askedForLibrary_ = false;
  std::string libraryMissing_, declined_;  // why there is none; the last product it did not take
  void* workspace_ = nullptr;
  std::unique_ptr<Cudnn> attention_;  // opened by the first attention
  bool askedForAttention_ = false;
  std::string attentionMissing_, attentionDeclined_;
  void* attentionWorkspace_ = nullptr;
  int sharedLimit_ = 0;  // bytes per block, static and dynamic
  bool recording_ = false;
  std::string lost_;                             // why the context cannot be used any more
  std::vector<const Kernel*> sinceSynchronize_;  // the latest launches, for reports of what failed
};

}  // namespace lathe::cuda
