// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel_builder.h"

#include "backends/cuda/device/program_code.h"
#include "backends/cuda/lowering/attended_linear.h"
#include "backends/cuda/lowering/attention/attention_calls.h"
#include "backends/cuda/lowering/data/data_calls.h"
#include "backends/cuda/lowering/fused_linear.h"
#include "backends/cuda/lowering/kernel/call_facts.h"
#include "backends/cuda/lowering/kernel/kernel_names.h"
#include "backends/cuda/lowering/nvrtc/kernel_cache.h"
#include "backends/cuda/lowering/matmul/grouped_kernels.h"
#include "backends/cuda/lowering/matmul/matmul_calls.h"
#include "backends/cuda/lowering/region/region_head.h"
#include "backends/cuda/lowering/region/region_printer.h"
#include "backends/cuda/lowering/tuning/variant_pruning.h"
#include "lathe/backends/call_attributes.h"
#include "lathe/backends/region_plan.h"
#include "lathe/passes/region_ops.h"
#include "lathe/runtime/error.h"
#include "llvm/ADT/StringSwitch.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

Error unsupported(Operation* op, const std::string& why) {
  return Error(ErrorCode::Unsupported, why + " at " + originText(op->getLoc()));
}

// "linear_2_0: gemv 2 columns/warp; 0 <= batch <= 4"
std::string titleOf(const std::string& kernel, const std::vector<Variant>& variants) {
  for (const Variant& v : variants)
    for (const Launch& l : v.launches) {
      if (l.kernel != kernel) continue;
      std::string title = kernel + ": " + v.what;
      for (const Condition& c : v.when) {
        title += "; " + std::to_string(c.low) + " <= " + c.value.text();
        if (c.high < std::numeric_limits<int64_t>::max()) title += " <= " + std::to_string(c.high);
      }
      return title + ", " + std::to_string(l.threads) + " threads";
    }
  return kernel;
}

func::FuncOp regionOf(KernelOp call) {
  if (call.getKind() != "region") return {};
  auto kernels = call->getParentOfType<ModuleOp>().lookupSymbol<ModuleOp>("kernels");
  return kernels.lookupSymbol<func::FuncOp>(*call.getCallee());
}

// This process can make machine code, and run it. Without NVRTC the program holds texts alone, for
// host execution; a GPU then says that it has no code.
bool hasGpuAndCompiler() {
  try {
    Nvrtc::library();
    return openGpu() != nullptr;
  } catch (const Error&) {
    return false;
  }
}

bool wantsMachineCode(const std::string& target) {
  if (target.empty()) return hasGpuAndCompiler();
  if (target != "sm_90a")
    throw Error(ErrorCode::InvalidArgument,
                "target '" + target + "' is not known; the cuda backend has sm_90a");
  return true;
}

struct Built {
  KernelTable table;
  std::vector<KernelCode> kernels;
};

// The text of a kernel but for its head and its own name.
std::string bodyOf(const KernelText& kernel) {
  size_t begin = 0;
  while (kernel.source.compare(begin, 2, "//") == 0) begin = kernel.source.find('\n', begin) + 1;
  std::string body = kernel.source.substr(begin);
  for (size_t at = 0; (at = body.find(kernel.name, at)) != std::string::npos;)
    body.replace(at, kernel.name.size(), "@");
  return body;
}

Built printAll(ModuleOp module, const Program& program) {
  Built built;
  std::map<std::string, std::string> names;  // of kernels, by their bodies
  module.walk([&](KernelOp call) {
    if (isCollective(call)) return;
    const std::string callee = call.getCallee()->str();
    if (built.table.count(callee)) return;
    KernelSet set = kernelsOfCall(call, callee);
    pruneVariants(set, program.symbols);
    if (set.variants.empty()) throw unsupported(call, "no kernel for " + callee);
    func::FuncOp region = regionOf(call);
    std::map<std::string, std::string> sameAs;
    for (KernelText& k : set.kernels) {
      auto [first, isNew] = names.try_emplace(bodyOf(k), k.name);
      sameAs[k.name] = first->second;
      if (!isNew) continue;
      // Printed regions have a head of their own.
      if (!k.source.starts_with("//")) {
        const std::string title = titleOf(k.name, set.variants);
        k.source = (region ? headOf(region, title) : headOf(call, title)) + k.source;
      }
      built.kernels.push_back({std::move(k.name), std::move(k.source), {}, {}});
    }
    for (Variant& v : set.variants) {
      v.buffers = int(call->getNumOperands() + call->getNumResults());
      for (Launch& l : v.launches) {
        l.kernel = sameAs.at(l.kernel);
        if (std::string why = whyNotEveryGrid(l); !why.empty()) throw unsupported(call, why);
      }
    }
    built.table[callee] = std::move(set.variants);
  });
  return built;
}

// Adds machine code. False where a kernel spills registers and there is another candidate for it:
// `scope` then rejects the one that was printed. `spills`: a line for each kernel that does.
bool addMachineCode(std::vector<KernelCode>& kernels, TuningScope& scope, std::string& spills) {
  std::vector<KernelText> sources;
  for (const KernelCode& k : kernels) sources.push_back({k.name, k.source});
  const std::vector<CompiledKernel> compiled = compileKernels(sources);
  bool good = true;
  spills.clear();
  for (size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].cubin = compiled[i].cubin;
    kernels[i].ptx = compiled[i].ptx;
    const KernelResources& r = compiled[i].report.resources;
    if (!r.spillStores && !r.spillLoads) continue;
    good &= !scope.reject(kernels[i].name);
    spills += kernels[i].name + ": " + std::to_string(r.registers) + " registers, " +
              std::to_string(r.spillStores) + " bytes stored to local memory, " +
              std::to_string(r.spillLoads) + " loaded\n";
  }
  return good;
}

}  // namespace

KernelSet printedRegion(func::FuncOp region, const std::string& name) {
  if (auto copy = transposedCopyKernels(region, name)) return std::move(*copy);
  std::string said;
  ScopedDiagnosticHandler diagnostics(region.getContext(), [&](Diagnostic& d) {
    said += (said.empty() ? "" : "; ") + d.str();
    return success();
  });
  const std::vector<RegionSchedule> schedules = schedulesOf(region);
  const RegionSchedule schedule =
      schedules.empty() ? RegionSchedule{}
                        : schedules[chosenCandidate(questionOf(region, name, schedules))];
  FailureOr<KernelSet> printed = printRegion(region, name, schedule);
  if (failed(printed)) throw unsupported(region, "no kernel for region " + name + ": " + said);
  return std::move(*printed);
}

KernelSet kernelsOf(KernelOp call, const std::string& name) {
  using Maker = KernelSet (*)(KernelOp, const std::string&);
  const Maker attention = [](KernelOp c, const std::string& n) {
    return attentionKernels(attentionOf(c, n));
  };
  const Maker maker = llvm::StringSwitch<Maker>(call.getKind())
                          .Case("attention", attention)
                          .Case("paged_attention", attention)
                          .Case(kAttendedLinear, attendedLinearKernels)
                          .Case("linear", linearKernels)
                          .Case("grouped_linear", groupedKernels)
                          .Case("matmul", matmulKernels)
                          .Case("convolution", convolutionKernels)
                          .Case("update", updateKernels)
                          .Case("paged_update", pagedUpdateKernels)
                          .Case("top_k", topKKernels)
                          .Case("cumsum", cumSumKernels)
                          .Case("random_bits", randomBitsKernels)
                          .Case("cast", packedCastKernels)
                          .Default(nullptr);
  if (!maker) throw unsupported(call, "no kernel of kind '" + call.getKind().str() + "'");
  return maker(call, name);
}

KernelSet kernelsOfCall(KernelOp call, const std::string& name) {
  func::FuncOp region = regionOf(call);
  if (!region) return kernelsOf(call, name);
  if (!region.getOps<LinearOp>().empty()) return fusedLinearKernels(region, name);
  KernelSet set = printedRegion(region, name);
  // The plan of memory has one buffer for both: what the text reads must be what it replaces.
  const auto reuse = call.getConfig().getAs<IntegerAttr>(kReuse);
  if (reuse && !isEmpty(call.getOutputs()[0]) &&
      !llvm::is_contained(set.inPlace, std::pair(unsigned(reuse.getInt()), 0u)))
    throw unsupported(
        call, "region " + name + " cannot replace its operand " + std::to_string(reuse.getInt()));
  return set;
}

void buildKernels(ModuleOp module, const BackendRequest& request, Program& program) {
  const bool machineCode = wantsMachineCode(request.target);
  TuningScope scope;
  Built built = printAll(module, program);
  // What was rejected stays so: the loop ends when no kernel spills or nothing is left to try.
  std::string spills;
  while (machineCode && !addMachineCode(built.kernels, scope, spills)) {
    scope.asked.clear();
    built = printAll(module, program);
  }
  if (request.onCode)
    for (const KernelCode& k : built.kernels) {
      request.onCode(k.name, "sm_90a", "cuda", k.source);
      if (!k.ptx.empty()) request.onCode(k.name, "sm_90a", "ptx", k.ptx);
    }
  std::string others;
  for (const TuningScope::Asked& a : scope.asked)
    if (scope.rejected.count(a.question.problem))
      others += a.question.kernel + ": " + a.question.candidates[a.printed] + "\n";
  if (!others.empty()) program.metadata["cuda.instead_of_spilling"] = others;
  if (!spills.empty()) program.metadata["cuda.spills"] = spills;
  storeKernels(program, built.table, built.kernels);
}

}  // namespace lathe::cuda
