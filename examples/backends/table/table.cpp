// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace table {
namespace {

// NaN if either is NaN, unlike std::fmax.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

// exp of a negative number only: it cannot overflow.
double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

// The remainder with the sign of b.
double flooredMod(double a, double b) {
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

using X = const double*;
constexpr Function kFunctions[] = {
    {"neg", 1, [](X x) { return -x[0]; }},
    {"abs", 1, [](X x) { return std::abs(x[0]); }},
    {"sign", 1, [](X x) { return std::isnan(x[0]) ? x[0] : double((x[0] > 0) - (x[0] < 0)); }},
    {"exp", 1, [](X x) { return std::exp(x[0]); }},
    {"log", 1, [](X x) { return std::log(x[0]); }},
    {"sqrt", 1, [](X x) { return std::sqrt(x[0]); }},
    {"rsqrt", 1, [](X x) { return 1 / std::sqrt(x[0]); }},
    {"reciprocal", 1, [](X x) { return 1 / x[0]; }},
    {"sin", 1, [](X x) { return std::sin(x[0]); }},
    {"cos", 1, [](X x) { return std::cos(x[0]); }},
    {"tanh", 1, [](X x) { return std::tanh(x[0]); }},
    {"erf", 1, [](X x) { return std::erf(x[0]); }},
    {"sigmoid", 1, [](X x) { return sigmoid(x[0]); }},
    {"floor", 1, [](X x) { return std::floor(x[0]); }},
    {"ceil", 1, [](X x) { return std::ceil(x[0]); }},
    {"round", 1, [](X x) { return std::nearbyint(x[0]); }},
    {"cast", 1, [](X x) { return x[0]; }},
    {"is_nan", 1, [](X x) { return double(std::isnan(x[0])); }},
    {"logical_not", 1, [](X x) { return 1 - x[0]; }},
    {"logical_and", 2, [](X x) { return x[0] * x[1]; }},
    {"logical_or", 2, [](X x) { return larger(x[0], x[1]); }},
    {"add", 2, [](X x) { return x[0] + x[1]; }},
    {"sub", 2, [](X x) { return x[0] - x[1]; }},
    {"mul", 2, [](X x) { return x[0] * x[1]; }},
    {"div", 2, [](X x) { return x[0] / x[1]; }},
    {"max", 2, [](X x) { return larger(x[0], x[1]); }},
    {"min", 2, [](X x) { return smaller(x[0], x[1]); }},
    {"pow", 2, [](X x) { return std::pow(x[0], x[1]); }},
    {"mod", 2, [](X x) { return flooredMod(x[0], x[1]); }},
    {"compare_eq", 2, [](X x) { return double(x[0] == x[1]); }},
    {"compare_ne", 2, [](X x) { return double(x[0] != x[1]); }},
    {"compare_lt", 2, [](X x) { return double(x[0] < x[1]); }},
    {"compare_le", 2, [](X x) { return double(x[0] <= x[1]); }},
    {"compare_gt", 2, [](X x) { return double(x[0] > x[1]); }},
    {"compare_ge", 2, [](X x) { return double(x[0] >= x[1]); }},
    {"select", 3, [](X x) { return x[0] != 0 ? x[1] : x[2]; }},
};

constexpr auto kAdd = [](double total, double x) { return total + x; };
constexpr Fold kFolds[] = {
    {"reduce_sum", 0, kAdd},
    {"reduce_mean", 0, kAdd},
    {"reduce_prod", 1, [](double total, double x) { return total * x; }},
    {"reduce_max", -INFINITY, larger},
    {"reduce_min", INFINITY, smaller},
    {"reduce_any", 0, larger},
    {"reduce_all", 1, smaller},
};

template <class Row, size_t n>
const Row* find(const Row (&rows)[n], std::string_view kind) {
  auto row = std::find_if(rows, rows + n, [&](const Row& r) { return r.kind == kind; });
  return row == rows + n ? nullptr : row;
}

}  // namespace

const Function* findFunction(std::string_view kind) { return find(kFunctions, kind); }
const Fold* findFold(std::string_view kind) { return find(kFolds, kind); }

}  // namespace table
