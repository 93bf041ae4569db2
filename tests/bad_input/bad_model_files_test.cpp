// SPDX-License-Identifier: Apache-2.0
// Artifacts and model folders that are damaged, from elsewhere, or unlike what they say.
#include <filesystem>

#include <lathe/lathe.h>

#include "lathe/inspect/compiler_api.h"
#include "lathe/runtime/checkpoint.h"
#include "runtime/container.h"
#include "tests/bad_input/bad_input.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::TemporaryFolder;

Program softmaxProgram() {
  Graph g;
  g.output("y", nn::softmax(g.input("x", DType::F32, {g.dim("rows", 1, 8), 16})));
  return compile(g);
}

// A saved program whose bytes, or whose content before saving, are spoiled.
using Spoil = std::function<void(std::string&)>;
BadInput bytes(std::string name, std::vector<std::string> words, Spoil spoil) {
  return {std::move(name), ErrorCode::InvalidFile, std::move(words), [spoil = std::move(spoil)] {
            TemporaryFolder folder;
            softmaxProgram().save(folder / "good.lathe");
            std::string text = test::readFile(folder / "good.lathe");
            spoil(text);
            Program::open(folder.write("bad.lathe", text));
          }};
}
using Change = std::function<void(Program&)>;
BadInput content(std::string name, ErrorCode code, std::vector<std::string> words, Change change) {
  return {std::move(name), code, std::move(words), [change = std::move(change)] {
            TemporaryFolder folder;
            Program program = softmaxProgram();
            change(program);
            program.save(folder / "bad.lathe");
            Session(Program::open(folder / "bad.lathe"));
          }};
}
BadInput header(std::string name, std::vector<std::string> words, std::string json) {
  return {std::move(name), ErrorCode::InvalidFile, std::move(words), [json = std::move(json)] {
            TemporaryFolder folder;
            ContainerWriter writer;
            writer.setHeader(json);
            writer.save(folder / "bad.lathe");
            Program::open(folder / "bad.lathe");
          }};
}

std::vector<BadInput> artifacts() {
  return {
      bytes("flipped_byte_of_the_header", {"bad.lathe", "damaged"},
            [](std::string& b) { b[b.find("rows")] ^= 1; }),
      bytes("flipped_byte_of_the_code", {"bad.lathe", "blob.code.", "is damaged"},
            [](std::string& b) {
              b[b.find("\x7f"
                       "ELF") +
                64] ^= 1;
            }),
      bytes("truncated", {"bad.lathe"}, [](std::string& b) { b.resize(b.size() / 2); }),
      bytes("bytes_after_the_end", {"bad.lathe"}, [](std::string& b) { b += "more"; }),
      bytes("empty_file", {"bad.lathe"}, [](std::string& b) { b.clear(); }),
      bytes("prose", {"bad.lathe"},
            [](std::string& b) { b = "once upon a time there was a file"; }),
      header("program_version",
             {"program version 99, this build reads 5 to 6; compile the model again"},
             "{\"program_version\": 99}"),
      header("older_program_version", {"program version 4, this build reads 5 to 6"},
             "{\"program_version\": 4}"),
      header("newer_program_version", {"program version 7, this build reads 5 to 6"},
             "{\"program_version\": 7}"),
      header("header_without_its_fields", {"bad.lathe", "backend"}, "{\"program_version\": 5}"),
      header("header_of_another_type", {"bad.lathe"}, "[1, 2]"),
      content("backend_of_another_process", ErrorCode::Unsupported,
              {"the program is for backend 'tpu', this process has"},
              [](Program& p) { p.backend = "tpu"; }),
      content("code_for_other_machines", ErrorCode::Unsupported,
              {"the program holds code for", "compile it for all tiers"},
              [](Program& p) {
                std::erase_if(p.blobs, [](auto& b) { return b.first.starts_with("code."); });
                p.blobs["code.sve"] = "machine code";
              }),
      content("code_that_does_not_load", ErrorCode::InvalidFile,
              {"the generated code does not load"},
              [](Program& p) {
                for (auto& [name, blob] : p.blobs)
                  if (name.starts_with("code.")) blob = "no shared object";
              }),
      content("unknown_kernel", ErrorCode::InvalidFile, {"no kernel 'teleport'"},
              [](Program& p) { p.entries[0].calls[0].kind = "teleport"; }),
      content("unknown_function", ErrorCode::InvalidFile, {"no code for nowhere"},
              [](Program& p) { p.entries[0].calls[0].callee = "nowhere"; }),
      content("slot_past_the_table", ErrorCode::InvalidFile, {"expected", "1000"},
              [](Program& p) { p.entries[0].calls[0].operands[0] = 1000; }),
      content("slots_that_alias_in_a_circle", ErrorCode::InvalidFile, {"slot 0 has no owner"},
              [](Program& p) {
                p.entries[0].slots[0].alias = 1;
                p.entries[0].slots[1].alias = 0;
              }),
      content("argument_past_the_inputs", ErrorCode::InvalidFile, {"refers to item 7 of 1"},
              [](Program& p) {
                for (Slot& s : p.entries[0].slots)
                  if (s.kind == SlotKind::Argument) s.index = 7;
              }),
      {"missing_artifact",
       ErrorCode::Io,
       {"nowhere.lathe"},
       [] { Program::open("/nonexistent/nowhere.lathe"); }},
  };
}

// The folder of a small model, changed.
const std::string kModel = LATHE_TEST_DATA "/golden/llama_tiny_linear";
using Edit = std::function<void(const TemporaryFolder&)>;
BadInput folder(std::string name, ErrorCode code, std::vector<std::string> words, Edit edit) {
  return {std::move(name), code, std::move(words), [edit = std::move(edit)] {
            TemporaryFolder copy;
            for (const char* file : {"config.json", "model.safetensors"})
              copy.write(file, test::readFile(kModel + "/" + file));
            edit(copy);
            Session session(latheCompilerApi()->compile({.path = copy.path()}));
            Checkpoint checkpoint = Checkpoint::open(copy.path());
            session.bindWeights([&](const std::string& weight) {
              return checkpoint.find(weight).value_or(Array());
            });
          }};
}
// config.json with one piece of its text replaced.
Edit config(std::string from, std::string to) {
  return [=](const TemporaryFolder& copy) {
    std::string text = test::readFile(copy / "config.json");
    ASSERT_NE(text.find(from), std::string::npos) << from;
    copy.write("config.json", text.replace(text.find(from), from.size(), to));
  };
}
Edit without(std::string file) {
  return [=](const TemporaryFolder& copy) { std::filesystem::remove(copy / file); };
}

std::vector<BadInput> folders() {
  return {
      folder("without_a_config", ErrorCode::Io, {"config.json"}, without("config.json")),
      folder("without_weights", ErrorCode::Io, {"model.safetensors", "found neither"},
             without("model.safetensors")),
      folder("config_cut_short", ErrorCode::InvalidFile, {"config.json"},
             [](const TemporaryFolder& f) { f.write("config.json", "{\"hidden_size\": 6"); }),
      folder("another_architecture", ErrorCode::Unsupported,
             {"LlamaForCausalLM", "NovelForCausalLM"},
             config("LlamaForCausalLM", "NovelForCausalLM")),
      folder("an_architecture_of_another_type", ErrorCode::Unsupported,
             {"model_type: expected \"mixtral\" for MixtralForCausalLM, got \"llama\""},
             config("LlamaForCausalLM", "MixtralForCausalLM")),
      folder("heads_that_do_not_divide", ErrorCode::InvalidFile,
             {"3 key/value heads do not divide 4"},
             config("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3")),
      folder("another_activation", ErrorCode::Unsupported, {"hidden_act", "mish"},
             config("\"hidden_act\": \"silu\"", "\"hidden_act\": \"mish\"")),
      folder("another_rope", ErrorCode::Unsupported, {"rope type", "novel"},
             config("\"rope_type\": \"linear\"", "\"rope_type\": \"novel\"")),
      folder("another_hidden_size", ErrorCode::InvalidArgument,
             {"weights do not fit the program", "wrong shape: model.embed_tokens.weight",
              "is f32[97, 64], expected f32[97, 32]"},
             config("\"hidden_size\": 64", "\"hidden_size\": 32")),
      folder("more_layers_than_the_file", ErrorCode::InvalidArgument,
             {"missing: model.layers.2.self_attn.q_proj.weight"},
             config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3")),
      folder("weights_cut_short", ErrorCode::InvalidFile, {"model.safetensors"},
             [](const TemporaryFolder& f) {
               std::string all = test::readFile(f / "model.safetensors");
               f.write("model.safetensors", std::string_view(all).substr(0, all.size() - 100));
             }),
      {"missing_folder",
       ErrorCode::Io,
       {"/nonexistent"},
       [] { latheCompilerApi()->compile({.path = "/nonexistent/model"}); }},
      {"missing_ir_file",
       ErrorCode::Io,
       {"/nonexistent/model.mlir: cannot open"},
       [] { latheCompilerApi()->compile({.path = "/nonexistent/model.mlir"}); }},
      {"ir_file_without_a_graph",
       ErrorCode::InvalidArgument,
       {"empty.mlir: the graph is empty"},
       [] {
         TemporaryFolder folder;
         latheCompilerApi()->compile({.path = folder.write("empty.mlir", "")});
       }},
      {"sequence_past_the_model",
       ErrorCode::InvalidArgument,
       {"expected maxSeq from 1 to the model's 128 positions, got 129"},
       [] { latheCompilerApi()->compile({.path = kModel, .family = {.maxSeq = 129}}); }},
  };
}

INSTANTIATE_TEST_SUITE_P(Artifacts, BadInputs, ::testing::ValuesIn(artifacts()), nameOfRow);
INSTANTIATE_TEST_SUITE_P(Folders, BadInputs, ::testing::ValuesIn(folders()), nameOfRow);

}  // namespace
}  // namespace lathe
