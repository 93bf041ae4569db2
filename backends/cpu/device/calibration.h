// SPDX-License-Identifier: Apache-2.0
#pragma once
// How fast this machine multiplies and reads, measured once: feature bits say what may run, not
// what is fast. One kind of processor makes bf16 dot products at half the rate of f32
// multiply-adds, another at twice; one reads memory fastest as a single stream, another as four.
#include <optional>
#include <string>

#include "backends/cpu/device/cpu_features.h"
#include "backends/cpu/device/roofs.h"

namespace lathe::cpu {

struct Calibration {
  // FLOP/s of all threads together (a multiply-add counts two); 0 where the CPU lacks the unit.
  double f32Fma = 0, bf16Dot = 0, amxBf16 = 0;
  ReadPattern reading;  ///< the simplest within 8 % of the fastest
  bool busy = false;    ///< other programs ran meanwhile

  /// The fastest exact arithmetic for bf16 data among those of `isa`.
  Bf16Arithmetic bf16Arithmetic(const KernelIsa& isa) const;
};

/// Measures on a pool of its own, in about 0.1 s.
Calibration calibrate();

/// One line of JSON, and back. Nothing if it is not of this form or of another processor.
std::string textOf(const Calibration& calibration, const std::string& processor);
std::optional<Calibration> calibrationFrom(const std::string& text, const std::string& processor);
/// As the system calls it; "unknown" where it does not.
std::string processorName();
/// What a calibration is kept under: the processor's name, its feature bits, and the threads.
std::string processorIdentity();

/// The machine's: read from the cache folder, else measured and kept there, once per process. What
/// was measured beside other programs is used and not kept. Without a cache folder it is measured
/// in every process.
const Calibration& calibration();
/// Where it is kept; empty without a cache folder.
std::string calibrationPath();

}  // namespace lathe::cpu
