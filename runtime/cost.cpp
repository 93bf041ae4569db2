// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/cost.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/memory_plan.h"

namespace lathe {
namespace {

using nlohmann::json;
constexpr const char* kBlob = "costs";

DimExpr bytesOf(DType dtype, const SymbolicShape& shape) {
  DimExpr elements = 1;
  for (const DimExpr& d : shape) elements = elements * d;
  return bytesOf(dtype, elements);
}

DimExpr exprFrom(const JsonValue& v) {
  auto e = DimExpr::parse(v.asString());
  if (!e) throw v.error("expected an expression of sizes, got " + v.show());
  return *e;
}

std::string rangeOf(const SymbolInfo& s) {
  return std::to_string(s.lo) + " to " + std::to_string(s.hi) +
         (s.multiple > 1 ? ", multiples of " + std::to_string(s.multiple) : "");
}

}  // namespace

DimExpr bytesOf(DType dtype, const DimExpr& elements) {
  if (!isPacked(dtype)) return elements * int64_t(sizeOf(dtype));
  // Sizes are whole polynomials: what has no half counts as much as whole bytes would.
  const std::optional<DimExpr> half = elements.dividedBy(2);
  return half ? *half : elements;
}

Cost& Cost::operator+=(const Cost& other) {
  flops = flops + other.flops;
  read = read + other.read;
  written = written + other.written;
  held = held + other.held;
  narrow |= other.narrow;
  return *this;
}

Cost Cost::operator-(const Cost& other) const {
  return {flops - other.flops, read - other.read, written - other.written, held - other.held,
          narrow};
}

CostValues& CostValues::operator+=(const CostValues& other) {
  flops += other.flops;
  read += other.read;
  written += other.written;
  held += other.held;
  narrow |= other.narrow;
  return *this;
}

double evaluate(const DimExpr& expr, const SymbolValues& values) {
  double sum = 0;
  for (auto& [monomial, coefficient] : expr.terms()) {
    double product = double(coefficient);
    for (const std::string& name : monomial) {
      auto it = values.find(name);
      if (it == values.end())
        throw Error(ErrorCode::InvalidArgument,
                    "symbol '" + name + "' has no value; add " + name + "=N");
      product *= double(it->second);
    }
    sum += product;
  }
  return sum;
}

CostValues evaluate(const Cost& cost, const SymbolValues& values) {
  return {evaluate(cost.flops, values), evaluate(cost.read, values), evaluate(cost.written, values),
          evaluate(cost.held, values), cost.narrow};
}

DimExpr substitute(const DimExpr& expr, const SymbolValues& values) {
  DimExpr sum;
  for (auto& [monomial, coefficient] : expr.terms()) {
    DimExpr product = coefficient;
    for (const std::string& name : monomial) {
      auto it = values.find(name);
      product = product * (it == values.end() ? DimExpr::symbol(name) : DimExpr(it->second));
    }
    sum = sum + product;
  }
  return sum;
}

void storeCosts(Program& program, const std::map<std::string, CallCosts>& byEntry) {
  json all = json::object();
  for (auto& [entry, costs] : byEntry) {
    json& list = all[entry] = json::array();
    for (const std::optional<Cost>& c : costs) {
      if (!c) {
        list.push_back(nullptr);
        continue;
      }
      json item = {{"flops", c->flops.text()},
                   {"read", c->read.text()},
                   {"written", c->written.text()},
                   {"held", c->held.text()}};
      if (c->narrow) item["narrow"] = true;
      list.push_back(std::move(item));
    }
  }
  program.blobs[kBlob] = all.dump();
}

std::map<std::string, CallCosts> costsOf(const Program& program) {
  std::map<std::string, CallCosts> byEntry;
  std::vector<const EntryPoint*> entries;
  for (const EntryPoint& e : program.entries) entries.push_back(&e);
  if (program.load) entries.push_back(program.load.get());
  auto blob = program.blobs.find(kBlob);
  for (const EntryPoint* e : entries) {
    CallCosts& costs = byEntry[e->name];
    costs.resize(e->calls.size());
    if (blob == program.blobs.end()) continue;
    JsonValue all = JsonValue::parse(blob->second, kBlob);
    if (!all.has(e->name)) continue;
    JsonValue list = all.at(e->name);
    if (list.size() != costs.size())
      throw list.error("expected " + std::to_string(costs.size()) + " costs, one for each call");
    for (size_t i = 0; i < costs.size(); ++i) {
      JsonValue item = list.at(i);
      if (item.isNull()) continue;
      costs[i] =
          Cost{exprFrom(item.at("flops")), exprFrom(item.at("read")), exprFrom(item.at("written")),
               exprFrom(item.at("held")), item.has("narrow") && item.at("narrow").asBool()};
    }
  }
  return byEntry;
}

void checkSymbolValues(const Program& program, const SymbolValues& values) {
  for (auto& [name, value] : values) {
    auto symbol = std::find_if(program.symbols.begin(), program.symbols.end(),
                               [&](const SymbolInfo& s) { return s.name == name; });
    if (symbol == program.symbols.end()) {
      std::string known;
      for (const SymbolInfo& s : program.symbols) known += (known.empty() ? "" : ", ") + s.name;
      throw Error(
          ErrorCode::InvalidArgument,
          "no symbol '" + name + "'; " +
              (known.empty() ? "all sizes of this model are numbers" : "the model has " + known));
    }
    if (value < symbol->lo || value > symbol->hi || value % symbol->multiple)
      throw Error(
          ErrorCode::InvalidArgument,
          "symbol '" + name + "': expected " + rangeOf(*symbol) + ", got " + std::to_string(value));
  }
}

std::vector<SymbolInfo> symbolsOf(const Program& program, const EntryPoint& entry) {
  std::set<std::string> used;
  for (const Slot& slot : entry.slots)
    for (const DimExpr& d : slot.shape)
      for (const std::string& s : d.symbols()) used.insert(s);
  std::vector<SymbolInfo> result;
  for (const SymbolInfo& s : program.symbols)
    if (used.contains(s.name)) result.push_back(s);
  return result;
}

HeldMemory heldMemory(const Program& program, const EntryPoint& entry) {
  HeldMemory held;
  std::set<std::string> weights;
  auto add = [](DimExpr& sum, DType dtype, const SymbolicShape& shape) {
    sum = sum + bytesOf(dtype, shape);
  };
  for (const Slot& slot : entry.slots) {
    if (slot.alias >= 0) continue;
    const size_t index = size_t(slot.index), raw = program.weights.size();
    if (slot.kind == SlotKind::Argument) add(held.inputs, slot.dtype, slot.shape);
    if (slot.kind == SlotKind::Result) add(held.outputs, slot.dtype, slot.shape);
    if (slot.kind == SlotKind::State) add(held.states, slot.dtype, slot.shape);
    if (slot.kind != SlotKind::Weight) continue;
    const TensorInfo& w = index < raw ? program.weights[index] : program.derived[index - raw];
    if (weights.insert(w.name).second) add(held.weights, w.dtype, w.shape);
  }
  return held;
}

double temporaryBytes(const EntryPoint& entry, const SymbolValues& values) {
  std::vector<int64_t> bytes;
  for (const Slot& slot : entry.slots) {
    const double size = evaluate(bytesOf(slot.dtype, slot.shape), values);
    if (size > 0x1p60)
      throw Error(ErrorCode::InvalidArgument,
                  "a buffer of entry point '" + entry.name + "' would have more than 2^60 bytes");
    bytes.push_back(int64_t(size));
  }
  return double(planArena(entry, bytes).bytes);
}

std::vector<DimExpr> liveBytes(const EntryPoint& entry) {
  std::vector<DimExpr> live(entry.calls.size());
  const std::vector<Lifetime> lives = lifetimesOf(entry);
  for (size_t s = 0; s < entry.slots.size(); ++s) {
    const Slot& slot = entry.slots[s];
    if (slot.kind != SlotKind::Arena || slot.alias >= 0 || lives[s].first < 0) continue;
    const DimExpr bytes = bytesOf(slot.dtype, slot.shape);
    const int last = std::min(lives[s].last, int(live.size()) - 1);
    for (int c = lives[s].first; c <= last; ++c) live[size_t(c)] = live[size_t(c)] + bytes;
  }
  return live;
}

}  // namespace lathe
