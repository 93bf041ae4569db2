// SPDX-License-Identifier: Apache-2.0
//
//   image [n, c, h, w] ── convolution, strides = kernel, no padding ── (add bias [o, 1, 1])
//
// reads every pixel once: a linear op on the patches. Row (i, j) of them holds the pixels in the
// order of the kernel, (c, kh, kw):
//
//   image ── reshape [n, c, h/kh, kh, w/kw, kw] ── transpose ── reshape [n, h/kh, w/kw, c kh kw] ──
//   linear w [o, c kh kw] ── transpose [n, o, h/kh, w/kw]
#include "lathe/ir/ops.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

Value build(Match& m, const Tensor& convolved, Value x, Value w, Value bias) {
  auto op = m[convolved].getDefiningOp<ConvolutionOp>();
  auto image = dimsOf(tensorType(x)), kernel = dimsOf(tensorType(w));
  if (!isWeight(w)) return m.decline("the kernel of lathe.convolution is no weight");
  auto strides = op.getStrides();
  for (int i : {0, 1})
    if (kernel[2 + i].getValue() != std::to_string(strides[i]))
      return m.decline(
          "'strides' of lathe.convolution are not the kernel's size: patches overlap or "
          "leave pixels out");
  if (llvm::any_of(op.getPadding(), [](int64_t p) { return p != 0; }))
    return m.decline("'padding' of lathe.convolution is not 0");
  std::optional<DimExpr> rows, columns;
  if (image[2] && image[3]) {
    rows = exprOf(image[2]).dividedBy(DimExpr(strides[0]));
    columns = exprOf(image[3]).dividedBy(DimExpr(strides[1]));
  }
  if (!rows || !columns)
    return m.decline("the image of lathe.convolution is not provably whole patches");
  MLIRContext* c = x.getContext();
  auto text = [&](const DimExpr& e) { return dimAttr(c, e); };
  SmallVector<StringAttr> split{image[0],  image[1],       text(*rows),
                                kernel[2], text(*columns), kernel[3]};
  DimExpr pixels = exprOf(kernel[1]) * exprOf(kernel[2]) * exprOf(kernel[3]);
  Value patches = reshaped(m, x, split);
  if (patches)
    patches = m.make("lathe.transpose", {patches},
                     {{"permutation", std::vector<int64_t>{0, 2, 4, 1, 3, 5}}});
  if (patches)
    patches = reshaped(m, patches, {image[0], text(*rows), text(*columns), text(pixels)});
  Value matrix = patches ? reshaped(m, w, {kernel[0], text(pixels)}) : Value();
  if (!matrix) return {};
  Value y = m.make("lathe.linear", {patches, matrix, bias, {}});
  if (!y) return {};
  return m.make("lathe.transpose", {y}, {{"permutation", std::vector<int64_t>{0, 3, 1, 2}}});
}

Tensor anyConvolution(DagPattern& p, const Tensor& x, const Tensor& w) {
  Tensor t = convolution(x, w, {}, {});
  return p.anyAttribute(p.anyAttribute(t, "strides"), "padding");
}

void barePatches(DagPattern& p) {
  Tensor x = p.any(), w = p.any();
  Tensor convolved = anyConvolution(p, x, w);
  p.root(convolved);
  p.replaceWith([=](Match& m) { return build(m, convolved, m[x], m[w], {}); });
}

// The bias follows as what the first step left: the linear op's transposed result.
void patchesWithBias(DagPattern& p) {
  Tensor x = p.any(), w = p.any(), bias = p.any();
  Tensor product =
      p.emit("lathe.linear", {x, w, Tensor(), Tensor()}, {}, std::source_location::current());
  Tensor turned = transpose(product, {0, 3, 1, 2});
  p.root(add(turned, bias));
  p.replaceWith([=](Match& m) -> Value {
    auto dims = dimsOf(tensorType(m[bias]));
    size_t rank = dims.size();
    StringAttr features = dimOf(tensorType(m[turned]), 1);
    bool perFeature = (rank == 3 || (rank == 4 && isOne(dims[0]))) && isOne(dims[rank - 1]) &&
                      isOne(dims[rank - 2]) && features && dims[rank - 3] == features;
    auto op = m[product].getDefiningOp<LinearOp>();
    if (!perFeature || op.getActivation() != Activation::none || op.getUnrounded())
      return m.decline("the bias is not one element per feature");
    Value b = reshaped(m, m[bias], {features});
    if (!b) return {};
    Value y = m.make("lathe.linear", {m[x], m[w], b, {}}, {{"layout", op.getLayout()}});
    if (!y) return {};
    return m.make("lathe.transpose", {y}, {{"permutation", std::vector<int64_t>{0, 3, 1, 2}}});
  });
}

}  // namespace

void addPatchifyPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "patchify", barePatches);
  addPattern(library, context, "patchify-bias", patchesWithBias);
}

}  // namespace lathe
