// SPDX-License-Identifier: Apache-2.0
// Tensors of checkpoints that a program does not read: those that published ones carry stay away,
// another one is a mistake.
#include <gtest/gtest.h>

#include "lathe/runtime/safetensors.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/test_files.h"
#include "tools/lathe/open_session.h"

namespace lathe::cli {
namespace {

using test::expectError;
using test::TemporaryFolder;

Array filled(Shape shape, double value) {
  Array a(DType::F32, std::move(shape));
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, value);
  return a;
}

// Of a table of embeddings [4, 2] under one of its names, and a gain.
Program programWith(const std::string& table) {
  Program p;
  p.weights = {{table, DType::F32, {4, 2}}, {"gain", DType::F32, {3}}};
  return p;
}
void check(const std::string& table, const std::map<std::string, Array>& more) {
  TemporaryFolder folder;
  std::map<std::string, Array> tensors = more;
  tensors[table] = filled({4, 2}, 0.5);
  tensors["gain"] = filled({3}, 1);
  saveSafetensors(folder / "model.safetensors", {tensors.begin(), tensors.end()});
  checkProgramWeights(programWith(table), folder.path(), {});
}

TEST(LeftOverWeights, WhatPublishedCheckpointsCarry) {
  for (const char* name : {"model.layers.0.self_attn.rotary_emb.inv_freq",
                           "h.0.attn.bias",
                           "h.0.attn.masked_bias",
                           "layers.0.attention.bias",
                           "layers.0.attention.masked_bias",
                           "embeddings.position_ids",
                           "bert.pooler.dense.weight",
                           "bert.pooler.dense.bias",
                           "roberta.pooler.dense.weight",
                           "roberta.pooler.dense.bias",
                           "cls.seq_relationship.weight",
                           "cls.seq_relationship.bias",
                           "cls.predictions.bias",
                           "cls.predictions.transform.dense.weight",
                           "cls.predictions.transform.dense.bias",
                           "cls.predictions.transform.LayerNorm.weight",
                           "cls.predictions.transform.LayerNorm.bias",
                           "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
                           "model.encoder.embed_positions.weight",
                           "model.decoder.embed_positions.weight"})
    EXPECT_NO_THROW(check("model.embed_tokens.weight", {{name, filled({7}, 0)}})) << name;
  for (const char* name : {"head.weight", "pooler.dense.weight", "attn.bias.more", "inv_freq"})
    expectError(ErrorCode::InvalidFile, name,
                [&] { check("model.embed_tokens.weight", {{name, filled({7}, 0)}}); });
}

TEST(LeftOverWeights, SecondNamesOfTheTableHaveItsValues) {
  for (const char* table :
       {"model.embed_tokens.weight", "transformer.wte.weight", "gpt_neox.embed_in.weight",
        "shared.weight", "embeddings.word_embeddings.weight"})
    EXPECT_NO_THROW(check(table, {{"lm_head.weight", filled({4, 2}, 0.5)}})) << table;
  const std::string table = "shared.weight";
  for (const char* name : {"lm_head.weight", "embed_out.weight", "encoder.embed_tokens.weight",
                           "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight",
                           "decoder.embed_tokens.weight", "cls.predictions.decoder.weight",
                           "lm_head.decoder.weight", "proj_out.weight", "vocab_projector.weight"}) {
    EXPECT_NO_THROW(check(table, {{name, filled({4, 2}, 0.5)}})) << name;
    expectError(ErrorCode::InvalidFile,
                std::string(name) +
                    " has other values than shared.weight, which the model uses in "
                    "its place; set tie_word_embeddings to false in config.json if "
                    "the head is one of its own, or leave the tensor out",
                [&] { check(table, {{name, filled({4, 2}, 0.25)}}); });
    expectError(ErrorCode::InvalidFile, std::string(name) + ": expected f32[4, 2], got f32[2, 4]",
                [&] { check(table, {{name, filled({2, 4}, 0.5)}}); });
  }
  for (const char* name : {"cls.predictions.decoder.bias", "lm_head.decoder.bias"}) {
    EXPECT_NO_THROW(check(table, {{name, filled({4}, 9)}})) << name;
    expectError(ErrorCode::InvalidFile, std::string(name) + ": expected f32[4], got f32[5]",
                [&] { check(table, {{name, filled({5}, 9)}}); });
  }
  // Of another dtype the numbers count.
  EXPECT_NO_THROW(check(table, {{"lm_head.weight", filled({4, 2}, 0.5).to(DType::BF16)}}));
  expectError(ErrorCode::InvalidFile, "lm_head.weight has other values",
              [&] { check(table, {{"lm_head.weight", filled({4, 2}, 0.25).to(DType::BF16)}}); });
}

// A head that is read in the parts of its few bits is no second name of the table.
TEST(LeftOverWeights, AHeadInFewBitsIsRead) {
  std::string file = test::GgufWriter()
                         .begin(2, 1)
                         .key("general.architecture", GgufType::String)
                         .text("llama")
                         .tensor("token_embd.weight", {32, 4}, 0, 0)
                         .tensor("output.weight", {32, 4}, 8, 512)
                         .data(512 + 4 * 34)
                         .bytes();
  // Of the last block a scale of 1 and a last element of 1; the table is all zeros.
  file[file.size() - 33] = '\x3c';
  file.back() = 1;
  const TemporaryFolder folder;
  const std::string path = folder.write("m.gguf", file);
  Program p;
  p.weights = {{"model.embed_tokens.weight", DType::F32, {4, 32}},
               {"lm_head.weight.q", DType::I8, {4, 32}},
               {"lm_head.weight.scale", DType::F32, {4, 1}}};
  EXPECT_NO_THROW(checkProgramWeights(p, path, {}));
  p.weights.resize(1);
  expectError(ErrorCode::InvalidFile, "lm_head.weight has other values than model.embed_tokens",
              [&] { checkProgramWeights(p, path, {}); });
}

}  // namespace
}  // namespace lathe::cli
