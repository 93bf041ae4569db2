// SPDX-License-Identifier: Apache-2.0
// Loads of operands: one access for all lanes of a chunk wherever that can be proved to be aligned.
#include <algorithm>

#include "backends/cuda/lowering/region_code.h"

using namespace mlir;

namespace lathe::cuda {

// Nothing is read outside of the branch that wants it.
int RegionCode::loadLevel(int level) const {
  return k.laneGuards().empty() ? std::max({level, k.barrier(), k.floor()}) : k.top();
}

bool RegionCode::isOwnRow(const Index& index) const {
  if (index.size() != row.size() + 1) return false;
  return llvm::equal(ArrayRef<Linear>(index).drop_back(), row);
}

Val RegionCode::argument(BlockArgument argument, const Index& index) {
  const unsigned number = argument.getArgNumber();
  Type element = tensorType(argument).getElementType();
  Linear at = linear(dims(argument), index);
  // Only a read at the element that is stored, or of the own row before anything is stored, leaves
  // an operand replaceable by a result.
  const bool own = storedPosition ? at == *storedPosition : teamPass_ && isOwnRow(index);
  if (accumulators.count(number)) {
    if (!own) failure = "an accumulator is read at another place than its own";
    const std::string& name = names_[number];
    const bool lanes = !at.lanes().empty();
    return {name + (lanes ? "[j]" : ""), lanes ? k.laneLoop() : 0};
  }
  found.operands.insert(number);
  if (!own) found.scattered.insert(number);
  auto count = elementCountOf(tensorType(argument));
  int64_t divisor = 0;
  for (auto& [symbols, factor] : count->terms()) divisor = std::gcd(divisor, factor);
  const bool readOnly = !isHook() && !known_.replaced.contains(number);
  return load(names_[number], element, at, readOnly, divisor);
}

Val RegionCode::load(const std::string& name, Type element, const Linear& at, bool readOnly,
                     int64_t divisor) {
  const std::string type = storedName(element);
  const bool raw = type != computedName(element);
  std::vector<int64_t> lanes = at.lanes();
  auto guards = k.laneGuards();
  const int laneLoop = k.laneLoop();
  // A condition that some lanes of every chunk fulfil keeps no vector from being read.
  llvm::erase_if(guards, [](const Val& g) { return g.perLane; });
  const bool uniformGuards = llvm::all_of(guards, [&](const Val& g) { return g.level < laneLoop; });
  Linear lanePart = at.lanePart();
  if (!lanes.empty() && uniformGuards) {
    Linear base = at.uniformPart();
    if (lanes.front() != 0 || lanes.back() + 1 != int64_t(lanes.size())) {
      // What is odd about the base goes to the lanes: x[2 * (j / 2) + 1] shares its vector.
      const int64_t odd = base.constant() & (int64_t(lanes.size()) - 1);
      base = base - Linear(odd);
      lanePart = lanePart + Linear(odd);
      for (int64_t& l : lanes) l += odd;
    }
    bool inOrder = true;
    for (size_t i = 0; i < lanes.size(); ++i) inOrder &= lanes[i] == int64_t(i);
    // Lanes may share elements of a shorter vector, or skip some of a longer one.
    auto [least, most] = std::minmax_element(lanes.begin(), lanes.end());
    const int64_t chunk = int64_t(lanes.size());
    auto fits = [&](int64_t width) { return divisor % width == 0 && base.align() % width == 0; };
    int64_t width =
        inOrder ? chunk : int64_t(llvm::bit_ceil(uint64_t(std::max<int64_t>(*most, 0)) + 1));
    // The other pieces of a row that one thread holds are wanted as well: one vector for all.
    if (at.partial() && width < chunk && fits(chunk)) width = chunk;
    const bool inside = *least >= 0 && width <= 2 * chunk;
    if (inside && (inOrder ? base.align() % width == 0 : fits(width)) && base.level() < laneLoop) {
      std::string condition;
      for (const Val& g : guards) condition += (condition.empty() ? "" : " && ") + g.text;
      // Reads of one place may want vectors of several widths.
      const std::string key =
          "vector " + std::to_string(width) + " " + name + " " + base.key() + " " + condition;
      const Val* known = k.find(key);
      if (!known) {
        int level = std::max({base.level(), k.barrier(), k.floor()});
        for (const Val& g : guards) level = std::max(level, g.level);
        const std::string vec = "vec<" + type + ", " + std::to_string(width) + ">";
        const std::string access = (readOnly ? "load_vec_nc<" : "load_vec<") +
                                   std::to_string(width) + ">(" + name + " + " + base.text() + ")";
        Val v{k.unique(name + "_v"), level};
        if (condition.empty()) {
          k.line(level, "const " + vec + " " + v.text + " = " + access + ";");
        } else {
          k.line(level, vec + " " + v.text + " = {};");
          k.line(level, "if (" + condition + ") " + v.text + " = " + access + ";");
        }
        k.remember(key, v);
        known = k.find(key);
      }
      const std::string lane = inOrder ? "j" : lanePart.text();
      // The vector has no element for a lane that its guard keeps out.
      Val v{known->text + "[" + lane + "]", at.partial() ? k.top() : laneLoop, raw};
      if (inOrder && condition.empty()) v.whole = known->text;
      if (!condition.empty()) v.guard = k.laneGuard();
      return v;
    }
  }
  const std::string key = "element " + name + " " + at.key();
  if (const Val* known = k.find(key)) return *known;
  Val v = k.define(loadLevel(at.level()), type, name + (raw ? "_s" : "_e"),
                   name + "[" + at.text() + "]");
  v.raw = raw;
  k.remember(key, v);
  return v;
}

}  // namespace lathe::cuda
