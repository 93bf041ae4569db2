// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stands in front of a softmax: scale, softcap and masks, read from the softmax downwards.
#include "passes/patterns/causal.h"
#include "passes/patterns/forms.h"

namespace lathe {

class ScoreReader {
 public:
  enum class Until {
    Product,   ///< down to a matmul; anything in between that cannot be read declines
    Anything,  ///< as far as it can be read
  };
  /// `scores` is the softmax's operand [.., queries, keys].
  ScoreReader(Match& match, mlir::Value scores, Until until)
      : m_(match), base(scores), type_(tensorType(scores)), until_(until) {}
  /// For `readMask` alone: of scores that are no value, of this type.
  ScoreReader(Match& match, mlir::RankedTensorType scores)
      : m_(match), type_(scores), until_(Until::Product) {}

  /// What the softmax itself does to the scores; call before `read`.
  void readSoftmax(SoftmaxOp softmax);
  /// False after Match::decline.
  bool read();
  /// Takes the mask operand of an attention apart instead of reading scores: a condition, or
  /// select(condition, 0, -inf). False for any other, with the reason for `why-not`.
  bool readMask(mlir::Value mask);
  /// Takes conditions that are causal masks and windows out of the masks. Call after `read`.
  void readCausal();
  /// The mask operand; null if there is none. Call last.
  mlir::Value mask();
  /// The row policy: that of the softmax, or `uniform` where masked scores have a finite fill, for
  /// a row of nothing but the fill has equal weights.
  MaskedRow maskedRow(SoftmaxOp softmax) const;

 private:
  enum class Step { Read, End, Failed };
  struct Condition {
    mlir::Value value;
    bool hidden;  ///< true means masked
  };

  Step step();
  Step stop(const llvm::Twine& reason);
  bool readSoftcap(mlir::Operation* product);
  Step addSelect(SelectOp select);
  Step addSum(AddOp sum);
  mlir::Value splitBias(mlir::Value bias);
  Step takeFill(double fill, mlir::Type element);
  void addCondition(mlir::Value condition, bool hidden);

  Match& m_;

 public:
  mlir::Value base;  ///< what is scaled, capped and masked
  double scale = 1, softcap = 0;
  Causal causal = Causal::none;
  int64_t window = 0;
  mlir::Value positions;

 private:
  mlir::RankedTensorType type_;
  Until until_;
  bool capped_ = false;
  bool addsFill_ = false;                     ///< a finite fill was added, not selected
  llvm::SmallVector<mlir::Type, 2> rounded_;  ///< what casts behind `base` round to
  std::optional<double> fill_;                ///< what masked scores are: -inf or one finite number
  llvm::SmallVector<Condition, 4> conditions_;
  llvm::SmallVector<mlir::Value, 2> biases_;
  llvm::SmallVector<mlir::StringAttr> apart_;  ///< dims of the scores, above where heads are joined
};

}  // namespace lathe
