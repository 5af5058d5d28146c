// Pipelined loops on the simulator, which stops on every hazard: random tile loops compute the same values there as
// the original loops do in the interpreter, in fewer cycles than without the pass. The queue
// interpreter, which knows no hazards, agrees on values.

#include <memory>

#include "base/check.h"
#include "base/text.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pipeline_program_for_test.h"
#include "compiler/passes/queue_interpreter.h"
#include "compiler/registry/registry.h"
#include "gtest/gtest.h"
#include "simulator/simulator.h"
#include "testing/machine.h"

namespace polynao {
namespace {

constexpr int64_t kLength = 4000;

struct Outcome {
  std::vector<ir::Tensor> tensors;
  int64_t cycles = 0;
};

std::vector<ir::Tensor> Inputs(const ir::Function& f, uint64_t seed) {
  std::vector<ir::Tensor> tensors;
  for (const ir::Param& param : f.params) {
    if (!param.buffer) continue;
    tensors.push_back(ir::RandomTensor(param.buffer->type, {kLength}, seed + tensors.size()));
  }
  return tensors;
}

class PipelineOnTheCardTest : public testing::Test {
 protected:
  PipelineOnTheCardTest() : machine_(TestMachine("unit")) {
    target_.name = "diannao";
    target_.instructions = &isa::DianNao();
    target_.machine = &machine_;
  }

  std::vector<ir::Tensor> Interpreted(const ir::Function& f, int64_t n, uint64_t seed) const {
    std::vector<ir::Tensor> tensors = Inputs(f, seed);
    std::vector<ir::Argument> arguments;
    for (ir::Tensor& tensor : tensors) arguments.push_back(ir::Argument::Of(&tensor));
    if (f.params.back().var) arguments.push_back(ir::Argument::Int(n));
    ir::InterpreterOptions options;
    options.intrinsics = &target_.instructions->intrinsics();
    const absl::Status status = ir::Interpret(f, arguments, nullptr, options);
    POLYNAO_CHECK(status.ok()) << status;
    return tensors;
  }

  Outcome Simulated(const ir::Function& input, int64_t n, uint64_t seed,
                    std::vector<std::string> skip) const {
    ir::Function f = ir::CloneInto(input, std::make_shared<ir::Context>());
    PipelineOptions options;
    options.skip = std::move(skip);
    options.skip.push_back("loop_partition");  // it would split the loops at their guards
    const absl::Status status = RunPasses(f, *PipelineFor(target_), target_, options);
    POLYNAO_CHECK(status.ok()) << status;
    const absl::Status in_order = CheckQueueOrder(f, target_, seed, 1);
    EXPECT_TRUE(in_order.ok()) << in_order << "\n" << ir::Print(f);
    const absl::StatusOr<isa::Program> program = GenerateDianNao(f, target_);
    POLYNAO_CHECK(program.ok()) << program.status() << ir::Print(f);
    Outcome outcome = {.tensors = Inputs(f, seed)};
    std::vector<simulator::Argument> arguments;
    for (ir::Tensor& tensor : outcome.tensors)
      arguments.push_back(simulator::Argument::Of(&tensor));
    if (f.params.back().var) arguments.push_back(simulator::Argument::Scalar(n));
    simulator::RunOptions run;
    run.machine = &machine_;
    const absl::StatusOr<simulator::RunResult> result =
        simulator::Run(*target_.instructions, *program, arguments, run);
    EXPECT_TRUE(result.ok()) << result.status() << "\n" << ir::Print(f);
    if (result.ok()) outcome.cycles = result->cycles;
    return outcome;
  }

  // Cycles with and without the pass.
  std::pair<int64_t, int64_t> Compare(std::string_view text, int64_t n, uint64_t seed) const {
    const absl::StatusOr<ir::Function> f = ir::ParseFunction(text, "test.nir");
    POLYNAO_CHECK(f.ok()) << f.status();
    const std::vector<ir::Tensor> expected = Interpreted(*f, n, seed);
    const Outcome with = Simulated(*f, n, seed, {});
    for (size_t i = 0; i < expected.size(); ++i) {
      const ir::Difference d = ir::Compare(expected[i], with.tensors[i]);
      EXPECT_LT(d.where, 0) << "tensor " << i << ", element " << d.where;
    }
    return {with.cycles, Simulated(*f, n, seed, {"pipeline"}).cycles};
  }

  const isa::Machine machine_;
  Target target_;
};

TEST_F(PipelineOnTheCardTest, RandomProgramsComputeTheSame) {
  const char* const kRunTime[] = {"n", "min(n, 3) + tid", "(n - cid) / 2", "n * 2 - tid"};
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    const std::string iterations = seed % 3 == 0 ? kRunTime[seed / 3 % 4] : StrCat(1 + seed % 9);
    const std::string text = RandomPipelineProgram(seed, iterations);
    SCOPED_TRACE(StrCat("seed ", seed, "\n", text));
    Compare(text, 1 + static_cast<int64_t>(seed) % 5, seed);
  }
}

// Larger tiles than the random ones, so that queues have something to overlap.
TEST_F(PipelineOnTheCardTest, OverlapSavesCycles) {
  const auto program = [](std::string_view iterations, std::string_view body) {
    return StrCat(
        "func f(A: f16[4000] in, C: f16[4000] out, n: i32) { thread (tid, 1) { for (t, 0, ",
        iterations,
        ") { pragma \"double_buffer\" (3) { allocate X: f16[640] @nmem allocate Y: f16[640] @nmem",
        body, " } } } }");
  };
  const std::string body =
      " memcpy.f16.nmem.gmem.async(&X[0], &A[t * 640], 640, 1, 0, 0) exp.f16(&Y[0], &X[0], 640)"
      " exp.f16(&Y[0], &Y[0], 640) memcpy.f16.gmem.nmem.async(&C[t * 640], &Y[0], 640, 1, 0, 0)";
  const std::string filled =
      StrCat(" fill.f16(&X[0], f16(1.0), 640) if (t < 3) { fill.f16(&X[0], f16(2.0), 640) }", body);
  for (const char* n : {"6", "n"}) {
    for (const std::string& b : {body, filled}) {
      const auto [with, without] = Compare(program(n, b), 6, 1);
      EXPECT_LT(with * 5, without * 4) << n << b;
    }
  }
}

// The memory core loads the next block, and stores the one before, while the cores compute.
TEST_F(PipelineOnTheCardTest, BlocksOfACluster) {
  constexpr char kStore[] =
      " memcpy.f16.gmem.smem.async(&E[cid * 2000 + b * 256], &R[0], 256, 1, 0, 0)";
  for (int n = 2; n <= 7; ++n) {
    for (const char* store : {"", kStore}) {
      const std::string text = StrCat(
          "func f(A: f16[4000] in, C: f16[4000] out, E: f16[4000] out) { thread (cid, 2) {",
          // The second round finds the copies that the first one has used.
          " for (again, 0, 2) { for (b, 0, ", n,
          ") { pragma \"double_buffer\" { allocate S: f16[256] @smem allocate R: f16[256] @smem"
          " memcpy.f16.smem.gmem.async(&S[0], &A[cid * 2000 + b * 256], 256, 1, 0, 0)"
          " thread (tid, 2) { for (t, 0, 2) { pragma \"double_buffer\" {"
          " allocate X: f16[64] @nmem allocate Y: f16[64] @nmem"
          " memcpy.f16.nmem.smem.async(&X[0], &S[tid * 128 + t * 64], 64, 1, 0, 0)"
          " relu.f16(&Y[0], &X[0], 64)"
          " memcpy.f16.smem.nmem.async(&R[tid * 128 + t * 64], &Y[0], 64, 1, 0, 0)"
          " memcpy.f16.gmem.nmem.async(&C[cid * 2000 + b * 256 + tid * 128 + t * 64], &Y[0], 64, 1,"
          " 0, 0) } } }",
          store, " } } } } }");
      SCOPED_TRACE(text);
      const auto [with, without] = Compare(text, 0, n);
      if (n > 3) EXPECT_LT(with, without);
    }
  }
}

}  // namespace
}  // namespace polynao
