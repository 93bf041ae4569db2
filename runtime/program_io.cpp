// SPDX-License-Identifier: Apache-2.0
// Programs as artifacts: the JSON header of a container and its sections.
#include <nlohmann/json.hpp>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/program.h"
#include "runtime/container.h"
#include "runtime/program_check.h"
#include "runtime/sha256.h"

namespace lathe {
namespace {

using nlohmann::json;
// What this build writes is of the first version that knows all that is in it: a build that knows
// less says so, and reads the other files.
constexpr int kOldestVersion = 5, kProgramVersion = 6;
constexpr int64_t kMostRanks = 1 << 20;

int versionOf(const Program& p) {
  return p.laterStages.empty() && p.sizeParts.empty() ? kOldestVersion : kProgramVersion;
}

json toJson(const SymbolicShape& shape) {
  json a = json::array();
  for (const DimExpr& d : shape) a.push_back(d.text());
  return a;
}
json toJson(const TensorInfo& t) {
  json j{{"name", t.name}, {"dtype", nameOf(t.dtype)}, {"shape", toJson(t.shape)}};
  if (t.piece)
    j["piece"] = {{"weight", t.piece->weight}, {"axis", t.piece->axis},
                  {"parts", t.piece->parts},   {"groups", t.piece->groups},
                  {"begin", t.piece->begin},   {"extent", t.piece->extent}};
  return j;
}
json toJson(const std::vector<TensorInfo>& infos) {
  json a = json::array();
  for (const TensorInfo& t : infos) a.push_back(toJson(t));
  return a;
}
json toJson(const std::vector<Port>& ports) {
  json a = json::array();
  for (const Port& p : ports) a.push_back({{"name", p.name}, {"slot", p.slot}});
  return a;
}
json toJson(const EntryPoint& e) {
  json slots = json::array(), calls = json::array();
  for (const Slot& s : e.slots)
    slots.push_back({{"kind", int(s.kind)},
                     {"dtype", nameOf(s.dtype)},
                     {"shape", toJson(s.shape)},
                     {"index", s.index},
                     {"alias", s.alias}});
  for (const Call& c : e.calls)
    calls.push_back({{"kind", c.kind},
                     {"callee", c.callee},
                     {"config", c.config},
                     {"operands", c.operands},
                     {"results", c.results},
                     {"origin", c.origin}});
  return {{"name", e.name},
          {"inputs", toJson(e.inputs)},
          {"outputs", toJson(e.outputs)},
          {"states_in", toJson(e.statesIn)},
          {"states_out", toJson(e.statesOut)},
          {"slots", slots},
          {"calls", calls}};
}

DimExpr dimFrom(const JsonValue& v) {
  auto e = DimExpr::parse(v.asString());
  if (!e) throw v.error("expected a size expression, got " + v.show());
  return *e;
}
DType dtypeFrom(const JsonValue& v) {
  auto dtype = parseDType(v.asString());
  if (!dtype) throw v.error("expected a dtype, got " + v.show());
  return *dtype;
}
SymbolicShape shapeFrom(const JsonValue& v) { return listFrom(v, dimFrom); }
WeightPiece pieceFrom(const JsonValue& v, const SymbolicShape& shape) {
  constexpr int64_t most = int64_t(1) << 40;
  WeightPiece p{v.at("weight").asString(),       v.at("axis").asInt(0, int64_t(shape.size()) - 1),
                v.at("parts").asInt(1, 1 << 20), v.at("groups").asInt(1, most),
                v.at("begin").asInt(0, most),    v.at("extent").asInt(0, most)};
  // The parts of a group lie in it.
  const std::optional<int64_t> size = shape[size_t(p.axis)].asConstant();
  const bool isInside =
      size && *size >= 0 && *size % p.groups == 0 &&
      (p.extent ? *size / p.groups <= (p.extent - p.begin) / p.parts : p.begin == 0);
  if (!isInside) throw v.error("expected a piece inside of its weight, got " + v.show());
  return p;
}
TensorInfo tensorFrom(const JsonValue& v) {
  TensorInfo t{v.at("name").asString(), dtypeFrom(v.at("dtype")), shapeFrom(v.at("shape"))};
  if (auto piece = v.find("piece")) t.piece = pieceFrom(*piece, t.shape);
  return t;
}

EntryPoint entryFrom(const JsonValue& v) {
  EntryPoint e;
  e.name = v.at("name").asString();
  e.slots = listFrom(v.at("slots"), [&](const JsonValue& s) {
    return Slot{SlotKind(s.at("kind").asInt(0, 5)), dtypeFrom(s.at("dtype")),
                shapeFrom(s.at("shape")), int(s.at("index").asInt(0, 1 << 30)),
                int(s.at("alias").asInt(-1, 1 << 30))};
  });
  int64_t count = int64_t(e.slots.size());
  for (size_t i = 0; i < e.slots.size(); ++i) {
    // Aliases point backwards or forwards, but never in a circle.
    int64_t steps = 0;
    for (int s = int(i); s >= 0; s = e.slots[size_t(s)].alias)
      if (e.slots[size_t(s)].alias >= count || ++steps > count)
        throw v.error("slot " + std::to_string(i) + " has no owner");
  }
  auto slot = [&](const JsonValue& s) { return int(s.asInt(0, count - 1)); };
  auto ports = [&](const char* key) {
    return listFrom(v.at(key), [&](const JsonValue& p) {
      return Port{p.at("name").asString(), slot(p.at("slot"))};
    });
  };
  e.inputs = ports("inputs");
  e.outputs = ports("outputs");
  e.statesIn = ports("states_in");
  e.statesOut = ports("states_out");
  e.calls = listFrom(v.at("calls"), [&](const JsonValue& c) {
    return Call{c.at("kind").asString(),         c.at("callee").asString(),
                c.at("config").asString(),       listFrom(c.at("operands"), slot),
                listFrom(c.at("results"), slot), c.at("origin").asString()};
  });
  return e;
}

}  // namespace

const EntryPoint& Program::entry(std::string_view name) const {
  std::string known;
  for (const EntryPoint& e : entries) {
    if (e.name == name) return e;
    known += (known.empty() ? "" : ", ") + e.name;
  }
  throw Error(ErrorCode::InvalidArgument, "no entry point '" + std::string(name) +
                                              "'; the program has " +
                                              (known.empty() ? "none" : known));
}

// All but the bytes of constants, blobs and files.
static json headerOf(const Program& p) {
  json header = {{"program_version", versionOf(p)},
                 {"backend", p.backend},
                 {"weights", toJson(p.weights)},
                 {"derived", toJson(p.derived)},
                 {"states", toJson(p.states)},
                 {"metadata", p.metadata},
                 {"ranks", p.ranks}};
  json symbolList = json::array(), entryList = json::array(), constantList = json::array();
  for (const SymbolInfo& s : p.symbols)
    symbolList.push_back({{"name", s.name}, {"lo", s.lo}, {"hi", s.hi}, {"multiple", s.multiple}});
  for (const EntryPoint& e : p.entries) entryList.push_back(toJson(e));
  for (const Array& a : p.constants)
    constantList.push_back({{"dtype", nameOf(a.dtype())}, {"shape", a.shape()}});
  header["symbols"] = symbolList;
  for (const SizePart& s : p.sizeParts)
    header["size_parts"].push_back({{"name", s.name}, {"of", s.of.text()}, {"parts", s.parts}});
  header["entries"] = entryList;
  header["constants"] = constantList;
  if (p.load) header["load"] = toJson(*p.load);
  for (const auto& later : p.laterStages) header["later_stages"].push_back(headerOf(*later));
  return header;
}

void Program::addSizeParts(SymbolValues& values) const {
  for (const SizePart& s : sizeParts)
    if (const std::optional<int64_t> of = s.of.evaluate(values); of && *of >= 0)
      values[s.name] = sizeOfPart(*of, s.parts);
}

std::string Program::digest() const {
  std::string parts;  // the digests of the parts, each of a fixed length
  auto add = [&](const void* data, size_t bytes) {
    parts += sha256Hex({static_cast<const std::byte*>(data), bytes});
  };
  json header = headerOf(*this);
  header.erase("metadata");      // paths and the like
  header.erase("later_stages");  // which say it themselves
  const std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  add(text.data(), text.size());
  for (const Array& a : constants) add(a.data(), a.bytes());
  for (auto& [name, bytes] : blobs) {
    add(name.data(), name.size());
    add(bytes.data(), bytes.size());
  }
  for (const auto& later : laterStages) parts += later->digest();
  return sha256Hex(std::as_bytes(std::span(parts)));
}

// What the names of the sections of a later stage begin with.
static std::string prefixOf(size_t later) { return "stage." + std::to_string(later + 1) + "."; }

static void addSections(ContainerWriter& writer, const Program& p, const std::string& prefix,
                        const std::string& path) {
  for (size_t i = 0; i < p.constants.size(); ++i) {
    const Array& a = p.constants[i];
    if (!a.defined())
      throw Error(ErrorCode::InvalidArgument, path + ": constant " + std::to_string(i) +
                                                  " of the program is an undefined Array");
    writer.addSection(prefix + "constant." + std::to_string(i),
                      std::span(static_cast<const std::byte*>(a.data()), a.bytes()));
  }
  for (auto& [name, bytes] : p.blobs) writer.addSection(prefix + "blob." + name, bytes);
  for (auto& [name, bytes] : p.files) writer.addSection(prefix + "file." + name, bytes);
}

void Program::save(const std::string& path) const {
  ContainerWriter writer;
  addSections(writer, *this, "", path);
  for (size_t i = 0; i < laterStages.size(); ++i)
    addSections(writer, *laterStages[i], prefixOf(i), path);
  try {
    writer.setHeader(headerOf(*this).dump());
  } catch (const json::exception& e) {
    throw Error(ErrorCode::InvalidArgument,
                path + ": a name or the metadata of the program holds invalid UTF-8: " + e.what());
  }
  writer.save(path);
}

static void readProgram(Program& p, const JsonValue& h, const Container& container,
                        const std::string& prefix, const std::string& path) {
  p.backend = h.at("backend").asString();
  p.ranks = h.at("ranks").asInt(1, kMostRanks);
  p.weights = listFrom(h.at("weights"), tensorFrom);
  p.derived = listFrom(h.at("derived"), tensorFrom);
  p.states = listFrom(h.at("states"), tensorFrom);
  p.symbols = listFrom(h.at("symbols"), [](const JsonValue& s) {
    return SymbolInfo{s.at("name").asString(), s.at("lo").asInt(0), s.at("hi").asInt(0),
                      s.at("multiple").asInt(1)};
  });
  if (auto parts = h.find("size_parts"))
    p.sizeParts = listFrom(*parts, [](const JsonValue& s) {
      return SizePart{s.at("name").asString(), dimFrom(s.at("of")), s.at("parts").asInt(1)};
    });
  for (const JsonValue& c : h.at("constants").elements()) {
    Shape shape = listFrom(c.at("shape"), [](const JsonValue& d) { return d.asInt(0); });
    auto bytes = container.section(prefix + "constant." + std::to_string(p.constants.size()));
    Array a(dtypeFrom(c.at("dtype")), shape);
    if (bytes.size() != a.bytes())
      throw c.error("its section holds " + std::to_string(bytes.size()) + " bytes");
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(a.data()));
    p.constants.push_back(a);
  }
  p.entries = listFrom(h.at("entries"), entryFrom);
  if (h.has("load")) p.load = std::make_unique<EntryPoint>(entryFrom(h.at("load")));
  checkProgram(p, path);
  JsonValue metadata = h.at("metadata");
  for (size_t i = 0; i < metadata.size(); ++i) {
    auto [key, value] = metadata.member(i);
    p.metadata[key] = value.asString();
  }
  for (const std::string& section : container.sections()) {
    if (!section.starts_with(prefix)) continue;
    const std::string name = section.substr(prefix.size());
    if (name.starts_with("blob.")) p.blobs[name.substr(5)] = std::string(container.text(section));
    if (name.starts_with("file.")) p.files[name.substr(5)] = std::string(container.text(section));
  }
}

// What one rank tells another to run, all stages can run.
static void checkStage(const Program& first, const Program& later, const JsonValue& v) {
  bool fits = later.backend == first.backend && later.ranks == first.ranks &&
              later.entries.size() == first.entries.size() && !v.has("later_stages");
  for (size_t e = 0; fits && e < first.entries.size(); ++e)
    fits = later.entries[e].name == first.entries[e].name &&
           later.entries[e].inputs.size() == first.entries[e].inputs.size();
  if (!fits) throw v.error("expected a stage with the entry points and ranks of the first one");
}

std::shared_ptr<const Program> Program::open(const std::string& path) {
  Container container = Container::open(path);
  JsonValue h = JsonValue::parse(container.header(), path);
  int64_t version = h.at("program_version").asInt();
  if (version < kOldestVersion || version > kProgramVersion)
    throw Error(ErrorCode::InvalidFile, path + ": program version " + std::to_string(version) +
                                            ", this build reads " + std::to_string(kOldestVersion) +
                                            " to " + std::to_string(kProgramVersion) +
                                            "; compile the model again");
  auto program = std::make_shared<Program>();
  readProgram(*program, h, container, "", path);
  if (auto later = h.find("later_stages"))
    for (size_t i = 0; i < later->size(); ++i) {
      auto stage = std::make_shared<Program>();
      readProgram(*stage, later->at(i), container, prefixOf(i), path);
      checkStage(*program, *stage, later->at(i));
      program->laterStages.push_back(std::move(stage));
    }
  return program;
}

}  // namespace lathe
