// SPDX-License-Identifier: Apache-2.0
#include "inspect/report/program_facts.h"

#include <algorithm>

#include "inspect/report/json_text.h"
#include "lathe/runtime/cost.h"
#include "lathe/runtime/error.h"
#include "runtime/memory_plan.h"

namespace lathe {
namespace {

using llvm::json::OStream;

constexpr int64_t kUsualSize = 512;

std::string_view nameOf(SlotKind kind) {
  switch (kind) {
    case SlotKind::Arena:
      return "arena";
    case SlotKind::Argument:
      return "argument";
    case SlotKind::Result:
      return "result";
    case SlotKind::Weight:
      return "weight";
    case SlotKind::State:
      return "state";
    case SlotKind::Constant:
      return "constant";
  }
  return "";
}

void writeShape(OStream& out, const SymbolicShape& shape) {
  out.array([&] {
    for (const DimExpr& d : shape) {
      if (auto n = d.asConstant())
        out.value(*n);
      else
        out.value(jsonText(d.text()));
    }
  });
}

void writeNumbers(OStream& out, const std::vector<int>& numbers) {
  out.array([&] {
    for (int n : numbers) out.value(n);
  });
}

void writeTensors(OStream& out, const char* key, const std::vector<TensorInfo>& tensors) {
  out.attributeArray(key, [&] {
    for (const TensorInfo& t : tensors)
      out.array([&] {
        out.value(jsonText(t.name));
        out.value(std::string(lathe::nameOf(t.dtype)));
        writeShape(out, t.shape);
      });
  });
}

void writePorts(OStream& out, const char* key, const std::vector<Port>& ports) {
  out.attributeArray(key, [&] {
    for (const Port& p : ports)
      out.array([&] {
        out.value(jsonText(p.name));
        out.value(p.slot);
      });
  });
}

void writeEntry(OStream& out, const EntryPoint& entry) {
  std::vector<Lifetime> lifetimes = lifetimesOf(entry);
  out.object([&] {
    out.attribute("name", jsonText(entry.name));
    writePorts(out, "inputs", entry.inputs);
    writePorts(out, "outputs", entry.outputs);
    out.attributeArray("slots", [&] {
      for (size_t i = 0; i < entry.slots.size(); ++i) {
        const Slot& s = entry.slots[i];
        out.array([&] {
          out.value(std::string(nameOf(s.kind)));
          out.value(std::string(lathe::nameOf(s.dtype)));
          writeShape(out, s.shape);
          out.value(s.index);
          out.value(s.alias);
          out.value(lifetimes[i].first);
          out.value(lifetimes[i].last);
        });
      }
    });
    out.attributeArray("calls", [&] {
      for (const Call& c : entry.calls)
        out.array([&] {
          out.value(jsonText(c.kind));
          out.value(jsonText(c.callee));
          out.value(jsonText(c.config));
          writeNumbers(out, c.operands);
          writeNumbers(out, c.results);
          out.value(jsonText(c.origin));
        });
    });
  });
}

std::vector<const EntryPoint*> entriesOf(const Program& program) {
  std::vector<const EntryPoint*> entries;
  for (const EntryPoint& e : program.entries) entries.push_back(&e);
  if (program.load) entries.push_back(program.load.get());
  return entries;
}

// Bytes of a slot; 0 where its size leaves the range of 64 bits and no plan holds it.
int64_t bytesOf(const Slot& slot, const SymbolValues& symbols) {
  DimExpr count = 1;
  for (const DimExpr& d : slot.shape) count = count * d;
  return int64_t(lathe::bytesOf(slot.dtype, count.evaluate(symbols).value_or(0)));
}

void writeCalls(OStream& out, const CallCosts& costs, const SymbolValues& symbols,
                const MachineRoofs* machine) {
  out.attributeArray("calls", [&] {
    for (const std::optional<Cost>& cost : costs) {
      if (!cost) {
        out.value(nullptr);
        continue;
      }
      CostValues v = evaluate(*cost, symbols);
      out.array([&] {
        out.value(v.flops);
        out.value(v.read);
        out.value(v.written);
        out.value(v.narrow ? 1 : 0);
        if (!machine) return;
        Prediction p = predict(v, *machine);
        out.value(p.seconds);
        out.value(p.computeBound ? 1 : 0);
      });
    }
  });
}

void writeSetting(OStream& out, const Program& program, const SymbolValues& symbols,
                  const std::map<std::string, CallCosts>& costs, const MachineRoofs* machine) {
  out.object([&] {
    out.attributeObject("symbols", [&] {
      for (auto& [name, value] : symbols) out.attribute(jsonText(name), value);
    });
    out.attributeObject("entries", [&] {
      for (const EntryPoint* entry : entriesOf(program)) {
        std::vector<int64_t> bytes;
        for (const Slot& s : entry->slots) bytes.push_back(bytesOf(s, symbols));
        MemoryPlan plan = planArena(*entry, bytes);
        out.attributeObject(jsonText(entry->name), [&] {
          out.attribute("arena", plan.bytes);
          out.attributeArray("slots", [&] {
            for (size_t i = 0; i < bytes.size(); ++i)
              out.array([&] {
                out.value(plan.offsets[i]);
                out.value(bytes[i]);
              });
          });
          auto found = costs.find(entry->name);
          writeCalls(out, found == costs.end() ? CallCosts(entry->calls.size()) : found->second,
                     symbols, machine);
        });
      }
    });
  });
}

}  // namespace

SymbolValues settingFor(const Program& program, const SymbolValues& given) {
  checkSymbolValues(program, given);
  SymbolValues setting = given;
  for (const SymbolInfo& s : program.symbols) {
    int64_t usual = s.name == "batch" ? s.lo : std::clamp(kUsualSize, s.lo, s.hi);
    // The lowest size need not be a multiple itself.
    const int64_t least = (s.lo + s.multiple - 1) / s.multiple * s.multiple;
    usual = std::max(least, usual / s.multiple * s.multiple);
    setting.try_emplace(s.name, usual);
  }
  program.addSizeParts(setting);
  return setting;
}

void checkRuns(const Program& program, const std::vector<ReportRun>& runs) {
  for (const ReportRun& run : runs) {
    const EntryPoint& entry = program.entry(run.entry);
    if (run.calls.size() != entry.calls.size())
      throw Error(ErrorCode::InvalidArgument,
                  "report: expected times of " + std::to_string(entry.calls.size()) +
                      " calls of '" + entry.name + "', got " + std::to_string(run.calls.size()) +
                      "; open the session with SessionOptions::profile");
  }
}

void writeProgram(OStream& out, const Program& program, const std::vector<SymbolValues>& settings,
                  const std::map<std::string, CallCosts>& costs, const MachineRoofs* machine) {
  out.attributeObject("program", [&] {
    out.attributeArray("symbols", [&] {
      for (const SymbolInfo& s : program.symbols)
        out.array([&] {
          out.value(jsonText(s.name));
          out.value(s.lo);
          out.value(s.hi);
          out.value(s.multiple);
        });
    });
    writeTensors(out, "weights", program.weights);
    writeTensors(out, "derived", program.derived);
    writeTensors(out, "states", program.states);
    out.attributeArray("entries", [&] {
      for (const EntryPoint* entry : entriesOf(program)) writeEntry(out, *entry);
    });
  });
  out.attributeArray("settings", [&] {
    for (const SymbolValues& symbols : settings)
      writeSetting(out, program, symbols, costs, machine);
  });
}

void writeRuns(OStream& out, const Program& program, const std::vector<ReportRun>& runs,
               const std::vector<SymbolValues>& settings) {
  out.attributeArray("runs", [&] {
    for (const ReportRun& run : runs) {
      auto setting = std::find(settings.begin(), settings.end(), settingFor(program, run.symbols));
      out.object([&] {
        out.attribute("entry", jsonText(run.entry));
        out.attribute("setting", int64_t(setting - settings.begin()));
        out.attributeArray("calls", [&] {
          for (const CallProfile& c : run.calls)
            out.array([&] {
              out.value(c.runs);
              out.value(c.runs ? c.seconds / double(c.runs) : 0);
            });
        });
      });
    }
  });
}

}  // namespace lathe
