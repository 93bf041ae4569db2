// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/shard.h"

#include <utility>

#include "ir/op_builder.h"
#include "lathe/passes/passes.h"
#include "lathe/runtime/error.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "mlir/IR/IRMapping.h"
#include "passes/rewrite/asked_once.h"
#include "passes/rewrite/numerics_scope.h"
#include "passes/rewrite/rewrite_log.h"
#include "passes/rewrite/weight_only.h"
#include "passes/shard/align_blocks.h"
#include "passes/shard/by_hand.h"
#include "passes/shard/mesh.h"
#include "passes/shard/op_cuts.h"
#include "passes/shard/open_norms.h"
#include "passes/shard/padded_rows.h"
#include "passes/shard/shard_plan.h"
#include "passes/shard/split_merged.h"

using namespace mlir;

namespace lathe {
#define GEN_PASS_DEF_SHARDPASS
#include "lathe/passes/passes.h.inc"
namespace {

// A value on the ranks: one SSA value that every rank has of its own, or one for each rank where
// all stand in one graph.
struct Placed {
  Cut cut;
  SmallVector<Value> at;
  Value on(int64_t rank) const { return at[at.size() == 1 ? 0 : size_t(rank)]; }
};

class Partitioner {
 public:
  Partitioner(ModuleOp module, const Mesh& mesh, const CutsByHand& byHand)
      : module_(module),
        mesh_(mesh),
        byHand_(byHand),
        plan_(plan()),
        rows_(module, mesh.ranks),
        b_(module) {}

  void run() {
    for (const auto& [op, cut] : plan_.rows)
      if (auto product = weightMatmulOf(op);
          product && isLoadedWeight(op->getOperand(product->weight)))
        alignBlocks(op->getOperand(product->weight), {product->weightAxis, cut.parts, cut.groups});
    for (const KeptWhole& kept : plan_.whole) tell(kept.op, kept.reason);
    if (!mesh_.simulate)
      module_.walk([&](StateOp state) {
        auto cut = plan_.states.find(state.getSymName());
        if (cut == plan_.states.end()) return;
        state.setType(pieceType(cast<RankedTensorType>(state.getType()), cut->second));
      });
    SmallVector<func::FuncOp> functions(module_.getOps<func::FuncOp>());
    for (func::FuncOp f : functions) rewrite(f);
  }

 private:
  // Norms that the plan cuts are opened, and planned anew.
  ShardPlan plan() {
    ShardPlan plan = planShards(module_, mesh_.ranks, byHand_);
    while (!plan.norms.empty()) {
      for (Operation* norm : plan.norms) openNorm(norm);
      plan = planShards(module_, mesh_.ranks, byHand_);
    }
    return plan;
  }

  int64_t copies() const { return mesh_.simulate ? mesh_.ranks : 1; }
  IntegerAttr number(int64_t value) { return b_.getI64IntegerAttr(value); }
  StringAttr axisName() { return b_.getStringAttr(mesh_.axis); }

  void tell(Operation* op, const std::string& reason) {
    if (RewriteLog* log = rewriteLogOf(module_.getContext())) log->noteDeclined(op, reason, "mesh");
  }

  Cut cutOfState(DictionaryAttr attributes) const {
    auto it = plan_.states.find(stateOf(attributes));
    return it == plan_.states.end() ? Cut() : it->second;
  }

  void rewrite(func::FuncOp f) {
    placed_.clear();
    addends_.clear();
    whole_.clear();
    pieces_ = {};
    b_.setInsertionPoint(f);
    auto local = [&](Type type, DictionaryAttr attributes) -> Type {
      return mesh_.simulate ? type
                            : pieceType(cast<RankedTensorType>(type), cutOfState(attributes));
    };
    SmallVector<Type> inputs, results;
    for (unsigned i = 0; i < f.getNumArguments(); ++i)
      inputs.push_back(local(f.getArgumentTypes()[i], f.getArgAttrDict(i)));
    for (unsigned i = 0; i < f.getNumResults(); ++i)
      results.push_back(local(f.getResultTypes()[i], f.getResultAttrDict(i)));
    const NamedAttribute type = b_.getNamedAttr(f.getFunctionTypeAttrName(),
                                                TypeAttr::get(b_.getFunctionType(inputs, results)));
    auto made = func::FuncOp::create(b_, f.getLoc(), f.getName(), f.getFunctionType());
    NamedAttrList attributes(f->getAttrDictionary());
    attributes.set(type.getName(), type.getValue());
    made->setAttrs(attributes.getDictionary(module_.getContext()));
    Block* body = b_.createBlock(
        &made.getBody(), {}, inputs,
        llvm::map_to_vector(f.getArguments(), [](BlockArgument a) { return a.getLoc(); }));
    for (auto [from, to] : llvm::zip(f.getArguments(), body->getArguments())) {
      const Cut cut = mesh_.simulate ? Cut() : cutOfState(f.getArgAttrDict(from.getArgNumber()));
      placed_[from] = {cut, {to}};
    }
    for (Operation& op : f.getBody().front().without_terminator()) emit(&op);
    Operation* end = f.getBody().front().getTerminator();
    SmallVector<Value> values;
    for (auto [i, v] : llvm::enumerate(end->getOperands())) {
      const Cut cut = mesh_.simulate ? Cut() : cutOfState(f.getResultAttrDict(i));
      values.push_back(cut.isWhole() ? whole(v, end->getLoc()) : pieces(v, cut).on(0));
    }
    func::ReturnOp::create(b_, end->getLoc(), values);
    f.erase();
    // Weights and what is made of them stood whole for readers that took pieces.
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(*body)))
      if (isOpTriviallyDead(&op)) op.erase();
  }

  //===--- one op ---------------------------------------------------------------------------===//

  void emit(Operation* op) {
    if (llvm::any_of(op->getOperands(), [&](Value v) { return addends_.count(v); }))
      return onAddends(op);
    if (auto rows = plan_.rows.find(op); rows != plan_.rows.end()) {
      auto linear = dyn_cast<LinearOp>(op);
      return linear
                 ? sumRows(linear, rows->second)
                 : sumPieces(
                       op,
                       cutsOfOperand(op, weightMatmulOf(op)->activation, rows->second)->operands);
    }
    if (plan_.tables.contains(op)) return sumTables(cast<EmbeddingOp>(op));
    if (auto columns = plan_.columns.find(op); columns != plan_.columns.end())
      return inPieces(op, *cutsOfResult(op, 0, columns->second));
    if (auto slice = dyn_cast<SliceOp>(op)) {
      // What all ranks have whole of a tensor that holds several layers, such as the keys of one
      // head.
      if (auto part = partOfWeight(slice)) return void(placed_[slice.getY()] = *part);
      if (isOfHalfBytes(slice.getY())) return sliceHalfBytes(slice);
    }
    if (op->getNumResults() > 0 && isLoadedWeight(op->getResult(0)))
      return onEveryRank(op);  // until something reads it
    if (auto shard = dyn_cast<ShardOp>(op)) {
      placed_[shard.getY()] = pieces(shard.getX(), byHand_.of(shard));
      return;
    }
    bool isCut = false;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      const Cut cut = cutOf(op->getOperand(i));
      if (cut.isWhole()) continue;
      isCut = true;
      const std::optional<OpCuts> cuts = cutsOfOperand(op, i, cut);
      if (cuts && !cuts->isSum) return inPieces(op, *cuts);
      if (cut.isPadded()) continue;  // padding is no addend
      // Each rank adds what no other does, or as many do.
      const bool isOwn = cuts && llvm::all_of(cuts->operands, [&](const Cut& c) {
                           return c.isWhole() || c.parts == mesh_.ranks;
                         });
      if (auto linear = dyn_cast<LinearOp>(op); isOwn && linear && weightMatmulOf(op))
        return sumRows(linear, cuts->operands[0]);
      if (cuts && (isOwn ? isPlainSum(op) : isa<ReduceSumOp>(op)))
        return sumPieces(op, cuts->operands);
    }
    if (isCut) tell(op, "it has no rule for these pieces: its operands are gathered on every rank");
    onEveryRank(op);
  }

  // How a value is cut, a value of weights alone by hand.
  Cut cutOf(Value v) {
    const Cut& cut = placed_[v].cut;
    return cut.isWhole() && isLoadedWeight(v) ? byHand_.ofLoaded(v) : cut;
  }

  // Whose pieces are addends, and nothing is done to their sum.
  static bool isPlainSum(Operation* op) { return isa<MatmulOp, GroupedLinearOp, ReduceSumOp>(op); }

  SmallVector<Placed> operandsOf(Operation* op, ArrayRef<Cut> cuts) {
    SmallVector<Placed> operands;
    for (auto [v, cut] : llvm::zip_equal(op->getOperands(), cuts))
      operands.push_back(cut.isWhole() ? Placed{{}, {whole(v, op->getLoc())}} : pieces(v, cut));
    return operands;
  }

  void inPieces(Operation* op, const OpCuts& cuts) {
    const SmallVector<Placed> operands = operandsOf(op, cuts.operands);
    SmallVector<Type> types;
    SmallVector<Placed> results;
    for (auto [v, cut] : llvm::zip_equal(op->getResults(), cuts.results)) {
      types.push_back(pieceType(tensorType(v), cut));
      results.push_back({cut, {}});
    }
    for (int64_t rank = 0; rank < copies(); ++rank) {
      Operation* piece = make(op, operands, rank, types);
      for (auto [result, value] : llvm::zip_equal(results, piece->getResults()))
        result.at.push_back(value);
    }
    for (auto [v, result] : llvm::zip_equal(op->getResults(), results)) placed_[v] = result;
  }

  void sumPieces(Operation* op, ArrayRef<Cut> cuts) {
    SmallVector<Placed> operands = operandsOf(op, cuts);
    OpMaker m(b_, op->getLoc());
    auto type = tensorType(op->getResult(0));
    // Products of activations alone, such as those of weights that are chosen first, have no sums
    // of another dtype than theirs.
    const Type wide = isa<MatmulOp>(op) ? type.getElementType() : ofAddends(type.getElementType());
    if (isa<ReduceSumOp>(op))
      for (Value& v : operands[0].at) v = m.cast(v, wide);
    SmallVector<Value> addends;
    for (int64_t rank = 0; rank < copies(); ++rank) {
      Operation* piece = make(op, operands, rank, tensorOf(dimsOf(type), wide));
      if (auto grouped = dyn_cast<GroupedLinearOp>(piece))
        grouped.setUnrounded(grouped.getUnrounded() || wide != type.getElementType());
      addends.push_back(piece->getResult(0));
    }
    if (isa<GroupedLinearOp>(op) && isAddedUp(op->getResult(0)))
      return void(addends_[op->getResult(0)] = addends);
    const auto cut = llvm::find_if(cuts, [](const Cut& c) { return !c.isWhole(); });
    const std::optional<Cut> rows = isa<GroupedLinearOp>(op) ? rowsOfSum(op) : std::nullopt;
    Placed y = summed(m.loc, addends, rows);
    for (Value& v : y.at) v = m.cast(ofOnePiece(m, v, *cut), type.getElementType());
    placed_[op->getResult(0)] = y;
  }

  // A sum over the ranks, to which neighbours that hold the same piece have all added it.
  Value ofOnePiece(OpMaker& m, Value sum, const Cut& cut) {
    const int64_t sharing = mesh_.ranks / cut.parts;
    if (sharing == 1) return sum;
    return m.make<DivOp>(sum, m.scalar(tensorType(sum).getElementType(), double(sharing)));
  }

  // What addends of sums of this dtype are: 16-bit floats are rounded once, behind the sum.
  Type ofAddends(Type element) {
    const bool isSmall = element.isBF16() || element.isF16();
    if (!isSmall || mayWeaken(Contract::WireRounding, numericsModeOf(module_.getContext())))
      return element;
    return computeType(element);
  }

  // Whether all that is read of a product is a sum over some of its rows, weighted or not: the
  // chosen experts of a token. Then the ranks' addends are added behind it, where they are fewer.
  static bool isAddedUp(Value v) {
    while (v.hasOneUse()) {
      Operation* user = *v.user_begin();
      if (isa<ReduceSumOp>(user)) return true;
      if (!isa<MulOp, ReshapeOp>(user)) return false;
      v = user->getResult(0);
    }
    return false;
  }

  // What isAddedUp has seen, on each rank's addend.
  void onAddends(Operation* op) {
    OpMaker m(b_, op->getLoc());
    auto type = tensorType(op->getResult(0));
    const Type wide = ofAddends(type.getElementType());
    SmallVector<Placed> operands;
    bool isTaken = false;  // a product of two sums is no sum of products
    for (Value v : op->getOperands()) {
      const auto own = addends_.find(v);
      if (own == addends_.end())
        operands.push_back({{}, {m.cast(whole(v, m.loc), wide)}});
      else if (std::exchange(isTaken, true))
        operands.push_back({{}, {sum(m.loc, own->second)}});
      else
        operands.push_back({{}, own->second});
    }
    SmallVector<Value> results;
    for (int64_t rank = 0; rank < copies(); ++rank)
      results.push_back(make(op, operands, rank, tensorOf(dimsOf(type), wide))->getResult(0));
    if (!isa<ReduceSumOp>(op)) return void(addends_[op->getResult(0)] = results);
    Placed y = summed(m.loc, results, rowsOfSum(op));
    for (Value& v : y.at) v = m.cast(v, type.getElementType());
    placed_[op->getResult(0)] = y;
  }

  // The op on one rank's operands. Sizes among its attributes are those of its result.
  Operation* make(Operation* op, ArrayRef<Placed> operands, int64_t rank, TypeRange types) {
    OperationState state(op->getLoc(), op->getName());
    for (const Placed& operand : operands) state.operands.push_back(operand.on(rank));
    state.addTypes(types);
    NamedAttrList attributes(op->getAttrDictionary());
    auto type = cast<RankedTensorType>(types[0]);
    for (StringRef sizes : {"shape", "sizes"})
      if (isa_and_nonnull<DimsAttr>(attributes.get(sizes)))
        attributes.set(sizes, DimsAttr::get(module_.getContext(), dimsOf(type)));
    state.addAttributes(attributes.getAttrs());
    return b_.create(state);
  }

  void onEveryRank(Operation* op) {
    IRMapping map;
    for (Value v : op->getOperands()) map.map(v, whole(v, op->getLoc()));
    Operation* clone = b_.clone(*op, map);
    for (auto [from, to] : llvm::zip_equal(op->getResults(), clone->getResults()))
      placed_[from] = {{}, {to}};
  }

  // Products of a rank's columns; bias and residual are added to their sum, once.
  void sumRows(LinearOp linear, const Cut& cut) {
    OpMaker m(b_, linear.getLoc());
    auto type = tensorType(linear.getY());
    const Type element = type.getElementType(), wide = ofAddends(element);
    const WeightMatmul matmul = *weightMatmulOf(linear);
    const Placed x = pieces(linear.getX(), cut);
    const Placed w = pieces(linear.getW(), {matmul.weightAxis, cut.parts, cut.groups});
    SmallVector<Value> addends;
    for (int64_t rank = 0; rank < copies(); ++rank)
      addends.push_back(m.make<LinearOp>(
          tensorOf(dimsOf(type), wide), x.on(rank), w.on(rank), Value(), Value(),
          linear.getActivation(), linear.getLayout(), linear.getUnrounded() || wide != element));
    const std::optional<Cut> rows = rowsOfSum(linear);
    Placed y = summed(m.loc, addends, rows);
    for (Value& v : y.at) v = ofOnePiece(m, v, cut);
    auto add = [&](Value v) {
      if (!v) return;
      const bool isPerRow = v.getType() == type && rows;
      const Placed other = isPerRow ? pieces(v, *rows) : Placed{{}, {whole(v, m.loc)}};
      for (auto [rank, at] : llvm::enumerate(y.at))
        at = m.make<AddOp>(at, m.cast(other.on(int64_t(rank)), wide));
    };
    add(linear.getBias());
    add(linear.getResidual());
    for (Value& v : y.at) v = m.cast(v, element);
    placed_[linear.getY()] = y;
  }

  // Along which axis each rank keeps the sum of its rows alone, where that was asked for: by the
  // mesh, or by hand of all that the sum is for.
  std::optional<Cut> rowsOfSum(Operation* op) {
    auto type = tensorType(op->getResult(0));
    auto shard = op->hasOneUse() ? dyn_cast<ShardOp>(*op->user_begin()) : ShardOp();
    if (shard && int64_t(shard.getAxis()) < type.getRank() - 1) return byHand_.of(shard);
    if (!mesh_.splitRows) return std::nullopt;
    std::string why;
    const std::optional<Cut> cut = rows_.cutOf(type, &why);
    if (!cut) tell(op, why + ": each rank has all rows behind the sum");
    return cut;
  }

  // Each rank finds the ids of its rows and has zeros for the others', so that the sum over the
  // ranks changes no bit. An id outside of the whole table stays outside of every piece: it is the
  // error that it is on one rank.
  void sumTables(EmbeddingOp embedding) {
    OpMaker m(b_, embedding.getLoc());
    auto table = tensorType(embedding.getTable());
    const int64_t rows = table.getDimSize(0) / mesh_.ranks;
    const Value ids = whole(embedding.getIds(), m.loc);
    const Placed pieceOf = pieces(embedding.getTable(), {0, mesh_.ranks});
    Value positions = embedding.getPositions();
    if (positions) positions = whole(positions, m.loc);
    Type idType = tensorType(ids).getElementType();
    auto isInside = [&](Value id, int64_t end) {
      return m.make<LogicalAndOp>(m.compare(Compare::ge, id, m.scalar(idType, 0)),
                                  m.compare(Compare::lt, id, m.scalar(idType, double(end))));
    };
    if (mesh_.splitRows)
      tell(embedding, "rows are split behind products alone: each rank has all rows of this sum");
    const Value known = isInside(ids, table.getDimSize(0));
    auto column = dimsOf(tensorType(ids));
    column.push_back(m.dim(1));
    SmallVector<Value> addends;
    for (int64_t rank = 0; rank < copies(); ++rank) {
      Value own = m.make<SubOp>(ids, firstRow(m, rank, rows, idType));
      Value elsewhere = m.make<LogicalAndOp>(known, m.make<LogicalNotOp>(isInside(own, rows)));
      own = m.make<SelectOp>(elsewhere, m.scalar(idType, 0), own);
      Value found = m.make<EmbeddingOp>(own, pieceOf.on(rank), positions, embedding.getScale());
      addends.push_back(m.make<SelectOp>(m.reshape(elsewhere, column),
                                         m.scalar(table.getElementType(), 0), found));
    }
    placed_[embedding.getY()] = {{}, {sum(m.loc, addends)}};
  }
  // Of a rank's piece of a table: a number in simulation, else every rank takes its own.
  Value firstRow(OpMaker& m, int64_t rank, int64_t rows, Type type) {
    if (mesh_.simulate) return m.scalar(type, double(rank * rows));
    const Value ranks = m.iota({m.dim(mesh_.ranks)}, 0, type);
    return ownPiece(m.make<MulOp>(ranks, m.scalar(type, double(rows))), {0, mesh_.ranks});
  }

  //===--- pieces and wholes ----------------------------------------------------------------===//

  Value sum(Location loc, ArrayRef<Value> addends) {
    if (!mesh_.simulate)
      return AllReduceOp::create(b_, loc, addends[0], Combine::sum, mesh_.axis,
                                 uint64_t(mesh_.ranks));
    Type element = tensorType(addends[0]).getElementType();
    Type wide = isa<FloatType>(element) ? computeType(element) : element;
    auto to = [&](Value v, Type type) -> Value {
      if (tensorType(v).getElementType() == type) return v;
      return CastOp::create(b_, loc, v, TypeAttr::get(type));
    };
    Value y = to(addends[0], wide);
    for (Value addend : addends.drop_front()) y = AddOp::create(b_, loc, y, to(addend, wide));
    return to(y, element);
  }

  // The sum on every rank, or each rank's rows of it.
  Placed summed(Location loc, ArrayRef<Value> addends, const std::optional<Cut>& rows) {
    return rows ? scatter(loc, addends, *rows) : Placed{{}, {sum(loc, addends)}};
  }

  // Each rank's piece of the sum.
  Placed scatter(Location loc, ArrayRef<Value> addends, const Cut& cut) {
    if (!mesh_.simulate)
      return {cut,
              {ReduceScatterOp::create(b_, loc, addends[0], Combine::sum, uint64_t(cut.axis),
                                       mesh_.axis, uint64_t(mesh_.ranks), sizeOf(cut.part))}};
    OpMaker m(b_, loc);
    const Value all = withPadding(m, sum(loc, addends), cut);
    Placed p{cut, {}};
    for (int64_t rank = 0; rank < mesh_.ranks; ++rank) p.at.push_back(box(all, cut, rank));
    return p;
  }

  Value whole(Value v, Location loc) {
    const Placed& p = placed_[v];
    if (p.cut.isWhole()) return p.at[0];
    Value& gathered = whole_[v];
    if (gathered) return gathered;
    OpMaker m(b_, loc);
    const Cut cut = alongOneGroup(p.cut);
    auto piece = [&](int64_t rank) { return inGroups(m, p.on(rank), p.cut); };
    if (mesh_.simulate) {
      SmallVector<Value> one;  // of each piece
      for (int64_t i = 0; i < cut.parts; ++i) one.push_back(piece(i * mesh_.ranks / cut.parts));
      gathered = m.make<ConcatOp>(one, number(cut.axis));
      gathered = withoutPadding(m, gathered, cut);
    } else {
      gathered = m.make<AllGatherOp>(piece(0), number(cut.axis), number(cut.parts), axisName(),
                                     number(mesh_.ranks), sizeOf(cut.whole));
    }
    return whole_[v] = p.cut.groups == 1 ? gathered : m.reshape(gathered, dimsOf(tensorType(v)));
  }

  // An axis of several groups becomes two, of which the second is cut.
  static Cut alongOneGroup(const Cut& cut) {
    return cut.groups == 1 ? cut : Cut{cut.axis + 1, cut.parts};
  }
  // What collectives say of parts that need not be equal; null for others.
  DimsAttr sizeOf(StringAttr dim) {
    return dim ? DimsAttr::get(module_.getContext(), {dim}) : DimsAttr();
  }
  static Value inGroups(OpMaker& m, Value v, const Cut& cut) {
    if (cut.groups == 1) return v;
    auto type = tensorType(v);
    auto dims = dimsOf(type);
    auto axis = dims.begin() + cut.axis;
    *axis = m.dim(cut.groups);
    dims.insert(axis + 1, m.dim(type.getDimSize(cut.axis) / cut.groups));
    return m.reshape(v, dims);
  }

  Placed pieces(Value v, const Cut& cut) {
    if (auto it = placed_.find(v); it != placed_.end() && it->second.cut == cut) return it->second;
    if (isLoadedWeight(v) && !cut.isPadded())
      if (std::optional<Placed> p = weightPieces(v, cut)) return *p;
    if (auto exchanged = alongOther(v, cut)) return *exchanged;
    OpMaker m(b_, v.getLoc());
    Value all = inGroups(m, whole(v, v.getLoc()), cut);
    if (mesh_.simulate) all = withPadding(m, all, cut);
    const auto dims = dimsOf(pieceType(tensorType(v), cut));
    Placed p{cut, {}};
    for (int64_t rank = 0; rank < copies(); ++rank) {
      const Cut own = alongOneGroup(cut);
      Value piece = mesh_.simulate ? box(all, own, rank) : ownPiece(all, own);
      p.at.push_back(cut.groups == 1 ? piece : m.reshape(piece, dims));
    }
    return p;
  }
  // Pieces along one axis of what the ranks hold in pieces along another: none needs the whole.
  std::optional<Placed> alongOther(Value v, const Cut& cut) {
    const auto it = placed_.find(v);
    auto isOfEach = [&](const Cut& c) {
      return c.parts == mesh_.ranks && c.groups == 1 && !c.isPadded();
    };
    if (mesh_.simulate || it == placed_.end() || it->second.cut.isWhole() || whole_.count(v) ||
        !isOfEach(it->second.cut) || !isOfEach(cut) || it->second.cut.axis == cut.axis)
      return std::nullopt;
    return Placed{
        cut,
        {AllToAllOp::create(b_, v.getLoc(), it->second.on(0), uint64_t(cut.axis),
                            uint64_t(it->second.cut.axis), mesh_.axis, uint64_t(mesh_.ranks))}};
  }
  Value ownPiece(Value v, const Cut& cut) {
    return AllSliceOp::create(b_, v.getLoc(), v, number(cut.axis), number(cut.parts), axisName(),
                              number(mesh_.ranks), sizeOf(cut.part));
  }
  Value box(Value v, const Cut& cut, int64_t rank) {
    MLIRContext* c = module_.getContext();
    if (isOfHalfBytes(v)) return inBytes(v, [&](Value bytes) { return box(bytes, cut, rank); });
    auto type = pieceType(tensorType(v), cut);
    SmallVector<StringAttr> starts(size_t(type.getRank()), dimAttr(c, DimExpr(0)));
    starts[size_t(cut.axis)] =
        dimAttr(c, DimExpr(cut.pieceOf(rank, mesh_.ranks)) * *dimExprOf(type, cut.axis));
    return SliceOp::create(b_, v.getLoc(), v, DimsAttr::get(c, starts),
                           DimsAttr::get(c, dimsOf(type)),
                           b_.getDenseI64ArrayAttr(SmallVector<int64_t>(starts.size(), 1)));
  }

  // Half bytes have no address: slices are taken of whole ones.
  static bool isOfHalfBytes(Value v) { return isPacked(*dtypeOf(tensorType(v).getElementType())); }
  Value inBytes(Value v, llvm::function_ref<Value(Value)> sliced) {
    OpMaker m(b_, v.getLoc());
    const Type element = tensorType(v).getElementType();
    const Type byte = IntegerType::get(
        module_.getContext(), 8,
        element.isUnsignedInteger() ? IntegerType::Unsigned : IntegerType::Signless);
    return m.cast(sliced(m.cast(v, byte)), element);
  }
  // What splitMergedLinears takes of a weight, for those who read it whole.
  void sliceHalfBytes(SliceOp slice) {
    auto ofBytes = [&](Value bytes) -> Value {
      return SliceOp::create(b_, slice.getLoc(), bytes, slice.getStarts(), slice.getSizes(),
                             slice.getStridesAttr());
    };
    placed_[slice.getY()] = {{}, {inBytes(whole(slice.getX(), slice.getLoc()), ofBytes)}};
  }

  // Pieces of a weight, or of what is made of weights alone, so that a rank reads its own only.
  // Nothing where an op between the weight and the value has no rule.
  std::optional<Placed> weightPieces(Value v, const Cut& cut) {
    return pieces_.of({v, cut}, [&] { return makeWeightPieces(v, cut); });
  }
  std::optional<Placed> makeWeightPieces(Value v, const Cut& cut) {
    Operation* op = v.getDefiningOp();
    if (auto weight = dyn_cast<WeightOp>(op)) return pieceOfWeight(v, weight, {}, cut);
    if (auto slice = dyn_cast<SliceOp>(op))
      if (auto weight = slice.getX().getDefiningOp<WeightOp>())
        if (auto start = startAlong(slice, cut.axis)) return pieceOfWeight(v, weight, start, cut);
    const std::optional<OpCuts> cuts = cutsOfResult(op, cast<OpResult>(v).getResultNumber(), cut);
    if (!cuts) return std::nullopt;
    const Placed before = placed_[v];
    inPieces(op, *cuts);
    const Placed made = placed_[v];
    placed_[v] = before;  // others may want it whole, or cut along another axis
    return made;
  }

  // A slice of a weight along one axis, of which no more is read.
  std::optional<Placed> partOfWeight(SliceOp slice) {
    auto weight = slice.getX().getDefiningOp<WeightOp>();
    if (!weight || tensorType(slice.getY()) == tensorType(slice.getX())) return std::nullopt;
    for (int64_t axis = 0; axis < tensorType(slice.getY()).getRank(); ++axis)
      if (auto start = startAlong(slice, axis))
        if (auto part = pieceOfWeight(slice.getY(), weight, start, {axis, 1}))
          return Placed{{}, part->at};
    return std::nullopt;
  }

  // Of a weight, or of what a slice takes of it from `start` on.
  std::optional<Placed> pieceOfWeight(Value v, WeightOp weight, std::optional<int64_t> start,
                                      const Cut& cut) {
    if (mesh_.simulate || weight.getOf() || (start && cut.groups > 1)) return std::nullopt;
    std::string name = weight.getName().str() + "@" + std::to_string(cut.axis);
    IntegerAttr groups, begin, extent;
    if (cut.groups > 1) {
      groups = number(cut.groups);
      name += "x" + std::to_string(cut.groups);
    }
    if (start) {
      begin = number(*start);
      extent = number(tensorType(weight.getY()).getDimSize(cut.axis));
      name += "[" + std::to_string(*start) + ":" +
              std::to_string(*start + tensorType(v).getDimSize(cut.axis)) + "]";
    }
    name += "/" + std::to_string(cut.parts);
    return Placed{cut,
                  {WeightOp::create(b_, v.getLoc(), pieceType(tensorType(v), cut),
                                    b_.getStringAttr(name), weight.getNameAttr(), number(cut.axis),
                                    number(cut.parts), groups, begin, extent)}};
  }

  ModuleOp module_;
  const Mesh& mesh_;
  const CutsByHand& byHand_;
  ShardPlan plan_;
  PaddedRows rows_;
  OpBuilder b_;
  llvm::DenseMap<Value, Placed> placed_;               // by the value of the graph as it was
  llvm::DenseMap<Value, SmallVector<Value>> addends_;  // each rank's, of sums that come later
  llvm::DenseMap<Value, Value> whole_;                 // what was gathered
  AskedOnce<std::optional<Placed>, std::pair<Value, Cut>> pieces_;  // of weights
};

}  // namespace

void shard(ModuleOp module, const Mesh& asked) {
  const Mesh mesh = meshOf(module, asked);
  if (mesh.ranks < 1)
    throw Error(ErrorCode::InvalidArgument, "mesh: expected at least one rank along '" + mesh.axis +
                                                "', got " + std::to_string(mesh.ranks));
  if (mesh.ranks == 1) return dropSaidOfRanks(module);
  const NumericsMode mode = numericsModeOf(module.getContext());
  if (!mayWeaken(Contract::SumSplit, mode))
    throw Error(ErrorCode::InvalidArgument, "a mesh of " + std::to_string(mesh.ranks) +
                                                " ranks: " + refusalOf(Contract::SumSplit, mode) +
                                                "; take another mode");
  const CutsByHand byHand(module, mesh);
  splitMergedLinears(module, byHand);
  Partitioner(module, mesh, byHand).run();
}

namespace {

struct ShardPass : impl::ShardPassBase<ShardPass> {
  using Base::Base;
  void runOnOperation() final {
    try {
      shard(getOperation(),
            {.axis = axis, .ranks = ranks, .simulate = simulate, .splitRows = splitRows});
    } catch (const Error& e) {
      getOperation().emitError(e.what());
      signalPassFailure();
    }
  }
};

}  // namespace

}  // namespace lathe
