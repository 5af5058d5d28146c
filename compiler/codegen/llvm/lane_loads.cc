#include "compiler/codegen/llvm/lane_loads.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"

namespace polynao::codegen {
namespace {

using llvm::Value;

void LoadLanes(llvm::IntrinsicInst& gather) {
  llvm::IRBuilder<> b(&gather);
  auto* type = llvm::cast<llvm::FixedVectorType>(gather.getType());
  const auto align = llvm::cast<llvm::ConstantInt>(gather.getArgOperand(1))->getMaybeAlignValue();
  Value* addresses = gather.getArgOperand(0);
  auto* gep = llvm::dyn_cast<llvm::GetElementPtrInst>(addresses);
  const bool has_base =
      gep != nullptr && gep->getNumIndices() == 1 && !gep->getPointerOperandType()->isVectorTy();
  Value* offsets = has_base ? gep->getOperand(1) : nullptr;
  auto* extension = llvm::dyn_cast_if_present<llvm::CastInst>(offsets);
  const bool extends = extension != nullptr && llvm::isa<llvm::ZExtInst, llvm::SExtInst>(extension);
  if (extends) offsets = extension->getOperand(0);
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    Value* address = b.CreateExtractElement(has_base ? offsets : addresses, i);
    if (has_base) {
      if (extends) address = b.CreateCast(extension->getOpcode(), address, b.getInt64Ty());
      address = b.CreateGEP(gep->getSourceElementType(), gep->getPointerOperand(), {address});
    }
    llvm::LoadInst* load = b.CreateAlignedLoad(type->getElementType(), address, align);
    load->copyMetadata(gather);
    result = b.CreateInsertElement(result, load, i);
  }
  gather.replaceAllUsesWith(result);
  gather.eraseFromParent();
}

}  // namespace

void LoadLaneByLane(llvm::Function& function, const llvm::TargetTransformInfo& target) {
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& i : llvm::make_early_inc_range(block)) {
      auto* gather = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
      if (gather == nullptr || gather->getIntrinsicID() != llvm::Intrinsic::masked_gather) continue;
      const auto align = llvm::cast<llvm::ConstantInt>(gather->getArgOperand(1))->getAlignValue();
      const bool runs_all =
          llvm::PatternMatch::match(gather->getArgOperand(2), llvm::PatternMatch::m_AllOnes());
      if (runs_all && !target.isLegalMaskedGather(gather->getType(), align)) LoadLanes(*gather);
    }
  }
}

}  // namespace polynao::codegen
