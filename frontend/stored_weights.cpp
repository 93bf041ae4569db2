// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "frontend/graph_impl.h"
#include "ir/op_builder.h"
#include "lathe/frontend/families/pretrained.h"
#include "lathe/runtime/error.h"
#include "runtime/stored_weight.h"

using namespace mlir;

namespace lathe {
namespace {

Type byteOf(Type element) {
  return IntegerType::get(
      element.getContext(), 8,
      element.isUnsignedInteger() ? IntegerType::Unsigned : IntegerType::Signless);
}

// A choice of rows of a table.
bool choosesRows(Operation* user, Value table) {
  auto gather = dyn_cast<GatherOp>(user);
  return gather && gather.getX() == table && gather.getAxis() == 0;
}

// The products x W^T of a weight that is only cast and transposed before; fails where it has other
// uses.
LogicalResult collectProducts(Value w, bool isTransposed, SmallVectorImpl<MatmulOp>& products) {
  for (OpOperand& use : w.getUses()) {
    Operation* user = use.getOwner();
    auto transpose = dyn_cast<TransposeOp>(user);
    if (isa<CastOp>(user) || (transpose && transpose.getPermutation() == ArrayRef<int64_t>{1, 0})) {
      if (failed(collectProducts(user->getResult(0), isTransposed != bool(transpose), products)))
        return failure();
    } else if (auto product = dyn_cast<MatmulOp>(user);
               product && isTransposed && use.getOperandNumber() == 1) {
      products.push_back(product);
    } else {
      return failure();
    }
  }
  return success();
}

class ReadAsStored {
 public:
  explicit ReadAsStored(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
    for (const LoraUpdate& update : checkpoint.updates()) updates_.emplace(update.weight, &update);
  }

  void run(ModuleOp module) {
    SmallVector<WeightOp> weights;
    module.walk([&](WeightOp op) { weights.push_back(op); });
    for (WeightOp op : weights) {
      op.setName(nameIn(checkpoint_, op.getName()));
      rewrite(op);
    }
    for (auto& [name, update] : updates_)
      if (!updated_.contains(name))
        throw Error(ErrorCode::InvalidFile, checkpoint_.path() + ": the model does not read " +
                                                name + ", which a LoRA folder updates");
  }

 private:
  void rewrite(WeightOp op) {
    const std::string name = op.getName().str();
    if (llvm::is_contained(checkpoint_.replaced(), name)) refuseHead(op, "replaces");
    const CheckpointTensor* stored = checkpoint_.entry(name);
    if (!stored || stored->shape != tensorType(op.getY()).getShape().vec()) return;
    OpBuilder builder(op);
    OpMaker m(builder, op.getLoc());
    const Type element = tensorType(op.getY()).getElementType();
    const bool isUpdated = updates_.contains(name);
    if (!isUpdated && !stored->blocks &&
        (!stored->dtype || !isFloat(*stored->dtype) ||
         elementTypeOf(builder.getContext(), *stored->dtype) == element))
      return;
    if (!isUpdated) {
      SmallVector<Operation*> users(op.getY().getUsers());
      for (Operation* user : users)
        if (choosesRows(user, op.getY()) && !(stored->blocks && stored->blocks->ordered))
          chooseRows(cast<GatherOp>(user), op, *stored, element);
    }
    if (!op.getY().use_empty()) {
      Value w = isUpdated ? updated(m, op, *stored) : widened(m, op, *stored, element);
      w = m.cast(w, element);
      op.getY().replaceAllUsesWith(w);
    }
    op.erase();
  }

  Value weight(OpMaker& m, const CheckpointTensor& tensor) {
    SmallVector<StringAttr> dims;
    for (int64_t size : tensor.shape) dims.push_back(m.dim(DimExpr(size)));
    return m.make<WeightOp>(tensorOf(dims, elementTypeOf(m.b.getContext(), *tensor.dtype)),
                            StringRef(tensor.name));
  }
  Value part(OpMaker& m, const CheckpointTensor& whole, const char* suffix) {
    const CheckpointTensor* tensor = checkpoint_.entry(whole.name + suffix);
    return tensor ? weight(m, *tensor) : Value();
  }

  // Rows are widened after they are chosen: the values are the same, and the table stays small.
  void chooseRows(GatherOp gather, WeightOp table, const CheckpointTensor& stored, Type element) {
    OpBuilder builder(gather), atTable(table);
    OpMaker m(builder, gather.getLoc()), t(atTable, table.getLoc());
    auto rows = [&](Value v) { return m.make<GatherOp>(v, gather.getIndices(), int64_t(0)); };
    Value y;
    if (stored.blocks) {
      Value q = part(t, stored, ".q"), zero = part(t, stored, ".zero");
      const Type small = tensorType(q).getElementType();
      // Half bytes have no address: rows are chosen of whole ones.
      if (isPacked(stored.blocks->dtype)) q = t.cast(q, byteOf(small));
      y = dequantize(m, rows(q), rows(part(t, stored, ".scale")), zero ? rows(zero) : Value(),
                     tensorType(gather.getY()).getRank() - 1, stored.blocks->block, element);
    } else {
      y = m.cast(rows(weight(t, stored)), element);
    }
    gather.getY().replaceAllUsesWith(y);
    gather.erase();
  }

  static Value dequantize(OpMaker& m, Value q, Value scale, Value zero, int64_t axis, int64_t block,
                          Type element) {
    return m.make<DequantizeOp>(q, scale, zero, m.b.getI64IntegerAttr(axis),
                                m.b.getI64IntegerAttr(block), TypeAttr::get(element));
  }

  // In its own dtype where it is stored as it is used, else in `element`.
  Value widened(OpMaker& m, WeightOp op, const CheckpointTensor& stored, Type element) {
    if (!stored.blocks) return weight(m, stored);
    SmallVector<MatmulOp> products;
    if (stored.blocks->ordered) {
      if (failed(collectProducts(op.getY(), false, products)))
        return weight(m, stored);  // decoded when it is read
      Value order = part(m, stored, ".order");
      for (MatmulOp product : products) {
        OpBuilder builder(product);
        OpMaker p(builder, product.getLoc());
        const int64_t last = tensorType(product.getA()).getRank() - 1;
        product.getAMutable().assign(p.make<GatherOp>(product.getA(), order, last));
      }
    }
    // A cast of all of it comes with the op: what is rounded once is the product itself.
    Type wanted = element;
    for (Operation* user : op.getY().getUsers()) {
      auto cast = dyn_cast<CastOp>(user);
      if (!cast || (wanted != element && cast.getDtype() != wanted)) {
        wanted = element;
        break;
      }
      wanted = cast.getDtype();
    }
    Value y = dequantize(m, part(m, stored, ".q"), part(m, stored, ".scale"),
                         part(m, stored, ".zero"), 1, stored.blocks->block, wanted);
    if (wanted == element) return y;
    SmallVector<Operation*> users(op.getY().getUsers());
    for (Operation* user : users) {
      user->getResult(0).replaceAllUsesWith(y);
      user->erase();
    }
    return y;
  }

  // What a folder does to a table is not meant for the head that shares it.
  void refuseHead(WeightOp op, const char* does) const {
    auto chooses = [&](Operation* user) { return choosesRows(user, op.getY()); };
    if (llvm::any_of(op.getY().getUsers(), chooses) && !llvm::all_of(op.getY().getUsers(), chooses))
      throw Error(ErrorCode::Unsupported,
                  checkpoint_.path() + ": a LoRA folder " + does + " " + op.getName().str() +
                      ", which is the model's head, too: expected one of a model whose "
                      "head is a weight of its own");
  }

  // Of a square weight, which its shape does not tell: whether products take it as it lies.
  static std::optional<bool> liesInOut(WeightOp op) {
    const auto shape = tensorType(op.getY()).getShape();
    SmallVector<MatmulOp> products;
    if (shape[0] != shape[1]) return std::nullopt;
    if (succeeded(collectProducts(op.getY(), false, products))) return false;
    if (succeeded(collectProducts(op.getY(), true, products))) return true;
    return std::nullopt;
  }

  // In f32.
  Value updated(OpMaker& m, WeightOp op, const CheckpointTensor& stored) {
    const Type f32 = m.b.getF32Type();
    Value w;
    if (stored.blocks && !stored.blocks->ordered)
      w = dequantize(m, part(m, stored, ".q"), part(m, stored, ".scale"), part(m, stored, ".zero"),
                     1, stored.blocks->block, f32);
    else
      w = m.cast(weight(m, stored), f32);
    auto [begin, end] = updates_.equal_range(stored.name);
    for (auto it = begin; it != end; ++it) {
      const LoraUpdate& update = *it->second;
      if (update.isTable) refuseHead(op, "updates");
      const bool isTransposed = update.isTable || liesInOut(op).value_or(update.isTransposed);
      if (isTransposed && !update.magnitude.empty())
        throw Error(ErrorCode::Unsupported, checkpoint_.path() +
                                                ": a LoRA folder has magnitudes "
                                                "(use_dora) of " +
                                                stored.name + ", which lies [inputs, outputs]");
      auto matrix = [&](const std::string& name) {
        return m.cast(weight(m, *checkpoint_.entry(name)), f32);
      };
      Value product = m.make<MatmulOp>(matrix(update.b), matrix(update.a));
      if (isTransposed) product = m.transpose(product, {1, 0});
      w = m.make<AddOp>(w, m.make<MulOp>(product, m.scalar(f32, update.scale)));
      if (!update.magnitude.empty()) {
        const auto type = tensorType(w);
        Value squares = m.make<ReduceSumOp>(m.make<MulOp>(w, w), ArrayRef<int64_t>{1}, true);
        Value lengths = m.reshape(m.cast(weight(m, *checkpoint_.entry(update.magnitude)), f32),
                                  {dimOf(type, 0), m.dim(DimExpr(1))});
        w = m.make<MulOp>(w, m.make<DivOp>(lengths, m.make<SqrtOp>(squares)));
      }
    }
    updated_.insert(stored.name);
    return w;
  }

  const Checkpoint& checkpoint_;
  std::multimap<std::string, const LoraUpdate*> updates_;
  std::set<std::string> updated_;
};

}  // namespace

std::string nameIn(const Checkpoint& checkpoint, std::string_view name) {
  return nameAmong(name, [&](std::string_view n) { return checkpoint.entry(n) != nullptr; });
}

void readAsStored(Graph& graph, const Checkpoint& checkpoint) {
  const auto lock = graph.impl().lock();
  ReadAsStored(checkpoint).run(graph.impl().finished());
}

}  // namespace lathe
