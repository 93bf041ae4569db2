// SPDX-License-Identifier: Apache-2.0
// What a kernel boundary costs: plain launches, a graph, programmatic dependent launch, both.
#include "roofs.cuh"

#include <algorithm>
#include <vector>

namespace {

constexpr int kLaunches = 500;

__global__ void empty() {}
__global__ void emptyOverlapping() {
  asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory");
}

void launchOverlapping(cudaStream_t stream) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(multiprocessors());
  config.blockDim = dim3(256);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, emptyOverlapping);
}

void measure(const std::string& key, cudaStream_t stream, const std::function<void()>& work) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<double> us;
  for (int i = 0; i < 14; ++i) {
    cudaEventRecord(begin, stream);
    work();
    cudaEventRecord(end, stream);
    if (!ok(cudaEventSynchronize(end), key)) return;
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 3) us.push_back(ms * 1000 / kLaunches);
  }
  std::sort(us.begin(), us.end());
  put(key, "{\"us_per_kernel\": " + number(us[us.size() / 2]) + ", \"best\": " + number(us[0]) +
               ", \"worst\": " + number(us.back()) + "}");
}

void measureGraph(const std::string& key, cudaStream_t stream, const std::function<void()>& one) {
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  if (!ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), key)) return;
  for (int i = 0; i < kLaunches; ++i) one();
  if (!ok(cudaStreamEndCapture(stream, &graph), key)) return;
  if (!ok(cudaGraphInstantiate(&ready, graph, 0), key)) return;
  measure(key, stream, [&] { cudaGraphLaunch(ready, stream); });
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
}

}  // namespace

void measureLaunches() {
  cudaStream_t stream;
  if (!ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream")) return;
  auto measureBoth = [&](const std::string& what, const std::function<void()>& one) {
    measure("launch_" + what, stream, [&] {
      for (int i = 0; i < kLaunches; ++i) one();
    });
    measureGraph("launch_graph_" + what, stream, one);
  };
  for (int blocks : {1, multiprocessors()})
    measureBoth("grid" + std::to_string(blocks),
                [&, blocks] { empty<<<blocks, 256, 0, stream>>>(); });
  measureBoth("overlapping", [&] { launchOverlapping(stream); });
  cudaStreamDestroy(stream);
}
