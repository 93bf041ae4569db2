// SPDX-License-Identifier: Apache-2.0
// A stand-in for liblathe_selftest.so: one op that is wrong in f32, expanded in bf16 and refused in
// i64, and two kernels, of which the backend refuses one.
#include "tools/selftest/selftest_api.h"

namespace lathe::selftest {
namespace {

std::vector<std::string> backends(const std::string&) { return {"wrong"}; }
std::vector<DType> dtypes() { return {DType::F32, DType::BF16, DType::F16, DType::I64}; }
std::vector<Op> ops() { return {{"lathe.planted", {DType::F32, DType::BF16, DType::I64}}}; }

Support support(const std::string&, const std::string&, DType dtype) {
  if (dtype == DType::F32) return {"yes", ""};
  return dtype == DType::BF16 ? Support{"expanded", "a reason"} : Support{"no", "another reason"};
}
std::string test(const std::string&, const std::string&, DType dtype) {
  if (dtype != DType::F32) return "";
  std::string differences;
  for (int i = 0; i < 6; ++i)
    differences += "sample " + std::to_string(i) + ".out0: element 7 is 1, want 2\n";
  return differences;
}

std::vector<Kernel> kernels() {
  return {{"lathe.planted", "2 x 3", DType::F32}, {"lathe.planted", "4", DType::BF16}};
}
Measurement measure(const std::string&, size_t kernel, int64_t) {
  if (kernel == 1) return {"a refusal", {}, {}};
  return {"", {3e-3, 1e-3, 2e-3}, CostValues{.flops = 4e6, .read = 1e6, .written = 1e6}};
}

}  // namespace
}  // namespace lathe::selftest

const lathe::selftest::Api* latheSelftestApi() {
  using namespace lathe::selftest;
  static const Api api{backends, dtypes, ops, support, test, kernels, measure};
  return &api;
}
