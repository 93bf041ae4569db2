// SPDX-License-Identifier: Apache-2.0
// Sessions run with something else than they take.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

// A session that could run.
struct Ready {
  Session session{linearProgram()};
  Ready() { session.bindWeights(linearWeights()); }
  void run(const std::function<void(Arrays&)>& change) {
    Arrays inputs = linearInputs();
    change(inputs);
    session.run("forward", inputs);
  }
};
Session movedFrom() {
  Session s(linearProgram());
  Session other = std::move(s);
  return s;  // empty by now
}
const std::vector<std::string> kMoved = {"was moved from"};

}  // namespace

Table runs() {
  return blamingNobody({
      {"unknown_entry",
       [] {
         Ready r;
         r.session.run("backward", {});
       },
       kArgument,
       {"no entry point 'backward'; the program has forward"}},
      {"entry_without_name",
       [] {
         Ready r;
         r.session.entryIndex("");
       },
       kArgument,
       {"no entry point ''"}},
      {"entry_index_past_the_end",
       [] {
         Ready r;
         std::vector<Array> out;
         r.session.run(1, {}, out);
       },
       kArgument,
       {"entry point 1", "the program has 1", "forward"}},
      {"entry_index_far_past_the_end",
       [] {
         Ready r;
         std::vector<Array> out;
         r.session.run(size_t(-1), {}, out);
       },
       kArgument,
       {"entry point 18446744073709551615"}},
      {"no_inputs",
       [] {
         Ready r;
         r.session.run("forward", {});
       },
       kArgument,
       {"input 'x' is missing", "more"}},
      {"missing_input",
       [] {
         Ready r;
         r.run([](Arrays& in) { in.erase("more"); });
       },
       kArgument,
       {"input 'more' is missing"}},
      {"extra_input",
       [] {
         Ready r;
         r.run([](Arrays& in) { in["z"] = Array(DType::F32, {1}); });
       },
       kArgument,
       {"has no input 'z'; it takes x, more"}},
      {"undefined_input",
       [] {
         Ready r;
         r.run([](Arrays& in) { in["x"] = Array(); });
       },
       kArgument,
       {"'x'", "missing"}},
      {"input_of_another_dtype",
       [] {
         Ready r;
         r.run([](Arrays& in) { in["x"] = Array(DType::BF16, {2, 4}); });
       },
       kArgument,
       {"'x'", "bf16[2, 4]", "Array::to"}},
      {"input_of_another_rank",
       [] {
         Ready r;
         r.run([](Arrays& in) { in["x"] = Array(DType::F32, {8}); });
       },
       kArgument,
       {"'x'", "the ranks differ"}},
      {"input_of_another_size",
       [] {
         Ready r;
         r.run([](Arrays& in) { in["x"] = Array(DType::F32, {2, 5}); });
       },
       kArgument,
       {"'x'", "f32[2, 5]", "f32[2, 4]"}},
      {"inputs_of_two_batches",
       [] {
         Ready r;
         r.run([](Arrays& in) { in["more"] = Array(DType::I64, {3}); });
       },
       kArgument,
       {"'batch' is 2 in another input"}},
      {"batch_beyond_its_range",
       [] {
         Ready r;
         r.run([](Arrays& in) {
           in = {{"x", Array(DType::F32, {9, 4})}, {"more", Array(DType::I64, {9})}};
         });
       },
       kArgument,
       {"'batch' = 9 is outside its range 1 to 8"}},
      {"batch_of_nothing",
       [] {
         Ready r;
         r.run([](Arrays& in) {
           in = {{"x", Array(DType::F32, {0, 4})}, {"more", Array(DType::I64, {0})}};
         });
       },
       kArgument,
       {"'batch' = 0 is outside its range"}},
      {"positional_inputs_too_few",
       [] {
         Ready r;
         std::vector<Array> out, in = {Array(DType::F32, {2, 4})};
         r.session.run(0, in, out);
       },
       kArgument,
       {"takes 2 inputs, got 1"}},
      {"positional_inputs_too_many",
       [] {
         Ready r;
         std::vector<Array> out, in(3, Array(DType::F32, {2, 4}));
         r.session.run(0, in, out);
       },
       kArgument,
       {"takes 2 inputs, got 3"}},
      {"positional_inputs_swapped",
       [] {
         Ready r;
         std::vector<Array> out, in = {Array(DType::I64, {2}), Array(DType::F32, {2, 4})};
         r.session.run(0, in, out);
       },
       kArgument,
       {"'x'", "i64[2]"}},
      {"unknown_output",
       [] {
         Ready r;
         r.session.run("forward", linearInputs()).at("z");
       },
       kArgument,
       {"no Array 'z'", "sum, y"}},
      {"unknown_symbol",
       [] {
         Ready r;
         r.session.setSymbol("seq", 4);
       },
       kArgument,
       {"the program has no symbol 'seq'", "room"}},
      {"symbol_outside_its_range",
       [] {
         Ready r;
         r.session.setSymbol("room", 17);
       },
       kArgument,
       {"'room' = 17 is outside its range 2 to 16"}},
      {"symbol_below_zero",
       [] {
         Ready r;
         r.session.setSymbol("room", -2);
       },
       kArgument,
       {"'room' = -2 is outside its range"}},
      {"symbol_that_is_no_multiple",
       [] {
         Ready r;
         r.session.setSymbol("room", 3);
       },
       kArgument,
       {"'room' = 3", "multiples of 2"}},
      {"symbol_that_inputs_have",
       [] {
         Ready r;
         r.session.setSymbol("batch", 3);
       },
       kArgument,
       {"'batch'", "inputs"}},
      {"unknown_state",
       [] {
         Ready r;
         r.session.state("k_cache");
       },
       kArgument,
       {"the program has no state 'k_cache'", "kept"}},
      {"profile_of_an_unknown_entry",
       [] {
         Ready r;
         r.session.profile("backward");
       },
       kArgument,
       {"no entry point 'backward'"}},
      {"session_run_by_its_own_weight_source",
       [] {
         Ready r;
         r.session.bindWeights([&](const std::string&) {
           r.session.run("forward", linearInputs());
           return Array();
         });
       },
       kArgument,
       {"the session is running"}},
      {"run_of_moved", [] { movedFrom().run("forward", {}); }, kArgument, kMoved},
      {"positional_run_of_moved",
       [] {
         std::vector<Array> out;
         movedFrom().run(0, {}, out);
       },
       kArgument, kMoved},
      {"bind_of_moved", [] { movedFrom().bindWeights(linearWeights()); }, kArgument, kMoved},
      {"random_bind_of_moved", [] { movedFrom().bindRandomWeights(1); }, kArgument, kMoved},
      {"entry_index_of_moved", [] { movedFrom().entryIndex("forward"); }, kArgument, kMoved},
      {"symbol_of_moved", [] { movedFrom().setSymbol("room", 4); }, kArgument, kMoved},
      {"reset_of_moved", [] { movedFrom().resetStates(); }, kArgument, kMoved},
      {"state_of_moved", [] { movedFrom().state("kept"); }, kArgument, kMoved},
      {"memory_of_moved", [] { movedFrom().memory(); }, kArgument, kMoved},
      {"program_of_moved", [] { movedFrom().program(); }, kArgument, kMoved},
      {"device_of_moved", [] { movedFrom().device(); }, kArgument, kMoved},
      {"profile_of_moved", [] { movedFrom().profile("forward"); }, kArgument, kMoved},
  });
}

}  // namespace lathe::misuse
