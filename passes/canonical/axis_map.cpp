// SPDX-License-Identifier: Apache-2.0
#include "passes/canonical/axis_map.h"

using namespace mlir;

namespace lathe {

AxisMap::AxisMap(RankedTensorType source)
    : context_(source.getContext()), sourceDims_(dimsOf(source)) {
  for (StringAttr d : sourceDims_) {
    known_ &= bool(d);
    source_.push_back(atoms_.size());
    result_.push_back({atoms_.size()});
    atoms_.push_back({d ? exprOf(d) : DimExpr(0)});
  }
}

void AxisMap::transpose(ArrayRef<int64_t> permutation) {
  auto had = result_;
  for (auto [i, p] : llvm::enumerate(permutation)) result_[i] = had[size_t(p)];
}

bool AxisMap::reshape(ArrayRef<StringAttr> dims) {
  if (!known_) return false;
  SmallVector<size_t> queue;
  for (auto& axis : result_) queue.append(axis.begin(), axis.end());
  result_.clear();
  size_t next = 0;
  const DimExpr one(1), zero(0);
  auto isUnit = [&](size_t i) { return i < queue.size() && atoms_[queue[i]].size == one; };
  for (StringAttr d : dims) {
    if (!d) return false;
    auto& axis = result_.emplace_back();
    DimExpr rest = exprOf(d);
    if (rest == one) {
      if (isUnit(next)) axis.push_back(queue[next++]);
      continue;
    }
    while (!(rest == one)) {
      if (next == queue.size()) return false;
      size_t atom = queue[next];
      const DimExpr size = atoms_[atom].size;
      if (size == zero || rest == zero) return false;
      if (size == one) {
        atoms_[atom].dropped = true;
        ++next;
      } else if (auto quotient = rest.dividedBy(size)) {
        axis.push_back(atom);
        rest = *quotient;
        ++next;
      } else if (auto inner = size.dividedBy(rest)) {
        // The atom is cut: its leading part ends this axis.
        size_t tail = atoms_.size();
        atoms_.push_back({*inner});
        atoms_[atom].size = rest;
        source_.insert(llvm::find(source_, atom) + 1, tail);
        axis.push_back(atom);
        queue[next] = tail;
        rest = one;
      } else {
        return false;
      }
    }
  }
  for (; next < queue.size(); ++next) {
    if (!isUnit(next)) return false;
    atoms_[queue[next]].dropped = true;
  }
  return true;
}

StringAttr AxisMap::dimOfAtoms(ArrayRef<size_t> atoms) const {
  DimExpr product(1);
  for (size_t a : atoms) product = product * atoms_[a].size;
  return dimAttr(context_, product);
}

AxisMap::Spelling AxisMap::spelling() const {
  Spelling spelling;
  SmallVector<StringAttr> resultDims;
  for (auto& axis : result_) resultDims.push_back(dimOfAtoms(axis));

  // Atoms that stay neighbours inside one axis are one block, named by its first atom.
  std::vector<size_t> follower(atoms_.size(), SIZE_MAX);
  SmallVector<size_t> kept;
  for (size_t a : source_)
    if (!atoms_[a].dropped) kept.push_back(a);
  for (size_t i = 0; i + 1 < kept.size(); ++i) follower[kept[i]] = kept[i + 1];
  SmallVector<SmallVector<size_t, 2>> blocks;  // in the order of the result
  bool merges = false, inserts = false;
  for (auto& axis : result_) {
    size_t before = blocks.size();
    for (auto [i, a] : llvm::enumerate(axis)) {
      if (i && follower[axis[i - 1]] == a)
        blocks.back().push_back(a);
      else
        blocks.push_back({a});
    }
    merges |= blocks.size() > before + 1;
    inserts |= axis.empty();
  }
  auto inOrder = [&](bool units) {
    size_t last = 0;
    for (auto& block : blocks) {
      if (!units && dimOfAtoms(block).getValue() == "1") continue;
      size_t at = size_t(llvm::find(source_, block.front()) - source_.begin()) + 1;
      if (at < last) return false;
      last = at;
    }
    return true;
  };
  if (inOrder(false)) {
    if (ArrayRef(resultDims) != ArrayRef(sourceDims_)) spelling.first = resultDims;
    return spelling;
  }
  // The source as the transpose wants it. A dropped 1 stays until the last reshape if there is one
  // anyway and none before.
  auto middle = [&](bool keepDropped) {
    SmallVector<std::pair<StringAttr, int64_t>> dims;  // and the block, -1 for a dropped 1
    for (size_t a : source_) {
      if (atoms_[a].dropped) {
        if (keepDropped) dims.emplace_back(dimOfAtoms({a}), -1);
        continue;
      }
      for (auto [i, block] : llvm::enumerate(blocks))
        if (block.front() == a) dims.emplace_back(dimOfAtoms(block), int64_t(i));
    }
    return dims;
  };
  auto dimsOnly = [](ArrayRef<std::pair<StringAttr, int64_t>> dims) {
    SmallVector<StringAttr> only;
    for (auto& d : dims) only.push_back(d.first);
    return only;
  };
  auto mid = middle(merges || inserts);
  if (ArrayRef(dimsOnly(mid)) != ArrayRef(sourceDims_)) mid = middle(false);
  auto midDims = dimsOnly(mid);
  if (ArrayRef(midDims) != ArrayRef(sourceDims_)) spelling.first = midDims;
  SmallVector<int64_t> permutation;
  auto take = [&](size_t i) { permutation.push_back(int64_t(i)); };
  // Dropped 1s at the ends of the source come first, the others in front of the axis behind them:
  // heads of a batch of one turn as those of any batch do, and kernels run along the last axis,
  // which no 1 shall be.
  size_t start = 0, end = mid.size();
  while (start < end && mid[start].second < 0) take(start++);
  while (end > start && mid[end - 1].second < 0) take(--end);
  for (size_t block = 0; block < blocks.size(); ++block)
    for (size_t i = start; i < end; ++i) {
      if (mid[i].second != int64_t(block)) continue;
      size_t first = i;
      while (first > start && mid[first - 1].second < 0) --first;
      for (size_t at = first; at <= i; ++at) take(at);
    }
  SmallVector<StringAttr> turned;
  for (int64_t i : permutation) turned.push_back(mid[size_t(i)].first);
  spelling.permutation = permutation;
  if (ArrayRef(turned) != ArrayRef(resultDims)) spelling.last = resultDims;
  return spelling;
}

}  // namespace lathe
