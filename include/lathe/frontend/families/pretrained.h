// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model together with how its checkpoint holds the weights: a Hugging Face folder, quantized or
// not, with LoRA adapters, or a GGUF file.
#include <string>
#include <vector>

#include "lathe/frontend/families/family.h"
#include "lathe/runtime/checkpoint.h"

namespace lathe {

/// config.json of a folder, or what the metadata of a .gguf file say in its place.
JsonValue pretrainedConfig(const std::string& path);

/// How a folder's `modules.json` of sentence-transformers pools a text; the mean of length 1 where
/// there is none. Throws Error(Unsupported) for other modules and ways to pool.
TextPooling readTextPooling(const std::string& folder);

/// Builds the graph of a folder's or a GGUF file's model and reads its weights as `checkpoint`
/// holds them (readAsStored); `weightDType`, `hasWeight` and `pooling` of the options are set.
///
///   const Checkpoint checkpoint = Checkpoint::open("model.gguf");
///   Session session(compile(buildPretrained("model.gguf", checkpoint)));
///   session.bindWeights(checkpoint);
Graph buildPretrained(const std::string& path, const Checkpoint& checkpoint,
                      FamilyOptions options = {});

/// What `checkpoint` calls a weight: one that was saved of the bare model lacks the first part of
/// the names that the model with a head has, such as `model.` or `transformer.`.
std::string nameIn(const Checkpoint& checkpoint, std::string_view name);

/// Rewrites the graph's weights to what the checkpoint holds, under its names: a matrix in few bits
/// becomes `lathe.dequantize` of its parts, another float dtype a cast, and a LoRA update a sum,
/// all of it arithmetic on weights that runs when they are loaded. Rows of a table in few bits are
/// chosen before they are widened, and inputs of a matrix whose columns have an order of their own
/// are brought into that order. Nothing can be recorded in the graph afterwards. Throws
/// Error(Unsupported) for a LoRA update of a table that is the head, too, and Error(InvalidFile)
/// for one of a weight that the graph does not read.
void readAsStored(Graph& graph, const Checkpoint& checkpoint);

}  // namespace lathe
