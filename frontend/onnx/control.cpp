// SPDX-License-Identifier: Apache-2.0
// Control flow whose course is known while the graph is recorded: a branch of a known condition,
// loops of a known number of steps, which are unrolled. And ops that do nothing outside of
// training.
#include <algorithm>

#include <fmt/format.h>

#include "frontend/onnx/node.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMostSteps = 256;

bool isTrue(Node& n, const Value& value, const char* what) {
  if (auto list = value.asSizes(); list && list->items.size() == 1)
    if (auto number = list->items[0].asConstant()) return *number != 0;
  n.refuse(std::string(what) +
           " is computed by the graph; it must be known when the graph is recorded");
}

void branch(Node& n) {
  const int64_t condition = n.integer(0);
  auto results = n.run(n.subgraph(condition ? "then_branch" : "else_branch"), {});
  for (size_t i = 0; i < results.size(); ++i) n.set(i, std::move(results[i]));
}

Tensor joined(const std::vector<Tensor>& rows, int64_t axis) {
  return rows.size() == 1 ? rows[0] : concat(rows, axis);
}

void loop(Node& n) {
  const GraphMessage& body = n.subgraph("body");
  const int64_t steps = n.has(0) ? n.integer(0) : -1;
  if (!n.has(0)) n.refuse("a loop without a largest number of steps");
  if (steps > kMostSteps)
    n.refuse(fmt::format("a loop of {} steps, expected at most {}", steps, kMostSteps));
  bool goesOn = !n.has(1) || isTrue(n, n.value(1), "the condition of the loop");
  std::vector<Value> carried;
  for (size_t i = 2; i < n.operands(); ++i) carried.push_back(n.value(i));
  if (body.outputs.size() < carried.size() + 1) n.fail("the body has too few outputs");
  std::vector<std::vector<Tensor>> scanned(body.outputs.size() - 1 - carried.size());
  for (int64_t i = 0; i < steps && goesOn; ++i) {
    std::vector<Value> inputs{SizeList{DType::I64, {}, {Dim(i)}},
                              SizeList{DType::Bool, {}, {Dim(1)}}};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    std::vector<Value> results = n.run(body, std::move(inputs));
    goesOn = isTrue(n, results[0], "the condition of the loop");
    for (size_t k = 0; k < carried.size(); ++k) carried[k] = results[k + 1];
    for (size_t k = 0; k < scanned.size(); ++k)
      scanned[k].push_back(unsqueeze(n.recorded(results[k + 1 + carried.size()]), 0));
  }
  for (size_t k = 0; k < carried.size(); ++k) n.set(k, carried[k]);
  for (size_t k = 0; k < scanned.size(); ++k) {
    if (scanned[k].empty()) {
      if (n.wants(carried.size() + k))
        n.refuse("a loop without steps has no shape of its scanned outputs");
      continue;
    }
    n.set(carried.size() + k, joined(scanned[k], 0));
  }
}

void scan(Node& n) {
  if (n.opset() < 9) n.refuse("the form of opset 8");
  const GraphMessage& body = n.subgraph("body");
  const int64_t inputs = n.attribute("num_scan_inputs", 0);
  if (inputs < 1 || size_t(inputs) > n.operands())
    n.fail("attribute 'num_scan_inputs' is out of range");
  const size_t states = n.operands() - size_t(inputs);
  if (body.outputs.size() < states) n.fail("the body has too few outputs");
  const size_t outputs = body.outputs.size() - states;
  auto listOr = [&](const char* name, size_t count) {
    std::vector<int64_t> list = n.list(name);
    list.resize(count, 0);
    return list;
  };
  const auto axes = listOr("scan_input_axes", size_t(inputs)),
             turns = listOr("scan_input_directions", size_t(inputs));
  const auto outAxes = listOr("scan_output_axes", outputs),
             outTurns = listOr("scan_output_directions", outputs);
  std::vector<Tensor> rows;
  std::vector<int64_t> along;
  int64_t steps = -1;
  for (size_t k = 0; k < size_t(inputs); ++k) {
    rows.push_back(n.in(states + k));
    along.push_back(n.axis(axes[k], rows[k].rank()));
    const auto size = rows[k].dim(along[k]).asConstant();
    if (!size) n.refuse("a scan over an axis of symbolic size");
    if (steps >= 0 && *size != steps) n.fail("operands with different numbers of steps");
    steps = *size;
  }
  if (steps > kMostSteps)
    n.refuse(fmt::format("a scan of {} steps, expected at most {}", steps, kMostSteps));
  if (steps == 0) n.refuse("a scan without steps");
  std::vector<Value> carried;
  for (size_t k = 0; k < states; ++k) carried.push_back(n.value(k));
  std::vector<std::vector<Tensor>> made(outputs);
  for (int64_t i = 0; i < steps; ++i) {
    std::vector<Value> operands = carried;
    for (size_t k = 0; k < rows.size(); ++k)
      operands.emplace_back(
          squeeze(sliceAxis(rows[k], along[k], turns[k] ? steps - 1 - i : i, 1), along[k]));
    std::vector<Value> results = n.run(body, std::move(operands));
    for (size_t k = 0; k < states; ++k) carried[k] = results[k];
    for (size_t k = 0; k < outputs; ++k) {
      const Tensor y = n.recorded(results[states + k]);
      made[k].push_back(unsqueeze(y, n.axis(outAxes[k], y.rank() + 1)));
    }
  }
  for (size_t k = 0; k < states; ++k) n.set(k, carried[k]);
  for (size_t k = 0; k < outputs; ++k) {
    if (outTurns[k]) std::reverse(made[k].begin(), made[k].end());
    n.set(states + k, joined(made[k], n.axis(outAxes[k], made[k][0].rank())));
  }
}

// Outside of training, and for a ratio of 0, nothing is dropped.
void dropout(Node& n) {
  const bool training = n.has(2) && n.integer(2) != 0;
  if (training) {
    const double ratio = n.has(1) ? n.numbers(1).at(0) : 0.5;
    if (ratio != 0) n.refuse("training_mode with a ratio other than 0");
  }
  n.set(0, n.value(0));
  if (!n.wants(1)) return;
  // The mask is of bools since opset 10.
  const DType mask = n.opset() < 10 ? n.in(0).dtype() : DType::Bool;
  n.set(1, broadcasted(n.scalar(1, mask), n.in(0).shape()));
}

// A tensor may stand where an optional value is expected.
void optionalHas(Node& n) { n.set(SizeList{DType::Bool, {}, {Dim(n.has(0))}}); }
void optionalGet(Node& n) { n.set(n.value(0)); }

const Lowering kTable[] = {
    {"Dropout", {"ratio", "seed"}, dropout, "training"},
    {"If", {"then_branch", "else_branch"}, branch, "a condition that is not known"},
    {"Loop", {"body"}, loop, "conditions that are computed, more than 256 steps"},
    {"OptionalGetElement", {}, optionalGet, "optional inputs of the model"},
    {"OptionalHasElement", {}, optionalHas, "optional inputs of the model"},
    {"Scan",
     {"body", "num_scan_inputs", "scan_input_axes", "scan_input_directions", "scan_output_axes",
      "scan_output_directions"},
     scan,
     "symbolic lengths, more than 256 steps"}};

}  // namespace

std::span<const Lowering> controlLowerings() { return kTable; }

}  // namespace lathe::onnx
