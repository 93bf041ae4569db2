// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/cublaslt.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "backends/cuda/device/driver_api_library.h"
#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

constexpr uint32_t kMaxAlignment = 256;

std::string describe(const LibraryMatmul& p) {
  return std::to_string(p.rows) + " x " + std::to_string(p.columns) + " x " +
         std::to_string(p.depth) + ", " + std::string(nameOf(p.dtype)) + " to " +
         std::string(nameOf(p.result));
}

blas::DataType typeOf(DType dtype, const LibraryMatmul& matmul) {
  switch (dtype) {
    case DType::F32:
      return blas::kFloat32;
    case DType::F16:
      return blas::kFloat16;
    case DType::BF16:
      return blas::kBfloat16;
    default:
      throw Error(ErrorCode::InvalidArgument,
                  "cuBLASLt product " + describe(matmul) + ": expected f32, bf16 or f16");
  }
}

// Algorithms may need vectors of up to this alignment.
uint32_t alignmentOf(const void* pointer) {
  const auto bits = reinterpret_cast<uintptr_t>(pointer);
  return bits == 0 ? kMaxAlignment
                   : uint32_t(std::min<uintptr_t>(kMaxAlignment, bits & (~bits + 1)));
}

void checkOperands(const LibraryMatmul& p, const LibraryOperands& o) {
  auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::InvalidArgument, "cuBLASLt product " + describe(p) + ": " + what);
  };
  if (p.rows < 1 || p.columns < 1 || p.depth < 1) refuse("expected sizes of at least 1");
  if (p.rank < 0 || p.rank >= kLibraryRanks)
    refuse("expected a rank from 0 to " + std::to_string(kLibraryRanks - 1));
  if (p.result != p.dtype && p.result != DType::F32)
    refuse("expected the result in the operands' dtype or f32");
  if (!o.x || !o.weight || !o.result) refuse("an operand is missing");
  if ((p.beta != 0) != (o.addend != nullptr))
    refuse("expected an addend with beta, and none without");
}

}  // namespace

// cuBLASLt is column-major: a row-major [m, n] matrix is its [n, m]. So it computes the transposed
// product: result^T = weight * x^T, with the weight as its first operand.
struct CublasLt::Plan {
  explicit Plan(const blas::Api& api) : api(api) {}
  ~Plan() {
    for (blas::Layout layout : {first, second, addend, result})
      if (layout) api.layoutDestroy(layout);
    if (matmul) api.matmulDescDestroy(matmul);
  }
  const blas::Api& api;
  blas::MatmulDesc matmul = nullptr;
  blas::Layout first = nullptr, second = nullptr, addend = nullptr, result = nullptr;
  blas::Algorithm algorithm{};
};

std::unique_ptr<CublasLt> CublasLt::open(std::string* why) {
  std::string ignored;
  std::string& reason = why ? *why : ignored;
  const std::string file = "libcublasLt.so.13";
  std::vector<std::string> places{file};
  for (const std::string& place : inCudaToolkits(file)) places.push_back(place);
  FoundLibrary found("LATHE_CUBLASLT", places);
  if (!found) {
    reason = "cuBLASLt was not found:\n" + found.tried();
    return nullptr;
  }
  blas::Api api;
  const char* missing = nullptr;
  auto get = [&](auto& function, const char* symbol) {
    if (!found.get(function, symbol) && !missing) missing = symbol;
  };
#define LATHE_CUBLASLT_FIND(member, name, parameters) get(api.member, #name);
  LATHE_CUBLASLT_FUNCTIONS(LATHE_CUBLASLT_FIND)
#undef LATHE_CUBLASLT_FIND
  get(api.statusString, "cublasLtGetStatusString");
  if (missing) {
    reason = found.path() + " has no " + missing;
    return nullptr;
  }
  std::unique_ptr<CublasLt> library(new CublasLt(api));
  library->path_ = found.path();
  if (blas::Status status = api.create(&library->handle_)) {
    reason = found.path() + ": cublasLtCreate failed: " + api.statusString(status);
    library->handle_ = nullptr;
    return nullptr;
  }
  return library;
}

CublasLt::CublasLt(const blas::Api& api) : api_(api) {}

CublasLt::~CublasLt() {
  plans_.clear();
  if (handle_) api_.destroy(handle_);
}

void CublasLt::check(blas::Status status, const char* call, const LibraryMatmul& matmul) const {
  if (status)
    throw Error(status == blas::kNotSupported ? ErrorCode::Unsupported : ErrorCode::Io,
                std::string(call) + " failed for a product " + describe(matmul) + ": " +
                    api_.statusString(status));
}

std::unique_ptr<CublasLt::Plan> CublasLt::makePlan(const LibraryMatmul& p,
                                                   const LibraryOperands& o) {
  auto plan = std::make_unique<Plan>(api_);
  check(api_.matmulDescCreate(&plan->matmul, blas::kCompute32, blas::kFloat32),
        "cublasLtMatmulDescCreate", p);
  auto set = [&](blas::MatmulDescAttribute attribute, auto value) {
    check(api_.matmulDescSet(plan->matmul, attribute, &value, sizeof(value)),
          "cublasLtMatmulDescSetAttribute", p);
  };
  set(blas::kTransposeFirst, int32_t(p.weightInOut ? blas::kAsItIs : blas::kTransposed));
  set(blas::kTransposeSecond, int32_t(blas::kAsItIs));
  if (o.bias) {
    set(blas::kEpilogue, uint32_t(blas::kAddBias));
    set(blas::kBiasPointer, o.bias);
  }
  // A row-major matrix is made of columns here: [rows, columns] with leading dimension `columns`.
  auto layout = [&](blas::Layout* made, DType dtype, int64_t rows, int64_t columns) {
    check(api_.layoutCreate(made, typeOf(dtype, p), uint64_t(columns), uint64_t(rows), columns),
          "cublasLtMatrixLayoutCreate", p);
  };
  layout(&plan->first, p.dtype, p.weightInOut ? p.depth : p.columns,
         p.weightInOut ? p.columns : p.depth);
  layout(&plan->second, p.dtype, p.rows, p.depth);
  layout(&plan->addend, p.result, p.rows, p.columns);
  layout(&plan->result, p.result, p.rows, p.columns);

  blas::Preference preference = nullptr;
  check(api_.preferenceCreate(&preference), "cublasLtMatmulPreferenceCreate", p);
  struct Destroy {
    const blas::Api& api;
    blas::Preference preference;
    ~Destroy() { api.preferenceDestroy(preference); }
  } destroy{api_, preference};
  auto prefer = [&](blas::PreferenceAttribute attribute, auto value) {
    check(api_.preferenceSet(preference, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute", p);
  };
  prefer(blas::kMaxWorkspaceBytes, uint64_t(kWorkspaceBytes));
  prefer(blas::kReductionSchemes, blas::kReducedInComputeType);
  prefer(blas::kMinAlignmentA, alignmentOf(o.weight));
  prefer(blas::kMinAlignmentB, alignmentOf(o.x));
  prefer(blas::kMinAlignmentC, alignmentOf(o.addend ? o.addend : o.result));
  prefer(blas::kMinAlignmentD, alignmentOf(o.result));
  std::array<blas::Heuristic, kLibraryRanks> proposed{};
  int count = 0;
  check(api_.heuristic(handle_, plan->matmul, plan->first, plan->second, plan->addend, plan->result,
                       preference, kLibraryRanks, proposed.data(), &count),
        "cublasLtMatmulAlgoGetHeuristic", p);
  if (count == 0)
    throw Error(ErrorCode::Unsupported, "cuBLASLt has no algorithm for a product " + describe(p));
  if (p.rank >= count)
    throw Error(ErrorCode::Unsupported, "cuBLASLt has " + std::to_string(count) +
                                            " algorithms for a product " + describe(p) +
                                            ", none of rank " + std::to_string(p.rank));
  check(proposed[size_t(p.rank)].state, "cublasLtMatmulAlgoGetHeuristic", p);
  plan->algorithm = proposed[size_t(p.rank)].algorithm;
  return plan;
}

void CublasLt::matmul(const LibraryMatmul& p, const LibraryOperands& o, void* workspace,
                      void* stream) {
  checkOperands(p, o);
  uint64_t alignments = 0;
  for (const void* pointer : {o.x, o.weight, o.bias, o.addend, static_cast<const void*>(o.result)})
    alignments = alignments << 4 | uint64_t(std::countr_zero(alignmentOf(pointer)));
  const Key key{p.rows,        p.columns,   p.depth,           p.dtype,    p.result,
                p.weightInOut, p.beta != 0, o.bias != nullptr, alignments, p.rank};
  // The bias belongs to the description, so a plan serves one call at a time.
  std::lock_guard lock(mutex_);
  if (auto known = declined_.find(key); known != declined_.end())
    throw Error(ErrorCode::Unsupported, known->second);
  std::unique_ptr<Plan>& plan = plans_[key];
  try {
    if (!plan) plan = makePlan(p, o);
  } catch (const Error& e) {
    // What the library declines it need not be asked again.
    if (e.code() == ErrorCode::Unsupported) declined_[key] = e.what();
    throw;
  }
  if (o.bias)
    check(api_.matmulDescSet(plan->matmul, blas::kBiasPointer, &o.bias, sizeof(o.bias)),
          "cublasLtMatmulDescSetAttribute", p);
  check(api_.matmul(handle_, plan->matmul, &p.alpha, o.weight, plan->first, o.x, plan->second,
                    &p.beta, o.addend ? o.addend : o.result, plan->addend, o.result, plan->result,
                    &plan->algorithm, workspace, kWorkspaceBytes, stream),
        "cublasLtMatmul", p);
}

}  // namespace lathe::cuda
