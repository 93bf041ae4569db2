// SPDX-License-Identifier: Apache-2.0
// What stands at the ends of a model: embeddings, residuals with gates, the greedy token.
#include "tests/conformance/spellings/spellings.h"

namespace lathe::conformance {

KnownSpellings tokenSpellings() {
  using S = Sheet;
  auto rows = [](S& m, DType dtype = DType::F32) {
    return gather(m.w("table", {32, 16}, dtype), m.in("ids", {2, m.s}, DType::I64), 0);
  };
  return {
      {"embedding_gathered", "embedding", [=](S& m) { return rows(m); }},
      {"embedding_of_flat_ids", "embedding",
       [](S& m) {
         Tensor ids = reshape(m.in("ids", {2, m.s}, DType::I64), {m.s * 2});
         return reshape(gather(m.w("table", {32, 16}), ids, 0), {2, m.s, 16});
       }},
      {"embedding_scaled", "embedding", [=](S& m) { return rows(m) * 4.0; }, "scale 4.0"},
      {"embedding_with_positions", "embedding",
       [=](S& m) { return rows(m) + m.in("positions", {2, m.s, 16}); }, "positions"},
      {"embedding_with_learnt_positions", "embedding embedding",
       [=](S& m) {
         Tensor at = m.in("at", {2, m.s}, DType::I64);
         return rows(m) + gather(m.w("positions", {32, 16}), at, 0);
       }},
      {"embedding_widened", "embedding",
       [=](S& m) { return cast(cast(rows(m, DType::BF16), DType::F32) * 4.0, DType::BF16); }},
      {"greedy_of_probabilities", "argmax",
       [](S& m) { return argmax(softmaxOf(m.in("x", {2, m.s, 8})), -1); }},
      {"greedy_with_temperature", "argmax",
       [](S& m) { return argmax(m.in("x", {2, m.s, 8}) / 0.7, -1); }},
      {"residual_with_a_gate", "gated_residual",
       [](S& m) {
         return m.in("x", {2, m.s, 16}) + m.in("gate", {2, 1, 16}) * m.in("f", {2, m.s, 16});
       }},
  };
}

}  // namespace lathe::conformance
