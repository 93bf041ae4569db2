// SPDX-License-Identifier: Apache-2.0
// Programs as files: what is saved runs again with the same bits, and damage is an error.
#include <gtest/gtest.h>

#include <cstring>
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
