// SPDX-License-Identifier: Apache-2.0
#pragma once
// The roofs of a machine, measured or from its maker, and the time they predict (Williams et al.,
// "Roofline: an insightful visual performance model", 2009).
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/cost.h"

namespace lathe {

struct MachineRoofs {
  std::string name;
  double narrowFlops = 0;     ///< FLOP/s of dense bf16 and f16 products
  double wideFlops = 0;       ///< FLOP/s of f32
  double bytesPerSecond = 0;  ///< of main memory
  bool busy = false;          ///< other programs ran while this was measured: the roofs are too low
};

/// "h100", "h200", "a100": their makers' figures; "epyc:N" and "xeon:N": N cores of a Zen 5 and of
/// a Sapphire Rapids, up to what their sockets' memory gives;
/// "flops=F,bandwidth=B[,flops32=G]": numbers in FLOP/s and bytes/s. Throws Error (InvalidArgument)
/// naming all of these.
MachineRoofs parseMachine(std::string_view text);

struct Prediction {
  double seconds = 0;
  bool computeBound = false;  ///< the arithmetic takes longer than the traffic
};
/// The longer of arithmetic at the peak and traffic at the memory's bandwidth.
Prediction predict(const CostValues& cost, const MachineRoofs& machine);

}  // namespace lathe
