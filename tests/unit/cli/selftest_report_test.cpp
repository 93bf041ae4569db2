// SPDX-License-Identifier: Apache-2.0
// The tables of `lathe selftest`.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/cli/printed.h"
#include "tools/lathe/selftest_report.h"

namespace lathe::cli {
namespace {

using nlohmann::json;
using test::printed;

const MachineRoofs kMachine{"host", 4e9, 1e9, 1e9};

std::vector<MeasuredKernel> kernels() {
  return {{"cpu",
           {"lathe.linear", "M=2", DType::BF16},
           {"", {0.3, 0.1, 0.2}, CostValues{4e8, 1e7, 3e7, 0, true}}},
          {"cpu",
           {"lathe.softmax", "8 x 8", DType::F32},
           {"", {1, 4, 2, 8}, CostValues{1e8, 5e8, 1e9}}},
          {"cpu", {"lathe.rope", "8", DType::F16}, {"", {5e-4}, std::nullopt}},
          {"gpu", {"lathe.add", "9", DType::F32}, {"no memory", {}, std::nullopt}}};
}

TEST(SelftestReport, CellsStandUnderTheirDtypes) {
  const std::vector<DType> columns{DType::F32, DType::BF16, DType::I64};
  EXPECT_EQ(printed([&] { printSelftestHeading("cpu", columns); }),
            "backend cpu\n\n| op | f32 | bf16 | i64 |\n|---|---|---|---|\n");
  EXPECT_EQ(printed([&] {
              printSelftestRow(
                  {"cpu", "lathe.add", {{DType::I64, "no", "why"}, {DType::F32, "yes", ""}}},
                  columns);
            }),
            "| add | yes | - | no |\n");
}

TEST(SelftestReport, DtypesShareALineOfTheSameWords) {
  const std::vector<SelftestRow> rows{{"cpu",
                                       "lathe.add",
                                       {{DType::F32, "no", "too wide"},
                                        {DType::BF16, "yes", ""},
                                        {DType::F16, "no", "too wide"},
                                        {DType::I64, "expanded", "too wide"}}},
                                      {"gpu", "lathe.mul", {{DType::F32, "no", "another"}}}};
  EXPECT_EQ(printed([&] { printSelftestDetails(rows); }),
            "\ncpu add i64 expanded: too wide\ncpu add f32, f16 no: too wide\n"
            "gpu mul f32 no: another\n");
  EXPECT_EQ(
      printed([&] { printSelftestDetails({{"cpu", "lathe.add", {{DType::F32, "ok", ""}}}}); }), "");
}

TEST(SelftestReport, FourDifferencesAreShown) {
  auto shown = [](const std::string& detail) {
    return printed(
        [&] { printSelftestDetails({{"c", "lathe.a", {{DType::F32, "FAIL", detail}}}}); });
  };
  EXPECT_EQ(shown("1\n2\n3\n4\n"), "\nc a f32 FAIL:\n  1\n  2\n  3\n  4\n");
  EXPECT_EQ(shown("1\n2\n3\n4\n5\n"),
            "\nc a f32 FAIL:\n  1\n  2\n  3\n  4\n  and 1 more; --json has all\n");
}

TEST(SelftestReport, JsonHasACellForEachDtype) {
  EXPECT_EQ(json::parse(printed([] {
              printSelftestJson(
                  "test",
                  {{"cpu", "lathe.add", {{DType::F32, "ok", ""}, {DType::F16, "FAIL", "a\n"}}}});
            })),
            json::parse(R"({"schema_version": 1, "verb": "selftest", "mode": "test", "ops": [
              {"backend": "cpu", "op": "lathe.add", "dtype": "f32", "result": "ok"},
              {"backend": "cpu", "op": "lathe.add", "dtype": "f16", "result": "FAIL",
               "detail": "a\n"}]})"));
}

TEST(SelftestReport, TheMiddleRunIsHeldAgainstTheRoof) {
  const std::vector<MeasuredKernel> all = kernels();
  EXPECT_EQ(all[0].medianSeconds(), 0.2);
  EXPECT_EQ(all[1].medianSeconds(), 3);
  EXPECT_DOUBLE_EQ(all[0].roofShare(kMachine), 0.5);
  EXPECT_DOUBLE_EQ(all[1].roofShare(kMachine), 0.5);
  EXPECT_EQ(printed([&] { printKernels(all, kMachine, 1); }),
            "1 thread: 4 GFLOP/s in 16 bits, 1 GFLOP/s in f32, 1 GB/s\n\n"
            "| backend | op | size | dtype | time | FLOP/s | bytes/s | bound | of roof |\n"
            "|---|---|---|---|--:|--:|--:|---|--:|\n"
            "| cpu | linear | M=2 | bf16 | 200.00 ms | 2 G | 200 MB | compute | 50.0 % |\n"
            "| cpu | softmax | 8 x 8 | f32 | 3.00 s | 33.3 M | 500 MB | memory | 50.0 % |\n"
            "| cpu | rope | 8 | f16 | 500.00 us | - | - | - | - |\n"
            "| gpu | add | 9 | f32 | no | - | - | - | - |\n"
            "\ngpu add f32 no: no memory\n");
  EXPECT_EQ(printed([&] { printKernels({}, kMachine, 2); }).substr(0, 10), "2 threads:");
}

TEST(SelftestReport, KernelsAsJson) {
  EXPECT_EQ(json::parse(printed([] { printKernelsJson(kernels(), kMachine, 3); })), json::parse(R"({
    "schema_version": 1, "verb": "selftest", "mode": "perf", "threads": 3,
    "device": {"narrow_flops_per_second": 4e9, "wide_flops_per_second": 1e9,
               "bytes_per_second": 1e9},
    "kernels": [
      {"backend": "cpu", "op": "lathe.linear", "size": "M=2", "dtype": "bf16", "time_s": 0.2,
       "repetitions_s": [0.3, 0.1, 0.2], "flops": 4e8, "bytes": 4e7, "flops_per_second": 2e9,
       "bytes_per_second": 2e8, "bound": "compute", "roof_share": 0.5},
      {"backend": "cpu", "op": "lathe.softmax", "size": "8 x 8", "dtype": "f32", "time_s": 3.0,
       "repetitions_s": [1.0, 4.0, 2.0, 8.0], "flops": 1e8, "bytes": 1.5e9,
       "flops_per_second": 33333333.333333332, "bytes_per_second": 5e8, "bound": "memory",
       "roof_share": 0.5},
      {"backend": "cpu", "op": "lathe.rope", "size": "8", "dtype": "f16", "time_s": 5e-4,
       "repetitions_s": [5e-4]},
      {"backend": "gpu", "op": "lathe.add", "size": "9", "dtype": "f32",
       "refused": "no memory"}]})"));
}

}  // namespace
}  // namespace lathe::cli
