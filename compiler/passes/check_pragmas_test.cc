#include "compiler/passes/check_pragmas.h"

#include <string>

#include "base/text.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"

namespace polynao {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status Check(std::string_view key, const Target& target) {
  absl::StatusOr<ir::Function> function =
      ir::ParseFunction(StrCat("func f(A: f16[4] @gmem out) { for (i, 0, 4) { pragma \"", key,
                               "\" { for (j, 0, 1) { A[i] = 1.0 } } } }"),
                        "test");
  EXPECT_TRUE(function.ok()) << function.status();
  return CheckPragmas(*function, target);
}

TEST(CheckPragmas, KeysOfTheListAndFamiliesAreKnown) {
  for (const pragma::Key& key : pragma::kKeys) {
    EXPECT_TRUE(Check(key.name, TestTarget()).ok()) << key.name;
  }
  for (const char* family : {"memcpy", "memcpy3d", "conv_acc", "add", "reduce_max"}) {
    EXPECT_TRUE(Check(family, TestTarget()).ok()) << family;
    // Schedules mark nests for targets without tensor instructions too.
    EXPECT_TRUE(Check(family, Target{.name = "cpu"}).ok()) << family;
  }
}

// The key that `key` becomes.
std::string Resolved(std::string_view key) {
  ir::Function f = ParseOrDie(
      StrCat("func f(A: f16[4] out) { pragma \"", key, "\" { for (j, 0, 1) { A[j] = 1.0 } } }"));
  const ir::Stmt before = f.body;
  EXPECT_EQ(ResolvePragmas(f, TestTarget()), f.body != before);
  return std::string(f.body.name());
}

// As the papers write them.
TEST(CheckPragmas, OtherSpellingsNameFamiliesAndKeys) {
  EXPECT_EQ(Resolved("MEMCPY"), "memcpy");
  EXPECT_EQ(Resolved("CONV"), "conv");
  EXPECT_EQ(Resolved("TADD"), "add");
  EXPECT_EQ(Resolved("TSub"), "sub");
  EXPECT_EQ(Resolved("RELU"), "relu");
  EXPECT_EQ(Resolved("Pad"), "pad");
  EXPECT_EQ(Resolved("TENSORIZE"), "tensorize");
  // A whole word comes before a T and a word.
  EXPECT_EQ(Resolved("TANH"), "tanh");
  // No key is named so.
  for (const char* key : {"TPAD", "TT", "T", "", "TTADD", "ADDT", "TMEMCYP", "TJUMP"}) {
    EXPECT_EQ(Resolved(key), key);
    EXPECT_FALSE(Check(key, TestTarget()).ok()) << key;
  }
  // Every name of the table and of the list means itself.
  for (const isa::Instruction& instruction : isa::DianNao().instructions()) {
    EXPECT_EQ(Resolved(instruction.family), instruction.family);
  }
  for (const pragma::Key& key : pragma::kKeys) EXPECT_EQ(Resolved(key.name), key.name);
}

TEST(CheckPragmas, MisspeltKeyIsReportedWithItsPlace) {
  const absl::Status status = Check("memcyp", TestTarget());
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("pragma \"memcyp\""), HasSubstr("for (j"), HasSubstr("sliding_window")));
}

TEST(CheckPragmas, ScalarInstructionsAreNoKeys) {
  // `jump` and `sync` wait in no queue: no nest becomes one.
  EXPECT_FALSE(Check("jump", TestTarget()).ok());
  EXPECT_FALSE(Check("sync", TestTarget()).ok());
}

// The list is complete in itself: what a key lacks, nobody can look up.
TEST(CheckPragmas, EveryKeyHasMeaningWriterAndReader) {
  for (const pragma::Key& key : pragma::kKeys) {
    EXPECT_FALSE(key.meaning.empty()) << key.name;
    EXPECT_FALSE(key.below.empty()) << key.name;
    EXPECT_FALSE(key.readers.empty()) << key.name;
    // "tensorize" is for people who write schedules or loop IR themselves.
    EXPECT_EQ(key.writers.empty(), key.name == pragma::kTensorize) << key.name;
  }
}

}  // namespace
}  // namespace polynao
