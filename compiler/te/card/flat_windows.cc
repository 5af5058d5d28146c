#include "compiler/te/card/flat_windows.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/math.h"
#include "base/text.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/target/target.h"
#include "compiler/te/card/graph_copy.h"
#include "isa/granularity.h"

namespace polynao::te {
namespace {

using ir::ExprKind;

// An index as stride * axis + offset, the offset over reduced axes alone.
struct Place {
  int64_t stride = 0;
  Expr offset = {};
  int64_t most = 0;  // the largest offset
};

// The windows of a reduction: all loads of one tensor, at the same places.
struct Windows {
  Expr load;
  std::array<Place, 2> places;  // rows, columns
};

class Matcher {
 public:
  explicit Matcher(const Operation& operation)
      : operation_(operation), rank_(operation.shape.size()) {}

  std::optional<Windows> Run() const {
    if (operation_.kind != Operation::Kind::kCompute || operation_.bodies.size() != 1 ||
        rank_ < 3 || ElementCount(operation_.shape) == 0) {
      return std::nullopt;
    }
    const Body& body = operation_.bodies[0];
    if (!body.reducer || IsArgReducer(*body.reducer) || body.axes.empty()) return std::nullopt;
    Windows windows;
    bool matches = true;
    ir::ForEachExpr(body.value, [&](Expr e) {
      if (!e.Is(ExprKind::kLoad) || !(Uses(e, Rows()) || Uses(e, Columns()))) return;
      if (windows.load && windows.load != e) matches = false;
      windows.load = e;
    });
    if (!matches || !windows.load || HasAxesOutsideLoads(body.value)) return std::nullopt;
    const absl::Span<const Expr> indices = windows.load.operands();
    if (indices.size() != rank_ || indices[rank_ - 1] != operation_.axes.back()) {
      return std::nullopt;
    }
    for (size_t d = 0; d + 3 < rank_; ++d) {
      if (indices[d] != operation_.axes[d]) return std::nullopt;
    }
    for (size_t i = 0; i < 2; ++i) {
      const std::optional<Place> place =
          PlaceOf(indices[rank_ - 3 + i], operation_.axes[rank_ - 3 + i]);
      if (!place) return std::nullopt;
      windows.places[i] = *place;
    }
    const bool is_window = windows.places[0].most > 0 || windows.places[1].most > 0;
    return is_window ? std::optional(windows) : std::nullopt;
  }

 private:
  Expr Rows() const { return operation_.axes[rank_ - 3]; }
  Expr Columns() const { return operation_.axes[rank_ - 2]; }
  static bool Uses(Expr e, Expr axis) { return ir::UsesVar(e, axis); }

  bool HasAxesOutsideLoads(Expr e) const {
    if (e.Is(ExprKind::kLoad)) return false;
    if (e.Is(ExprKind::kVar)) {
      const auto& axes = operation_.axes;
      const auto& reduced = operation_.bodies[0].axes;
      return std::find(axes.begin(), axes.end(), e) != axes.end() ||
             std::find(reduced.begin(), reduced.end(), e) != reduced.end();
    }
    return std::any_of(e.operands().begin(), e.operands().end(),
                       [&](Expr operand) { return HasAxesOutsideLoads(operand); });
  }

  std::optional<Place> PlaceOf(Expr index, Expr axis) const {
    const arith::LinearForm form = arith::Decompose(index);
    Place place = {.stride = form.CoefficientOf(axis)};
    if (place.stride < 1 || form.constant() < 0) return std::nullopt;
    arith::VarRanges ranges;
    for (const ReduceAxis& r : operation_.bodies[0].axes) {
      ranges[r] = {r.min, r.min + r.extent - 1};
    }
    std::vector<arith::LinearForm::Term> terms;
    for (const arith::LinearForm::Term& term : form.terms()) {
      if (term.atom == axis) continue;
      if (!ranges.contains(term.atom)) return std::nullopt;
      terms.push_back(term);
    }
    place.offset = arith::SumExpr(index.context(), index.type(), terms, form.constant());
    const arith::ConstRange range = arith::RangeOf(place.offset, ranges);
    if (range.IsEmpty() || !range.IsBounded() || range.min < 0) return std::nullopt;
    place.most = range.max;
    return place;
  }

  const Operation& operation_;
  const size_t rank_;
};

// The tensors that take the place of one reduction.
class Flattener {
 public:
  // `channels` of a core. `shifts`: whether there is an image for each of them. `columns` of a block.
  Flattener(Graph& graph, const Operation& operation, const Windows& windows, const Tensor& image,
            int64_t channels, bool shifts, int64_t of_block, bool one_row)
      : g_(graph),
        operation_(operation),
        windows_(windows),
        image_(image),
        own_lead_(operation.shape.size() - 3),
        channels_(operation.shape.back()),
        of_block_(of_block),
        step_(windows.places[0].stride),
        row_phases_(one_row ? 1 : step_),
        lead_(own_lead_ + (has_blocks() ? 1 : 0)) {
    const auto [rows, columns] = windows_.places;
    const int64_t alignment = kOnChipAlignment / ir::ByteSize(operation.outputs[0]->type);
    shifts_ = shifts ? alignment / std::gcd(alignment, channels) : 1;
    run_ = std::lcm(isa::kVectorGroup / std::gcd(isa::kVectorGroup, channels), shifts_);
    columns_ = RoundUp(of_block_, run_);
    // Wide enough that no place of a row of results lies in the next row of the image; from row to row of results are
    // whole runs.
    const int64_t rows_between = step_ / row_phases_;
    width_ = RoundUp(columns_ + columns.most / columns.stride + 2 * (shifts_ - 1),
                     run_ / std::gcd(run_, rows_between));
    const int64_t others = (operation.shape[own_lead_] - 1) * rows_between;
    height_ = others + rows.most / row_phases_ + 1;
    last_ = others * width_ + columns_ - 1;
    most_ = rows.most / row_phases_ * width_ + columns.most / columns.stride;
  }

  // Whether it does what was asked for: as many images as shifts are fewer than the places of a window.
  bool Does(bool shifts, bool one_row) const {
    if (one_row && step_ == 1) return false;
    int64_t places = 1;
    for (const ReduceAxis& axis : operation_.bodies[0].axes) places *= axis.extent;
    return !shifts || (shifts_ > 1 && shifts_ < places);
  }

  // What an element of the operation is now.
  Expr Run(const Axes& at) {
    const Tensor sums = Sums(Widened(Runs(Apart(Padded()))));
    Axes place(at.begin(), at.begin() + static_cast<ptrdiff_t>(own_lead_));
    Expr x = at[own_lead_ + 1];
    if (has_blocks()) place.push_back(Quotient(x, of_block_)), x = x % Int(of_block_);
    const Expr group = Quotient(x, shifts_);
    place.push_back(at[own_lead_] * Int(step_ / row_phases_ * width_ / run_) +
                    Quotient(group, run_ / shifts_));
    place.push_back(Remainder(group, run_ / shifts_));
    place.push_back(Remainder(x, shifts_));
    place.push_back(at.back());
    return sums(place);
  }

 private:
  Expr Int(int64_t value) const { return g_.context().Int(g_.index_type(), value); }
  Expr Quotient(Expr e, int64_t by) const { return by == 1 ? e : e / Int(by); }
  Expr Remainder(Expr e, int64_t by) const { return by == 1 ? Int(0) : e % Int(by); }
  Axes Lead(const Axes& at) const {
    return Axes(at.begin(), at.begin() + static_cast<ptrdiff_t>(lead_));
  }
  Shape LeadShape() const {
    Shape shape(operation_.shape.begin(),
                operation_.shape.begin() + static_cast<ptrdiff_t>(own_lead_));
    if (has_blocks()) shape.push_back(operation_.shape[own_lead_ + 1] / of_block_);
    return shape;
  }
  bool has_blocks() const { return of_block_ < operation_.shape[own_lead_ + 1]; }
  bool has_phases() const { return row_phases_ * windows_.places[1].stride > 1; }
  std::string Name(std::string_view part) const { return StrCat(operation_.name, ".", part); }

  // The image with as many rows and columns as are read; zeros, or its own margin, where it has none.
  Tensor Padded() const {
    const int64_t rows = height_ * row_phases_;
    const int64_t columns = width_ * windows_.places[1].stride;
    const int64_t step = of_block_ * windows_.places[1].stride;  // from block to block
    const int64_t own_rows = image_.shape()[own_lead_], own_columns = image_.shape()[own_lead_ + 1];
    const Operation& image = *image_.operation();
    const Expr value = image.kind == Operation::Kind::kCompute && !image.bodies[0].reducer
                           ? image.bodies[0].value
                           : Expr();
    const bool pads = value && value.Is(ExprKind::kSelect) &&
                      value.operand(1).Is(ExprKind::kLoad) && value.operand(2).IsConst();
    const int64_t last_block = has_blocks() ? LeadShape().back() - 1 : 0;
    const bool is_wider = last_block * step + columns > own_columns;
    if (rows <= own_rows && !is_wider && !pads && !has_blocks()) return image_;
    Shape shape = LeadShape();
    for (const int64_t extent : {rows, columns, channels_}) shape.push_back(extent);
    return g_.Compute(Name("padded"), shape, [&](const Axes& at) -> Expr {
      // The place in the image.
      Axes from(at.begin(), at.begin() + static_cast<ptrdiff_t>(own_lead_));
      from.insert(from.end(), at.begin() + static_cast<ptrdiff_t>(lead_), at.end());
      Expr& column = from[own_lead_ + 1];
      if (has_blocks()) column = at[own_lead_] * Int(step) + column;
      ir::VarMap by;
      if (pads) {
        for (size_t d = 0; d < from.size(); ++d) by[image.axes[d]] = from[d];
      }
      Expr condition = pads ? ir::Substitute(value.operand(0), by) : Expr();
      const auto require = [&](Expr e) { condition = condition ? ir::And(condition, e) : e; };
      if (rows > own_rows) require(from[own_lead_] < Int(own_rows));
      if (is_wider) require(column < Int(own_columns));
      if (!condition) return image_(from);
      if (!pads) return Select(condition, image_(from), 0.0);
      return g_.context().Select(condition, ir::Substitute(value.operand(1), by), value.operand(2));
    });
  }

  // The largest part of the reduced value that has no load but the windows', computed once for each pixel.
  Tensor Widened(const Tensor& image) {
    window_ = windows_.load;
    const auto find = [&](const auto& self, Expr e) -> void {
      if (e.Is(ExprKind::kLoad) || e.operands().empty()) return;
      bool reads = false, reads_others = false;
      ir::ForEachExpr(e, [&](Expr part) {
        if (part.Is(ExprKind::kLoad)) (part == windows_.load ? reads : reads_others) = true;
      });
      if (reads && !reads_others) {
        window_ = e;
        return;
      }
      for (const Expr operand : e.operands()) self(self, operand);
    };
    find(find, operation_.bodies[0].value);
    if (window_ == windows_.load) return image;
    return g_.Compute(Name("wide"), image.shape(), [&](const Axes& at) {
      return ir::Replace(window_, absl::flat_hash_map<Expr, Expr>{{windows_.load, image(at)}});
    });
  }

  // Rows and columns by their remainders, if windows are more than one of them apart: [.., y % a, x % b, y / a, ..].
  Tensor Apart(const Tensor& padded) const {
    const int64_t a = row_phases_, b = windows_.places[1].stride;
    if (!has_phases()) return padded;
    Shape shape = LeadShape();
    for (const int64_t extent : {a, b, height_, width_, channels_}) shape.push_back(extent);
    return g_.Compute(Name("apart"), shape, [&](const Axes& at) {
      Axes place = Lead(at);
      place.push_back(at[lead_ + 2] * Int(a) + at[lead_]);
      place.push_back(at[lead_ + 3] * Int(b) + at[lead_ + 1]);
      place.push_back(at.back());
      return padded(place);
    });
  }

  // Runs of pixels, one for each shift: [.., shift, y % a, x % b, pixel / shifts, pixel % shifts, channel].
  Tensor Runs(const Tensor& image) const {
    Shape shape = LeadShape();
    for (const int64_t extent : {shifts_, row_phases_, windows_.places[1].stride,
                                 (last_ + most_) / shifts_ + 1, shifts_, channels_}) {
      shape.push_back(extent);
    }
    return g_.Compute(Name("runs"), shape, [&](const Axes& at) {
      const Axes own(at.begin() + static_cast<ptrdiff_t>(lead_), at.end());
      const Expr pixel = shifts_ == 1 ? own[3] : own[3] * Int(shifts_) + own[4] + own[0];
      Axes place = Lead(at);
      if (has_phases()) place.push_back(own[1]), place.push_back(own[2]);
      place.push_back(Quotient(pixel, width_));
      place.push_back(Remainder(pixel, width_));
      place.push_back(at.back());
      return image(place);
    });
  }

  // The reduction over the runs: [.., run, shifts of a run, pixels of a shift, channel].
  Tensor Sums(const Tensor& runs) {
    const auto [rows, columns] = windows_.places;
    const Body& body = operation_.bodies[0];
    Expr offset =
        Quotient(rows.offset, row_phases_) * Int(width_) + Quotient(columns.offset, columns.stride);
    Shape shape = LeadShape();
    shape.push_back(last_ / run_ + 1);
    shape.push_back(run_ / shifts_);
    shape.push_back(shifts_);
    shape.push_back(channels_);
    const Expr others = OnceComputed(body.value);
    return g_.Compute(Name("sums"), shape, [&](const Axes& at) {
      Axes place = Lead(at);
      place.push_back(Remainder(offset, shifts_));
      place.push_back(Remainder(rows.offset, row_phases_));
      place.push_back(Remainder(columns.offset, columns.stride));
      const Expr block =
          run_ == shifts_ ? at[lead_] : at[lead_] * Int(run_ / shifts_) + at[lead_ + 1];
      place.push_back(block + Quotient(offset, shifts_));
      place.push_back(at[lead_ + 2]);
      place.push_back(at.back());
      ir::VarMap by;
      for (size_t d = 0; d < own_lead_; ++d) by[operation_.axes[d]] = at[d];
      by[operation_.axes.back()] = at.back();
      const Expr value =
          ir::Replace(others, absl::flat_hash_map<Expr, Expr>{{window_, runs(place)}});
      return Body(*body.reducer, ir::Substitute(value, by), body.axes);
    });
  }

  // `e` with its largest parts that have no pixel read from computes of their own: they are the same for all pixels.
  Expr OnceComputed(Expr e) {
    if (e.Is(ExprKind::kLoad) || e.operands().empty() || e == window_) return e;
    bool reads = false, has_pixel = false;
    ir::ForEachExpr(e, [&](Expr part) {
      reads = reads || part.Is(ExprKind::kLoad);
      has_pixel = has_pixel || part == windows_.load;
    });
    if (!reads) return e;
    if (has_pixel) {
      std::vector<Expr> operands;
      for (const Expr operand : e.operands()) operands.push_back(OnceComputed(operand));
      return g_.context().Rebuild(e, operands);
    }
    Axes axes;    // that `e` uses
    Axes places;  // where the sums read the compute
    Shape shape;
    std::vector<int64_t> from;
    const auto take = [&](Expr axis, int64_t min, int64_t extent) {
      if (!ir::UsesVar(e, axis)) return;
      axes.push_back(axis), shape.push_back(extent), from.push_back(min);
      places.push_back(min == 0 ? axis : axis - Int(min));
    };
    for (size_t d = 0; d < own_lead_; ++d) take(operation_.axes[d], 0, operation_.shape[d]);
    for (const ReduceAxis& r : operation_.bodies[0].axes) take(r, r.min, r.extent);
    take(operation_.axes.back(), 0, channels_);
    if (axes.empty()) return e;
    const Tensor once = g_.Compute(Name(StrCat("once", once_++)), shape, [&](const Axes& at) {
      ir::VarMap by;
      for (size_t d = 0; d < at.size(); ++d) {
        by[axes[d]] = from[d] == 0 ? at[d] : at[d] + Int(from[d]);
      }
      return ir::Substitute(e, by);
    });
    return once(places);
  }

  Graph& g_;
  const Operation& operation_;
  const Windows& windows_;
  const Tensor image_;
  const size_t own_lead_;  // dimensions before the rows, of the operation
  const int64_t channels_;
  const int64_t of_block_;    // columns of results
  const int64_t step_;        // of the image's rows from row to row of results
  const int64_t row_phases_;  // parts that Apart makes of them
  const size_t lead_;   // the same of the new tensors, which have blocks of columns before the rows
  int64_t shifts_ = 1;  // pixels that begin where vector instructions may are so far apart
  int64_t run_ = 1;     // pixels of whole groups of the vector unit, a multiple of that
  int64_t columns_ = 0;             // of results, whole runs
  int64_t width_ = 0, height_ = 0;  // of the image, or of a part of it that Apart makes
  int64_t last_ = 0;                // pixel of the results
  int64_t most_ = 0;                // offset of a place in the window, in pixels
  Expr window_;                     // what is reduced of the image
  int once_ = 0;
};

}  // namespace

std::optional<Tensor> FlattenWindows(const Tensor& output, int64_t channels, bool shifts,
                                     int64_t columns, bool one_row) {
  const GraphState& whole = *output.graph();
  const std::shared_ptr<GraphState> state = whole.Empty();
  Graph g(state);
  OwnOperations own;
  bool has_any = false;
  for (const Operation& operation : whole.operations) {
    std::vector<Body> bodies = operation.bodies;
    if (const std::optional<Windows> windows = Matcher(operation).Run()) {
      const auto& [image, index] = whole.producers.at(ir::Buffer(windows->load.buffer()));
      if (operation.shape[operation.shape.size() - 2] % columns != 0) return std::nullopt;
      Flattener flattener(g, operation, *windows, Tensor(state, own.at(image), index), channels,
                          shifts, columns, one_row);
      if (flattener.Does(shifts, one_row)) {
        bodies = {Body(flattener.Run(operation.axes))};
        has_any = true;
      }
    }
    CopyTo(*state, operation, own).bodies = std::move(bodies);
  }
  if (!has_any) return std::nullopt;
  return Tensor(state, own.at(output.operation()));
}

}  // namespace polynao::te
