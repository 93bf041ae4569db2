// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/gpu_driver.h"

namespace lathe::cuda {

std::vector<double> GpuDriver::replayTimes(Recorded& recorded, int count) {
  enter("replayTimes");
  struct Events {
    const api::DriverApi& api;
    std::vector<api::Event> all = {};
    ~Events() {
      for (api::Event e : all) api.eventDestroy(e);
    }
  } events{api_};
  while (events.all.size() <= size_t(count)) {
    api::Event event = nullptr;
    check(api_.eventCreate(&event, api::kEventTiming), "cuEventCreate");
    events.all.push_back(event);
  }
  // The first replay has no time: while it runs the others are put behind it, so that none of them
  // waits for the host.
  for (api::Event event : events.all) {
    replay(recorded);
    check(api_.eventRecord(event, stream_), "cuEventRecord");
  }
  synchronize();
  std::vector<double> seconds;
  for (size_t i = 1; i < events.all.size(); ++i) {
    float milliseconds = 0;
    check(api_.eventElapsedTime(&milliseconds, events.all[i - 1], events.all[i]),
          "cuEventElapsedTime");
    seconds.push_back(1e-3 * double(milliseconds));
  }
  return seconds;
}

}  // namespace lathe::cuda
