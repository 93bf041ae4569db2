// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_set>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr size_t kMaxLines = 20;

std::string join(const std::string& folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).string();
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// A shard name is looked up in the index's own folder and nowhere else.
void checkShardName(const JsonValue& value) {
  const std::string& name = value.asString();
  bool plain = !name.empty() && name != "." && name != ".." &&
               name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  if (!plain)
    throw value.error("expected a plain file name beside the index, got " + inQuotes(name));
  if (!name.ends_with(".safetensors"))
    throw value.error("expected a .safetensors file, got " + inQuotes(name));
}

bool fits(const ExpectedWeight& expected, const SafetensorsEntry& entry) {
  bool dtype =
      expected.dtype ? entry.dtype == expected.dtype : entry.dtype && isFloat(*entry.dtype);
  return dtype && entry.shape == expected.shape;
}

std::string describeEntry(std::string_view dtype, const Shape& shape) {
  return fmt::format("{}[{}]", dtype, fmt::join(shape, ", "));
}

void appendLines(std::string& message, std::string_view title,
                 const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  message += fmt::format("\n{} {}:", lines.size(), title);
  for (size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) message += "\n  " + lines[i];
  if (lines.size() > kMaxLines) message += fmt::format("\n  and {} more", lines.size() - kMaxLines);
}

}  // namespace

Checkpoint Checkpoint::open(const std::string& path) {
  Checkpoint result;
  result.path_ = path;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    if (exists(join(path, kSingle))) {
      result.add(SafetensorsFile::open(join(path, kSingle)));
    } else if (exists(join(path, kIndex))) {
      result.addShards(join(path, kIndex));
    } else {
      throw Error(ErrorCode::Io, fmt::format("{}: expected {} or {} in this folder, found neither",
                                             path, kSingle, kIndex));
    }
  } else if (path.ends_with(".json")) {
    result.addShards(path);
  } else {
    result.add(SafetensorsFile::open(path));
  }
  for (auto& [name, file] : result.fileOf_) result.names_.push_back(name);
  return result;
}

void Checkpoint::add(SafetensorsFile file) {
  for (const SafetensorsEntry& e : file.tensors()) {
    auto [it, isNew] = fileOf_.emplace(e.name, files_.size());
    if (!isNew)
      throw Error(ErrorCode::InvalidFile,
                  fmt::format("tensor {} is in two shards: {} and {}", inQuotes(e.name),
                              files_[it->second].path(), file.path()));
  }
  files_.push_back(std::move(file));
}

void Checkpoint::addShards(const std::string& indexPath) {
  JsonValue index = JsonValue::load(indexPath, kShardIndexFile);
  JsonValue map = index.at("weight_map");
  if (!map.isObject())
    throw map.error("expected an object of tensor and shard names, got " + map.show());
  std::set<std::string> shards;
  for (size_t i = 0; i < map.size(); ++i) {
    JsonValue shard = map.member(i).second;
    if (shard.isString() && shards.contains(shard.asString())) continue;
    checkShardName(shard);
    shards.insert(shard.asString());
  }
  if (shards.empty()) throw map.error("names no shard");
  const std::string folder = std::filesystem::path(indexPath).parent_path().string();
  std::unordered_map<std::string, size_t> fileOfShard;
  for (const std::string& shard : shards) {
    std::string path = join(folder, shard);
    if (!exists(path))
      throw Error(ErrorCode::Io, fmt::format("{}: the shard {} is missing, expected it at {}",
                                             indexPath, inQuotes(shard), path));
    fileOfShard[shard] = files_.size();
    add(SafetensorsFile::open(path));
  }
  for (size_t i = 0; i < map.size(); ++i) {
    auto [name, shard] = map.member(i);
    if (!files_[fileOfShard.at(shard.asString())].find(name))
      throw Error(ErrorCode::InvalidFile,
                  fmt::format("{}: tensor {} is not in shard {}, where the index puts it",
                              indexPath, inQuotes(name), inQuotes(shard.asString())));
  }
}

const SafetensorsEntry* Checkpoint::entry(std::string_view name) const {
  auto it = fileOf_.find(name);
  return it == fileOf_.end() ? nullptr : files_[it->second].find(name);
}

std::optional<Array> Checkpoint::find(std::string_view name) const {
  auto it = fileOf_.find(name);
  if (it == fileOf_.end()) return std::nullopt;
  return files_[it->second].array(name);
}

void checkWeights(const std::vector<ExpectedWeight>& expected, const Checkpoint& checkpoint,
                  const std::vector<ExpectedWeight>& optional) {
  std::unordered_set<std::string_view> known;
  std::vector<std::string> missing, extra, wrong;
  auto check = [&](const ExpectedWeight& weight, bool required) {
    known.insert(weight.name);
    const SafetensorsEntry* entry = checkpoint.entry(weight.name);
    if (entry && !fits(weight, *entry))
      wrong.push_back(fmt::format(
          "{}: expected {}, got {}", weight.name,
          describeEntry(weight.dtype ? nameOf(*weight.dtype) : "float", weight.shape),
          describeEntry(entry->dtype ? nameOf(*entry->dtype) : entry->dtypeName, entry->shape)));
    if (!entry && required)
      missing.push_back(
          fmt::format("{} {}", weight.name,
                      describeEntry(weight.dtype ? nameOf(*weight.dtype) : "float", weight.shape)));
  };
  for (const ExpectedWeight& weight : expected) check(weight, true);
  for (const ExpectedWeight& weight : optional) check(weight, false);
  for (const std::string& name : checkpoint.names())
    if (!known.contains(name)) extra.push_back(inQuotes(name, 200));
  if (missing.empty() && extra.empty() && wrong.empty()) return;
  std::string message = checkpoint.path() + ": the weights do not fit the model";
  appendLines(message, "missing", missing);
  appendLines(message, "unexpected", extra);
  appendLines(message, "of another shape or dtype", wrong);
  throw Error(ErrorCode::InvalidFile, message);
}

}  // namespace lathe
