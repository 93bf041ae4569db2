// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/context.h"

#include "ir/op_complaints.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
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

// Where the text goes on behind space and comments.
static size_t skipSpace(StringRef text, size_t i) {
  while (i < text.size()) {
    if (text.substr(i).starts_with("//"))
      i = std::min(text.find('\n', i), text.size());
    else if (isspace(uint8_t(text[i])))
      ++i;
    else
      break;
  }
  return i;
}

// MLIR's parser crashes on an array of indices, whatever name the type has. `i` may begin one.
static bool isStrangeArray(StringRef text, size_t i) {
  auto isPart = [](char c) { return isalnum(uint8_t(c)) || c == '_' || c == '.' || c == '$'; };
  if ((i > 0 && isPart(text[i - 1])) || !text.substr(i).starts_with("array")) return false;
  const size_t open = skipSpace(text, i + 5);
  if (open >= text.size() || text[open] != '<') return false;
  const StringRef type = text.substr(skipSpace(text, open + 1)).take_while(isPart);
  return !llvm::is_contained({"i1", "i8", "i16", "i32", "i64", "f32", "f64"}, type);
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
      case 'a':
        if (isStrangeArray(text, i))
          return "line " + std::to_string(line) +
                 ": expected array<...> of i1, i8, i16, i32, i64, f32 or f64";
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

// A misspelled attribute would be kept and never read.
static void refuseStrangeAttributes(Operation* op) {
  for (NamedAttribute a : op->getDiscardableAttrs())
    if (const std::string why = whyNoAttribute(op->getName(), a.getName()); !why.empty()) {
      std::string at;
      if (auto file = dyn_cast<FileLineColLoc>(op->getLoc()))
        at = file.getFilename().str() + ":" + std::to_string(file.getLine()) + ":" +
             std::to_string(file.getColumn()) + ": ";
      throw Error(ErrorCode::InvalidFile, at + why);
    }
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
  module->walk([](Operation* op) {
    if (op->getName().getDialectNamespace() == "lathe") refuseStrangeAttributes(op);
  });
  return module;
}

}  // namespace lathe
