// SPDX-License-Identifier: Apache-2.0
// Rows of many chunks a thread, of which only the last one is not every thread's.
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "tests/closeness.h"
#include "tests/unit/cuda/host_program.h"

namespace lathe::cuda {
namespace {

TEST(LongRows, AreTheReferences) {
  for (int64_t length : {4096, 4100, 9000, 10000, 16384, 20008}) {
    Graph g;
    const Dim rows = g.dim("rows", 1, 4);
    Tensor x = g.input("x", DType::F32, {rows, length});
    g.output("softmax", fused::softmax(x, -1));
    g.output("norm", fused::rmsNorm(x, g.weight("gain", DType::F32, {length}), 1e-5,
                                    GainRounding::after_gain));
    g.output("largest", argmax(x, -1));
    g.output("centred", x - reduceMean(x, {-1}, true));
    HostProgram cuda(std::make_shared<Program>(compile(g, {.backend = "cuda"})), "check");
    Session reference(compile(g, {.backend = "reference"}));
    cuda.session().bindRandomWeights(3);
    reference.bindRandomWeights(3);
    Array a(DType::F32, {2, length});
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, std::sin(double(i * i % 4099)) * 2);
    const Arrays got = cuda.session().run("forward", {{"x", a}}),
                 want = reference.run("forward", {{"x", a}});
    for (const auto& [name, value] : want)
      EXPECT_LE(largestError(got.at(name), value), 2e-5) << name << " of " << length;
  }
}

}  // namespace
}  // namespace lathe::cuda
