// SPDX-License-Identifier: Apache-2.0
// What an ONNX file may say wrongly, and what the error names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/onnx.h"
#include "lathe/runtime/session.h"
#include "tests/onnx/onnx_wire.h"

namespace lathe {
namespace {

using namespace onnx_wire;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string node(const std::string& op, const std::string& more = {}) {
  return bytes(1, bytes(1, "x") + bytes(2, "y") + bytes(3, "/block/it") + bytes(4, op) + more);
}
const std::string kPorts = bytes(11, valueInfo("x", 1, {4})) + bytes(12, valueInfo("y", 1, {4}));

class BadOnnx : public ::testing::Test {
 protected:
  BadOnnx() : folder_(fs::path(::testing::TempDir()) / "bad_onnx") {
    fs::create_directories(folder_);
  }
  void expect(ErrorCode code, const std::string& content, const std::string& words) {
    const std::string path = (folder_ / "m.onnx").string();
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << content;
    try {
      const OnnxModel loaded = loadOnnx(path);
      for (const std::string& name : loaded.weights.names()) loaded.weights.find(name);
      ADD_FAILURE() << "expected an error: " << words;
    } catch (const Error& e) {
      EXPECT_EQ(int(e.code()), int(code)) << e.what();
      EXPECT_THAT(e.what(), HasSubstr(path));
      EXPECT_THAT(e.what(), HasSubstr(words));
    }
  }
  fs::path folder_;
};

TEST_F(BadOnnx, OpsAndAttributesAreRefusedByName) {
  expect(ErrorCode::Unsupported, model(node("Mystery") + kPorts),
         "node 1 '/block/it' (Mystery): there is no lowering of this op");
  expect(ErrorCode::Unsupported, model(node("Relu", bytes(7, "com.acme")) + kPorts),
         "(com.acme::Relu): there is no lowering");
  const std::string attribute = bytes(5, bytes(1, "speed") + number(3, 1) + number(20, 2));
  expect(ErrorCode::Unsupported, model(node("Relu", attribute) + kPorts),
         "(Relu): the attribute 'speed' is not supported");
  expect(ErrorCode::Unsupported, model(node("Relu") + kPorts, 99),
         "expected opset 7 to 28, got 99");
}

TEST_F(BadOnnx, OpsAreOfAVersionThatIsKnown) {
  const std::string graph = node("Relu") + kPorts;
  expect(ErrorCode::InvalidFile, number(1, 10) + bytes(7, graph),
         "opset_import: expected the version of the ops, got none");
  for (int64_t opset : {6, 29})
    expect(ErrorCode::Unsupported, model(graph, opset),
           "opset_import: expected opset 7 to 28, got " + std::to_string(opset));
}

TEST_F(BadOnnx, NamesAreGivenOnce) {
  const std::string x = bytes(11, valueInfo("x", 1, {1})), y = bytes(12, valueInfo("y", 1, {1}));
  const std::string add = nodeOf("Add", {"x", "c"}) + y, c = literal<float>("c", 1, {2});
  expect(ErrorCode::InvalidFile, model(add + x + x + c), "input 'x' is there twice");
  expect(ErrorCode::InvalidFile, model(add + x + c + c), "initializer 'c' is there twice");
  expect(ErrorCode::InvalidFile, model(add + nodeOf("Mul", {"x", "c"}) + x + c),
         "'y' is made twice: names of values are given once");
  expect(ErrorCode::InvalidFile,
         model(nodeOf("Relu", {"y"}) + bytes(11, valueInfo("y", 1, {1})) + y), "'y' is made twice");
  // Old files list initializers as inputs, too: they are no inputs.
  const std::string path = (folder_ / "old.onnx").string();
  std::ofstream(path, std::ios::binary) << model(add + x + c + bytes(11, valueInfo("c", 1, {1})));
  EXPECT_EQ(loadOnnx(path).inputs, std::vector<std::string>{"x"});
  fs::remove_all(folder_);
}

TEST_F(BadOnnx, TypesAndShapes) {
  const std::string ports = bytes(11, valueInfo("x", 17, {4})) + bytes(12, valueInfo("y", 17, {4}));
  expect(ErrorCode::Unsupported, model(node("Relu") + ports),
         "input 'x': element type FLOAT8E4M3FN");
  expect(ErrorCode::InvalidFile, model(node("Relu") + bytes(12, valueInfo("y", 1, {4}))),
         "no node before it makes its input 'x'");
  expect(ErrorCode::InvalidFile, model(kPorts), "no node makes output 'y'");
  const std::string half = bytes(11, valueInfo("x", 1, {4})) + bytes(12, valueInfo("y", 10, {4}));
  expect(ErrorCode::InvalidFile, model(node("Relu") + half),
         "output 'y': declared FLOAT16, its node makes FLOAT");
  expect(ErrorCode::InvalidFile, model(node("Shape") + kPorts),
         "output 'y': declared FLOAT, its node makes INT64");
  const std::string words = bytes(11, valueInfo("x", 1, {4})) + bytes(12, valueInfo("y", 12, {4}));
  expect(ErrorCode::Unsupported, model(node("Relu") + words),
         "output 'y': declared UINT32, its node makes FLOAT");
  expect(
      ErrorCode::InvalidFile,
      model(node("Transpose", bytes(5, bytes(1, "perm") + number(8, 7) + number(20, 7))) + kPorts),
      "(Transpose)");
}

TEST_F(BadOnnx, PortsAreTensorsWithAShape) {
  const std::string y = bytes(12, valueInfo("y", 1, {4}));
  const std::string relu = node("Relu") + y;
  expect(ErrorCode::InvalidFile, model(relu + bytes(11, valueInfo("", 1, {4}))),
         "graph.input: an input without a name");
  expect(ErrorCode::Unsupported, model(relu + bytes(11, bytes(1, "x"))),
         "input 'x': expected a tensor, got an unknown type");
  expect(ErrorCode::Unsupported,
         model(relu + bytes(11, bytes(1, "x") + bytes(2, bytes(1, number(1, 1))))),
         "input 'x': a tensor of unknown rank");
  expect(ErrorCode::Unsupported, model(nodeOf("SequenceEmpty", {}) + y), "output 'y' is no tensor");
  const std::string pair = bytes(1, bytes(1, "x") + bytes(2, "s") + bytes(4, "SequenceConstruct"));
  expect(ErrorCode::Unsupported, model(pair + nodeOf("Relu", {"s"}) + kPorts),
         "a sequence where a tensor is expected");
  expect(ErrorCode::InvalidFile, model(nodeOf("Add", {"x", ""}) + kPorts), "(Add)");
  // A branch that takes what no If gives.
  const std::string branch = nodeOf("Identity", {"b"}) + bytes(11, valueInfo("b", 1, {4})) + y;
  auto body = [&](const char* name) {
    return bytes(5, bytes(1, name) + bytes(6, branch) + number(20, 5));
  };
  expect(ErrorCode::InvalidFile,
         model(nodeOf("If", {"c"}, body("then_branch") + body("else_branch")) +
               literal<uint8_t>("c", 9, {1}) + kPorts),
         "its graph takes 1 inputs, got 0");
}

// Pieces of two elements: a fourth one of five has fewer than none.
TEST_F(BadOnnx, MorePiecesThanElementsAreRefused) {
  const std::string pieces = bytes(5, bytes(1, "num_outputs") + number(3, 4) + number(20, 2));
  std::string split = bytes(1, "x") + bytes(4, "Split") + pieces;
  for (const char* name : {"y", "y1", "y2", "y3"}) split += bytes(2, name);
  expect(ErrorCode::InvalidFile,
         model(bytes(1, split) + bytes(11, valueInfo("x", 1, {5})) +
               bytes(12, valueInfo("y", 1, {2}))),
         "4 pieces of 2 elements each are more than the axis's 5");
}

// Whatever byte a file has for true, it is 1 afterwards; the many are a weight, the few are not.
TEST_F(BadOnnx, BooleansAreZeroOrOne) {
  for (int64_t repeats : {1, 64}) {
    std::string raw;
    for (int64_t i = 0; i < repeats; ++i) raw += std::string("\x02\x00\xff\x01", 4);
    const int64_t count = 4 * repeats;
    const std::string tensor = number(1, count) + number(2, 9) + bytes(8, "b") + bytes(9, raw);
    const std::string to = bytes(5, bytes(1, "to") + number(3, 1) + number(20, 2));
    const std::string cast = bytes(1, bytes(1, "b") + bytes(2, "y") + bytes(4, "Cast") + to);
    const std::string path = (folder_ / "bools.onnx").string();
    fs::remove(path);
    std::ofstream(path, std::ios::binary)
        << model(cast + bytes(5, tensor) + bytes(12, valueInfo("y", 1, {count})));
    const OnnxModel loaded = loadOnnx(path);
    Session session(compile(loaded.graph, {.backend = "reference"}));
    session.bindWeights(loaded.weights);
    const Array y = session.run("forward", {}).at("y");
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(y.at(i), i % 4 == 1 ? 0 : 1) << i;
  }
}

TEST_F(BadOnnx, BytesOfTheFormat) {
  expect(ErrorCode::InvalidFile, "", "found no graph");
  expect(ErrorCode::InvalidFile, "\x3a\x7f", "the message has 0 left");
  expect(ErrorCode::InvalidFile, std::string("\x3b", 1), "unknown wire type 3");
  expect(ErrorCode::InvalidFile, std::string(12, '\xff'), "a number of at most 10 bytes");
  expect(ErrorCode::InvalidFile, std::string(10, '\xff') + std::string(1, '\x01'),
         "a number of at most 10 bytes");
  expect(ErrorCode::InvalidFile, model(bytes(1, bytes(4, "\xff\xfe"))),
         "graph.node.op_type: expected a text in UTF-8");
  std::string deep = kPorts;
  for (int i = 0; i < 80; ++i)
    deep = node("If", bytes(5, bytes(1, "then_branch") + bytes(6, deep) + number(20, 5))) + kPorts;
  expect(ErrorCode::InvalidFile, model(deep), "messages within each other");
}

std::string initializer(const std::string& more) {
  return bytes(5, number(1, 100) + number(2, 1) + bytes(8, "w") + more);
}
std::string external(const std::string& location, const std::string& offset,
                     const std::string& length) {
  auto entry = [](const std::string& key, const std::string& value) {
    return bytes(13, bytes(1, key) + bytes(2, value));
  };
  return entry("location", location) + entry("offset", offset) + entry("length", length) +
         number(14, 1);
}

TEST_F(BadOnnx, WeightsOutsideOfTheirFile) {
  std::ofstream(folder_ / "w.bin", std::ios::binary) << std::string(400, '\0');
  const std::string rest = node("Relu") + kPorts;
  expect(ErrorCode::InvalidFile, model(initializer(bytes(9, "abc")) + rest),
         "expected 400 bytes for f32[100], got 3");
  expect(ErrorCode::InvalidFile, model(initializer(external("../w.bin", "0", "400")) + rest),
         "is not inside of the model's folder");
  expect(ErrorCode::InvalidFile, model(initializer(external("/etc/passwd", "0", "400")) + rest),
         "expected a file beside the model");
  expect(ErrorCode::InvalidFile, model(initializer(external("w.bin", "4", "400")) + rest),
         "400 bytes from 4 are outside of 'w.bin'");
  expect(ErrorCode::InvalidFile, model(initializer(external("w.bin", "x", "400")) + rest),
         "external_data.offset: expected a whole number");
  fs::create_symlink("/etc/hostname", folder_ / "link.bin");
  expect(ErrorCode::InvalidFile, model(initializer(external("link.bin", "0", "4")) + rest),
         "is not inside of the model's folder");
  fs::remove_all(folder_);
}

TEST_F(BadOnnx, ExternalWeightsAreRead) {
  std::ofstream(folder_ / "w.bin", std::ios::binary) << std::string(404, '\0');
  const std::string path = (folder_ / "good.onnx").string();
  std::ofstream(path, std::ios::binary)
      << model(initializer(external("w.bin", "4", "400")) + node("Relu") + kPorts);
  EXPECT_EQ(loadOnnx(path).weights.find("w").value().shape(), Shape{100});
  fs::remove_all(folder_);
}

TEST_F(BadOnnx, AShapeFromAnInput) {
  const std::string path = (folder_ / "needs.onnx").string();
  const std::string reshape =
      bytes(1, bytes(1, "x") + bytes(1, "s") + bytes(2, "y") + bytes(4, "Reshape"));
  std::ofstream(path, std::ios::binary)
      << model(reshape + bytes(11, valueInfo("x", 1, {4})) + bytes(11, valueInfo("s", 7, {2})) +
               bytes(12, valueInfo("y", 1, {2, 2})));
  try {
    loadOnnx(path);
    ADD_FAILURE();
  } catch (const OnnxConstantNeeded& e) {
    EXPECT_EQ(e.input(), "s");
    EXPECT_THAT(e.what(), HasSubstr("give the value of input 's' as a constant"));
  }
  OnnxOptions options;
  options.constants.emplace("s", Array::fromInts({2, 2}, {2}));
  EXPECT_EQ(loadOnnx(path, options).inputs, std::vector<std::string>{"x"});
  options.constants.emplace("t", Array::fromInts({2}, {1}));
  try {
    loadOnnx(path, options);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("a constant is given for 't', which is no input"));
  }
  fs::remove_all(folder_);
}

}  // namespace
}  // namespace lathe
