// "Tensor instruction generation optimization fusing with loop partitioning" (Liang, Hua, Su), from its first listing
// to its last figure: each test is one of them, in their order, and takes the listing as it is printed. What a listing
// leaves out is declared around it (the tensor in GMEM that it copies from); a brace that the last but one lacks is put
// in. README.md says where the document's instructions and ours differ.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "benchmarks/suites.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/loop_partition.h"
#include "compiler/registry/registry.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "simulator/simulator.h"
#include "testing/machine.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

// The passes up to the instructions, without those that place buffers and order queues.
constexpr char kToInstructions[] =
    "simplify,preprocess,loop_partition,simplify,flatten,simplify,tensorize,simplify,join_ifs";

// The document's card: NMEM 512 KiB, WMEM 1 MiB, SMEM 2 MiB (Table I).
const isa::Machine& Machine() {
  static const auto* machine = new isa::Machine(TestMachine("mlu270"));
  return *machine;
}

const Target& Card() {
  static const auto* target = new Target{"diannao", &isa::DianNao(), &Machine()};
  return *target;
}

ir::Function Parse(const std::string& text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text, "listing");
  POLYNAO_CHECK(function.ok()) << function.status() << "\n" << text;
  POLYNAO_CHECK(ir::Verify(*function).ok()) << ir::Verify(*function);
  return *std::move(function);
}

// What `passes` make of a function, as text. Each pass is checked to keep the meaning, unless the
// function as printed stops in the interpreter.
std::string After(const std::string& text, std::string_view passes, bool check = true) {
  ir::Function function = Parse(text);
  const auto list = ParsePasses(passes);
  POLYNAO_CHECK(list.ok()) << list.status();
  const absl::Status status = RunPasses(function, *list, Card(), {.check = check});
  EXPECT_TRUE(status.ok()) << status;
  return ir::Print(function);
}

// Without the mark that loop_partition has been there.
std::string Unmarked(std::string text) {
  constexpr std::string_view kMark = "@partitioned\n";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

std::string Printed(const std::string& text) { return ir::Print(Parse(text)); }

absl::StatusOr<ir::Runner> Compile(const ir::Function& function) {
  ir::Function lowered = ir::CloneInto(function, std::make_shared<ir::Context>());
  ASSIGN_OR_RETURN(std::vector<PassSpec> passes, PipelineFor(Card()));
  RETURN_IF_ERROR(RunPasses(lowered, passes, Card()));
  ASSIGN_OR_RETURN(isa::Program program, GenerateDianNao(lowered, Card()));
  return ir::Runner([program](absl::Span<const ir::Argument> arguments) {
    std::vector<simulator::Argument> card;
    std::vector<std::pair<ir::Tensor*, std::vector<int64_t>>> shapes;
    for (size_t i = 0; i < arguments.size(); ++i) {
      ir::Tensor* tensor = arguments[i].tensor;
      shapes.emplace_back(tensor, tensor->shape);
      tensor->shape = program.params[i].shape;
      card.push_back(simulator::Argument::Of(tensor));
    }
    simulator::RunOptions options;
    options.machine = &Machine();
    const auto result = simulator::Run(*Card().instructions, program, card, options);
    for (auto& [tensor, shape] : shapes) tensor->shape = shape;
    return result.status();
  });
}

// Runs `text` on the simulated card; the values must be those of `meaning` in the interpreter.
void ExpectOnTheCard(const std::string& text, const std::string& meaning) {
  const absl::StatusOr<ir::Runner> runner = Compile(Parse(text));
  ASSERT_TRUE(runner.ok()) << runner.status();
  const ir::Function reference = Parse(meaning);
  for (const uint64_t seed : {1, 2, 3}) {
    EXPECT_EQ(ir::Disagreement(reference, ir::RandomArguments(reference, seed), *runner), "");
  }
}

// ---- III-A: an addition of 14 x 14 ---------------------------------------------------------------

// The second listing of III-A, as printed.
constexpr char kTensorAdd[] = R"(
thread(tid, 4)
allocate(A, 56)
allocate(B, 56)
allocate(C, 56)
for (i, 0, 4)
  pragma="TADD"
  for (j, 0, 14)
    if (((tid*4) + i) < 14)
      C[(((tid*56)+(i*14))+j)] =
        A[(((tid*56)+(i*14))+j)] +
        B[(((tid*56)+(i*14))+j)]
)";

// The first listing of III-A: placeholder, compute, split(nparts=4), bind and pragma. Ours adds what the document has
// in the next listing, the copies on chip. The pragma stands on yy, which the next listing shows it on.
TEST(TensorizePaper, III_A_TensorExpression) {
  te::Graph g("add");
  const te::Tensor a = g.Placeholder("A", {14, 14}, ir::Type::kF32);
  const te::Tensor b = g.Placeholder("B", {14, 14}, ir::Type::kF32);
  const te::Tensor c = g.Compute(
      "C", {14, 14}, [&](ir::Expr i, ir::Expr j) { return a(i, j) + b(i, j); }, {"xx", "yy"});
  te::Schedule s(c);
  auto [xxo, xxi] = s[c].SplitParts(s[c].axis(0), 4);
  s[c].Bind(xxo, "tid").Pragma(s[c].axis(1), "TADD");
  absl::StatusOr<ir::Function> lowered = te::Lower(s);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(ir::Print(*lowered),
            R"(func add(A: f32[14, 14] in, B: f32[14, 14] in, C: f32[14, 14] out) {
  thread (tid, 4) {
    for (xxi, 0, 4) {
      pragma "TADD" {
        for (yy, 0, 14) {
          if (tid * 4 + xxi < 14) {
            C[tid * 4 + xxi, yy] = A[tid * 4 + xxi, yy] + B[tid * 4 + xxi, yy]
          }
        }
      }
    }
  }
}
)");
}

// An addition needs no split of its own: what the last core computes besides stays on chip, so both sides of the
// partition are one instruction of 64 elements, the least multiple that it takes. The allocations grow from 56 to 64
// (IV-B, ALIGN).
TEST(TensorizePaper, III_A_TensorAdd) {
  EXPECT_EQ(After(StrCat("func tadd() {", kTensorAdd, "}"), kToInstructions, /*check=*/false),
            R"(@partitioned
func tadd() {
  thread (tid, 4) {
    allocate A: f32[64] @nmem
    allocate B: f32[64] @nmem
    allocate C: f32[64] @nmem
    add.f32(&C[0], &A[0], &B[0], 64)
  }
}
)");
}

// The steps in between: the guard on i alone, and the sets of algorithm 2.
TEST(TensorizePaper, III_A_TensorAddIsPartitioned) {
  EXPECT_EQ(
      After(StrCat("func tadd() {", kTensorAdd, "}"), "simplify,preprocess,loop_partition,simplify",
            /*check=*/false),
      R"(@partitioned
func tadd() {
  thread (tid, 4) {
    allocate A: f32[56] @nmem
    allocate B: f32[56] @nmem
    allocate C: f32[56] @nmem
    if (tid < 3) {
      for (i, 0, 4) {
        pragma "add" {
          for (j, 0, 14) {
            C[i * 14 + j] = A[i * 14 + j] + B[i * 14 + j]
          }
        }
      }
    } else {
      for (i, 0, 2) {
        pragma "add" {
          for (j, 0, 14) {
            C[i * 14 + j] = A[i * 14 + j] + B[i * 14 + j]
          }
        }
      }
    }
  }
}
)");
}

// With the copies around it that give A and B values, in the same style: on the card it adds.
TEST(TensorizePaper, III_A_TensorAddOnTheCard) {
  const auto program = [](const std::string& elements) {
    return StrCat(R"(func add(X: f32[196] in, Y: f32[196] in, Z: f32[196] out) {
thread(tid, 4)
allocate(A, )",
                  elements, R"()
allocate(B, )",
                  elements, R"()
allocate(C, )",
                  elements, R"()
for (i, 0, 4)
  pragma="MEMCPY"
  for (j, 0, 14)
    if (((tid*4) + i) < 14)
      A[(((tid*56)+(i*14))+j)] = X[(((tid*56)+(i*14))+j)]
for (i, 0, 4)
  pragma="MEMCPY"
  for (j, 0, 14)
    if (((tid*4) + i) < 14)
      B[(((tid*56)+(i*14))+j)] = Y[(((tid*56)+(i*14))+j)]
for (i, 0, 4)
  pragma="TADD"
  for (j, 0, 14)
    if (((tid*4) + i) < 14)
      C[(((tid*56)+(i*14))+j)] =
        A[(((tid*56)+(i*14))+j)] +
        B[(((tid*56)+(i*14))+j)]
for (i, 0, 4)
  pragma="MEMCPY"
  for (j, 0, 14)
    if (((tid*4) + i) < 14)
      Z[(((tid*56)+(i*14))+j)] = C[(((tid*56)+(i*14))+j)]
})");
  };
  EXPECT_EQ(After(program("56"), kToInstructions, /*check=*/false), R"(@partitioned
func add(X: f32[196] in, Y: f32[196] in, Z: f32[196] out) {
  thread (tid, 4) {
    allocate A: f32[64] @nmem
    allocate B: f32[64] @nmem
    allocate C: f32[64] @nmem
    if (tid < 3) {
      memcpy.f32.nmem.gmem.async(&A[0], &X[tid * 56], 56, 1, 0, 0)
      memcpy.f32.nmem.gmem.async(&B[0], &Y[tid * 56], 56, 1, 0, 0)
    } else {
      memcpy.f32.nmem.gmem.async(&A[0], &X[168], 28, 1, 0, 0)
      memcpy.f32.nmem.gmem.async(&B[0], &Y[168], 28, 1, 0, 0)
    }
    add.f32(&C[0], &A[0], &B[0], 64)
    if (tid < 3) {
      memcpy.f32.gmem.nmem.async(&Z[tid * 56], &C[0], 56, 1, 0, 0)
    } else {
      memcpy.f32.gmem.nmem.async(&Z[168], &C[0], 28, 1, 0, 0)
    }
  }
}
)");
  ExpectOnTheCard(program("56"), program("224"));
}

// Sub, mul and relu, the other operators of Table II, by the same listing.
TEST(TensorizePaper, III_A_OtherElementwiseInstructions) {
  const auto instruction = [](const std::string& key, const std::string& value) {
    const std::string text = After(StrCat(R"(func f() {
thread(tid, 4)
allocate(A, 56)
allocate(B, 56)
allocate(C, 56)
pragma=")",
                                          key, R"("
for (i, 0, 4)
  for (j, 0, 14)
    if (((tid*4) + i) < 14)
      C[(i*14)+j] = )",
                                          value, " }"),
                                   kToInstructions);
    const size_t begin = text.find("    ", text.rfind("@nmem"));
    return text.substr(begin + 4, text.find('\n', begin) - begin - 4);
  };
  EXPECT_EQ(instruction("TSUB", "A[(i*14)+j] - B[(i*14)+j]"), "sub.f32(&C[0], &A[0], &B[0], 64)");
  EXPECT_EQ(instruction("TMUL", "A[(i*14)+j] * B[(i*14)+j]"), "mul.f32(&C[0], &A[0], &B[0], 64)");
  EXPECT_EQ(instruction("RELU", "max(C[(i*14)+j], 0)"), "relu.f32(&C[0], &C[0], 64)");
}

// ---- III-B, figure 1 -------------------------------------------------------------------------------

// Levels, their memories and their counts; Table I has the sizes.
TEST(TensorizePaper, Figure1AndTableI_TheCard) {
  const auto parameter = [](std::string_view name) { return Machine().Get(name); };
  EXPECT_EQ(parameter("card.clusters"), 4);
  EXPECT_EQ(parameter("cluster.cores"), 4);
  EXPECT_EQ(Card().MemoryBytes("smem"), 2 << 20);
  EXPECT_EQ(Card().MemoryBytes("nmem"), 512 << 10);
  EXPECT_EQ(Card().MemoryBytes("wmem"), 1 << 20);
}

// ---- IV-A, figure 2 --------------------------------------------------------------------------------

// Preprocessing, loop partitioning, selection, in this order.
TEST(TensorizePaper, Figure2_OrderOfThePasses) {
  const auto pipeline = PipelineFor(Card());
  ASSERT_TRUE(pipeline.ok());
  std::vector<std::string> steps;
  for (const PassSpec& pass : *pipeline) {
    if (pass.name == "preprocess" || pass.name == "loop_partition" || pass.name == "tensorize") {
      steps.push_back(pass.name);
    }
  }
  EXPECT_THAT(steps, testing::ElementsAre("preprocess", "loop_partition", "tensorize"));
}

// ---- IV-B, algorithm 1 -----------------------------------------------------------------------------

// ALIGN, ExpandAllocation: 100 elements do not fill groups of 64.
TEST(TensorizePaper, Algorithm1_Align) {
  EXPECT_EQ(After(R"(func f(X: f32[100] in, Y: f32[100] out) {
allocate(A, 100)
pragma="MEMCPY" for (i, 0, 100) A[i] = X[i]
pragma="RELU" for (i, 0, 100) A[i] = max(A[i], 0)
pragma="MEMCPY" for (i, 0, 100) Y[i] = A[i]
})",
                  kToInstructions),
            R"(func f(X: f32[100] in, Y: f32[100] out) {
  allocate A: f32[128] @nmem
  memcpy.f32.nmem.gmem.async(&A[0], &X[0], 100, 1, 0, 0)
  relu.f32(&A[0], &A[0], 128)
  memcpy.f32.gmem.nmem.async(&Y[0], &A[0], 100, 1, 0, 0)
}
)");
}

// LAYOUT, InstructionReplace: padding becomes a fill with zeros and a copy with strides.
TEST(TensorizePaper, Algorithm1_Layout) {
  EXPECT_EQ(After(R"(func f(X: f32[6, 8] in, Y: f32[8, 10] out) {
allocate(P: f32[8, 10] @local)
pragma="PAD"
for (i, 0, 8)
  for (j, 0, 10)
    P[i, j] = (((1 <= i) && (i < 7)) && ((1 <= j) && (j < 9))) ? X[i - 1, j - 1] : 0
pragma="MEMCPY"
for (i, 0, 8)
  for (j, 0, 10)
    Y[i, j] = P[i, j]
})",
                  kToInstructions),
            R"(func f(X: f32[48] in, Y: f32[80] out) {
  allocate P: f32[128] @nmem
  fill.f32(&P[0], 0.0, 128)
  memcpy.f32.nmem.gmem.async(&P[11], &X[0], 8, 6, 10, 8)
  memcpy.f32.gmem.nmem.async(&Y[0], &P[0], 80, 1, 0, 0)
}
)");
}

// COM, AddExtraCompute: a convolution of 5 rows in tiles of 2. Its guards go, and rows that nobody uses are computed.
constexpr char kConv[] =
    R"(func f(X: int8[7, 6, 8] in, V: int8[64, 3, 3, 8] in, Z: int32[5, 4, 64] out) {
thread(tid, 4)
allocate(P: int8[4, 6, 8] @local)
allocate(W: int8[64, 3, 3, 8] @local)
allocate(Y: int32[2, 4, 64] @local)
pragma="MEMCPY"
for (o, 0, 64) for (r, 0, 3) for (s, 0, 3) for (c, 0, 8)
  W[o][r][s][c] = V[o][r][s][c]
pragma="MEMCPY"
for (y, 0, 4) for (x, 0, 6) for (c, 0, 8)
  if (tid*2+y < 7)
    P[y][x][c] = X[tid*2+y][x][c]
pragma="CONV"
for (y, 0, 2) for (x, 0, 4) for (o, 0, 64) {
  if (tid*2+y < 5)
    Y[y][x][o] = 0
  for (r, 0, 3) for (s, 0, 3) for (c, 0, 8)
    if (tid*2+y < 5)
      Y[y][x][o] = Y[y][x][o] + int32(P[y+r][x+s][c]) * int32(W[o][r][s][c])
}
pragma="MEMCPY"
for (y, 0, 2) for (x, 0, 4) for (o, 0, 64)
  if (tid*2+y < 5)
    Z[tid*2+y][x][o] = Y[y][x][o]
})";

TEST(TensorizePaper, Algorithm1_Com) {
  EXPECT_EQ(Unmarked(After(kConv, kToInstructions)),
            R"(func f(X: i8[336] in, V: i8[4608] in, Z: i32[1280] out) {
  thread (tid, 4) {
    allocate P: i8[192] @nmem
    allocate W: i8[8192] @wmem
    allocate Y: i32[512] @nmem
    memcpy.i8.wmem.gmem.async(&W[0], &V[0], 72, 64, 128, 72)
    memcpy.i8.nmem.gmem.async(&P[0], &X[tid * 96], cast(i64, min(7 - tid * 2, 4)) * 48, 1, 0, 0)
    conv.i8(&Y[0], &P[0], &W[0], 2, 4, 64, 6, 3, 3, 8, 1, 1, 1, 1, 128, 128)
    if (tid < 3) {
      memcpy.i32.gmem.nmem.async(&Z[tid * 512], &Y[0], cast(i64, min(5 - tid * 2, 2)) * 256, 1, 0, 0)
    }
  }
}
)");
  ExpectOnTheCard(kConv, kConv);
}

// ---- IV-C, algorithm 2, figures 3 and 4 -------------------------------------------------------------

// The first listing of IV-C, as printed.
constexpr char kCopy[] = R"(
thread(tid, 4)
allocate(AL, 16)
pragma = "MEMCPY"
for (i, 0, 4)
  for (j, 0, 4)
    if (tid*4+j<14)
      AL[(i*4)+j]=A[i*14+(tid*4)+j]
)";

// The second one: tid < 3 has no guard any more.
constexpr char kCopyByThreads[] = R"(
thread(tid, 4)
allocate(AL, 16)
if (tid<3)
  pragma = "MEMCPY"
  for (i, 0, 4)
    for (j, 0, 4)
      AL[(i*4)+j]=A[i*14+(tid*4)+j]
else
  pragma = "MEMCPY"
  for (i, 0, 4)
    for (j, 0, 4)
      if (j<2)
        AL[(i*4)+j]=A[i*14+(tid*4)+j]
)";

// The third one, with the brace that closes `if (tid<3) {`, which the document lacks.
constexpr char kCopyPartitioned[] = R"(
thread(tid, 4)
allocate(AL, 16)
if (tid<3) {
  pragma = "MEMCPY"
  for (i, 0, 4)
    for (j, 0, 4) {
      AL[(i*4)+j]=A[i*14+(tid*4)+j]
    }
} else
  pragma = "MEMCPY"
  for (i, 0, 4)
    for (j, 0, 2)
      AL[(i*4)+j]=A[i*14+(tid*4)+j]
)";

std::string Copy(const char* listing) { return StrCat("func copy(A: f32[56] in) {", listing, "}"); }

// Figure 3 and 4: the sets of algorithm 2, of tid and then of j.
TEST(TensorizePaper, Figure4_Sets) {
  ir::Function function = Parse(Copy(kCopy));
  LoopPartitionStats stats;
  ASSERT_TRUE(LoopPartition(function, {}, &stats).ok());
  EXPECT_EQ(stats.ToString(),
            "tid in [0, 3]: tid * 4 + j < 14: T [0, 2], F none, B [3, 3]; pieces [0, 2] [3, 3]\n"
            "j in [0, 3]: tid * 4 + j < 14: T [0, 1], F [2, 3], B none; pieces [0, 1] [2, 3]\n");
}

TEST(TensorizePaper, IV_C_PartitionOfTheThreads) {
  EXPECT_EQ(Unmarked(After(Copy(kCopy),
                           "simplify,preprocess,loop_partition(max_nest_pieces=1),simplify")),
            After(Copy(kCopyByThreads), "simplify,preprocess"));
}

TEST(TensorizePaper, IV_C_PartitionOfTheLoops) {
  const std::string partitioned = After(Copy(kCopyPartitioned), "simplify,preprocess,simplify");
  for (const char* listing : {kCopy, kCopyByThreads}) {
    EXPECT_EQ(Unmarked(After(Copy(listing), "simplify,preprocess,loop_partition,simplify")),
              partitioned);
  }
}

// The fourth listing of IV-C. The document's memcpy(dst, src, stride, len, count) is memcpy(&dst, &src, len, count,
// stride of dst, stride of src): its memcpy(AL, A+tid*4, 14, 4, 4) and (AL, A+tid*4, 14, 2, 4) leave out that rows of
// AL start 4 apart.
TEST(TensorizePaper, IV_C_Instructions) {
  for (const char* listing : {kCopy, kCopyByThreads, kCopyPartitioned}) {
    EXPECT_EQ(Unmarked(After(Copy(listing), kToInstructions)), R"(func copy(A: f32[56] in) {
  thread (tid, 4) {
    allocate AL: f32[16] @nmem
    if (tid < 3) {
      memcpy.f32.nmem.gmem.async(&AL[0], &A[tid * 4], 4, 4, 4, 14)
    } else {
      memcpy.f32.nmem.gmem.async(&AL[0], &A[12], 2, 4, 4, 14)
    }
  }
}
)");
  }
}

TEST(TensorizePaper, IV_C_OnTheCard) {
  for (const char* listing : {kCopy, kCopyByThreads, kCopyPartitioned}) {
    const std::string program = StrCat("func copy(A: f32[56] in, B: f32[56] out) {", listing, R"(
pragma = "MEMCPY"
for (i, 0, 4)
  for (j, 0, 4)
    if (tid*4+j<14)
      B[i*14+(tid*4)+j]=AL[(i*4)+j]
})");
    ExpectOnTheCard(program, program);
  }
}

// ---- IV-D: selection -------------------------------------------------------------------------------

// A nest that no pattern fits is left alone, and its pragma stays.
TEST(TensorizePaper, IV_D_WhatMatchesNothingStays) {
  const std::string text = After(R"(func f(A: f32[64]) {
pragma="TADD"
for (i, 0, 64) A[i] = A[i] + A[63 - i]
})",
                                 "tensorize");
  EXPECT_EQ(
      text,
      Printed(
          R"(func f(A: f32[64]) { pragma "add" { for (i, 0, 64) { A[i] = A[i] + A[63 - i] } } })"));
}

// A key that nothing reads is an error.
TEST(TensorizePaper, IV_D_UnknownKey) {
  ir::Function f =
      Parse("func f(A: f32[64]) { pragma=\"TFROB\" for (i, 0, 64) A[i] = A[i] + A[i] }");
  const absl::Status status = RunPasses(f, *ParsePasses("tensorize"), Card());
  EXPECT_THAT(std::string(status.message()), HasSubstr("pragma \"TFROB\""));
}

// ---- V: experiments --------------------------------------------------------------------------------

// Table II. `nao bench tensorize48` runs these; docs/benchmarks.md has figures 5 to 8 and Table III.
TEST(TensorizePaper, TableII_Cases) {
  constexpr std::string_view kElementwise[] = {
      "256x56x56x15", "256x56x56x8", "256x56x56",    "128x56x56",   "64x56x56",  "32x56x56",
      "256x28x28",    "128x28x28",   "255x55x55x14", "255x55x55x7", "255x55x55", "127x55x55",
      "63x55x55",     "31x55x55",    "255x27x27",    "127x27x27"};
  constexpr std::string_view kConvolutions[] = {
      "56x56x256,128x3x3x256", "56x56x256,64x3x3x256", "56x56x256,32x3x3x256",
      "56x56x128,128x3x3x128", "56x56x128,64x3x3x128", "56x56x128,32x3x3x128",
      "56x56x64,128x3x3x64",   "56x56x64,64x3x3x64",   "55x55x256,128x3x3x256",
      "55x55x256,64x3x3x256",  "55x55x256,32x3x3x256", "55x55x128,128x3x3x128",
      "55x55x128,64x3x3x128",  "55x55x128,32x3x3x128", "55x55x64,128x3x3x64",
      "55x55x64,64x3x3x64"};
  std::vector<std::string> elementwise;
  std::vector<std::string> convolutions;
  for (const benchmarks::SuiteCase& c : (*benchmarks::FindSuite("tensorize48"))->cases) {
    if (c.op == "add") elementwise.push_back(c.shape);
    if (c.op == "conv2d") convolutions.push_back(c.shape);
  }
  EXPECT_THAT(elementwise, testing::UnorderedElementsAreArray(kElementwise));
  EXPECT_THAT(convolutions, testing::UnorderedElementsAreArray(kConvolutions));
}

}  // namespace
}  // namespace polynao
