// Loops that are instructions of the processor (isa/processor), found by their meaning.
#ifndef COMPILER_CODEGEN_LLVM_DOT_LOOP_H_
#define COMPILER_CODEGEN_LLVM_DOT_LOOP_H_

#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"
#include "isa/processor/processor.h"

namespace polynao::codegen {

//   vectorize (lane, 0, 32) { for (q, 0, 4) {
//     S[i, lane] = S[i, lane] + cast(i32, A[4 * k + q]) * cast(i32, B[k, lane, q]) } }       twice vpdpbusd.512
struct DotLoop {
  const isa::ProcessorInstruction* instruction = nullptr;
  ir::Stmt store;  // the innermost one, which stores the sums
  ir::Expr a, b;   // the loads of the operands
  ir::Var lane, q;
  int64_t first_q = 0;     // where the operands' first elements are
  int64_t iterations = 0;  // of lanes
};

// `loop` as one of the instructions; `instruction` is null if it is none. The loop runs a multiple of the lanes, the
// operands are in memory as the meaning has them, and the sums are of another buffer than these.
DotLoop FindDotLoop(ir::Stmt loop,
                    const std::vector<const isa::ProcessorInstruction*>& instructions,
                    arith::Analyzer& analyzer);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_DOT_LOOP_H_
