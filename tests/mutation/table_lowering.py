# SPDX-License-Identifier: Apache-2.0
"""Bugs of the evaluator of regions, of what the CPU and CUDA backends make of it, of the CPU's kernels
and of the dialect that a reader planted before a test was read, and that no test noticed then."""
from mutant import Mutant

MUTANTS = [
    Mutant("lowering/rows-of-another-axis", "backends/common/loops/evaluator.cpp",
           "same = box[i] == rowDims[i] && index",
           "same = index",
           "what is cut from the begin of a middle axis is read at the rows of the result",
           ("region_emitter_shape_test:*CutsRows*",)),
    Mutant("lowering/least-row-of-bytes", "backends/cpu/device/byte_rows.h",
           "constexpr float kLeast = 0x1p-100f;",
           "constexpr float kLeast = 0x1p-20f;",
           "rows in 8 bits whose largest magnitude is below 2^-20 have its step",
           ("cpu_quantized_test:*RowsOfTinyNumbers*",)),
    Mutant("lowering/least-row-of-bytes-in-the-ir", "ir/quantized.cpp",
           "m.scalar(wide, 0x1p-100)",
           "m.scalar(wide, 0x1p-20)",
           "the same in the decomposition of quantizes_x",
           ("quantize_values_test:*RowsInEightBits*",)),
    Mutant("lowering/end-of-a-pad", "ir/shape.cpp",
           "|| llvm::any_of(high, negative))",
           ")",
           "a pad may take elements off the end of an axis",
           ("lit:invalid_shape",)),
    Mutant("lowering/one-padding-a-side", "ir/contraction.cpp",
           "padding[2 * i] + padding[2 * i + 1] -",
           "2 * padding[2 * i] -",
           "the result of a convolution is as large as if its last padding were its first",
           ("lit:roundtrip_contraction",)),
    Mutant("lowering/longest-row-of-bytes", "backends/cpu/device/amx_bytes.cpp",
           "shape.k <= kMostBytes;",
           "shape.k <= 2 * kMostBytes;",
           "tiles add up more products of bytes than 31 bits hold",
           ("cpu_quantized_test:*WeightsAreRounded*",)),
]
