// SPDX-License-Identifier: Apache-2.0
#include "inspect/report/source_text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "inspect/report/json_text.h"
#include "lathe/runtime/error.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

constexpr unsigned kAround = 4;
constexpr size_t kLongestLine = 400;

// Nothing if it is no source file or cannot be read: the report shows less, then.
std::optional<std::string> sourceText(const std::filesystem::path& path) {
  static constexpr std::array<std::string_view, 12> kEndings{
      ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inc", ".cu", ".py", ".mlir"};
  if (std::find(kEndings.begin(), kEndings.end(), path.extension().string()) == kEndings.end())
    return std::nullopt;
  try {
    return readWholeFile(path.string(), kSourceFile);
  } catch (const Error&) {
    return std::nullopt;
  }
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
        std::optional<std::string> whole = sourceText(origins.files()[file]);
        if (!whole) return;
        std::istringstream in(*whole);
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
