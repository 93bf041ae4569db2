// SPDX-License-Identifier: Apache-2.0
// lathe selftest: what each backend supports, whether its ops are right, and how fast they are.
#include <fnmatch.h>

#include <algorithm>

#include <fmt/format.h>

#include "backends/cpu/device/read_memory.h"
#include "lathe/runtime/backend_plugin.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/thread_pool.h"
#include "tools/lathe/console.h"
#include "tools/lathe/host_roofs.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/model.h"
#include "tools/lathe/nearest.h"
#include "tools/lathe/selftest_report.h"
#include "tools/lathe/shared_library.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

// The flush before each run walks as much as the last cache twice, but no more than this.
constexpr double kMostFlushBytes = double(1 << 30);

struct SelftestFlags {
  std::string mode, backend, op;
  std::vector<std::string> backendPlugins;
  bool json = false;
  int threads = 0;
};

const selftest::Api& selftestApi() {
  static const LoadedSymbol loaded = loadSymbol("liblathe_selftest.so", selftest::kApiSymbol);
  using Entry = const selftest::Api* (*)();
  if (!loaded.address)
    throw Error(ErrorCode::Unsupported,
                "selftest needs its table of samples, which could not be loaded (" + loaded.reason +
                    "); install liblathe_selftest.so beside liblathe.so, or build it: "
                    "scripts/build release lathe_selftest");
  return *reinterpret_cast<Entry>(loaded.address)();
}

std::string shortName(const std::string& op) { return op.substr(op.find('.') + 1); }

// Rows whose op the pattern matches, with or without the dialect's name.
template <class Row, class NameIn>
std::vector<Row> chosen(const std::vector<Row>& all, const std::string& pattern, NameIn nameIn) {
  std::vector<Row> rows;
  std::vector<std::string> names;
  for (const Row& row : all) {
    const std::string& full = nameIn(row);
    names.push_back(shortName(full));
    if (pattern.empty() || fnmatch(pattern.c_str(), full.c_str(), 0) == 0 ||
        fnmatch(pattern.c_str(), names.back().c_str(), 0) == 0)
      rows.push_back(row);
  }
  if (!rows.empty()) return rows;
  std::string hint = didYouMean(shortName(pattern), names);
  if (hint.empty()) {
    names.erase(std::unique(names.begin(), names.end()), names.end());
    hint = fmt::format("; expected a glob over {}", fmt::join(names, ", "));
  }
  throw Error(ErrorCode::InvalidArgument, "--op: no op matches '" + pattern + "'" + hint);
}

SelftestRow askedOf(const std::string& backend, const selftest::Op& op, bool runs) {
  const selftest::Api& api = selftestApi();
  SelftestRow row{backend, op.name, {}};
  for (DType dtype : op.dtypes) {
    selftest::Support support = api.support(backend, op.name, dtype);
    SelftestRow::Cell cell{dtype, support.word, support.reason};
    if (runs && support.word != "no") {
      cell.detail = api.test(backend, op.name, dtype);
      cell.word = cell.detail.empty() ? "ok" : "FAIL";
    }
    row.cells.push_back(std::move(cell));
  }
  return row;
}

// The support and test modes: a table for each backend, row by row as they are known.
std::vector<SelftestRow> walk(const SelftestFlags& flags) {
  const selftest::Api& api = selftestApi();
  const std::vector<selftest::Op> ops = chosen(
      api.ops(), flags.op, [](const selftest::Op& op) -> const std::string& { return op.name; });
  const std::vector<DType> columns = api.dtypes();
  std::vector<SelftestRow> all;
  const std::vector<std::string> backends = api.backends(flags.backend);
  Progress progress(flags.mode == "test" ? "testing" : "asking");
  size_t done = 0;
  for (const std::string& backend : backends) {
    progress.clear();
    if (!flags.json) fmt::print("{}", all.empty() ? "" : "\n");
    if (!flags.json) printSelftestHeading(backend, columns);
    std::vector<SelftestRow> rows;
    for (const selftest::Op& op : ops) {
      progress.stage((flags.mode == "test" ? "testing " : "asking about ") + op.name);
      progress.at(done++, ops.size() * backends.size());
      rows.push_back(askedOf(backend, op, flags.mode == "test"));
      progress.clear();
      if (!flags.json) printSelftestRow(rows.back(), columns);
    }
    if (!flags.json) printSelftestDetails(rows);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

// Throws Error(Numeric) that names what failed.
void judge(const std::vector<SelftestRow>& rows) {
  std::string failed;
  size_t tested = 0, count = 0;
  for (const SelftestRow& row : rows)
    for (const SelftestRow::Cell& c : row.cells) {
      tested += c.word != "no";
      if (c.word != "FAIL") continue;
      ++count;
      failed += fmt::format("{}{} {} {}", failed.empty() ? "" : ", ", row.backend,
                            shortName(row.op), nameOf(c.dtype));
    }
  if (count)
    throw Error(ErrorCode::Numeric,
                fmt::format("{} of {} tests differ from the reference: {}", count, tested, failed));
  console().note(fmt::format("{} tests agree with the reference in float64", tested));
}

void measureKernels(const SelftestFlags& flags) {
  const selftest::Api& api = selftestApi();
  const std::vector<selftest::Kernel> kernels = api.kernels();
  std::vector<size_t> all(kernels.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::vector<size_t> asked =
      chosen(all, flags.op, [&](size_t i) -> const std::string& { return kernels[i].op; });
  // The roofs are those of this machine's processors.
  const std::vector<std::string> backends =
      api.backends(flags.backend.empty() ? "cpu" : flags.backend);
  if (flags.threads) ThreadPool::setGlobalThreads(flags.threads);
  MachineRoofs machine = hostRoofs(true);
  const int64_t flush = int64_t(std::min(double(cpu::twiceLastCache()), kMostFlushBytes));
  std::vector<MeasuredKernel> measured;
  Progress progress("measuring");
  for (const std::string& backend : backends)
    for (size_t i : asked) {
      progress.stage("measuring " + kernels[i].op + " " + kernels[i].shape);
      progress.at(measured.size(), asked.size() * backends.size());
      measured.push_back({backend, kernels[i], api.measure(backend, i, flush)});
    }
  // The machine's speed drifts, above all a virtual one's: the better of two measurements counts.
  const MachineRoofs after = hostRoofs(true);
  machine.narrowFlops = std::max(machine.narrowFlops, after.narrowFlops);
  machine.wideFlops = std::max(machine.wideFlops, after.wideFlops);
  machine.bytesPerSecond = std::max(machine.bytesPerSecond, after.bytesPerSecond);
  (flags.json ? printKernelsJson : printKernels)(measured, machine, ThreadPool::global().threads());
  for (const MeasuredKernel& k : measured)
    if (k.measurement.work && k.roofShare(machine) > 1)
      console().note(
          fmt::format("{} {}: a share above 100 % means that the machine's speed "
                      "changed, or that its caches are larger than they say",
                      k.kernel.op, k.kernel.shape));
}

}  // namespace

int selftestVerb(const ArgumentList& arguments) {
  auto parser = makeParser(
      "selftest",
      "Tells what each backend supports, tests its ops against the reference in float64, or "
      "measures its kernels.",
      "lathe selftest --mode test --op 'reduce_*'");
  SelftestFlags flags;
  parser
      ->add_option("--mode", flags.mode,
                   "support: op x dtype; test: compare with the reference; perf: speed beside the "
                   "machine's roofs")
      ->required()
      ->check(CLI::IsMember({"support", "test", "perf"}));
  parser->add_option("--backend", flags.backend,
                     "one backend alone (default: all but the reference)");
  addBackendPlugins(*parser, flags.backendPlugins);
  parser->add_option("--op", flags.op, "only ops whose name matches this glob");
  addThreads(*parser, flags.threads);
  parser->add_flag("--json", flags.json, "print one JSON document");
  if (!parseArguments(*parser, arguments)) return kOk;
  loadBackendPlugins(flags.backendPlugins);
  if (flags.mode == "perf") {
    if (flags.backend == "reference")
      throw Error(ErrorCode::InvalidArgument,
                  "--mode perf: the reference backend interprets and has no kernels to measure");
    if (flags.backend == "cuda")
      throw Error(ErrorCode::InvalidArgument,
                  "--mode perf measures this machine's processors; on a GPU bench/gpu/run does "
                  "(docs/gpu-checks.md)");
    measureKernels(flags);
    return kOk;
  }
  if (flags.threads)
    throw Error(ErrorCode::InvalidArgument,
                "--threads goes with --mode perf, got --mode " + flags.mode);
  const std::vector<SelftestRow> rows = walk(flags);
  if (flags.json) printSelftestJson(flags.mode, rows);
  if (flags.mode == "test") judge(rows);
  return kOk;
}

}  // namespace lathe::cli
