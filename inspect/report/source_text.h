// SPDX-License-Identifier: Apache-2.0
#pragma once
// The user's lines around every recorded op, where their files can be read.
#include "inspect/report/origin_table.h"

namespace lathe {

/// Key `sources`: by file, [[first line, text of that line, of the next, ...]...]: the recorded
/// lines with a few around each. Only regular files with an ending of C++, CUDA, Python or MLIR
/// sources are read: a report travels, and IR text may name any file.
void writeSources(llvm::json::OStream& out, const OriginTable& origins);

}  // namespace lathe
