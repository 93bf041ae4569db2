// SPDX-License-Identifier: Apache-2.0
#pragma once
// Program: what a backend makes and a session runs. Entry points are flat lists of kernel calls
// over slots; sizes are polynomials of the symbols. Immutable once built, shared by threads.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lathe/runtime/array.h"
#include "lathe/runtime/axis_piece.h"
#include "lathe/runtime/dim_expr.h"

namespace lathe {

using SymbolValues = std::map<std::string, int64_t, std::less<>>;
using SymbolicShape = std::vector<DimExpr>;

/// A named dimension: inclusive range, values are multiples of `multiple`.
struct SymbolInfo {
  std::string name;
  int64_t lo = 1, hi = 1, multiple = 1;
};

/// A size that the symbols give: elements of each of `parts` parts of an axis of `of`, of which the
/// last ones may be padding (sizeOfPart). No input or state has it alone.
struct SizePart {
  std::string name;
  DimExpr of;
  int64_t parts = 1;
};

enum class SlotKind { Arena, Argument, Result, Weight, State, Constant };

/// A buffer of an entry point.
struct Slot {
  SlotKind kind = SlotKind::Arena;
  DType dtype = DType::F32;
  SymbolicShape shape;
  /// Position among the entry's inputs or outputs, or the program's weights, states, constants.
  int index = 0;
  /// Another slot of this entry whose storage it shares (a view, an update in place); -1: its own.
  int alias = -1;
};

/// One kernel launch. `config` is a JSON object of the kernel's attributes.
struct Call {
  std::string kind;    ///< "region", "linear", "attention", ...
  std::string callee;  ///< generated function, for "region"
  std::string config;
  std::vector<int> operands, results;  ///< slots
  std::string origin;                  ///< module path and source line, for profiles and errors
};

struct Port {
  std::string name;
  int slot = 0;
};

struct EntryPoint {
  std::string name;
  std::vector<Port> inputs, outputs;
  /// States taken and given back: slot before and after, `name` is the state's.
  std::vector<Port> statesIn, statesOut;
  std::vector<Slot> slots;
  std::vector<Call> calls;
};

/// Of a checkpoint's tensor, cut into equal parts along an axis: rank r of n reads the part
/// r * parts / n, so that with fewer parts than ranks neighbours read the same. What is cut is each
/// of `groups` equal groups of the axis, or of each the elements from `begin` on, of `extent`: the
/// values of a tensor that holds queries and keys, too.
struct WeightPiece {
  std::string weight;
  int64_t axis = 0, parts = 1;
  int64_t groups = 1, begin = 0;
  int64_t extent = 0;  ///< elements of a group in the tensor; 0: as many as are cut
  int64_t partOf(int64_t rank, int64_t ranks) const { return rank * parts / ranks; }
};

struct TensorInfo {
  std::string name;
  DType dtype = DType::F32;
  SymbolicShape shape;
  std::optional<WeightPiece> piece = {};  ///< a weight that is read in pieces; `shape` is one's

  /// The checkpoint's name of a weight.
  const std::string& source() const { return piece ? piece->weight : name; }
  /// The shape that it has there.
  SymbolicShape sourceShape() const {
    SymbolicShape whole = shape;
    if (!piece) return whole;
    DimExpr& size = whole[size_t(piece->axis)];
    size = piece->extent ? DimExpr(piece->groups * piece->extent) : size * DimExpr(piece->parts);
    return whole;
  }
  /// What rank `rank` of `ranks` reads of it; all of it where it is read whole.
  AxisPiece own(int64_t rank, int64_t ranks) const {
    const WeightPiece p = piece.value_or(WeightPiece{});
    const int64_t size = shape[size_t(p.axis)].asConstant().value() / p.groups;
    return {p.axis, p.begin + p.partOf(rank, ranks) * size, size, p.groups};
  }
};

struct Program {
  std::string backend;
  std::vector<SymbolInfo> symbols;
  std::vector<TensorInfo> weights;  ///< from the checkpoint
  std::vector<TensorInfo> derived;  ///< computed by `load`, in the order of its outputs
  std::vector<TensorInfo> states;
  std::vector<Array> constants;
  std::vector<EntryPoint> entries;
  /// Runs once when weights are bound; its inputs are none, its outputs are `derived`.
  std::unique_ptr<EntryPoint> load;
  std::map<std::string, std::string> blobs;     ///< code and IR, by name
  std::map<std::string, std::string> files;     ///< config.json, tokenizer.json, ... of the model
  std::map<std::string, std::string> metadata;  ///< free text: compiler version, numerics mode
  int64_t ranks = 1;  ///< how many run it together, each on its pieces of the weights
  /// Of a pipeline, whose first stage this is: each has its layers, weights and states, and `ranks`
  /// ranks, the first stage the first of them. All have the same inputs; outputs are the first's.
  std::vector<std::shared_ptr<const Program>> laterStages = {};
  /// What ranks have of axes that they need not divide: named in shapes like symbols.
  std::vector<SizePart> sizeParts = {};

  int64_t stages() const { return 1 + int64_t(laterStages.size()); }
  /// Of all stages.
  int64_t allRanks() const { return ranks * stages(); }

  /// Adds the sizes of parts whose symbols have values.
  void addSizeParts(SymbolValues& values) const;

  /// Throws Error naming the entry points that exist.
  const EntryPoint& entry(std::string_view name) const;

  /// SHA-256 of all that is computed, in hexadecimal: ranks that run it together have the same.
  std::string digest() const;

  /// Writes an artifact: code, constants and files; weights stay where they are.
  void save(const std::string& path) const;
  /// Throws Error (InvalidFile) for anything that is not a sound artifact of this version.
  static std::shared_ptr<const Program> open(const std::string& path);
};

}  // namespace lathe
