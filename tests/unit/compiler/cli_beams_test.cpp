// SPDX-License-Identifier: Apache-2.0
// What `lathe generate --beams` prints where a beam ends with the model's end token.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lathe/runtime/json_reader.h"
#include "tests/unit/compiler/cli_runner.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

// Its end token is 2, which stands fourth of what it writes.
const std::string kModel = LATHE_TEST_DATA "/golden/llama_tiny_linear";
const std::string kAsked = " --ids 5,6,7 -n 5 --beams 1", kWords = "generate " + kModel + kAsked;

TEST(CliBeams, TheEndTokenIsNoneOfTheText) {
  const test::CliResult ended = test::runLathe(kWords);
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out, "90,30,10\n");
  EXPECT_EQ(test::runLathe(kWords + " --ignore-eos").out, "90,30,10,2,39\n");
}

TEST(CliBeams, TheDocumentHasTheEndToken) {
  const std::pair<const char*, std::vector<int64_t>> runs[] = {
      {" --json", {90, 30, 10, 2}}, {" --json --ignore-eos", {90, 30, 10, 2, 39}}};
  for (const auto& [flags, expected] : runs) {
    const JsonValue document = JsonValue::parse(test::runLathe(kWords + flags).out, "stdout");
    const JsonValue beam = document.at("beams").at(size_t(0));
    std::vector<int64_t> ids;
    for (size_t i = 0; i < beam.at("ids").size(); ++i) ids.push_back(beam.at("ids").at(i).asInt());
    EXPECT_EQ(ids, expected);
    EXPECT_EQ(beam.at("ended").asBool(), expected.size() == 4);
    EXPECT_TRUE(beam.at("text").isNull()) << "there is no tokenizer";
    EXPECT_EQ(document.at("prompt_ids").size(), 3u);
  }
}

TEST(CliBeams, WhatTheModelNeverSaysIsInNoBeam) {
  test::TemporaryFolder folder;
  for (const auto& file : std::filesystem::directory_iterator(kModel))
    if (file.path().filename() != "generation_config.json")
      std::filesystem::create_symlink(std::filesystem::absolute(file.path()),
                                      folder / file.path().filename().string());
  folder.write("generation_config.json", R"({"suppress_tokens": [30]})");
  const test::CliResult r = test::runLathe("generate " + folder.path() + kAsked);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(r.out.starts_with("90,")) << r.out;
  EXPECT_FALSE(r.out.starts_with("90,30,")) << r.out;
}

}  // namespace
}  // namespace lathe
