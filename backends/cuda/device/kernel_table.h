// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a CUDA program tells its device about kernels: for every call, which ones to launch, with
// what grid and arguments. Sizes are polynomials of the symbols, so one table serves every shape.
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/dim_expr.h"
#include "lathe/runtime/dtype.h"

namespace lathe::cuda {

/// The hardware's limit along y and z; along x it is 2^31 - 1.
constexpr int64_t kMostOnAxis = 65535;

/// Blocks along one axis of the grid: ceil(count / per), but never more than `most`.
struct GridAxis {
  DimExpr count = 1;
  int64_t per = 1;
  int64_t most = 0;  ///< 0: no limit; with one, the kernel strides over what is left
  /// Of y and z: the blocks stand along x, behind one another, those of x running fastest; the
  /// kernel takes its number apart.
  bool folds = false;
};

/// One kernel parameter, in the order of the kernel's parameter list.
struct Argument {
  enum class Kind {
    Buffer,    ///< pointer to operand or result number `index` (operands first)
    Size,      ///< `value` as a signed 64-bit integer
    Scratch,   ///< pointer into scratch buffer `index` at byte `value`, a multiple of 256
    Status,    ///< pointer to the status word of the launch's check `index`
    Counters,  ///< pointer to `index` zero bytes that the kernel leaves zero; launches share them
  };
  Kind kind = Kind::Buffer;
  int index = 0;
  DimExpr value = 0;
};

/// The product that a launch computes and nothing else. Where there is a library it computes that:
/// result[rows, columns] = x[rows, depth] weight[columns, depth]^T + bias[columns] + residual.
struct PlainMatmul {
  DType dtype = DType::BF16;
  DimExpr rows = 0, columns = 0, depth = 0;
  Argument x, weight, result;
  std::optional<Argument> bias, residual;
  int rank = 0;           ///< of the library's algorithms (LibraryMatmul::rank)
  bool required = false;  ///< without the library it is an error: the launch's kernel is no answer
  std::optional<DType> resultDType = {};  ///< f32, where it is not `dtype`
};

/// The attention that a launch computes and nothing else. Where there is a library it computes
/// that.
struct PlainAttention {
  /// Where an operand [batch, heads, tokens, depth] lies in its buffer, in elements.
  struct View {
    Argument buffer;
    DimExpr offset = 0, batch = 0, head = 0, token = 0;
  };
  DType dtype = DType::BF16;
  DimExpr batch = 1, queries = 1, keys = 1;
  int64_t queryHeads = 1, keyHeads = 1, depth = 64, valueDepth = 64;
  View q, k, v, y;
  double scale = 1;
  bool causal = false;              ///< as LibraryAttention::causal
  std::optional<Argument> lengths;  ///< as LibraryAttentionOperands::lengths
  bool required = false;  ///< without the library it is an error: the launch's kernel is no answer
};

/// An op whose index a kernel checks: out of range, it sets a status word (runtime/status_word.h).
struct IndexCheck {
  int op = -1;         ///< its place in the list "origins" of the call's config; -1: the call's own
  DimExpr length = 0;  ///< of the axis; 0: not told
  DimExpr count = 0;   ///< new elements that are written from the index on; 0: one is read
  DimExpr block = 0;   ///< elements of each of the blocks that the axis consists of; 0: of none
};

struct Launch {
  std::string kernel;  ///< the extern "C" name; its module has the same name
  std::array<GridAxis, 3> grid;
  int threads = 256;        ///< per block, one-dimensional
  int cluster = 1;          ///< blocks per cluster along x
  int64_t sharedBytes = 0;  ///< dynamic shared memory
  /// Left out if these two buffers are one: an update in place needs no copy of the old state.
  std::array<int, 2> unlessSame = {-1, -1};
  bool waits = false;  ///< runs griddepcontrol.wait before its first dependent access
  std::vector<Argument> arguments;
  std::vector<IndexCheck> checks;
  std::optional<PlainMatmul> matmul;
  std::optional<PlainAttention> attention;
};

/// The grid that `launch` runs with for the sizes that `valueOf` gives; an axis of 0 has no blocks.
/// Throws Error (Unsupported) for more blocks than an axis takes.
std::array<uint32_t, 3> gridOf(const Launch& launch,
                               const std::function<int64_t(const DimExpr&)>& valueOf);

/// Why some sizes could ask for more blocks along y or z than there are, or nothing: each of the
/// two is folded into x, limited, or constant.
std::string whyNotEveryGrid(const Launch& launch);

/// `low <= value <= high`.
struct Condition {
  DimExpr value = 0;
  int64_t low = 0, high = 0;
};

/// One way to run a call. The first variant whose conditions all hold is taken.
struct Variant {
  std::string what;  ///< for reports: "gemv 4 rows/warp", "tiled 128x128"
  int buffers = 0;   ///< operands and results of its calls; 0: not told
  std::vector<Condition> when;
  DimExpr scratchBytes = 0;  ///< of scratch buffer 0
  /// Bytes of scratch buffers 1, 2, ..: what one launch of the call hands to another.
  std::vector<DimExpr> temporaries;
  std::vector<Launch> launches;
};

/// Call::callee to its variants.
using KernelTable = std::map<std::string, std::vector<Variant>, std::less<>>;

std::string toJson(const KernelTable& table);
/// Throws Error (InvalidFile) for text that is no table.
KernelTable parseKernelTable(std::string_view json);

}  // namespace lathe::cuda
