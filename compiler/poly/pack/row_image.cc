#include "compiler/poly/pack/row_image.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "compiler/ir/affine.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::Var;

namespace {

bool UsesAny(Expr e, const std::vector<Var>& vars) {
  return std::any_of(vars.begin(), vars.end(), [&](Var v) { return ir::UsesVar(e, v); });
}

// The loads that depend on the variables, if they are all the same one.
std::optional<Expr> OnlyLoad(Expr e, const std::vector<Var>& vars) {
  std::optional<Expr> only;
  bool is_one = true;
  ir::ForEachExpr(e, [&](Expr load) {
    if (!load.Is(ExprKind::kLoad) || !UsesAny(load, vars)) return;
    is_one = is_one && (!only || *only == load);
    only = load;
  });
  return is_one ? only : std::nullopt;
}

}  // namespace

// Adds what an index has of the loops. False if it is not linear in them, has loops of another index, or leaves holes.
bool RowImage::AddDimension(Expr index) {
  const std::optional<ir::Affine> affine = ir::Linearize(index, vars_);
  if (!affine) return false;
  Dimension d{.steps = std::vector<int64_t>(vars_.size(), 0)};
  int64_t divisor = 0;
  for (size_t v = 0; v < vars_.size(); ++v) {
    const Expr coefficient = affine->coefficients[v];
    if (!coefficient) continue;
    if (!IsConstant(coefficient) || coefficient.int_value() < 0) return false;
    d.steps[v] = coefficient.int_value();
    divisor = std::gcd(divisor, d.steps[v]);
  }
  if (divisor == 0) return true;
  std::vector<size_t> order;
  for (size_t v = 0; v < vars_.size(); ++v) {
    d.steps[v] /= divisor;
    if (d.steps[v] == 0) continue;
    for (const Dimension& other : dimensions_) {
      if (other.steps[v] != 0) return false;
    }
    order.push_back(v);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return d.steps[a] < d.steps[b]; });
  for (const size_t v : order) {
    if (d.steps[v] > d.extent) return false;
    d.extent += d.steps[v] * (loops_[v].count.int_value() - 1);
  }
  d.carrier = order[0];
  d.room = d.extent;
  dimensions_.push_back(std::move(d));
  return true;
}

// Whether the loops change `e` only through the indices: then it has one value for each element of the image.
bool RowImage::DependsOnIndices(Expr e) const {
  if (!UsesAny(e, vars_)) return true;
  const std::optional<ir::Affine> affine =
      ir::IsIndexable(e.type()) ? ir::Linearize(e, vars_) : std::nullopt;
  if (!affine) {
    return !e.operands().empty() &&
           std::all_of(e.operands().begin(), e.operands().end(),
                       [&](Expr operand) { return DependsOnIndices(operand); });
  }
  std::vector<int64_t> left(vars_.size(), 0);
  for (size_t v = 0; v < vars_.size(); ++v) {
    const Expr coefficient = affine->coefficients[v];
    if (!coefficient) continue;
    if (!IsConstant(coefficient)) return false;
    left[v] = coefficient.int_value();
  }
  for (const Dimension& d : dimensions_) {
    const int64_t factor = left[d.carrier];
    for (size_t v = 0; v < vars_.size(); ++v) left[v] -= factor * d.steps[v];
  }
  return std::all_of(left.begin(), left.end(), [](int64_t x) { return x == 0; });
}

std::optional<RowImage> RowImage::Of(const Contraction& contraction, const std::vector<Range>& rows,
                                     const std::vector<Range>& outer_sums, const Range& sum) {
  RowImage image;
  image.statement_ = contraction.statement;
  image.operand_ = contraction.row_operand;
  for (const std::vector<Range>* loops : {&rows, &outer_sums})
    image.loops_.insert(image.loops_.end(), loops->begin(), loops->end());
  image.loops_.push_back(sum);
  for (const Range& loop : image.loops_) {
    if (!IsConstant(loop.count)) return std::nullopt;
    image.vars_.push_back(loop.var);
  }
  if (rows.empty() || contraction.is_lanewise) return std::nullopt;
  image.last_row_ = rows.size() - 1;
  const std::optional<Expr> load = OnlyLoad(image.operand_, image.vars_);
  if (!load) return std::nullopt;
  for (const Expr index : load->operands()) {
    if (!image.AddDimension(index)) return std::nullopt;
  }
  if (image.dimensions_.size() < 2 || !image.DependsOnIndices(image.operand_)) return std::nullopt;
  // Rows are broadcast one by one: their neighbours in memory have to be sums.
  const size_t last = image.loops_.size() - 1;
  const Dimension& along = image.dimensions_.back();
  const std::optional<ir::Affine> index =
      ir::Linearize(load->operand(load->operands().size() - 1), image.vars_);
  const bool is_alone =
      std::count(along.steps.begin(), along.steps.end(), 0) == static_cast<std::ptrdiff_t>(last);
  if (along.carrier != last || !is_alone || !index || !index->coefficients[last] ||
      !index->coefficients[last].IsInt(1)) {
    return std::nullopt;
  }
  image.pitch_ = along.extent;
  const Dimension& before = image.dimensions_[image.dimensions_.size() - 2];
  image.joins_sums_ = !outer_sums.empty() && before.steps[last - 1] == 1;
  image.is_plain_ = image.operand_ == *load;
  int64_t size = 1;
  for (size_t d = load->operands().size(); d-- > 0;) {
    const std::optional<ir::Affine> a = ir::Linearize(load->operand(d), image.vars_);
    const Expr step = a->coefficients[image.last_row_];
    if (step) image.memory_step_ += step.int_value() * size;
    const Expr extent = Buffer(load->buffer())->extents[d];
    if (d == 0) break;
    if (!IsConstant(extent)) {
      image.is_plain_ = false;
      break;
    }
    size *= extent.int_value();
  }
  if (image.RowStep() == 0) return std::nullopt;
  return image;
}

double RowImage::Elements() const {
  double elements = 1;
  for (const Dimension& d : dimensions_) elements *= static_cast<double>(d.extent);
  return elements;
}

// Of the last loop of rows, among what is before the last dimension; 0 if it is elsewhere.
int64_t RowImage::RowStep() const { return dimensions_[dimensions_.size() - 2].steps[last_row_]; }

void RowImage::Extend(int64_t count, int64_t pad) {
  for (Dimension& d : dimensions_)
    d.room += d.steps[last_row_] * (count - loops_[last_row_].count.int_value());
  pitch_ += pad;
  if (pad > 0) joins_sums_ = false;
}

Buffer RowImage::NewBuffer(ir::Type type) const {
  ir::Context& c = operand_.context();
  std::vector<Expr> extents;
  const size_t n = dimensions_.size();
  for (size_t d = 0; d + 2 < n; ++d) extents.push_back(c.I64(dimensions_[d].room));
  extents.push_back(c.I64(dimensions_[n - 2].room * pitch_));
  return c.NewBuffer("row.image", type, extents);
}

std::vector<Expr> RowImage::Flat(std::vector<Expr> place) const {
  const Expr last = place.back();
  place.pop_back();
  place.back() = Plus(Times(place.back(), last.context().I64(pitch_)), last);
  return place;
}

Stmt RowImage::FillFrom(size_t d, Buffer image, ForKind kind, const Values& at,
                        std::vector<Expr>& place, bool is_zero) const {
  ir::Context& c = operand_.context();
  const Dimension& own = dimensions_[d];
  const auto over = [&](int64_t first, int64_t count, ForKind loop, bool zero,
                        const std::function<Stmt(const Values&)>& body) {
    if (count == 0) return c.Seq({});
    const Range& carrier = loops_[own.carrier];
    return LoopOver(c, carrier.var.name(), c.I64(count), loop, [&](Expr i) {
      Values here = at;
      if (!zero) here[carrier.var] = Plus(carrier.first, i);
      place.push_back(Plus(i, first));
      const Stmt code = body(here);
      place.pop_back();
      return code;
    });
  };
  if (d + 1 < dimensions_.size()) {
    const auto part = [&](int64_t first, int64_t count, bool zero) {
      const ForKind loop = d == 0 && !zero ? kind : ForKind::kSerial;
      return over(first, count, loop, zero, [&](const Values& here) {
        return FillFrom(d + 1, image, kind, here, place, zero);
      });
    };
    if (is_zero) return part(0, own.room, true);
    return c.Seq({part(0, own.extent, false), part(own.extent, own.room - own.extent, true)});
  }
  const auto elements = [&](Expr operand, bool zero) {
    return over(0, own.extent, ForKind::kVectorize, zero, [&](const Values& here) {
      const Expr value = zero ? c.Const(image->type, 0) : ValueAt(*statement_, operand, here);
      return c.Store(image, Flat(place), value);
    });
  };
  if (is_zero) return elements(operand_, true);
  // Padding: whether a row of memory is inside of the operand is asked once.
  if (!operand_.Is(ExprKind::kSelect) || ir::UsesVar(operand_.operand(0), vars_.back()))
    return elements(operand_, false);
  return c.If(ValueAt(*statement_, operand_.operand(0), at), elements(operand_.operand(1), false),
              elements(operand_.operand(2), false));
}

Stmt RowImage::Fill(Buffer image, ForKind kind, const Values& outer) const {
  // A carrier stands for all loops of its index: the others are at their first iteration.
  Values at = outer;
  for (const Range& loop : loops_) at[loop.var] = loop.first;
  std::vector<Expr> place;
  return FillFrom(0, image, kind, at, place, false);
}

Expr RowImage::At(Buffer image, const Values& at) const {
  std::vector<Expr> place;
  for (const Dimension& d : dimensions_) {
    Expr index = operand_.context().I64(0);
    for (size_t v = 0; v < vars_.size(); ++v) {
      if (d.steps[v] == 0) continue;
      const Expr number = Minus(at.at(vars_[v]), loops_[v].first);
      index = Plus(index, Times(number, operand_.context().I64(d.steps[v])));
    }
    place.push_back(index);
  }
  return operand_.context().Load(image, Flat(place));
}

}  // namespace polynao::poly
