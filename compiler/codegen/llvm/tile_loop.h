// Loops that are instructions of the processor for tiles of sums (isa/processor), found by their meaning.
#ifndef COMPILER_CODEGEN_LLVM_TILE_LOOP_H_
#define COMPILER_CODEGEN_LLVM_TILE_LOOP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/ir.h"
#include "isa/processor/processor.h"

namespace polynao::codegen {

// Tiles of sums side by side, to which each iteration of a loop adds products:
//
//   for (s, 0, n)                                            the loop over sums, which tiles stay in registers for
//     for (r, 0, 2) for (c, 0, 2)                            positions of tiles
//       for (row, 0, 16) vectorize (lane, 0, 16) for (k, 0, 16) for (q, 0, 4)                         the meaning
//         S[r * 16 + row, c * 16 + lane] = S[..] + cast(i32, A[r * 16 + row, s * 64 + k * 4 + q])
//                                               * cast(i32, B[s * 16 + k, c * 16 + lane, q])
struct TileLoop {
  const isa::ProcessorInstruction* instruction = nullptr;
  ir::Stmt sum_loop = {};  // null: there is none
  std::vector<ir::Stmt> positions;
  std::vector<int64_t>
      offsets;  // of the tiles of sums from the first one, in the order of PositionsOf
  std::vector<ir::Stmt>
      own;         // the meaning's loops: over rows, lanes, steps, and products of a step
  ir::Stmt store;  // the innermost one, which stores the sums
  ir::Expr a, b;   // the loads of the operands
  // Elements from row to row.
  int64_t sums_pitch = 0, a_pitch = 0, b_pitch = 0;
};

// `loop` as an instruction of `instructions`. All sums have registers, and at least two are left for the operands.
std::optional<TileLoop> FindTileLoop(
    ir::Stmt loop, const std::vector<const isa::ProcessorInstruction*>& instructions,
    const ir::Aliases& aliases, arith::Analyzer& analyzer);

// `fill` stores zeros to all elements of the tiles of sums and to nothing else: for (row) for (lane) S[..] = 0.
bool FillsWithZeros(ir::Stmt fill, const TileLoop& loop, arith::Analyzer& analyzer);

// All combinations of iterations of the positions: the last one is fastest.
std::vector<std::vector<int64_t>> PositionsOf(const TileLoop& loop);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_TILE_LOOP_H_
