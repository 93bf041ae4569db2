// SPDX-License-Identifier: Apache-2.0
#pragma once
// The weights of a model by name: from one safetensors file, from a folder of shards whose weights
// may be in few bits, or from a GGUF or an ONNX file. Names are those that PyTorch's modules have.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/safetensors.h"

namespace lathe {

/// A matrix [n, k] in few bits, as `lathe.dequantize` along axis 1 reads it: `(q - zero) * scale`,
/// where a scale serves `block` neighbours of a row. Its parts have names of their own: NAME.q
/// [n, k], NAME.scale and NAME.zero [n, ceil(k / block)], and NAME.order i64 [k], which says which
/// column of the matrix column j of q is.
struct WeightBlocks {
  DType dtype = DType::I8;  ///< of q: I8, U8, I4, U4
  int64_t block = 0;
  DType scale = DType::F32;   ///< F32, or BF16 where a row has several
  std::optional<DType> zero;  ///< U8 or I8; nothing: it is 0
  bool ordered = false;       ///< the columns of q have another order than the matrix
};

/// A tensor of a checkpoint, or a part of one.
struct CheckpointTensor {
  std::string name;
  std::string dtypeName;       ///< as the file spells it: "F32", "F8_E4M3", "Q4_0", ...
  std::optional<DType> dtype;  ///< of what find() gives; nothing: it cannot be read
  Shape shape;
  size_t bytes = 0;  ///< in the file
  std::optional<WeightBlocks> blocks = {};
};

/// What LoRA adds to a weight when it is loaded: `scale * B A`, transposed where the weight lies
/// [inputs, outputs]; with magnitudes m (DoRA) the rows of the sum W get the lengths m:
/// `m W / |W|`.
struct LoraUpdate {
  std::string weight;
  std::string a, b;       ///< tensors of the checkpoint: [rank, inputs] and [outputs, rank]
  std::string magnitude;  ///< [outputs]; empty: there are none
  double scale = 1;
  bool isTransposed = false;
  bool isTable = false;  ///< of rows that ids choose
};

/// Opens a folder with model.safetensors or with model.safetensors.index.json and its shards, an
/// index file, a single .safetensors file, a .gguf file (of several the first), or an .onnx file.
/// Memory-mapped: opening costs the headers only, and nothing is decoded before it is asked for.
///
/// In a folder whose config.json has a `quantization_config` (gptq, awq, compressed-tensors, fp8)
/// the tensors of a quantized layer are one matrix `MODULE.weight`; it has `blocks` where it is of
/// integers. So have the matrices of a GGUF file whose blocks are integers times a scale.
class Checkpoint {
 public:
  /// Throws Error(Io) where a file is missing and Error(InvalidFile) where one breaks its format:
  /// a shard name that is not a plain file name, a tensor in two shards, a tensor that the index
  /// promises and the shard does not hold, parts of a quantized layer that do not fit together.
  /// Throws Error(Unsupported), by name, for methods of quantization that are not known.
  ///
  /// `loras` are folders of PEFT (adapter_config.json, adapter_model.safetensors), in the order in
  /// which they are merged; what the graph has to do with their tensors, updates() says.
  static Checkpoint open(const std::string& path, const std::vector<std::string>& loras = {});

  /// The tensor, or nothing. What lies in the file as it is used is a view of the mapping (see
  /// SafetensorsFile::array); else it is decoded, at each call anew: a matrix in few bits to f32, a
  /// part of one to the dtype that `blocks` says.
  std::optional<Array> find(std::string_view name) const;
  /// A piece of the tensor, of which nothing else is read: what find() gives, there. Nothing where
  /// the format cannot do that (a piece that begins amid a block or a word of it, columns in
  /// another order than the matrix', numbers of ONNX that are no raw bytes): cut what find() gives.
  /// Throws Error (InvalidArgument) for a piece that the tensor does not have.
  std::optional<Array> findPiece(std::string_view name, const AxisPiece& piece) const;
  /// The tensor's dtype and shape without touching its bytes; null if there is none. Takes the
  /// names of parts, too.
  const CheckpointTensor* entry(std::string_view name) const;
  /// The matrix that a name is a part of; the name itself where it is none.
  std::string_view wholeOf(std::string_view name) const;
  /// All names of whole tensors, sorted.
  const std::vector<std::string>& names() const { return names_; }
  const std::string& path() const { return path_; }
  const std::vector<LoraUpdate>& updates() const { return updates_; }
  /// Weights whose place LoRA folders take, for the module alone that has their name: another that
  /// shares the weight keeps its own.
  const std::vector<std::string>& replaced() const { return replaced_; }

 private:
  struct Tables;
  std::string path_;
  std::shared_ptr<const Tables> tables_;
  std::vector<std::string> names_;
  std::vector<LoraUpdate> updates_;
  std::vector<std::string> replaced_;
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
