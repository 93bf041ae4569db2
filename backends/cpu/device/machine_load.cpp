// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/machine_load.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace lathe::cpu {
namespace {

double ownSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

}  // namespace

ProcessorTime ProcessorTime::parse(std::string_view stat, double ticks) {
  // "cpu  user nice system idle iowait irq softirq steal ..." for all, then a line for each.
  std::istringstream in{std::string(stat)};
  ProcessorTime time;
  std::string name;
  if (!(in >> name) || name != "cpu" || ticks <= 0) return {};
  for (int column = 0; column < 8; ++column) {
    double value = 0;
    if (!(in >> value)) return {};
    const bool isIdle = column == 3 || column == 4;
    time.all += value / ticks;
    if (!isIdle) time.busy += value / ticks;
  }
  for (std::string line; std::getline(in, line);)
    time.processors += line.starts_with("cpu") ? 1 : 0;
  return time;
}

ProcessorTime ProcessorTime::now() {
  std::ifstream file("/proc/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse(text, double(sysconf(_SC_CLK_TCK)));
}

double processorsLeft(const ProcessorTime& before, const ProcessorTime& after, double own) {
  const double all = after.all - before.all;
  if (all <= 0) return after.processors;
  const double others = std::max(0.0, after.busy - before.busy - own);
  return after.processors * (1 - std::min(1.0, others / all));
}

MachineLoad::MachineLoad() : start_(ProcessorTime::now()), own_(ownSeconds()) {}

bool MachineLoad::wasBusy(int threads) const {
  const ProcessorTime now = ProcessorTime::now();
  if (!now.processors || !start_.processors) return false;
  const int wanted = std::min(threads, now.processors);
  return processorsLeft(start_, now, ownSeconds() - own_) < 0.9 * wanted;
}

}  // namespace lathe::cpu
