// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region/thread_evaluator.h"

#include "backends/cuda/lowering/kernel/call_facts.h"
#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "backends/cuda/lowering/region/region_names.h"
#include "backends/cuda/lowering/text/loop_text.h"
#include "lathe/backends/region_plan.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cuda {

using loops::keyOf;
using loops::LoopBuilder;

constexpr int kRegisters = 64;  // elements of a row that a thread may keep per value

// The order of a parameter list.
enum Order {
  kOperands = 0,
  kResults = 1 << 10,
  kParts = 1 << 11,
  kSizes = 1 << 12,
  kStatus = 1 << 13
};

std::string storedName(Type element) { return std::string(elementType(*dtypeOf(element))); }

Value Frame::variable(Type type, const std::string& name) {
  texts_.push_back(name);
  return entry_.addArgument(type, UnknownLoc::get(type.getContext()));
}
Value Frame::add(Type type, Parameter parameter) {
  parameter.value = variable(type, parameter.name);
  parameters_.push_back(std::move(parameter));
  return parameters_.back().value;
}
std::vector<Frame::Parameter> Frame::parameters() const {
  std::vector<Parameter> sorted;
  for (const Parameter& p : parameters_)
    if (p.argument.kind != Argument::Kind::Size || p.isInHead || !p.value.use_empty())
      sorted.push_back(p);
  std::sort(sorted.begin(), sorted.end(),
            [](const Parameter& a, const Parameter& b) { return a.order < b.order; });
  return sorted;
}
Frame::Parameter* Frame::find(Value value) {
  auto it = std::find_if(parameters_.begin(), parameters_.end(),
                         [&](const Parameter& p) { return p.value == value; });
  return it == parameters_.end() ? nullptr : &*it;
}

ThreadEvaluator::ThreadEvaluator(LoopBuilder& builder, func::FuncOp region, bool flat, Frame& frame,
                                 std::vector<std::string> names)
    : Evaluator(builder, region, flat), frame_(frame), names_(std::move(names)) {
  plan();
}

void ThreadEvaluator::setRow(const Coord& number, ArrayRef<DimExpr> dims) {
  rowDims.assign(dims.begin(), dims.end());
  // The only row is row 0, wherever its coordinates, which are zeros, are known.
  const bool only = llvm::all_of(dims, [](const DimExpr& d) { return d == DimExpr(1); });
  rowNumber = only ? Coord(0) : number;
  row = split(*rowNumber, rowDims, 1);
  // "i_seq", or by its axis.
  for (auto [axis, c] : llvm::enumerate(row)) {
    if (c.terms.size() != 1 || c.sameAs(*rowNumber)) continue;
    const auto symbols = rowDims[axis].symbols();
    k.named(symbols.size() == 1 ? "i_" + symbols[0] : "i" + std::to_string(axis), c.terms[0].first);
  }
}

int ThreadEvaluator::widthFor(const DimExpr& length, int most) {
  const int64_t divisor = divisorOf(length);
  int width = 1;
  while (width * 2 <= most && divisor != 0 && divisor % (width * 2) == 0) width *= 2;
  return width;
}

// ---- the frame ----------------------------------------------------------------------------------

Value ThreadEvaluator::makePointer(unsigned number) {
  const bool isOperand = number < region_.getNumArguments();
  if (!isOperand && !sharedTarget.empty())
    return frame_.variable(pointerType(kSharedMemory), sharedTarget);
  const std::string stored = storedName(tensorType(tensorAt(number)).getElementType());
  return frame_.add(
      pointerType(),
      {.declaration = isOperand ? "const " + stored + "* " : stored + "* __restrict__ ",
       .name = names_[number],
       .argument = {.kind = Argument::Kind::Buffer, .index = int(number)},
       .order = (isOperand ? kOperands : kResults) + int(number)});
}

Value ThreadEvaluator::makeSize(const DimExpr& dim) {
  // "batch_seq_4096", "cache_plus_seq"
  std::string name;
  for (auto& [symbols, factor] : dim.terms()) {
    if (!name.empty()) name += "_plus_";
    for (const std::string& s : symbols)
      name += (name.empty() || name.back() == '_' ? "" : "_") + s;
    if (factor != 1 || symbols.empty())
      name += (symbols.empty() ? "" : "_") + std::string(factor < 0 ? "minus_" : "") +
              std::to_string(std::abs(factor));
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "n_" + name;
  return frame_.add(k.b.getI64Type(),
                    {.declaration = "i64 ",
                     .name = frame_.names().unique(name),
                     .argument = {.kind = Argument::Kind::Size, .index = 0, .value = dim},
                     .order = kSizes + int(frame_.texts().size())});
}

// Small tables, whose loads the cache serves: as bits, which need no code to come into being.
Value ThreadEvaluator::makeTable(ConstantOp op) {
  auto value = cast<DenseElementsAttr>(op.getValue());
  Type element = tensorType(op.getResult()).getElementType();
  const std::string name = frame_.names().unique("table"), type = storedName(element);
  std::string items;
  auto append = [&](const std::string& item) { items += (items.empty() ? "" : ", ") + item; };
  const bool real = isa<FloatType>(element);
  const unsigned bits = element.getIntOrFloatBitWidth();
  if (real) {
    for (APFloat v : value.getValues<APFloat>())
      append("0x" + llvm::utohexstr(v.bitcastToAPInt().getZExtValue(), true) +
             (bits == 64 ? "ull" : "u"));
  } else {
    for (APInt v : value.getValues<APInt>())
      append(element.isInteger(64) && v.getSExtValue() == INT64_MIN
                 ? "-9223372036854775807ll - 1"
                 : std::to_string(element.isInteger(1) || element.isUnsignedInteger()
                                      ? int64_t(v.getZExtValue())
                                      : v.getSExtValue()));
  }
  globals.push_back("static __device__ const " + (real ? "u" + std::to_string(bits) : type) + " " +
                    name + "[" + std::to_string(value.getNumElements()) + "] = {" + items + "};");
  return frame_.variable(pointerType(), real ? "((const " + type + "*)" + name + ")" : name);
}

void ThreadEvaluator::report(GatherOp op, Value bad, Value index) {
  const auto gathers = region_.getOps<GatherOp>();
  const int check = int(std::distance(gathers.begin(), llvm::find(gathers, op)));
  Value status = k.shared(0, keyOf("status", int64_t(check)), [&] {
    return frame_.add(pointerType(),
                      {.declaration = "i64* ",
                       .name = check ? "status" + std::to_string(check + 1) : "status",
                       .argument = {.kind = Argument::Kind::Status, .index = check, .value = 0},
                       .order = kStatus + check});
  });
  auto tell = [&](Value condition, Value id) {
    k.when(condition, [&] {
      k.make<emitc::CallOpaqueOp>(TypeRange(), "lt_report_index", ValueRange{status, id});
    });
  };
  auto vector = dyn_cast<VectorType>(bad.getType());
  if (!vector) return tell(bad, index);
  k.loop(
      k.index(0), k.index(vector.getDimSize(0)), 1, {},
      [&](Value j, ValueRange) {
        tell(k.extract(bad, j), k.extract(index, j));
        return Values();
      },
      "lanes");
}

// ---- memory -------------------------------------------------------------------------------------

Value ThreadEvaluator::heldOperand(BlockArgument argument, const Index& index) {
  auto it = accumulators.find(argument.getArgNumber());
  if (it == accumulators.end()) return {};
  if (!storedPosition || !linear(dims(argument), index).sameAs(*storedPosition))
    failure = "an accumulator is read at another place than its own";
  return it->second;
}

Value ThreadEvaluator::anyLane(Value mask) {
  const int64_t lanes = cast<VectorType>(mask.getType()).getDimSize(0);
  auto any = k.loop(
      k.index(0), k.index(lanes), 1, k.integer(k.b.getI1Type(), 0),
      [&](Value j, ValueRange any) -> Values {
        return {k.make<arith::OrIOp>(any[0], k.extract(mask, j))};
      },
      "lanes");
  return k.named("some", any[0]);
}

// One aligned vector that holds the elements of all lanes.
Value ThreadEvaluator::loadSpan(const loops::Source& source, Type stored, const Coord& at,
                                const Index& index) {
  if (index.mask) return {};
  const int64_t chunk = index.width;
  const auto [least, most] = std::minmax_element(at.lanes->begin(), at.lanes->end());
  // Lanes may share elements of a shorter vector, or skip some of a longer one.
  const bool plain = at.lanes == k.ramp(chunk);
  int64_t width = plain ? chunk : int64_t(llvm::bit_ceil(uint64_t(*most - *least + 1)));
  Coord base;
  std::vector<int64_t> offsets;
  for (;; width *= 2) {
    if (width > 2 * chunk) return {};
    // What is odd about the base goes to the lanes: x[2 * (j / 2) + 1] shares its vector.
    base = at.base();
    const int64_t first = base.constant + *least;
    const int64_t even = first - (first % width + width) % width;
    offsets = *at.lanes;
    for (int64_t& o : offsets) o += base.constant - even;
    base = m.sum(base, even - base.constant, 1);
    const bool inside = offsets[size_t(most - at.lanes->begin())] < width;
    if (inside && m.alignOf(base) % width == 0 &&
        ((plain && width == chunk) || source.divisor % width == 0))
      break;
  }
  Value vector =
      k.shared(k.top(), keyOf("span", source.pointer, stored, width, base), [&]() -> Value {
        return k.make<LLVM::LoadOp>(VectorType::get({width}, stored),
                                    address(source.pointer, stored, m.scalar(base)),
                                    unsigned(loops::bytesOf(stored)));
      });
  if (plain && width == chunk) return vector;
  return k.shuffle(vector, vector, SmallVector<int32_t>(offsets.begin(), offsets.end()));
}

void ThreadEvaluator::resultsReplaceOperands() {
  for (auto [r, v] : llvm::enumerate(resultsOf(region_)))
    frame_.find(pointerTo(region_.getNumArguments() + unsigned(r)))->declaration =
        storedName(tensorType(v).getElementType()) + "* ";
}

// ---- rows ---------------------------------------------------------------------------------------

LoopBuilder::Values ThreadEvaluator::overRow(const DimExpr& length, int lanes, ValueRange init,
                                             LaneBody body) {
  auto number = length.asConstant();
  const int64_t step = int64_t(team.threads) * lanes;
  const int64_t chunks = number ? (*number + step - 1) / step : 0;
  Chunk chunk{.length = length, .lanes = lanes, .pass = ++passes_};
  auto run = [&](const Coord& first, ValueRange a) {
    chunk.lane = m.clip(m.ramp(first, lanes), 0, loops::lastOf(length));
    chunk.level = k.top();
    auto outer = std::exchange(chunk_, chunk);
    open_.insert(chunk.pass);
    if (chunk.pass == 1 && chunk.count > 0)
      for (BlockArgument v : requestedFirst) {
        Index index{{}, lanes, {}};
        index.coords.push_back(chunk.lane);
        keep(v, eval(v, index), index);
      }
    Values out = body(chunk.lane, lanes, {}, a);
    open_.erase(chunk.pass);
    chunk_ = outer;
    return out;
  };
  if (!number || *number == 0 || chunks * lanes > kRegisters) {
    const int64_t last = number ? *number - lanes : Coord::kUnbounded;
    Value end = m.scalar(size(length)), start = m.scalar(m.times(team.rank, lanes, 1));
    if (start.getType() != end.getType()) start = k.widened(start), end = k.widened(end);
    return k.loop(start, end, step, init,
                  [&](Value i, ValueRange a) { return run(m.of(i, lanes, 0, last), a); });
  }
  // Every chunk of a thread has a number that the compiler knows: registers can hold it.
  chunk.count = int(chunks);
  auto one = [&](const Coord& first, ValueRange a, bool whole) -> Values {
    Value c = k.named("c", m.scalar(m.times(first, lanes, 1)));
    const Coord at = m.of(c, lanes, 0, chunks * step - lanes);
    if (whole) return run(at, a);
    Value inside = m.compare(arith::CmpIPredicate::slt, at, *number, 1);
    return k.guard(inside, c, a, [&](ValueRange b) { return run(at, b); });
  };
  chunk.number = 0;
  const int64_t whole = *number / step;  // chunks that every thread has
  if (chunks == 1) return one(team.rank, init, whole == 1);
  auto rankOf = [&](const Coord& number) {
    return m.sum(team.rank, m.times(number, team.threads, 1), 1);
  };
  auto loop = [&](int64_t count, bool areWhole) {
    return k.loop(
        k.index(0), k.index(count), 1, init,
        [&](Value i, ValueRange a) {
          chunk.number = m.of(i, 1, 0, count - 1);
          return one(rankOf(chunk.number), a, areWhole);
        },
        "unroll");
  };
  // Behind a question the loads of many chunks would follow one another: only the last one is
  // asked.
  constexpr int64_t kMany = 4;
  if (whole == chunks || chunks < kMany) return loop(chunks, whole == chunks);
  const Values sums = loop(whole, true);
  chunk.number = whole;
  return one(rankOf(whole), sums, false);
}

bool ThreadEvaluator::isInChunk(const Index& index) const {
  if (!chunk_ || chunk_->count == 0 || index.coords.empty() || index.mask) return false;
  if (!index.coords.back().sameAs(chunk_->lane)) return false;
  return llvm::all_of(ArrayRef<Coord>(index.coords).drop_back(),
                      [&](const Coord& c) { return c.uniform() && m.levelOf(c) <= team.level; });
}

static loops::Key keyInFront(const Index& index) {
  return keyOf("in front", ArrayRef<Coord>(index.coords).drop_back());
}

bool ThreadEvaluator::isWorthKeeping(Value v) const {
  if (team.kind == Team::Kind::BlocksPerRow || tensorType(v).getRank() == 0) return false;
  Operation* op = v.getDefiningOp();
  if (!op) return true;
  if (isa<ConstantOp>(op)) return false;
  // A small float is kept as it lies in memory.
  auto cast = dyn_cast<CastOp>(op);
  Type from = cast ? tensorType(cast.getX()).getElementType() : Type();
  return !cast || !(from.isBF16() || from.isF16());
}

void ThreadEvaluator::keep(Value tensor, Value value, const Index& index) {
  if (!isInChunk(index) || k.top() != chunk_->level) return;
  auto known = slots_.find(tensor);
  if (known != slots_.end() &&
      (known->second.chunk.pass != chunk_->pass || known->second.elsewhere != keyInFront(index)))
    return;
  if (k.levelOf(value) <= team.level && chunk_->count > 1) return;
  Value held = k.toStored(value, tensorType(tensor).getElementType());
  if (tensorType(tensor).getElementType().isInteger(1)) held = value;
  auto store = [&](Value array) {
    k.make<LLVM::StoreOp>(held, address(array, held.getType(), m.scalar(chunk_->number)));
  };
  if (known != slots_.end()) return store(known->second.array);
  Slot slot{.type = held.getType(), .chunk = *chunk_, .elsewhere = keyInFront(index)};
  slot.array = k.at(team.level, [&]() -> Value {
    auto argument = dyn_cast<BlockArgument>(tensor);
    const std::string name =
        argument ? names_[argument.getArgNumber()] : nameOf(tensor.getDefiningOp());
    return k.named(name + "_kept",
                   k.make<LLVM::AllocaOp>(pointerType(), slot.type, k.i64(chunk_->count)));
  });
  store(slot.array);
  slots_.try_emplace(tensor, slot);
}

Value ThreadEvaluator::kept(Value tensor, const Index& index) {
  auto it = slots_.find(tensor);
  if (it == slots_.end() || !isInChunk(index)) return {};
  const Slot& slot = it->second;
  if (open_.count(slot.chunk.pass) || slot.elsewhere != keyInFront(index) ||
      !(slot.chunk.length == chunk_->length) || slot.chunk.lanes != chunk_->lanes)
    return {};
  Value held =
      k.make<LLVM::LoadOp>(slot.type, address(slot.array, slot.type, m.scalar(chunk_->number)));
  Type element = tensorType(tensor).getElementType();
  return element.isInteger(1) ? held : k.fromStored(held, element);
}

// ---- values -------------------------------------------------------------------------------------

Location ThreadEvaluator::locationOf(Operation* op) {
  return NameLoc::get(k.b.getStringAttr("%" + nameOf(op)), op->getLoc());
}

Value ThreadEvaluator::ownWay(Operation* op, const Index& index) {
  if (auto bits = dyn_cast<RandomBitsOp>(op)) return randomBits(bits, index);
  if (auto quotient = dyn_cast<DivOp>(op)) return softmaxQuotient(quotient, index);
  return {};
}

// A whole row has one inverse.
Value ThreadEvaluator::softmaxQuotient(DivOp op, const Index& index) {
  if (index.uniform() || !tensorType(op.getY()).getElementType().isF32() || !op->hasAttr(kBySum))
    return {};
  Value x = operand(op, 0, index), y = eval(op.getB(), broadcastIndex(op.getB(), index));
  if (isa<VectorType>(y.getType()) || k.levelOf(y) > team.level) return {};
  Value inverse = k.shared(k.levelOf(y), keyOf("inverse", y), [&] {
    return k.named("inverse", k.make<arith::DivFOp>(k.number(y.getType(), 1), y));
  });
  return k.make<arith::MulFOp>(x, k.splat(inverse, index.width));
}

Value ThreadEvaluator::randomBits(RandomBitsOp op, const Index& index) {
  Value seed = eval(op.getSeed(), index.with({}));
  auto type = VectorType::get({4}, k.b.getI32Type());
  auto one = [&](const Index& where) -> Value {
    auto [block, word] = m.divide(linear(dims(op.getResult()), where), 4, 1);
    const size_t level = std::max({k.barrier(), k.levelOf(seed), m.levelOf(block)});
    Value words = k.shared(level, keyOf("random words", seed, block), [&]() -> Value {
      Value number = k.widened(m.scalar(block));
      return k.make<emitc::CallOpaqueOp>(TypeRange{type}, "random_words", ValueRange{number, seed})
          .getResult(0);
    });
    return k.extract(words, m.scalar(word));
  };
  if (index.uniform()) return one(index);
  Values all;
  for (int32_t lane = 0; lane < index.width; ++lane) all.push_back(one(m.pick(index, {lane})));
  return k.make<vector::FromElementsOp>(VectorType::get({index.width}, k.b.getI32Type()), all);
}

// Lanes of a warp meet in shuffles, which order no memory: one must not replace what another reads.
bool ThreadEvaluator::endsBeforeStores(const Index& index) const {
  return Evaluator::endsBeforeStores(index) &&
         (team.kind != Team::Kind::WarpPerRow ||
          (chunk_ && index.coords.back().sameAs(chunk_->lane)));
}

// ---- reductions ---------------------------------------------------------------------------------

// The result of a reduction has the own row, and at that it is wanted: of a piece of fewer rows
// only some lie under a number of a row.
bool ThreadEvaluator::isOwnPlace(Operation* op, const Index& index) const {
  if (index.coords.size() < row.size() || index.coords.size() > row.size() + 1) return false;
  auto shape = dims(op->getResult(0));
  for (auto [dim, rows, c, own] : llvm::zip(shape, rowDims, index.coords, row))
    if (!(dim == rows) || !c.sameAs(own)) return false;
  return index.coords.size() == row.size() || index.coords.back().number() == 0;
}

// All threads of the team come to its scope together, and the value is the same for all of them.
bool ThreadEvaluator::isShared(Operation* op, const Index& index) {
  if (team.kind == Team::Kind::Flat || !index.uniform()) return false;
  const bool own = isOwnPlace(op, index);
  if (own) together.insert(op);
  // Blocks have left parts of their own row alone.
  if (team.kind == Team::Kind::BlocksPerRow) return own && team.spread.reductions.contains(op);
  if (own) return true;
  return k.barrier() <= k.ground() &&
         llvm::all_of(index.coords, [&](const Coord& c) { return m.levelOf(c) <= team.level; });
}

bool ThreadEvaluator::mayJoin(Operation* other) const {
  return team.kind != Team::Kind::BlocksPerRow || team.spread.reductions.contains(other);
}

LoopBuilder::Values ThreadEvaluator::overThreads(const DimExpr& elements, const DimExpr& innermost,
                                                 Values acc, LaneBody body) {
  return overRow(elements, widthFor(innermost, width), acc, body);
}

bool ThreadEvaluator::isMadeBefore(Operation* op) const {
  return team.kind == Team::Kind::BlocksPerRow && depthOf(op) < team.spread.pass;
}

Value ThreadEvaluator::partsOf(Operation* op, unsigned number, Type type) {
  return k.shared(0, keyOf("parts", op, int64_t(number)), [&] {
    const auto& all = team.spread.reductions;
    const int64_t before = llvm::find(all, op) - all.begin();
    const DimExpr bytes = productOf(rowDims) * (team.blocks * Spread::kPartBytes);
    const std::string element = number ? "i64" : storedName(storedType(type));
    return frame_.add(
        pointerType(),
        {.declaration = isMadeBefore(op) ? "const " + element + "* " : element + "* __restrict__ ",
         .name = frame_.names().unique(nameOf(op) + (number ? "_indices" : "_parts")),
         .argument = {.kind = Argument::Kind::Scratch,
                      .index = 0,
                      .value = bytes * before +
                               productOf(rowDims) * (team.blocks * int64_t(number) * 8)},
         .order = kParts + int(before) * 2 + int(number)});
  });
}

Coord ThreadEvaluator::threadOfBlock() {
  return m.of(k.shared(0, keyOf("thread of block"),
                       [&] { return frame_.variable(k.b.getI32Type(), "(int)threadIdx.x"); }));
}

LoopBuilder::Values ThreadEvaluator::madeBefore(Operation* op, Values acc) {
  const Coord number = m.clip(threadOfBlock(), 0, team.blocks - 1);
  Value some = m.compare(arith::CmpIPredicate::slt, number, team.blocks, 1);
  const Coord at = m.sum(m.times(*rowNumber, team.blocks, 1), number, 1);
  return k.branch(
      some,
      [&] {
        Values parts;
        for (auto [i, v] : llvm::enumerate(acc)) {
          Type stored = storedType(v.getType());
          Value part = k.make<LLVM::LoadOp>(
              stored, address(partsOf(op, unsigned(i), v.getType()), stored, m.scalar(at)));
          parts.push_back(k.fromStored(part, v.getType()));
        }
        return parts;
      },
      [&] { return acc; });
}

LoopBuilder::Values ThreadEvaluator::combineThreads(Operation* op, Values acc) {
  const char* scopes[] = {"", "warp", "block", "cluster", "block", "columns"};
  auto* context = k.b.getContext();
  SmallVector<Attribute> arguments, templates;
  for (size_t i = 0; i < acc.size(); ++i) arguments.push_back(k.b.getIndexAttr(int64_t(i)));
  arguments.push_back(
      emitc::OpaqueAttr::get(context, (cast<ReductionOp>(op).combiner() + "{}").str()));
  if (team.ofBlock) templates.push_back(k.b.getI32IntegerAttr(team.ofBlock));
  // Threads hand each other words; what wraps there wraps in fewer bits as well.
  Type narrow = acc[0].getType();
  const bool widens = narrow.isInteger(8) || narrow.isInteger(16);
  if (widens && isUnsigned(op->getOperand(0).getType()))
    acc[0] = k.make<arith::ExtUIOp>(k.b.getI32Type(), acc[0]);
  else if (widens)
    acc[0] = k.make<arith::ExtSIOp>(k.b.getI32Type(), acc[0]);
  auto call = k.make<emitc::CallOpaqueOp>(
      ValueRange(acc).getTypes(), std::string(scopes[int(team.kind)]) + "_reduce", ValueRange(acc),
      k.b.getArrayAttr(arguments), templates.empty() ? ArrayAttr() : k.b.getArrayAttr(templates));
  if (acc[0].getType().isInteger(1)) call->setAttr("truth", k.b.getUnitAttr());
  Values all(call.getResults());
  if (widens) all[0] = k.make<arith::TruncIOp>(narrow, all[0]);
  if (team.kind != Team::Kind::BlocksPerRow || isMadeBefore(op)) return all;
  Value first = m.compare(arith::CmpIPredicate::eq, threadOfBlock(), 0, 1);
  const Coord at = m.sum(m.times(*rowNumber, team.blocks, 1), team.piece, 1);
  k.when(first, [&] {
    for (auto [i, v] : llvm::enumerate(all)) {
      Type stored = storedType(v.getType());
      k.make<LLVM::StoreOp>(k.toStored(v, v.getType()),
                            address(partsOf(op, unsigned(i), v.getType()), stored, m.scalar(at)));
    }
  });
  return all;
}

void ThreadEvaluator::reduceInOwnRow(Operation* op) {
  Index place{row};
  const size_t rank = dims(op->getResult(0)).size();
  if (rank > row.size()) place.coords.push_back(0);
  if (place.coords.size() == rank) eval(op->getResult(0), place);
}

void ThreadEvaluator::reduceFirst(const llvm::SetVector<Operation*>& reductions) {
  for (Operation& op : region_.getBody().front())
    if (reductions.contains(&op)) reduceInOwnRow(&op);
}

void ThreadEvaluator::reducePass() {
  for (Operation* op : team.spread.reductions)
    if (depthOf(op) == team.spread.pass) reduceInOwnRow(op);
}

}  // namespace lathe::cuda
