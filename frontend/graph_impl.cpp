// SPDX-License-Identifier: Apache-2.0
#include "frontend/graph_impl.h"

#include "ir/checked_create.h"
#include "ir/composing.h"
#include "lathe/ir/attributes.h"
#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/program.h"
#include "llvm/ADT/ScopeExit.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "passes/observe.h"
#include "runtime/utf8.h"

using namespace mlir;

namespace lathe {

GraphImpl::GraphImpl(std::string_view name, std::source_location at)
    : context_(createContext()), builder_(context_.get()) {
  if (!name.empty()) expectName("graph", name, at);
  module_ = ModuleOp::create(locate(at), StringRef(name));
}

GraphImpl::GraphImpl(std::string_view text, std::string_view fileName)
    : context_(createContext()), builder_(context_.get()) {
  module_ = parseModule(*context_, StringRef(text), StringRef(fileName));
  for (auto function : module_->getOps<func::FuncOp>()) {
    entries_.push_back({.function = function});
    entries_.back().closed = true;
  }
  for (auto state : module_->getOps<StateOp>())
    stateTypes_[state.getSymName().str()] = cast<RankedTensorType>(state.getType());
  module_->walk([&](WeightOp weight) {
    weightTypes_[weight.getName().str()] = cast<RankedTensorType>(weight.getResult().getType());
  });
  for (auto dim : module_->getOps<DimOp>())
    symbols_[dim.getSymName().str()] = {int64_t(dim.getLo()), int64_t(dim.getHi()),
                                        int64_t(dim.getMultiple())};
}

Location GraphImpl::locate(std::source_location at) {
  std::source_location line = blame(at);
  Location file = FileLineColLoc::get(context_.get(), line.file_name(), line.line(), line.column());
  if (scopes_.empty()) return file;
  return NameLoc::get(StringAttr::get(context_.get(), scopes_.back()), file);
}

std::source_location GraphImpl::blame(std::source_location at) const {
  return located_ ? outermost_ : at;
}

void GraphImpl::pushScope(std::string_view path, std::source_location at) {
  if (!path.empty()) expectName("scope", path, at);
  scopes_.emplace_back(path);
  if (located_ || at.line() == 0) return;
  located_ = scopes_.size();
  outermost_ = at;
}
void GraphImpl::popScope() {
  if (located_ == scopes_.size()) located_ = 0;
  scopes_.pop_back();
}

Tensor GraphImpl::push(Value value) {
  values_.push_back(value);
  entryOf_.push_back(entries_.size() - 1);
  return {this, values_.size() - 1};
}

void GraphImpl::fail(const std::string& text, std::source_location at, ErrorCode code) const {
  const std::string path = scopes_.empty() ? "" : scopes_.back();
  throw Error(code, (path.empty() ? "" : "in '" + path + "': ") + Composing::named(text),
              blame(at));
}

void GraphImpl::expectValue(size_t id, std::source_location at) const {
  if (id >= values_.size())
    fail("the tensor names no value of its graph: id " + std::to_string(id) + " of " +
             std::to_string(values_.size()) + "; take tensors from the functions that record",
         at);
}

void GraphImpl::failClosed(std::source_location at) const {
  auto last = func::FuncOp(entries_.back().function);
  fail("no entry point is open: '" + last.getName().str() +
           "' was read from a text or closed when a question was asked of the graph, and cannot be "
           "recorded in again; start another one with Graph::entry",
       at);
}

void GraphImpl::expectOpen(std::source_location at) {
  if (entries_.empty()) return entry("forward", at);
  if (entries_.back().closed) failClosed(at);
}

void GraphImpl::check(const Tensor& tensor, std::source_location at) const {
  if (!tensor.defined())
    fail("expected a tensor, got an empty handle; was it moved or never assigned?", at);
  if (tensor.recorder(blame(at)) != this)
    fail("the tensor belongs to another graph; record both in one Graph", at);
  if (entries_.empty()) fail("no entry point is open; call Graph::entry or Graph::input first", at);
  if (entries_.back().closed) failClosed(at);
  expectValue(tensor.id(), at);
  if (entryOf_[tensor.id()] != entries_.size() - 1)
    fail(
        "the tensor belongs to an earlier entry point; values cannot be shared between entry "
        "points, weights and states can",
        at);
}

void GraphImpl::expectName(const char* what, std::string_view name, std::source_location at) const {
  if (name.empty()) fail("the " + std::string(what) + "'s name is empty; give it one", at);
  const size_t bad = findInvalidUtf8(name);
  if (bad != name.npos)
    fail("the " + std::string(what) + "'s name \"" + replaceInvalidUtf8(name) +
             "\" holds invalid UTF-8 at byte " + std::to_string(bad) + "; names are UTF-8 texts",
         at);
  if (name.find('\0') != name.npos)
    fail("the " + std::string(what) + "'s name holds a zero byte at byte " +
             std::to_string(name.find('\0')) + "; names are texts",
         at);
}

void GraphImpl::expectFree(const char* what, std::string_view name, std::source_location at) {
  Operation* taken = module_->lookupSymbol(StringRef(name));
  if (!taken) return;
  const char* by = isa<DimOp, DimPartOp>(taken) ? "symbol"
                   : isa<StateOp>(taken)        ? "state"
                                                : "entry point";
  fail(std::string(what) + " name '" + std::string(name) + "' is taken by a" +
           (isa<func::FuncOp>(taken) ? "n " : " ") + by + "; choose another",
       at);
}

void GraphImpl::expectDims(const Dims& dims, std::string_view op, std::source_location at) const {
  const std::string prefix = op.empty() ? "" : std::string(op) + ": ";
  for (const Dim& d : dims) {
    if (auto number = d.asConstant(); number && *number < 0)
      fail(prefix + "negative dim " + std::to_string(*number), at);
    for (const std::string& symbol : d.symbols())
      if (!symbols_.count(symbol))
        fail(prefix + "symbol '" + symbol + "' is not declared in this graph; call Graph::dim", at);
  }
}

void GraphImpl::expectElements(RankedTensorType type, std::string_view op,
                               std::source_location at) const {
  int64_t elements = 1, widest = 0;
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    int64_t lowest = 0, highest = 0;
    if (!type.isDynamicDim(unsigned(axis))) {
      lowest = highest = type.getDimSize(unsigned(axis));
    } else if (auto dim = dimExprOf(type, axis)) {
      SymbolValues least, most;
      for (const std::string& symbol : dim->symbols())
        if (auto known = symbols_.find(symbol); known != symbols_.end()) {
          least[symbol] = known->second.lo;
          most[symbol] = known->second.hi;
        }
      lowest = std::max<int64_t>(dim->evaluate(least).value_or(0), 0);
      highest = dim->evaluate(most).value_or(INT64_MAX);
    }
    widest = std::max(widest, highest);
    if (__builtin_mul_overflow(elements, lowest, &elements)) elements = INT64_MAX;
  }
  const int64_t worst = std::max(elements, widest);
  if (worst > kMostElements)
    fail((op.empty() ? "" : std::string(op) + ": ") + shortType(type) + " would have " +
             (worst == INT64_MAX ? "over 2^63" : std::to_string(worst)) + " elements, at most " +
             std::to_string(kMostElements) + " are possible",
         at);
}

DType GraphImpl::dtypeOf(size_t id) const {
  return *lathe::dtypeOf(tensorType(values_[id]).getElementType());
}
Dims GraphImpl::shapeOf(size_t id) const {
  auto type = tensorType(values_[id]);
  Dims dims;
  for (int64_t i = 0; i < type.getRank(); ++i)
    dims.push_back(dimExprOf(type, i).value_or(DimExpr::symbol("?")));
  return dims;
}

std::string GraphImpl::origins(const std::vector<Tensor>& operands) const {
  std::string text;
  for (size_t i = 0; i < operands.size(); ++i) {
    Value v = values_[operands[i].id()];
    text += "\n  operand " + std::to_string(i) + ": " + shortType(v.getType());
    Location at = v.getLoc();
    if (auto named = dyn_cast<NameLoc>(at)) {
      text += " of " + named.getName().str();
      at = named.getChildLoc();
    }
    if (auto file = dyn_cast<FileLineColLoc>(at))
      text += " from " + file.getFilename().str() + ":" + std::to_string(file.getLine());
  }
  return text;
}

Tensor GraphImpl::emit(std::string_view op, const std::vector<Tensor>& operands,
                       const std::vector<NamedAttr>& attributes, std::source_location at) {
  if (operands.empty()) expectOpen(at);
  for (const Tensor& t : operands)
    if (t.defined()) check(t, at);
  MLIRContext* context = context_.get();
  auto name = RegisteredOperationName::lookup(StringRef(op), context);
  if (!name || name->getDialectNamespace() != LatheDialect::getDialectNamespace())
    fail("no op '" + std::string(op) + "' in the dialect", at);
  OperationState state(locate(at), *name);
  // An undefined handle stands for an absent optional operand.
  SmallVector<int32_t> segments;
  std::vector<Tensor> present;
  for (const Tensor& t : operands) {
    segments.push_back(t.defined());
    if (t.defined()) present.push_back(t);
  }
  for (const Tensor& t : present) state.addOperands(values_[t.id()]);
  try {
    for (const NamedAttr& a : attributes) {
      if (auto* dims = std::get_if<Dims>(&a.value)) expectDims(*dims, op, at);
      state.addAttribute(StringRef(a.name), toAttribute(context, a.value));
    }
  } catch (const Error& e) {
    if (e.line()) throw;
    fail(std::string(op) + ": " + e.what(), at, e.code());
  }
  if (name->hasTrait<OpTrait::AttrSizedOperandSegments>())
    state.addAttribute("operandSegmentSizes", builder_.getDenseI32ArrayAttr(segments));

  std::string text;
  Operation* made = createChecked(builder_, state, text);
  if (!made) fail(text + origins(present), at);
  try {
    for (Value v : made->getResults()) expectElements(tensorType(v), op, at);
  } catch (const Error&) {
    made->erase();
    throw;
  }
  size_t first = values_.size();
  for (Value v : made->getResults()) push(v);
  return {this, first};
}

Tensor GraphImpl::constant(double value, DType dtype, std::source_location at) {
  expectDType(dtype, at);
  if (!holds(dtype, value))
    fail("constant: expected a number that " + std::string(nameOf(dtype)) + " holds, got " +
             numberText(value) + "; choose another dtype or number",
         at);
  Array scalar(dtype, {});
  scalar.set(0, value);
  return emit("lathe.constant", {}, {{"value", scalar}}, at);
}

void GraphImpl::expectDType(DType dtype, std::source_location at) const {
  try {
    (void)nameOf(dtype);
  } catch (const Error& e) {
    fail(e.what(), at);
  }
}

RankedTensorType GraphImpl::typeFor(DType dtype, const Dims& shape, std::source_location at) {
  expectDType(dtype, at);
  expectDims(shape, "", at);
  SmallVector<StringAttr> dims;
  for (const Dim& d : shape) dims.push_back(dimAttr(context_.get(), d));
  RankedTensorType type = tensorOf(dims, elementTypeOf(context_.get(), dtype));
  expectElements(type, "", at);
  return type;
}

Dim GraphImpl::dim(std::string_view name, int64_t lo, int64_t hi, int64_t multiple,
                   std::source_location at) {
  auto parsed = DimExpr::parse(name);
  if (!parsed || !(*parsed == DimExpr::symbol(name)) || name.find('.') != name.npos)
    fail("'" + replaceInvalidUtf8(name) + "' is no symbol name; use letters, digits and _", at);
  const std::string symbol = "symbol '" + std::string(name) + "' ";
  auto text = [](const Range& r) {
    return std::to_string(r.lo) + " to " + std::to_string(r.hi) +
           (r.multiple == 1 ? "" : ", multiples of " + std::to_string(r.multiple));
  };
  const Range range{lo, hi, multiple};
  if (auto known = symbols_.find(name); known != symbols_.end()) {
    if (known->second == range) return *parsed;
    fail(symbol + "was declared with another range: " + text(known->second) + ", now " +
             text(range) + "; give both the same",
         at);
  }
  expectFree("symbol", name, at);
  if (lo < 0 || hi < lo || multiple < 1)
    fail(symbol + "has the empty range " + std::to_string(lo) + " to " + std::to_string(hi) +
             " multiple " + std::to_string(multiple) +
             "; give 0 <= lo <= hi and a multiple of at least 1",
         at);
  if (hi > kMostElements)
    fail(symbol + "has the range " + text(range) + "; sizes are at most " +
             std::to_string(kMostElements),
         at);
  if (hi / multiple * multiple < lo)
    fail(symbol + "has the range " + std::to_string(lo) + " to " + std::to_string(hi) +
             ", which holds no multiple of " + std::to_string(multiple),
         at);
  OpBuilder b = OpBuilder::atBlockBegin(module_->getBody());
  for (Operation& op : *module_->getBody())
    if (isa<DimOp>(op)) b.setInsertionPointAfter(&op);
  DimOp::create(b, locate(at), StringRef(name), lo, hi, multiple);
  symbols_.emplace(std::string(name), range);
  return *parsed;
}

void GraphImpl::entry(std::string_view name, std::source_location at) {
  const std::string given = "entry point name '" + replaceInvalidUtf8(name) + "' ";
  if (name.empty()) fail(given + "is empty", at);
  if (name == "load") fail(given + "is reserved for what loads the weights", at);
  if (module_->lookupSymbol(StringRef(name)))
    fail(given + "is taken" +
             (name == "forward" ? "; what is recorded before the first Graph::entry goes into "
                                  "'forward': begin with Graph::entry, or leave it out"
                                : ""),
         at);
  expectName("entry point", name, at);
  if (!entries_.empty()) close(entries_.back());
  OpBuilder b = OpBuilder::atBlockEnd(module_->getBody());
  auto f = func::FuncOp::create(b, locate(at), StringRef(name), b.getFunctionType({}, {}));
  f.addEntryBlock();
  builder_.setInsertionPointToStart(&f.getBody().front());
  entries_.push_back({.function = f});
}

Tensor GraphImpl::argument(std::string_view name, RankedTensorType type, bool isState,
                           std::source_location at) {
  if (!isState) expectName("input", name, at);
  expectOpen(at);
  OpenEntry& e = entries_.back();
  for (const Named& n : e.arguments)
    if (n.name == name && n.isState == isState)
      fail("input '" + std::string(name) + "' is declared twice; give each its own name", at);
  Value v = e.function.getBody().front().addArgument(type, locate(at));
  e.arguments.push_back({std::string(name), isState});
  return push(v);
}

void GraphImpl::result(std::string_view name, const Tensor& value, bool isState,
                       std::source_location at) {
  check(value, at);
  expectName(isState ? "state" : "output", name, at);
  OpenEntry& e = entries_.back();
  for (const Named& n : e.results)
    if (n.name == name && n.isState == isState)
      fail(isState ? "state '" + std::string(name) +
                         "' is written twice in this entry point; write its last value"
                   : "output '" + std::string(name) + "' is declared twice; give each its own name",
           at);
  e.results.push_back({std::string(name), isState});
  e.returned.push_back(values_[value.id()]);
}

void GraphImpl::observe(std::string_view name, const Tensor& value, std::source_location at) {
  if (name.empty()) fail("observe: expected a name for the value, got an empty text", at);
  result("observed." + std::string(name), value, false, at);
  entries_.back().results.back().isObserved = true;
}

Tensor GraphImpl::weight(std::string_view name, DType dtype, const Shape& shape,
                         std::source_location at) {
  expectName("weight", name, at);
  auto type = typeFor(dtype, Dims(shape.begin(), shape.end()), at);
  expectOpen(at);
  auto [known, fresh] = weightTypes_.emplace(std::string(name), type);
  if (!fresh && known->second != type)
    fail("weight '" + std::string(name) + "' was declared as " + shortType(known->second) +
             ", now " + shortType(type) + "; give both the same type, or one another name",
         at);
  auto& weights = entries_.back().weights;
  if (auto it = weights.find(name); it != weights.end()) return it->second;
  Tensor t = push(WeightOp::create(builder_, locate(at), type, StringRef(name)));
  weights.emplace(std::string(name), t);
  return t;
}

void GraphImpl::state(std::string_view name, DType dtype, const Dims& shape,
                      std::source_location at) {
  expectName("state", name, at);
  auto type = typeFor(dtype, shape, at);
  if (!stateTypes_.count(name)) expectFree("state", name, at);
  auto [known, fresh] = stateTypes_.emplace(std::string(name), type);
  if (!fresh) {
    if (known->second != type)
      fail("state '" + std::string(name) + "' was declared as " + shortType(known->second) +
               ", now " + shortType(type) + "; give both the same type, or one another name",
           at);
    return;
  }
  OpBuilder b = atDeclarations();
  StateOp::create(b, locate(at), StringRef(name), type);
}

OpBuilder GraphImpl::atDeclarations() {
  OpBuilder b = OpBuilder::atBlockBegin(module_->getBody());
  for (Operation& op : *module_->getBody())
    if (op.hasTrait<fact::IsDeclaration>()) b.setInsertionPointAfter(&op);
  return b;
}

void GraphImpl::mesh(std::string_view axis, int64_t ranks, std::source_location at) {
  expectName("mesh axis", axis, at);
  if (ranks < 1)
    fail("mesh: expected at least one rank along '" + std::string(axis) + "', got " +
             std::to_string(ranks),
         at);
  for (auto said : llvm::make_early_inc_range(module_->getOps<MeshOp>())) said.erase();
  OpBuilder b = atDeclarations();
  MeshOp::create(b, locate(at), StringRef(axis), uint64_t(ranks));
}

void GraphImpl::shardWeights(std::string_view weights, std::optional<int64_t> axis,
                             std::string_view meshAxis, std::source_location at) {
  expectName("weight", weights, at);
  if (axis) expectName("mesh axis", meshAxis, at);
  OpBuilder b = atDeclarations();
  ShardWeightsOp::create(b, locate(at), b.getStringAttr(StringRef(weights)),
                         axis ? b.getI64IntegerAttr(*axis) : IntegerAttr(),
                         axis ? b.getStringAttr(StringRef(meshAxis)) : StringAttr());
}

Tensor GraphImpl::readState(std::string_view name, std::source_location at) {
  auto known = stateTypes_.find(name);
  if (known == stateTypes_.end())
    fail("state '" + std::string(name) + "' is not declared; call Graph::state", at);
  expectOpen(at);
  auto& states = entries_.back().states;
  if (auto it = states.find(name); it != states.end()) return it->second;
  Tensor t = argument(name, known->second, true, at);
  states.emplace(std::string(name), t);
  return t;
}

void GraphImpl::writeState(std::string_view name, const Tensor& value, std::source_location at) {
  check(value, at);
  auto known = stateTypes_.find(name);
  Type type = values_[value.id()].getType();
  if (known == stateTypes_.end() || known->second != type)
    fail("state '" + std::string(name) + "' is " +
             (known == stateTypes_.end() ? "not declared" : shortType(known->second)) +
             ", the new value is " + shortType(type) +
             (known == stateTypes_.end() ? "; call Graph::state" : "; reshape or cast the value"),
         at);
  if (!entries_.back().states.count(name))
    fail("state '" + std::string(name) +
             "' is written before it was read in this entry point; call Graph::readState first",
         at);
  result(name, value, true, at);
  entries_.back().states[std::string(name)] = value;
}

void GraphImpl::close(OpenEntry& e) {
  if (e.closed) return;
  std::string name = e.function.getName().str();
  if (e.returned.empty())
    throw Error(ErrorCode::InvalidArgument,
                "entry point '" + name + "' has no output; call Graph::output");
  // A state that is only read keeps its value: the argument itself is the result.
  for (size_t i = 0; i < e.arguments.size(); ++i) {
    const Named& a = e.arguments[i];
    bool written =
        llvm::any_of(e.results, [&](const Named& r) { return r.isState && r.name == a.name; });
    if (!a.isState || written) continue;
    e.results.push_back(a);
    e.returned.push_back(e.function.getArgument(unsigned(i)));
  }
  func::ReturnOp::create(builder_, e.function.getLoc(), e.returned);
  auto types = [](auto range) {
    SmallVector<Type> result;
    for (Value v : range) result.push_back(v.getType());
    return result;
  };
  e.function.setFunctionType(
      builder_.getFunctionType(types(e.function.getArguments()), types(e.returned)));
  auto mark = [&](const Named& n) -> DictionaryAttr {
    Attribute value = n.isState ? Attribute(FlatSymbolRefAttr::get(context_.get(), n.name))
                                : Attribute(builder_.getStringAttr(n.name));
    SmallVector<NamedAttribute> marks{
        builder_.getNamedAttr(n.isState ? "lathe.state" : "lathe.name", value)};
    if (n.isObserved) marks.push_back(builder_.getNamedAttr(kObserved, builder_.getUnitAttr()));
    return builder_.getDictionaryAttr(marks);
  };
  for (size_t i = 0; i < e.arguments.size(); ++i) e.function.setArgAttrs(i, mark(e.arguments[i]));
  for (size_t i = 0; i < e.results.size(); ++i) e.function.setResultAttrs(i, mark(e.results[i]));
  e.closed = true;
}

ModuleOp GraphImpl::finished() {
  if (entries_.empty())
    throw Error(ErrorCode::InvalidArgument, "the graph is empty; record an input and an output");
  for (OpenEntry& e : entries_) close(e);
  return verified();
}

OwningOpRef<ModuleOp> GraphImpl::copy() {
  if (entries_.empty() || entries_.back().closed) return finished().clone();
  OpenEntry& last = entries_.back();
  const size_t results = last.results.size();
  const llvm::scope_exit reopen([&] {
    if (!last.closed) return;
    last.function.getBody().front().getTerminator()->erase();
    last.function.removeArgAttrsAttr();
    last.function.removeResAttrsAttr();
    last.results.erase(last.results.begin() + ptrdiff_t(results), last.results.end());
    last.returned.resize(results);
    last.closed = false;
  });
  return finished().clone();
}

ModuleOp GraphImpl::verified() {
  std::string text;
  {
    ScopedDiagnosticHandler collect(context_.get(), [&](Diagnostic& d) {
      text += d.str() + "\n";
      return success();
    });
    if (succeeded(verify(*module_))) return *module_;
  }
  throw Error(ErrorCode::InvalidArgument, text);
}

}  // namespace lathe
