// SPDX-License-Identifier: Apache-2.0
#pragma once
// ONNX files by hand: the wire format is a tag, then a number, or a length and bytes.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace lathe::onnx_wire {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += char(value | 0x80);
  return bytes + char(value);
}
inline std::string number(int field, int64_t value) {
  return varint(uint64_t(field) << 3) + varint(uint64_t(value));
}
inline std::string bytes(int field, const std::string& value) {
  return varint(uint64_t(field) << 3 | 2) + varint(value.size()) + value;
}
/// A port of the element type `type`: 1 is f32, 7 i64, 9 bool.
inline std::string valueInfo(const std::string& name, int type, const std::vector<int64_t>& sizes) {
  std::string shape;
  for (int64_t d : sizes) shape += bytes(1, number(1, d));
  return bytes(1, name) + bytes(2, bytes(1, number(1, type) + bytes(2, shape)));
}
inline std::string model(const std::string& graph, int64_t opset = 23) {
  return number(1, 10) + bytes(8, number(2, opset)) + bytes(7, graph);
}

inline std::string attribute(const std::string& name, int64_t value) {
  return bytes(5, bytes(1, name) + number(3, value) + number(20, 2));
}
inline std::string attribute(const std::string& name, const std::string& value) {
  return bytes(5, bytes(1, name) + bytes(4, value) + number(20, 3));
}
inline std::string listAttribute(const std::string& name, const std::vector<int64_t>& values) {
  std::string text = bytes(1, name);
  for (int64_t v : values) text += number(8, v);
  return bytes(5, text + number(20, 7));
}
/// A node of the graph with one result, "y".
inline std::string nodeOf(const std::string& op, const std::vector<std::string>& operands,
                          const std::string& attributes = {}) {
  std::string text;
  for (const std::string& name : operands) text += bytes(1, name);
  return bytes(1, text + bytes(2, "y") + bytes(4, op) + attributes);
}
/// A vector of the graph's literals.
template <class Element>
std::string literal(const std::string& name, int type, const std::vector<Element>& values) {
  std::string raw(values.size() * sizeof(Element), '\0');
  if (!raw.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return bytes(
      5, number(1, int64_t(values.size())) + number(2, type) + bytes(8, name) + bytes(9, raw));
}

}  // namespace lathe::onnx_wire
