// SPDX-License-Identifier: Apache-2.0
// A rank reads its share of a checkpoint and little more, as the system counts it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "lathe/runtime/checkpoint.h"
#include "runtime/bound_weights.h"
#include "runtime/cut_axis.h"
#include "tests/onnx/onnx_wire.h"
#include "tests/unit/gguf_writer.h"
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
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i % (dtype == DType::I8 ? 127 : 251)));
  return a;
}

constexpr double kAll = 1;

// Which share of the pieces of a tensor can be read alone: halves, thirds and quarters, and some of
// several groups, and some with others around them. What is read is what the whole has there.
double piecesLikeThoseOfTheWhole(const Checkpoint& checkpoint, const std::string& name) {
  const Array whole = checkpoint.find(name).value();
  int given = 0, asked = 0;
  for (int64_t axis = 0; axis < int64_t(whole.shape().size()); ++axis) {
    const int64_t length = whole.shape()[size_t(axis)];
    std::vector<AxisPiece> pieces;
    for (int64_t parts : {1, 2, 3, 4, 8})
      for (int64_t part = 0; part < parts && length % parts == 0; ++part)
        pieces.push_back({axis, part * length / parts, length / parts});
    for (int64_t part : {0, 1})
      if (length % 4 == 0) pieces.push_back({axis, part * length / 4, length / 4, 2});
    if (length % 8 == 0 && length > 8) pieces.push_back({axis, length / 8 * 3, length / 8 * 2});
    if (length > 2) pieces.push_back({axis, 1, length - 2});
    for (const AxisPiece& piece : pieces) {
      const CutAxis cut(whole.shape(), piece);
      SCOPED_TRACE(name + " axis " + std::to_string(axis) + " from " + std::to_string(piece.begin) +
                   " " + std::to_string(piece.size) + " of " + std::to_string(piece.groups));
      const std::optional<Array> got = checkpoint.findPiece(name, piece);
      if (!cut.isOfBytes(whole.dtype())) {  // begins or ends amid a byte: it need not be given
        for (int64_t i = 0; got && i < got->size(); ++i)
          if (got->at(i) != whole.at(cut.first + i / cut.run * cut.stride + i % cut.run)) {
            ADD_FAILURE() << "element " << i << " is not that of the whole";
            return 0;
          }
        continue;
      }
      ++asked;
      if (!got) continue;
      ++given;
      const Array expected = partOf(whole, piece, name);
      EXPECT_EQ(got->shape(), expected.shape());
      EXPECT_EQ(got->dtype(), expected.dtype());
      if (got->shape() != expected.shape() || got->dtype() != expected.dtype()) return 0;
      for (int64_t i = 0; i < got->size(); ++i)
        if (const double a = got->at(i), b = expected.at(i); a != b && !(a != a && b != b)) {
          ADD_FAILURE() << "element " << i << " is " << a << ", expected " << b;
          return 0;
        }
    }
  }
  return asked ? double(given) / asked : kAll;
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
    // Queries, and keys and values of a quarter of their size each.
    if (name == "qkv") {
      const int64_t quarter = array.shape()[0] / 6;
      for (auto [begin, size] :
           {std::pair(int64_t(0), 4 * quarter), {4 * quarter, quarter}, {5 * quarter, quarter}}) {
        shape[0] = size / ranks;
        infos.push_back({name + "@" + std::to_string(begin), array.dtype(), shape,
                         WeightPiece{name, 0, ranks, 1, begin, array.shape()[0]}});
      }
      continue;
    }
    shape[size_t(axis)] = array.shape()[size_t(axis)] / ranks;
    if (name == "gate_up") {
      infos.push_back({name + "@", array.dtype(), shape, WeightPiece{name, 0, ranks, 2}});
      continue;
    }
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
                                             {"gate_up", numbered(DType::BF16, {4096, 1024})},
                                             {"qkv", numbered(DType::BF16, {6144, 1024})},
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
              info.piece ? partOf(whole, info.own(rank, ranks), info.source()) : whole;
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
    EXPECT_EQ(piecesLikeThoseOfTheWhole(checkpoint, name), kAll) << name;
  EXPECT_FALSE(checkpoint.findPiece("none", {0, 0, 1}).has_value());
  const AxisPiece absent[] = {{1, 2, 3},  {0, -1, 2},   {3, 0, 1},
                              {-1, 0, 1}, {0, 0, 1, 4}, {0, 2, 2, 2}};
  for (const AxisPiece& piece : absent)
    expectError(ErrorCode::InvalidArgument, "has no elements",
                [&] { checkpoint.findPiece("a", piece); });
}

TEST(RankLoading, AFileThatBecameShorterIsAnError) {
  TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  saveSafetensors(path, {{"w", numbered(DType::F32, {64, 4096})}});
  const Checkpoint checkpoint = Checkpoint::open(path);
  std::filesystem::resize_file(path, 64 * 4096);
  expectError(ErrorCode::Io, "cannot read: the file was shortened",
              [&] { checkpoint.findPiece("w", {1, 2048, 2048}); });
}

// Of every format, and of matrices in few bits also their parts. A piece may begin amid a block or
// a word, and in an order of its own columns lie anywhere: that is read whole.
TEST(RankLoading, PiecesOfEveryFormatAreThoseOfTheWhole) {
  const std::string folder = LATHE_TEST_DATA "/golden/checkpoints/";
  const double kSome = 0.05;  // of matrices with few words
  for (const char* name :
       {"awq", "fp8", "fp8_rows", "fp8_tiles", "gguf_gemma2/model.gguf", "gguf_llama/model.gguf",
        "gguf_mixtral/model.gguf", "gguf_phi3/model.gguf", "gptq", "gptq_act_order", "gptq_int8",
        "gptq_sym_v2", "int8", "kinds.gguf", "packed_int4", "packed_int4_asymmetric",
        "packed_int8"}) {
    SCOPED_TRACE(name);
    const Checkpoint checkpoint = Checkpoint::open(folder + name);
    for (const std::string& whole : checkpoint.names()) {
      EXPECT_GE(piecesLikeThoseOfTheWhole(checkpoint, whole), kSome) << whole;
      for (const char* part : {".q", ".scale", ".zero"})
        if (checkpoint.entry(whole + part))
          EXPECT_GE(piecesLikeThoseOfTheWhole(checkpoint, whole + part), kSome) << whole << part;
    }
  }
}

// The pages of a file that are in memory: what came from the disk, whoever looked at it.
int64_t pagesInMemory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  const auto size = size_t(::lseek(fd, 0, SEEK_END));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  const auto page = size_t(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> isHere((size + page - 1) / page);
  EXPECT_EQ(::mincore(data, size, isHere.data()), 0);
  ::munmap(data, size);
  ::close(fd);
  return int64_t(page) * std::ranges::count_if(isHere, [](unsigned char c) { return c & 1; });
}

// Half of a tensor's rows, or columns: no more comes from the disk than half of what the file has
// of it, and what is decoded is a half, too.
void expectAShare(const Checkpoint& checkpoint, const std::string& path,
                  const std::vector<std::string>& names, int64_t bytes) {
  for (int64_t axis : {0, 1}) {
    SCOPED_TRACE(names[0] + " axis " + std::to_string(axis));
    chill(path);
    const int64_t before = pagesInMemory(path);
    // What a mapping has looked at stays, with the large page that it is in.
    if (before > bytes / 4)
      GTEST_SKIP() << before << " bytes stay in memory: it is the system that keeps them";
    const int64_t calls = readByCalls();
    for (const std::string& name : names) {
      const int64_t half = checkpoint.entry(name)->shape[size_t(axis)] / 2;
      const std::optional<Array> got = checkpoint.findPiece(name, {axis, half, half});
      ASSERT_TRUE(got.has_value()) << name;
      EXPECT_EQ(got->shape()[size_t(axis)], half);
    }
    EXPECT_LE(double(pagesInMemory(path) - before), 1.1 * double(bytes) / 2);
    EXPECT_LE(double(readByCalls() - calls), 1.1 * double(bytes) / 2);
  }
}

TEST(RankLoading, HalfOfAMatrixInFewBitsIsHalfOfItsBytes) {
  // Rows and columns of files are so long that the pages at their ends do not count.
  const int64_t inputs = 256, outputs = 262144, group = 128;
  const std::map<std::string, std::map<std::string, Array>> layers{
      {"gptq",
       {{"m.qweight", numbered(DType::I32, {inputs / 8, outputs})},
        {"m.scales", numbered(DType::F16, {inputs / group, outputs})},
        {"m.qzeros", numbered(DType::I32, {inputs / group, outputs / 8})}}},
      {"awq",
       {{"m.qweight", numbered(DType::I32, {inputs, outputs / 8})},
        {"m.scales", numbered(DType::F16, {inputs / group, outputs})},
        {"m.qzeros", numbered(DType::I32, {inputs / group, outputs / 8})}}},
      {"compressed-tensors",
       {{"m.weight", numbered(DType::I8, {32, 2097152})},
        {"m.weight_scale", numbered(DType::F32, {32, 1})}}}};
  for (const auto& [method, tensors] : layers) {
    SCOPED_TRACE(method);
    TemporaryFolder folder;
    const std::string path = folder / "model.safetensors";
    saveSafetensors(path, tensors);
    folder.write(
        "config.json",
        R"({"quantization_config": {"quant_method": ")" + method + "\", " +
            (method == "compressed-tensors"
                 ? R"("config_groups": {"a": {"weights": {"num_bits": 8, "type": "int"}}}}})"
                 : R"("bits": 4, "group_size": 128}})"));
    int64_t bytes = 0;
    for (const auto& [name, array] : tensors) bytes += int64_t(array.bytes());
    const Checkpoint checkpoint = Checkpoint::open(folder.path());
    expectAShare(checkpoint, path, {"m.weight.q"}, bytes);
  }
}

TEST(RankLoading, HalfOfAMatrixOfGgufIsHalfOfItsBytes) {
  TemporaryFolder folder;
  const uint64_t columns = 1048576, rows = 32;
  struct Kind {
    uint32_t type;
    size_t bytes;
  };
  for (auto [type, bytes] : {Kind{1, columns * rows * 2}, {2, columns / 32 * 18 * rows}}) {
    test::GgufWriter writer;
    writer.begin(2, 2)
        .key("general.architecture", GgufType::String)
        .text("llama")
        .key("llama.attention.head_count", GgufType::U32)
        .number<uint32_t>(4)
        .tensor("blk.0.ffn_down.weight", {columns, rows}, type, 0)
        .tensor("blk.0.attn_q.weight", {columns, rows}, type, bytes)
        .data(2 * bytes);
    const std::string path = folder.write("m.gguf", writer.bytes());
    const Checkpoint checkpoint = Checkpoint::open(path);
    for (const std::string name : {"mlp.down_proj", "self_attn.q_proj"}) {
      const std::string whole = "model.layers.0." + name + ".weight";
      expectAShare(checkpoint, path,
                   type == 2 ? std::vector{whole + ".q", whole + ".scale"} : std::vector{whole},
                   int64_t(bytes));
    }
  }
}

TEST(RankLoading, HalfOfATensorOfOnnxIsHalfOfItsBytes) {
  using namespace onnx_wire;
  TemporaryFolder folder;
  const int64_t rows = 256, columns = 65536, size = rows * columns * 2;
  auto entry = [](const std::string& key, const std::string& value) {
    return bytes(13, bytes(1, key) + bytes(2, value));
  };
  const std::string path = folder.write("weights.bin", std::string(size_t(size) + 64, '\1'));
  const std::string tensor = number(1, rows) + number(1, columns) + number(2, 10) + bytes(8, "w") +
                             entry("location", "weights.bin") + entry("offset", "64") +
                             entry("length", std::to_string(size)) + number(14, 1);
  const std::string file = folder.write("m.onnx", model(bytes(5, tensor)));
  const Checkpoint checkpoint = Checkpoint::open(file);
  expectAShare(checkpoint, path, {"w"}, size);
  // Raw numbers in the file itself, and numbers one by one, which are read whole.
  std::string raw(96 * 4, '\0');
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = char(i % 60);
  const std::string own =
      number(1, 12) + number(1, 8) + number(2, 1) + bytes(8, "r") + bytes(9, raw);
  const std::string typed =
      number(1, 12) + number(1, 8) + number(2, 1) + bytes(8, "t") + bytes(4, raw);
  const Checkpoint small =
      Checkpoint::open(folder.write("s.onnx", model(bytes(5, own) + bytes(5, typed))));
  EXPECT_EQ(piecesLikeThoseOfTheWhole(small, "r"), kAll);
  EXPECT_EQ(piecesLikeThoseOfTheWhole(small, "t"), 0);
}

}  // namespace
}  // namespace lathe
