#include "compiler/codegen/llvm/opaque_starts.h"

#include <memory>
#include <string>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace polynao::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Hidden(const std::string& text) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
  EXPECT_NE(module, nullptr) << error.getMessage().str() << " at " << error.getLineNo();
  if (module == nullptr) return "";
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  for (llvm::Function& function : *module) {
    if (function.isDeclaration()) continue;
    HideStarts(functions.getResult<llvm::LoopAnalysis>(function),
               functions.getResult<llvm::ScalarEvolutionAnalysis>(function));
  }
  EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  module->print(stream, nullptr);
  return printed;
}

// A loop whose stores begin at `starts` addresses, each `constants` times with a constant between; a store behind it.
std::string Nest(int starts, int constants = 1) {
  std::string before, inside;
  for (int i = 0; i < starts; ++i) {
    StrAppend(&before, "  %y", i, " = mul i64 %y, ", i + 2, "\n  %row", i,
              " = getelementptr i32, ptr %a, i64 %y", i, "\n");
    for (int k = 0; k < constants; ++k) {
      const std::string row = k == 0 ? StrCat("%row", i) : StrCat("%row", i, "_", k);
      if (k > 0) {
        StrAppend(&before, "  ", row, " = getelementptr i8, ptr %row", i, ", i64 ", 48 * k, "\n");
      }
      StrAppend(&inside, "  %at", i, "_", k, " = getelementptr i32, ptr ", row,
                ", i64 %x\n  store i32 ", i, ", ptr %at", i, "_", k, "\n");
    }
  }
  return StrCat("define void @f(ptr %a, i64 %n, i64 %y) {\nentry:\n", before, R"(
  %bound = add i64 %n, %y
  br label %loop
loop:
  %x = phi i64 [ 0, %entry ], [ %next, %loop ]
)",
                inside, R"(
  %next = add i64 %x, 1
  %more = icmp slt i64 %next, %bound
  br i1 %more, label %loop, label %done
done:
  store i32 7, ptr %row0
  ret void
}
)");
}

TEST(OpaqueStartsTest, OfAnInnermostLoop) {
  const std::string hidden = Hidden(Nest(2));
  EXPECT_THAT(hidden, HasSubstr("%start = freeze ptr %row0\n"));
  EXPECT_THAT(hidden, HasSubstr("%start1 = freeze ptr %row1\n"));
  EXPECT_THAT(hidden, HasSubstr("%at0_0 = getelementptr i32, ptr %start, i64 %x\n"));
  EXPECT_THAT(hidden, HasSubstr("%at1_0 = getelementptr i32, ptr %start1, i64 %x\n"));
  // Neither what stands behind the loop, nor what is no address.
  EXPECT_THAT(hidden, HasSubstr("store i32 7, ptr %row0,"));
  EXPECT_THAT(hidden, HasSubstr("icmp slt i64 %next, %bound\n"));
}

TEST(OpaqueStartsTest, AsManyAsThereAreRegistersFor) {
  EXPECT_THAT(Hidden(Nest(7)), HasSubstr("%start6 = freeze"));
  EXPECT_THAT(Hidden(Nest(8)), Not(HasSubstr("freeze")));
}

TEST(OpaqueStartsTest, ConstantsBetweenStartsAreSeen) {
  const std::string hidden = Hidden(Nest(5, 3));
  EXPECT_THAT(hidden, HasSubstr("%start4 = freeze"));
  EXPECT_THAT(hidden, Not(HasSubstr("%start5 = freeze")));
  EXPECT_THAT(hidden, HasSubstr("getelementptr i8, ptr %start, i64 48\n"));
  EXPECT_THAT(hidden, HasSubstr("getelementptr i8, ptr %start4, i64 96\n"));
}

TEST(OpaqueStartsTest, NotOfOuterLoops) {
  const std::string hidden = Hidden(R"(
define void @f(ptr %a, i64 %n, i64 %y) {
entry:
  %start.y = mul i64 %y, 3
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %row = add i64 %i, %start.y
  br label %inner
inner:
  %x = phi i64 [ 0, %outer ], [ %x.next, %inner ]
  %index = add i64 %row, %x
  %at = getelementptr i32, ptr %a, i64 %index
  store i32 1, ptr %at
  %x.next = add i64 %x, 1
  %more = icmp slt i64 %x.next, %n
  br i1 %more, label %inner, label %latch
latch:
  %i.next = add i64 %i, 1
  %again = icmp slt i64 %i.next, %n
  br i1 %again, label %outer, label %done
done:
  ret void
}
)");
  EXPECT_THAT(hidden, HasSubstr("%row = add i64 %i, %start.y\n"));
  EXPECT_THAT(hidden, HasSubstr("%start = freeze i64 %row\n"));
  EXPECT_THAT(hidden, HasSubstr("%index = add i64 %start, %x\n"));
}

TEST(OpaqueStartsTest, NotVectorsOfAddresses) {
  const std::string hidden = Hidden(R"(
declare void @llvm.masked.scatter.v4i32.v4p0(<4 x i32>, <4 x ptr>, i32, <4 x i1>)
define void @f(ptr %a, <4 x i64> %i, <4 x i64> %k, i64 %n) {
entry:
  %first = getelementptr i32, ptr %a, <4 x i64> %i
  %second = getelementptr i32, ptr %a, <4 x i64> %k
  br label %loop
loop:
  %x = phi i64 [ 0, %entry ], [ %next, %loop ]
  %one = getelementptr i32, <4 x ptr> %first, i64 %x
  %other = getelementptr i32, <4 x ptr> %second, i64 %x
  call void @llvm.masked.scatter.v4i32.v4p0(<4 x i32> zeroinitializer, <4 x ptr> %one, i32 4, <4 x i1> <i1 1, i1 1, i1 1, i1 1>)
  call void @llvm.masked.scatter.v4i32.v4p0(<4 x i32> zeroinitializer, <4 x ptr> %other, i32 4, <4 x i1> <i1 1, i1 1, i1 1, i1 1>)
  %next = add i64 %x, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
)");
  EXPECT_THAT(hidden, HasSubstr("getelementptr i32, <4 x ptr> %first, i64 %x\n"));
  EXPECT_THAT(hidden, HasSubstr("getelementptr i32, <4 x ptr> %second, i64 %x\n"));
}

}  // namespace
}  // namespace polynao::codegen
