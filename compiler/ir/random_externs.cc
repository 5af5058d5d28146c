#include "compiler/ir/random_externs.h"

#include <string_view>

#include "base/check.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::ir {
namespace {

// The function calls each of them, which keeps them.
constexpr std::string_view kText = R"(
extern pure func pure_f32(x: f32, y: f32) -> f32 = x * 0.5 + y
extern pure func pure_f16(x: f16) -> f16 = max(x, 0.25) * x
extern pure func pure_i32(x: i32) -> i32 = (x ^ 21) * 3
extern pure func pure_u8(x: u8, y: f64) -> u8 = y < 1.0 ? x : x + 1
extern pure func pure_i1(x: f32) -> i1 = x < 0.5
extern pure func pure_twice(x: i32) -> i32 = pure_i32(x) + pure_i32(3)
extern reads func reads_f32(A: f32[1] in, x: f32) -> f32 = A[0] * x
extern reads func reads_i32(A: i32[1] in) -> i32 = A[0] & 255
extern reads func reads_two(A: f64[1] in, B: i8[1] in) -> f64 = A[0] + cast(f64, B[0])
extern writes func writes_f32(A: f32[1], x: f32) { A[0] = A[0] * 0.5 + x }
extern writes func writes_i32(A: i32[1] out, B: f32[1] in) { A[0] = cast(i32, B[0]) }
extern opaque func opaque_f32(A: f32[1]) { for (i, 0, 2) A[0] = A[0] + 1 }
extern opaque func opaque_i32(A: i32[1] out, n: i32) { if (n < 3) A[0] = n }

func all(A: f32[1], B: i32[1], C: f64[1], D: i8[1], E: u8[1], F: f16[1]) {
  A[0] = pure_f32(A[0], 1)
  F[0] = pure_f16(F[0])
  B[0] = pure_twice(pure_i1(A[0]) ? 1 : reads_i32(&B[0]))
  C[0] = reads_two(&C[0], &D[0]) + cast(f64, reads_f32(&A[0], 1))
  E[0] = pure_u8(E[0], C[0])
  writes_f32(&A[0], 1)
  writes_i32(&B[0], &A[0])
  opaque_f32(&A[0])
  opaque_i32(&B[0], 1)
}
)";

}  // namespace

std::vector<const ExternNode*> RandomExterns(const std::shared_ptr<Context>& context) {
  const absl::StatusOr<Function> all = ParseFunction(kText, "random_externs", context);
  POLYNAO_CHECK(all.ok()) << all.status();
  return ExternsOf(*all);
}

}  // namespace polynao::ir
