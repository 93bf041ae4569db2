// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/npy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxRank = 64;  // NumPy's own limit

constexpr auto kTypes = std::to_array<std::pair<std::string_view, DType>>({
    {"<f2", DType::F16},
    {"<f4", DType::F32},
    {"<f8", DType::F64},
    {"|i1", DType::I8},
    {"<i2", DType::I16},
    {"<i4", DType::I32},
    {"<i8", DType::I64},
    {"|u1", DType::U8},
    {"|b1", DType::Bool},
});

// The header is a Python dict literal with three known keys; this reads that and no other Python.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  void parse() {
    expect('{');
    while (!take('}')) {
      std::string key = string();
      expect(':');
      if (key == "descr" && !descr) {
        // A structured type is a list here, and no string.
        if (peek() == '[')
          fail("structured element types are not supported", ErrorCode::Unsupported);
        descr = string();
      } else if (key == "fortran_order" && !fortranOrder) {
        fortranOrder = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        fail("unknown or repeated key " + inQuotes(key));
      }
      if (!take(',') && peek() != '}') fail("expected ',' or '}'");
    }
    skipSpace();
    if (!rest_.empty()) fail("text after the dictionary");
    if (!descr) fail("the key 'descr' is missing");
    if (!fortranOrder) fail("the key 'fortran_order' is missing");
    if (!shape) fail("the key 'shape' is missing");
  }

  [[noreturn]] void fail(const std::string& what, ErrorCode code = ErrorCode::InvalidFile) const {
    throw Error(code, file_ + ": .npy header: " + what);
  }

  std::optional<std::string> descr;
  std::optional<bool> fortranOrder;
  std::optional<Shape> shape;

 private:
  void skipSpace() {
    while (!rest_.empty() && std::string_view(" \t\n\r").find(rest_[0]) != std::string_view::npos)
      rest_.remove_prefix(1);
  }
  char peek() {
    skipSpace();
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool take(char c) {
    if (peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c))
      fail(
          fmt::format("expected '{}', got {}", c, rest_.empty() ? "its end" : inQuotes(rest_, 20)));
  }
  std::string string() {
    char quote = peek();
    if (quote != '\'' && quote != '"')
      fail("expected a string, got " + (rest_.empty() ? "its end" : inQuotes(rest_, 20)));
    size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) fail("a string without end");
    std::string s(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return s;
  }
  bool boolean() {
    skipSpace();
    for (std::string_view word : {"True", "False"}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    fail("expected True or False for 'fortran_order'");
  }
  int64_t integer() {
    if (char c = peek(); c < '0' || c > '9') fail("expected a dim >= 0 in 'shape'");
    int64_t value = 0;
    while (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9') {
      if (__builtin_mul_overflow(value, int64_t(10), &value) ||
          __builtin_add_overflow(value, int64_t(rest_[0] - '0'), &value))
        fail("a dim in 'shape' is above 2^63 - 1");
      rest_.remove_prefix(1);
    }
    return value;
  }
  Shape tuple() {
    Shape dims;
    expect('(');
    while (!take(')')) {
      dims.push_back(integer());
      if (dims.size() > kMaxRank) fail(fmt::format("more than {} dims", kMaxRank));
      if (!take(',')) {
        if (dims.size() == 1 || peek() != ')') fail("expected ',' in 'shape'");
      }
    }
    return dims;
  }

  std::string_view rest_;
  const std::string& file_;
};

DType findType(const HeaderParser& header) {
  std::string descr = *header.descr;
  auto type = std::ranges::find(kTypes, descr, &std::pair<std::string_view, DType>::first);
  if (type != kTypes.end()) return type->second;
  if (descr.starts_with('>'))
    header.fail("big-endian element type " + inQuotes(descr) +
                    "; save with array.astype(array.dtype.newbyteorder('<'))",
                ErrorCode::Unsupported);
  header.fail("element type " + inQuotes(descr) +
                  ", expected f2, f4, f8, i1, i2, i4, i8, u1 or b1; convert with array.astype()",
              ErrorCode::Unsupported);
}

}  // namespace

Array parseNpy(std::span<const std::byte> bytes, const std::string& file) {
  auto fail = [&](const std::string& what) -> void {
    throw Error(ErrorCode::InvalidFile, file + ": " + what);
  };
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic)) fail("not a .npy file: it does not start with \\x93NUMPY");
  if (text.size() < 10) fail("a .npy file cut off within its version and header length");
  const int major = uint8_t(text[6]), minor = uint8_t(text[7]);
  if (major < 1 || major > 3 || minor != 0)
    throw Error(
        ErrorCode::Unsupported,
        fmt::format("{}: .npy version {}.{}, expected 1.0, 2.0 or 3.0", file, major, minor));
  const size_t lengthBytes = major == 1 ? 2 : 4;
  if (text.size() < 8 + lengthBytes)
    fail("a .npy file cut off within its version and header length");
  size_t length = 0;
  for (size_t i = 0; i < lengthBytes; ++i) length |= size_t(uint8_t(text[8 + i])) << (8 * i);
  const size_t headerStart = 8 + lengthBytes;
  if (length > text.size() - headerStart)
    fail(fmt::format(".npy header length {} is past the end of a file of {} bytes", length,
                     text.size()));
  HeaderParser header(text.substr(headerStart, length), file);
  header.parse();
  DType dtype = findType(header);
  const Shape& shape = *header.shape;
  size_t needed = sizeOf(dtype);
  for (int64_t d : shape)
    if (__builtin_mul_overflow(needed, size_t(d), &needed))
      fail("the product of the dims of 'shape' overflows");
  // One dim or one element has the same bytes in both orders.
  bool oneOrder = std::ranges::count_if(shape, [](int64_t d) { return d != 1; }) <= 1;
  if (*header.fortranOrder && !oneOrder)
    header.fail("Fortran order; save numpy.ascontiguousarray(array)", ErrorCode::Unsupported);
  const size_t start = headerStart + length, got = text.size() - start;
  if (got != needed)
    fail(fmt::format("expected {} bytes of data for {}, got {}", needed, describe(dtype, shape),
                     got));
  Array result(dtype, shape);
  if (needed > 0) std::memcpy(result.data(), bytes.data() + start, needed);
  return result;
}

Array loadNpy(const std::string& path) {
  auto file = MappedFile::open(path);
  return parseNpy(file->bytes(), path);
}

void saveNpy(const std::string& path, const Array& array) {
  if (!array.defined())
    throw Error(ErrorCode::InvalidArgument,
                path + ": expected values to save, got an undefined Array");
  auto type = std::ranges::find(kTypes, array.dtype(), &std::pair<std::string_view, DType>::second);
  if (type == kTypes.end())
    throw Error(ErrorCode::Unsupported,
                fmt::format("{}: .npy has no type for {}; convert the array to {} first", path,
                            nameOf(array.dtype()), isFloat(array.dtype()) ? "f32" : "i8"));
  std::string dims;
  for (size_t i = 0; i < array.shape().size(); ++i)
    dims += fmt::format("{}{}", i ? ", " : "", array.shape()[i]);
  if (array.shape().size() == 1) dims += ",";
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type->first, dims);
  // Version 1 holds headers up to 65,535 bytes, and at most 64 dims of 19 digits fit in that.
  std::string header(kMagic);
  header += std::string_view("\x01\x00", 2);
  size_t length = (10 + dict.size() + 1 + 63) / 64 * 64 - 10;
  header += char(length & 0xff);
  header += char(length >> 8);
  dict.resize(length - 1, ' ');
  header += dict + "\n";
  writeFileAtomically(
      path, {asBytes(header), {static_cast<const std::byte*>(array.data()), array.bytes()}});
}

}  // namespace lathe
