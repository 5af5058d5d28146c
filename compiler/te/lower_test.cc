#include "compiler/te/lower.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/text.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::te {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ir::Function MustLower(const Schedule& s) {
  absl::StatusOr<ir::Function> function = Lower(s);
  EXPECT_TRUE(function.ok()) << function.status();
  if (!function.ok()) return ir::Function{};
  const absl::Status verified = ir::Verify(*function);
  EXPECT_TRUE(verified.ok()) << verified << "\n" << ir::Print(*function);
  return *std::move(function);
}

// Runs `function`; parameters in order. Inputs are random, scalars are 3.
std::vector<ir::Tensor> Execute(const ir::Function& function) {
  std::vector<ir::Tensor> tensors;
  tensors.reserve(function.params.size());
  std::vector<ir::Argument> arguments;
  // Small values: the tests compute what they expect in C++, where sums must not wrap or round.
  for (const ir::Param& param : function.params) {
    if (param.var) {
      arguments.push_back(ir::IsFloat(param.var.type()) ? ir::Argument::Float(3)
                                                        : ir::Argument::Int(3));
      continue;
    }
    Shape shape;
    for (Expr extent : param.buffer->extents) shape.push_back(extent.int_value());
    tensors.push_back(
        param.access == ir::Access::kIn
            ? ir::RandomTensor(param.buffer->type, shape, tensors.size() + 1, ir::Values::kExact)
            : ir::Tensor(param.buffer->type, shape));
    arguments.push_back(ir::Argument::Of(&tensors.back()));
  }
  const absl::Status status = ir::Interpret(function, arguments);
  EXPECT_TRUE(status.ok()) << status << "\n" << ir::Print(function);
  return tensors;
}

// A tile that does not divide the tensor, two stages in the storage of the copy.
TEST(LowerTest, InPlaceStagesOfATailGiveTheSameValues) {
  for (const int64_t n : {1, 7, 8, 9, 31}) {
    Graph g("in_place");
    Tensor x = g.Placeholder("X", {n}, Type::kF32);
    Tensor t = g.Compute("T", {n}, [&](Expr i) { return x(i) * 3; });
    Tensor y = g.Compute("Y", {n}, [&](Expr i) { return t(i) - x(i) * t(i); });
    Schedule s(y);
    Tensor in = s.CacheRead(x, "nmem", {t, y});
    Tensor out = s.CacheWrite(y, "nmem");
    auto [io, ii] = s[y].Split(s[y].axis(0), 4);
    for (const Tensor& stage : {in, t, out}) s[stage].ComputeAt(s[y], io).SetScope("nmem");
    s[out].InPlace(in);
    const ir::Function f = MustLower(s);
    const std::vector<ir::Tensor> tensors = Execute(f);
    for (int64_t i = 0; i < n; ++i) {
      const double v = tensors[0].Float(i);
      EXPECT_EQ(tensors[1].Float(i), v * 3 - v * (v * 3)) << n << " " << i;
    }
    EXPECT_THAT(ir::Print(f), Not(HasSubstr("allocate X.nmem")));
  }
}

// ---- the papers' listings -----------------------------------------------------------------------

struct Matmul {
  explicit Matmul(int64_t m, int64_t k, int64_t n)
      : a(g.Placeholder("A", {m, k}, Type::kF32)),
        b(g.Placeholder("B", {k, n}, Type::kF32)),
        kk(g.ReduceAxisOf("k", k)),
        c(g.Compute("C", {m, n}, [&](Expr x, Expr y) { return ReduceSum(a(x, kk) * b(kk, y), kk); },
                    {"x", "y"})) {}
  Graph g{"matmul"};
  Tensor a, b;
  ReduceAxis kk;
  Tensor c;
};

// "A Loop Invariant Code Motion Technique For Deep Learning Compiler", section II-A, with
// dimensions kept (flattening is a later pass).
TEST(LowerTest, MatmulAsWritten) {
  Matmul m(1024, 1024, 1024);
  Schedule s(m.c);
  EXPECT_EQ(ir::Print(MustLower(s)),
            R"(func matmul(A: f32[1024, 1024] in, B: f32[1024, 1024] in, C: f32[1024, 1024] out) {
  for (x, 0, 1024) {
    for (y, 0, 1024) {
      C[x, y] = 0.0
      for (k, 0, 1024) {
        C[x, y] = C[x, y] + A[x, k] * B[k, y]
      }
    }
  }
}
)");
}

TEST(LowerTest, MatmulTiled) {
  Matmul m(1024, 1024, 1024);
  Schedule s(m.c);
  auto [xo, yo, xi, yi] = s[m.c].Tile(s[m.c].axis(0), s[m.c].axis(1), 32, 32);
  auto [ko, ki] = s[m.c].Split(s[m.c].reduce_axis(0), 32);
  s[m.c].Reorder({xo, yo, ko, ki, xi, yi});
  EXPECT_EQ(ir::Print(MustLower(s)),
            R"(func matmul(A: f32[1024, 1024] in, B: f32[1024, 1024] in, C: f32[1024, 1024] out) {
  for (xo, 0, 32) {
    for (yo, 0, 32) {
      for (xi.init, 0, 32) {
        for (yi.init, 0, 32) {
          C[xo * 32 + xi.init, yo * 32 + yi.init] = 0.0
        }
      }
      for (ko, 0, 32) {
        for (ki, 0, 32) {
          for (xi, 0, 32) {
            for (yi, 0, 32) {
              C[xo * 32 + xi, yo * 32 + yi] = C[xo * 32 + xi, yo * 32 + yi] + A[xo * 32 + xi, ko * 32 + ki] * B[ko * 32 + ki, yo * 32 + yi]
            }
          }
        }
      }
    }
  }
}
)");
}

// The tensorization paper, section III-A: addition of 14 x 14 split over four threads. The pragma
// stands on yy here, since a Pragma holds the loop that it is about.
TEST(LowerTest, TensorAdd) {
  Graph g("add");
  Tensor a = g.Placeholder("A", {14, 14}, Type::kF16);
  Tensor b = g.Placeholder("B", {14, 14}, Type::kF16);
  Tensor c =
      g.Compute("C", {14, 14}, [&](Expr i, Expr j) { return a(i, j) + b(i, j); }, {"xx", "yy"});
  Schedule s(c);
  auto [xxo, xxi] = s[c].SplitParts(s[c].axis(0), 4);
  s[c].Bind(xxo, "tid").Pragma(s[c].axis(1), "TADD");
  EXPECT_EQ(ir::Print(MustLower(s)),
            R"(func add(A: f16[14, 14] in, B: f16[14, 14] in, C: f16[14, 14] out) {
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

// The same paper's copy to on-chip memory, section IV-C, with its addition and copy back.
TEST(LowerTest, CopiesToOnChipMemory) {
  Graph g("add");
  Tensor a = g.Placeholder("A", {4, 14}, Type::kF16);
  Tensor c = g.Compute("C", {4, 14}, [&](Expr i, Expr j) { return a(i, j) + a(i, j); });
  Schedule s(c);
  Tensor al = s.CacheRead(a, "nmem", {}, "AL");
  Tensor cl = s.CacheWrite(c, "nmem", "CL");
  auto [jo, ji] = s[c].SplitParts(s[c].axis(1), 4);
  s[c].Reorder({jo, s[c].axis(0), ji}).Bind(jo, "tid").Pragma(s[c].axis(0), "MEMCPY");
  s[al].ComputeAt(s[c], jo).Pragma(s[al].axis(0), "MEMCPY");
  s[cl].ComputeAt(s[c], jo).Pragma(s[cl].axis(0), "TADD");
  EXPECT_EQ(ir::Print(MustLower(s)), R"(func add(A: f16[4, 14] in, C: f16[4, 14] out) {
  thread (tid, 4) {
    allocate AL: f16[4, 4] @nmem
    allocate CL: f16[4, 4] @nmem
    pragma "MEMCPY" {
      for (i, 0, 4) {
        for (j, 0, 4) {
          if (tid * 4 + j < 14) {
            AL[i, j] = A[i, tid * 4 + j]
          }
        }
      }
    }
    pragma "TADD" {
      for (i, 0, 4) {
        for (j, 0, 4) {
          if (tid * 4 + j < 14) {
            CL[i, j] = AL[i, j] + AL[i, j]
          }
        }
      }
    }
    pragma "MEMCPY" {
      for (i, 0, 4) {
        for (ji, 0, 4) {
          if (tid * 4 + ji < 14) {
            C[i, tid * 4 + ji] = CL[i, ji]
          }
        }
      }
    }
  }
}
)");
}

// ---- regions ----

TEST(LowerTest, StencilComputesItsHalo) {
  Graph g("blur");
  Tensor a = g.Placeholder("A", {66}, Type::kI32);
  Tensor b = g.Compute("B", {66}, [&](Expr i) { return a(i) * 2; });
  Tensor c = g.Compute("C", {64}, [&](Expr i) { return b(i) + b(i + 1) + b(i + 2); });
  Schedule s(c);
  auto [io, ii] = s[c].Split(s[c].axis(0), 8);
  s[b].ComputeAt(s[c], io);
  EXPECT_EQ(ir::Print(MustLower(s).body), R"(for (io, 0, 8) {
  allocate B: i32[10]
  for (i, 0, 10) {
    B[i] = A[io * 8 + i] * 2
  }
  for (ii, 0, 8) {
    C[io * 8 + ii] = B[ii] + B[ii + 1] + B[ii + 2]
  }
}
)");
}

TEST(LowerTest, WholeDimensionsOfACopy) {
  Graph g("whole");
  Tensor a = g.Placeholder("A", {8, 12}, Type::kI32);
  Tensor c = g.Compute("C", {8, 4}, [&](Expr i, Expr j) { return a(i, j + 5) * 3; });
  Schedule s(c);
  const Tensor copy = s.CacheRead(a, "smem", {c});
  auto [io, ii] = s[c].Split(s[c].axis(0), 2);
  auto [jo, ji] = s[c].Split(s[c].axis(1), 3);
  s[c].Reorder({io, jo, ii, ji});
  s[copy].ComputeAt(s[c], jo).ComputeWhole(1);
  const ir::Function f = MustLower(s);
  EXPECT_THAT(ir::Print(f), HasSubstr("allocate A.smem: i32[2, 12] @smem"));
  // Nor does the copy end where the last part of a row does.
  EXPECT_THAT(ir::Print(f),
              HasSubstr("for (j, 0, 12) {\n          A.smem[i, j] = A[io * 2 + i, j]"));
  const std::vector<ir::Tensor> t = Execute(f);
  for (int64_t i = 0; i < 32; ++i)
    EXPECT_EQ(t[1].Int(i), t[0].Int(i / 4 * 12 + i % 4 + 5) * 3) << i;
}

// Three columns are read, of which the second part of a row has two: four are computed each time.
TEST(LowerTest, MoreColumnsThanAreRead) {
  Graph g("wider");
  Tensor a = g.Placeholder("A", {8, 12}, Type::kI32);
  Tensor p = g.Compute("P", {8, 8}, [&](Expr i, Expr j) { return a(i, j + 2) + 1; });
  Tensor c = g.Compute("C", {8, 5}, [&](Expr i, Expr j) { return p(i, j + 1) * 3; });
  Schedule s(c);
  auto [io, ii] = s[c].Split(s[c].axis(0), 2);
  auto [jo, ji] = s[c].Split(s[c].axis(1), 3);
  s[c].Reorder({io, jo, ii, ji});
  s[p].ComputeAt(s[c], jo).SetScope("nmem").ComputeAtLeast(1, 4);
  const ir::Function f = MustLower(s);
  EXPECT_THAT(ir::Print(f), HasSubstr("allocate P: i32[2, 4] @nmem"));
  EXPECT_THAT(ir::Print(f), HasSubstr("for (j, 0, 4) {\n          P[i, j] = "));
  const std::vector<ir::Tensor> t = Execute(f);
  for (int64_t i = 0; i < 40; ++i)
    EXPECT_EQ(t[1].Int(i), (t[0].Int(i / 5 * 12 + i % 5 + 3) + 1) * 3) << i;
  s[p].ComputeAtLeast(1, 0);
  EXPECT_THAT(s.status().message(),
              HasSubstr("stage P: ComputeAtLeast: expected 1 or more elements, found 0"));
}

// Padding reads one element beyond both ends of A; the copy leaves these out, and select never
// reads them.
TEST(LowerTest, PaddingGuardsTheCopy) {
  Graph g("pad");
  Tensor a = g.Placeholder("A", {16}, Type::kI32);
  Tensor c =
      g.Compute("C", {18}, [&](Expr i) { return Select(ir::And(1 <= i, i < 17), a(i - 1), 0); });
  Schedule s(c);
  auto [io, ii] = s[c].Split(s[c].axis(0), 6);
  s[s.CacheRead(a, "nmem", {}, "AL")].ComputeAt(s[c], io);
  const ir::Function f = MustLower(s);
  EXPECT_EQ(ir::Print(f.body), R"(for (io, 0, 3) {
  allocate AL: i32[6] @nmem
  for (i, 0, 6) {
    if (0 <= io * 6 + i - 1 && io * 6 + i - 1 < 16) {
      AL[i] = A[io * 6 + i - 1]
    }
  }
  for (ii, 0, 6) {
    C[io * 6 + ii] = select(1 <= io * 6 + ii && io * 6 + ii < 17, AL[ii], 0)
  }
}
)");
  const std::vector<ir::Tensor> t = Execute(f);
  for (int64_t i = 0; i < 18; ++i) {
    EXPECT_EQ(t[1].Int(i), i >= 1 && i < 17 ? t[0].Int(i - 1) : 0) << i;
  }
}

TEST(LowerTest, ClampsKeepTheSizeOfTheHalo) {
  Graph g("clamp");
  Tensor a = g.Placeholder("A", {64}, Type::kI32);
  Tensor c = g.Compute("C", {64}, [&](Expr i) {
    const Expr zero = g.context().I32(0);
    const Expr last = g.context().I32(63);
    return a(ir::Max(i - 1, zero)) + a(ir::Min(i + 1, last));
  });
  Schedule s(c);
  auto [io, ii] = s[c].Split(s[c].axis(0), 8);
  s[s.CacheRead(a, "nmem", {}, "AL")].ComputeAt(s[c], io);
  const ir::Function f = MustLower(s);
  // A tile of eight and one more on either side; the first and the last tile need less.
  EXPECT_THAT(ir::Print(f), HasSubstr("allocate AL: i32[10] @nmem\n"));
  const std::vector<ir::Tensor> t = Execute(f);
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(t[1].Int(i),
              t[0].Int(std::max<int64_t>(i - 1, 0)) + t[0].Int(std::min<int64_t>(i + 1, 63)));
  }
}

TEST(LowerTest, DataDependentReadsKeepTheDimensionWhole) {
  Graph g("gather");
  Tensor index = g.Placeholder("I", {8}, Type::kI32);
  Tensor a = g.Placeholder("A", {16, 4}, Type::kI32);
  Tensor c = g.Compute("C", {8, 4}, [&](Expr i, Expr j) { return a(index(i) % 16, j); });
  Schedule s(c);
  s[s.CacheRead(a, "nmem", {}, "AL")].ComputeAt(s[c], s[c].axis(1));
  EXPECT_THAT(ir::Print(MustLower(s)), HasSubstr("allocate AL: i32[16, 1] @nmem\n"));
}

// 46 over four threads is 12 each, in tiles of 8: the copy does not run into the next thread's
// part.
TEST(LowerTest, CopiesStopWhereTheReaderStops) {
  Graph g("relu");
  Tensor a = g.Placeholder("A", {46}, Type::kF32);
  Tensor c = g.Compute(
      "C", {46}, [&](Expr i) { return ir::Max(a(i), g.context().Float(Type::kF32, 0)); }, {"x"});
  Schedule s(c);
  Tensor cl = s.CacheWrite(c, "nmem", "CL");
  Tensor al = s.CacheRead(a, "nmem", {}, "AL");
  auto [part, rest] = s[c].SplitParts(s[c].axis(0), 4);
  auto [xo, xi] = s[c].Split(rest, 8);
  s[c].Bind(part, "tid");
  s[cl].ComputeAt(s[c], xo);
  s[al].ComputeAt(s[c], xo);
  const ir::Function f = MustLower(s);
  EXPECT_EQ(ir::Print(f.body), R"(thread (tid, 4) {
  for (xio, 0, 2) {
    allocate AL: f32[8] @nmem
    allocate CL: f32[8] @nmem
    for (i, 0, 8) {
      if (tid * 12 + xio * 8 + i < 46 && xio * 8 + i < 12) {
        AL[i] = A[tid * 12 + xio * 8 + i]
      }
    }
    for (x, 0, 8) {
      if (tid * 12 + xio * 8 + x < 46 && xio * 8 + x < 12) {
        CL[x] = max(AL[x], 0.0)
      }
    }
    for (xii, 0, 8) {
      if (tid * 12 + xio * 8 + xii < 46 && xio * 8 + xii < 12) {
        C[tid * 12 + xio * 8 + xii] = CL[xii]
      }
    }
  }
}
)");
  Execute(f);
}

TEST(LowerTest, ATileOfAFusedLoop) {
  Graph g("fused");
  Tensor a = g.Placeholder("A", {6, 8}, Type::kI32);
  Tensor b = g.Compute("B", {6, 8}, [&](Expr i, Expr j) { return a(i, j) + 1; });
  Tensor c = g.Compute("C", {6, 8}, [&](Expr i, Expr j) { return b(i, j) * 2; });
  Schedule s(c);
  auto [outer, inner] = s[c].Split(s[c].Fuse(s[c].leaves()), 4);
  s[b].ComputeAt(s[c], outer);
  const ir::Function f = MustLower(s);
  // Half a row.
  EXPECT_THAT(ir::Print(f), HasSubstr("allocate B: i32[1, 4]\n"));
  const std::vector<ir::Tensor> t = Execute(f);
  for (int64_t i = 0; i < 48; ++i) EXPECT_EQ(t[1].Int(i), (t[0].Int(i) + 1) * 2);
}

TEST(LowerTest, ARotatedLoopVisitsEachTileOnce) {
  for (const int64_t extent : {40, 37, 8, 1}) {
    Graph g("rotated");
    Tensor a = g.Placeholder("A", {4, extent}, Type::kI32);
    Tensor b = g.Compute("B", {4, extent}, [&](Expr i, Expr j) { return a(i, j) + 1; });
    Tensor c = g.Compute("C", {4, extent}, [&](Expr i, Expr j) { return b(i, j) * 2; });
    Schedule s(c);
    auto [tile, inner] = s[c].Split(s[c].axis(1), 8);
    const Axis rotated = s[c].Rotate(tile, s[c].axis(0), 3);
    s[c].Bind(s[c].axis(0), "tid");
    s[b].ComputeAt(s[c], rotated);
    const ir::Function f = MustLower(s);
    if (extent == 40) EXPECT_THAT(ir::Print(f), HasSubstr("(tid * 3 + jor) % 5"));
    const std::vector<ir::Tensor> t = Execute(f);
    for (int64_t i = 0; i < 4 * extent; ++i) EXPECT_EQ(t[1].Int(i), (t[0].Int(i) + 1) * 2);
  }
}

// c[x] = b[x * stride] + ... + b[x * stride + window - 1], tile by tile, b a sliding window.
struct Stencil {
  int64_t extent = 40, stride = 1, window = 3, tile = 8, ahead = 1, rotation = 0, threads = 4;

  absl::StatusOr<ir::Function> Lowered() const {
    Graph g("stencil");
    const int64_t inputs = (extent - 1) * stride + window;
    Tensor a = g.Placeholder("A", {threads, inputs}, Type::kI32);
    Tensor b = g.Compute("B", {threads, inputs}, [&](Expr i, Expr j) { return a(i, j) * 3 - 1; });
    Tensor c = g.Compute("C", {threads, extent}, [&](Expr i, Expr j) {
      Expr sum = b(i, j * stride);
      for (int64_t k = 1; k < window; ++k) sum = sum + b(i, j * stride + k);
      return sum;
    });
    Schedule s(c);
    auto [outer, inner] = s[c].Split(s[c].axis(1), tile);
    if (rotation > 0) outer = s[c].Rotate(outer, s[c].axis(0), rotation);
    s[c].Bind(s[c].axis(0), "tid");
    s[b].ComputeAt(s[c], outer).StoreAt(s[c].axis(0), ahead).SetScope("nmem");
    return Lower(s);
  }

  void Check() const {
    SCOPED_TRACE(StrCat("extent ", extent, " stride ", stride, " window ", window, " tile ", tile,
                        " ahead ", ahead, " rotation ", rotation));
    const absl::StatusOr<ir::Function> f = Lowered();
    ASSERT_TRUE(f.ok()) << f.status();
    ASSERT_TRUE(ir::Verify(*f).ok()) << ir::Verify(*f);
    const std::vector<ir::Tensor> t = Execute(*f);
    const int64_t inputs = (extent - 1) * stride + window;
    for (int64_t i = 0; i < threads * extent; ++i) {
      int64_t sum = 0;
      for (int64_t k = 0; k < window; ++k) {
        sum += t[0].Int(i / extent * inputs + i % extent * stride + k) * 3 - 1;
      }
      ASSERT_EQ(t[1].Int(i), sum) << i;
    }
  }
};

TEST(LowerTest, ASlidingWindowComputesWhatIsNew) {
  EXPECT_EQ(ir::Print(*Stencil{.extent = 16}.Lowered()),
            R"(func stencil(A: i32[4, 18] in, C: i32[4, 16] out) {
  thread (tid, 4) {
    pragma "sliding_window" (i64(1)) {
      allocate B: i32[1, 18] @nmem
      for (i, 0, 1) {
        for (j, 0, 10) {
          B[i, j] = A[tid + i, j] * 3 - 1
        }
      }
      for (jo, 0, 2) {
        pragma "no_partition" {
          if (jo < 1) {
            for (i, 0, 1) {
              for (j, 0, 8) {
                B[i, jo * 8 + j + 10] = A[tid + i, jo * 8 + j + 10] * 3 - 1
              }
            }
          }
        }
        for (ji, 0, 8) {
          C[tid, jo * 8 + ji] = B[0, (jo * 8 + ji) * 1] + B[0, (jo * 8 + ji) * 1 + 1] + B[0, (jo * 8 + ji) * 1 + 2]
        }
      }
    }
  }
}
)");
}

TEST(LowerTest, SlidingWindows) {
  for (const int64_t extent : {40, 37, 9, 8, 1}) {
    for (const int64_t rotation : {0, 1, 3}) {
      for (const int64_t ahead : {1, 2, 3, 9}) {
        for (const auto& [stride, window] : {std::pair(1, 3), {2, 3}, {1, 12}, {3, 3}, {1, 1}}) {
          Stencil{.extent = extent,
                  .stride = stride,
                  .window = window,
                  .ahead = ahead,
                  .rotation = rotation}
              .Check();
          if (HasFailure()) return;
        }
      }
    }
  }
}

// A rotation by an axis of one iteration: bounds have no remainder.
TEST(LowerTest, ASlidingWindowThatIsRotatedByNothing) {
  Stencil{.rotation = 1, .threads = 1}.Check();
}

TEST(LowerTest, WhatDoesNotSlideSaysSo) {
  const auto error = [](const Stencil& stencil) {
    return std::string(stencil.Lowered().status().message());
  };
  EXPECT_THAT(
      error({.stride = 2, .window = 1}),
      HasSubstr("stage B: StoreAt(i): what an iteration of jo reads does not move along one "
                "dimension by a constant step of at most its size"));
  EXPECT_THAT(error({.ahead = 0}), HasSubstr("expected 1 or more iterations ahead, found 0"));
  Graph g("stencil");
  Tensor a = g.Placeholder("A", {4, 40}, Type::kI32);
  Tensor b = g.Compute("B", {4, 40}, [&](Expr i, Expr j) { return a(i, j) + 1; });
  Tensor c = g.Compute("C", {4, 40}, [&](Expr i, Expr j) { return b(i, j) * 2; });
  {
    Schedule s(c);
    s[b].StoreAt(s[c].axis(0));
    EXPECT_THAT(std::string(Lower(s).status().message()), HasSubstr("ComputeAt comes first"));
  }
  {
    Schedule s(c);
    auto [outer, inner] = s[c].Split(s[c].axis(1), 8);
    s[b].ComputeAt(s[c], inner).StoreAt(s[c].axis(0));
    EXPECT_THAT(std::string(Lower(s).status().message()),
                HasSubstr("axis ji is no serial spatial loop right inside it"));
  }
  {
    Schedule s(c);
    s[b].ComputeAt(s[c], s[c].axis(1)).StoreAt(s[b].axis(0));
    EXPECT_THAT(std::string(Lower(s).status().message()), HasSubstr("belongs to stage B"));
  }
}

TEST(LowerTest, WhatCanNotBeRotatedSaysSo) {
  Graph g("rotated");
  Tensor a = g.Placeholder("A", {4, 40}, Type::kI32);
  Tensor c = g.Compute("C", {4, 40}, [&](Expr i, Expr j) { return a(i, j) + 1; });
  Schedule s(c);
  s[c].Rotate(s[c].axis(0), s[c].axis(1), 1);
  EXPECT_THAT(std::string(Lower(s).status().message()),
              HasSubstr("Rotate: axis j is not outside axis i"));
}

// ---- operators against plain loops ----

// The whole program of an elementwise operator of any rank on all cores.
absl::StatusOr<ir::Function> Add(const Shape& shape, Type type, int64_t cores, int64_t tile) {
  Graph g("add");
  Tensor a = g.Flatten(g.Placeholder("A", shape, type));
  Tensor b = g.Flatten(g.Placeholder("B", shape, type));
  Tensor c = g.Compute("C", a.shape(), [&](Expr i) { return a(i) + b(i); });
  Schedule s(c);
  Tensor cl = s.CacheWrite(c, "nmem");
  auto [core, part] = s[c].SplitParts(s[c].axis(0), cores);
  auto [io, ii] = s[c].Split(part, tile);
  s[c].Bind(core, "tid").Pragma(ii, "memcpy");
  for (const Tensor& t : {s.CacheRead(a, "nmem"), s.CacheRead(b, "nmem")}) {
    s[t].ComputeAt(s[c], io).Pragma(s[t].axis(0), "memcpy");
  }
  s[cl].ComputeAt(s[c], io).Pragma(s[cl].axis(0), "vadd");
  return Lower(s);
}

TEST(LowerTest, AddOfAnyRank) {
  for (const Shape& shape : std::vector<Shape>{
           {}, {0}, {1}, {7}, {3, 0, 2}, {16, 16}, {5, 3, 7}, {2, 3, 4, 5}, {63}, {64}, {65}}) {
    const absl::StatusOr<ir::Function> f = Add(shape, Type::kF16, 4, 8);
    ASSERT_TRUE(f.ok()) << f.status();
    EXPECT_TRUE(ir::Verify(*f).ok());
    const std::vector<ir::Tensor> t = Execute(*f);
    EXPECT_EQ(t[0].shape, Shape{ElementCount(shape)});
    for (int64_t i = 0; i < ElementCount(shape); ++i) {
      EXPECT_EQ(t[2].Float(i), t[0].Float(i) + t[1].Float(i));
    }
  }
}

// Every extent around the multiples of every factor.
TEST(LowerTest, SplitsOfAllExtents) {
  for (int64_t n = 0; n <= 17; ++n) {
    for (int64_t factor : {1, 2, 3, 4, 5, 16}) {
      for (int64_t before : {-1, 0, 1, 2, 5}) {
        const bool parts = before < 0;
        Graph g("copy");
        Tensor a = g.Placeholder("A", {n}, Type::kI32);
        Tensor c = g.Compute("C", {n}, [&](Expr i) { return a(i) + i; });
        Schedule s(c);
        auto [o, i] = parts ? s[c].SplitParts(s[c].axis(0), factor)
                            : s[c].Split(s[c].axis(0), factor, before);
        s[c].Reorder({i, o});
        s[s.CacheRead(a, "nmem")].ComputeAt(s[c], o);
        const std::vector<ir::Tensor> t = Execute(MustLower(s));
        for (int64_t j = 0; j < n; ++j) EXPECT_EQ(t[1].Int(j), t[0].Int(j) + j);
      }
    }
  }
}

TEST(LowerTest, MatmulWithCachesAndRests) {
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
           {5, 7, 9}, {8, 8, 8}, {1, 1, 1}, {9, 0, 3}, {13, 17, 3}, {0, 4, 4}}) {
    Matmul p(m, k, n);
    Schedule s(p.c);
    Tensor cl = s.CacheWrite(p.c, "nmem", "CL");
    Tensor al = s.CacheRead(p.a, "nmem", {}, "AL");
    Tensor bl = s.CacheRead(p.b, "wmem", {}, "BL");
    auto [xo, yo, xi, yi] = s[p.c].Tile(s[p.c].axis(0), s[p.c].axis(1), 4, 4);
    s[p.c].Bind(xo, "tid");
    s[cl].ComputeAt(s[p.c], yo);
    auto [ko, ki] = s[cl].Split(s[cl].reduce_axis(0), 4);
    s[cl].Reorder({ko, ki, s[cl].axis(0), s[cl].axis(1)});
    s[al].ComputeAt(s[cl], ko).StorageAlign(s[al].axis(0), 16, 0);
    s[bl].ComputeAt(s[cl], ko).DoubleBuffer();
    const ir::Function f = MustLower(s);
    const std::vector<ir::Tensor> t = Execute(f);
    for (int64_t x = 0; x < m; ++x) {
      for (int64_t y = 0; y < n; ++y) {
        double sum = 0;
        for (int64_t kk = 0; kk < k; ++kk) sum += t[0].Float(x * k + kk) * t[1].Float(kk * n + y);
        EXPECT_EQ(t[2].Float(x * n + y), sum) << x << " " << y;
      }
    }
    if (m == 8) {
      EXPECT_EQ(ir::Print(f.body), R"(thread (tid, 2) {
  for (yo, 0, 2) {
    allocate CL: f32[4, 4] @nmem
    for (x.init, 0, 4) {
      for (y.init, 0, 4) {
        CL[x.init, y.init] = 0.0
      }
    }
    for (ko, 0, 2) {
      allocate AL: f32[4, 16] @nmem
      pragma "double_buffer" {
        allocate BL: f32[4, 4] @wmem
        for (i, 0, 4) {
          for (j, 0, 4) {
            AL[i, j] = A[tid * 4 + i, ko * 4 + j]
          }
        }
        for (i, 0, 4) {
          for (j, 0, 4) {
            BL[i, j] = B[ko * 4 + i, yo * 4 + j]
          }
        }
        for (ki, 0, 4) {
          for (x, 0, 4) {
            for (y, 0, 4) {
              CL[x, y] = CL[x, y] + AL[x, ki] * BL[ki, y]
            }
          }
        }
      }
    }
    for (xi, 0, 4) {
      for (yi, 0, 4) {
        C[tid * 4 + xi, yo * 4 + yi] = CL[xi, yi]
      }
    }
  }
}
)");
    }
  }
}

TEST(LowerTest, Conv2dWithPaddingAndStride) {
  constexpr int64_t kC = 3, kH = 9, kK = 4, kR = 3, kStride = 2, kPad = 1;
  constexpr int64_t kO = (kH + 2 * kPad - kR) / kStride + 1;
  Graph g("conv");
  Tensor a = g.Placeholder("A", {kC, kH, kH}, Type::kI32);
  Tensor w = g.Placeholder("W", {kK, kC, kR, kR}, Type::kI32);
  Tensor padded = g.Compute("P", {kC, kH + 2 * kPad, kH + 2 * kPad}, [&](Expr c, Expr y, Expr x) {
    auto inside = [&](Expr i) { return ir::And(kPad <= i, i < kH + kPad); };
    return Select(ir::And(inside(y), inside(x)), a(c, y - kPad, x - kPad), 0);
  });
  const ReduceAxis c = g.ReduceAxisOf("c", kC);
  const ReduceAxis ry = g.ReduceAxisOf("ry", kR);
  const ReduceAxis rx = g.ReduceAxisOf("rx", kR);
  Tensor o = g.Compute("O", {kK, kO, kO}, [&](Expr k, Expr y, Expr x) {
    return ReduceSum(padded(c, y * kStride + ry, x * kStride + rx) * w(k, c, ry, rx), c, ry, rx);
  });
  Schedule s(o);
  auto [yo, yi] = s[o].Split(s[o].axis(1), 2);
  s[o].Reorder({yo, s[o].reduce_axis(0), s[o].axis(0)});
  s[padded].SetScope("nmem").ComputeAt(s[o], yo);
  const ir::Function f = MustLower(s);
  EXPECT_THAT(ir::Print(f), HasSubstr("allocate P: i32[3, 5, 11] @nmem\n"));
  const std::vector<ir::Tensor> t = Execute(f);
  for (int64_t k = 0; k < kK; ++k) {
    for (int64_t y = 0; y < kO; ++y) {
      for (int64_t x = 0; x < kO; ++x) {
        int64_t sum = 0;
        for (int64_t cc = 0; cc < kC; ++cc) {
          for (int64_t r = 0; r < kR; ++r) {
            for (int64_t q = 0; q < kR; ++q) {
              const int64_t ay = y * kStride + r - kPad, ax = x * kStride + q - kPad;
              if (ay < 0 || ay >= kH || ax < 0 || ax >= kH) continue;
              sum +=
                  t[0].Int((cc * kH + ay) * kH + ax) * t[1].Int(((k * kC + cc) * kR + r) * kR + q);
            }
          }
        }
        EXPECT_EQ(t[2].Int((k * kO + y) * kO + x), sum);
      }
    }
  }
}

TEST(LowerTest, ReducersAndTheirIdentities) {
  struct Row {
    Reducer reducer;
    Type type;
    double identity;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Row& row : std::vector<Row>{{Reducer::kSum, Type::kF32, 0},
                                         {Reducer::kProd, Type::kI32, 1},
                                         {Reducer::kMin, Type::kF16, infinity},
                                         {Reducer::kMax, Type::kF32, -infinity},
                                         {Reducer::kMin, Type::kI8, 127},
                                         {Reducer::kMax, Type::kI8, -128},
                                         {Reducer::kMin, Type::kU8, 255},
                                         {Reducer::kMax, Type::kU8, 0},
                                         {Reducer::kMin, Type::kI64, 9223372036854775807.0},
                                         {Reducer::kMax, Type::kI32, -2147483648.0}}) {
    for (int64_t n : {0, 1, 5}) {
      Graph g("reduce");
      Tensor a = g.Placeholder("A", {3, n}, row.type);
      const ReduceAxis k = g.ReduceAxisOf("k", n);
      Tensor c = g.Compute("C", {3}, [&](Expr i) { return Body(row.reducer, a(i, k), {k}); });
      Schedule s(c);
      s[c].Split(s[c].reduce_axis(0), 2);
      const std::vector<ir::Tensor> t = Execute(MustLower(s));
      for (int64_t i = 0; i < 3; ++i) {
        double value = row.identity;
        for (int64_t j = 0; j < n; ++j) {
          const double e = t[0].Value(i * n + j);
          value = row.reducer == Reducer::kSum    ? value + e
                  : row.reducer == Reducer::kProd ? value * e
                  : row.reducer == Reducer::kMin  ? std::min(value, e)
                                                  : std::max(value, e);
        }
        EXPECT_EQ(t[1].Value(i), value) << ir::TypeName(row.type) << " " << n;
      }
    }
  }
}

// Ties go to the smallest index, whatever the order of the loop; the value's storage is the
// function's own.
TEST(LowerTest, IndexOfTheLargestOrSmallest) {
  for (const Reducer reducer : {Reducer::kArgMin, Reducer::kArgMax}) {
    for (const bool split : {false, true}) {
      Graph g("arg");
      const Tensor x = g.Placeholder("X", {5, 37}, Type::kI8);
      const ReduceAxis k = g.ReduceAxisOf("k", 37);
      const std::vector<Tensor> y =
          g.ComputeMany("Y", {5}, [&](Expr i) { return ArgReduce(reducer, k, x(i, k), {k}); });
      Schedule s(y[0]);
      if (split) {
        auto [outer, inner] = s[y[0]].Split(s[y[0]].reduce_axis(0), 5);
        s[y[0]].Reorder({inner, outer});
      }
      const std::vector<ir::Tensor> t = Execute(MustLower(s));
      for (int64_t i = 0; i < 5; ++i) {
        int64_t best = 0;
        for (int64_t j = 1; j < 37; ++j) {
          const int64_t value = t[0].Int(i * 37 + j), old = t[0].Int(i * 37 + best);
          if (reducer == Reducer::kArgMin ? value < old : value > old) best = j;
        }
        EXPECT_EQ(t[1].Int(i), best) << i << " " << split;
      }
    }
  }
  Graph g("wrong");
  const Tensor x = g.Placeholder("X", {4}, Type::kF32);
  const ReduceAxis k = g.ReduceAxisOf("k", 4);
  const Tensor y =
      g.Compute("Y", {}, [&](const Axes&) { return Body(Reducer::kArgMax, x(k), {k}); });
  EXPECT_THAT(std::string(Lower(Schedule(y)).status().message()),
              HasSubstr("expected two results, an integer and a value"));
}

TEST(LowerTest, ReduceAxesFromAnotherMinimum) {
  Graph g("window");
  Tensor a = g.Placeholder("A", {10}, Type::kI32);
  const ReduceAxis r = g.ReduceAxisOf("r", 2, 5);
  Tensor c = g.Compute("C", {4}, [&](Expr i) { return ReduceSum(a(i + r) * r, r); });
  for (bool split : {false, true}) {
    Schedule s(c);
    if (split) s[c].Split(s[c].reduce_axis(0), 3);
    const ir::Function f = MustLower(s);
    EXPECT_THAT(ir::Print(f), HasSubstr(split ? "A[i + (ro * 3 + ri + 2)]" : "for (r, 2, 5)"));
    const std::vector<ir::Tensor> t = Execute(f);
    for (int64_t i = 0; i < 4; ++i) {
      int64_t sum = 0;
      for (int64_t j = 2; j < 7; ++j) sum += t[0].Int(i + j) * j;
      EXPECT_EQ(t[1].Int(i), sum);
    }
  }
}

TEST(LowerTest, FullReductionToAScalar) {
  Graph g("sum");
  Tensor a = g.Placeholder("A", {4, 5}, Type::kI32);
  const ReduceAxis i = g.ReduceAxisOf("i", 4);
  const ReduceAxis j = g.ReduceAxisOf("j", 5);
  Tensor c = g.Compute("C", {}, [&] { return ReduceSum(a(i, j), i, j); });
  Schedule s(c);
  s[c].Split(s[c].Fuse(s[c].reduce_axis(0), s[c].reduce_axis(1)), 3);
  const std::vector<ir::Tensor> t = Execute(MustLower(s));
  int64_t sum = 0;
  for (int64_t e = 0; e < 20; ++e) sum += t[0].Int(e);
  EXPECT_EQ(t[1].Int(0), sum);
}

// ---- parameters ----

TEST(LowerTest, ParametersInOrder) {
  Graph g("f");
  const Expr alpha = g.Scalar("alpha", Type::kF32);
  Tensor unused = g.Placeholder("unused", {2}, Type::kF32);
  Tensor a = g.Placeholder("A", {2}, Type::kF32);
  Tensor b = g.Compute("B", {2}, [&](Expr i) { return a(i) * alpha; });
  Tensor c = g.Compute("C", {2}, [&](Expr i) { return b(i) + a(i); });
  Schedule s({c, b});
  const ir::Function f = MustLower(s);
  EXPECT_THAT(ir::Print(f), HasSubstr("func f(unused: f32[2] in, A: f32[2] in, C: f32[2] out, "
                                      "B: f32[2] out, alpha: f32) {"));
  EXPECT_THAT(ir::Print(f), Not(HasSubstr("allocate")));
  const std::vector<ir::Tensor> t = Execute(f);
  EXPECT_EQ(t[2].Float(1), t[1].Float(1) * 3 + t[1].Float(1));
  EXPECT_EQ(t[3].Float(1), t[1].Float(1) * 3);
}

TEST(LowerTest, SeveralResultsOfOneLoopNest) {
  Graph g("moments");
  Tensor a = g.Placeholder("A", {3, 4}, Type::kI32);
  const ReduceAxis k = g.ReduceAxisOf("k", 4);
  std::vector<Tensor> m = g.ComputeMany("M", {3}, [&](Expr i) {
    return std::vector<Body>{ReduceSum(a(i, k), k), ReduceMax(a(i, k) * a(i, k), k)};
  });
  Schedule s(m);
  EXPECT_EQ(ir::Print(MustLower(s)),
            R"(func moments(A: i32[3, 4] in, M.0: i32[3] out, M.1: i32[3] out) {
  for (i, 0, 3) {
    M.0[i] = 0
    M.1[i] = -2147483648
    for (k, 0, 4) {
      M.0[i] = M.0[i] + A[i, k]
      M.1[i] = max(M.1[i], A[i, k] * A[i, k])
    }
  }
}
)");
  // A result that is no output lives inside the function.
  Schedule one(m[1]);
  EXPECT_THAT(ir::Print(MustLower(one)), HasSubstr("allocate M.0: i32[3]\n"));
}

TEST(LowerTest, ViewsOfAParameter) {
  Graph g("views");
  Tensor a = g.Placeholder("A", {4, 6}, Type::kI32);
  Tensor flat = g.Flatten(a);
  Tensor c = g.Compute("C", {24}, [&](Expr i) { return flat(i) + 1; });
  // Read flat only: declared flat.
  EXPECT_THAT(ir::Print(MustLower(Schedule(c))), HasSubstr("A: i32[24] in"));
  // Read in both shapes: flat, with the row-major position.
  Tensor d = g.Compute("D", {4, 6}, [&](Expr i, Expr j) { return a(i, j) + flat(i); });
  const ir::Function f = MustLower(Schedule(d));
  EXPECT_THAT(ir::Print(f), HasSubstr("A: i32[24] in"));
  EXPECT_THAT(ir::Print(f), HasSubstr("D[i, j] = A[i * 6 + j] + A[i]\n"));
  // Not read flat: as it is.
  Tensor e = g.Compute("E", {4, 6}, [&](Expr i, Expr j) { return a(i, j); });
  EXPECT_THAT(ir::Print(MustLower(Schedule(e))), HasSubstr("A: i32[4, 6] in"));
}

// A tile that the threads of a block fetch together has room for what all of them read, whether its
// loops stand outside or inside those of its reader; a private copy only for its own thread.
TEST(LowerTest, SharedStagesServeAllThreadsOfABlock) {
  for (const int64_t n : {1, 7, 8, 9, 31, 32, 37}) {
    Graph g("shared");
    Tensor a = g.Placeholder("A", {n}, Type::kI32);
    const ReduceAxis k = g.ReduceAxisOf("k", 3);
    Tensor p = g.Compute("P", {n + 2}, [&](Expr i) {
      return g.context().Select(And(1 <= i, i < n + 1), a(i - 1), g.context().I32(0));
    });
    Tensor c = g.Compute("C", {n}, [&](Expr i) { return ReduceSum(p(i + k) * (k + 2), k); });
    Schedule s(c);
    const Tensor own = s.CacheRead(p, "local", {c});
    auto [block, rest] = s[c].Split(s[c].axis(0), 16);
    auto [thread, each] = s[c].Split(rest, 2);
    s[c].Bind(block, "blockIdx.x").Bind(thread, "threadIdx.x");
    s[own].ComputeAt(s[c], thread);
    s[p].ComputeAt(s[c], thread).SetScope("shared");
    auto [step, fetcher] = s[p].Split(s[p].axis(0), 8);
    s[p].Bind(fetcher, "threadIdx.x");
    const ir::Function f = MustLower(s);
    if (n > 16) {
      EXPECT_THAT(ir::Print(f), HasSubstr("allocate P: i32[18] @shared"));
      EXPECT_THAT(ir::Print(f), HasSubstr("allocate P.local: i32[4] @local"));
    }
    const std::vector<ir::Tensor> t = Execute(f);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t left = i > 0 ? t[0].Int(i - 1) : 0;
      const int64_t right = i + 1 < n ? t[0].Int(i + 1) : 0;
      EXPECT_EQ(t[1].Int(i), left * 2 + t[0].Int(i) * 3 + right * 4) << n << ", " << i;
    }
  }
}

// In smem there is room for what all cores of a cluster read; a core's own copy has its part.
TEST(LowerTest, StagesInSmemServeAllCoresOfACluster) {
  Graph g("shared");
  Tensor a = g.Placeholder("A", {64}, Type::kI32);
  Tensor c = g.Compute("C", {64}, [&](Expr i) { return a(i) * 2; });
  Schedule s(c);
  const Tensor shared = s.CacheRead(a, "smem", {c});
  const Tensor own = s.CacheRead(shared, "nmem", {c});
  auto [block, rest] = s[c].Split(s[c].axis(0), 32);
  auto [core, each] = s[c].Split(rest, 8);
  s[c].Reorder({core, block, each});
  s[c].Bind(core, "tid");
  s[shared].ComputeAt(s[c], block).SetScope("smem");
  s[own].ComputeAt(s[c], block).SetScope("nmem");
  const ir::Function f = MustLower(s);
  EXPECT_THAT(ir::Print(f), HasSubstr("allocate A.smem: i32[32] @smem"));
  EXPECT_THAT(ir::Print(f), HasSubstr("allocate A.smem.nmem: i32[8] @nmem"));
  const std::vector<ir::Tensor> t = Execute(f);
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(t[1].Int(i), t[0].Int(i) * 2) << i;
}

TEST(LowerTest, ReshapeOfAComputedTensor) {
  Graph g("reshape");
  Tensor a = g.Placeholder("A", {4, 6}, Type::kI32);
  Tensor b = g.Compute("B", {4, 6}, [&](Expr i, Expr j) { return a(i, j) * 2; });
  Tensor c = g.Reshape(b, {3, 8});
  Schedule s(c);
  s[b].ComputeInline();
  const std::vector<ir::Tensor> t = Execute(MustLower(s));
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(t[1].Int(i), t[0].Int(i) * 2);
}

// ---- index types ----

TEST(LowerTest, LargeTensorsHaveWideIndices) {
  Graph g("large");
  Tensor a = g.Placeholder("A", {3'000'000'000}, Type::kI8);
  Tensor c = g.Compute("C", a.shape(), [&](Expr i) { return a(i); });
  Schedule s(c);
  s[c].Split(s[c].axis(0), 4096);
  EXPECT_THAT(ir::Print(MustLower(s)), HasSubstr("for (io: i64, 0, 732422) {\n"));
}

TEST(LowerTest, LoopsThatAreTooLongForTheirIndex) {
  Graph g("long");
  Tensor a = g.Placeholder("A", {1 << 16}, Type::kI8);
  const ReduceAxis j = g.ReduceAxisOf("j", 1 << 16);
  const ReduceAxis k = g.ReduceAxisOf("k", 1 << 16);
  Tensor c = g.Compute("C", {1}, [&](Expr) { return ReduceMax(a(j) + a(k), j, k); });
  Schedule s(c);
  s[c].Fuse(s[c].reduce_axis(0), s[c].reduce_axis(1));
  EXPECT_EQ(Lower(s).status().message(),
            "stage C: axis j_k of extent 4294967296 needs i64 indices: give Graph the index type "
            "i64");
}

}  // namespace
}  // namespace polynao::te
