// SPDX-License-Identifier: Apache-2.0
#include "runtime/container.h"

#include <cstring>

#include <gtest/gtest.h>

#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::TemporaryFolder;

constexpr ErrorCode kFile = ErrorCode::InvalidFile;

const std::string kCode = "code \x7f\0\1 bytes", kBig(1000, 'w');

std::string save(const TemporaryFolder& folder) {
  ContainerWriter writer;
  writer.setHeader(R"({"tool": "test"})");
  writer.addSection("code/avx2", kCode);
  writer.addSection("empty", "");
  writer.addSection("weights", kBig);
  writer.save(folder / "m.lathe");
  return folder / "m.lathe";
}

TEST(Container, ReadsWhatItWrote) {
  TemporaryFolder folder;
  Container c = Container::open(save(folder));
  EXPECT_EQ(c.header(), R"({"tool": "test"})");
  EXPECT_EQ(c.sections(), (std::vector<std::string>{"code/avx2", "empty", "weights"}));
  EXPECT_EQ(c.text("code/avx2"), kCode);
  EXPECT_EQ(c.text("empty"), "");
  EXPECT_EQ(c.text("weights"), kBig);
  EXPECT_FALSE(c.has(".header"));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(c.section("weights").data()) % 64, 0u);
}

TEST(Container, SpansOutliveTheFirstHandle) {
  TemporaryFolder folder;
  Container copy = [&] {
    Container c = Container::open(save(folder));
    return c;
  }();
  EXPECT_EQ(copy.text("weights"), kBig);
}

TEST(Container, IsAValidSafetensorsFile) {
  TemporaryFolder folder;
  EXPECT_EQ(SafetensorsFile::open(save(folder)).array("weights").dtype(), DType::U8);
}

TEST(Container, FindsEveryFlippedByte) {
  TemporaryFolder folder;
  const std::string path = save(folder), good = test::readFile(path);
  size_t refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = char(bad[i] ^ 0x10);
    folder.write("bad.lathe", bad);
    try {
      Container::open(folder / "bad.lathe");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), kFile) << e.what();
      ++refused;
    }
  }
  EXPECT_EQ(refused, good.size());
}

TEST(Container, FindsEveryTruncation) {
  TemporaryFolder folder;
  const std::string good = test::readFile(save(folder));
  for (size_t n = 0; n < good.size(); ++n) {
    folder.write("bad.lathe", good.substr(0, n));
    EXPECT_THROW(Container::open(folder / "bad.lathe"), Error) << n;
  }
}

TEST(Container, NamesTheDamagedSection) {
  TemporaryFolder folder;
  const std::string path = save(folder);
  std::string bytes = test::readFile(path);
  bytes[bytes.find(kBig) + 500] = 'x';
  folder.write("m.lathe", bytes);
  expectError(kFile, "section \"weights\" is damaged", [&] { Container::open(path); });
  EXPECT_EQ(Container::open(path, /*verify=*/false).text("code/avx2"), kCode);
}

TEST(Container, ChecksTheHeaderEvenUnverified) {
  TemporaryFolder folder;
  const std::string path = save(folder);
  std::string bytes = test::readFile(path);
  bytes.replace(bytes.find("test"), 4, "tesu");
  folder.write("m.lathe", bytes);
  expectError(kFile, "the header is damaged", [&] { Container::open(path, false); });
}

TEST(Container, NamesAnotherVersion) {
  TemporaryFolder folder;
  const std::string path = save(folder);
  std::string bytes = test::readFile(path);
  const std::string version = R"("version":")";
  bytes[bytes.find(version) + version.size()] = '7';
  folder.write("m.lathe", bytes);
  expectError(kFile, "container version \"7\", expected 1; compile the model again",
              [&] { Container::open(path); });
}

TEST(Container, RefusesAPlainCheckpoint) {
  TemporaryFolder folder;
  saveSafetensors(folder / "w.safetensors", {{"x", Array(DType::F32, {2})}});
  expectError(kFile, "not a Lathe container", [&] { Container::open(folder / "w.safetensors"); });
  saveSafetensors(folder / "w.safetensors", {{"x", Array(DType::F32, {2})}}, {{"format", "pt"}});
  expectError(kFile, "expected format lathe-container, got \"pt\"",
              [&] { Container::open(folder / "w.safetensors"); });
}

TEST(Container, RefusesBadSectionNames) {
  ContainerWriter writer;
  writer.addSection("a", "1");
  for (const char* name : {"", ".hidden", "__metadata__"})
    expectError(ErrorCode::InvalidArgument, "expected a new section name that does not start with",
                [&] { writer.addSection(name, "1"); });
  expectError(ErrorCode::InvalidArgument, "got \"a\" a second time",
              [&] { writer.addSection("a", "2"); });
}

TEST(Container, RefusesAHeaderThatIsNoJson) {
  ContainerWriter writer;
  expectError(kFile, "container header: not valid JSON", [&] { writer.setHeader("{"); });
}

TEST(Container, NamesAMissingSection) {
  TemporaryFolder folder;
  Container c = Container::open(save(folder));
  expectError(kFile, "the section \"code/amx\" is missing", [&] { c.section("code/amx"); });
}

}  // namespace
}  // namespace lathe
