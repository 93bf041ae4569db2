// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/fused_linear.h"

#include <fmt/format.h>

#include "lathe/backends/region_plan.h"
#include "backends/cuda/lowering/data/data_kernels.h"
#include "backends/cuda/lowering/kernel/call_facts.h"
#include "backends/cuda/lowering/kernel/kernel_names.h"
#include "backends/cuda/lowering/kernel/kernel_sequence.h"
#include "backends/cuda/lowering/kernel_builder.h"
#include "backends/cuda/lowering/matmul/matmul_calls.h"
#include "backends/cuda/lowering/matmul/rotated_projection.h"
#include "backends/cuda/lowering/region/region_printer.h"
#include "backends/cuda/lowering/stepwise_kernels.h"
#include "lathe/passes/region_ops.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// A function of some of a region's ops: operands are what they read from outside, results are
// given.
struct Part {
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  SmallVector<Value> operands, results;
  // By the numbers that functions printed from the part have for their buffers.
  Value buffer(int number) const {
    const size_t n = size_t(number);
    return n < operands.size() ? operands[n] : results[n - operands.size()];
  }
};
Part partOf(func::FuncOp region, ArrayRef<Operation*> ops, ArrayRef<Value> first,
            ArrayRef<Value> results) {
  Part part;
  part.module = ModuleOp::create(region.getLoc());
  llvm::SetVector<Value> operands(first.begin(), first.end());
  llvm::SmallPtrSet<Operation*, 8> inside(ops.begin(), ops.end());
  for (Operation* op : ops)
    for (Value v : op->getOperands())
      if (!v.getDefiningOp() || !inside.contains(v.getDefiningOp())) operands.insert(v);
  part.operands.assign(operands.begin(), operands.end());
  part.results.assign(results.begin(), results.end());
  OpBuilder b = OpBuilder::atBlockEnd(part.module->getBody());
  SmallVector<Location> origins;
  for (Operation* op : ops) origins.push_back(op->getLoc());
  Location loc = b.getFusedLoc(origins);
  part.function = func::FuncOp::create(
      b, loc, "part",
      b.getFunctionType(TypeRange(ValueRange(part.operands)), TypeRange(ValueRange(results))));
  Block* body = part.function.addEntryBlock();
  IRMapping map;
  map.map(ValueRange(part.operands), body->getArguments());
  b.setInsertionPointToStart(body);
  for (Operation* op : ops) b.clone(*op, map);
  SmallVector<Value> returned;
  for (Value v : results) returned.push_back(map.lookup(v));
  func::ReturnOp::create(b, loc, returned);
  return part;
}

class FusedLinear {
 public:
  FusedLinear(func::FuncOp region, std::string name)
      : region(region), linear(*region.getOps<LinearOp>().begin()), name(std::move(name)) {
    auto returned = resultsOf(region);
    for (auto [i, v] : llvm::enumerate(returned)) buffers[v] = int(region.getNumArguments() + i);
    for (BlockArgument v : region.getArguments()) buffers[v] = int(v.getArgNumber());
  }

  // Nothing where a template cannot do what stands around the linear op.
  std::optional<KernelSet> kernels() {
    p = matmulOf(linear.getX(), linear.getW(), name);
    p.b = buffers.lookup(linear.getW());
    p.constantB = hasConstantWeight(linear);
    p.hooks.mostRows = kMostNormedRows;
    p.hooks.vectors = false;
    const std::string type(elementType(p.dtype));
    if (!epilogue(type) || !prologue(type)) return std::nullopt;
    // The row function's text depends on the number of threads.
    p.hooks.definitionFor = [this](int threads, bool tiles) {
      return functions + (tiles ? tileFunctions : rowFunction(threads)) + "struct Hooks {\n" +
             fields + (tiles ? tileMembers : rowMembers) + members + "};\n";
    };
    p.hooks.construction = "{" + values + "}";
    p.hooks.epilogue = functions + fields + members;
    return kernelsOf(p);
  }

 private:
  // Above, the parts are as fast: the rows' norms are no longer little beside the weights, and a
  // library may compute products alone.
  static constexpr int64_t kMostNormedRows = 64, kMostPlainRows = 128;

  // What a printed function takes beside its fixed parameters, as parameters of the kernel and
  // fields of the hooks, whose names begin with `role`. Returns them as the call's arguments.
  std::string carry(const PrintedFunction& f, const std::string& role, const Part& part) {
    std::string call;
    for (const PrintedFunction::Parameter& parameter : f.parameters) {
      const std::string variable = role + "_" + parameter.name;
      std::string field = parameter.type + variable;
      Argument argument = parameter.argument;
      if (argument.kind == Argument::Kind::Buffer)
        argument.index = buffers.lookup(part.buffer(argument.index));
      p.hooks.parameters.add(field, argument);
      if (size_t word = field.find("__restrict__ "); word != std::string::npos)
        field.erase(word, 13);
      fields += "  " + field + ";\n";
      addValue(variable);
      call += ", " + variable;
    }
    return call;
  }
  void addValue(const std::string& value) { values += (values.empty() ? "" : ", ") + value; }

  bool prologue(const std::string& type) {
    Operation* norm = linear.getX().getDefiningOp();
    if (!norm) {
      p.hooks.parameters.input(type, "x", buffers.lookup(linear.getX()));
      fields += "  const " + type + "* x;\n";
      addValue("x");
      return true;
    }
    row = partOf(region, {norm}, {}, {Value(norm->getResult(0))});
    FailureOr<PrintedFunction> f = printRowFunction(row.function, "normRow", 256);
    if (failed(f)) return false;
    p.hooks.staged = true;
    // Gains lie in memory cold, and are read behind the row's sum. Asked for, they are not read
    // yet: a kernel before may still write them.
    std::string prefetches;
    for (const PrintedFunction::Parameter& parameter : f->parameters) {
      if (parameter.argument.kind != Argument::Kind::Buffer) continue;
      Value v = row.operands[size_t(parameter.argument.index)];
      const auto gain = tensorType(v);
      const int64_t bytes =
          gain.hasStaticShape() ? gain.getNumElements() * int64_t(sizeOf(elementOf(v))) : 0;
      if (gain.getRank() == 1 && bytes > 0 && bytes % 16 == 0)
        prefetches += fmt::format("    if (threadIdx.x == 0) prefetch_l2_bulk(norm_{}, {});\n",
                                  parameter.name, bytes);
    }
    rowMembers = "  __device__ __forceinline__ void prefetch() const {\n" + prefetches + "  }\n";
    rowMembers += "  __device__ __forceinline__ void stage(i64 row, " + type +
                  "* to) const { normRow(row, to" + carry(*f, "norm", row) + "); }\n";
    if (auto rms = dyn_cast<RmsNormOp>(norm)) normOnTheWay(rms, *f, type);
    return true;
  }
  // For tiles: the norm of an element from its row's sum of squares, with the roundings of the op.
  void normOnTheWay(RmsNormOp norm, const PrintedFunction& f, const std::string& type) {
    const auto k = p.k.asConstant();
    if (!k || *k % 8 || (p.dtype != DType::BF16 && p.dtype != DType::F16)) return;
    auto variableOf = [&](Value v) -> std::string {
      for (const PrintedFunction::Parameter& parameter : f.parameters)
        if (parameter.argument.kind == Argument::Kind::Buffer &&
            row.operands[size_t(parameter.argument.index)] == v)
          return "norm_" + parameter.name;
      return "";
    };
    const std::string x = variableOf(norm.getX()),
                      gain = norm.getGain() ? variableOf(norm.getGain()) : "nullptr";
    if (x.empty() || gain.empty()) return;
    p.hooks.normed = true;
    std::string value = "to_f32(x) * scale";
    if (norm.getGain() && norm.getRounding() == GainRounding::before_gain)
      value = fmt::format("to_f32(from_f32<{}>({}))", type, value);
    if (norm.getGain()) value += " * to_f32(gain)";
    tileMembers += fmt::format(
        "  static constexpr bool kHasGains = {2};\n"
        "  __device__ __forceinline__ const {0}* rows() const {{ return {3}; }}\n"
        "  __device__ __forceinline__ const {0}* gains() const {{ return {4}; }}\n"
        "  LT_FN float rowScale(float squares) {{ return math_rsqrt(squares / {1}.0f + {5}); }}\n"
        "  LT_FN {0} normed({0} x, float scale, {0} gain) {{ return from_f32<{0}>({6}); }}\n",
        type, *k, norm.getGain() ? "true" : "false", x, gain,
        realLiteral(norm.getEpsilon().convertToDouble()), value);
  }
  std::string rowFunction(int threads) {
    if (!p.hooks.staged) return "";
    const FailureOr<PrintedFunction> f = printRowFunction(row.function, "normRow", threads);
    return f->tables + f->text;
  }

  bool epilogue(const std::string& type) {
    if (auto rotated = rotatedProjectionOf(linear)) {
      p.hooks.pairs = true;
      p.n = rotated->pairs();
      if (rotated->hasNorms()) p.hooks.sumPairs = int(rotated->depth / 2);
      RotationHooks hooks =
          printRotation(*rotated, p.hooks.parameters, [&](Value v) { return buffers.lookup(v); });
      fields += hooks.fields;
      members += hooks.functions;
      if (!hooks.values.empty()) values += hooks.values.substr(2);
      return true;
    }
    if (llvm::any_of(linear->getUsers(), llvm::IsaPred<SliceOp>)) return pairs(type);
    SmallVector<Operation*> behind = opsBehind();
    if (behind.empty()) return plain(type, linear.getY());
    auto cast = dyn_cast<CastOp>(behind.front());
    if (behind.size() == 1 && cast && linear->hasOneUse() &&
        tensorType(cast.getY()).getElementType().isF32())
      return plain(type, cast.getY());
    return elementwise(type, behind);
  }

  // Columns of the product.
  bool isHalf(Operation* op) {
    auto slice = dyn_cast_or_null<SliceOp>(op);
    return slice && slice.getX() == linear.getY();
  }
  // What the region computes of the product: with the constants that this reads.
  SmallVector<Operation*> opsBehind() {
    SmallVector<Operation*> ops;
    for (Operation& op : region.getBody().front().without_terminator())
      if (&op != linear && &op != linear.getX().getDefiningOp() && !isHalf(&op)) ops.push_back(&op);
    return ops;
  }
  SmallVector<Value> results() { return SmallVector<Value>(resultsOf(region)); }

  // The op's own epilogue, that writes `y`, or nothing where that is null.
  void addLinearHooks(const std::string& type, Value y) {
    auto buffer = [&](const char* variable, Value v) -> std::string {
      if (!v) return "nullptr";
      p.hooks.parameters.input(type, variable, buffers.lookup(v));
      return variable;
    };
    Value bias = linear.getBias(), residual = linear.getResidual();
    const std::string written(elementType(elementOf(y ? y : linear.getY())));
    fields += fmt::format("  LinearHooks<{}, activation_{}, {}, {}, {}{}> linear;\n", type,
                          nameOf(linear.getActivation()), bool(bias), bool(residual), written,
                          linear.getUnrounded() ? ", true" : "");
    const std::string taken =
        fmt::format("{}, {}", buffer("linear_bias", bias), buffer("linear_residual", residual));
    if (y) p.hooks.parameters.output(written, "linear_y", buffers.lookup(y));
    addValue(fmt::format("{{nullptr, {}, {}, {}}}", taken, y ? "linear_y" : "nullptr",
                         *p.n.asConstant()));
    members +=
        "  typedef decltype(linear)::Early Early;\n"
        "  __device__ __forceinline__ Early early(i64 row, i64 column) const {\n"
        "    return linear.early(row, column);\n"
        "  }\n";
  }

  // activation(product + bias) + residual, as without a norm in front; converted where that is
  // what stands behind.
  bool plain(const std::string& type, Value y) {
    addLinearHooks(type, y);
    p.hooks.vectors = true;
    members +=
        "  __device__ __forceinline__ void store(i64 row, i64 column, float value, const Early& e) "
        "const {\n"
        "    linear.store(row, column, value, e);\n"
        "  }\n"
        "  __device__ __forceinline__ void store8(i64 row, i64 column, const float (&value)[8]) "
        "const {\n"
        "    linear.store8(row, column, value);\n"
        "  }\n";
    return true;
  }

  // For tiles, whose results come eight at a time: a printed function of the same parameters and
  // tables as that for one result. Nothing where there is none.
  std::optional<PrintedFunction> ofEight(FailureOr<PrintedFunction> f, const PrintedFunction& one) {
    auto names = [](const PrintedFunction& printed) {
      std::vector<std::string> all;
      for (const auto& parameter : printed.parameters) all.push_back(parameter.name);
      return all;
    };
    if (*p.n.asConstant() % 8 || failed(f) || names(*f) != names(one) || f->tables != one.tables)
      return std::nullopt;
    p.hooks.vectors = true;
    tileFunctions += f->text;
    return std::move(*f);
  }

  // What stands behind the op, of its result as the op rounds it.
  bool elementwise(const std::string& type, ArrayRef<Operation*> behind) {
    const Part part = partOf(region, behind, {linear.getY()}, results());
    FailureOr<PrintedFunction> f = printEpilogue(part.function, {0}, "epilogue", 1);
    if (failed(f)) return false;
    addLinearHooks(type, {});
    if (!linear.getX().getDefiningOp()) p.hooks.mostRows = kMostPlainRows;
    functions += f->tables + f->text;
    const std::string carried = carry(*f, "epilogue", part);
    members += fmt::format(
        "  __device__ __forceinline__ void store(i64 row, i64 column, float value, const Early& e) "
        "const {{\n"
        "    // The projection's own rounding.\n"
        "    epilogue(row, column, to_f32(from_f32<{0}>(linear.finish(value, e.bias, e.residual)))"
        "{1});\n"
        "  }}\n"
        "  __device__ __forceinline__ void store(i64 row, i64 column, float value) const {{\n"
        "    store(row, column, value, early(row, column));\n"
        "  }}\n",
        type, carried);
    if (!ofEight(printEpilogue(part.function, {0}, "epilogueOfEight", 8), *f)) return true;
    tileMembers += fmt::format(
        "  __device__ __forceinline__ void store8(i64 row, i64 column, const float (&value)[8]) "
        "const {{\n"
        "    const vec<float, 8> rounded = to_f32(from_f32<{}>(linear.finish8(row, column, "
        "value)));\n"
        "    epilogueOfEight(row, column, rounded{});\n"
        "  }}\n",
        type, carried);
    return true;
  }

  // What is made of pairs of columns, such as a gate.
  bool pairs(const std::string& type) {
    const SmallVector<Operation*> behind = opsBehind();
    // In the order in which they are read.
    llvm::SetVector<Value> halves;
    for (Operation* op : behind)
      for (Value v : op->getOperands())
        if (isHalf(v.getDefiningOp())) halves.insert(v);
    if (halves.size() != 2) return false;
    // The first column of a half.
    auto firstOf = [](Value v) {
      auto starts = v.getDefiningOp<SliceOp>().getStarts().getDims();
      return exprOf(starts.back()).asConstant();
    };
    const auto first = firstOf(halves[0]), second = firstOf(halves[1]);
    if (!first || !second) return false;
    const Part part = partOf(region, behind, halves.getArrayRef(), results());
    FailureOr<PrintedFunction> f = printEpilogue(part.function, {0, 1}, "gated", 1);
    if (failed(f)) return false;
    p.hooks.pairs = true;
    p.n = tensorType(halves[0]).getShape().back();
    functions += f->tables + f->text;
    const std::string carried = carry(*f, "gate", part);
    if (ofEight(printEpilogue(part.function, {0, 1}, "gatedEight", 8), *f))
      tileMembers += fmt::format(
          "  __device__ __forceinline__ void storePair8(i64 row, i64 pair, const float "
          "(&first)[8],\n"
          "                                             const float (&second)[8]) const {{\n"
          "    vec<float, 8> a, b;\n"
          "#pragma unroll\n"
          "    for (int i = 0; i < 8; ++i) {{\n"
          "      a[i] = to_f32(from_f32<{0}>(first[i]));\n"
          "      b[i] = to_f32(from_f32<{0}>(second[i]));\n"
          "    }}\n"
          "    gatedEight(row, pair, a, b{1});\n"
          "  }}\n",
          type, carried);
    members += fmt::format(
        "  LT_FN i64 firstColumn(i64 pair) {{ return pair + {0}; }}\n"
        "  LT_FN i64 secondColumn(i64 pair) {{ return pair + {1}; }}\n"
        "  __device__ __forceinline__ void storePair(i64 row, i64 pair, float first, float second) "
        "const {{\n"
        "    // The projection's own rounding.\n"
        "    gated(row, pair, to_f32(from_f32<{2}>(first)), to_f32(from_f32<{2}>(second)){3});\n"
        "  }}\n",
        *first, *second, type, carried);
    return true;
  }

  func::FuncOp region;
  LinearOp linear;
  std::string name;
  MatmulKernel p;
  Part row;
  std::string functions, fields, members, values;
  // Of the stream over the weights, and of tiles.
  std::string rowMembers, tileFunctions, tileMembers;
  llvm::DenseMap<Value, int> buffers;
};

// A cache that is not updated in place is copied first: the kernel writes the new rows alone.
void addCopies(func::FuncOp region, const std::string& name, KernelSet& set) {
  auto returned = resultsOf(region);
  for (auto [i, v] : llvm::enumerate(returned)) {
    auto update = v.getDefiningOp<UpdateOp>();
    if (!update) continue;
    const int from = int(cast<BlockArgument>(update.getX()).getArgNumber()),
              to = int(region.getNumArguments() + i);
    auto sizes = dimExprs(v);
    auto strides = denseStrides(sizes);
    CopyKernel copy{name + "_copy_" + std::to_string(i), elementOf(v), 0, {}, {}};
    copy.sizes.assign(sizes.begin(), sizes.end());
    copy.strides.assign(strides.begin(), strides.end());
    KernelSet copies = copyKernels(copy);
    for (Launch& l : copies.variants.at(0).launches) {
      for (Argument& a : l.arguments)
        if (a.kind == Argument::Kind::Buffer) a.index = a.index == 0 ? from : to;
      l.unlessSame = {from, to};
      for (Variant& variant : set.variants) variant.launches.insert(variant.launches.begin(), l);
    }
    set.kernels.insert(set.kernels.end(), copies.kernels.begin(), copies.kernels.end());
  }
}

}  // namespace

KernelSet fusedLinearKernels(func::FuncOp region, const std::string& name) {
  KernelSet parts = stepwiseKernels(region, name + "_parts");
  // What no epilogue can be, such as a second layer, is left to the parts: no error.
  ScopedDiagnosticHandler quiet(region.getContext(), [](Diagnostic&) { return success(); });
  std::optional<KernelSet> fused = FusedLinear(region, name).kernels();
  if (!fused || fused->variants.empty()) return parts;
  addCopies(region, name, *fused);
  // What the fused kernels cover, the parts need not.
  int64_t most = 0;
  DimExpr rows = 0;
  for (const Variant& v : fused->variants)
    for (const Condition& c : v.when) {
      rows = c.value;
      most = std::max(most, c.high);
    }
  for (Variant& v : parts.variants) {
    if (most && !addConditions(v.when, {{rows, most + 1, std::numeric_limits<int64_t>::max()}}))
      continue;
    fused->variants.push_back(std::move(v));
  }
  fused->kernels.insert(fused->kernels.end(), parts.kernels.begin(), parts.kernels.end());
  return std::move(*fused);
}

}  // namespace lathe::cuda
