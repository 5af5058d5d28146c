// Every way in which a program can go wrong, and the message that says so.

#include "absl/strings/str_cat.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kTwoTensors[] = ".tensor x f16 any in\n.tensor out f16 any out";

// Runs with x and out of 256 elements each where the program has them, and 7 for scalars.
absl::StatusOr<RunResult> RunWithDefaults(const isa::Machine& machine, const isa::Program& program,
                                          RunOptions options = {}) {
  std::vector<ir::Tensor> tensors;
  tensors.reserve(program.params.size());
  std::vector<Argument> arguments;
  for (const isa::ProgramParam& param : program.params) {
    if (param.is_tensor) {
      tensors.push_back(ir::RandomTensor(param.type, {256}, 1));
      arguments.push_back(Argument::Of(&tensors.back()));
    } else {
      arguments.push_back(Argument::Scalar(7));
    }
  }
  return RunProgram(machine, program, arguments, options);
}

std::string ErrorOf(const isa::Program& program, std::string_view machine = "mlu270",
                    RunOptions options = {}) {
  const auto result = RunWithDefaults(TestMachine(std::string(machine)), program, options);
  return result.ok() ? "no error" : std::string(result.status().message());
}

std::string ErrorOfCore0(std::string_view body, std::string_view params = "") {
  return ErrorOf(OnCore0(params, body));
}

TEST(Errors, SayWhereAndWhen) {
  EXPECT_THAT(ErrorOfCore0("  li r5, 3\n  div r6, r5, r0\n"),
              AllOf(HasSubstr("cluster 0 core 0 pc 9 \"div r6, r5, r0\" cycle 18: "),
                    HasSubstr("rhs != 0")));
}

TEST(Errors, AProgramOfAnotherMachine) {
  const isa::Program program = TestProgram(
      ".program p\n.machine \"core.nmem_kib=512\"\n.machine \"gmem.dram=ddr4_3200\"\nhalt\n");
  EXPECT_EQ(ErrorOf(program), "no error");
  EXPECT_EQ(
      ErrorOf(program, "mlu370"),
      "program p was compiled for another machine, of core.nmem_kib = 512: found 768 in mlu370");
  RunOptions options;
  options.any_machine = true;
  EXPECT_EQ(ErrorOf(program, "mlu370", options), "no error");
}

TEST(Errors, Constraints) {
  EXPECT_THAT(ErrorOfCore0("  li r5, 65\n  fill.f16 r0, r0, r5\n"),
              AllOf(HasSubstr("pc 9"), HasSubstr("count % 64 == 0"), HasSubstr("65")));
  EXPECT_THAT(ErrorOfCore0("  li r5, 64\n  fill.f16 r5, r0, r5\n"), HasSubstr("% 128 == 0"));
  EXPECT_EQ(ErrorOfCore0("  li r5, 64\n  fill.f16 r0, r0, r5\n"), "no error");
}

TEST(Errors, BadWordAndPcOutsideOfTheProgram) {
  isa::Program program = TestProgram("li r0, 0\nli r0, 1\n");
  EXPECT_THAT(ErrorOf(program),
              HasSubstr("cluster 0 core 0 pc 2 cycle 4: pc is outside of the program, which has 2 "
                        "instructions"));
  program.code[1] = isa::Word{};
  EXPECT_THAT(ErrorOf(program), AllOf(HasSubstr("pc 1 "), HasSubstr("cycle 2: the word is no "
                                                                    "instruction")));
  EXPECT_THAT(ErrorOfCore0("  li r5, 1000\n  jump_register r5\n"),
              HasSubstr("pc 1000 cycle 20: pc is outside"));
}

TEST(Errors, AnEarlierErrorOfAnotherCoreWins) {
  // Core 1 runs ahead in simulated time, but core 0 fails in an earlier cycle.
  EXPECT_THAT(ErrorOf(OnCores(1, 2, "",
                              "  li r9, 50\n  beq r2, r0, fail\nloop:\n  sub r9, r9, r1\n"
                              "  bne r9, r0, loop\nfail:\n  div r5, r5, r0\n")),
              HasSubstr("cluster 0 core 0 pc 12 \"div r5, r5, r0\" cycle 20"));
}

TEST(Errors, OfSeveralInOneCycleTheFirstCoreCounts) {
  EXPECT_THAT(ErrorOf(TestProgram("li r0, 0\ndiv r0, r0, r0\n")), HasSubstr("cluster 0 core 0"));
  EXPECT_THAT(ErrorOf(OnCores(3, 2, "", "  beq r3, r0, not_this_core\n  div r0, r1, r0\n")),
              HasSubstr("cluster 1 core 0"));
}

TEST(Errors, Overflow) {
  EXPECT_THAT(ErrorOfCore0("  li r5, 262144\n  li r6, 128\n  fill.f16 r6, r0, r5\n"),
              HasSubstr("writes bytes 128 to 524416 of NMEM, which has 524288 bytes"));
  EXPECT_EQ(ErrorOfCore0("  li r5, 262144\n  fill.f16 r0, r0, r5\n"), "no error");
  EXPECT_THAT(ErrorOfCore0("  li r5, -4\n  load.i32.nmem r6, r5\n"),
              HasSubstr("reads bytes -4 to 0 of NMEM"));
  EXPECT_THAT(ErrorOfCore0("  li r5, 2097152\n  store.i32.smem r5, r1\n"),
              HasSubstr("writes bytes 2097152 to 2097156 of SMEM, which has 2097152 bytes"));
}

TEST(Errors, GmemOutsideOfTensors) {
  const std::string load = "  li r5, 257\n  memcpy.f16.nmem.gmem r0, r10, r5, r1, r0, r0\n";
  EXPECT_THAT(ErrorOfCore0("  arg r10, 8\n" + load, kTwoTensors),
              HasSubstr("reads GMEM bytes 1048576 to 1049090, beyond tensor x (bytes 1048576 to "
                        "1049088)"));
  EXPECT_THAT(ErrorOfCore0("  li r10, 0\n" + load, kTwoTensors),
              HasSubstr("reads GMEM bytes 0 to 514, which start in no tensor"));
  EXPECT_THAT(ErrorOfCore0("  arg r10, 8\n  store.f16.gmem r10, r1\n", kTwoTensors),
              HasSubstr("writes GMEM byte 1048576 in tensor x, which the program only reads"));
  EXPECT_THAT(ErrorOfCore0("  arg r10, 10\n", kTwoTensors), HasSubstr("cycle 16"));
}

TEST(Errors, MemoryCoreHasNoVectorUnitAndNoNmem) {
  const char start[] = "  arg r1, 4\n  li r0, 0\n  beq r1, r0, end\n  li r5, 64\n";
  EXPECT_THAT(ErrorOf(TestProgram(absl::StrCat(start, "  fill.f16 r0, r0, r5\nend:\n  halt\n"))),
              HasSubstr("cluster 0 memory core pc 4 \"fill.f16 r0, r0, r5\" cycle 8: the memory "
                        "core has no vector unit"));
  EXPECT_THAT(ErrorOf(TestProgram(absl::StrCat(start, "  store.i32.nmem r0, r5\nend:\n  halt\n"))),
              HasSubstr("the memory core has no NMEM"));
  EXPECT_THAT(ErrorOf(TestProgram(absl::StrCat(
                  start, "  memcpy.i8.wmem.smem r0, r0, r5, r1, r0, r0\nend:\n  halt\n"))),
              HasSubstr("the memory core has no WMEM"));
  EXPECT_EQ(ErrorOf(TestProgram(absl::StrCat(start, "  store.i32.smem r0, r5\nend:\n  halt\n"))),
            "no error");
}

TEST(Errors, TheMachineLacksTheOperation) {
  EXPECT_THAT(ErrorOfCore0("  li r6, 64\n  li r7, 8192\n"
                           "  matmul.f16 r7, r0, r0, r1, r6, r6, r6, r6\n"),
              AllOf(HasSubstr("matmul.f16"), HasSubstr("tensor.macs_f16")));
}

TEST(Errors, Deadlock) {
  const std::string error = ErrorOf(OnCores(1, 2, "", "  barrier.cluster\n"));
  EXPECT_THAT(error, HasSubstr("deadlock in cycle"));
  EXPECT_THAT(error,
              HasSubstr("cluster 0 core 0 waits since cycle 16 at pc 8 \"barrier.cluster\""));
  EXPECT_THAT(error, HasSubstr("cluster 0 core 2 halted in cycle"));
  EXPECT_THAT(error, HasSubstr("cluster 0 memory core halted"));
}

TEST(Errors, MaxCycles) {
  RunOptions options;
  options.max_cycles = 1000;
  const isa::Machine machine = FlatMachine();
  const isa::Program endless = TestProgram("loop:\n  jump loop\n");
  const auto result = RunWithDefaults(machine, endless, options);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("the program runs for more than 1000 cycles"));
  // The longest that is allowed.
  const isa::Program halt = TestProgram("halt\n");
  options.max_cycles = 2;
  EXPECT_TRUE(RunWithDefaults(machine, halt, options).ok());
}

TEST(Errors, HazardsBetweenQueuesOfACore) {
  const std::string fill = "  li r5, 64\n  fill.f16 r0, r0, r5\n";
  const std::string move = "  memcpy.f16.smem.nmem.async r0, r0, r5, r1, r0, r0\n";
  EXPECT_THAT(ErrorOfCore0(fill + move),
              HasSubstr("hazard: reads byte 0 of NMEM, which cluster 0 core 0 writes at pc 9 "
                        "\"fill.f16 r0, r0, r5\", and no sync of the compute queue lies between"));
  EXPECT_EQ(ErrorOfCore0(fill + "  sync.compute\n" + move), "no error");
  EXPECT_THAT(ErrorOfCore0(fill + "  sync.io\n" + move), HasSubstr("hazard"));
  // Write after read.
  EXPECT_THAT(ErrorOfCore0(fill + "  sync\n" + move + "  fill.f16 r0, r0, r5\n"),
              HasSubstr("hazard: writes byte 0 of NMEM, which cluster 0 core 0 reads"));
  // No hazards: two reads, neighbouring bytes, and accesses of one queue.
  EXPECT_EQ(ErrorOfCore0(fill + "  sync\n" + move + "  li r6, 128\n  adds.f16 r6, r0, r0, r5\n"),
            "no error");
  EXPECT_EQ(ErrorOfCore0(fill + "  add.f16 r0, r0, r0, r5\n"), "no error");
  // Scalar accesses count, as reads and as writes. An instruction that waits has completed.
  EXPECT_THAT(ErrorOfCore0(fill + "  load.f16.nmem r6, r0\n"), HasSubstr("hazard"));
  EXPECT_EQ(ErrorOfCore0(fill + "  li r7, 128\n  store.f16.nmem r7, r0\n"), "no error");
  EXPECT_EQ(ErrorOfCore0(fill + "  sync\n  memcpy.f16.smem.nmem r0, r0, r5, r1, r0, r0\n"
                                "  fill.f16 r0, r0, r5\n"),
            "no error");
}

TEST(Errors, InterleavedSegmentsAreNoHazard) {
  // Even runs of 128 bytes are copied out while odd ones are filled.
  const std::string even =
      "  li r5, 6400\n  fill.f16 r0, r0, r5\n  sync\n  li r6, 64\n  li r7, 10\n  li r8, 128\n"
      "  memcpy.f16.smem.nmem.async r0, r0, r6, r7, r6, r8\n";
  EXPECT_EQ(ErrorOfCore0(even + "  li r9, 128\n  fill.f16 r9, r0, r6\n"), "no error");
  EXPECT_THAT(ErrorOfCore0(even + "  li r9, 256\n  fill.f16 r9, r0, r6\n"),
              HasSubstr("hazard: writes byte 256 of NMEM"));
}

TEST(Errors, HazardsBetweenCoresInSmem) {
  // Core 0 writes SMEM, core 1 reads it.
  const auto program = [](std::string_view ordering) {
    return TestProgram(absl::StrCat(R"(
      li r0, 0
      li r1, 1
      li r5, 64
      arg r2, 0
      arg r3, 1
      bne r3, r0, others
      beq r2, r0, writer
      bne r2, r1, others
    )",
                                    std::string(ordering), R"(
      memcpy.f16.nmem.smem r0, r0, r5, r1, r0, r0
      halt
    writer:
      fill.f16 r0, r0, r5
      sync
      memcpy.f16.smem.nmem.async r0, r0, r5, r1, r0, r0
    others:
    )",
                                    std::string(ordering), "  halt\n"));
  };
  EXPECT_EQ(ErrorOf(program("  barrier.cluster\n")), "no error");
  EXPECT_EQ(ErrorOf(program("  barrier.global\n")), "no error");
}

TEST(Errors, HazardsInSmemDoNotDependOnTiming) {
  // Core 1 reads long after the copy of core 0 is done, but nothing says that it is.
  const isa::Program program = TestProgram(R"(
      li r0, 0
      li r1, 1
      li r5, 64
      arg r2, 0
      arg r3, 1
      bne r3, r0, end
      beq r2, r0, writer
      bne r2, r1, end
      li r9, 1000
    wait:
      sub r9, r9, r1
      bne r9, r0, wait
      memcpy.f16.nmem.smem r0, r0, r5, r1, r0, r0
      halt
    writer:
      fill.f16 r0, r0, r5
      sync
      memcpy.f16.smem.nmem r0, r0, r5, r1, r0, r0
    end:
      halt
  )");
  EXPECT_THAT(
      ErrorOf(program),
      AllOf(HasSubstr("cluster 0 core 1 pc 11"),
            HasSubstr("hazard: reads byte 0 of SMEM, which cluster 0 core 0 writes at pc 15"),
            HasSubstr("no barrier after a sync of it lies between")));
}

TEST(Errors, HazardsBetweenClustersInGmem) {
  // Cluster 0 writes x, cluster 1 reads it.
  const auto program = [](std::string_view ordering) {
    return TestProgram(absl::StrCat(R"(
      .tensor x i32 any inout
      li r0, 0
      arg r1, 0
      arg r2, 1
      arg r5, 8
      bne r1, r0, others
      bne r2, r0, others
      store.i32.gmem r5, r1
    others:
    )",
                                    std::string(ordering), R"(
      bne r1, r0, end
      beq r2, r0, end
      load.i32.gmem r6, r5
    end:
      halt
    )"));
  };
  EXPECT_EQ(ErrorOf(program("  barrier.global\n")), "no error");
  EXPECT_THAT(ErrorOf(program("  barrier.cluster\n")),
              HasSubstr("no barrier of the card after a sync of it lies between"));
}

TEST(Errors, UndefinedMemory) {
  EXPECT_THAT(ErrorOfCore0("  load.i32.nmem r5, r0\n"),
              HasSubstr("reads bytes 0 to 4 of NMEM, which were never written"));
  // An elementwise instruction may read undefined lanes; their results are undefined too.
  const std::string add = "  li r5, 64\n  li r6, 128\n  adds.f16 r6, r0, r1, r5\n  sync\n";
  EXPECT_EQ(ErrorOfCore0(add), "no error");
  EXPECT_THAT(ErrorOfCore0(add + "  load.f16.nmem r7, r6\n"),
              HasSubstr("reads bytes 128 to 130 of NMEM, which were never written"));
  EXPECT_THAT(ErrorOfCore0(add + "  memcpy.f16.smem.nmem r0, r6, r5, r1, r0, r0\n"),
              HasSubstr("never written"));
  // The defined lanes stay defined: 10 of 64.
  const std::string ten =
      "  li r5, 64\n  li r6, 128\n  li r7, 10\n  arg r8, 8\n"
      "  memcpy.f16.nmem.gmem r0, r8, r7, r1, r0, r0\n"
      "  adds.f16 r6, r0, r1, r5\n  sync\n  arg r9, 9\n";
  EXPECT_EQ(ErrorOfCore0(ten + "  memcpy.f16.gmem.nmem r9, r6, r7, r1, r0, r0\n", kTwoTensors),
            "no error");
  EXPECT_THAT(
      ErrorOfCore0(ten + "  addi r7, r7, 1\n  memcpy.f16.gmem.nmem r9, r6, r7, r1, r0, r0\n",
                   kTwoTensors),
      HasSubstr("reads bytes 148 to 150 of NMEM, which were never written"));
  // Reductions read every lane. Copying an undefined byte is an error.
  const std::string sum = "  li r5, 64\n  li r6, 128\n  reduce_sum.f16 r6, r0, r1, r5, r5\n";
  EXPECT_EQ(ErrorOfCore0(sum), "no error");
  EXPECT_THAT(ErrorOfCore0(sum + "  sync\n  load.f16.nmem r7, r6\n"),
              HasSubstr("reads bytes 128 to 130 of NMEM, which were never written"));
  EXPECT_THAT(ErrorOfCore0("  li r5, 64\n  li r6, 128\n"
                           "  memcpy.f16.nmem.nmem r6, r0, r5, r1, r0, r0\n"),
              HasSubstr("reads bytes 0 to 128 of NMEM, which were never written"));
  // GMEM: an output tensor starts undefined.
  EXPECT_THAT(ErrorOfCore0("  arg r9, 9\n  load.f16.gmem r5, r9\n", kTwoTensors),
              HasSubstr("of GMEM, which were never written"));
  EXPECT_EQ(ErrorOfCore0("  arg r9, 8\n  load.f16.gmem r5, r9\n", kTwoTensors), "no error");
}

// A convolution of 2 x 2 pixels of 64 channels with 64 filters of 1 x 1 at 1024 in NMEM, of whose
// image only `pixels` pixels and of whose filters only `filters` were loaded; then a store of the
// first `stored_channels` channels of the first `stored_pixels` pixels.
std::string Convolution(int pixels, int filters, int stored_pixels, int stored_channels,
                        std::string_view row = "conv.i8") {
  return absl::StrCat(
      "  li r4, 64\n  li r5, ", 64 * pixels, "\n  fill.i8 r0, r0, r5\n",  // image
      "  li r6, 8192\n  li r7, 4096\n  fill.i8 r6, r0, r7\n",             // filters
      "  li r8, ", filters, "\n  memcpy.i8.wmem.nmem r0, r6, r4, r8, r4, r4\n",
      "  li r9, 1024\n  li r10, 256\n  fill.i32 r9, r0, r10\n  li r11, 2\n  ", std::string(row),
      " r9, r0, r0, r11, r11, r4, r11, r1, r1, r4, r1, r1, r1, r1, r4, r4\n  sync\n", "  li r12, ",
      stored_channels, "\n  li r13, ", stored_pixels,
      "\n  memcpy.i32.smem.nmem r0, r9, r12, r13, r12, r4\n");
}

TEST(Errors, UndefinedResultsOfTheTensorUnit) {
  for (const char* row : {"conv.i8", "conv_acc.i8"}) {
    EXPECT_EQ(ErrorOfCore0(Convolution(4, 64, 4, 64, row)), "no error");
    // Half of the filters: half of the channels of each pixel.
    EXPECT_EQ(ErrorOfCore0(Convolution(4, 32, 4, 32, row)), "no error");
    EXPECT_THAT(ErrorOfCore0(Convolution(4, 32, 4, 33, row)),
                HasSubstr("reads bytes 1152 to 1156 of NMEM, which were never written, or computed "
                          "from such bytes"));
    // One row of the image: one row of the result.
    EXPECT_EQ(ErrorOfCore0(Convolution(2, 64, 2, 64, row)), "no error");
    EXPECT_THAT(ErrorOfCore0(Convolution(2, 64, 3, 64, row)),
                HasSubstr("reads bytes 1536 to 1792 of NMEM, which were never written"));
    EXPECT_EQ(ErrorOfCore0(Convolution(3, 5, 3, 5, row)), "no error");
    EXPECT_THAT(ErrorOfCore0(Convolution(3, 5, 4, 5, row)), HasSubstr("never written"));
    EXPECT_THAT(ErrorOfCore0(Convolution(3, 5, 3, 6, row)), HasSubstr("never written"));
  }
  // Only results computed from such lanes are undefined, however many instructions later.
  const auto cast = [](int pixels, int channels) {
    return absl::StrCat(Convolution(4, 32, 4, 32),
                        "  li r14, 2048\n  cast.f32.i32 r14, r9, r10\n  sync\n  li r12, ", channels,
                        "\n  li r13, ", pixels,
                        "\n  memcpy.f32.smem.nmem r0, r14, r12, r13, r12, r4\n");
  };
  EXPECT_EQ(ErrorOfCore0(cast(4, 32)), "no error");
  EXPECT_THAT(ErrorOfCore0(cast(1, 33)), HasSubstr("reads bytes 2176 to 2180 of NMEM"));
  // A sum over pixels whose last one is undefined; a bias for undefined lanes.
  const std::string matmul =
      "  li r4, 64\n  li r5, 128\n  fill.i8 r0, r0, r5\n  li r6, 8192\n  li r7, 4096\n"
      "  fill.i8 r6, r0, r7\n  memcpy.i8.wmem.nmem r0, r6, r7, r1, r0, r0\n  li r9, 1024\n"
      "  li r11, 3\n  matmul.i8 r9, r0, r0, r11, r4, r4, r4, r4\n"
      "  row_add.i32 r9, r9, r6, r11, r4\n  li r10, 128\n"
      "  reduce_sum.i32 r10, r9, r11, r4, r4\n  sync\n";
  EXPECT_EQ(ErrorOfCore0(matmul + "  addi r10, r10, 4\n  load.i32.nmem r20, r10\n"), "no error");
  EXPECT_THAT(ErrorOfCore0(matmul + "  addi r10, r10, 8\n  load.i32.nmem r20, r10\n"),
              HasSubstr("reads bytes 136 to 140 of NMEM"));
}

TEST(Errors, ChecksCanBeSwitchedOff) {
  RunOptions options;
  options.check_hazards = false;
  EXPECT_EQ(ErrorOf(OnCore0("", "  load.i32.nmem r5, r0\n"), "mlu270", options), "no error");
  // Without the check for hazards, bounds are still checked.
  EXPECT_THAT(ErrorOf(OnCore0("", "  li r5, -4\n  load.i32.nmem r6, r5\n"), "mlu270", options),
              HasSubstr("of NMEM, which has"));
}

TEST(Errors, ArgumentsThatDoNotFit) {
  const isa::Machine machine = TestMachine("unit");
  const isa::Program program = TestProgram(".tensor x f16 any in\n.scalar n i64\nhalt\n");
  ir::Tensor half(ir::Type::kF16, {4});
  ir::Tensor wide(ir::Type::kF32, {4});
  const auto error = [&](const std::vector<Argument>& arguments) {
    const auto result = RunProgram(machine, program, arguments);
    return result.ok() ? "no error" : std::string(result.status().message());
  };
  EXPECT_EQ(error({Argument::Of(&half), Argument::Scalar(4)}), "no error");
  EXPECT_THAT(error({Argument::Of(&half)}), HasSubstr("2 parameters; there are 1 arguments"));
  EXPECT_THAT(error({Argument::Scalar(4), Argument::Of(&half)}),
              HasSubstr("parameter x is a tensor"));
  EXPECT_THAT(error({Argument::Of(&wide), Argument::Scalar(4)}),
              HasSubstr("parameter x has type f16, its argument f32"));
  isa::Program shaped = program;
  shaped.params[0].any_shape = false;
  shaped.params[0].shape = {2, 2};
  const auto result = RunProgram(machine, shaped, {Argument::Of(&half), Argument::Scalar(4)});
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("parameter x has shape [2, 2], its argument [4]"));
  // 64 MiB.
  ir::Tensor large(ir::Type::kF16, {(64 << 20) / 2});
  EXPECT_THAT(error({Argument::Of(&large), Argument::Scalar(4)}), HasSubstr("bytes of GMEM"));
}

TEST(Errors, LeaveTheTensorsAlone) {
  ir::Tensor x = ir::RandomTensor(ir::Type::kI32, {16}, 3);
  const ir::Tensor before = x;
  const isa::Program program = OnCore0(".tensor x i32 any inout",
                                       "  arg r5, 8\n  store.i32.gmem r5, r0\n  div r5, r5, r0\n");
  EXPECT_FALSE(RunProgram(TestMachine("unit"), program, {Argument::Of(&x)}).ok());
  EXPECT_EQ(x.bytes, before.bytes);
}

}  // namespace
}  // namespace polynao::simulator
