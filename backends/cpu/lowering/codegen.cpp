// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/codegen.h"

#include "backends/cpu/lowering/expansions.h"
#include "lathe/runtime/error.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

// The vectors are explicit already: what is left is cleaning, at a third of the time of O3.
constexpr const char* kPipeline =
    "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(loop-simplifycfg,licm),early-cse,loop(indvars),"
    "instcombine<no-verify-fixpoint>,simplifycfg)";

LogicalResult lowerToLlvm(ModuleOp module, const Tier& tier) {
  MLIRContext* context = module.getContext();
  if (failed(expandForX86(module, tier))) return failure();
  LLVMTypeConverter types(context);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns, true, /*benefit=*/2);
  // The error function, which LLVM has no name for.
  populateMathToLibmConversionPatterns(patterns);
  populateFuncToLLVMConversionPatterns(types, patterns);
  populateVectorToLLVMConversionPatterns(types, patterns);
  return applyFullConversion(module, target, std::move(patterns));
}

std::unique_ptr<llvm::TargetMachine> targetMachine(const Tier& tier, std::string& failure) {
  static const bool ready = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)ready;
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, failure);
  if (!target) return {};
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, "x86-64", tier.features, llvm::TargetOptions(), llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, kPipeline));
  passes.run(module, modules);
}

// Machine code or its text; empty if the target writes none.
std::string emitted(llvm::Module& module, llvm::TargetMachine& machine,
                    llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager emit;
  if (machine.addPassesToEmitFile(emit, stream, nullptr, type)) return {};
  emit.run(module);
  return {bytes.begin(), bytes.end()};
}

// The three languages of a kernel, for who wants to read them.
void tellVectors(ModuleOp kernels, const Tier& tier, const CodeObserver& onCode) {
  for (auto function : kernels.getOps<FunctionOpInterface>()) {
    if (function.isExternal()) continue;
    std::string text;
    llvm::raw_string_ostream(text) << *function;
    onCode(function.getName().str(), tier.name, "vector", std::move(text));
  }
}
void tellLlvm(const llvm::Module& module, const Tier& tier, const CodeObserver& onCode) {
  for (const llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    std::string text;
    llvm::raw_string_ostream os(text);
    function.print(os);
    onCode(function.getName().str(), tier.name, "llvm", std::move(text));
  }
}
void tellAssembly(const llvm::Module& module, llvm::TargetMachine& machine, const Tier& tier,
                  const CodeObserver& onCode) {
  const std::string text =
      emitted(*llvm::CloneModule(module), machine, llvm::CodeGenFileType::AssemblyFile);
  for (const llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    // A function's text lies between its label and the label that closes it.
    StringRef after = StringRef(text).split(("\n" + function.getName() + ":").str()).second;
    onCode(function.getName().str(), tier.name, "asm",
           after.split('\n').second.split("\n.Lfunc_end").first.str());
  }
}

// Kernels as LLVM IR; a context belongs to one thread at a time.
struct Translated {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
  std::string failure;
};

// Reports by value, as all that follows: no exception may pass through frames of MLIR or LLVM.
Translated translated(ModuleOp kernels, const Tier& tier, const CodeObserver& onCode) {
  Translated out;
  ScopedDiagnosticHandler diagnostics(kernels.getContext(), [&](Diagnostic& d) {
    out.failure += d.str() + "\n";
    return success();
  });
  if (onCode) tellVectors(kernels, tier, onCode);
  if (failed(lowerToLlvm(kernels, tier))) {
    if (out.failure.empty()) out.failure = "lowering to the LLVM dialect failed";
    return out;
  }
  out.module = translateModuleToLLVMIR(kernels, *out.context, "kernels");
  if (!out.module && out.failure.empty()) out.failure = "translation to LLVM IR failed";
  return out;
}

struct Compiled {
  std::string object, failure;
};

Compiled compiled(llvm::Module& module, const Tier& tier, const CodeObserver& onCode) {
  Compiled out;
  auto machine = targetMachine(tier, out.failure);
  if (!machine) return out;
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", "x86-64");
    f.addFnAttr("target-features", tier.features);
    f.addFnAttr("prefer-vector-width", tier.avx512 ? "512" : "256");
    f.addFnAttr(llvm::Attribute::NoUnwind);
  }
  optimize(module, *machine);
  if (onCode) {
    tellLlvm(module, tier, onCode);
    tellAssembly(module, *machine, tier, onCode);
  }
  out.object = emitted(module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (out.object.empty()) out.failure = "the x86-64 target writes no object files";
  return out;
}

}  // namespace

std::future<std::string> compileKernels(ModuleOp kernels, const Tier& tier,
                                        const CodeObserver& onCode) {
  Translated input = [&] {
    std::shared_lock lock(linkerGlobals());
    return translated(kernels, tier, onCode);
  }();
  // Who is told of the code is told of tier after tier, on the thread that asked.
  const std::launch apart = std::launch::async | std::launch::deferred;  // no thread to be had
  const std::launch when = onCode ? std::launch::deferred : apart;
  auto object = std::async(when, [input = std::move(input), tier, onCode] {
    Compiled code{"", input.failure};
    if (input.module) {
      std::shared_lock lock(linkerGlobals());
      code = compiled(*input.module, tier, onCode);
    }
    if (code.object.empty())
      throw Error(ErrorCode::Unsupported, "expected the " + tier.name +
                                              " kernels to compile, got: " + code.failure +
                                              "; report the region that they come from");
    return linkShared(code.object);
  });
  if (onCode) object.wait();
  return object;
}

}  // namespace lathe::cpu
