// SPDX-License-Identifier: Apache-2.0
#include "runtime/program_check.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/memory_plan.h"

namespace lathe {
namespace {

std::string textOf(DType dtype, const SymbolicShape& shape) {
  std::string text;
  for (const DimExpr& d : shape) text += (text.empty() ? "" : ", ") + d.text();
  return fmt::format("{}[{}]", nameOf(dtype), text);
}

class ProgramChecker {
 public:
  ProgramChecker(const Program& program, const std::string& file) : p_(program), file_(file) {}

  void check() {
    checkSymbols();
    checkTensors(p_.weights, "weights");
    for (size_t i = 0; i < p_.weights.size(); ++i)
      for (const DimExpr& d : p_.weights[i].shape)
        if (!d.asConstant())
          fail(fmt::format("weights[{}].shape", i), "expected numbers, got " + inQuotes(d.text()));
    checkTensors(p_.derived, "derived");
    checkTensors(p_.states, "states");
    checkSizeParts();
    std::set<std::string_view> names;
    for (size_t i = 0; i < p_.entries.size(); ++i) {
      const std::string field = fmt::format("entries[{}]", i);
      if (!names.insert(p_.entries[i].name).second)
        fail(field + ".name", "a second entry point " + inQuotes(p_.entries[i].name));
      checkEntry(p_.entries[i], field, p_.weights.size() + p_.derived.size());
    }
    if (p_.load)
      checkLoad(*p_.load);
    else if (!p_.derived.empty())
      fail("derived", "weights to compute, and no \"load\" that computes them");
  }

 private:
  [[noreturn]] void fail(const std::string& field, const std::string& message) const {
    throw Error(ErrorCode::InvalidFile, file_ + ": " + field + ": " + message);
  }

  void checkSymbols() {
    for (size_t i = 0; i < p_.symbols.size(); ++i) {
      const SymbolInfo& s = p_.symbols[i];
      const std::string field = fmt::format("symbols[{}]", i);
      if (s.name.empty() || !symbols_.insert(s.name).second)
        fail(field + ".name", "expected a new name, got " + inQuotes(s.name));
      if (s.lo < 0 || s.multiple < 1 || s.hi / s.multiple * s.multiple < s.lo)
        fail(field,
             fmt::format("the range from {} to {} has no multiple of {}", s.lo, s.hi, s.multiple));
    }
  }

  // After the tensors, whose sizes they are not.
  void checkSizeParts() {
    std::vector<std::string> names;
    for (size_t i = 0; i < p_.sizeParts.size(); ++i) {
      const SizePart& s = p_.sizeParts[i];
      const std::string field = fmt::format("size_parts[{}]", i);
      checkShape({s.of}, field + ".of");
      if (s.name.empty() || symbols_.contains(s.name) || std::ranges::count(names, s.name))
        fail(field + ".name", "expected a new name, got " + inQuotes(s.name));
      names.push_back(s.name);
    }
    symbols_.insert(names.begin(), names.end());
  }

  void checkShape(const SymbolicShape& shape, const std::string& field) {
    for (const DimExpr& d : shape)
      for (const std::string& name : d.symbols())
        if (!symbols_.contains(name))
          fail(field, fmt::format("the size {} has the undeclared symbol {}", inQuotes(d.text()),
                                  inQuotes(name)));
  }

  void checkTensors(const std::vector<TensorInfo>& tensors, const char* table) {
    std::set<std::string_view> names;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string field = fmt::format("{}[{}]", table, i);
      if (!names.insert(tensors[i].name).second)
        fail(field + ".name", "a second " + inQuotes(tensors[i].name));
      checkShape(tensors[i].shape, field + ".shape");
    }
  }

  void checkIndex(const Slot& s, size_t limit, const std::string& field) {
    if (s.index < 0 || size_t(s.index) >= limit)
      fail(field + ".index", fmt::format("refers to item {} of {}", s.index, limit));
  }

  void checkType(const Slot& s, DType dtype, const SymbolicShape& shape, const std::string& field) {
    if (s.dtype != dtype || s.shape != shape)
      fail(field, fmt::format("{} for item {}, which is {}", textOf(s.dtype, s.shape), s.index,
                              textOf(dtype, shape)));
  }

  // A buffer that owns its memory. Where the memory is that of a table's item, it is as large.
  void checkSlot(const EntryPoint& e, int slot, size_t weights, const std::string& field) {
    const Slot& s = e.slots[size_t(slot)];
    auto belongs = [&](const std::vector<Port>& ports) {
      checkIndex(s, ports.size(), field);
      if (ownerOf(e, ports[size_t(s.index)].slot) != slot)
        fail(field + ".index", fmt::format("item {} is in another slot", s.index));
    };
    switch (s.kind) {
      case SlotKind::Arena:
        return;
      case SlotKind::Argument:
        return belongs(e.inputs);
      case SlotKind::Result:
        return belongs(e.outputs);
      case SlotKind::Weight: {
        checkIndex(s, weights, field);
        const size_t i = size_t(s.index), raw = p_.weights.size();
        const TensorInfo& info = i < raw ? p_.weights[i] : p_.derived[i - raw];
        return checkType(s, info.dtype, info.shape, field);
      }
      case SlotKind::State: {
        checkIndex(s, p_.states.size(), field);
        const TensorInfo& info = p_.states[size_t(s.index)];
        return checkType(s, info.dtype, info.shape, field);
      }
      case SlotKind::Constant: {
        checkIndex(s, p_.constants.size(), field);
        const Array& a = p_.constants[size_t(s.index)];
        return checkType(s, a.dtype(), SymbolicShape(a.shape().begin(), a.shape().end()), field);
      }
    }
    fail(field + ".kind", fmt::format("unknown kind {}", int(s.kind)));
  }

  void checkPorts(const EntryPoint& e, const std::vector<Port>& ports, SlotKind kind,
                  const std::string& field) {
    std::set<std::string_view> names;
    for (size_t i = 0; i < ports.size(); ++i) {
      const Slot& s = e.slots[size_t(ownerOf(e, ports[i].slot))];
      if (s.kind != kind || size_t(s.index) != i)
        fail(fmt::format("{}[{}].slot", field, i),
             fmt::format("slot {} does not hold it", ports[i].slot));
      if (!names.insert(ports[i].name).second)
        fail(fmt::format("{}[{}].name", field, i), "a second " + inQuotes(ports[i].name));
    }
  }

  void checkStates(const EntryPoint& e, const std::string& field) {
    std::set<std::string_view> taken, given;
    for (size_t i = 0; i < e.statesIn.size(); ++i) {
      const Slot& s = e.slots[size_t(ownerOf(e, e.statesIn[i].slot))];
      if (s.kind != SlotKind::State || p_.states[size_t(s.index)].name != e.statesIn[i].name ||
          !taken.insert(e.statesIn[i].name).second)
        fail(fmt::format("{}.states_in[{}]", field, i),
             fmt::format("slot {} does not hold the state {}", e.statesIn[i].slot,
                         inQuotes(e.statesIn[i].name)));
    }
    for (size_t i = 0; i < e.slots.size(); ++i)
      if (e.slots[i].kind == SlotKind::State &&
          !taken.contains(p_.states[size_t(e.slots[i].index)].name))
        fail(fmt::format("{}.slots[{}]", field, i), "a state that \"states_in\" does not list");
    for (size_t i = 0; i < e.statesOut.size(); ++i) {
      const std::string where = fmt::format("{}.states_out[{}]", field, i);
      const Slot& s = e.slots[size_t(e.statesOut[i].slot)];
      auto info = std::ranges::find(p_.states, e.statesOut[i].name, &TensorInfo::name);
      if (info == p_.states.end() || !taken.contains(info->name) ||
          !given.insert(info->name).second)
        fail(where, "no state " + inQuotes(e.statesOut[i].name) + " to give back");
      if (s.dtype != info->dtype || s.shape != info->shape)
        fail(where, fmt::format("slot {} is {}, the state {}", e.statesOut[i].slot,
                                textOf(s.dtype, s.shape), textOf(info->dtype, info->shape)));
    }
  }

  void checkEntry(const EntryPoint& e, const std::string& field, size_t weights) {
    for (size_t i = 0; i < e.slots.size(); ++i) {
      const std::string slot = fmt::format("{}.slots[{}]", field, i);
      checkShape(e.slots[i].shape, slot + ".shape");
      if (e.slots[i].alias < 0)
        checkSlot(e, int(i), weights, slot);
      else if (e.slots[i].kind != SlotKind::Arena)
        fail(slot + ".alias", "expected a buffer of the arena where memory is shared");
    }
    checkPorts(e, e.inputs, SlotKind::Argument, field + ".inputs");
    checkPorts(e, e.outputs, SlotKind::Result, field + ".outputs");
    checkStates(e, field);
  }

  // It runs before there are inputs, states or derived weights, and gives the last.
  void checkLoad(const EntryPoint& e) {
    if (!e.inputs.empty()) fail("load.inputs", "expected none");
    if (!e.statesIn.empty() || !e.statesOut.empty()) fail("load.states_in", "expected no states");
    checkEntry(e, "load", p_.weights.size());
    if (e.outputs.size() != p_.derived.size())
      fail("load.outputs",
           fmt::format("{} for {} derived weights", e.outputs.size(), p_.derived.size()));
    for (size_t i = 0; i < e.outputs.size(); ++i) {
      const Slot& s = e.slots[size_t(e.outputs[i].slot)];
      const TensorInfo& info = p_.derived[i];
      if (s.dtype != info.dtype || s.shape != info.shape)
        fail(fmt::format("load.outputs[{}].slot", i),
             fmt::format("{} for the derived weight {}", textOf(s.dtype, s.shape),
                         textOf(info.dtype, info.shape)));
    }
  }

  const Program& p_;
  const std::string& file_;
  std::set<std::string, std::less<>> symbols_;
};

}  // namespace

void checkProgram(const Program& program, const std::string& file) {
  ProgramChecker(program, file).check();
}

}  // namespace lathe
