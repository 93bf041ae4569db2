// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/agreement.h"

#include <algorithm>
#include <optional>

#include "lathe/frontend/compile.h"
#include "tests/conformance/support.h"
#include "tests/conformance/tolerance.h"
#include "tests/depth.h"

namespace lathe::conformance {
namespace {

Session open(std::shared_ptr<const Program> program, const Data& data) {
  Session session(std::move(program), {.threads = 2, .device = "host"});
  session.bindWeights(data.weights);
  return session;
}

// What the reference computes of a row and dtype at every size.
struct Oracle {
  std::string op;
  DType dtype;
  std::vector<Sample> samples;
  Arrays weights;
  std::vector<Arrays> inputs, wide, narrow;  // by allSizes()
};

Oracle oracleOf(const OpRow& row, DType dtype) {
  Oracle o{row.op, dtype, row.samples(dtype), {}, {}, {}, {}};
  const Graph graph = recordSamples(o.samples);
  const Data first = makeData(o.samples, allSizes()[0], row.op);
  o.weights = first.weights;
  auto onReference = [&](bool float64) {
    return open(std::make_shared<Program>(compile(
                    graph, {.backend = "reference", .backendOptions = {.float64 = float64}})),
                first);
  };
  Session wide = onReference(true), narrow = onReference(false);
  auto copied = [](const Arrays& results) {
    Arrays own;
    for (const auto& [name, value] : results) own[name] = value.clone();
    return own;
  };
  for (Sizes sizes : allSizes()) {
    o.inputs.push_back(makeData(o.samples, sizes, row.op).inputs);
    o.wide.push_back(copied(wide.run("forward", o.inputs.back())));
    o.narrow.push_back(copied(narrow.run("forward", o.inputs.back())));
  }
  return o;
}

// The one of an op whose backends are asked one after the other is computed once.
const Oracle& keptOracle(const OpRow& row, DType dtype) {
  static std::vector<Oracle> kept;
  if (!kept.empty() && kept[0].op != row.op) kept.clear();
  for (const Oracle& o : kept)
    if (o.dtype == dtype) return o;
  return kept.emplace_back(oracleOf(row, dtype));
}

}  // namespace

std::vector<DType> testedDtypes(const OpRow& row) {
  if (test::inDepth()) return row.dtypes;
  size_t turn = 0;
  while (opTable()[turn].op != row.op) ++turn;
  std::vector<DType> tested;
  const std::vector<DType> classes[] = {{DType::F32},
                                        {DType::F64},
                                        {DType::BF16, DType::F16},
                                        {DType::I64, DType::I32, DType::I16, DType::I8, DType::U8},
                                        {DType::I4, DType::U4},
                                        {DType::Bool}};
  for (const std::vector<DType>& alike : classes) {
    std::vector<DType> taken;
    for (DType d : alike)
      if (std::ranges::find(row.dtypes, d) != row.dtypes.end()) taken.push_back(d);
    if (!taken.empty()) tested.push_back(taken[turn % taken.size()]);
  }
  return tested;
}

std::string agreement(const std::string& backend, const OpRow& row, DType dtype) {
  const Oracle& oracle = keptOracle(row, dtype);
  std::optional<Session> tested;
  if (backend != "reference") {
    const auto program = compiled(backend, row, dtype).program;
    if (!program) return "";
    tested.emplace(open(program, {{}, oracle.weights}));
  }
  std::string differences;
  for (size_t s = 0; s < allSizes().size(); ++s) {
    const Sizes sizes = allSizes()[s];
    const Arrays got = tested ? tested->run("forward", oracle.inputs[s]) : oracle.narrow[s];
    for (const auto& [name, value] : got) {
      const Sample& sample = oracle.samples[std::stoul(name)];
      const Array& right = (sample.ownDtype ? oracle.narrow : oracle.wide)[s].at(name);
      Tolerance t = toleranceOf(row.op.substr(6), value.dtype(), sample.exact);
      if (sample.ownDtype) t.steps *= 4;  // the oracle rounds as well, and more often
      const std::string difference = firstDifference(
          value, right, t,
          backend + " " + row.op.substr(6) + " " + std::string(lathe::nameOf(value.dtype())));
      if (difference.empty()) continue;
      differences += sample.name + " " + name + " rows=" + std::to_string(sizes.rows) +
                     " cols=" + std::to_string(sizes.cols) + ": " + difference + "\n";
    }
  }
  return differences;
}

}  // namespace lathe::conformance
