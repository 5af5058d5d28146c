#include "compiler/codegen/llvm/module_parts.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"

namespace polynao::codegen {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// `run` calls three bodies by their addresses; one of these calls a helper, which has a counter.
constexpr char kText[] = R"(
@counter = internal global i32 0
declare void @for_each(ptr)
define internal i32 @helper(i32 %x) {
  store i32 %x, ptr @counter
  ret i32 %x
}
define internal void @long(ptr %p) {
  %a = load i32, ptr %p
  %b = add i32 %a, 1
  %c = mul i32 %b, %b
  %d = call i32 @helper(i32 %c)
  store i32 %d, ptr %p
  ret void
}
define internal void @middle(ptr %p) {
  %a = load i32, ptr %p
  %b = add i32 %a, 1
  store i32 %b, ptr %p
  ret void
}
define internal void @short(ptr %p) {
  store i32 0, ptr %p
  ret void
}
define void @run() {
  call void @for_each(ptr @long)
  call void @for_each(ptr @middle)
  call void @for_each(ptr @short)
  ret void
}
define void @entry() {
  call void @run()
  ret void
}
)";

std::set<std::string> Defined(const llvm::Module& module) {
  std::set<std::string> names;
  for (const llvm::Function& function : module) {
    if (!function.isDeclaration()) names.insert(function.getName().str());
  }
  return names;
}

class ModulePartsTest : public testing::Test {
 protected:
  std::unique_ptr<llvm::Module> Parse() {
    llvm::SMDiagnostic error;
    std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(kText, error, context_);
    EXPECT_NE(module, nullptr) << error.getMessage().str();
    return module;
  }

  llvm::LLVMContext context_;
};

TEST_F(ModulePartsTest, BodiesGoWhereLeastIs) {
  const std::unique_ptr<llvm::Module> module = Parse();
  const auto parts = ModuleParts(*module, 2, /*few_instructions=*/1);
  ASSERT_THAT(parts, SizeIs(2));
  for (const auto& part : parts) EXPECT_FALSE(llvm::verifyModule(*part));
  // The first one has what is called from outside, the second one the longest bodies; both have the helper.
  EXPECT_THAT(Defined(*parts[0]), ElementsAre("entry", "helper", "run", "short"));
  EXPECT_THAT(Defined(*parts[1]), ElementsAre("helper", "long", "middle"));
  for (const char* body : {"long", "middle", "short"}) {
    EXPECT_TRUE(parts[0]->getFunction(body)->hasExternalLinkage()) << body;
  }
  EXPECT_TRUE(parts[1]->getFunction("helper")->hasInternalLinkage());
}

TEST_F(ModulePartsTest, NoMoreThanThereAreBodies) {
  const std::unique_ptr<llvm::Module> module = Parse();
  const auto parts = ModuleParts(*module, 64, /*few_instructions=*/1);
  ASSERT_THAT(parts, SizeIs(4));
  for (const auto& part : parts) EXPECT_FALSE(llvm::verifyModule(*part));
}

TEST_F(ModulePartsTest, ShortModulesStayWhole) {
  const std::unique_ptr<llvm::Module> module = Parse();
  EXPECT_THAT(ModuleParts(*module, 2), IsEmpty());
  EXPECT_THAT(ModuleParts(*module, 1, /*few_instructions=*/1), IsEmpty());
  EXPECT_TRUE(module->getFunction("long")->hasInternalLinkage());
}

}  // namespace
}  // namespace polynao::codegen
