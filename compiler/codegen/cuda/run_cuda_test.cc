#include "compiler/codegen/cuda/run_cuda.h"

#include <array>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/codegen/codegen_test_util.h"
#include "compiler/codegen/differential.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/registry/registry.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ir::RandomArguments;
using ir::Type;
using te::Axis;
using te::Graph;
using te::ReduceAxis;
using te::Schedule;
using te::Shape;
using te::Tensor;
using ::testing::HasSubstr;

class RunCudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status found = FindCCompiler(false).status();
    if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found;
  }
};

// Runs function `i` on tensors of any shape: passes make buffers flat.
absl::Status RunFlat(const ShimmedCuda& code, size_t i, const ir::Function& function,
                     absl::Span<const ir::Argument> arguments, uint64_t order) {
  std::vector<std::vector<int64_t>> shapes;
  for (size_t p = 0; p < arguments.size(); ++p) {
    ir::Tensor* tensor = arguments[p].tensor;
    if (tensor == nullptr) continue;
    shapes.push_back(tensor->shape);
    if (function.params[p].buffer->extents.size() == 1) tensor->shape = {tensor->element_count()};
  }
  const absl::Status status = code.Run(i, arguments, order);
  auto shape = shapes.begin();
  for (const ir::Argument& argument : arguments) {
    if (argument.tensor != nullptr) argument.tensor->shape = *shape++;
  }
  return status;
}

// What is wrong when `functions`, which have gone through passes, run in the shim, in three orders of
// threads, against `originals` in the interpreter.
void ExpectAgreement(const std::vector<ir::Function>& originals,
                     const std::vector<ir::Function>& functions) {
  auto compiled = ShimmedCuda::Create(functions);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (size_t i = 0; i < functions.size(); ++i) {
    for (uint64_t order : {0, 1, 12345}) {
      EXPECT_EQ(
          Disagreement(originals[i], RandomArguments(originals[i], i),
                       [&](auto a) { return RunFlat(**compiled, i, functions[i], a, order); }),
          "")
          << "threads in order " << order << "\n"
          << ir::Print(functions[i]);
    }
  }
}

ir::Function ThroughPasses(const ir::Function& lowered) {
  ir::Function function = ir::Function(lowered);
  const Target target{.name = "cuda"};
  const auto passes = PipelineFor(target);
  EXPECT_TRUE(passes.ok()) << passes.status();
  const absl::Status status = RunPasses(function, *passes, target, {.check = true});
  EXPECT_TRUE(status.ok()) << status << "\n" << ir::Print(lowered);
  return function;
}

// Lowers schedules and compares what the passes make of them.
class Schedules {
 public:
  void Add(const Schedule& s) {
    absl::StatusOr<ir::Function> lowered = te::Lower(s);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    lowered->name += std::to_string(originals_.size());
    originals_.push_back(*lowered);
    functions_.push_back(ThroughPasses(*lowered));
  }
  void Check() { ExpectAgreement(originals_, functions_); }
  const ir::Function& last() const { return functions_.back(); }

 private:
  std::vector<ir::Function> originals_;
  std::vector<ir::Function> functions_;
};

// ---- schedules as for a GPU

struct MatmulTiles {
  int64_t block = 16;  // rows and columns of a block
  int64_t each = 2;    // of a thread
  int64_t depth = 4;
  int64_t lanes = 1;  // of a fetch
};

// Tiles of both operands in shared memory, fetched by all threads; a tile of sums in registers.
void ScheduleMatmul(Schedules& out, int64_t m, int64_t n, int64_t k, Type type,
                    const MatmulTiles& t) {
  Graph g("matmul");
  Tensor a = g.Placeholder("A", {m, k}, type);
  Tensor b = g.Placeholder("B", {k, n}, type);
  const ReduceAxis kk = g.ReduceAxisOf("k", k);
  Tensor c = g.Compute("C", {m, n},
                       [&](te::Expr i, te::Expr j) { return ReduceSum(a(i, kk) * b(kk, j), kk); });
  Schedule s(c);
  const Tensor sums = s.CacheWrite(c, "local");
  const Tensor as = s.CacheRead(a, "shared", {sums});
  const Tensor bs = s.CacheRead(b, "shared", {sums});
  const Tensor al = s.CacheRead(as, "local", {sums});
  auto [by, y] = s[c].Split(s[c].axis(0), t.block);
  auto [bx, x] = s[c].Split(s[c].axis(1), t.block);
  auto [ty, yi] = s[c].Split(y, t.each);
  auto [tx, xi] = s[c].Split(x, t.each);
  s[c].Reorder({by, bx, ty, tx, yi, xi});
  s[c].Bind(by, "blockIdx.y").Bind(bx, "blockIdx.x");
  s[c].Bind(ty, "threadIdx.y").Bind(tx, "threadIdx.x");
  s[sums].ComputeAt(s[c], tx);
  auto [ko, ki] = s[sums].Split(s[sums].reduce_axis(0), t.depth);
  s[sums].Reorder({ko, ki, s[sums].axis(0), s[sums].axis(1)});
  s[sums].Unroll(s[sums].axis(0)).Unroll(s[sums].axis(1));
  s[al].ComputeAt(s[sums], ki);
  for (const Tensor& fetched : {as, bs}) {
    s[fetched].ComputeAt(s[sums], ko);
    const Axis all = s[fetched].Fuse(s[fetched].axis(0), s[fetched].axis(1));
    auto [rest, lane] = s[fetched].Split(all, t.lanes);
    auto [rest2, thread_x] = s[fetched].Split(rest, t.block / t.each);
    auto [each, thread_y] = s[fetched].Split(rest2, t.block / t.each);
    s[fetched].Bind(thread_x, "threadIdx.x").Bind(thread_y, "threadIdx.y");
    if (t.lanes > 1) s[fetched].Vectorize(lane);
    (void)each;
  }
  out.Add(s);
}

TEST_F(RunCudaTest, Matmul) {
  Schedules schedules;
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{32, 32, 16},
                                {16, 16, 4},
                                {1, 1, 1},
                                {17, 31, 13},
                                {33, 16, 7},
                                {15, 47, 9}}) {
    ScheduleMatmul(schedules, m, n, k, Type::kF32, {});
  }
  ScheduleMatmul(schedules, 32, 32, 16, Type::kF32, {.depth = 8, .lanes = 4});
  ScheduleMatmul(schedules, 17, 30, 13, Type::kF32, {.depth = 8, .lanes = 4});
  ScheduleMatmul(schedules, 20, 24, 12, Type::kI32, {.block = 8, .each = 1});
  ScheduleMatmul(schedules, 20, 24, 12, Type::kF16, {.block = 8, .each = 4, .lanes = 2});
  schedules.Check();
}

// Tiles that do not fit the shape or one another, of all sizes.
TEST_F(RunCudaTest, RandomTilesOfMatmul) {
  Schedules schedules;
  std::minstd_rand random(20261120);
  const auto draw = [&](std::initializer_list<int64_t> from) {
    return *(from.begin() + random() % from.size());
  };
  for (int i = 0; i < 24; ++i) {
    const int64_t each = draw({1, 2, 3, 4});
    ScheduleMatmul(schedules, 1 + random() % 40, 1 + random() % 40, 1 + random() % 30,
                   i % 2 == 0 ? Type::kF32 : Type::kI16,
                   {.block = each * draw({1, 2, 3, 4, 8}),
                    .each = each,
                    .depth = draw({1, 2, 3, 4, 7, 8, 16}),
                    .lanes = draw({1, 2, 4})});
  }
  schedules.Check();
}

TEST_F(RunCudaTest, MatmulHasItsBarriersAndWideLoads) {
  Schedules schedules;
  ScheduleMatmul(schedules, 32, 32, 16, Type::kF32, {.depth = 8, .lanes = 4});
  const auto module = EmitCuda(schedules.last());
  ASSERT_TRUE(module.ok()) << module.status();
  const CudaKernel& kernel = module->functions[0].kernels[0];
  EXPECT_EQ(kernel.grid, (Extents{2, 2, 1}));
  EXPECT_EQ(kernel.block, (Extents{8, 8, 1}));
  EXPECT_EQ(kernel.shared_bytes, 2 * 16 * 8 * 4);
  // Before the first fetch (the last products may still read), and before the products; the two
  // fetches store to different tiles.
  EXPECT_EQ(kernel.barriers, 2) << module->source;
  EXPECT_THAT(module->source, HasSubstr("*reinterpret_cast<int4*>(&A_shared["));
  EXPECT_THAT(module->source, HasSubstr("float C_local[4];"));
}

// A padded convolution: the tile with its halo in shared memory, zeros put there by the fetch.
void ScheduleConv(Schedules& out, int64_t n, int64_t h, int64_t w, int64_t channels,
                  int64_t stride) {
  Graph g("conv");
  Tensor x = g.Placeholder("X", {n, channels, h, w}, Type::kF32);
  Tensor f = g.Placeholder("F", {6, channels, 3, 3}, Type::kF32);
  ir::Context& c = g.context();
  Tensor padded = g.Compute("P", {n, channels, h + 2, w + 2},
                            [&](te::Expr b, te::Expr i, te::Expr y, te::Expr z) {
                              return c.Select(And(And(1 <= y, y < h + 1), And(1 <= z, z < w + 1)),
                                              x(b, i, y - 1, z - 1), c.Float(Type::kF32, 0));
                            });
  const ReduceAxis i = g.ReduceAxisOf("i", channels);
  const ReduceAxis ky = g.ReduceAxisOf("ky", 3);
  const ReduceAxis kx = g.ReduceAxisOf("kx", 3);
  Tensor y =
      g.Compute("Y", {n, 6, (h - 1) / stride + 1, (w - 1) / stride + 1},
                [&](te::Expr b, te::Expr o, te::Expr r, te::Expr q) {
                  return ReduceSum(padded(b, i, r * stride + ky, q * stride + kx) * f(o, i, ky, kx),
                                   i, ky, kx);
                });
  Tensor relu = g.Compute("R", y.shape(), [&](te::Expr b, te::Expr o, te::Expr r, te::Expr q) {
    return Max(y(b, o, r, q), c.Float(Type::kF32, 0));
  });
  Schedule s(relu);
  const Tensor fs = s.CacheRead(f, "shared", {y});
  auto [rows, row] = s[relu].Split(s[relu].axis(2), 4);
  auto [columns, column] = s[relu].Split(s[relu].axis(3), 8);
  auto [outs, each] = s[relu].Split(s[relu].axis(1), 2);
  s[relu].Reorder({s[relu].axis(0), outs, rows, columns, row, column, each});
  const Axis block_z = s[relu].Fuse(s[relu].axis(0), outs);
  s[relu].Bind(block_z, "blockIdx.z").Bind(rows, "blockIdx.y").Bind(columns, "blockIdx.x");
  s[relu].Bind(row, "threadIdx.y").Bind(column, "threadIdx.x");
  s[y].ComputeAt(s[relu], column).SetScope("local");
  auto [io, ii] = s[y].Split(s[y].reduce_axis(0), 2);
  s[y].Reorder({io, ii, s[y].reduce_axis(1), s[y].reduce_axis(2), s[y].axis(1)});
  s[y].Unroll(s[y].axis(1));
  for (const Tensor& fetched : {padded, fs}) {
    s[fetched].ComputeAt(s[y], io).SetScope("shared");
    const Axis all = s[fetched].Fuse(
        {s[fetched].axis(0), s[fetched].axis(1), s[fetched].axis(2), s[fetched].axis(3)});
    auto [rest, thread_x] = s[fetched].Split(all, 8);
    auto [again, thread_y] = s[fetched].Split(rest, 4);
    (void)again;
    s[fetched].Bind(thread_y, "threadIdx.y").Bind(thread_x, "threadIdx.x");
  }
  out.Add(s);
}

TEST_F(RunCudaTest, Convolution) {
  Schedules schedules;
  ScheduleConv(schedules, 1, 8, 16, 4, 1);
  ScheduleConv(schedules, 2, 7, 9, 3, 1);
  ScheduleConv(schedules, 1, 1, 1, 1, 1);
  ScheduleConv(schedules, 1, 9, 13, 5, 2);
  schedules.Check();
}

// One or several kernels for elements, with tails; four elements for a thread at a time.
TEST_F(RunCudaTest, Elementwise) {
  Schedules schedules;
  for (const Type type : {Type::kF32, Type::kF16, Type::kI8, Type::kI64}) {
    for (const int64_t n : {1, 31, 128, 1000, 1024, 1025}) {
      Graph g("elementwise");
      Tensor a = g.Placeholder("A", {n}, type);
      Tensor b = g.Placeholder("B", {n}, type);
      Tensor t = g.Compute("T", {n}, [&](te::Expr i) { return a(i) * 2 + b(i); });
      Tensor c = g.Compute("C", {n}, [&](te::Expr i) { return Max(t(i), a(n - 1 - i)) - t(i); });
      Schedule s(c);
      for (const Tensor& each : {t, c}) {
        auto [thread, lane] = s[each].Split(s[each].axis(0), 4);
        auto [block, inside] = s[each].Split(thread, 32);
        s[each].Bind(block, "blockIdx.x").Bind(inside, "threadIdx.x").Vectorize(lane);
      }
      schedules.Add(s);
      const auto module = EmitCuda(schedules.last());
      ASSERT_TRUE(module.ok()) << module.status();
      EXPECT_EQ(module->functions[0].kernels.size(), 2);
      EXPECT_EQ(module->functions[0].values.size(), 4);
      EXPECT_TRUE(module->functions[0].values[3].is_workspace());
      if (n == 1000 && type == Type::kF32) {
        EXPECT_THAT(module->source, HasSubstr("= *reinterpret_cast<const int4*>(&A["));
      }
    }
  }
  schedules.Check();
}

// Parts of a sum by all threads, added up by one.
TEST_F(RunCudaTest, Reductions) {
  Schedules schedules;
  for (const int64_t n : {1, 5, 32, 100, 129}) {
    Graph g("reduce");
    Tensor a = g.Placeholder("A", {7, n}, Type::kF32);
    const int64_t each = (n + 31) / 32;
    const ReduceAxis k = g.ReduceAxisOf("k", each);
    const ReduceAxis t = g.ReduceAxisOf("t", 32);
    ir::Context& c = g.context();
    Tensor parts = g.Compute("P", {7, 32}, [&](te::Expr i, te::Expr j) {
      return ReduceMax(c.Select(k * 32 + j < n, a(i, k * 32 + j), c.Float(Type::kF32, -1000)), k);
    });
    Tensor all = g.Compute("M", {7}, [&](te::Expr i) { return ReduceMax(parts(i, t), t); });
    Schedule s(all);
    s[all].Bind(s[all].axis(0), "blockIdx.x");
    s[parts].ComputeAt(s[all], s[all].axis(0)).SetScope("shared");
    s[parts].Bind(s[parts].axis(1), "threadIdx.x");
    schedules.Add(s);
  }
  schedules.Check();
}

TEST_F(RunCudaTest, DotProductsOfBytes) {
  Schedules schedules;
  for (const int64_t k : {4, 8, 20, 64}) {
    Graph g("dot");
    ir::Context& c = g.context();
    Tensor a = g.Placeholder("A", {12, k}, Type::kI8);
    Tensor b = g.Placeholder("B", {10, k}, Type::kI8);
    const ReduceAxis kk = g.ReduceAxisOf("k", k);
    Tensor y = g.Compute("Y", {12, 10}, [&](te::Expr i, te::Expr j) {
      return ReduceSum(c.Cast(Type::kI32, a(i, kk)) * c.Cast(Type::kI32, b(j, kk)), kk);
    });
    Schedule s(y);
    auto [ko, ki] = s[y].Split(s[y].reduce_axis(0), 4);
    s[y].Unroll(ki);
    s[y].Bind(s[y].axis(0), "blockIdx.x").Bind(s[y].axis(1), "threadIdx.x");
    (void)ko;
    schedules.Add(s);
    const auto module = EmitCuda(schedules.last());
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_THAT(module->source, HasSubstr("__dp4a("));
  }
  schedules.Check();
}

// ---- the language

TEST_F(RunCudaTest, EdgeValuesOfAllOperators) {
  const std::vector<SemanticsCase> cases = SemanticsCases();
  // Optimised: what C++ leaves undefined at the ends of types shows.
  auto compiled = ShimmedCuda::Create(FunctionsOf(cases), 1);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ExpectSemantics(cases, [&](size_t i, auto a) { return (*compiled)->Run(i, a); });
}

// One tensor for two parameters that may alias: threads read what others have stored by its other name.
TEST_F(RunCudaTest, DeclaredAliases) {
  const ir::Function f = Parse(R"(
      @may_alias("A", "B")
      func f(A: i32[64] in, B: i32[64] out) {
        thread (t = "threadIdx.x", 64) { B[t] = t }
        thread (t = "threadIdx.x", 32) { B[t] = A[63 - t] * 2 }
      })");
  auto compiled = ShimmedCuda::Create({f});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (uint64_t order : {0, 1, 12345}) {
    ir::Tensor tensor(Type::kI32, {64});
    const ir::Argument argument = ir::Argument::Of(&tensor);
    ASSERT_TRUE((*compiled)->Run(0, {argument, argument}, order).ok());
    for (int t = 0; t < 64; ++t) ASSERT_EQ(tensor.Int(t), t < 32 ? (63 - t) * 2 : t);
  }
}

// What neither the caller nor a kernel has stored: workspaces, `out` parameters, buffers of a block and of a thread.
TEST_F(RunCudaTest, UndefinedLoads) {
  const auto error = [](const std::string& body) {
    const ir::Function f = Parse("func f(A: i32[8] out, B: i32[8], n: i32) {\n" + body + "\n}");
    const auto compiled = ShimmedCuda::Create({f});
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    ir::Tensor a(Type::kI32, {8}), b(Type::kI32, {8});
    return std::string(
        (*compiled)
            ->Run(0, {ir::Argument::Of(&a), ir::Argument::Of(&b), ir::Argument::Int(4)})
            .message());
  };
  const auto workspace = [&](const std::string& extent) {
    return error(
        "allocate T: i32[8]\n"
        "thread (b = \"blockIdx.x\", 1) { thread (t = \"threadIdx.x\", " +
        extent +
        ") { T[t] = t } }\n"
        "thread (b = \"blockIdx.x\", 2) { thread (t = \"threadIdx.x\", 4) { B[b * 4 + t] = T[b * 4 "
        "+ t] } }");
  };
  EXPECT_EQ(workspace("8"), "");
  EXPECT_EQ(workspace("6"),
            "f_kernel1, block (1, 0, 0), thread (2, 0, 0): loads element 6 of 'T', which nothing "
            "has stored");
  // B has values from the start.
  EXPECT_EQ(error("thread (t = \"threadIdx.x\", 8) { A[t] = B[t] }"), "");
  EXPECT_EQ(
      error("thread (t = \"threadIdx.x\", 8) { if (t < n) { A[t] = 1 } B[t] = t == 5 ? A[t] : 0 }"),
      "f_kernel, block (0, 0, 0), thread (5, 0, 0): loads element 5 of 'A', which nothing has "
      "stored");
  const auto in_block = [&](const std::string& scope, const std::string& index) {
    return error("thread (b = \"blockIdx.x\", 2) { allocate S: i32[4, 2] @" + scope +
                 " thread (t = \"threadIdx.x\", 4) { for (i, 0, b + 1) { S[t, i] = i } } "
                 "thread (t = \"threadIdx.x\", 4) { B[t] = S[t, " +
                 index + "] } }");
  };
  for (const std::string scope : {"local", "shared"}) {
    EXPECT_EQ(in_block(scope, "b"), "");
    EXPECT_THAT(in_block(scope, "1"),
                HasSubstr("block (0, 0, 0), thread (0, 0, 0): loads element 1 of 'S'"));
  }
}

// The host runs loops and branches, and computes grids, scalars and the sizes of workspaces.
TEST_F(RunCudaTest, HostLoops) {
  const ir::Function f = Parse(R"(
      func f(A: i32[64], n: i32, m: i64) {
        let wide = cast(i64, n) + m
        allocate T: i32[max(wide % 1000, cast(i64, 0))]
        thread (x: i64 = "blockIdx.x", wide) { if (x < 1000) { T[x] = cast(i32, x) } }
        for (k, 1, n - 1) {
          if (k % 3 == 1) {
            thread (y = "blockIdx.y", k) {
              thread (x = "blockIdx.x", n - k) {
                thread (t = "threadIdx.x", 4) {
                  if (x * 4 + t < 64 && y == 0) {
                    A[x * 4 + t] = A[x * 4 + t] * 3 + T[k] + cast(i32, wide)
                  }
                }
              }
            }
          } else {
            thread (t = "threadIdx.x", 64) { A[t] = A[t] - k }
          }
        }
        A[0] = A[0] + n
      })");
  auto compiled = ShimmedCuda::Create({f});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ((*compiled)->module().functions[0].kernels.size(), 4);
  for (const int64_t n : {-3, 0, 1, 2, 7, 16}) {
    ir::Tensor expected(Type::kI32, {64});
    for (int i = 0; i < 64; ++i) expected.SetInt(i, i * i);
    ir::Tensor actual = expected;
    const ir::Argument scalars[] = {ir::Argument::Int(n), ir::Argument::Int(5)};
    ASSERT_TRUE(ir::Interpret(f, {ir::Argument::Of(&expected), scalars[0], scalars[1]}).ok());
    const absl::Status ran =
        (*compiled)->Run(0, {ir::Argument::Of(&actual), scalars[0], scalars[1]});
    ASSERT_TRUE(ran.ok()) << ran;
    EXPECT_EQ(actual.bytes, expected.bytes) << n;
  }
  ir::Tensor tensor(Type::kI32, {64});
  EXPECT_THAT(std::string((*compiled)
                              ->Run(0, {ir::Argument::Of(&tensor), ir::Argument::Int(70000),
                                        ir::Argument::Int(int64_t{1} << 40)})
                              .message()),
              HasSubstr("f_kernel0: blockIdx.x has extent 1099511697776: expected at most "
                        "2147483647"));
}

// Branches and lets around kernels see memory as it was before these kernels store.
TEST_F(RunCudaTest, HostReadsBeforeKernelsStore) {
  const ir::Function f = Parse(R"(
      func f(A: i32[64], n: i32) {
        for (k, 0, 3) {
          let x = A[k]
          let is_small = A[k + 1] < 30
          let unused = A[5]
          A[k] = x + 100
          if (A[k + 2] < 40 || is_small) {
            thread (b = "blockIdx.x", 8) { thread (t = "threadIdx.x", 8) {
              A[b * 8 + t] = A[b * 8 + t] * 2 + x
            } }
          } else {
            thread (t = "threadIdx.x", 64) { A[t] = A[t] - 20 + select(is_small, 1, 2) }
          }
        }
      })");
  auto compiled = ShimmedCuda::Create({f});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (int seed = 0; seed < 20; ++seed) {
    ir::Tensor tensor(Type::kI32, {64});
    for (int i = 0; i < 64; ++i) tensor.SetInt(i, (seed * 37 + (i + 3) * i * 11) % 64);
    ir::Tensor expected = tensor;
    const ir::Argument n = ir::Argument::Int(5);
    ASSERT_TRUE(ir::Interpret(f, {ir::Argument::Of(&expected), n}).ok());
    ASSERT_TRUE((*compiled)->Run(0, {ir::Argument::Of(&tensor), n}).ok());
    EXPECT_EQ(tensor.bytes, expected.bytes) << seed;
  }
}

TEST_F(RunCudaTest, RandomProgramsAgreeWithTheInterpreter) {
  constexpr uint64_t kSeeds = 150;
  std::vector<ir::Function> functions;
  int refused = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ir::Function f = ir::RandomProgram(seed, {.inexact_intrinsics = false});
    const auto module = EmitCuda(f);
    if (!module.ok()) {
      // Sizes that are not constant, thread loops in places that a kernel has not.
      EXPECT_THAT(std::string(module.status().message()), HasSubstr("expected")) << "seed " << seed;
      ++refused;
      continue;
    }
    f.name += std::to_string(seed);
    functions.push_back(f);
  }
  EXPECT_LT(refused, kSeeds * 3 / 4);
  ExpectAgreement(functions, functions);
}

}  // namespace
}  // namespace polynao::codegen
