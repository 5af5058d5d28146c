// Random tile loops for the tests of pipeline.
#ifndef COMPILER_PASSES_PIPELINE_PROGRAM_FOR_TEST_H_
#define COMPILER_PASSES_PIPELINE_PROGRAM_FOR_TEST_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace polynao {

// The text of a function
//
//   func f(A: f16[4000] in, B: f16[4000] in, C: f16[4000] out, E: f16[4000] out, n: i32)
//
// whose 2 x 2 cores each run one loop of `iterations` (text; at most 9; may use n, cid and tid)
// over tiles of 64 elements with double buffers: tiles filled before a partial load, loads from GMEM
// and SMEM, computation, in place or not, stores to GMEM and SMEM; under ifs, lets and inner loops,
// with allocations at the start or in between. It runs in the interpreter and, compiled, on the
// machine "unit".
std::string RandomPipelineProgram(uint64_t seed, std::string_view iterations);

}  // namespace polynao

#endif  // COMPILER_PASSES_PIPELINE_PROGRAM_FOR_TEST_H_
