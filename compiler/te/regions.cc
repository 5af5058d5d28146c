#include "compiler/te/regions.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/visit.h"

namespace polynao::te {
namespace {

using arith::IntervalOf;
using arith::RangeOf;
using ir::Buffer;
using ir::ExprKind;

class Regions {
 public:
  explicit Regions(Plans& plans)
      : plans_(plans),
        graph_(plans.graph),
        context_(plans.context),
        index_type_(plans.index_type),
        ranges_(plans.ranges) {}

  absl::Status Find(StagePlan& plan) {
    const Shape& shape = plan.data().operation->shape;
    const size_t rank = shape.size();
    plan.limits.resize(rank);
    const absl::flat_hash_set<Expr> fixed = EnclosingVars(plan);
    FindStartAndSize(plan, fixed, plan.start, plan.size);
    if (plan.attach_plan != nullptr && plan.readers.size() == 1) {
      FindLimits(plan, *plan.readers[0], fixed);
    }
    plan.place.assign(rank, LinearForm());
    plan.store_size = plan.size;
    if (plan.data().store_axis != nullptr) return Slide(plan);
    FindOverhang(plan);
    return absl::OkStatus();
  }

 private:
  // Loop variables of the loops around the place where `plan` is computed; without those over the
  // threads that share its results, which are computed for all of these threads.
  absl::flat_hash_set<Expr> EnclosingVars(const StagePlan& plan) const {
    absl::flat_hash_set<Expr> vars;
    for (const StagePlan* p = &plan; p->attach_plan != nullptr; p = p->attach_plan) {
      for (size_t i = 0; i <= p->attach_leaf; ++i) {
        const AxisData* leaf = p->attach_plan->data().leaves[i];
        if (IsForAllOf(plan, leaf)) continue;
        vars.insert(p->attach_plan->leaf_vars.at(leaf));
      }
    }
    return vars;
  }

  // How many elements are computed at least, of ComputeWhole and ComputeAtLeast; 0: what is read.
  static int64_t Least(const StagePlan& plan, size_t d) {
    return plan.data().at_least.empty() ? 0 : plan.data().at_least[d];
  }

  // Per dimension an interval around all that `values` read of `plan`'s results while the loop
  // variables that are not `fixed` run; unset where no size is known.
  std::vector<std::optional<SymbolicInterval>> ReadRegion(
      const StagePlan& plan, const std::vector<Expr>& values,
      const absl::flat_hash_set<Expr>& fixed) const {
    absl::flat_hash_set<Expr> loads;
    for (Expr value : values) {
      ir::ForEachExpr(value, [&](Expr e) {
        if (!e.Is(ExprKind::kLoad)) return;
        if (graph_.producers.at(Buffer(e.buffer())).first == plan.data().operation) loads.insert(e);
      });
    }
    std::vector<Expr> ordered(loads.begin(), loads.end());
    std::sort(ordered.begin(), ordered.end(), [](Expr a, Expr b) { return a.id() < b.id(); });
    std::vector<std::optional<SymbolicInterval>> region(plan.data().operation->shape.size());
    for (size_t d = 0; d < region.size(); ++d) {
      for (size_t i = 0; i < ordered.size(); ++i) {
        const std::optional<SymbolicInterval> read =
            IntervalOf(ordered[i].operand(d), ranges_, fixed);
        if (i == 0) {
          region[d] = read;
        } else if (region[d] && read) {
          region[d] = Union(*region[d], *read, ranges_, context_, index_type_);
        } else {
          region[d] = std::nullopt;
        }
      }
    }
    return region;
  }

  // Per dimension where the part that the readers need begins, and its size, while variables that
  // are not `fixed` run.
  void FindStartAndSize(const StagePlan& plan, const absl::flat_hash_set<Expr>& fixed,
                        std::vector<LinearForm>& start, Shape& size) const {
    const Shape& shape = plan.data().operation->shape;
    start.assign(shape.size(), LinearForm());
    size = shape;
    if (plan.attach_plan == nullptr) return;
    std::vector<Expr> values;
    for (const StagePlan* reader : plan.readers) {
      values.insert(values.end(), reader->values.begin(), reader->values.end());
    }
    const std::vector<std::optional<SymbolicInterval>> region = ReadRegion(plan, values, fixed);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!region[d]) continue;
      const int64_t needed = std::max(Least(plan, d), region[d]->size);
      if (needed >= shape[d]) continue;  // the whole dimension
      start[d] = region[d]->min;
      size[d] = needed;
    }
  }

  // The iterations of the consumer's loop in which a sliding window lies.
  struct Iterations {
    const AxisData* axis = nullptr;
    Expr var;
    int64_t count = 1;
    LinearForm shift;  // of a rotated loop
    bool is_rotated = false;
    Expr tile;  // of iteration `var`

    bool Move(const LinearForm& form) const {
      return std::any_of(form.terms().begin(), form.terms().end(),
                         [&](const auto& term) { return ir::UsesVar(term.atom, var); });
    }
    // By how much `form` grows from one tile to the next.
    int64_t StepOf(const LinearForm& form) const {
      const auto it = std::find_if(form.terms().begin(), form.terms().end(),
                                   [&](const auto& term) { return term.atom == tile; });
      return it == form.terms().end() ? 0 : it->coefficient;
    }
  };

  Iterations IterationsAround(const StagePlan& plan) const {
    const StagePlan& consumer = *plan.attach_plan;
    Iterations loop;
    loop.axis = consumer.data().leaves[plan.attach_leaf];
    loop.var = consumer.leaf_vars.at(loop.axis);
    loop.count = std::max<int64_t>(1, consumer.extents.at(loop.axis));
    const auto& relations = consumer.data().relations;
    const auto rotation = std::find_if(relations.begin(), relations.end(), [&](const auto& r) {
      return r.kind == AxisRelation::Kind::kRotate && r.inner == loop.axis;
    });
    const AxisValues values = plans_.FindAxisValues(consumer, consumer.leaf_vars);
    if (rotation != relations.end() && loop.count > 1) {
      loop.shift = Decompose(values.at(rotation->outer)) * rotation->amount;
    }
    // By no iteration for sure: bounds have no remainder then.
    loop.is_rotated = RangeOf(loop.shift, ranges_).max > 0;
    if (!loop.is_rotated) loop.shift = {};
    loop.tile = loop.is_rotated ? values.at(rotation->parent) : loop.var;
    return loop;
  }

  // The dimension along which the window slides; none if all iterations read the same.
  absl::StatusOr<std::optional<size_t>> SlidingDimension(const StagePlan& plan,
                                                         const Iterations& loop) const {
    std::optional<size_t> moving;
    bool is_regular = true;
    for (size_t d = 0; d < plan.start.size(); ++d) {
      if (!loop.Move(plan.start[d])) continue;
      const int64_t step = loop.StepOf(plan.start[d]);
      is_regular = is_regular && !moving && step > 0 && step <= plan.size[d] &&
                   !loop.Move(plan.start[d] - Decompose(loop.tile) * step);
      moving = d;
    }
    if (!is_regular) {
      return InvalidInput(StoreAtPlace(plan), "what an iteration of ", loop.axis->name,
                          " reads does not move along one dimension by a constant step of at most "
                          "its size");
    }
    for (const std::vector<StagePlan*>& attached : plan.attached) {
      if (attached.empty()) continue;
      return InvalidInput(StoreAtPlace(plan), "stage ", attached[0]->name(),
                          " is computed inside it");
    }
    return moving;
  }

  // Another part of `plan`, in its head or its steps.
  static StagePlan& NewPart(StagePlan& plan, std::vector<std::unique_ptr<StagePlan>>& parts) {
    parts.push_back(std::make_unique<StagePlan>());
    StagePlan& part = *parts.back();
    part.stage = plan.stage;
    part.bodies = plan.bodies;
    part.order = plan.order;
    part.attach_plan = plan.attach_plan;
    part.attach_leaf = plan.attach_leaf - (&parts == &plan.head ? 1 : 0);
    part.attached.resize(plan.attached.size());
    part.stored.resize(plan.attached.size());
    part.start = plan.start;
    part.size = plan.size;
    part.place = plan.place;
    part.store_size = plan.store_size;
    part.limits = plan.limits;
    return part;
  }

  // The parts of a sliding window. Iteration i of the consumer's loop reads `size` elements, by
  // `step` further than the iteration before, of which it has `size - step` in common with it; if the
  // loop is rotated, iteration i is tile (i + shift) % count, and tile 0 begins anew. In the storage
  // all that is computed lies in the order of the iterations: what i reads begins at
  //
  //   at(i) = i * step + (size - step) * ((i + shift) / count)
  //
  // and what it reads first ends where that ends and begins at at(i - 1) + size. Iteration i computes
  // this for iteration i + ahead; the head computes it for those before.
  absl::Status Slide(StagePlan& plan) {
    const Iterations loop = IterationsAround(plan);
    const Expr var = loop.var, tile = loop.tile;
    const int64_t count = loop.count;
    const LinearForm& shift = loop.shift;
    const bool is_rotated = loop.is_rotated;
    ASSIGN_OR_RETURN(const std::optional<size_t> moving, SlidingDimension(plan, loop));
    // A limit that moves along says nothing of what later iterations read.
    for (std::vector<SymbolicInterval>& limits : plan.limits) {
      std::erase_if(limits, [&](const SymbolicInterval& limit) { return loop.Move(limit.min); });
    }
    if (!moving) {
      FindOverhang(NewPart(plan, plan.head));
      return absl::OkStatus();
    }
    const size_t d = *moving;
    const int64_t size = plan.size[d];
    const int64_t step = loop.StepOf(plan.start[d]);
    const int64_t ahead = std::min(plan.data().ahead, count);
    const Expr turn = context_.Int(index_type_, count);
    const LinearForm base = plan.start[d] - Decompose(tile) * step;
    const auto moved = [&](const LinearForm& i) { return plans_.ToExpr(i + shift); };
    const auto tile_of = [&](const LinearForm& i) {
      return is_rotated ? moved(i) % turn : moved(i);
    };
    const auto at = [&](const LinearForm& i) {
      const LinearForm in_order = i * step;
      if (!is_rotated) return in_order;
      const Expr first = plans_.ToExpr(shift);
      const Expr begin = RangeOf(shift, ranges_).max < count ? first : first % turn;
      const Expr turns = plans_.ToExpr(i + Decompose(begin)) / turn;
      return in_order + Decompose(turns) * (size - step);
    };
    const auto add_part = [&](std::vector<std::unique_ptr<StagePlan>>& parts,
                              const LinearForm& start, int64_t part_size, const LinearForm& place,
                              Expr condition) {
      StagePlan& part = NewPart(plan, parts);
      part.start[d] = start;
      part.size[d] = part_size;
      part.place[d] = place;
      part.condition = condition;
      FindOverhang(part);
    };
    // What iteration i reads first.
    const auto add_step = [&](std::vector<std::unique_ptr<StagePlan>>& parts, const LinearForm& i,
                              Expr condition) {
      const LinearForm place = at(i - LinearForm::Constant(1)) + LinearForm::Constant(size);
      const LinearForm start = base + Decompose(tile_of(i)) * step;
      const LinearForm fresh = start + LinearForm::Constant(size - step);
      if (!is_rotated || size == step) {
        add_part(parts, fresh, step, place, condition);
        return;
      }
      add_part(parts, fresh, step, place, condition);
      parts.back()->restarts = ir::Eq(tile_of(i), context_.Int(index_type_, 0));
      add_part(parts, base, size, place, condition);
    };
    plan.store_size[d] = size + step * (count - 1) + (is_rotated ? size - step : 0);
    const int64_t first = is_rotated ? 1 : ahead;  // iterations in the first part of the head
    add_part(plan.head, base + Decompose(tile_of({})) * step, size + step * (first - 1), {}, {});
    for (int64_t i = first; i < ahead; ++i) add_step(plan.head, LinearForm::Constant(i), {});
    const ConstRange all =
        std::exchange(ranges_[var], ConstRange{0, std::max<int64_t>(0, count - ahead - 1)});
    add_step(plan.steps, Decompose(var) + LinearForm::Constant(ahead),
             var < context_.Int(index_type_, count - ahead));
    ranges_[var] = all;
    plan.place[d] = at(Decompose(var));
    return absl::OkStatus();
  }

  // Whether the part may reach over the tensor's ends.
  void FindOverhang(StagePlan& plan) const {
    const Shape& shape = plan.data().operation->shape;
    const size_t rank = shape.size();
    plan.below.assign(rank, false);
    plan.above.assign(rank, false);
    if (plan.attach_plan == nullptr) return;
    for (size_t d = 0; d < rank; ++d) {
      const ConstRange start = RangeOf(plan.start[d], ranges_);
      plan.below[d] = start.min < 0;
      plan.above[d] = start.max > shape[d] - plan.size[d] &&
                      std::none_of(plan.limits[d].begin(), plan.limits[d].end(),
                                   [&](const SymbolicInterval& limit) {
                                     return RangeOf(End(limit), ranges_).max <= shape[d];
                                   });
    }
  }

  // The region covers all iterations of the reader's loops. Where guards skip some of them less is
  // needed: for (xo) { AL = ...; for (xi, 0, 8) if (xo*8 + xi < 12) ... AL ... } reads no element
  // from the twelfth on. What each guard leaves is found by taking what it bounds as one variable,
  // here p = xo*8 + xi in 0 ... 11.
  void FindLimits(StagePlan& plan, const StagePlan& reader,
                  const absl::flat_hash_set<Expr>& fixed) {
    const StageData& data = reader.data();
    const Shape& shape = plan.data().operation->shape;
    auto new_variable = [&](int64_t size) {
      const Expr p = context_.NewVar("p", index_type_);
      ranges_[p] = ConstRange{0, std::max<int64_t>(1, size) - 1};
      return p;
    };
    auto add_limits = [&](const ir::VarMap& vars) {
      std::vector<Expr> values;
      for (const Body& body : reader.bodies) values.push_back(ir::Substitute(body.value, vars));
      const std::vector<std::optional<SymbolicInterval>> region = ReadRegion(plan, values, fixed);
      for (size_t d = 0; d < shape.size(); ++d) {
        if (!region[d] || Least(plan, d) > 0) continue;
        const LinearForm end = End(*region[d]);
        const bool is_news =
            RangeOf(plan.start[d] + LinearForm::Constant(plan.size[d]) - end, ranges_).max > 0 &&
            !(end.IsConstant() && end.constant() >= shape[d]) &&
            std::none_of(plan.limits[d].begin(), plan.limits[d].end(),
                         [&](const SymbolicInterval& limit) { return End(limit) == end; });
        if (is_news) plan.limits[d].push_back(*region[d]);
      }
    };
    for (const AxisRelation& relation : data.relations) {
      if (!plans_.NeedsGuard(reader, relation)) continue;
      const Expr p = new_variable(reader.extents.at(relation.parent));
      add_limits(plans_.BodyVars(
          reader, plans_.FindAxisValues(reader, reader.leaf_vars, relation.parent, p)));
    }
    const ir::VarMap vars =
        plans_.BodyVars(reader, plans_.FindAxisValues(reader, reader.leaf_vars));
    for (size_t d = 0; d < data.axes.size(); ++d) {
      auto with_coordinate = [&](Expr coordinate) {
        ir::VarMap changed = vars;
        changed[data.axes[d]] = coordinate;
        return changed;
      };
      const int64_t extent = data.operation->shape[d];
      const int64_t start = RangeOf(reader.start[d], ranges_).min;
      if (reader.above[d] && (reader.below[d] || start >= 0)) {
        add_limits(with_coordinate(new_variable(extent)));
      }
      for (const SymbolicInterval& limit : reader.limits[d]) {
        if (RangeOf(reader.start[d] - limit.min, ranges_).min < 0) continue;
        const LinearForm p = Decompose(new_variable(limit.size));
        add_limits(with_coordinate(plans_.ToExpr(limit.min + p)));
      }
    }
  }

  Plans& plans_;
  const GraphState& graph_;
  ir::Context& context_;
  const ir::Type index_type_;
  arith::VarRanges& ranges_;
};

}  // namespace

absl::Status FindRegion(StagePlan& plan, Plans& plans) { return Regions(plans).Find(plan); }

}  // namespace polynao::te
