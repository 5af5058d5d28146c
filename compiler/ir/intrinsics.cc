#include "compiler/ir/intrinsics.h"

#include <cmath>

namespace polynao::ir {
namespace {

constexpr PureIntrinsic kIntrinsics[] = {
#define V(name, arity, accuracy, evaluation) \
  {#name, arity, Accuracy::accuracy,         \
   [](double x, [[maybe_unused]] double y) -> double { return evaluation; }},
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

}  // namespace polynao::ir
