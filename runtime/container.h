// SPDX-License-Identifier: Apache-2.0
#pragma once
// The artifact container: named sections of bytes with a hash each, in one file.
//
// The file is a valid safetensors file, so the reader that is hardened for checkpoints serves here
// too. Each section is a U8 tensor whose bytes start at a multiple of 64; the metadata holds
// "format", "version", "header" (free JSON text of the caller) and "sha256:NAME" per section. The
// tensor ".header" holds the SHA-256 of everything before the data, ".pad*" fill the gaps with
// zeros: no byte of the file may change unnoticed.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/runtime/safetensors.h"

namespace lathe {

inline constexpr int64_t kContainerVersion = 1;

class ContainerWriter {
 public:
  /// Keeps a copy of `bytes`. A name is not empty, does not start with "." and comes once.
  void addSection(const std::string& name, std::span<const std::byte> bytes);
  void addSection(const std::string& name, std::string_view text);
  /// JSON text that Container::header() gives back; "{}" if never set.
  void setHeader(std::string json);
  /// Atomic (see writeFileAtomically).
  void save(const std::string& path) const;

 private:
  std::string header_ = "{}";
  std::vector<std::pair<std::string, std::string>> sections_;
};

/// A mapped container. Spans stay valid as long as a copy of the Container lives. The hashes guard
/// against damage, not against whoever can write the file: an artifact is a program.
class Container {
 public:
  /// Throws Error(InvalidFile) naming the damaged section, or the version found. The header's hash
  /// is always checked; `verify` checks every section's too, which reads the whole file.
  static Container open(const std::string& path, bool verify = true);

  const std::string& header() const { return file_.metadata().at("header"); }
  /// Names in the order they were added.
  const std::vector<std::string>& sections() const { return sections_; }
  bool has(std::string_view name) const;
  /// 64-byte aligned. A missing section is Error(InvalidFile).
  std::span<const std::byte> section(std::string_view name) const;
  std::string_view text(std::string_view name) const;
  const std::string& path() const { return file_.path(); }

 private:
  SafetensorsFile file_;
  std::vector<std::string> sections_;
};

}  // namespace lathe
