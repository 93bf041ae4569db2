// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an executor trusts about a program that came from a file.
#include <string>

#include "lathe/runtime/program.h"

namespace lathe {

/// Throws Error(InvalidFile) "FILE: FIELD: ..." unless every index of every entry point and of
/// `load` lies in its table, every buffer is of the size that its table says, every size is made of
/// declared symbols and every name is there once. Kernels and their code are checked when a session
/// makes them; buffers that share memory when their sizes are known.
void checkProgram(const Program& program, const std::string& file);

}  // namespace lathe
