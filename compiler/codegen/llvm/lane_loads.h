// Gathers on machines that have no good instruction for them.
#ifndef COMPILER_CODEGEN_LLVM_LANE_LOADS_H_
#define COMPILER_CODEGEN_LLVM_LANE_LOADS_H_

#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace polynao::codegen {

// Calls a function that stands for a load of each lane, `base`[`offsets`[lane]], until LowerLaneLoads puts the loads in
// its place. `offsets` are >= 0. Unlike loads a call costs LLVM's passes little, and unlike a masked gather, of which
// LLVM makes loads too, it keeps offsets of 32 bits as they are: LLVM would compute all addresses in vectors, and take
// these out of them.
llvm::CallInst* CreateLaneLoads(llvm::IRBuilder<>& builder, llvm::Type* element, llvm::Value* base,
                                llvm::Value* offsets);

void LowerLaneLoads(llvm::Module& module);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_LANE_LOADS_H_
