// SPDX-License-Identifier: Apache-2.0
// Weights in few bits: what the words mean, how far they are from the stored ones, and that every
// way through a model reads the same numbers.
#include "lathe/passes/weight_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lathe/frontend/families/llama.h"
#include "lathe/lathe.h"
#include "tests/closeness.h"

namespace lathe {
namespace {

using Bits = WeightFormat::Bits;

std::string messageOf(std::string_view text) {
  try {
    parseWeightFormats(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(WeightFormats, AreReadAndWritten) {
  EXPECT_FALSE(parseWeightFormats("stored").any());
  EXPECT_EQ(parseWeightFormats("int8").linear, (WeightFormat{Bits::Int8}));
  EXPECT_EQ(parseWeightFormats("int8").head, (WeightFormat{Bits::Int8}));
  const WeightFormats four = parseWeightFormats("int4");
  EXPECT_EQ(four.linear, (WeightFormat{Bits::Int4, 32}));
  EXPECT_EQ(four.embedding, (WeightFormat{Bits::Int8}));
  EXPECT_EQ(four.head, (WeightFormat{Bits::Int8}));
  const WeightFormats all =
      parseWeightFormats("int4:128:asymmetric,head=int4:channel,embedding=stored");
  EXPECT_EQ(all.linear, (WeightFormat{Bits::Int4, 128, true}));
  EXPECT_EQ(all.head, (WeightFormat{Bits::Int4, 0}));
  EXPECT_EQ(all.embedding, WeightFormat());
  EXPECT_FALSE(all.int8Activations);
  const WeightFormats rounded = parseWeightFormats("stored,activations=int8");
  EXPECT_TRUE(rounded.int8Activations && rounded.any());
  EXPECT_FALSE(rounded.quantizesWeights());
  EXPECT_FALSE(parseWeightFormats("stored,activations=stored").any());
  for (const char* text : {"stored", "int8:64", "int4:asymmetric", "int4,activations=int8",
                           "int8,embedding=stored,head=int4"})
    EXPECT_EQ(parseWeightFormats(textOf(parseWeightFormats(text))), parseWeightFormats(text));
}

TEST(WeightFormats, OthersAreErrorsThatNameThePart) {
  EXPECT_NE(messageOf("int5").find("expected stored, int8 or int4, got 'int5'"), std::string::npos);
  EXPECT_NE(messageOf("int8:33").find("got '33'"), std::string::npos);
  EXPECT_NE(messageOf("int4:32:64").find("got '64'"), std::string::npos);
  EXPECT_NE(messageOf("stored:32").find("nothing behind stored"), std::string::npos);
  EXPECT_NE(messageOf("int4,norm=int8").find("got 'norm=int8'"), std::string::npos);
  EXPECT_NE(messageOf("int4,embedding=int4").find("for the embedding"), std::string::npos);
  EXPECT_NE(messageOf("int4,activations=int4")
                .find("expected stored or int8 for activations, which "
                      "have a scale for each row, got 'int4'"),
            std::string::npos);
  EXPECT_NE(messageOf("activations=int8").find("first, as in stored,activations=int8"),
            std::string::npos);
  EXPECT_NE(messageOf("int8,head=int4,head=stored").find("one format for head, got 'head=stored'"),
            std::string::npos);
  EXPECT_NE(messageOf("").find("got ''"), std::string::npos);
}

LlamaConfig smallConfig(bool tied, int64_t hidden = 64) {
  LlamaConfig config;
  config.vocabSize = 100, config.hiddenSize = hidden, config.intermediateSize = 172;
  config.layers = 2, config.heads = 4, config.kvHeads = 2, config.headDim = hidden / 4;
  config.maxPositions = 128;
  config.tieWordEmbeddings = tied;
  return config;
}

Graph smallModel(bool tied, DType dtype, int64_t hidden = 64) {
  return buildLlama(smallConfig(tied, hidden), {.dtype = dtype, .weightDType = DType::BF16});
}

std::shared_ptr<const Program> compiled(const Graph& g, const char* formats,
                                        const char* backend = "cpu", bool float64 = false) {
  return std::make_shared<const Program>(
      compile(g, {.backend = backend,
                  .backendOptions = {.float64 = float64, .weights = parseWeightFormats(formats)}}));
}

// Logits of all positions of one sequence.
Array logitsOf(const std::shared_ptr<const Program>& program, const Array& ids) {
  Session session(program);
  session.bindRandomWeights(5);
  return session.run("forward", {{"input_ids", ids}}).at("logits");
}

Array someIds(int64_t count) {
  Array ids(DType::I64, {1, count});
  for (int64_t i = 0; i < count; ++i) ids.set(i, double((i * 37 + 11) % 100));
  return ids;
}

double rootMeanSquare(const Array& a) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) sum += a.at(i) * a.at(i);
  return std::sqrt(sum / double(std::max<int64_t>(a.size(), 1)));
}
double distance(const Array& a, const Array& b) {
  Array difference(DType::F64, a.shape());
  for (int64_t i = 0; i < a.size(); ++i) difference.set(i, a.at(i) - b.at(i));
  return rootMeanSquare(difference) / rootMeanSquare(b);
}

constexpr const char* kFormats[] = {"int8", "int8:32:asymmetric", "int4", "int4:64:asymmetric",
                                    "int4:channel,embedding=stored,head=int4:32"};
constexpr const char* kByteRows[] = {"int8,activations=int8", "int4,activations=int8",
                                     "int8:32:asymmetric,activations=int8"};

// The cpu backend computes what the interpreter does on the same integers, in float64. Rows of a
// quantized embedding are rounded to the table's bf16, which float64 does not do.
TEST(WeightFormats, CpuAgreesWithTheReference) {
  const Array ids = someIds(9);
  for (bool tied : {false, true}) {
    const Graph g = smallModel(tied, DType::F32);
    for (std::string formats : kFormats) {
      SCOPED_TRACE(formats);
      auto away = [&](const std::string& f) {
        return distance(logitsOf(compiled(g, f.c_str()), ids),
                        logitsOf(compiled(g, f.c_str(), "reference", true), ids));
      };
      EXPECT_LT(away(formats), 3e-3);
      EXPECT_LT(away(formats.substr(0, formats.find(',')) + ",embedding=stored"), 2e-5);
    }
  }
}

// So it does with activations in 8 bits. What lies at a tie goes either way there, as sums differ
// in their last bits: a step of a few elements.
TEST(WeightFormats, CpuRoundsActivationsAsTheReferenceDoes) {
  const Array ids = someIds(9);
  for (DType dtype : {DType::F32, DType::BF16}) {
    const Graph g = smallModel(false, dtype);
    for (std::string formats : {"int8", "int4", "int4:64:asymmetric", "int8:32:asymmetric"}) {
      SCOPED_TRACE(formats);
      const std::string rounded = formats + ",embedding=stored,activations=int8";
      const Array got = logitsOf(compiled(g, rounded.c_str()), ids);
      EXPECT_LT(distance(got, logitsOf(compiled(g, rounded.c_str(), "reference", true), ids)),
                dtype == DType::F32 ? 3e-3 : 0.02);
      const double step = distance(got, logitsOf(compiled(g, formats.c_str()), ids));
      EXPECT_GT(step, 1e-3);
      EXPECT_LT(step, 0.03);
    }
  }
}

// More bits and smaller groups are nearer to the stored weights, and none is them.
TEST(WeightFormats, ComeNearTheStoredWeights) {
  const Array ids = someIds(9);
  const Graph g = smallModel(false, DType::F32);
  const Array want = logitsOf(compiled(g, "stored"), ids);
  const double eight = distance(logitsOf(compiled(g, "int8"), ids), want);
  const double four = distance(logitsOf(compiled(g, "int4"), ids), want);
  const double coarse = distance(logitsOf(compiled(g, "int4:channel"), ids), want);
  EXPECT_GT(eight, 1e-4);
  EXPECT_LT(eight, 0.02);
  EXPECT_GT(four, 3 * eight);
  EXPECT_LT(four, 0.2);
  EXPECT_GT(coarse, four);
}

// The largest distance of logits of single tokens from those of all at once.
double decodeFromPrefill(const Graph& g, const char* formats) {
  const int64_t count = 12;
  const Array ids = someIds(count);
  auto program = compiled(g, formats);
  const Array whole = logitsOf(program, ids);
  const int64_t columns = whole.shape().back();
  Session session(program);
  session.bindRandomWeights(5);
  session.setSymbol("cache", 16);
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    Array id(DType::I64, {1, 1}), position(DType::I64, {1}), row(DType::F32, {columns});
    id.set(0, ids.at(i));
    position.set(0, double(i));
    for (int64_t c = 0; c < columns; ++c) row.set(c, whole.at(i * columns + c));
    const Array one =
        session.run("decode", {{"input_ids", id}, {"positions", position}}).at("logits");
    largest = std::max(largest, distance(one, row));
  }
  return largest;
}

// One token at a time and all at once: kernels of one row and of many read the same integers.
TEST(WeightFormats, DecodeEqualsPrefillAtEachPosition) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    const Graph g = smallModel(true, dtype);
    for (const char* formats : kFormats)
      EXPECT_LT(decodeFromPrefill(g, formats), dtype == DType::F32 ? 1e-5 : 0.02) << formats;
    // A row has a scale of its own, whatever other rows there are.
    for (const char* formats : kByteRows)
      EXPECT_LT(decodeFromPrefill(g, formats), dtype == DType::F32 ? 3e-3 : 0.02) << formats;
  }
}

TEST(WeightFormats, StrictModeKeepsTheStoredOnes) {
  const Graph g = smallModel(false, DType::F32);
  for (auto [formats, contract] : {std::pair("int8", "weight-precision"),
                                   std::pair("int8,activations=int8", "weight-precision"),
                                   std::pair("stored,activations=int8", "activation-precision")})
    try {
      compile(g, {.backendOptions = {.weights = parseWeightFormats(formats)},
                  .pipeline = {.mode = NumericsMode::Strict}});
      FAIL() << formats;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
      EXPECT_NE(std::string(e.what()).find("strict mode keeps the contract '" +
                                           std::string(contract) + "'"),
                std::string::npos)
          << e.what();
    }
}

TEST(WeightFormats, TheRecordListsWhatTheyWeaken) {
  CompileRecord record;
  compile(smallModel(false, DType::F32),
          {.backendOptions = {.weights = parseWeightFormats("int4")}, .record = &record});
  int linears = 0, embeddings = 0;
  for (const CompileRecord::Rewrite& r : record.rewrites) {
    if (r.step != "quantize-weights") continue;
    EXPECT_EQ(r.weakened, std::vector<std::string>{"weight-precision"});
    linears += r.what == "quantize-linear";
    embeddings += r.what == "quantize-embedding";
  }
  const int entries = 3;                      // forward, prefill, decode
  EXPECT_EQ(linears, entries * (2 * 4 + 1));  // qkv, o, gate and up, down of each layer; the head
  EXPECT_EQ(embeddings, entries);
}

// How often a step rewrote something.
int rewritesOf(const Graph& g, const char* formats, const std::string& what) {
  CompileRecord record;
  compile(g, {.backendOptions = {.weights = parseWeightFormats(formats)}, .record = &record});
  return int(std::count_if(record.rewrites.begin(), record.rewrites.end(),
                           [&](const auto& r) { return r.what == what; }));
}

// Of the layers on weights in few bits alone, and of those that the graph dequantizes itself.
TEST(WeightFormats, ActivationsOfWhichLayersAreRounded) {
  EXPECT_EQ(
      rewritesOf(smallModel(false, DType::F32), "int4,activations=int8", "quantize-activations"),
      3 * (2 * 4 + 1));
  EXPECT_EQ(rewritesOf(smallModel(false, DType::F32), "int4,head=stored,activations=int8",
                       "quantize-activations"),
            3 * 2 * 4);
  EXPECT_EQ(
      rewritesOf(smallModel(false, DType::F32), "stored,activations=int8", "quantize-activations"),
      0);
  Graph g;
  Tensor w = dequantize(g.weight("q", DType::I8, {64, 64}), g.weight("scale", DType::F32, {64, 2}),
                        {}, 1, 32);
  g.output("y", matmul(g.input("x", DType::F32, {3, 64}), swapAxes(w, 0, 1)));
  CompileRecord record;
  compile(g, {.backendOptions = {.weights = parseWeightFormats("stored,activations=int8")},
              .record = &record});
  int rounded = 0;
  for (const CompileRecord::Rewrite& r : record.rewrites)
    if (r.what == "quantize-activations") {
      ++rounded;
      EXPECT_EQ(r.weakened, std::vector<std::string>{"activation-precision"});
    }
  EXPECT_EQ(rounded, 1);
}

// What the program holds: half a byte an element and two for 32, the head and the embedding a byte.
TEST(WeightFormats, WeightsTakeAsManyBitsAsTheySay) {
  const Graph g = smallModel(false, DType::F32, 1024);
  auto derived = [&](const char* formats) {
    Session session(compiled(g, formats));
    session.bindRandomWeights(5);
    return double(session.memory().derived);
  };
  const double stored = derived("stored"), eight = derived("int8"), four = derived("int4");
  EXPECT_LT(eight, 0.3 * stored);  // packed as f32
  EXPECT_LT(four, 0.7 * eight);
}

// What a graph dequantizes itself is not quantized a second time, along whichever axis.
TEST(WeightFormats, LeaveWhatTheGraphDequantizes) {
  for (int64_t axis : {0, 1}) {
    Graph g;
    Tensor x = g.input("x", DType::F32, {3, 64});
    Tensor q = g.weight("q", DType::I8, {64, 64});
    Tensor scale = g.weight("scale", DType::F32, axis ? Shape{64, 2} : Shape{2, 64});
    Tensor w = dequantize(q, scale, {}, axis, 32);
    g.output("y", matmul(x, swapAxes(w, 0, 1)));
    EXPECT_EQ(rewritesOf(g, "int4", "quantize-linear"), 0) << "axis " << axis;
  }
}

// A head is one although only a choice from its scores is returned.
TEST(WeightFormats, KnowTheHeadBehindAChoice) {
  for (bool chosen : {false, true}) {
    Graph g;
    Tensor ids = g.input("ids", DType::I64, {1, 5});
    const nn::Embedding tokens(g, "tokens", 100, 64);
    Tensor logits = tokens.unembed(tokens(ids));
    g.output("y", chosen ? argmax(logits, -1) : logits);
    EXPECT_EQ(rewritesOf(g, "int4,head=stored", "quantize-linear"), 0);
    EXPECT_EQ(rewritesOf(g, "int4", "quantize-linear"), 1);
  }
}

// The table's scale and the rows that are added stay what they were.
TEST(WeightFormats, OfAnEmbeddingKeepItsScaleAndPositions) {
  Graph g;
  Tensor ids = g.input("ids", DType::I64, {1, 9});
  fused::EmbeddingOptions options{.positions = g.weight("places", DType::F32, {9, 64}), .scale = 3};
  g.output("y", fused::embedding(ids, g.weight("table", DType::F32, {100, 64}), options));
  EXPECT_EQ(rewritesOf(g, "int8", "quantize-embedding"), 1);
  auto rows = [&](const char* formats) {
    Session session(compiled(g, formats));
    session.bindRandomWeights(5);
    return session.run("forward", {{"ids", someIds(9)}}).at("y");
  };
  EXPECT_LT(distance(rows("int8"), rows("stored")), 0.01);
}

}  // namespace
}  // namespace lathe
