// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/value_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>

#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include "passes/rewrite/content_hash.h"
#include "passes/rewrite/cost.h"
#include "passes/rewrite/numerics_scope.h"
#include "passes/rewrite/retype.h"

using namespace mlir;

namespace lathe {
namespace {

// Elements and operations of one sample: nothing worth saving, some milliseconds, and what a doubt
// may cost.
constexpr double kCheap = 1e5, kModest = 1e7, kBearable = 5e8;

// Halves are whole numbers and halves about 0: equal ones, zeros and what lies between two whole
// numbers. Huge ones overflow in an exponential. Near ones lie about a constant of the ops.
enum class Floats { Common, Small, Large, Halves, Huge, Near, Special };
// Where the graph itself gives no number, another formula may.
bool mayDiffer(Floats floats) {
  return floats == Floats::Halves || floats == Floats::Huge || floats == Floats::Near;
}
// Integers may be indices: where wide ones are refused, few or none but 0 may be taken.
enum class Integers { Wide, Few, Zero };

struct Draw {
  SymbolValues symbols;
  Floats floats = Floats::Common;
  Integers integers = Integers::Wide;
  double landmark = 0;  // what Floats::Near is about
};

// SplitMix64 (Steele, Lea and Flood, 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Near enough to normal: the sum of four numbers of 16 bits. A dear sample has millions.
  double normal() {
    const uint64_t z = bits();
    const uint64_t sum = (z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48);
    return (double(sum) * 0x1p-16 - 2) * 1.7320508;
  }

 private:
  uint64_t state_;
};

// At the landmark, on either side of it, about its negative, or far from both, by turns.
double nearby(const Draw& draw, uint64_t turn) {
  constexpr double kFactors[] = {1, 2, -1, 0.75, 1.25, -2, 0.5, 0, -0.75};
  return draw.landmark * kFactors[turn % std::size(kFactors)];
}

double realOf(Random& random, const Draw& draw, uint64_t turn) {
  const double x = random.normal();
  switch (draw.floats) {
    case Floats::Near: {
      const double at = nearby(draw, turn);
      return at == 0 ? x : at;
    }
    case Floats::Small:
      return 1e-3 * x;
    case Floats::Large:
      return 8 * x;
    case Floats::Halves:
      return 0.5 * (double(random.bits() % 13) - 6);
    case Floats::Huge:
      return 1000 * x;
    case Floats::Special: {
      constexpr double inf = std::numeric_limits<double>::infinity();
      const uint64_t kind = random.bits() % 16;
      return kind == 0 ? std::nan("") : kind == 1 ? inf : kind == 2 ? -inf : x;
    }
    case Floats::Common:
      break;
  }
  return x;
}

int64_t integerOf(Random& random, const Draw& draw, DType dtype, uint64_t turn) {
  if (draw.integers == Integers::Zero) return 0;
  const uint64_t bits = random.bits();
  if (draw.integers == Integers::Few) return int64_t(bits % 2);
  if (draw.landmark != 0 && (dtype == DType::I64 || dtype == DType::I32))
    return int64_t(std::clamp(nearby(draw, turn), -1e9, 1e9)) + int64_t(bits >> 8) % 2;
  if (dtype == DType::U8) return int64_t((bits >> 8) % 256);
  if (isPacked(dtype)) return int64_t((bits >> 8) % 16) - (dtype == DType::I4 ? 8 : 0);
  if (dtype == DType::I64 && bits % 8 == 0) return (int64_t(1) << 53) + 1 + int64_t(bits >> 60);
  return int64_t((bits >> 8) % 201) - 100;
}

// The dims of a type under the symbols; an anonymous one is 3. Nothing if one is negative.
std::optional<Shape> shapeOf(RankedTensorType type, const SymbolValues& symbols) {
  Shape shape;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    auto dim = dimExprOf(type, i);
    auto value = dim ? dim->evaluate(symbols) : std::optional<int64_t>(3);
    if (!value || *value < 0) return std::nullopt;
    shape.push_back(*value);
  }
  return shape;
}

Array arrayOf(RankedTensorType type, const Draw& draw, uint64_t seed) {
  Random random(seed);
  const DType dtype = *dtypeOf(type.getElementType());
  const Shape shape = *shapeOf(type, draw.symbols);
  const int64_t row = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
  if (isFloat(dtype)) {
    Array a(DType::F64, shape);
    uint64_t i = 0;
    for (double& element : a.as<double>()) {
      const double x = realOf(random, draw, seed + i);
      const bool isZero = draw.floats == Floats::Halves && i % 5 == seed % 5;
      element = isZero ? 0 : x;
      ++i;
    }
    return a;
  }
  Array a(dtype, shape);
  for (int64_t i = 0; i < a.size(); ++i) {
    if (dtype == DType::I64)
      a.as<int64_t>()[size_t(i)] = integerOf(random, draw, dtype, seed + uint64_t(i));
    else if (dtype == DType::Bool)
      a.set(i, i / row % 3 == 1 ? 0 : double(random.bits() % 2));  // a row of false
    else
      a.set(i, double(integerOf(random, draw, dtype, seed + uint64_t(i))));
  }
  return a;
}

std::string placeOf(const Shape& shape, int64_t flat) {
  std::vector<std::string> index(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i])
    index[i] = std::to_string(flat % shape[i]);
  return "[" + llvm::join(index, ", ") + "]";
}

std::string textOf(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// A value near the middle: what is small beside it need not agree in its own last digits.
double middleOf(const Array& a) {
  std::vector<double> sizes;
  for (double x : a.as<double>())
    if (std::isfinite(x)) sizes.push_back(std::abs(x));
  if (sizes.empty()) return 0;
  auto middle = sizes.begin() + int64_t(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

// Constants of a match agree within 1e-6.
constexpr double kTolerance = 1e-5;
// Normal numbers of f32 are not smaller: where all samples underflow there is no middle to go by.
constexpr double kTiny = std::numeric_limits<float>::min();

// The constants that 16 bits may have rounded: those with more digits than a power of two.
std::vector<ConstantOp> roundedConstants(func::FuncOp was) {
  std::vector<ConstantOp> all;
  was.walk([&](ConstantOp op) {
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!splat || !(splat.getElementType().isBF16() || splat.getElementType().isF16())) return;
    int exponent;
    const double value = splat.getSplatValue<APFloat>().convertToDouble();
    if (std::isfinite(value) && value != std::trunc(value) &&
        std::abs(std::frexp(value, &exponent)) != 0.5)
      all.push_back(op);
  });
  return all;
}

// How far each element moves if each of those constants is the next number of its type.
using Moves = std::vector<std::vector<double>>;
template <class Run>
Moves movesOf(func::FuncOp was, const std::vector<Array>& values, Run run) {
  Moves moves;
  for (const Array& a : values) moves.emplace_back(size_t(a.size()));
  for (ConstantOp op : roundedConstants(was)) {
    auto splat = cast<SplatElementsAttr>(op.getValue());
    APFloat next = splat.getSplatValue<APFloat>();
    next.next(/*nextDown=*/false);
    op.setValueAttr(DenseElementsAttr::get(cast<ShapedType>(splat.getType()), next));
    const std::vector<Array> moved = run();
    op.setValueAttr(splat);
    for (size_t i = 0; i < values.size(); ++i)
      for (int64_t k = 0; k < values[i].size(); ++k) {
        const double by = std::abs(moved[i].at(k) - values[i].at(k));
        if (std::isfinite(by)) moves[i][size_t(k)] += by;
      }
  }
  return moves;
}

// `moves`: what rounded constants may explain of each element of a float result.
std::optional<std::string> differenceOf(const Array& was, const Array& is,
                                        const std::vector<double>& moves, Floats floats) {
  if (was.shape() != is.shape() || was.dtype() != is.dtype())
    return describe(was.dtype(), was.shape()) + " became " + describe(is.dtype(), is.shape());
  auto words = [&](int64_t i) {
    return "element " + placeOf(was.shape(), i) + " is " + textOf(was.at(i)) + " and would be " +
           textOf(is.at(i));
  };
  if (was.dtype() == DType::I64) {
    for (int64_t i = 0; i < was.size(); ++i)
      if (was.as<int64_t>()[size_t(i)] != is.as<int64_t>()[size_t(i)]) return words(i);
    return std::nullopt;
  }
  const bool real = was.dtype() == DType::F64;
  const double middle = real ? middleOf(was) : 0;
  for (int64_t i = 0; i < was.size(); ++i) {
    const double a = was.at(i), b = is.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (mayDiffer(floats) && !std::isfinite(a)) continue;
    const double allowed = kTolerance * (std::abs(a) + middle) + moves[size_t(i)] + kTiny;
    // Beside an infinity every number is within what is allowed.
    if (!real || !std::isfinite(a) || !(std::abs(a - b) <= allowed)) return words(i);
  }
  return std::nullopt;
}

template <class Visit>
void eachType(func::FuncOp function, Visit visit) {
  for (Type t : function.getArgumentTypes()) visit(cast<RankedTensorType>(t));
  function.walk([&](Operation* op) {
    for (Type t : op->getResultTypes()) visit(cast<RankedTensorType>(t));
  });
}

std::set<std::string> symbolsIn(const CutOut& cut) {
  std::set<std::string> all;
  auto note = [&](StringAttr dim) {
    const std::vector<std::string> symbols = exprOf(dim).symbols();
    all.insert(symbols.begin(), symbols.end());
  };
  for (func::FuncOp function : {cut.was, cut.is}) {
    eachType(function, [&](RankedTensorType type) {
      for (StringAttr dim : dimsOf(type))
        if (dim) note(dim);
    });
    function.walk([&](Operation* op) {
      for (NamedAttribute a : op->getAttrDictionary())
        if (auto dims = dyn_cast<DimsAttr>(a.getValue()))
          for (StringAttr dim : dims.getDims()) note(dim);
    });
  }
  return all;
}

// Values within the ranges that keep every size at 0 or more; nothing if none of those tried does.
std::optional<SymbolValues> symbolValues(const CutOut& cut, ModuleOp graph, bool smallest) {
  constexpr int64_t kSizes[] = {3, 5, 2, 7, 4, 11, 6};
  const std::set<std::string> names = symbolsIn(cut);
  for (size_t turn = 0; turn < std::size(kSizes); ++turn) {
    SymbolValues values;
    size_t next = turn;
    for (const std::string& name : names) {
      int64_t lo = 1, hi = std::numeric_limits<int64_t>::max(), step = 1;
      if (auto dim = graph ? graph.lookupSymbol<DimOp>(name) : DimOp()) {
        lo = std::max<int64_t>(int64_t(dim.getLo()), 1);
        hi = int64_t(dim.getHi());
        step = int64_t(dim.getMultiple());
      }
      const int64_t wanted = smallest ? lo : std::max(kSizes[next++ % std::size(kSizes)], lo);
      values[name] = std::min((wanted + step - 1) / step * step, std::max(hi, lo) / step * step);
    }
    bool fits = true;
    for (func::FuncOp function : {cut.was, cut.is})
      eachType(function, [&](RankedTensorType type) { fits &= shapeOf(type, values).has_value(); });
    if (fits) return values;
  }
  return std::nullopt;
}

// Where a formula may change: at the constants of the ops, which they compare with, and at what
// becomes one of them when it is multiplied by another.
std::vector<double> landmarksOf(const CutOut& cut) {
  std::set<double> constants;
  auto note = [&](double x) {
    if (std::isfinite(x) && x != 0) constants.insert(std::abs(x));
  };
  for (func::FuncOp function : {cut.was, cut.is})
    function.walk([&](Operation* op) {
      for (NamedAttribute a : op->getAttrs())
        if (auto number = dyn_cast<FloatAttr>(a.getValue())) note(number.getValueAsDouble());
      auto constant = dyn_cast<ConstantOp>(op);
      auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : nullptr;
      if (!splat) return;
      if (isa<FloatType>(splat.getElementType()))
        note(splat.getSplatValue<APFloat>().convertToDouble());
      else if (isa<IntegerType>(splat.getElementType()))
        note(double(splat.getSplatValue<APInt>().getSExtValue()));
    });
  constexpr size_t kMost = 12;
  std::vector<double> landmarks(constants.begin(), constants.end());
  for (double at : constants)
    for (double by : constants)
      if (at != by) landmarks.push_back(at / by);
  if (landmarks.size() > kMost) landmarks.resize(kMost);
  return landmarks;
}

bool hasScores(func::FuncOp was) {
  return was
      .walk([](Operation* op) {
        return isa<MatmulOp, AttentionOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

double costOf(const CutOut& cut, const SymbolValues& symbols) {
  double sum = 0;
  for (func::FuncOp function : {cut.was, cut.is}) {
    eachType(function, [&](RankedTensorType type) {
      double count = 1;
      const Shape shape = *shapeOf(type, symbols);
      for (int64_t d : shape) count *= double(d);
      sum += count;
    });
    function.walk([&](Operation* op) {
      if (op->hasTrait<OpTrait::IsTerminator>()) return;
      if (auto cost = lathe::costOf(op, symbols)) sum += evaluate(cost->flops, symbols);
    });
  }
  return sum;
}

// The same with static sizes above `least` divided by `divisor`; nothing if the ops no longer fit.
std::optional<CutOut> smaller(const CutOut& cut, int64_t least, int64_t divisor) {
  Retyping change;
  change.dim = [=](StringAttr dim) {
    auto number = exprOf(dim).asConstant();
    int64_t n = number.value_or(0);
    if (n <= least || n % divisor) return dim;
    // A table is no product of other sizes: it may become smaller still.
    n /= divisor;
    while (n >= 8192 / divisor && n % 2 == 0) n /= 2;
    return StringAttr::get(dim.getContext(), std::to_string(n));
  };
  OpBuilder b(cut.module.get().getContext());
  CutOut small{ModuleOp::create(b, b.getUnknownLoc()), {}, {}};
  b.setInsertionPointToEnd(small.module->getBody());
  small.was = retyped(b, cut.was, change);
  small.is = small.was ? retyped(b, cut.is, change) : func::FuncOp();
  if (!small.is || small.was.getFunctionType() != small.is.getFunctionType()) return std::nullopt;
  return small;
}

// Runs both sides on one draw. `ran` says whether the old side took it.
std::optional<std::string> differenceOn(const CutOut& cut, const Evaluator& evaluate,
                                        const Draw& draw, bool& ran) {
  std::vector<Array> arguments;
  func::FuncOp old = cut.was;
  for (auto [i, type] : llvm::enumerate(old.getArgumentTypes()))
    arguments.push_back(arrayOf(cast<RankedTensorType>(type), draw, 1000 + i));
  std::map<std::string, RankedTensorType> types;
  for (func::FuncOp function : {cut.was, cut.is})
    function.walk(
        [&](WeightOp op) { types[op.getName().str()] = cast<RankedTensorType>(op.getType()); });
  std::map<std::string, Array> drawn;  // both sides read the same
  auto weights = [&](const std::string& name) {
    auto [weight, isNew] = drawn.try_emplace(name);
    if (isNew) weight->second = arrayOf(types.at(name), draw, xxh3_64bits(StringRef(name)));
    return weight->second;
  };
  std::vector<Array> was, is;
  try {
    was = evaluate(cut.was, arguments, weights, draw.symbols);
  } catch (const Error&) {
    return std::nullopt;
  }
  ran = true;
  try {
    is = evaluate(cut.is, arguments, weights, draw.symbols);
  } catch (const Error& e) {
    return std::string("the replacement fails where the ops do not: ") + e.what();
  }
  Moves moves;
  for (const Array& a : was) moves.emplace_back(size_t(a.size()));
  auto difference = [&]() -> std::optional<std::string> {
    for (size_t i = 0; i < was.size(); ++i)
      if (auto words = differenceOf(was[i], is[i], moves[i], draw.floats)) return words;
    return std::nullopt;
  };
  auto words = difference();
  if (!words) return words;
  // A constant of 16 bits is matched as it rounds: it stands for numbers up to half a step away.
  try {
    moves = movesOf(old, was, [&] { return evaluate(old, arguments, weights, draw.symbols); });
  } catch (const Error&) {
    return words;
  }
  for (auto& ofResult : moves)
    for (double& by : ofResult) by *= 0.6;
  return difference();
}

std::string describe(const SymbolValues& symbols) {
  std::vector<std::string> all;
  for (auto& [name, value] : symbols) all.push_back(name + "=" + std::to_string(value));
  return all.empty() ? "" : " with " + llvm::join(all, ", ");
}

// The first difference, and the draw that shows it.
struct ShownBy {
  std::string words;
  Draw draw;
};
std::optional<ShownBy> differenceOnAll(const CutOut& cut, const Evaluator& evaluate,
                                       const std::vector<Draw>& draws) {
  for (Draw draw : draws)
    for (Integers integers : {Integers::Wide, Integers::Few, Integers::Zero}) {
      draw.integers = integers;
      bool ran = false;
      if (auto words = differenceOn(cut, evaluate, draw, ran))
        return ShownBy{*words + describe(draw.symbols), draw};
      if (ran) break;
    }
  return std::nullopt;
}
std::optional<std::string> wordsOf(const std::optional<ShownBy>& found) {
  return found ? std::optional(found->words) : std::nullopt;
}

std::optional<std::string> check(const CutOut& cut, ModuleOp graph, const Evaluator& evaluate,
                                 bool special) {
  auto several = symbolValues(cut, graph, false), one = symbolValues(cut, graph, true);
  std::vector<Draw> draws;
  if (special) {
    if (several) draws.push_back({*several, Floats::Special});
  } else {
    for (Floats floats : {Floats::Common, Floats::Small, Floats::Large, Floats::Halves})
      if (several) draws.push_back({*several, floats});
    // Scores of such numbers would be larger than what hides one.
    if (several && !hasScores(cut.was)) {
      draws.push_back({*several, Floats::Huge});
      for (double landmark : landmarksOf(cut))
        draws.push_back({*several, Floats::Near, Integers::Wide, landmark});
    }
    if (one) draws.push_back({*one, Floats::Common});
  }
  const SymbolValues* largest = several ? &*several : one ? &*one : nullptr;
  if (!largest) return std::nullopt;
  if (draws.empty()) draws.push_back({*largest});
  std::map<SymbolValues, double> costs;  // few sizes, each in many draws
  auto costWith = [&](const SymbolValues& symbols) {
    auto [cost, isNew] = costs.try_emplace(symbols);
    if (isNew) cost->second = costOf(cut, symbols);
    return cost->second;
  };
  if (costWith(*largest) <= kCheap) return wordsOf(differenceOnAll(cut, evaluate, draws));
  auto isTooDear = [&](const Draw& d) { return costWith(d.symbols) > kBearable; };
  std::vector<Draw> inFull = draws;
  std::erase_if(inFull, isTooDear);
  constexpr std::pair<int64_t, int64_t> kDivisors[] = {{32, 16}, {32, 8},   {64, 16}, {64, 8},
                                                       {16, 4},  {128, 16}, {8, 2}};
  for (auto [least, divisor] : kDivisors) {
    auto small = smaller(cut, least, divisor);
    if (!small || costOf(*small, *largest) > kModest) continue;
    // A mean over fewer elements is no longer a mean: only agreement counts.
    auto found = differenceOnAll(*small, evaluate, draws);
    if (!found || inFull.empty()) return wordsOf(found);
    // Zeros, say, may be the only numbers that tell both sides apart.
    if (!isTooDear(found->draw)) inFull = {found->draw};
    break;
  }
  if (!inFull.empty()) inFull.resize(1);  // dear ones once
  return wordsOf(differenceOnAll(cut, evaluate, inFull));
}

// What was found for a pair of functions; models repeat their layers.
class Known {
 public:
  template <class Find>
  std::optional<std::string> of(const Hash128& key, Find find) {
    {
      std::lock_guard lock(mutex_);
      if (auto known = found_.find(key); known != found_.end()) return known->second;
    }
    std::optional<std::string> found = find();
    std::lock_guard lock(mutex_);
    if (found_.size() >= kMost) found_.clear();
    found_[key] = found;
    return found;
  }

 private:
  static constexpr size_t kMost = 1 << 16;
  std::mutex mutex_;
  std::map<Hash128, std::optional<std::string>> found_;
};

// Layers differ in the names of their weights alone: numbers in order of appearance make them
// equal.
void numberWeights(const CutOut& cut) {
  std::map<std::string, std::string> numbers;
  cut.module.get()->walk([&](WeightOp op) {
    auto [known, isNew] =
        numbers.try_emplace(op.getName().str(), "w" + std::to_string(numbers.size()));
    op.setName(known->second);
  });
}

}  // namespace

std::optional<std::string> valueDifference(const CutOut& cut, ModuleOp graph,
                                           const Evaluator& evaluate, bool special) {
  static Known known;
  numberWeights(cut);
  auto* dialect = cut.module.get().getContext()->getLoadedDialect<LatheDialect>();
  HashedTexts own;
  ContentHash hash(dialect && dialect->numerics ? dialect->numerics->hashedTexts : own);
  hash.add(cut.module.get());
  hash.add(uint64_t(special));
  if (graph)
    for (auto dim : graph.getOps<DimOp>()) hash.add(dim);
  return known.of(hash.value(), [&] { return check(cut, graph, evaluate, special); });
}

}  // namespace lathe
