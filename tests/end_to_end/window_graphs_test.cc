// Reductions over windows of an image, on the vector unit: what they are rewritten to means the same, and all values on
// the card are the interpreter's. POLYNAO_RANDOM_CASES=2000 runs more random graphs, POLYNAO_SEED=7 the same ones.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/math.h"
#include "base/text.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/tensor.h"
#include "compiler/te/card/card_group.h"
#include "compiler/te/card/flat_windows.h"
#include "compiler/te/card/wide_channels.h"
#include "compiler/te/graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/machine.h"
#include "tests/end_to_end/card_graph_for_test.h"

namespace polynao {
namespace {

using ir::Expr;
using ir::Type;
using te::Axes;
using te::Graph;
using te::Shape;
using te::Tensor;

struct Window {
  int64_t size = 1, stride = 1, dilation = 1, before = 0;

  int64_t Reach() const { return (size - 1) * dilation + 1; }
};

// The largest or the sum of a window's elements, or the sum of its products with filters: one for each channel.
class RandomWindows {
 public:
  explicit RandomWindows(Random& random) : random_(random), g_("windows") {}

  Tensor Make() {
    const Type type = random_.Of<Type>({Type::kF16, Type::kF32, Type::kI8, Type::kI32});
    const bool widens = type == Type::kI8 || (type == Type::kF16 && random_.OneIn(2));
    const Type sum = !widens ? type : type == Type::kI8 ? Type::kI32 : Type::kF32;
    const int64_t lead = random_.OneIn(3) ? random_.Pick(1, 2) : 0;
    const int64_t channels = random_.Of<int64_t>({1, 3, 8, 16, 24, 32, 48, 64, 72, 96, 128, 144});
    const Window rows = MakeWindow(), columns = MakeWindow();
    // Of the results; the image has what they need, and some more.
    const int64_t h = random_.Pick(1, 9), w = random_.Pick(1, 12);
    const auto needs = [&](const Window& window, int64_t n) {
      return (n - 1) * window.stride + window.Reach() + random_.Pick(0, window.stride - 1);
    };
    const int64_t in_h = needs(rows, h), in_w = needs(columns, w);
    // Of its margin the first `before` rows and columns, and as many last ones as it had.
    const int64_t own_h = std::max<int64_t>(1, in_h - 2 * rows.before);
    const int64_t own_w = std::max<int64_t>(1, in_w - 2 * columns.before);
    Shape shape;
    if (lead > 0) shape.push_back(lead);
    const size_t at_rows = shape.size();
    for (const int64_t extent : {own_h, own_w, channels}) shape.push_back(extent);
    const Tensor x = g_.Placeholder("X", shape, type);
    Shape padded_shape = shape;
    padded_shape[at_rows] = in_h, padded_shape[at_rows + 1] = in_w;
    const bool pads = padded_shape != shape;
    const Tensor image = !pads ? x : g_.Compute("P", padded_shape, [&](const Axes& at) {
      Axes from = at;
      from[at_rows] = at[at_rows] - rows.before;
      from[at_rows + 1] = at[at_rows + 1] - columns.before;
      const Expr inside = ir::And(
          ir::And(rows.before <= at[at_rows], at[at_rows] < rows.before + own_h),
          ir::And(columns.before <= at[at_rows + 1], at[at_rows + 1] < columns.before + own_w));
      return te::Select(inside, x(from), 0.0);
    });
    const te::ReduceAxis r = g_.ReduceAxisOf("r", rows.size),
                         s = g_.ReduceAxisOf("s", columns.size);
    Shape out = padded_shape;
    out[at_rows] = h, out[at_rows + 1] = w;
    const int64_t kind = random_.Pick(0, 2);
    const Tensor f =
        kind == 2 ? g_.Placeholder("F", {rows.size, columns.size, channels}, type) : Tensor();
    text_ = StrCat(ir::TypeName(type), widens ? " widened " : " ", absl::StrJoin(shape, "x"),
                   " kind ", kind, " window ", rows.size, "x", columns.size, " by ", rows.stride,
                   "x", columns.stride, " dilated ", rows.dilation, "x", columns.dilation, " -> ",
                   absl::StrJoin(out, "x"));
    const bool has_more = random_.OneIn(2);
    const Tensor reduced = g_.Compute(has_more ? "S" : "Y", out, [&](const Axes& at) -> te::Body {
      Axes place = at;
      place[at_rows] = at[at_rows] * rows.stride + r * rows.dilation;
      place[at_rows + 1] = at[at_rows + 1] * columns.stride + s * columns.dilation;
      const auto wide = [&](Expr e) { return e.type() == sum ? e : e.context().Cast(sum, e); };
      const Expr value = wide(image(place));
      if (kind == 0) return te::ReduceMax(value, r, s);
      if (kind == 1) return te::ReduceSum(value, r, s);
      return te::ReduceSum(value * wide(f(r, s, at.back())), r, s);
    });
    if (!has_more) return reduced;
    const Tensor b = g_.Placeholder("B", {channels}, sum);
    return g_.Compute("Y", out, [&](const Axes& at) { return reduced(at) + b(at.back()); });
  }
  const std::string& Text() const { return text_; }

 private:
  Window MakeWindow() {
    Window w = {.size = random_.Pick(1, 4), .stride = random_.Pick(1, 3)};
    w.dilation = random_.OneIn(3) ? 2 : 1;
    w.before = random_.OneIn(2) ? 0 : random_.Pick(0, w.size);
    return w;
  }

  Random& random_;
  Graph g_;
  std::string text_;
};

// Random graphs of which `rewrite(graph, random)` makes another one, if any: both mean the same.
template <typename Rewrite>
void MeanTheSame(const Rewrite& rewrite) {
  int rewritten = 0;
  ForRandomSeeds(100, /*scalar_rate=*/0, [&](Random& random, unsigned seed, Exceptions&) {
    RandomWindows windows(random);
    const Tensor y = windows.Make();
    SCOPED_TRACE(windows.Text());
    const std::optional<Tensor> other = rewrite(y, random);
    if (!other) return;
    ++rewritten;
    const std::vector<ir::Tensor> inputs = Inputs(y, seed, ir::Values::kAll);
    const absl::StatusOr<ir::Tensor> expected = Meaning(y, inputs), found = Meaning(*other, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(found.ok()) << found.status();
    const int64_t at = ir::FirstDifference(*found, *expected);
    ASSERT_EQ(at, -1) << "element " << at << ": " << found->Value(at) << ", expected "
                      << expected->Value(at);
  });
  if (std::getenv("POLYNAO_RANDOM_CASES") == nullptr) EXPECT_GT(rewritten, 30);
}

TEST(WindowGraphsTest, FlatWindowsMeanTheSame) {
  MeanTheSame([](const Tensor& y, Random& random) {
    const auto half = [&](int64_t n) { return n % 2 == 0 && random.OneIn(2) ? n / 2 : n; };
    const int64_t channels = half(y.shape().back());
    return te::FlattenWindows(y, channels, random.OneIn(2), half(y.shape()[y.rank() - 2]),
                              random.OneIn(2));
  });
}

TEST(WindowGraphsTest, MoreChannelsMeanTheSame) {
  MeanTheSame([](const Tensor& y, Random& random) {
    const int64_t block = random.OneIn(2) ? 0 : random.Pick(1, 40);
    const int64_t channels = y.shape().back() + random.Pick(1, 70);
    return te::WidenChannels(y, te::Computes(y), block == 0 ? channels : RoundUp(channels, block),
                             block);
  });
}

// Nodes drop axes of one element. An axis after such a one was taken for the first: cores of the second image read that
// of the first one's neighbour.
TEST(WindowGraphsTest, AxesOfOneElement) {
  Graph g("windows");
  const Tensor x = g.Placeholder("X", {2, 6, 3, 144}, Type::kI8);
  const Tensor padded = g.Compute("P", {2, 8, 5, 144}, [&](Expr n, Expr y, Expr column, Expr c) {
    const Expr inside = ir::And(ir::And(1 <= y, y < 7), ir::And(1 <= column, column < 4));
    return te::Select(inside, x(n, y - 1, column - 1, c), 0.0);
  });
  const te::ReduceAxis s = g.ReduceAxisOf("s", 2);
  const Tensor y = g.Compute("Y", {2, 8, 1, 144}, [&](Expr n, Expr row, Expr column, Expr c) {
    return te::ReduceMax(g.context().Cast(Type::kI32, padded(n, row, column * 3 + s, c)), s);
  });
  const isa::Machine machine =
      TestMachine("mlu370", {"card.clusters=1", "cluster.cores=4", "core.nmem_kib=128"});
  Exceptions exceptions;
  for (size_t choice = 0; choice < 60; ++choice) {
    MustAgree(y, machine, choice, /*seed=*/1, exceptions, /*by_vector=*/true);
  }
  EXPECT_EQ(exceptions.scalar, 0);
}

// Where rows of windows stand side by side, filters are repeated in the order of the elements, places of the window
// innermost.
TEST(WindowGraphsTest, FiltersOfRowsSideBySide) {
  Graph g("windows");
  const Tensor x = g.Placeholder("X", {20, 12, 8}, Type::kF16);
  const Tensor f = g.Placeholder("F", {4, 3, 8}, Type::kF16);
  const te::ReduceAxis r = g.ReduceAxisOf("r", 4), s = g.ReduceAxisOf("s", 3);
  const auto wide = [&](Expr e) { return g.context().Cast(Type::kF32, e); };
  const Tensor y = g.Compute("Y", {9, 4, 8}, [&](Expr row, Expr column, Expr c) {
    return te::ReduceSum(wide(x(row * 2 + r, column * 3 + s, c)) * wide(f(r, s, c)), r, s);
  });
  const isa::Machine machine =
      TestMachine("mlu370", {"card.clusters=3", "cluster.cores=2", "core.nmem_kib=256"});
  Exceptions exceptions;
  for (size_t choice = 0; choice < 60; ++choice) {
    MustAgree(y, machine, choice, /*seed=*/1, exceptions, /*by_vector=*/true);
  }
  EXPECT_EQ(exceptions.scalar, 0);
}

TEST(WindowGraphsTest, OnTheCard) {
  ForRandomSeeds(60, /*scalar_rate=*/1, [](Random& random, unsigned seed, Exceptions& exceptions) {
    const isa::Machine machine =
        TestMachine("mlu370", {StrCat("core.nmem_kib=", random.Pick(2, 8) * 64),
                               StrCat("card.clusters=", random.Pick(1, 4)),
                               StrCat("cluster.cores=", random.Of<int64_t>({1, 2, 4}))});
    RandomWindows windows(random);
    const Tensor y = windows.Make();
    SCOPED_TRACE(windows.Text());
    MustAgree(y, machine, random.OneIn(2) ? 0 : random.Pick(0, 40), seed, exceptions,
              /*by_vector=*/true);
  });
}

}  // namespace
}  // namespace polynao
