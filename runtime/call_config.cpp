// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/call_config.h"

namespace lathe {

void readValue(const JsonValue& json, bool& value) { value = json.asBool(); }
void readValue(const JsonValue& json, int64_t& value) { value = json.asInt(); }
void readValue(const JsonValue& json, double& value) { value = json.asDouble(); }

void readValue(const JsonValue& json, std::vector<int64_t>& value) {
  for (size_t i = 0; i < json.size(); ++i) value.push_back(json.at(i).asInt());
}

void readValue(const JsonValue& json, ViewTerms& value) {
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string& text = json.at(i).asString();
    auto term = DimExpr::parse(text);
    if (!term) throw json.at(i).error("expected a size of a view, got " + json.at(i).show());
    value.push_back(*term);
  }
  if (value.size() % 2 == 0)
    throw json.error("expected an offset, sizes and as many strides in a view, got " +
                     std::to_string(value.size()) + " numbers");
}

void readValue(const JsonValue& json, std::vector<ViewTerms>& value) {
  for (size_t i = 0; i < json.size(); ++i) readValue(json.at(i), value.emplace_back());
}

}  // namespace lathe
