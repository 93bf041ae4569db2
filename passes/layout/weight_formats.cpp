// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/weight_formats.h"

#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {

using Bits = WeightFormat::Bits;
constexpr std::array<std::pair<std::string_view, Bits>, 3> kBits{
    {{"stored", Bits::Stored}, {"int8", Bits::Int8}, {"int4", Bits::Int4}}};
constexpr std::array<int64_t, 3> kGroups{32, 64, 128};
constexpr WeightFormat kInt8{Bits::Int8};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

[[noreturn]] void fail(std::string_view expected, std::string_view got) {
  throw Error(ErrorCode::InvalidArgument, "weight format: expected " + std::string(expected) +
                                              ", got '" + std::string(got) + "'");
}

WeightFormat parseFormat(std::string_view text) {
  const auto parts = split(text, ':');
  WeightFormat format;
  bool known = false;
  for (auto [name, bits] : kBits)
    if (parts[0] == name) {
      format.bits = bits;
      known = true;
    }
  if (!known) fail("stored, int8 or int4", parts[0]);
  format.group = format.bits == Bits::Int4 ? 32 : 0;
  bool grouped = false;
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (!format.quantizes()) fail("nothing behind stored", part);
    if (part == "asymmetric" && !format.asymmetric) {
      format.asymmetric = true;
      continue;
    }
    int64_t group = 0;
    auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), group);
    bool fits = part == "channel";
    if (code == std::errc() && end == part.data() + part.size())
      for (int64_t g : kGroups) fits |= g == group;
    if (!fits || grouped) fail("one of channel, 32, 64 and 128, and asymmetric", part);
    format.group = part == "channel" ? 0 : group;
    grouped = true;
  }
  return format;
}

std::string textOf(const WeightFormat& format) {
  std::string text;
  for (auto [name, bits] : kBits)
    if (bits == format.bits) text = name;
  if (!format.quantizes()) return text;
  text += ":" + (format.group ? std::to_string(format.group) : std::string("channel"));
  return text + (format.asymmetric ? ":asymmetric" : "");
}

}  // namespace

WeightFormats parseWeightFormats(std::string_view text) {
  const auto parts = split(text, ',');
  WeightFormats formats;
  if (parts[0].find('=') != std::string_view::npos)
    fail("a format of the weights first, as in stored,activations=int8", parts[0]);
  formats.linear = parseFormat(parts[0]);
  if (formats.linear.quantizes()) formats.embedding = formats.head = kInt8;
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    const std::string_view what = parts[i].substr(0, equals);
    if (equals == std::string_view::npos ||
        (what != "embedding" && what != "head" && what != "activations"))
      fail("embedding=FORMAT, head=FORMAT or activations=int8", parts[i]);
    for (size_t before = 1; before < i; ++before)
      if (parts[before].substr(0, equals + 1) == parts[i].substr(0, equals + 1))
        fail("one format for " + std::string(what), parts[i]);
    if (what == "activations") {
      const std::string_view held = parts[i].substr(equals + 1);
      if (held != "stored" && held != "int8")
        fail("stored or int8 for activations, which have a scale for each row", held);
      formats.int8Activations = held == "int8";
      continue;
    }
    const WeightFormat format = parseFormat(parts[i].substr(equals + 1));
    if (what == "head") {
      formats.head = format;
      continue;
    }
    if (format.quantizes() && format != kInt8)
      fail("stored or int8 for the embedding, whose rows are read one by one",
           parts[i].substr(equals + 1));
    formats.embedding = format;
  }
  return formats;
}

std::string textOf(const WeightFormats& formats) {
  return textOf(formats.linear) + ",embedding=" + textOf(formats.embedding) +
         ",head=" + textOf(formats.head) + (formats.int8Activations ? ",activations=int8" : "");
}

}  // namespace lathe
