#include "compiler/codegen/llvm/lane_loads.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

namespace polynao::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Printed(const llvm::Module& module) {
  EXPECT_FALSE(llvm::verifyModule(module, &llvm::errs()));
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  module.print(stream, nullptr);
  return printed;
}

TEST(LaneLoadsTest, CallsBecomeLoads) {
  llvm::LLVMContext context;
  llvm::Module module("m", context);
  llvm::IRBuilder<> b(context);
  const auto pair_of = [](llvm::Type* type) { return llvm::FixedVectorType::get(type, 2); };
  auto* offsets = pair_of(b.getInt32Ty());
  auto* f = llvm::Function::Create(
      llvm::FunctionType::get(pair_of(b.getInt16Ty()), {b.getPtrTy(), offsets}, false),
      llvm::Function::ExternalLinkage, "f", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
  CreateLaneLoads(b, b.getFloatTy(), f->getArg(0), f->getArg(1));
  b.CreateRet(CreateLaneLoads(b, b.getInt16Ty(), f->getArg(0), f->getArg(1)));
  EXPECT_THAT(Printed(module), Not(HasSubstr("load i16")));
  LowerLaneLoads(module);
  const std::string text = Printed(module);
  EXPECT_THAT(text, HasSubstr("extractelement <2 x i32> %1, i64 1"));
  EXPECT_THAT(text, HasSubstr("load float, ptr %4, align 4"));
  EXPECT_THAT(text, HasSubstr("load i16"));
  EXPECT_THAT(text, Not(HasSubstr("call")));
  EXPECT_THAT(text, Not(HasSubstr("declare")));
}

}  // namespace
}  // namespace polynao::codegen
