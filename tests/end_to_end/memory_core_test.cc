// A cluster's memory core loads what its cores share, compiled for every machine of
// simulator/configs and simulated, against the interpreter. Without a wait that the compiler has
// put, the simulator stops.

#include <array>
#include <random>
#include <set>

#include "base/check.h"
#include "base/text.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/queue_interpreter.h"
#include "compiler/registry/registry.h"
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
  Compiled(const std::string& machine, std::string text,
           const std::vector<std::string>& overrides = {})
      : machine_(TestMachine(machine, overrides)) {
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

  // "" if the queues keep the meaning however late they run, or what differs. Drops as below.
  std::string QueueOrder(std::string_view dropped = "", int which = -1) const {
    ir::Function function = lowered_;
    int at = 0;
    if (which >= 0) function.body = Without(lowered_.body, dropped, which, at);
    return std::string(CheckQueueOrder(function, target_, 1, 2).message());
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

// What the simulator says where a wait is missing: whoever reads too early meets another's bytes, or
// none.
const auto& Disorder() {
  static const auto* matcher =
      new auto(testing::AnyOf(HasSubstr("hazard"), HasSubstr("never written")));
  return *matcher;
}

// B = A + the weights of the cluster, which its memory core brings to SMEM.
constexpr char kAddWeights[] = R"(
func f(W: f16[CL, 256] in, A: f16[CL, CO, 256] in, B: f16[CL, CO, 256] out) {
  thread (cid, CL) {
    allocate S: f16[256] @smem
    pragma "memcpy" { for (i, 0, 256) { S[i] = W[cid, i] } }
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
    EXPECT_THAT(compiled.Difference("barrier.cluster", 0), Disorder());
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
      thread (tid, CO) { B[cid, tid, b] = S[tid % 3] * (b + 1) }
    }
    C[cid] = S[2]
  }
}
)");
    EXPECT_EQ(compiled.Difference(), "");
    EXPECT_EQ(compiled.Count("barrier.cluster"), 2) << compiled.text();
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(compiled.Difference("barrier.cluster", i), Disorder()) << i;
    }
  }
}

// While the cores compute on one copy of the weights, the memory core fetches the next: one barrier a
// step, by the pipeline pass, and none by sync.
TEST(MemoryCoreTest, FetchesTheNextBlockWhileTheCoresCompute) {
  for (const char* machine : kMachines) {
    SCOPED_TRACE(machine);
    const Compiled compiled(machine, R"(
func f(W: f16[6, 256] in, B: f16[6, CL, CO, 256] out) {
  thread (cid, CL) {
    for (b, 0, 6) {
      pragma "double_buffer" {
        allocate S: f16[256] @smem
        pragma "memcpy" { for (i, 0, 256) { S[i] = W[b, i] } }
        thread (tid, CO) {
          allocate L: f16[256] @nmem
          pragma "memcpy" { for (i, 0, 256) { L[i] = S[i] } }
          pragma "adds" { for (i, 0, 256) { L[i] = L[i] + f16(1.0) } }
          pragma "memcpy" { for (i, 0, 256) { B[b, cid, tid, i] = L[i] } }
        }
      }
    }
  }
}
)");
    EXPECT_EQ(compiled.Difference(), "");
    // Steps of blocks 0 and 1 in a loop, of 4, and of 5.
    EXPECT_EQ(compiled.Count("barrier.cluster"), 4) << compiled.text();
    for (int i = 0; i < 4; ++i) {
      EXPECT_THAT(compiled.Difference("barrier.cluster", i), Disorder()) << i;
    }
  }
}

// A random program over two buffers in SMEM, of which each has four parts: the memory core fetches,
// copies and stores parts of them, and nests of cores read one part and write a row of their own in
// another, all of it in loops and branches.
class RandomProgram {
 public:
  // Without `control` there is one statement after the other, and no two nests write the same part:
  // there each core would meet only itself, but the compiler puts a barrier. And no part gets what it has
  // had before: nothing would show that an instruction came too early or too late.
  RandomProgram(uint64_t seed, bool control) : random_(seed), control_(control) {}

  std::string Text() {
    std::string body;
    for (int part = 0; part < 2 * kParts; ++part) {
      StrAppend(&body, Fetch(part));
    }
    for (int i = 0; i < 10; ++i) StrAppend(&body, Statement(0));
    return StrCat("func f(A: i32[", kInputs * kPart, "] in, B: i32[", outputs_ * kOutput,
                  "]) {\n thread (cid, CL) {\n allocate X: i32[", kParts * kPart,
                  "] @smem\n allocate Y: i32[", kParts * kPart, "] @smem\n", body, "} }");
  }

 private:
  static constexpr int kParts = 4;
  static constexpr int kPart = 64;  // elements; 16 for each core
  static constexpr int kInputs = 16;
  static constexpr int kOutput = 16 * 5 * kPart;  // clusters, cores and memory core

  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  std::string Part(int part) const {
    return StrCat(part < kParts ? "X[" : "Y[", part % kParts * kPart, "]");
  }
  // Whether the part may get the contents, which it then has.
  bool Put(int part, int contents) {
    contents_[part] = contents;
    return had_[part].insert(contents).second || control_;
  }
  std::string Fetch(int part) {
    int input = Pick(kInputs);
    while (!Put(part, input)) input = (input + 1) % kInputs;
    return Copy("smem", Part(part), "gmem", Input(input));
  }
  // Some part of A, another one in each iteration and cluster.
  std::string Input(int input) {
    std::string index = StrCat("(cid * 3 + ", input);
    for (int loop : loops_) StrAppend(&index, " + b", loop);
    return StrCat("A[", index, ") % ", kInputs, " * ", kPart, "]");
  }
  // A part of B that nobody else writes.
  std::string Output(std::string_view core) {
    return StrCat("B[", outputs_++ * kOutput, " + (cid * 5 + ", core, ") * ", kPart, "]");
  }
  static std::string Copy(std::string_view to, std::string_view dst, std::string_view from,
                          std::string_view src, int count = kPart) {
    return StrCat("memcpy.i32.", to, ".", from, ".async(&", dst, ", &", src, ", ", count,
                  ", 1, 0, 0)\n");
  }

  std::string Nest() {
    const int from = Pick(2 * kParts);
    std::string body =
        StrCat("thread (t", ++names_, " = \"tid\", CO) {\n", "allocate L: i32[64] @nmem\n",
               Copy("nmem", "L[0]", "smem", Part(from)));
    StrAppend(&body, "adds.i32(&L[0], &L[0], i32(", Pick(100), "), 64)\n");
    const int other = (from + 1 + Pick(2 * kParts - 1)) % (2 * kParts);
    if (Pick(2) == 0 && (control_ || written_.insert(other).second)) {
      std::string to = Part(other);
      to.insert(to.size() - 1, StrCat(" + t", names_, " * 16"));
      Put(other, kInputs + names_);
      StrAppend(&body, Copy("smem", to, "nmem", "L[16]", 16));
    }
    if (Pick(2) == 0) {
      StrAppend(&body, Copy("gmem", Output(StrCat("t", names_)), "nmem", "L[0]"));
    }
    return body + "}\n";
  }

  std::string Statement(int depth) {
    const int part = Pick(2 * kParts);
    switch (Pick(control_ && depth < 2 ? 9 : 7)) {
      case 0:
      case 1:
        return Fetch(part);
      case 2: {
        const int from = (part + 1) % (2 * kParts);
        if (!Put(part, contents_[from])) return Fetch(part);
        return Copy("smem", Part(part), "smem", Part(from));
      }
      case 3:
        return Copy("gmem", Output("4"), "smem", Part(part));
      case 7: {
        loops_.push_back(++names_);
        std::string text = StrCat("for (b", names_, ", 0, ", 1 + Pick(3), ") {\n");
        for (int i = 1 + Pick(3); i > 0; --i) StrAppend(&text, Statement(depth + 1));
        loops_.pop_back();
        return text + "}\n";
      }
      case 8: {
        const std::string then_case = Statement(depth + 1);
        const std::string condition =
            loops_.empty() ? StrCat("cid < ", Pick(4)) : StrCat("b", loops_[0], " < 1");
        return StrCat("if (", condition, ") {\n", then_case, "} else {\n", Nest(), "}\n");
      }
      default:
        return Nest();
    }
  }

  std::mt19937_64 random_;
  const bool control_;
  int outputs_ = 1;
  int names_ = 0;
  std::vector<int> loops_;
  std::set<int> written_;  // parts, by nests
  // What each part holds, and has held: a number of an input, or of a nest after those.
  std::array<int, 2 * kParts> contents_ = {};
  std::array<std::set<int>, 2 * kParts> had_;
};

TEST(MemoryCoreTest, RandomPrograms) {
  const uint64_t first = std::random_device{}();
  for (uint64_t seed = first; seed < first + 40; ++seed) {
    const std::string text = RandomProgram(seed, true).Text();
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << text);
    const Compiled compiled(seed % 4 == 0 ? "mlu270" : "unit", text);
    ASSERT_EQ(compiled.Difference(), "") << compiled.text();
    ASSERT_EQ(compiled.QueueOrder(), "") << compiled.text();
  }
}

// In a sequence of statements whose places are constant, each wait has its reason: without it the simulator finds a
// hazard, and by some order of the queues an instruction finds other bytes.
TEST(MemoryCoreTest, NoWaitOfASequenceCanBeLeftOut) {
  const uint64_t first = std::random_device{}();
  int dropped = 0;
  for (uint64_t seed = first; seed < first + 10; ++seed) {
    const std::string text = RandomProgram(seed, false).Text();
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << text);
    const Compiled compiled("unit", text);
    ASSERT_EQ(compiled.Difference(), "") << compiled.text();
    for (const char* wait : {"barrier.cluster", "sync.io", "sync.move", "sync.compute"}) {
      for (int i = compiled.Count(wait); i-- > 0; ++dropped) {
        ASSERT_THAT(compiled.Difference(wait, i), Disorder()) << wait << " " << i << "\n"
                                                              << compiled.text();
        ASSERT_NE(compiled.QueueOrder(wait, i), "") << wait << " " << i << "\n" << compiled.text();
      }
    }
  }
  EXPECT_GE(dropped, 40);
}

// Memories of two KiB of NMEM and one of SMEM, for programs that would need more if their buffers did
// not share bytes: in each step of the nests of cores a buffer of its own, which the next step
// reads too; in SMEM one for each nest, which the next one reads too.
TEST(MemoryCoreTest, BytesThatBuffersShareAreInOrder) {
  const uint64_t first = std::random_device{}();
  for (uint64_t seed = first; seed < first + 15; ++seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
    constexpr int kNests = 6;
    constexpr int kSteps = 12;
    std::string text = StrCat("func f(A: i32[4096] in, B: i32[", kNests * kSteps,
                              ", CL, CO, 64]) {\n thread (cid, CL) {\n");
    for (int nest = 0; nest < kNests; ++nest) {
      StrAppend(&text, "allocate S", nest, ": i32[64] @smem\n");
    }
    for (int nest = 0; nest < kNests; ++nest) {
      StrAppend(&text, "pragma \"memcpy\" { for (i, 0, 64) { S", nest, "[i] = A[", pick(64),
                " * 64", " + i] } }\n thread (t", nest, " = \"tid\", CO) {\n");
      for (int step = 0; step < kSteps; ++step) {
        StrAppend(&text, "allocate L", step, ": i32[64] @nmem\n");
      }
      for (int step = 0; step < kSteps; ++step) {
        const auto all = [&](std::string_view pragma, const std::string& statement) {
          StrAppend(&text, "pragma \"", pragma, "\" { for (i, 0, 64) { ", statement, " } }\n");
        };
        const std::string own = StrCat("L", step, "[i]");
        const bool loop = pick(4) == 0;
        if (loop) StrAppend(&text, "for (b, 0, 3) {\n");
        const int source = step == 0 ? 1 + pick(2) : pick(3);
        if (source == 0) all("adds", StrCat(own, " = L", step - 1, "[i] + ", pick(9)));
        if (source == 1) all("memcpy", StrCat(own, " = S", std::max(0, nest - pick(2)), "[i]"));
        if (source == 2) all("memcpy", StrCat(own, " = A[", pick(64), " * 64 + i]"));
        if (step > 0) all("add", StrCat(own, " = ", own, " + L", step - 1, "[i]"));
        if (pick(2) == 0) {
          all("memcpy", StrCat("B[", nest * kSteps + step, ", cid, t", nest, ", i] = ", own));
        }
        if (loop) StrAppend(&text, "}\n");
      }
      StrAppend(&text, "}\n");
    }
    StrAppend(&text, "} }\n");
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << text);
    const Compiled compiled("unit", text, {"core.nmem_kib=2", "cluster.smem_kib=1"});
    ASSERT_EQ(compiled.Difference(), "") << compiled.text();
    ASSERT_EQ(compiled.QueueOrder(), "") << compiled.text();
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
  // In a loop over all cores the memory core meets it, too; not in loops and branches inside.
  EXPECT_EQ(ErrorOf("func f() { thread (cid, 2) { thread (tid, 2) { barrier.cluster() } } }"), "");
  for (const char* inside :
       {"thread (tid, 1) { barrier.cluster() }", "thread (tid, 2) { barrier.global() }",
        "thread (tid, 2) { for (i, 0, 2) { barrier.cluster() } }",
        "thread (tid, 2) { if (tid < 1) { barrier.cluster() } }"}) {
    EXPECT_THAT(ErrorOf(StrCat("func f() { thread (cid, 2) { ", inside, " } }")),
                HasSubstr("stands in a loop over cores (tid)"))
        << inside;
  }
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
