// SPDX-License-Identifier: Apache-2.0
#include "inspect/report/ir_history.h"

#include <algorithm>

#include "inspect/report/json_text.h"
#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace lathe {
namespace {

// Longer lists of numbers are left out of the text: they say little and take the space.
constexpr int64_t kLongestConstant = 16;

// The longest run of increasing seconds among pairs sorted by their firsts: what stays in order.
std::vector<std::pair<size_t, size_t>> increasing(
    const std::vector<std::pair<size_t, size_t>>& pairs) {
  std::vector<size_t> tails, previous(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    auto place = std::lower_bound(tails.begin(), tails.end(), i, [&](size_t a, size_t b) {
      return pairs[a].second < pairs[b].second;
    });
    previous[i] = place == tails.begin() ? pairs.size() : *(place - 1);
    if (place == tails.end())
      tails.push_back(i);
    else
      *place = i;
  }
  std::vector<std::pair<size_t, size_t>> result;
  for (size_t i = tails.empty() ? pairs.size() : tails.back(); i < pairs.size(); i = previous[i])
    result.push_back(pairs[i]);
  std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace

std::vector<IrHistory::Line> IrHistory::linesOf(ModuleOp module) {
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(kLongestConstant);
  AsmState::LocationMap where;
  std::string text;
  {
    llvm::raw_string_ostream os(text);
    AsmState state(module, flags, &where);
    module->print(os, state);
  }
  std::vector<Line> lines;
  SmallVector<StringRef> texts;
  StringRef(text).split(texts, '\n');
  lines.resize(texts.size());
  std::vector<std::vector<std::string>> types(texts.size());
  module->walk([&](Operation* op) {
    auto found = where.find(op);
    if (found == where.end() || found->second.first == 0) return;
    Line& line = lines[found->second.first - 1];
    line.set = origins_.setOf(op->getLoc());
    auto function = dyn_cast<func::FuncOp>(op);
    for (Type type :
         function ? TypeRange(function.getArgumentTypes()) : TypeRange(op->getResultTypes()))
      types[found->second.first - 1].push_back(shortType(type));
    std::string scope;
    if (function) scope = function.getName();
    if (auto parent = op->getParentOfType<func::FuncOp>()) scope = parent.getName();
    line.scope = scopes_.try_emplace(scope, unsigned(scopes_.size())).first->second;
  });
  unsigned scope = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    lines[i].form = forms_.split(texts[i], std::move(types[i]), lines[i].holes);
    // A closing brace is no op and belongs to what it closes.
    if (texts[i].trim() == "}")
      lines[i].scope = scope;
    else
      scope = lines[i].scope;
  }
  return lines;
}

std::string IrHistory::keyOf(const Line& line, bool withOrigins) const {
  std::string key = std::to_string(line.form) + ' ' + std::to_string(line.scope);
  if (withOrigins) key += '@' + std::to_string(line.set);
  const std::vector<bool>& values = forms_.form(line.form).values;
  for (size_t i = 0; i < line.holes.size(); ++i)
    if (!values[i]) key += ' ' + std::to_string(line.holes[i]);
  return key;
}

// Partners are lines of one key, the first with the first and so on, as far as their order agrees.
void IrHistory::matchRange(const std::vector<Line>& lines, std::vector<int64_t>& partner,
                           size_t oldBegin, size_t oldEnd, size_t begin, size_t end,
                           bool withOrigins) const {
  if (oldBegin == oldEnd || begin == end) return;
  std::unordered_map<std::string, std::vector<size_t>> byKey;
  for (size_t i = oldEnd; i-- > oldBegin;) byKey[keyOf(current_[i], withOrigins)].push_back(i);
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = begin; i < end; ++i) {
    auto found = byKey.find(keyOf(lines[i], withOrigins));
    if (found == byKey.end() || found->second.empty()) continue;
    pairs.emplace_back(i, found->second.back());
    found->second.pop_back();
  }
  for (auto [now, before] : increasing(pairs)) partner[now] = int64_t(before);
}

void IrHistory::rename(std::vector<Line>& lines, const std::vector<int64_t>& partner) {
  nextName_.resize(scopes_.size(), 0);
  std::vector<std::unordered_map<uint32_t, uint32_t>> names(scopes_.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    Line& line = lines[i];
    const LineForms::Form& form = forms_.form(line.form);
    auto& scope = names[line.scope];
    unsigned value = 0;
    for (size_t h = 0; h < line.holes.size(); ++h) {
      if (!form.values[h]) continue;
      auto [name, isNew] = scope.try_emplace(line.holes[h], 0);
      if (value++ < form.results || isNew) {
        name->second = partner[i] >= 0 && value <= form.results
                           ? current_[size_t(partner[i])].holes[h]
                           : nextName_[line.scope]++;
      }
      line.holes[h] = name->second;
    }
  }
}

std::vector<IrHistory::Edit> IrHistory::editsFor(const std::vector<Line>& lines,
                                                 const std::vector<int64_t>& partner) const {
  std::vector<Edit> edits;
  Edit open;
  size_t old = 0;
  auto flush = [&] {
    if (open.removed || !open.added.empty()) edits.push_back(std::move(open));
    open = {};
  };
  auto removeUntil = [&](size_t end) {
    if (end <= old) return;
    if (!open.removed && open.added.empty()) open.at = old;
    open.removed += end - old;
    old = end;
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    bool kept = false;
    if (partner[i] >= 0) {
      size_t before = size_t(partner[i]);
      removeUntil(before);
      const Line& was = current_[before];
      kept = was.set == lines[i].set && was.holes == lines[i].holes;
      if (!kept) removeUntil(before + 1);
    }
    if (kept) {
      flush();
      ++old;
    } else {
      if (!open.removed && open.added.empty()) open.at = old;
      open.added.push_back(lines[i]);
    }
  }
  removeUntil(current_.size());
  flush();
  return edits;
}

void IrHistory::add(std::string_view stage, std::string_view step, ModuleOp module) {
  std::vector<Line> lines = linesOf(module);
  std::vector<int64_t> partner(lines.size(), -1);
  matchRange(lines, partner, 0, current_.size(), 0, lines.size(), true);
  // Between those, lines whose text stayed while a rewrite gave them more origins.
  size_t old = 0, begin = 0;
  for (size_t i = 0; i <= lines.size(); ++i) {
    if (i < lines.size() && partner[i] < 0) continue;
    size_t oldEnd = i < lines.size() ? size_t(partner[i]) : current_.size();
    matchRange(lines, partner, old, oldEnd, begin, i, false);
    old = oldEnd + 1;
    begin = i + 1;
  }
  rename(lines, partner);
  steps_.push_back({std::string(stage), std::string(step), editsFor(lines, partner)});
  current_ = std::move(lines);
}

void IrHistory::writeLine(llvm::json::OStream& out, const Line& line) {
  out.value(line.form);
  out.value(line.set);
  for (uint32_t hole : line.holes) out.value(hole);
}

void IrHistory::write(llvm::json::OStream& out) const {
  forms_.write(out);
  out.attributeArray("steps", [&] {
    for (const Step& step : steps_)
      out.object([&] {
        out.attribute("stage", jsonText(step.stage));
        out.attribute("step", jsonText(step.name));
        out.attributeArray("edits", [&] {
          for (const Edit& edit : step.edits)
            out.array([&] {
              out.value(int64_t(edit.at));
              out.value(int64_t(edit.removed));
              out.array([&] {
                for (const Line& line : edit.added) writeLine(out, line);
              });
            });
        });
      });
  });
}

}  // namespace lathe
