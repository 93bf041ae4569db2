// SPDX-License-Identifier: Apache-2.0
// Programs as files: what is saved runs again with the same bits, and damage is an error.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "lathe/lathe.h"
#include "lathe/runtime/safetensors.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;

// Weights, a constant, a state and a symbol.
Graph model() {
  Graph g;
  const Dim rows = g.dim("rows", 1, 8);
  g.state("bias", DType::F32, {5});
  Tensor x = g.input("x", DType::F32, {rows, 4});
  Tensor w = g.weight("w", DType::F32, {5, 4});
  Tensor y = tanh(matmul(x, swapAxes(w, 0, 1)) * 0.5) + g.readState("bias");
  g.writeState("bias", reduceMean(y, {0}));
  g.output("y", y);
  return g;
}

std::vector<double> results(Session session) {
  session.bindRandomWeights(3);
  Array x(DType::F32, {3, 4});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, 0.1 * double(i) - 0.5);
  std::vector<double> all;
  for (int run = 0; run < 2; ++run) {
    const Array y = session.run("forward", {{"x", x}}).at("y");
    for (int64_t i = 0; i < y.size(); ++i) all.push_back(y.at(i));
  }
  return all;
}

class ProgramFiles : public ::testing::TestWithParam<const char*> {
 protected:
  std::string saved(const test::TemporaryFolder& folder) const {
    Program program = compile(model(), {.backend = GetParam()});
    program.files["config.json"] = "{}";
    program.metadata["note"] = "a test";
    program.save(folder / "model.lathe");
    return folder / "model.lathe";
  }
};

TEST_P(ProgramFiles, RunWithTheSameBits) {
  test::TemporaryFolder folder;
  auto opened = Program::open(saved(folder));
  EXPECT_EQ(results(Session(opened)), results(Session(compile(model(), {.backend = GetParam()}))));
}

TEST_P(ProgramFiles, KeepEverything) {
  test::TemporaryFolder folder;
  auto p = Program::open(saved(folder));
  EXPECT_EQ(p->backend, GetParam());
  EXPECT_EQ(p->files.at("config.json"), "{}");
  EXPECT_EQ(p->metadata.at("note"), "a test");
  ASSERT_EQ(p->symbols.size(), 1u);
  EXPECT_EQ(p->symbols[0].name, "rows");
  EXPECT_EQ(p->symbols[0].hi, 8);
  ASSERT_EQ(p->weights.size(), 1u);
  EXPECT_EQ(p->weights[0].name, "w");
  ASSERT_EQ(p->states.size(), 1u);
  EXPECT_EQ(p->entry("forward").inputs[0].name, "x");
  // A second generation is the same file.
  const std::string first = test::readFile(folder / "model.lathe");
  p->save(folder / "again.lathe");
  EXPECT_EQ(test::readFile(folder / "again.lathe"), first);
}

TEST_P(ProgramFiles, KeepOneOfAWeightThatTwoEntryPointsRead) {
  Graph g;
  for (const char* name : {"one", "two"}) {
    g.entry(name);
    Tensor y = g.input("x", DType::F32, {4}) * g.weight("shared", DType::F32, {4});
    g.output("y", y + g.weight(name, DType::F32, {4}));
  }
  test::TemporaryFolder folder;
  compile(g, {.backend = GetParam()}).save(folder / "two.lathe");
  Session s(Program::open(folder / "two.lathe"));
  std::map<std::string, int> asked;
  s.bindWeights([&](const std::string& name) {
    ++asked[name];
    Array w(DType::F32, {4});
    for (int64_t i = 0; i < 4; ++i) w.set(i, name == "shared" ? 2 : name == "one" ? 10 : 20);
    return w;
  });
  EXPECT_EQ(asked, (std::map<std::string, int>{{"one", 1}, {"shared", 1}, {"two", 1}}));
  Array x(DType::F32, {4});
  x.set(3, 3);
  EXPECT_EQ(s.run("one", {{"x", x}}).at("y").at(3), 16);
  EXPECT_EQ(s.run("two", {{"x", x}}).at("y").at(3), 26);
}

TEST_P(ProgramFiles, AnyDamagedByteIsFound) {
  test::TemporaryFolder folder;
  const std::string good = test::readFile(saved(folder));
  std::mt19937 random{1};
  std::vector<size_t> places{0, 7, 8, 9, good.size() - 1};
  for (int i = 0; i < 60; ++i) places.push_back(random() % good.size());
  for (size_t place : places) {
    std::string bad = good;
    bad[place] = char(bad[place] ^ (1 << random() % 8));
    const std::string path = folder.write("bad.lathe", bad);
    try {
      Program::open(path);
      ADD_FAILURE() << "byte " << place << " of " << good.size() << " may change";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidFile) << e.what();
      EXPECT_NE(std::string(e.what()).find("bad.lathe"), std::string::npos) << e.what();
    }
  }
}

TEST_P(ProgramFiles, CutFilesAreErrors) {
  test::TemporaryFolder folder;
  const std::string good = test::readFile(saved(folder));
  for (size_t size : {size_t(0), size_t(5), size_t(8), good.size() / 3, good.size() - 1}) {
    const std::string path = folder.write("cut.lathe", good.substr(0, size));
    expectError(ErrorCode::InvalidFile, "cut.lathe", [&] { Program::open(path); });
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ProgramFiles, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

// What the reference backend interprets is a text beside the calls, which may say something else.
TEST(ProgramFile, OfTheReferenceBackendFitsItsModule) {
  auto run = [](const std::function<void(Program&)>& change) {
    Graph g;
    g.output("y", g.weight("a", DType::F32, {4}) - g.weight("b", DType::F32, {4}));
    auto p = std::make_shared<Program>(compile(g, {.backend = "reference"}));
    change(*p);
    Session s(p);
    s.bindRandomWeights(1);
    s.run(p->entries[0].name, {});
  };
  EXPECT_NO_THROW(run([](Program&) {}));
  expectError(ErrorCode::InvalidFile, "the program of the reference backend has no module",
              [&] { run([](Program& p) { p.blobs.erase("module"); }); });
  expectError(ErrorCode::InvalidFile, "the module has no function 'other'",
              [&] { run([](Program& p) { p.entries[0].name = "other"; }); });
  expectError(ErrorCode::InvalidFile, "the call of 'forward' is not given the weight 'b'", [&] {
    run([](Program& p) {
      std::vector<int>& operands = p.entries[0].calls[0].operands;
      operands[1] = operands[0];
    });
  });
}

TEST(ProgramFile, MissingFilesAreToldApart) {
  test::TemporaryFolder folder;
  expectError(ErrorCode::Io, "nowhere.lathe", [&] { Program::open(folder / "nowhere.lathe"); });
}

TEST(ProgramFile, ACheckpointIsNoProgram) {
  test::TemporaryFolder folder;
  saveSafetensors(folder / "weights.safetensors", {{"w", Array(DType::F32, {2})}});
  expectError(ErrorCode::InvalidFile, "weights.safetensors",
              [&] { Program::open(folder / "weights.safetensors"); });
}

TEST(ProgramFile, AnUnknownBackendIsNamed) {
  Program program;
  program.backend = "abacus";
  expectError(ErrorCode::Unsupported, "abacus", [&] { Session session(std::move(program)); });
}

}  // namespace
}  // namespace lathe
