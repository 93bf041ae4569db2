// SPDX-License-Identifier: Apache-2.0
// A GPU as one of several ranks': collectives on its stream, and waiting that ends when another
// rank does not come.
#include "backends/cuda/device/gpu_driver.h"
#include "backends/cuda/device/rank_gpu.h"
#include "lathe/runtime/error.h"

namespace lathe::cuda {

Communicator* GpuDriver::join(std::shared_ptr<Communicator> ranks) {
  enter("join");
  GpuId id{};
  check(api_.deviceGetUuid(id.data(), device_), "cuDeviceGetUuid", facts_.name);
  expectOwnGpus(*ranks, id);
  ranks_ = NcclRanks::open(std::move(ranks), {stream_, [this] { enter("a collective", true); }});
  return ranks_.get();
}

std::string GpuDriver::ranksReport() const {
  return ranks_ ? "collectives: " + ranks_->name() : std::string();
}

void GpuDriver::awaitRanks(const std::function<api::Result()>& query) {
  if (!ranks_) return;
  // Whatever else it says is told by the call that waits.
  ranks_->await("the work", [&] { return query() != api::kNotReady; });
}

void GpuDriver::drain() {
  if (!ranks_ || recording_) return;
  try {
    awaitRanks([this] { return api_.streamQuery(stream_); });
  } catch (const Error&) {
    // Nothing on the stream waits any more.
  }
}

void GpuDriver::copyRows(void* to, size_t toStride, const void* from, size_t fromStride,
                         size_t bytes, size_t rows) {
  if (rows == 1 || (bytes == toStride && bytes == fromStride)) return copy(to, from, bytes * rows);
  enter("copyRows", true);
  if (!bytes || !rows) return;
  api::RowsCopy rowsCopy;
  rowsCopy.from.device = reinterpret_cast<api::DevicePointer>(from);
  rowsCopy.from.stride = fromStride;
  rowsCopy.to.device = reinterpret_cast<api::DevicePointer>(to);
  rowsCopy.to.stride = toStride;
  rowsCopy.bytes = bytes;
  rowsCopy.rows = rows;
  check(api_.memcpy2DAsync(&rowsCopy, stream_), "cuMemcpy2DAsync",
        std::to_string(rows) + " times " + inBytes(bytes));
}

}  // namespace lathe::cuda
