// SPDX-License-Identifier: Apache-2.0
// Arrays: nothing in them, too much asked of them, other dtypes than they hold.
#include <limits>

#include "lathe/runtime/npy.h"
#include "lathe/runtime/safetensors.h"
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
Array three() { return Array::fromFloats(std::vector<float>{1, 2, 3}, {3}); }
const std::vector<std::string> kUndefined = {"undefined Array"};

Table elements() {
  return {
      {"at_past_the_end", [] { three().at(3); }, kArgument, {"element 3", "f32[3]", "3 elements"}},
      {"at_far_past_the_end",
       [] { three().at(kMost); },
       kArgument,
       {"element 9223372036854775807"}},
      {"at_below_zero", [] { three().at(-1); }, kArgument, {"element -1", "f32[3]"}},
      {"at_of_the_smallest",
       [] { three().at(INT64_MIN); },
       kArgument,
       {"element -9223372036854775808"}},
      {"at_of_nothing",
       [] { Array(DType::F32, {0}).at(0); },
       kArgument,
       {"element 0", "0 elements"}},
      {"at_of_undefined", [] { Array().at(0); }, kArgument, kUndefined},
      {"set_past_the_end", [] { three().set(3, 1); }, kArgument, {"element 3"}},
      {"set_below_zero", [] { three().set(-1, 1); }, kArgument, {"element -1"}},
      {"set_of_nothing",
       [] { Array(DType::I8, {2, 0}).set(0, 1); },
       kArgument,
       {"element 0", "i8[2, 0]"}},
      {"set_of_undefined", [] { Array().set(0, 1); }, kArgument, kUndefined},
      {"set_nan_into_integers",
       [] { Array(DType::I64, {1}).set(0, std::numeric_limits<double>::quiet_NaN()); },
       kArgument,
       {"nan", "i64"}},
      {"set_infinity_into_integers",
       [] { Array(DType::I32, {1}).set(0, std::numeric_limits<double>::infinity()); },
       kArgument,
       {"inf", "i32"}},
      {"set_a_googol_into_integers",
       [] { Array(DType::I64, {1}).set(0, 1e300); },
       kArgument,
       {"1e+300", "i64"}},
      {"set_too_much_into_a_byte",
       [] { Array(DType::U8, {1}).set(0, 256); },
       kArgument,
       {"256", "u8"}},
      {"set_less_than_zero_into_a_byte",
       [] { Array(DType::U8, {1}).set(0, -1); },
       kArgument,
       {"-1", "u8"}},
      {"set_too_much_into_i8", [] { Array(DType::I8, {1}).set(0, 128); }, kArgument, {"128", "i8"}},
      {"set_too_much_into_i16",
       [] { Array(DType::I16, {1}).set(0, -32769); },
       kArgument,
       {"-32769", "i16"}},
      {"set_two_to_63",
       [] { Array(DType::I64, {1}).set(0, 9223372036854775808.0); },
       kArgument,
       {"i64"}},
      {"floats_read_as_integers",
       [] { three().as<int64_t>(); },
       kArgument,
       {"f32[3]", "as 64-bit integers"}},
      {"floats_read_as_doubles", [] { three().as<double>(); }, kArgument, {"f32[3]", "as f64"}},
      {"integers_read_as_floats",
       [] { Array(DType::I64, {2}).as<float>(); },
       kArgument,
       {"i64[2]", "as f32"}},
      {"bf16_read_as_floats",
       [] { Array(DType::BF16, {2}).as<float>(); },
       kArgument,
       {"bf16[2]", "as f32"}},
      {"i16_read_as_bytes", [] { Array(DType::I16, {2}).as<uint8_t>(); }, kArgument, {"i16[2]"}},
      {"i8_read_as_i32", [] { Array(DType::I8, {2}).as<int32_t>(); }, kArgument, {"i8[2]"}},
      {"undefined_read_as_floats", [] { Array().as<float>(); }, kArgument, kUndefined},
      {"constant_floats_read_as_integers",
       [] {
         const Array a = three();
         a.as<int32_t>();
       },
       kArgument,
       {"f32[3]"}},
      {"undefined_clone", [] { Array().clone(); }, kArgument, kUndefined},
      {"undefined_to_bf16", [] { Array().to(DType::BF16); }, kArgument, kUndefined},
      {"undefined_to_its_own", [] { Array().to(DType::F32); }, kArgument, kUndefined},
      {"undefined_reshaped", [] { Array().reshaped({0}); }, kArgument, kUndefined},
      {"reshaped_to_another_count",
       [] { three().reshaped({4}); },
       kArgument,
       {"cannot view f32[3] as f32[4]"}},
      {"reshaped_to_a_negative_size",
       [] { three().reshaped({-3}); },
       kArgument,
       {"negative dim -3"}},
      {"reshaped_to_sizes_that_wrap",
       [] { three().reshaped({kMost, kMost}); },
       kArgument,
       {"the product of the dims overflows"}},
      {"nan_to_integers",
       [] {
         Array a(DType::F32, {1});
         a.set(0, std::numeric_limits<double>::quiet_NaN());
         a.to(DType::I32);
       },
       kArgument,
       {"nan", "i32"}},
      {"too_much_to_i8", [] { three().to(DType(99)); }, kArgument, {"99 is no dtype"}},
  };
}

Table made() {
  return {
      {"array_of_no_dtype", [] { Array(DType(77), {2}); }, kArgument, {"77 is no dtype"}},
      {"array_of_the_first_beyond", [] { Array(DType(12), {2}); }, kArgument, {"12 is no dtype"}},
      {"view_of_no_dtype",
       [] {
         float f = 0;
         Array(DType(77), {1}, &f, nullptr);
       },
       kArgument,
       {"77 is no dtype"}},
      {"view_of_nothing",
       [] { Array(DType::F32, {4}, nullptr, nullptr); },
       kArgument,
       {"f32[4]", "null"}},
      {"name_of_no_dtype", [] { (void)nameOf(DType(200)); }, kArgument, {"200 is no dtype"}},
      {"size_of_no_dtype", [] { (void)sizeOf(DType(200)); }, kArgument, {"200 is no dtype"}},
      {"kind_of_no_dtype", [] { (void)isFloat(DType(12)); }, kArgument, {"12 is no dtype"}},
      {"array_of_a_negative_size",
       [] { Array(DType::F32, {2, -2}); },
       kArgument,
       {"negative dim -2"}},
      {"array_of_a_negative_size_and_zero",
       [] { Array(DType::F32, {0, -2}); },
       kArgument,
       {"negative dim -2"}},
      {"array_whose_size_overflows",
       [] { Array(DType::F32, {int64_t(1) << 40, int64_t(1) << 40}); },
       kArgument,
       {"the product of the dims overflows"}},
      {"array_whose_bytes_overflow", [] { Array(DType::F64, {kMost}); }, kArgument, {"overflows"}},
      {"array_beyond_memory",
       [] { Array(DType::F32, {int64_t(1) << 46}); },
       kMemory,
       {"f32[70368744177664]", "281474976710"}},
      {"array_beyond_address_space",
       [] { Array(DType::F64, {int64_t(1) << 58}); },
       kMemory,
       {"no memory for f64[288230376151711744]"}},
      {"floats_of_another_count",
       [] { Array::fromFloats(std::vector<float>{1, 2, 3}, {2, 2}); },
       kArgument,
       {"got 3 values for f32[2, 2]"}},
      {"floats_for_a_huge_shape",
       [] { Array::fromFloats(std::vector<float>{1}, {int64_t(1) << 46}); },
       kArgument,
       {"got 1 values for f32[70368744177664]"}},
      {"no_floats_for_a_scalar",
       [] { Array::fromFloats({}, {}); },
       kArgument,
       {"got 0 values for f32[]"}},
      {"floats_of_a_negative_size",
       [] { Array::fromFloats(std::vector<float>{1}, {-1}); },
       kArgument,
       {"negative dim -1"}},
      {"integers_of_another_count",
       [] { Array::fromInts(std::vector<int64_t>{1, 2}, {3}); },
       kArgument,
       {"got 2 values for i64[3]"}},
      {"count_of_a_negative_size",
       [] { elementCount(Shape{2, -1}); },
       kArgument,
       {"negative dim -1"}},
      {"count_that_overflows", [] { elementCount(Shape{kMost, 2}); }, kArgument, {"overflows"}},
      {"undefined_saved_as_npy", [] { saveNpy("/tmp/lathe_misuse.npy", Array()); }, kArgument,
       kUndefined},
      {"bf16_saved_as_npy",
       [] { saveNpy("/tmp/lathe_misuse.npy", Array(DType::BF16, {2})); },
       kUnsupported,
       {"bf16"}},
      {"undefined_saved_as_safetensors",
       [] { saveSafetensors("/tmp/lathe_misuse.safetensors", {{"w", Array()}}); },
       kArgument,
       {"\"w\"", "undefined"}},
      {"bytes_as_a_name_of_safetensors",
       [] { saveSafetensors("/tmp/lathe_misuse.safetensors", {{"\xff", three()}}); },
       kArgument,
       {"UTF-8"}},
      {"npy_into_no_folder",
       [] { saveNpy("/nonexistent/folder/a.npy", three()); },
       kIo,
       {"/nonexistent/folder"}},
      {"npy_that_is_missing", [] { loadNpy("/nonexistent/a.npy"); }, kIo, {"/nonexistent/a.npy"}},
      {"npy_that_is_a_folder", [] { loadNpy("/tmp"); }, kFile, {"/tmp", "regular file"}},
      {"npy_of_no_bytes", [] { parseNpy({}, "a.npy"); }, kFile, {"a.npy"}},
      {"safetensors_of_no_bytes",
       [] { parseSafetensorsHeader({}, "a.safetensors"); },
       kFile,
       {"a.safetensors"}},
  };
}

}  // namespace

Table arrays() {
  Table rows = elements();
  Table more = made();
  rows.insert(rows.end(), more.begin(), more.end());
  return blamingNobody(std::move(rows));
}

}  // namespace lathe::misuse
