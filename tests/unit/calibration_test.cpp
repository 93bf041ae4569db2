// SPDX-License-Identifier: Apache-2.0
// What is measured of a processor decides how it multiplies and reads, and is kept for its own
// kind.
#include "backends/cpu/device/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

using ::testing::HasSubstr;

constexpr KernelIsa kAvx2{Isa::Avx2, false}, kAvx512{Isa::Avx512, false};
constexpr KernelIsa kBf16{Isa::Avx512, true}, kAmx{Isa::Amx, true};

Calibration rates(double f32, double dot, double tiles = 0) {
  Calibration c;
  c.f32Fma = f32;
  c.bf16Dot = dot;
  c.amxBf16 = tiles;
  return c;
}

TEST(Calibration, TheFastestArithmeticOfTheTierIsTaken) {
  struct Case {
    const char* machine;
    Calibration measured;
    KernelIsa isa;
    Bf16Arithmetic want;
  };
  for (const Case& c : {
           Case{"dot products twice as fast", rates(500, 1000), kBf16, Bf16Arithmetic::Dot},
           Case{"dot products at half the rate", rates(344, 173), kBf16, Bf16Arithmetic::Widened},
           Case{"equal rates", rates(500, 500), kBf16, Bf16Arithmetic::Dot},
           Case{"the tier without them", rates(500, 1000), kAvx512, Bf16Arithmetic::Widened},
           Case{"the oldest tier", rates(500, 1000), kAvx2, Bf16Arithmetic::Widened},
           Case{"tiles", rates(344, 173, 2700), kAmx, Bf16Arithmetic::Tiles},
           Case{"tiles that are emulated", rates(344, 173, 40), kAmx, Bf16Arithmetic::Widened},
           Case{"tiles that a tier leaves out", rates(344, 173, 2700), kBf16,
                Bf16Arithmetic::Widened},
           Case{"slow tiles beside fast dots", rates(344, 700, 600), kAmx, Bf16Arithmetic::Dot},
       })
    EXPECT_EQ(c.measured.bf16Arithmetic(c.isa), c.want) << c.machine;
}

TEST(Calibration, FeatureBitsAloneNameTheNewestArithmetic) {
  EXPECT_EQ(kAvx2.arithmetic, Bf16Arithmetic::Widened);
  EXPECT_EQ(kAvx512.arithmetic, Bf16Arithmetic::Widened);
  EXPECT_EQ(kBf16.arithmetic, Bf16Arithmetic::Dot);
  EXPECT_EQ(kAmx.arithmetic, Bf16Arithmetic::Tiles);
}

TEST(Calibration, IsReadBackForTheSameProcessorAlone) {
  Calibration c = rates(3.44e11, 1.73e11, 2.7e12);
  c.reading = {4, 1024, 2.95e10};
  const std::string me = "A \"quoted\" processor, avx2, 2 threads", text = textOf(c, me);
  auto back = calibrationFrom(text, me);
  ASSERT_TRUE(back) << text;
  EXPECT_EQ(back->f32Fma, c.f32Fma);
  EXPECT_EQ(back->bf16Dot, c.bf16Dot);
  EXPECT_EQ(back->amxBf16, c.amxBf16);
  EXPECT_EQ(back->reading.streams, 4);
  EXPECT_EQ(back->reading.prefetch, 1024);
  EXPECT_EQ(back->reading.bytesPerSecond, c.reading.bytesPerSecond);
  EXPECT_FALSE(calibrationFrom(text, "another processor, avx2, 2 threads"));
}

TEST(Calibration, DamagedTextIsNone) {
  Calibration c = rates(1e11, 2e11);
  const std::string text = textOf(c, "me");
  ASSERT_TRUE(calibrationFrom(text, "me"));
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(calibrationFrom(text.substr(0, length), "me")) << length;
  auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return changed.replace(at, from.size(), to);
  };
  EXPECT_FALSE(calibrationFrom(with("\"version\": 1", "\"version\": 2"), "me"));
  EXPECT_FALSE(calibrationFrom(with("\"streams\": 1", "\"streams\": 9"), "me"));
  EXPECT_FALSE(calibrationFrom(with("\"streams\": 1", "\"streams\": 0"), "me"));
  EXPECT_FALSE(calibrationFrom(with("\"prefetch\": 0", "\"prefetch\": -64"), "me"));
  EXPECT_FALSE(calibrationFrom(with("1e+11", "0"), "me"));
  EXPECT_FALSE(calibrationFrom(with("2e+11", "-1"), "me"));
}

TEST(Calibration, TheMachineHasWhatItsFeaturesSay) {
  const Calibration c = calibrate();
  EXPECT_GT(c.f32Fma, 1e9);
  EXPECT_EQ(c.bf16Dot > 0, machineIsa() >= Isa::Avx512 && cpuFeatures().avx512Bf16);
  EXPECT_EQ(c.amxBf16 > 0, machineIsa() == Isa::Amx);
  EXPECT_GT(c.reading.bytesPerSecond, 1e8);
  EXPECT_THAT(c.reading.streams, testing::AnyOf(1, 4, kMaxReadStreams));
}

TEST(Calibration, AnArithmeticCanBePinned) {
  auto pinned = [](const char* name, KernelIsa isa) {
    setenv("LATHE_CPU_BF16", name, 1);
    auto arithmetic = pinnedArithmetic(isa);
    unsetenv("LATHE_CPU_BF16");
    return arithmetic;
  };
  unsetenv("LATHE_CPU_BF16");
  EXPECT_FALSE(pinnedArithmetic(kAmx));
  EXPECT_FALSE(pinned("", kAmx));
  EXPECT_EQ(pinned("widened", kAvx2), Bf16Arithmetic::Widened);
  EXPECT_EQ(pinned("dot", kBf16), Bf16Arithmetic::Dot);
  EXPECT_EQ(pinned("dot", kAmx), Bf16Arithmetic::Dot);
  EXPECT_EQ(pinned("tiles", kAmx), Bf16Arithmetic::Tiles);
  for (auto [name, isa, known] : {std::tuple("tiles", kBf16, "(widened, dot)"),
                                  {"dot", kAvx512, "(widened)"},
                                  {"fast", kAmx, "(widened, dot, tiles)"}}) {
    try {
      pinned(name, isa);
      ADD_FAILURE() << name << " was taken";
    } catch (const Error& e) {
      unsetenv("LATHE_CPU_BF16");
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
      EXPECT_THAT(e.what(), HasSubstr("expected LATHE_CPU_BF16 to be one of what the tier"));
      EXPECT_THAT(e.what(), HasSubstr(known));
    }
  }
}

}  // namespace
}  // namespace lathe::cpu
