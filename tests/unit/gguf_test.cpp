// SPDX-License-Identifier: Apache-2.0
// GGUF files: every kind of block bit for bit, the tokenizers, and files that break the format.
#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/gguf.h"
#include "lathe/runtime/tokenizer.h"
#include "runtime/gguf_model.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::readFile;
using test::TemporaryFolder;

const std::string kFolder = LATHE_TEST_DATA "/golden/checkpoints/";
constexpr auto kFile = ErrorCode::InvalidFile;

TEST(Gguf, DecodesEveryKindBitForBit) {
  const Checkpoint checkpoint = Checkpoint::open(kFolder + "kinds.gguf");
  const auto expected = SafetensorsFile::open(kFolder + "kinds.safetensors");
  EXPECT_EQ(checkpoint.names().size(), 13u);
  for (const std::string& name : checkpoint.names()) {
    const Array got = checkpoint.find(name)->to(DType::F32), wanted = expected.array(name);
    ASSERT_EQ(got.shape(), wanted.shape()) << name;
    EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.bytes()), 0) << name;
  }
}

// What the graph reads: (q - zero) * scale of a block.
TEST(Gguf, PartsStandForTheSameBits) {
  const Checkpoint checkpoint = Checkpoint::open(kFolder + "kinds.gguf");
  int blocked = 0;
  for (const std::string& name : checkpoint.names()) {
    const CheckpointTensor& tensor = *checkpoint.entry(name);
    if (!tensor.blocks) continue;
    ++blocked;
    const Array whole = *checkpoint.find(name), q = *checkpoint.find(name + ".q"),
                scale = *checkpoint.find(name + ".scale");
    EXPECT_EQ(q.dtype(), tensor.blocks->dtype);
    EXPECT_EQ(checkpoint.wholeOf(name + ".q"), name);
    const int64_t columns = whole.shape()[1], perRow = scale.shape()[1];
    for (int64_t i = 0; i < whole.size(); ++i) {
      const int64_t block = i / columns * perRow + i % columns / tensor.blocks->block;
      ASSERT_EQ(float(q.at(i)) * float(scale.at(block)), float(whole.at(i))) << name << " " << i;
    }
  }
  EXPECT_EQ(blocked, 5);  // Q4_0 Q5_0 Q8_0 Q3_K Q6_K
}

TEST(Gguf, TokenizersGiveTheIdsOfTheirLibraries) {
  const auto expected = nlohmann::json::parse(readFile(kFolder + "tokenizers/expected.json"));
  for (auto& [name, ids] : expected["ids"].items()) {
    const auto file = GgufFile::open(kFolder + "tokenizers/" + name + ".gguf");
    const Tokenizer tokenizer = Tokenizer::parse(ggufTokenizer(file), name);
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string text = expected["texts"][i];
      EXPECT_EQ(tokenizer.encode(text), ids[i].get<std::vector<int>>()) << name << ": " << text;
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text) << name;
    }
  }
}

TEST(Gguf, ConfigSaysWhatTheMetadataSay) {
  const auto files = ggufModelFiles(kFolder + "gguf_gemma2/model.gguf");
  const auto config = nlohmann::json::parse(files.at("config.json"));
  EXPECT_EQ(config["architectures"][0], "Gemma2ForCausalLM");
  EXPECT_EQ(config["rms_norm_eps"], 1e-6);
  EXPECT_EQ(config["attn_logit_softcapping"], 50);
  EXPECT_EQ(config["tie_word_embeddings"], true);
  EXPECT_FALSE(files.contains("tokenizer.json"));
}

using Writer = test::GgufWriter;

TEST(GgufHeaders, OfGoodFilesAreRead) {
  Writer file;  // values are views of its bytes
  file.begin(2, 2)
      .key("a", GgufType::Array)
      .number(uint32_t(GgufType::String))
      .number<uint64_t>(2)
      .text("x")
      .text("y")
      .key("n", GgufType::U16)
      .number<uint16_t>(7)
      .tensor("t", {4, 2}, 0, 0)
      .tensor("u", {32}, 8, 32)
      .data(66);
  const GgufHeader header = file.parse();
  EXPECT_EQ(header.metadata.at("a").asStrings()[1], "y");
  EXPECT_EQ(header.metadata.at("n").asInt(0, 10), 7);
  expectError(kFile, "x.gguf: n: expected an integer from 0 to 3, got 7",
              [&] { header.metadata.at("n").asInt(0, 3); });
  EXPECT_EQ(header.tensors[0].shape, (Shape{2, 4}));
  EXPECT_EQ(header.tensors[1].bytes, 34u);
}

TEST(GgufHeaders, OfBrokenFilesAreRefusedByRule) {
  Writer().begin(0, 0, 1).refused("the header: version 1", ErrorCode::Unsupported);
  Writer()
      .begin(0, 0, 3u << 24)
      .refused("the header: the file is big-endian", ErrorCode::Unsupported);
  Writer().begin(1ull << 40, 0).refused("the header: 1099511627776 tensors");
  Writer().begin(0, 1ull << 40).refused("the header: 1099511627776 keys");
  Writer().begin(0, 1).refused("key 0 of the metadata: a number of 8 bytes");
  Writer().begin(0, 1).number<uint64_t>(1ull << 60).refused("key 0 of the metadata: its name of");
  Writer().begin(0, 1).text("a").number<uint32_t>(13).refused("\"a\": type 13 is none");
  Writer()
      .begin(0, 1)
      .key("a", GgufType::Array)
      .number<uint32_t>(9)
      .number<uint64_t>(1)
      .refused("\"a\": arrays of arrays", ErrorCode::Unsupported);
  Writer()
      .begin(0, 1)
      .key("a", GgufType::Array)
      .number<uint32_t>(4)
      .number<uint64_t>(1ull << 62)
      .refused("\"a\": an array of 4611686018427387904 values is past the end");
  Writer()
      .begin(0, 1)
      .key("a", GgufType::Bool)
      .number<uint8_t>(2)
      .refused("\"a\": expected a bool");
  Writer()
      .begin(0, 1)
      .key("a", GgufType::String)
      .text("\xff")
      .refused("\"a\": a text holds invalid");
  Writer()
      .begin(0, 2)
      .key("a", GgufType::U8)
      .number<uint8_t>(2)
      .key("a", GgufType::U8)
      .number<uint8_t>(2)
      .refused("\"a\": given twice");
  for (const uint32_t alignment : {4, 48})
    Writer()
        .begin(0, 1)
        .key("general.alignment", GgufType::U32)
        .number(alignment)
        .refused("general.alignment: expected a power of two of at least 8, got " +
                 std::to_string(alignment));
  Writer().begin(1, 0).tensor("t", {}, 0, 0).refused("tensor \"t\": expected 1 to 4 dims, got 0");
  Writer().begin(1, 0).tensor("t", {0}, 0, 0).refused("tensor \"t\": dim 0 is 0");
  Writer()
      .begin(1, 0)
      .tensor("t", {1ull << 40, 1ull << 40}, 0, 0)
      .refused("tensor \"t\": the product of its dims overflows");
  Writer()
      .begin(1, 0)
      .tensor("t", {4}, 99, 0)
      .refused("tensor \"t\": unknown type 99", ErrorCode::Unsupported);
  Writer()
      .begin(1, 0)
      .tensor("t", {33}, 2, 0)
      .refused("tensor \"t\": rows of 33 elements are no whole blocks");
  Writer().begin(1, 0).tensor("t", {4}, 0, 8).refused("tensor \"t\": offset 8 is no multiple");
  Writer()
      .begin(1, 0)
      .tensor("t", {4}, 0, 32)
      .data(64)
      .refused("tensor \"t\": it starts at byte 32 of the data, expected 0: there is a hole");
  Writer()
      .begin(2, 0)
      .tensor("t", {16}, 0, 0)
      .tensor("u", {16}, 0, 32)
      .data(128)
      .refused("tensor \"u\": it starts at byte 32 of the data, expected 64: there is an overlap");
  Writer()
      .begin(2, 0)
      .tensor("t", {4}, 0, 0)
      .tensor("t", {4}, 0, 32)
      .data(64)
      .refused("tensor \"t\": given twice");
  Writer()
      .begin(1, 0)
      .tensor("t", {4}, 0, 0)
      .data(15)
      .refused("tensor \"t\": 16 bytes at byte 64 are past the end");
  // The last tensor may be filled up as the others are, and nothing follows.
  EXPECT_NO_THROW(Writer().begin(1, 0).tensor("t", {4}, 0, 0).data(16).parse());
  EXPECT_NO_THROW(Writer().begin(1, 0).tensor("t", {4}, 0, 0).data(32).parse());
  Writer()
      .begin(1, 0)
      .tensor("t", {4}, 0, 0)
      .data(33)
      .refused("the data: its tensors end at byte 96, the file has 97");
}

TEST(GgufModels, NameTheKeyThatNobodyReads) {
  auto write = [](const TemporaryFolder& folder, std::string_view arch, std::string_view extra) {
    std::string bytes = readFile(kFolder + "gguf_qwen3/model.gguf");
    auto replace = [&](std::string_view from, std::string_view to) {
      for (size_t at = bytes.find(from); !from.empty() && at != bytes.npos;
           at = bytes.find(from, at + 1))
        bytes.replace(at, from.size(), to);
    };
    replace(extra, "qwen3.rope.freq_bass");
    replace("qwen3", arch);
    return folder.write("model.gguf", bytes);
  };
  const TemporaryFolder folder;
  expectError(ErrorCode::Unsupported, "general.architecture: expected one of llama, qwen2",
              [&] { ggufModelFiles(write(folder, "qwenX", "")); });
  expectError(ErrorCode::Unsupported,
              "qwen3.rope.freq_bass: not supported by Qwen3ForCausalLM: expected no such key",
              [&] { ggufModelFiles(write(folder, "qwen3", "qwen3.rope.freq_base")); });
}

// ggml's rope of these families turns neighbours: its writers move the rows of q and k.
TEST(GgufModels, RowsOfQueriesAndKeysLieAsTheFamilysRopeReadsThem) {
  const TemporaryFolder folder;
  const std::pair<std::string, bool> families[] = {
      {"llama", true},   {"granite", true}, {"qwen2", false}, {"qwen3", false}, {"gemma", false},
      {"gemma2", false}, {"gemma3", false}, {"phi3", false},  {"olmo2", false}};
  for (const auto& [name, moves] : families) {
    Writer writer;
    writer.begin(3, 3).key("general.architecture", GgufType::String).text(name);
    writer.key(name + ".attention.head_count", GgufType::U32).number<uint32_t>(4);
    writer.key(name + ".attention.head_count_kv", GgufType::U32).number<uint32_t>(2);
    writer.tensor("blk.0.attn_q.weight", {8, 8}, 0, 0)
        .tensor("blk.0.attn_k.weight", {8, 4}, 0, 256);
    writer.tensor("blk.0.attn_v.weight", {8, 4}, 0, 384).data(512);
    const std::vector<GgufFile> parts{GgufFile::open(folder.write(name + ".gguf", writer.bytes()))};
    auto heads = [&](const char* tensor) {
      return weightsIn(*parts[0].tensor(tensor), parts).at(0).rotatedHeads;
    };
    EXPECT_EQ(heads("blk.0.attn_q.weight"), moves ? 4 : 0) << name;
    EXPECT_EQ(heads("blk.0.attn_k.weight"), moves ? 2 : 0) << name;
    EXPECT_EQ(heads("blk.0.attn_v.weight"), 0) << name;
  }
}

// A slice of what the fuzz target does: any bytes give a model or an error that names the file.
TEST(GgufModels, MutantsGiveAModelOrAnError) {
  const TemporaryFolder folder;
  std::mt19937 random(1);
  int good = 0;
  for (const char* name : {"gguf_qwen3/model.gguf", "tokenizers/sentencepiece.gguf"}) {
    const std::string original = readFile(kFolder + name);
    // The header is where the rules are.
    const size_t header = std::min<size_t>(original.size(), 4000);
    for (int i = 0; i < 150; ++i) {
      std::string bytes = original;
      for (uint32_t n = 1 + random() % 3; n > 0; --n) bytes[random() % header] = char(random());
      if (i % 10 == 0) bytes.resize(random() % bytes.size());
      const std::string path = folder.write("mutant.gguf", bytes);
      try {
        const Checkpoint checkpoint = Checkpoint::open(path);
        for (const std::string& tensor : checkpoint.names())
          if (checkpoint.entry(tensor)->dtype) checkpoint.find(tensor);
        ggufModelFiles(path);
        ++good;
      } catch (const Error& e) {
        EXPECT_NE(std::string_view(e.what()).find(path), std::string_view::npos) << e.what();
      }
    }
  }
  EXPECT_GT(good, 0);
}

}  // namespace
}  // namespace lathe
