#include "compiler/codegen/llvm/elementary.h"

#include <iterator>

#include "base/check.h"
#include "llvm/IR/Intrinsics.h"

namespace polynao::codegen {
namespace {

using llvm::Value;

// q of e^r - 1 = r q(r) for |r| <= ln 2 / 2, from r^0 on: the polynomial of degree 9 whose largest relative error is
// the least (Remez exchange), 1.2e-15, with coefficients rounded to f64. Degree 8 has 8e-14: then 24 values of exp and
// 70 of tanh are rounded to the wrong f32.
constexpr double kQuotient[] = {0x1.0000000000005p+0,  0x1.fffffffffffbp-2,   0x1.5555555550e36p-3,
                                0x1.5555555565b7ap-5,  0x1.11111123a2c36p-7,  0x1.6c16c135740ddp-10,
                                0x1.a0199526a9a55p-13, 0x1.a01a7374201b4p-16, 0x1.72e0a584ae5b4p-19,
                                0x1.27e4f140e173ap-22};
constexpr double kLog2E = 0x1.71547652b82fep+0;
// ln 2 in two parts. The first one has 43 bits, so that its product with an integer below 2^10 is exact.
constexpr double kLn2 = 0x1.62e42fefa38p-1, kLn2Rest = 0x1.ef35793c7673p-45;
// A number of that size has no bits behind the point: added to it, a small one is rounded to an integer, halves to the
// even neighbour. The last 11 bits of the sum n + kRound are those of n + 1023, the exponent of 2^n.
constexpr double kRound = 0x1.8p52 + 1023;
constexpr int kMantissaBits = 52;

// Beyond these arguments the results in f32 do not change any more: e^89 is infinity, e^-104 is 0, tanh(10) is 1.
constexpr double kExpMost = 89, kExpLeast = -104, kTanhMost = 10;

class Elementary {
 public:
  Elementary(llvm::IRBuilder<>& b, bool native_fma) : b_(b), native_fma_(native_fma) {}

  Value* Exp(Value* x) {
    const Parts e = ExpOf(Wide(Limited(x, kExpLeast, kExpMost)));
    return MulAdd(e.power, e.rest, e.power);
  }

  // 1 / (1 + e^-x).
  Value* Sigmoid(Value* x) {
    const Parts e = ExpOf(Wide(Limited(b_.CreateFNeg(x), kExpLeast, -kExpLeast)));
    Value* one = Number(e.power, 1);
    return b_.CreateFDiv(one, b_.CreateFAdd(one, MulAdd(e.power, e.rest, e.power)));
  }

  // d / (d + 2) of d = e^(2x) - 1, which is 2^n - 1 and what is left, so that nothing cancels for small x.
  Value* Tanh(Value* x) {
    Value* limited = Wide(Limited(x, -kTanhMost, kTanhMost));
    const Parts e = ExpOf(b_.CreateFAdd(limited, limited));
    // Less 1 - 2^n, and not plus 2^n - 1, so that -0 - 0 stays -0.
    Value* d = MulAdd(e.power, e.rest, b_.CreateFNeg(b_.CreateFSub(Number(e.power, 1), e.power)));
    return b_.CreateFDiv(d, b_.CreateFAdd(d, Number(d, 2)));
  }

 private:
  // e^x = power + power * rest, with a power of two.
  struct Parts {
    Value* power;
    Value* rest;
  };

  // x = n ln 2 + r with an integer n; then e^x = 2^n e^r. The power of a NaN is anything, its rest NaN.
  Parts ExpOf(Value* x) {
    Value* sum = MulAdd(x, Number(x, kLog2E), Number(x, kRound));
    Value* n = b_.CreateFSub(sum, Number(x, kRound));
    Value* r = MulAdd(n, Number(x, -kLn2), x);
    r = MulAdd(n, Number(x, -kLn2Rest), r);
    Value* q = Number(x, kQuotient[std::size(kQuotient) - 1]);
    for (size_t i = std::size(kQuotient) - 1; i-- > 0;) q = MulAdd(q, r, Number(x, kQuotient[i]));
    Value* bits = b_.CreateBitCast(sum, x->getType()->getWithNewType(b_.getInt64Ty()));
    Value* power = b_.CreateBitCast(b_.CreateShl(bits, kMantissaBits), x->getType());
    return {power, b_.CreateFMul(r, q)};
  }

  // a * b + c, rounded once or twice: the results in f32 are the same.
  Value* MulAdd(Value* a, Value* b, Value* c) {
    if (!native_fma_) return b_.CreateFAdd(b_.CreateFMul(a, b), c);
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  }

  // A NaN stays one. Of floats, of which a vector has twice as many as of doubles.
  Value* Limited(Value* x, double least, double most) {
    Value* low = Number(x, least);
    Value* high = Number(x, most);
    x = b_.CreateSelect(b_.CreateFCmpOLT(x, low), low, x);
    return b_.CreateSelect(b_.CreateFCmpOLT(high, x), high, x);
  }

  Value* Wide(Value* x) {
    return b_.CreateFPExt(x, x->getType()->getWithNewType(b_.getDoubleTy()));
  }

  static Value* Number(Value* like, double number) {
    return llvm::ConstantFP::get(like->getType(), number);
  }

  llvm::IRBuilder<>& b_;
  const bool native_fma_;
};

}  // namespace

bool IsElementary(std::string_view name) {
  return name == "exp" || name == "sigmoid" || name == "tanh";
}

Value* EmitElementary(llvm::IRBuilder<>& b, std::string_view name, Value* x, bool native_fma) {
  // In another order, n would be 0: x + kRound - kRound is x.
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.clearFastMathFlags();
  Elementary elementary(b, native_fma);
  if (name == "exp") return elementary.Exp(x);
  if (name == "sigmoid") return elementary.Sigmoid(x);
  POLYNAO_CHECK(name == "tanh") << name;
  return elementary.Tanh(x);
}

}  // namespace polynao::codegen
