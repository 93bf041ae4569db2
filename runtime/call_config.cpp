// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/call_config.h"

namespace lathe {

void readValue(const JsonValue& json, bool& value) { value = json.asBool(); }
void readValue(const JsonValue& json, int64_t& value) { value = json.asInt(); }
void readValue(const JsonValue& json, double& value) { value = json.asDouble(); }

void readValue(const JsonValue& json, std::vector<int64_t>& value) {
  for (const JsonValue& item : json.elements()) value.push_back(item.asInt());
}

void readValue(const JsonValue& json, ViewTerms& value) {
  for (const JsonValue& item : json.elements()) {
    auto term = DimExpr::parse(item.asString());
    if (!term) throw item.error("expected a size of a view, got " + item.show());
    value.push_back(*term);
  }
  if (value.size() % 2 == 0)
    throw json.error("expected an offset, sizes and as many strides in a view, got " +
                     std::to_string(value.size()) + " numbers");
}

void readValue(const JsonValue& json, std::vector<ViewTerms>& value) {
  for (const JsonValue& item : json.elements()) readValue(item, value.emplace_back());
}

}  // namespace lathe
