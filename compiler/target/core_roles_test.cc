#include "compiler/target/core_roles.h"

#include <string>

#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "testing/machine.h"

namespace polynao {
namespace {

// 2 clusters of 2 cores.
const Target& Card() {
  static const auto* machine = new isa::Machine(TestMachine("unit"));
  static const auto* target = new Target{"diannao", &isa::DianNao(), machine};
  return *target;
}

ir::Function Parse(std::string_view text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  POLYNAO_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

// A line for each store, instruction and thread loop: who runs it and its first line.
void List(const CoreRoles& roles, ir::Stmt s, RunsOn around, std::string& lines) {
  constexpr std::string_view kNames[] = {"core", "memory core", "cluster"};
  const RunsOn runs_on = roles.Of(s, around);
  if (s.Is(ir::StmtKind::kStore) || s.Is(ir::StmtKind::kEvaluate) || IsThreadLoop(s)) {
    const std::string text = ir::Print(s);
    StrAppend(&lines, kNames[static_cast<int>(runs_on)], ": ", text.substr(0, text.find('\n')),
              "\n");
  }
  for (ir::Stmt child : s.children()) {
    List(roles, child, IsThreadLoop(s) ? roles.InBody(s, runs_on) : runs_on, lines);
  }
}

std::string Roles(std::string_view text) {
  const ir::Function f = Parse(text);
  const CoreRoles roles(f.body, Card());
  std::string lines;
  for (ir::Stmt s : CoreRoles::TopStatements(f.body)) List(roles, s, RunsOn::kCore, lines);
  return lines;
}

TEST(CoreRolesTest, MemoryCoreRunsWhatStandsBesideLoopsOverCores) {
  EXPECT_EQ(Roles(R"(
func f(S: i32[8], A: i32[8]) {
  thread (cid, 2) {
    S[0] = 1
    barrier.cluster()
    for (b, 0, 3) {
      S[b] = 0
      thread (tid, 2) { A[tid] = S[b] sync.io() }
      if (b < 2) { S[4] = 0 barrier.cluster() } else { S[5] = 0 }
    }
    for (i, 0, 3) { S[i] = 7 }
  }
  barrier.global()
}
)"),
            "core: thread (cid, 2) {\n"
            "memory core: S[0] = 1\n"
            "cluster: barrier.cluster()\n"
            "memory core: S[b] = 0\n"
            "cluster: thread (tid, 2) {\n"
            "core: A[tid] = S[b]\n"
            "core: sync.io()\n"
            "memory core: S[4] = 0\n"
            "cluster: barrier.cluster()\n"
            "memory core: S[5] = 0\n"
            "memory core: S[i] = 7\n"
            "core: barrier.global()\n");
}

TEST(CoreRolesTest, WithoutALoopOverCoresNoMemoryCoreRuns) {
  EXPECT_EQ(Roles("func f(A: i32[8]) { thread (cid, 2) { A[cid] = 1 } }"),
            "core: thread (cid, 2) {\ncore: A[cid] = 1\n");
  EXPECT_EQ(Roles("func f(A: i32[8]) { thread (tid, 2) { A[tid] = 1 } }"),
            "core: thread (tid, 2) {\ncore: A[tid] = 1\n");
}

TEST(CoreRolesTest, LevelsInUse) {
  const auto uses = [](std::string_view text, isa::Level level) {
    return CoreRoles(Parse(text).body, Card()).Uses(level);
  };
  constexpr char kClusters[] =
      "func f(A: i32[8]) { for (i, 0, 2) { thread (cid, 2) { A[i] = 1 } } }";
  EXPECT_TRUE(uses(kClusters, isa::Level::kCluster));
  EXPECT_FALSE(uses(kClusters, isa::Level::kCore));
  constexpr char kCores[] = "func f(A: i32[8]) { thread (c = \"tid\", 2) { A[c] = 1 } }";
  EXPECT_FALSE(uses(kCores, isa::Level::kCluster));
  EXPECT_TRUE(uses(kCores, isa::Level::kCore));
}

TEST(CoreRolesTest, HowOftenAUnitRunsTheBody) {
  struct Case {
    const char* loop;
    bool at_most_once, exactly_once;
  };
  for (const Case& c :
       {Case{"tid, 0", true, false}, Case{"tid, 1", true, false}, Case{"tid, 2", true, true},
        Case{"tid, 3", false, false}, Case{"tid, n", false, false}, Case{"cid, 2", true, true},
        Case{"t = \"tid\", n, 2", true, true}}) {
    const ir::Function f =
        Parse(StrCat("func f(A: i32[8], n: i32) { thread (", c.loop, ") { A[0] = 1 } }"));
    const CoreRoles roles(f.body, Card());
    EXPECT_EQ(roles.Units(f.body), 2) << c.loop;
    EXPECT_EQ(roles.RunsAtMostOnce(f.body), c.at_most_once) << c.loop;
    EXPECT_EQ(roles.RunsExactlyOnce(f.body), c.exactly_once) << c.loop;
  }
}

// Barriers that the memory core can follow the cores into.
TEST(CoreRolesTest, BarriersOfTheMemoryCore) {
  const auto count = [](std::string_view loop) {
    const ir::Function f = Parse(StrCat("func f(A: i32[8]) { ", loop, " }"));
    return CoreRoles(f.body, Card()).BarriersOfMemoryCore(f.body).size();
  };
  EXPECT_EQ(count("thread (tid, 2) { barrier.cluster() A[tid] = 1 barrier.cluster() }"), 2u);
  EXPECT_EQ(count("thread (tid, 1) { barrier.cluster() }"), 0u);
  EXPECT_EQ(count("thread (tid, 4) { barrier.cluster() }"), 0u);
  EXPECT_EQ(count("thread (tid, 2) { for (i, 0, 2) { barrier.cluster() } }"), 0u);
  EXPECT_EQ(count("thread (tid, 2) { if (tid < 1) { barrier.cluster() } }"), 0u);
  EXPECT_EQ(count("thread (tid, 2) { barrier.global() }"), 0u);
}

}  // namespace
}  // namespace polynao
