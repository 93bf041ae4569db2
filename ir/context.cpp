// SPDX-License-Identifier: Apache-2.0
#include "ir/context.h"

#include "ir/types.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/thread.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "runtime/error.h"

using namespace mlir;

namespace lathe {

void registerDialects(DialectRegistry& registry) {
  registry.insert<LatheDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect,
                  scf::SCFDialect, vector::VectorDialect, LLVM::LLVMDialect>();
}

std::unique_ptr<MLIRContext> createContext() {
  DialectRegistry registry;
  registerDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadDialect<LatheDialect, func::FuncDialect>();
  return context;
}

std::optional<std::string> prescan(StringRef text, PrescanLimits limits) {
  if (text.size() > limits.bytes)
    return "IR text of " + std::to_string(text.size()) + " bytes, the limit is " +
           std::to_string(limits.bytes);
  if (text.starts_with("ML\xefR")) return "MLIR bytecode where text is expected";
  unsigned depth = 0, line = 1;
  for (size_t i = 0, n = text.size(); i < n; ++i) {
    switch (text[i]) {
      case '\n':
        ++line;
        break;
      case '"':
        for (++i; i < n && text[i] != '"' && text[i] != '\n'; ++i) i += text[i] == '\\';
        break;
      case '/':
        if (i + 1 < n && text[i + 1] == '/')
          while (i + 1 < n && text[i + 1] != '\n') ++i;
        break;
      case '-':  // an arrow closes nothing
        i += i + 1 < n && text[i + 1] == '>';
        break;
      case '(':
      case '[':
      case '{':
      case '<':
        if (++depth > limits.depth)
          return "line " + std::to_string(line) + ": nesting deeper than " +
                 std::to_string(limits.depth);
        break;
      case ')':
      case ']':
      case '}':
      case '>':
        depth -= depth > 0;
        break;
    }
  }
  return std::nullopt;
}

OwningOpRef<ModuleOp> parseModule(MLIRContext& context, StringRef text, StringRef name) {
  if (auto reason = prescan(text)) throw Error(ErrorCode::InvalidFile, name.str() + ": " + *reason);
  std::string messages;
  OwningOpRef<ModuleOp> module;
  // 256 levels of regions take more stack than a small thread has.
  llvm::thread parser(std::optional<unsigned>(16u << 20), [&] {
    ScopedDiagnosticHandler collect(&context, [&](Diagnostic& d) {
      llvm::raw_string_ostream os(messages);
      if (!messages.empty()) os << "\n";
      if (auto at = dyn_cast<FileLineColLoc>(d.getLocation()))
        os << at.getFilename().getValue() << ":" << at.getLine() << ":" << at.getColumn() << ": ";
      os << d;
      return success();
    });
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name), llvm::SMLoc());
    module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  });
  parser.join();
  if (!module)
    throw Error(ErrorCode::InvalidFile,
                messages.empty() ? name.str() + ": not a module" : messages);
  return module;
}

}  // namespace lathe
