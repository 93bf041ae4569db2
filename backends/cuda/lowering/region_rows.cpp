// SPDX-License-Identifier: Apache-2.0
// Loops over the elements of a row, stores, and what stays in registers between two such loops.
#include "backends/cuda/lowering/region_code.h"

using namespace mlir;

namespace lathe::cuda {

int RegionCode::widthFor(const DimExpr& length, int most) {
  int64_t divisor = 0;
  for (auto& [symbols, factor] : length.terms()) divisor = std::gcd(divisor, factor);
  int width = 1;
  while (width * 2 <= most && divisor != 0 && divisor % (width * 2) == 0) width *= 2;
  return width;
}

Linear RegionCode::openLanes(const Linear& first, int lanes) {
  k.open("#pragma unroll\nfor (int j = 0; j < " + std::to_string(lanes) + "; ++j)", nullptr, true);
  Atom j{.text = "j", .level = k.top(), .hi = lanes - 1, .wide = false};
  for (int i = 0; i < lanes; ++i) j.lanes.push_back(i);
  return first + Linear(k.atom(j));
}

void RegionCode::overRow(const DimExpr& length, int lanes, function_ref<void(const Linear&)> body,
                         function_ref<void()> after) {
  auto number = length.asConstant();
  int opened = 0;
  auto open = [&](const std::string& header) {
    k.open(header);
    ++opened;
  };
  Pass pass;
  pass.length = length;
  pass.width = lanes;
  pass.number = ++passes_;
  const int64_t step = int64_t(team.threads) * lanes;
  const int64_t chunks = number ? (*number + step - 1) / step : 0;
  const int64_t last = number ? *number - lanes : Atom::kUnbounded;
  const Atom* c = nullptr;
  if (number && *number > 0 && chunks * lanes <= registers) {
    // Every chunk of a thread has a number that the compiler knows: registers can hold it.
    Linear first = team.rank;
    pass.chunk = "0";
    if (chunks > 1) {
      pass.chunk = "k";
      open("#pragma unroll\nfor (int k = 0; k < " + std::to_string(chunks) + "; ++k)");
      first =
          first + Linear(k.atom({.text = "k", .level = k.top(), .hi = chunks - 1, .wide = false})) *
                      team.threads;
    }
    c = variable(k.top(), "c", (first * lanes).text(), lanes, 0, chunks * step - lanes);
    if (chunks * step != *number) open("if (" + c->text + " < " + std::to_string(*number) + ")");
    pass.chunks = int(chunks);
  } else {
    bool wide = last >= (int64_t(1) << 31) - step;
    std::string name = k.unique("c"), end = size(length).text();
    open("for (" + std::string(wide ? "i64 " : "int ") + name + " = " + (team.rank * lanes).text() +
         "; " + name + " < " + end + "; " + name + " += " + std::to_string(step) + ")");
    c = k.atom({.text = name, .level = k.top(), .align = lanes, .hi = last, .wide = wide});
  }
  // Inside the guard the range is that of the row.
  Atom inside = *c;
  inside.level = k.top();
  inside.hi = last;
  Linear lane(k.atom(inside));
  if (lanes > 1) {
    lane = openLanes(lane, lanes);
    ++opened;
  }
  pass.lane = lane;
  pass.level = k.top();
  Pass* outer = std::exchange(pass_, &pass);
  body(lane);
  pass_ = outer;
  if (lanes > 1) {
    k.close();
    --opened;
  }
  after();
  for (; opened > 0; --opened) k.close();
}

bool RegionCode::inOwnRow(const Index& index) const {
  if (!pass_ || pass_->chunks == 0 || index.empty() || !(index.back() == pass_->lane)) return false;
  for (const Linear& c : ArrayRef<Linear>(index).drop_back())
    if (c.level() > team.rowLevel) return false;
  return true;
}

static std::string keyInFront(const Index& index) {
  std::string key;
  for (const Linear& c : ArrayRef<Linear>(index).drop_back()) key += c.key() + ",";
  return key;
}

const Val* RegionCode::keptValue(Value tensor, const Index& index, Val& out) {
  auto it = slots_.find(tensor);
  if (it == slots_.end() || !inOwnRow(index)) return nullptr;
  const Slot& slot = it->second;
  if (slot.pass == pass_->number || slot.elsewhere != keyInFront(index) ||
      !(slot.length == pass_->length) || slot.width != pass_->width)
    return nullptr;
  found.kept.insert(tensor);
  readIn[tensor].insert(pass_->number);
  out = {slot.name + "[" + pass_->chunk + "]" + (pass_->width > 1 ? "[j]" : ""), pass_->level,
         slot.raw};
  return &out;
}

void RegionCode::keep(Value tensor, const Val& value, const Index& index) {
  if (!inOwnRow(index) || k.top() != pass_->level || value.level <= team.rowLevel ||
      value.text.find("kept") != std::string::npos)
    return;
  readIn[tensor].insert(pass_->number);
  if (!known_.kept.contains(tensor) || slots_.count(tensor)) return;
  Type element = tensorType(tensor).getElementType();
  std::string type = value.raw ? storedName(element) : computedName(element);
  auto argument = dyn_cast<BlockArgument>(tensor);
  std::string hint = argument ? names_[argument.getArgNumber()] : nameOf(tensor.getDefiningOp());
  std::string name = k.unique(hint + "_kept"), chunk = "[" + pass_->chunk + "]";
  std::string count = "[" + std::to_string(pass_->chunks) + "]",
              width = "[" + std::to_string(pass_->width) + "]";
  if (!value.whole.empty()) {
    k.line(team.rowLevel,
           "vec<" + type + ", " + std::to_string(pass_->width) + "> " + name + count + ";");
    k.line(value.level - 1, name + chunk + " = " + value.whole + ";");
  } else {
    k.line(team.rowLevel, type + " " + name + count + (pass_->width > 1 ? width : "") + ";");
    k.line(pass_->level, name + chunk + (pass_->width > 1 ? "[j]" : "") + " = " + value.text + ";");
  }
  slots_[tensor] = {name, value.raw, pass_->number, keyInFront(index), pass_->length, pass_->width};
}

void RegionCode::store(ArrayRef<Store> results, const Index& index) {
  Block& block = region_.getBody().front();
  SmallVector<Val> values;
  for (const Store& s : results)
    values.push_back(eval(block.getTerminator()->getOperand(s.result), index));
  // Only then is anything written: a result may lie in an operand's buffer.
  for (auto [s, value] : llvm::zip(results, values)) {
    Type element = tensorType(block.getTerminator()->getOperand(s.result)).getElementType();
    const std::string& name =
        sharedTarget.empty() ? names_[region_.getNumArguments() + s.result] : sharedTarget;
    const int lanes = int(s.position.lanes().size());
    if (lanes == 0) {
      k.line(k.top(), name + "[" + s.position.text() + "] = " + stored(element, value) + ";");
      continue;
    }
    // Small floats are packed in pairs.
    std::string real = value.raw ? value.unrounded : value.text;
    bool pack = isSmallFloat(element) && !real.empty();
    int level = k.laneLoop() - 1;
    std::string vector = k.unique(name + "_v");
    k.line(level, "vec<" + (pack ? "float" : storedName(element)) + ", " + std::to_string(lanes) +
                      "> " + vector + ";");
    k.line(k.top(), vector + "[j] = " + (pack ? real : stored(element, value)) + ";");
    const std::string shared = sharedTarget.empty() ? "(" : "_shared(";
    pendingStores_.push_back((pack ? "store_f32" : "store_vec") + shared + name + " + " +
                             s.position.uniformPart().text() + ", " + vector + ");");
  }
}

void RegionCode::finishStores() {
  for (const std::string& s : pendingStores_) k.line(k.top(), s);
  pendingStores_.clear();
}

}  // namespace lathe::cuda
