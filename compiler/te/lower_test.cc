#include "compiler/te/lower.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/interpreter.h"
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

// Runs `function` on random inputs; the outputs' values.
[[maybe_unused]] std::vector<ir::Tensor> RunIt(const ir::Function& function,
                                               std::vector<ir::Tensor>* inputs = nullptr) {
  std::vector<ir::Tensor> tensors;
  for (const ir::Param& param : function.params) {
    EXPECT_TRUE(param.buffer);
    std::vector<int64_t> shape;
    for (Expr extent : param.buffer->extents) shape.push_back(extent.int_value());
    tensors.push_back(param.access == ir::Access::kIn
                          ? ir::RandomTensor(param.buffer->type, shape, tensors.size())
                          : ir::Tensor(param.buffer->type, shape));
  }
  std::vector<ir::Argument> arguments;
  for (ir::Tensor& tensor : tensors) arguments.push_back(ir::Argument::Of(&tensor));
  const absl::Status status = ir::Interpret(function, arguments);
  EXPECT_TRUE(status.ok()) << status << "\n" << ir::Print(function);
  std::vector<ir::Tensor> outputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool is_input = function.params[i].access == ir::Access::kIn;
    if (is_input && inputs != nullptr) inputs->push_back(tensors[i]);
    if (!is_input) outputs.push_back(tensors[i]);
  }
  return outputs;
}

// ---- the papers' listings
// ------------------------------------------------------------------------

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

}  // namespace
}  // namespace polynao::te
