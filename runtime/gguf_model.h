// SPDX-License-Identifier: Apache-2.0
#pragma once
// A GGUF file as a model of a family: its weights under Hugging Face's names, and its metadata as
// the small files of a folder.
#include <map>
#include <string>
#include <vector>

#include "lathe/runtime/gguf.h"
#include "runtime/stored_weight.h"

namespace lathe {

/// The file and, where it is the first of several, the others beside it. Throws Error
/// (InvalidFile) where parts are missing or do not belong together.
std::vector<GgufFile> openGgufParts(const std::string& path);

/// Weights by Hugging Face's names. Throws Error(Unsupported) for architectures without a family.
StoredWeights readGgufWeights(const std::string& path);

/// What `weight` of a family a tensor is, or parts of one.
struct GgufWeight {
  std::string name;          ///< Hugging Face's
  int64_t first = 0;         ///< row, of all dims but the last as one
  Shape shape = {};          ///< empty: as in the file
  int64_t rotatedHeads = 0;  ///< rows of q and k of so many heads lie for interleaved pairs; 0: not
  bool lessOne = false;      ///< the file holds 1 + w
};
/// Null, or the weights that lie in the tensor. `parts` are the files of the model.
std::vector<GgufWeight> weightsIn(const GgufTensor& tensor, const std::vector<GgufFile>& parts);

/// config.json, tokenizer.json, tokenizer_config.json and chat_template.jinja, as texts that are
/// read as those of a folder are. Throws Error(Unsupported), by key, for metadata that change what
/// the model computes and that no family reads.
std::map<std::string, std::string> ggufModelFiles(const std::string& path);

/// One each of these files.
std::string ggufConfig(const std::vector<GgufFile>& parts);
std::string ggufTokenizer(const GgufFile& file);
std::string ggufTokenizerConfig(const GgufFile& file);

/// The tensor in any of the files; null if there is none.
const GgufTensor* findTensor(const std::vector<GgufFile>& parts, std::string_view name);

}  // namespace lathe
