#include "compiler/codegen/llvm/lane_loads.h"

#include <memory>
#include <string>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace polynao::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Of a target that has no gathers.
std::string Lowered(const std::string& addresses, const std::string& mask) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(
      StrCat("define <2 x float> @f(ptr %a, <2 x ptr> %p, <2 x i32> %i, <2 x i1> %m) {\n",
             "  %wide = zext <2 x i32> %i to <2 x i64>\n",
             "  %q = getelementptr float, ptr %a, <2 x i64> %wide\n",
             "  %r = call <2 x float> @llvm.masked.gather.v2f32.v2p0(<2 x ptr> ", addresses,
             ", i32 4, <2 x i1> ", mask, ", <2 x float> zeroinitializer)\n",
             "  ret <2 x float> %r\n}\n",
             "declare <2 x float> @llvm.masked.gather.v2f32.v2p0(<2 x ptr>, i32, <2 x i1>, <2 x "
             "float>)\n"),
      error, context);
  EXPECT_NE(module, nullptr) << error.getMessage().str() << " at " << error.getLineNo();
  if (module == nullptr) return "";
  LoadLaneByLane(*module->getFunction("f"), llvm::TargetTransformInfo(module->getDataLayout()));
  EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  module->getFunction("f")->print(stream);
  return printed;
}

const char* const kAll = "<i1 true, i1 true>";

TEST(LaneLoadsTest, OffsetsAreTakenOutAsNarrowAsTheyAre) {
  const std::string text = Lowered("%q", kAll);
  EXPECT_THAT(text, HasSubstr("extractelement <2 x i32> %i, i64 1"));
  EXPECT_THAT(text, HasSubstr("load float"));
  EXPECT_THAT(text, Not(HasSubstr("masked.gather")));
}

TEST(LaneLoadsTest, AddressesWithoutABase) {
  const std::string text = Lowered("%p", kAll);
  EXPECT_THAT(text, HasSubstr("extractelement <2 x ptr> %p, i64 1"));
  EXPECT_THAT(text, Not(HasSubstr("masked.gather")));
}

TEST(LaneLoadsTest, MasksAreLeftAlone) {
  EXPECT_THAT(Lowered("%q", "%m"), HasSubstr("masked.gather"));
}

}  // namespace
}  // namespace polynao::codegen
