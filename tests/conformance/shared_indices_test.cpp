// SPDX-License-Identifier: Apache-2.0
// Two tables that are read by the same ids: each id is checked against each of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/lathe.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

using Reader =
    std::pair<std::string, std::function<Tensor(const Tensor& table, const Tensor& ids)>>;
const std::vector<Reader> kReaders{
    {"gather", [](const Tensor& table, const Tensor& ids) { return gather(table, ids, 0); }},
    {"embedding",
     [](const Tensor& table, const Tensor& ids) { return fused::embedding(ids, table); }},
    {"turned",
     [](const Tensor& table, const Tensor& ids) {
       return transpose(gather(transpose(table, {1, 0}), ids, 1), {1, 0});
     }},
};

class SharedIndices : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, SharedIndices, ::testing::Values("cpu", "cuda", "reference"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(SharedIndices, AreCheckedAgainstEachTable) {
  for (const auto& [firstName, first] : kReaders)
    for (const auto& [secondName, second] : kReaders)
      for (auto [rows, others] : {std::pair{10, 4}, std::pair{4, 10}}) {
        SCOPED_TRACE(firstName + " of " + std::to_string(rows) + ", " + secondName + " of " +
                     std::to_string(others));
        Graph g;
        const Tensor ids = g.input("ids", DType::I64, {5});
        const Tensor a = g.input("a", DType::F32, {rows, 8}),
                     b = g.input("b", DType::F32, {others, 8});
        g.output("y", first(a, ids) + second(b, ids));
        Session session(compile(g, {.backend = GetParam()}), {.threads = 1, .device = "host"});
        Array tableA(DType::F32, {rows, 8}), tableB(DType::F32, {others, 8});
        for (int64_t i = 0; i < tableA.size(); ++i) tableA.set(i, double(i));
        for (int64_t i = 0; i < tableB.size(); ++i) tableB.set(i, double(1000 * i));
        auto run = [&](const std::vector<int64_t>& values) {
          return session
              .run("forward", {{"ids", Array::fromInts(values, {5})}, {"a", tableA}, {"b", tableB}})
              .at("y");
        };
        const std::vector<int64_t> fit{3, 0, 2, 3, 1};
        for (int64_t wrong : {4, 7, 9, 10, -1})
          for (size_t place : {0, 4}) {
            std::vector<int64_t> values = fit;
            values[place] = wrong;
            try {
              run(values);
              ADD_FAILURE() << "no error for id " << wrong;
            } catch (const Error& e) {
              EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
              EXPECT_THAT(e.what(), ::testing::HasSubstr(std::to_string(wrong)));
            }
          }
        const Array y = run(fit);
        for (int64_t i = 0; i < 5; ++i)
          for (int64_t j = 0; j < 8; ++j)
            EXPECT_EQ(y.at(i * 8 + j), 1001.0 * double(fit[size_t(i)] * 8 + j));
      }
}

}  // namespace
}  // namespace lathe
