// SPDX-License-Identifier: Apache-2.0
// Headers of GGUF files number for number: types, limits, and what each refusal says.
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/gguf_blocks.h"
#include "tests/unit/gguf_writer.h"

namespace lathe {
namespace {

using Writer = test::GgufWriter;
using test::messageOf;

std::string refusalOf(const Writer& file) {
  return messageOf([&] { file.parse(); });
}

// The numbers and sizes of ggml.h and ggml-common.h.
TEST(GgufTypes, AreGgmls) {
  const struct {
    uint32_t number;
    const char* name;
    int64_t elements;
    size_t bytes;
    std::optional<DType> plain;
    int64_t group;  // 0: not read
    DType dtype = DType::I8;
    bool hasLow = false;
  } types[] = {
      {0, "F32", 1, 4, DType::F32, 0},
      {1, "F16", 1, 2, DType::F16, 0},
      {2, "Q4_0", 32, 18, {}, 32, DType::I4, false},
      {3, "Q4_1", 32, 20, {}, 32, DType::U4, true},
      {6, "Q5_0", 32, 22, {}, 32, DType::I8, false},
      {7, "Q5_1", 32, 24, {}, 32, DType::I8, true},
      {8, "Q8_0", 32, 34, {}, 32, DType::I8, false},
      {9, "Q8_1", 32, 36, {}, 0},
      {10, "Q2_K", 256, 84, {}, 16, DType::U4, true},
      {11, "Q3_K", 256, 110, {}, 16, DType::I4, false},
      {12, "Q4_K", 256, 144, {}, 32, DType::U4, true},
      {13, "Q5_K", 256, 176, {}, 32, DType::I8, true},
      {14, "Q6_K", 256, 210, {}, 16, DType::I8, false},
      {15, "Q8_K", 256, 292, {}, 0},
      {16, "IQ2_XXS", 256, 66, {}, 0},
      {17, "IQ2_XS", 256, 74, {}, 0},
      {18, "IQ3_XXS", 256, 98, {}, 0},
      {19, "IQ1_S", 256, 50, {}, 0},
      {20, "IQ4_NL", 32, 18, {}, 0},
      {21, "IQ3_S", 256, 110, {}, 0},
      {22, "IQ2_S", 256, 82, {}, 0},
      {23, "IQ4_XS", 256, 136, {}, 0},
      {24, "I8", 1, 1, DType::I8, 0},
      {25, "I16", 1, 2, DType::I16, 0},
      {26, "I32", 1, 4, DType::I32, 0},
      {27, "I64", 1, 8, DType::I64, 0},
      {28, "F64", 1, 8, DType::F64, 0},
      {29, "IQ1_M", 256, 56, {}, 0},
      {30, "BF16", 1, 2, DType::BF16, 0},
      {34, "TQ1_0", 256, 54, {}, 0},
      {35, "TQ2_0", 256, 66, {}, 0},
      {39, "MXFP4", 32, 17, {}, 0},
      {40, "NVFP4", 64, 36, {}, 0},
      {41, "Q1_0", 128, 18, {}, 0},
  };
  std::set<uint32_t> known;
  for (const auto& t : types) {
    SCOPED_TRACE(t.name);
    known.insert(t.number);
    const GgufTensorType* type = findGgufType(t.number);
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(type->number, t.number);
    EXPECT_EQ(type->name, t.name);
    EXPECT_EQ(type->elements, t.elements);
    EXPECT_EQ(type->bytes, t.bytes);
    EXPECT_EQ(type->plain, t.plain);
    ASSERT_EQ(type->blocks != nullptr, t.group > 0);
    if (!type->blocks) continue;
    EXPECT_EQ(type->blocks->group, t.group);
    EXPECT_EQ(type->blocks->dtype, t.dtype);
    EXPECT_EQ(type->blocks->hasLow, t.hasLow);
  }
  for (uint32_t number = 0; number < 64; ++number)
    EXPECT_EQ(findGgufType(number) != nullptr, known.contains(number)) << number;
}

// Values are views of the file's bytes.
struct Parsed {
  explicit Parsed(Writer written)
      : file(std::make_unique<Writer>(std::move(written))), header(file->parse()) {}
  std::unique_ptr<Writer> file;
  GgufHeader header;
};

// A header of one key.
template <class T>
Parsed oneKey(GgufType type, T value) {
  return Parsed(Writer().begin(0, 1).key("k", type).number(value));
}
template <class T>
Parsed oneList(GgufType type, std::initializer_list<T> values) {
  Writer file;
  file.begin(0, 1).key("k", GgufType::Array).number(uint32_t(type)).number<uint64_t>(values.size());
  for (T value : values) file.number(value);
  return Parsed(file);
}
const GgufValue& valueOf(const Parsed& parsed) { return parsed.header.metadata.at("k"); }

constexpr int64_t kLeast = INT64_MIN, kMost = INT64_MAX;

// Every type holds what its name says, at both ends of its range.
TEST(GgufValues, IntegersOfEveryTypeAreReadWhole) {
  auto both = [](GgufType type, auto low, auto high, const std::string& lowText,
                 const std::string& highText) {
    SCOPED_TRACE(int(type));
    for (auto [value, text] : {std::pair(low, lowText), std::pair(high, highText)}) {
      const Parsed header = oneKey(type, value);
      EXPECT_EQ(valueOf(header).type(), type);
      EXPECT_EQ(valueOf(header).asInt(kLeast, kMost), int64_t(value));
      EXPECT_EQ(valueOf(header).asDouble(), double(value));
      EXPECT_EQ(valueOf(header).show(), text);
    }
    const Parsed list = oneList(type, {low, high, low});
    EXPECT_EQ(valueOf(list).size(), 3u);
    EXPECT_EQ(valueOf(list).asInts(kLeast, kMost),
              (std::vector<int64_t>{int64_t(low), int64_t(high), int64_t(low)}));
    EXPECT_EQ(valueOf(list).asDoubles(),
              (std::vector<double>{double(low), double(high), double(low)}));
  };
  both(GgufType::U8, uint8_t(0), uint8_t(255), "0", "255");
  both(GgufType::I8, int8_t(-128), int8_t(127), "-128", "127");
  both(GgufType::U16, uint16_t(0), uint16_t(65535), "0", "65535");
  both(GgufType::I16, int16_t(-32768), int16_t(32767), "-32768", "32767");
  both(GgufType::U32, uint32_t(0), uint32_t(4294967295), "0", "4294967295");
  both(GgufType::I32, INT32_MIN, INT32_MAX, "-2147483648", "2147483647");
  both(GgufType::I64, int64_t(-1) << 40, int64_t(1) << 40, "-1099511627776", "1099511627776");
  both(GgufType::U64, uint64_t(0), uint64_t(1) << 40, "0", "1099511627776");
  EXPECT_EQ(valueOf(oneKey(GgufType::U64, ~uint64_t(0))).asInt(kLeast, kMost), kMost);
  EXPECT_EQ(valueOf(oneKey(GgufType::I64, kLeast)).asInt(kLeast, kMost), kLeast);
}

TEST(GgufValues, RangesHoldTheirEnds) {
  const Parsed header = oneKey(GgufType::I16, int16_t(-7));
  EXPECT_EQ(valueOf(header).asInt(-7, -7), -7);
  EXPECT_EQ(messageOf([&] { valueOf(header).asInt(-6, 9); }),
            "x.gguf: k: expected an integer from -6 to 9, got -7");
  EXPECT_EQ(messageOf([&] { valueOf(header).asInt(-9, -8); }),
            "x.gguf: k: expected an integer from -9 to -8, got -7");
  const Parsed list = oneList<uint8_t>(GgufType::U8, {3, 5});
  EXPECT_EQ(valueOf(list).asInts(3, 5), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(messageOf([&] { valueOf(list).asInts(4, 5); }),
            "x.gguf: k: expected integers from 4 to 5, element 0 is 3");
  EXPECT_EQ(messageOf([&] { valueOf(list).asInts(3, 4); }),
            "x.gguf: k: expected integers from 3 to 4, element 1 is 5");
}

TEST(GgufValues, FloatsAreFinite) {
  EXPECT_EQ(valueOf(oneKey(GgufType::F32, 1.5f)).asDouble(), 1.5);
  EXPECT_EQ(valueOf(oneKey(GgufType::F64, 0.1)).asDouble(), 0.1);
  EXPECT_EQ(valueOf(oneKey(GgufType::F32, 1.5f)).show(), "1.5");
  const float strange = std::numeric_limits<float>::infinity();
  const Parsed alone = oneKey(GgufType::F32, strange);
  EXPECT_EQ(messageOf([&] { valueOf(alone).asDouble(); }),
            "x.gguf: k: expected a finite number, got inf");
  const Parsed list = oneList<double>(GgufType::F64, {0.25, -HUGE_VAL});
  EXPECT_EQ(messageOf([&] { valueOf(list).asDoubles(); }),
            "x.gguf: k: expected finite numbers, element 1 is -inf");
  EXPECT_EQ(valueOf(oneList<float>(GgufType::F32, {0.25f, 2})).asDoubles(),
            (std::vector<double>{0.25, 2}));
}

// Of every kind asked as every other: what it is told to be.
TEST(GgufValues, OtherKindsAreNamed) {
  const Parsed flag = oneKey<uint8_t>(GgufType::Bool, 1), real = oneKey(GgufType::F32, 2.5f),
               text(Writer().begin(0, 1).key("k", GgufType::String).text("ab")),
               list = oneList<uint16_t>(GgufType::U16, {1, 2}),
               flags = oneList<uint8_t>(GgufType::Bool, {1, 0});
  EXPECT_TRUE(valueOf(flag).asBool());
  EXPECT_FALSE(valueOf(oneKey<uint8_t>(GgufType::Bool, 0)).asBool());
  EXPECT_EQ(valueOf(oneKey<uint8_t>(GgufType::Bool, 0)).show(), "false");
  EXPECT_EQ(valueOf(text).asString(), "ab");
  EXPECT_TRUE(valueOf(text).isString());
  EXPECT_EQ(valueOf(flags).size(), 2u);
  const std::string k = "x.gguf: k: expected ";
  auto says = [&](const Parsed& header, auto read, const std::string& rest) {
    EXPECT_EQ(messageOf([&] { read(valueOf(header)); }), k + rest);
  };
  auto asInt = [](const GgufValue& v) { v.asInt(0, 9); };
  says(flag, asInt, "an integer from 0 to 9, got true");
  says(real, asInt, "an integer from 0 to 9, got 2.5");
  says(text, asInt, "an integer from 0 to 9, got \"ab\"");
  says(list, asInt, "an integer from 0 to 9, got an array of 2 values of u16");
  auto asDouble = [](const GgufValue& v) { v.asDouble(); };
  says(flag, asDouble, "a finite number, got true");
  says(text, asDouble, "a finite number, got \"ab\"");
  says(real, [](const GgufValue& v) { v.asBool(); }, "true or false, got 2.5");
  says(flag, [](const GgufValue& v) { v.asString(); }, "a text, got true");
  says(text, [](const GgufValue& v) { v.size(); }, "an array, got \"ab\"");
  says(
      list, [](const GgufValue& v) { v.asStrings(); },
      "an array of texts, got an array of 2 values of u16");
  says(text, [](const GgufValue& v) { v.asStrings(); }, "an array of texts, got \"ab\"");
  says(
      flags, [](const GgufValue& v) { v.asInts(0, 1); },
      "an array of integers, got an array of 2 values of bool");
  says(
      oneList<float>(GgufType::F32, {1}), [](const GgufValue& v) { v.asInts(0, 1); },
      "an array of integers, got an array of 1 values of f32");
  says(
      flags, [](const GgufValue& v) { v.asDoubles(); },
      "an array of numbers, got an array of 2 values of bool");
  const std::pair<GgufType, const char*> names[] = {
      {GgufType::U8, "u8"},   {GgufType::I8, "i8"},     {GgufType::U16, "u16"},
      {GgufType::I16, "i16"}, {GgufType::U32, "u32"},   {GgufType::I32, "i32"},
      {GgufType::F32, "f32"}, {GgufType::U64, "u64"},   {GgufType::I64, "i64"},
      {GgufType::F64, "f64"}, {GgufType::Bool, "bool"}, {GgufType::String, "string"}};
  for (const auto& [type, name] : names)
    EXPECT_EQ(valueOf(oneList<uint8_t>(type, {})).show(),
              "an array of 0 values of " + std::string(name));
  EXPECT_EQ(messageOf([&] { throw valueOf(flag).unsupported("so"); }), "x.gguf: k: so");
  test::expectError(ErrorCode::Unsupported, "so", [&] { throw valueOf(flag).unsupported("so"); });
}

// Values that follow show that each was as long as it was said to be.
TEST(GgufHeaders, ValuesOfEveryTypeAreAsLongAsTheyAre) {
  Writer file;
  file.begin(0, 14);
  file.key("u8", GgufType::U8).number<uint8_t>(1).key("i8", GgufType::I8).number<int8_t>(-2);
  file.key("u16", GgufType::U16).number<uint16_t>(3).key("i16", GgufType::I16).number<int16_t>(-4);
  file.key("u32", GgufType::U32).number<uint32_t>(5).key("i32", GgufType::I32).number<int32_t>(-6);
  file.key("f32", GgufType::F32).number(7.f).key("flag", GgufType::Bool).number<uint8_t>(1);
  file.key("text", GgufType::String).text("nine").key("u64", GgufType::U64).number<uint64_t>(10);
  file.key("i64", GgufType::I64).number<int64_t>(-11).key("f64", GgufType::F64).number(12.);
  file.key("texts", GgufType::Array).number(uint32_t(GgufType::String)).number<uint64_t>(3);
  file.text("").text("a").text("bc");
  file.key("flags", GgufType::Array).number(uint32_t(GgufType::Bool)).number<uint64_t>(2);
  file.number<uint8_t>(0).number<uint8_t>(1);
  const GgufHeader header = file.parse();
  const double numbers[] = {1, -2, 3, -4, 5, -6, 7, 10, -11, 12};
  size_t i = 0;
  for (const char* key : {"u8", "i8", "u16", "i16", "u32", "i32", "f32", "u64", "i64", "f64"}) {
    EXPECT_EQ(header.metadata.at(key).asDouble(), numbers[i++]) << key;
    EXPECT_EQ(header.metadata.at(key).key(), key);
  }
  EXPECT_EQ(header.metadata.at("text").asString(), "nine");
  EXPECT_EQ(header.metadata.at("texts").asStrings(),
            (std::vector<std::string_view>{"", "a", "bc"}));
  EXPECT_EQ(header.alignment, 32u);
  EXPECT_EQ(header.version, 3u);
}

TEST(GgufHeaders, VersionsAreTwoAndThree) {
  for (uint32_t version : {2, 3}) EXPECT_EQ(Writer().begin(0, 0, version).parse().version, version);
  for (uint32_t version : {0, 1, 4})
    EXPECT_EQ(refusalOf(Writer().begin(0, 0, version)),
              "x.gguf: the header: version " + std::to_string(version) + ", expected 2 or 3");
  EXPECT_EQ(refusalOf(Writer().begin(0, 0, 2u << 24)),
            "x.gguf: the header: the file is big-endian, expected little-endian");
  EXPECT_EQ(messageOf([] { parseGgufHeader({}, "x.gguf"); }),
            "x.gguf: the header: expected the file to begin with GGUF; is this a GGUF file?");
  const std::string other = "GGUX";
  EXPECT_EQ(
      messageOf([&] { parseGgufHeader(std::as_bytes(std::span(other.data(), 4)), "x.gguf"); }),
      "x.gguf: the header: expected the file to begin with GGUF; is this a GGUF file?");
}

// One more than each limit is refused by that limit, the limit itself is not.
TEST(GgufHeaders, LimitsHoldThemselves) {
  auto header = [](const std::string& rest) { return "x.gguf: the header: " + rest; };
  EXPECT_EQ(refusalOf(Writer().begin((1 << 20) + 1, 0)),
            header("1048577 tensors, expected at most 1048576"));
  EXPECT_EQ(refusalOf(Writer().begin(1 << 20, 0)),
            "x.gguf: tensor 0: a number of 8 bytes at byte 24 is past the end of a file of 24; was "
            "the download cut short?");
  EXPECT_EQ(refusalOf(Writer().begin(0, 65537)), header("65537 keys, expected at most 65536"));
  EXPECT_EQ(refusalOf(Writer().begin(0, 65536)),
            "x.gguf: key 0 of the metadata: a number of 8 bytes at byte 24 is past the end of a "
            "file of 24; was the download cut short?");
  for (size_t size : {65535, 65536}) {
    Writer file;
    file.begin(0, 1).key(std::string(size, 'k'), GgufType::U8).number<uint8_t>(1);
    EXPECT_EQ(refusalOf(file), size == 65535 ? ""
                                             : "x.gguf: key 0 of the metadata: its name of 65536 "
                                               "bytes, expected at most 65535");
  }
  for (size_t size : {1024, 1025}) {
    Writer file;
    file.begin(1, 0).tensor(std::string(size, 't'), {8}, 0, 0).data(32);
    EXPECT_EQ(
        refusalOf(file),
        size == 1024 ? "" : "x.gguf: tensor 0: its name of 1025 bytes, expected at most 1024");
  }
  EXPECT_EQ(refusalOf(Writer().begin(0, 1).key("", GgufType::U8)),
            "x.gguf: key 0 of the metadata: its name is empty");
  EXPECT_EQ(refusalOf(Writer().begin(1, 0).tensor("", {8}, 0, 0)),
            "x.gguf: tensor 0: its name is empty or holds a zero byte");
  EXPECT_EQ(refusalOf(Writer().begin(1, 0).tensor(std::string_view("a\0b", 3), {8}, 0, 0)),
            "x.gguf: tensor 0: its name is empty or holds a zero byte");
  EXPECT_EQ(refusalOf(Writer().begin(0, 1).text("a").number<uint32_t>(13)),
            "x.gguf: \"a\": type 13 is none of the format's, which are 0 to 12");
  EXPECT_EQ(refusalOf(Writer().begin(0, 1).key("a", GgufType::Array).number<uint32_t>(14)),
            "x.gguf: \"a\": type of elements 14 is none of the format's, which are 0 to 12");
  EXPECT_EQ(refusalOf(Writer().begin(0, 1).key("a", GgufType::String).text("ab\xff")),
            "x.gguf: \"a\": a text holds invalid UTF-8 at its byte 2");
  EXPECT_EQ(refusalOf(Writer().begin(0, 1).key("a", GgufType::Bool).number<uint8_t>(2)),
            "x.gguf: \"a\": expected a bool of 0 or 1, got 2");
}

// Counts of arrays are held against what is left of the file, element by element.
TEST(GgufHeaders, ArraysEndWithTheFile) {
  const std::pair<GgufType, size_t> sizes[] = {
      {GgufType::U8, 1},  {GgufType::I8, 1},  {GgufType::Bool, 1}, {GgufType::U16, 2},
      {GgufType::I16, 2}, {GgufType::U32, 4}, {GgufType::I32, 4},  {GgufType::F32, 4},
      {GgufType::U64, 8}, {GgufType::I64, 8}, {GgufType::F64, 8},  {GgufType::String, 8}};
  for (const auto& [type, size] : sizes)
    for (size_t missing : {0, 1}) {
      Writer file;
      file.begin(0, 1).key("a", GgufType::Array).number(uint32_t(type)).number<uint64_t>(3);
      for (size_t i = missing; i < 3 * size; ++i) file.number<uint8_t>(0);
      EXPECT_EQ(refusalOf(file),
                missing ? "x.gguf: \"a\": an array of 3 values is past the end of a file of " +
                              std::to_string(file.bytes().size()) +
                              " bytes; was the download cut short?"
                        : "")
          << int(type);
    }
}

TEST(GgufHeaders, AlignmentPlacesTensors) {
  for (uint32_t alignment : {8u, 16u, 64u, 1u << 20}) {
    Writer file;
    file.begin(2, 1).key("general.alignment", GgufType::U32).number(alignment);
    file.tensor("t", {1}, 0, 0).tensor("u", {3}, 0, alignment);
    const size_t table = file.bytes().size();
    const size_t start = (table + alignment - 1) / alignment * alignment;
    std::string bytes = file.bytes();
    bytes.resize(start + alignment + 12);
    const GgufHeader header = parseGgufHeader(std::as_bytes(std::span(bytes)), "x.gguf");
    EXPECT_EQ(header.alignment, alignment);
    EXPECT_EQ(header.tensors[0].offset, start);
    EXPECT_EQ(header.tensors[0].bytes, 4u);
    EXPECT_EQ(header.tensors[1].offset, start + alignment);
    EXPECT_EQ(header.tensors[1].bytes, 12u);
    bytes.pop_back();
    EXPECT_EQ(messageOf([&] { parseGgufHeader(std::as_bytes(std::span(bytes)), "x.gguf"); }),
              "x.gguf: tensor \"u\": 12 bytes at byte " + std::to_string(start + alignment) +
                  " are past the end of a file of " + std::to_string(bytes.size()) +
                  " bytes; was the download cut short?");
  }
  auto refusal = [](uint32_t alignment) {
    Writer file;
    file.begin(0, 1).key("general.alignment", GgufType::U32).number(alignment);
    return refusalOf(file);
  };
  const std::string field = "x.gguf: general.alignment: expected ";
  EXPECT_EQ(refusal(0), field + "an integer from 1 to 1048576, got 0");
  EXPECT_EQ(refusal(1 << 21), field + "an integer from 1 to 1048576, got 2097152");
  EXPECT_EQ(refusal(1), field + "a power of two of at least 8, got 1");
  EXPECT_EQ(refusal(24), field + "a power of two of at least 8, got 24");
}

// Tensors may stand in the table in another order than their bytes.
TEST(GgufHeaders, TensorsStandInTheOrderOfTheirBytes) {
  Writer file;
  file.begin(3, 0).tensor("c", {9}, 0, 128).tensor("a", {5, 2, 3}, 1, 0).tensor("b", {32}, 8, 64);
  file.data(164);
  const GgufHeader header = file.parse();
  ASSERT_EQ(header.tensors.size(), 3u);
  const char* names[] = {"a", "b", "c"};
  const size_t offsets[] = {0, 64, 128}, bytes[] = {60, 34, 36};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(header.tensors[i].name, names[i]);
    EXPECT_EQ(header.tensors[i].offset - header.tensors[0].offset, offsets[i]);
    EXPECT_EQ(header.tensors[i].bytes, bytes[i]);
  }
  EXPECT_EQ(header.tensors[0].offset % 32, 0u);
  EXPECT_EQ(header.tensors[0].shape, (Shape{3, 2, 5}));
}

TEST(GgufHeaders, TensorsAreRefusedInWholeSentences) {
  auto refusal = [](std::initializer_list<uint64_t> dims, uint32_t type, uint64_t offset) {
    return refusalOf(Writer().begin(1, 0).tensor("t", dims, type, offset).data(256));
  };
  const std::string t = "x.gguf: tensor \"t\": ";
  EXPECT_EQ(refusalOf(Writer().begin(1, 0).tensor("t", {2, 2, 2, 2}, 0, 0).data(64)), "");
  EXPECT_EQ(refusal({1, 1, 1, 1, 1}, 0, 0), t + "expected 1 to 4 dims, got 5");
  EXPECT_EQ(refusal({4, 0}, 0, 0), t + "dim 1 is 0");
  EXPECT_EQ(refusal({uint64_t(1) << 63}, 0, 0), t + "dim 0 is 9223372036854775808");
  EXPECT_EQ(refusal({4}, 4, 0),
            t + "unknown type 4, expected F32, F16, BF16, F64, I8, I16, I32, I64, Q4_0, Q4_1, "
                "Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K and Q6_K");
  EXPECT_EQ(refusal({2, 33}, 8, 0),
            t + "rows of 2 elements are no whole blocks of Q8_0, which have 32");
  EXPECT_EQ(refusal({uint64_t(1) << 61}, 0, 0), t + "9223372036854775808 bytes at byte 64 are past "
                                                    "the end of a file of 320 bytes; was the "
                                                    "download cut short?");
  EXPECT_EQ(refusal({uint64_t(1) << 62}, 0, 0), t + "the product of its dims overflows");
  EXPECT_EQ(refusal({1, uint64_t(1) << 62, 2}, 24, 0), t + "the product of its dims overflows");
  EXPECT_EQ(refusal({4}, 0, 16), t + "offset 16 is no multiple of the alignment 32");
  EXPECT_EQ(refusal({4}, 0, 32),
            t + "it starts at byte 32 of the data, expected 0: there is a hole");
  EXPECT_EQ(
      refusalOf(Writer().begin(2, 0).tensor("t", {16}, 0, 0).tensor("u", {16}, 0, 32).data(128)),
      "x.gguf: tensor \"u\": it starts at byte 32 of the data, expected 64: there is an "
      "overlap");
}

TEST(GgufFiles, SayWhatTheyLack) {
  test::TemporaryFolder folder;
  Writer writer;
  writer.begin(1, 1).key("n", GgufType::U8).number<uint8_t>(7).tensor("t", {2}, 0, 0).data(8);
  std::string bytes = writer.bytes();
  const float values[] = {1.5f, -2};
  bytes.replace(bytes.size() - 8, 8, reinterpret_cast<const char*>(values), 8);
  const std::string path = folder.write("m.gguf", bytes);
  const GgufFile file = GgufFile::open(path);
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(file.at("n").asInt(0, 9), 7);
  EXPECT_EQ(file.find("m"), nullptr);
  EXPECT_EQ(messageOf([&] { file.at("m"); }), path + ": m: the key is missing");
  EXPECT_EQ(file.tensor("u"), nullptr);
  ASSERT_NE(file.tensor("t"), nullptr);
  ASSERT_EQ(file.bytes(*file.tensor("t")).size(), 8u);
  EXPECT_EQ(std::memcmp(file.bytes(*file.tensor("t")).data(), values, 8), 0);
}

}  // namespace
}  // namespace lathe
