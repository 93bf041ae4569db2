// SPDX-License-Identifier: Apache-2.0
// Calls that a session refuses leave nothing behind: whatever was refused between two steps, the
// second gives what it gives in a session that was never asked; after an index that only a kernel
// sees, from clean states on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lathe/lathe.h"
#include "lathe/runtime/error.h"

namespace lathe::conformance {
namespace {

using ::testing::HasSubstr;

Array numbers(Shape shape, double first = 0, DType dtype = DType::F32) {
  Array a(dtype, std::move(shape));
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, first + double(i % 7));
  return a;
}

// Rows of a table and a product go into a cache, a sum of it comes out; a count of the steps and
// the largest k besides.
Graph model() {
  Graph g;
  g.entry("step");
  const Dim rows = g.dim("rows", 1, 6), capacity = g.dim("capacity", 8, 32, 4);
  g.state("cache", DType::F32, {1, capacity, 4});
  g.state("steps", DType::I32, {1});
  const Tensor table = g.weight("table", DType::F32, {10, 4}),
               product = g.weight("product", DType::F32, {4, 4});
  const Tensor x = g.input("x", DType::F32, {rows, 4}), ids = g.input("ids", DType::I64, {rows}),
               at = g.input("at", DType::I64, {1});
  const Tensor added = matmul(x, product) + gather(table, ids, 0);
  const Tensor cache = update(g.readState("cache"), reshape(added, {1, rows, 4}), at, 1);
  g.writeState("cache", cache);
  const Tensor steps = g.readState("steps") + scalarLike(g.readState("steps"), 1);
  g.writeState("steps", steps);
  g.output("sum", reduceSum(cache, {1}));
  g.output("count", steps);
  g.output("largest", topK(x, 3).first);
  return g;
}

Arrays inputs(int64_t rows, double first) {
  return {{"x", numbers({rows, 4}, first)},
          {"ids", numbers({rows}, 1, DType::I64)},
          {"at", numbers({1}, first, DType::I64)}};
}
Arrays weights(double first = 0) {
  return {{"table", numbers({10, 4}, first)}, {"product", numbers({4, 4}, 1)}};
}
Arrays with(Arrays all, const std::string& name, const Array& other) {
  all[name] = other;
  return all;
}
Arrays without(Arrays all, const std::string& name) {
  all.erase(all.find(name));
  return all;
}

struct Mistake {
  std::string name;
  std::function<void(Session&)> make;
  /// Seen by a kernel of a run that began: states keep what was written before (docs/limits.md).
  bool inRun = false;
};

std::vector<Mistake> mistakes() {
  auto run = [](const Arrays& given, const char* entry = "step") {
    return [given, entry](Session& s) { s.run(entry, given); };
  };
  auto bind = [](const Arrays& given) { return [given](Session& s) { s.bindWeights(given); }; };
  const Arrays good = inputs(3, 2);
  auto index = [](double value) {
    Array a(DType::I64, {3});
    a.set(2, value);
    return a;
  };
  auto place = [](double value) {
    Array a(DType::I64, {1});
    a.set(0, value);
    return a;
  };
  return {
      {"an input is missing", run(without(good, "ids"))},
      {"an input too many", run(with(good, "y", numbers({1})))},
      {"another entry point", run(good, "stop")},
      {"another rank", run(with(good, "x", numbers({12})))},
      {"another width", run(with(good, "x", numbers({3, 5})))},
      {"another dtype", run(with(good, "x", numbers({3, 4}, 0, DType::F64)))},
      {"rows that differ", run(with(good, "ids", numbers({2}, 0, DType::I64)))},
      {"more rows than the range has", run(inputs(7, 0))},
      {"no rows", run(inputs(0, 0))},
      {"no array", run(with(good, "x", Array()))},
      {"an index behind the table", run(with(good, "ids", index(10))), true},
      {"an index before the table", run(with(good, "ids", index(-1))), true},
      {"a place behind the cache", run(with(good, "at", place(10))), true},
      {"a place before the cache", run(with(good, "at", place(-1))), true},
      {"an entry point by number",
       [=](Session& s) {
         std::vector<Array> outputs;
         s.run(1, std::vector<Array>{good.at("x"), good.at("ids"), good.at("at")}, outputs);
       }},
      {"too few by position",
       [=](Session& s) {
         std::vector<Array> outputs;
         s.run(0, std::vector<Array>{good.at("x"), good.at("ids")}, outputs);
       }},
      {"a weight is missing", bind(without(weights(5), "table"))},
      {"a weight too many", bind(with(weights(5), "other", numbers({1})))},
      {"a weight of another shape", bind(with(weights(5), "product", numbers({4, 5})))},
      {"a weight of another dtype",
       bind(with(weights(5), "table", numbers({10, 4}, 0, DType::I64)))},
      {"weights that fail",
       [](Session& s) {
         s.bindWeights([](const std::string& name) -> Array {
           if (name == "product") throw Error(ErrorCode::InvalidFile, "torn");
           return numbers({10, 4}, 5);
         });
       }},
      {"no source of weights", [](Session& s) { s.bindWeights(WeightSource()); }},
      {"a symbol that is not there", [](Session& s) { s.setSymbol("columns", 4); }},
      {"a symbol below its range", [](Session& s) { s.setSymbol("capacity", 4); }},
      {"a symbol above its range", [](Session& s) { s.setSymbol("capacity", 36); }},
      {"a symbol between its multiples", [](Session& s) { s.setSymbol("capacity", 14); }},
      {"a symbol of the inputs", [](Session& s) { s.setSymbol("rows", 3); }},
      {"a state that is not there", [](Session& s) { s.state("rows"); }},
  };
}

class RefusedCalls : public ::testing::TestWithParam<const char*> {
 protected:
  Session open() const {
    Session s(program_, {.threads = 1, .device = "host"});
    s.bindWeights(weights());
    s.setSymbol("capacity", 12);
    return s;
  }
  static void expectEqual(const Array& got, const Array& want, const std::string& what) {
    ASSERT_EQ(got.shape(), want.shape()) << what;
    ASSERT_EQ(got.dtype(), want.dtype()) << what;
    for (int64_t i = 0; i < want.size(); ++i) EXPECT_EQ(got.at(i), want.at(i)) << what << " " << i;
  }

  std::shared_ptr<const Program> program_ =
      std::make_shared<const Program>(compile(model(), {.backend = GetParam()}));
};

TEST_P(RefusedCalls, LeaveWeightsStatesAndSizesAsTheyWere) {
  Session plain = open();
  const Arrays first = plain.run("step", inputs(2, 1)), second = plain.run("step", inputs(3, 4));
  ASSERT_EQ(second.at("count").at(0), 2);
  for (const Mistake& mistake : mistakes()) {
    SCOPED_TRACE(mistake.name);
    Session s = open();
    EXPECT_THROW(mistake.make(s), Error) << "before the first run";
    s.resetStates();
    const Arrays again = s.run("step", inputs(2, 1));
    for (const auto& [name, want] : first) expectEqual(again.at(name), want, name);
    const std::vector<Array> states{s.state("cache"), s.state("steps")};
    for (int times = 0; times < 2; ++times) EXPECT_THROW(mistake.make(s), Error);
    if (mistake.inRun) {
      s.resetStates();
      s.run("step", inputs(2, 1));
    }
    expectEqual(s.state("cache"), states[0], "cache");
    expectEqual(s.state("steps"), states[1], "steps");
    const Arrays got = s.run("step", inputs(3, 4));
    for (const auto& [name, want] : second) expectEqual(got.at(name), want, name);
    for (const char* state : {"cache", "steps"})
      expectEqual(s.state(state), plain.state(state), state);
  }
}

// The size of the row is known to the call alone.
TEST_P(RefusedCalls, RowsThatAreTooShortForTheirLargest) {
  for (int64_t k : {9, 40}) {
    Graph g;
    const Tensor x = g.input("x", DType::F32, {2, g.dim("n", 1, 64)});
    auto [values, indices] = topK(x, k);
    g.output("values", values);
    g.output("indices", indices);
    Session s(compile(g, {.backend = GetParam()}), {.threads = 1, .device = "host"});
    for (int64_t n : {k - 1, int64_t(1)}) try {
        s.run("forward", {{"x", numbers({2, n})}});
        ADD_FAILURE() << "of " << n << " elements the largest " << k;
      } catch (const Error& e) {
        EXPECT_THAT(e.what(), ::testing::AllOf(HasSubstr("at least"), HasSubstr(std::to_string(k)),
                                               HasSubstr(std::to_string(n))));
      }
    EXPECT_EQ(s.run("forward", {{"x", numbers({2, k})}}).at("values").at(0), 6);
  }
}

// However large it is: what a kernel tells of it is one word.
TEST_P(RefusedCalls, TellTheIndexAsItIs) {
  Graph g;
  const Tensor table = g.input("table", DType::F32, {10, 3}), i = g.input("i", DType::I64, {5});
  g.output("y", gather(table, i, 0));
  Session s(compile(g, {.backend = GetParam()}), {.threads = 1, .device = "host"});
  for (double bad :
       {10., 0x1p61, 0x1p62 + 1024, 0x1p63 - 1024, -1., -3., -0x1p62, -0x1p62 - 1024, -0x1p63}) {
    Array at(DType::I64, {5});
    at.set(3, bad);
    try {
      s.run("forward", {{"table", numbers({10, 3})}, {"i", at}});
      ADD_FAILURE() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
      EXPECT_THAT(e.what(), HasSubstr(" " + std::to_string(int64_t(bad)) + " "));
    }
  }
}

// Keys and values of five blocks of four places; `store` writes them and reads none.
Graph pagedModel() {
  Graph g;
  const Dim batch = g.dim("batch", 1, 3), tokens = g.dim("tokens", 1, 8),
            entries = g.dim("entries", 1, 4), blocks = g.dim("blocks", 1, 9);
  g.state("cache", DType::F32, {blocks, 1, 4, 8});
  auto stored = [&](const char* entry) {
    g.entry(entry);
    const Tensor x = g.input("x", DType::F32, {batch, 1, tokens, 8}),
                 table = g.input("table", DType::I64, {batch, entries}),
                 at = g.input("at", DType::I64, {batch});
    const Tensor cache = pagedUpdate(g.readState("cache"), x, table, at, 2);
    g.writeState("cache", cache);
    return std::tuple{x, cache, table, at};
  };
  stored("store");
  const auto [x, cache, table, at] = stored("step");
  g.output("y", fused::pagedAttention(x, cache, cache, table, at));
  return g;
}

Arrays pagedInputs(const std::vector<double>& table, const std::vector<double>& at) {
  auto integers = [](Shape shape, const std::vector<double>& values) {
    Array a(DType::I64, std::move(shape));
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, values[size_t(i)]);
    return a;
  };
  return {{"x", numbers({2, 1, 2, 8}, 1)},
          {"table", integers({2, 3}, table)},
          {"at", integers({2}, at)}};
}

class RefusedTables : public RefusedCalls {
 protected:
  Session openPaged() const {
    Session s(paged_, {.threads = 1, .device = "host"});
    s.setSymbol("blocks", 5);
    return s;
  }
  std::shared_ptr<const Program> paged_ =
      std::make_shared<const Program>(compile(pagedModel(), {.backend = GetParam()}));
};

TEST_P(RefusedTables, NameWhatIsNotThereAndLeaveTheCacheAsItWas) {
  const Arrays good = pagedInputs({4, 1, 0, 2, 3, 0}, {3, 0});
  Session plain = openPaged();
  const Arrays want = plain.run("step", good);
  struct Wrong {
    const char* name;
    Arrays inputs;
    const char* text;
    bool isStored = false;  // by a call that writes and reads nothing
  };
  for (const Wrong& wrong : std::vector<Wrong>{
           {"a block before the cache", pagedInputs({4, 1, 0, -1, 3, 0}, {3, 0}), "-1"},
           {"a block behind the cache", pagedInputs({4, 5, 0, 2, 3, 0}, {3, 0}), "5"},
           {"an entry without tokens", pagedInputs({4, 1, 5, 2, 3, 0}, {3, 0}), "5", true},
           {"one before the cache", pagedInputs({4, 1, 0, 2, 3, -1}, {3, 0}), "-1", true},
           {"a position before the table", pagedInputs({4, 1, 0, 2, 3, 0}, {3, -1}), "position -1"},
           {"a position at its end", pagedInputs({4, 1, 0, 2, 3, 0}, {11, 0}), "position 11"},
           {"a position that no sum holds", pagedInputs({4, 1, 0, 2, 3, 0}, {3, 0x1p62}),
            "position 4611686018427387904"},
       }) {
    SCOPED_TRACE(wrong.name);
    Session s = openPaged();
    s.run("step", good);
    for (const char* entry : {"store", "step"}) {
      if (wrong.isStored && entry == std::string_view("store")) {
        EXPECT_NO_THROW(s.run(entry, wrong.inputs));
        continue;
      }
      const Array before = s.state("cache");
      try {
        s.run(entry, wrong.inputs);
        ADD_FAILURE() << entry;
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidArgument) << e.what();
        EXPECT_NE(std::string_view(e.what()).find(wrong.text), std::string_view::npos) << e.what();
      }
      if (!wrong.isStored) expectEqual(s.state("cache"), before, "cache");
    }
    s.resetStates();
    expectEqual(s.run("step", good).at("y"), want.at("y"), "y");
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, RefusedTables, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });
INSTANTIATE_TEST_SUITE_P(Backends, RefusedCalls, ::testing::Values("reference", "cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lathe::conformance
