// SPDX-License-Identifier: Apache-2.0
// Misuse of the C++ API. Where a call recorded something wrong, the error names that call's line.
#include <limits>

#include <lathe/lathe.h>

#include "tests/bad_input/bad_input.h"

namespace lathe {
namespace {

// A graph with an input x f32[batch, 4].
struct Model {
  Model() : batch(g.dim("batch", 1, 8)), x(g.input("x", DType::F32, {batch, 4})) {}
  Graph g;
  Dim batch;
  Tensor x;
};

using Action = std::function<void(Model&)>;
BadInput misuse(std::string name, std::vector<std::string> words, Action action) {
  return {std::move(name), ErrorCode::InvalidArgument, std::move(words),
          [action = std::move(action)] {
            Model m;
            action(m);
          },
          "bad_api_test.cpp"};
}
// Found only when the whole graph is looked at: no single call is to blame.
BadInput unfinished(std::string name, std::vector<std::string> words, Action action,
                    ErrorCode code = ErrorCode::InvalidArgument) {
  BadInput row = misuse(std::move(name), std::move(words), std::move(action));
  row.code = code;
  row.blamed = "";
  return row;
}

std::vector<BadInput> handles() {
  return {
      misuse("empty_handle", {"lathe.exp: expected a tensor, got an empty handle"},
             [](Model&) { exp(Tensor()); }),
      misuse("empty_second_handle", {"lathe.add", "empty handle"},
             [](Model& m) { add(m.x, Tensor()); }),
      misuse("empty_first_handle", {"lathe.matmul", "empty handle"},
             [](Model& m) { matmul(Tensor(), m.x); }),
      misuse("empty_condition", {"lathe.select", "empty handle"},
             [](Model& m) { select(Tensor(), m.x, m.x); }),
      misuse("empty_part_of_a_concat", {"lathe.concat", "empty handle"},
             [](Model& m) { concat({m.x, Tensor()}, 0); }),
      misuse("empty_scalar_like", {"empty handle"}, [](Model&) { Tensor() + 1.0; }),
      misuse("empty_output", {"expected a tensor, got an empty handle"},
             [](Model& m) { m.g.output("y", Tensor()); }),
      misuse("tensor_of_another_graph", {"belongs to another graph"},
             [](Model& m) {
               Model other;
               m.x + other.x;
             }),
      misuse("output_of_another_graph", {"belongs to another graph"},
             [](Model& m) {
               Model other;
               m.g.output("y", other.x);
             }),
      misuse("tensor_of_an_earlier_entry", {"belongs to an earlier entry point"},
             [](Model& m) {
               m.g.output("y", m.x);
               m.g.entry("second");
               exp(m.x);
             }),
      misuse("dtype_of_an_empty_handle", {"dtype() of an empty tensor handle"},
             [](Model&) { Tensor().dtype(); }),
      misuse("axis_outside_the_rank", {"axis -3 is outside rank 2"}, [](Model& m) { m.x.dim(-3); }),
  };
}

std::vector<BadInput> declarations() {
  return {
      misuse("input_twice", {"input 'x' is declared twice"},
             [](Model& m) { m.g.input("x", DType::F32, {4}); }),
      misuse("output_twice", {"output 'y' is declared twice"},
             [](Model& m) {
               m.g.output("y", m.x);
               m.g.output("y", m.x);
             }),
      misuse("entry_twice", {"entry point name 'forward'", "taken"},
             [](Model& m) {
               m.g.output("y", m.x);
               m.g.entry("forward");
             }),
      misuse("reserved_entry", {"entry point name 'load'", "reserved"},
             [](Model& m) {
               m.g.output("y", m.x);
               m.g.entry("load");
             }),
      misuse("symbol_with_another_range", {"symbol 'batch' was declared with another range"},
             [](Model& m) { m.g.dim("batch", 1, 9); }),
      misuse("symbol_with_an_empty_range", {"empty range 5 to 4"},
             [](Model& m) { m.g.dim("seq", 5, 4); }),
      misuse("symbol_that_is_a_sum", {"'a+b' is no symbol name"},
             [](Model& m) { m.g.dim("a+b", 1, 4); }),
      misuse("symbol_without_a_name", {"'' is no symbol name"},
             [](Model& m) { m.g.dim("", 1, 4); }),
      misuse("undeclared_symbol", {"symbol 'seq' is not declared in this graph"},
             [](Model& m) { m.g.input("z", DType::F32, {Dim::symbol("seq")}); }),
      misuse("negative_dim", {"negative dim -1"},
             [](Model& m) { m.g.input("z", DType::F32, {-1, 4}); }),
      misuse("huge_shape", {"elements, at most 281474976710656 are possible"},
             [](Model& m) { m.g.weight("w", DType::F32, {int64_t(1) << 31, int64_t(1) << 31}); }),
      misuse("shape_whose_product_overflows", {"elements, at most 281474976710656 are possible"},
             [](Model& m) {
               const int64_t most = std::numeric_limits<int64_t>::max();
               m.g.input("z", DType::F32, {most, most});
             }),
      misuse("weight_of_two_shapes", {"weight 'w' was declared as f32[4, 4], now f32[4, 5]"},
             [](Model& m) {
               m.g.weight("w", DType::F32, {4, 4});
               m.g.weight("w", DType::F32, {4, 5});
             }),
      misuse("state_of_two_dtypes", {"state 's' was declared as f32[4]"},
             [](Model& m) {
               m.g.state("s", DType::F32, {4});
               m.g.state("s", DType::BF16, {4});
             }),
      misuse("undeclared_state", {"state 's' is not declared; call Graph::state"},
             [](Model& m) { m.g.readState("s"); }),
      misuse("state_written_before_it_is_read", {"state 's' is written before it was read"},
             [](Model& m) {
               m.g.state("s", DType::F32, {m.batch, 4});
               m.g.writeState("s", m.x);
             }),
      misuse("state_of_another_shape", {"state 's' is f32[4]", "the new value is f32[batch, 4]"},
             [](Model& m) {
               m.g.state("s", DType::F32, {4});
               m.g.readState("s");
               m.g.writeState("s", m.x);
             }),
      unfinished("graph_without_an_entry", {"the graph is empty"},
                 [](Model&) { compile(Graph()); }),
      unfinished("entry_without_an_output", {"entry point 'forward' has no output"},
                 [](Model& m) { compile(m.g); }),
      unfinished("first_of_two_entries_without_an_output", {"entry point 'forward' has no output"},
                 [](Model& m) { m.g.entry("second"); }),
  };
}

std::vector<BadInput> ops() {
  return {
      misuse("shapes_that_differ",
             {"[C2]", "operand 0: f32[batch, 4]", "operand 1: f32[batch, 5]", "bad_api_test.cpp"},
             [](Model& m) { m.x + m.g.input("z", DType::F32, {m.batch, 5}); }),
      misuse("dtypes_that_differ", {"[C1] element types differ", "insert a cast"},
             [](Model& m) { m.x* m.g.input("z", DType::BF16, {m.batch, 4}); }),
      misuse("integer_op_on_floats", {"lathe.bitwise_and", "as operand "},
             [](Model& m) { bitwiseAnd(m.x, m.x); }),
      misuse("float_op_on_integers", {"lathe.exp", "as operand "},
             [](Model& m) { exp(m.g.input("z", DType::I64, {4})); }),
      misuse("matmul_of_a_vector", {"lathe.matmul", "[C1]", "f32[4]"},
             [](Model& m) { matmul(m.x, m.g.weight("w", DType::F32, {4})); }),
      misuse("reshape_that_cannot_be_proved", {"lathe.reshape", "[C1]", "4*batch"},
             [](Model& m) { reshape(m.x, {8, 4}); }),
      misuse("reshape_to_a_negative_dim", {"lathe.reshape"},
             [](Model& m) { reshape(m.x, {m.batch, -4}); }),
      misuse("broadcast_to_a_smaller_rank", {"lathe.broadcast", "[C1]"},
             [](Model& m) { broadcast(m.x, {4}); }),
      misuse("transpose_of_too_many_axes",
             {"lathe.transpose", "axis 2 is outside rank 2 of f32[batch, 4]"},
             [](Model& m) { transpose(m.x, {0, 1, 2}); }),
      misuse("swap_of_a_missing_axis", {"swapAxes", "rank 2"},
             [](Model& m) { swapAxes(m.x, 0, 2); }),
      misuse("slice_past_a_symbol", {"lathe.slice", "[C3]", "axis 0"},
             [](Model& m) { sliceAxis(m.x, 0, 0, 2); }),
      misuse("slice_of_a_missing_axis", {"sliceAxis: axis 2 is outside rank 2"},
             [](Model& m) { sliceAxis(m.x, 2, 0, 1); }),
      misuse("slice_with_stride_zero", {"lathe.slice", "[C2] stride 0"},
             [](Model& m) { sliceAxis(m.x, 1, 0, 1, 0); }),
      misuse("concat_of_nothing", {"lathe.concat: expected at least one tensor"},
             [](Model&) { concat({}, 0); }),
      misuse("pad_by_a_negative_size", {"lathe.pad", "[C2]"},
             [](Model& m) { pad(m.x, m.g.constant(0), {0, -1}, {0, 0}); }),
      misuse("argmax_of_a_missing_axis", {"lathe.argmax", "axis -5 is outside rank 2"},
             [](Model& m) { argmax(m.x, -5); }),
      misuse("argmax_of_nothing", {"lathe.argmax", "[C1] axis 1 of f32[3, 0] has no elements"},
             [](Model& m) { argmax(m.g.input("none", DType::F32, {3, 0}), 1); }),
      misuse("argmin_of_nothing", {"lathe.argmin", "[C1] axis 0 of f32[0, 3] has no elements"},
             [](Model& m) { argmin(m.g.input("none", DType::F32, {0, 3}), 0); }),
      misuse("top_k_of_none", {"lathe.top_k", "[C2] k = 0"}, [](Model& m) { topK(m.x, 0); }),
      misuse("top_k_of_too_few",
             {"lathe.top_k", "[C2] k = 4 is outside [1, last dim] of f32[2, 3]"},
             [](Model& m) { topK(m.g.input("few", DType::F32, {2, 3}), 4); }),
      misuse("gather_by_floats", {"lathe.gather", "as operand "},
             [](Model& m) { gather(m.x, m.x, 0); }),
      misuse("convolution_larger_than_its_image", {"lathe.convolution", "[C4]"},
             [](Model& m) {
               Tensor image = m.g.input("image", DType::F32, {1, 3, 4, 4});
               convolution(image, m.g.weight("k", DType::F32, {2, 3, 5, 5}), {1, 1}, {0, 0, 0, 0});
             }),
      misuse("unknown_predicate", {"predicate is one of eq, ne, lt, le, gt, ge; got '6'"},
             [](Model& m) { compare(m.x, m.x, Compare(6)); }),
      misuse("unknown_masked_row", {"masked_row is one of nan, zero, uniform; got '3'"},
             [](Model& m) { fused::softmax(m.x, -1, {.maskedRow = MaskedRow(3)}); }),
      misuse("unknown_activation", {"activation is one of", "got '9'"},
             [](Model& m) { fused::glu(m.x, m.x, Activation(9)); }),
      misuse("negative_epsilon", {"lathe.rms_norm", "[C2] epsilon is negative"},
             [](Model& m) { fused::rmsNorm(m.x, m.g.weight("g", DType::F32, {4}), -1); }),
  };
}

std::vector<BadInput> compilation() {
  return {
      unfinished(
          "unknown_backend", {"no backend 'tpu'; this build has cpu, cuda, reference"},
          [](Model& m) {
            m.g.output("y", m.x);
            compile(m.g, {.backend = "tpu"});
          },
          ErrorCode::Unsupported),
      unfinished("unknown_stage", {"stage 'fuzed' is none of recorded, canonical, fused"},
                 [](Model& m) {
                   m.g.output("y", m.x);
                   irAt(m.g, "fuzed");
                 }),
      unfinished("array_of_another_count", {"got 3 values for f32[2, 2]"},
                 [](Model&) { Array::fromFloats(std::vector<float>{1, 2, 3}, {2, 2}); }),
      unfinished("array_of_a_negative_size", {"negative dim -2"},
                 [](Model&) { Array(DType::F32, {2, -2}); }),
      unfinished("array_whose_size_overflows", {"the product of the dims overflows"},
                 [](Model&) { Array(DType::F32, {int64_t(1) << 40, int64_t(1) << 40}); }),
      unfinished("array_viewed_as_another_count", {"cannot view f32[4] as f32[5]"},
                 [](Model&) { Array(DType::F32, {4}).reshaped({5}); }),
  };
}

INSTANTIATE_TEST_SUITE_P(Handles, BadInputs, ::testing::ValuesIn(handles()), nameOfRow);
INSTANTIATE_TEST_SUITE_P(Declarations, BadInputs, ::testing::ValuesIn(declarations()), nameOfRow);
INSTANTIATE_TEST_SUITE_P(Ops, BadInputs, ::testing::ValuesIn(ops()), nameOfRow);
INSTANTIATE_TEST_SUITE_P(Compilation, BadInputs, ::testing::ValuesIn(compilation()), nameOfRow);

}  // namespace
}  // namespace lathe
