// SPDX-License-Identifier: Apache-2.0
// What a compiled program refuses when it runs: ids, positions, shapes, symbols and weights.
#include <limits>

#include <lathe/lathe.h>

#include "tests/bad_input/bad_input.h"

namespace lathe {
namespace {

constexpr int64_t kVocabulary = 11, kCapacity = 8;

// A language model with a cached step, and a second input that shares a symbol.
Graph languageModel() {
  Graph g("lm");
  Dim batch = g.dim("batch", 1, 2), seq = g.dim("seq", 1, 6);
  Dim cache = g.dim("cache", 1, kCapacity);
  nn::TransformerLM lm(g, "",
                       {.vocabSize = kVocabulary,
                        .dModel = 16,
                        .dHidden = 24,
                        .layers = 1,
                        .heads = 2,
                        .maxPositions = kCapacity});
  lm.declareCache(batch, cache);
  g.entry("forward");
  g.output("logits", lm.forward(g.input("ids", DType::I64, {batch, seq})));
  g.entry("step");
  Tensor ids = g.input("ids", DType::I64, {batch, seq});
  g.output("logits", lm.step(ids, g.input("positions", DType::I64, {batch})));
  return g;
}

std::shared_ptr<const Program> model(const std::string& backend) {
  static std::map<std::string, std::shared_ptr<const Program>> made;
  auto& program = made[backend];
  if (!program) program = std::make_shared<Program>(compile(languageModel(), {.backend = backend}));
  return program;
}

Array ints(std::vector<int64_t> values, Shape shape) {
  return Array::fromInts(values, std::move(shape));
}

using Action = std::function<void(Session&)>;
// The same on each backend, with weights bound and a cache of kCapacity.
void both(std::vector<BadInput>& rows, const std::string& name, std::vector<std::string> words,
          Action action) {
  for (const char* backend : {"cpu", "reference"})
    rows.push_back({name + "_" + backend, ErrorCode::InvalidArgument, words, [=] {
                      Session session(model(backend));
                      session.bindRandomWeights(1);
                      session.setSymbol("cache", kCapacity);
                      action(session);
                    }});
}
BadInput onCpu(std::string name, std::vector<std::string> words, Action action) {
  return {std::move(name), ErrorCode::InvalidArgument, std::move(words),
          [action = std::move(action)] {
            Session session(model("cpu"));
            action(session);
          }};
}

void forward(Session& s, int64_t id) { s.run("forward", {{"ids", ints({1, id}, {1, 2})}}); }
void step(Session& s, int64_t position, int64_t tokens) {
  s.run("step", {{"ids", ints(std::vector<int64_t>(size_t(tokens), 3), {1, tokens})},
                 {"positions", ints({position}, {1})}});
}

std::vector<BadInput> values() {
  std::vector<BadInput> all;
  // Every message shows the value, so that a user can find it in the input.
  for (int64_t id : {int64_t(-1), kVocabulary, int64_t(std::numeric_limits<int32_t>::max()),
                     int64_t(std::numeric_limits<int32_t>::min())}) {
    std::string name = "token_id_" + (id < 0 ? "minus_" + std::to_string(-id) : std::to_string(id));
    both(all, name, {std::to_string(id)}, [=](Session& s) { forward(s, id); });
  }
  for (int64_t id : {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()})
    both(all, id < 0 ? "token_id_least" : "token_id_most", {"ind"},
         [=](Session& s) { forward(s, id); });
  both(all, "position_at_the_capacity", {"8"}, [](Session& s) { step(s, kCapacity, 1); });
  both(all, "prompt_past_the_capacity", {"8"}, [](Session& s) { step(s, kCapacity - 1, 2); });
  both(all, "position_below_zero", {"-1"}, [](Session& s) { step(s, -1, 1); });
  both(all, "position_most", {"ind"},
       [](Session& s) { step(s, std::numeric_limits<int64_t>::max(), 1); });
  both(all, "position_past_a_smaller_cache", {"position 4"}, [](Session& s) {
    s.setSymbol("cache", 4);
    step(s, 4, 1);
  });
  return all;
}

std::vector<BadInput> shapes() {
  Array good = ints({1, 2}, {1, 2});
  auto forwardOf = [](Array ids) {
    return [ids](Session& s) {
      s.bindRandomWeights(1);
      s.run("forward", {{"ids", ids}});
    };
  };
  return {
      onCpu("sequence_past_its_range", {"'seq' = 7 is outside its range 1 to 6", "'forward'"},
            forwardOf(Array(DType::I64, {1, 7}))),
      onCpu("empty_sequence", {"'seq' = 0 is outside its range 1 to 6"},
            forwardOf(Array(DType::I64, {1, 0}))),
      onCpu("batch_past_its_range", {"'batch' = 3 is outside its range 1 to 2"},
            forwardOf(Array(DType::I64, {3, 2}))),
      onCpu("input_of_another_rank",
            {"input 'ids' of entry point 'forward'", "expected i64[batch, seq], got i64[2]"},
            forwardOf(Array(DType::I64, {2}))),
      onCpu("input_of_another_dtype", {"expected i64[batch, seq], got f32[1, 2]", "Array::to"},
            forwardOf(Array(DType::F32, {1, 2}))),
      onCpu("input_without_a_value", {"input 'ids'", "it is missing"}, forwardOf(Array())),
      onCpu("two_sizes_for_one_symbol", {"input 'positions'", "'batch' is 1 in another input"},
            [=](Session& s) {
              s.bindRandomWeights(1);
              s.run("step", {{"ids", good}, {"positions", ints({0, 0}, {2})}});
            }),
      onCpu("missing_input", {"'step'", "input 'positions' is missing; it takes ids, positions"},
            [=](Session& s) {
              s.bindRandomWeights(1);
              s.run("step", {{"ids", good}});
            }),
      onCpu("extra_input", {"entry point 'forward' has no input 'mask'; it takes ids"},
            [=](Session& s) {
              s.bindRandomWeights(1);
              s.run("forward", {{"ids", good}, {"mask", good}});
            }),
      onCpu("inputs_by_position_of_another_count", {"'forward' takes 1 inputs, got 2"},
            [=](Session& s) {
              s.bindRandomWeights(1);
              std::vector<Array> outputs;
              s.run(s.entryIndex("forward"), std::vector<Array>{good, good}, outputs);
            }),
      onCpu("unknown_entry", {"no entry point 'backward'; the program has forward, step"},
            [](Session& s) { s.run("backward", {}); }),
      onCpu("run_before_the_weights", {"call bindWeights before the first run"},
            [=](Session& s) { s.run("forward", {{"ids", good}}); }),
      onCpu("capacity_past_its_range", {"'cache' = 9 is outside its range 1 to 8"},
            [](Session& s) { s.setSymbol("cache", 9); }),
      onCpu("unknown_symbol", {"the program has no symbol 'heads'"},
            [](Session& s) { s.setSymbol("heads", 2); }),
      onCpu("unknown_state", {"the program has no state 'k'"}, [](Session& s) { s.state("k"); }),
      onCpu("another_batch_over_a_cache", {"state 'k_cache.0' holds", "call resetStates()"},
            [](Session& s) {
              s.bindRandomWeights(1);
              s.setSymbol("cache", kCapacity);
              step(s, 0, 1);
              s.run("step", {{"ids", ints({1, 2}, {2, 1})}, {"positions", ints({1, 1}, {2})}});
            }),
      {"sequence_that_is_no_multiple",
       ErrorCode::InvalidArgument,
       {"'seq' = 6 is outside its range 4 to 16, multiples of 4"},
       [] {
         Graph g;
         g.output("y", exp(g.input("x", DType::F32, {g.dim("seq", 4, 16, 4)})));
         Session(compile(g)).run("forward", {{"x", Array(DType::F32, {6})}});
       }},
      {"negative_threads",
       ErrorCode::InvalidArgument,
       {"threads: expected at least 1, got -1"},
       [] { Session(model("cpu"), {.threads = -1}); }},
  };
}

// Weights of a SwiGLU as they should be.
Arrays swigluWeights() {
  return {{"mlp.gate_proj.weight", Array(DType::F32, {24, 16})},
          {"mlp.up_proj.weight", Array(DType::F32, {24, 16})},
          {"mlp.down_proj.weight", Array(DType::F32, {16, 24})}};
}
BadInput weights(std::string name, std::vector<std::string> words,
                 std::function<void(Arrays&)> spoil) {
  return {std::move(name), ErrorCode::InvalidArgument, std::move(words),
          [spoil = std::move(spoil)] {
            Graph g;
            Tensor x = g.input("x", DType::F32, {2, 16});
            g.output("y", nn::SwiGLU(g, "mlp", 16, 24)(x));
            Arrays arrays = swigluWeights();
            spoil(arrays);
            Session(compile(g)).bindWeights(arrays);
          }};
}

std::vector<BadInput> bindings() {
  return {
      weights("missing_weight", {"1 weights do not fit", "missing: mlp.up_proj.weight f32[24, 16]"},
              [](Arrays& a) { a.erase("mlp.up_proj.weight"); }),
      weights("all_mistakes_at_once",
              {"3 weights do not fit", "missing: mlp.up_proj.weight",
               "wrong shape: mlp.gate_proj.weight is f32[16, 24], expected f32[24, 16]",
               "wrong dtype: mlp.down_proj.weight is bf16[16, 24], expected f32[16, 24]"},
              [](Arrays& a) {
                a.erase("mlp.up_proj.weight");
                a["mlp.gate_proj.weight"] = Array(DType::F32, {16, 24});
                a["mlp.down_proj.weight"] = Array(DType::BF16, {16, 24});
              }),
      weights("extra_weights", {"the program has no weights named bias, mlp.q"},
              [](Arrays& a) { a["mlp.q"] = a["bias"] = Array(DType::F32, {1}); }),
  };
}

INSTANTIATE_TEST_SUITE_P(Values, BadInputs, ::testing::ValuesIn(values()), nameOfRow);
INSTANTIATE_TEST_SUITE_P(Shapes, BadInputs, ::testing::ValuesIn(shapes()), nameOfRow);
INSTANTIATE_TEST_SUITE_P(Weights, BadInputs, ::testing::ValuesIn(bindings()), nameOfRow);

}  // namespace
}  // namespace lathe
