// SPDX-License-Identifier: Apache-2.0
#include "lathe/inspect/report.h"

#include <algorithm>

#include "inspect/report/ir_history.h"
#include "inspect/report/json_text.h"
#include "inspect/report/page.h"
#include "inspect/report/program_facts.h"
#include "inspect/report/source_text.h"
#include "lathe/passes/numerics.h"
#include "lathe/runtime/error.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/mapped_file.h"

namespace lathe {

struct Report::Impl {
  OriginTable origins;
  IrHistory history{origins};
  CompileRecord record;
  std::string backend, mode;
};

Report::Report() : impl_(std::make_unique<Impl>()) {}
Report::~Report() = default;
Report::Report(Report&&) noexcept = default;
Report& Report::operator=(Report&&) noexcept = default;

Program Report::compile(const Graph& graph, CompileOptions options) {
  if (impl_->history.steps())
    throw Error(ErrorCode::InvalidArgument,
                "Report::compile: expected a fresh report, got one that holds a compilation; make "
                "another");
  impl_->backend = options.backend;
  impl_->mode = std::string(nameOf(options.pipeline.mode));
  CompileRecord* callers = options.record;
  CompileRecord& record = impl_->record;
  if (callers) record.wantSnapshots = callers->wantSnapshots;
  record.wantMisses = record.wantCode = true;
  options.record = &record;
  Program program = runStages(
      graph, Stage::Program, options,
      [&](Stage stage, mlir::ModuleOp module) {
        if (stage == Stage::Recorded || stage == Stage::Program)
          impl_->history.add(nameOf(stage), nameOf(stage), module);
      },
      [&](const StepDone& step, mlir::ModuleOp module) {
        impl_->history.add(nameOf(step.stage), step.name, module);
      });
  if (callers) *callers = record;
  return program;
}

namespace {

using llvm::json::OStream;

// Texts by number: names and lines that many rows share.
class TextTable {
 public:
  int64_t operator()(const std::string& text) {
    auto [known, isNew] = ids_.try_emplace(text, int64_t(texts_.size()));
    if (isNew) texts_.push_back(text);
    return known->second;
  }
  void write(OStream& out, const char* key) const {
    out.attributeArray(key, [&] {
      for (const std::string& text : texts_) out.value(jsonText(text));
    });
  }

 private:
  std::vector<std::string> texts_;
  std::map<std::string, int64_t> ids_;
};

void writeRewrites(OStream& out, const CompileRecord& record, TextTable& texts) {
  out.attributeArray("rewrites", [&] {
    for (const CompileRecord::Rewrite& r : record.rewrites)
      out.array([&] {
        out.value(r.number);
        out.value(r.attempt);
        for (const std::string& text : {r.step, r.what, r.at, r.path}) out.value(texts(text));
        for (const std::string& contract : r.weakened) out.value(texts(contract));
      });
  });
  out.attributeArray("misses", [&] {
    for (const CompileRecord::Miss& m : record.misses)
      out.array([&] {
        for (const std::string& text : {m.op, m.at, m.path, m.pattern}) out.value(texts(text));
        out.value(m.matched);
        out.value(m.of);
        for (const std::string& text : {m.constraint, m.reason, m.by}) out.value(texts(text));
      });
  });
}

void writeObserved(OStream& out, const CompileRecord& record) {
  out.attributeArray("observed", [&] {
    for (const CompileRecord::Observed& o : record.observed)
      out.array([&] {
        for (const std::string& text :
             {o.entry, o.name, o.how, o.cost.flops.text(), (o.cost.read + o.cost.written).text()})
          out.value(jsonText(text));
      });
  });
}

void writeCode(OStream& out, const CompileRecord& record) {
  TextTable lines;
  out.attributeArray("code", [&] {
    for (const CompileRecord::Code& code : record.code)
      out.object([&] {
        out.attribute("kernel", jsonText(code.kernel));
        out.attribute("tier", jsonText(code.tier));
        out.attribute("language", jsonText(code.language));
        out.attributeArray("lines", [&] {
          llvm::SmallVector<llvm::StringRef> split;
          llvm::StringRef(code.text).rtrim().split(split, '\n');
          for (llvm::StringRef line : split) out.value(lines(line.rtrim().str()));
        });
      });
  });
  lines.write(out, "codeLines");
}

}  // namespace

std::string Report::json(const Program& program, const ReportOptions& options,
                         const std::vector<ReportRun>& runs) const {
  std::vector<SymbolValues> settings;
  auto add = [&](const SymbolValues& given) {
    SymbolValues setting = settingFor(program, given);
    if (std::find(settings.begin(), settings.end(), setting) == settings.end())
      settings.push_back(setting);
  };
  for (const SymbolValues& given : options.settings) add(given);
  for (const ReportRun& run : runs) add(run.symbols);
  if (settings.empty()) add({});
  checkRuns(program, runs);
  std::map<std::string, CallCosts> costs = costsOf(program);

  std::string text;
  llvm::raw_string_ostream stream(text);
  OStream out(stream);
  TextTable texts;
  out.objectBegin();
  out.attribute("version", 1);
  out.attribute("title", jsonText(options.title));
  out.attribute("backend", jsonText(impl_->backend));
  out.attribute("mode", jsonText(impl_->mode));
  impl_->origins.write(out);
  writeSources(out, impl_->origins);
  impl_->history.write(out);
  writeRewrites(out, impl_->record, texts);
  writeObserved(out, impl_->record);
  out.attributeArray("contracts", [&] {
    for (const ContractRow& row : contractTable())
      out.array([&] {
        out.value(jsonText(row.name));
        out.value(jsonText(row.meaning));
      });
  });
  writeProgram(out, program, settings, costs, options.machine ? &*options.machine : nullptr);
  if (options.machine) {
    out.attributeObject("machine", [&] {
      out.attribute("name", jsonText(options.machine->name));
      out.attribute("narrow", options.machine->narrowFlops);
      out.attribute("wide", options.machine->wideFlops);
      out.attribute("bandwidth", options.machine->bytesPerSecond);
      out.attribute("busy", options.machine->busy);
    });
  }
  writeRuns(out, program, runs, settings);
  writeCode(out, impl_->record);
  texts.write(out, "texts");
  out.objectEnd();
  return text;
}

std::string Report::page(const Program& program, const ReportOptions& options,
                         const std::vector<ReportRun>& runs) const {
  return reportPage(options.title, json(program, options, runs));
}

void Report::write(const std::string& path, const Program& program, const ReportOptions& options,
                   const std::vector<ReportRun>& runs) const {
  writeFileAtomically(path, page(program, options, runs));
}

}  // namespace lathe
