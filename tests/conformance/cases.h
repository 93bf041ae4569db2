// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one table of sample cases: every op of the dialect that a user can record, through its
// builder function, by dtype and awkward sizes. All conformance tests walk it.
#include <functional>
#include <string>
#include <vector>

#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/session.h"

namespace lathe::conformance {

enum class Fill {
  Normal,    ///< around 0 with a spread of 1.5; integers -20 to 20
  Positive,  ///< 0.05 to 20; integers 1 to 20
  NearOne,   ///< 0.9 to 1.1; integers -1 or 1
  Integers,  ///< -4 to 4 in any dtype: sums and products are exact
  Special,  ///< NaN, infinities, signed zeros, denormals, the largest values, mixed with plain ones
  NonFinite,   ///< Special without the largest values, whose sums depend on their order
  Huge,        ///< large values of both signs that are finite in the dtype
  MaskedRows,  ///< Normal, with every third row of the last axis -inf (false for bool)
  Index,       ///< integers in [0, limit)
};

struct Input {
  DType dtype = DType::F32;
  Dims shape;
  Fill fill = Fill::Normal;
  int64_t limit = 0;    ///< for Fill::Index
  bool weight = false;  ///< recorded as a weight instead of an argument
};

using Record = std::function<std::vector<Tensor>(Graph&, const std::vector<Tensor>&)>;

struct Sample {
  std::string name;
  std::vector<Input> inputs;
  Record record;
  /// The data are small integers: every backend gives the same bits.
  bool exact = false;
  /// Intermediate values leave the dtype's range: the oracle rounds them as the dtype does.
  bool ownDtype = false;
};

struct OpRow {
  std::string op;  ///< "lathe.add"
  bool fused = false;
  std::vector<DType> dtypes;  ///< all that the op takes
  std::function<std::vector<Sample>(DType)> samples;
  bool isFound = true;  ///< a fused op: fusions find it in its elementary form
};

const std::vector<OpRow>& opTable();
/// Throws std::out_of_range for an op that has no row.
const OpRow& rowOf(const std::string& op);

/// Values of the symbols `rows` and `cols` that shapes of samples use; each graph is compiled once.
struct Sizes {
  int64_t rows = 0, cols = 0;
};
const std::vector<Sizes>& allSizes();
Dim rows();
Dim cols();

/// While it lives, `rows` and `cols` are these numbers in the samples that are made.
class FixedSizes {
 public:
  explicit FixedSizes(Sizes sizes);
  ~FixedSizes();
  FixedSizes(const FixedSizes&) = delete;
  FixedSizes& operator=(const FixedSizes&) = delete;
};

/// All samples in one entry point `forward`; inputs and weights are named "S.inI", outputs
/// "S.outO". Symbol `rows` begins at 0, `cols` at `leastCols`.
Graph recordSamples(const std::vector<Sample>& samples, int64_t leastCols = 1);

struct Data {
  Arrays inputs, weights;
};
/// The same values on every call; `salt` (an op's name) makes them differ between ops.
Data makeData(const std::vector<Sample>& samples, Sizes sizes, const std::string& salt);

}  // namespace lathe::conformance
