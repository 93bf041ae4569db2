// SPDX-License-Identifier: Apache-2.0
// The checks ask the op itself: one is made from stand-in operands, outside any function, and its
// verifier's words are read.
#include "passes/rewrite/spelled_op.h"

#include "ir/op_complaints.h"
#include "lathe/ir/types.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr llvm::StringLiteral kSegments("operandSegmentSizes");

class StandIn {
 public:
  StandIn(OperationName name, unsigned operands) : builder_(name.getContext()) {
    Location loc = builder_.getUnknownLoc();
    auto type = RankedTensorType::get({}, builder_.getF32Type());
    OperationState state(loc, name);
    for (unsigned i = 0; i < operands; ++i) state.addOperands(block_.addArgument(type, loc));
    if (!name.hasTrait<OpTrait::ZeroResults>()) state.addTypes(type);
    op_ = Operation::create(state);
  }
  ~StandIn() { op_->destroy(); }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  Operation* op() const { return op_; }
  /// False if the op has no attribute of that name, or not of this kind.
  bool set(StringAttr name, Attribute value) {
    op_->setAttr(name, value);
    return op_->getAttr(name) == value;
  }
  std::string problem() const {
    std::string text;
    ScopedDiagnosticHandler collect(op_->getContext(), [&](Diagnostic& d) {
      if (text.empty()) text = d.str();
      return success();
    });
    (void)op_->getName().verifyInvariants(op_);
    return text;
  }

 private:
  OpBuilder builder_;
  Block block_;
  Operation* op_;
};

// "'lathe.x' op requires attribute 'axis'" -> "axis"
std::string missingAttribute(StringRef problem) {
  auto [before, after] = problem.split("requires attribute '");
  return after.split('\'').first.str();
}

// Some attribute of the kind that the op stores under this name.
bool setStandIn(StandIn& op, StringAttr name) {
  Builder b(name.getContext());
  SmallVector<Attribute> kinds{b.getI64IntegerAttr(0),
                               b.getI32IntegerAttr(0),
                               b.getF64FloatAttr(1),
                               b.getF32FloatAttr(1),
                               b.getBoolAttr(false),
                               b.getDenseI64ArrayAttr({}),
                               b.getStringAttr(""),
                               b.getUnitAttr(),
                               DimsAttr::get(name.getContext(), ArrayRef<StringAttr>()),
                               TypeAttr::get(b.getF32Type()),
                               b.getArrayAttr({})};
  return llvm::any_of(kinds, [&](Attribute kind) { return op.set(name, kind); });
}

// The first thing that is wrong with what is spelled. `whole`: nothing may be missing.
std::string problemOf(const SpelledOp& op, bool whole) {
  StandIn standIn(op.name, op.operands);
  std::string name = "'" + op.name.getStringRef().str() + "' ";
  if (auto segments = operandSegments(op.name)) {
    SmallVector<int32_t> sizes(*segments, 0);
    for (unsigned i = 0; i < std::min(*segments, op.operands); ++i) sizes[i] = 1;
    standIn.op()->setAttr(kSegments, DenseI32ArrayAttr::get(standIn.op()->getContext(), sizes));
  }
  for (StringRef attribute : op.unknown)
    if (std::string problem = whyNoAttribute(op.name, attribute); !problem.empty()) return problem;
  auto refused = [&](const NamedAttribute& a) {
    std::string value;
    llvm::raw_string_ostream(value) << a.getValue();
    return name + "cannot have '" + a.getName().str() + "' = " + value;
  };
  for (const NamedAttribute& a : op.attributes) {
    if (std::string problem = whyNoAttribute(op.name, a.getName()); !problem.empty())
      return problem;
    if (!standIn.set(a.getName(), a.getValue())) return refused(a);
  }
  std::string problem = standIn.problem();
  for (std::string missing; !(missing = missingAttribute(problem)).empty();
       problem = standIn.problem()) {
    if (whole && !llvm::is_contained(op.unknown, missing))
      return name + "needs the attribute '" + missing + "'";
    if (!setStandIn(standIn, StringAttr::get(standIn.op()->getContext(), missing))) return "";
  }
  for (const NamedAttribute& a : op.attributes)
    if (StringRef(problem).contains("attribute '" + a.getName().str() + "' failed to satisfy"))
      return refused(a);
  // About operands' types nothing is known: their number alone counts.
  bool ofNumber =
      StringRef(problem).contains("operand") && !StringRef(problem).contains("operand #");
  return ofNumber ? problem : "";
}

}  // namespace

std::optional<unsigned> operandSegments(OperationName name) {
  if (!name.hasTrait<OpTrait::AttrSizedOperandSegments>()) return std::nullopt;
  StandIn op(name, 0);
  auto sizes = op.op()->getAttrOfType<DenseI32ArrayAttr>(kSegments);
  return sizes ? std::optional(unsigned(sizes.size())) : std::nullopt;
}

std::string whyNeverMatched(const SpelledOp& op) { return problemOf(op, /*whole=*/false); }

std::string whyNeverBuilt(const SpelledOp& op) {
  if (!op.name.hasInterface<InferTypeOpInterface>())
    return "'" + op.name.getStringRef().str() +
           "' cannot be built: the types of its results do not follow from its operands";
  return problemOf(op, /*whole=*/true);
}

}  // namespace lathe
