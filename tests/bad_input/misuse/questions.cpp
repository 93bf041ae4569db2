// SPDX-License-Identifier: Apache-2.0
// The questions about a graph.
#include <cmath>

#include "lathe/inspect/bisect.h"
#include "lathe/inspect/check_numerics.h"
#include "lathe/inspect/graph_diff.h"
#include "lathe/inspect/why_not.h"
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {

Table questions() {
  auto trial = [](auto set) {
    return [=] {
      Finished m;
      TrialOptions options;
      options.compile.backend = "reference";
      set(options);
      checkNumerics(m.g, options);
    };
  };
  return blamingNobody({
      {"bisect_of_nothing", [] { bisect(Graph()); }, kArgument, {"the graph is empty"}},
      {"bisect_of_moved",
       [] {
         Finished m;
         Graph other = std::move(m.g);
         bisect(m.g);
       },
       kArgument,
       {"was moved from"}},
      {"bisect_on_no_backend",
       [] {
         Finished m;
         BisectOptions o;
         o.trial.compile.backend = "tpu";
         bisect(m.g, o);
       },
       kUnsupported,
       {"no backend 'tpu'"}},
      {"numerics_of_nothing", [] { checkNumerics(Graph()); }, kArgument, {"the graph is empty"}},
      {"numerics_of_moved",
       [] {
         Finished m;
         Graph other = std::move(m.g);
         checkNumerics(m.g);
       },
       kArgument,
       {"was moved from"}},
      {"trial_of_an_unknown_size",
       trial([](TrialOptions& o) { o.sizes = {{"seq", 4}}; }),
       kArgument,
       {"no size 'seq'", "batch"}},
      {"trial_of_a_size_outside_its_range",
       trial([](TrialOptions& o) { o.sizes = {{"batch", 9}}; }),
       kArgument,
       {"'batch'", "1 to 8", "got 9"}},
      {"trial_of_a_size_below_zero",
       trial([](TrialOptions& o) { o.sizes = {{"batch", -1}}; }),
       kArgument,
       {"'batch'", "got -1"}},
      {"trial_of_an_unknown_input",
       trial([](TrialOptions& o) { o.inputs = {{"z", Array(DType::F32, {2, 4})}}; }),
       kArgument,
       {"no entry point has an input 'z'"}},
      {"trial_of_an_undefined_input",
       trial([](TrialOptions& o) { o.inputs = {{"x", Array()}}; }),
       kArgument,
       {"'x'", "no array"}},
      {"trial_of_an_input_of_another_dtype",
       trial([](TrialOptions& o) { o.inputs = {{"x", Array(DType::I64, {2, 4})}}; }),
       kArgument,
       {"'x'", "i64"}},
      {"trial_of_an_input_of_another_shape",
       trial([](TrialOptions& o) { o.inputs = {{"x", Array(DType::F32, {2, 5})}}; }),
       kArgument,
       {"'x'", "[2, 5]"}},
      {"trial_of_nan_tolerance",
       trial([](TrialOptions& o) { o.tolerance = std::nan(""); }),
       kArgument,
       {"tolerance", "nan"}},
      {"trial_of_negative_tolerance",
       trial([](TrialOptions& o) { o.tolerance = -1; }),
       kArgument,
       {"tolerance", "-1"}},
      {"diff_of_nothing",
       [] {
         Finished m;
         diff(m.g, Graph());
       },
       kArgument,
       {"the graph is empty"}},
      {"diff_at_a_late_stage",
       [] {
         Finished m;
         diff(m.g, m.g, {.stage = "lowered"});
       },
       kArgument,
       {"expected the stage recorded, canonical or fused, got 'lowered'"}},
      {"diff_at_no_stage",
       [] {
         Finished m;
         diff(m.g, m.g, {.stage = ""});
       },
       kArgument,
       {"stage ''"}},
      {"diff_of_moved",
       [] {
         Finished a, b;
         Graph other = std::move(a.g);
         diff(a.g, b.g);
       },
       kArgument,
       {"was moved from"}},
      {"why_not_of_nothing", [] { whyNot(Graph()); }, kArgument, {"the graph is empty"}},
      {"why_not_of_no_op",
       [] {
         Finished m;
         whyNot(m.g, {.op = "frobnicate"});
       },
       kArgument,
       {"no op and no pattern has a name like 'frobnicate'"}},
      {"why_not_at_no_line",
       [] {
         Finished m;
         whyNot(m.g, {.at = "nowhere.cc:1"});
       },
       kArgument,
       {"no op was recorded at 'nowhere.cc:1'"}},
      {"why_not_on_no_backend",
       [] {
         Finished m;
         whyNot(m.g, {.compile = {.backend = "tpu"}});
       },
       kUnsupported,
       {"no backend 'tpu'"}},
  });
}

}  // namespace lathe::misuse
