// SPDX-License-Identifier: Apache-2.0
// Any bytes give a tokenizer or an error that names the file, and the tokenizer takes any text: its
// ids are its own, and what the file asks for on the way ends.
#include "lathe/runtime/tokenizer.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> lathe::fuzz::seeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string text = [] {
    std::string s =
        "The quick brown fox, 12345 times; it's \u00e9t\u00e9 \u4e2d\u6587 \U0001f600\n\n ";
    return s + std::string(300, 'a') + std::string(300, ' ') + "e\u0301\u0323\ufdfa <|endoftext|>";
  }();
  try {
    const lathe::Tokenizer t =
        lathe::Tokenizer::parse({reinterpret_cast<const char*>(data), size}, "tokenizer.json");
    try {
      const std::vector<int> ids = t.encode(text, {.allowSpecialText = true});
      for (int id : ids) lathe::fuzz::check(id >= 0 && id < t.vocabSize(), "ids in the vocabulary");
      t.decode(ids);
    } catch (const lathe::Error& e) {
      // The text's fault where the vocabulary lacks a character.
      if (e.code() != lathe::ErrorCode::InvalidArgument)
        lathe::fuzz::checkNamed(e, "tokenizer.json: ");
    }
  } catch (const lathe::Error& e) {
    lathe::fuzz::checkNamed(e, "tokenizer.json: ");
  }
  return 0;
}
