// SPDX-License-Identifier: Apache-2.0
#include "tools/selftest/selftest_api.h"

#include "lathe/backends/backend.h"
#include "lathe/runtime/error.h"
#include "tests/conformance/agreement.h"
#include "tests/conformance/support.h"
#include "tools/selftest/kernels.h"

namespace lathe::selftest {
namespace {

std::vector<std::string> backends(const std::string& name) {
  if (name.empty()) return conformance::testedBackends();
  return {std::string(findBackend(name).name())};
}

std::vector<DType> dtypes() { return conformance::columns(); }

std::vector<Op> ops() {
  std::vector<Op> all;
  for (const conformance::OpRow& row : conformance::opTable()) all.push_back({row.op, row.dtypes});
  return all;
}

Support support(const std::string& backend, const std::string& op, DType dtype) {
  const auto& compiled = conformance::compiled(backend, conformance::rowOf(op), dtype);
  return {std::string(nameOf(compiled.support)), compiled.reason};
}

std::string test(const std::string& backend, const std::string& op, DType dtype) {
  try {
    return conformance::agreement(backend, conformance::rowOf(op), dtype);
  } catch (const Error& e) {  // the other ops are tested all the same
    return std::string("stopped: ") + e.what() + "\n";
  }
}

}  // namespace
}  // namespace lathe::selftest

const lathe::selftest::Api* latheSelftestApi() {
  using namespace lathe::selftest;
  static const Api api{backends, dtypes, ops, support, test, kernels, measure};
  return &api;
}
