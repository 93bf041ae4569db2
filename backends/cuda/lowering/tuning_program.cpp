// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/tuning_program.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "backends/cuda/device/program_code.h"
#include "backends/cuda/lowering/kernel/kernel_names.h"
#include "backends/cuda/lowering/kernel_builder.h"
#include "backends/cuda/lowering/nvrtc/kernel_cache.h"
#include "backends/cuda/lowering/tuning/tuning_choice.h"
#include "backends/cuda/lowering/tuning/tuning_database.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kTexts = "candidates", kMachineCode = "sm_90a,candidates";
constexpr size_t kMostCandidates = 12;  // beside those of a library
constexpr int64_t kRoom = 4096;

// Values of the symbols at which all conditions hold and each is as large as it may be; nothing if
// there are none. Symbols without condition are those of caches: they have room.
std::optional<SymbolValues> symbolsFor(const std::vector<Condition>& sizes,
                                       const std::vector<SymbolInfo>& symbols) {
  auto isAsked = [&](const SymbolInfo& s) {
    return std::ranges::any_of(sizes, [&](const Condition& c) {
      return std::ranges::count(c.value.symbols(), s.name) > 0;
    });
  };
  SymbolValues values;
  std::vector<const SymbolInfo*> order;
  for (const SymbolInfo& s : symbols) {
    const int64_t room = std::min(s.hi, kRoom);
    values[s.name] = isAsked(s) ? s.lo : std::max(s.lo, room - room % s.multiple);
    if (isAsked(s)) order.push_back(&s);
  }
  auto holds = [&](const Condition& c, bool least) {
    const auto value = c.value.evaluate(values);
    return value && *value <= c.high && (!least || *value >= c.low);
  };
  auto allHold = [&](bool least) {
    return std::ranges::all_of(sizes, [&](const Condition& c) { return holds(c, least); });
  };
  // Sequences grow before batches.
  std::ranges::sort(order, std::greater(),
                    [](const SymbolInfo* s) { return std::pair(s->hi, s->name); });
  for (const SymbolInfo* s : order) {
    int64_t low = 0, high = (s->hi - s->lo) / s->multiple;  // steps above the least value
    while (low < high) {
      const int64_t middle = low + (high - low + 1) / 2;
      values[s->name] = s->lo + middle * s->multiple;
      if (allHold(false))
        low = middle;
      else
        high = middle - 1;
    }
    values[s->name] = s->lo + low * s->multiple;
  }
  return allHold(true) ? std::optional(values) : std::nullopt;
}

const Variant* variantFor(const KernelSet& set, const SymbolValues& values) {
  for (const Variant& v : set.variants)
    if (std::ranges::all_of(v.when, [&](const Condition& c) {
          const auto value = c.value.evaluate(values);
          return value && c.low <= *value && *value <= c.high;
        }))
      return &v;
  return nullptr;
}

// The operands and results of `call` alone, as slots without owners outside.
EntryPoint entryOf(const std::string& name, const EntryPoint& from, const Call& call) {
  EntryPoint entry;
  entry.name = name;
  std::map<int, int> moved;
  auto take = [&](int slot) {
    auto [it, isNew] = moved.try_emplace(slot, int(entry.slots.size()));
    if (isNew) {
      Slot s = from.slots[size_t(slot)];
      s.kind = SlotKind::Arena;
      s.index = 0;
      const auto owner = moved.find(s.alias);
      s.alias = s.alias >= 0 && owner != moved.end() ? owner->second : -1;
      entry.slots.push_back(std::move(s));
    }
    return it->second;
  };
  Call own = call;
  for (int& slot : own.operands) slot = take(slot);
  for (int& slot : own.results) slot = take(slot);
  entry.calls.push_back(std::move(own));
  return entry;
}

struct Candidate {
  Json description;
  std::string callee;
  Variant variant;
  std::vector<KernelText> kernels;
};

// All that runs, whatever it is called.
std::string textOf(const Candidate& c) {
  std::string text = toJson({{"", {c.variant}}});
  for (const KernelText& k : c.kernels) text += k.source;
  for (size_t at; (at = text.find(c.callee)) != std::string::npos;) text.erase(at, c.callee.size());
  return text;
}

struct Problem {
  EntryPoint entry;
  Json description;
  std::vector<Candidate> candidates;
};

struct Target {
  std::string_view kind;
  std::vector<std::string_view> only;  // texts, empty: every problem

  explicit Target(std::string_view target) : kind(target.substr(0, target.find(':'))) {
    if (kind.size() == target.size()) return;
    for (size_t begin = kind.size() + 1; begin <= target.size();) {
      const size_t end = std::min(target.find(',', begin), target.size());
      if (end > begin) only.push_back(target.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  bool wants(const std::string& problem) const {
    return only.empty() || std::ranges::any_of(only, [&](std::string_view text) {
             return problem.find(text) != std::string::npos;
           });
  }
};

class Collector {
 public:
  Collector(ModuleOp module, const Program& program, const Target& target)
      : module_(module), program_(program), target_(target) {}

  std::vector<Problem> collect() {
    std::set<std::string> seenCalls;
    module_.walk([&](KernelOp call) {
      if (isCollective(call)) return;
      const std::string callee = call.getCallee()->str();
      if (!seenCalls.insert(callee).second) return;
      std::vector<TuningQuestion> questions;
      {
        TuningScope scope;
        kernelsOfCall(call, callee);
        for (TuningScope::Asked& a : scope.asked) questions.push_back(std::move(a.question));
      }
      for (const TuningQuestion& q : questions)
        if (q.candidates.size() > 1 && target_.wants(q.problem) &&
            !seenProblems_.contains(q.problem))
          add(call, callee, q);
    });
    return std::move(problems_);
  }

 private:
  void add(KernelOp call, const std::string& callee, const TuningQuestion& q) {
    const std::optional<SymbolValues> symbols = symbolsFor(q.sizes, program_.symbols);
    if (!symbols) return;  // no sizes of this model ask for it
    Problem problem;
    const std::string name = "p" + std::to_string(problems_.size());
    if (!findEntry(callee, name, problem.entry)) return;
    std::set<std::string> different;
    for (size_t number : numbersOf(q)) {
      Candidate c;
      c.callee = callee + "_" + name + "_c" + std::to_string(number);
      TuningScope scope;
      scope.answers[q.problem] = number;
      const KernelSet set = kernelsOfCall(call, c.callee);
      const Variant* variant = variantFor(set, *symbols);
      if (!variant) continue;
      c.variant = *variant;
      c.variant.when.clear();
      // The library's time, not that of the kernel which stands in for it.
      for (Launch& l : c.variant.launches) {
        if (l.matmul) l.matmul->required = true;
        if (l.attention) l.attention->required = true;
      }
      for (const KernelText& k : set.kernels)
        if (std::ranges::any_of(variant->launches,
                                [&](const Launch& l) { return l.kernel == k.name; }))
          c.kernels.push_back(k);
      // Another kernel may serve these sizes: then the answer changes nothing.
      if (!different.insert(textOf(c)).second) continue;
      c.description = {{"choice", q.candidates[number]}};
      if (number < q.seconds.size()) c.description["model_us"] = 1e6 * q.seconds[number];
      problem.candidates.push_back(std::move(c));
    }
    if (problem.candidates.size() < 2) return;
    problem.description = {
        {"entry", name},        {"call", callee},
        {"problem", q.problem}, {"version", q.version},
        {"symbols", *symbols},  {"integers", q.integers.evaluate(*symbols).value_or(0)}};
    seenProblems_.insert(q.problem);
    problems_.push_back(std::move(problem));
  }

  // The best by the model, and what a record of any version says.
  static std::vector<size_t> numbersOf(const TuningQuestion& q) {
    std::vector<size_t> numbers(
        std::min(q.candidates.size(), kMostCandidates + q.withoutText.size()));
    std::iota(numbers.begin(), numbers.end(), size_t(0));
    if (const TuningRecord* known = tuningDatabase()->find(q.problem)) {
      const auto at = size_t(std::ranges::find(q.candidates, known->choice) - q.candidates.begin());
      if (at >= numbers.size() && at < q.candidates.size()) numbers.back() = at;
    }
    return numbers;
  }

  bool findEntry(const std::string& callee, const std::string& name, EntryPoint& to) const {
    for (const EntryPoint& e : program_.entries)
      for (const Call& c : e.calls)
        if (c.callee == callee) {
          to = entryOf(name, e, c);
          return true;
        }
    return false;
  }

  ModuleOp module_;
  const Program& program_;
  const Target& target_;
  std::set<std::string> seenProblems_;
  std::vector<Problem> problems_;
};

// Machine code of every candidate; those that spill are left out where others do not.
void addMachineCode(std::vector<Problem>& problems, std::vector<KernelCode>& codes) {
  std::vector<KernelText> texts;
  for (const Problem& p : problems)
    for (const Candidate& c : p.candidates)
      texts.insert(texts.end(), c.kernels.begin(), c.kernels.end());
  const std::vector<CompiledKernel> compiled = compileKernels(texts);
  size_t next = 0;
  for (Problem& p : problems) {
    std::vector<Candidate> good;
    for (Candidate& c : p.candidates) {
      bool spills = false;
      const size_t begin = next;
      for (; next < begin + c.kernels.size(); ++next) {
        const KernelResources& r = compiled[next].report.resources;
        spills |= r.spillStores > 0 || r.spillLoads > 0;
        c.description["registers"].push_back(r.registers);
      }
      if (spills) continue;
      // Without their texts: the file travels.
      for (size_t i = begin; i < next; ++i)
        codes.push_back({texts[i].name, {}, compiled[i].cubin, {}});
      good.push_back(std::move(c));
    }
    p.candidates = std::move(good);
  }
}

}  // namespace

bool isTuningTarget(std::string_view target) {
  const std::string_view kind = Target(target).kind;
  return kind == kTexts || kind == kMachineCode;
}

Program tuningProgram(ModuleOp module, const Program& program, const std::string& target) {
  const Target wanted(target);
  std::vector<Problem> problems = Collector(module, program, wanted).collect();
  std::vector<KernelCode> codes;
  if (wanted.kind == kMachineCode) {
    addMachineCode(problems, codes);
  } else {
    for (const Problem& p : problems)
      for (const Candidate& c : p.candidates)
        for (const KernelText& k : c.kernels) codes.push_back({k.name, k.source, {}, {}});
  }
  Program out;
  out.backend = program.backend;
  out.symbols = program.symbols;
  KernelTable table;
  Json list = Json::array();
  for (Problem& p : problems) {
    if (p.candidates.empty()) continue;
    const Call call = p.entry.calls.front();
    p.entry.calls.clear();
    for (Candidate& c : p.candidates) {
      p.entry.calls.push_back(call);
      p.entry.calls.back().callee = c.callee;
      table[c.callee] = {std::move(c.variant)};
      p.description["candidates"].push_back(std::move(c.description));
    }
    out.entries.push_back(std::move(p.entry));
    list.push_back(std::move(p.description));
  }
  out.metadata["tuning"] = list.dump();
  storeKernels(out, table, codes);
  return out;
}

}  // namespace lathe::cuda
