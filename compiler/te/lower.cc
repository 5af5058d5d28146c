#include "compiler/te/lower.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/te/affine.h"

namespace polynao::te {
namespace {

using ir::Buffer;
using ir::Context;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;

using AxisValues = absl::flat_hash_map<const AxisData*, Expr>;

// A read of a tensor: `load` with its indices already rewritten.
using LoadRewrite = std::function<Expr(Expr load)>;

// `e` with every load replaced, innermost first.
Expr RewriteLoads(Expr e, const LoadRewrite& rewrite, absl::flat_hash_map<Expr, Expr>& done) {
  auto it = done.find(e);
  if (it != done.end()) return it->second;
  std::vector<Expr> operands;
  operands.reserve(e.operands().size());
  for (Expr operand : e.operands()) operands.push_back(RewriteLoads(operand, rewrite, done));
  Expr result = e.context().Rebuild(e, operands);
  if (result.Is(ExprKind::kLoad)) result = rewrite(result);
  done.emplace(e, result);
  return result;
}

// Everything known about the loops of one stage.
struct Plan {
  const Stage* stage = nullptr;
  std::vector<Body> bodies;  // after inlining, over the graph's axes
  size_t order = 0;          // producers come before their readers
  std::vector<Plan*> readers;
  Plan* attach_plan = nullptr;
  size_t attach_leaf = 0;
  std::vector<std::vector<Plan*>> attached;  // per leaf, producers first
  std::vector<std::vector<Plan*>>
      stored;  // per leaf: sliding windows, computed one leaf further in

  // The part of the tensor that is computed: per dimension start and size, and whether the part may
  // reach over the tensor's ends.
  std::vector<Linear> start;
  std::vector<int64_t> size;
  std::vector<bool> below;
  std::vector<bool> above;
  // Per dimension: intervals after whose end nothing is needed, because guards of the reader skip
  // what would read it.
  std::vector<std::vector<Interval>> limits;
  // Where in its storage the part lies, and how large that is.
  std::vector<Linear> place;
  Shape store_size;
  // Of a sliding window, in the place of its own loops: those before the first iteration, and those
  // of an iteration.
  std::vector<std::unique_ptr<Plan>> head;
  std::vector<std::unique_ptr<Plan>> steps;
  Expr condition;  // under which the loops run, none: always
  Expr
      restarts;  // the condition under which the part behind this one runs in its place, none: never

  absl::flat_hash_map<const AxisData*, int64_t> extents;
  AxisValues leaf_vars;
  std::vector<Expr> values;  // the bodies' values over loop variables
  std::vector<Buffer> buffers;
  std::vector<bool> is_allocated;   // per buffer
  Plan* in_place_reader = nullptr;  // the stage that is computed in this one's storage

  const StageData& data() const { return stage->data(); }
  const std::string& name() const { return stage->name(); }
  bool is_reduction() const { return bodies[0].reducer.has_value(); }
  int64_t reduce_min(size_t i) const { return bodies[0].axes[i].min; }
  // The outermost reduce leaf, or the number of leaves.
  size_t FirstReduceLeaf() const {
    const auto& leaves = data().leaves;
    return std::find_if(leaves.begin(), leaves.end(),
                        [](const AxisData* leaf) { return leaf->is_reduce; }) -
           leaves.begin();
  }
};

class Lowering {
 public:
  explicit Lowering(const Schedule& schedule)
      : schedule_(schedule),
        graph_(*schedule.graph()),
        context_(*graph_.context),
        index_type_(graph_.index_type) {}

  absl::StatusOr<ir::Function> Run() {
    MakePlans();
    RETURN_IF_ERROR(Attach());
    RETURN_IF_ERROR(ResolveInPlace());
    MakeParams();
    // Readers first: what they read decides what a stage computes.
    for (auto it = plans_.rbegin(); it != plans_.rend(); ++it) {
      RETURN_IF_ERROR(PlanLoops(**it));
      RETURN_IF_ERROR(PlanBuffers(**it));
    }
    std::vector<Plan*> top;
    for (const auto& plan : plans_) {
      if (plan->attach_plan == nullptr) top.push_back(plan.get());
    }
    ir::Function function;
    function.name = graph_.name;
    function.context = graph_.context;
    function.params = std::move(params_);
    function.body = WithStages(top, context_.Nop());
    return function;
  }

 private:
  // ---- stages ----

  // Visits computes that `operation` needs, then itself. `bodies` gives a stage's computation.
  void Visit(const Operation* operation,
             const std::function<const std::vector<Body>&(const Operation*)>& bodies,
             absl::flat_hash_set<const Operation*>& seen,
             std::vector<const Operation*>& order) const {
    if (operation->kind != Operation::Kind::kCompute || !seen.insert(operation).second) return;
    for (const Operation* read : ReadOperations(graph_, bodies(operation))) {
      Visit(read, bodies, seen, order);
    }
    order.push_back(operation);
  }

  // Inlines, then makes a plan for each stage that an output still needs.
  void MakePlans() {
    absl::flat_hash_map<const Operation*, const Stage*> stages;
    for (const auto& stage : schedule_.stages()) stages[stage->data().operation] = stage.get();
    absl::flat_hash_map<const Operation*, std::vector<Body>> final_bodies;

    std::vector<const Operation*> order;
    absl::flat_hash_set<const Operation*> seen;
    for (const Tensor& output : schedule_.outputs()) {
      Visit(
          output.operation(),
          [&](const Operation* o) -> const std::vector<Body>& {
            return stages.at(o)->data().bodies;
          },
          seen, order);
    }
    for (const Operation* operation : order) {
      const StageData& data = stages.at(operation)->data();
      absl::flat_hash_map<Expr, Expr> done;
      const LoadRewrite inline_load = [&](Expr load) {
        const auto [producer, index] = graph_.producers.at(Buffer(load.buffer()));
        auto it = stages.find(producer);
        if (it == stages.end() || !it->second->data().is_inlined) return load;
        const Axes& axes = it->second->data().axes;
        ir::VarMap vars;
        for (size_t d = 0; d < axes.size(); ++d) vars[axes[d]] = load.operand(d);
        return ir::Substitute(final_bodies.at(producer)[index].value, vars);
      };
      std::vector<Body> bodies = data.bodies;
      for (Body& body : bodies) body.value = RewriteLoads(body.value, inline_load, done);
      final_bodies[operation] = std::move(bodies);
    }

    order.clear();
    seen.clear();
    for (const Tensor& output : schedule_.outputs()) {
      Visit(
          output.operation(),
          [&](const Operation* o) -> const std::vector<Body>& { return final_bodies.at(o); }, seen,
          order);
    }
    for (const Operation* operation : order) {
      plans_.push_back(std::make_unique<Plan>());
      Plan& plan = *plans_.back();
      plan.stage = stages.at(operation);
      plan.bodies = final_bodies.at(operation);
      plan.order = plans_.size();
      plan.attached.resize(plan.data().leaves.size());
      plan.stored.resize(plan.data().leaves.size());
      by_operation_[operation] = &plan;
      for (const Operation* read : ReadOperations(graph_, plan.bodies)) {
        auto it = by_operation_.find(read);
        if (it != by_operation_.end()) it->second->readers.push_back(&plan);
      }
    }
  }

  // Resolves ComputeAt and checks that every reader is inside the loop.
  absl::Status Attach() {
    for (const auto& plan : plans_) {
      const StageData& data = plan->data();
      if (data.attach_stage == nullptr) continue;
      const std::string place =
          StrCat("stage ", plan->name(), ": ComputeAt(", data.attach_stage->name(), ", ",
                 data.attach_axis->name, "): ");
      auto it = by_operation_.find(data.attach_stage->data().operation);
      if (it == by_operation_.end()) {
        return InvalidInput(place, "stage ", data.attach_stage->name(),
                            " is inlined or needed by no output");
      }
      Plan& consumer = *it->second;
      if (consumer.order < plan->order) {
        return InvalidInput(place, "stage ", consumer.name(), " does not read ", plan->name());
      }
      const auto& leaves = consumer.data().leaves;
      const auto leaf = std::find(leaves.begin(), leaves.end(), data.attach_axis);
      if (leaf == leaves.end()) {
        return InvalidInput(place, "axis ", data.attach_axis->name, " is no leaf axis any more");
      }
      plan->attach_plan = &consumer;
      plan->attach_leaf = leaf - leaves.begin();
      consumer.attached[plan->attach_leaf].push_back(plan.get());
      if (data.store_axis == nullptr) continue;
      const bool is_inside = plan->attach_leaf > 0 &&
                             leaves[plan->attach_leaf - 1] == data.store_axis &&
                             (*leaf)->kind == ForKind::kSerial && !(*leaf)->is_reduce;
      if (!is_inside) {
        return InvalidInput(StoreAtPlace(*plan), "axis ", data.attach_axis->name,
                            " is no serial spatial loop right inside it");
      }
      consumer.stored[plan->attach_leaf - 1].push_back(plan.get());
    }
    for (const auto& plan : plans_) {
      if (plan->attach_plan == nullptr) continue;
      for (const Plan* reader : plan->readers) {
        if (IsInside(*reader, *plan->attach_plan, plan->attach_leaf)) continue;
        return InvalidInput("stage ", plan->name(), ": ComputeAt(", plan->attach_plan->name(), ", ",
                            plan->data().attach_axis->name, "): stage ", reader->name(), " reads ",
                            plan->name(), " outside that loop");
      }
    }
    return absl::OkStatus();
  }

  static std::string StoreAtPlace(const Plan& plan) {
    return StrCat("stage ", plan.name(), ": StoreAt(", plan.data().store_axis->name, "): ");
  }

  // Resolves InPlace and checks all of its conditions but the size, which is not known yet.
  absl::Status ResolveInPlace() {
    for (const auto& plan : plans_) {
      const Operation* source = plan->data().in_place_of;
      if (source == nullptr) continue;
      const auto it = by_operation_.find(source);
      std::string why;
      if (it == by_operation_.end()) {
        why = "no stage of the program computes it";
      } else {
        why = WhyNotInPlace(*plan, *it->second);
        it->second->in_place_reader = plan.get();
      }
      if (!why.empty()) {
        return InvalidInput("stage ", plan->name(), ": InPlace(", source->name, "): ", why);
      }
    }
    return absl::OkStatus();
  }

  // Empty if `plan` can be computed in the storage of `source`.
  static std::string WhyNotInPlace(const Plan& plan, const Plan& source) {
    const Operation& from = *source.data().operation;
    const Operation& to = *plan.data().operation;
    const auto is_here = [&](const Plan& p) {
      return p.attach_plan == source.attach_plan && p.attach_leaf == source.attach_leaf;
    };
    if (source.data().is_output) return "it is an output";
    if (from.outputs.size() != 1 || to.outputs.size() != 1) return "a stage has several results";
    if (plan.is_reduction()) return "the stage is a reduction";
    if (from.outputs[0]->type != to.outputs[0]->type) return "the types differ";
    if (source.data().scope != plan.data().scope) return "the scopes differ";
    if (source.data().copies > 1 || !source.data().alignments.empty()) {
      return "DoubleBuffer and StorageAlign belong to the stage computed in place";
    }
    bool reads = false;
    for (const Plan* reader : source.readers) {
      reads = reads || reader == &plan;
      if (is_here(*reader) && is_here(plan) && reader->order <= plan.order) continue;
      return StrCat("stage ", reader->name(), " reads it later or in another loop");
    }
    if (!reads) return "the stage does not read it";
    bool same_element = true;
    ir::ForEachExpr(plan.bodies[0].value, [&](Expr e) {
      if (!e.Is(ExprKind::kLoad) || Buffer(e.buffer()) != from.outputs[0]) return;
      same_element = same_element && std::equal(e.operands().begin(), e.operands().end(),
                                                plan.data().axes.begin(), plan.data().axes.end());
    });
    return same_element ? "" : "another element than the one that is computed is read";
  }

  // Whether `plan`'s loops stand in the body of that leaf of `outer`, or are that stage's own.
  static bool IsInside(const Plan& plan, const Plan& outer, size_t leaf) {
    for (const Plan* p = &plan; p != nullptr; p = p->attach_plan) {
      if (p == &outer) return true;
      if (p->attach_plan == &outer) return p->attach_leaf >= leaf;
    }
    return false;
  }

  // ---- parameters ----

  std::vector<Expr> ShapeExprs(const Shape& shape) const {
    std::vector<Expr> extents;
    for (int64_t extent : shape) extents.push_back(context_.Int(index_type_, extent));
    return extents;
  }

  void MakeParams() {
    // The shapes in which bodies read each placeholder.
    absl::flat_hash_map<const Operation*, std::vector<Shape>> shapes;
    for (const auto& plan : plans_) {
      for (const Operation* read : ReadOperations(graph_, plan->bodies)) {
        if (read->kind == Operation::Kind::kCompute) continue;
        std::vector<Shape>& used = shapes[read->kind == Operation::Kind::kView ? read->base : read];
        if (std::find(used.begin(), used.end(), read->shape) == used.end()) {
          used.push_back(read->shape);
        }
      }
    }
    for (const Operation& operation : graph_.operations) {
      if (operation.kind != Operation::Kind::kPlaceholder) continue;
      const std::vector<Shape>& used = shapes[&operation];
      const Shape shape = used.empty()       ? operation.shape
                          : used.size() == 1 ? used[0]
                                             : Shape{ElementCount(operation.shape)};
      const Buffer buffer =
          context_.NewBuffer(operation.name, operation.outputs[0]->type, ShapeExprs(shape));
      inputs_[&operation] = {buffer, shape};
      params_.push_back({.var = {}, .buffer = buffer, .access = ir::Access::kIn, .scope = ""});
    }
    for (const Tensor& output : schedule_.outputs()) {
      const Buffer buffer =
          context_.NewBuffer(output.name(), output.type(), ShapeExprs(output.shape()));
      outputs_[output.buffer()] = buffer;
      params_.push_back({.var = {}, .buffer = buffer, .access = ir::Access::kOut, .scope = ""});
    }
    for (Expr scalar : graph_.scalars) {
      params_.push_back({.var = scalar, .buffer = {}, .access = ir::Access::kIn, .scope = ""});
    }
  }

  // ---- bounds ----

  // Whether the threads of a GPU's block have one copy of the results, for all of them.
  static bool IsShared(const Plan& plan) { return plan.data().scope == "shared"; }
  static bool IsBlockThread(const AxisData* leaf) {
    return leaf->kind == ForKind::kThread && leaf->thread.starts_with("threadIdx.");
  }

  // Loop variables of the loops around the place where `plan` is computed; without those over the
  // threads that share its results, which are computed for all of these threads.
  absl::flat_hash_set<Expr> EnclosingVars(const Plan& plan) const {
    absl::flat_hash_set<Expr> vars;
    for (const Plan* p = &plan; p->attach_plan != nullptr; p = p->attach_plan) {
      for (size_t i = 0; i <= p->attach_leaf; ++i) {
        const AxisData* leaf = p->attach_plan->data().leaves[i];
        if (IsShared(plan) && IsBlockThread(leaf)) continue;
        vars.insert(p->attach_plan->leaf_vars.at(leaf));
      }
    }
    return vars;
  }

  // Per dimension an interval around all that `values` read of `plan`'s results while the loop
  // variables that are not `fixed` run; unset where no size is known.
  std::vector<std::optional<Interval>> ReadRegion(const Plan& plan, const std::vector<Expr>& values,
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
    std::vector<std::optional<Interval>> region(plan.data().operation->shape.size());
    for (size_t d = 0; d < region.size(); ++d) {
      for (size_t i = 0; i < ordered.size(); ++i) {
        const std::optional<Interval> read = IntervalOf(ordered[i].operand(d), ranges_, fixed);
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

  absl::Status FindRegion(Plan& plan) {
    const Shape& shape = plan.data().operation->shape;
    const size_t rank = shape.size();
    plan.limits.resize(rank);
    const absl::flat_hash_set<Expr> fixed = EnclosingVars(plan);
    FindStartAndSize(plan, fixed, plan.start, plan.size);
    if (plan.attach_plan != nullptr && plan.readers.size() == 1) {
      FindLimits(plan, *plan.readers[0], fixed);
    }
    plan.place.assign(rank, Linear());
    plan.store_size = plan.size;
    if (plan.data().store_axis != nullptr) return Slide(plan);
    FindOverhang(plan);
    return absl::OkStatus();
  }

  // Per dimension where the part that the readers need begins, and its size, while variables that
  // are not `fixed` run.
  void FindStartAndSize(const Plan& plan, const absl::flat_hash_set<Expr>& fixed,
                        std::vector<Linear>& start, Shape& size) const {
    const Shape& shape = plan.data().operation->shape;
    start.assign(shape.size(), Linear());
    size = shape;
    if (plan.attach_plan == nullptr) return;
    std::vector<Expr> values;
    for (const Plan* reader : plan.readers) {
      values.insert(values.end(), reader->values.begin(), reader->values.end());
    }
    const std::vector<std::optional<Interval>> region = ReadRegion(plan, values, fixed);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!region[d] || region[d]->size >= shape[d]) continue;  // the whole dimension
      start[d] = region[d]->min;
      size[d] = region[d]->size;
    }
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
  absl::Status Slide(Plan& plan) {
    const Plan& consumer = *plan.attach_plan;
    const AxisData* const axis = consumer.data().leaves[plan.attach_leaf];
    const Expr var = consumer.leaf_vars.at(axis);
    const int64_t count = std::max<int64_t>(1, consumer.extents.at(axis));
    const auto& relations = consumer.data().relations;
    const auto rotation = std::find_if(relations.begin(), relations.end(), [&](const auto& r) {
      return r.kind == AxisRelation::Kind::kRotate && r.inner == axis;
    });
    const AxisValues values = FindAxisValues(consumer, consumer.leaf_vars);
    Linear shift;
    if (rotation != relations.end() && count > 1) {
      shift = Decompose(values.at(rotation->outer)) * rotation->amount;
    }
    // By no iteration for sure: bounds have no remainder then.
    const bool is_rotated = RangeOf(shift, ranges_).max > 0;
    if (!is_rotated) shift = {};
    const Expr tile = is_rotated ? values.at(rotation->parent) : var;
    const auto is_moving = [&](const Linear& form) {
      return std::any_of(form.terms.begin(), form.terms.end(),
                         [&](const auto& term) { return ir::UsesVar(term.first, var); });
    };
    const auto step_of = [&](const Linear& form) {
      const auto it = std::find_if(form.terms.begin(), form.terms.end(),
                                   [&](const auto& term) { return term.first == tile; });
      return it == form.terms.end() ? 0 : it->second;
    };
    std::optional<size_t> moving;
    bool is_regular = true;
    for (size_t d = 0; d < plan.start.size(); ++d) {
      if (!is_moving(plan.start[d])) continue;
      const int64_t step = step_of(plan.start[d]);
      is_regular = is_regular && !moving && step > 0 && step <= plan.size[d] &&
                   !is_moving(plan.start[d] - Decompose(tile) * step);
      moving = d;
    }
    if (!is_regular) {
      return InvalidInput(StoreAtPlace(plan), "what an iteration of ", axis->name,
                          " reads does not move along one dimension by a constant step of at most "
                          "its size");
    }
    for (const std::vector<Plan*>& attached : plan.attached) {
      if (attached.empty()) continue;
      return InvalidInput(StoreAtPlace(plan), "stage ", attached[0]->name(),
                          " is computed inside it");
    }
    // A limit that moves along says nothing of what later iterations read.
    for (std::vector<Interval>& limits : plan.limits) {
      std::erase_if(limits, [&](const Interval& limit) { return is_moving(limit.min); });
    }
    const auto new_part = [&](std::vector<std::unique_ptr<Plan>>& parts) -> Plan& {
      parts.push_back(std::make_unique<Plan>());
      Plan& part = *parts.back();
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
    };
    if (!moving) {  // all iterations read the same
      FindOverhang(new_part(plan.head));
      return absl::OkStatus();
    }
    const size_t d = *moving;
    const int64_t size = plan.size[d];
    const int64_t step = step_of(plan.start[d]);
    const int64_t ahead = std::min(plan.data().ahead, count);
    const Expr turn = context_.Int(index_type_, count);
    const Linear base = plan.start[d] - Decompose(tile) * step;
    const auto moved = [&](const Linear& i) { return (i + shift).ToExpr(context_, index_type_); };
    const auto tile_of = [&](const Linear& i) { return is_rotated ? moved(i) % turn : moved(i); };
    const auto at = [&](const Linear& i) {
      const Linear in_order = i * step;
      if (!is_rotated) return in_order;
      const Expr first = shift.ToExpr(context_, index_type_);
      const Expr begin = RangeOf(shift, ranges_).max < count ? first : first % turn;
      const Expr turns = (i + Decompose(begin)).ToExpr(context_, index_type_) / turn;
      return in_order + Decompose(turns) * (size - step);
    };
    const auto add_part = [&](std::vector<std::unique_ptr<Plan>>& parts, const Linear& start,
                              int64_t part_size, const Linear& place, Expr condition) {
      Plan& part = new_part(parts);
      part.start[d] = start;
      part.size[d] = part_size;
      part.place[d] = place;
      part.condition = condition;
      FindOverhang(part);
    };
    // What iteration i reads first.
    const auto add_step = [&](std::vector<std::unique_ptr<Plan>>& parts, const Linear& i,
                              Expr condition) {
      const Linear place = at(i - Linear{1, {}}) + Linear{size, {}};
      const Linear start = base + Decompose(tile_of(i)) * step;
      const Linear fresh = start + Linear{size - step, {}};
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
    for (int64_t i = first; i < ahead; ++i) add_step(plan.head, {i, {}}, {});
    const Range all =
        std::exchange(ranges_[var], Range{0, std::max<int64_t>(0, count - ahead - 1)});
    add_step(plan.steps, Decompose(var) + Linear{ahead, {}},
             var < context_.Int(index_type_, count - ahead));
    ranges_[var] = all;
    plan.place[d] = at(Decompose(var));
    return absl::OkStatus();
  }

  // Whether the part may reach over the tensor's ends.
  void FindOverhang(Plan& plan) const {
    const Shape& shape = plan.data().operation->shape;
    const size_t rank = shape.size();
    plan.below.assign(rank, false);
    plan.above.assign(rank, false);
    if (plan.attach_plan == nullptr) return;
    for (size_t d = 0; d < rank; ++d) {
      const Range start = RangeOf(plan.start[d], ranges_);
      plan.below[d] = start.min < 0;
      plan.above[d] =
          start.max > shape[d] - plan.size[d] &&
          std::none_of(plan.limits[d].begin(), plan.limits[d].end(), [&](const Interval& limit) {
            return RangeOf(End(limit), ranges_).max <= shape[d];
          });
    }
  }

  static Linear End(const Interval& interval) { return interval.min + Linear{interval.size, {}}; }

  // The region covers all iterations of the reader's loops. Where guards skip some of them less is
  // needed: for (xo) { AL = ...; for (xi, 0, 8) if (xo*8 + xi < 12) ... AL ... } reads no element
  // from the twelfth on. What each guard leaves is found by taking what it bounds as one variable,
  // here p = xo*8 + xi in 0 ... 11.
  void FindLimits(Plan& plan, const Plan& reader, const absl::flat_hash_set<Expr>& fixed) {
    const StageData& data = reader.data();
    const Shape& shape = plan.data().operation->shape;
    auto new_variable = [&](int64_t size) {
      const Expr p = context_.NewVar("p", index_type_);
      ranges_[p] = Range{0, std::max<int64_t>(1, size) - 1};
      return p;
    };
    auto add_limits = [&](const ir::VarMap& vars) {
      std::vector<Expr> values;
      for (const Body& body : reader.bodies) values.push_back(ir::Substitute(body.value, vars));
      const std::vector<std::optional<Interval>> region = ReadRegion(plan, values, fixed);
      for (size_t d = 0; d < shape.size(); ++d) {
        if (!region[d]) continue;
        const Linear end = End(*region[d]);
        const bool is_news =
            RangeOf(plan.start[d] + Linear{plan.size[d], {}} - end, ranges_).max > 0 &&
            !(end.IsConst() && end.constant >= shape[d]) &&
            std::none_of(plan.limits[d].begin(), plan.limits[d].end(),
                         [&](const Interval& limit) { return End(limit) == end; });
        if (is_news) plan.limits[d].push_back(*region[d]);
      }
    };
    for (const AxisRelation& relation : data.relations) {
      if (!NeedsGuard(reader, relation)) continue;
      const Expr p = new_variable(reader.extents.at(relation.parent));
      add_limits(BodyVars(reader, FindAxisValues(reader, reader.leaf_vars, relation.parent, p)));
    }
    const ir::VarMap vars = BodyVars(reader, FindAxisValues(reader, reader.leaf_vars));
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
      for (const Interval& limit : reader.limits[d]) {
        if (RangeOf(reader.start[d] - limit.min, ranges_).min < 0) continue;
        const Linear p = Decompose(new_variable(limit.size));
        add_limits(with_coordinate((limit.min + p).ToExpr(context_, index_type_)));
      }
    }
  }

  // Whether the loops of a split run over iterations that the axis does not have.
  static bool NeedsGuard(const Plan& plan, const AxisRelation& relation) {
    return relation.kind != AxisRelation::Kind::kFuse &&
           relation.kind != AxisRelation::Kind::kRotate &&
           plan.extents.at(relation.outer) * plan.extents.at(relation.inner) !=
               plan.extents.at(relation.parent);
  }

  absl::Status CheckExtent(const Plan& plan, const AxisData& axis, int64_t extent) const {
    if (index_type_ == Type::kI64 || extent <= std::numeric_limits<int32_t>::max()) {
      return absl::OkStatus();
    }
    return InvalidInput("stage ", plan.name(), ": axis ", axis.name, " of extent ", extent,
                        " needs i64 indices: give Graph the index type i64");
  }

  absl::Status FindExtents(Plan& plan) {
    const StageData& data = plan.data();
    for (size_t d = 0; d < data.spatial.size(); ++d) plan.extents[data.spatial[d]] = plan.size[d];
    for (size_t i = 0; i < data.reduce.size(); ++i) {
      plan.extents[data.reduce[i]] = plan.bodies[0].axes[i].extent;
    }
    // An axis that is no dimension and came from no other axis is the single iteration of Fuse({}).
    auto extent_of = [&](const AxisData* axis) {
      return plan.extents.try_emplace(axis, 1).first->second;
    };
    for (const AxisRelation& relation : data.relations) {
      if (relation.kind == AxisRelation::Kind::kFuse) {
        const int64_t extent = ElementCount({extent_of(relation.outer), extent_of(relation.inner)});
        RETURN_IF_ERROR(CheckExtent(plan, *relation.parent, extent));
        plan.extents[relation.parent] = extent;
        continue;
      }
      const int64_t extent = extent_of(relation.parent);
      if (relation.kind == AxisRelation::Kind::kRotate) {
        plan.extents[relation.inner] = extent;
        continue;
      }
      const int64_t other = extent / relation.amount + (extent % relation.amount != 0 ? 1 : 0);
      const bool by_factor = relation.kind == AxisRelation::Kind::kSplit;
      RETURN_IF_ERROR(CheckExtent(plan, *relation.parent, ElementCount({relation.amount, other})));
      plan.extents[relation.outer] = by_factor ? other : relation.amount;
      plan.extents[relation.inner] = by_factor ? relation.amount : other;
    }
    for (const AxisData* leaf : data.leaves) extent_of(leaf);
    return absl::OkStatus();
  }

  absl::Status CheckThreads(const Plan& plan) const {
    for (const AxisData* leaf : plan.data().leaves) {
      if (leaf->kind != ForKind::kThread) continue;
      // What threads of a block share they also compute together.
      if (IsShared(plan) && IsBlockThread(leaf)) continue;
      for (const Plan* p = &plan; p->attach_plan != nullptr; p = p->attach_plan) {
        for (size_t i = 0; i <= p->attach_leaf; ++i) {
          const AxisData* outer = p->attach_plan->data().leaves[i];
          if (outer->kind != ForKind::kThread || outer->thread != leaf->thread) continue;
          return InvalidInput("stage ", plan.name(), ": axis ", leaf->name, " is bound to ",
                              leaf->thread, ", but the stage is computed inside the loop ",
                              outer->name, " of stage ", p->attach_plan->name(),
                              " over the same threads");
        }
      }
    }
    return absl::OkStatus();
  }

  // The values of all axes (counted from 0) given those of the leaves; an axis `pinned` has the
  // value given for it whatever its leaves have.
  AxisValues FindAxisValues(const Plan& plan, AxisValues values, const AxisData* pinned = nullptr,
                            Expr pinned_value = {}) const {
    const auto& relations = plan.data().relations;
    for (auto it = relations.rbegin(); it != relations.rend(); ++it) {
      const int64_t inner_extent = plan.extents.at(it->inner);
      if (it->kind == AxisRelation::Kind::kFuse) {
        // The loop does not run if the inner extent is 0.
        const Expr divisor = context_.Int(index_type_, std::max<int64_t>(1, inner_extent));
        const Expr fused = values.at(it->parent);
        values[it->outer] = inner_extent == 1 ? fused : fused / divisor;
        values[it->inner] = inner_extent == 1 ? context_.Int(index_type_, 0) : fused % divisor;
      } else if (it->parent == pinned) {
        values[it->parent] = pinned_value;
      } else if (it->kind == AxisRelation::Kind::kRotate) {
        const Expr place =
            (Decompose(values.at(it->inner)) + Decompose(values.at(it->outer)) * it->amount)
                .ToExpr(context_, index_type_);
        values[it->parent] = inner_extent <= 1 ? values.at(it->inner)
                                               : place % context_.Int(index_type_, inner_extent);
      } else {
        values[it->parent] =
            (Decompose(values.at(it->outer)) * inner_extent + Decompose(values.at(it->inner)))
                .ToExpr(context_, index_type_);
      }
    }
    return values;
  }

  // The element of dimension d that the loops are at.
  Expr Coordinate(const Plan& plan, const AxisValues& values, size_t d) const {
    const Expr value = values.at(plan.data().spatial[d]);
    const Linear& start = plan.start[d];
    if (start == Linear()) return value;
    return (start + Decompose(value)).ToExpr(context_, index_type_);
  }

  Expr ReduceValue(const Plan& plan, const AxisValues& values, size_t i) const {
    const AxisData* axis = plan.data().reduce[i];
    const Expr value = values.at(axis);
    // An axis that is still a loop runs from its own minimum.
    if (plan.leaf_vars.contains(axis) || plan.reduce_min(i) == 0) return value;
    return value + context_.Int(index_type_, plan.reduce_min(i));
  }

  // What the graph's axes in the bodies are.
  ir::VarMap BodyVars(const Plan& plan, const AxisValues& values) const {
    ir::VarMap vars;
    for (size_t d = 0; d < plan.data().axes.size(); ++d) {
      vars[plan.data().axes[d]] = Coordinate(plan, values, d);
    }
    for (size_t i = 0; i < plan.data().reduce.size(); ++i) {
      vars[plan.bodies[0].axes[i]] = ReduceValue(plan, values, i);
    }
    return vars;
  }

  absl::Status PlanLoops(Plan& plan) {
    RETURN_IF_ERROR(FindRegion(plan));
    if (plan.head.empty()) return MakeLoops(plan);
    // What the stage reads, its parts read.
    std::vector<Plan*> parts;
    for (auto* some : {&plan.head, &plan.steps}) {
      for (const auto& part : *some) {
        RETURN_IF_ERROR(MakeLoops(*part));
        parts.push_back(part.get());
      }
    }
    for (const auto& producer : plans_) {
      std::vector<Plan*>& readers = producer->readers;
      if (std::erase(readers, &plan) > 0) readers.insert(readers.end(), parts.begin(), parts.end());
    }
    return absl::OkStatus();
  }

  absl::Status MakeLoops(Plan& plan) {
    RETURN_IF_ERROR(FindExtents(plan));
    RETURN_IF_ERROR(CheckThreads(plan));
    const StageData& data = plan.data();
    for (const AxisData* leaf : data.leaves) {
      const Expr var = NewLoopVar(*leaf, "");
      plan.leaf_vars[leaf] = var;
      const int64_t min = LoopMin(plan, leaf);
      ranges_[var] = Range{min, min + std::max<int64_t>(1, plan.extents.at(leaf)) - 1};
    }
    const ir::VarMap vars = BodyVars(plan, FindAxisValues(plan, plan.leaf_vars));
    for (const Body& body : plan.bodies) plan.values.push_back(ir::Substitute(body.value, vars));
    return absl::OkStatus();
  }

  // Threads are known by their axis: thread (tid, 4).
  Expr NewLoopVar(const AxisData& leaf, std::string_view suffix) const {
    return leaf.kind == ForKind::kThread ? context_.NewVar(leaf.thread, index_type_)
                                         : context_.NewVar(StrCat(leaf.name, suffix), index_type_);
  }

  static int64_t LoopMin(const Plan& plan, const AxisData* leaf) {
    const auto& reduce = plan.data().reduce;
    const auto it = std::find(reduce.begin(), reduce.end(), leaf);
    return it == reduce.end() ? 0 : plan.reduce_min(it - reduce.begin());
  }

  absl::Status PlanBuffers(Plan& plan) {
    if (const Plan* reader = plan.in_place_reader) {
      if (plan.start != reader->start || plan.size != reader->size || !plan.head.empty() ||
          !reader->head.empty()) {
        return InvalidInput("stage ", reader->name(), ": InPlace(", plan.name(),
                            "): other parts of the two are computed there");
      }
      plan.buffers = reader->buffers;
      plan.is_allocated = {false};
      return absl::OkStatus();
    }
    Shape extents = plan.store_size;
    // Inner dimensions first: the padding of one changes the strides of those outside it.
    std::vector<StorageAlignment> alignments = plan.data().alignments;
    std::sort(alignments.begin(), alignments.end(),
              [](const StorageAlignment& a, const StorageAlignment& b) {
                return a.dimension > b.dimension;
              });
    for (const StorageAlignment& alignment : alignments) {
      const size_t padded = alignment.dimension + 1;
      const int64_t stride = ElementCount(Shape(extents.begin() + padded + 1, extents.end()));
      const int64_t wanted = alignment.offset;
      int64_t padding = 0;
      while (padding < alignment.factor &&
             (extents[padded] + padding) * stride % alignment.factor != wanted) {
        ++padding;
      }
      if (padding == alignment.factor) {
        return InvalidInput("stage ", plan.name(), ": StorageAlign: no padding of dimension ",
                            padded, " makes the stride of axis ",
                            plan.data().spatial[alignment.dimension]->name, " ", wanted, " modulo ",
                            alignment.factor, ", neighbours along dimension ", padded, " are ",
                            stride, " elements apart");
      }
      extents[padded] += padding;
    }
    for (Buffer buffer : plan.data().operation->outputs) {
      auto it = outputs_.find(buffer);
      plan.is_allocated.push_back(it == outputs_.end());
      plan.buffers.push_back(it == outputs_.end()
                                 ? context_.NewBuffer(buffer->name, buffer->type,
                                                      ShapeExprs(extents), plan.data().scope)
                                 : it->second);
    }
    for (auto* parts : {&plan.head, &plan.steps}) {
      for (const auto& part : *parts) part->buffers = plan.buffers;
    }
    return absl::OkStatus();
  }

  // ---- statements ----

  // A load of the function's buffers instead of the graph's.
  Expr RewriteLoad(Expr load) const {
    const auto [operation, result] = graph_.producers.at(Buffer(load.buffer()));
    std::vector<Expr> indices(load.operands().begin(), load.operands().end());
    if (operation->kind == Operation::Kind::kCompute) {
      const Plan& plan = *by_operation_.at(operation);
      for (size_t d = 0; d < indices.size(); ++d) {
        if (plan.start[d] == plan.place[d]) continue;
        indices[d] =
            (Decompose(indices[d]) - plan.start[d] + plan.place[d]).ToExpr(context_, index_type_);
      }
      return context_.Load(plan.buffers[result], indices);
    }
    const Input& input =
        inputs_.at(operation->kind == Operation::Kind::kView ? operation->base : operation);
    if (input.shape == operation->shape) return context_.Load(input.buffer, indices);
    Expr position = context_.Int(index_type_, 0);
    for (size_t d = 0; d < indices.size(); ++d) {
      position = d == 0 ? indices[0] : position * operation->shape[d] + indices[d];
    }
    return context_.Load(input.buffer, {position});
  }

  // `stmt` under the conditions that keep `values` inside the loops' and the tensor's bounds.
  Stmt Guarded(const Plan& plan, const AxisValues& values, bool with_reduce, Stmt stmt) const {
    Expr condition;
    auto require = [&](Expr e) { condition = condition ? ir::And(condition, e) : e; };
    for (const AxisRelation& relation : plan.data().relations) {
      if (!NeedsGuard(plan, relation) || (relation.parent->is_reduce && !with_reduce)) continue;
      require(values.at(relation.parent) < plan.extents.at(relation.parent));
    }
    for (size_t d = 0; d < plan.size.size(); ++d) {
      const Expr coordinate = Coordinate(plan, values, d);
      if (plan.below[d]) require(context_.Int(index_type_, 0) <= coordinate);
      if (plan.above[d]) require(coordinate < plan.data().operation->shape[d]);
      for (const Interval& limit : plan.limits[d]) {
        // What both sides have in common goes: tid*12 + xo*8 + j < tid*12 + 12 is xo*8 + j < 12.
        Linear left = Decompose(coordinate) - End(limit);
        const int64_t right = -std::exchange(left.constant, 0);
        require(left.ToExpr(context_, index_type_) < right);
      }
    }
    return condition ? context_.If(condition, stmt) : stmt;
  }

  std::vector<Expr> StoreIndices(const Plan& plan, const AxisValues& values) const {
    std::vector<Expr> indices;
    for (size_t d = 0; d < plan.size.size(); ++d) {
      const Expr value = values.at(plan.data().spatial[d]);
      indices.push_back(plan.place[d] == Linear()
                            ? value
                            : (plan.place[d] + Decompose(value)).ToExpr(context_, index_type_));
    }
    return indices;
  }

  Stmt Loop(const Plan& plan, const AxisData* leaf, Expr var,
            const std::vector<AxisPragma>& pragmas, Stmt body) const {
    const int64_t min = LoopMin(plan, leaf);
    Stmt loop = context_.For(var, context_.Int(index_type_, min),
                             context_.Int(index_type_, plan.extents.at(leaf)), body, leaf->kind,
                             leaf->thread);
    for (auto it = pragmas.rbegin(); it != pragmas.rend(); ++it) {
      loop = context_.Pragma(it->key, it->arguments, loop);
    }
    return loop;
  }

  // Stores the identity in all elements that the reduce loops from leaf `first` on update.
  Stmt Initialisation(const Plan& plan, size_t first) const {
    const auto& leaves = plan.data().leaves;
    AxisValues vars = plan.leaf_vars;
    for (size_t i = first; i < leaves.size(); ++i) {
      if (leaves[i]->is_reduce) continue;
      vars[leaves[i]] = NewLoopVar(*leaves[i], ".init");
    }
    const AxisValues values = FindAxisValues(plan, vars);
    std::vector<Stmt> stores;
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      const Reducer reducer = *plan.bodies[i].reducer;
      const bool is_index = IsArgReducer(reducer) && i == 0;
      stores.push_back(context_.Store(
          plan.buffers[i], StoreIndices(plan, values),
          Identity(is_index ? Reducer::kMin : reducer, context_, plan.buffers[i]->type)));
    }
    Stmt stmt = Guarded(plan, values, false, context_.Seq(stores));
    for (size_t i = leaves.size(); i-- > first;) {
      if (leaves[i]->is_reduce) continue;
      stmt = Loop(plan, leaves[i], vars.at(leaves[i]), leaves[i]->init_pragmas, stmt);
    }
    return stmt;
  }

  // The innermost statement.
  Stmt Update(const Plan& plan) const {
    const AxisValues values = FindAxisValues(plan, plan.leaf_vars);
    const std::vector<Expr> indices = StoreIndices(plan, values);
    absl::flat_hash_map<Expr, Expr> done;
    std::vector<Expr> results;
    for (const Expr value : plan.values) {
      results.push_back(RewriteLoads(value, [this](Expr load) { return RewriteLoad(load); }, done));
    }
    std::vector<Stmt> stores;
    if (plan.is_reduction() && IsArgReducer(*plan.bodies[0].reducer)) {
      const Expr old_index = context_.Load(plan.buffers[0], indices);
      const Expr old_value = context_.Load(plan.buffers[1], indices);
      const Expr takes_over =
          TakesOver(*plan.bodies[0].reducer, old_index, old_value, results[0], results[1]);
      stores = {context_.Store(plan.buffers[0], indices, results[0]),
                context_.Store(plan.buffers[1], indices, results[1])};
      return Guarded(plan, values, true, context_.If(takes_over, context_.Seq(stores)));
    }
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      if (plan.is_reduction()) {
        results[i] =
            Combine(*plan.bodies[i].reducer, context_.Load(plan.buffers[i], indices), results[i]);
      }
      stores.push_back(context_.Store(plan.buffers[i], indices, results[i]));
    }
    return Guarded(plan, values, true, context_.Seq(stores));
  }

  // The statements inside the first `depth` leaves.
  Stmt Inside(const Plan& plan, size_t depth) const {
    const auto& leaves = plan.data().leaves;
    Stmt stmt = depth == leaves.size() ? Update(plan)
                                       : Loop(plan, leaves[depth], plan.leaf_vars.at(leaves[depth]),
                                              leaves[depth]->pragmas, Inside(plan, depth + 1));
    if (plan.is_reduction() && depth == plan.FirstReduceLeaf()) {
      stmt = context_.Seq({Initialisation(plan, depth), stmt});
    }
    if (depth == 0) return stmt;
    // The heads of windows stand before the loop, and behind what they read.
    const std::vector<Plan*>& windows = plan.stored[depth - 1];
    std::vector<Stmt> stmts;
    for (const Plan* window : windows) AddParts(window->head, stmts);
    stmts.push_back(stmt);
    stmt = WithStages(plan.attached[depth - 1], context_.Seq(stmts));
    for (auto it = windows.rbegin(); it != windows.rend(); ++it) {
      const Expr ahead = context_.I64((*it)->data().ahead);
      stmt = context_.Pragma("sliding_window", {ahead}, WithStorage(**it, stmt));
    }
    return stmt;
  }

  // The loops of `plans` before `rest`, and the storage of their results around both.
  Stmt WithStages(const std::vector<Plan*>& plans, Stmt rest) const {
    std::vector<Stmt> stmts;
    for (const Plan* plan : plans) {
      if (plan->head.empty()) stmts.push_back(Inside(*plan, 0));
      AddParts(plan->steps, stmts);
    }
    stmts.push_back(rest);
    Stmt stmt = context_.Seq(stmts);
    for (auto it = plans.rbegin(); it != plans.rend(); ++it) {
      if ((*it)->data().store_axis == nullptr) stmt = WithStorage(**it, stmt);
    }
    return stmt;
  }

  // Loops of a sliding window. Conditions are for the loop around: there may be no part of it for
  // which they are known.
  void AddParts(const std::vector<std::unique_ptr<Plan>>& parts, std::vector<Stmt>& stmts) const {
    for (size_t i = 0; i < parts.size(); ++i) {
      const Plan& part = *parts[i];
      Stmt stmt = Inside(part, 0);
      if (part.restarts) stmt = context_.If(part.restarts, Inside(*parts[++i], 0), stmt);
      if (part.condition) stmt = context_.If(part.condition, stmt);
      const bool is_plain = !part.condition && !part.restarts;
      stmts.push_back(is_plain ? stmt : context_.Pragma("no_partition", {}, stmt));
    }
  }

  Stmt WithStorage(const Plan& plan, Stmt stmt) const {
    for (size_t i = plan.buffers.size(); i-- > 0;) {
      if (!plan.is_allocated[i]) continue;
      stmt = context_.Allocate(plan.buffers[i], stmt);
      const int copies = plan.data().copies;
      if (copies == 1) continue;
      // Two is what the pragma means without an argument.
      std::vector<Expr> arguments;
      if (copies > 2) arguments.push_back(context_.I64(copies));
      stmt = context_.Pragma("double_buffer", arguments, stmt);
    }
    return stmt;
  }

  struct Input {
    Buffer buffer;
    Shape shape;
  };

  const Schedule& schedule_;
  const GraphState& graph_;
  Context& context_;
  const Type index_type_;
  std::vector<std::unique_ptr<Plan>> plans_;  // producers before readers
  absl::flat_hash_map<const Operation*, Plan*> by_operation_;
  absl::flat_hash_map<const Operation*, Input> inputs_;
  absl::flat_hash_map<Buffer, Buffer> outputs_;  // by the graph's buffer
  std::vector<ir::Param> params_;
  VarRanges ranges_;
};

}  // namespace

absl::StatusOr<ir::Function> Lower(const Schedule& schedule) {
  RETURN_IF_ERROR(schedule.status());
  return Lowering(schedule).Run();
}

}  // namespace polynao::te
