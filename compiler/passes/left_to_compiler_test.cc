#include "compiler/passes/left_to_compiler.h"

#include <string>

#include "compiler/ir/ir.h"
#include "compiler/passes/pass_test_util.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

TEST(LeftToCompilerTest, Operations) {
  struct Case {
    std::string value;
    bool is_arithmetic;
  };
  for (const Case& c : {
           Case{"x + y", true},
           Case{"x * 3 - y", true},
           Case{"i32(i64(x))", true},
           Case{"x / 3", true},
           Case{"x % 3", true},
           Case{"x / y", false},
           Case{"max(x, y)", true},
           Case{"i32(F[0])", true},
           Case{"i32(x < y)", true},
           Case{"select(x < y, x, y)", false},
           Case{"A[x]", false},
       }) {
    const ir::Function f =
        ParseOrDie("func f(A: i32[9], F: f32[9], x: i32, y: i32) {\n  A[0] = " + c.value + "\n}\n");
    EXPECT_EQ(IsLeftToCompiler(f.body.value()), c.is_arithmetic) << c.value;
  }
}

}  // namespace
}  // namespace polynao
