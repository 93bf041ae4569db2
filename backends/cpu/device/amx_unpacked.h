// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights in few bits for many rows on tiles (amx_rows.h): a part of a panel is unpacked into the
// L2 cache while the part before is multiplied.
#include "backends/cpu/device/amx_quantized.h"
#include "backends/cpu/device/amx_rows.h"

namespace lathe::cpu {
namespace {

using PanelOf = QuantizedPanel (*)(const AmxQuantizedGemm& g, int64_t panel, float* tail);
inline QuantizedPanel panelOf(const AmxQuantizedGemm& g, int64_t panel, float* tail) {
  return g.panel(panel, tail);
}

constexpr size_t kPartBytes = size_t(kOuterBlocks * kPanelBlockBytes);  // of an unpacked panel

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

// What multiplyRows asks of `Panels`, but for its sums. `Form` derives from it and gives:
//   kDepth: elements of a K block, which takes 64 bytes of a column's words
//   load(part, numbers): what it needs to know of the part's panel
//   unpack(part, q, k, column, to): a line of words at q, of 16 columns and the elements from k on,
//     as rows of a tile
// `Numbers` are scales, zero points and a `tail` for those of the last panel.
template <class Form, class Numbers>
class UnpackedParts {
 public:
  UnpackedParts(const AmxQuantizedGemm& g, PanelOf panelOf, char* memory)
      : g_(g), halves_(g.shape.bits() == 4), scaled_(g.shape.scales() > 1), panelOf_(panelOf) {
    for (int i = 0; i < 2; ++i) parts_[i].to = memory + size_t(i) * kPartBytes;
  }

  const char* part(PanelPart what) {
    Part& next = parts_[1 - now_];
    const bool prepared = next.what.panel == what.panel && next.what.k0 == what.k0;
    if (!prepared || next.lines == 0) begin(next, what);
    while (!inPlace(next) && next.done < next.lines) line(next);
    now_ = 1 - now_;
    return next.at;
  }
  PairPlaces places() const { return inPlace(current()) ? PairPlaces{} : kTileByTile; }
  void prepare(PanelPart what, int64_t steps) {
    Part& next = parts_[1 - now_];
    begin(next, what);
    aStep_ = (next.lines + steps - 1) / steps;
  }
  void step() {
    Part& next = parts_[1 - now_];
    const int64_t end = next.done + aStep_ < next.lines ? next.done + aStep_ : next.lines;
    if (inPlace(next)) {
      for (; next.done < end; ++next.done) _mm_prefetch(next.at + next.done * 64, _MM_HINT_T1);
      return;
    }
    while (next.done < end) line(next);
  }

 protected:
  struct Part {
    PanelPart what;
    QuantizedPanel from;
    const Numbers* numbers = nullptr;
    char* to = nullptr;
    const char* at = nullptr;     // where its tiles lie: unpacked, or in the packed weights
    int64_t lines = 0, done = 0;  // of words that are unpacked, or fetched
  };
  // The part that is multiplied.
  const Part& current() const { return parts_[now_]; }

  const AmxQuantizedGemm& g_;
  const bool halves_, scaled_;

 private:
  static bool inPlace(const Part& part) { return part.at != part.to; }
  const Form& form() const { return static_cast<const Form&>(*this); }

  void begin(Part& part, PanelPart what) {
    // Sums of the panel before the one that is multiplied may still wait for their scales.
    Numbers& numbers = numbers_[turn_++ % 3];
    part.what = what;
    part.numbers = &numbers;
    part.done = 0;
    part.lines = what.count * (halves_ ? Form::kDepth / 2 : Form::kDepth);
    if (what.count == 0) return;
    part.from = panelOf_(g_, what.panel, numbers.tail);
    part.at = part.to;
    form().load(part, numbers);
  }
  void line(Part& part) const {
    constexpr int64_t kElementBytes = 64 / Form::kDepth;
    const int64_t elements = halves_ ? 8 : 4, group = part.done / 4, column = part.done % 4;
    ++part.done;
    const int64_t k = part.what.k0 * Form::kDepth + group * elements;
    const char* q = part.from.q + (halves_ ? k * 32 : k * 64) + column * 64;
    const int64_t rows = elements * kElementBytes / 4, row = group * rows;
    char* to = part.to + kTileByTile.at(row, column);
    if (k >= part.from.depth) {
      for (int64_t i = 0; i < rows; ++i) _mm512_storeu_si512(to + i * 64, _mm512_setzero_si512());
      return;
    }
    _mm_prefetch(q + kAhead, _MM_HINT_T0);
    form().unpack(part, q, k, int(column), to);
  }

  static constexpr int64_t kAhead = 1024;

  const PanelOf panelOf_;
  Part parts_[2];
  int now_ = 0;
  int64_t aStep_ = 0;  // lines
  int64_t turn_ = 0;
  Numbers numbers_[3];
};

LATHE_ISA_END

}  // namespace
}  // namespace lathe::cpu
