// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/agreement.h"

#include "lathe/frontend/compile.h"
#include "tests/conformance/support.h"
#include "tests/conformance/tolerance.h"

namespace lathe::conformance {
namespace {

Session open(std::shared_ptr<const Program> program, const Data& data) {
  Session session(std::move(program), {.threads = 2, .device = "host"});
  session.bindWeights(data.weights);
  return session;
}

}  // namespace

std::string agreement(const std::string& backend, const OpRow& row, DType dtype) {
  const std::vector<Sample> samples = row.samples(dtype);
  const Graph graph = recordSamples(samples);
  auto onReference = [&](bool float64) {
    return std::make_shared<Program>(
        compile(graph, {.backend = "reference", .backendOptions = {.float64 = float64}}));
  };
  std::shared_ptr<const Program> program =
      backend == "reference" ? onReference(false) : compiled(backend, row, dtype).program;
  if (!program) return "";
  Data data = makeData(samples, allSizes()[0], row.op);
  Session tested = open(program, data);
  Session wide = open(onReference(true), data);
  Session narrow = open(onReference(false), data);
  std::string differences;
  for (Sizes sizes : allSizes()) {
    data.inputs = makeData(samples, sizes, row.op).inputs;
    const Arrays got = tested.run("forward", data.inputs);
    const Arrays want = wide.run("forward", data.inputs);
    const Arrays wantRounded = narrow.run("forward", data.inputs);
    for (const auto& [name, value] : got) {
      const Sample& sample = samples[std::stoul(name)];
      const Array& oracle = (sample.ownDtype ? wantRounded : want).at(name);
      Tolerance t = toleranceOf(row.op.substr(6), value.dtype(), sample.exact);
      if (sample.ownDtype) t.steps *= 4;  // the oracle rounds as well, and more often
      const std::string difference = firstDifference(
          value, oracle, t,
          backend + " " + row.op.substr(6) + " " + std::string(lathe::nameOf(value.dtype())));
      if (difference.empty()) continue;
      differences += sample.name + " " + name + " rows=" + std::to_string(sizes.rows) +
                     " cols=" + std::to_string(sizes.cols) + ": " + difference + "\n";
    }
  }
  return differences;
}

}  // namespace lathe::conformance
