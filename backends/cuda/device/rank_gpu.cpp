// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/rank_gpu.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

// What every rank has, in their order.
template <class T>
std::vector<T> gathered(Communicator& ranks, const T& mine) {
  std::vector<T> all(size_t(ranks.size()));
  ranks.allGather(&mine, all.data(), sizeof(T));
  return all;
}

}  // namespace

int placeOnHost(Communicator& ranks) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const auto hosts = gathered(ranks, host);
  int place = 0;
  for (int r = 0; r < ranks.rank(); ++r) place += hosts[size_t(r)] == host;
  return place;
}

void expectOwnGpus(Communicator& ranks, const GpuId& mine) {
  const auto gpus = gathered(ranks, mine);
  for (size_t r = 0; r < gpus.size(); ++r)
    for (size_t other = 0; other < r; ++other)
      if (gpus[r] == gpus[other])
        throw Error(ErrorCode::InvalidArgument,
                    "ranks " + std::to_string(other) + " and " + std::to_string(r) +
                        " have one GPU, expected one for each: start at most as many ranks on a "
                        "host as it has GPUs, and see CUDA_VISIBLE_DEVICES");
}

}  // namespace lathe::cuda
