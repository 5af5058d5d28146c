#include "compiler/ir/intrinsics.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace polynao::ir {

double FusedMultiplyAdd(Type type, double x, double y, double z) {
  if (type == Type::kF64) return std::fma(x, y, z);
  const double product = x * y;
  const double sum = product + z;
  if (!std::isfinite(sum)) return sum;
  // The error of the sum (Knuth, TAOCP 2, 4.2.2).
  const double part = sum - product;
  const double error = (product - (sum - part)) + (z - part);
  const auto bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || bits % 2 == 1) return sum;
  const bool is_larger = (error > 0) == (sum > 0);
  return std::bit_cast<double>(is_larger ? bits + 1 : bits - 1);
}

namespace {

constexpr PureIntrinsic kIntrinsics[] = {
#define V(name, arity, accuracy, evaluation)                           \
  {#name, arity, Accuracy::accuracy,                                   \
   []([[maybe_unused]] Type type, double x, [[maybe_unused]] double y, \
      [[maybe_unused]] double z) -> double { return evaluation; }},
    POLYNAO_PURE_INTRINSICS(V)
#undef V
};

}  // namespace

absl::Span<const PureIntrinsic> PureIntrinsics() { return kIntrinsics; }

const PureIntrinsic* FindPureIntrinsic(std::string_view name) {
  for (const PureIntrinsic& info : kIntrinsics) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

bool HasVectorForm(const PureIntrinsic& intrinsic, Type type) {
  if (intrinsic.name == "fma") return type == Type::kF32 || type == Type::kF64;
  if (intrinsic.accuracy == Accuracy::kExact || intrinsic.name == "rsqrt") return true;
  const bool is_polynomial =
      intrinsic.name == "exp" || intrinsic.name == "sigmoid" || intrinsic.name == "tanh";
  return is_polynomial && type != Type::kF64;
}

}  // namespace polynao::ir
