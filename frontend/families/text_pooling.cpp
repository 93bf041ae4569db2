// SPDX-License-Identifier: Apache-2.0
// How a folder of sentence-transformers pools: modules.json lists what runs behind each other, and
// the folder of a module has its config.
#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "lathe/frontend/families/pretrained.h"
#include "lathe/runtime/error.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

struct Mode {
  std::string_view flag, name;
  TextPooling::Kind kind;
};
constexpr auto kModes =
    std::to_array<Mode>({{"pooling_mode_mean_tokens", "mean", TextPooling::Kind::Mean},
                         {"pooling_mode_cls_token", "cls", TextPooling::Kind::First},
                         {"pooling_mode_max_tokens", "max", TextPooling::Kind::Max}});

TextPooling::Kind kindOf(const JsonValue& config) {
  if (auto mode = config.find("pooling_mode")) {
    for (const Mode& known : kModes)
      if (mode->isString() && mode->asString() == known.name) return known.kind;
    throw mode->error("expected mean, cls or max, got " + mode->show(), ErrorCode::Unsupported);
  }
  std::optional<TextPooling::Kind> kind;
  for (size_t i = 0; i < config.size(); ++i) {
    const auto [key, value] = config.member(i);
    if (!key.starts_with("pooling_mode_") || !value.asBool()) continue;
    const auto known = std::ranges::find(kModes, key, &Mode::flag);
    if (known == kModes.end() || kind)
      throw value.error("not supported: expected one of mean, cls and max", ErrorCode::Unsupported);
    kind = known->kind;
  }
  return kind.value_or(TextPooling::Kind::Mean);
}

}  // namespace

TextPooling readTextPooling(const std::string& folder) {
  TextPooling pooling;
  const fs::path list = fs::path(folder) / "modules.json";
  std::error_code ignored;
  if (!fs::exists(list, ignored)) return pooling;
  pooling.normalizes = false;
  const JsonValue modules = JsonValue::load(list.string(), kConfigFile);
  for (const JsonValue& module : modules.elements()) {
    const JsonValue type = module.at("type");
    const std::string name = type.asString().substr(type.asString().rfind('.') + 1);
    if (name == "Normalize")
      pooling.normalizes = true;
    else if (name == "Pooling")
      pooling.kind = kindOf(JsonValue::load(
          (fs::path(folder) / module.at("path").asString() / "config.json").string(), kConfigFile));
    else if (name != "Transformer")
      throw type.error("not supported: expected Transformer, Pooling and Normalize, got " + name,
                       ErrorCode::Unsupported);
  }
  return pooling;
}

}  // namespace lathe
