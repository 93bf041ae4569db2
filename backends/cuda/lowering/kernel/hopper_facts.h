// SPDX-License-Identifier: Apache-2.0
#pragma once
// What models of time and choices of schedules take for an H200.

namespace lathe::cuda {

constexpr int kMultiprocessors = 132;
constexpr double kMemoryBandwidth = 4.6e12;  ///< bytes per second, as kernels read
constexpr double kLaunchSeconds = 2.5e-6;    ///< of a kernel that does nothing

}  // namespace lathe::cuda
