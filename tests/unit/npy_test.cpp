// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/npy.h"

#include <cstring>

#include <gtest/gtest.h>

#include "runtime/mapped_file.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::messageOf;
using test::TemporaryFolder;

std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += char(version);
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes += char(dict.size() >> (8 * i) & 0xff);
  return bytes + dict + data;
}
std::string header(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }  \n";
}
const std::string kGood = header("'<f4'", "False", "(1,)");
Array parse(const std::string& bytes) { return parseNpy(asBytes(bytes), "x.npy"); }

TEST(Npy, ReadsWhatNumpyWrites) {
  // numpy.save of numpy.array([[1, 2], [3, 4]], '<i2'), header padding shortened.
  Array a = parse(npy(header("'<i2'", "False", "(2, 2)"), std::string("\1\0\2\0\3\0\4\0", 8)));
  EXPECT_EQ(a.dtype(), DType::I16);
  EXPECT_EQ(a.shape(), (Shape{2, 2}));
  EXPECT_EQ(a.at(3), 4);
}

TEST(Npy, ReadsVersions2And3) {
  for (int version : {2, 3})
    EXPECT_EQ(parse(npy(header("'|u1'", "False", "(1,)"), "\7", version)).at(0), 7);
}

TEST(Npy, ReadsScalarsEmptyArraysAndVectorsOfEitherOrder) {
  EXPECT_EQ(parse(npy(header("'|b1'", "False", "()"), "\1")).shape(), Shape{});
  EXPECT_EQ(parse(npy(header("'<f8'", "False", "(0, 3)"), "")).shape(), (Shape{0, 3}));
  EXPECT_EQ(parse(npy(header("'|i1'", "True", "(1, 2)"), "\1\2")).at(1), 2);
}

TEST(Npy, WritesWhatItReads) {
  TemporaryFolder folder;
  for (DType dtype : {DType::F64, DType::F32, DType::F16, DType::I64, DType::I32, DType::I16,
                      DType::I8, DType::U8, DType::Bool}) {
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{0}}) {
      Array a(dtype, shape);
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i % 2));
      saveNpy(folder / "a.npy", a);
      EXPECT_EQ(test::readFile(folder / "a.npy").find('\n') % 64, 63u) << "data is aligned";
      Array b = loadNpy(folder / "a.npy");
      EXPECT_EQ(b.dtype(), dtype);
      EXPECT_EQ(b.shape(), shape);
      EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0);
    }
  }
}

TEST(Npy, RefusesToWriteFourBits) {
  TemporaryFolder folder;
  expectError(ErrorCode::Unsupported, ".npy has no type for i4; convert the array to i8 first",
              [&] { saveNpy(folder / "a.npy", Array(DType::I4, {3})); });
}
TEST(Npy, RefusesToWriteBf16) {
  TemporaryFolder folder;
  expectError(ErrorCode::Unsupported, ".npy has no type for bf16; convert the array to f32 first",
              [&] { saveNpy(folder / "a.npy", Array(DType::BF16, {1})); });
}

// Of every type the name in the file and the elements as they lie there.
TEST(Npy, WritesTheseBytes) {
  const std::pair<DType, std::string> types[] = {
      {DType::F16, "<f2"}, {DType::F32, "<f4"}, {DType::F64, "<f8"},
      {DType::I8, "|i1"},  {DType::I16, "<i2"}, {DType::I32, "<i4"},
      {DType::I64, "<i8"}, {DType::U8, "|u1"},  {DType::Bool, "|b1"}};
  TemporaryFolder folder;
  for (const auto& [dtype, name] : types)
    for (const auto& [shape, dims] :
         {std::pair<Shape, std::string>{{}, ""}, {{2}, "2,"}, {{2, 1}, "2, 1"}}) {
      SCOPED_TRACE(name + " " + dims);
      Array a(dtype, shape);
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, 1);
      saveNpy(folder / "a.npy", a);
      std::string dict =
          "{'descr': '" + name + "', 'fortran_order': False, 'shape': (" + dims + "), }";
      while ((10 + dict.size() + 1) % 64) dict += ' ';
      dict += '\n';
      EXPECT_EQ(test::readFile(folder / "a.npy"),
                npy(dict, std::string(static_cast<const char*>(a.data()), a.bytes())));
    }
}

TEST(Npy, LimitsHoldThemselves) {
  std::string dims;
  for (int i = 0; i < 64; ++i) dims += "1,";
  EXPECT_EQ(parse(npy(header("'|u1'", "False", "(" + dims + ")"), "\7")).shape(), Shape(64, 1));
  auto refusal = [](const std::string& bytes) { return messageOf([&] { parse(bytes); }); };
  const std::string h = "x.npy: .npy header: ";
  EXPECT_EQ(refusal(npy(header("'|u1'", "False", "(" + dims + "1)"), "\7")),
            h + "more than 64 dims");
  EXPECT_EQ(refusal(npy(header("'|u1'", "False", "(9223372036854775808,)"), "")),
            h + "a dim in 'shape' is above 2^63 - 1");
  EXPECT_EQ(refusal(npy(header("'|u1'", "False", "(9223372036854775807, 0)"), "")), "");
  EXPECT_EQ(refusal(npy(header("'|u1'", "False", "(9223372036854775807, 3)"), "")),
            "x.npy: the product of the dims of 'shape' overflows");
  EXPECT_EQ(refusal(npy(header("'<f4'", "False", "(2, 3)"), "1234")),
            "x.npy: expected 24 bytes of data for f32[2, 3], got 4");
  for (int version : {0, 4})
    EXPECT_EQ(refusal(npy("{}", "", version)),
              "x.npy: .npy version " + std::to_string(version) + ".0, expected 1.0, 2.0 or 3.0");
  std::string minor = npy(kGood, "1234");
  minor[7] = 1;
  EXPECT_EQ(refusal(minor), "x.npy: .npy version 1.1, expected 1.0, 2.0 or 3.0");
  EXPECT_EQ(refusal(std::string("\x93NUMPY\1\0\3\0{}", 12)),
            "x.npy: .npy header length 3 is past the end of a file of 12 bytes");
  EXPECT_EQ(refusal(std::string("\x93NUMPY\1\0\2", 9)),
            "x.npy: a .npy file cut off within its version and header length");
  // The length is little-endian: 0x0102 bytes.
  std::string dict = header("'|u1'", "False", "(1,)");
  dict.resize(0x102, ' ');
  EXPECT_EQ(parse(npy(dict, "\5")).at(0), 5);
  EXPECT_EQ(parse(npy(dict, "\5", 2)).at(0), 5);
}

TEST(Npy, HeadersMayBeSpelledAsPythonDoes) {
  EXPECT_EQ(
      parse(npy("{\"shape\":\t(2 ,\n1),\r'descr':\"|u1\", 'fortran_order':True}", "\7\x8")).shape(),
      (Shape{2, 1}));
  auto refusal = [](const std::string& dict) { return messageOf([&] { parse(npy(dict, "")); }); };
  const std::string h = "x.npy: .npy header: ";
  EXPECT_EQ(refusal("[]"), h + "expected '{', got \"[]\"");
  EXPECT_EQ(refusal("{'shape' (1,)}"), h + "expected ':', got \"(1,)}\"");
  EXPECT_EQ(refusal("{shape: (1,)}"), h + "expected a string, got \"shape: (1,)}\"");
  EXPECT_EQ(refusal("{'shape': (1,) 'descr': '<f4'}"), h + "expected ',' or '}'");
  EXPECT_EQ(refusal("{'shape': 1}"), h + "expected '(', got \"1}\"");
  EXPECT_EQ(refusal("{'shape': (1, 2 3)}"), h + "expected ',' in 'shape'");
  EXPECT_EQ(refusal("{'fortran_order': Truth}"), h + "expected True or False for 'fortran_order'");
  EXPECT_EQ(refusal(header("'|V1'", "False", "(1,)")),
            h + "element type \"|V1\", expected f2, f4, f8, i1, i2, i4, i8, u1 or b1; convert with "
                "array.astype()");
  EXPECT_EQ(refusal(header("'>i2'", "False", "(1,)")),
            h + "big-endian element type \">i2\"; save with "
                "array.astype(array.dtype.newbyteorder('<'))");
  EXPECT_EQ(messageOf([] { saveNpy("a.npy", Array()); }),
            "a.npy: expected values to save, got an undefined Array");
}

struct BadFile {
  const char* name;
  std::string bytes;
  ErrorCode code;
  const char* message;
};
void PrintTo(const BadFile& b, std::ostream* out) { *out << b.name; }

class BadNpy : public testing::TestWithParam<BadFile> {};

TEST_P(BadNpy, IsRefusedWithItsReason) {
  expectError(GetParam().code, GetParam().message, [] { parse(GetParam().bytes); });
}

constexpr ErrorCode kFile = ErrorCode::InvalidFile, kUnsupported = ErrorCode::Unsupported;
const BadFile kBad[] = {
    {"Empty", "", kFile, "not a .npy file"},
    {"Zip", "PK\3\4 not npy", kFile, "not a .npy file"},
    {"MagicOnly", "\x93NUMPY", kFile, "cut off within its version"},
    {"Version2CutOff", npy("", "", 2).substr(0, 10), kFile, "cut off within its version"},
    {"Version9", npy(kGood, "1234", 9), kUnsupported, ".npy version 9.0, expected 1.0, 2.0 or 3.0"},
    {"HeaderPastEnd", npy(kGood, "").substr(0, 30), kFile, ".npy header length"},
    {"Version2HeaderHuge", std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14), kFile,
     ".npy header length 4294967295 is past the end"},
    {"EmptyHeader", npy("", ""), kFile, "expected '{', got its end"},
    {"UnclosedString", npy("{'descr: ", ""), kFile, "a string without end"},
    {"UnknownKey", npy("{'color': 'red'}", ""), kFile, "unknown or repeated key \"color\""},
    {"RepeatedKey", npy("{'shape': (), 'shape': ()}", ""), kFile, "repeated key \"shape\""},
    {"RepeatedOrder", npy("{'fortran_order': True, 'fortran_order': False}", ""), kFile,
     "repeated key \"fortran_order\""},
    {"RepeatedDescr", npy("{'descr': '<f4', 'descr': '<f8'}", ""), kFile, "repeated key \"descr\""},
    {"DescrMissing", npy("{'descr':", ""), kFile, "expected a string, got its end"},
    {"NoShape", npy("{'descr': '<f4', 'fortran_order': False}", ""), kFile, "'shape' is missing"},
    {"NoDescr", npy("{'shape': (), 'fortran_order': False}", ""), kFile, "'descr' is missing"},
    {"NoOrder", npy("{'shape': (), 'descr': '<f4'}", ""), kFile, "'fortran_order' is missing"},
    {"TextAfter", npy("{'shape': (), 'descr': '<f4', 'fortran_order': False} x", ""), kFile,
     "text after the dictionary"},
    {"OrderNumber", npy(header("'<f4'", "0", "(1,)"), "1234"), kFile, "expected True or False"},
    {"NegativeDim", npy(header("'<f4'", "False", "(-1,)"), ""), kFile, "expected a dim >= 0"},
    {"ShapeWithoutComma", npy(header("'<f4'", "False", "(1)"), ""), kFile,
     "expected ',' in 'shape'"},
    {"DimHuge", npy(header("'<f4'", "False", "(99999999999999999999,)"), ""), kFile, "above 2^63"},
    {"ProductOverflow", npy(header("'<f4'", "False", "(4294967296, 4294967296)"), ""), kFile,
     "the product of the dims of 'shape' overflows"},
    {"DataShort", npy(kGood, "123"), kFile, "expected 4 bytes of data for f32[1], got 3"},
    {"DataLong", npy(kGood, "12345"), kFile, "expected 4 bytes of data for f32[1], got 5"},
    {"BigEndian", npy(header("'>f4'", "False", "(1,)"), "1234"), kUnsupported,
     "big-endian element type \">f4\""},
    {"Complex", npy(header("'<c8'", "False", "(1,)"), "12345678"), kUnsupported,
     "element type \"<c8\", expected f2"},
    {"Object", npy(header("'|O'", "False", "(1,)"), "12345678"), kUnsupported,
     "element type \"|O\""},
    {"Structured", npy(header("[('a', '<f4')]", "False", "(1,)"), "1234"), kUnsupported,
     "structured element types"},
    {"FortranOrder", npy(header("'|u1'", "True", "(2, 2)"), "1234"), kUnsupported,
     "Fortran order; save numpy.ascontiguousarray(array)"},
};
INSTANTIATE_TEST_SUITE_P(Files, BadNpy, testing::ValuesIn(kBad),
                         [](auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lathe
