// SPDX-License-Identifier: Apache-2.0
// What stands beside the examples of the canonical rewrites: every function of
// tests/lit/passes/canonical_*.mlir with one op changed, to another constant, predicate, axis,
// operand or op, or with one more user; then with up to three such changes that are drawn. Whatever
// canonicalization makes of it computes the same.
//
//   canonical_neighbours_test SEED COUNT    draws others
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "ir/op_builder.h"
#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "lathe/passes/region_ops.h"
#include "lathe/runtime/error.h"
#include "passes/rewrite/numerics_scope.h"
#include "tests/conformance/function_values.h"
#include "tests/conformance/mutations.h"
#include "tests/conformance/rewriting.h"
#include "tests/conformance/seeds.h"
#include "tests/conformance/tolerance.h"

namespace lathe::conformance {
namespace {

using namespace mlir;

Seeds seeds{1, 24};

// Numbers that rewrites ask for, and those next to them.
const std::vector<double>& numbers() {
  constexpr double inf = std::numeric_limits<double>::infinity();
  static const std::vector<double> all{0, -0.0, 1, -1, 2, 0.5, -0.5, 3, -2, -1e4, -9990, inf, -inf};
  return all;
}

void addConstants(ConstantOp op, std::vector<Mutation>& all) {
  auto value = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!value || !value.isSplat()) return;
  Type element = value.getElementType();
  for (double number : numbers()) {
    Attribute changed;
    if (auto real = dyn_cast<FloatType>(element)) {
      APFloat v(number);
      bool loses = false;
      v.convert(real.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
      changed = DenseElementsAttr::get(value.getType(), v);
    } else if (std::isfinite(number) && number == std::floor(number) && !element.isInteger(1)) {
      changed = DenseElementsAttr::get(
          value.getType(),
          APInt(element.getIntOrFloatBitWidth(), uint64_t(int64_t(number)), true, true));
    } else if (element.isInteger(1) && (number == 0 || number == 1)) {
      changed = DenseElementsAttr::get(value.getType(), number == 1);
    }
    if (changed && changed != value)
      all.push_back({"constant " + std::to_string(number),
                     [changed](Operation* o) { o->setAttr("value", changed); }});
  }
}

// The op that many places further up; null at the top.
Operation* before(Operation* op, unsigned places) {
  for (; op && places; --places) op = op->getPrevNode();
  return op;
}

// Ops that take the same operands and attributes.
void addOtherOps(Operation* op, std::vector<Mutation>& all) {
  static const std::vector<std::vector<const char*>> kinds{
      {"add", "sub", "mul", "div", "max", "min", "pow"},
      {"logical_and", "logical_or"},
      {"neg", "abs", "exp", "sqrt", "rsqrt", "reciprocal", "tanh", "sigmoid"},
      {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}};
  const std::string mine = op->getName().stripDialect().str();
  for (const auto& kind : kinds) {
    if (!llvm::is_contained(kind, mine)) continue;
    for (const char* other : kind)
      if (other != mine)
        all.push_back({"to " + std::string(other), [other](Operation* o) {
                         OpBuilder b(o);
                         auto name = b.getStringAttr("lathe." + std::string(other));
                         Operation* made = b.create(o->getLoc(), name, o->getOperands(),
                                                    o->getResultTypes(), o->getAttrs());
                         o->replaceAllUsesWith(made);
                         o->erase();
                       }});
  }
}

// What an earlier op computes, in the place of each operand of its type.
void addOtherValues(Operation* op, std::vector<Mutation>& all) {
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    for (unsigned back = 1; Operation* earlier = before(op, back); ++back)
      if (earlier->getNumResults() == 1 && earlier->getResult(0) != op->getOperand(i) &&
          earlier->getResult(0).getType() == op->getOperand(i).getType())
        all.push_back({"value", [i, back](Operation* o) {
                         o->setOperand(i, before(o, back)->getResult(0));
                       }});
}

// The first place of one axis, stretched by the op, in the place of each operand.
void addStretched(Operation* op, std::vector<Mutation>& all) {
  if (!isElementwise(op) || op->getNumOperands() < 2) return;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    for (auto [axis, dim] : llvm::enumerate(dimsOf(tensorType(op->getOperand(i)))))
      if (dim && !isOne(dim))
        all.push_back({"stretched", [i, axis = axis](Operation* o) {
                         OpBuilder b(o);
                         OpMaker m(b, o->getLoc());
                         Value whole = o->getOperand(i);
                         auto sizes = dimsOf(tensorType(whole));
                         SmallVector<StringAttr> starts(sizes.size(), m.dim(0));
                         SmallVector<int64_t> strides(sizes.size(), 1);
                         sizes[axis] = m.dim(1);
                         MLIRContext* c = o->getContext();
                         o->setOperand(i, m.make<SliceOp>(whole, DimsAttr::get(c, starts),
                                                          DimsAttr::get(c, sizes), strides));
                       }});
}

std::vector<Mutation> neighboursOf(Operation* op) {
  std::vector<Mutation> all = allMutations(op);
  if (auto constant = dyn_cast<ConstantOp>(op)) addConstants(constant, all);
  addOtherOps(op, all);
  addOtherValues(op, all);
  addStretched(op, all);
  if (op->hasTrait<OpTrait::IsCommutative>())
    all.push_back({"turned operands", [](Operation* o) {
                     Value a = o->getOperand(0);
                     o->setOperand(0, o->getOperand(1));
                     o->setOperand(1, a);
                   }});
  all.push_back({"one more user", [](Operation* o) { returnToo(o); }});
  return all;
}

class CanonicalNeighbours : public ::testing::TestWithParam<std::string> {
 protected:
  CanonicalNeighbours() : context_(createContext()) {
    std::ifstream in(LATHE_TEST_DATA "/lit/passes/" + GetParam() + ".mlir");
    std::stringstream text;
    text << in.rdbuf();
    file_ = parseModule(*context_, text.str(), GetParam());
  }

  // Each function alone, with the named sizes of the file.
  std::vector<Module> functions() {
    std::vector<Module> all;
    for (auto function : file_->getOps<func::FuncOp>()) {
      Module one(ModuleOp::create(file_->getLoc()));
      for (Operation& op : *file_->getBody())
        if (!isa<func::FuncOp>(op)) one->push_back(op.clone());
      one->push_back(function.clone());
      all.push_back(std::move(one));
    }
    return all;
  }

  static func::FuncOp functionOf(Module& module) { return *module->getOps<func::FuncOp>().begin(); }

  // The difference that canonicalization makes in one mode; nothing where the function has no
  // value: an index out of range, say.
  std::string difference(Module& plain, NumericsMode mode) {
    NumericsScope scope(context_.get(), {.mode = mode});
    const bool strict = mode == NumericsMode::Strict;
    const Precision precision = strict ? Precision::OwnDtype : Precision::Float64;
    Module rewritten(plain->clone());
    canonicalize(*rewritten);
    if (!isValid(*rewritten)) return "not valid";
    for (uint64_t seed : {1, 2}) {
      std::vector<Array> want;
      try {
        want = runOn(functionOf(plain), strict, precision, seed);
      } catch (const Error&) {
        return "";
      }
      const std::vector<Array> got = runOn(functionOf(rewritten), strict, precision, seed);
      if (strict) {
        if (auto d = firstOtherBits(want, got); !d.empty()) return d;
        continue;
      }
      for (size_t i = 0; i < want.size(); ++i)
        if (auto d = firstDifference(got[i], want[i], {1e-6, 1e-6}); !d.empty()) return d;
    }
    return "";
  }

  void checkAll(NumericsMode mode) {
    int tried = 0;
    for (Module& function : functions()) {
      const size_t count = opsOf(*function).size();
      for (size_t i = 0; i < count; ++i)
        for (const Mutation& neighbour : neighboursOf(opsOf(*function)[i])) {
          Module changed(function->clone());
          neighbour.apply(opsOf(*changed)[i]);
          if (!isValid(*changed)) continue;
          ++tried;
          EXPECT_EQ(difference(changed, mode), "") << neighbour.name << " of op " << i << ":\n"
                                                   << textOf(*changed);
        }
    }
    EXPECT_GE(tried, 30);
  }

  // Several changes, one after the other.
  void checkDrawn(NumericsMode mode) {
    for (Module& function : functions())
      for (uint64_t seed = seeds.first; seed < seeds.end(); ++seed) {
        std::mt19937_64 random(seed);
        Module changed(function->clone());
        std::string names;
        for (int step = 0; step < 3; ++step) {
          const size_t i = random() % opsOf(*changed).size();
          const auto all = neighboursOf(opsOf(*changed)[i]);
          const Mutation& neighbour = all[random() % all.size()];
          Module next(changed->clone());
          neighbour.apply(opsOf(*next)[i]);
          if (!isValid(*next)) continue;
          names += neighbour.name + " of op " + std::to_string(i) + ", ";
          changed = std::move(next);
        }
        EXPECT_EQ(difference(changed, mode), "") << names << "seed " << seed << ":\n"
                                                 << textOf(*changed);
      }
  }

  std::unique_ptr<MLIRContext> context_;
  Module file_;
};

TEST_P(CanonicalNeighbours, KeepEveryBitInStrictMode) { checkAll(NumericsMode::Strict); }
TEST_P(CanonicalNeighbours, AreEqualInExactArithmeticOtherwise) { checkAll(NumericsMode::Relaxed); }

TEST_P(CanonicalNeighbours, KeepEveryBitAfterMoreChanges) { checkDrawn(NumericsMode::Strict); }
TEST_P(CanonicalNeighbours, AreEqualAfterMoreChanges) { checkDrawn(NumericsMode::Relaxed); }

INSTANTIATE_TEST_SUITE_P(Conformance, CanonicalNeighbours, ::testing::ValuesIn(canonicalFiles()),
                         [](const auto& info) { return info.param.substr(10); });

}  // namespace
}  // namespace lathe::conformance

int main(int argc, char** argv) {
  return lathe::conformance::runWithSeeds(argc, argv, lathe::conformance::seeds);
}
