// SPDX-License-Identifier: Apache-2.0
// Drawn near misses compiled and run in the default and the strict mode, many in one program: what
// a backend makes of each is what the reference computes of the graph as it was drawn, before any
// rewrite.
//
//   drawn_backends_test SEED COUNT    tries another draw of so many on every backend
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "lathe/backends/interpreter.h"
#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "lathe/lathe.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/rewrite/retype.h"
#include "tests/conformance/drawn_mutants.h"
#include "tests/conformance/seeds.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

constexpr int kInSuite = 64;
Seeds seeds{1, kInSuite};

func::FuncOp forwardOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("forward"); }

// With a number for every symbol; null where a size would be negative or an op no longer fits.
Module concrete(ModuleOp mutant, uint64_t turn) {
  constexpr int64_t kSizes[] = {3, 5, 2, 4, 7, 1, 6};
  Symbols values;
  for (DimOp dim : mutant.getOps<DimOp>())
    values[dim.getSymName().str()] = kSizes[(turn + values.size()) % std::size(kSizes)];
  bool fits = true;
  Retyping change;
  change.dim = [&](StringAttr dim) {
    const int64_t size = exprOf(dim).evaluate(values).value_or(-1);
    fits &= size >= 0;
    return StringAttr::get(dim.getContext(), std::to_string(std::max<int64_t>(size, 0)));
  };
  Module copy(mutant.clone());
  func::FuncOp old = forwardOf(*copy);
  OpBuilder b(old);
  if (!retyped(b, old, change) || !fits) return {};
  old.erase();
  for (DimOp dim : llvm::make_early_inc_range(copy->getOps<DimOp>())) dim.erase();
  return copy;
}

Array dataOf(RankedTensorType type, std::mt19937_64& random) {
  Array a(*dtypeOf(type.getElementType()), Shape(type.getShape().begin(), type.getShape().end()));
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < a.size(); ++i)
    a.set(i, isFloat(a.dtype()) ? normal(random) : double(random() % 2));
  return a;
}

struct Case {
  std::string what;
  Module module;
  std::vector<Array> arguments;
  Arrays weights;
  bool narrow = false;  // some value has 16 bits
  std::vector<Array> want;
  // How far rounding and a slight change of the data move each element.
  std::vector<std::vector<double>> moves;

  // False if a float that fits no integer is cast to one, which has no defined value, if one that
  // lies so close to a whole number that rounding takes it there is, if a value rounded to 16 bits
  // becomes a whole number, which is another one as soon as it is rounded elsewhere, or if an index
  // lies outside of its table.
  bool prepare(std::mt19937_64& random) {
    func::FuncOp function = forwardOf(*module);
    for (Type t : function.getArgumentTypes())
      arguments.push_back(dataOf(cast<RankedTensorType>(t), random));
    function.walk([&](WeightOp w) {
      weights[w.getName().str()] = dataOf(cast<RankedTensorType>(w.getType()), random);
    });
    eachElementType(function, [&](Type t) { narrow |= t.isBF16() || t.isF16(); });
    bool steps = false;
    function.walk([&](CastOp op) {
      steps |=
          isa<FloatType>(tensorType(op.getX()).getElementType()) && isa<IntegerType>(op.getDtype());
    });
    if (narrow && steps) return false;
    // Nobody has packed the weight of a recorded graph: it is refused.
    bool packed = false;
    function.walk([&](LinearOp op) { packed |= op.getLayout() == WeightLayout::packed; });
    if (packed) return false;
    try {
      bool defined = true;
      want = run(arguments, [&](Operation* op, const std::vector<Array>& results) {
        for (auto [v, array] : llvm::zip(op->getResults(), results))
          for (Operation* user : v.getUsers()) defined &= fits(user, array);
      });
      for (auto [v, array] : llvm::zip(function.getArguments(), arguments))
        for (Operation* user : v.getUsers()) defined &= fits(user, array);
      if (!defined) return false;
      for (int turn = 0; turn < 3; ++turn) noteMoves(run(shaken(random), {}));
      noteMoves(run(arguments, {}, Precision::OwnDtype));
    } catch (const Error&) {
      return false;
    }
    return true;
  }

  // The first element of result `i` that is wrong; "" if none is.
  std::string wrong(size_t i, const Array& got) const {
    const Array& w = want[i];
    if (got.shape() != w.shape()) return "another shape";
    const double share = narrow ? 3e-2 : 1e-4;
    double middle = 0;
    for (int64_t k = 0; k < w.size(); ++k)
      if (std::isfinite(w.at(k))) middle += std::abs(w.at(k)) / double(w.size());
    for (int64_t k = 0; k < w.size(); ++k) {
      const double a = got.at(k), b = w.at(k), moved = moves[i][size_t(k)];
      if (a == b || (std::isnan(a) && std::isnan(b)) || !std::isfinite(moved)) continue;
      const double allowed = isFloat(got.dtype()) ? share * (std::abs(b) + middle) : 0;
      if (!(std::abs(a - b) <= allowed + 8 * moved))
        return "element " + std::to_string(k) + " is " + std::to_string(a) + ", want " +
               std::to_string(b);
    }
    return "";
  }

 private:
  std::vector<Array> run(const std::vector<Array>& with, const ObserveFn& observe,
                         Precision precision = Precision::Float64) {
    return interpret(
        forwardOf(*module), with, [&](const std::string& name) { return weights.at(name); },
        precision, observe);
  }
  std::vector<Array> shaken(std::mt19937_64& random) const {
    std::uniform_real_distribution<double> unit(-1, 1);
    std::vector<Array> all;
    for (const Array& a : arguments) {
      all.push_back(isFloat(a.dtype()) ? a.to(DType::F64) : a);
      if (!isFloat(a.dtype())) continue;
      for (double& x : all.back().as<double>()) x *= 1 + (narrow ? 0x1p-8 : 1e-6) * unit(random);
    }
    return all;
  }
  void noteMoves(const std::vector<Array>& near) {
    for (size_t i = 0; i < want.size(); ++i) {
      if (moves.size() <= i) moves.emplace_back(size_t(want[i].size()));
      for (int64_t k = 0; k < want[i].size(); ++k) {
        const double a = near[i].at(k), b = want[i].at(k);
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        const double by = std::abs(a - b);
        moves[i][size_t(k)] = std::isnan(by) ? INFINITY : std::max(moves[i][size_t(k)], by);
      }
    }
  }
  template <class Visit>
  static void eachElementType(func::FuncOp function, Visit visit) {
    for (Type t : function.getArgumentTypes()) visit(cast<RankedTensorType>(t).getElementType());
    function.walk([&](Operation* op) {
      for (Type t : op->getResultTypes()) visit(cast<RankedTensorType>(t).getElementType());
    });
  }
  static bool fits(Operation* user, const Array& values) {
    auto cast = dyn_cast<CastOp>(user);
    auto to = cast ? dyn_cast<IntegerType>(cast.getDtype()) : IntegerType();
    if (!to || !isFloat(values.dtype())) return true;
    // What float64 holds next to a whole number is that number in f32, and cut off another one;
    // next to zero, "not zero" is another answer.
    auto steps = [](double x) {
      const double off = std::abs(x - std::round(x));
      return off != 0 && off < 1e-6 * std::max(1.0, std::abs(x));
    };
    for (int64_t i = 0; i < values.size(); ++i)
      if (steps(values.at(i))) return false;
    if (to.getWidth() == 1) return true;
    const double high = std::ldexp(1.0, int(to.getWidth()) - (to.isUnsigned() ? 0 : 1));
    const double low = to.isUnsigned() ? -1 : -high - 1;
    for (int64_t i = 0; i < values.size(); ++i)
      if (!(values.at(i) > low && values.at(i) < high)) return false;
    return true;
  }
};

using Cases = std::vector<Case*>;

// All of them side by side in one entry point; arguments, weights and results are numbered by case.
Graph joined(const Cases& cases, Arrays& inputs, Arrays& weights) {
  auto context = createContext();
  auto module = parseModule(*context, "", "joined");
  OpBuilder b(context.get());
  b.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(b, b.getUnknownLoc(), "forward", b.getFunctionType({}, {}));
  Block* block = function.addEntryBlock();
  SmallVector<Type> types;
  SmallVector<Value> returned;
  SmallVector<std::string> inputNames, outputNames;
  for (auto [n, c] : llvm::enumerate(cases)) {
    const std::string prefix = "m" + std::to_string(n) + ".";
    std::string text;
    llvm::raw_string_ostream(text) << *c->module;
    auto copy = parseModule(*context, text, "case");
    func::FuncOp from = forwardOf(*copy);
    IRMapping mapping;
    for (auto [i, argument] : llvm::enumerate(from.getArguments())) {
      mapping.map(argument, block->addArgument(argument.getType(), b.getUnknownLoc()));
      types.push_back(argument.getType());
      inputNames.push_back(prefix + "x" + std::to_string(i));
      inputs[inputNames.back()] = c->arguments[i];
    }
    OpBuilder inner(block, block->end());
    Operation* end = from.getBody().front().getTerminator();
    for (Operation& op : from.getBody().front()) {
      if (&op == end) break;
      Operation* made = inner.clone(op, mapping);
      if (auto weight = dyn_cast<WeightOp>(made)) {
        weights[prefix + weight.getName().str()] = c->weights.at(weight.getName().str());
        weight.setName(prefix + weight.getName().str());
      }
    }
    for (auto [i, v] : llvm::enumerate(end->getOperands())) {
      returned.push_back(mapping.lookup(v));
      outputNames.push_back(prefix + "y" + std::to_string(i));
    }
  }
  OpBuilder inner(block, block->end());
  func::ReturnOp::create(inner, b.getUnknownLoc(), returned);
  function.setType(b.getFunctionType(types, ValueRange(returned).getTypes()));
  for (auto [i, name] : llvm::enumerate(inputNames))
    function.setArgAttr(unsigned(i), "lathe.name", b.getStringAttr(name));
  for (auto [i, name] : llvm::enumerate(outputNames))
    function.setResultAttr(unsigned(i), "lathe.name", b.getStringAttr(name));
  return Graph::parse(textOf(*module));
}

class DrawnOn : public testing::TestWithParam<const char*> {
 protected:
  bool onCuda() const { return GetParam() == std::string("cuda"); }

  // Below the laid-out graph no mode is known: where both make the same one of a case, a second run
  // would see nothing.
  bool differsInStrict(Case* c) const {
    Arrays inputs, weights;
    const Graph graph = joined({c}, inputs, weights);
    auto laidOut = [&](NumericsMode mode) -> std::string {
      try {
        return irAt(graph, "laid-out", {.backend = GetParam(), .pipeline = {.mode = mode}});
      } catch (const Error&) {
        return std::string(nameOf(mode));
      }
    };
    return laidOut(NumericsMode::Relaxed) != laidOut(NumericsMode::Strict);
  }

  // A program of what the backend refuses or cannot run is taken apart until the one is found.
  void run(const Cases& cases, NumericsMode mode) {
    Arrays inputs, weights, got;
    try {
      Session session(compile(joined(cases, inputs, weights),
                              {.backend = GetParam(), .pipeline = {.mode = mode}}),
                      {.device = onCuda() ? "host" : ""});
      // A rewrite may have made one dead.
      Arrays used;
      for (const auto& w : session.program().weights) used[w.name] = weights.at(w.name);
      if (!used.empty()) session.bindWeights(used);
      got = session.run("forward", inputs);
    } catch (const Error& e) {
      if (cases.size() > 1) {
        const size_t half = cases.size() / 2;
        run(Cases(cases.begin(), cases.begin() + int64_t(half)), mode);
        return run(Cases(cases.begin() + int64_t(half), cases.end()), mode);
      }
      EXPECT_EQ(e.code(), ErrorCode::Unsupported)
          << nameOf(mode) << ", " << cases[0]->what << ": " << e.what() << "\n"
          << textOf(*cases[0]->module);
      ++refused_;
      return;
    }
    for (auto [n, c] : llvm::enumerate(cases))
      for (size_t i = 0; i < c->want.size(); ++i)
        EXPECT_EQ(c->wrong(i, got.at("m" + std::to_string(n) + ".y" + std::to_string(i))), "")
            << nameOf(mode) << ", " << c->what << "\n"
            << textOf(*c->module);
    (mode == NumericsMode::Strict ? strict_ : ran_) += int(cases.size());
  }
  int ran_ = 0, strict_ = 0, refused_ = 0;
};

TEST_P(DrawnOn, ComputesWhatTheGraphSays) {
  // The suite takes an eighth of its draw on cuda: a compiler of the host compiles the kernels.
  const int wanted = onCuda() && seeds.count == kInSuite ? kInSuite / 8 : seeds.count;
  const int together = onCuda() ? 96 : 32;
  std::mt19937_64 random(seeds.first);
  std::vector<std::string> forms = matchedForms();
  uint64_t turn = 0;
  for (int drawn = 0; drawn < wanted;) {
    // Of its own for every program: what a context has seen it keeps.
    auto context = createContext();
    std::vector<std::unique_ptr<Case>> all;
    for (; drawn < wanted && int(all.size()) < together; ++turn) {
      auto module = parseModule(*context, forms[random() % forms.size()], "form");
      std::vector<Mutant> mutants = mutantsOf(*module);
      if (mutants.empty()) continue;
      Mutant& mutant = mutants[random() % mutants.size()];
      auto c = std::make_unique<Case>(Case{mutant.what, concrete(*mutant.module, turn)});
      if (!c->module || !c->prepare(random)) continue;
      all.push_back(std::move(c));
      ++drawn;
    }
    Cases cases, strict;
    for (auto& c : all) {
      cases.push_back(c.get());
      if (differsInStrict(c.get())) strict.push_back(c.get());
    }
    run(cases, NumericsMode::Relaxed);
    if (!strict.empty()) run(strict, NumericsMode::Strict);
  }
  std::printf("%d ran on %s, %d of them once more in strict mode, %d refused, first seed %llu\n",
              ran_, GetParam(), strict_, refused_, static_cast<unsigned long long>(seeds.first));
  std::fflush(stdout);
  EXPECT_GE(ran_, wanted / 2);
}

INSTANTIATE_TEST_SUITE_P(Backends, DrawnOn, testing::Values("reference", "cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lathe::conformance

int main(int argc, char** argv) {
  return lathe::conformance::runWithSeeds(argc, argv, lathe::conformance::seeds);
}
