// SPDX-License-Identifier: Apache-2.0
#pragma once
// In how many bits a program holds the weights of its matrix products and embeddings.
#include <cstdint>
#include <string>
#include <string_view>

namespace lathe {

/// How one kind of weight is held. What is quantized has a scale for every `group` neighbours of a
/// row, rounded to bf16, or one f32 scale for a row (`group` = 0): the largest magnitude lies on
/// 127 or 7. Asymmetric groups have a zero point beside it, and the range from the least to the
/// largest value, 0 included, lies on 0 to 255 or 15.
struct WeightFormat {
  enum class Bits : uint8_t { Stored, Int8, Int4 };
  Bits bits = Bits::Stored;  ///< Stored: in the dtype that the graph gives it
  int64_t group = 0;         ///< 0, 32, 64 or 128
  bool asymmetric = false;

  bool quantizes() const { return bits != Bits::Stored; }
  bool operator==(const WeightFormat&) const = default;
};

struct WeightFormats {
  WeightFormat linear;     ///< of every linear layer but the head
  WeightFormat embedding;  ///< of embedded tables; Stored, or Int8 with a scale a row
  /// Of linear layers with as many outputs as an embedded table has rows, whose result is returned.
  WeightFormat head;
  /// What meets weights in few bits, these or those that the checkpoint holds, is rounded to 8 bits
  /// with a scale a row (`quantizes_x` of `lathe.quantized_linear`). Weakens the contract
  /// `activation-precision`.
  bool int8Activations = false;

  bool quantizesWeights() const {
    return linear.quantizes() || embedding.quantizes() || head.quantizes();
  }
  bool any() const { return quantizesWeights() || int8Activations; }
  bool operator==(const WeightFormats&) const = default;
};

/// Reads "int4", "int4:64:asymmetric" or "int8,head=stored,embedding=stored,activations=int8": a
/// format of the linear layers, then others for the embedding and the head, and that of
/// activations, `stored` or `int8`. A format of weights is `stored`, or `int8` or `int4`, the group
/// (`channel`, 32, 64 or 128; int8: channel, int4: 32 by default) and `asymmetric`. Embedding and
/// head are int8 by channel under int8 and int4. Throws Error (InvalidArgument) naming the part
/// that is none of these.
WeightFormats parseWeightFormats(std::string_view text);
/// The text that reads back as the same.
std::string textOf(const WeightFormats& formats);

}  // namespace lathe
