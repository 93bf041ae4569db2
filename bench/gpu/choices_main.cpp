// SPDX-License-Identifier: Apache-2.0
// lathe-gpu-choices: measures the candidates that `lathe tune` wrote, with the runtime alone.
// Writes all numbers as JSON and, for backends/cuda/tuning, a line for every problem.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "backends/cuda/device/tuning_measure.h"
#include "bench/gpu/held_gpu.h"
#include "bench/gpu/isolated.h"
#include "lathe/runtime/error.h"

namespace {

using namespace lathe;
using namespace lathe::cuda;
using Json = nlohmann::ordered_json;

constexpr const char* kUsage =
    "usage: lathe-gpu-choices DEVICE CANDIDATES.lathe OUT.json RECORDS.txt [TEXT]\n"
    "DEVICE is gpu or host; with TEXT only problems that contain it\n";
constexpr unsigned kSecondsPerProblem = 120;

std::string today() {
  const std::time_t time = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&time));
  return text;
}

// A candidate that broke the context costs its own problem and not the next one.
void expectSound(Driver& gpu, const TuningProblem& problem,
                 const std::vector<MeasuredChoice>& all) {
  try {
    gpu.synchronize();
  } catch (const Error& e) {
    std::string message = e.what();
    for (size_t i = 0; i < all.size(); ++i)
      if (!all[i].error.empty()) message += "\n" + problem.choices[i] + ": " + all[i].error;
    throw Error(e.code(), message);
  }
}

// What a child of this process finds out about problem number `i`.
Json measured(const Program& program, const TuningProblem& problem, const std::string& device) {
  Driver* gpu = heldGpu(device);
  TuningEffort effort;
  if (device == "host") effort = {1, 3, 0, 0};  // its times say nothing
  const std::vector<MeasuredChoice> all = measureChoices(program, problem, device, effort);
  if (gpu) expectSound(*gpu, problem, all);
  const size_t winner = winnerOf(all);
  const DeviceFacts facts = gpu ? gpu->facts() : openHost()->facts();
  Json choices = Json::array();
  for (size_t i = 0; i < all.size(); ++i) {
    const MeasuredChoice& m = all[i];
    Json c{{"choice", problem.choices[i]}};
    if (i < problem.modelMicroseconds.size()) c["model_us"] = problem.modelMicroseconds[i];
    if (m.error.empty()) {
      c["us"] = m.microseconds;
      c["spread"] = m.spread;
      c["apart"] = m.apart;
    } else {
      c["error"] = m.error;
    }
    choices.push_back(std::move(c));
  }
  Json found{{"problem", problem.problem}, {"choices", choices}};
  if (all.empty() || !all[0].error.empty()) return found;
  TuningRecord r;
  r.device = facts.name;
  std::erase_if(r.device, [](char c) { return c == ',' || c == '|'; });
  if (device != "host") r.major = facts.major, r.minor = facts.minor;  // else no compiler's target
  r.multiprocessors = facts.multiprocessors;
  r.problem = problem.problem;
  r.version = problem.version;
  r.choice = problem.choices[winner];
  r.microseconds = all[winner].microseconds;
  r.spread = all[winner].spread;
  r.software = facts.driver.empty() ? "no driver" : "driver " + facts.driver;
  r.date = today();
  found["winner"] = winner;
  found["gain"] = 1 - all[winner].microseconds / all[0].microseconds;
  found["record"] = toText(r);
  return found;
}

// Why there is no such device, as a child finds out: only children may open it. Empty if there is.
std::string whyNoDevice(const std::string& device) {
  std::string why;
  runIsolated(
      1, [&](size_t) { return heldGpu(device), std::string(); },
      [&](size_t, const std::string& text, bool isError) {
        if (isError) why = text;
      });
  return why;
}

int run(const std::string& device, const std::string& path, const std::string& out,
        const std::string& records, const std::string& filter) {
  const auto start = std::chrono::steady_clock::now();
  const std::shared_ptr<const Program> program = Program::open(path);
  std::vector<TuningProblem> problems = tuningProblemsOf(*program);
  std::erase_if(problems, [&](const TuningProblem& p) {
    return p.problem.find(filter) == std::string::npos;
  });
  Json report{{"check", "choices"}, {"device", device}, {"candidates", path}};
  report["problems"] = Json::array();
  std::ofstream lines(records);
  size_t failed = 0, switched = 0;
  auto save = [&](const char* outcome) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    report["outcome"] = outcome;
    report["seconds"] = seconds.count();
    report["switched"] = switched;
    report["failed"] = failed;
    std::ofstream(out) << report.dump(1) << "\n";
    lines.flush();
  };
  if (const std::string why = whyNoDevice(device); !why.empty()) {  // once, not per problem
    report["error"] = why;
    save("failed");
    std::cerr << "lathe-gpu-choices: " << why << "\n";
    return 1;
  }
  auto work = [&](size_t i) { return measured(*program, problems[i], device).dump(); };
  auto done = [&](size_t i, const std::string& text, bool isError) {
    Json found =
        isError ? Json{{"problem", problems[i].problem}, {"error", text}} : Json::parse(text);
    if (found.contains("record")) {
      lines << std::string(found["record"]) << "\n";
      switched += found["winner"] != 0;
    } else {
      ++failed;
    }
    std::cout << (found.contains("record") ? std::string(found["record"]) : found.dump()) << "\n";
    report["problems"].push_back(std::move(found));
    save("stopped early");  // what is known if the process dies
  };
  runIsolated(problems.size(), work, done, kSecondsPerProblem);
  const bool good = !problems.empty() && !failed && report["problems"].size() == problems.size();
  save(good ? "measured" : "failed");
  std::cout << report["problems"].size() << " of " << problems.size() << " problems, " << switched
            << " not as the model chose, " << failed << " failed\n";
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "";
  if (argc < 5 || argc > 6 || (device != "gpu" && device != "host")) {
    std::cerr << kUsage;
    return 2;
  }
  try {
    return run(device, argv[2], argv[3], argv[4], argc == 6 ? argv[5] : "");
  } catch (const std::exception& e) {
    std::cerr << "lathe-gpu-choices: " << e.what() << "\n";
    return 2;
  }
}
