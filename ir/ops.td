// SPDX-License-Identifier: Apache-2.0
// Everything, for the documentation only; C++ is generated per family.
include "elementwise.td"
include "reduce.td"
include "shape.td"
include "contraction.td"
include "index.td"
include "state.td"
include "quantized.td"
include "fused.td"
include "collective.td"
include "kernel.td"
