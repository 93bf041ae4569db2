// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of docs/onnx.md, from the table of lowerings.
#include <string>

#include "frontend/onnx/node.h"

namespace lathe {

inline constexpr std::string_view kPageBegin = "<!-- lowerings: begin -->\n";
inline constexpr std::string_view kPageEnd = "<!-- lowerings: end -->\n";

inline std::string onnxOpTable() {
  std::string text = "| op | attributes | refused |\n|---|---|---|\n";
  for (const onnx::Lowering& lowering : onnx::lowerings()) {
    text += "| `";
    if (!lowering.domain.empty()) text += std::string(lowering.domain) + ".";
    text += std::string(lowering.op) + "` | ";
    for (size_t i = 0; i < lowering.attributes.size(); ++i)
      text += (i ? " `" : "`") + std::string(lowering.attributes[i]) + "`";
    text += " | " + std::string(lowering.limits) + " |\n";
  }
  return text;
}

/// The page with the table put in, or an empty text where its marks are missing.
inline std::string withOnnxTable(const std::string& page) {
  const size_t begin = page.find(kPageBegin), end = page.find(kPageEnd);
  if (begin == page.npos || end == page.npos || end < begin) return {};
  return page.substr(0, begin + kPageBegin.size()) + onnxOpTable() + page.substr(end);
}

}  // namespace lathe
