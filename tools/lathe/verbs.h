// SPDX-License-Identifier: Apache-2.0
#pragma once
// The verbs of `lathe`. Each parses its own arguments, prints data on standard output and returns
// the exit status; mistakes are thrown.
#include "tools/lathe/arguments.h"
#include "tools/lathe/exit_status.h"

namespace lathe::cli {

struct Verb {
  std::string name, summary;
  int (*run)(const ArgumentList& arguments);
};

int inspectVerb(const ArgumentList& arguments);
int compileVerb(const ArgumentList& arguments);
int runVerb(const ArgumentList& arguments);
int generateVerb(const ArgumentList& arguments);
int chatVerb(const ArgumentList& arguments);
int serveVerb(const ArgumentList& arguments);
int embedVerb(const ArgumentList& arguments);
int tokenizeVerb(const ArgumentList& arguments);
int benchVerb(const ArgumentList& arguments);
int explainVerb(const ArgumentList& arguments);
int bisectVerb(const ArgumentList& arguments);
int whyNotVerb(const ArgumentList& arguments);
int diffVerb(const ArgumentList& arguments);
int selftestVerb(const ArgumentList& arguments);
int tuneVerb(const ArgumentList& arguments);
int envVerb(const ArgumentList& arguments);

}  // namespace lathe::cli
