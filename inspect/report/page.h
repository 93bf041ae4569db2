// SPDX-License-Identifier: Apache-2.0
#pragma once
// The page around the data.
#include <string>

namespace lathe {

/// A whole HTML document with `json` inside. Nothing in `json` can end the element that holds it.
std::string reportPage(const std::string& title, const std::string& json);

}  // namespace lathe
