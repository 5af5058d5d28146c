#include "compiler/poly/gpu/gpu.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/codegen/c/c_compiler.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::poly {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Mapped {
  std::string report;
  std::string text;  // of loop IR
  codegen::CudaFunction function;
  std::string cuda;
};

// Nothing that nothing has stored is loaded either. (The interpreter takes what the caller left in `out` parameters.)
void ExpectSameInShim(const ir::Function& before, std::vector<ir::Function> afters) {
  if (!codegen::FindCCompiler(false).ok()) return;
  for (size_t i = 0; i < afters.size(); ++i) StrAppend(&afters[i].name, "_", i);
  const auto compiled = codegen::ShimmedCuda::Create(afters);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (const uint64_t seed : {0, 1, 2}) {
    const auto arguments = ir::RandomArguments::Draw(before, seed, {.small_integers = true});
    if (!arguments.ok()) continue;
    ir::RandomArguments expected = *arguments;
    if (!ir::Interpret(before, expected.arguments()).ok()) continue;
    for (size_t i = 0; i < afters.size(); ++i) {
      EXPECT_EQ(ir::Disagreement(before, *arguments,
                                 [&](auto a) { return (*compiled)->Run(i, a, seed); }),
                "")
          << ir::Print(afters[i]);
    }
  }
}

// `program` as CUDA. The mapped function means the same, also with blocks so small that there are several.
Mapped Map(const std::string& program, const GpuOptions& options = {}) {
  Mapped result;
  const ir::Function before = *ir::ParseFunction(program);
  GpuOptions small = options;
  small.block = {{{3}, {3, 2}, {2, 1, 2}}};
  small.serial_tile = small.serial_tiles = 2;
  std::vector<ir::Function> afters;
  for (const GpuOptions& o : {small, options}) {
    ir::Function& after = afters.emplace_back(before);
    const auto report = ScheduleForGpu(after, o);
    EXPECT_TRUE(report.ok()) << report.status();
    result.report = report->ToString();
    EXPECT_EQ(ir::Verify(after), absl::OkStatus());
    EXPECT_EQ(ir::CompareMeaning(before, after, 1), "") << result.report;
  }
  ExpectSameInShim(before, afters);
  ir::Function& after = afters.back();
  result.text = ir::Print(after);
  const Target target{.name = "cuda"};
  EXPECT_EQ(RunPasses(after, *PipelineFor(target), target, {}), absl::OkStatus());
  const auto module = codegen::EmitCuda(after);
  EXPECT_TRUE(module.ok()) << module.status() << result.text;
  if (module.ok()) {
    result.function = module->functions[0];
    result.cuda = module->source;
  }
  return result;
}

const char kProduct[] = R"(
    func gemm(C: f64[n, m], A: f64[n, l] in, B: f64[l, m] in, n: i32, m: i32, l: i32) {
      for (i, 0, n) { for (j, 0, m) { for (k, 0, l) {
        C[i, j] = C[i, j] + A[i, k] * B[k, j]
      } } }
    })";

TEST(GpuTest, Product) {
  const Mapped m = Map(kProduct);
  EXPECT_THAT(m.report, HasSubstr("2 loops parallel: blocks of 8 x 32 threads, 1 serial, in tiles, "
                                  "shared A[8 x 32] B[32 x 32] = 10240 bytes, C in a register\n"));
  EXPECT_THAT(m.text, HasSubstr("allocate C.own: f64[i64(8), i64(32)] @local"));
  EXPECT_THAT(m.text, HasSubstr("C.own[ty, tx] = C.own[ty, tx] + A.shared["));
  ASSERT_EQ(m.function.kernels.size(), 1);
  const codegen::CudaKernel& kernel = m.function.kernels[0];
  EXPECT_EQ(kernel.block, (codegen::Extents{32, 8, 1}));
  EXPECT_EQ(kernel.shared_bytes, 10240);
  // Before and behind the copies of each tile; one more before C is stored.
  EXPECT_EQ(kernel.barriers, 3);
  EXPECT_THAT(m.cuda, HasSubstr("double C_own[1];"));
  EXPECT_THAT(m.cuda, HasSubstr("C_own[0] = C_own[0] + A_shared["));
}

// isl writes the first element of t2 apart from the rest: a piece that stores nothing of t3 must not store its
// registers either.
TEST(GpuTest, RegistersInPieces) {
  const Mapped m = Map(R"(
      func f(a: f32[15, 1] in, t3: f32[14, 1]) {
        allocate t1: f32[14, 1]
        allocate t2: f32[14, 1]
        for (j, 0, 1) { for (i, 0, 14) { t1[i, j] = 0.0 } }
        for (i, 0, 14) { for (j, 0, 1) { for (p, 0, 2) { t1[i, j] = t1[i, j] + a[i + p, j] } } }
        for (i, 0, 1) { for (j, 0, 1) { t2[i, j] = 8.5 } }
        for (j, 0, 1) { for (i, 1, 13) { t2[i, j] = t1[i - 1, j] * 5.5 } }
        for (i, 0, 14) { for (j, 0, 1) { t3[i, j] = t2[i, j] * 8.5 - t2[i, j] } }
      })");
  EXPECT_THAT(m.report, Not(HasSubstr("in a register")));
}

TEST(GpuTest, WithoutCopies) {
  const Mapped m = Map(kProduct, {.shared_bytes = 0});
  EXPECT_THAT(m.report, HasSubstr("2 loops parallel: blocks of 8 x 32 threads, 1 serial\n"));
  EXPECT_EQ(m.function.kernels[0].barriers, 0);
  // A's box does not fit.
  EXPECT_THAT(Map(kProduct, {.shared_bytes = 8192}).report,
              HasSubstr("shared A[8 x 32] = 2048 bytes"));
  EXPECT_THAT(Map(kProduct, {.registers = false}).report, Not(HasSubstr("register")));
}

// The host steps through time; each block copies its elements and their neighbours.
TEST(GpuTest, Stencil) {
  const Mapped m = Map(R"(
      func jacobi(A: f32[n, n], B: f32[n, n], steps: i32, n: i32) {
        for (t, 0, steps) {
          for (i, 1, n - 2) { for (j, 1, n - 2) {
            B[i, j] = A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j]
          } }
          for (i, 1, n - 2) { for (j, 1, n - 2) { A[i, j] = B[i, j] } }
        }
      })");
  EXPECT_THAT(m.report, HasSubstr("blocks of 8 x 32 threads, shared A[10 x 34] = 1360 bytes, in 1 "
                                  "loop of the host\n"));
  // What is read once, by neighbours in a row, is not copied.
  EXPECT_THAT(m.report, HasSubstr("blocks of 8 x 32 threads, in 1 loop of the host\n"));
  EXPECT_EQ(m.function.kernels.size(), 2);
}

TEST(GpuTest, CopiesOnlyWhereTheyHelp) {
  EXPECT_THAT(
      Map("func f(Y: f64[n], X: f64[n] in, n: i32) { for (i, 0, n) { Y[i] = X[i] } }").report,
      HasSubstr("1 loop parallel: blocks of 128 threads\n"));
  // Each thread reads its own X[i] again and again, and a row of A of its own: rows go through shared memory.
  EXPECT_THAT(Map(R"(
      func f(Y: f32[n], A: f32[n, m] in, X: f32[n] in, n: i32, m: i32) {
        for (i, 0, n) { for (j, 0, m) { Y[i] = Y[i] + A[i, j] * X[i] } }
      })")
                  .report,
              HasSubstr("blocks of 128 threads, 1 serial, in tiles, shared A[128 x 32] = 16896 "
                        "bytes, Y in a register\n"));
  // A transposed matrix is read once, but across rows. A longer row keeps threads out of each other's banks.
  EXPECT_THAT(Map(R"(
      func f(B: f32[n, m], A: f32[m, n] in, n: i32, m: i32) {
        for (i, 0, n) { for (j, 0, m) { B[i, j] = A[j, i] } }
      })")
                  .text,
              HasSubstr("A.shared: f32[i64(32), i64(9)] @shared"));
  // What the kernel stores is not copied: another block may have stored it.
  EXPECT_THAT(Map(R"(
      func f(A: f32[n, n], n: i32) {
        for (k, 0, n) { for (i, 0, n) { for (j, 0, n) {
          A[i, j] = max(A[i, j], A[i, k] + A[k, j])
        } } }
      })")
                  .report,
              Not(HasSubstr("shared")));
}

// What row and column k of step k store, all others read: nine parts of each step, each parallel.
TEST(GpuTest, InstancesAreSplit) {
  const Mapped m = Map(R"(
      func paths(P: i32[n, n], n: i32) {
        for (k, 0, n) { for (i, 0, n) { for (j, 0, n) {
          P[i, j] = min(P[i, j], P[i, k] + P[k, j])
        } } }
      })");
  EXPECT_THAT(m.report, HasSubstr("instances split where dependences begin or end"));
  EXPECT_THAT(m.report, Not(HasSubstr("2 loops of the host")));
  EXPECT_EQ(m.function.kernels.size(), 9);
  // Three parts: before, on and behind the middle, which the others read.
  const Mapped line = Map(R"(
      func f(A: f32[n], t: i32, m: i32, n: i32) {
        for (s, 0, t) { for (i, 0, n) { if (0 <= m && m < n) { A[i] = A[i] + A[m] } } }
      })");
  EXPECT_THAT(line.report, HasSubstr("instances split"));
  EXPECT_EQ(line.function.kernels.size(), 3);
  // A dependence between neighbours stays in every part.
  EXPECT_THAT(Map(R"(
      func f(A: f32[n], t: i32, n: i32) {
        for (s, 0, t) { for (i, 1, n - 1) { A[i] = A[i - 1] + A[0] } }
      })")
                  .report,
              Not(HasSubstr("split")));
}

TEST(GpuTest, OrderIsKept) {
  // Each element waits for the one before.
  const Mapped chain = Map(R"(
      func f(A: f32[n], n: i32) { for (i, 1, n - 1) { A[i] = A[i - 1] * 0.5 } })");
  EXPECT_THAT(chain.report, HasSubstr("not scheduled: no loop is parallel"));
  EXPECT_EQ(chain.function.kernels[0].block, (codegen::Extents{1, 1, 1}));
  // Neighbours above and on the left: only diagonals are parallel.
  const Mapped grid = Map(R"(
      func f(A: f32[n, n], n: i32) {
        for (i, 1, n - 1) { for (j, 1, n - 1) { A[i, j] = A[i - 1, j] + A[i, j - 1] } }
      })");
  EXPECT_THAT(grid.report,
              HasSubstr("1 loop parallel: blocks of 128 threads, in 1 loop of the host"));
  EXPECT_THAT(Map(R"(
      func f(A: f32[n, n], n: i32) {
        for (i, 1, n - 1) { for (j, 1, n - 1) { A[i, j] = A[i - 1, j] + A[i, j - 1] } }
      })",
                  {.strategy = "original"})
                  .report,
              HasSubstr("no loop is parallel"));
}

// A cell that every iteration stores first becomes each thread's own.
TEST(GpuTest, PrivateCells) {
  const Mapped m = Map(R"(
      func f(A: f32[n, m] in, Y: f32[n], n: i32, m: i32) {
        for (i, 0, n) {
          allocate s: f32[]
          s[] = 0.0
          for (j, 0, m) { s[] = s[] + A[i, j] * A[i, j] }
          Y[i] = sqrt(s[])
        }
      })");
  EXPECT_THAT(m.report, HasSubstr("1 loop parallel: blocks of 128 threads, s of each thread\n"));
  EXPECT_THAT(m.cuda, HasSubstr("float s[1];"));
}

// A loop of one iteration: only thread 1 has an element, and the passes write its number where it stood.
TEST(GpuTest, RegisterOfOneThread) {
  const Mapped m = Map(R"(
      func f(P: i32[8, 8], A: i32[8] in, n: i32) {
        for (i, 1, 1) {
          if (A[n % 8] < 5) {
            for (k, 0, 5) { P[i + 4, i + 5] = P[i + 4, i + 5] + A[(2 * i + 5) % 8] }
          }
        }
      })",
                       {.strategy = "original"});
  EXPECT_THAT(m.report, HasSubstr("P in a register"));
}

// A register is stored only where the thread has stored it, or loaded: a branch, or a loop without iterations, may
// leave it as it was.
TEST(GpuTest, RegistersThatAreNotStored) {
  EXPECT_THAT(Map(R"(
      func f(P: i32[8], A: i32[8] in, n: i32) {
        for (i, 0, 8) {
          for (k, 0, n) { if (A[i] < 4) { P[i] = A[k % 8] } }
        }
      })",
                  {.strategy = "original"})
                  .report,
              HasSubstr("P in a register"));
  // With n of 6 and 7 no iteration of j.
  EXPECT_THAT(Map(R"(
      func f(A: i32[16] in, B: i32[5], n: i32) {
        for (i, 0, n) { for (j, 0, 5 - n) { B[i] = A[i + j] } }
      })",
                  {.strategy = "original"})
                  .report,
              HasSubstr("B in a register"));
}

// ---- what nothing has stored is not loaded

// A register that the kernel sets first takes nothing from memory.
TEST(GpuTest, RegistersThatAreSetFirst) {
  const auto product = [](const std::string& access, const std::string& first) {
    return Map(StrCat("func product(C: f64[n, m] ", access,
                      ", A: f64[n, l] in, B: f64[l, m] in, n: i32, m: i32, l: i32, h: i32) {\n"
                      "  for (i, 0, n) { for (j, 0, m) {\n",
                      first,
                      "\n    for (k, 0, l) { C[i, j] = C[i, j] + A[i, k] * B[k, j] }\n  } }\n}"));
  };
  const Mapped set = product("out", "C[i, j] = 0.0");
  EXPECT_THAT(set.report, HasSubstr("C in a register"));
  EXPECT_THAT(set.text, Not(HasSubstr("C.own[ty, tx] = C[")));
  EXPECT_THAT(set.text, HasSubstr("] = C.own[ty, tx]"));
  // A part of the elements is set.
  const Mapped half = product("", "if (i < h) { C[i, j] = 0.0 }");
  EXPECT_THAT(half.report, HasSubstr("C in a register"));
  EXPECT_THAT(half.text, HasSubstr("h_1 <= ty + by * 8 &&"));
  // Data say which elements are set: all are loaded.
  const Mapped some = product("", "if (A[i, 0] < 0.0) { C[i, j] = 0.0 }");
  EXPECT_THAT(some.report, HasSubstr("C in a register"));
  EXPECT_THAT(some.text, HasSubstr("C.own[ty, tx] = C["));
}

// An element that may stay undefined is not kept in a register: it would be loaded, or stored as it is.
TEST(GpuTest, ElementsThatMayStayUndefined) {
  for (const char* access : {"out", ""}) {
    const Mapped m = Map(StrCat(R"(
        func f(P: i32[8] )",
                                access, R"(, A: i32[8] in, n: i32) {
          for (i, 0, 8) { for (k, 0, n) { if (A[i] < 4) { P[i] = A[k % 8] } } }
        })"),
                         {.strategy = "original"});
    EXPECT_EQ(m.report.find("P in a register") != std::string::npos, std::string(access).empty());
  }
}

// The box of a copy is larger than what the stage before has stored: the copy takes that only.
TEST(GpuTest, CopiesOfWhatIsStored) {
  const char program[] = R"(
      func f(A: f32[n, n] in, B: f32[n, n], n: i32) {
        allocate T: f32[n, n]
        for (i, 1, n - 2) { for (j, 1, n - 2) { T[i, j] = A[i, j] * 2.0 } }
        for (i, 2, n - 4) { for (j, 2, n - 4) { B[i, j] = VALUE } }
      })";
  const auto with = [&](const std::string& value) {
    std::string text = program;
    return Map(text.replace(text.find("VALUE"), 5, value), {.strategy = "min"});
  };
  const Mapped m = with("T[i - 1, j] + T[i + 1, j] + T[i, j - 1] + T[i, j + 1]");
  EXPECT_THAT(m.report, HasSubstr("shared T[10 x 34]"));
  // Reads that may not happen, of what is stored in any case, and of what may not be.
  const std::string sum = "T[i + 1, j] + T[i - 1, j] + T[i, j - 1]";
  EXPECT_THAT(with(sum + " + (A[i, j] < 0.5 ? T[i, j + 1] : 0.0)").report,
              HasSubstr("shared T[10 x 34]"));
  EXPECT_THAT(with("T[i - 1, j] + (A[i, j] < 0.5 ? T[i, j + 2] + T[i + 2, j] : 0.0)").report,
              Not(HasSubstr("T[")));
}

// All threads of a block copy a box, also one whose rows are shorter than the block.
TEST(GpuTest, AllThreadsCopy) {
  const Mapped m = Map(R"(
      func f(Y: f32[n], A: f32[n, m] in, X: f32[m] in, n: i32, m: i32) {
        for (i, 0, n) { for (j, 0, m) { Y[i] = Y[i] + A[i, j] * X[j] } }
      })");
  EXPECT_THAT(m.report, HasSubstr("blocks of 128 threads, 1 serial, in tiles, shared A[128 x 32]"));
  // 32 rounds of 128 threads for 4096 elements.
  EXPECT_THAT(m.text, HasSubstr("for (r: i64, 0, 32) {\n"));
  EXPECT_THAT(m.text, HasSubstr("A.shared[e / 32, e % 32] = A["));
}

// What `cse` binds before the grids, one statement stores.
TEST(GpuTest, ScalarsBesideGrids) {
  const Mapped m = Map(R"(
      func f(S: f32[9], B: f32[n], n: i32) {
        S[n] = S[n] + S[n] * 0.5
        for (i, 0, n) { B[i] = B[i] + S[0] }
      })");
  EXPECT_EQ(m.function.kernels.size(), 2);
}

// Bounds of the grid are those of the whole triangle, and blocks outside of it do nothing.
TEST(GpuTest, Triangle) {
  const Mapped m = Map(R"(
      func f(C: i32[n, n], A: i32[n, l] in, n: i32, l: i32) {
        for (i, 0, n) { for (j, 0, i + 1) { for (k, 0, l) {
          C[i, j] = C[i, j] + A[i, k] * A[j, k]
        } } }
      })");
  EXPECT_THAT(m.report, HasSubstr("shared A["));
  EXPECT_THAT(m.report, HasSubstr("C in a register"));
  ASSERT_EQ(m.function.kernels.size(), 1);
  EXPECT_THAT(ir::Print(m.function.kernels[0].grid_extents[0]), Not(HasSubstr("by")));
}

// What only a kernel can evaluate does not stand around grids.
TEST(GpuTest, ValuesOfMemoryAround) {
  const Mapped m = Map(R"(
      func f(A: f32[64], L: i32[4], n: i32) {
        let s = A[5]
        let first = min(max(L[0], 0), 8)
        for (i, 0, 8) { A[i + first] = s }
      })");
  EXPECT_THAT(m.report, HasSubstr("not scheduled: it stands in 'let "));
}

TEST(GpuTest, Errors) {
  ir::Function f = *ir::ParseFunction(kProduct);
  const auto error = [&](const GpuOptions& options) {
    return std::string(ScheduleForGpu(f, options).status().message());
  };
  EXPECT_THAT(error({.strategy = "best"}), HasSubstr("expected a strategy of none, original"));
  EXPECT_THAT(error({.block = {{{128}, {64, 32}, {1, 1, 1}}}}),
              HasSubstr("expected sizes of a block of at most 1024 threads along 2 axes"));
  EXPECT_THAT(error({.block = {{{128}, {64}, {1, 1, 1}}}}), HasSubstr("along 2 axes"));
  EXPECT_THAT(error({.serial_tile = 0}), HasSubstr("expected tiles of 1 iteration or more"));
}

}  // namespace
}  // namespace polynao::poly
