// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls of all layers and kernels of one kind under one name, for tables that people read.
#include <string>

namespace lathe::cli {

/// "blocks.3.attn model.cpp:41" -> "blocks.*.attn": the same place of all layers is one row.
std::string placeOf(const std::string& origin);
/// "region_12" -> "region": kernels of one kind are told apart by where they come from.
std::string kindOf(std::string kernel);

}  // namespace lathe::cli
