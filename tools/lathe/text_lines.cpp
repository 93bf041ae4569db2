// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/text_lines.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "lathe/runtime/error.h"
#include "runtime/mapped_file.h"

namespace lathe::cli {

std::string textOf(const std::string& file) {
  std::string text = file == "-" ? readWholeStream(stdin, "standard input", kPromptFile)
                                 : readWholeFile(file, kPromptFile);
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

std::vector<std::string> linesOf(const std::string& file) {
  const std::string text = textOf(file);
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const size_t length = end - begin;
    const bool isCrLf = length > 0 && text[end - 1] == '\r';  // as editors of Windows end lines
    lines.push_back(text.substr(begin, length - isCrLf));
    begin = end + 1;
  }
  if (lines.empty())
    throw Error(ErrorCode::InvalidArgument, file + ": expected a text in each line, got no line");
  return lines;
}

}  // namespace lathe::cli
