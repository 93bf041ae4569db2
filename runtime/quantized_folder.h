// SPDX-License-Identifier: Apache-2.0
#pragma once
// Folders whose layers are quantized: the tensors of a layer become one matrix. One file for each
// method that `quantization_config` of config.json may name.
#include <array>
#include <initializer_list>
#include <string_view>

#include "lathe/runtime/config_reader.h"
#include "runtime/stored_weight.h"

namespace lathe {

/// Puts `MODULE.weight` in the place of the tensors of every quantized module. `config` is the
/// object `quantization_config`. Throws Error(Unsupported) for methods, numbers of bits and fields
/// of other mathematics that there are not, and Error(InvalidFile) for tensors that do not fit
/// together.
void joinQuantizedLayers(StoredWeights& weights, const JsonValue& config);

namespace quantized {

/// Fields of GPTQ's that change no number of a model: how the numbers were found, and which kernels
/// multiply them.
inline constexpr auto kGptqNotes =
    std::to_array<std::string_view>({"sym",
                                     "desc_act",
                                     "lm_head",
                                     "true_sequential",
                                     "static_groups",
                                     "damp_percent",
                                     "damp_auto_increment",
                                     "quantizer",
                                     "meta",
                                     "mse",
                                     "act_group_aware",
                                     "hyb_act",
                                     "dataset",
                                     "tokenizer",
                                     "model_seqlen",
                                     "block_name_to_quantize",
                                     "module_name_preceding_first_block",
                                     "modules_in_block_to_quantize",
                                     "modules_to_not_convert",
                                     "batch_size",
                                     "use_cuda_fp16",
                                     "use_exllama",
                                     "disable_exllama",
                                     "exllama_config",
                                     "max_input_length",
                                     "cache_block_outputs",
                                     "backend",
                                     "model_name_or_path",
                                     "model_file_base_name",
                                     "pack_impl",
                                     "offload_to_disk",
                                     "offload_to_disk_path"});

void joinGptq(StoredWeights& weights, ConfigReader& config);
void joinAwq(StoredWeights& weights, ConfigReader& config);
void joinCompressedTensors(StoredWeights& weights, ConfigReader& config);
void joinFp8(StoredWeights& weights, ConfigReader& config);

/// Throws Error(Unsupported) "KEY: expected A or B, got ..." unless the value is one of them.
void expectOneOf(const JsonValue& value, std::initializer_list<std::string_view> texts);

/// The modules that have a tensor `MODULE.NAME`, sorted.
std::vector<std::string> modulesWith(const StoredWeights& weights, std::string_view name);

/// The tensors of one module.
class Module {
 public:
  Module(StoredWeights& weights, std::string path, const JsonValue& config)
      : weights_(weights), path_(std::move(path)), config_(config) {}

  const std::string& path() const { return path_; }
  /// Null if there is none of that name.
  const CheckpointTensor* find(std::string_view name) const;
  /// Takes a tensor out of the table. Throws Error(InvalidFile) where it is missing, has another
  /// dtype than those given or, unless `shape` is empty, another shape.
  StoredWeight take(std::string_view name, std::initializer_list<DType> dtypes,
                    const Shape& shape = {});
  /// The same of a tensor that is there, as bytes of any dtype.
  StoredWeight takeBytes(std::string_view name);
  /// Takes out what may be there and is not needed.
  void drop(std::string_view name);
  /// Puts the matrix there.
  void put(StoredWeight weight);
  /// "FILE: quantization_config: MODULE.NAME: MESSAGE".
  Error error(std::string_view name, const std::string& message) const;

 private:
  StoredWeights& weights_;
  std::string path_;
  const JsonValue& config_;
};

/// A matrix with blocks, which is made of its parts, and its pieces.
StoredWeight matrixOfParts(
    CheckpointTensor tensor, std::function<Array(WeightPart)> readPart,
    std::function<std::shared_ptr<const StoredWeight>(const AxisPiece&)> cut);

/// Which of the stored blocks the columns of a matrix lie in: `stored` columns are one, and `lead`
/// of the first come before the matrix, which is a piece.
struct BlockPlaces {
  int64_t stored = 0, lead = 0;

  /// How many hold so many columns.
  int64_t count(int64_t columns) const { return (lead + columns + stored - 1) / stored; }
  /// Scales or zero points [rows, count] as those of blocks of `block` columns, which lie in them.
  Array spread(const Array& perBlock, int64_t columns, int64_t block) const;
};

/// What a piece of a matrix is of one of its layer's tensors.
class LayerPiece {
 public:
  /// Of a matrix whose axis of the piece has `length` numbers.
  LayerPiece(const AxisPiece& piece, int64_t length) : piece_(piece), length_(length) {}

  int64_t axis() const { return piece_.axis; }
  /// The numbers of the matrix along that axis.
  int64_t size() const { return piece_.size * piece_.groups; }

  /// Of a tensor that has `unit` numbers of the matrix in an element along its `axis`. Gives false
  /// where the piece begins or ends amid one.
  bool cut(StoredWeight& tensor, int64_t axis, int64_t unit = 1);
  /// The same where an element serves a block of numbers: the elements that serve any of its own.
  bool cutBlocks(StoredWeight& tensor, int64_t axis, int64_t block);
  /// Makes blocks so small that the piece is of whole ones, and tells where it lies in the stored.
  void cutBlocks(WeightBlocks& blocks, BlockPlaces& places);

 private:
  bool take(StoredWeight& tensor, const AxisPiece& piece);

  AxisPiece piece_;
  int64_t length_;
};

/// Scales [rows, blocks] from what the module has: any of f16, bf16 and f32, transposed where
/// `isTransposed`. `dtype` is F32 or BF16.
Array readScales(const StoredWeight& stored, DType dtype, int64_t rows, int64_t blocks,
                 bool isTransposed);
/// BF16 where a row has several and they are stored so: what kernels take. F32 else.
DType scaleDType(const StoredWeight& stored, int64_t blocks);

/// The columns in the order of their groups; empty if they are in it already. Throws Error
/// (InvalidFile) for groups of unequal sizes.
std::vector<int64_t> orderOfGroups(const Module& module, std::string_view name, const Array& groups,
                                   int64_t group);
Array toArray(const std::vector<int64_t>& order);

}  // namespace quantized
}  // namespace lathe
