// SPDX-License-Identifier: Apache-2.0
#pragma once
// The weights of a model by name, from one safetensors file or from a folder of shards.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/safetensors.h"

namespace lathe {

/// Opens a folder with model.safetensors or with model.safetensors.index.json and its shards, an
/// index file, or a single .safetensors file. Memory-mapped: opening costs the headers only.
class Checkpoint {
 public:
  /// Throws Error(Io) where a file is missing and Error(InvalidFile) where one breaks its format:
  /// a shard name that is not a plain file name, a tensor in two shards, a tensor that the index
  /// promises and the shard does not hold.
  static Checkpoint open(const std::string& path);

  /// The tensor, or nothing. A view of the mapping (see SafetensorsFile::array).
  std::optional<Array> find(std::string_view name) const;
  /// The tensor's dtype and shape without touching its bytes; null if there is none.
  const SafetensorsEntry* entry(std::string_view name) const;
  /// All names, sorted.
  const std::vector<std::string>& names() const { return names_; }
  const std::string& path() const { return path_; }

 private:
  void add(SafetensorsFile file);
  void addShards(const std::string& indexPath);

  std::string path_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t, std::less<>> fileOf_;
  std::vector<std::string> names_;
};

struct ExpectedWeight {
  std::string name;
  std::optional<DType> dtype;  ///< nothing: F32, BF16, F16 or F64
  Shape shape;
};

/// Throws one Error(InvalidFile) that lists, by name, every missing, unexpected and misshapen (or
/// wrongly typed) tensor, at most 20 lines of each. A tensor of `optional` may be absent, and is
/// checked where present.
void checkWeights(const std::vector<ExpectedWeight>& expected, const Checkpoint& checkpoint,
                  const std::vector<ExpectedWeight>& optional = {});

}  // namespace lathe
