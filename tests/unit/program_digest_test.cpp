// SPDX-License-Identifier: Apache-2.0
// Programs as files, field by field: what comes back, what a digest covers, pieces of weights, and
// stages that do not belong together.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "lathe/runtime/program.h"
#include "runtime/container.h"
#include "runtime/mapped_file.h"
#include "runtime/sha256.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::messageOf;
using test::TemporaryFolder;
using Change = std::function<void(Program&)>;

// All fields differ from their defaults.
Program whole() {
  const DimExpr rows = DimExpr::symbol("rows");
  Program p;
  p.backend = "none";
  p.ranks = 2;
  p.symbols = {{"rows", 4, 16, 4}};
  p.weights = {{"w", DType::BF16, {DimExpr(4), DimExpr(6)}},
               {"part", DType::F32, {DimExpr(6)}, WeightPiece{"all", 0, 2, 3, 1, 5}}};
  p.derived = {{"packed", DType::F32, {DimExpr(16)}}};
  p.states = {{"cache", DType::F16, {rows, DimExpr(4)}}};
  p.constants = {Array::fromInts(std::vector<int64_t>{7, 8, 9}, {3})};
  p.blobs = {{"code.avx2", "\x7f code"}};
  p.files = {{"config.json", "{}"}};
  p.metadata = {{"note", "a test"}};
  EntryPoint e;
  e.name = "forward";
  e.slots = {{SlotKind::Argument, DType::F32, {rows, DimExpr(4)}, 0, -1},
             {SlotKind::Result, DType::F32, {rows * 4}, 0, -1},
             {SlotKind::Arena, DType::F32, {rows, DimExpr(4)}, 0, 1},
             {SlotKind::State, DType::F16, {rows, DimExpr(4)}, 0, -1}};
  e.inputs = {{"x", 0}};
  e.outputs = {{"y", 2}};
  e.statesIn = e.statesOut = {{"cache", 3}};
  e.calls = {{"region", "f0", "{\"a\": 1}", {0, 3}, {2}, "model.py:7"}};
  p.entries.push_back(e);
  EntryPoint load;
  load.name = "load";
  load.slots = {{SlotKind::Weight, DType::F32, {DimExpr(6)}, 1, -1},
                {SlotKind::Result, DType::F32, {DimExpr(16)}, 0, -1}};
  load.outputs = {{"packed", 1}};
  load.calls = {{"pack", "", "{}", {0}, {1}, ""}};
  p.load = std::make_unique<EntryPoint>(load);
  return p;
}

TEST(ProgramFields, ComeBackAsTheyWere) {
  TemporaryFolder folder;
  whole().save(folder / "p.lathe");
  const auto p = Program::open(folder / "p.lathe");
  EXPECT_EQ(p->backend, "none");
  EXPECT_EQ(p->ranks, 2);
  ASSERT_EQ(p->symbols.size(), 1u);
  EXPECT_EQ(p->symbols[0].name, "rows");
  EXPECT_EQ(p->symbols[0].lo, 4);
  EXPECT_EQ(p->symbols[0].hi, 16);
  EXPECT_EQ(p->symbols[0].multiple, 4);
  ASSERT_EQ(p->weights.size(), 2u);
  EXPECT_EQ(p->weights[0].name, "w");
  EXPECT_EQ(p->weights[0].dtype, DType::BF16);
  EXPECT_FALSE(p->weights[0].piece);
  ASSERT_TRUE(p->weights[1].piece);
  const WeightPiece& piece = *p->weights[1].piece;
  EXPECT_EQ(piece.weight, "all");
  EXPECT_EQ(piece.axis, 0);
  EXPECT_EQ(piece.parts, 2);
  EXPECT_EQ(piece.groups, 3);
  EXPECT_EQ(piece.begin, 1);
  EXPECT_EQ(piece.extent, 5);
  EXPECT_EQ(p->constants[0].dtype(), DType::I64);
  EXPECT_EQ(p->constants[0].at(2), 9);
  EXPECT_EQ(p->blobs, whole().blobs);
  EXPECT_EQ(p->files, whole().files);
  EXPECT_EQ(p->metadata, whole().metadata);
  const EntryPoint& e = p->entry("forward");
  EXPECT_EQ(e.slots[1].shape[0].text(), "4*rows");
  EXPECT_EQ(e.slots[2].kind, SlotKind::Arena);
  EXPECT_EQ(e.slots[2].alias, 1);
  EXPECT_EQ(e.slots[3].dtype, DType::F16);
  EXPECT_EQ(e.outputs[0].slot, 2);
  EXPECT_EQ(e.statesOut[0].name, "cache");
  EXPECT_EQ(e.calls[0].kind, "region");
  EXPECT_EQ(e.calls[0].callee, "f0");
  EXPECT_EQ(e.calls[0].config, "{\"a\": 1}");
  EXPECT_EQ(e.calls[0].operands, (std::vector<int>{0, 3}));
  EXPECT_EQ(e.calls[0].results, std::vector<int>{2});
  EXPECT_EQ(e.calls[0].origin, "model.py:7");
  ASSERT_TRUE(p->load);
  EXPECT_EQ(p->load->calls[0].kind, "pack");
  EXPECT_EQ(p->digest(), whole().digest());
  EXPECT_EQ(messageOf([&] { p->entry("decode"); }),
            "no entry point 'decode'; the program has forward");
  EXPECT_EQ(messageOf([&] { Program().entry("x"); }), "no entry point 'x'; the program has none");
}

// Two programs of one digest compute the same: everything but notes and files is in it.
TEST(ProgramDigests, CoverWhatIsComputed) {
  const std::string of = whole().digest();
  EXPECT_EQ(of.size(), 64u);
  const std::pair<const char*, Change> same[] = {
      {"metadata", [](Program& p) { p.metadata["more"] = "x"; }},
      {"files", [](Program& p) { p.files["more"] = "x"; }}};
  for (const auto& [name, change] : same) {
    Program p = whole();
    change(p);
    EXPECT_EQ(p.digest(), of) << name;
  }
  const std::pair<const char*, Change> other[] = {
      {"backend", [](Program& p) { p.backend = "nine"; }},
      {"ranks", [](Program& p) { p.ranks = 3; }},
      {"symbol", [](Program& p) { p.symbols[0].name = "cols"; }},
      {"lo", [](Program& p) { p.symbols[0].lo = 8; }},
      {"hi", [](Program& p) { p.symbols[0].hi = 12; }},
      {"multiple", [](Program& p) { p.symbols[0].multiple = 2; }},
      {"weight", [](Program& p) { p.weights[0].name = "v"; }},
      {"dtype of a weight", [](Program& p) { p.weights[0].dtype = DType::F16; }},
      {"shape of a weight", [](Program& p) { p.weights[0].shape[1] = DimExpr(7); }},
      {"no piece", [](Program& p) { p.weights[1].piece.reset(); }},
      {"weight of a piece", [](Program& p) { p.weights[1].piece->weight = "none"; }},
      {"axis of a piece", [](Program& p) { p.weights[1].piece->axis = 1; }},
      {"parts of a piece", [](Program& p) { p.weights[1].piece->parts = 1; }},
      {"groups of a piece", [](Program& p) { p.weights[1].piece->groups = 6; }},
      {"begin of a piece", [](Program& p) { p.weights[1].piece->begin = 0; }},
      {"extent of a piece", [](Program& p) { p.weights[1].piece->extent = 6; }},
      {"derived", [](Program& p) { p.derived[0].name = "other"; }},
      {"state", [](Program& p) { p.states[0].name = "other"; }},
      {"value of a constant", [](Program& p) { p.constants[0].set(2, 10); }},
      {"shape of a constant",
       [](Program& p) { p.constants[0] = Array::fromInts(std::vector<int64_t>{7, 8, 9}, {3, 1}); }},
      {"name of a blob", [](Program& p) { p.blobs = {{"code.avx3", "\x7f code"}}; }},
      {"blob", [](Program& p) { p.blobs["code.avx2"] = "\x7f core"; }},
      {"another blob", [](Program& p) { p.blobs["more"] = ""; }},
      {"entry point", [](Program& p) { p.entries[0].name = "decode"; }},
      {"kind of a slot", [](Program& p) { p.entries[0].slots[2].kind = SlotKind::Result; }},
      {"dtype of a slot", [](Program& p) { p.entries[0].slots[2].dtype = DType::I32; }},
      {"shape of a slot", [](Program& p) { p.entries[0].slots[2].shape[0] = DimExpr(4); }},
      {"index of a slot", [](Program& p) { p.entries[0].slots[2].index = 1; }},
      {"alias of a slot", [](Program& p) { p.entries[0].slots[2].alias = 0; }},
      {"input", [](Program& p) { p.entries[0].inputs[0].name = "z"; }},
      {"output", [](Program& p) { p.entries[0].outputs[0].slot = 1; }},
      {"state in", [](Program& p) { p.entries[0].statesIn.clear(); }},
      {"state out", [](Program& p) { p.entries[0].statesOut.clear(); }},
      {"kind of a call", [](Program& p) { p.entries[0].calls[0].kind = "linear"; }},
      {"callee", [](Program& p) { p.entries[0].calls[0].callee = "f1"; }},
      {"config", [](Program& p) { p.entries[0].calls[0].config = "{}"; }},
      {"operands",
       [](Program& p) {
         std::swap(p.entries[0].calls[0].operands[0], p.entries[0].calls[0].operands[1]);
       }},
      {"results", [](Program& p) { p.entries[0].calls[0].results[0] = 1; }},
      {"no load", [](Program& p) { p.load.reset(); }},
      {"call of load", [](Program& p) { p.load->calls[0].kind = "other"; }},
      {"a later stage",
       [](Program& p) { p.laterStages.push_back(std::make_shared<Program>(whole())); }},
  };
  std::map<std::string, const char*> digests{{of, "as it is"}};
  for (const auto& [name, change] : other) {
    Program p = whole();
    change(p);
    const auto [known, isNew] = digests.emplace(p.digest(), name);
    EXPECT_TRUE(isNew) << name << " has the digest of " << known->second;
  }
}

// The last that each rule of pieces allows, and the first that it does not.
TEST(ProgramPieces, LieInTheirWeights) {
  TemporaryFolder folder;
  auto saved = [&](const WeightPiece& piece) {
    Program p = whole();
    p.weights[1].piece = piece;
    p.save(folder / "p.lathe");
    return messageOf([&] { Program::open(folder / "p.lathe"); });
  };
  const std::string at = folder / "p.lathe" + ": weights[1].piece";
  const std::string outside = at + ": expected a piece inside of its weight, got an object";
  // Six elements: of two parts in groups of two, each cut from five of which the first is left out.
  EXPECT_EQ(saved({"all", 0, 2, 3, 1, 5}), "");
  EXPECT_EQ(saved({"all", 0, 2, 3, 2, 5}), outside);
  EXPECT_EQ(saved({"all", 0, 3, 3, 1, 5}), outside);
  EXPECT_EQ(saved({"all", 0, 2, 3, 1, 4}), outside);
  EXPECT_EQ(saved({"all", 0, 2, 4, 0, 0}), outside) << "six are no multiple of four";
  EXPECT_EQ(saved({"all", 0, 2, 6, 0, 0}), "");
  EXPECT_EQ(saved({"all", 0, 2, 3, 1, 0}), outside) << "from the first of all";
  EXPECT_EQ(saved({"all", 1, 2, 3, 1, 5}), at + ".axis: expected an integer from 0 to 0, got 1");
  EXPECT_EQ(saved({"all", 0, 0, 3, 1, 5}),
            at + ".parts: expected an integer from 1 to 1048576, got 0");
  EXPECT_EQ(saved({"all", 0, 2, 0, 1, 5}),
            at + ".groups: expected an integer from 1 to 1099511627776, got 0");
}

// Rules of slots and tables, in whole sentences.
TEST(ProgramTables, AreRefusedInWholeSentences) {
  TemporaryFolder folder;
  auto saved = [&](const Change& change) {
    Program p = whole();
    change(p);
    p.save(folder / "p.lathe");
    const std::string said = messageOf([&] { Program::open(folder / "p.lathe"); });
    return said.substr(std::min(said.size(), (folder / "p.lathe: ").size()));
  };
  EXPECT_EQ(saved([](Program& p) { p.derived.push_back(p.derived[0]); }),
            "derived[1].name: a second \"packed\"");
  EXPECT_EQ(saved([](Program& p) { p.entries[0].slots[3].dtype = DType::F32; }),
            "entries[0].slots[3]: f32[rows, 4] for item 0, which is f16[rows, 4]");
  EXPECT_EQ(saved([](Program& p) { p.load->slots[0].shape[0] = DimExpr(7); }),
            "load.slots[0]: f32[7] for item 1, which is f32[6]");
  EXPECT_EQ(saved([](Program& p) { p.load->slots[0].index = 2; }),
            "load.slots[0].index: refers to item 2 of 2");
  EXPECT_EQ(saved([](Program& p) { p.entries[0].slots[2].kind = SlotKind::Argument; }),
            "entries[0].slots[2].alias: expected a buffer of the arena where memory is shared");
  EXPECT_EQ(saved([](Program& p) { p.entries[0].slots[2].alias = 4; }),
            "entries[0]: slot 2 has no owner");
  EXPECT_EQ(saved([](Program& p) { p.entries[0].slots[2].alias = 3; }),
            "entries[0].slots[1].index: item 0 is in another slot");
  // As many steps to the owner as there are slots.
  EXPECT_EQ(saved([](Program& p) {
              auto& slots = p.entries[0].slots;
              slots.push_back({SlotKind::Arena, DType::F32, slots[0].shape, 0, 2});
              slots.push_back({SlotKind::Arena, DType::F32, slots[0].shape, 0, 4});
            }),
            "");
  // What no program writes.
  auto withHeader = [&](const std::string& from, const std::string& to) {
    whole().save(folder / "p.lathe");
    const Container read = Container::open(folder / "p.lathe");
    std::string header(read.header());
    header.replace(header.find(from), from.size(), to);
    ContainerWriter writer;
    writer.setHeader(header);
    for (const std::string& name : read.sections()) writer.addSection(name, read.section(name));
    writer.save(folder / "q.lathe");
    const std::string said = messageOf([&] { Program::open(folder / "q.lathe"); });
    return said.substr(std::min(said.size(), (folder / "q.lathe: ").size()));
  };
  EXPECT_EQ(withHeader("\"bf16\"", "\"f17\""), "weights[0].dtype: expected a dtype, got \"f17\"");
  EXPECT_EQ(withHeader("\"4*rows\"", "\"4*\""),
            "entries[0].slots[1].shape[0]: expected a size expression, got \"4*\"");
  EXPECT_EQ(withHeader("\"ranks\":2", "\"ranks\":0"),
            "ranks: expected an integer from 1 to 1048576, got 0");
  EXPECT_EQ(withHeader("\"shape\":[3]", "\"shape\":[4]"),
            "constants[0]: its section holds 24 bytes");
}

TEST(ProgramStages, BelongTogether) {
  TemporaryFolder folder;
  auto saved = [&](const Change& change) {
    Program first = whole(), later = whole();
    change(later);
    first.laterStages.push_back(std::make_shared<Program>(std::move(later)));
    first.save(folder / "p.lathe");
    return messageOf([&] {
      const auto p = Program::open(folder / "p.lathe");
      EXPECT_EQ(p->stages(), 2);
      EXPECT_EQ(p->allRanks(), 4);
      EXPECT_EQ(p->laterStages[0]->blobs.at("code.avx2"), "\x7f more");
      EXPECT_EQ(p->blobs.at("code.avx2"), "\x7f code");
      EXPECT_EQ(p->laterStages[0]->constants[0].at(0), 1);
      EXPECT_EQ(p->constants[0].at(0), 7);
    });
  };
  EXPECT_EQ(saved([](Program& p) {
              p.blobs["code.avx2"] = "\x7f more";
              p.constants[0].set(0, 1);
              p.entries[0].inputs[0].name = "z";
            }),
            "");
  const std::string refused =
      folder / "p.lathe" +
      ": later_stages[0]: expected a stage with the entry points and ranks of the first one";
  const std::pair<const char*, Change> changes[] = {
      {"backend", [](Program& p) { p.backend = "nine"; }},
      {"ranks", [](Program& p) { p.ranks = 1; }},
      {"name", [](Program& p) { p.entries[0].name = "decode"; }},
      {"one more",
       [](Program& p) {
         p.entries.push_back(p.entries[0]);
         p.entries[1].name = "more";
       }},
      {"none", [](Program& p) { p.entries.clear(); }},
      {"inputs",
       [](Program& p) {
         EntryPoint& e = p.entries[0];
         e.slots.push_back({SlotKind::Argument, DType::F32, {DimExpr(1)}, 1, -1});
         e.inputs.push_back({"more", int(e.slots.size()) - 1});
       }},
      {"stages of its own",
       [](Program& p) { p.laterStages.push_back(std::make_shared<Program>(whole())); }}};
  for (const auto& [name, change] : changes) EXPECT_EQ(saved(change), refused) << name;
}

//===--- the container ----------------------------------------------------------------------===//

TEST(ContainerBytes, LieWhereTheyAreSaidTo) {
  TemporaryFolder folder;
  ContainerWriter writer;
  writer.setHeader("{}");
  writer.addSection("a", std::string(65, 'a'));
  writer.addSection("none", "");
  writer.addSection("whole", std::string(128, 'w'));
  writer.save(folder / "c");
  const SafetensorsFile file = SafetensorsFile::open(folder / "c");
  const std::tuple<const char*, size_t, size_t> expected[] = {
      {".header", 0, 32}, {".pad1", 32, 32}, {"a", 64, 65},
      {".pad3", 129, 63}, {"none", 192, 0},  {"whole", 192, 128}};
  ASSERT_EQ(file.tensors().size(), std::size(expected));
  for (const auto& [name, begin, bytes] : expected) {
    const SafetensorsEntry* e = file.find(name);
    ASSERT_NE(e, nullptr) << name;
    EXPECT_EQ(e->offset, file.headerBytes() + begin) << name;
    EXPECT_EQ(e->bytes, bytes) << name;
    EXPECT_EQ(e->dtypeName, "U8");
  }
  EXPECT_EQ(file.headerBytes() % 64, 0u);
  EXPECT_EQ(file.metadata().at("format"), "lathe-container");
  EXPECT_EQ(file.metadata().at("version"), "1");
  EXPECT_EQ(file.metadata().at("sha256:whole"), sha256Hex(asBytes(std::string(128, 'w'))));
  EXPECT_EQ(file.metadata().size(), 6u);
}

// Files by hand whose hash of the header is right.
TEST(ContainerBytes, OfOtherFormsAreRefused) {
  TemporaryFolder folder;
  const std::map<std::string, std::string> good{
      {"format", "lathe-container"},
      {"version", "1"},
      {"header", "{}"},
      {"sha256:s", sha256Hex(asBytes(std::string(64, 's')))}};
  auto without = [&](const char* key) {
    auto some = good;
    some.erase(key);
    return some;
  };
  auto with = [&](const char* key, const char* value) {
    auto some = good;
    some[key] = value;
    return some;
  };
  const SafetensorsEntry hash{".header", "U8", DType::U8, {32}, 0, 32},
      pad{".pad1", "U8", DType::U8, {32}, 0, 32}, section{"s", "U8", DType::U8, {64}, 0, 64};
  auto open = [&](const std::vector<SafetensorsEntry>& entries,
                  const std::map<std::string, std::string>& metadata, char padding = '\0') {
    const std::string start = makeSafetensorsHeader(entries, metadata);
    const auto sum = sha256(asBytes(start));
    std::string bytes = start;
    for (const SafetensorsEntry& e : entries)
      bytes += e.name == ".header" ? std::string(reinterpret_cast<const char*>(sum.data()), e.bytes)
                                   : std::string(e.bytes, e.name == "s" ? 's' : padding);
    const std::string path = folder.write("c", bytes);
    const std::string said = messageOf([&] { Container::open(path); });
    return said.substr(std::min(said.size(), path.size() + 2));
  };
  EXPECT_EQ(open({hash, pad, section}, good), "");
  EXPECT_EQ(open({hash, pad, section}, without("header")),
            "not a Lathe container: its metadata has no \"header\"");
  EXPECT_EQ(open({hash, pad, section}, without("format")),
            "not a Lathe container: its metadata has no \"format\"");
  EXPECT_EQ(open({hash, pad, section}, without("version")),
            "not a Lathe container: its metadata has no \"version\"");
  EXPECT_EQ(open({hash, pad, section}, without("sha256:s")),
            "not a Lathe container: its metadata has no \"sha256:s\"");
  EXPECT_EQ(open({hash, pad, section}, with("format", "pt")),
            "not a Lathe container: expected format lathe-container, got \"pt\"");
  EXPECT_EQ(open({hash, pad, section}, with("version", "2")),
            "container version \"2\", expected 1; compile the model again with this version");
  EXPECT_EQ(open({hash, pad, section}, with("sha256:s", "00")),
            "section \"s\" is damaged: its hash is not the stored one");
  EXPECT_EQ(open({hash, pad, section}, good, 'x'),
            "the padding \".pad1\" is damaged: it is not zero");
  EXPECT_EQ(open({pad, section}, good), "the hash of the header is missing");
  const SafetensorsEntry half{".header", "U8", DType::U8, {16}, 0, 16};
  EXPECT_EQ(open({half, pad, section}, good), "the hash of the header is missing");
  EXPECT_EQ(open({hash, section, pad}, good), "section \"s\" is not aligned bytes");
  const SafetensorsEntry wide{"s", "I8", DType::I8, {64}, 0, 64};
  EXPECT_EQ(open({hash, pad, wide}, good), "section \"s\" is not aligned bytes");
}

}  // namespace
}  // namespace lathe
