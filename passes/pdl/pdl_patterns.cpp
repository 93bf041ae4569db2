// SPDX-License-Identifier: Apache-2.0
#include "passes/pdl/pdl_patterns.h"

#include "lathe/ir/context.h"
#include "lathe/ir/dialect.h"
#include "lathe/runtime/error.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/pdl/pdl_reader.h"
#include "passes/pdl/pdll.h"
#include "passes/rewrite/spelled_op.h"
#include "runtime/mapped_file.h"

using namespace mlir;

namespace lathe {
namespace {

std::string printed(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

}  // namespace

std::string placeOf(Operation* op) {
  std::string place;
  op->getLoc()->walk([&](Location l) {
    auto line = dyn_cast<FileLineColLoc>(l);
    if (!line) return WalkResult::advance();
    place = line.getFilename().str() + ":" + std::to_string(line.getLine());
    return WalkResult::interrupt();
  });
  return place;
}

PdlReader::PdlReader(DagPattern& pattern, pdl::PatternOp text) : pattern_(pattern), text_(text) {}

void PdlReader::refuse(Operation* at, const std::string& problem) const {
  throw Error(ErrorCode::InvalidFile,
              placeOf(at) + ": pattern '" + pattern_.name() + "': " + problem);
}
void PdlReader::unsupported(Operation* at, const std::string& problem) const {
  throw Error(ErrorCode::Unsupported,
              placeOf(at) + ": pattern '" + pattern_.name() + "': " + problem);
}

void PdlReader::read() {
  pdl::RewriteOp rewrite = text_.getRewriter();
  if (!rewrite.getRoot()) unsupported(rewrite, "a rewrite without a root; write `rewrite %op`");
  root_ = rewrite.getRoot().getDefiningOp();
  // Constraints last: one may stand before the op that has its attribute.
  for (bool constraints : {false, true})
    for (Operation& op : text_.getBodyRegion().front())
      if (!isa<pdl::RewriteOp>(op) && isa<pdl::ApplyNativeConstraintOp>(op) == constraints)
        readMatched(op);
  pattern_.root(tensorOf(rewrite.getRoot(), rewrite));
  if (unsigned benefit = text_.getBenefit()) pattern_.setBenefit(benefit);
  readRewrite(rewrite);
}

const Tensor& PdlReader::tensorOf(Value pdl, Operation* user) const {
  auto found = tensors_.find(pdl);
  if (found == tensors_.end()) unsupported(user, "a range of several values; spell every value");
  return found->second;
}

PdlReader::Source PdlReader::sourceOf(Value pdl, Operation* user) const {
  auto found = attributes_.find(pdl);
  if (found == attributes_.end())
    refuse(user, "an attribute that no matched op has and that has no value");
  return found->second;
}

OperationName PdlReader::opName(pdl::OperationOp op) const {
  if (!op.getOpName()) unsupported(op, "an op of any name; name the op");
  OperationName name(*op.getOpName(), op->getContext());
  if (!name.isRegistered())
    refuse(op, "unknown op '" + op.getOpName()->str() + "'; docs/ops.md lists those of lathe");
  if (!name.hasTrait<OpTrait::OneResult>())
    unsupported(op, "'" + op.getOpName()->str() + "' has not exactly one result");
  return name;
}

void PdlReader::readMatched(Operation& op) {
  if (auto operand = dyn_cast<pdl::OperandOp>(op)) return readOperand(operand);
  if (auto operation = dyn_cast<pdl::OperationOp>(op)) return readOperation(operation);
  if (auto result = dyn_cast<pdl::ResultOp>(op))
    return readResult(&op, result.getParent(), result.getIndex());
  if (auto results = dyn_cast<pdl::ResultsOp>(op))
    return readResult(&op, results.getParent(), results.getIndex());
  if (auto constraint = dyn_cast<pdl::ApplyNativeConstraintOp>(op))
    return readConstraint(constraint);
  if (isa<pdl::TypeOp, pdl::TypesOp>(op)) return;
  if (auto attribute = dyn_cast<pdl::AttributeOp>(op)) {
    if (attribute.getValueType()) unsupported(&op, "an attribute of a given type; give its value");
    if (attribute.getValueAttr())
      attributes_[attribute.getResult()] = {constantOf(attribute), {}, {}};
    return;
  }
  unsupported(&op, "'" + op.getName().getStringRef().str() + "' among what is matched");
}

// mlir-pdll cannot read attributes of our dialect: a file may have them as text.
Attribute PdlReader::constantOf(pdl::AttributeOp op) const {
  auto text = dyn_cast<StringAttr>(op.getValueAttr());
  if (!text || !text.getValue().starts_with("#lathe")) return op.getValueAttr();
  if (auto reason = prescan(text.getValue())) refuse(op, *reason);
  std::string words;
  Attribute parsed;
  {
    ScopedDiagnosticHandler collect(op->getContext(), [&](Diagnostic& d) {
      words += (words.empty() ? "" : "; ") + d.str();
      return success();
    });
    parsed = parseAttribute(text.getValue(), op->getContext());
  }
  if (!parsed) refuse(op, "the attribute '" + text.str() + "': " + words);
  return parsed;
}

void PdlReader::readOperand(pdl::OperandOp op) {
  Tensor t = pattern_.add({.place = placeOf(op)});
  tensors_[op.getValue()] = t;
  if (op.getValueType()) constrainType(t, op.getValueType());
}

void PdlReader::constrainType(const Tensor& t, Value type) {
  Type wanted;
  if (auto one = type.getDefiningOp<pdl::TypeOp>()) {
    wanted = one.getConstantTypeAttr() ? *one.getConstantType() : Type();
  } else if (auto many = type.getDefiningOp<pdl::TypesOp>(); many && many.getConstantTypesAttr()) {
    if (many.getConstantTypesAttr().size() != 1) unsupported(many, "several types of one op");
    wanted = cast<TypeAttr>(many.getConstantTypesAttr()[0]).getValue();
  }
  if (!wanted) {
    auto [first, isFirst] = typed_.try_emplace(type, t);
    if (!isFirst)
      pattern_.require("two values of one type", [a = first->second, b = t](const Match& m) {
        return m[a].getType() == m[b].getType();
      });
    return;
  }
  pattern_.where(t, "the type " + printed(TypeAttr::get(wanted)),
                 [wanted](Value v) { return v.getType() == wanted; });
}

std::vector<std::optional<size_t>> PdlReader::placed(
    pdl::OperationOp op, size_t count, SmallVectorImpl<NamedAttribute>& attributes) const {
  auto given = llvm::find_if(attributes,
                             [](NamedAttribute a) { return a.getName() == "operandSegmentSizes"; });
  DenseI32ArrayAttr sizes;
  if (given != attributes.end()) {
    sizes = dyn_cast<DenseI32ArrayAttr>(given->getValue());
    attributes.erase(given);
  }
  // Without sizes the absent operands are the last ones.
  size_t segments =
      sizes ? size_t(sizes.size()) : operandSegments(opName(op)).value_or(unsigned(count));
  std::vector<std::optional<size_t>> result(segments);
  size_t next = 0;
  for (size_t i = 0; i < segments; ++i) {
    if (sizes && (sizes[i] < 0 || sizes[i] > 1))
      unsupported(op, "operand segments of more than one value");
    bool present = sizes ? sizes[i] == 1 : i < count;
    if (present) result[i] = next++;
  }
  if (next != count)
    refuse(op, "'" + op.getOpName()->str() + "' has " + std::to_string(count) +
                   " operands here, expected " + std::to_string(next));
  return result;
}

void PdlReader::checkArguments(const Native& native, const char* what, Operation* op,
                               ValueRange arguments) const {
  std::string kinds;
  for (Value v : arguments) kinds += isa<pdl::AttributeType>(v.getType()) ? 'a' : 'v';
  if (kinds != native.kinds())
    refuse(op, "native " + std::string(what) + " '" + std::string(native.name) + "' takes (" +
                   std::string(native.parameters) + ")");
  SmallVector<StringRef> parameters;
  StringRef(native.parameters).split(parameters, ", ");
  for (auto [v, parameter] : llvm::zip_equal(arguments, parameters)) {
    auto source = attributes_.find(v);
    if (source == attributes_.end() || !source->second.constant) continue;
    const StringRef name = parameter.split(':').first;
    if (auto expected = whyNoArgument(name, source->second.constant); !expected.empty())
      refuse(op, "'" + name.str() + "' of '" + std::string(native.name) + "' is " +
                     printed(source->second.constant) + ", expected " + std::string(expected));
  }
}

PdlReader::SplitAttributes PdlReader::splitAttributes(pdl::OperationOp op) const {
  SplitAttributes split;
  for (auto [attribute, value] : llvm::zip(op.getAttributeValueNames(), op.getAttributeValues())) {
    auto name = cast<StringAttr>(attribute);
    auto source = attributes_.find(value);
    if (source != attributes_.end() && source->second.constant) {
      split.known.emplace_back(name, source->second.constant);
    } else {
      split.unknown.push_back(name.getValue());
      split.sources.emplace_back(name, value);
    }
  }
  return split;
}

void PdlReader::readOperation(pdl::OperationOp op) {
  OperationName name = opName(op);
  PatternNode node{.kind = PatternNode::Kind::Op, .op = name.getStringRef().str()};
  node.commutative = name.hasTrait<OpTrait::IsCommutative>();
  node.mayEscape = true;  // PDL keeps what has other users; `one_use` asks for it
  node.place = placeOf(op);
  std::vector<size_t> operands;
  for (Value v : op.getOperandValues()) operands.push_back(tensorOf(v, op).id());
  auto [known, unknown, captures] = splitAttributes(op);
  for (auto index : placed(op, operands.size(), known))
    node.operands.push_back(index ? std::optional(operands[*index]) : std::nullopt);
  std::string problem = whyNeverMatched({name, unsigned(operands.size()), known, unknown});
  if (!problem.empty()) refuse(op, problem);
  node.attributes.assign(known.begin(), known.end());
  Tensor t = pattern_.add(std::move(node));
  tensors_[op.getOp()] = t;
  for (auto& [name, value] : captures) {
    const std::string attribute = name.str();
    pattern_.require("an attribute '" + attribute + "'",
                     [t, attribute](const Match& m) { return bool(m.attribute(t, attribute)); });
    auto [source, isFirst] = attributes_.try_emplace(value, Source{{}, t, attribute});
    if (!isFirst)
      pattern_.require("one value of '" + attribute + "' and '" + source->second.name + "'",
                       [t, attribute, first = source->second](const Match& m) {
                         return m.attribute(t, attribute) == first.of(m);
                       });
  }
  if (op.getTypeValues().size() > 1) refuse(op, "'" + op.getOpName()->str() + "' has one result");
  for (Value type : op.getTypeValues()) constrainType(t, type);
}

// `results of` an op with one result, which mlir-pdll writes for ops whose definition it has not
// seen, means that result.
void PdlReader::readResult(Operation* op, Value of, std::optional<uint32_t> index) {
  if (index.value_or(0) != 0)
    refuse(op, "result " + std::to_string(*index) + " of an op that has one");
  tensors_[op->getResult(0)] = tensorOf(of, op);
}

void PdlReader::readConstraint(pdl::ApplyNativeConstraintOp op) {
  auto& native = nativeOf(nativeConstraints(), "constraint", op, op.getName(), op.getArgs());
  if (op->getNumResults()) refuse(op, "a native constraint gives no results");
  std::vector<Argument> arguments;
  for (Value v : op.getArgs()) {
    bool isAttribute = isa<pdl::AttributeType>(v.getType());
    arguments.push_back(isAttribute ? Argument{{}, sourceOf(v, op)}
                                    : Argument{tensorOf(v, op), {}});
  }
  bool negated = op.getIsNegated();
  if (native.approximates) {
    if (negated) refuse(op, "'approximate' cannot be negated: leave it out");
    return pattern_.approximate();
  }
  std::string text = (negated ? "not " : "") + op.getName().str() + ": " + std::string(native.text);
  pattern_.require(text, [arguments, negated, holds = native.holds](const Match& m) {
    SmallVector<NativeArgument> values;
    for (const Argument& a : arguments) values.push_back(a.of(m));
    return holds(values) != negated;
  });
}

PatternLibrary parsePatterns(MLIRContext* context, StringRef text, StringRef name) {
  context->getOrLoadDialect<LatheDialect>();
  context->getOrLoadDialect<pdl::PDLDialect>();
  OwningOpRef<ModuleOp> module = parseModule(*context, text, name);
  PatternLibrary library;
  for (Operation& op : *module->getBody()) {
    auto pattern = dyn_cast<pdl::PatternOp>(op);
    if (!pattern)
      throw Error(ErrorCode::InvalidFile, placeOf(&op) + ": expected pdl.pattern, got " +
                                              op.getName().getStringRef().str());
    std::string title = pattern.getSymName() ? pattern.getSymName()->str() : placeOf(&op);
    addPattern(library, context, title, [&](DagPattern& p) { PdlReader(p, pattern).read(); });
  }
  if (library.empty())
    throw Error(ErrorCode::InvalidFile, name.str() + ": expected pdl.pattern ops, found none");
  return library;
}

PatternLibrary loadPatternFile(MLIRContext* context, const std::string& path) {
  bool isPdll = StringRef(path).ends_with(".pdll");
  if (!isPdll && !StringRef(path).ends_with(".mlir"))
    throw Error(ErrorCode::InvalidArgument,
                path + ": expected a pattern file, PDL (.mlir) or PDLL (.pdll)");
  return parsePatterns(context, isPdll ? pdlFromPdll(path) : readWholeFile(path, kPatternFile),
                       path);
}

}  // namespace lathe
