// SPDX-License-Identifier: Apache-2.0
// cuBLASLt on host memory for tests: column-major products in double, exactly as descriptions and
// layouts say. LATHE_MOCK_BLAS_FAIL=NAME:STATUS fails every call of a function;
// LATHE_MOCK_BLAS_MATCHES is the number of algorithms (1).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "backends/cuda/device/cublaslt_api.h"
#include "lathe/runtime/dtype.h"

namespace {

using namespace lathe::cuda::blas;
constexpr Status kInvalidValue = 7;

struct MockMatmul {
  int transposeFirst = 0, transposeSecond = 0;
  unsigned epilogue = kNothing;
  const void* bias = nullptr;
};
struct MockLayout {
  DataType type;
  uint64_t rows, columns;
  int64_t leading;
};
struct MockPreference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
  uint32_t reductions = 7;  // all
};
constexpr uint64_t kChosen = 0x1a7e;

std::string& log() {
  static std::string text;
  return text;
}
template <class T, class H>
T& from(H handle) {
  return *reinterpret_cast<T*>(handle);
}
Status enter(const std::string& name, const std::string& details = {}) {
  log() += name + (details.empty() ? "" : " " + details) + "\n";
  const char* fail = std::getenv("LATHE_MOCK_BLAS_FAIL");
  if (!fail || !std::string(fail).starts_with(name + ":")) return 0;
  return std::atoi(fail + name.size() + 1);
}
#define ENTER(...) \
  if (Status failed = enter(__VA_ARGS__)) return failed

double read(const void* data, DataType type, uint64_t index) {
  if (type == kFloat32) return static_cast<const float*>(data)[index];
  const uint16_t bits = static_cast<const uint16_t*>(data)[index];
  return type == kBfloat16 ? lathe::bf16ToFloat(bits) : lathe::f16ToFloat(bits);
}
void write(void* data, DataType type, uint64_t index, double value) {
  if (type == kFloat32)
    static_cast<float*>(data)[index] = float(value);
  else
    static_cast<uint16_t*>(data)[index] =
        type == kBfloat16 ? lathe::floatToBf16(float(value)) : lathe::floatToF16(float(value));
}

}  // namespace

extern "C" {

Status cublasLtCreate(Handle* handle) {
  ENTER("cublasLtCreate");
  *handle = reinterpret_cast<Handle>(new char);
  return 0;
}
Status cublasLtDestroy(Handle handle) {
  ENTER("cublasLtDestroy");
  delete reinterpret_cast<char*>(handle);
  return 0;
}
const char* cublasLtGetStatusString(Status status) {
  return status == kNotSupported ? "mock: not supported" : "mock: failed";
}
Status cublasLtMatmulDescCreate(MatmulDesc* matmul, ComputeType compute, DataType scale) {
  ENTER("cublasLtMatmulDescCreate");
  if (compute != kCompute32 || scale != kFloat32) return kInvalidValue;
  *matmul = reinterpret_cast<MatmulDesc>(new MockMatmul);
  return 0;
}
Status cublasLtMatmulDescDestroy(MatmulDesc matmul) {
  ENTER("cublasLtMatmulDescDestroy");
  delete &from<MockMatmul>(matmul);
  return 0;
}
Status cublasLtMatmulDescSetAttribute(MatmulDesc matmul, MatmulDescAttribute attribute,
                                      const void* value, size_t size) {
  ENTER("cublasLtMatmulDescSetAttribute", std::to_string(attribute));
  auto& p = from<MockMatmul>(matmul);
  auto set = [&](auto& member) {
    if (size != sizeof(member)) return kInvalidValue;
    std::memcpy(&member, value, size);
    return 0;
  };
  switch (attribute) {
    case kTransposeFirst:
      return set(p.transposeFirst);
    case kTransposeSecond:
      return set(p.transposeSecond);
    case kEpilogue:
      return set(p.epilogue);
    case kBiasPointer:
      return set(p.bias);
  }
  return kInvalidValue;
}
Status cublasLtMatrixLayoutCreate(Layout* layout, DataType type, uint64_t rows, uint64_t columns,
                                  int64_t leading) {
  ENTER("cublasLtMatrixLayoutCreate");
  if (leading < int64_t(rows)) return kInvalidValue;
  *layout = reinterpret_cast<Layout>(new MockLayout{type, rows, columns, leading});
  return 0;
}
Status cublasLtMatrixLayoutDestroy(Layout layout) {
  ENTER("cublasLtMatrixLayoutDestroy");
  delete &from<MockLayout>(layout);
  return 0;
}
Status cublasLtMatmulPreferenceCreate(Preference* preference) {
  ENTER("cublasLtMatmulPreferenceCreate");
  *preference = reinterpret_cast<Preference>(new MockPreference);
  return 0;
}
Status cublasLtMatmulPreferenceDestroy(Preference preference) {
  ENTER("cublasLtMatmulPreferenceDestroy");
  delete &from<MockPreference>(preference);
  return 0;
}
Status cublasLtMatmulPreferenceSetAttribute(Preference preference, PreferenceAttribute attribute,
                                            const void* value, size_t size) {
  ENTER("cublasLtMatmulPreferenceSetAttribute");
  auto& p = from<MockPreference>(preference);
  void* member = attribute == kMaxWorkspaceBytes  ? static_cast<void*>(&p.workspace)
                 : attribute == kReductionSchemes ? static_cast<void*>(&p.reductions)
                                                  : &p.alignment[attribute - kMinAlignmentA];
  if (size != (attribute == kMaxWorkspaceBytes ? 8 : 4)) return kInvalidValue;
  std::memcpy(member, value, size);
  return 0;
}
Status cublasLtMatmulAlgoGetHeuristic(Handle, MatmulDesc, Layout, Layout, Layout, Layout,
                                      Preference preference, int wanted, Heuristic* results,
                                      int* count) {
  auto& p = from<MockPreference>(preference);
  ENTER("cublasLtMatmulAlgoGetHeuristic",
        "workspace " + std::to_string(p.workspace) + " alignments " +
            std::to_string(p.alignment[0]) + "," + std::to_string(p.alignment[1]) + "," +
            std::to_string(p.alignment[2]) + "," + std::to_string(p.alignment[3]) + " reductions " +
            std::to_string(p.reductions));
  const char* matches = std::getenv("LATHE_MOCK_BLAS_MATCHES");
  *count = std::min(matches ? std::atoi(matches) : 1, wanted);
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algorithm.data[0] = kChosen + uint64_t(i);
    results[i].workspaceBytes = 1 << 20;
  }
  return 0;
}
Status cublasLtMatmul(Handle, MatmulDesc matmul, const void* alpha, const void* a, Layout aLayout,
                      const void* b, Layout bLayout, const void* beta, const void* c,
                      Layout cLayout, void* d, Layout dLayout, const Algorithm* algorithm,
                      void* workspace, size_t workspaceBytes, Stream stream) {
  const uint64_t rank = algorithm->data[0] - kChosen;
  if (rank >= 8) return kInvalidValue;
  ENTER("cublasLtMatmul", (stream ? "on a stream" : "") +
                              (rank ? ", algorithm " + std::to_string(rank) : std::string()));
  auto& p = from<MockMatmul>(matmul);
  const auto &la = from<MockLayout>(aLayout), &lb = from<MockLayout>(bLayout),
             &lc = from<MockLayout>(cLayout), &ld = from<MockLayout>(dLayout);
  const uint64_t m = p.transposeFirst ? la.columns : la.rows;
  const uint64_t k = p.transposeFirst ? la.rows : la.columns;
  const uint64_t n = p.transposeSecond ? lb.rows : lb.columns;
  const uint64_t k2 = p.transposeSecond ? lb.columns : lb.rows;
  if (k != k2 || ld.rows != m || ld.columns != n || lc.rows != m || lc.columns != n ||
      lc.type != ld.type || la.type != lb.type)
    return kInvalidValue;
  if (!workspace || workspaceBytes < 1 << 20) return kInvalidValue;
  const float scale = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
  auto element = [](const void* data, const MockLayout& layout, bool transposed, uint64_t row,
                    uint64_t column) {
    if (transposed) std::swap(row, column);
    return read(data, layout.type, row + column * uint64_t(layout.leading));
  };
  for (uint64_t j = 0; j < n; ++j)
    for (uint64_t i = 0; i < m; ++i) {
      double sum = 0;
      for (uint64_t l = 0; l < k; ++l)
        sum += element(a, la, p.transposeFirst, i, l) * element(b, lb, p.transposeSecond, l, j);
      sum *= scale;
      // As with the library, what beta = 0 leaves out is not read.
      if (keep != 0) sum += keep * element(c, lc, false, i, j);
      if (p.epilogue == kAddBias) sum += read(p.bias, ld.type, i);
      write(d, ld.type, i + j * uint64_t(ld.leading), sum);
    }
  return 0;
}

const char* mockBlasLog() { return log().c_str(); }
void mockBlasReset() { log().clear(); }
}
