// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/explain_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/lathe/json_output.h"
#include "tools/lathe/places.h"

namespace lathe::cli {
namespace {

// One call, or the calls of all layers at one place.
struct Row {
  std::string op, origin;
  int count = 1;
  Cost cost;
  bool known = true;  // false: the backend did not say what the call costs
  double live = 0;    // the most of any
  DimExpr liveExpr;
  CostValues values;
  double seconds = 0;
  bool computeBound = false;
  bool isCollective = false;

  const char* bound() const { return isCollective ? "link" : computeBound ? "compute" : "memory"; }
};

std::string nameOf(const Call& call) { return call.callee.empty() ? call.kind : call.callee; }

std::vector<Row> rowsOf(const ExplainReport& r, const EntryPoint& entry) {
  const CallCosts costs = costsOf(*r.program).at(entry.name);
  const std::vector<DimExpr> live = liveBytes(entry);
  const bool known = r.isKnown(entry);
  std::vector<Row> rows;
  for (size_t i = 0; i < entry.calls.size(); ++i) {
    const Call& call = entry.calls[i];
    Row row{nameOf(call), call.origin};
    row.known = costs[i].has_value();
    row.cost = costs[i].value_or(Cost{});
    row.liveExpr = live[i];
    if (known) {
      row.values = evaluate(row.cost, r.sizes());
      row.live = evaluate(live[i], r.sizes());
    }
    if (known && r.machine) {
      Prediction p = predict(row.values, *r.machine);
      row.seconds = p.seconds;
      row.computeBound = p.computeBound;
      const std::optional<double> talk =
          r.link ? collectiveSeconds(call, row.values, r.ranks, *r.link) : std::nullopt;
      row.isCollective = talk.has_value();
      if (talk) row.seconds = *talk;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> byPlace(const std::vector<Row>& rows) {
  std::vector<Row> merged;
  for (const Row& row : rows) {
    const std::string op = kindOf(row.op), place = placeOf(row.origin);
    auto same = std::find_if(merged.begin(), merged.end(), [&](const Row& m) {
      return m.op == op && m.origin == place && m.known == row.known &&
             m.computeBound == row.computeBound && m.isCollective == row.isCollective;
    });
    if (same == merged.end()) {
      merged.push_back(row);
      merged.back().op = op;
      merged.back().origin = place;
      continue;
    }
    ++same->count;
    same->cost += row.cost;
    same->values += row.values;
    same->seconds += row.seconds;
    same->live = std::max(same->live, row.live);
  }
  return merged;
}

// Without what another one is never smaller than.
std::vector<DimExpr> largest(const std::vector<DimExpr>& all) {
  std::vector<DimExpr> kept;
  auto covers = [](const DimExpr& a, const DimExpr& b) { return (a - b).provablyNonNegative(); };
  for (const DimExpr& e : all) {
    if (std::any_of(kept.begin(), kept.end(), [&](auto& k) { return covers(k, e); })) continue;
    std::erase_if(kept, [&](auto& k) { return covers(e, k); });
    kept.push_back(e);
  }
  return kept;
}

std::string largestText(const std::vector<DimExpr>& all) {
  std::vector<std::string> texts;
  for (const DimExpr& e : largest(all)) texts.push_back(e.text());
  if (texts.empty()) return "0";
  return texts.size() == 1 ? texts[0] : fmt::format("max({})", fmt::join(texts, ", "));
}

struct WorkTotals {
  Cost cost;
  CostValues values;
  double seconds = 0, computeSeconds = 0, linkSeconds = 0;
  int unknown = 0;

  explicit WorkTotals(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      cost += row.cost;
      values += row.values;
      seconds += row.seconds;
      if (row.isCollective)
        linkSeconds += row.seconds;
      else if (row.computeBound)
        computeSeconds += row.seconds;
      unknown += row.known ? 0 : row.count;
    }
  }
};

void printPolynomials(const std::vector<Row>& rows, const WorkTotals& total, bool everyOp) {
  fmt::print(
      "| op | where | count | FLOPs | bytes read | bytes written |\n"
      "|---|---|--:|---|---|---|\n");
  for (const Row& row : everyOp ? rows : byPlace(rows)) {
    if (!row.known)
      fmt::print("| {} | {} | {} | ? | ? | ? |\n", row.op, row.origin, row.count);
    else
      fmt::print("| {} | {} | {} | {} | {} | {} |\n", row.op, row.origin, row.count,
                 row.cost.flops.text(), row.cost.read.text(), row.cost.written.text());
  }
  fmt::print("| total | | {} | {} | {} | {} |\n", rows.size(), total.cost.flops.text(),
             total.cost.read.text(), total.cost.written.text());
}

void printNumbers(const std::vector<Row>& rows, const WorkTotals& total, bool everyOp) {
  fmt::print(
      "| op | where | count | FLOPs | read | written | live | time | bound | share |\n"
      "|---|---|--:|--:|--:|--:|--:|--:|---|--:|\n");
  for (const Row& row : everyOp ? rows : byPlace(rows)) {
    if (!row.known) {
      fmt::print("| {} | {} | {} | ? | ? | ? | {} | ? | ? | ? |\n", row.op, row.origin, row.count,
                 byteText(row.live));
      continue;
    }
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1f} % |\n", row.op, row.origin,
               row.count, countText(row.values.flops), byteText(row.values.read),
               byteText(row.values.written), byteText(row.live), timeText(row.seconds), row.bound(),
               total.seconds > 0 ? 100 * row.seconds / total.seconds : 0);
  }
  const double onMemory = total.seconds - total.computeSeconds - total.linkSeconds;
  auto share = [&](double seconds) { return 100 * seconds / total.seconds; };
  std::string bounds = fmt::format("{:.0f} % memory", total.seconds > 0 ? share(onMemory) : 100);
  if (total.linkSeconds > 0) bounds += fmt::format(", {:.0f} % link", share(total.linkSeconds));
  fmt::print("| total | | {} | {} | {} | {} | | {} | {} | 100.0 % |\n", rows.size(),
             countText(total.values.flops), byteText(total.values.read),
             byteText(total.values.written), timeText(total.seconds), bounds);
}

void printMemory(const ExplainReport& r, const EntryPoint& entry) {
  const HeldMemory held = heldMemory(*r.program, entry);
  if (!r.isKnown(entry)) {
    fmt::print("\nmemory in bytes: weights {}, states {}, inputs {}, outputs {}, temporaries {}\n",
               held.weights.text(), held.states.text(), held.inputs.text(), held.outputs.text(),
               largestText(liveBytes(entry)));
    return;
  }
  const double weights = evaluate(held.weights, r.sizes()),
               states = evaluate(held.states, r.sizes()), inputs = evaluate(held.inputs, r.sizes()),
               outputs = evaluate(held.outputs, r.sizes()),
               temporaries = temporaryBytes(entry, r.sizes());
  fmt::print("\npeak memory {}: weights {}, states {}, inputs {}, outputs {}, temporaries {}\n",
             byteText(weights + states + inputs + outputs + temporaries), byteText(weights),
             byteText(states), byteText(inputs), byteText(outputs), byteText(temporaries));
}

double peakMemory(const ExplainReport& r, const EntryPoint& entry) {
  const HeldMemory held = heldMemory(*r.program, entry);
  double bytes = temporaryBytes(entry, r.sizes());
  for (const DimExpr* e : {&held.weights, &held.states, &held.inputs, &held.outputs})
    bytes += evaluate(*e, r.sizes());
  return bytes;
}

// Where a rank more is worth nothing: the number behind which every larger one takes longer.
int64_t bestRanks(const std::vector<RankPrediction>& predictions) {
  return std::ranges::min_element(predictions, {}, &RankPrediction::seconds)->ranks;
}

void printStages(const std::vector<RankPrediction>& stages) {
  fmt::print(
      "\n| stage | time | in messages and collectives | memory of a rank |\n"
      "|--:|--:|--:|--:|\n");
  for (size_t s = 0; s < stages.size(); ++s)
    fmt::print("| {} | {} | {:.1f} % | {} |\n", s, timeText(stages[s].seconds),
               stages[s].seconds > 0 ? 100 * stages[s].linkSeconds / stages[s].seconds : 0.0,
               byteText(stages[s].memory));
  const RankPrediction all = predictOnStages(stages);
  fmt::print("\none run takes {}; of several, such as chunks of a prompt, one ends every {}\n",
             timeText(all.seconds), timeText(all.interval));
}

void printScaling(const std::vector<RankPrediction>& predictions) {
  if (predictions.empty()) return;
  fmt::print(
      "\n| ranks | time | speed-up | in collectives | memory of a rank |\n"
      "|--:|--:|--:|--:|--:|\n");
  for (const RankPrediction& p : predictions)
    fmt::print("| {} | {} | {:.2f} | {:.1f} % | {} |\n", p.ranks, timeText(p.seconds),
               predictions[0].seconds / p.seconds, 100 * p.linkSeconds / p.seconds,
               byteText(p.memory));
  if (const int64_t best = bestRanks(predictions); best < predictions.back().ranks)
    fmt::print("\nmore than {} ranks lose\n", best);
}

Json number(const DimExpr& e, const ExplainReport& r, bool known) {
  return known ? Json(evaluate(e, r.sizes())) : Json(e.text());
}

Json costJson(const Cost& cost, const ExplainReport& r, bool known) {
  return {{"flops", number(cost.flops, r, known)},
          {"read_bytes", number(cost.read, r, known)},
          {"written_bytes", number(cost.written, r, known)},
          {"held_bytes", number(cost.held, r, known)}};
}

Json memoryJson(const ExplainReport& r, const EntryPoint& entry, bool known) {
  const HeldMemory held = heldMemory(*r.program, entry);
  Json out = {{"weights_bytes", number(held.weights, r, known)},
              {"states_bytes", number(held.states, r, known)},
              {"inputs_bytes", number(held.inputs, r, known)},
              {"outputs_bytes", number(held.outputs, r, known)}};
  if (!known) {
    out["temporaries_bytes"] = Json::array();  // the largest of these
    for (const DimExpr& e : largest(liveBytes(entry))) out["temporaries_bytes"].push_back(e.text());
    return out;
  }
  out["temporaries_bytes"] = temporaryBytes(entry, r.sizes());
  out["peak_bytes"] = peakMemory(r, entry);
  return out;
}

}  // namespace

SymbolValues ExplainReport::sizes() const {
  SymbolValues all = values;
  program->addSizeParts(all);
  return all;
}

bool ExplainReport::isKnown(const EntryPoint& entry) const { return missing(entry).empty(); }

std::string ExplainReport::missing(const EntryPoint& entry) const {
  std::vector<std::string> names;
  for (const SymbolInfo& s : symbolsOf(*program, entry))
    if (!values.contains(s.name)) names.push_back(fmt::format("{} ({} to {})", s.name, s.lo, s.hi));
  return fmt::format("{}", fmt::join(names, ", "));
}

RankPrediction predictOnRanks(const ExplainReport& r, const EntryPoint& entry) {
  const WorkTotals total(rowsOf(r, entry));
  return {r.ranks, total.seconds, total.linkSeconds, peakMemory(r, entry), total.seconds};
}

RankPrediction predictOnStages(const std::vector<RankPrediction>& stages) {
  RankPrediction all{.ranks = 0};
  for (const RankPrediction& p : stages) {
    all.ranks += p.ranks;
    all.seconds += p.seconds;
    all.linkSeconds += p.linkSeconds;
    all.memory = std::max(all.memory, p.memory);
    all.interval = std::max(all.interval, p.interval);
  }
  return all;
}

void printExplanation(const ExplainReport& r, const RankPredictions& predictions) {
  fmt::print("{}: backend {}, stage {}\n", r.model, r.program->backend, r.stage);
  if (r.machine)
    fmt::print("device {}: {}FLOP/s in 16 bits, {}FLOP/s in f32, {}/s\n", r.machine->name,
               countText(r.machine->narrowFlops), countText(r.machine->wideFlops),
               byteText(r.machine->bytesPerSecond));
  if (r.link)
    fmt::print("one of {} ranks{}, link {}: {} and {}/s\n", r.ranks * r.stages,
               r.stages > 1 ? fmt::format(" in {} stages, the first", r.stages) : "", r.link->name,
               timeText(r.link->latency), byteText(r.link->bytesPerSecond));
  for (const EntryPoint* entry : r.entries) {
    const std::vector<Row> rows = rowsOf(r, *entry);
    const WorkTotals total(rows);
    std::vector<std::string> sizes;
    for (const SymbolInfo& s : symbolsOf(*r.program, *entry))
      sizes.push_back(r.values.contains(s.name) ? fmt::format("{}={}", s.name, r.values.at(s.name))
                                                : fmt::format("{} {} to {}", s.name, s.lo, s.hi));
    fmt::print("\nentry {}{}{}\n\n", entry->name, sizes.empty() ? "" : ": ",
               fmt::join(sizes, ", "));
    if (r.isKnown(*entry))
      printNumbers(rows, total, r.everyOp);
    else
      printPolynomials(rows, total, r.everyOp);
    if (total.unknown)
      fmt::print("\n{} calls have no cost: the backend did not note it\n", total.unknown);
    printMemory(r, *entry);
    if (auto found = predictions.stages.find(entry->name); found != predictions.stages.end())
      printStages(found->second);
    if (auto found = predictions.scaling.find(entry->name); found != predictions.scaling.end())
      printScaling(found->second);
  }
}

void printExplanationJson(const ExplainReport& r, const RankPredictions& predictions) {
  Json out = document("explain");
  out["model"] = r.model;
  out["backend"] = r.program->backend;
  out["stage"] = r.stage;
  out["values"] = Json::object();
  for (auto& [name, value] : r.values) out["values"][name] = value;
  if (r.machine)
    out["device"] = {{"name", r.machine->name},
                     {"narrow_flops_per_second", r.machine->narrowFlops},
                     {"wide_flops_per_second", r.machine->wideFlops},
                     {"bytes_per_second", r.machine->bytesPerSecond}};
  if (r.link)
    out["link"] = {{"ranks", r.ranks * r.stages},
                   {"stages", r.stages},
                   {"latency_s", r.link->latency},
                   {"bytes_per_second", r.link->bytesPerSecond}};
  out["entries"] = Json::array();
  for (const EntryPoint* entry : r.entries) {
    const bool known = r.isKnown(*entry);
    const std::vector<Row> rows = rowsOf(r, *entry);
    const WorkTotals total(rows);
    Json item = {{"name", entry->name}, {"ops", Json::array()}};
    for (const Row& row : rows) {
      Json op = {{"op", row.op}, {"origin", row.origin}};
      op["live_bytes"] = number(row.liveExpr, r, known);
      if (row.known) op.update(costJson(row.cost, r, known));
      if (row.known && known && r.machine) {
        op["time_s"] = row.seconds;
        op["bound"] = row.bound();
        op["share"] = total.seconds > 0 ? row.seconds / total.seconds : 0;
      }
      item["ops"].push_back(std::move(op));
    }
    item["total"] = costJson(total.cost, r, known);
    if (known && r.machine) {
      item["total"]["time_s"] = total.seconds;
      if (r.link) item["total"]["link_s"] = total.linkSeconds;
    }
    item["total"]["calls_without_cost"] = total.unknown;
    item["memory"] = memoryJson(r, *entry, known);
    auto add = [&](const char* key, const auto& of) {
      auto found = of.find(entry->name);
      if (found == of.end()) return;
      for (const RankPrediction& p : found->second)
        item[key].push_back({{"ranks", p.ranks},
                             {"time_s", p.seconds},
                             {"link_s", p.linkSeconds},
                             {"interval_s", p.interval},
                             {"peak_bytes", p.memory}});
    };
    add("stages", predictions.stages);
    add("scaling", predictions.scaling);
    out["entries"].push_back(std::move(item));
  }
  printJson(out);
}

}  // namespace lathe::cli
