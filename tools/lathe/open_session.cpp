// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/open_session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "tools/lathe/compiler_library.h"
#include "tools/lathe/console.h"
#include "tools/lathe/ranks.h"

namespace lathe::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kRandomWeightSeed = 0;

// A path in a program's metadata, which is seen from the program's folder.
std::string foundBeside(const Model& model, const std::string& path, const char* what,
                        const char* flag) {
  const fs::path named(path), found = fs::canonical(model.path).parent_path() / named;
  std::error_code ignored;
  std::string why;
  if (named.is_absolute())
    why = fmt::format(
        ": its {0} are named by the absolute path {1}, which is not followed; give "
        "them with {2}",
        what, path, flag);
  else if (fs::exists(found, ignored))
    return found.lexically_normal().string();
  else
    why = fmt::format(
        ": its {} are no longer at {}, seen from the program; say where they are with "
        "{}",
        what, path, flag);
  throw Error(ErrorCode::InvalidArgument, model.path + why);
}

// Empty where the program needs no file.
std::string weightsPath(const Model& model, const Program& program, const std::string& flag) {
  if (program.weights.empty() && flag.empty()) return {};
  if (!flag.empty()) return flag;
  if (hasOwnWeights(model)) return model.path;
  auto it = program.metadata.find(kWeightsPath);
  if (it == program.metadata.end())
    throw Error(ErrorCode::InvalidArgument,
                model.path + " needs weights; give them with --weights F.safetensors");
  return foundBeside(model, it->second, "weights", "--weights");
}

std::vector<std::string> loraPaths(const Model& model, const Program& program) {
  auto it = program.metadata.find(kLoraPaths);
  if (!model.loras.empty() || model.kind != ModelKind::Artifact || it == program.metadata.end())
    return model.loras;
  const JsonValue list = JsonValue::parse(it->second, model.path + ": " + kLoraPaths);
  return listFrom(list, [&](const JsonValue& item) {
    return foundBeside(model, item.asString(), "LoRA folders", "--lora");
  });
}

// Endings of names of tensors that checkpoints carry although the model computes them, or although
// its architecture has no use for them: tables of rotations, causal masks and places that old
// versions of transformers stored, T5's second bias of distances, Marian's sines, and heads of
// BERT's training.
constexpr auto kLeftOver =
    std::to_array<std::string_view>({".rotary_emb.inv_freq",
                                     ".attn.bias",
                                     ".attn.masked_bias",
                                     ".attention.bias",
                                     ".attention.masked_bias",
                                     "embeddings.position_ids",
                                     "bert.pooler.dense.weight",
                                     "bert.pooler.dense.bias",
                                     "roberta.pooler.dense.weight",
                                     "roberta.pooler.dense.bias",
                                     "cls.seq_relationship.weight",
                                     "cls.seq_relationship.bias",
                                     "cls.predictions.bias",
                                     "cls.predictions.transform.dense.weight",
                                     "cls.predictions.transform.dense.bias",
                                     "cls.predictions.transform.LayerNorm.weight",
                                     "cls.predictions.transform.LayerNorm.bias",
                                     "EncDecAttention.relative_attention_bias.weight",
                                     "encoder.embed_positions.weight",
                                     "decoder.embed_positions.weight"});
// Second names of a table of embeddings, and of a bias, that a model shares with its head.
constexpr auto kTables =
    std::to_array<std::string_view>({"embed_tokens.weight", "wte.weight", "embed_in.weight",
                                     "shared.weight", "word_embeddings.weight"});
constexpr auto kShared = std::to_array<std::string_view>(
    {"lm_head.weight", "embed_out.weight", "encoder.embed_tokens.weight",
     "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight",
     "decoder.embed_tokens.weight", "cls.predictions.decoder.weight", "lm_head.decoder.weight",
     "proj_out.weight", "vocab_projector.weight"});
constexpr auto kSharedBiases =
    std::to_array<std::string_view>({"cls.predictions.decoder.bias", "lm_head.decoder.bias"});

// Of all stages of a pipeline.
std::vector<const TensorInfo*> weightsOf(const Program& program) {
  std::vector<const TensorInfo*> all;
  for (const TensorInfo& info : program.weights) all.push_back(&info);
  for (const auto& later : program.laterStages)
    for (const TensorInfo& info : later->weights) all.push_back(&info);
  return all;
}

// Null where the program has none.
const TensorInfo* tableOf(const Program& program) {
  const TensorInfo* table = nullptr;
  for (const TensorInfo* info : weightsOf(program))
    for (std::string_view name : kTables)
      if (info->source().ends_with(name)) table = info;
  return table;
}

// Whole, or in the parts that numbers in few bits are.
bool isRead(const Program& program, const Checkpoint& checkpoint, std::string_view name) {
  return std::ranges::any_of(weightsOf(program), [&](const TensorInfo* info) {
    return checkpoint.wholeOf(info->source()) == name;
  });
}

// Tensors that checkpoints carry although the model computes them or shares them.
std::vector<ExpectedWeight> redundantWeights(const Program& program, const Checkpoint& checkpoint) {
  std::vector<ExpectedWeight> redundant;
  auto add = [&](std::string_view name, Shape shape) {
    const CheckpointTensor* entry = checkpoint.entry(name);
    if (!isRead(program, checkpoint, name) && entry)
      redundant.push_back({std::string(name), entry->dtype, std::move(shape)});
  };
  if (const TensorInfo* table = tableOf(program)) {
    Shape shape;
    for (const DimExpr& d : table->sourceShape()) shape.push_back(d.asConstant().value_or(0));
    for (std::string_view name : kShared) add(name, shape);
    for (std::string_view name : kSharedBiases) add(name, {shape[0]});
  }
  for (const std::string& name : checkpoint.names())
    for (std::string_view ending : kLeftOver)
      if (name.ends_with(ending)) add(name, checkpoint.entry(name)->shape);
  return redundant;
}

// Of one shape.
bool areEqual(const Array& a, const Array& b) {
  if (a.dtype() == b.dtype()) return std::memcmp(a.data(), b.data(), a.bytes()) == 0;
  for (int64_t i = 0; i < a.size(); ++i)
    if (a.at(i) != b.at(i)) return false;
  return true;
}

// A second name of the table may stay unread only if it is the table: a head of its own would be
// lost without a word.
void checkShared(const Program& program, const Checkpoint& checkpoint) {
  const TensorInfo* table = tableOf(program);
  if (!table || !checkpoint.entry(table->source())) return;
  for (std::string_view name : kShared) {
    if (isRead(program, checkpoint, name) || !checkpoint.entry(name)) continue;
    if (!areEqual(*checkpoint.find(table->source()), *checkpoint.find(name)))
      throw Error(ErrorCode::InvalidFile,
                  fmt::format("{}: {} has other values than {}, which the model uses in its place; "
                              "set tie_word_embeddings to false in config.json if the head is one "
                              "of its own, or leave the tensor out",
                              checkpoint.path(), name, table->source()));
  }
}

void checkAgainst(const Program& program, const Checkpoint& checkpoint) {
  std::vector<ExpectedWeight> expected;
  std::set<std::string_view> seen;  // a table may be read whole and in pieces
  for (const TensorInfo* info : weightsOf(program)) {
    if (!seen.insert(info->source()).second) continue;
    ExpectedWeight weight{info->source(), info->dtype, {}};
    for (const DimExpr& d : info->sourceShape())
      weight.shape.push_back(d.asConstant().value_or(-1));
    expected.push_back(std::move(weight));
  }
  checkWeights(expected, checkpoint, redundantWeights(program, checkpoint));
  checkShared(program, checkpoint);
}

}  // namespace

void noteWeights(Program& program, const std::string& output, const Model& model) {
  // Where the program will lie: what is there under its name now may be a link that it replaces.
  const fs::path folder = fs::weakly_canonical(fs::absolute(output).parent_path());
  auto beside = [&](const std::string& path) {
    return fs::canonical(path).lexically_relative(folder).string();
  };
  program.metadata[kWeightsPath] = beside(model.path);
  std::string list;
  for (const std::string& path : model.loras)
    list += (list.empty() ? "" : ", ") + jsonString(beside(path));
  if (!list.empty()) program.metadata[kLoraPaths] = "[" + list + "]";
}

void checkProgramWeights(const Program& program, const std::string& path,
                         const std::vector<std::string>& loras) {
  checkAgainst(program, Checkpoint::open(path, loras));
}

Session openSession(const Model& model, std::shared_ptr<const Program> program,
                    const SessionFlags& flags) {
  if (!flags.device.empty() && program->backend != "cuda")
    throw Error(ErrorCode::InvalidArgument, "--device is of the cuda backend, the program is for " +
                                                program->backend + "; add --backend cuda");
  if (flags.rankThreads && program->allRanks() == 1)
    throw Error(ErrorCode::InvalidArgument,
                "--rank-threads is of several ranks, the program is for one; add --ranks N, or "
                "leave it out");
  // It interprets IR: its device comes with the compiler library.
  if (program->backend == "reference") compiler();
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> leftOver;
  if (std::string path = flags.randomWeights ? "" : weightsPath(model, *program, flags.weights);
      !path.empty()) {
    checkpoint = Checkpoint::open(path, loraPaths(model, *program));
    checkAgainst(*program, *checkpoint);
    for (const ExpectedWeight& weight : redundantWeights(*program, *checkpoint))
      leftOver.push_back(weight.name);
  }
  auto bind = [random = flags.randomWeights, checkpoint, leftOver](Session& session,
                                                                   Progress* progress) {
    if (random) return session.bindRandomWeights(kRandomWeightSeed);
    if (!checkpoint) return;
    session.bindWeights(*checkpoint, leftOver, [&, read = size_t(0)](const std::string&) mutable {
      if (!progress) return;
      const size_t all = session.program().weights.size();
      progress->at(++read, all);
      if (read == all) progress->stage("packing weights");
    });
  };
  SessionOptions options{
      .threads = flags.threads, .profile = flags.profile, .device = flags.device};
  const bool rankThreads = flags.rankThreads;  // of this process: they share its pool
  if (program->allRanks() > 1)
    options.ranks = startRanks(
        program->allRanks(), flags.rankThreads,
        [=](std::shared_ptr<Communicator> end) {
          SessionOptions own = options;
          own.ranks = std::move(end);
          Session session(program, own);
          if (!rankThreads) noteThreads(*own.ranks);
          bind(session, nullptr);
          session.serve();
        },
        flags.stopsInOrder);
  Session session(program, options);
  if (options.ranks && !rankThreads) noteThreads(*options.ranks);
  Progress progress("loading weights");
  bind(session, &progress);
  for (const std::string& line : session.device().report()) console().detail(line);
  return session;
}

}  // namespace lathe::cli
