// SPDX-License-Identifier: Apache-2.0
#pragma once
// How fast this machine multiplies and reads, measured once: feature bits say what may run, not
// what is fast. One kind of processor makes bf16 dot products at half the rate of f32
// multiply-adds, another at twice; one reads memory fastest as a single stream, another as four.
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/device/cpu_features.h"
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/quantized_weights.h"
#include "backends/cpu/device/read_pattern.h"
#include "backends/cpu/device/roofs.h"

namespace lathe::cpu {

struct Calibration {
  // FLOP/s of one thread (a multiply-add counts two); 0 where the CPU lacks the unit.
  double f32Fma = 0, bf16Dot = 0, amxBf16 = 0;
  ReadRounds rounds;     ///< what `reading` and `spread` follow from
  ReadPatterns reading;  ///< the default, unless another was clearly faster
  double spread = 0;     ///< of their rates (read_pattern.h): how disturbed the measurement was
  int64_t takenAt = 0;   ///< seconds since 1970
  int measurements = 1;  ///< that it was made of
  bool busy = false;     ///< other programs ran meanwhile

  /// The fastest exact arithmetic for bf16 data among those of `isa`.
  Bf16Arithmetic bf16Arithmetic(const KernelIsa& isa) const;
};

/// Measures on a pool of its own, in about 0.2 s.
Calibration calibrate();

/// What measurements, one at least and the oldest first, say together: the best rates, since
/// disturbances only lower them, and the patterns that the rounds of all of them choose. Those of
/// busy moments count only where there is no other.
Calibration together(const std::vector<Calibration>& measured);
/// The arithmetic for bf16 data, which decides the last bits of results: the one that the first of
/// the measurements that count chose, until later ones show another to be faster by a tenth.
Bf16Arithmetic bf16Arithmetic(const std::vector<Calibration>& measured, const KernelIsa& isa);
/// The measurements to keep when another was made. A quiet one replaces those of busy moments;
/// while there is none the last five are kept, since some machines are never quiet.
std::vector<Calibration> withAnother(std::vector<Calibration> measured, const Calibration& another);
/// Whether to measure again at the time `now`: a single moment may have been a bad one, and cannot
/// tell patterns from each other that differ by a tenth. Five quiet measurements ten minutes apart
/// or more are enough. Each of them counts for a month.
bool wantsAnother(const std::vector<Calibration>& measured, int64_t now);

/// One line of JSON, and back. Nothing if it is not of this form or of another processor.
std::string textOf(const std::vector<Calibration>& measured, const std::string& processor);
std::vector<Calibration> calibrationsFrom(const std::string& text, const std::string& processor);
/// As the system calls it; "unknown" where it does not.
std::string processorName();
/// What a calibration is kept under: the processor's name, its feature bits, and the threads.
std::string processorIdentity();

/// The machine's: from the measurements in the cache folder, to which this process may add one
/// (wantsAnother). Without a cache folder it is measured in every process.
const Calibration& calibration();
/// How one of its threads reads such weights.
const ReadPattern& readPatternOf(const PackedShape& shape);
const ReadPattern& readPatternOf(const QuantizedShape& shape);
/// Where it is kept; empty without a cache folder.
std::string calibrationPath();

}  // namespace lathe::cpu
