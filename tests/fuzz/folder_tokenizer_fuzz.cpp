// SPDX-License-Identifier: Apache-2.0
// Any files of a folder without tokenizer.json give a tokenizer or an error that names one of them.
// An input is a row of files: a name, a zero byte, the size in four bytes, and the text.
#include "runtime/folder_tokenizer.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lathe/runtime/tokenizer.h"
#include "tests/fuzz/fuzz_target.h"

namespace fs = std::filesystem;

std::vector<std::string> lathe::fuzz::seeds() {
  std::vector<std::string> rows;
  for (const auto& folder : fs::directory_iterator(LATHE_TEST_DATA "/golden/tokenizer_folders")) {
    std::string row;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename() == "cases.json") continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(stream), {});
      const auto size = uint32_t(text.size());
      row += entry.path().filename().string() + '\0';
      row.append(reinterpret_cast<const char*>(&size), sizeof size);
      row += text;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lathe::FolderFiles files{.folder = "DIR"};
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const size_t end = rest.find('\0');
    uint32_t bytes = 0;
    if (end == rest.npos || rest.size() - end - 1 < sizeof bytes) break;
    std::memcpy(&bytes, rest.data() + end + 1, sizeof bytes);
    const std::string name(rest.substr(0, end));
    rest.remove_prefix(end + 1 + sizeof bytes);
    files.texts[name] = rest.substr(0, bytes);
    rest.remove_prefix(std::min<size_t>(bytes, rest.size()));
  }
  try {
    const auto made = lathe::convertTokenizer(files);
    if (!made) return 0;
    const lathe::Tokenizer t = lathe::Tokenizer::parse(*made, "DIR/tokenizer.json");
    try {
      const std::vector<int> ids = t.encode("It's a caf\u00e9, \u4e2d\u6587 \U0001f600  <s>\n 12",
                                            {.allowSpecialText = true});
      for (int id : ids) lathe::fuzz::check(id >= 0 && id < t.vocabSize(), "ids in the vocabulary");
      t.decode(ids);
    } catch (const lathe::Error& e) {
      // The text's fault where the vocabulary lacks a character.
      if (e.code() != lathe::ErrorCode::InvalidArgument) lathe::fuzz::checkNamed(e, "DIR");
    }
  } catch (const lathe::Error& e) {
    lathe::fuzz::checkNamed(e, "DIR");
  }
  return 0;
}
