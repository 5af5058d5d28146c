// The parser, verifier and printer on damaged .nir files. POLYNAO_RANDOM_CASES=100000 runs that many,
// POLYNAO_SEED=7 other ones.
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "gtest/gtest.h"
#include "testing/fuzz.h"

namespace polynao::ir {
namespace {

constexpr char kEveryForm[] =
    "@doc(\"x \\\"y\\\"\") @cost(vector.start + n / 2) @assert(n % 64 == 0)\n"
    "func f(A: f16[4, n] in, B: f32[64] @nmem out, n: i64, C: u64[2], x: u32) -> () {\n"
    "  thread (tid, 4) { allocate L: f32[8] let x: i64 = n * 2 + 1\n"
    "    for (i, 0, 8) { L[i] = select(x < 3 && i != 2, cast(f32, A[i / 2, n]), -1.5e3) }\n"
    "    pragma \"k\" (1) { add.f32(&B[0], &L[0], 64) } if (n > 2) B[1] = exp(L[0]) }\n"
    "  thread (t = \"blockIdx.x\", 1, 3) { vectorize (j: u8, 0, 4) { B[j] = pow(2.0, B[j]) } }\n"
    "  C[0] = ~(C[1] << 3 | 18446744073709551615) ^ C[0] >> 1 & cast(u64, x)\n"
    "  { allocate(D, 56) unroll (k, 0, 2) D[k] = (let y: f32 = D[k] in y * y) }\n"
    "  if (!(n < 3)) { B[0] = f32(inf) } else { parallel (i, 0, 2) { B[i] = -B[i] } }\n"
    "  pragma=\"TADD\" for (i: int32, 0, 4) B[i] = i == 2 ? nan : min(B[i], max(B[0], -0.0))\n"
    "}\n";

// OK, an error in the text, or an Internal error if what the parser accepts does not survive.
absl::Status ParseAndPrint(const std::string& input) {
  ASSIGN_OR_RETURN(const Module module, ParseModule(input, "m.nir"));
  for (const Function& f : module.functions) {
    // Not well-formed, by rules that text alone does not show.
    if (!Verify(f).ok()) continue;
    const std::string printed = Print(f);
    const absl::StatusOr<Function> again = ParseFunction(printed, "printed.nir");
    if (!again.ok()) return absl::InternalError(StrCat(again.status().message(), "\n", printed));
    if (!StructurallyEqual(f, *again)) {
      return absl::InternalError(StrCat("reads back as another function:\n", printed));
    }
    if (Print(*again) != printed) {
      return absl::InternalError(StrCat("prints otherwise when read back:\n", printed));
    }
  }
  return absl::OkStatus();
}

TEST(TextFuzzTest, MutatedFiles) {
  FuzzTarget target;
  target.corpus = {kEveryForm};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    target.corpus.push_back(Print(RandomProgram(seed, {.repetition = seed % 2 == 0 ? 0 : 20})));
  }
  target.parse = ParseAndPrint;
  target.place = R"(m\.nir:\d+:\d+: )";
  const FuzzResult result = Fuzz(target, FuzzCases(4000), FuzzSeed());
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.accepted, result.refused / 100);
  EXPECT_GT(result.refused, result.accepted / 100);
  RecordProperty("accepted", static_cast<int>(result.accepted));
}

}  // namespace
}  // namespace polynao::ir
