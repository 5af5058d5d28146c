// Steps of the published GEMM tutorial for MLU270 (CambriconECO/BANGC_Gemm_Tutorial, commit f158e79), as programs for
// the card: the same plan, copy by copy. Their published times are what the model's cycles are compared with.
//
//   C[256, columns] (f16) = scale * A[256, 256] (i8) B[columns, 256] (i8) transposed
#ifndef KERNELS_LADDER_LADDER_H_
#define KERNELS_LADDER_LADDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "isa/program.h"

namespace polynao::kernels {

inline constexpr int64_t kLadderSide = 256;         // rows of A; columns of a round on a core
inline constexpr int64_t kLadderColumns = 327'680;  // of the published times

struct LadderStep {
  std::string name;         // "4_1", as in the tutorial
  std::string plan;         // one line
  double published_ms = 0;  // with kLadderColumns, gemm_result.png of the tutorial
  bool one_core = false;
};

// In the order of the tutorial.
const std::vector<LadderStep>& LadderSteps();

// The program of a step for the target's machine. Parameters: A, B, C, columns, the bits of scale (f32). Columns must
// be a multiple of kLadderSide times the cores that compute. Errors: no such step; NMEM, WMEM or SMEM too small.
absl::StatusOr<isa::Program> LadderProgram(const std::string& step, const Target& target);

}  // namespace polynao::kernels

#endif  // KERNELS_LADDER_LADDER_H_
