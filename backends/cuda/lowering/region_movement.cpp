// SPDX-License-Identifier: Apache-2.0
// Ops that only move elements: the operand is read at another index. Ramps and random bits, which
// are made from their index.
#include <algorithm>

#include "backends/cuda/lowering/call_facts.h"
#include "backends/cuda/lowering/region_code.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace lathe::cuda {

// `then` where the condition holds, else `otherwise`: nothing of the other one is read.
Val RegionCode::branch(Type element, const std::string& hint, const Val& condition,
                       function_ref<Val()> then, function_ref<Val()> otherwise) {
  Val a, b;
  std::string first = k.aside(condition, [&] { a = then(); });
  Val negated{"!(" + condition.text + ")", condition.level};
  negated.perLane = condition.perLane;
  std::string second = k.aside(negated, [&] { b = otherwise(); });
  const bool raw = a.raw && b.raw;
  const std::string type = raw ? storedName(element) : computedName(element);
  auto text = [&](const Val& v) {
    if (raw || !v.raw || storedName(element) == computedName(element)) return v.text;
    return element.isInteger(1) ? "(" + v.text + " != 0)" : "to_f32(" + v.text + ")";
  };
  if (first.empty() && second.empty()) {
    int level = std::max(condition.level, std::max(a.level, b.level));
    Val v = k.define(std::min(level, k.top()), type, hint,
                     condition.text + " ? " + text(a) + " : " + text(b));
    v.raw = raw;
    return v;
  }
  Val v{k.unique(hint), k.top(), raw};
  k.line(k.top(), type + " " + v.text + ";");
  k.open("if (" + condition.text + ")");
  k.paste(first);
  k.line(k.top(), v.text + " = " + text(a) + ";");
  k.close();
  k.open("else");
  k.paste(second);
  k.line(k.top(), v.text + " = " + text(b) + ";");
  k.close();
  return v;
}

Val RegionCode::concat(ConcatOp op, const Index& index) {
  const size_t axis = size_t(op.getAxis());
  const Linear& c = index[axis];
  Type element = tensorType(op.getResult()).getElementType();
  SmallVector<Value> inputs;
  llvm::copy_if(op.getInputs(), std::back_inserter(inputs), [](Value v) { return !isEmpty(v); });
  const size_t pieces = inputs.size();
  SmallVector<DimExpr> starts{0};
  for (Value v : inputs) starts.push_back(starts.back() + dims(v)[axis]);
  auto piece = [&](size_t i) {
    Index inner = index;
    inner[axis] = within(c - size(starts[i]), starts[i + 1] - starts[i]);
    return eval(inputs[i], inner);
  };
  auto number = [](const DimExpr& e) { return e.asConstant(); };
  for (size_t i = 0; i < pieces; ++i)
    if (number(starts[i]) && number(starts[i + 1]) && c.lo() >= *number(starts[i]) &&
        c.hi() < *number(starts[i + 1]))
      return piece(i);
  std::function<Val(size_t)> from = [&](size_t i) -> Val {
    if (i + 1 == pieces) return piece(i);
    return branch(
        element, nameOf(op), below(c, starts[i + 1]), [&] { return piece(i); },
        [&] { return from(i + 1); });
  };
  return from(0);
}

// c < border. Where the border cannot lie inside a chunk, all lanes are asked at once.
Val RegionCode::below(const Linear& c, const DimExpr& border) {
  Linear at = c;
  std::vector<int64_t> lanes = c.lanes();
  if (auto number = border.asConstant(); number && !lanes.empty()) {
    auto [least, most] = std::minmax_element(lanes.begin(), lanes.end());
    const int64_t step = std::gcd(c.uniformPart().align(), *number);
    if (*least >= 0 && *most < step) at = c.uniformPart();
  }
  Val condition{at.text() + " < " + size(border).text(), at.level()};
  condition.perLane = at.uniformPart().isConstant() && border.asConstant();
  return condition;
}

// The same coordinate, known to lie inside a dim.
Linear RegionCode::within(const Linear& c, const DimExpr& dim) {
  auto number = dim.asConstant();
  const int64_t hi = number ? *number - 1 : Atom::kUnbounded;
  if (c.isConstant() || (c.lo() >= 0 && c.hi() <= hi)) return c;
  Linear base = c.uniformPart(), lanes = c.lanePart();
  if (base.isConstant() && number) {
    // Lanes outside are told apart when the text is compiled: what they would read does not matter.
    Atom inside{.text = c.text(), .level = c.level(), .hi = hi, .wide = false, .simple = false};
    for (int64_t v : c.lanes()) {
      const int64_t at = v + base.constant();
      inside.lanes.push_back(std::clamp<int64_t>(at, 0, hi));
      inside.partial |= inside.lanes.back() != at;
    }
    if (inside.lanes.empty()) return c;
    if (llvm::all_equal(inside.lanes)) return inside.lanes[0];
    inside.partial |= lanes.partial();
    auto& atom = products_["within " + c.key() + " " + dim.text()];
    if (!atom) atom = k.atom(inside);
    return Linear(atom);
  }
  auto& atom = products_["within " + base.key() + " " + dim.text()];
  if (!atom) {
    // What lies inside one piece may be a sum that lies inside another.
    const bool single = base.terms().size() == 1 && base.constant() == 0;
    atom = k.atom({.text = base.text(),
                   .level = base.level(),
                   .align = base.align(),
                   .hi = number ? std::max<int64_t>(hi - std::max<int64_t>(lanes.hi(), 0), 0) : hi,
                   .wide = base.wide(),
                   .simple = single && base.terms()[0].first->simple});
  }
  return Linear(atom) + lanes;
}

Val RegionCode::pad(PadOp op, const Index& index) {
  if (isEmpty(op.getX())) return eval(op.getValue(), {});
  auto from = dims(op.getX());
  Index inner = index;
  std::string text;
  int level = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t low = op.getLow()[i], high = op.getHigh()[i];
    if (!low && !high) continue;
    auto known = from[i].asConstant();
    const Linear c = index[i] - Linear(low);
    const bool sureLow = c.lo() >= 0, sureHigh = !high || (known && c.hi() < *known);
    inner[i] = within(c, from[i]);
    if (sureLow && sureHigh) continue;
    auto require = [&](const std::string& condition) {
      text += (text.empty() ? "" : " && ") + condition;
      level = std::max(level, index[i].level());
    };
    if (!sureLow) require(index[i].text() + " >= " + std::to_string(low));
    if (!sureHigh) require(c.text() + " < " + size(from[i]).text());
  }
  auto inside = [&] { return eval(op.getX(), inner); };
  if (text.empty()) return inside();
  return branch(tensorType(op.getResult()).getElementType(), nameOf(op), {text, level}, inside,
                [&] { return eval(op.getValue(), {}); });
}

Val RegionCode::gather(GatherOp op, const Index& index) {
  const size_t axis = size_t(op.getAxis()), rank = size_t(tensorType(op.getIndices()).getRank());
  Index where(index.begin() + axis, index.begin() + axis + rank);
  Val id = eval(op.getIndices(), where);
  const DimExpr dim = dims(op.getX())[axis];
  const std::string bound = size(dim).text();
  const std::string key = "row of " + id.text + " of " + bound;
  const Val* chosen = k.find(key);
  if (!chosen) {
    // Row 0 stands in for an index out of range, which is told to the host.
    int level = loadLevel(id.level);
    Val bad = k.define(level, "bool", "outside", id.text + " < 0 || " + id.text + " >= " + bound);
    const auto gathers = region_.getOps<GatherOp>();
    const int check = int(std::distance(gathers.begin(), llvm::find(gathers, op)));
    k.line(level,
           "if (" + bad.text + ") lt_report_index(" + statusName(check) + ", " + id.text + ");");
    Val row = k.define(level, "i64", "chosen", bad.text + " ? 0 : " + id.text);
    found.checks.insert(check);
    k.remember(key, row);
    chosen = k.find(key);
  }
  auto& atom = products_["gathered " + chosen->text];
  if (!atom)
    atom = k.atom({.text = chosen->text,
                   .level = chosen->level,
                   .hi = dim.asConstant().value_or(Atom::kUnbounded) - 1});
  Index inner(index.begin(), index.begin() + axis);
  inner.push_back(Linear(atom));
  inner.append(index.begin() + axis + rank, index.end());
  auto read = [&] { return eval(op.getX(), inner); };
  if (dim.asConstant().value_or(0) > 0) return read();
  // Row 0 is there only if the axis is not empty.
  Type element = tensorType(op.getX()).getElementType();
  return branch(element, nameOf(op), {bound + " > 0", 0}, read, [&] { return nothing(element); });
}

Val RegionCode::iota(IotaOp op, const Index& index) {
  const Linear& c = index[size_t(op.getAxis())];
  Type element = op.getDtype();
  const std::string type = isSmallFloat(element) ? "float" : computedName(element);
  std::string value = c.isConstant() ? c.text() : c.factor();
  value = "(" + type + ")" + value;
  if (isSmallFloat(element)) value = "to_" + storedName(element) + "(" + value + ")";
  Val v =
      k.define(c.level(), isSmallFloat(element) ? storedName(element) : type, nameOf(op), value);
  v.raw = isSmallFloat(element);
  return v;
}

Val RegionCode::randomBits(RandomBitsOp op, const Index& index) {
  Val seed = eval(op.getSeed(), {});
  Linear at = linear(dims(op.getResult()), index);
  auto [block, word] = divide(at, 4, "block", "word");
  const std::string key = "random " + seed.text + " " + block.key();
  const Val* words = k.find(key);
  if (!words) {
    int level = std::max(seed.level, block.level());
    k.remember(key, k.define(level, "vec<i32, 4>", "random",
                             "bit_cast<vec<i32, 4>>(philox((u64)" + block.factor() + ", (u64)" +
                                 seed.text + "))"));
    words = k.find(key);
  }
  return {words->text + "[" + word.text() + "]",
          word.partial() ? k.top() : std::max(words->level, word.level())};
}

Index RegionCode::reshapeIndex(ReshapeOp op, const Index& index) {
  auto from = dims(op.getX()), to = dims(op.getResult());
  Index out(from.size(), Linear(0));
  for (const ReshapeRun& run : reshapeRuns(from, to)) {
    const size_t width = run.fromEnd - run.from, count = run.toEnd - run.to;
    if (width == 1 && count == 1) {
      out[run.from] = index[run.to];
      continue;
    }
    Linear at = linear(ArrayRef<DimExpr>(to).slice(run.to, count),
                       Index(index.begin() + run.to, index.begin() + run.toEnd));
    Index inner = split(at, ArrayRef<DimExpr>(from).slice(run.from, width));
    std::copy(inner.begin(), inner.end(), out.begin() + run.from);
  }
  return out;
}

Val RegionCode::movement(Operation* op, const Index& index) {
  return TypeSwitch<Operation*, Val>(op)
      .Case([&](TransposeOp t) {
        Index inner = index;
        for (auto [i, p] : llvm::enumerate(t.getPermutation())) inner[size_t(p)] = index[i];
        return eval(t.getX(), inner);
      })
      .Case([&](BroadcastOp t) { return eval(t.getX(), broadcastIndex(t.getX(), index)); })
      .Case([&](ReshapeOp t) {
        return eval(t.getX(), flat_ ? broadcastIndex(t.getX(), index) : reshapeIndex(t, index));
      })
      .Case([&](SliceOp t) {
        Index inner = index;
        for (size_t i = 0; i < inner.size(); ++i)
          inner[i] = index[i] * t.getStrides()[i] + size(exprOf(t.getStarts().getDims()[i]));
        return eval(t.getX(), inner);
      })
      .Case([&](ReverseOp t) {
        Index inner = index;
        auto shape = dims(t.getX());
        for (int64_t axis : t.getAxes())
          inner[size_t(axis)] = within(size(shape[size_t(axis)]) - Linear(1) - index[size_t(axis)],
                                       shape[size_t(axis)]);
        return eval(t.getX(), inner);
      })
      .Case([&](ConcatOp t) { return concat(t, index); })
      .Case([&](PadOp t) { return pad(t, index); })
      .Case([&](GatherOp t) { return gather(t, index); })
      .Case([&](IotaOp t) { return iota(t, index); })
      .Case([&](RandomBitsOp t) { return randomBits(t, index); });
}

}  // namespace lathe::cuda
