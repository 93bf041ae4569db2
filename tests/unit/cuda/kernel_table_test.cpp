// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/kernel_table.h"

#include <gtest/gtest.h>

#include "lathe/runtime/error.h"
#include "tests/unit/test_files.h"

namespace lathe::cuda {
namespace {

using test::expectError;

KernelTable sample() {
  Launch tiled;
  tiled.kernel = "tiled";
  tiled.grid[0] = {DimExpr::symbol("seq") * 2, 64, 0};
  tiled.grid[1] = {DimExpr::symbol("batch"), 1, 65535};
  tiled.grid[2] = {.count = DimExpr::symbol("batch"), .folds = true};
  tiled.threads = 96;
  tiled.cluster = 2;
  tiled.sharedBytes = 102400;
  tiled.unlessSame = {2, 5};
  tiled.waits = true;
  tiled.arguments = {{Argument::Kind::Buffer, 3},
                     {Argument::Kind::Size, 0, DimExpr::symbol("seq") + 1},
                     {Argument::Kind::Scratch, 0, 512},
                     {Argument::Kind::Status, 7},
                     {Argument::Kind::Counters, 128}};
  Variant wide;
  wide.what = "tiled 128x128";
  wide.buffers = 3;
  wide.when = {{DimExpr::symbol("seq"), 17, 1 << 20}, {1, -5, 5}};
  wide.scratchBytes = 1024;
  wide.temporaries = {DimExpr::symbol("batch") * 4, 512};
  wide.launches = {tiled};
  Variant narrow;
  narrow.what = "plain";
  narrow.launches.resize(2);
  narrow.launches[0].kernel = "first";
  narrow.launches[1].kernel = "second";
  PlainMatmul matmul;
  matmul.dtype = DType::F16;
  matmul.rows = DimExpr::symbol("seq");
  matmul.columns = 24;
  matmul.depth = 40;
  matmul.x = {Argument::Kind::Buffer, 1};
  matmul.weight = {Argument::Kind::Scratch, 0, 256};
  matmul.result = {Argument::Kind::Buffer, 4};
  matmul.bias = Argument{Argument::Kind::Buffer, 2};
  matmul.residual = Argument{Argument::Kind::Buffer, 3};
  matmul.required = true;
  matmul.resultDType = DType::F32;
  narrow.launches[1].matmul = matmul;
  PlainAttention attention;
  attention.dtype = DType::F16;
  attention.batch = DimExpr::symbol("batch");
  attention.queries = DimExpr::symbol("seq");
  attention.keys = 640;
  attention.queryHeads = 6;
  attention.keyHeads = 3;
  attention.depth = 40;
  attention.valueDepth = 48;
  attention.q = {{Argument::Kind::Buffer, 1}, 1, 2, 3, DimExpr::symbol("seq")};
  attention.k = {{Argument::Kind::Buffer, 2}, 5, 6, 7, 8};
  attention.v = {{Argument::Kind::Scratch, 0, 256}, 9, 10, 11, 12};
  attention.y = {{Argument::Kind::Buffer, 4}, 13, 14, 15, 16};
  attention.scale = 0.25;
  attention.causal = true;
  attention.lengths = Argument{Argument::Kind::Scratch, 1};
  attention.required = true;
  narrow.launches[0].attention = attention;
  return {{"matmul.0", {wide, narrow}}, {"unused", {}}};
}

TEST(KernelTableTest, ComesBackFromItsText) {
  const std::string text = toJson(sample());
  KernelTable table = parseKernelTable(text);
  ASSERT_EQ(table.size(), 2u);
  EXPECT_TRUE(table.at("unused").empty());
  const Variant& wide = table.at("matmul.0").at(0);
  EXPECT_EQ(wide.what, "tiled 128x128");
  EXPECT_EQ(wide.buffers, 3);
  ASSERT_EQ(wide.when.size(), 2u);
  EXPECT_EQ(wide.when[0].value.text(), "seq");
  EXPECT_EQ(wide.when[0].low, 17);
  EXPECT_EQ(wide.when[0].high, 1 << 20);
  EXPECT_EQ(wide.when[1].low, -5);
  EXPECT_EQ(wide.scratchBytes, DimExpr(1024));
  ASSERT_EQ(wide.temporaries.size(), 2u);
  EXPECT_EQ(wide.temporaries[0], DimExpr::symbol("batch") * 4);
  EXPECT_EQ(wide.temporaries[1], DimExpr(512));
  const Launch& tiled = wide.launches.at(0);
  EXPECT_EQ(tiled.kernel, "tiled");
  EXPECT_EQ(tiled.grid[0].count, DimExpr::symbol("seq") * 2);
  EXPECT_EQ(tiled.grid[0].per, 64);
  EXPECT_EQ(tiled.grid[0].most, 0);
  EXPECT_EQ(tiled.grid[1].most, 65535);
  EXPECT_EQ(tiled.grid[2].count, DimExpr::symbol("batch"));
  EXPECT_FALSE(tiled.grid[1].folds);
  EXPECT_TRUE(tiled.grid[2].folds);
  EXPECT_EQ(tiled.threads, 96);
  EXPECT_EQ(tiled.cluster, 2);
  EXPECT_EQ(tiled.sharedBytes, 102400);
  EXPECT_EQ(tiled.unlessSame, (std::array<int, 2>{2, 5}));
  EXPECT_TRUE(tiled.waits);
  ASSERT_EQ(tiled.arguments.size(), 5u);
  EXPECT_EQ(tiled.arguments[0].kind, Argument::Kind::Buffer);
  EXPECT_EQ(tiled.arguments[0].index, 3);
  EXPECT_EQ(tiled.arguments[1].kind, Argument::Kind::Size);
  EXPECT_EQ(tiled.arguments[1].value.text(), (DimExpr::symbol("seq") + 1).text());
  EXPECT_EQ(tiled.arguments[2].kind, Argument::Kind::Scratch);
  EXPECT_EQ(tiled.arguments[2].value, DimExpr(512));
  EXPECT_EQ(tiled.arguments[3].kind, Argument::Kind::Status);
  EXPECT_EQ(tiled.arguments[3].index, 7);
  EXPECT_EQ(tiled.arguments[4].kind, Argument::Kind::Counters);
  EXPECT_EQ(tiled.arguments[4].index, 128);
  const Variant& narrow = table.at("matmul.0").at(1);
  ASSERT_EQ(narrow.launches.size(), 2u);
  EXPECT_EQ(narrow.launches[1].kernel, "second");
  EXPECT_EQ(narrow.launches[1].threads, 256);
  EXPECT_FALSE(narrow.launches[1].waits);
  EXPECT_EQ(narrow.launches[1].unlessSame, (std::array<int, 2>{-1, -1}));
  EXPECT_FALSE(narrow.launches[0].matmul);
  ASSERT_TRUE(narrow.launches[1].matmul);
  const PlainMatmul& matmul = *narrow.launches[1].matmul;
  EXPECT_EQ(matmul.dtype, DType::F16);
  EXPECT_EQ(matmul.rows, DimExpr::symbol("seq"));
  EXPECT_EQ(matmul.columns, DimExpr(24));
  EXPECT_EQ(matmul.depth, DimExpr(40));
  EXPECT_EQ(matmul.x.index, 1);
  EXPECT_EQ(matmul.weight.kind, Argument::Kind::Scratch);
  EXPECT_EQ(matmul.weight.value, DimExpr(256));
  EXPECT_EQ(matmul.result.index, 4);
  ASSERT_TRUE(matmul.bias && matmul.residual);
  EXPECT_EQ(matmul.bias->index, 2);
  EXPECT_EQ(matmul.residual->index, 3);
  EXPECT_TRUE(matmul.required);
  EXPECT_FALSE(narrow.launches[1].attention);
  ASSERT_TRUE(narrow.launches[0].attention);
  const PlainAttention& attention = *narrow.launches[0].attention;
  EXPECT_EQ(attention.dtype, DType::F16);
  EXPECT_EQ(attention.batch, DimExpr::symbol("batch"));
  EXPECT_EQ(attention.queries, DimExpr::symbol("seq"));
  EXPECT_EQ(attention.keys, DimExpr(640));
  EXPECT_EQ(attention.queryHeads, 6);
  EXPECT_EQ(attention.keyHeads, 3);
  EXPECT_EQ(attention.depth, 40);
  EXPECT_EQ(attention.valueDepth, 48);
  EXPECT_EQ(attention.q.token, DimExpr::symbol("seq"));
  EXPECT_EQ(attention.v.buffer.kind, Argument::Kind::Scratch);
  EXPECT_EQ(attention.v.buffer.value, DimExpr(256));
  EXPECT_EQ(attention.y.offset, DimExpr(13));
  EXPECT_EQ(attention.y.batch, DimExpr(14));
  EXPECT_EQ(attention.y.head, DimExpr(15));
  EXPECT_EQ(attention.scale, 0.25);
  EXPECT_TRUE(attention.causal && attention.required);
  ASSERT_TRUE(attention.lengths);
  EXPECT_EQ(attention.lengths->index, 1);
  EXPECT_EQ(toJson(table), text) << "every member is in the text";
}

TEST(KernelTableTest, AnEmptyTableIsATable) { EXPECT_TRUE(parseKernelTable(toJson({})).empty()); }

TEST(KernelTableTest, SaysWhereATextIsWrong) {
  const std::string good = toJson(sample());
  auto with = [&](std::string from, const std::string& to) {
    std::string text = good;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  auto refuses = [](const std::string& text, const std::string& message) {
    expectError(ErrorCode::InvalidFile, message, [&] { parseKernelTable(text); });
  };
  refuses("[]", "kernel table: expected an object");
  refuses("{\"a\": 1}", "kernel table: a: expected");
  refuses(good.substr(0, good.size() / 2), "kernel table");
  refuses(with("\"threads\":96", "\"threads\":1025"), "launches[0].threads");
  refuses(with("\"threads\":96", "\"threads\":0"), "launches[0].threads");
  refuses(with("\"cluster\":2", "\"cluster\":-1"), "launches[0].cluster");
  refuses(with("\"per\":64", "\"per\":0"), "grid.x.per");
  refuses(with("\"buffers\":3", "\"buffers\":-3"), "[0].buffers");
  refuses(with("\"low\":17", "\"low\":2000000"), "when[0]: a condition that no value meets");
  refuses(with("\"kind\":\"scratch\"", "\"kind\":\"heap\""),
          "arguments[2].kind: expected buffer, size, scratch, status or counters, got \"heap\"");
  refuses(with("\"unless_same\":[2,5]", "\"unless_same\":[2]"), "launches[0].unless_same");
  refuses(with("\"index\":3", "\"index\":-3"), "arguments[0].index");
  refuses(with("\"count\":\"2*seq\"", "\"count\":\"2*\""), "expected a size expression");
  refuses(with("\"waits\":true", "\"waits\":1"), "launches[0].waits");
  refuses(with("\"folds\":true", "\"folds\":1"), "grid.z.folds");
}

// ---- grids ------------------------------------------------------------------------------------

Launch over(GridAxis x, GridAxis y, GridAxis z) {
  Launch launch;
  launch.kernel = "tiled";
  launch.grid = {x, y, z};
  return launch;
}

std::array<uint32_t, 3> gridFor(const Launch& launch, int64_t n) {
  return gridOf(launch, [&](const DimExpr& e) { return e.evaluate({{"n", n}}).value(); });
}

const DimExpr n = DimExpr::symbol("n");
using Grid = std::array<uint32_t, 3>;

TEST(KernelGridTest, CountsWholeAndBegunBlocks) {
  const Launch launch = over({n, 64}, {n * 2, 64, 3}, {5});
  EXPECT_EQ(gridFor(launch, 64), (Grid{1, 2, 5}));
  EXPECT_EQ(gridFor(launch, 65), (Grid{2, 3, 5}));
  EXPECT_EQ(gridFor(launch, 1000), (Grid{16, 3, 5})) << "the second axis is limited";
  EXPECT_EQ(gridFor(launch, 0), (Grid{0, 0, 5}));
}

TEST(KernelGridTest, FoldedAxesStandAlongTheFirst) {
  const GridAxis tiles{.count = n, .per = 64, .folds = true}, batch{.count = 70000, .folds = true};
  EXPECT_EQ(gridFor(over({3}, tiles, {7}), 64 * 70000), (Grid{210000, 1, 7}));
  EXPECT_EQ(gridFor(over({3}, tiles, batch), 65), (Grid{420000, 1, 1}));
  EXPECT_EQ(gridFor(over({3}, {7}, batch), 65), (Grid{210000, 7, 1}));
  EXPECT_EQ(gridFor(over({3}, tiles, batch), 0)[0], 0u) << "no tiles are no blocks";
}

TEST(KernelGridTest, MoreBlocksThanAnAxisTakesAreAnError) {
  auto refuses = [](const Launch& launch, const std::string& message) {
    expectError(ErrorCode::Unsupported, message, [&] { gridFor(launch, int64_t{1} << 40); });
  };
  refuses(over({1}, {65536}, {1}),
          "kernel 'tiled' would need 65536 blocks along y, at most 65535 are possible");
  refuses(over({1}, {1}, {n}), "would need 1099511627776 blocks along z, at most 65535");
  refuses(over({n, 2}, {1}, {1}), "would need 549755813888 blocks along x, at most 2147483647");
  // As many as an axis takes are none too many.
  EXPECT_EQ(gridFor(over({2147483647}, {65535}, {n}), 65535), (Grid{2147483647, 65535, 65535}));
  const GridAxis folded{.count = n, .folds = true};
  refuses(over({n}, folded, folded), "blocks along x, at most 2147483647");
  refuses(over({n}, folded, {1}), "blocks along x, at most 2147483647");
}

TEST(KernelGridTest, SaysWhichAxisSomeSizesWouldOverflow) {
  EXPECT_EQ(whyNotEveryGrid(over({n}, {n, 1, kMostOnAxis}, {65535})), "");
  EXPECT_EQ(whyNotEveryGrid(over({n}, {.count = n, .folds = true}, {131070, 2})), "");
  EXPECT_EQ(whyNotEveryGrid(over({1}, {1}, {n, 64})),
            "kernel 'tiled' would need n / 64 blocks along z, at most 65535 are possible; fold or "
            "limit the axis");
  EXPECT_NE(whyNotEveryGrid(over({1}, {65536}, {1})), "");
  EXPECT_NE(whyNotEveryGrid(over({1}, {n, 1, kMostOnAxis + 1}, {1})), "");
}

}  // namespace
}  // namespace lathe::cuda
