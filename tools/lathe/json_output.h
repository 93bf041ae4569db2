// SPDX-License-Identifier: Apache-2.0
#pragma once
// What --json prints: one document with a schema_version, SI units named in the keys.
#include <string>

#include <nlohmann/json.hpp>

#include "lathe/runtime/program.h"

namespace lathe::cli {

using Json = nlohmann::ordered_json;

/// Raised when a key changes its meaning or goes away; new keys do not count.
inline constexpr int kSchemaVersion = 1;

/// {"schema_version": 1, "verb": VERB}
Json document(const std::string& verb);
/// A number; NaN and infinities, which JSON lacks, as text.
Json numberOrText(double value);
/// Numbers for constant sizes, text for the others.
Json shapeJson(const SymbolicShape& shape);
/// The text of a graph at a stage, in `form` "mlir" or "dot": as it is, or within a document.
void printGraphText(const std::string& verb, const std::string& stage, const std::string& form,
                    const std::string& text, bool json);
/// Whether a document was printed.
bool hasPrintedJson();
/// Indented, with a line end, on standard output. Bytes that are no UTF-8 become U+FFFD.
void printJson(const Json& document);

/// "f32[batch, seq, 64]"
std::string describe(DType dtype, const SymbolicShape& shape);
/// "1.5 MB": decimal units.
std::string byteText(double bytes);
/// "12.3 M"
std::string countText(double count);
/// "3.75 ms"
std::string timeText(double seconds);

}  // namespace lathe::cli
