// SPDX-License-Identifier: Apache-2.0
// The command line of one verb: numbers and their ranges, sizes, inputs, flags that are wrong.
#include <climits>

#include <gmock/gmock.h>

#include "lathe/runtime/npy.h"
#include "lathe/runtime/safetensors.h"
#include "tests/unit/cli/printed.h"
#include "tests/unit/test_files.h"
#include "tools/lathe/arguments.h"
#include "tools/lathe/input_spec.h"

namespace lathe::cli {
namespace {

using test::expectError;
using test::TemporaryFolder;
using ::testing::HasSubstr;

TEST(Arguments, IdsAreWholeNumbersWithCommas) {
  EXPECT_EQ(parseIds("7", "--ids"), (std::vector<int>{7}));
  EXPECT_EQ(parseIds("1,-2,2147483647", "--ids"), (std::vector<int>{1, -2, INT_MAX}));
  for (auto [text, rest] : {std::pair("", "'' at item 0"),
                            {"1,", "'' at item 1"},
                            {"1,,2", "',2' at item 1"},
                            {"1;2", "'1;2' at item 0"},
                            {"1,2147483648", "'2147483648' at item 1"},
                            {"1, 2", "' 2' at item 1"},
                            {"3,a1234567890123456789012", "'a1234567890123456789' at item 1"}})
    expectError(ErrorCode::InvalidArgument,
                "--decode: expected whole numbers separated by commas, got " + std::string(rest),
                [&] { parseIds(text, "--decode"); });
}

TEST(Arguments, CountsHaveALeast) {
  EXPECT_EQ(parseCount("1", "--n"), 1);
  EXPECT_EQ(parseCount("0", "--n", 0), 0);
  EXPECT_EQ(parseCount("9223372036854775807", "--n"), INT64_MAX);
  for (const char* text : {"0", "-1", "", "x", "1x", "1.5", "9223372036854775808"})
    expectError(ErrorCode::InvalidArgument,
                "--n: expected a whole number of at least 1, got '" + std::string(text) + "'",
                [&] { parseCount(text, "--n"); });
  expectError(ErrorCode::InvalidArgument, "--n: expected a whole number of at least 3, got '2'",
              [] { parseCount("2", "--n", 3); });
}

TEST(Arguments, SizesOfSeveralTextsAreOneTable) {
  using Sizes = std::map<std::string, int64_t, std::less<>>;
  EXPECT_EQ(parseSizes({"a=1,b=20", "c=0"}, "--set"), (Sizes{{"a", 1}, {"b", 20}, {"c", 0}}));
  EXPECT_EQ(parseSizes({}, "--set"), Sizes{});
  for (auto [text, why] : {std::pair("a", "expected SYMBOL=NUMBER separated by commas, got 'a'"),
                           {"=1", "expected SYMBOL=NUMBER separated by commas, got '=1'"},
                           {"a=1,", "expected SYMBOL=NUMBER separated by commas, got ''"},
                           {"", "expected SYMBOL=NUMBER separated by commas, got ''"},
                           {"a=1,a=1", "'a' is given twice"}})
    expectError(ErrorCode::InvalidArgument, std::string("--set: ") + why,
                [&] { parseSizes({text}, "--set"); });
  expectError(ErrorCode::InvalidArgument, "--set: 'b' is given twice",
              [] { parseSizes({"b=1", "b=2"}, "--set"); });
  expectError(ErrorCode::InvalidArgument,
              "--set a: expected a whole number of at least 0, got '-1'",
              [] { parseSizes({"a=-1"}, "--set"); });
}

TEST(Arguments, NumbersAreInTheirRangeOrTold) {
  const WholeNumber any, some{2, 5}, more{1};
  EXPECT_EQ(any("0"), "");
  EXPECT_EQ(any("9223372036854775807"), "");
  EXPECT_EQ(any("-1"), "expected a whole number of at least 0, got '-1'");
  EXPECT_EQ(any("9223372036854775808"),
            "expected a whole number from 0 to 9223372036854775807, got '9223372036854775808'");
  EXPECT_EQ(more("0"), "expected a whole number of at least 1, got '0'");
  EXPECT_EQ(more("1.0"), "expected a whole number of at least 1, got '1.0'");
  for (const char* text : {"2", "5"}) EXPECT_EQ(some(text), "");
  for (const char* text : {"1", "6", "", "x", "3x"})
    EXPECT_EQ(some(text), "expected a whole number from 2 to 5, got '" + std::string(text) + "'");
  EXPECT_EQ(Seed{}("18446744073709551615"), "");
  EXPECT_EQ(Seed{}("18446744073709551616"),
            "expected a whole number from 0 to 18446744073709551615, got '18446744073709551616'");
  const RealNumber share{0, 1}, least{0.1};
  for (const char* text : {"0", "1", "0.5", "1e-9"}) EXPECT_EQ(share(text), "");
  for (const char* text : {"-0.1", "1.1", "nan", "inf", "", "1x"})
    EXPECT_EQ(share(text), "expected a number from 0 to 1, got '" + std::string(text) + "'");
  EXPECT_EQ(least("0.1"), "");
  EXPECT_EQ(least("1e300"), "");
  EXPECT_EQ(least("0.09"), "expected a number of at least 0.1, got '0.09'");
  EXPECT_EQ(least("inf"), "expected a number of at least 0.1, got 'inf'");
}

TEST(Arguments, OutputsAreFilesOfFoldersThatExist) {
  TemporaryFolder folder;
  const OutputFile check;
  EXPECT_EQ(check(folder / "new"), "");
  EXPECT_EQ(check("just-a-name"), "");
  EXPECT_EQ(check(""), "expected the name of a file, got an empty text");
  EXPECT_EQ(check(folder.path()), "expected the name of a file, got the folder " + folder.path());
  EXPECT_EQ(check(folder / "no/new"), "cannot write " + (folder / "no/new") +
                                          ": there is no folder " + (folder / "no") +
                                          "; make it first");
}

// What a verb's parser makes of words; the number of --new-tokens, and the mistake, if any.
struct Parsed {
  int64_t tokens = 7;
  bool goesOn = false;
  std::string mistake, help;
};
Parsed parse(const ArgumentList& words) {
  Parsed parsed;
  auto parser = makeParser("verb", "A summary.", "lathe verb x");
  parser->add_option("--new-tokens", parsed.tokens, "tokens")->check(WholeNumber{1});
  parsed.help = test::printed([&] {
    try {
      parsed.goesOn = parseArguments(*parser, words);
    } catch (const Error& e) {
      parsed.mistake = e.what();
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    }
  });
  return parsed;
}

TEST(Arguments, ParsersTellTheFirstMistake) {
  EXPECT_TRUE(parse({}).goesOn);
  EXPECT_EQ(parse({"--new-tokens", "3", "--quiet", "--color", "never"}).tokens, 3);
  EXPECT_EQ(parse({"--new-tokens=4", "-v"}).tokens, 4);
  for (auto [words, mistake] :
       {std::pair(ArgumentList{"x"}, "unexpected argument 'x'; see `lathe verb --help`"),
        {{"x", "--new-token", "3"}, "unknown flag '--new-token'; did you mean '--new-tokens'?"},
        {{"--new-token=3"}, "unknown flag '--new-token'; did you mean '--new-tokens'?"},
        {{"--colour"}, "unknown flag '--colour'; did you mean '--color'?"},
        {{"--zzz"}, "unknown flag '--zzz'; see `lathe verb --help`"},
        {{"-"}, "unexpected argument '-'; see `lathe verb --help`"},
        {{"--new-tokens", "0"},
         "--new-tokens: expected a whole number of at least 1, got '0'; see `lathe verb --help`"},
        {{"--new-tokens", "0", "--zz"}, "unknown flag '--zz'; see `lathe verb --help`"}})
    EXPECT_EQ(parse(words).mistake, mistake);
  const Parsed help = parse({"--help"});
  EXPECT_FALSE(help.goesOn);
  EXPECT_EQ(help.mistake, "");
  EXPECT_THAT(help.help, HasSubstr("A summary."));
  EXPECT_THAT(help.help, HasSubstr("Usage: lathe verb"));
  EXPECT_THAT(help.help, HasSubstr("Example:\n  lathe verb x"));
}

TEST(Arguments, StagesAreSevenInOrder) {
  EXPECT_EQ(stageNames(), (ArgumentList{"recorded", "canonical", "fused", "sharded", "laid-out",
                                        "lowered", "program"}));
}

// --- NAME=SPEC

std::vector<double> valuesOf(const Array& array) {
  std::vector<double> values;
  for (int64_t i = 0; i < array.size(); ++i) values.push_back(array.at(i));
  return values;
}

TEST(InputSpec, FormsAreSizesADtypeAndValues) {
  auto [name, one] = parseInput("a.b=2x3xf32=-1.5");
  EXPECT_EQ(name, "a.b");
  EXPECT_EQ(one.dtype(), DType::F32);
  EXPECT_EQ(one.shape(), (Shape{2, 3}));
  EXPECT_EQ(valuesOf(one), std::vector<double>(6, -1.5));
  const Array scalar = parseInputSpec("i64=+5", "x");
  EXPECT_EQ(scalar.shape(), Shape{});
  EXPECT_EQ(valuesOf(scalar), (std::vector<double>{5}));
  EXPECT_EQ(valuesOf(parseInputSpec("3xi8=-128,0,127", "x")), (std::vector<double>{-128, 0, 127}));
  EXPECT_EQ(valuesOf(parseInputSpec("3xi4=-8,0,7", "x")), (std::vector<double>{-8, 0, 7}));
  EXPECT_EQ(valuesOf(parseInputSpec("3xu4=15", "x")), std::vector<double>(3, 15));
  EXPECT_EQ(valuesOf(parseInputSpec("4xbool=true,false,1,0", "x")),
            (std::vector<double>{1, 0, 1, 0}));
  EXPECT_EQ(valuesOf(parseInputSpec("2xbool=true", "x")), (std::vector<double>{1, 1}));
  EXPECT_EQ(parseInputSpec("0x4xf32=1", "x").shape(), (Shape{0, 4}));
  EXPECT_EQ(parseInputSpec("1xi64=9007199254740993", "x").as<int64_t>()[0], 9007199254740993);
  EXPECT_EQ(parseInputSpec("2xi64=9007199254740993", "x").as<int64_t>()[1], 9007199254740993);
}

TEST(InputSpec, IntegersHaveTheRangeOfTheirDtype) {
  for (auto [dtype, low, high] : {std::tuple("i64", "-9223372036854775808", "9223372036854775807"),
                                  {"i32", "-2147483648", "2147483647"},
                                  {"i16", "-32768", "32767"},
                                  {"i8", "-128", "127"},
                                  {"u8", "0", "255"},
                                  {"i4", "-8", "7"},
                                  {"u4", "0", "15"},
                                  {"bool", "0", "1"}}) {
    const std::string form = std::string(dtype) + "=";
    EXPECT_NO_THROW(parseInputSpec(form + low, "x")) << dtype;
    EXPECT_NO_THROW(parseInputSpec(form + high, "x")) << dtype;
    const std::string below = low[0] == '-' ? low + std::string("0") : "-1";
    for (const std::string& past : {below, high + std::string("0")}) {
      if (past == "10" && std::string(dtype) != "bool") continue;
      expectError(ErrorCode::InvalidArgument,
                  "--input x: expected a whole number from " + std::string(low) + " to " + high +
                      " for " + dtype + ", got '" + past + "'",
                  [&] { parseInputSpec(form + past, "x"); });
    }
  }
  for (const char* values : {"1,2", "1,2,3,4"})
    expectError(ErrorCode::InvalidArgument, "--input x: expected 1 value or 3 for i32[3], got ",
                [&] { parseInputSpec("3xi32=" + std::string(values), "x"); });
  expectError(ErrorCode::InvalidArgument, "from 0 to 255 for u8, got 'true'",
              [] { parseInputSpec("u8=true", "x"); });
  expectError(ErrorCode::InvalidArgument, "for i4, got '8'", [] { parseInputSpec("i4=8", "x"); });
  expectError(ErrorCode::InvalidArgument, "for u4, got '16'", [] { parseInputSpec("u4=16", "x"); });
  expectError(ErrorCode::InvalidArgument, "for i8, got '-129'",
              [] { parseInputSpec("i8=-129", "x"); });
  for (const std::string text : {"a", "+-5", "++5", "+"})
    expectError(ErrorCode::InvalidArgument,
                "--input x: expected a number for f32, got '" + text + "'",
                [&] { parseInputSpec("f32=" + text, "x"); });
  expectError(ErrorCode::InvalidArgument,
              "--input x: expected a whole number from -8 to 7 for i4, got '+-5'",
              [] { parseInputSpec("i4=+-5", "x"); });
}

TEST(InputSpec, FilesAreReadByTheirEnding) {
  TemporaryFolder folder;
  Array array(DType::F32, {2});
  array.set(0, 3);
  array.set(1, 4);
  saveNpy(folder / "a.npy", array);
  saveSafetensors(folder / "a.safetensors", {{"k", array}, {"other:k", array}});
  EXPECT_EQ(valuesOf(parseInputSpec("@" + (folder / "a.npy"), "x")), (std::vector<double>{3, 4}));
  EXPECT_EQ(valuesOf(parseInputSpec("@" + (folder / "a.safetensors:k"), "x")),
            (std::vector<double>{3, 4}));
  EXPECT_EQ(parseInputSpec("@" + (folder / "a.safetensors:other:k"), "x").size(), 2);
  expectError(ErrorCode::InvalidArgument,
              "--input x: " + (folder / "a.safetensors") + " has no tensor 'no'; it has k, other:k",
              [&] { parseInputSpec("@" + (folder / "a.safetensors:no"), "x"); });
  expectError(ErrorCode::InvalidArgument,
              "--input x: expected @x.npy or @x.safetensors:key, got '@a.safetensors'",
              [] { parseInputSpec("@a.safetensors", "x"); });
}

TEST(InputSpec, MistakesAreToldWithTheForms) {
  const std::string forms =
      "; a SPEC is @x.npy, @x.safetensors:key or a form like 4x8xf32=1.0, 3xi64=1,2,3 or i64=5";
  for (auto [text, why] :
       {std::pair("x", "--input: expected NAME=SPEC, got 'x'"),
        {"=f32=1", "--input: expected NAME=SPEC, got '=f32=1'"},
        {"x=4", "--input x: cannot read '4'"},
        {"x=4x=1", "--input x: expected a dtype such as f32, bf16 or i64, got ''"},
        {"x=ax4xf32=1", "--input x: expected a size of 0 or more, got 'a'"},
        {"x=-1xf32=1", "--input x: expected a size of 0 or more, got '-1'"},
        {"x=+-0xf32=1", "--input x: expected a size of 0 or more, got '+-0'"}})
    expectError(ErrorCode::InvalidArgument, why + forms, [&] { parseInput(text); });
  expectError(ErrorCode::InvalidArgument, "--input x: expected 1 value or 4 for f32[2, 2], got 3",
              [] { parseInput("x=2x2xf32=1,2,3"); });
  expectError(ErrorCode::OutOfMemory, "--input x: f32[1000000000, 1000000] needs 4e+15 bytes, the",
              [] { parseInput("x=1000000000x1000000xf32=1"); });
}

}  // namespace
}  // namespace lathe::cli
