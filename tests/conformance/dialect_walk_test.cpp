// SPDX-License-Identifier: Apache-2.0
// Nothing about an op may be forgotten: every registered op has a builder with samples, runs on the
// reference, has a page and a lit test; every fused op says what it stands for.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "lathe/lathe.h"
#include "tests/conformance/cases.h"

namespace lathe::conformance {
namespace {

std::string readText(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Made by passes and backends, or declarations: users record them through other calls or never.
bool isStructural(const std::string& op) {
  static const std::set<std::string> ops{
      "lathe.region",        "lathe.yield",      "lathe.kernel",     "lathe.pack",
      "lathe.dim",           "lathe.dim_part",   "lathe.state",      "lathe.mesh",
      "lathe.shard_weights", "lathe.all_reduce", "lathe.all_gather", "lathe.reduce_scatter",
      "lathe.all_slice",     "lathe.all_to_all", "lathe.shard",      "lathe.send",
      "lathe.receive"};
  return ops.count(op);
}

std::vector<mlir::RegisteredOperationName> dialectOps(mlir::MLIRContext& context) {
  std::vector<mlir::RegisteredOperationName> ops;
  for (mlir::RegisteredOperationName op : context.getRegisteredOperations())
    if (op.getDialectNamespace() == "lathe") ops.push_back(op);
  return ops;
}

TEST(DialectWalk, FindsTheDialect) {
  auto context = createContext();
  EXPECT_GT(dialectOps(*context).size(), 60u);
}

TEST(DialectWalk, EveryOpHasSamples) {
  auto context = createContext();
  std::set<std::string> table;
  for (const OpRow& row : opTable()) EXPECT_TRUE(table.insert(row.op).second) << row.op << " twice";
  for (auto op : dialectOps(*context)) {
    const std::string name = op.getStringRef().str();
    EXPECT_EQ(table.count(name), isStructural(name) ? 0u : 1u)
        << name << " has no row in tests/conformance/cases_*.cpp";
    table.erase(name);
  }
  EXPECT_TRUE(table.empty()) << *table.begin() << " is in the table but not in the dialect";
}

// The builder function records the op that its row names.
TEST(DialectWalk, EveryBuilderRecordsItsOp) {
  for (const OpRow& row : opTable())
    for (DType dtype : row.dtypes)
      for (const Sample& sample : row.samples(dtype)) {
        const std::string text = recordSamples({sample}).text();
        EXPECT_NE(text.find(row.op + " "), std::string::npos) << row.op << " " << sample.name;
      }
}

// The dtypes of a row are all that the op takes: with any other no sample can be recorded.
TEST(DialectWalk, EveryRowHasAllDTypes) {
  const DType all[] = {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64,
                       DType::I32, DType::I16, DType::I8,   DType::U8,  DType::Bool};
  for (const OpRow& row : opTable()) {
    if (row.op == "lathe.random_bits") continue;  // has no operand of the row's dtype
    for (DType dtype : all) {
      if (std::find(row.dtypes.begin(), row.dtypes.end(), dtype) != row.dtypes.end()) continue;
      for (const Sample& sample : row.samples(dtype))
        EXPECT_THROW(recordSamples({sample}), Error)
            << row.op << " takes " << nameOf(dtype) << " (" << sample.name << ")";
    }
  }
}

// Whichever operand has a dtype or a rank that an op does not take: the error has no word of
// MLIR's.
TEST(DialectWalk, RefusalsAreInPlainWords) {
  int refused = 0;
  auto expectPlain = [&](const OpRow& row, const Sample& sample) {
    try {
      recordSamples({sample});
    } catch (const Error& e) {
      ++refused;
      const std::string text = e.what();
      for (const char* word : {"signless", "operand #", "tensor<", "UNKNOWN", "ranked tensor",
                               "failed to satisfy", "' op "})
        EXPECT_EQ(text.find(word), std::string::npos) << row.op << ": " << text;
    }
  };
  for (const OpRow& row : opTable())
    for (const Sample& sample : row.samples(row.dtypes.front()))
      for (size_t i = 0; i < sample.inputs.size(); ++i) {
        Sample other = sample;
        for (DType dtype :
             {DType::F64, DType::BF16, DType::I64, DType::U8, DType::Bool, DType::I4}) {
          other.inputs[i].dtype = dtype;
          expectPlain(row, other);
        }
        other = sample;
        other.inputs[i].shape.push_back(Dim(3));
        expectPlain(row, other);
        other.inputs[i].shape = {};
        expectPlain(row, other);
      }
  EXPECT_GT(refused, 500);
}

TEST(DialectWalk, EveryOpRunsOnTheReference) {
  for (const OpRow& row : opTable()) {
    const DType dtype = row.dtypes.front();
    const std::vector<Sample> samples = row.samples(dtype);
    Session session(compile(recordSamples(samples), {.backend = "reference"}));
    const Data data = makeData(samples, allSizes().front(), row.op);
    session.bindWeights(data.weights);
    EXPECT_GE(session.run("forward", data.inputs).size(), samples.size()) << row.op;
  }
}

TEST(DialectWalk, EveryOpHasAPage) {
  auto context = createContext();
  const std::string page = readText(LATHE_SOURCE_DIR "/docs/ops.md");
  for (auto op : dialectOps(*context))
    EXPECT_NE(page.find("### `" + op.getStringRef().str() + "`"), std::string::npos)
        << op.getStringRef().str() << " has no page in docs/ops.md";
}

// What mlir-tblgen makes of the .td files, behind a header: scripts/generate_docs copies it.
TEST(DialectWalk, ThePagesAreThoseOfTheTables) {
  auto expectCopied = [](const std::string& made, const std::string& page) {
    const size_t start = page.find("\n## ");
    EXPECT_TRUE(start != page.npos && page.substr(start) == made.substr(made.find("\n## ")))
        << "run scripts/generate_docs";
  };
  const std::regex heading("\n### ");
  auto opsUp = [&](const std::string& text) { return std::regex_replace(text, heading, "\n## "); };
  expectCopied(opsUp(readText(LATHE_BINARY_DIR "/ir/ops.md")),
               opsUp(readText(LATHE_SOURCE_DIR "/docs/ops.md")));
  expectCopied(opsUp(readText(LATHE_BINARY_DIR "/passes/passes.md")),
               readText(LATHE_SOURCE_DIR "/docs/passes.md"));
}

TEST(DialectWalk, EveryOpHasALitTest) {
  auto context = createContext();
  std::string tests;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(LATHE_SOURCE_DIR "/tests/lit"))
    if (entry.path().extension() == ".mlir") tests += readText(entry.path());
  for (auto op : dialectOps(*context)) {
    const std::string name = op.getStringRef().str();
    EXPECT_TRUE(tests.find(name + " ") != std::string::npos ||
                tests.find(name + "(") != std::string::npos)
        << name << " is in no test of tests/lit";
  }
}

TEST(DialectWalk, FusedOpsAreThoseWithADecomposition) {
  auto context = createContext();
  for (const OpRow& row : opTable()) {
    auto op = mlir::RegisteredOperationName::lookup(row.op, context.get());
    ASSERT_TRUE(op) << row.op;
    EXPECT_EQ(op->hasInterface<DecomposableOp>(), row.fused) << row.op;
  }
}

}  // namespace
}  // namespace lathe::conformance
