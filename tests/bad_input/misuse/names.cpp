// SPDX-License-Identifier: Apache-2.0
// Names that are empty, of bytes that are no text, or taken.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

const std::string kBytes = "bad\xff\xfename";
const std::vector<std::string> kNoText = {"invalid UTF-8", "byte 3"};
const std::vector<std::string> kEmpty = {"name is empty"};

}  // namespace

Table spelling() {
  return {
      {"graph_of_bytes", [] { Graph g(kBytes); }, kArgument, kNoText},
      {"dim_of_bytes", [] { Graph().dim(kBytes, 1, 2); }, kArgument, {"is no symbol name"}},
      {"entry_of_bytes", [] { Graph().entry(kBytes); }, kArgument, kNoText},
      {"input_of_bytes", [] { Graph().input(kBytes, DType::F32, {4}); }, kArgument, kNoText},
      {"output_of_bytes",
       [] {
         Model m;
         m.g.output(kBytes, m.x);
       },
       kArgument, kNoText},
      {"observe_of_bytes",
       [] {
         Model m;
         m.g.observe(kBytes, m.x);
       },
       kArgument,
       {"invalid UTF-8"}},
      {"weight_of_bytes", [] { Graph().weight(kBytes, DType::F32, {4}); }, kArgument, kNoText},
      {"state_of_bytes", [] { Graph().state(kBytes, DType::F32, {4}); }, kArgument, kNoText},
      {"module_of_bytes",
       [] {
         Model m;
         nn::Linear(m.g, kBytes, 4, 3)(m.x);
       },
       kArgument,
       {"invalid UTF-8"}},
      {"weight_name_of_bytes",
       [] {
         Model m;
         nn::Linear(m.g, "fc", 4, 3, {.weightName = kBytes})(m.x);
       },
       kArgument,
       {"invalid UTF-8"}},
      {"scope_of_bytes",
       [] {
         Model m;
         Scope scope(m.g.recorder(), kBytes, std::source_location::current());
       },
       kArgument, kNoText},
      {"overlong_name",
       [] { Graph().input("\xc0\xaf", DType::F32, {4}); },
       kArgument,
       {"invalid UTF-8", "byte 0"}},
      {"surrogate_name",
       [] { Graph().weight("\xed\xa0\x80", DType::F32, {4}); },
       kArgument,
       {"invalid UTF-8"}},
      {"name_with_a_null",
       [] { Graph().input(std::string_view("a\0b", 3), DType::F32, {4}); },
       kArgument,
       {"zero byte"}},
      {"entry_with_a_null",
       [] { Graph().entry(std::string_view("a\0b", 3)); },
       kArgument,
       {"zero byte"}},
      {"dim_without_name", [] { Graph().dim("", 1, 2); }, kArgument, {"'' is no symbol name"}},
      {"dim_with_blank", [] { Graph().dim("a b", 1, 2); }, kArgument, {"'a b' is no symbol name"}},
      {"dim_that_is_a_number",
       [] { Graph().dim("4", 1, 2); },
       kArgument,
       {"'4' is no symbol name"}},
      {"dim_that_is_a_sum",
       [] { Graph().dim("a+b", 1, 2); },
       kArgument,
       {"'a+b' is no symbol name"}},
      {"dim_with_a_dot", [] { Graph().dim("a.b", 1, 2); }, kArgument, {"'a.b' is no symbol name"}},
      {"dim_that_is_unknown", [] { Graph().dim("?", 1, 2); }, kArgument, {"'?' is no symbol name"}},
      {"entry_without_name", [] { Graph().entry(""); }, kArgument, {"is empty"}},
      {"input_without_name", [] { Graph().input("", DType::F32, {4}); }, kArgument, kEmpty},
      {"output_without_name",
       [] {
         Model m;
         m.g.output("", m.x);
       },
       kArgument, kEmpty},
      {"observe_without_name",
       [] {
         Model m;
         m.g.observe("", m.x);
       },
       kArgument,
       {"expected a name"}},
      {"weight_without_name", [] { Graph().weight("", DType::F32, {4}); }, kArgument, kEmpty},
      {"state_without_name", [] { Graph().state("", DType::F32, {4}); }, kArgument, kEmpty},
      {"module_weight_without_name",
       [] {
         Model m;
         nn::Linear(m.g, "", 4, 3, {.weightName = ""})(m.x);
       },
       kArgument, kEmpty},
  };
}

Table takenNames() {
  return {
      {"input_twice",
       [] {
         Model m;
         m.g.input("x", DType::F32, {4});
       },
       kArgument,
       {"input 'x' is declared twice"}},
      {"output_twice",
       [] {
         Model m;
         m.g.output("y", m.x);
         m.g.output("y", m.x);
       },
       kArgument,
       {"output 'y' is declared twice"}},
      {"observed_twice",
       [] {
         Model m;
         m.g.observe("y", m.x);
         m.g.observe("y", m.x);
       },
       kArgument,
       {"'observed.y' is declared twice"}},
      {"entry_twice",
       [] {
         Model m;
         m.g.output("y", m.x);
         m.g.entry("forward");
       },
       kArgument,
       {"entry point name 'forward'", "taken"}},
      {"entry_behind_a_weight",
       [] {
         Graph g;
         g.weight("w", DType::F32, {4});
         g.entry("forward");
       },
       kArgument,
       {"'forward' is taken", "begin with Graph::entry"}},
      {"entry_load", [] { Graph().entry("load"); }, kArgument, {"'load'", "reserved"}},
      {"entry_named_as_a_dim",
       [] {
         Graph g;
         g.dim("n", 1, 2);
         g.entry("n");
       },
       kArgument,
       {"'n'", "taken"}},
      {"dim_named_as_an_entry",
       [] {
         Model m;
         m.g.dim("forward", 1, 2);
       },
       kArgument,
       {"'forward'", "taken", "entry point"}},
      {"dim_named_as_a_state",
       [] {
         Graph g;
         g.state("s", DType::F32, {4});
         g.dim("s", 1, 2);
       },
       kArgument,
       {"'s'", "taken", "state"}},
      {"state_named_as_a_dim",
       [] {
         Model m;
         m.g.state("batch", DType::F32, {4});
       },
       kArgument,
       {"'batch'", "taken", "symbol"}},
      {"state_named_as_an_entry",
       [] {
         Model m;
         m.g.state("forward", DType::F32, {4});
       },
       kArgument,
       {"'forward'", "taken", "entry point"}},
      {"weight_of_two_shapes",
       [] {
         Graph g;
         g.weight("w", DType::F32, {4, 4});
         g.weight("w", DType::F32, {4, 5});
       },
       kArgument,
       {"weight 'w' was declared as f32[4, 4], now f32[4, 5]"}},
      {"weight_of_two_dtypes",
       [] {
         Graph g;
         g.weight("w", DType::F32, {4});
         g.weight("w", DType::BF16, {4});
       },
       kArgument,
       {"weight 'w' was declared as f32[4], now bf16[4]"}},
      {"state_of_two_dtypes",
       [] {
         Graph g;
         g.state("s", DType::F32, {4});
         g.state("s", DType::BF16, {4});
       },
       kArgument,
       {"state 's' was declared as f32[4]"}},
      {"state_of_two_shapes",
       [] {
         Graph g;
         g.state("s", DType::F32, {4});
         g.state("s", DType::F32, {5});
       },
       kArgument,
       {"state 's' was declared as f32[4]"}},
      {"modules_of_one_path_and_two_sizes",
       [] {
         Model m;
         nn::Linear(m.g, "fc", 4, 3)(m.x);
         nn::Linear(m.g, "fc", 4, 5)(m.x);
       },
       kArgument,
       {"weight 'fc.weight' was declared as f32[3, 4], now f32[5, 4]"}},
      {"cache_declared_for_two_sizes",
       [] {
         Graph g;
         nn::TransformerLM lm(g, "",
                              {.vocabSize = 8, .dModel = 4, .dHidden = 8, .layers = 1, .heads = 1});
         lm.declareCache(1, 8);
         lm.declareCache(1, 9);
       },
       kArgument,
       {"state 'k_cache.0' was declared as f32[1, 1, 8, 4], now f32[1, 1, 9, 4]",
        "give both the same type"}},
  };
}

}  // namespace lathe::misuse
