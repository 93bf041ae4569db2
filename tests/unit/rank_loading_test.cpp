// SPDX-License-Identifier: Apache-2.0
// A rank reads its share of a checkpoint and little more, as the system counts it.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "lathe/runtime/checkpoint.h"
#include "runtime/bound_weights.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::TemporaryFolder;

// A number of the system's: of /proc/self/io, or of the smaps entries of one file.
int64_t counted(const std::string& file, const std::string& key, const std::string& mapping = "") {
  std::ifstream in(file);
  int64_t sum = 0;
  bool inside = mapping.empty();
  for (std::string line; std::getline(in, line);) {
    if (!mapping.empty() && line.find('-') < line.find(' ')) inside = line.ends_with(mapping);
    if (inside && line.starts_with(key + ":")) sum += std::stoll(line.substr(key.size() + 1));
  }
  return sum;
}
int64_t readByCalls() { return counted("/proc/self/io", "rchar"); }
int64_t readFromDisk() { return counted("/proc/self/io", "read_bytes"); }
int64_t mappedPages(const std::string& path) {
  return 1024 * counted("/proc/self/smaps", "Rss", path);
}

// Nothing of the file is in memory.
void chill(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  ::fdatasync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

Array numbered(DType dtype, Shape shape) {
  Array a(dtype, shape);
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i % 251));
  return a;
}

std::vector<TensorInfo> piecesOf(const std::map<std::string, Array>& tensors, int64_t ranks) {
  std::vector<TensorInfo> infos;
  for (const auto& [name, array] : tensors) {
    const int64_t axis = name == "columns" ? 1 : 0;
    SymbolicShape shape(array.shape().begin(), array.shape().end());
    if (name == "norm") {
      infos.push_back({name, array.dtype(), shape});
      continue;
    }
    shape[size_t(axis)] = array.shape()[size_t(axis)] / ranks;
    infos.push_back({name + "@", array.dtype(), shape, WeightPiece{name, axis, ranks}});
  }
  return infos;
}

TEST(RankLoading, ARankReadsItsShareAlone) {
  TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  // Rows lie together, columns are runs with gaps between them. The runs are long enough that the
  // pages at their ends, which a disk gives whole, do not count.
  const std::map<std::string, Array> tensors{{"columns", numbered(DType::BF16, {128, 131072})},
                                             {"norm", numbered(DType::F32, {1024})},
                                             {"rows", numbered(DType::BF16, {8192, 1024})}};
  saveSafetensors(path, tensors);
  for (int64_t ranks : {2, 4}) {
    const std::vector<TensorInfo> infos = piecesOf(tensors, ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      SCOPED_TRACE(std::to_string(rank) + " of " + std::to_string(ranks));
      chill(path);
      const int64_t calls = readByCalls(), disk = readFromDisk();
      int64_t share = 0;
      {
        const Checkpoint checkpoint = Checkpoint::open(path);
        std::vector<Array> pieces;
        for (const TensorInfo& info : infos) {
          pieces.push_back(readPiece(info, checkpoint, rank, ranks));
          share += int64_t(pieces.back().bytes());
          // Every page of it is looked at.
          const Array& whole = tensors.at(info.source());
          const Array expected =
              info.piece ? partOf(whole, *info.piece, info.piece->partOf(rank, ranks)) : whole;
          ASSERT_EQ(pieces.back().shape(), expected.shape());
          ASSERT_EQ(0, std::memcmp(pieces.back().data(), expected.data(), expected.bytes()));
        }
        EXPECT_LE(double(readByCalls() - calls + mappedPages(path)), 1.1 * double(share));
      }
      // Where the file lies on a disk; elsewhere it is 0.
      EXPECT_LE(double(readFromDisk() - disk), 1.1 * double(share));
    }
  }
}

TEST(RankLoading, ShortRunsAndOddPlacesAreReadRight) {
  TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  std::map<std::string, Array> tensors{{"a", numbered(DType::F32, {6, 4, 10})},
                                       {"b", numbered(DType::U8, {3, 6})},
                                       {"c", numbered(DType::F16, {6, 2, 3000})},
                                       {"d", numbered(DType::I64, {6, 0})}};
  saveSafetensors(path, tensors);
  const Checkpoint checkpoint = Checkpoint::open(path);
  for (const auto& [name, whole] : tensors)
    for (int64_t axis = 0; axis < int64_t(whole.shape().size()); ++axis)
      for (int64_t parts : {1, 2, 3}) {
        if (whole.shape()[size_t(axis)] % parts) {
          expectError(ErrorCode::InvalidArgument, "of " + std::to_string(parts) + " along axis",
                      [&] { checkpoint.findPiece(name, axis, parts, 0); });
          continue;
        }
        for (int64_t part = 0; part < parts; ++part) {
          SCOPED_TRACE(name + " axis " + std::to_string(axis) + " part " + std::to_string(part));
          const Array got = checkpoint.findPiece(name, axis, parts, part).value(),
                      expected = partOf(whole, {name, axis, parts}, part);
          ASSERT_EQ(got.shape(), expected.shape());
          for (int64_t i = 0; i < got.size(); ++i) ASSERT_EQ(got.at(i), expected.at(i)) << i;
        }
      }
  EXPECT_FALSE(checkpoint.findPiece("none", 0, 1, 0).has_value());
  expectError(ErrorCode::InvalidArgument, "no part 2 of 2 along axis 1",
              [&] { checkpoint.findPiece("a", 1, 2, 2); });
}

TEST(RankLoading, AFileThatBecameShorterIsAnError) {
  TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  saveSafetensors(path, {{"w", numbered(DType::F32, {64, 4096})}});
  const Checkpoint checkpoint = Checkpoint::open(path);
  std::filesystem::resize_file(path, 64 * 4096);
  expectError(ErrorCode::Io, "cannot read: the file was shortened",
              [&] { checkpoint.findPiece("w", 1, 2, 1); });
}

}  // namespace
}  // namespace lathe
