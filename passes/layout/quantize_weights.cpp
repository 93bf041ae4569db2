// SPDX-License-Identifier: Apache-2.0
#include "passes/layout/quantize_weights.h"

#include <set>

#include "ir/op_builder.h"
#include "lathe/passes/greedy.h"
#include "lathe/passes/region_ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/rewrite/asked_once.h"
#include "passes/rewrite/numerics_scope.h"
#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe {
namespace {

Type integerOf(MLIRContext* context, const WeightFormat& format) {
  const bool isSmall = format.bits == WeightFormat::Bits::Int4;
  return elementTypeOf(context, format.asymmetric ? (isSmall ? DType::U4 : DType::U8)
                                                  : (isSmall ? DType::I4 : DType::I8));
}

// What a 16-bit weight was before it was widened: the same values.
Value stored(Value w) {
  auto cast = w.getDefiningOp<CastOp>();
  if (!cast || !tensorType(w).getElementType().isF32()) return w;
  Type from = tensorType(cast.getX()).getElementType();
  return from.isBF16() || from.isF16() ? cast.getX() : w;
}

struct Quantized {
  Value q, scale, zero;
  int64_t block;
};

// The rows of `w` [n, k] in blocks: what lies in a block of zeros beyond the row does not matter,
// as 0 is in the range of every block.
class RowQuantizer {
 public:
  RowQuantizer(OpMaker& m, Value given, const WeightFormat& format)
      : m(m),
        w(stored(given)),
        format(format),
        type(tensorType(w)),
        wide(computeType(type.getElementType())) {}

  Quantized make() {
    const int64_t n = type.getDimSize(0), k = type.getDimSize(1);
    block = format.group && format.group < k ? format.group : k;
    count = (k + block - 1) / block;
    // Extremes are found in the weight's own dtype: a copy in f32 would be the largest temporary.
    Value x = w;
    if (count * block != k)
      x = m.make<PadOp>(x, m.scalar(type.getElementType(), 0), ArrayRef<int64_t>{0, 0},
                        ArrayRef<int64_t>{0, count * block - k});
    if (count > 1) x = m.reshape(x, {m.dim(n), m.dim(count), m.dim(block)});
    const double levels = format.bits == WeightFormat::Bits::Int4 ? 15 : 255;
    Type integer = integerOf(w.getContext(), format);
    Value scale, zero;
    if (format.asymmetric) {
      Value low = m.make<MinOp>(perBlock<ReduceMinOp>(x), scalar(0));
      Value high = m.make<MaxOp>(perBlock<ReduceMaxOp>(x), scalar(0));
      scale = rounded(m.make<DivOp>(m.inBits(m.make<SubOp>(high, low)), scalar(levels)));
      Value wideScale = m.cast(scale, wide);
      Value isZero = m.compare(Compare::eq, wideScale, scalar(0));
      Value divisor = m.make<SelectOp>(isZero, scalar(1), wideScale);
      Value steps = m.make<RoundOp>(m.inBits(m.make<DivOp>(m.make<NegOp>(low), divisor)));
      // Whole numbers up to 255, which every scale's dtype holds.
      zero = m.cast(m.make<MinOp>(steps, scalar(levels)), scaleType());
    } else {
      const double top = (levels - 1) / 2;  // 7, 127
      scale = rounded(m.make<DivOp>(perBlock<ReduceMaxOp>(m.make<AbsOp>(x)), scalar(top)));
    }
    Builder b(w.getContext());
    Value q = m.make<QuantizeOp>(w, scale, zero, b.getI64IntegerAttr(1), b.getI64IntegerAttr(block),
                                 TypeAttr::get(integer));
    return {q, scale, zero, block};
  }

 private:
  Value scalar(double v) { return m.scalar(wide, v); }
  // [n, count] of [n, count, block], or [n, 1] of [n, k].
  template <class Reduce>
  Value perBlock(Value x) {
    const int64_t last = tensorType(x).getRank() - 1;
    Value y = m.cast(m.make<Reduce>(x, ArrayRef<int64_t>{last}, true), wide);
    return count > 1 ? m.reshape(y, {m.dim(type.getDimSize(0)), m.dim(count)}) : y;
  }
  // One scale of a row is worth 4 bytes; one of 32 elements is not.
  Type scaleType() {
    MLIRContext* c = w.getContext();
    return count > 1 ? Type(BFloat16Type::get(c)) : Type(Float32Type::get(c));
  }
  // The scale as it is stored is the one that elements are divided by, also where floats are not
  // rounded: reading its bits rounds it.
  Value rounded(Value scale) {
    scale = m.cast(m.inBits(scale), scaleType());
    if (count == 1) return m.inBits(scale);
    Type bits = IntegerType::get(w.getContext(), 16);
    return m.make<BitcastOp>(m.make<BitcastOp>(scale, bits), scaleType());
  }

  OpMaker& m;
  Value w;
  const WeightFormat& format;
  RankedTensorType type;
  Type wide;
  int64_t block = 0, count = 1;
};

// Whether the checkpoint holds the weight in few bits already.
bool isDequantized(Value w, AskedOnce<bool>& asked) {
  Operation* d = w.getDefiningOp();
  if (!d) return false;
  return asked.of(w, [&] {
    return isa<DequantizeOp>(d) ||
           llvm::any_of(d->getOperands(), [&](Value o) { return isDequantized(o, asked); });
  });
}

bool isQuantizable(Value w) {
  auto type = tensorType(w);
  Type e = type.getElementType();
  AskedOnce<bool> asked;
  return (e.isF32() || e.isBF16() || e.isF16()) && type.getNumElements() > 0 && isLoadedWeight(w) &&
         !isDequantized(w, asked);
}

// What the entry point returns, or a choice from it, but for where it lies and its dtype.
bool isReturned(Value v, AskedOnce<bool>& asked) {
  return asked.of(v, [&] {
    return llvm::any_of(v.getUsers(), [&](Operation* user) {
      if (isa<func::ReturnOp>(user)) return true;
      return (passesElements(user) || isa<ArgMaxOp, SoftmaxOp>(user)) &&
             isReturned(user->getResult(0), asked);
    });
  });
}
bool isReturned(Value v) {
  AskedOnce<bool> asked;
  return isReturned(v, asked);
}

void replaceByQuantized(PatternRewriter& rewriter, LinearOp op, const Quantized& w) {
  rewriter.replaceOpWithNewOp<QuantizedLinearOp>(op, op.getX(), w.q, w.scale, w.zero, op.getBias(),
                                                 op.getResidual(), w.block, op.getActivation(),
                                                 WeightLayout::out_in, op.getUnrounded());
}

struct QuantizeLinear : OpRewritePattern<LinearOp> {
  QuantizeLinear(MLIRContext* context, const WeightFormats& formats, std::set<int64_t> vocabularies)
      : OpRewritePattern(context), formats(formats), vocabularies(std::move(vocabularies)) {
    setDebugName("quantize-linear");
  }
  LogicalResult matchAndRewrite(LinearOp op, PatternRewriter& rewriter) const override {
    if (op.getLayout() == WeightLayout::packed || !isQuantizable(op.getW())) return failure();
    auto y = tensorType(op.getY());
    const bool isHead = vocabularies.count(y.getDimSize(y.getRank() - 1)) && isReturned(op.getY());
    const WeightFormat& format = isHead ? formats.head : formats.linear;
    if (!format.quantizes() || !weaken(op.getContext(), Contract::WeightPrecision))
      return failure();
    OpMaker m(rewriter, op.getLoc());
    Value w = op.getLayout() == WeightLayout::in_out ? m.swapLastTwo(op.getW()) : op.getW();
    const Quantized made = RowQuantizer(m, w, format).make();
    replaceByQuantized(rewriter, op, made);
    return success();
  }
  WeightFormats formats;
  std::set<int64_t> vocabularies;
};

// Rows of integers and their scales are chosen, and only what was chosen is widened.
struct QuantizeEmbedding : OpRewritePattern<EmbeddingOp> {
  QuantizeEmbedding(MLIRContext* context, const WeightFormat& format)
      : OpRewritePattern(context), format(format) {
    setDebugName("quantize-embedding");
  }
  LogicalResult matchAndRewrite(EmbeddingOp op, PatternRewriter& rewriter) const override {
    if (!isQuantizable(op.getTable()) || !weaken(op.getContext(), Contract::WeightPrecision))
      return failure();
    OpMaker m(rewriter, op.getLoc());
    const Quantized made = RowQuantizer(m, op.getTable(), format).make();
    Value q = m.make<GatherOp>(made.q, op.getIds(), 0);
    Value scale = m.make<GatherOp>(made.scale, op.getIds(), 0);
    const Type element = tensorType(op.getTable()).getElementType();
    const double factor = op.getScale().convertToDouble();
    const bool isPlain = factor == 1 && !op.getPositions();
    const Type wide = isPlain ? element : computeType(element);
    Value y = m.make<DequantizeOp>(q, scale, Value(),
                                   rewriter.getI64IntegerAttr(tensorType(q).getRank() - 1),
                                   rewriter.getI64IntegerAttr(made.block), TypeAttr::get(wide));
    if (factor != 1) y = m.make<MulOp>(y, m.scalar(wide, factor));
    if (op.getPositions()) y = m.make<AddOp>(y, m.cast(op.getPositions(), wide));
    rewriter.replaceOp(op, m.cast(y, element));
    return success();
  }
  WeightFormat format;
};

struct FuseDequantize : OpRewritePattern<LinearOp> {
  explicit FuseDequantize(MLIRContext* context) : OpRewritePattern(context) {
    setDebugName("fuse-dequantize");
  }
  LogicalResult matchAndRewrite(LinearOp op, PatternRewriter& rewriter) const override {
    auto w = op.getW().getDefiningOp<DequantizeOp>();
    if (!w || op.getLayout() != WeightLayout::out_in || w.getAxis() != 1 || !isWeightOnly(w.getY()))
      return failure();
    const bool rounds = !w.getDtype().isF32() && !w.getDtype().isF64();
    if (rounds && !weaken(op.getContext(), Contract::IntermediateRounding)) return failure();
    replaceByQuantized(rewriter, op, {w.getQ(), w.getScale(), w.getZero(), int64_t(w.getBlock())});
    return success();
  }
};

struct QuantizeActivations : OpRewritePattern<QuantizedLinearOp> {
  explicit QuantizeActivations(MLIRContext* context) : OpRewritePattern(context) {
    setDebugName("quantize-activations");
  }
  LogicalResult matchAndRewrite(QuantizedLinearOp op, PatternRewriter& rewriter) const override {
    if (op.getQuantizesX() || tensorType(op.getX()).getElementType().isF64() ||
        !weaken(op.getContext(), Contract::ActivationPrecision))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.setQuantizesX(true); });
    return success();
  }
};

struct PackQuantized : OpRewritePattern<QuantizedLinearOp> {
  PackQuantized(MLIRContext* context, std::function<bool(QuantizedLinearOp)> wants)
      : OpRewritePattern(context), wants(std::move(wants)) {
    setDebugName("pack-quantized");
  }
  LogicalResult matchAndRewrite(QuantizedLinearOp op, PatternRewriter& rewriter) const override {
    if (op.getLayout() == WeightLayout::packed || !isWeightOnly(op.getQ()) ||
        !isWeightOnly(op.getScale()) || (op.getZero() && !isWeightOnly(op.getZero())) || !wants(op))
      return failure();
    OpMaker m(rewriter, op.getLoc());
    Value q = m.make<PackOp>(op.getQ(), WeightLayout::out_in);
    const bool inColumns = tensorType(op.getScale()).getDimSize(1) > 1;
    auto pack = [&](Value v) { return inColumns ? m.make<PackOp>(v, WeightLayout::out_in) : v; };
    const Type scaleType = tensorType(op.getScale()).getElementType();
    Value scale = pack(op.getScale());
    Value zero = op.getZero() ? pack(m.cast(op.getZero(), scaleType)) : Value();
    rewriter.replaceOpWithNewOp<QuantizedLinearOp>(
        op, op.getX(), q, scale, zero, op.getBias(), op.getResidual(), int64_t(op.getBlock()),
        op.getActivation(), WeightLayout::packed, op.getUnrounded(), op.getQuantizesX());
    return success();
  }
  std::function<bool(QuantizedLinearOp)> wants;
};

}  // namespace

void quantizeWeights(ModuleOp module, const WeightFormats& formats) {
  std::set<int64_t> vocabularies;
  module.walk([&](EmbeddingOp op) {
    if (isLoadedWeight(op.getTable())) vocabularies.insert(tensorType(op.getTable()).getDimSize(0));
  });
  RewritePatternSet patterns(module.getContext());
  patterns.add<QuantizeLinear>(module.getContext(), formats, std::move(vocabularies));
  if (formats.embedding.quantizes())
    patterns.add<QuantizeEmbedding>(module.getContext(), formats.embedding);
  if (formats.int8Activations) patterns.add<QuantizeActivations>(module.getContext());
  (void)applyPatterns(module, std::move(patterns));
}

void fuseDequantize(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  patterns.add<FuseDequantize>(module.getContext());
  (void)applyPatterns(module, std::move(patterns));
}

void packQuantizedWeights(ModuleOp module, const std::function<bool(QuantizedLinearOp)>& wants) {
  RewritePatternSet patterns(module.getContext());
  patterns.add<PackQuantized>(module.getContext(), wants);
  (void)applyPatterns(module, std::move(patterns));
}

}  // namespace lathe
