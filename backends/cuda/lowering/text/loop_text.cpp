// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/text/loop_text.h"

#include <algorithm>

#include "backends/cuda/lowering/kernel/text_names.h"
#include "backends/cuda/lowering/text/loop_printer.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

bool isName(llvm::StringRef text) { return !text.empty() && llvm::all_of(text, isWordCharacter); }

// A name, a literal or an element: as good as a name of its own.
bool isTrivial(const Expr& e) {
  return e.level == kPrimary && !e.reads && e.text.find_first_of("({") == std::string::npos;
}

bool mentions(llvm::StringRef text, llvm::StringRef name) {
  for (size_t at = 0; (at = text.find(name, at)) != llvm::StringRef::npos; at += name.size()) {
    const size_t end = at + name.size();
    if ((at == 0 || !isWordCharacter(text[at - 1])) &&
        (end == text.size() || !isWordCharacter(text[end])))
      return true;
  }
  return false;
}

// Without the names of values.
Location withoutHints(Location location) {
  if (auto named = dyn_cast<NameLoc>(location)) {
    if (named.getName().strref().starts_with("%")) return withoutHints(named.getChildLoc());
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    SmallVector<Location> parts;
    for (Location part : fused.getLocations()) parts.push_back(withoutHints(part));
    return FusedLoc::get(parts, fused.getMetadata(), location.getContext());
  }
  return location;
}

// The text says an operand twice.
bool repeats(Operation* op) {
  using P = arith::CmpFPredicate;
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return llvm::is_contained({P::ONE, P::UEQ, P::ORD, P::UNO}, compare.getPredicate());
  if (isa<scf::IfOp>(op)) return op->getNumResults() > 1;
  return isa<arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp>(op);
}

// The op in whose text the only use of a value stands.
Operation* userOf(Value value) {
  Operation* user = *value.user_begin();
  while (isFree(user) && !user->use_empty()) user = *user->getResult(0).user_begin();
  return user;
}

// No write between two ops of a block.
bool isQuiet(Operation* from, Operation* to, const Effects& read) {
  if (from->getBlock() != to->getBlock()) return false;
  for (Operation* op = from->getNextNode(); op && op != to; op = op->getNextNode())
    if (effectsOf(op).conflict(read)) return false;
  return true;
}

std::string defaultName(Operation* op) {
  if (std::string word = wordFor(op->getName().stripDialect().str()); !word.empty()) return word;
  if (op->getNumResults() && getElementTypeOrSelf(op->getResult(0).getType()).isInteger(1))
    return "holds";
  return "index";
}

}  // namespace

std::string hintOf(Location location) {
  std::string hint;
  location->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    if (!named || !named.getName().strref().starts_with("%")) return WalkResult::advance();
    hint = named.getName().strref().drop_front().str();
    return WalkResult::interrupt();
  });
  return hint;
}

int occurrences(Value value) {
  int count = 0;
  for (OpOperand& use : value.getUses()) {
    Operation* user = use.getOwner();
    if (isa<vector::BroadcastOp, LLVM::GEPOp>(user))
      count += occurrences(user->getResult(0));
    else
      count += repeats(user) ? 2 : 1;
  }
  return count;
}

// ---- text

void LoopPrinter::fail(const std::string& why) {
  if (failure.empty()) failure = why;
}
void LoopPrinter::fail(Operation* op, const std::string& why) {
  fail("an op " + op->getName().getStringRef().str() + (why.empty() ? "" : " " + why) +
       " cannot be written as CUDA C++");
}

void LoopPrinter::line(const std::string& text, Operation* op) {
  std::string origin = op ? originText(withoutHints(op->getLoc())) : "";
  if (!origin.empty() && origin != lastOrigin_)
    lastOrigin_ = origin;
  else
    origin.clear();
  out_ += std::string(size_t(2 * indent_), ' ') + text + (origin.empty() ? "" : "  // " + origin) +
          "\n";
}

void LoopPrinter::inFront(const std::string& text) {
  if (front_)
    *front_ += std::string(size_t(2 * frontIndent_), ' ') + text + "\n";
  else
    line(text);
}

std::string LoopPrinter::aside(const std::function<void()>& statements) {
  std::string before = std::exchange(out_, {});
  ++indent_;
  statements();
  --indent_;
  return std::exchange(out_, std::move(before));
}

std::string LoopPrinter::nameFor(Value value) {
  if (std::string hint = hintOf(value.getLoc()); !hint.empty()) return names_.unique(hint);
  Operation* op = value.getDefiningOp();
  if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
    const bool small = load.getType().isBF16() || load.getType().isF16();
    return names_.unique(pointerName(load.getAddr()) + (small ? "_s" : "_e"));
  }
  if (auto load = dyn_cast<LLVM::masked_gather>(op))
    return names_.unique(pointerName(load.getPtrs()) + "_e");
  if (isa<arith::ExtFOp>(op))
    if (auto load = op->getOperand(0).getDefiningOp<LLVM::LoadOp>())
      return names_.unique(pointerName(load.getAddr()) + "_e");
  return names_.unique(defaultName(op));
}

// ---- statements

bool LoopPrinter::staysInline(Operation* op, const Expr& e) {
  constexpr size_t kLongest = 80, kShort = 8;
  Value value = op->getResult(0);
  Operation* user = value.hasOneUse() ? userOf(value) : nullptr;
  const bool yields = user && isa<scf::YieldOp>(user) && user->getBlock() == op->getBlock();
  if (e.reads) {
    // A load goes down to the op that it is read for, if nothing is written on the way.
    if (!user || occurrences(value) != 1 || e.text.size() > kLongest ||
        !hintOf(op->getLoc()).empty())
      return false;
    Operation* load = op;
    while (load && !isa<LLVM::LoadOp>(load))
      load = load->getNumOperands() ? load->getOperand(0).getDefiningOp() : nullptr;
    if (!load || load->getBlock() != op->getBlock() || !isQuiet(load, user, effectsOf(load)))
      return false;
    if (load == op && isa<arith::ExtFOp>(user)) return true;
    return yields && isa<scf::IfOp>(user->getParentOp());
  }
  // An element of what the yield assigns to.
  if (isa<vector::ExtractOp>(op))
    if (auto carried = dyn_cast<BlockArgument>(op->getOperand(0));
        carried && isa<scf::ForOp>(carried.getOwner()->getParentOp()))
      return false;
  if (!hintOf(op->getLoc()).empty() && !yields && !isName(e.text)) return false;
  if (isTrivial(e)) return true;
  Type element = getElementTypeOrSelf(value.getType());
  if (occurrences(value) > 1) return element.isIntOrIndex() && e.text.size() <= kShort;
  if (!user || e.text.size() > kLongest) return false;
  if (user->getBlock() == op->getBlock()) return true;
  // Further inside only what costs nothing there.
  return isConversion(op) || isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::CmpIOp>(op) ||
         vectorOf(value.getType());
}

void LoopPrinter::define(Operation* op, const Expr& e) {
  Value value = op->getResult(0);
  const std::string name = nameFor(value), type = typeName(value.getType());
  if (type.empty()) return fail(op, "of another type than numbers");
  line("const " + type + " " + name + " = " + e.text + ";", op);
  bound_[value] = {Bound::Form::Scalar, {name}};
}

void LoopPrinter::statement(Operation* op) {
  if (!failure.empty()) return;
  if (auto branching = dyn_cast<scf::IfOp>(op)) return branch(branching);
  if (auto looping = dyn_cast<scf::ForOp>(op)) return loop(looping, nullptr);
  if (isa<emitc::CallOpaqueOp>(op)) return call(op);
  if (auto array = dyn_cast<LLVM::AllocaOp>(op)) return alloca(array);
  if (auto write = dyn_cast<LLVM::StoreOp>(op)) return store(write);
  if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
    if (typeName(load.getType()).empty()) return fail(op, "of another type than numbers");
    if (vectorOf(load.getType())) return vectorLoad(load);
  }
  if (op->getNumResults() != 1) return fail(op);
  if (auto list = dyn_cast<vector::FromElementsOp>(op)) {
    if (!vectorOf(list.getType())) return fail(op, "of more than one dimension");
    std::string items;
    for (Value item : list.getElements())
      items += (items.empty() ? "" : ", ") + exact(read(item), item.getType()).text;
    const std::string name = nameFor(list);
    line("const " + typeName(list.getType()) + " " + name + " = {{" + items + "}};", op);
    bound_[list] = {Bound::Form::Array, {name}};
    return;
  }
  const Expr e = build(op, nullptr);
  if (failure.empty() && !staysInline(op, e)) define(op, e);
}

void LoopPrinter::call(Operation* op) {
  auto function = llvm::cast<emitc::CallOpaqueOp>(op);
  const bool pair = op->getNumResults() == 2, truth = op->hasAttr("truth");
  if (op->getNumResults() > 2) return fail(op, "with more than two results");
  auto operandText = [&](unsigned i) {
    Value value = op->getOperand(i);
    Expr e = exact(read(value), value.getType());
    return truth && value.getType().isInteger(1) ? cast("u32", e).text : e.text;
  };
  std::string items;
  auto append = [&](const std::string& item) { items += (items.empty() ? "" : ", ") + item; };
  auto appendOperand = [&](unsigned i) {
    if (pair && i == 0)
      append("arg_pair<" + typeName(op->getOperand(0).getType()) + ">{" + operandText(0) + ", " +
             operandText(1) + "}");
    else if (!pair || i > 1)
      append(operandText(i));
  };
  auto attribute = [&](Attribute value) -> std::string {
    if (auto text = dyn_cast<emitc::OpaqueAttr>(value)) return text.getValue().str();
    auto number = dyn_cast<TypedAttr>(value);
    if (!number) fail(op, "with an argument of an unknown kind");
    return number ? literal(value, number.getType()).text : "";
  };
  if (pair && op->getNumOperands() < 2) return fail(op, "with two results, but no pair");
  if (ArrayAttr arguments = function.getArgsAttr()) {
    for (Attribute value : arguments) {
      auto number = dyn_cast<IntegerAttr>(value);
      if (number && number.getType().isIndex())
        appendOperand(unsigned(number.getInt()));
      else
        append(attribute(value));
    }
  } else {
    for (unsigned i = 0; i < op->getNumOperands(); ++i) appendOperand(i);
  }
  std::string text = function.getCallee().str(), templates;
  if (ArrayAttr arguments = function.getTemplateArgsAttr())
    for (Attribute value : arguments)
      templates += (templates.empty() ? "" : ", ") + attribute(value);
  if (!templates.empty()) text += "<" + templates + ">";
  text += "(" + items + ")" + (truth && op->getNumResults() == 1 ? " != 0" : "");
  if (op->getNumResults() == 0 || op->use_empty()) return line(text + ";", op);
  const std::string name = nameFor(op->getResult(0));
  const auto form = vectorOf(op->getResult(0).getType()) ? Bound::Form::Array : Bound::Form::Scalar;
  const std::string type = pair ? "auto" : typeName(op->getResult(0).getType());
  if (type.empty()) return fail(op, "with a result of another type than numbers");
  line("const " + type + " " + name + " = " + text + ";", op);
  bound_[op->getResult(0)] = {form, {name + (pair ? ".value" : "")}};
  if (pair) bound_[op->getResult(1)] = {Bound::Form::Scalar, {name + ".index"}};
}

// What the loop around a branch carries, if the branch only goes on with it where its condition
// holds: both are one variable.
static Value carriedBy(scf::IfOp op, unsigned i) {
  Value result = op.getResult(i);
  if (!result.hasOneUse() || op.getElseRegion().empty()) return {};
  OpOperand& use = *result.use_begin();
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  Value old = op.elseYield()->getOperand(i);
  const bool same = loop && use.getOwner() == loop.getBody()->getTerminator() &&
                    old == loop.getRegionIterArg(use.getOperandNumber());
  return same && op.getElseRegion().front().getOperations().size() == 1 ? old : Value();
}

void LoopPrinter::branch(scf::IfOp op) {
  const Expr condition = read(op.getCondition());
  const bool vectors =
      llvm::any_of(op.getResultTypes(), [](Type type) { return bool(vectorOf(type)); });
  std::vector<std::string> targets;
  auto target = [&](Value result) {
    const Value old = carriedBy(op, llvm::cast<OpResult>(result).getResultNumber());
    if (auto it = old ? bound_.find(old) : bound_.end();
        it != bound_.end() && variables_.contains(old) && !vectors) {
      // A copy: the map may grow.
      const Bound same = it->second;
      targets.push_back(same.expr.text);
      bound_[result] = same;
      variables_.insert(result);
      return;
    }
    std::string hint = hintOf(op.getLoc());
    targets.push_back(names_.unique(hint.empty() ? "picked" : hint));
    const std::string type = typeName(result.getType());
    if (type.empty()) fail(op, "with a result of another type than numbers");
    line(type + " " + targets.back() + ";");
    bound_[result] = {vectorOf(result.getType()) ? Bound::Form::Array : Bound::Form::Scalar,
                      {targets.back()}};
    variables_.insert(result);
  };
  if (vectors)
    for (Value result : op.getResults()) target(result);
  auto arm = [&](Region& region) {
    return region.empty() ? std::string() : aside([&] { block(region.front(), targets); });
  };
  std::string then = arm(op.getThenRegion()), otherwise = arm(op.getElseRegion());
  if (!failure.empty()) return;
  if (op.getNumResults() && !vectors) {
    Operation* yields[] = {op.thenYield(), op.elseYield()};
    if (then.empty() && otherwise.empty()) {
      for (auto [i, result] : llvm::enumerate(op.getResults())) {
        if (result.use_empty()) continue;
        auto side = [&](int which) {
          Value value = yields[which]->getOperand(unsigned(i));
          return valued(read(value), value.getType());
        };
        const Expr e = chosen(condition, side(0), side(1));
        if (op.getNumResults() == 1 && staysInline(op, e)) {
          bound_[result] = {Bound::Form::Scalar, e};
          continue;
        }
        const std::string name = nameFor(result), type = typeName(result.getType());
        if (type.empty()) return fail(op, "with a result of another type than numbers");
        line("const " + type + " " + name + " = " + e.text + ";", op);
        bound_[result] = {Bound::Form::Scalar, {name}};
      }
      return;
    }
    for (Value result : op.getResults()) target(result);
    auto withResults = [&](std::string text, Operation* yield) {
      return aside([&] {
        out_ = std::move(text);
        std::vector<std::pair<std::string, Value>> pairs;
        for (auto [name, value] : llvm::zip(targets, yield->getOperands()))
          pairs.push_back({name, value});
        assign(pairs, nullptr);
      });
    };
    then = withResults(std::move(then), yields[0]);
    otherwise = withResults(std::move(otherwise), yields[1]);
  }
  if (then.empty() && otherwise.empty()) return;
  if (then.empty())
    line("if (" +
         (condition.text[0] == '!' && condition.level == kUnary
              ? condition.text.substr(1)
              : "!" + wrapped(condition, kUnary).text) +
         ") {");
  else
    line("if (" + condition.text + ") {");
  out_ += then.empty() ? otherwise : then;
  if (!then.empty() && !otherwise.empty()) {
    line("} else {");
    out_ += otherwise;
  }
  line("}");
}

void LoopPrinter::declare(const std::string& name, Type type, Value start) {
  const std::string text = typeName(type);
  if (text.empty()) return fail("a loop carries a value that is no number");
  std::string before = std::exchange(out_, {});
  if (!vectorOf(type)) {
    line(text + " " + name + " = " + read(start).text + ";");
  } else if (auto it = bound_.find(start);
             it != bound_.end() && it->second.form == Bound::Form::Array) {
    line(text + " " + name + " = " + it->second.expr.text + ";");
  } else if (matchPattern(start, m_PosZeroFloat()) || matchPattern(start, m_Zero())) {
    line(text + " " + name + " = {};");
  } else {
    line(text + " " + name + ";");
    overLanes(vectorOf(type).getDimSize(0), [&](const Lane& lane) {
      line(name + "[" + lane.text + "] = " + read(start, &lane).text + ";");
    });
  }
  out_ = std::move(before) + std::exchange(out_, {});
}

std::vector<std::string> LoopPrinter::startLoop(scf::ForOp op, const Lane* lane) {
  std::vector<std::string> targets;
  for (auto [i, start] : llvm::enumerate(op.getInitArgs())) {
    BlockArgument carried = op.getRegionIterArg(unsigned(i));
    const auto form = vectorOf(start.getType()) ? Bound::Form::Array : Bound::Form::Scalar;
    // What nobody else reads goes on in its own variable.
    auto branching = dyn_cast<scf::IfOp>(op->getParentOp());
    const bool inBranch =
        branching && start.hasNUses(2) && llvm::any_of(branching.getResults(), [&](OpResult r) {
          return carriedBy(branching, r.getResultNumber()) == start;
        });
    const bool goesOn =
        variables_.contains(start) &&
        (inBranch || (start.hasOneUse() && start.getParentBlock() == op->getBlock()));
    std::string name;
    if (goesOn) {
      name = bound_[start].expr.text;
    } else {
      std::string hint = hintOf(carried.getLoc());
      if (hint.empty()) hint = hintOf(op.getYieldedValues()[i].getLoc());
      if (hint.empty()) hint = hintOf(op.getLoc());
      name = names_.unique(hint.empty() ? "total" : hint);
      if (lane)
        inFront(typeName(start.getType()) + " " + name + " = " + read(start).text + ";");
      else
        declare(name, start.getType(), start);
    }
    targets.push_back(name);
    for (Value value : {Value(carried), Value(op.getResult(unsigned(i)))}) {
      bound_[value] = {form, {name}};
      variables_.insert(value);
    }
  }
  return targets;
}

void LoopPrinter::loop(scf::ForOp op, const Lane* lane) {
  if (op.getUnsignedCmp()) return fail(op, "that compares unsigned");
  const std::vector<std::string> targets = startLoop(op, lane);
  Value variable = op.getInductionVar();
  Type type = variable.getType();
  if (lane) {
    Expr e{lane->text, lane->level};
    if (!type.isInteger(32)) e.type = Expr::Type::Narrow;
    bound_[variable] = {Bound::Form::Scalar, e};
    return block(*op.getBody(), targets);
  }
  auto bound = [&](Value value) { return valued(read(value), type); };
  const Expr low = bound(op.getLowerBound()), high = bound(op.getUpperBound()),
             step = bound(op.getStep());
  const std::string hint = hintOf(variable.getLoc());
  // The name k is kept for this.
  const bool counter = hint == "k" && counters_ == 0;
  counters_ += counter;
  const std::string name = counter ? "k" : names_.unique(hint.empty() ? "index" : hint);
  bound_[variable] = {Bound::Form::Scalar, {name}};
  if (op->hasAttr("unroll")) line("#pragma unroll");
  line("for (" + typeName(type) + " " + name + " = " + low.text + "; " + name + " < " +
       wrapped(high, kShift).text + "; " +
       (step.text == "1" ? "++" + name : name + " += " + step.text) + ") {");
  out_ += aside([&] { block(*op.getBody(), targets); });
  line("}");
  counters_ -= counter;
}

// ---- blocks

std::string LoopPrinter::assignment(const std::string& target, Value value, const Lane* lane) {
  Operation* op = value.getDefiningOp();
  const char* sign = nullptr;
  if (op && !bound_.count(value) && op->getNumOperands() == 2) {
    auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
    const bool index = flags && flags.hasNoSignedWrap();
    if (isa<arith::AddFOp>(op) || (isa<arith::AddIOp>(op) && index)) sign = " += ";
    if (isa<arith::MulFOp>(op) || (isa<arith::MulIOp>(op) && index)) sign = " *= ";
    if (isa<arith::SubFOp>(op) || (isa<arith::SubIOp>(op) && index)) sign = " -= ";
  }
  if (sign) {
    const Expr a = read(op->getOperand(0), lane), b = read(op->getOperand(1), lane);
    if (a.text == target) return target + sign + b.text + ";";
    if (b.text == target && !isa<arith::SubFOp, arith::SubIOp>(op))
      return target + sign + a.text + ";";
  }
  return target + " = " + read(value, lane).text + ";";
}

void LoopPrinter::assign(ArrayRef<std::pair<std::string, Value>> pairs, const Lane* lane) {
  struct Assignment {
    std::string target, text;
  };
  std::vector<Assignment> all;
  for (auto& [name, value] : pairs) {
    const std::string target = name + (lane ? "[" + lane->text + "]" : ""),
                      text = read(value, lane).text;
    if (text == target) continue;
    // What an assignment in front of it overwrites is taken first.
    const bool late = llvm::any_of(all, [&](const Assignment& earlier) {
      return mentions(text, earlier.target.substr(0, earlier.target.find('[')));
    });
    if (late) {
      const std::string kept = names_.unique("next");
      line("const " + typeName(getElementTypeOrSelf(value.getType())) + " " + kept + " = " + text +
           ";");
      all.push_back({target, target + " = " + kept + ";"});
    } else {
      all.push_back({target, assignment(target, value, lane)});
    }
  }
  for (const Assignment& a : all) line(a.text);
}

void LoopPrinter::overLanes(int64_t count, const std::function<void(const Lane&)>& statements) {
  const std::string variable = laneStack_.empty() ? "j" : names_.unique("j");
  Lane lane{variable, {}, variable};
  for (int64_t i = 0; i < count; ++i) lane.values.push_back(i);
  std::string front, before = std::exchange(out_, {});
  std::string* outerFront = std::exchange(front_, &front);
  const int outerIndent = std::exchange(frontIndent_, indent_);
  auto outerTables = std::exchange(tables_, decltype(tables_)());
  laneStack_.push_back(&lane);
  ++indent_;
  statements(lane);
  --indent_;
  laneStack_.pop_back();
  tables_ = std::move(outerTables);
  frontIndent_ = outerIndent;
  front_ = outerFront;
  const std::string body = std::exchange(out_, std::move(before) + front);
  if (body.empty()) return;
  line("#pragma unroll");
  line("for (int " + variable + " = 0; " + variable + " < " + std::to_string(count) + "; ++" +
       variable + ") {");
  out_ += body;
  line("}");
}

void LoopPrinter::laneStatement(Operation* op, const Step& step, const Lane& lane) {
  if (!failure.empty()) return;
  if (auto looping = dyn_cast<scf::ForOp>(op)) return loop(looping, &lane);
  if (auto store = dyn_cast<LLVM::StoreOp>(op)) return storeLane(store, lane);
  Value value = op->getResult(0);
  // Others build it again where they read it.
  if (!needsVector(value, step) &&
      llvm::none_of(value.getUses(), [&](OpOperand& use) { return isLaneUse(use, step); }))
    return;
  const Expr e = build(op, &lane);
  if (!failure.empty()) return;
  const std::string element = typeName(getElementTypeOrSelf(value.getType()));
  if (element.empty()) return fail(op, "on another type than numbers");
  if (needsVector(value, step)) {
    // The vector that is stored is called after where it goes.
    std::string name;
    for (Operation* user : value.getUsers()) {
      if (isFree(user) && user->hasOneUse()) user = *user->user_begin();
      auto store = dyn_cast<LLVM::StoreOp>(user);
      if (store && storedWhole(store) == value && hintOf(value.getLoc()).empty())
        name = names_.unique(pointerName(store.getAddr()) + "_v");
    }
    if (name.empty()) name = nameFor(value);
    inFront(typeName(value.getType()) + " " + name + ";");
    line(name + "[" + lane.text + "] = " + e.text + ";", op);
    bound_[value] = {Bound::Form::Array, {name}};
    return;
  }
  // Where everybody makes it again there is nothing to name.
  const bool taken =
      llvm::any_of(value.getUses(), [&](OpOperand& use) { return isLaneUse(use, step); });
  if (!taken || staysInline(op, e)) return;
  const std::string name = nameFor(value);
  line("const " + element + " " + name + " = " + e.text + ";", op);
  bound_[value] = {Bound::Form::InLane, {name}, lane.variable};
}

void LoopPrinter::lanes(const Step& step, Block& block, ArrayRef<std::string> targets) {
  overLanes(step.lanes, [&](const Lane& lane) {
    for (Operation* op : step.ops) laneStatement(op, step, lane);
    std::vector<std::pair<std::string, Value>> pairs;
    for (unsigned i : step.yields)
      pairs.push_back({targets[i], block.getTerminator()->getOperand(i)});
    assign(pairs, &lane);
  });
  for (Operation* op : step.ops)
    for (Value result : op->getResults())
      if (auto it = bound_.find(result);
          it != bound_.end() && it->second.form == Bound::Form::InLane)
        bound_.erase(it);
  for (Operation* op : step.behind) statement(op);
}

void LoopPrinter::block(Block& block, ArrayRef<std::string> targets) {
  for (const Step& step : stepsOf(block, !targets.empty())) {
    if (!failure.empty()) return;
    if (step.op)
      statement(step.op);
    else
      lanes(step, block, targets);
  }
  if (targets.empty()) return;
  std::vector<std::pair<std::string, Value>> pairs;
  for (auto [target, value] : llvm::zip(targets, block.getTerminator()->getOperands()))
    if (!vectorOf(value.getType())) pairs.push_back({target, value});
  assign(pairs, nullptr);
}

std::string LoopPrinter::print(Block& body, ArrayRef<std::string> arguments) {
  if (arguments.size() != body.getNumArguments()) {
    fail("a kernel's body has another number of arguments than texts for them");
    return {};
  }
  for (auto [argument, given] : llvm::zip(body.getArguments(), arguments)) {
    Expr e{given};
    if (!isName(given)) {
      const bool call = given.find(' ') == std::string::npos && given[0] != '(';
      e.level = call ? kPrimary : given.find(' ') == std::string::npos ? kUnary : kChoice;
      // Numbers of threads and blocks are u32.
      const std::string type = typeName(argument.getType());
      if (argument.getType().isIntOrIndex() && !llvm::StringRef(given).starts_with("(" + type) &&
          !llvm::StringRef(given).starts_with(type + "("))
        e = cast(type, e);
    }
    bound_[argument] = {vectorOf(argument.getType()) ? Bound::Form::Array : Bound::Form::Scalar, e};
  }
  block(body, {});
  return out_;
}

std::string printLoops(Block& body, ArrayRef<std::string> arguments, Names& names, int indent,
                       const LoopTextOptions& options, std::string& failure) {
  LoopPrinter printer(names, indent, options);
  std::string text = printer.print(body, arguments);
  failure = printer.failure;
  return text;
}

}  // namespace lathe::cuda
