// SPDX-License-Identifier: Apache-2.0
// Numbers that a tensor's dtype cannot hold, and constants made of nothing.
#include <cmath>
#include <limits>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kTwo63 = 9223372036854775808.0;

Tensor of(Model& m, DType dtype) { return m.g.input("z", dtype, {m.batch, 4}); }

}  // namespace

Table scalars() {
  return {
      {"integers_times_a_half",
       [] {
         Model m;
         m.ids * 0.5;
       },
       kArgument,
       {"0.5", "i64", "cast"}},
      {"a_half_times_integers",
       [] {
         Model m;
         0.5 * m.ids;
       },
       kArgument,
       {"0.5", "i64"}},
      {"integers_plus_a_fraction",
       [] {
         Model m;
         m.ids + 300.7;
       },
       kArgument,
       {"300.7", "i64"}},
      {"integers_minus_a_fraction",
       [] {
         Model m;
         m.ids - 1e-9;
       },
       kArgument,
       {"1e-09", "i64"}},
      {"integers_by_a_fraction",
       [] {
         Model m;
         m.ids / 2.5;
       },
       kArgument,
       {"2.5", "i64"}},
      {"integers_divided_by_a_number",
       [] {
         Model m;
         m.ids / 2;
       },
       kArgument,
       {"division: expected floats, got i64", "cast to a float", "call div(a, b)"}},
      {"a_number_divided_by_integers",
       [] {
         Model m;
         1 / m.ids;
       },
       kArgument,
       {"division: expected floats, got i64", "cast to a float", "call div(a, b)"}},
      {"integers_divided_by_integers",
       [] {
         Model m;
         m.ids / m.ids;
       },
       kArgument,
       {"division: expected floats, got i64", "cast to a float", "call div(a, b)"}},
      {"integers_divided_in_place",
       [] {
         Model m;
         m.ids /= 2;
       },
       kArgument,
       {"division: expected floats, got i64", "cast to a float", "call div(a, b)"}},
      {"narrow_integers_divided",
       [] {
         Model m;
         cast(m.ids, DType::U8) / 2;
       },
       kArgument,
       {"division: expected floats, got u8", "cast to a float", "call div(a, b)"}},
      {"flags_divided",
       [] {
         Model m;
         m.flags / m.flags;
       },
       kArgument,
       {"got bool"}},
      {"integers_modulo_a_fraction",
       [] {
         Model m;
         m.ids % 0.5;
       },
       kArgument,
       {"0.5", "i64"}},
      {"modulo_of_two_dtypes",
       [] {
         Model m;
         m.ids % m.x;
       },
       kArgument,
       {"i64", "f32"}},
      {"a_power_of_a_fraction",
       [] {
         Model m;
         pow(m.ids, 0.5);
       },
       kArgument,
       {"0.5", "i64"}},
      {"the_larger_of_integers_and_a_fraction",
       [] {
         Model m;
         max(m.ids, 0.5);
       },
       kArgument,
       {"0.5", "i64"}},
      {"a_fraction_minus_integers",
       [] {
         Model m;
         2.5 - m.ids;
       },
       kArgument,
       {"2.5"}},
      {"a_fraction_by_integers",
       [] {
         Model m;
         2.5 / m.ids;
       },
       kArgument,
       {"2.5"}},
      {"integers_plus_a_googol",
       [] {
         Model m;
         m.ids + 1e300;
       },
       kArgument,
       {"1e+300", "i64"}},
      {"integers_plus_nan",
       [] {
         Model m;
         m.ids + kNan;
       },
       kArgument,
       {"nan", "i64"}},
      {"integers_plus_infinity",
       [] {
         Model m;
         m.ids + kInf;
       },
       kArgument,
       {"inf", "i64"}},
      {"integers_minus_infinity",
       [] {
         Model m;
         m.ids + -kInf;
       },
       kArgument,
       {"-inf", "i64"}},
      {"integers_plus_two_to_63",
       [] {
         Model m;
         m.ids + kTwo63;
       },
       kArgument,
       {"9223372036854775808", "i64"}},
      {"i32_plus_too_much",
       [] {
         Model m;
         of(m, DType::I32) + 4e9;
       },
       kArgument,
       {"4e+09", "i32"}},
      {"i16_plus_too_much",
       [] {
         Model m;
         of(m, DType::I16) + 32768;
       },
       kArgument,
       {"32768", "i16"}},
      {"i8_plus_too_much",
       [] {
         Model m;
         of(m, DType::I8) + 300;
       },
       kArgument,
       {"300", "i8"}},
      {"i8_minus_a_fraction",
       [] {
         Model m;
         of(m, DType::I8) - 300.7;
       },
       kArgument,
       {"300.7", "i8"}},
      {"u8_plus_less_than_zero",
       [] {
         Model m;
         of(m, DType::U8) + -1;
       },
       kArgument,
       {"-1", "u8"}},
      {"u8_plus_too_much",
       [] {
         Model m;
         of(m, DType::U8) + 256;
       },
       kArgument,
       {"256", "u8"}},
      {"scalar_like_bools_of_two",
       [] {
         Model m;
         scalarLike(m.flags, 2);
       },
       kArgument,
       {"2", "bool"}},
      {"scalar_like_bools_of_a_half",
       [] {
         Model m;
         scalarLike(m.flags, 0.5);
       },
       kArgument,
       {"0.5", "bool"}},
      {"scalar_like_integers_of_a_half",
       [] {
         Model m;
         scalarLike(m.ids, 0.5);
       },
       kArgument,
       {"0.5", "i64"}},
      {"scalar_like_bools_of_nan",
       [] {
         Model m;
         scalarLike(m.flags, kNan);
       },
       kArgument,
       {"nan", "bool"}},
      {"constant_of_a_fraction",
       [] { Graph().constant(0.5, DType::I64); },
       kArgument,
       {"0.5", "i64"}},
      {"constant_of_nan", [] { Graph().constant(kNan, DType::I32); }, kArgument, {"nan", "i32"}},
      {"constant_of_infinity", [] { Graph().constant(kInf, DType::I8); }, kArgument, {"inf", "i8"}},
      {"constant_of_a_googol",
       [] { Graph().constant(1e300, DType::I16); },
       kArgument,
       {"1e+300", "i16"}},
      {"constant_beyond_a_byte",
       [] { Graph().constant(300.7, DType::U8); },
       kArgument,
       {"300.7", "u8"}},
      {"constant_that_is_no_bool",
       [] { Graph().constant(2, DType::Bool); },
       kArgument,
       {"2", "bool"}},
      {"constant_of_an_undefined_array",
       [] { Graph().constant(Array()); },
       kArgument,
       {"constant", "undefined Array"}},
      {"constant_of_a_moved_array",
       [] {
         Array a(DType::F32, {2});
         Array b = std::move(a);
         Graph().constant(a);
       },
       kArgument,
       {"undefined Array"}},
      {"attribute_of_an_undefined_array",
       [] {
         Graph g;
         g.recorder()->emit("lathe.constant", {}, {{"value", Array()}},
                            std::source_location::current());
       },
       kArgument,
       {"undefined Array"}},
  };
}

}  // namespace lathe::misuse
