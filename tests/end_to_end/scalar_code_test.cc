// Loop IR that matches no tensor instruction runs on the scalar unit: random programs and every operator of every
// type are compiled for the card, simulated and compared with the interpreter.

#include <cstring>
#include <random>

#include "base/check.h"
#include "base/status.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/codegen/differential.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/registry/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/simulator.h"
#include "testing/machine.h"

namespace polynao {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

const Target& Card() {
  static const auto* machine = new isa::Machine(TestMachine("unit"));
  static const auto* target = new Target{"diannao", &isa::DianNao(), machine};
  return *target;
}

// The function with all its allocations in NMEM, where the card has them.
ir::Function OnChip(const ir::Function& function) {
  ir::Function moved = function;
  ir::Context& c = *function.context;
  ir::BufferMap map;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    if (s.Is(ir::StmtKind::kAllocate)) {
      map[s.buffer()] =
          c.NewBuffer(s.buffer()->name, s.buffer()->type, s.buffer()->extents, "nmem");
    }
    return true;
  });
  const std::function<ir::Stmt(ir::Stmt)> reallocate = [&](ir::Stmt s) -> ir::Stmt {
    std::vector<ir::Stmt> children;
    for (ir::Stmt child : s.children()) children.push_back(reallocate(child));
    if (s.Is(ir::StmtKind::kAllocate)) return c.Allocate(map.at(s.buffer()), children[0]);
    return c.Rebuild(s, s.operands(), children);
  };
  moved.body = reallocate(ir::Substitute(function.body, {}, map));
  return moved;
}

int64_t ScalarBits(ir::Type type, const ir::Argument& argument) {
  if (!ir::IsFloat(type)) return ir::WrapInt(type, argument.int_value);
  uint8_t bytes[8] = {};
  ir::StoreFloat(type, bytes, argument.float_value);
  int64_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

absl::StatusOr<codegen::Runner> CompileForCard(const ir::Function& function) {
  ir::Function lowered = OnChip(ir::CloneInto(function, std::make_shared<ir::Context>()));
  ASSIGN_OR_RETURN(std::vector<PassSpec> passes, PipelineFor(Card()));
  RETURN_IF_ERROR(RunPasses(lowered, passes, Card()));
  ASSIGN_OR_RETURN(isa::Program program, GenerateDianNao(lowered, Card()));
  return codegen::Runner([program, lowered](absl::Span<const ir::Argument> arguments) {
    std::vector<simulator::Argument> card;
    std::vector<std::pair<ir::Tensor*, std::vector<int64_t>>> shapes;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].tensor == nullptr) {
        card.push_back(
            simulator::Argument::Scalar(ScalarBits(lowered.params[i].var.type(), arguments[i])));
        continue;
      }
      ir::Tensor* tensor = arguments[i].tensor;
      shapes.emplace_back(tensor, tensor->shape);
      if (!program.params[i].any_shape) tensor->shape = program.params[i].shape;
      card.push_back(simulator::Argument::Of(tensor));
    }
    simulator::RunOptions options;
    options.machine = Card().machine;
    absl::StatusOr<simulator::RunResult> result =
        simulator::Run(*Card().instructions, program, card, options);
    for (auto& [tensor, shape] : shapes) tensor->shape = shape;
    return result.status();
  });
}

TEST(ScalarCodeTest, EveryOperatorOfEveryType) {
  int run = 0;
  for (const codegen::SemanticsCase& c :
       codegen::SemanticsCases({.wide_unsigned = false, .variable_shifts = false})) {
    SCOPED_TRACE(c.name);
    absl::StatusOr<codegen::Runner> runner = CompileForCard(c.function);
    if (!runner.ok()) {
      // The only accepted errors: more live values than registers, and fma, which the table has no row for.
      EXPECT_THAT(std::string(runner.status().message()),
                  AnyOf(HasSubstr("values are live at once"), HasSubstr("no 'math.fma.")));
      continue;
    }
    EXPECT_EQ(codegen::Disagreement(c.function, c.arguments, *runner), "");
    ++run;
  }
  EXPECT_GE(run, 10);
}

TEST(ScalarCodeTest, RandomPrograms) {
  const uint64_t first = std::random_device{}();
  ir::RandomProgramOptions options;
  options.loop_kinds = false;  // its thread axes are not the card's
  options.max_iterations = 300;
  options.wide_unsigned = false;  // which its scalar unit lacks
  options.variable_shifts = false;
  int run = 0;
  for (uint64_t seed = first; seed < first + 120; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const ir::Function function = ir::RandomProgram(seed, options);
    absl::StatusOr<codegen::Runner> runner = CompileForCard(function);
    if (!runner.ok()) {
      EXPECT_THAT(std::string(runner.status().message()),
                  testing::AnyOf(HasSubstr("extent that is not constant"),
                                 HasSubstr("values are live at once"), HasSubstr("nmem needs"),
                                 HasSubstr("no 'math.fma.")))
          << ir::Print(function);
      continue;
    }
    ++run;
    EXPECT_EQ(codegen::Disagreement(function, ir::RandomArguments(function, seed), *runner), "");
    if (HasFailure()) return;
  }
  EXPECT_GE(run, 60);
}

std::string ErrorOf(std::string_view text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  POLYNAO_CHECK(function.ok()) << function.status();
  absl::StatusOr<isa::Program> program = GenerateDianNao(*function, Card());
  return program.ok() ? "" : std::string(program.status().message());
}

TEST(ScalarCodeTest, Errors) {
  EXPECT_THAT(ErrorOf("func f(A: f32[4]) { allocate L: f32[4] @local L[0] = 1.0 }"),
              HasSubstr("'L' is allocated in 'local'"));
  EXPECT_THAT(ErrorOf("func f(A: f32[4]) { allocate L: f32[4] @nmem L[0] = 1.0 }"),
              HasSubstr("after storage"));
  EXPECT_THAT(ErrorOf("func f(A: f32[4]) { thread (t = \"blockIdx.x\", 4) { A[t] = 1.0 } }"),
              HasSubstr("thread axis 'blockIdx.x': a DianNao card has cid"));
  EXPECT_THAT(ErrorOf("func f(A: f32[4]) { A[0] = 1.0 thread (tid, 4) { A[tid] = 1.0 } }"),
              HasSubstr("'A[0] = 1.0' stands outside a thread loop"));
  EXPECT_THAT(ErrorOf("func f(A: f32[4] @smem) { A[0] = 1.0 }"),
              HasSubstr("parameters of a program are in gmem"));
  EXPECT_THAT(ErrorOf("func f(A: f32[4, 4]) { A[0, 1] = 1.0 }"), HasSubstr("flatten first"));
  EXPECT_THAT(ErrorOf("func f(A: f32[4]) { frobnicate(&A[0]) }"), HasSubstr("has no 'frobnicate'"));
}

// Cores beyond a loop's extent, extents beyond the card's cores, axes that are not used.
TEST(ScalarCodeTest, ThreadLoopsOfAnyExtent) {
  for (const char* text : {
           "func f(A: i32[40]) { thread (cid, 1) { thread (tid, 1) { A[cid + tid] = 7 } } }",
           "func f(A: i32[40]) { thread (cid, 2) { thread (tid, 2) { A[cid * 2 + tid] = 7 } } }",
           "func f(A: i32[40]) { thread (cid, 5) { thread (tid, 7) { A[cid * 7 + tid] = cid } } }",
           "func f(A: i32[40]) { thread (tid, 3) { A[tid] = tid } }",
           "func f(A: i32[40]) { thread (cid, 3) { A[cid] = cid } }",
           "func f(A: i32[40]) { thread (tid, 5, 3) { A[tid] = tid } }",
           "func f(A: i32[40], n: i32) { thread (tid, n) { A[tid] = tid } }",
           "func f(A: i32[40]) { A[0] = 1 A[A[0]] = 2 }",
           "func f(A: i32[40]) { thread (cid, 2) { thread (tid, 2) { A[cid * 2 + tid] = tid } }"
           " thread (c2 = \"cid\", 2) { thread (t2 = \"tid\", 2) {"
           "   A[10 + c2 * 2 + t2] = A[3 - c2 * 2 - t2] + 1 } } }",
       }) {
    SCOPED_TRACE(text);
    absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
    ASSERT_TRUE(function.ok()) << function.status();
    absl::StatusOr<codegen::Runner> runner = CompileForCard(*function);
    ASSERT_TRUE(runner.ok()) << runner.status();
    EXPECT_EQ(codegen::Disagreement(*function, ir::RandomArguments(*function, 3), *runner), "");
  }
}

}  // namespace
}  // namespace polynao
