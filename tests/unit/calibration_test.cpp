// SPDX-License-Identifier: Apache-2.0
// What is measured of a processor decides how it multiplies and reads, and is kept for its own
// kind.
#include "backends/cpu/device/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "backends/cpu/device/roofs.h"
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

// A round in which pattern `index` is the fastest.
ReadRound won(size_t index, double rate) {
  ReadRound round(readPatterns().size(), 0.75 * rate);
  round[index] = rate;
  return round;
}
ReadRounds allOf(const std::vector<ReadRound>& rounds) {
  ReadRounds all;
  all.fill(rounds);
  return all;
}

// A million rounds a second; passes whose numbers are given, from 0, are held up for a second.
TimedRounds timedWith(std::vector<int> heldUp, int repeats) {
  int count = 0;
  return timeRounds(
      [&](int64_t rounds) {
        const bool held = std::ranges::count(heldUp, count++) > 0;
        return double(rounds) * 1e-6 + (held ? 1 : 0);
      },
      repeats, 5e-3);
}

TEST(Roofs, APassThatWasHeldUpDoesNotStandForALongOne) {
  EXPECT_EQ(timedWith({}, 5).rounds, 8000);
  EXPECT_DOUBLE_EQ(timedWith({}, 5).seconds, 8e-3);
  EXPECT_EQ(timedWith({}, 0).rounds, 8000);
  for (int first : {0, 1, 2}) {
    const TimedRounds timed = timedWith({first}, 5);
    EXPECT_GE(timed.rounds, 4000) << first;
    EXPECT_DOUBLE_EQ(timed.seconds, double(timed.rounds) * 1e-6) << first;
  }
  // One of the repeats is no matter.
  EXPECT_DOUBLE_EQ(timedWith({5}, 5).seconds, 8e-3);
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

// Results change their last bits with it.
TEST(Calibration, AnArithmeticStaysUnlessAnotherIsClearlyFaster) {
  const Calibration dot = rates(500, 460), wide = rates(500, 440), halfDot = rates(500, 250);
  EXPECT_EQ(bf16Arithmetic({dot}, kBf16), Bf16Arithmetic::Dot);
  EXPECT_EQ(bf16Arithmetic({wide}, kBf16), Bf16Arithmetic::Widened);
  EXPECT_EQ(bf16Arithmetic({wide, dot}, kBf16), Bf16Arithmetic::Widened) << "about as fast";
  EXPECT_EQ(bf16Arithmetic({wide, rates(500, 499)}, kBf16), Bf16Arithmetic::Widened);
  EXPECT_EQ(bf16Arithmetic({wide, rates(500, 501)}, kBf16), Bf16Arithmetic::Dot);
  EXPECT_EQ(bf16Arithmetic({wide, rates(500, 501), rates(600, 440)}, kBf16), Bf16Arithmetic::Dot)
      << "what was chosen then stays, too";
  EXPECT_EQ(bf16Arithmetic({wide, rates(500, 501), rates(610, 440)}, kBf16),
            Bf16Arithmetic::Widened);
  EXPECT_EQ(bf16Arithmetic({dot, rates(550, 460)}, kBf16), Bf16Arithmetic::Dot);
  EXPECT_EQ(bf16Arithmetic({halfDot, dot}, kBf16), Bf16Arithmetic::Widened);
  EXPECT_EQ(bf16Arithmetic({rates(500, 100, 450), rates(500, 100, 540)}, kAmx),
            Bf16Arithmetic::Widened);
  EXPECT_EQ(bf16Arithmetic({rates(500, 100, 450), rates(500, 100, 560)}, kAmx),
            Bf16Arithmetic::Tiles);
  Calibration busy = wide;
  busy.busy = true;
  EXPECT_EQ(bf16Arithmetic({busy, dot}, kBf16), Bf16Arithmetic::Dot) << "it does not count";
  EXPECT_EQ(bf16Arithmetic({busy}, kBf16), Bf16Arithmetic::Widened);
}

TEST(Calibration, FeatureBitsAloneNameTheNewestArithmetic) {
  EXPECT_EQ(kAvx2.arithmetic, Bf16Arithmetic::Widened);
  EXPECT_EQ(kAvx512.arithmetic, Bf16Arithmetic::Widened);
  EXPECT_EQ(kBf16.arithmetic, Bf16Arithmetic::Dot);
  EXPECT_EQ(kAmx.arithmetic, Bf16Arithmetic::Tiles);
}

TEST(Calibration, IsReadBackForTheSameProcessorAlone) {
  Calibration c = rates(3.44e11, 1.73e11, 2.7e12);
  c.rounds = allOf({won(4, 1e10), won(4, 1.25e10)});
  c.rounds[size_t(WeightKind::F32)] = {won(1, 2.96e10)};
  c.rounds[size_t(WeightKind::Int4)] = {won(3, 1.52e10)};
  c.takenAt = 1764167000;
  const std::string me = "A \"quoted\\\" processor, avx2, 2 threads", text = textOf({c, c}, me);
  const std::vector<Calibration> back = calibrationsFrom(text, me);
  ASSERT_EQ(back.size(), 2) << text;
  EXPECT_EQ(back[1].f32Fma, c.f32Fma);
  EXPECT_EQ(back[1].bf16Dot, c.bf16Dot);
  EXPECT_EQ(back[1].amxBf16, c.amxBf16);
  EXPECT_EQ(back[1].rounds, c.rounds);
  EXPECT_TRUE(back[1].reading[WeightKind::F32].sameWay(readPatterns()[1]));
  EXPECT_EQ(back[1].reading[WeightKind::F32].bytesPerSecond, 2.96e10);
  EXPECT_TRUE(back[1].reading[WeightKind::Int8].sameWay(readPatterns()[4]));
  EXPECT_EQ(back[1].reading[WeightKind::Int8].bytesPerSecond, 1.25e10);
  EXPECT_TRUE(back[1].reading[WeightKind::Int4].sameWay(readPatterns()[3]));
  EXPECT_EQ(back[1].spread, 0.0) << "the middle one of two is the later";
  EXPECT_EQ(back[1].takenAt, c.takenAt);
  EXPECT_TRUE(calibrationsFrom(text, "another processor, avx2, 2 threads").empty());
}

// What the rates are kept for: the processor's own name, its features and the threads.
TEST(Calibration, TheProcessorIsCalledByItsName) {
  const std::string name = processorName(), identity = processorIdentity();
  ASSERT_FALSE(name.empty());
  EXPECT_NE(name.front(), ' ');
  EXPECT_EQ(name.find(':'), name.npos) << name;
  EXPECT_TRUE(identity.starts_with(name + ", avx2 fma f16c")) << identity;
  EXPECT_TRUE(identity.ends_with(" threads")) << identity;
}

TEST(Calibration, DamagedTextIsNone) {
  Calibration c = rates(1e11, 2e11, 5e11);
  c.rounds = allOf({won(0, 4e10)});
  c.rounds[size_t(WeightKind::Int4)] = {won(0, 4e10), won(0, 5e10)};
  c.takenAt = 5;
  const std::string text = textOf({c}, "me");
  ASSERT_EQ(calibrationsFrom(text, "me").size(), 1);
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_TRUE(calibrationsFrom(text.substr(0, length), "me").empty()) << length;
  auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << text;
    return calibrationsFrom(changed.replace(at, from.size(), to), "me");
  };
  EXPECT_TRUE(with("\"version\": 6", "\"version\": 5").empty());
  EXPECT_TRUE(with("\"taken_at\": 5", "\"taken_at\": -5").empty());
  EXPECT_TRUE(with("1e+11", "0").empty());
  EXPECT_TRUE(with("2e+11", "-1").empty());
  EXPECT_TRUE(with("5e+11", "-1").empty());
  EXPECT_TRUE(with("[40, ", "[").empty()) << "a pattern fewer";
  EXPECT_TRUE(with("[40, ", "[40, 40, ").empty());
  EXPECT_TRUE(with("\"int8\": [[", "\"int8\": [], \"other\": [[").empty()) << "no round";
  for (const char* rate : {"0, ", "-30, "}) EXPECT_TRUE(with("50, ", rate).empty()) << rate;
  EXPECT_EQ(with("50, ", "60, ").size(), 1);
}

// A measurement in which pattern `index` was the fastest for all kinds of weights.
Calibration chose(size_t index, int64_t takenAt, double rate = 3e10) {
  Calibration c = rates(3e11, 1e11);
  c.rounds = allOf(std::vector<ReadRound>(8, won(index, rate)));
  c.takenAt = takenAt;
  return c;
}

TEST(Calibration, ABadMomentIsOutvoted) {
  auto way = [](const std::vector<Calibration>& measured) {
    const ReadPattern read = together(measured).reading[WeightKind::F32];
    return std::pair(read.streams, read.prefetch);
  };
  const std::pair<int, int64_t> one{1, 0}, four{4, 1024};
  EXPECT_EQ(way({chose(1, 0)}), one);
  EXPECT_EQ(way({chose(1, 0), chose(0, 600)}), four) << "half of the rounds are too few";
  EXPECT_EQ(way({chose(0, 0), chose(1, 600)}), four);
  EXPECT_EQ(way({chose(1, 0), chose(1, 600), chose(0, 1200), chose(1, 1800), chose(1, 2400)}), one);
  EXPECT_EQ(way({chose(1, 0), chose(0, 600), chose(0, 1200)}), four);
}

// Two measurements alone do not tell that another is faster: it won too few of their rounds.
TEST(Calibration, RoundsOfAllMeasurementsChoose) {
  std::vector<Calibration> measured;
  for (int i = 0; i < 5; ++i) {
    Calibration c = chose(0, 600 * i);
    ReadRound round = won(5, 3.2e10);
    round[0] = 2.9e10;
    // A neighbour that meets the one or the other.
    ReadRound slow = round, other = round;
    slow[5] = 2e10;
    (i % 2 ? other[5] : other[0]) = 2e10;
    c.rounds = allOf({round, round, slow, other, round, i % 2 ? slow : round, round, slow});
    EXPECT_EQ(together({c}).reading[WeightKind::BF16].streams, i % 2 ? 4 : 2) << i;
    measured.push_back(c);
  }
  const ReadPattern read = together(measured).reading[WeightKind::BF16];
  EXPECT_TRUE(read.sameWay({2, 4096})) << read.streams;
  EXPECT_EQ(read.bytesPerSecond, 3.2e10);
}

TEST(Calibration, KindsOfWeightsChooseApart) {
  Calibration one = chose(1, 0, 1e10), two = chose(1, 600, 2e10), three = chose(1, 1200, 3e10);
  for (Calibration* c : {&two, &three}) c->rounds[size_t(WeightKind::Int8)].assign(8, won(3, 5e10));
  three.rounds[size_t(WeightKind::BF16)].assign(8, won(3, 2.5e10));
  const Calibration all = together({one, two, three});
  EXPECT_TRUE(all.reading[WeightKind::F32].sameWay({1, 0}));
  EXPECT_EQ(all.reading[WeightKind::F32].bytesPerSecond, 3e10);
  EXPECT_TRUE(all.reading[WeightKind::BF16].sameWay({1, 0}));
  EXPECT_EQ(all.reading[WeightKind::BF16].bytesPerSecond, 2e10) << "of the pattern that was chosen";
  EXPECT_TRUE(all.reading[WeightKind::Int8].sameWay({4, 0}));
  EXPECT_TRUE(all.reading[WeightKind::Int4].sameWay({1, 0}));
}

TEST(Calibration, TheBestRatesOfAllCount) {
  Calibration slow = chose(0, 100, 1e10), quick = chose(0, 900, 4e10), last = chose(0, 2000, 2e10);
  slow.amxBf16 = 1.7e12, slow.f32Fma = 4e11, quick.amxBf16 = 4.6e12;
  quick.rounds[size_t(WeightKind::Int8)].assign(24, won(0, 4e10));
  const Calibration all = together({slow, quick, last});
  EXPECT_EQ(all.amxBf16, 4.6e12);
  EXPECT_EQ(all.f32Fma, 4e11);
  EXPECT_EQ(all.reading[WeightKind::F32].bytesPerSecond, 4e10);
  EXPECT_EQ(all.takenAt, 2000);
  EXPECT_EQ(all.spread, 0.5) << "the worst of the kinds";
  EXPECT_EQ(all.measurements, 3);
}

TEST(Calibration, IsRepeatedFiveTimes) {
  EXPECT_TRUE(wantsAnother({}, 0));
  const std::vector<Calibration> one = {chose(1, 1000)};
  EXPECT_FALSE(wantsAnother(one, 1599)) << "the same bad moment";
  EXPECT_TRUE(wantsAnother(one, 1600));
  std::vector<Calibration> five(4, chose(0, 0));
  EXPECT_TRUE(wantsAnother(five, 600));
  five.push_back(chose(0, 600));
  EXPECT_FALSE(wantsAnother(five, 9999));
}

TEST(Calibration, BusyMomentsCountWhereThereIsNoOther) {
  Calibration busy = chose(1, 0);
  busy.busy = true;
  EXPECT_EQ(together({busy}).reading[WeightKind::F32].streams, 1);
  EXPECT_TRUE(together({busy}).busy);
  const Calibration both = together({busy, chose(2, 600)});
  EXPECT_TRUE(both.reading[WeightKind::F32].sameWay({1, 1024}));
  EXPECT_FALSE(both.busy);
  EXPECT_EQ(both.measurements, 1);
  EXPECT_FALSE(wantsAnother({busy}, 599));
  EXPECT_TRUE(wantsAnother({busy, busy, busy}, 600));
  busy.takenAt = 1800;
  EXPECT_FALSE(wantsAnother({chose(0, 0), busy}, 1900)) << "not in every process of a busy machine";
  EXPECT_TRUE(wantsAnother({chose(0, 0), chose(0, 600), busy}, 2400));
  EXPECT_TRUE(calibrationsFrom(textOf({busy}, "me"), "me").at(0).busy);
}

TEST(Calibration, BusyMomentsVoteOnAMachineThatIsNeverQuiet) {
  std::vector<Calibration> kept;
  auto another = [&](size_t pattern, bool busy) {
    Calibration c = chose(pattern, kept.empty() ? 0 : kept.back().takenAt + 600);
    c.busy = busy;
    kept = withAnother(kept, c);
    return together(kept);
  };
  another(0, true), another(0, true);
  const Calibration all = another(1, true);
  EXPECT_TRUE(all.reading[WeightKind::F32].sameWay(readPatterns()[0]))
      << "the last moment was the bad one";
  EXPECT_EQ(all.measurements, 3);
  another(1, true), another(1, true), another(1, true);
  ASSERT_EQ(kept.size(), 5) << "the last ones";
  EXPECT_TRUE(together(kept).reading[WeightKind::F32].sameWay(readPatterns()[1]));
  EXPECT_EQ(kept.front().takenAt, 600);
  const Calibration quiet = another(3, false);
  ASSERT_EQ(kept.size(), 1) << "a quiet one replaces them";
  EXPECT_TRUE(quiet.reading[WeightKind::F32].sameWay(readPatterns()[3]));
  another(1, true), another(1, true);
  EXPECT_EQ(kept.size(), 2) << "the last busy one tells when";
  EXPECT_TRUE(together(kept).reading[WeightKind::F32].sameWay(readPatterns()[3]));
  EXPECT_FALSE(wantsAnother(kept, kept.back().takenAt + 599));
}

TEST(Calibration, TheMachineHasWhatItsFeaturesSay) {
  const Calibration c = calibrate();
  EXPECT_GT(c.f32Fma, 1e9);
  EXPECT_EQ(c.bf16Dot > 0, machineIsa() >= Isa::Avx512 && cpuFeatures().avx512Bf16);
  EXPECT_EQ(c.amxBf16 > 0, machineIsa() == Isa::Amx);
  for (WeightKind kind : kWeightKinds) {
    EXPECT_GT(c.reading[kind].bytesPerSecond, 1e8) << nameOf(kind);
    EXPECT_TRUE(std::ranges::any_of(readPatterns(), [&](const ReadPattern& pattern) {
      return pattern.sameWay(c.reading[kind]);
    })) << nameOf(kind);
    for (WeightKind other : kWeightKinds)
      EXPECT_EQ(c.reading[kind].bytesPerSecond == c.reading[other].bytesPerSecond, kind == other)
          << nameOf(kind) << " and " << nameOf(other) << " are measured apart";
  }
  EXPECT_GT(c.takenAt, 1'700'000'000) << "seconds since 1970";
  EXPECT_GE(c.spread, 0);
  EXPECT_LT(c.spread, 1);
}

TEST(Calibration, WeightsAreReadAsTheirKindIs) {
  const ReadPatterns& all = calibration().reading;
  EXPECT_EQ(&readPatternOf(PackedShape{DType::F32, 64, 64}), &all[WeightKind::F32]);
  EXPECT_EQ(&readPatternOf(PackedShape{DType::BF16, 64, 64}), &all[WeightKind::BF16]);
  EXPECT_EQ(&readPatternOf(QuantizedShape{DType::I8, 64, 64}), &all[WeightKind::Int8]);
  EXPECT_EQ(&readPatternOf(QuantizedShape{DType::I4, 64, 64}), &all[WeightKind::Int4]);
  EXPECT_EQ(nameOf(WeightKind::F32), "f32");
  EXPECT_EQ(nameOf(WeightKind::Int4), "int4");
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

// AVX2 multiplies bytes without an extra of AVX-512; bf16 data have instructions of their own.
TEST(PeakKinds, AreThoseOfTheTiersArithmetic) {
  KernelIsa isa{.tier = Isa::Avx2, .arithmetic = Bf16Arithmetic::Widened};
  EXPECT_EQ(bytePeakKind(true, isa), PeakKind::ByteDot);
  EXPECT_EQ(bestPeakKind(true, isa), PeakKind::F32Fma);
  isa.tier = Isa::Avx512;
  EXPECT_EQ(bytePeakKind(true, isa), PeakKind::F32Fma);
  isa.vnni = true;
  EXPECT_EQ(bytePeakKind(true, isa), PeakKind::ByteDot);
  isa.tier = Isa::Amx;
  isa.arithmetic = Bf16Arithmetic::Tiles;
  EXPECT_EQ(bytePeakKind(true, isa), PeakKind::AmxByte);
  EXPECT_EQ(bestPeakKind(true, isa), PeakKind::AmxBf16);
  EXPECT_EQ(bytePeakKind(false, isa), PeakKind::ByteDot);
  EXPECT_EQ(bestPeakKind(false, isa), PeakKind::F32Fma);
}

// The roof is the fastest way of reading, whichever that is here.
TEST(ReadRoofs, TheFastestWayIsTheFirst) {
  ThreadPool pool(2);
  const ReadRoofs roofs = measureReadRoofs(pool, 1 << 20, /*repeats=*/1);
  ASSERT_GT(roofs.tried.size(), 2u);
  for (const ReadRoof& roof : roofs.tried) {
    EXPECT_GT(roof.bytesPerSecond, 0);
    EXPECT_LE(roof.bytesPerSecond, roofs.best());
  }
  EXPECT_TRUE(std::ranges::is_sorted(roofs.tried, std::greater(), &ReadRoof::bytesPerSecond));
  EXPECT_EQ(ReadRoofs().best(), 0);
}

}  // namespace
}  // namespace lathe::cpu
