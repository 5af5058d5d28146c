#include "compiler/codegen/llvm/lane_loads.h"

#include <string>

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ModRef.h"
#include "llvm/Support/raw_ostream.h"

namespace polynao::codegen {
namespace {

using llvm::Value;

constexpr llvm::StringLiteral kPrefix = "polynao.lane_loads.";

void Lower(llvm::CallInst& call) {
  llvm::IRBuilder<> b(&call);
  auto* type = llvm::cast<llvm::FixedVectorType>(call.getType());
  llvm::Type* element = type->getElementType();
  const llvm::Align align(element->getPrimitiveSizeInBits().getFixedValue() / 8);
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    Value* offset = b.CreateZExt(b.CreateExtractElement(call.getArgOperand(1), i), b.getInt64Ty());
    Value* address = b.CreateInBoundsGEP(element, call.getArgOperand(0), {offset});
    llvm::LoadInst* load = b.CreateAlignedLoad(element, address, align);
    load->copyMetadata(call);
    result = b.CreateInsertElement(result, load, i);
  }
  result->takeName(&call);
  call.replaceAllUsesWith(result);
  call.eraseFromParent();
}

}  // namespace

llvm::CallInst* CreateLaneLoads(llvm::IRBuilder<>& builder, llvm::Type* element, Value* base,
                                Value* offsets) {
  auto* offset_type = llvm::cast<llvm::FixedVectorType>(offsets->getType());
  auto* type = llvm::FixedVectorType::get(element, offset_type->getNumElements());
  std::string name(kPrefix);
  llvm::raw_string_ostream stream(name);
  stream << *type << *offset_type;
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  llvm::FunctionCallee callee = module.getOrInsertFunction(
      stream.str(), llvm::FunctionType::get(type, {base->getType(), offset_type}, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setMemoryEffects(llvm::MemoryEffects::argMemOnly(llvm::ModRefInfo::Ref));
  function->setDoesNotThrow();
  function->setWillReturn();
  function->addParamAttr(0, llvm::Attribute::NoCapture);
  return builder.CreateCall(callee, {base, offsets});
}

void LowerLaneLoads(llvm::Module& module) {
  for (llvm::Function& function : llvm::make_early_inc_range(module)) {
    if (!function.getName().starts_with(kPrefix)) continue;
    for (llvm::User* user : llvm::make_early_inc_range(function.users())) {
      Lower(*llvm::cast<llvm::CallInst>(user));
    }
    function.eraseFromParent();
  }
}

}  // namespace polynao::codegen
