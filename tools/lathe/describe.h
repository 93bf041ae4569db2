// SPDX-License-Identifier: Apache-2.0
#pragma once
// The manual page and the shell completion, made of what the verbs' own parsers know.
#include <vector>

#include "tools/lathe/verbs.h"

namespace lathe::cli {

/// `lathe describe man|bash`: prints the page for man(1), or the completion for bash. Not listed
/// among the verbs: the build calls it.
int describeCommand(const std::vector<Verb>& verbs, const ArgumentList& arguments, size_t at);

}  // namespace lathe::cli
