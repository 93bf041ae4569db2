// SPDX-License-Identifier: Apache-2.0
#include "frontend/report/source_text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>

#include "frontend/report/json_text.h"

namespace lathe {
namespace {

constexpr unsigned kAround = 4;
constexpr size_t kLongestLine = 400;
constexpr uintmax_t kLargestFile = 4 << 20;

bool isSource(const std::filesystem::path& path) {
  static constexpr std::array<std::string_view, 12> kEndings{
      ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inc", ".cu", ".py", ".mlir"};
  std::error_code ignored;
  return std::find(kEndings.begin(), kEndings.end(), path.extension().string()) != kEndings.end() &&
         std::filesystem::is_regular_file(path, ignored) &&
         std::filesystem::file_size(path, ignored) <= kLargestFile;
}

}  // namespace

void writeSources(llvm::json::OStream& out, const OriginTable& origins) {
  out.attributeArray("sources", [&] {
    for (unsigned file = 0; file < origins.files().size(); ++file) {
      std::set<unsigned> wanted;
      for (const OriginTable::Origin& o : origins.origins()) {
        if (o.file != file || o.line == 0) continue;
        for (unsigned l = o.line > kAround ? o.line - kAround : 1; l <= o.line + kAround; ++l)
          wanted.insert(l);
      }
      out.array([&] {
        if (!isSource(origins.files()[file])) return;
        std::ifstream in(origins.files()[file]);
        std::string text;
        bool open = false;
        for (unsigned line = 1; std::getline(in, text); ++line) {
          if (!wanted.count(line)) {
            if (open) out.arrayEnd();
            open = false;
            continue;
          }
          if (!open) {
            out.arrayBegin();
            out.value(line);
            open = true;
          }
          if (!text.empty() && text.back() == '\r') text.pop_back();
          out.value(jsonText(text.substr(0, kLongestLine)));
        }
        if (open) out.arrayEnd();
      });
    }
  });
}

}  // namespace lathe
