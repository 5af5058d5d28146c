#include "compiler/passes/storage.h"

#include <random>

#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pass_test_util.h"
#include "compiler/passes/same_meaning.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<bool> OnUnit(ir::Function& f) { return Storage(f, TestTarget("unit")); }
std::string After(std::string_view text) { return RunPass(text, OnUnit, TestTarget("unit")); }

// The places after the pass, "X 0, Y 128", in the order of the program.
std::string Places(std::string_view text) {
  const ir::Function function = ParseOrDie(After(text));
  const AddressMap addresses = CollectAddresses(function.body);
  std::string places;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    if (s.Is(ir::StmtKind::kAllocate)) {
      StrAppend(&places, places.empty() ? "" : ", ", s.buffer()->name, " ",
                addresses.at(s.buffer()));
    }
    return true;
  });
  return places;
}

TEST(StorageTest, EachAllocationHasBytesOfItsOwn) {
  EXPECT_EQ(After("func f(A: f16[4] out) { allocate X: f16[65] @nmem X[0] = 1.0"
                  " { allocate Y: f32[8] @nmem Y[0] = 2.0 A[0] = X[0] }"
                  " { allocate Z: i8[1] @nmem Z[0] = 3 A[1] = X[0] } }"),
            "func f(A: f16[4] out) {\n"
            "  pragma \"address\" (i64(0)) {\n"
            "    allocate X: f16[65] @nmem\n"
            "    X[0] = 1.0\n"
            "    pragma \"address\" (i64(256)) {\n"
            "      allocate Y: f32[8] @nmem\n"
            "      Y[0] = 2.0\n"
            "      A[0] = X[0]\n"
            "    }\n"
            "    pragma \"address\" (i64(384)) {\n"
            "      allocate Z: i8[1] @nmem\n"
            "      Z[0] = 3\n"
            "      A[1] = X[0]\n"
            "    }\n"
            "  }\n"
            "}\n");
}

// The machine "unit" has 32 KiB of NMEM, 16 of WMEM and 64 of SMEM.
TEST(StorageTest, BytesAreSharedOnlyWhereTheyMustBe) {
  const auto in_turn = [](int64_t bytes) {
    return Places(StrCat("func f(A: i8[4] out) { allocate X: i8[", bytes, "] @nmem allocate Y: i8[",
                         bytes, "] @nmem allocate Z: i8[", bytes,
                         "] @nmem X[0] = i8(1) Y[0] = X[0] Z[0] = Y[0] A[0] = Z[0]",
                         " allocate W: i8[64] @wmem memcpy.i8.wmem.nmem(&W[0], &Z[0], 1, 1, 0, 0)",
                         " }"));
  };
  EXPECT_EQ(in_turn(10880), "X 0, Y 10880, Z 21760, W 0");
  // X is not needed any more where Z is, and Z not where X is.
  EXPECT_EQ(in_turn(11000), "X 0, Y 11008, Z 0, W 0");
}

TEST(StorageTest, OneStatementNeedsWhatItReadsAndWritesAtOnce) {
  EXPECT_EQ(Places("func f(A: i8[4] out) { allocate X: i8[12000] @nmem allocate Y: i8[12000] @nmem"
                   " allocate Z: i8[12000] @nmem X[0] = i8(1) Y[0] = X[0] Z[0] = Y[0]"
                   " A[0] = Z[0] }"),
            "X 0, Y 12032, Z 0");
}

TEST(StorageTest, LargestFirstInTheSmallestGap) {
  // S and T are both over when P comes, which fits the gap of either, and takes the smaller one.
  EXPECT_EQ(
      Places("func f(A: i8[4] out) {"
             " allocate S: i8[8192] @nmem allocate B: i8[6144] @nmem"
             " allocate T: i8[4096] @nmem allocate C: i8[3072] @nmem"
             " allocate D: i8[11264] @nmem"
             " S[0] = i8(1) B[0] = S[0] T[0] = B[0] C[0] = T[0] D[0] = C[0] + B[0] + S[0] + T[0]"
             " allocate P: i8[3000] @nmem"
             " P[0] = i8(2) A[0] = P[0] + C[0] + B[0] + D[0] }"),
      "S 11264, B 19456, T 25600, C 29696, D 0, P 25600");
}

TEST(StorageTest, LoopsKeepWhatTheyUseFromOutside) {
  // Y is used after X in the loop, but X again in the next iteration; Z, of the loop's own, may
  // lie where V does.
  const auto in = [](std::string_view open, std::string_view close) {
    return Places(
        StrCat("func f(A: i8[4] out) { allocate X: i8[11000] @nmem"
               " allocate Y: i8[11000] @nmem ",
               open,
               " X[0] = i8(1) A[0] = X[0] Y[0] = i8(2) A[1] = Y[0]"
               " allocate Z: i8[10000] @nmem Z[0] = i8(3) A[2] = Z[0] ",
               close, " allocate V: i8[10000] @nmem V[0] = i8(4) A[3] = V[0] }"));
  };
  EXPECT_EQ(in("for (i, 0, 2) {", "}"), "X 0, Y 11008, Z 22016, V 0");
  EXPECT_EQ(in("", ""), "X 0, Y 0, Z 0, V 0");
  // Cores are not in step either.
  EXPECT_EQ(in("thread (tid, 2) {", "}"), "X 0, Y 11008, Z 22016, V 0");
}

TEST(StorageTest, SmemOfTwoNestsIsShared) {
  const auto nests = [](int64_t bytes) {
    const auto nest = [](std::string_view name) {
      return StrCat(" thread (t", name, " = \"tid\", 2) { A[t", name, "] = ", name, "[t", name,
                    "] }");
    };
    return Places(StrCat("func f(A: i8[4] out) { thread (cid, 2) { allocate S: i8[", bytes,
                         "] @smem allocate T: i8[", bytes, "] @smem S[0] = i8(1) S[1] = i8(1)",
                         nest("S"), " T[0] = i8(2) T[1] = i8(2)", nest("T"), " } }"));
  };
  EXPECT_EQ(nests(32768), "S 0, T 32768");
  EXPECT_EQ(nests(32769), "S 0, T 0");
}

// Random programs: what is needed at the same time is apart, and what a program computes does not
// change. Scalar code on values that all depend on one another.
TEST(StorageTest, RandomProgramsDoNotMeetInTimeAndSpace) {
  const uint64_t first = std::random_device{}();
  int shared = 0;
  for (uint64_t seed = first; seed < first + 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
    const int count = 3 + pick(8);
    std::string text = "func f(A: i8[64]) {";
    for (int i = 0; i < count; ++i) {
      StrAppend(&text, " allocate X", i, ": i8[", 1 + pick(9000), "] @nmem");
    }
    std::vector<bool> written(count, false);
    int open = 0;
    for (int n = 0; n < 25; ++n) {
      const int kind = pick(8);
      const int x = pick(count);
      const int y = pick(count);
      if (kind == 0 && open < 3) {
        StrAppend(&text, " for (i", n, ", 0, 2) {");
        ++open;
      } else if (kind == 1 && open > 0) {
        StrAppend(&text, " }");
        --open;
      } else if (written[y]) {
        StrAppend(&text, " X", x, "[0] = X", y, "[0] + i8(", n, ") A[", n, "] = X", x, "[0]");
        written[x] = true;
      } else {
        StrAppend(&text, " X", y, "[0] = i8(", n, ")");
        written[y] = true;
      }
    }
    for (; open >= 0; --open) StrAppend(&text, " }");
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << text);
    ir::Function function = ParseOrDie(text);
    std::vector<StoragePlace> places;
    const absl::StatusOr<bool> changed = Storage(function, TestTarget("unit"), &places);
    if (!changed.ok()) {
      EXPECT_THAT(std::string(changed.status().message()), HasSubstr("use smaller tiles"));
      continue;
    }
    for (const StoragePlace& a : places) {
      EXPECT_EQ(a.begin % kOnChipAlignment, 0);
      EXPECT_LE(a.begin + a.bytes, TestTarget("unit").MemoryBytes("nmem"));
      shared += a.is_shared;
      for (const StoragePlace& b : places) {
        const bool in_time = a.first >= 0 && b.first >= 0 && a.first <= b.last && b.first <= a.last;
        const bool in_space = a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
        EXPECT_TRUE(!in_time || !in_space || a.buffer == b.buffer) << a.buffer << " " << b.buffer;
      }
    }
    // One memory for all, as on the card.
    ir::Function on_bytes = ir::CloneInto(function, std::make_shared<ir::Context>());
    ir::Context& c = *on_bytes.context;
    const ir::Buffer memory = c.NewBuffer("M", ir::Type::kI8, {c.I32(32768)}, "nmem");
    const AddressMap addresses = CollectAddresses(on_bytes.body);
    struct OneMemory : ir::Mutator {
      using ir::Mutator::Mutate;
      ir::Expr Mutate(ir::Expr e) override {
        if (e.Is(ir::ExprKind::kLoad) && at->contains(ir::Buffer(e.buffer()))) {
          return memory(e.context().I32(at->at(ir::Buffer(e.buffer()))));
        }
        return ir::Mutator::Mutate(e);
      }
      ir::Stmt Mutate(ir::Stmt s) override {
        if (s.Is(ir::StmtKind::kAllocate)) return Mutate(s.body());
        if (s.Is(ir::StmtKind::kPragma)) return Mutate(s.body());
        if (s.Is(ir::StmtKind::kStore) && at->contains(s.buffer())) {
          return s.context().Store(memory, {s.context().I32(at->at(s.buffer()))},
                                   Mutate(s.value()));
        }
        return ir::Mutator::Mutate(s);
      }
      const AddressMap* at;
      ir::Buffer memory;
    } one_memory;
    one_memory.at = &addresses;
    one_memory.memory = memory;
    on_bytes.body = c.Allocate(memory, one_memory.Mutate(on_bytes.body));
    const absl::Status same = CheckSameMeaning(function, on_bytes, TestTarget("unit"), seed);
    EXPECT_TRUE(same.ok()) << same;
    if (HasFailure()) return;
  }
  EXPECT_GT(shared, 0);
}

TEST(StorageTest, MemoriesAreCountedApart) {
  const std::string text = After(
      "func f() { allocate S: f16[100] @smem thread (cid, 2) { thread (tid, 2) {"
      " allocate N: f16[100] @nmem allocate W: i8[64] @wmem N[0] = 1.0 } } }");
  EXPECT_EQ(text.find("i64(128)"), std::string::npos) << text;
}

TEST(StorageTest, OtherScopesStay) {
  const std::string text =
      "func f(A: f32[1] out) {\n"
      "  allocate L: f32[1] @local\n"
      "  L[0] = 1.0\n"
      "  A[0] = L[0]\n"
      "}\n";
  EXPECT_EQ(After(text), text);
}

TEST(StorageTest, AFullMemoryFitsAndOneMoreByteDoesNot) {
  // The machine "unit" has 32 KiB of NMEM.
  After("func f() { allocate X: i8[32640] @nmem allocate Y: i8[128] @nmem Y[0] = 1 }");
  EXPECT_EQ(
      PassError("func f() { allocate X: i8[32640] @nmem allocate Y: i8[129] @nmem Y[0] = i8(1)"
                " X[0] = Y[0] Y[1] = X[0] }",
                OnUnit),
      "storage: nmem needs 32769 bytes and has 32768; live there: X 32640, Y 129 bytes; it "
      "would fit if X had 128 bytes less: use smaller tiles");
}

TEST(StorageTest, TheErrorSaysWhatDoubleBufferingTakes) {
  const auto copies = [](int64_t x, int64_t y) {
    return PassError(
        StrCat(
            "func f(A: i8[4]) { allocate X.0: i8[", x, "] @nmem allocate X.1: i8[", x,
            "] @nmem allocate Y: i8[", y,
            "] @nmem X.0[0] = i8(1) X.1[0] = i8(2) Y[0] = i8(3) A[0] = X.0[0] + X.1[0] + Y[0] }"),
        OnUnit);
  };
  EXPECT_EQ(copies(13000, 8000),
            "storage: nmem needs 34112 bytes and has 32768; live there: X.0 13000, X.1 13000, Y "
            "8000 bytes; without double buffering it would fit, in 21056; it would fit if X.0 and "
            "its copy had 712 bytes less: use smaller tiles");
  EXPECT_THAT(
      copies(20000, 13000),
      HasSubstr("double buffering takes part of it, without it would be 33096; it would fit "
                "if X.0 and its copy had"));
  EXPECT_THAT(copies(100, 33000), HasSubstr("if Y had 488 bytes less"));
  EXPECT_THAT(
      PassError("func f(A: i8[4]) { allocate X.0: i8[12000] @nmem allocate X.1: i8[12000] @nmem"
                " allocate X.2: i8[12000] @nmem X.0[0] = i8(1) X.1[0] = i8(2) X.2[0] = i8(3)"
                " A[0] = X.0[0] + X.1[0] + X.2[0] }",
                OnUnit),
      HasSubstr(
          "without double buffering it would fit, in 12000; it would fit if X.0 and its copies "
          "had 1120 bytes less"));
  // Names of copies alone make none.
  EXPECT_THAT(PassError("func f(A: i8[4]) { allocate X.0: i8[30000] @nmem allocate X.1: i8[20000]"
                        " @nmem X.0[0] = i8(1) X.1[0] = i8(2) A[0] = X.0[0] + X.1[0] }",
                        OnUnit),
              Not(HasSubstr("double buffering")));
}

TEST(StorageTest, Report) {
  ir::Function function = ParseOrDie(
      "func f(A: i8[4]) { allocate X.0: i8[300] @nmem allocate X.1: i8[300] @nmem"
      " allocate U: i8[1] @nmem allocate S: i8[64] @smem"
      " S[0] = i8(1) X.0[0] = i8(1) for (i, 0, 3) { X.0[i] = X.1[0] } A[0] = S[0] }");
  std::vector<StoragePlace> places;
  ASSERT_TRUE(Storage(function, TestTarget("unit"), &places).ok());
  EXPECT_THAT(
      StorageReport(places, TestTarget("unit")),
      testing::ElementsAre("nmem: peak 769 of 32768 bytes",
                           "  0 .. 300  X.0 (ping-pong, 2 copies)  X.0[0] = 1 .. for (i, 0, 3) {",
                           "  384 .. 684  X.1 (ping-pong, 2 copies)  for (i, 0, 3) {",
                           "  768 .. 769  U  never used", "smem: peak 64 of 65536 bytes",
                           "  0 .. 64  S  S[0] = 1 .. A[0] = S[0]"));
}

TEST(StorageTest, Errors) {
  EXPECT_THAT(PassError("func f(n: i32) { allocate X: i8[n] @nmem X[0] = 1 }", OnUnit),
              HasSubstr("'X' in nmem has an extent that is not constant"));
  EXPECT_THAT(
      PassError("func f() { thread (tid, 2) { allocate X: i8[4] @smem X[0] = 1 } }", OnUnit),
      HasSubstr("'X' in smem is allocated inside the loop over a cluster's cores"));
  EXPECT_THAT(
      PassError("func f() { pragma \"address\" (0) { allocate X: i8[4] @nmem X[0] = 1 } }", OnUnit),
      HasSubstr("'X' already has an address"));
}

}  // namespace
}  // namespace polynao
