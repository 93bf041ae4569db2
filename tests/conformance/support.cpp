// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/support.h"

#include <algorithm>
#include <map>
#include <set>

#include "frontend/graph_impl.h"
#include "lathe/backends/backend.h"
#include "lathe/frontend/compile.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"

namespace lathe::conformance {
namespace {

// Why fused ops of this kind were expanded: asked of the backend on the ops that layouts left
// alone.
std::string expansionOf(const Graph& graph, const std::string& backend, const OpRow& row) {
  const Backend& b = findBackend(backend);
  auto count = [&](std::string_view stage) {
    std::string text = irAt(graph, stage, {.backend = backend});
    size_t n = 0;
    for (size_t at = 0; (at = text.find(row.op + " ", at)) != std::string::npos; ++at) ++n;
    return n;
  };
  if (count("laid-out") >= count("recorded")) return "";
  std::set<std::string> reasons;
  graph.impl().finished().walk([&](mlir::Operation* op) {
    if (op->getName().getStringRef() != row.op) return;
    auto linear = llvm::dyn_cast<LinearOp>(op);
    std::string reason = b.whyNot(op);
    // A weight's layout is chosen before the backend is asked about it.
    bool packs = linear && linear.getW().getDefiningOp<WeightOp>() &&
                 reason == "the weight is computed at run time";
    if (packs) return;
    if (!reason.empty()) reasons.insert(reason);
  });
  std::string all;
  for (const std::string& r : reasons) all += (all.empty() ? "" : "; ") + r;
  return all.empty() ? "expanded by the layout passes" : all;
}

bool takes(const OpRow& row, DType dtype) {
  return std::find(row.dtypes.begin(), row.dtypes.end(), dtype) != row.dtypes.end();
}

}  // namespace

std::string_view nameOf(Support support) {
  return support == Support::Yes ? "yes" : support == Support::Expanded ? "expanded" : "no";
}

const std::vector<DType>& columns() {
  static const std::vector<DType> all{DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64,
                                      DType::I32, DType::I16, DType::I8,   DType::U8,  DType::Bool};
  return all;
}

std::vector<std::string> testedBackends() {
  std::vector<std::string> names = backendNames();
  std::erase(names, "reference");
  return names;
}

const Compiled& compiled(const std::string& backend, const OpRow& row, DType dtype) {
  static std::map<std::string, Compiled> cache;
  auto [it, fresh] =
      cache.emplace(backend + "/" + row.op + "/" + std::string(nameOf(dtype)), Compiled{});
  Compiled& result = it->second;
  if (!fresh) return result;
  const Graph graph = recordSamples(row.samples(dtype));
  try {
    result.program = std::make_shared<Program>(compile(graph, {.backend = backend}));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::Unsupported) throw;
    result.support = Support::No;
    result.reason = e.what();
    return result;
  }
  if (row.fused) result.reason = expansionOf(graph, backend, row);
  if (!result.reason.empty()) result.support = Support::Expanded;
  return result;
}

std::string supportPage() {
  std::string page =
      "# What each backend runs\n\n"
      "Generated from the conformance tests by `scripts/generate_docs`. `yes`: runs as one op and\n"
      "agrees with the reference backend in float64 on every sample. `expanded`: a fused op that\n"
      "runs as its decomposition, at least for some samples. `no`: refused when compiling.\n"
      "`-`: the op does not take the dtype. [limits.md](limits.md) has the reasons. The reference\n"
      "backend runs everything.\n";
  for (const std::string& backend : testedBackends()) {
    page += "\n## " + backend + "\n\n| op |";
    for (DType d : columns()) page += " " + std::string(nameOf(d)) + " |";
    page += "\n|---|";
    for (size_t i = 0; i < columns().size(); ++i) page += "---|";
    page += "\n";
    for (const OpRow& row : opTable()) {
      page += "| `" + row.op + "` |";
      for (DType d : columns())
        page += " " +
                (takes(row, d) ? std::string(nameOf(compiled(backend, row, d).support)) : "-") +
                " |";
      page += "\n";
    }
  }
  return page;
}

std::string limitsTable() {
  std::string text = kLimitsBegin;
  text += "| backend | op | dtypes | what | why |\n|---|---|---|---|---|\n";
  for (const std::string& backend : testedBackends())
    for (const OpRow& row : opTable()) {
      // One line for dtypes that share a reason.
      std::map<std::pair<std::string, std::string>, std::string> lines;
      for (DType d : row.dtypes) {
        const Compiled& c = compiled(backend, row, d);
        if (c.support == Support::Yes) continue;
        std::string& dtypes = lines[{std::string(nameOf(c.support)), c.reason}];
        dtypes += (dtypes.empty() ? "" : ", ") + std::string(nameOf(d));
      }
      for (const auto& [key, dtypes] : lines)
        text += "| " + backend + " | `" + row.op + "` | " + dtypes + " | " + key.first + " | " +
                key.second + " |\n";
    }
  return text + kLimitsEnd;
}

}  // namespace lathe::conformance
