// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region_code.h"

#include <algorithm>
#include <cstring>

#include "backends/cuda/lowering/call_facts.h"
#include "backends/cuda/lowering/kernel_text.h"
#include "passes/locations.h"

using namespace mlir;

namespace lathe::cuda {

std::string storedName(Type element) { return std::string(elementType(*dtypeOf(element))); }
bool isSmallFloat(Type element) { return element.isBF16() || element.isF16(); }
bool isReal(Type element) { return isa<FloatType>(element); }
std::string computedName(Type element) {
  if (isSmallFloat(element)) return "float";
  return element.isInteger(1) ? "bool" : storedName(element);
}

RegionCode::RegionCode(func::FuncOp region, bool flat, RegionText& text,
                       std::vector<std::string> names, const Findings& known)
    : k(text), region_(region), flat_(flat), names_(std::move(names)), known_(known) {
  found.replaced = known.replaced;
  for (Value v : region.getBody().front().getTerminator()->getOperands())
    roundsMuch_ &= isSmallFloat(tensorType(v).getElementType());
  depth_ = depthsOf(region);
}

SmallVector<DimExpr> RegionCode::dims(Value tensor) const {
  if (!flat_) return dimExprs(tensor);
  DimExpr count = *elementCountOf(tensorType(tensor));
  if (count == DimExpr(1)) return {};
  return {count};
}

Linear RegionCode::size(const DimExpr& dim) {
  if (auto number = dim.asConstant()) return *number;
  auto it = llvm::find(sizes, dim);
  if (it != sizes.end()) {
    size_t i = size_t(it - sizes.begin());
    return Linear(sizeAtoms_[i]);
  }
  // "batch_seq_4096", "cache_plus_seq"
  std::string name;
  for (auto& [symbols, factor] : dim.terms()) {
    if (!name.empty()) name += "_plus_";
    for (const std::string& s : symbols)
      name += (name.empty() || name.back() == '_' ? "" : "_") + s;
    if (factor != 1 || symbols.empty())
      name += (symbols.empty() ? "" : "_") + std::string(factor < 0 ? "minus_" : "") +
              std::to_string(std::abs(factor));
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "n_" + name;
  sizes.push_back(dim);
  sizeNames.push_back(k.unique(name));
  int64_t align = 0;
  for (auto& [symbols, factor] : dim.terms()) align = std::gcd(align, factor);
  Atom atom{.text = sizeNames.back(), .align = align};
  sizeAtoms_.push_back(k.atom(atom));
  return Linear(sizeAtoms_.back());
}

const Atom* RegionCode::variable(int level, const std::string& hint, const std::string& expression,
                                 int64_t align, int64_t lo, int64_t hi) {
  bool wide = lo < -(int64_t(1) << 31) || hi >= (int64_t(1) << 31);
  Val v = k.define(level, wide ? "i64" : "int", hint, expression);
  return k.atom({.text = v.text, .level = level, .align = align, .lo = lo, .hi = hi, .wide = wide});
}

Linear RegionCode::times(const Linear& x, const DimExpr& by) {
  if (auto number = by.asConstant()) return x * *number;
  if (x == Linear(0)) return x;
  Linear factor = size(by), product;
  auto multiply = [&](const Linear& part) {
    if (part == Linear(1)) return factor;
    std::string key = "times " + part.key() + " " + factor.key();
    auto& atom = products_[key];
    // Its factors may be out of scope by now: a product is known as long as they are.
    if (!atom)
      atom = k.atom({.text = part.factor() + " * " + factor.factor(),
                     .level = part.level(),
                     .align = part.align() * factor.align(),
                     .simple = false});
    return Linear(atom);
  };
  if (x.lanePart().isConstant()) return multiply(x);
  Linear base = x.uniformPart();
  Linear lanes = x.lanePart();
  const Atom* varying = k.atom(
      {.text = lanes.factor() + " * " + factor.factor(), .level = lanes.level(), .simple = false});
  if (!(base == Linear(0))) product = multiply(base);
  return product + Linear(varying);
}

std::pair<Linear, Linear> RegionCode::divide(const Linear& x, const DimExpr& by,
                                             const std::string& hint,
                                             const std::string& remainderHint) {
  auto number = by.asConstant();
  if (number && *number == 1) return {x, 0};
  if (number && *number > 0 && x.lo() >= 0 && x.hi() < *number) return {0, x};
  // Terms that are multiples of the divisor leave no remainder.
  Linear quotient, rest = x;
  if (number && *number > 0 && x.lo() >= 0) {
    rest = Linear(0);
    for (auto [atom, factor] : x.terms()) {
      Linear term = Linear(atom) * factor;
      if (factor % *number == 0)
        quotient = quotient + Linear(atom) * (factor / *number);
      else
        rest = rest + term;
    }
    int64_t whole = x.constant() >= 0 ? x.constant() / *number : 0;
    quotient = quotient + Linear(whole);
    rest = rest + Linear(x.constant() - whole * *number);
    if (rest.lo() >= 0 && rest.hi() < *number) return {quotient, rest};
    if (rest.lo() < 0) {
      quotient = Linear(0);
      rest = x;
    }
  }
  std::vector<int64_t> lanes = rest.lanes();
  Linear base = rest.uniformPart(), lanePart = rest.lanePart();
  if (number && *number > 0 && !lanes.empty() && rest.lo() >= 0) {
    auto [least, most] = std::minmax_element(lanes.begin(), lanes.end());
    int64_t step = std::gcd(base.align(), *number);
    if (*least >= 0 && *most < step) {
      // All lanes lie inside one multiple of the divisor.
      auto [q, r] = divide(base, by, hint, remainderHint);
      return {quotient + q, r + lanePart};
    }
    if (*least >= 0 && base.align() % *number == 0) {
      auto part = [&](const char* op, bool remainder) {
        Atom atom{.text = lanePart.factor() + op + std::to_string(*number),
                  .level = lanePart.level(),
                  .wide = false,
                  .simple = false,
                  .partial = lanePart.partial()};
        for (int64_t v : lanes) atom.lanes.push_back(remainder ? v % *number : v / *number);
        atom.lo = *std::min_element(atom.lanes.begin(), atom.lanes.end());
        atom.hi = *std::max_element(atom.lanes.begin(), atom.lanes.end());
        auto& known = products_[lanePart.key() + op + std::to_string(*number)];
        if (!known) known = k.atom(atom);
        return Linear(known);
      };
      auto [q, r] = divide(base, by, hint, remainderHint);
      return {quotient + q + part(" / ", false), r + part(" % ", true)};
    }
  }
  std::string key = "divide " + rest.key() + " " + by.text();
  int level = rest.level();
  std::string divisor;
  if (number) {
    divisor = std::to_string(*number);
  } else {
    Linear n = size(by);
    if (llvm::is_contained(positive, by)) {
      divisor = n.factor();
    } else {
      const std::string guard = "at least one " + by.text();
      if (const Val* known = k.find(guard)) {
        divisor = known->text;
      } else {
        Val v = k.define(0, "i64", n.text() + "_or_1", n.text() + " > 0 ? " + n.text() + " : 1");
        k.remember(guard, v);
        divisor = v.text;
      }
    }
  }
  const Val* known = k.find(key);
  if (!known) {
    int64_t align =
        number && *number > 0 && rest.align() % *number == 0 ? rest.align() / *number : 1;
    int64_t top = number && *number > 0 && rest.hi() < Atom::kUnbounded ? rest.hi() / *number
                                                                        : Atom::kUnbounded;
    const Atom* q = variable(level, hint, rest.factor() + " / " + divisor, align, 0, top);
    Linear remainder = number && rest.align() % *number == 0
                           ? Linear(0)
                           : Linear(variable(level, remainderHint, rest.factor() + " % " + divisor,
                                             number ? std::gcd(rest.align(), *number) : 1, 0,
                                             number ? *number - 1 : Atom::kUnbounded));
    divisions_[q] = {rest, by, remainder};
    quotients_[q->text] = q;
    k.remember(key, {q->text, level});
    known = k.find(key);
  }
  const Atom* q = quotients_.at(known->text);
  return {quotient + Linear(q), divisions_.at(q).remainder};
}

Index RegionCode::split(const Linear& at, ArrayRef<DimExpr> box) {
  Index index(box.size(), Linear(0));
  Linear rest = at;
  size_t outermost = 0;
  while (outermost < box.size() && box[outermost] == DimExpr(1)) ++outermost;
  for (size_t i = box.size(); i-- > outermost;) {
    if (i == outermost) {
      index[i] = rest;
      break;
    }
    if (box[i] == DimExpr(1)) continue;
    // "i_seq", or by its axis.
    auto symbols = box[i].symbols();
    std::string own = symbols.size() == 1 ? "i_" + symbols[0] : "i" + std::to_string(i);
    auto [quotient, remainder] =
        divide(rest, box[i], i == outermost + 1 ? "i" + std::to_string(outermost) : "rest", own);
    index[i] = remainder;
    rest = quotient;
  }
  return index;
}

Linear RegionCode::linear(ArrayRef<DimExpr> box, const Index& index) {
  Linear at;
  size_t first = 0;
  // A tensor whose leading dims are the rows' has the row's number as its leading index.
  if (!rowDims.empty() && box.size() >= rowDims.size()) {
    bool same = true;
    for (size_t i = 0; i < rowDims.size() && same; ++i)
      same = box[i] == rowDims[i] && index[i] == row[i];
    if (same) {
      at = rowNumber;
      first = rowDims.size();
    }
  }
  for (size_t i = first; i < box.size(); ++i) {
    // (x / n) * n + x % n
    if (!at.terms().empty() && !(box[i] == DimExpr(1))) {
      auto [atom, factor] = at.terms().back();
      auto it = divisions_.find(atom);
      if (it != divisions_.end() && it->second.by == box[i]) {
        Linear others = at - Linear(atom) * factor;
        Linear lanes = index[i] - it->second.remainder;
        if (factor == 1 && others == Linear(0) && lanes.lo() >= 0 &&
            lanes.uniformPart() == Linear(0)) {
          at = it->second.x + lanes;
          continue;
        }
      }
    }
    at = times(at, box[i]) + index[i];
  }
  return at;
}

void RegionCode::setRow(const Linear& number, ArrayRef<DimExpr> dims) {
  rowDims = positive = SmallVector<DimExpr>(dims);
  // The only row is row 0, wherever its coordinates, which are zeros, are known.
  const bool only = llvm::all_of(dims, [](const DimExpr& d) { return d == DimExpr(1); });
  rowNumber = only ? Linear(0) : number;
  row = split(rowNumber, rowDims);
}

std::string RegionCode::keyOf(Value tensor, const Index& index) const {
  std::string key = std::to_string(reinterpret_cast<uintptr_t>(tensor.getAsOpaquePointer()));
  for (const Linear& c : index) key += "," + c.key();
  return key;
}

Index RegionCode::broadcastIndex(Value operand, const Index& index) const {
  auto shape = dims(operand);
  Index inner(index.end() - shape.size(), index.end());
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == DimExpr(1)) inner[i] = Linear(0);
  return inner;
}

Val RegionCode::operand(Operation* op, unsigned number, const Index& index) {
  Value v = op->getOperand(number);
  return computed(v, eval(v, broadcastIndex(v, index)));
}

Val RegionCode::computed(Value tensor, const Val& value) {
  Type element = tensorType(tensor).getElementType();
  if (!value.raw || storedName(element) == computedName(element)) return value;
  std::string key = "computed " + value.text;
  if (const Val* known = k.find(key)) return *known;
  std::string expression =
      element.isInteger(1) ? value.text + " != 0" : "to_f32(" + value.text + ")";
  // "x" of "x_v[j]"
  std::string hint = value.unrounded.empty() ? value.text : value.unrounded;
  hint = hint.substr(0, hint.find_first_of("[("));
  hint.resize(hint.find_last_not_of("0123456789") + 1);
  for (const char* end : {"_v", "_s", "_kept"})
    if (llvm::StringRef(hint).ends_with(end)) hint.resize(hint.size() - std::strlen(end));
  Val v = k.define(value.level, computedName(element),
                   value.unrounded.empty() ? hint + "_e" : hint + "_rounded", expression);
  k.remember(key, v);
  return v;
}

std::string RegionCode::stored(Type element, const Val& value) {
  if (value.raw) return value.text;
  if (isSmallFloat(element)) return "to_" + storedName(element) + "(" + value.text + ")";
  return element.isInteger(1) ? "(u8)" + value.text : value.text;
}

std::string RegionCode::commentOf(Operation* op) {
  std::string origin = originText(op->getLoc());
  if (origin == lastOrigin_) return {};
  lastOrigin_ = origin;
  return origin;
}

// What a statement calls its value.
std::string RegionCode::nameOf(Operation* op) const {
  static const std::map<std::string, std::string> words{{"add", "sum"},
                                                        {"sub", "difference"},
                                                        {"mul", "product"},
                                                        {"div", "quotient"},
                                                        {"exp", "power"},
                                                        {"log", "logarithm"},
                                                        {"neg", "negated"},
                                                        {"abs", "magnitude"},
                                                        {"sqrt", "root"},
                                                        {"rsqrt", "inverse_root"},
                                                        {"reciprocal", "inverse"},
                                                        {"sin", "sine"},
                                                        {"cos", "cosine"},
                                                        {"tanh", "bent"},
                                                        {"erf", "error"},
                                                        {"sigmoid", "sigmoid"},
                                                        {"select", "chosen"},
                                                        {"compare", "holds"},
                                                        {"max", "larger"},
                                                        {"min", "smaller"},
                                                        {"pow", "raised"},
                                                        {"mod", "remainder"},
                                                        {"cast", "as"},
                                                        {"bitcast", "bits"},
                                                        {"reduce_sum", "total"},
                                                        {"reduce_mean", "mean"},
                                                        {"reduce_max", "largest"},
                                                        {"reduce_min", "smallest"},
                                                        {"reduce_prod", "all_product"},
                                                        {"reduce_any", "any"},
                                                        {"reduce_all", "all"},
                                                        {"argmax", "best"},
                                                        {"argmin", "least"},
                                                        {"floor", "below"},
                                                        {"ceil", "above"},
                                                        {"round", "nearest"},
                                                        {"gather", "picked"},
                                                        {"random_bits", "random"},
                                                        {"concat", "joined"},
                                                        {"pad", "padded"},
                                                        {"iota", "counted"}};
  auto it = words.find(op->getName().stripDialect().str());
  std::string name = it == words.end() ? op->getName().stripDialect().str() : it->second;
  if (name == "as") name += "_" + computedName(tensorType(op->getResult(0)).getElementType());
  return name;
}

Val RegionCode::define(Operation* op, const std::string& type, const std::string& expression,
                       std::initializer_list<Val> operands, bool raw) {
  int level = 0;
  for (const Val& v : operands) level = std::max(level, v.level);
  Val v = k.define(level, type, nameOf(op), expression, commentOf(op));
  v.raw = raw;
  return v;
}

std::string RegionCode::statusName(int check) {
  return check ? "status" + std::to_string(check + 1) : "status";
}

std::vector<std::pair<std::string, Argument>> RegionCode::parameters() {
  std::vector<std::pair<std::string, Argument>> all;
  const auto& replaced = known_.replaced;
  const unsigned operands = region_.getNumArguments();
  for (unsigned i : found.operands)
    all.push_back({"const " + storedName(tensorType(region_.getArgument(i)).getElementType()) +
                       (replaced.contains(i) || isHook() ? "* " : "* __restrict__ ") + names_[i],
                   {.kind = Argument::Kind::Buffer, .index = int(i)}});
  auto results = region_.getBody().front().getTerminator()->getOperands();
  const bool writes = sharedTarget.empty() && (team.kind != Team::Kind::Blocks || team.spread.last);
  for (unsigned r = 0; r < results.size() && writes; ++r)
    all.push_back({storedName(tensorType(results[r]).getElementType()) +
                       (replaced.empty() ? "* __restrict__ " : "* ") + names_[operands + r],
                   {.kind = Argument::Kind::Buffer, .index = int(operands + r)}});
  for (auto& [op, parts] : parts_) all.push_back({parts.declaration, parts.argument});
  for (size_t i = 0; i < sizes.size(); ++i)
    all.push_back(
        {"i64 " + sizeNames[i], {.kind = Argument::Kind::Size, .index = 0, .value = sizes[i]}});
  for (int check : found.checks)
    all.push_back({"i64* " + statusName(check),
                   {.kind = Argument::Kind::Status, .index = check, .value = 0}});
  return all;
}

Findings RegionCode::forNextRound(int round) const {
  Findings next;
  next.together = found.together;
  if (round > 0) {
    next.kept = found.kept;
    return next;
  }
  for (auto& [value, passes] : readIn) {
    // A small float is kept as it lies in memory.
    auto cast = value.getDefiningOp<CastOp>();
    const bool load = cast && isSmallFloat(tensorType(cast.getX()).getElementType());
    if (passes.size() > 1 && !load) next.kept.insert(value);
  }
  return next;
}

Val RegionCode::eval(Value tensor, const Index& index) {
  std::string key = keyOf(tensor, index);
  if (const Val* known = k.find(key)) {
    guard_ = std::max(guard_, known->guard);
    return *known;
  }
  const int before = std::exchange(guard_, 0);
  Val value;
  if (!keptValue(tensor, index, value)) {
    value = evalHere(tensor, index);
    keep(tensor, value, index);
  }
  // What it is made of may have been read under a guard; a choice between branches ends theirs.
  value.guard = std::min(std::max(value.guard, guard_), k.laneGuard());
  guard_ = std::max(before, value.guard);
  k.remember(key, value);
  return value;
}

// No element of an empty tensor is ever read: its coordinates have no meaning.
Val RegionCode::nothing(Type element) const {
  if (isSmallFloat(element)) return {storedName(element) + "{}", 0, true};
  return {"(" + storedName(element) + ")0", 0, true};
}

Val RegionCode::evalHere(Value tensor, const Index& index) {
  if (isEmpty(tensor)) return nothing(tensorType(tensor).getElementType());
  if (auto argument = dyn_cast<BlockArgument>(tensor)) return this->argument(argument, index);
  Operation* op = tensor.getDefiningOp();
  if (auto literal = dyn_cast<ConstantOp>(op)) return constant(literal, index);
  if (isMovement(op) || isa<RandomBitsOp>(op)) return movement(op, index);
  return isReduction(op) ? reduce(op, index) : elementwise(op, index);
}

}  // namespace lathe::cuda
