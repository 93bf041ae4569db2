// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/tuning_record.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

constexpr size_t kFields = 8;
constexpr const char* kForm =
    "device, capability, multiprocessors | problem | version | choice | time us | spread % | "
    "software | date";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

class Line {
 public:
  Line(std::string_view text, const std::string& file, size_t number)
      : text_(text), where_(file + ":" + std::to_string(number) + ": ") {}

  TuningRecord record() const {
    const auto fields = split(text_, '|');
    if (fields.size() != kFields)
      throw error("expected " + std::to_string(kFields) + " fields (" + kForm + "), got " +
                  std::to_string(fields.size()));
    const char* names[kFields] = {"device", "problem", "version",  "choice",
                                  "time",   "spread",  "software", "date"};
    for (size_t i = 0; i < kFields; ++i)
      if (fields[i].empty()) throw error("field '" + std::string(names[i]) + "' is empty");
    TuningRecord r;
    const auto device = split(fields[0], ',');
    if (device.size() != 3)
      throw error("expected a device as 'name, 9.0, multiprocessors', got '" +
                  std::string(fields[0]) + "'");
    const auto capability = split(device[1], '.');
    if (capability.size() != 2)
      throw error("expected a compute capability as '9.0', got '" + std::string(device[1]) + "'");
    r.device = device[0];
    r.major = number<int>(capability[0], "capability");
    r.minor = number<int>(capability[1], "capability");
    r.multiprocessors = number<int>(device[2], "multiprocessors");
    r.problem = fields[1];
    r.version = number<int>(fields[2], "version");
    r.choice = fields[3];
    r.microseconds = number<double>(without(fields[4], "us", "time"), "time");
    r.spread = number<double>(without(fields[5], "%", "spread"), "spread") / 100;
    r.software = fields[6];
    r.date = date(fields[7]);
    return r;
  }

 private:
  Error error(const std::string& what) const {
    return Error(ErrorCode::InvalidFile, where_ + what);
  }

  template <class T>
  T number(std::string_view text, const char* name) const {
    T value{};
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size() || !(double(value) >= 0) ||
        !std::isfinite(double(value)))
      throw error("expected a number as " + std::string(name) + ", got '" + std::string(text) +
                  "'");
    return value;
  }
  std::string_view date(std::string_view text) const {
    const auto parts = split(text, '-');
    bool real = text.size() == 10 && parts.size() == 3 && parts[0].size() == 4 &&
                parts[1].size() == 2 && parts[2].size() == 2;
    if (real) {
      using namespace std::chrono;
      real = year_month_day(year(number<int>(parts[0], "year")),
                            month(number<unsigned>(parts[1], "month")),
                            day(number<unsigned>(parts[2], "day")))
                 .ok();
    }
    if (!real) throw error("expected a date as '2026-01-31', got '" + std::string(text) + "'");
    return text;
  }
  std::string_view without(std::string_view text, std::string_view unit, const char* name) const {
    if (!text.ends_with(unit))
      throw error("expected " + std::string(name) + " to end in '" + std::string(unit) +
                  "', got '" + std::string(text) + "'");
    return trimmed(text.substr(0, text.size() - unit.size()));
  }

  std::string_view text_;
  std::string where_;
};

}  // namespace

std::string toText(const TuningRecord& r) {
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "%.4g us | %.2g %%", r.microseconds, 100 * r.spread);
  return r.device + ", " + std::to_string(r.major) + "." + std::to_string(r.minor) + ", " +
         std::to_string(r.multiprocessors) + " | " + r.problem + " | " + std::to_string(r.version) +
         " | " + r.choice + " | " + numbers + " | " + r.software + " | " + r.date;
}

std::vector<TuningRecord> parseTuningRecords(std::string_view text, const std::string& file) {
  std::vector<TuningRecord> records;
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    records.push_back(Line(line, file, number).record());
  }
  return records;
}

}  // namespace lathe::cuda
