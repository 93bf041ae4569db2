// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tile register layout that all AMX kernels of this backend share.
#include "backends/cpu/device/isa_region.h"

namespace lathe::cpu {

/// Eight tiles of 16 rows x 64 bytes: 0-3 sums, 4-5 A, 6-7 B. The memory form LDTILECFG reads.
struct alignas(64) AmxTileConfig {
  unsigned char palette = 1;
  unsigned char startRow = 0;
  unsigned char reserved[14] = {};
  unsigned short columnBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  unsigned char rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr AmxTileConfig kAmxTiles{};

}  // namespace lathe::cpu
