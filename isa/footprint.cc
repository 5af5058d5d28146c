#include "isa/footprint.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "base/status.h"
#include "compiler/ir/affine.h"
#include "compiler/ir/flat_index.h"
#include "compiler/ir/visit.h"

namespace polynao::isa {
namespace {

using ir::Affine;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// A (count, stride) of a strided set; strides are positive here.
using Dim = std::pair<int64_t, int64_t>;

// Joins two dimensions whose positions together are evenly spaced, and a dimension with the run whose copies
// leave no gap.
void MergeDims(std::vector<Dim>& dims, int64_t& run) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = dims.size(); i-- > 0;) {
      if (dims[i].second > run) continue;
      run += (dims[i].first - 1) * dims[i].second;
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(i));
      changed = true;
    }
    for (size_t i = 0; i < dims.size() && !changed; ++i) {
      for (size_t j = 0; j < dims.size() && !changed; ++j) {
        const auto [fine_count, fine] = dims[i];
        const auto [count, stride] = dims[j];
        // { a*stride + b*fine } with stride = q * fine has no gap if q <= fine_count.
        if (i == j || stride < fine || stride % fine != 0 || stride / fine > fine_count) continue;
        dims[std::min(i, j)] = {stride / fine * (count - 1) + fine_count, fine};
        dims.erase(dims.begin() + static_cast<ptrdiff_t>(std::max(i, j)));
        changed = true;
      }
    }
  }
}

}  // namespace

class FootprintPlan::Builder {
 public:
  Builder(const Instruction& instruction, const IntExpression::Resolver& resolver)
      : instruction_(instruction), resolver_(resolver) {}

  absl::StatusOr<FootprintPlan> Build() {
    RETURN_IF_ERROR(Visit(instruction_.meaning.body));
    for (size_t w = 0; w < instruction_.operands.size(); ++w) {
      for (size_t o = 0; o < instruction_.operands.size(); ++o) {
        if (w != o && SameIndex(static_cast<int>(w), static_cast<int>(o))) {
          result_.coincident_.push_back({static_cast<int>(w), static_cast<int>(o)});
        }
      }
    }
    return std::move(result_);
  }

 private:
  // Whether all accesses of both operands have the same index and element size, and the meaning has one
  // store. The meaning then reads each element before it overwrites it.
  bool SameIndex(int written, int other) const {
    if (store_count_ != 1) return false;
    Expr common;
    const ir::BufferNode* first = nullptr;
    for (const auto& [operand, buffer, index] : indices_) {
      if (operand != written && operand != other) continue;
      if (first == nullptr) {
        first = buffer;
        common = index;
      }
      if (index != common || ByteSize(buffer->type) != ByteSize(first->type)) return false;
    }
    return first != nullptr;
  }

  absl::StatusOr<IntExpression> Compile(Expr e) {
    if (!e) e = instruction_.meaning.context->I64(0);
    return IntExpression::Compile(e, resolver_);
  }

  absl::Status VisitExpr(Expr e) {
    // Not memoised: one load may be part of several statements, which stand in different loops.
    for (Expr operand : e.operands()) RETURN_IF_ERROR(VisitExpr(operand));
    if (e.Is(ExprKind::kLoad)) return AddAccess(e.buffer(), e.operands(), false);
    return absl::OkStatus();
  }

  absl::Status Visit(Stmt s) {
    if (s.Is(StmtKind::kLet)) {
      RETURN_IF_ERROR(VisitExpr(s.value()));
      return Visit(ir::Substitute(s.body(), {{s.var(), s.value()}}));
    }
    const size_t first_load = result_.accesses_.size();
    for (Expr operand : s.operands()) RETURN_IF_ERROR(VisitExpr(operand));
    const size_t last_load = result_.accesses_.size();
    if (s.Is(StmtKind::kStore)) {
      ++store_count_;
      RETURN_IF_ERROR(AddAccess(s.buffer().node(), s.indices(), true));
      for (size_t load = first_load; load < last_load; ++load) {
        result_.dependences_.push_back({.store = static_cast<int>(last_load),
                                        .load = static_cast<int>(load),
                                        .is_copy = s.value().Is(ExprKind::kLoad)});
      }
    } else if (last_load != first_load) {
      result_.has_flows_ = false;  // Loaded values decide what is executed.
    }
    if (s.Is(StmtKind::kFor)) {
      // If bounds depend on outer loops, the set of iterations is no box; see AddAccess.
      const bool is_box =
          Linearize(s.min(), vars_) && IsLoopFree(s.min()) && IsLoopFree(s.extent());
      int loop = -1;
      if (is_box) {
        loop = static_cast<int>(result_.loops_.size());
        ASSIGN_OR_RETURN(IntExpression min, Compile(s.min()));
        ASSIGN_OR_RETURN(IntExpression extent, Compile(s.extent()));
        result_.loops_.push_back({std::move(min), std::move(extent)});
      }
      vars_.push_back(s.var());
      loops_.push_back(loop);
      if (vars_.size() > kMaxDepth) return InvalidInput("more than ", kMaxDepth, " nested loops");
      RETURN_IF_ERROR(Visit(s.body()));
      vars_.pop_back();
      loops_.pop_back();
      return absl::OkStatus();
    }
    for (Stmt child : s.children()) RETURN_IF_ERROR(Visit(child));
    return absl::OkStatus();
  }

  bool IsLoopFree(Expr e) const {
    const std::optional<Affine> affine = Linearize(e, vars_);
    if (!affine) return false;
    return std::none_of(affine->coefficients.begin(), affine->coefficients.end(),
                        [](Expr c) { return static_cast<bool>(c); });
  }

  absl::Status AddAccess(const ir::BufferNode* buffer, absl::Span<const Expr> indices,
                         bool is_write) {
    const auto operand = std::find_if(
        instruction_.operands.begin(), instruction_.operands.end(),
        [&](auto& o) { return instruction_.meaning.params[o.param].buffer.node() == buffer; });
    // Registers, pc, arguments and the meaning's own allocations are no memory of the machine.
    if (operand == instruction_.operands.end() || operand->kind != OperandKind::kAddress) {
      result_.has_flows_ = false;
      return absl::OkStatus();
    }
    const int index = static_cast<int>(operand - instruction_.operands.begin());
    const Expr flat = FlatIndex(buffer, indices);
    indices_.push_back({index, buffer, flat});
    const ir::Param& param = instruction_.meaning.params[operand->param];
    if (!is_write && param.access == ir::Access::kOut) return absl::OkStatus();

    Access access{.operand = index,
                  .space = operand->space,
                  .is_write = is_write,
                  .element_bytes = ByteSize(buffer->type),
                  .constant = {},
                  .loops = {},
                  .coefficients = {}};
    std::optional<Affine> affine = Linearize(flat, vars_);
    if (std::find(loops_.begin(), loops_.end(), -1) != loops_.end()) affine.reset();
    if (!affine) {
      result_.has_flows_ = false;
      // The position is unknown: one more loop takes the whole declared extent of the buffer.
      Expr size = instruction_.meaning.context->I64(1);
      for (Expr extent : buffer->extents) size = size * size.context().Cast(ir::Type::kI64, extent);
      access.loops.push_back(static_cast<int>(result_.loops_.size()));
      ASSIGN_OR_RETURN(IntExpression zero, Compile(Expr()));
      ASSIGN_OR_RETURN(IntExpression extent, Compile(size));
      result_.loops_.push_back({zero, std::move(extent)});
      ASSIGN_OR_RETURN(IntExpression one, Compile(size.context().I64(1)));
      access.constant = std::move(zero);
      access.coefficients.push_back(std::move(one));
    } else {
      ASSIGN_OR_RETURN(access.constant, Compile(affine->constant));
      for (size_t k = 0; k < vars_.size(); ++k) {
        access.loops.push_back(loops_[k]);
        ASSIGN_OR_RETURN(IntExpression coefficient, Compile(affine->coefficients[k]));
        access.coefficients.push_back(std::move(coefficient));
      }
    }
    result_.accesses_.push_back(std::move(access));
    return absl::OkStatus();
  }

  const Instruction& instruction_;
  const IntExpression::Resolver& resolver_;
  FootprintPlan result_;
  std::vector<ir::Var> vars_;
  std::vector<int> loops_;  // of vars_; -1: not a box
  std::vector<std::tuple<int, const ir::BufferNode*, Expr>> indices_;
  int store_count_ = 0;
};

absl::StatusOr<FootprintPlan> FootprintPlan::Create(const Instruction& instruction,
                                                    const IntExpression::Resolver& resolver) {
  return Builder(instruction, resolver).Build();
}

// Evaluates the loops of one access. Sums are exact, whatever registers hold: a range that wrapped
// around would pass for one inside its memory.
bool FootprintPlan::Evaluate(const Access& access, const IntInputs& inputs, Extent* extent) const {
  int64_t constant = 0;
  if (!access.constant.Evaluate(inputs, &constant)) return false;
  Wide first = constant;
  Wide length = 1;
  bool is_far = false;
  extent->depth = 0;
  for (size_t k = 0; k < access.loops.size(); ++k) {
    const Loop& loop = loops_[access.loops[k]];
    int64_t min = 0, count = 0, stride = 0;
    if (!loop.min.Evaluate(inputs, &min) || !loop.extent.Evaluate(inputs, &count) ||
        !access.coefficients[k].Evaluate(inputs, &stride) || count <= 0) {
      return false;
    }
    // A product beyond any address stays beyond all addresses, whatever is added to it.
    const auto product = [&](int64_t a, int64_t b) -> Wide {
      const Wide result = Wide{a} * b;
      is_far |= result > kFar || result < -kFar;
      return is_far ? 0 : result;
    };
    first += product(min, stride);
    if (count == 1 || stride == 0) continue;
    const Wide distance = product(count - 1, stride);
    if (stride < 0) first += distance;
    length += distance < 0 ? -distance : distance;
    extent->dims[extent->depth++] = {count, stride};
  }
  const Wide begin = inputs.operands[access.operand] + first * access.element_bytes;
  const Wide end = begin + length * access.element_bytes;
  extent->fits = !is_far && begin >= -kFar && end <= kFar;
  extent->begin = extent->fits ? static_cast<int64_t>(begin) : 0;
  extent->end = extent->fits ? static_cast<int64_t>(end) : kFar;
  return true;
}

void FootprintPlan::Append(const IntInputs& inputs, std::vector<ByteRanges>* ranges) const {
  const size_t start = ranges->size();
  for (const Access& access : accesses_) {
    Extent extent;
    if (!Evaluate(access, inputs, &extent)) continue;
    ByteRanges range{.space = access.space,
                     .is_write = access.is_write,
                     .operand = access.operand,
                     .begin = extent.begin,
                     .run = extent.fits ? access.element_bytes : extent.end,
                     .dims = {}};
    if (extent.fits) {
      for (int d = 0; d < extent.depth; ++d) {
        const auto [count, stride] = extent.dims[d];
        range.dims.push_back({count, std::abs(stride) * access.element_bytes});
      }
      MergeDims(range.dims, range.run);
    }
    const bool known = std::any_of(
        ranges->begin() + static_cast<ptrdiff_t>(start), ranges->end(), [&](const ByteRanges& r) {
          return r.operand == range.operand && r.is_write == range.is_write &&
                 r.begin == range.begin && r.run == range.run && r.dims == range.dims;
        });
    if (!known) ranges->push_back(std::move(range));
  }
}

std::optional<std::vector<Flow>> FootprintPlan::Flows(const IntInputs& inputs) const {
  if (!has_flows_) return std::nullopt;
  std::vector<Flow> flows;
  for (const Dependence& dependence : dependences_) {
    const Access& load = accesses_[dependence.load];
    const Access& store = accesses_[dependence.store];
    Flow flow{.read_space = load.space,
              .write_space = store.space,
              .read_begin = 0,
              .read_bytes = load.element_bytes,
              .write_begin = 0,
              .write_bytes = store.element_bytes,
              .is_copy = dependence.is_copy,
              .loops = {}};
    int64_t read = 0, write = 0;  // in elements
    if (!load.constant.Evaluate(inputs, &read) || !store.constant.Evaluate(inputs, &write)) {
      continue;
    }
    bool runs = true;
    for (size_t k = 0; k < load.loops.size() && runs; ++k) {
      const Loop& loop = loops_[load.loops[k]];
      int64_t min = 0, count = 0, read_stride = 0, write_stride = 0;
      runs = loop.min.Evaluate(inputs, &min) && loop.extent.Evaluate(inputs, &count) &&
             load.coefficients[k].Evaluate(inputs, &read_stride) &&
             store.coefficients[k].Evaluate(inputs, &write_stride) && count > 0;
      if (!runs) break;
      read += min * read_stride;
      write += min * write_stride;
      flow.loops.push_back(
          {count, read_stride * load.element_bytes, write_stride * store.element_bytes});
    }
    if (!runs) continue;
    flow.read_begin = inputs.operands[load.operand] + read * load.element_bytes;
    flow.write_begin = inputs.operands[store.operand] + write * store.element_bytes;
    flows.push_back(std::move(flow));
  }
  return flows;
}

std::pair<int64_t, int64_t> FootprintPlan::Bounds(int operand, const IntInputs& inputs) const {
  std::pair<int64_t, int64_t> bounds = {0, 0};
  for (const Access& access : accesses_) {
    Extent extent;
    if (access.operand != operand || !Evaluate(access, inputs, &extent)) continue;
    const bool is_first = bounds.first == bounds.second;
    bounds = {is_first ? extent.begin : std::min(bounds.first, extent.begin),
              is_first ? extent.end : std::max(bounds.second, extent.end)};
  }
  return bounds;
}

bool FootprintPlan::MayCoincide(int written, int other) const {
  return std::find(coincident_.begin(), coincident_.end(), std::pair(written, other)) !=
         coincident_.end();
}

int64_t ByteRanges::byte_count() const {
  int64_t count = run;
  for (const auto& dim : dims) count *= dim.first;
  return count;
}

int64_t ByteRanges::end() const {
  if (byte_count() <= 0) return begin;
  int64_t last = begin + run;
  for (const auto& [count, stride] : dims) last += (count - 1) * stride;
  return last;
}

}  // namespace polynao::isa
