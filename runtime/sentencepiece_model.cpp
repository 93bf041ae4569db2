// SPDX-License-Identifier: Apache-2.0
// Fields by their numbers in sentencepiece_model.proto.
#include "runtime/sentencepiece_model.h"

#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "lathe/runtime/config_reader.h"
#include "runtime/byte_trie.h"
#include "runtime/onnx_wire.h"

namespace lathe {
namespace {

using onnx::WireReader;
using Type = SentencePieceModel::Type;

SentencePieceModel::Piece readPiece(WireReader r) {
  SentencePieceModel::Piece piece;
  while (r.next()) switch (r.field()) {
      case 1:
        piece.text = r.text("piece");
        break;
      case 2:
        piece.score = r.real("score");
        break;
      case 3: {
        const int64_t type = r.integer("type");
        if (type < 1 || type > 6)
          r.fail("type", fmt::format("expected a kind from 1 to 6, got {}", type));
        piece.type = Type(type);
      }
    }
  return piece;
}

void readTrainerSpec(WireReader r, SentencePieceModel& model) {
  while (r.next()) switch (r.field()) {
      case 3: {
        const int64_t kind = r.integer("model_type");
        if (kind != 1 && kind != 2)
          throw model.error(
              fmt::format("model_type: expected 1 (unigram) or 2 (BPE), got {}", kind),
              ErrorCode::Unsupported);
        model.kind = SentencePieceModel::Kind(kind);
        break;
      }
      case 24:
        if (r.integer("treat_whitespace_as_suffix"))
          throw model.error("treat_whitespace_as_suffix: expected false, got true",
                            ErrorCode::Unsupported);
        break;
      case 35:
        model.byteFallback = r.integer("byte_fallback") != 0;
    }
}

void readNormalizerSpec(WireReader r, SentencePieceModel& model) {
  while (r.next()) switch (r.field()) {
      case 2:
        model.charsmap = r.bytes("precompiled_charsmap");
        break;
      case 3:
        model.addsPrefix = r.integer("add_dummy_prefix") != 0;
        break;
      case 4:
        model.removesSpaces = r.integer("remove_extra_whitespaces") != 0;
        break;
      case 5:
        if (!r.integer("escape_whitespaces"))
          throw model.error("escape_whitespaces: expected true, got false", ErrorCode::Unsupported);
    }
}

void readDenormalizerSpec(WireReader r, SentencePieceModel& model) {
  while (r.next())
    if (r.field() == 2 && !r.bytes("precompiled_charsmap").empty())
      throw model.error("denormalizer_spec: expected no rules, got some", ErrorCode::Unsupported);
}

void checkPieces(SentencePieceModel& model) {
  if (model.pieces.empty() || int64_t(model.pieces.size()) > kMaxVocabulary)
    throw model.error(
        fmt::format("expected 1 to {} pieces, got {}", kMaxVocabulary, model.pieces.size()));
  std::unordered_map<std::string_view, size_t> places;
  places.reserve(model.pieces.size());
  size_t unknowns = 0;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = model.pieces[i];
    if (piece.text.empty()) throw model.error(fmt::format("piece {} is empty", i));
    if (piece.text.size() > ByteTrie::kMaxTokenBytes)
      throw model.error(fmt::format("piece {}: expected at most {} bytes, got {}", i,
                                    ByteTrie::kMaxTokenBytes, piece.text.size()));
    if (!std::isfinite(piece.score))
      throw model.error(fmt::format("piece {}: expected a finite score, got {}", i, piece.score));
    if (piece.type == Type::Unused)
      throw model.error(fmt::format("piece {} is unused, which is not supported", i),
                        ErrorCode::Unsupported);
    if (auto [it, isNew] = places.emplace(piece.text, i); !isNew)
      throw model.error(
          fmt::format("pieces {} and {} are both {}", it->second, i, inQuotes(piece.text)));
    if (piece.type != Type::Unknown) continue;
    model.unknown = i;
    ++unknowns;
  }
  if (unknowns != 1)
    throw model.error(fmt::format("expected one piece of type 2 (unknown), got {}", unknowns));
}

}  // namespace

Error SentencePieceModel::error(const std::string& message, ErrorCode code) const {
  return Error(code, file + ": " + message);
}

SentencePieceModel SentencePieceModel::read(std::string_view bytes, const std::string& file) {
  SentencePieceModel model;
  model.file = file;
  onnx::WireLimits limits{.file = file, .start = bytes.data()};
  WireReader r(bytes, limits, "model");
  while (r.next()) switch (r.field()) {
      case 1:
        model.pieces.push_back(readPiece(r.message("pieces")));
        break;
      case 2:
        readTrainerSpec(r.message("trainer_spec"), model);
        break;
      case 3:
        readNormalizerSpec(r.message("normalizer_spec"), model);
        break;
      case 5:
        readDenormalizerSpec(r.message("denormalizer_spec"), model);
    }
  checkPieces(model);
  return model;
}

}  // namespace lathe
