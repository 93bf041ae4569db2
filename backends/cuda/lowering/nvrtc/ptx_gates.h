// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a kernel's PTX shows of its quality: how it reads memory, whether it uses tensor cores,
// whether something fell into local memory; and rules that a kernel must keep.
#include <climits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/lowering/nvrtc/cubin_report.h"

namespace lathe::cuda {

/// How many of these instructions the text has. They follow loop unrolling, so a rule names a
/// range or a recorded value.
struct PtxCounts {
  int vectorLoads = 0;    ///< ld.global of 4 elements, ld.global.nc too
  int readOnlyLoads = 0;  ///< ld.global.nc of any width
  int scalarLoads = 0;    ///< ld.global of one element
  int vectorStores = 0;   ///< st.global of 4 elements
  int scalarStores = 0;   ///< st.global of one element
  int mma = 0;            ///< mma.sync
  int wgmma = 0;          ///< wgmma.mma_async
  int ldmatrix = 0;
  int asyncCopies = 0;       ///< cp.async of 4 to 16 bytes
  int bulkCopies = 0;        ///< cp.async.bulk
  int localAccesses = 0;     ///< ld.local, st.local
  int divisionsInLoops = 0;  ///< div.rn: a dozen instructions and a slow path each
  int fma = 0;               ///< fma.rn
  int gridWaits = 0;         ///< griddepcontrol.wait
};

/// One count by the name that reports and rules give it: "vector_loads", "mma".
struct PtxCountName {
  const char* name;
  int PtxCounts::* count;
};
std::span<const PtxCountName> ptxCountNames();

PtxCounts countPtx(std::string_view ptx);

/// Whether the PTX has nothing that only the architecture with an "a" runs (wgmma, setmaxnreg,
/// tensormap.replace): it can then be compiled for every later GPU.
bool isPortable(std::string_view ptx);

struct KernelReport {
  KernelResources resources;
  PtxCounts ptx;
};

struct GateSpec {
  struct Bound {
    std::string count;  ///< one of ptxCountNames
    int low = 0, high = INT_MAX;
  };
  std::vector<Bound> counts;
  int registers = 255;        ///< at most
  int threads = 0;            ///< of the launch; 0: as many as __launch_bounds__ allows
  int64_t dynamicShared = 0;  ///< of the launch, in bytes
  int blocks = 1;             ///< per multiprocessor, at least
};

/// What `kernel` breaks, a line for each: the rules of `spec` and those of every kernel:
/// __launch_bounds__, no spills, no local memory, at most 48 KiB of static shared memory and 227
/// KiB in all. Throws Error (InvalidArgument) for a count that does not exist.
std::vector<std::string> gateViolations(std::string_view name, const KernelReport& kernel,
                                        const GateSpec& spec);

}  // namespace lathe::cuda
