// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/bench_profile.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tools/lathe/places.h"
#include "tools/lathe/rank_links.h"

namespace lathe::cli {
namespace {

constexpr size_t kProfileRows = 24;

}  // namespace

Profiles profilesOf(const Session& session) {
  Profiles all;
  for (const char* entry : {"prefill", "decode"}) all[entry] = session.profile(entry);
  return all;
}

double collectiveSeconds(const Program& program, const std::string& entry, const Profiles& before,
                         const Profiles& after) {
  const std::vector<Call>& calls = program.entry(entry).calls;
  double seconds = 0;
  for (size_t i = 0; i < calls.size(); ++i)
    if (exchangesOf(calls[i]) > 0)
      seconds += after.at(entry)[i].seconds - before.at(entry)[i].seconds;
  return seconds;
}

std::vector<ProfileRow> profileRows(const Profiles& before, const Profiles& after,
                                    const PredictedTimes& predicted) {
  std::vector<ProfileRow> rows;
  for (const char* entry : {"prefill", "decode"}) {
    std::map<std::pair<std::string, std::string>, ProfileRow> byPlace;
    for (size_t i = 0; i < after.at(entry).size(); ++i) {
      const CallProfile &end = after.at(entry)[i], &start = before.at(entry)[i];
      std::string kernel = kindOf(end.kind), place = placeOf(end.origin);
      ProfileRow& row = byPlace[{kernel, place}];
      row.entry = entry;
      row.kernel = kernel;
      row.origin = place;
      row.seconds += end.seconds - start.seconds;
      row.predictedSeconds += predicted.at(entry)[i];
      row.runs += end.runs - start.runs;
    }
    std::vector<ProfileRow> sorted;
    for (auto& [key, row] : byPlace)
      if (row.runs) sorted.push_back(row);
    std::sort(sorted.begin(), sorted.end(),
              [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
    if (sorted.size() > kProfileRows) {
      ProfileRow rest{entry, "others", fmt::format("{} places", sorted.size() - kProfileRows)};
      for (size_t i = kProfileRows; i < sorted.size(); ++i) {
        rest.seconds += sorted[i].seconds;
        rest.predictedSeconds += sorted[i].predictedSeconds;
        rest.runs += sorted[i].runs;
      }
      sorted.resize(kProfileRows);
      sorted.push_back(rest);
    }
    rows.insert(rows.end(), sorted.begin(), sorted.end());
  }
  return rows;
}

}  // namespace lathe::cli
