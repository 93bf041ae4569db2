// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a call must compute and move, as polynomials of the symbols: known before anything runs.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lathe/runtime/program.h"

namespace lathe {

/// Bytes of so many elements; half a byte at the end of an odd number of packed ones is not
/// counted.
DimExpr bytesOf(DType dtype, const DimExpr& elements);

/// Work and traffic of one kernel whose operands and results are in memory.
struct Cost {
  /// Floating-point operations; a multiply-add counts two, a transcendental function one.
  DimExpr flops;
  DimExpr read;     ///< bytes of operands, each byte that is touched once
  DimExpr written;  ///< bytes of results
  /// Of `read`: weights and states, which no cache holds from one run to the next.
  DimExpr held;
  /// The operands are bf16 or f16: products run at the 16-bit peak.
  bool narrow = false;

  Cost& operator+=(const Cost& other);
  Cost operator-(const Cost& other) const;
};

/// The same as numbers.
struct CostValues {
  double flops = 0, read = 0, written = 0, held = 0;
  bool narrow = false;
  double bytes() const { return read + written; }
  CostValues& operator+=(const CostValues& other);
};

/// The value of an expression as a double: sums of a whole model leave the range of 64 bits.
/// Throws Error (InvalidArgument) naming a symbol that has no value.
double evaluate(const DimExpr& expr, const SymbolValues& values);
CostValues evaluate(const Cost& cost, const SymbolValues& values);
/// The expression with some of its symbols replaced by numbers.
DimExpr substitute(const DimExpr& expr, const SymbolValues& values);

/// By call of an entry point; nothing where the backend that made the call did not say.
using CallCosts = std::vector<std::optional<Cost>>;
/// Costs travel with the program, as the blob `costs`, so that what runs without the compiler can
/// hold measured times against them.
void storeCosts(Program& program, const std::map<std::string, CallCosts>& byEntry);
/// One cost per call of each entry point; all absent in a program without the blob. Throws Error
/// (InvalidFile) for a blob that does not fit the program.
std::map<std::string, CallCosts> costsOf(const Program& program);

/// Checks --set values against the program's symbols: Error (InvalidArgument) for a name that is
/// none of them and for a value outside its range.
void checkSymbolValues(const Program& program, const SymbolValues& values);
/// Symbols in the shapes of an entry point, in the program's order.
std::vector<SymbolInfo> symbolsOf(const Program& program, const EntryPoint& entry);

/// What a session holds for one entry point besides temporaries, in bytes.
struct HeldMemory {
  DimExpr weights, states, inputs, outputs;
};
HeldMemory heldMemory(const Program& program, const EntryPoint& entry);
/// Bytes of temporaries at these sizes, from the memory plan (memory_plan.h); kernels' scratch
/// memory is not in it.
double temporaryBytes(const EntryPoint& entry, const SymbolValues& values);
/// Bytes of temporaries that exist while each call runs, as polynomials.
std::vector<DimExpr> liveBytes(const EntryPoint& entry);

}  // namespace lathe
