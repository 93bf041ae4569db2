// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/input_spec.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/npy.h"
#include "lathe/runtime/safetensors.h"

namespace lathe::cli {
namespace {

constexpr std::string_view kForms =
    "a SPEC is @x.npy, @x.safetensors:key or a form like 4x8xf32=1.0, 3xi64=1,2,3 or i64=5";

[[noreturn]] void reject(std::string_view name, const std::string& message) {
  throw Error(ErrorCode::InvalidArgument, fmt::format("--input {}: {}", name, message));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

template <class T>
std::optional<T> number(std::string_view text) {
  // from_chars reads no '+'; behind one it would still read a '-'.
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  T value{};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::pair<int64_t, int64_t> rangeOf(DType dtype) {
  switch (dtype) {
    case DType::I32:
      return {INT32_MIN, INT32_MAX};
    case DType::I16:
      return {INT16_MIN, INT16_MAX};
    case DType::I8:
      return {INT8_MIN, INT8_MAX};
    case DType::U8:
      return {0, UINT8_MAX};
    case DType::I4:
      return {-8, 7};
    case DType::U4:
      return {0, 15};
    case DType::Bool:
      return {0, 1};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

void store(Array& array, int64_t at, std::string_view text, std::string_view name) {
  const DType dtype = array.dtype();
  if (isFloat(dtype)) {
    auto value = number<double>(text);
    if (!value)
      reject(name, fmt::format("expected a number for {}, got '{}'", nameOf(dtype), text));
    array.set(at, *value);
    return;
  }
  if (dtype == DType::Bool && (text == "true" || text == "false"))
    text = text == "true" ? "1" : "0";
  auto value = number<int64_t>(text);
  auto [low, high] = rangeOf(dtype);
  if (!value || *value < low || *value > high)
    reject(name, fmt::format("expected a whole number from {} to {} for {}, got '{}'", low, high,
                             nameOf(dtype), text));
  if (dtype == DType::I64)
    array.as<int64_t>()[size_t(at)] = *value;  // a double would lose the low bits
  else
    array.set(at, double(*value));
}

Array fromFile(std::string_view spec, std::string_view name) {
  std::string path(spec);
  if (path.ends_with(".npy")) return loadNpy(path);
  constexpr std::string_view kExtension = ".safetensors";
  size_t at = path.rfind(std::string(kExtension) + ":");
  if (at == std::string::npos)
    reject(name, fmt::format("expected @x.npy or @x.safetensors:key, got '@{}'", path));
  at += kExtension.size();
  SafetensorsFile file = SafetensorsFile::open(path.substr(0, at));
  std::string key = path.substr(at + 1);
  if (!file.find(key)) {
    std::string known;
    for (size_t i = 0; i < file.tensors().size() && i < 20; ++i)
      known += (i ? ", " : "") + file.tensors()[i].name;
    reject(name, fmt::format("{} has no tensor '{}'; it has {}", file.path(), key, known));
  }
  return file.array(key);
}

}  // namespace

Array parseInputSpec(std::string_view spec, std::string_view name) {
  if (spec.starts_with('@')) return fromFile(spec.substr(1), name);
  size_t equals = spec.find('=');
  if (equals == std::string_view::npos)
    reject(name, fmt::format("cannot read '{}'; {}", spec, kForms));
  std::vector<std::string_view> parts = split(spec.substr(0, equals), 'x');
  auto dtype = parseDType(parts.back());
  if (!dtype)
    reject(name, fmt::format("expected a dtype such as f32, bf16 or i64, got '{}'; {}",
                             parts.back(), kForms));
  parts.pop_back();
  Shape shape;
  for (std::string_view part : parts) {
    auto dim = number<int64_t>(part);
    if (!dim || *dim < 0)
      reject(name, fmt::format("expected a size of 0 or more, got '{}'; {}", part, kForms));
    shape.push_back(*dim);
  }
  std::vector<std::string_view> values = split(spec.substr(equals + 1), ',');
  const int64_t count = elementCount(shape);
  if (values.size() != 1 && int64_t(values.size()) != count)
    reject(name, fmt::format("expected 1 value or {} for {}, got {}", count,
                             describe(*dtype, shape), values.size()));
  struct sysinfo machine{};
  sysinfo(&machine);
  const double memory = double(machine.totalram) * machine.mem_unit;
  const double bytes = double(count) * (isPacked(*dtype) ? 0.5 : double(sizeOf(*dtype)));
  if (bytes > memory)
    throw Error(ErrorCode::OutOfMemory,
                fmt::format("--input {}: {} needs {:.3g} bytes, the machine's memory has {:.3g}",
                            name, describe(*dtype, shape), bytes, memory));
  Array array(*dtype, shape);
  if (isPacked(*dtype)) {  // two elements share a byte
    for (int64_t i = 0; i < count; ++i)
      store(array, i, values[values.size() == 1 ? 0 : size_t(i)], name);
  } else if (values.size() == 1) {
    // One element is checked and rounded, the others are its copies.
    Array element(*dtype, {1});
    store(element, 0, values[0], name);
    const size_t width = sizeOf(*dtype);
    auto* to = static_cast<std::byte*>(array.data());
    auto* from = static_cast<const std::byte*>(element.data());
    for (int64_t i = 0; i < count; ++i) std::copy(from, from + width, to + size_t(i) * width);
  } else {
    for (int64_t i = 0; i < count; ++i) store(array, i, values[size_t(i)], name);
  }
  return array;
}

std::pair<std::string, Array> parseInput(std::string_view text) {
  size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("--input: expected NAME=SPEC, got '{}'; {}", text, kForms));
  std::string name(text.substr(0, equals));
  return {name, parseInputSpec(text.substr(equals + 1), name)};
}

}  // namespace lathe::cli
