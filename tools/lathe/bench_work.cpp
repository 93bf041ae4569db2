// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/bench_work.h"

#include <algorithm>

#include "lathe/runtime/device.h"
#include "runtime/language_program.h"
#include "tools/lathe/rank_links.h"

namespace lathe::cli {
namespace {

// The least sizes, but for the rows: the first dim of ids.
SymbolValues leastWith(const Program& program, int64_t rows) {
  SymbolValues values;
  for (const SymbolInfo& s : program.symbols) values[s.name] = s.lo;
  const EntryPoint& prefill = program.entry("prefill");
  for (const Port& port : prefill.inputs)
    if (const SymbolicShape& shape = prefill.slots[size_t(port.slot)].shape;
        shape.size() == 2 && values.contains(shape[0].text()))
      values[shape[0].text()] = rows;
  return values;
}

// The symbol of the tokens in `prefill`, and how many one call takes.
std::pair<std::string, int64_t> chunkOf(const Program& program) {
  const int64_t most = promptTokensOf(program.backend);
  const EntryPoint& prefill = program.entry("prefill");
  for (const Port& port : prefill.inputs) {
    const SymbolicShape& shape = prefill.slots[size_t(port.slot)].shape;
    for (const SymbolInfo& s : program.symbols)
      if (shape.size() == 2 && shape[1] == DimExpr::symbol(s.name))
        return {s.name, std::min(most, s.hi)};
  }
  return {"", most};
}

}  // namespace

std::vector<SymbolValues> prefillRuns(const Program& program, int64_t prompt, int64_t rows) {
  const auto [tokens, most] = chunkOf(program);
  const int64_t chunk = chunkOfRows(most, rows);
  std::vector<SymbolValues> runs;
  for (int64_t at = 0; at < prompt; at += chunk) {
    SymbolValues values = leastWith(program, rows);
    const int64_t count = std::min(chunk, prompt - at);
    if (!tokens.empty()) values[tokens] = count;
    values["cache"] = at + count;
    program.addSizeParts(values);
    runs.push_back(std::move(values));
  }
  return runs;
}

std::vector<SymbolValues> decodeRuns(const Program& program, int64_t start, int64_t tokens,
                                     int64_t rows) {
  std::vector<SymbolValues> runs(size_t(tokens), leastWith(program, rows));
  for (int64_t i = 0; i < tokens; ++i) {
    runs[size_t(i)]["cache"] = start + i + 1;
    program.addSizeParts(runs[size_t(i)]);
  }
  return runs;
}

std::optional<CostValues> workOf(const Program& program, const std::string& entry,
                                 const std::vector<SymbolValues>& runs) {
  const CallCosts costs = costsOf(program).at(entry);
  Cost once;
  for (const std::optional<Cost>& c : costs) {
    if (!c) return std::nullopt;
    once += *c;
  }
  CostValues sum;
  for (const SymbolValues& values : runs) sum += evaluate(once, values);
  return sum;
}

CollectiveWork collectivesOf(const Program& program, const std::string& entry,
                             const std::vector<SymbolValues>& runs) {
  CollectiveWork work;
  if (program.allRanks() == 1) return work;
  const CallCosts costs = costsOf(program).at(entry);
  const std::vector<Call>& calls = program.entry(entry).calls;
  for (const SymbolValues& values : runs)
    for (size_t i = 0; i < calls.size(); ++i) {
      if (!costs[i] || exchangesOf(calls[i]) == 0) continue;
      ++work.calls;
      work.bytes += collectiveBytes(calls[i], evaluate(*costs[i], values), program.ranks);
    }
  return work;
}

std::vector<double> predictedSeconds(const Program& program, const std::string& entry,
                                     const std::vector<SymbolValues>& runs,
                                     const MachineRoofs& machine) {
  const CallCosts costs = costsOf(program).at(entry);
  std::vector<double> seconds(costs.size());
  for (const SymbolValues& values : runs)
    for (size_t i = 0; i < costs.size(); ++i)
      if (costs[i]) seconds[i] += predict(evaluate(*costs[i], values), machine).seconds;
  return seconds;
}

}  // namespace lathe::cli
