// A cluster's memory core loads what its cores share, compiled for every machine of
// simulator/configs and simulated, against the interpreter. Without a barrier that the compiler has
// put, the simulator stops.

#include "base/check.h"
#include "base/text.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/simulator.h"
#include "testing/machine.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

constexpr const char* kMachines[] = {"unit", "mlu270", "mlu290", "mlu370"};

// A program over W (the weights of each cluster), A and B (the rows of each core), in which CL and
// CO stand for the machine's clusters and cores of a cluster.
class Compiled {
 public:
  Compiled(const std::string& machine, std::string text) : machine_(TestMachine(machine)) {
    const auto fill_in = [&](const std::string& name, int64_t value) {
      for (size_t at; (at = text.find(name)) != std::string::npos;) {
        text.replace(at, name.size(), StrCat(value));
      }
    };
    fill_in("CL", machine_.clusters());
    fill_in("CO", machine_.cores_per_cluster());
    target_ = {"diannao", &isa::DianNao(), &machine_};
    absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
    POLYNAO_CHECK(function.ok()) << function.status();
    source_ = *function;
    lowered_ = ir::CloneInto(source_, std::make_shared<ir::Context>());
    PipelineOptions options;
    options.check = true;
    const absl::Status status = RunPasses(lowered_, *PipelineFor(target_), target_, options);
    POLYNAO_CHECK(status.ok()) << status;
  }

  std::string text() const { return ir::Print(lowered_); }

  int Count(std::string_view instruction) const {
    int count = 0;
    ir::ForEachStmt(lowered_.body, [&](ir::Stmt s) {
      count += s.Is(ir::StmtKind::kEvaluate) && s.value().name() == instruction;
      return true;
    });
    return count;
  }

  // "" if the simulated program computes what the interpreter does, or the simulator's error.
  // Without the calls of `dropped` number `which` if that is not negative.
  std::string Difference(std::string_view dropped = "", int which = -1) const {
    ir::Function function = lowered_;
    if (which >= 0) {
      int at = 0;
      function.body = Without(lowered_.body, dropped, which, at);
    }
    absl::StatusOr<isa::Program> program = GenerateDianNao(function, target_);
    POLYNAO_CHECK(program.ok()) << program.status();
    std::vector<ir::Tensor> expected;
    for (size_t i = 0; i < source_.params.size(); ++i) {
      const ir::Buffer buffer = source_.params[i].buffer;
      std::vector<int64_t> shape;
      for (ir::Expr extent : buffer->extents) shape.push_back(extent.int_value());
      expected.push_back(ir::RandomTensor(buffer->type, shape, i + 1));
    }
    std::vector<ir::Tensor> found = expected;
    std::vector<ir::Argument> arguments;
    std::vector<simulator::Argument> card;
    for (size_t i = 0; i < expected.size(); ++i) {
      arguments.push_back(ir::Argument::Of(&expected[i]));
      found[i].shape = program->params[i].shape;
      card.push_back(simulator::Argument::Of(&found[i]));
    }
    ir::InterpreterOptions meanings;
    meanings.intrinsics = &isa::DianNao().intrinsics();
    const absl::Status interpreted = ir::Interpret(source_, arguments, nullptr, meanings);
    POLYNAO_CHECK(interpreted.ok()) << interpreted;
    simulator::RunOptions options;
    options.machine = &machine_;
    const auto result = simulator::Run(isa::DianNao(), *program, card, options);
    if (!result.ok()) return std::string(result.status().message());
    for (size_t i = 0; i < expected.size(); ++i) {
      if (found[i].bytes != expected[i].bytes) return StrCat("parameter ", i, " differs");
    }
    return "";
  }

 private:
  static ir::Stmt Without(ir::Stmt s, std::string_view dropped, int which, int& at) {
    if (s.Is(ir::StmtKind::kEvaluate) && s.value().name() == dropped && at++ == which) {
      return s.context().Nop();
    }
    std::vector<ir::Stmt> children;
    for (ir::Stmt child : s.children()) children.push_back(Without(child, dropped, which, at));
    return s.context().Rebuild(s, s.operands(), children);
  }

  isa::Machine machine_;
  Target target_;
  ir::Function source_;
  ir::Function lowered_;
};

// B = A + the weights of the cluster, which its memory core brings to SMEM.
constexpr char kAddWeights[] = R"(
func f(W: f16[CL, 256] in, A: f16[CL, CO, 256] in, B: f16[CL, CO, 256] out) {
  thread (cid, CL) {
    allocate S: f16[256] @smem
    pragma "memcpy" { for (i, 0, 256) { S[i] = W[cid, i] } }
    barrier.cluster()
    thread (tid, CO) {
      allocate L: f16[256] @nmem
      allocate X: f16[256] @nmem
      pragma "memcpy" { for (i, 0, 256) { L[i] = S[i] } }
      pragma "memcpy" { for (i, 0, 256) { X[i] = A[cid, tid, i] } }
      pragma "add" { for (i, 0, 256) { X[i] = X[i] + L[i] } }
      pragma "memcpy" { for (i, 0, 256) { B[cid, tid, i] = X[i] } }
    }
  }
}
)";

TEST(MemoryCoreTest, LoadsWhatTheCoresShare) {
  for (const char* machine : kMachines) {
    SCOPED_TRACE(machine);
    const Compiled compiled(machine, kAddWeights);
    EXPECT_EQ(compiled.Count("barrier.cluster"), 1) << compiled.text();
    EXPECT_EQ(compiled.Count("memcpy.f16.smem.gmem.async"), 1) << compiled.text();
    EXPECT_EQ(compiled.Difference(), "");
    EXPECT_THAT(compiled.Difference("barrier.cluster", 0), HasSubstr("hazard"));
  }
}

// Scalar code of the memory core, between two nests; loops and branches around them are for all.
TEST(MemoryCoreTest, RunsScalarCodeBetweenNests) {
  for (const char* machine : kMachines) {
    SCOPED_TRACE(machine);
    const Compiled compiled(machine, R"(
func f(A: i32[CL, 8] in, B: i32[CL, CO, 3] out, C: i32[CL] out) {
  thread (cid, CL) {
    allocate S: i32[8] @smem
    for (b, 0, 3) {
      if (b < 2) {
        for (i, 0, 8) { S[i] = A[cid, i] + b }
      } else {
        let k = A[cid, 3]
        S[2] = k
        S[1] = k + 1
        S[0] = k
      }
      barrier.cluster()
      thread (tid, CO) { B[cid, tid, b] = S[tid % 3] * (b + 1) }
      barrier.cluster()
    }
    C[cid] = S[2]
  }
}
)");
    EXPECT_EQ(compiled.Difference(), "");
  }
}

std::string ErrorOf(std::string_view text) {
  static const auto* machine = new isa::Machine(TestMachine("unit"));
  const Target target = {"diannao", &isa::DianNao(), machine};
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  POLYNAO_CHECK(function.ok()) << function.status();
  absl::StatusOr<isa::Program> program = GenerateDianNao(*function, target);
  return program.ok() ? "" : std::string(program.status().message());
}

TEST(MemoryCoreTest, WhatItCanNotDo) {
  const auto in_cluster = [](std::string_view body) {
    return StrCat(
        "func f(A: f16[64]) { thread (cid, 2) { pragma \"address\" (0) { allocate S: f16[64] @smem"
        " pragma \"address\" (0) { allocate N: f16[64] @nmem ",
        body, " thread (tid, 2) { N[0] = S[0] } } } } }");
  };
  EXPECT_EQ(ErrorOf(in_cluster("memcpy.f16.smem.gmem(&S[0], &A[0], 64, 1, 0, 0) A[0] = S[0]")), "");
  EXPECT_EQ(
      ErrorOf(in_cluster("fill.f16(&N[0], f16(1.0), 64)")),
      "'fill.f16(&N[0], f16(1.0), 64)' stands in a loop over clusters (cid), but in none over "
      "their cores (tid): the cluster's memory core runs it, and has no vector unit");
  EXPECT_THAT(ErrorOf(in_cluster("memcpy.f16.nmem.gmem(&N[0], &A[0], 64, 1, 0, 0)")),
              HasSubstr("has no nmem (of 'N')"));
  EXPECT_THAT(ErrorOf(in_cluster("S[0] = N[0]")), HasSubstr("'S[0] = N[0]' stands in a loop over"));
  EXPECT_THAT(ErrorOf(in_cluster("N[0] = S[0]")), HasSubstr("has no nmem (of 'N')"));
  EXPECT_THAT(ErrorOf(in_cluster("if (N[0] < f16(1.0)) { barrier.cluster() }")),
              HasSubstr("has no nmem (of 'N')"));
}

TEST(MemoryCoreTest, Barriers) {
  EXPECT_THAT(ErrorOf("func f() { thread (cid, 2) { thread (tid, 2) { barrier.cluster() } } }"),
              HasSubstr("'barrier.cluster()' stands in a loop over cores (tid)"));
  EXPECT_THAT(ErrorOf("func f() { thread (cid, 2) { barrier.cluster() } }"),
              HasSubstr("waits for a cluster, but only number 0"));
  EXPECT_THAT(ErrorOf("func f(n: i32) { if (0 < n) { barrier.global() thread (tid, 2) {} } }"),
              HasSubstr("waits for all cores, but only number 0"));
  EXPECT_EQ(ErrorOf("func f(n: i32) { if (0 < n) { barrier.cluster() thread (tid, 2) {} } }"), "");
  // Alone at the top a barrier is run by everybody.
  EXPECT_EQ(ErrorOf("func f(A: i32[2]) { A[0] = 1 barrier.global() A[1] = 1 }"), "");
}

}  // namespace
}  // namespace polynao
