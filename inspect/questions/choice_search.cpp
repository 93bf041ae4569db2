// SPDX-License-Identifier: Apache-2.0
#include "inspect/questions/choice_search.h"

#include <map>

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr int kRuns = 100;

// Elements of a result of a choosing op that take other values.
using Forced = std::map<std::tuple<size_t, unsigned, int64_t>, double>;

class Search {
 public:
  Search(const std::vector<Operation*>& choosing, const TrialResults& got, const Allowance& allowed,
         const RunChoosing& run, const Deviation& plain)
      : choosing_(choosing), got_(got), allowed_(allowed), run_(run), best_(plain) {}

  Deviation search() {
    now_ = runWith({});
    for (bool better = true; better && !best_.within;) {
      better = tried(shownByResults());
      for (size_t n = 0; n < choosing_.size() && !best_.within; ++n) better |= tryOthers(n);
    }
    return best_;
  }

 private:
  ChosenRun runWith(const Forced& forced) const {
    return run_([&](size_t number, OpChoice& choice) {
      for (auto& array : choice.taken) array = array.clone();
      auto at = forced.lower_bound({number, 0, 0}), end = forced.lower_bound({number + 1, 0, 0});
      for (; at != end; ++at)
        choice.taken[std::get<1>(at->first)].set(std::get<2>(at->first), at->second);
    });
  }

  // Goes on with these choices if that is nearer to what was got.
  bool tried(const Forced& forced) {
    if (forced == forced_ || runs_ == kRuns) return false;
    ++runs_;
    ChosenRun run = runWith(forced);
    const Deviation d = deviationOf(got_, run.results, allowed_.results);
    if (d.beyond >= best_.beyond) return false;
    best_ = d;
    forced_ = forced;
    now_ = std::move(run);
    return true;
  }

  // Not that of an entry point that is not run, nor one between exact numbers.
  bool isOpen(size_t n) const {
    return !now_.choices[n].taken.empty() &&
           llvm::any_of(allowed_.operands[n], [](double allowed) { return allowed > 0; });
  }

  static void add(Forced& forced, size_t number, const OtherChoice& other) {
    for (const OtherElement& e : other) forced[{number, e.result, e.element}] = e.value;
  }

  // The choices that results which are nothing else show.
  Forced shownByResults() {
    Forced forced = forced_;
    for (size_t n = 0; n < choosing_.size(); ++n) {
      if (!isOpen(n)) continue;
      OpChoice choice = now_.choices[n];
      for (Array& array : choice.taken) array = array.clone();
      const std::vector<const Array*> shown = resultsOf(choosing_[n], choice);
      if (llvm::all_of(shown, [](const Array* a) { return !a; })) continue;
      const OtherChoices others(choosing_[n], choice, allowed_.operands[n]);
      for (int64_t row = 0; row < others.rows(); ++row)
        takeShown(n, row, others, choice, shown, forced);
    }
    return forced;
  }
  void takeShown(size_t n, int64_t row, const OtherChoices& others, OpChoice& choice,
                 const std::vector<const Array*>& shown, Forced& forced) {
    auto isShown = [&](const OtherElement& e) {
      const Array* a = shown[e.result];
      return a && a->at(e.element) == e.value && choice.taken[e.result].at(e.element) != e.value;
    };
    // A swap brings one place in order at least; what was got may be no order at all.
    const Shape& shape = choice.taken.back().shape();
    for (int64_t places = shape.empty() ? 1 : shape.back() + 1; places > 0; --places) {
      const std::vector<OtherChoice> all = others.of(row);
      auto other =
          llvm::find_if(all, [&](const OtherChoice& o) { return llvm::any_of(o, isShown); });
      if (other == all.end()) return;
      add(forced, n, *other);
      for (const OtherElement& e : *other) choice.taken[e.result].set(e.element, e.value);
    }
  }

  // What was got for the integer results of an op; null where they are no result of the graph.
  std::vector<const Array*> resultsOf(Operation* op, const OpChoice& choice) const {
    std::vector<const Array*> arrays(op->getNumResults());
    auto f = op->getParentOfType<func::FuncOp>();
    const std::string entry = f.getName().str();
    size_t first = 0;
    while (first < got_.size() && got_[first].entry != entry) ++first;
    for (auto [i, v] : llvm::enumerate(f.getBody().front().getTerminator()->getOperands())) {
      if (v.getDefiningOp() != op || first + i >= got_.size()) continue;
      const unsigned number = cast<OpResult>(v).getResultNumber();
      const TrialResult& got = got_[first + i];
      if (!isFloat(got.dtype) && got.value.shape() == choice.taken[number].shape())
        arrays[number] = &got.value;
    }
    return arrays;
  }

  bool tryOthers(size_t n) {
    bool better = false;
    if (!isOpen(n)) return false;
    std::optional<OtherChoices> others;
    for (int64_t row = 0; runs_ < kRuns && !best_.within; ++row) {
      if (!others) others.emplace(choosing_[n], now_.choices[n], allowed_.operands[n]);
      if (row >= others->rows()) break;
      for (const OtherChoice& other : others->of(row)) {
        Forced forced = forced_;
        add(forced, n, other);
        if (!tried(forced)) continue;
        others.reset();  // of a run that is no longer the one to start from
        better = true;
        break;
      }
    }
    return better;
  }

  const std::vector<Operation*>& choosing_;
  const TrialResults& got_;
  const Allowance& allowed_;
  const RunChoosing& run_;
  Deviation best_;
  Forced forced_;
  ChosenRun now_;
  int runs_ = 0;
};

}  // namespace

Deviation comparedByChoices(const std::vector<Operation*>& choosing, const TrialResults& got,
                            const Allowance& allowed, const RunChoosing& run,
                            const Deviation& plain) {
  return Search(choosing, got, allowed, run, plain).search();
}

}  // namespace lathe
