// SPDX-License-Identifier: Apache-2.0
// lathe-gpu-cases: runs the cases of tests/conformance/write_gpu_cases.cpp on a GPU or by host
// execution, with the runtime alone, and writes every mismatch as JSON.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>

#include <nlohmann/json.hpp>

#include "bench/gpu/held_gpu.h"
#include "bench/gpu/isolated.h"
#include "bench/gpu/packed_program.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/safetensors.h"
#include "lathe/runtime/session.h"
#include "tests/conformance/tolerance.h"

namespace {

using namespace lathe;
using Json = nlohmann::ordered_json;

constexpr const char* kUsage =
    "usage: lathe-gpu-cases DEVICE CASES.safetensors OUT.json [TEXT]\n"
    "DEVICE is gpu or host; with TEXT only cases whose name contains it\n";

// A kernel that hangs costs its time, any other failure a new process: both leave room for the rest
// of a stage. Host execution first compiles each kernel, of which a case of products has some
// dozens.
unsigned secondsPerCase(const std::string& device) { return device == "host" ? 300 : 30; }
constexpr size_t kMostFailures = 200;

// Tensors named `prefix` + name, by name.
Arrays below(const SafetensorsFile& file, const std::string& prefix) {
  Arrays arrays;
  for (const SafetensorsEntry& e : file.tensors())
    if (e.name.starts_with(prefix)) arrays[e.name.substr(prefix.size())] = file.array(e.name);
  return arrays;
}

// Lines for outputs that differ; empty if all agree.
Json mismatches(const SafetensorsFile& file, const Json& item, const Json& sizes,
                const std::string& device, int64_t& compared) {
  const std::string name = item["name"], op = item["op"];
  const std::vector<std::string> exact = item["exact"];
  Session session(lathe::cuda::packedProgram(file, name + "/program"), {.device = device});
  session.bindWeights(below(file, name + "/weights/"));
  Json found = Json::array();
  for (const std::string size : sizes) {
    const std::string at = name + "/" + size;
    const Arrays got = session.run("forward", below(file, at + "/in/"));
    for (const auto& [output, want] : below(file, at + "/out/")) {
      const bool isExact = std::find(exact.begin(), exact.end(), output) != exact.end();
      auto tolerance = conformance::toleranceOf(op, want.dtype(), isExact);
      // What float64 gives was rounded to the result's dtype when it was written.
      if (tolerance.steps > 0) tolerance.steps += 1;
      const std::string text = conformance::firstDifference(got.at(output), want, tolerance);
      ++compared;
      if (!text.empty()) found.push_back({{"size", size}, {"output", output}, {"what", text}});
    }
  }
  return found;
}

int run(const std::string& device, const std::string& path, const std::string& out,
        const std::string& filter) {
  const auto start = std::chrono::steady_clock::now();
  const SafetensorsFile file = SafetensorsFile::open(path);
  const Json cases = Json::parse(file.metadata().at("cases"));
  const Json sizes = Json::parse(file.metadata().at("sizes"));
  const Json failed = Json::parse(file.metadata().at("failed"));
  Json report{{"check", "conformance"}, {"device", device}}, wrong = Json::array(),
                                                             passed = Json::array();
  int64_t compared = 0, ran = 0;
  auto saved = start;
  auto save = [&](const char* outcome) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    report["outcome"] = outcome;
    report["cases"] = ran;
    report["outputs_compared"] = compared;
    report["seconds"] = seconds.count();
    report["wrong"] = wrong;
    report["not_compiled"] = failed;
    report["passed"] = passed;
    std::ofstream(out) << report.dump(1) << "\n";
  };
  std::vector<Json> chosen;
  for (const Json& item : cases)
    if (std::string(item["name"]).find(filter) != std::string::npos) chosen.push_back(item);
  auto work = [&](size_t i) {
    lathe::cuda::heldGpu(device);
    int64_t count = 0;
    const Json found = mismatches(file, chosen[i], sizes, device, count);
    return Json{{"compared", count}, {"mismatches", found}}.dump();
  };
  auto done = [&](size_t i, const std::string& text, bool failed) {
    Json entry{{"name", chosen[i]["name"]}};
    ++ran;
    if (failed) {
      entry["error"] = text;
    } else {
      const Json result = Json::parse(text);
      compared += int64_t(result["compared"]);
      entry["mismatches"] = result["mismatches"];
    }
    if (!failed && entry["mismatches"].empty()) {
      passed.push_back(entry["name"]);
    } else {
      std::cout << entry.dump() << std::endl;
      wrong.push_back(entry);
    }
    if (std::chrono::steady_clock::now() - saved < std::chrono::seconds(2)) return;
    saved = std::chrono::steady_clock::now();
    save("stopped early");  // what is known if the process dies
  };
  save("stopped early");
  lathe::cuda::runIsolated(chosen.size(), work, done, secondsPerCase(device), kMostFailures);
  report["not_run"] = int64_t(chosen.size()) - ran;
  const bool good = wrong.empty() && failed.empty() && ran && size_t(ran) == chosen.size();
  save(good ? "passed" : "failed");
  std::cout << ran << " cases, " << compared << " outputs, " << wrong.size() << " cases wrong, "
            << failed.size() << " not compiled\n";
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "";
  if (argc < 4 || argc > 5 || (device != "gpu" && device != "host")) {
    std::cerr << kUsage;
    return 2;
  }
  try {
    return run(device, argv[2], argv[3], argc == 5 ? argv[4] : "");
  } catch (const std::exception& e) {
    std::cerr << "lathe-gpu-cases: " << e.what() << "\n";
    return 2;
  }
}
