// SPDX-License-Identifier: Apache-2.0
// Every op on every backend, by dtype and awkward sizes, against the reference in float64.
//
//   backends_test --write-docs DIR    writes DIR/support.md and the table in DIR/limits.md
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "backends/cpu/device/cpu_features.h"
#include "lathe/backends/backend.h"
#include "tests/conformance/agreement.h"
#include "tests/conformance/support.h"
#include "tests/depth.h"

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

TEST_P(Backends, AgreesWithReference) {
  const auto& [backend, op] = GetParam();
  const OpRow& row = rowOf(op);
  for (DType dtype : testedDtypes(row)) {
    SCOPED_TRACE(nameOf(dtype));
    // What a backend refuses is counted in docs/support.md.
    EXPECT_EQ(agreement(backend, row, dtype), "");
  }
}

// The comparison itself: the first recording adds, the next ones multiply.
TEST(Agreement, NamesTheSampleAndTheElement) {
  int recorded = 0;
  const OpRow planted{
      "lathe.planted", false, {DType::F32}, [&](DType d) {
        return std::vector<Sample>{{"pair", {{d, {3}}}, [&](Graph&, const std::vector<Tensor>& t) {
                                      return std::vector<Tensor>{recorded++ ? mul(t[0], t[0])
                                                                            : add(t[0], t[0])};
                                    }}};
      }};
  const std::string text = agreement("cpu", planted, DType::F32);
  EXPECT_EQ(text.find("pair 0.out0 rows=3 cols=1: element 0 is "), 0u) << text;
  EXPECT_NE(text.find(" (3 of 3)"), std::string::npos) << text;
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  // An op's backends one after the other: they share its oracle.
  for (const OpRow& row : opTable())
    for (const std::string& backend : backendNames()) all.push_back({backend, row.op});
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
  // CTest runs the suite twice, once held down to what every machine has.
  if (std::getenv("LATHE_CPU_ISA") && lathe::cpu::detectIsa() == lathe::cpu::machineIsa()) {
    std::puts("skipped: without LATHE_CPU_ISA this machine runs the same code");
    return 77;
  }
  return RUN_ALL_TESTS();
}
