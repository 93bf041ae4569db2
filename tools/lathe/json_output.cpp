// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/json_output.h"

#include <cmath>

#include <fmt/format.h>

namespace lathe::cli {

Json document(const std::string& verb) {
  return {{"schema_version", kSchemaVersion}, {"verb", verb}};
}

Json numberOrText(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

Json shapeJson(const SymbolicShape& shape) {
  Json dims = Json::array();
  for (const DimExpr& d : shape) {
    if (auto value = d.asConstant())
      dims.push_back(*value);
    else
      dims.push_back(d.text());
  }
  return dims;
}

void printGraphText(const std::string& verb, const std::string& stage, const std::string& form,
                    const std::string& text, bool json) {
  if (!json) return fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
  Json out = document(verb);
  out["stage"] = stage;
  out[form] = text;
  printJson(out);
}

static bool hasPrinted = false;
bool hasPrintedJson() { return hasPrinted; }

void printJson(const Json& document) {
  hasPrinted = true;
  fmt::print("{}\n", document.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string describe(DType dtype, const SymbolicShape& shape) {
  std::string text = std::string(nameOf(dtype)) + "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + shape[i].text();
  return text + "]";
}

static std::string scaled(double value, const char* unit, const char* one) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T"};
  size_t prefix = 0;
  // Three digits of 999.5 and more are those of 1000, whose prefix is the next one.
  auto most = [&] { return prefix == 0 ? 1000 : 999.5; };
  while (value >= most() && prefix < 4) {
    value /= 1000;
    ++prefix;
  }
  if (prefix == 0) return fmt::format("{} {}", value, one);
  return fmt::format("{:.3g} {}{}", value, kPrefixes[prefix], unit);
}

std::string byteText(double bytes) { return scaled(bytes, "B", "B"); }

std::string countText(double count) {
  if (count < 1000) return fmt::format("{}", count);
  return scaled(count, "", "");
}

std::string timeText(double seconds) {
  // What is rounded to a whole one of the next unit is told in that.
  if (seconds < 999.5e-9) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 999.995e-6) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 999.995e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace lathe::cli
