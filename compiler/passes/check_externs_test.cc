#include "compiler/passes/check_externs.h"

#include "compiler/ir/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

TEST(CheckExterns, TheCardAndGpusHaveNone) {
  const absl::StatusOr<ir::Function> function =
      ir::ParseFunction("extern pure func g(x: f32) -> f32\nfunc f(A: f32[4]) { A[0] = g(A[1]) }");
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ(CheckExterns(*function, TestTarget()).message(),
            "function 'f' calls the extern function 'g': the diannao target has none; expected "
            "loops, stores and, on the card, instructions");
  EXPECT_FALSE(CheckExterns(*function, Target{.name = "cuda"}).ok());
  EXPECT_TRUE(CheckExterns(*function, Target{.name = "cpu"}).ok());
  EXPECT_TRUE(CheckExterns(*function, Target{.name = "c"}).ok());
}

}  // namespace
}  // namespace polynao
