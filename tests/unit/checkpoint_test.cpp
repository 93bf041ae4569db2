// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/checkpoint.h"

#include <gtest/gtest.h>

#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::TemporaryFolder;

constexpr const char* kIndex = "model.safetensors.index.json";

Array floats(Shape shape) { return Array(DType::F32, std::move(shape)); }

// Two shards, "a" in the first and "b" and "c" in the second.
struct Sharded {
  TemporaryFolder folder;
  explicit Sharded(const std::string& weightMap =
                       R"({"a":"s1.safetensors","b":"s2.safetensors","c":"s2.safetensors"})") {
    saveSafetensors(folder / "s1.safetensors", {{"a", floats({2})}});
    saveSafetensors(folder / "s2.safetensors", {{"b", floats({3})}, {"c", floats({4, 5})}});
    folder.write(kIndex, R"({"metadata":{"total_size":1},"weight_map":)" + weightMap + "}");
  }
};

TEST(Checkpoint, ReadsAFileAndAFolderWithOne) {
  TemporaryFolder folder;
  saveSafetensors(folder / "model.safetensors", {{"x", floats({2, 3})}});
  for (const std::string& path : {folder.path(), folder / "model.safetensors"}) {
    Checkpoint c = Checkpoint::open(path);
    EXPECT_EQ(c.names(), std::vector<std::string>{"x"});
    EXPECT_EQ(c.find("x")->shape(), (Shape{2, 3}));
    EXPECT_FALSE(c.find("y"));
  }
}

TEST(Checkpoint, ReadsShards) {
  Sharded s;
  for (const std::string& path : {s.folder.path(), s.folder / kIndex}) {
    Checkpoint c = Checkpoint::open(path);
    EXPECT_EQ(c.names(), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(c.find("c")->shape(), (Shape{4, 5}));
    EXPECT_EQ(c.entry("a")->dtypeName, "F32");
  }
}

TEST(Checkpoint, NamesAMissingShard) {
  Sharded s(R"({"a":"s1.safetensors","z":"s3.safetensors"})");
  expectError(ErrorCode::Io, "the shard \"s3.safetensors\" is missing",
              [&] { Checkpoint::open(s.folder.path()); });
}

TEST(Checkpoint, NamesATensorThatItsShardLacks) {
  Sharded s(R"({"a":"s1.safetensors","z":"s2.safetensors"})");
  expectError(ErrorCode::InvalidFile, "tensor \"z\" is not in shard \"s2.safetensors\"",
              [&] { Checkpoint::open(s.folder.path()); });
}

TEST(Checkpoint, RefusesATensorInTwoShards) {
  Sharded s;
  saveSafetensors(s.folder / "s1.safetensors", {{"a", floats({2})}, {"b", floats({3})}});
  expectError(ErrorCode::InvalidFile,
              "tensor \"b\" is in two shards: ", [&] { Checkpoint::open(s.folder.path()); });
}

TEST(Checkpoint, ReadsNoFileOutsideTheFolder) {
  for (const char* name : {"../x.safetensors", "/etc/x.safetensors", "sub/x.safetensors", "..", ".",
                           "", "a\\\\b.safetensors", "x\\u0000.safetensors"}) {
    Sharded s(std::string(R"({"a":")") + name + "\"}");
    expectError(ErrorCode::InvalidFile, "weight_map.a: expected a plain file name",
                [&] { Checkpoint::open(s.folder.path()); });
  }
}

TEST(Checkpoint, RefusesShardsOfOtherFormats) {
  Sharded s(R"({"a":"pytorch_model.bin"})");
  expectError(ErrorCode::InvalidFile, "expected a .safetensors file, got \"pytorch_model.bin\"",
              [&] { Checkpoint::open(s.folder.path()); });
}

TEST(Checkpoint, RefusesABrokenIndex) {
  for (auto [map, message] : std::vector<std::pair<std::string, const char*>>{
           {"{}", "weight_map: names no shard"},
           {"[]", "expected an object of tensor and shard names, got an array"},
           {R"({"a":1})", "weight_map.a: expected a string, got 1"},
           {R"({"a":"s1.safetensors","a":"s2.safetensors"})", "the key \"a\" appears twice"},
           {"{", "not valid JSON"}}) {
    Sharded s(map);
    expectError(ErrorCode::InvalidFile, message, [&] { Checkpoint::open(s.folder.path()); });
  }
  TemporaryFolder folder;
  folder.write(kIndex, "{}");
  expectError(ErrorCode::InvalidFile, "the key \"weight_map\" is missing",
              [&] { Checkpoint::open(folder.path()); });
}

TEST(Checkpoint, SaysWhatAFolderLacks) {
  TemporaryFolder folder;
  expectError(ErrorCode::Io, "expected model.safetensors or model.safetensors.index.json",
              [&] { Checkpoint::open(folder.path()); });
}

TEST(CheckWeights, AcceptsWhatFits) {
  Sharded s;
  Checkpoint c = Checkpoint::open(s.folder.path());
  EXPECT_NO_THROW(checkWeights({{"a", std::nullopt, {2}}, {"b", DType::F32, {3}}}, c,
                               {{"c", std::nullopt, {4, 5}}, {"absent", std::nullopt, {1}}}));
}

// A weight of the checkpoint's choice is of floats; one of a given dtype is of that alone.
TEST(CheckWeights, TakesEveryPairOfDtypesThatFits) {
  for (DType stored : {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64, DType::I32,
                       DType::I16, DType::I8, DType::U8, DType::Bool}) {
    TemporaryFolder folder;
    const std::string path = folder.path() + "/model.safetensors";
    saveSafetensors(path, {{"w", Array(stored, {2})}});
    const Checkpoint c = Checkpoint::open(path);
    auto fits = [&](std::optional<DType> wanted) {
      try {
        checkWeights({{"w", wanted, {2}}}, c);
        return true;
      } catch (const Error&) {
        return false;
      }
    };
    EXPECT_EQ(fits(std::nullopt), isFloat(stored)) << nameOf(stored);
    for (DType wanted : {DType::F32, DType::BF16, DType::I64, DType::U8, DType::Bool})
      EXPECT_EQ(fits(wanted), wanted == stored) << nameOf(wanted) << " of " << nameOf(stored);
  }
}

// It is not of another dtype than the model wants: nothing reads it.
TEST(CheckWeights, SaysWhichDtypeNothingReads) {
  TemporaryFolder folder;
  const std::string header = R"({"w":{"dtype":"F8_E5M2","shape":[4],"data_offsets":[0,4]}})";
  std::string bytes(8, '\0');
  bytes[0] = char(header.size());
  const std::string path = folder.write("model.safetensors", bytes + header + "abcd");
  const Checkpoint c = Checkpoint::open(path);
  expectError(ErrorCode::Unsupported, "tensor \"w\" has dtype F8_E5M2",
              [&] { checkWeights({{"w", std::nullopt, {4}}}, c); });
  expectError(ErrorCode::InvalidFile, "w: expected float[5], got F8_E5M2[4]",
              [&] { checkWeights({{"w", std::nullopt, {5}}}, c); });
}

TEST(CheckWeights, ReportsEverythingAtOnce) {
  Sharded s;
  Checkpoint c = Checkpoint::open(s.folder.path());
  std::vector<ExpectedWeight> expected = {
      {"a", DType::BF16, {2}}, {"b", std::nullopt, {3, 1}}, {"m", std::nullopt, {7, 8}}};
  auto check = [&] { checkWeights(expected, c); };
  expectError(ErrorCode::InvalidFile, "1 missing:\n  m float[7, 8]", check);
  expectError(ErrorCode::InvalidFile, "1 unexpected:\n  \"c\"", check);
  expectError(ErrorCode::InvalidFile, "2 of another shape or dtype:", check);
  expectError(ErrorCode::InvalidFile, "a: expected bf16[2], got f32[2]", check);
  expectError(ErrorCode::InvalidFile, "b: expected float[3, 1], got f32[3]", check);
}

TEST(CheckWeights, ChecksOptionalWeightsThatArePresent) {
  Sharded s;
  Checkpoint c = Checkpoint::open(s.folder.path());
  expectError(ErrorCode::InvalidFile, "c: expected float[9], got f32[4, 5]", [&] {
    checkWeights({{"a", std::nullopt, {2}}, {"b", std::nullopt, {3}}}, c,
                 {{"c", std::nullopt, {9}}});
  });
}

// What nothing is wrong about is not told.
TEST(CheckWeights, ReportsOnlyWhatIsWrong) {
  Sharded s;
  Checkpoint c = Checkpoint::open(s.folder.path());
  std::vector<ExpectedWeight> expected = {{"a", std::nullopt, {2}}, {"b", std::nullopt, {3}}};
  EXPECT_EQ(test::messageOf([&] { checkWeights(expected, c); }),
            c.path() + ": the weights do not fit the model\n1 unexpected:\n  \"c\"");
  expected.push_back({"c", std::nullopt, {4, 5}});
  EXPECT_NO_THROW(checkWeights(expected, c));
  for (int i = 0; i < 20; ++i) expected.push_back({"w" + std::to_string(i), std::nullopt, {1}});
  EXPECT_TRUE(test::messageOf([&] { checkWeights(expected, c); }).ends_with("  w19 float[1]"));
}

TEST(CheckWeights, CutsLongLists) {
  Sharded s;
  Checkpoint c = Checkpoint::open(s.folder.path());
  std::vector<ExpectedWeight> expected;
  for (int i = 0; i < 50; ++i) expected.push_back({"w" + std::to_string(i), std::nullopt, {1}});
  expectError(ErrorCode::InvalidFile, "50 missing:", [&] { checkWeights(expected, c); });
  expectError(ErrorCode::InvalidFile, "w19 float[1]\n  and 30 more",
              [&] { checkWeights(expected, c); });
}

}  // namespace
}  // namespace lathe
