// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/drawn_mutants.h"

#include <set>

#include "frontend/graph_impl.h"
#include "lathe/backends/interpreter.h"
#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "lathe/passes/pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "passes/rewrite/retype.h"
#include "tests/conformance/mutations.h"
#include "tests/conformance/respell.h"
#include "tests/conformance/square_samples.h"
#include "tests/golden/seed_models.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

func::FuncOp forwardOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("forward"); }

// As a module of its own.
std::string formOf(func::FuncOp matched) {
  std::set<std::string> symbols;
  auto note = [&](StringAttr dim) {
    const std::vector<std::string> names = dim ? exprOf(dim).symbols() : std::vector<std::string>();
    symbols.insert(names.begin(), names.end());
  };
  for (Type t : matched.getArgumentTypes())
    for (StringAttr dim : dimsOf(cast<RankedTensorType>(t))) note(dim);
  std::string text;
  for (const std::string& s : symbols) text += "lathe.dim @" + s + " 1 to 1000\n";
  func::FuncOp copy = matched.clone();
  copy.setName("forward");
  llvm::raw_string_ostream(text) << copy;
  copy.erase();
  return text;
}

class Forms {
 public:
  // Takes a recorded module to its fused stage and keeps what is matched on the way.
  void collect(ModuleOp module) {
    Module copy(module.clone());
    runPipeline(*copy, Stage::Fused, {}, {},
                {.evaluate = [&](Operation* f, const std::vector<Array>& arguments,
                                 const WeightProvider& weights, const Symbols& symbols) {
                  auto function = cast<func::FuncOp>(f);
                  if (function.getName() == "was") found_.insert(formOf(function));
                  return interpretFunction(f, arguments, weights, symbols);
                }});
  }
  std::vector<std::string> take() const { return {found_.begin(), found_.end()}; }

 private:
  std::set<std::string> found_;
};

class Drawing {
 public:
  explicit Drawing(ModuleOp form) : form_(form) {}

  std::vector<Mutant> all() {
    const size_t ops = opsOf(form_).size();
    dtypes();
    for (unsigned i = 0; i < forwardOf(form_).getNumArguments(); ++i) argument(i);
    for (size_t i = 0; i < ops; ++i) op(i);
    return std::move(mutants_);
  }

 private:
  // Applies a change, infers every type again, and keeps what still is a graph.
  template <class Change>
  void add(const std::string& what, Change change, const Retyping& retyping = {}) {
    Module mutant(form_.clone());
    if (!change(*mutant)) return;
    func::FuncOp old = forwardOf(*mutant);
    OpBuilder b(old);
    func::FuncOp made = retyped(b, old, retyping);
    if (!made) return;
    old.erase();
    if (isValid(*mutant)) mutants_.push_back({what, std::move(mutant)});
  }

  void dtypes() {
    Builder b(form_.getContext());
    const Type f32 = b.getF32Type(), bf16 = b.getBF16Type();
    const std::pair<const char*, Type> others[] = {
        {"f32", f32},
        {"bf16", bf16},
        {"f16", b.getF16Type()},
        {"f64", b.getF64Type()},
        {"i64", b.getI64Type()},
        {"i32", b.getI32Type()},
        {"i16", b.getI16Type()},
        {"i8", b.getI8Type()},
        {"u8", b.getIntegerType(8, false)},
    };
    for (Type from : {f32, bf16})
      for (auto& [name, to] : others)
        if (from != to)
          add(std::string("all floats of a kind as ") + name, [](ModuleOp) { return true; },
              {.element = [from, to = to](Type t) { return t == from ? to : t; }});
  }

  // The value, through another dtype and back.
  static bool through(Value v, Type type) {
    auto tensor = tensorType(v);
    if (tensor.getElementType() == type) return false;
    OpBuilder b(v.getContext());
    b.setInsertionPointAfterValue(v);
    auto there = CastOp::create(b, v.getLoc(), withElement(tensor, type), v, TypeAttr::get(type));
    auto back =
        CastOp::create(b, v.getLoc(), tensor, there, TypeAttr::get(tensor.getElementType()));
    v.replaceAllUsesExcept(back, there);
    return true;
  }
  std::vector<std::pair<std::string, Type>> detours() {
    Builder b(form_.getContext());
    return {{"i32", b.getI32Type()}, {"i8", b.getI8Type()},     {"i1", b.getI1Type()},
            {"i64", b.getI64Type()}, {"bf16", b.getBF16Type()}, {"u8", b.getIntegerType(8, false)}};
  }

  void argument(unsigned i) {
    const std::string name = "argument " + std::to_string(i);
    for (auto& [to, type] : detours())
      add(name + " through " + to,
          [&, type = type](ModuleOp m) { return through(forwardOf(m).getArgument(i), type); });
    auto type = cast<RankedTensorType>(forwardOf(form_).getArgument(i).getType());
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      add(name + " of size 1 along " + std::to_string(axis), [&](ModuleOp m) {
        SmallVector<StringAttr> dims = dimsOf(type);
        if (isOne(dims[size_t(axis)])) return false;
        dims[size_t(axis)] = StringAttr::get(m.getContext(), "1");
        setArgument(forwardOf(m), i, tensorOf(dims, type.getElementType()));
        return true;
      });
  }
  static void setArgument(func::FuncOp function, unsigned i, Type type) {
    function.getArgument(i).setType(type);
    function.setType(FunctionType::get(function.getContext(),
                                       function.getBody().front().getArgumentTypes(),
                                       function.getResultTypes()));
  }

  void op(size_t i) {
    Operation* op = opsOf(form_)[i];
    const std::string name = op->getName().stripDialect().str() + " " + std::to_string(i);
    auto at = [&](ModuleOp m) { return opsOf(m)[i]; };
    std::vector<Mutation> changes = mutationsOf(op);
    for (Mutation& other : otherArguments(op)) changes.push_back(std::move(other));
    for (const Mutation& change : changes)
      add(change.name + " of " + name, [&](ModuleOp m) {
        change.apply(at(m));
        // Types are not inferred for an op that lacks an operand.
        return change.name != "drop" || isValid(m);
      });
    if (auto constant = dyn_cast<ConstantOp>(op)) return nearConstants(constant, name, at);
    if (isa<WeightOp>(op)) return;
    if (!op->getResults().back().use_empty())
      add("one more user of " + name, [&](ModuleOp m) {
        returnToo(at(m));
        return true;
      });
    for (auto& [to, type] : detours())
      add(name + " through " + to,
          [&, type = type](ModuleOp m) { return through(at(m)->getResult(0), type); });
    if (auto cast = dyn_cast<CastOp>(op))
      for (auto& [to, type] : detours())
        add(name + " to " + to, [&, type = type](ModuleOp m) {
          at(m)->setAttr("dtype", TypeAttr::get(type));
          return cast.getDtype() != type;
        });
    for (unsigned k = 0; k < op->getNumOperands(); ++k)
      add("a second candidate for operand " + std::to_string(k) + " of " + name, [&](ModuleOp m) {
        func::FuncOp function = forwardOf(m);
        Value had = at(m)->getOperand(k);
        Block& body = function.getBody().front();
        at(m)->setOperand(k, body.addArgument(had.getType(), had.getLoc()));
        setArgument(function, body.getNumArguments() - 1, had.getType());
        return true;
      });
  }

  template <class At>
  void nearConstants(ConstantOp op, const std::string& name, At at) {
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!splat) return;
    auto set = [&](const char* how, Attribute element) {
      add(name + " " + how, [&](ModuleOp m) {
        at(m)->setAttr("value", DenseElementsAttr::get(splat.getType(), element));
        return true;
      });
    };
    const Type type = splat.getElementType();
    if (isa<FloatType>(type)) {
      const double value = splat.getSplatValue<APFloat>().convertToDouble();
      set("by a thousandth", FloatAttr::get(type, value == 0 ? 1e-3 : value * 1.001));
      set("negated", FloatAttr::get(type, -value));
    } else if (type.isInteger(64)) {
      const int64_t value = splat.getSplatValue<APInt>().getSExtValue();
      set("beyond 2^53", IntegerAttr::get(type, value + (int64_t(1) << 53) + 1));
    }
  }

  ModuleOp form_;
  std::vector<Mutant> mutants_;
};

}  // namespace

static std::vector<std::string> findForms() {
  Forms forms;
  for (const auto& [op, sample] : squareSamples(DType::F32)) {
    const Graph graph = recordSamples({sample});
    for (uint64_t seed = 0; seed < 4; ++seed) {
      Module spelling = elementaryForm(graph);
      if (seed) respell(*spelling, seed);
      forms.collect(*spelling);
    }
  }
  for (const seeds::SeedModel& model : seeds::seedModels())
    for (DType dtype : model.dtypes) {
      const Graph graph = model.build(dtype);
      forms.collect(graph.impl().finished());
    }
  return forms.take();
}

const std::vector<std::string>& matchedForms() {
  // Once: what was run before is not run again, and so would not be seen.
  static const std::vector<std::string> forms = findForms();
  return forms;
}

std::vector<Mutant> mutantsOf(ModuleOp form) { return Drawing(form).all(); }

}  // namespace lathe::conformance
