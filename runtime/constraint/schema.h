// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON schemas as automata.
#include "lathe/runtime/json_reader.h"
#include "runtime/constraint/grammar.h"

namespace lathe::constraint {

/// Documents that the schema allows: all properties in the schema's order, none that it does not
/// name unless `additionalProperties` is a schema and no property has a name. Between tokens there
/// may be one space or the beginning of a new line. Throws Error as Constraint::jsonSchema does.
Grammar schemaGrammar(const JsonValue& schema);

}  // namespace lathe::constraint
