// SPDX-License-Identifier: Apache-2.0
// Every op on every backend, by dtype and awkward sizes, against the reference in float64.
//
//   backends_test --write-docs DIR    writes DIR/support.md and the table in DIR/limits.md
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "backends/backend.h"
#include "lathe/lathe.h"
#include "tests/conformance/support.h"
#include "tests/conformance/tolerance.h"

namespace lathe::conformance {
namespace {

std::string readText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Parameter {
  std::string backend, op;
};
void PrintTo(const Parameter& p, std::ostream* os) { *os << p.backend << " " << p.op; }
class Backends : public ::testing::TestWithParam<Parameter> {};

Session open(std::shared_ptr<const Program> program, const Data& data) {
  Session session(std::move(program), {.threads = 2});
  session.bindWeights(data.weights);
  return session;
}

TEST_P(Backends, AgreesWithReference) {
  const auto& [backend, op] = GetParam();
  const OpRow& row = rowOf(op);
  for (DType dtype : row.dtypes) {
    SCOPED_TRACE(nameOf(dtype));
    const std::vector<Sample> samples = row.samples(dtype);
    const Graph graph = recordSamples(samples);
    auto onReference = [&](bool float64) {
      return std::make_shared<Program>(
          compile(graph, {.backend = "reference", .float64 = float64}));
    };
    // What a backend refuses is counted in docs/support.md.
    std::shared_ptr<const Program> program =
        backend == "reference" ? onReference(false) : compiled(backend, row, dtype).program;
    if (!program) continue;
    Data data = makeData(samples, allSizes()[0], op);
    Session tested = open(program, data);
    Session wide = open(onReference(true), data);
    Session narrow = open(onReference(false), data);
    for (Sizes sizes : allSizes()) {
      data.inputs = makeData(samples, sizes, op).inputs;
      const Arrays got = tested.run("forward", data.inputs);
      const Arrays want = wide.run("forward", data.inputs);
      const Arrays wantRounded = narrow.run("forward", data.inputs);
      for (const auto& [name, value] : got) {
        const Sample& sample = samples[std::stoul(name)];
        const Array& oracle = (sample.ownDtype ? wantRounded : want).at(name);
        const Tolerance t = toleranceOf(op.substr(6), value.dtype(), sample.exact);
        EXPECT_EQ(firstDifference(value, oracle, t), "")
            << sample.name << " " << name << " rows=" << sizes.rows << " cols=" << sizes.cols;
      }
    }
  }
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const std::string& backend : backendNames())
    for (const OpRow& row : opTable()) all.push_back({backend, row.op});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Conformance, Backends, ::testing::ValuesIn(parameters()),
                         [](const auto& info) {
                           return info.param.backend + "_" + info.param.op.substr(6);
                         });

// A page that is out of date is written again by scripts/generate_docs.
TEST(SupportPage, IsWhatTheBackendsDo) {
  EXPECT_EQ(readText(LATHE_SOURCE_DIR "/docs/support.md"), supportPage());
}
TEST(SupportPage, EveryNoHasItsReason) {
  EXPECT_NE(readText(LATHE_SOURCE_DIR "/docs/limits.md").find(limitsTable()), std::string::npos);
}

void writeDocs(const std::string& folder) {
  std::ofstream(folder + "/support.md") << supportPage();
  const std::string path = folder + "/limits.md";
  std::string limits = readText(path);
  const size_t begin = limits.find(kLimitsBegin), end = limits.find(kLimitsEnd);
  if (begin == std::string::npos || end == std::string::npos)
    throw std::runtime_error(path + " lacks the markers of the conformance table");
  limits.replace(begin, end + std::strlen(kLimitsEnd) - begin, limitsTable());
  std::ofstream(path) << limits;
}

}  // namespace
}  // namespace lathe::conformance

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--write-docs") {
    lathe::conformance::writeDocs(argv[2]);
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
