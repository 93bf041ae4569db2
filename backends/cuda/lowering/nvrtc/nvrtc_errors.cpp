// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/nvrtc/nvrtc_errors.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <vector>

namespace lathe::cuda {
namespace {

constexpr int kLinesAround = 2;
constexpr size_t kErrors = 10;

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

// "/lathe/NAME(LINE): error: ..." or "... catastrophic error: ..."
struct Place {
  std::string_view name;
  int line = 0;
};
bool isError(std::string_view line, Place* place) {
  const std::string folder = kernelFile("");
  size_t open = line.find('('), close = line.find("): ");
  if (!line.starts_with(folder) || open == line.npos || close == line.npos || close < open)
    return false;
  std::string_view rest = line.substr(close + 3);
  if (!rest.starts_with("error") && !rest.starts_with("catastrophic error")) return false;
  place->name = line.substr(folder.size(), open - folder.size());
  auto [end, bad] = std::from_chars(line.data() + open + 1, line.data() + close, place->line);
  return bad == std::errc() && end == line.data() + close;
}

std::string excerpt(std::string_view text, int line) {
  std::vector<std::string_view> lines = linesOf(text);
  std::string shown;
  for (int n = std::max(1, line - kLinesAround);
       n <= std::min(int(lines.size()), line + kLinesAround); ++n) {
    char number[24];
    std::snprintf(number, sizeof(number), "%s%5d | ", n == line ? ">" : " ", n);
    shown += number + std::string(lines[size_t(n) - 1]) + "\n";
  }
  return shown;
}

}  // namespace

std::string kernelFile(std::string_view name) { return "/lathe/" + std::string(name); }

std::string explainLog(std::string_view log, std::string_view file, std::string_view text,
                       const Headers& headers) {
  std::string shown;
  size_t errors = 0;
  for (std::string_view line : linesOf(log)) {
    Place place;
    if (!isError(line, &place)) continue;
    if (++errors > kErrors) continue;
    shown += std::string(line) + "\n";
    auto header = headers.find(std::string(place.name));
    if (place.name == file)
      shown += excerpt(text, place.line);
    else if (header != headers.end())
      shown += excerpt(header->second, place.line);
    if (line.find("cannot open source file") != line.npos) {
      shown += "the headers are:";
      for (auto& [name, content] : headers) shown += " " + name;
      shown += "\n";
    }
  }
  if (errors > kErrors)
    shown += "and " + std::to_string(errors - kErrors) +
             (errors == kErrors + 1 ? " more error\n" : " more errors\n");
  // Mistakes in assembly come with a line of PTX only.
  return errors ? shown : std::string(log);
}

}  // namespace lathe::cuda
