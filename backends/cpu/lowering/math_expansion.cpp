// SPDX-License-Identifier: Apache-2.0
// Range reduction x = n ln 2 + r and a polynomial of exp(r) - 1; the coefficients and the two-part
// ln 2 are those of the Cephes library's expf (S. Moshier).
#include "backends/cpu/lowering/expansions.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

struct Floats {
  ScalarBuilder& k;
  Type type, ints;
  explicit Floats(ScalarBuilder& builder, Value x)
      : k(builder), type(x.getType()), ints(withElementOf(type, builder.b.getI32Type())) {}
  Value c(double v) { return k.number(type, v); }
  Value i(int64_t v) { return k.integer(ints, v); }
  Value add(Value x, Value y) { return k.make<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return k.make<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return k.make<arith::MulFOp>(x, y); }
  Value fma(Value x, Value y, Value z) { return k.make<math::FmaOp>(x, y, z); }
  Value bits(Value x) { return k.make<arith::BitcastOp>(ints, x); }
  // A comparison with a NaN is false, so a NaN passes.
  Value atMost(Value x, double bound) {
    return k.make<arith::SelectOp>(k.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, x, c(bound)),
                                   c(bound), x);
  }
  // 2^n by the exponent field.
  Value power2(Value n) {
    Value field = k.make<arith::ShLIOp>(k.make<arith::AddIOp>(n, i(127)), i(23));
    return k.make<arith::BitcastOp>(type, field);
  }
};

struct Reduced {
  Value expm1;  // exp(r) - 1
  Value n;      // i32
};

Reduced reduceRange(Floats& f, Value x) {
  // Adding 1.5 * 2^23 rounds to an integer, which the low bits then hold: no conversion that is
  // undefined for NaN.
  Value magic = f.c(12582912.0);
  Value t = f.fma(x, f.c(1.44269504088896341), magic);
  Value n = f.sub(t, magic);
  Value r = f.fma(n, f.c(2.12194440e-4), f.fma(n, f.c(-0.693359375), x));
  Value p = f.c(1.9875691500e-4);
  for (double c :
       {1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1})
    p = f.fma(p, r, f.c(c));
  Value expm1 = f.fma(f.mul(r, r), p, r);
  return {expm1, f.k.make<arith::SubIOp>(f.bits(t), f.bits(magic))};
}

}  // namespace

Value expandExp(ScalarBuilder& k, Value x, const Tier& tier) {
  Floats f(k, x);
  // What rounds to 0 must not get there by an underflow, which costs a microcode assist: masked
  // entries of a softmax are all -inf.
  Value gone = k.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, f.c(-104));
  auto kept = [&](Value y) -> Value { return k.make<arith::SelectOp>(gone, f.c(0), y); };
  Reduced e = reduceRange(f, f.atMost(kept(x), 89));
  Value p = f.add(e.expm1, f.c(1));
  int64_t width = widthOf(f.type);
  if (tier.avx512 && width >= 16) {
    // vscalefps rounds a denormal result once.
    std::string name =
        "llvm.ldexp.v" + std::to_string(width) + "f32.v" + std::to_string(width) + "i32";
    return kept(k.make<LLVM::CallIntrinsicOp>(f.type, k.b.getStringAttr(name), ValueRange{p, e.n})
                    .getResult(0));
  }
  // Two exact factors, as 2^n itself may be out of range; only the last product rounds.
  Value half = k.make<arith::ShRSIOp>(e.n, f.i(1));
  Value rest = k.make<arith::SubIOp>(e.n, half);
  return kept(f.mul(f.mul(p, f.power2(half)), f.power2(rest)));
}

Value expandTanh(ScalarBuilder& k, Value x) {
  // tanh |x| = (e^2|x| - 1) / (e^2|x| + 1), by expm1 so that small x keep their digits.
  Floats f(k, x);
  Value t = f.atMost(k.make<math::AbsFOp>(x), 10);
  Reduced e = reduceRange(f, f.add(t, t));
  Value scale = f.power2(e.n);
  Value em = f.fma(e.expm1, scale, f.sub(scale, f.c(1)));
  return k.make<math::CopySignOp>(k.make<arith::DivFOp>(em, f.add(em, f.c(2))), x);
}

}  // namespace lathe::cpu
