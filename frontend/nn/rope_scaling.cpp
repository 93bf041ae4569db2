// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

using Type = RopeScalingOptions::Type;

// Llama 3.1's frequency ramp. PyTorch evaluates number / tensor as the tensor's reciprocal times
// the number.
void stretchLlama3(std::vector<float>& frequencies, const RopeScalingOptions& s) {
  const double length = double(s.originalMaxPositions);
  const float longest = float(length / s.lowFreqFactor);
  const float shortest = float(length / s.highFreqFactor);
  const float turn = float(2 * std::numbers::pi), factor = float(s.factor);
  const float low = float(s.lowFreqFactor), span = float(s.highFreqFactor - s.lowFreqFactor);
  for (float& f : frequencies) {
    const float wavelength = (1 / f) * turn;
    if (wavelength < shortest) continue;
    if (wavelength > longest) {
      f = f / factor;
      continue;
    }
    const float smooth = ((1 / wavelength) * float(length) - low) / span;
    const float stretched = (1 - smooth) * f / factor;
    const float kept = smooth * f;
    f = stretched + kept;
  }
}

// The paper's section 3.2: the dimension whose frequency makes `rotations` turns over the trained
// length.
double dimensionOf(double rotations, double size, double theta, double length) {
  return size * std::log(length / (rotations * 2 * std::numbers::pi)) / (2 * std::log(theta));
}

void stretchYarn(std::vector<float>& frequencies, const std::vector<float>& powers,
                 const RopeScalingOptions& s, double theta) {
  const double size = 2 * double(frequencies.size()), length = double(s.originalMaxPositions);
  double low = dimensionOf(s.betaFast, size, theta, length);
  double high = dimensionOf(s.betaSlow, size, theta, length);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, size - 1);
  if (low == high) high += 0.001;  // no division by zero
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float ramp = std::clamp((float(i) - float(low)) / float(high - low), 0.f, 1.f);
    const float kept = 1 - ramp, stretched = 1 / (float(s.factor) * powers[i]);
    frequencies[i] = stretched * (1 - kept) + frequencies[i] * kept;
  }
}

// f32 [.., 1, 1]: the number of positions up to a row's last of a call. Rows do not know of each
// other.
Tensor lengthOf(const Tensor& positions) {
  const Tensor last = unsqueeze(reduceMax(positions, {-1}, true), -1);
  return castTo(last, DType::F32) + 1;
}

Tensor constantOf(Graph& graph, const std::vector<float>& values) {
  return graph.constant(Array::fromFloats(values, {int64_t(values.size())}));
}

}  // namespace

double yarnAttentionFactor(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

double longRopeAttentionFactor(double factor, int64_t originalMaxPositions) {
  return factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(double(originalMaxPositions)));
}

void expectValid(const RopeScalingOptions& s, int64_t frequencies, const std::string& module,
                 std::source_location at) {
  auto fail = [&](const std::string& text) {
    throw Error(ErrorCode::InvalidArgument, module + ": " + text, at);
  };
  if (s.type == Type::Default) return;
  if (s.type > Type::LongRope || s.type < Type::Default)
    fail(std::to_string(int(s.type)) +
         " is no scaling; lathe::nn::RopeScalingOptions names those "
         "there are");
  if (!(s.factor > 0) || !std::isfinite(s.factor))
    fail("expected a positive scaling factor, got " + std::to_string(s.factor));
  if (s.type == Type::Linear) return;
  if (s.type == Type::Llama3) {
    if (!(s.lowFreqFactor > 0) || !(s.highFreqFactor > s.lowFreqFactor) ||
        s.originalMaxPositions < 1)
      fail(
          "expected 0 < lowFreqFactor < highFreqFactor and originalMaxPositions of at least 1, "
          "got " +
          std::to_string(s.lowFreqFactor) + ", " + std::to_string(s.highFreqFactor) + ", " +
          std::to_string(s.originalMaxPositions));
    return;
  }
  if (s.originalMaxPositions < 1)
    fail("expected originalMaxPositions of at least 1, got " +
         std::to_string(s.originalMaxPositions));
  if (!(s.attentionFactor > 0) || !std::isfinite(s.attentionFactor))
    fail("expected a positive attentionFactor, got " + std::to_string(s.attentionFactor));
  if (s.type == Type::Yarn && !(s.betaSlow > 0 && s.betaFast >= s.betaSlow))
    fail("expected 0 < betaSlow <= betaFast, got " + std::to_string(s.betaSlow) + " and " +
         std::to_string(s.betaFast));
  if (s.type == Type::Dynamic && frequencies < 2)
    fail("dynamic scaling needs at least 4 rotated elements, got 2");
  if (s.type != Type::LongRope) return;
  for (const auto* list : {&s.shortFactor, &s.longFactor}) {
    if (int64_t(list->size()) != frequencies)
      fail("expected a short and a long factor for each of " + std::to_string(frequencies) +
           " frequencies, got " + std::to_string(list->size()));
    for (double f : *list)
      if (!(f > 0) || !std::isfinite(f))
        fail("expected positive factors of frequencies, got " + std::to_string(f));
  }
}

void stretch(std::vector<float>& frequencies, const std::vector<float>& powers,
             const RopeScalingOptions& s, double theta) {
  switch (s.type) {
    case Type::Default:
    case Type::Dynamic:
      return;
    case Type::Linear:
      for (float& f : frequencies) f /= float(s.factor);
      return;
    case Type::Llama3:
      return stretchLlama3(frequencies, s);
    case Type::Yarn:
      return stretchYarn(frequencies, powers, s, theta);
    case Type::LongRope:
      for (size_t i = 0; i < frequencies.size(); ++i)
        frequencies[i] = 1 / (float(s.shortFactor[i]) * powers[i]);
  }
}

Tensor dynamicFrequencies(Graph& graph, const Tensor& positions,
                          const std::vector<float>& frequencies, const std::vector<float>& powers,
                          const RopeScalingOptions& s, double theta) {
  const Tensor length = lengthOf(positions);
  const double trained = double(s.originalMaxPositions), size = 2 * double(frequencies.size());
  if (s.type == Type::LongRope) {
    std::vector<float> far;
    for (size_t i = 0; i < frequencies.size(); ++i)
      far.push_back(1 / (float(s.longFactor[i]) * powers[i]));
    const Tensor isFar = compare(length, scalarLike(length, trained), Compare::gt);
    return select(isFar, constantOf(graph, far), constantOf(graph, frequencies));
  }
  // theta' = theta (factor length / trained - (factor - 1))^(d / (d - 2))
  const Tensor stretched = max(length, scalarLike(length, trained)) * (s.factor / trained);
  const Tensor growth = stretched - (s.factor - 1);
  const Tensor base = pow(growth, scalarLike(growth, size / (size - 2))) * theta;
  std::vector<float> exponents;
  for (size_t i = 0; i < frequencies.size(); ++i) exponents.push_back(2 * float(i) / float(size));
  return reciprocal(pow(base, constantOf(graph, exponents)));
}

}  // namespace lathe::nn
