// Which loops become vector code: found on loop IR, before anything is emitted.
#ifndef COMPILER_CODEGEN_LLVM_VECTOR_LOOP_H_
#define COMPILER_CODEGEN_LLVM_VECTOR_LOOP_H_

#include <cstdint>
#include <optional>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear_form.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// The longest step, in elements, that vectors are put together from and taken apart to; longer ones gather.
inline constexpr int64_t kMostStride = 4;

struct VectorLoop {
  int64_t bytes = 1;  // of the widest value that an iteration computes, besides indices
  bool reads_what_it_stores = false;  // so that no iteration may run twice
  // All lanes together load and store neighbours of 32 bits or more, or one such element: AVX2 has masks for these.
  bool has_word_runs = true;
};

// `loop`, if its iterations can run side by side, statement by statement: no iteration uses an element that another one
// stores, each store goes along a row by at most kMostStride elements, and all operations have vector forms (no
// function of f16, bf16 or of the C library, cast to f16 or bf16 but from f32, division by what is not constant,
// allocation or parallel loop). `analyzer` knows what holds around the loop.
std::optional<VectorLoop> FindVectorLoop(ir::Stmt loop, const ir::Aliases& aliases,
                                         arith::Analyzer& analyzer);

// Whether LLVM may run `loop` as vectors without the comparisons of addresses that this needs at run time. LLVM 19 and
// older do where a loop is told to be vectorized and needs more than 128 of them (vectorize-memory-check-threshold): it
// gives up on the checks, not on the vectors. Counted are all pairs of accesses to a stored buffer (or to several that
// may overlap), once constant loops inside are unrolled, if the distance of any two is no constant.
bool MayLoseChecks(ir::Stmt loop, const ir::Aliases& aliases, arith::Analyzer& analyzer);

// The coefficient of `var` in `form`; nothing if it is inside of another atom: 2 in 2 i + j, nothing in i / 2.
std::optional<int64_t> SlopeIn(const arith::LinearForm& form, ir::Var var);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_VECTOR_LOOP_H_
