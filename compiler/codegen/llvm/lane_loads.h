// Gathers of machines that have no good instruction for them.
#ifndef COMPILER_CODEGEN_LLVM_LANE_LOADS_H_
#define COMPILER_CODEGEN_LLVM_LANE_LOADS_H_

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Function.h"

namespace polynao::codegen {

// Makes a load for each lane of gathers that all lanes run and that the target leaves to LLVM:
//
//   wide = zext <8 x i32> offsets to <8 x i64>         lane = extractelement offsets, i
//   addresses = gep float, base, wide             -->  value = load (gep float, base, (zext lane))
//   gather addresses                                   insertelement .., value, i    for each i
//
// LLVM by itself computes the addresses of all lanes, of 64 bits, and takes these out of the vectors. For code that is
// optimised: as one instruction a gather costs the other passes less.
void LoadLaneByLane(llvm::Function& function, const llvm::TargetTransformInfo& target);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_LANE_LOADS_H_
