// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/safetensors.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "runtime/mapped_file.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::messageOf;
using test::TemporaryFolder;

constexpr ErrorCode kFile = ErrorCode::InvalidFile;

std::string withLength(uint64_t length, const std::string& rest) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + rest;
}
std::string file(const std::string& header, size_t dataBytes) {
  return withLength(header.size(), header + std::string(dataBytes, '\0'));
}
SafetensorsHeader parse(const std::string& bytes) {
  return parseSafetensorsHeader(asBytes(bytes), "x.safetensors");
}

struct BadFile {
  const char* name;
  std::string bytes;
  const char* message;
};
void PrintTo(const BadFile& b, std::ostream* out) { *out << b.name; }

class BadSafetensors : public testing::TestWithParam<BadFile> {};

TEST_P(BadSafetensors, IsRefusedWithItsRule) {
  expectError(kFile, GetParam().message, [] { parse(GetParam().bytes); });
  expectError(kFile, "x.safetensors: ", [] { parse(GetParam().bytes); });
}

// One F32 tensor of 4 bytes whose parts a case replaces.
std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}
const std::string kF32 = "\"F32\"";

std::vector<BadFile> badFiles() {
  std::string good = tensor(kF32, "[1]", "[0,4]");
  std::string manyDims = "[1";
  for (int i = 1; i < 10'000; ++i) manyDims += ",1";
  manyDims += "]";
  return {
      {"Empty", "", "expected at least 8 bytes of header length, got a file of 0"},
      {"SevenBytes", std::string(7, '\0'), "got a file of 7"},
      {"LengthZero", withLength(0, ""), "the header is empty"},
      {"LengthOne", withLength(1, "{"), "not valid JSON"},
      {"LengthPastEnd", withLength(100, "{}"), "header length 100 is past the end of a file of 10"},
      {"LengthAboveCap", withLength(100'000'001, "{}"), "above the format's limit of 100000000"},
      {"LengthSigned", withLength(uint64_t(1) << 63, "{}"), "header length 9223372036854775808"},
      {"LengthMax", withLength(~uint64_t(0), "{}"), "header length 18446744073709551615"},
      {"NotUtf8", file("{\"\xff\":1}", 0), "not valid JSON"},
      {"ByteOrderMark", file("\xef\xbb\xbf{}", 0), "starts with byte 0xef, expected '{'"},
      {"List", file("[]", 0), "starts with byte 0x5b, expected '{'"},
      {"LeadingSpace", file(" {}", 0), "starts with byte 0x20, expected '{'"},
      {"TrailingText", file("{}x", 0), "not valid JSON at byte 3"},
      {"TrailingNul", file(std::string("{}\0", 3), 0), "not valid JSON at byte 3"},
      {"DuplicateTensor", file(good.substr(0, good.size() - 1) + "," + good.substr(1), 4),
       "the key \"t\" appears twice"},
      {"DuplicateField",
       file(R"({"t":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1),
       "the key \"dtype\" appears twice"},
      {"DuplicateMetadata", file(R"({"__metadata__":{"a":"1","a":"2"}})", 0),
       "the key \"a\" appears twice"},
      {"MetadataNumber", file(R"({"__metadata__":{"a":1}})", 0),
       "__metadata__.a: expected a string, got 1"},
      {"MetadataList", file(R"({"__metadata__":[]})", 0), "expected an object of strings"},
      {"DeepNesting", file("{\"a\":" + std::string(100'000, '['), 0),
       "nested deeper than 64 levels"},
      {"TensorIsNumber", file(R"({"t":1})", 0), "t: expected a tensor's dtype, shape"},
      {"UnknownDtype", file(tensor("\"F31\"", "[1]", "[0,4]"), 4),
       "t.dtype: unknown dtype \"F31\""},
      {"DtypeNumber", file(tensor("7", "[1]", "[0,4]"), 4), "t.dtype: expected a string, got 7"},
      {"MissingDtype", file(R"({"t":{"shape":[1],"data_offsets":[0,4]}})", 4),
       "t: the key \"dtype\" is missing"},
      {"MissingShape", file(R"({"t":{"dtype":"U8","data_offsets":[0,4]}})", 4),
       "t: the key \"shape\" is missing"},
      {"MissingOffsets", file(R"({"t":{"dtype":"U8","shape":[4]}})", 4),
       "t: the key \"data_offsets\" is missing"},
      {"ExtraField", file(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1),
       "unknown field \"x\""},
      {"ShapeNumber", file(tensor(kF32, "1", "[0,4]"), 4), "t.shape: expected an array of dims"},
      {"NegativeDim", file(tensor(kF32, "[-1]", "[0,4]"), 4),
       "t.shape[0]: expected an integer from 0"},
      {"FloatDim", file(tensor(kF32, "[1.0]", "[0,4]"), 4),
       "t.shape[0]: expected an integer, got 1"},
      {"Dim2To64", file(tensor(kF32, "[18446744073709551616]", "[0,4]"), 4), "expected an integer"},
      {"Dim2To63", file(tensor(kF32, "[9223372036854775808]", "[0,4]"), 4), "t.shape[0]: expected"},
      {"ProductOverflow", file(tensor(kF32, "[4294967296,4294967296]", "[0,4]"), 4),
       "t.shape: the product of the dims and 32 bits overflows"},
      {"BitsOverflow", file(tensor(kF32, "[1152921504606846976]", "[0,4]"), 4),
       "the product of the dims and 32 bits overflows"},
      {"Rank10000", file(tensor("\"U8\"", manyDims, "[0,1]"), 1), "at most 64 dims, got 10000"},
      {"HalfBytes", file(tensor("\"F4\"", "[3]", "[0,1]"), 1), "do not fill whole bytes: 12 bits"},
      {"OneOffset", file(tensor(kF32, "[1]", "[0]"), 4), "expected [begin, end], got 1 elements"},
      {"OffsetsObject", file(tensor(kF32, "[1]", "{}"), 4), "expected [begin, end], got an object"},
      {"NegativeOffset", file(tensor(kF32, "[1]", "[-4,0]"), 4), "t.data_offsets[0]: expected"},
      {"BeginAfterEnd", file(tensor(kF32, "[1]", "[4,0]"), 4), "begin 4 is after end 0"},
      {"EndPastData", file(tensor(kF32, "[2]", "[0,8]"), 4), "end 8 is past the 4 bytes of data"},
      {"EndMax", file(tensor(kF32, "[1]", "[18446744073709551612,18446744073709551615]"), 4),
       "is past the 4 bytes of data"},
      {"SizeMismatch", file(tensor(kF32, "[2]", "[0,4]"), 4), "needs 8 bytes, the offsets span 4"},
      {"Overlap",
       file(
           R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
           6),
       "tensors \"a\" and \"b\" overlap"},
      {"Hole",
       file(
           R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})",
           6),
       "a hole of 2 bytes before tensor \"b\""},
      {"HoleAtStart", file(tensor(kF32, "[1]", "[4,8]"), 8),
       "a hole of 4 bytes before tensor \"t\""},
      {"BytesAfterLast", file(good, 5), "1 bytes after the last tensor"},
      {"NoTensorsButData", file("{}", 3), "3 bytes after the last tensor"},
      {"NulInName", file(R"({"a\u0000b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
       "a tensor's name contains a NUL"},
  };
}
INSTANTIATE_TEST_SUITE_P(Files, BadSafetensors, testing::ValuesIn(badFiles()),
                         [](auto& info) { return std::string(info.param.name); });

TEST(Safetensors, AcceptsScalarsAndEmptyTensors) {
  SafetensorsHeader h = parse(file(
      R"({"e":{"dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[0,0]},"s":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}   )",
      1));
  ASSERT_EQ(h.tensors.size(), 2u);
  EXPECT_EQ(h.tensors[0].name, "e");
  EXPECT_EQ(h.tensors[0].bytes, 0u);
  EXPECT_TRUE(h.tensors[1].shape.empty());
}

// The order in the header says nothing, of tensors that share their place with empty ones neither.
TEST(Safetensors, AcceptsEmptyTensorsAtEveryPlaceInEveryOrder) {
  const struct {
    const char* name;
    size_t begin, end;
  } placed[] = {{"a", 0, 4}, {"b", 4, 6}, {"front", 0, 0}, {"between", 4, 4}, {"last", 6, 6}};
  std::vector<size_t> order{0, 1, 2, 3, 4};
  do {
    std::string header;
    for (size_t i : order)
      header += (header.empty() ? "{\"" : ",\"") + std::string(placed[i].name) +
                R"(":{"dtype":"U8","shape":[)" + std::to_string(placed[i].end - placed[i].begin) +
                R"(],"data_offsets":[)" + std::to_string(placed[i].begin) + "," +
                std::to_string(placed[i].end) + "]}";
    header += "}";
    SafetensorsHeader h;
    ASSERT_NO_THROW(h = parse(file(header, 6))) << header;
    ASSERT_EQ(h.tensors.size(), 5u);
    for (const SafetensorsEntry& e : h.tensors)
      for (const auto& p : placed)
        if (e.name == p.name) {
          EXPECT_EQ(e.offset, h.dataStart + p.begin) << header << " " << p.name;
          EXPECT_EQ(e.bytes, p.end - p.begin) << header << " " << p.name;
        }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Safetensors, AcceptsAFileWithoutTensors) { EXPECT_TRUE(parse(file("{}", 0)).tensors.empty()); }

TEST(Safetensors, AcceptsOddNamesAsTheyAre) {
  std::string name(1 << 20, 'n');
  std::string header = R"({"../x\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},")" + name +
                       R"(":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  SafetensorsHeader h = parse(file(header, 2));
  EXPECT_EQ(h.tensors[0].name, "../x\n");
  EXPECT_EQ(h.tensors[1].name, name);
}

TEST(Safetensors, ReadsAHundredThousandTensors) {
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i)
    header += (i ? ",\"" : "\"") + std::to_string(i) +
              R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" + std::to_string(i) + "," +
              std::to_string(i + 1) + "]}";
  EXPECT_EQ(parse(file(header + "}", 100'000)).tensors.size(), 100'000u);
}

TEST(Safetensors, WritesWhatItReads) {
  TemporaryFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  std::map<std::string, Array> tensors;
  tensors["f"] = Array::fromFloats(std::vector<float>{1.5f, nan, -inf, -0.0f}, {2, 2});
  tensors["i"] = Array::fromInts(std::vector<int64_t>{-7}, {});
  tensors["bf"] = tensors["f"].to(DType::BF16);
  tensors["flag \"quoted\""] = Array(DType::Bool, {3});
  tensors["none"] = Array(DType::F64, {0, 5});
  saveSafetensors(folder / "a.safetensors", tensors, {{"format", "pt"}, {"k\n", "\u00e9"}});
  SafetensorsFile f = SafetensorsFile::open(folder / "a.safetensors");
  EXPECT_EQ(f.metadata().at("k\n"), "\u00e9");
  ASSERT_EQ(f.tensors().size(), tensors.size());
  // Widest elements first: each lies at a multiple of its size.
  for (const SafetensorsEntry& e : f.tensors())
    EXPECT_EQ(e.offset % sizeOf(*e.dtype), 0u) << e.name;
  for (auto& [name, array] : tensors) {
    Array got = f.array(name);
    EXPECT_EQ(got.dtype(), array.dtype()) << name;
    EXPECT_EQ(got.shape(), array.shape()) << name;
    if (array.bytes() > 0) {
      EXPECT_EQ(std::memcmp(got.data(), array.data(), array.bytes()), 0) << name;
    }
  }
}

TEST(Safetensors, DataBeginAtAMultipleOf64) {
  for (size_t length = 1; length <= 70; ++length) {
    const std::string header =
        makeSafetensorsHeader({{std::string(length, 'n'), "U8", DType::U8, {1}, 0, 1}}, {});
    EXPECT_EQ(header.size() % 64, 0u) << length;
    uint64_t told;
    std::memcpy(&told, header.data(), sizeof told);
    EXPECT_EQ(told, header.size() - sizeof told) << length;
  }
}

TEST(Safetensors, ArraysOutliveTheFileAndWritesStayPrivate) {
  TemporaryFolder folder;
  saveSafetensors(folder / "a.safetensors",
                  {{"x", Array::fromFloats(std::vector<float>{1, 2}, {2})}});
  Array x = SafetensorsFile::open(folder / "a.safetensors").array("x");
  x.set(0, 5);
  EXPECT_EQ(x.at(0), 5);
  EXPECT_EQ(SafetensorsFile::open(folder / "a.safetensors").array("x").at(0), 1);
}

TEST(Safetensors, CopiesMisalignedData) {
  TemporaryFolder folder;
  std::string header =
      R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"f":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  std::string bytes = file(header, 5);
  const float value = 2.5f;
  std::memcpy(bytes.data() + bytes.size() - 4, &value, 4);
  SafetensorsFile f = SafetensorsFile::open(folder.write("a.safetensors", bytes));
  Array a = f.array("f");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 4, 0u);
  EXPECT_EQ(a.at(0), 2.5);
}

TEST(Safetensors, ListsButDoesNotReadOtherDtypes) {
  TemporaryFolder folder;
  SafetensorsFile f = SafetensorsFile::open(
      folder.write("a.safetensors", file(tensor("\"F8_E4M3\"", "[4]", "[0,4]"), 4)));
  EXPECT_EQ(f.tensors()[0].dtypeName, "F8_E4M3");
  EXPECT_EQ(f.bytes("t").size(), 4u);
  expectError(ErrorCode::Unsupported, "tensor \"t\" has dtype F8_E4M3", [&] { f.array("t"); });
  expectError(ErrorCode::InvalidArgument, "no tensor named \"u\"", [&] { f.array("u"); });
}

TEST(Safetensors, RefusesWhatIsNoRegularFile) {
  TemporaryFolder folder;
  expectError(kFile, "expected a regular file, got a directory",
              [&] { SafetensorsFile::open(folder.path()); });
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  expectError(kFile, "expected a regular file, got a FIFO",
              [&] { SafetensorsFile::open(folder / "fifo"); });
  expectError(kFile, "expected a regular file, got a device",
              [] { SafetensorsFile::open("/dev/zero"); });
  ASSERT_EQ(::symlink("loop", (folder / "loop").c_str()), 0);
  expectError(ErrorCode::Io,
              "loop: cannot open: ", [&] { SafetensorsFile::open(folder / "loop"); });
  expectError(ErrorCode::Io, "none: cannot open: No such file",
              [&] { SafetensorsFile::open(folder / "none"); });
}

TEST(Safetensors, RefusesASparseTerabyteAtOnce) {
  TemporaryFolder folder;
  std::string path = folder.write("a.safetensors", file("{}", 0));
  if (::truncate(path.c_str(), off_t(1) << 40) != 0) GTEST_SKIP() << "no room for a sparse file";
  expectError(kFile, "bytes after the last tensor", [&] { SafetensorsFile::open(path); });
}

TEST(Safetensors, RefusesToSaveFourBits) {
  TemporaryFolder folder;
  expectError(ErrorCode::Unsupported, "the format has no dtype for u4 of the array \"x\"",
              [&] { saveSafetensors(folder / "a", {{"x", Array(DType::U4, {3})}}); });
}

TEST(Safetensors, RefusesToSaveReservedOrUndefined) {
  TemporaryFolder folder;
  expectError(ErrorCode::InvalidArgument, "__metadata__ is reserved",
              [&] { saveSafetensors(folder / "a", {{"__metadata__", Array(DType::F32, {1})}}); });
  expectError(ErrorCode::InvalidArgument, "the array \"x\" is undefined",
              [&] { saveSafetensors(folder / "a", {{"x", Array()}}); });
  expectError(ErrorCode::InvalidArgument, "expected valid UTF-8",
              [&] { saveSafetensors(folder / "a", {{"\xff", Array(DType::F32, {1})}}); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

//===--- number for number ------------------------------------------------------------------===//

// The dtypes of the format, https://github.com/huggingface/safetensors, with their sizes in bits.
TEST(Safetensors, KnowsTheDtypesOfTheFormat) {
  const struct {
    const char* name;
    size_t bits;
    std::optional<DType> dtype;
  } dtypes[] = {{"BOOL", 8, DType::Bool},  {"U8", 8, DType::U8},      {"I8", 8, DType::I8},
                {"I16", 16, DType::I16},   {"I32", 32, DType::I32},   {"I64", 64, DType::I64},
                {"F16", 16, DType::F16},   {"BF16", 16, DType::BF16}, {"F32", 32, DType::F32},
                {"F64", 64, DType::F64},   {"U16", 16, std::nullopt}, {"U32", 32, std::nullopt},
                {"U64", 64, std::nullopt}, {"C64", 64, std::nullopt}, {"F8_E5M2", 8, {}},
                {"F8_E4M3", 8, {}},        {"F8_E4M3FNUZ", 8, {}},    {"F8_E8M0", 8, {}},
                {"F6_E2M3", 6, {}},        {"F6_E3M2", 6, {}},        {"F4", 4, {}}};
  for (const auto& d : dtypes) {
    SCOPED_TRACE(d.name);
    const size_t bytes = d.bits;  // of eight elements
    const std::string quoted = '"' + std::string(d.name) + '"';
    const SafetensorsHeader h =
        parse(file(tensor(quoted, "[2,4]", "[0," + std::to_string(bytes) + "]"), bytes));
    EXPECT_EQ(h.tensors[0].name, "t");
    EXPECT_EQ(h.tensors[0].dtypeName, d.name);
    EXPECT_EQ(h.tensors[0].dtype, d.dtype);
    EXPECT_EQ(h.tensors[0].shape, (Shape{2, 4}));
    EXPECT_EQ(h.tensors[0].bytes, bytes);
    EXPECT_EQ(h.tensors[0].offset, h.dataStart);
    if (d.dtype) EXPECT_EQ(sizeOf(*d.dtype) * 8, d.bits);
  }
}

TEST(Safetensors, LimitsHoldThemselves) {
  std::string dims = "1";
  for (int i = 1; i < 64; ++i) dims += ",1";
  EXPECT_EQ(parse(file(tensor("\"U8\"", "[" + dims + "]", "[0,1]"), 1)).tensors[0].shape.size(),
            64u);
  auto refusal = [](const std::string& bytes) { return messageOf([&] { parse(bytes); }); };
  EXPECT_EQ(refusal(file(tensor("\"U8\"", "[" + dims + ",1]", "[0,1]"), 1)),
            "x.safetensors: t.shape: expected at most 64 dims, got 65");
  EXPECT_EQ(refusal(withLength(100'000'000, "{}")),
            "x.safetensors: header length 100000000 is past the end of a file of 10 bytes; was the "
            "download cut short?");
  EXPECT_EQ(refusal(withLength(100'000'001, "{}")),
            "x.safetensors: header length 100000001 is above the format's limit of 100000000; is "
            "this a safetensors file?");
  EXPECT_EQ(
      refusal(withLength(3, "{}")),
      "x.safetensors: header length 3 is past the end of a file of 10 bytes; was the download "
      "cut short?");
  EXPECT_EQ(parse(withLength(2, "{}")).dataStart, 10u);
  // Two elements of four bits fill a byte, three do not.
  EXPECT_EQ(parse(file(tensor("\"F4\"", "[2]", "[0,1]"), 1)).tensors[0].bytes, 1u);
  EXPECT_EQ(refusal(file(tensor("\"F4\"", "[3]", "[0,1]"), 1)),
            "x.safetensors: t.shape: 3 elements of F4 do not fill whole bytes: 12 bits");
  EXPECT_EQ(refusal(file(tensor("\"F6_E2M3\"", "[2]", "[0,1]"), 1)),
            "x.safetensors: t.shape: 2 elements of F6_E2M3 do not fill whole bytes: 12 bits");
}

TEST(Safetensors, RefusesInWholeSentences) {
  auto refusal = [](const std::string& bytes) { return messageOf([&] { parse(bytes); }); };
  auto of = [&](const std::string& dtype, const std::string& shape, const std::string& offsets,
                size_t bytes) { return refusal(file(tensor(dtype, shape, offsets), bytes)); };
  const std::string at = "x.safetensors: t.data_offsets: ";
  EXPECT_EQ(of(kF32, "[2,3]", "[0,4]", 4),
            at + "F32 of shape [2, 3] needs 24 bytes, the offsets span 4");
  EXPECT_EQ(of(kF32, "[1]", "[2,6]", 5), at + "end 6 is past the 5 bytes of data in the file");
  EXPECT_EQ(of(kF32, "[1]", "[4,3]", 8), at + "begin 4 is after end 3");
  EXPECT_EQ(of(kF32, "[1]", "[0,4,8]", 8), at + "expected [begin, end], got 3 elements");
  EXPECT_EQ(of(kF32, "[1]", "\"04\"", 8), at + "expected [begin, end], got \"04\"");
  EXPECT_EQ(of("\"F99\"", "[1]", "[0,4]", 4), "x.safetensors: t.dtype: unknown dtype \"F99\"");
  EXPECT_EQ(refusal(file(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1)),
            "x.safetensors: t: unknown field \"x\", expected dtype, shape and data_offsets");
  auto two = [&](const char* first, const char* second, size_t bytes) {
    return refusal(file(std::string(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)") + first +
                            R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                        bytes));
  };
  EXPECT_EQ(two("[0,4]", "[3,7]", 7),
            "x.safetensors: tensors \"a\" and \"b\" overlap: the second starts at byte 3 of the "
            "data, the first ends at 4");
  EXPECT_EQ(
      two("[6,10]", "[0,4]", 10),
      "x.safetensors: a hole of 2 bytes before tensor \"a\": it starts at byte 6 of the data, "
      "expected 4");
  EXPECT_EQ(two("[0,4]", "[4,8]", 11),
            "x.safetensors: 3 bytes after the last tensor, expected the file to end there");
}

// The bytes of a whole file: the widest elements first, then by name, data behind spaces that fill
// up the header.
TEST(Safetensors, WritesTheseBytes) {
  TemporaryFolder folder;
  Array half(DType::F16, {1}), byte(DType::U8, {3});
  half.set(0, 1.5);
  for (int64_t i = 0; i < 3; ++i) byte.set(i, double(i + 1));
  saveSafetensors(folder / "a",
                  {{"b", byte},
                   {"a", byte},
                   {"h", half},
                   {"w", Array::fromInts(std::vector<int64_t>{258}, {1, 1})}},
                  {{"two", "2"}, {"one", "1"}});
  std::string text =
      R"({"__metadata__":{"one":"1","two":"2"},"w":{"dtype":"I64","shape":[1,1],"data_offsets":[0,8]},)"
      R"("h":{"dtype":"F16","shape":[1],"data_offsets":[8,10]},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[10,13]},)"
      R"("b":{"dtype":"U8","shape":[3],"data_offsets":[13,16]}})";
  while ((text.size() + 8) % 64) text += ' ';
  EXPECT_EQ(test::readFile(folder / "a"),
            withLength(text.size(), text) + std::string("\2\1\0\0\0\0\0\0\0\x3e\1\2\3\1\2\3", 16));
  const SafetensorsFile f = SafetensorsFile::open(folder / "a");
  EXPECT_EQ(f.path(), folder / "a");
  EXPECT_EQ(f.find("c"), nullptr);
  ASSERT_NE(f.find("h"), nullptr);
  EXPECT_EQ(f.find("h")->offset, f.headerBytes() + 8);
  EXPECT_EQ(f.bytes("h").size(), 2u);
  EXPECT_EQ(messageOf([&] { f.bytes("c"); }), folder / "a" + ": no tensor named \"c\"");
}

TEST(Safetensors, PiecesAreHeldAgainstTheTensor) {
  TemporaryFolder folder;
  saveSafetensors(folder / "a",
                  {{"x", Array::fromFloats(std::vector<float>{0, 1, 2, 3, 4, 5}, {2, 3})}});
  const SafetensorsFile f = SafetensorsFile::open(folder / "a");
  const Array column = f.piece("x", {.axis = 1, .begin = 1, .size = 2});
  EXPECT_EQ(column.shape(), (Shape{2, 2}));
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(column.at(i), (std::array{1, 2, 4, 5}[size_t(i)]));
  EXPECT_EQ(messageOf([&] { f.piece("x", {.axis = 1, .begin = 2, .size = 2}); }),
            folder / "a" + ": tensor \"x\" [2, 3] has no elements 2 to 4 of 1 groups along axis 1");
  EXPECT_EQ(messageOf([&] { f.bytesOfPiece("x", {.axis = 0, .begin = 0, .size = 1}); }),
            folder / "a" + ": tensor \"x\" of F32 has not one byte an element");
}

// Elements of a byte that no dtype of ours names, column by column.
TEST(Safetensors, PiecesOfBytesAreReadAsTheyAre) {
  TemporaryFolder folder;
  std::string content = file(tensor("\"F8_E4M3\"", "[2,3]", "[0,6]"), 6);
  for (size_t i = 0; i < 6; ++i) content[content.size() - 6 + i] = char(i + 1);
  const SafetensorsFile f = SafetensorsFile::open(folder.write("a", content));
  const Array column = f.bytesOfPiece("t", {.axis = 1, .begin = 1, .size = 2});
  EXPECT_EQ(column.dtype(), DType::U8);
  EXPECT_EQ(column.shape(), (Shape{2, 2}));
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(column.at(i), (std::array{2, 3, 5, 6}[size_t(i)]));
}

TEST(Safetensors, NoMetadataIsNotWritten) {
  EXPECT_EQ(makeSafetensorsHeader({}, {}).find("__metadata__"), std::string::npos);
  EXPECT_NE(makeSafetensorsHeader({}, {{"a", "b"}}).find(R"("__metadata__":{"a":"b"})"),
            std::string::npos);
}

TEST(Safetensors, OtherDtypesAreNamedWhereTheyAreRead) {
  TemporaryFolder folder;
  const std::string path = folder.write("a", file(tensor("\"U16\"", "[2]", "[0,4]"), 4));
  EXPECT_EQ(messageOf([&] { SafetensorsFile::open(path).array("t"); }),
            path +
                ": tensor \"t\" has dtype U16, expected BOOL, U8, I8, I16, I32, I64, F16, BF16, "
                "F32 or F64; convert it first");
}

}  // namespace
}  // namespace lathe
