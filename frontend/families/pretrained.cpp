// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/families/pretrained.h"

#include "lathe/runtime/error.h"
#include "runtime/gguf_model.h"

namespace lathe {
namespace {

// The dtype in which a graph asks for its floats: that of all of them, or f32, which holds the
// values of every other.
DType commonDType(const Checkpoint& checkpoint, DType otherwise) {
  if (!checkpoint.updates().empty()) return DType::F32;
  std::optional<DType> common;
  for (const std::string& name : checkpoint.names()) {
    const CheckpointTensor& tensor = *checkpoint.entry(name);
    if (tensor.blocks ||
        (tensor.dtype && common && isFloat(*tensor.dtype) && tensor.dtype != common))
      return DType::F32;
    if (tensor.dtype && isFloat(*tensor.dtype)) common = tensor.dtype;
  }
  return common.value_or(otherwise);
}

}  // namespace

JsonValue pretrainedConfig(const std::string& path) {
  if (!path.ends_with(".gguf")) return loadConfig(path);
  return JsonValue::parse(ggufConfig(openGgufParts(path)), path);
}

Graph buildPretrained(const std::string& path, const Checkpoint& checkpoint,
                      FamilyOptions options) {
  options.weightDType = commonDType(checkpoint, DType::F32);
  options.hasWeight = [&](std::string_view name) {
    return checkpoint.entry(nameIn(checkpoint, name)) != nullptr;
  };
  options.readsQuantized = true;
  options.pooling = readTextPooling(path);
  Graph graph = buildFromConfig(pretrainedConfig(path), options);
  readAsStored(graph, checkpoint);
  return graph;
}

}  // namespace lathe
