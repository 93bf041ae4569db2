// SPDX-License-Identifier: Apache-2.0
// encode_lines TOKENIZER.JSON: for each line of standard input, a JSON list [text, pair or null], a
// line [ids, ids without special tokens and their spellings, text of the ids, streamed text, pair's
// ids, pair's type ids] on standard output.
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/tokenizer.h"

using lathe::JsonValue;
using lathe::Tokenizer;

namespace {

bool readLine(std::string& line) {
  line.clear();
  for (int c; (c = std::getchar()) != EOF && c != '\n';) line += char(c);
  return !line.empty();
}

std::string show(const std::vector<int>& ids) { return fmt::format("[{}]", fmt::join(ids, ",")); }

std::string answer(const Tokenizer& tokenizer, const std::string& line) {
  const JsonValue json = JsonValue::parse(line, "standard input");
  const std::string& text = json.at(size_t(0)).asString();
  const std::vector<int> ids = tokenizer.encode(text, {.allowSpecialText = true});
  const std::vector<int> plain = tokenizer.encode(text, {.addSpecialTokens = false});
  std::string streamed;
  lathe::StreamDecoder stream(tokenizer);
  for (int id : ids) streamed += stream.push(id);
  streamed += stream.finish();
  std::string pair = "null,null";
  if (const JsonValue second = json.at(size_t(1)); !second.isNull()) {
    const lathe::PairEncoding both =
        tokenizer.encodePair(text, second.asString(), {.allowSpecialText = true});
    pair = show(both.ids) + "," + show(both.typeIds);
  }
  return fmt::format("[{},{},{},{},{}]", show(ids), show(plain),
                     lathe::jsonString(tokenizer.decode(ids)), lathe::jsonString(streamed), pair);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fputs("usage: encode_lines TOKENIZER.JSON\n", stderr), 2;
  try {
    const Tokenizer tokenizer = Tokenizer::load(arguments[1]);
    for (std::string line; readLine(line);) {
      try {
        std::puts(answer(tokenizer, line).c_str());
      } catch (const lathe::Error& e) {
        std::puts(("{\"error\":" + lathe::jsonString(e.what()) + "}").c_str());
      }
    }
  } catch (const lathe::Error& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
}
