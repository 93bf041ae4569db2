// SPDX-License-Identifier: Apache-2.0
#include "inspect/questions/choices.h"

#include <algorithm>
#include <cmath>

#include "inspect/questions/trial_run.h"
#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {
namespace {

bool isReal(Value v) { return isa<FloatType>(tensorType(v).getElementType()); }

bool isStep(Operation* op) {
  if (auto cast = dyn_cast<CastOp>(op)) return !isReal(cast.getResult());
  return isa<SignOp, FloorOp, CeilOp, RoundOp>(op);
}

bool choosesByFloats(Operation* op) {
  if (!isa<ArgMaxOp, ArgMinOp, TopKOp, CompareOp>(op) && !isStep(op)) return false;
  // A number beside itself is a question about NaN.
  if (isa<CompareOp>(op) && op->getOperand(0) == op->getOperand(1)) return false;
  return isReal(op->getOperand(0));
}

// The element of an operand that element `i` of a result reads where shapes broadcast.
int64_t broadcastIndex(int64_t i, const Shape& result, const Shape& operand) {
  int64_t index = 0, stride = 1;
  for (size_t back = 1; back <= operand.size(); ++back) {
    const int64_t size = result[result.size() - back], own = operand[operand.size() - back];
    if (own != 1) index += i % size * stride;
    stride *= own;
    i /= size;
  }
  return index;
}

}  // namespace

std::vector<Operation*> choosingOps(ModuleOp module) {
  std::vector<Operation*> found;
  module.walk([&](Operation* op) {
    if (choosesByFloats(op)) found.push_back(op);
  });
  return found;
}

OtherChoices::OtherChoices(Operation* op, const OpChoice& choice,
                           const std::vector<double>& allowed)
    : op_(op), choice_(choice), allowed_(allowed) {
  for (const Array& operand : choice.operands) medians_.push_back(medianMagnitude(operand));
}

double OtherChoices::slack(size_t operand, double value) const {
  return allowed_[operand] > 0 ? allowed_[operand] * (std::abs(value) + medians_[operand]) : 0;
}

bool OtherChoices::near(double a, double b) const {
  const double slacks = slack(0, a) + slack(0, b);
  return slacks > 0 && std::abs(a - b) <= slacks;
}

int64_t OtherChoices::rows() const {
  const Array& result = choice_.taken.back();
  return isa<TopKOp>(op_) ? result.size() / std::max<int64_t>(result.shape().back(), 1)
                          : result.size();
}

std::vector<OtherChoice> OtherChoices::of(int64_t row) const {
  if (isa<ArgMaxOp, ArgMinOp>(op_)) return ofBest(row);
  if (isa<TopKOp>(op_)) return ofLargest(row);
  return isa<CompareOp>(op_) ? ofComparison(row) : ofStep(row);
}

std::vector<OtherChoice> OtherChoices::ofBest(int64_t row) const {
  const Shape& shape = choice_.operands[0].shape();
  const auto axis =
      size_t(isa<ArgMaxOp>(op_) ? cast<ArgMaxOp>(op_).getAxis() : cast<ArgMinOp>(op_).getAxis());
  int64_t inner = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t length = shape[axis], begin = row / inner * length * inner + row % inner;
  if (length == 0) return {};
  const double best = at(0, begin + int64_t(choice_.computed[0].at(row)) * inner);
  std::vector<OtherChoice> others;
  for (int64_t i = 0; i < length; ++i)
    if (double(i) != choice_.taken[0].at(row) && near(at(0, begin + i * inner), best))
      others.push_back({{0, row, double(i)}});
  return others;
}

// Another element in a place of the row, or two places that swap theirs. The numbers move along.
std::vector<OtherChoice> OtherChoices::ofLargest(int64_t row) const {
  const int64_t k = choice_.taken[1].shape().back(), length = choice_.operands[0].shape().back();
  const int64_t begin = row * k;
  auto value = [&](int64_t i) { return at(0, row * length + i); };
  auto fits = [&](int64_t place, int64_t i) {
    return near(value(i), choice_.computed[0].at(begin + place));
  };
  std::vector<int64_t> placeOf(size_t(length), -1);
  for (int64_t place = 0; place < k; ++place)
    placeOf[size_t(choice_.taken[1].at(begin + place))] = place;
  std::vector<OtherChoice> others;
  for (int64_t place = 0; place < k; ++place) {
    const auto has = int64_t(choice_.taken[1].at(begin + place));
    auto put = [&](OtherChoice& other, int64_t where, int64_t i) {
      other.push_back({1, begin + where, double(i)});
      other.push_back({0, begin + where, value(i)});
    };
    for (int64_t i = 0; i < length; ++i) {
      const int64_t from = placeOf[size_t(i)];
      if (i == has || !fits(place, i) || (from >= 0 && (from < place || !fits(from, has))))
        continue;
      OtherChoice other;
      put(other, place, i);
      if (from >= 0) put(other, from, has);
      others.push_back(std::move(other));
    }
  }
  return others;
}

std::vector<OtherChoice> OtherChoices::ofComparison(int64_t row) const {
  const Array& result = choice_.taken[0];
  double side[2], slacks = 0;
  for (size_t i : {0, 1}) {
    side[i] = at(i, broadcastIndex(row, result.shape(), choice_.operands[i].shape()));
    slacks += slack(i, side[i]);
  }
  if (!(slacks > 0 && std::abs(side[0] - side[1]) <= slacks)) return {};
  return {{{0, row, result.at(row) ? 0.0 : 1.0}}};
}

std::vector<OtherChoice> OtherChoices::ofStep(int64_t row) const {
  const double x = at(0, row), by = slack(0, x);
  if (!(by > 0) || !std::isfinite(x)) return {};
  std::vector<OtherChoice> others;
  const DType dtype = choice_.taken[0].dtype();
  auto add = [&](double value) {
    if (value == choice_.taken[0].at(row)) return;
    if (!holds(dtype, value)) return;  // what a cast gives there is not defined
    others.push_back({{0, row, value}});
  };
  if (auto cast = dyn_cast<CastOp>(op_); cast && cast.getDtype().isInteger(1)) {
    if (std::abs(x) <= by) add(choice_.taken[0].at(row) ? 0 : 1);
    return others;
  }
  for (double moved : {x - by, x + by}) {
    if (isa<SignOp>(op_))
      add(moved < 0 ? -1 : 1);
    else if (isa<FloorOp>(op_))
      add(std::floor(moved));
    else if (isa<CeilOp>(op_))
      add(std::ceil(moved));
    else
      add(isa<RoundOp>(op_) ? std::nearbyint(moved) : std::trunc(moved));
  }
  return others;
}

}  // namespace lathe
