// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/rounding.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "lathe/ir/types.h"
#include "tests/closeness.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

std::string text(const TrialResult& r, const char* what, double got, double allowed) {
  char line[96];
  std::snprintf(line, sizeof line, ": %s error is %.3g, allowed %.3g", what, got, allowed);
  return r.entry + ": " + r.name + line;
}

// What a result may be off whatever the graph's own rounding is, as a share of it: one step of a
// 16-bit dtype. The functions of f32 are good to a few steps, those of the interpreter to half of
// one, and a graph may cancel: the contract.
double stepOf(DType dtype) {
  if (dtype == DType::BF16) return 0x1p-8;
  return dtype == DType::F16 ? 0x1p-11 : contractOf(dtype, Precision::OwnDtype);
}

// Root of the mean square; what is no number, as rows without keys, has no size.
double typicalValue(const Array& a) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    if (std::isfinite(a.at(i))) sum += a.at(i) * a.at(i);
  return a.size() == 0 ? 0 : std::sqrt(sum / double(a.size()));
}

std::string beyondRounding(const TrialResult& got, const TrialResult& own,
                           const TrialResult& exact) {
  const double step = stepOf(exact.dtype);
  const double largest = largestError(got.value, exact.value);
  const double allowed =
      3 * largestError(own.value, exact.value) + step * largestValue(exact.value);
  if (!(std::isfinite(largest) && largest <= allowed))
    return text(got, "largest", largest, allowed);
  const double typical = typicalError(got.value, exact.value);
  const double size = typicalValue(exact.value);
  // The error of few elements is a draw of few: one graph's may be small by luck.
  const double spread = 1 + 2 / std::sqrt(double(std::max<int64_t>(exact.value.size(), 1)));
  const double usual = 2 * spread * typicalError(own.value, exact.value) + step * size;
  return typical <= usual ? "" : text(got, "typical", typical, usual);
}

const TrialResult* find(const TrialResults& results, const std::string& entry,
                        const std::string& name) {
  for (const TrialResult& r : results)
    if (r.entry == entry && r.name == name) return &r;
  return nullptr;
}

// The first element of `next` that is not the argmax of `logits` although no error explains it.
std::string wrongChoice(const TrialResult& next, const TrialResult& wanted,
                        const TrialResult& logits, double error) {
  const int64_t width = logits.value.shape().back();
  for (int64_t i = 0; i < next.value.size(); ++i) {
    const double got = next.value.at(i), want = wanted.value.at(i);
    if (got == want) continue;
    std::string where = next.entry + ": " + next.name + " element " + std::to_string(i) + " is " +
                        std::to_string(int64_t(got)) + ", want " + std::to_string(int64_t(want));
    if (!(got >= 0 && got < double(width))) return where;
    const double gap =
        logits.value.at(i * width + int64_t(want)) - logits.value.at(i * width + int64_t(got));
    if (!(gap <= 2 * error)) return where + ", whose logit is larger by " + std::to_string(gap);
  }
  return "";
}

// Numbers that have few digits are meant exactly: 0, 1, 0.5, -inf.
bool isRounded(double value) {
  const float number = float(value);
  return std::isfinite(value) && double(number) == value &&
         (__builtin_bit_cast(uint32_t, number) & 0xfff) != 0;
}

OwningOpRef<ModuleOp> withConstantsMoved(ModuleOp recorded, uint64_t seed) {
  OwningOpRef<ModuleOp> moved(recorded.clone());
  std::mt19937_64 random(seed);
  moved->walk([&](ConstantOp op) {
    auto value = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!value || !value.isSplat() || !value.getElementType().isF32()) return;
    const float number = value.getSplatValue<float>();
    if (!isRounded(number)) return;
    const float next = std::nextafter(number, random() % 2 ? INFINITY : -INFINITY);
    op.setValueAttr(DenseElementsAttr::get(value.getType(), next));
  });
  return moved;
}

}  // namespace

std::string beyondRounding(const TrialResults& got, const TrialResults& own,
                           const TrialResults& exact) {
  for (size_t i = 0; i < exact.size(); ++i) {
    if (got.at(i).value.shape() != exact[i].value.shape())
      return exact[i].entry + ": " + exact[i].name + " has another shape";
    std::string wrong;
    const TrialResult* logits = find(exact, exact[i].entry, "logits");
    if (isFloat(exact[i].dtype)) {
      wrong = beyondRounding(got[i], own.at(i), exact[i]);
    } else if (exact[i].name == "next" && logits) {
      // Probabilities, of which it may be the argmax instead, are f32.
      const double error =
          std::max(largestError(find(got, exact[i].entry, "logits")->value, logits->value),
                   largestError(find(own, exact[i].entry, "logits")->value, logits->value));
      wrong = wrongChoice(got[i], exact[i], *logits, error + 0x1p-20);
    } else {
      wrong = deviationOf(got[i].value, exact[i].value, exact[i].dtype, 0,
                          exact[i].entry + ": " + exact[i].name)
                  .where;
    }
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string beyondConstants(const Trial& trial, ModuleOp recorded, const TrialResults& got,
                            uint64_t seed) {
  const TrialResults& wanted = trial.wanted();
  const Deviation plain = trial.compare(got);
  if (plain.within) return "";
  std::vector<double> effect(wanted.size());
  for (uint64_t draw = 0; draw < 8; ++draw) {
    const TrialResults moved =
        trial.run(*withConstantsMoved(recorded, 8 * seed + draw), Precision::Float64);
    for (size_t i = 0; i < wanted.size(); ++i)
      if (isFloat(wanted[i].dtype))
        effect[i] = std::max(effect[i], largestError(moved[i].value, wanted[i].value));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const TrialResult& want = wanted[i];
    const Deviation d =
        deviationOf(got.at(i).value, want.value, want.dtype,
                    contractOf(want.dtype, Precision::Float64), want.entry + ": " + want.name);
    if (d.within || d.identical) continue;
    const double error = largestError(got[i].value, want.value);
    if (!isFloat(want.dtype) || !(std::isfinite(effect[i]) && error <= 8 * effect[i]))
      return d.where;
  }
  return "";
}

}  // namespace lathe::conformance
