#include "kernels/te/slice_program.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "compiler/ir/pragmas.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/levels.h"
#include "kernels/te/epilogue.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Axis;
using te::Schedule;
using te::Tensor;

// [tensor-program groups begin]
// The filters of slices. Those of merged groups are made in NMEM: zeros with the groups' filters on the diagonal, from
// `f`, which is there.
struct Filters {
  Tensor diagonal;  // in NMEM; none if no groups are merged
  Tensor filters;   // in WMEM: (slices, out, kh, kw, in)
};
Filters FiltersOf(te::Graph& g, const GroupedConv& k, const Slices& t, const Tensor& f) {
  const int64_t gci = k.group_ci(), gco = k.group_co();
  Filters result;
  const te::Shape shape = {t.count, t.out, k.kh, k.kw, t.in};
  if (t.merged == 1) {
    result.filters = g.Compute("W", shape, [&](const te::Axes& at) {
      return f(at[0] * t.out + at[1], at[2], at[3], at[4]);
    });
    return result;
  }
  result.diagonal =
      g.Compute("D", {t.count, t.merged, gco, k.kh, k.kw, t.merged, gci}, [&](const te::Axes& at) {
        const Expr channel = (at[0] * t.merged + at[1]) * gco + at[2];
        return te::Select(ir::Eq(at[1], at[5]), f(channel, at[3], at[4], at[6]), 0.0);
      });
  result.filters = g.Compute("W", shape, [&](const te::Axes& at) {
    return result.diagonal(at[0], at[1] / gco, at[1] % gco, at[2], at[3], at[4] / gci, at[4] % gci);
  });
  return result;
}

// Sums of a slice, added up by parts of its filters, of which one is in WMEM at a time.
void AddUpParts(Schedule& s, const Slices& t, const Tensor& sums, te::Stage& reader,
                const Axis& slice, const Tensor& filters) {
  te::Stage& stage = s[sums].ComputeAt(reader, slice).SetScope(isa::kNmem);
  auto [row, r] = stage.Split(stage.reduce_axis(0), t.part_rows);
  auto [column, c] = stage.Split(stage.reduce_axis(1), t.part_columns);
  auto [channel, i] = stage.Split(stage.reduce_axis(2), t.part_channels);
  const Axis first = stage.axis(0);
  stage.Reorder(
      {row, column, channel, first, stage.axis(1), stage.axis(2), stage.axis(3), r, c, i});
  stage.Pragma(first, "conv_acc").PragmaInit(first, "fill");
  s[filters].ComputeAt(stage, channel).SetScope(isa::kWmem);
  s[filters].Pragma(s[filters].axis(1), "memcpy");
}

// The tensors of a plan by the tensor unit, and their schedule.
class SliceProgram {
 public:
  SliceProgram(const GroupedConv& k, const Sharing& plan, const isa::Machine& m)
      : k_(k),
        plan_(plan),
        m_(m),
        t_(k, plan.merged, m),
        is_shared_(plan.kind == Sharing::Kind::kShared),
        is_merged_(t_.merged > 1),
        gathers_(plan.Gathers(k, t_)),
        g_("conv2d") {}

  absl::StatusOr<ir::Function> Build() {
    const Tensor y = Express();
    Schedule s(y);
    ReadCloser(s);
    std::tie(cid_, row_) = s[y].Split(s[y].axis(0), plan_.tiling.cluster_rows);
    s[y].Bind(cid_, isa::kClusterAxis);
    is_shared_ ? ShareSlices(s, y) : TileRows(s, y);
    PlaceSlices(s, is_shared_ ? s[whole_] : s[y]);
    return Lower(s);
  }

 private:
  // Image, slices, filters, sums and what follows them; the results on chip, and as they are stored.
  Tensor Express() {
    x_ = g_.Placeholder("X", {k_.h, k_.w, k_.ci}, k_.in);
    f_ = g_.Placeholder("F", {k_.co, k_.kh, k_.kw, k_.group_ci()}, k_.in);
    const Tensor b = k_.bias ? g_.Placeholder("B", {k_.co}, k_.sum) : Tensor();
    filters_ = FiltersOf(g_, k_, t_, f_);
    padded_ = Padded(g_, k_, x_);
    // A core's only slice is all that it has of the image.
    const auto element = [&](Expr slice, Expr y, Expr column, Expr i) {
      return padded_(y, column, slice * t_.in + i);
    };
    const bool is_part = plan_.CoreSlices(t_) > 1;
    if (is_part) {
      part_ = g_.Compute("Q", {t_.count, padded_.shape()[0], padded_.shape()[1], t_.in}, element);
    }
    const te::ReduceAxis r = g_.ReduceAxisOf("r", k_.kh), w = g_.ReduceAxisOf("s", k_.kw);
    const te::ReduceAxis i = g_.ReduceAxisOf("i", t_.in);
    const te::Shape out = {k_.ho(), k_.wo(), t_.count, t_.out};
    sums_ = g_.Compute("S", out, [&](Expr y, Expr column, Expr slice, Expr c) {
      const Expr row = y * k_.stride + r * k_.dilation;
      const Expr place = column * k_.stride + w * k_.dilation;
      const Expr value = is_part ? part_(slice, row, place, i) : element(slice, row, place, i);
      const Expr weight = filters_.filters(slice, c, r, w, i);
      return te::ReduceSum(To(k_.sum, weight) * To(k_.sum, value), r, w, i);
    });
    biases_ = b ? g_.Reshape(b, {t_.count, t_.out}) : b;
    const auto copy = [&](const char* name, const Tensor& from) {
      return g_.Compute(name, out, [&](const te::Axes& at) { return from(at); });
    };
    gathered_ = gathers_ ? copy("SG", sums_) : sums_;
    steps_ = Append(g_, k_, gathered_, biases_);
    whole_ = copy("YW", steps_.tensors.empty() ? gathered_ : steps_.tensors.back());
    return copy("Y", whole_);
  }

  // Copies of inputs in memories of the card.
  void ReadCloser(Schedule& s) {
    const int64_t filter_bytes = k_.co * k_.kh * k_.kw * k_.group_ci() * ir::ByteSize(k_.in);
    const bool by_smem = !is_merged_ && !is_shared_ && filter_bytes <= m_.smem_bytes();
    if (by_smem) shared_filters_ = s.CacheRead(f_, isa::kSmem);
    if (is_merged_) near_filters_ = s.CacheRead(f_, isa::kNmem);
    if (is_shared_) image_ = s.CacheRead(x_, isa::kSmem);
    if (biases_) near_biases_ = s.CacheRead(biases_, isa::kNmem);
  }

  static void At(Schedule& s, te::Stage& reader, const Axis& axis, const Tensor& tensor,
                 std::string_view scope, std::string_view instruction) {
    s[tensor].ComputeAt(reader, axis).SetScope(scope).Pragma(s[tensor].axis(0), instruction);
  }

  // The memory core loads a cluster's rows and stores its results; cores take some of the slices of some rows.
  void ShareSlices(Schedule& s, const Tensor& y) {
    Axis turn = cid_;
    if (plan_.turns > 1) {
      std::tie(turn, row_) = s[y].Split(row_, plan_.turn_rows());
      // By cores: one transfer of the memory core waits for the other.
      Axis core;
      std::tie(core, row_) = s[y].SplitParts(row_, plan_.StoringCores(m_));
      s[y].Bind(core, isa::kCoreAxis);
      for (const Tensor& moved : {image_, whole_, padded_}) s[moved].DoubleBuffer();
      if (gathers_) s[steps_.tensors.empty() ? gathered_ : steps_.tensors.back()].DoubleBuffer();
    }
    s[y].Pragma(row_, "memcpy");
    At(s, s[y], turn, image_, isa::kSmem, "memcpy");
    te::Stage& results = s[whole_].ComputeAt(s[y], turn).SetScope(isa::kSmem);
    auto [core_row, yy] = results.Split(results.axis(0), plan_.tiling.core_rows);
    auto [core_slice, own] = results.Split(results.axis(2), plan_.OwnSlices(t_));
    const Axis column = results.axis(1), c = results.axis(3);
    if (gathers_) {
      results.Reorder({core_row, core_slice, yy, column, own, c});
    } else {
      results.Reorder({core_row, core_slice, own, yy, column, c});
    }
    tid_ = results.Fuse(core_row, core_slice);
    results.Bind(tid_, isa::kCoreAxis).Pragma(yy, "memcpy");
    At(s, results, tid_, padded_, isa::kNmem, pragma::kPad);
    slice_ = own;
    if (!gathers_) return;
    te::Stage& gathered = s[gathered_];
    slice_ = gathered.axis(2);
    gathered.Reorder({slice_, gathered.axis(0), gathered.axis(1), gathered.axis(3)});
    At(s, results, tid_, gathered_, isa::kNmem, "memcpy");
  }

  // Clusters and cores share rows. A tile is loaded with all channels. Its slices are convolved one by one, and the
  // results are stored between those of the other slices.
  void TileRows(Schedule& s, const Tensor& y) {
    auto [core, core_y] = s[y].Split(row_, plan_.tiling.core_rows);
    auto [tile_row, yy] = s[y].Split(core_y, plan_.tiling.rows);
    auto [tile_column, xx] = s[y].Split(s[y].axis(1), plan_.tiling.columns);
    s[y].Reorder({cid_, core, tile_row, tile_column, yy, xx});
    const Axis tile = s[y].Fuse(tile_row, tile_column);
    tid_ = core;
    s[y].Bind(tid_, isa::kCoreAxis).Pragma(yy, "memcpy");
    if (shared_filters_) At(s, s[y], cid_, shared_filters_, isa::kSmem, "memcpy");
    At(s, s[y], tile, padded_, isa::kNmem, pragma::kPad);
    te::Stage& results = s[whole_].ComputeAt(s[y], tile).SetScope(isa::kNmem);
    slice_ = results.axis(2);
    results.Reorder({slice_, results.axis(0), results.axis(1), results.axis(3)});
    results.Pragma(results.axis(0), "memcpy");
    s[padded_].DoubleBuffer();
    s[whole_].DoubleBuffer();
  }

  // What is done slice by slice, and with the sums. `of_core`: the stage that has the loop over cores.
  void PlaceSlices(Schedule& s, te::Stage& of_core) {
    te::Stage& results = s[whole_];
    te::Stage& by_slices = gathers_ ? s[gathered_] : results;
    if (is_merged_) {
      At(s, of_core, tid_, near_filters_, isa::kNmem, "memcpy");
    }
    te::Stage& filters = s[filters_.filters];
    const bool ahead = plan_.FiltersAhead(k_, t_, m_);
    if (is_merged_) {
      At(s, ahead ? filters : by_slices, ahead ? filters.axis(0) : slice_, filters_.diagonal,
         isa::kNmem, pragma::kPad);
      if (!ahead) s[filters_.diagonal].DoubleBuffer();
    }
    if (!ahead && (is_merged_ || is_shared_)) filters.DoubleBuffer();
    if (part_) At(s, by_slices, slice_, part_, isa::kNmem, "memcpy");
    if (t_.parts(k_) > 1) {
      AddUpParts(s, t_, sums_, by_slices, slice_, filters_.filters);
    } else {
      filters.ComputeAt(ahead ? of_core : by_slices, ahead ? tid_ : slice_).SetScope(isa::kWmem);
      filters.Pragma(filters.axis(1), "memcpy");
      At(s, by_slices, slice_, sums_, isa::kNmem, "conv");
    }
    const Axis& epilogue = gathers_ ? tid_ : slice_;
    if (near_biases_) At(s, results, epilogue, near_biases_, isa::kNmem, "memcpy");
    for (size_t j = 0; j < steps_.tensors.size(); ++j) {
      At(s, results, epilogue, steps_.tensors[j], isa::kNmem, steps_.instructions[j]);
    }
    ReusePlaces(s, gathered_, steps_);
  }

  const GroupedConv& k_;
  const Sharing& plan_;
  const isa::Machine& m_;
  const Slices t_;
  const bool is_shared_, is_merged_, gathers_;
  te::Graph g_;
  Tensor x_, f_, padded_, part_, sums_, biases_, gathered_, whole_;
  Filters filters_;
  EpilogueSteps steps_;
  Tensor shared_filters_, near_filters_, image_, near_biases_;
  Axis cid_, row_, tid_, slice_;
};
// [tensor-program groups end]

}  // namespace

absl::StatusOr<ir::Function> ConvolveSlices(const GroupedConv& k, const Sharing& plan,
                                            const isa::Machine& m) {
  return SliceProgram(k, plan, m).Build();
}

}  // namespace polynao::kernels
