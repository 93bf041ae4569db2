// SPDX-License-Identifier: Apache-2.0
#include "runtime/container.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/mapped_file.h"
#include "runtime/sha256.h"

namespace lathe {
namespace {

constexpr std::string_view kFormat = "lathe-container";
constexpr std::string_view kHeaderHash = ".header";
constexpr size_t kAlignment = 64;
constexpr std::array<std::byte, kAlignment> kZeros{};

SafetensorsEntry byteTensor(const std::string& name, size_t size) {
  return {name, "U8", DType::U8, {int64_t(size)}, 0, size};
}

const std::string& metadata(const SafetensorsFile& file, const std::string& key) {
  auto it = file.metadata().find(key);
  if (it == file.metadata().end())
    throw Error(ErrorCode::InvalidFile,
                fmt::format("{}: not a Lathe container: its metadata has no "
                            "\"{}\"",
                            file.path(), key));
  return it->second;
}

}  // namespace

void ContainerWriter::addSection(const std::string& name, std::span<const std::byte> bytes) {
  addSection(name, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void ContainerWriter::addSection(const std::string& name, std::string_view text) {
  bool twice = std::ranges::any_of(sections_, [&](auto& s) { return s.first == name; });
  if (name.empty() || name.starts_with('.') || name == "__metadata__" || twice)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("expected a new section name that does not start with '.', got {}{}",
                            inQuotes(name), twice ? " a second time" : ""));
  sections_.emplace_back(name, std::string(text));
}

void ContainerWriter::setHeader(std::string json) {
  JsonValue::parse(json, "container header");
  header_ = std::move(json);
}

void ContainerWriter::save(const std::string& path) const {
  std::vector<SafetensorsEntry> entries;
  std::vector<std::span<const std::byte>> chunks(2);  // the header and its hash, known at the end
  std::map<std::string, std::string> metadata = {{"format", std::string(kFormat)},
                                                 {"version", std::to_string(kContainerVersion)},
                                                 {"header", header_}};
  auto pad = [&](size_t size) {
    size_t gap = (kAlignment - size % kAlignment) % kAlignment;
    if (gap == 0) return;
    entries.push_back(byteTensor(fmt::format(".pad{}", entries.size()), gap));
    chunks.push_back(std::span(kZeros).first(gap));
  };
  entries.push_back(byteTensor(std::string(kHeaderHash), 32));
  pad(32);
  for (auto& [name, bytes] : sections_) {
    entries.push_back(byteTensor(name, bytes.size()));
    chunks.push_back(asBytes(bytes));
    metadata["sha256:" + name] = sha256Hex(asBytes(bytes));
    pad(bytes.size());
  }
  const std::string start = makeSafetensorsHeader(entries, metadata);
  const auto hash = sha256(asBytes(start));
  chunks[0] = asBytes(start);
  chunks[1] = hash;
  writeFileAtomically(path, chunks);
}

Container Container::open(const std::string& path, bool verify) {
  Container result;
  result.file_ = SafetensorsFile::open(path);
  const SafetensorsFile& file = result.file_;
  auto fail = [&](const std::string& message) -> void {
    throw Error(ErrorCode::InvalidFile, path + ": " + message);
  };
  if (const std::string& format = metadata(file, "format"); format != kFormat)
    fail(fmt::format("not a Lathe container: expected format {}, got {}", kFormat,
                     inQuotes(format)));
  if (const std::string& version = metadata(file, "version");
      version != std::to_string(kContainerVersion))
    fail(fmt::format("container version {}, expected {}; compile the model again with this version",
                     inQuotes(version), kContainerVersion));
  metadata(file, "header");

  const SafetensorsEntry* stored = file.find(kHeaderHash);
  if (!stored || stored->bytes != 32) fail("the hash of the header is missing");
  std::span<const std::byte> start(file.bytes(kHeaderHash).data() - stored->offset,
                                   file.headerBytes());
  if (!std::ranges::equal(sha256(start), file.bytes(kHeaderHash)))
    fail("the header is damaged: its hash is not the stored one");

  for (const SafetensorsEntry& e : file.tensors()) {
    if (e.name.starts_with(".pad")) {
      if (!std::ranges::all_of(file.bytes(e.name), [](std::byte b) { return b == std::byte(0); }))
        fail(fmt::format("the padding {} is damaged: it is not zero", inQuotes(e.name)));
      continue;
    }
    if (e.name == kHeaderHash) continue;
    if (e.dtypeName != "U8" || e.offset % kAlignment != 0)
      fail(fmt::format("section {} is not aligned bytes", inQuotes(e.name)));
    result.sections_.push_back(e.name);
    const std::string& hash = metadata(file, "sha256:" + e.name);
    if (verify && sha256Hex(file.bytes(e.name)) != hash)
      fail(fmt::format("section {} is damaged: its hash is not the stored one", inQuotes(e.name)));
  }
  return result;
}

bool Container::has(std::string_view name) const {
  return std::ranges::find(sections_, name) != sections_.end();
}

std::span<const std::byte> Container::section(std::string_view name) const {
  if (!has(name))
    throw Error(ErrorCode::InvalidFile,
                fmt::format("{}: the section {} is missing", path(), inQuotes(name)));
  return file_.bytes(name);
}

std::string_view Container::text(std::string_view name) const {
  auto bytes = section(name);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace lathe
