// SPDX-License-Identifier: Apache-2.0
// Questions as plain rows; lathe/questions.py gives them their looks.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lathe/inspect/check_numerics.h"
#include "lathe/inspect/graph_diff.h"
#include "lathe/inspect/report.h"
#include "lathe/inspect/why_not.h"
#include "python/src/recording.h"

namespace lathe::python {
namespace {

nb::list whyNotRows(const Graph& graph, const std::string& op, const std::string& at,
                    const nb::kwargs& keywords) {
  WhyNotOptions options{.compile = compileOptionsFrom(keywords), .op = op, .at = at};
  std::vector<CompileRecord::Miss> misses;
  {
    nb::gil_scoped_release released;
    misses = whyNot(graph, options);
  }
  nb::list rows;
  for (const CompileRecord::Miss& m : misses) {
    nb::dict row;
    row["op"] = m.op;
    row["at"] = m.at;
    row["path"] = m.path;
    row["pattern"] = m.pattern;
    row["matched"] = m.matched;
    row["of"] = m.of;
    row["constraint"] = m.constraint;
    row["reason"] = m.reason;
    row["by"] = m.by;
    rows.append(row);
  }
  return rows;
}

nb::list rewriteRows(const Graph& graph, const nb::kwargs& keywords) {
  CompileOptions options = compileOptionsFrom(keywords);
  CompileRecord record;
  options.record = &record;
  {
    nb::gil_scoped_release released;
    irAt(graph, "lowered", options);
  }
  nb::list rows;
  for (const CompileRecord::Rewrite& r : record.rewrites) {
    nb::dict row;
    row["number"] = r.number;
    row["step"] = r.step;
    row["what"] = r.what;
    row["at"] = r.at;
    row["path"] = r.path;
    row["weakened"] = nb::cast(r.weakened);
    rows.append(row);
  }
  return rows;
}

nb::list numericsRows(const Graph& graph, uint64_t seed, const nb::kwargs& keywords) {
  TrialOptions trial;
  trial.compile = compileOptionsFrom(keywords);
  trial.seed = seed;
  NumericsTable table;
  {
    nb::gil_scoped_release released;
    table = checkNumerics(graph, trial);
  }
  nb::list rows;
  for (const NumericsRow& r : table.rows) {
    nb::dict row;
    row["stage"] = r.stage;
    row["step"] = r.step;
    row["rewrites"] = r.rewrites;
    row["ran"] = r.ran;
    row["absolute"] = r.deviation.absolute;
    row["relative"] = r.deviation.relative;
    row["identical"] = r.deviation.identical;
    row["within"] = r.deviation.within;
    row["op"] = r.op;
    row["at"] = r.at;
    rows.append(row);
  }
  return rows;
}

nb::list diffRows(const Graph& a, const Graph& b, const std::string& stage, bool weightsByName) {
  GraphDiff found;
  {
    nb::gil_scoped_release released;
    found = diff(a, b, {.stage = stage, .weightsByName = weightsByName});
  }
  nb::list rows;
  for (const GraphDiff::Entry& e : found.entries) {
    nb::dict row;
    row["entry"] = e.name;
    row["equal"] = e.equal;
    row["why"] = e.equal ? "" : e.why;
    row["a"] = e.a.op + (e.a.at.empty() ? "" : " at " + e.a.at);
    row["b"] = e.b.op + (e.b.at.empty() ? "" : " at " + e.b.at);
    rows.append(row);
  }
  return rows;
}

nb::tuple compileReported(const Graph& graph, const std::string& title,
                          const nb::kwargs& keywords) {
  CompileOptions options = compileOptionsFrom(keywords);
  std::shared_ptr<Program> program;
  std::string page;
  {
    nb::gil_scoped_release released;
    Report report;
    program = std::make_shared<Program>(report.compile(graph, std::move(options)));
    page = report.page(*program, {.title = title, .settings = {}, .machine = {}});
  }
  return nb::make_tuple(program, page);
}

}  // namespace

void bindQuestions(nb::module_& m) {
  m.def("_why_not", whyNotRows, nb::arg("graph"), nb::arg("op"), nb::arg("at"), nb::arg("options"));
  m.def("_rewrites", rewriteRows, nb::arg("graph"), nb::arg("options"));
  m.def("_check_numerics", numericsRows, nb::arg("graph"), nb::arg("seed"), nb::arg("options"));
  m.def("_diff", diffRows, nb::arg("a"), nb::arg("b"), nb::arg("stage"),
        nb::arg("weights_by_name"));
  m.def("_report", compileReported, nb::arg("graph"), nb::arg("title"), nb::arg("options"));
}

}  // namespace lathe::python
