// SPDX-License-Identifier: Apache-2.0
// lathe-gpu-tune: measures the choices of bench/gpu/write_tuning.cpp on a GPU. A choice's time is
// what all its weights take beyond the first alone, so that launching and copying cancel out.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>

#include <nlohmann/json.hpp>

#include "bench/gpu/isolated.h"
#include "bench/gpu/packed_program.h"
#include "runtime/bound_weights.h"
#include "runtime/session.h"

namespace {

using namespace lathe;
using Json = nlohmann::ordered_json;

constexpr const char* kUsage =
    "usage: lathe-gpu-tune CASES.safetensors OUT.json [DEVICE]\nDEVICE is gpu (default) or host\n";
constexpr int kWarmUps = 3, kRepetitions = 15;
constexpr unsigned kSecondsPerLayer = 120;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds of one run: the median.
double secondsOf(Session& session, const std::string& entry, const Array& x, Array& y, int times) {
  std::vector<Array> outputs;
  const size_t index = session.entryIndex(entry);
  std::vector<double> all;
  for (int i = 0; i < (times > 1 ? kWarmUps : 0) + times; ++i) {
    const double begin = now();
    session.run(index, std::span(&x, 1), outputs);
    all.push_back(now() - begin);
  }
  y = outputs[0];
  all.erase(all.begin(), all.end() - times);
  std::nth_element(all.begin(), all.begin() + times / 2, all.end());
  return all[size_t(times) / 2];
}

// The largest difference, relative to the largest value.
double apart(const Array& a, const Array& b) {
  double most = 0, largest = 1e-30;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a.at(i) - b.at(i));
    if (!(difference <= most)) most = difference;  // also NaN
    largest = std::max(largest, std::abs(b.at(i)));
  }
  return most / largest;
}

Json measure(const SafetensorsFile& file, const std::string& name, const Json& layer,
             const std::string& device) {
  Session session(cuda::packedProgram(file, name), {.device = device});
  session.bindRandomWeights(1);
  const int64_t n = layer["n"], k = layer["k"];
  const int weights = layer["weights"], times = device == "host" ? 1 : kRepetitions;
  Json rows = Json::object();
  for (const auto& [text, choices] : layer["rows"].items()) {
    const int64_t m = std::stoll(text);
    if (device == "host" && m > 1) continue;
    const Array x = randomWeight({"x", DType::BF16, {m, k}}, 2);
    Array first;
    for (const Json& choice : choices) {
      const std::string entry = choice["entry"];
      Json result = choice;
      try {
        Array y;
        const double all = secondsOf(session, entry, x, y, times);
        if (!first.defined()) first = y.to(y.dtype());
        const double difference = apart(y, first);
        const double one = secondsOf(session, entry + ".one", x, y, times);
        const double seconds = (all - one) / (weights - 1);
        result["us"] = seconds * 1e6;
        result["gbps"] = 2.0 * double(n * k) / seconds / 1e9;
        result["tflops"] = 2.0 * double(m * n * k) / seconds / 1e12;
        result["apart_from_first"] = difference;
        result["ok"] = difference < 0.02;
      } catch (const std::exception& e) {
        result["error"] = e.what();
        result["ok"] = false;
      }
      rows[text].push_back(result);
    }
  }
  return rows;
}

int run(const std::string& path, const std::string& out, const std::string& device) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const Json layers = Json::parse(file.metadata().at("layers"));
  Json report{{"check", "tune"}, {"device", device}, {"outcome", "measured"}};
  report["layers"] = Json::object();
  report["errors"] = Json::object();
  std::vector<std::string> names;
  for (const auto& [name, layer] : layers.items()) names.push_back(name);
  auto work = [&](size_t i) { return measure(file, names[i], layers[names[i]], device).dump(); };
  auto done = [&](size_t i, const std::string& text, bool failed) {
    bool good = !failed;
    if (failed) {
      report["errors"][names[i]] = text;
      std::cout << names[i] << ": " << text << "\n";
    } else {
      Json& layer = report["layers"][names[i]] = layers[names[i]];
      layer["rows"] = Json::parse(text);
      for (const auto& [m, choices] : layer["rows"].items()) {
        const Json* best = nullptr;
        for (const Json& c : choices) {
          good &= c["ok"].get<bool>();
          if (c["ok"] && (!best || c["us"] < (*best)["us"])) best = &c;
        }
        if (best) std::cout << names[i] << " m=" << m << " " << best->dump() << "\n";
      }
    }
    if (!good) report["outcome"] = "failed";
    std::ofstream(out) << report.dump(1) << "\n";  // what is known if the process dies
  };
  cuda::runIsolated(names.size(), work, done, kSecondsPerLayer);
  return report["outcome"] == "measured" ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::cerr << kUsage;
    return 2;
  }
  try {
    return run(argv[1], argv[2], argc == 4 ? argv[3] : "gpu");
  } catch (const std::exception& e) {
    std::cerr << "lathe-gpu-tune: " << e.what() << "\n";
    return 2;
  }
}
