// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/cases.h"

#include <stdexcept>

#include "tests/conformance/cases_build.h"

namespace lathe::conformance {

const std::vector<OpRow>& opTable() {
  static const std::vector<OpRow> table = [] {
    Rows t;
    addElementwise(t);
    addReductions(t);
    addShapes(t);
    addContractions(t);
    addIndices(t);
    addFused(t);
    addNorms(t);
    addQuantized(t);
    return t;
  }();
  return table;
}

const OpRow& rowOf(const std::string& op) {
  for (const OpRow& row : opTable())
    if (row.op == op) return row;
  throw std::out_of_range("no case for " + op);
}

}  // namespace lathe::conformance
