// SPDX-License-Identifier: Apache-2.0
// Any text is a chat template or an error that names the file, and a template renders any
// conversation, refuses it in its own words, or fails with its file's name and within its limits.
#include "lathe/runtime/chat_template.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr const char* kTalk = R"([
  {"role": "system", "content": " Be brief.\n"},
  {"role": "user", "content": "What is 1 + 1? \ud83d\ude00"},
  {"role": "assistant", "content": null, "tool_calls": [
    {"id": "a1", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 1}}}]},
  {"role": "tool", "tool_call_id": "a1", "content": "2"},
  {"role": "user", "content": [{"type": "text", "text": "Thanks <|eot_id|>"}]}])";

}  // namespace

std::vector<std::string> lathe::fuzz::seeds() {
  std::ifstream file(LATHE_TEST_DATA "/golden/chat/cases.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  std::vector<std::string> texts;
  for (const auto& text : golden.at("templates")) texts.push_back(text);
  for (const auto& c : golden.at("cases"))
    if (c.contains("source")) texts.push_back(c["source"]);
  return texts;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lathe;
  try {
    const ChatTemplate t = ChatTemplate::parse({reinterpret_cast<const char*>(data), size},
                                               "t.jinja", {{"bos_token", "<s>"}});
    for (bool prompt : {false, true}) {
      const ChatOptions options{.addGenerationPrompt = prompt, .date = 1753000000};
      try {
        fuzz::check(t.renderJson(kTalk, "talk.json", options).size() <= size_t(16) << 20,
                    "the output has a limit");
      } catch (const Error& e) {
        // The template's own words are about the conversation.
        if (e.code() != ErrorCode::InvalidArgument) fuzz::checkNamed(e, "t.jinja");
      }
    }
  } catch (const Error& e) {
    fuzz::checkNamed(e, "t.jinja");
  }
  return 0;
}
