// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_set>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/cut_axis.h"
#include "runtime/gguf_model.h"
#include "runtime/lora.h"
#include "runtime/mapped_file.h"
#include "runtime/onnx_model.h"
#include "runtime/quantized_folder.h"
#include "runtime/stored_weight.h"

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

bool fits(const ExpectedWeight& expected, const CheckpointTensor& tensor) {
  bool dtype =
      expected.dtype ? tensor.dtype == expected.dtype : tensor.dtype && isFloat(*tensor.dtype);
  return dtype && tensor.shape == expected.shape;
}

std::string describeTensor(std::string_view dtype, const Shape& shape) {
  return fmt::format("{}[{}]", dtype, fmt::join(shape, ", "));
}

void appendLines(std::string& message, std::string_view title,
                 const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  message += fmt::format("\n{} {}:", lines.size(), title);
  for (size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) message += "\n  " + lines[i];
  if (lines.size() > kMaxLines) message += fmt::format("\n  and {} more", lines.size() - kMaxLines);
}

using SharedFile = std::shared_ptr<const SafetensorsFile>;

void add(StoredWeights& weights, const SharedFile& file,
         std::map<std::string, std::string>& fileOf) {
  for (const SafetensorsEntry& e : file->tensors()) {
    auto [it, isNew] = fileOf.emplace(e.name, file->path());
    if (!isNew)
      throw Error(ErrorCode::InvalidFile, fmt::format("tensor {} is in two shards: {} and {}",
                                                      inQuotes(e.name), it->second, file->path()));
    weights[e.name] = storedIn(file, e, e.name);
  }
}

StoredWeights readShards(const std::string& indexPath) {
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
  StoredWeights weights;
  std::map<std::string, std::string> fileOf;
  std::map<std::string, SharedFile> files;
  for (const std::string& shard : shards) {
    std::string path = join(folder, shard);
    if (!exists(path))
      throw Error(ErrorCode::Io, fmt::format("{}: the shard {} is missing, expected it at {}",
                                             indexPath, inQuotes(shard), path));
    files[shard] = std::make_shared<const SafetensorsFile>(SafetensorsFile::open(path));
    add(weights, files[shard], fileOf);
  }
  for (size_t i = 0; i < map.size(); ++i) {
    auto [name, shard] = map.member(i);
    if (!files.at(shard.asString())->find(name))
      throw Error(ErrorCode::InvalidFile,
                  fmt::format("{}: tensor {} is not in shard {}, where the index puts it",
                              indexPath, inQuotes(name), inQuotes(shard.asString())));
  }
  return weights;
}

StoredWeights readFile(const std::string& path) {
  StoredWeights weights;
  std::map<std::string, std::string> fileOf;
  add(weights, std::make_shared<const SafetensorsFile>(SafetensorsFile::open(path)), fileOf);
  return weights;
}

StoredWeights readFolder(const std::string& folder) {
  StoredWeights weights;
  if (exists(join(folder, kSingle))) {
    weights = readFile(join(folder, kSingle));
  } else if (exists(join(folder, kIndex))) {
    weights = readShards(join(folder, kIndex));
  } else {
    throw Error(ErrorCode::Io, fmt::format("{}: expected {} or {} in this folder, found neither",
                                           folder, kSingle, kIndex));
  }
  mendPrefixes(weights);
  if (const std::string config = join(folder, "config.json"); exists(config)) {
    const JsonValue root = JsonValue::load(config, kConfigFile);
    if (root.isObject())
      if (auto quantization = root.find("quantization_config"))
        joinQuantizedLayers(weights, *quantization);
  }
  return weights;
}

StoredWeights readOnnxWeights(const std::string& path) {
  StoredWeights weights;
  const std::shared_ptr<const onnx::OnnxFile> file = onnx::OnnxFile::open(path);
  for (const onnx::OnnxFile::NamedTensor& weight : file->weights()) {
    const onnx::TensorMessage& tensor = *weight.tensor;
    const std::string name(weight.name);
    auto [it, isNew] = weights.try_emplace(name);
    if (!isNew)
      throw Error(ErrorCode::InvalidFile,
                  fmt::format("{}: tensor {} is there twice", path, inQuotes(name)));
    const std::optional<DType> dtype = onnx::dtypeOf(tensor.type);
    it->second.tensor = {name, onnx::nameOf(tensor.type), dtype, tensor.dims,
                         dtype ? bytesOf(*dtype, elementCount(tensor.dims)) : 0};
    it->second.read = [file, &tensor] { return file->array(tensor); };
    it->second.cut = [file, &tensor, whole = it->second.tensor](const AxisPiece& piece) {
      auto cut = std::make_shared<StoredWeight>();
      cut->tensor = whole;
      cut->tensor.shape[size_t(piece.axis)] = piece.size * piece.groups;
      cut->read = [=, &tensor] { return file->piece(tensor, piece); };
      return onnx::OnnxFile::hasPieces(tensor, piece) ? cut : nullptr;
    };
  }
  return weights;
}

}  // namespace

struct Checkpoint::Tables {
  StoredWeights weights;
  struct PartOf {
    CheckpointTensor tensor;
    std::string whole;
    WeightPart part;
  };
  std::map<std::string, PartOf, std::less<>> parts;
};

Checkpoint Checkpoint::open(const std::string& path, const std::vector<std::string>& loras) {
  auto tables = std::make_shared<Tables>();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    tables->weights = readFolder(path);
  else if (path.ends_with(".json"))
    tables->weights = readShards(path);
  else if (path.ends_with(".gguf"))
    tables->weights = readGgufWeights(path);
  else if (path.ends_with(".onnx"))
    tables->weights = readOnnxWeights(path);
  else
    tables->weights = readFile(path);
  Checkpoint result;
  result.path_ = path;
  for (size_t i = 0; i < loras.size(); ++i) {
    LoraFolder folder = addLora(tables->weights, loras[i], fmt::format("lora{}.", i));
    std::ranges::move(folder.updates, std::back_inserter(result.updates_));
    std::ranges::move(folder.replaced, std::back_inserter(result.replaced_));
  }
  for (auto& [name, stored] : tables->weights) {
    result.names_.push_back(name);
    for (WeightPart part : {WeightPart::Q, WeightPart::Scale, WeightPart::Zero, WeightPart::Order})
      if (auto tensor = partOf(stored.tensor, part)) {
        if (tables->weights.contains(tensor->name))
          throw Error(ErrorCode::InvalidFile,
                      fmt::format("{}: the name {} is taken by a part of {}", path,
                                  inQuotes(tensor->name), name));
        std::string partName = tensor->name;
        tables->parts[partName] = {std::move(*tensor), name, part};
      }
  }
  result.tables_ = std::move(tables);
  return result;
}

const CheckpointTensor* Checkpoint::entry(std::string_view name) const {
  if (auto it = tables_->weights.find(name); it != tables_->weights.end())
    return &it->second.tensor;
  auto it = tables_->parts.find(name);
  return it == tables_->parts.end() ? nullptr : &it->second.tensor;
}

std::string_view Checkpoint::wholeOf(std::string_view name) const {
  auto it = tables_->parts.find(name);
  return it == tables_->parts.end() ? name : it->second.whole;
}

std::optional<Array> Checkpoint::find(std::string_view name) const {
  if (auto it = tables_->weights.find(name); it != tables_->weights.end()) return it->second.read();
  auto it = tables_->parts.find(name);
  if (it == tables_->parts.end()) return std::nullopt;
  return tables_->weights.find(it->second.whole)->second.readPart(it->second.part);
}

std::optional<Array> Checkpoint::findPiece(std::string_view name, const AxisPiece& piece) const {
  const CheckpointTensor* tensor = entry(name);
  if (!tensor) return std::nullopt;
  if (!hasPiece(tensor->shape, piece))
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("{}: tensor {} [{}] has no elements {} to {} of {} groups along axis {}", path_,
                    inQuotes(name), fmt::join(tensor->shape, ", "), piece.begin,
                    piece.begin + piece.size, piece.groups, piece.axis));
  const auto part = tables_->parts.find(name);
  const bool isPart = part != tables_->parts.end();
  const StoredWeight& whole =
      tables_->weights.find(isPart ? std::string_view(part->second.whole) : name)->second;
  const std::optional<AxisPiece> cut =
      isPart ? ofMatrix(whole.tensor, part->second.part, piece) : piece;
  const auto own = cut && whole.cut ? whole.cut(*cut) : nullptr;
  if (!own || (isPart && !own->readPart)) return std::nullopt;
  return isPart ? own->readPart(part->second.part) : own->read();
}

void checkWeights(const std::vector<ExpectedWeight>& expected, const Checkpoint& checkpoint,
                  const std::vector<ExpectedWeight>& optional) {
  std::unordered_set<std::string_view> known;
  std::vector<std::string> missing, extra, wrong;
  auto check = [&](const ExpectedWeight& weight, bool required) {
    known.insert(checkpoint.wholeOf(weight.name));
    const CheckpointTensor* entry = checkpoint.entry(weight.name);
    // Of a dtype that cannot be read the reader says which can.
    if (entry && !entry->dtype && entry->shape == weight.shape) (void)checkpoint.find(weight.name);
    if (entry && !fits(weight, *entry))
      wrong.push_back(fmt::format(
          "{}: expected {}, got {}", weight.name,
          describeTensor(weight.dtype ? nameOf(*weight.dtype) : "float", weight.shape),
          describeTensor(entry->dtype ? nameOf(*entry->dtype) : entry->dtypeName, entry->shape)));
    if (!entry && required)
      missing.push_back(fmt::format(
          "{} {}", weight.name,
          describeTensor(weight.dtype ? nameOf(*weight.dtype) : "float", weight.shape)));
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
