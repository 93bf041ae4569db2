// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/source_text.h"

#include <algorithm>
#include <string>

#include "lathe/runtime/error.h"
#include "runtime/language_program.h"

namespace lathe {
namespace {

constexpr const char *kEncode = "encode", *kSource = "source";

bool takesText(const EntryPoint& entry) {
  return entry.inputs.size() == 2 && std::ranges::all_of(entry.inputs, [&](const Port& port) {
           const Slot& slot = entry.slots[size_t(port.slot)];
           return (port.name == "input_ids" || port.name == "attention_mask") &&
                  slot.dtype == DType::I64 && slot.shape.size() == 2;
         });
}

int64_t longestSource(const Program& program) {
  for (const SymbolInfo& symbol : program.symbols)
    if (symbol.name == kSource) return symbol.hi;
  return 0;
}

}  // namespace

bool readsSource(const Program& program) {
  return std::ranges::find(program.entries, kEncode, &EntryPoint::name) != program.entries.end();
}

void encodeSources(Session& session, std::span<const std::vector<int>> sources, int64_t vocab,
                   int64_t padId) {
  const Program& program = session.program();
  const int64_t most = longestSource(program);
  if (!takesText(program.entry(kEncode)) || most == 0)
    throw Error(ErrorCode::InvalidArgument,
                "entry point 'encode' cannot read a text: expected the inputs input_ids and "
                "attention_mask i64 [batch, source]");
  if (sources.empty()) throw Error(ErrorCode::InvalidArgument, "expected a source, got none");
  int64_t longest = 0;
  for (const std::vector<int>& source : sources) {
    if (source.empty())
      throw Error(ErrorCode::InvalidArgument, "expected at least one token to read, got none");
    checkIds(source, vocab);
    longest = std::max(longest, int64_t(source.size()));
  }
  if (longest > most)
    throw Error(ErrorCode::InvalidArgument, "the text to read has " + std::to_string(longest) +
                                                " tokens, the model takes at most " +
                                                std::to_string(most));
  const int64_t rows = int64_t(sources.size());
  Array ids(DType::I64, {rows, longest}), mask(DType::I64, {rows, longest});
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < longest; ++i) {
      const std::vector<int>& source = sources[size_t(row)];
      const bool isToken = i < int64_t(source.size());
      ids.as<int64_t>()[size_t(row * longest + i)] = isToken ? source[size_t(i)] : padId;
      mask.as<int64_t>()[size_t(row * longest + i)] = isToken;
    }
  session.setSymbol(kSource, longest);
  session.run(kEncode, {{"input_ids", ids}, {"attention_mask", mask}});
}

}  // namespace lathe
