// SPDX-License-Identifier: Apache-2.0
// Attention on values at the ends of f32, and how its results are rounded.
#include "tests/unit/cpu_attention_case.h"

namespace lathe::cpu {
namespace {

// One query whose keys are one part, one whose keys are split, and tiles of queries.
struct Form {
  int64_t queries, keys;
  int threads;
};
constexpr Form kForms[] = {{1, 70, 1}, {1, 400, 5}, {40, 140, 2}};

AttentionCase makeForm(DType dtype, const Form& form, int64_t headDim) {
  AttentionCase c = makeCase(dtype, {1, 2, 1, form.queries, form.keys, headDim, 24});
  c.threads = form.threads;
  return c;
}

// Padded rows of models hold every one of these fills.
TEST(AttentionValues, RowsOfLargeFiniteMasksAreNumbers) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (MaskKind kind : {MaskKind::AdditiveF32, MaskKind::AdditiveBf16})
      for (const Form& form : kForms)
        for (double fill :
             {-1e4, -1e9, -1e10, -1e15, -1e20, -1e29, -1e30, -1e37, -3e38, 1e10, 3e38})
          for (int phase = 0; phase < 4; ++phase) {
            AttentionCase c = makeForm(dtype, form, 32);
            c.roundedScores = true;
            std::mt19937 random(5);
            std::vector<double> mask;
            for (int64_t i = 0; i < form.queries; ++i)
              for (int64_t j = 0; j < form.keys; ++j) {
                const int64_t row = (i + phase) % 4;
                const double part = row == 0   ? 1                            // all alike
                                    : row == 1 ? double(random() % 2)         // or not at all
                                    : row == 2 ? (random() % 2 ? 1 : 0.25)    // two fills
                                               : double(j != form.keys / 2);  // one is seen
                mask.push_back(part * fill);
              }
            addMask(c, kind, mask, 1, 1, form.queries);
            SCOPED_TRACE("fill " + std::to_string(fill) + " phase " + std::to_string(phase));
            checkAll(c);
          }
}

// Scores are products of powers of two, so that sums are exact and only the softmax is tested.
TEST(AttentionValues, LargeFiniteScoresAreNumbers) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (const Form& form : kForms)
      for (int power : {5, 10, 20, 30, 33, 60, 100, 126})
        for (float scale : {1.0f, 0.3f, -0.7f})
          for (float softcap : {0.0f, 30.0f})
            for (bool equal : {false, true}) {
              AttentionCase c = makeForm(dtype, form, 2);
              c.roundedScores = true;
              c.args.scale = scale;
              c.args.softcap = softcap;
              std::mt19937 random(6);
              const double factors[] = {1, -1, 0.5, 0.75};
              for (size_t i = 0; i < c.q.size(); ++i)
                c.q[i] = i % 2 ? 0 : std::ldexp(i % 4 ? 1 : -1, power / 2);
              for (size_t i = 0; i < c.k.size(); ++i)
                c.k[i] = std::ldexp(equal ? 1 : factors[random() % 4], power - power / 2);
              c.store(0, c.q);
              c.store(1, c.k);
              SCOPED_TRACE("2^" + std::to_string(power) + " scale " + std::to_string(scale) +
                           " softcap " + std::to_string(softcap));
              checkAll(c);
            }
}

// Equal scores weigh values alike, and the mean of 64 or 256 of them is exact in f32: what is left
// is one rounding to bf16. Fractions on both sides of a tie, and ties below even and odd numbers.
TEST(AttentionValues, ResultsAreRoundedToNearestEven) {
  for (const Form& form : {Form{1, 64, 1}, Form{1, 256, 5}, Form{40, 256, 2}})
    for (KernelIsa isa : tiers()) {
      AttentionCase c = makeForm(DType::BF16, form, 32);
      for (double& x : c.q) x = 0;
      for (int64_t j = 0; j < form.keys; ++j)
        for (int64_t d = 0; d < 24; ++d) {
          const double sign = d % 2 ? -1 : 1, step = 0x1p-7, first = 1 + double(d / 8) * step;
          // Of 8 values d/3 are one step above the others.
          c.v[size_t(j * 24 + d)] = sign * (j % 8 < d / 3 + 1 ? first + step : first);
        }
      c.store(0, c.q);
      c.store(2, c.v);
      runCase(c, isa);
      for (int64_t row = 0; row < 2 * form.queries; ++row)
        for (int64_t d = 0; d < 24; ++d) {
          double sum = 0;
          for (int64_t j = 0; j < form.keys; ++j) sum += c.v[size_t(j * 24 + d)];
          const uint16_t want = floatToBf16(float(sum / double(form.keys)));
          ASSERT_EQ(c.bf16[3][size_t(row * 24 + d)], want)
              << label(isa) << " row " << row << " element " << d;
        }
    }
}

}  // namespace
}  // namespace lathe::cpu
