#include "compiler/te/lower.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/visit.h"
#include "compiler/te/plan.h"
#include "compiler/te/regions.h"
#include "compiler/te/rewrite_loads.h"
#include "compiler/te/stages.h"

namespace polynao::te {
namespace {

using ir::Buffer;
using ir::Context;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;

class Lowering {
 public:
  explicit Lowering(const Schedule& schedule)
      : schedule_(schedule),
        graph_(*schedule.graph()),
        context_(*graph_.context),
        index_type_(graph_.index_type),
        plans_(graph_) {}

  absl::StatusOr<ir::Function> Run() {
    RETURN_IF_ERROR(PlanStages(schedule_, plans_));
    MakeParams();
    // Readers first: what they read decides what a stage computes.
    for (auto it = plans_.list.rbegin(); it != plans_.list.rend(); ++it) {
      RETURN_IF_ERROR(PlanLoops(**it));
      RETURN_IF_ERROR(PlanBuffers(**it));
    }
    std::vector<StagePlan*> top;
    for (const auto& plan : plans_.list) {
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
  // ---- parameters ----

  std::vector<Expr> ShapeExprs(const Shape& shape) const {
    std::vector<Expr> extents;
    for (int64_t extent : shape) extents.push_back(context_.Int(index_type_, extent));
    return extents;
  }

  void MakeParams() {
    // The shapes in which bodies read each placeholder.
    absl::flat_hash_map<const Operation*, std::vector<Shape>> shapes;
    for (const auto& plan : plans_.list) {
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

  // ---- loops ----

  absl::Status CheckExtent(const StagePlan& plan, const AxisData& axis, int64_t extent) const {
    if (index_type_ == Type::kI64 || extent <= std::numeric_limits<int32_t>::max()) {
      return absl::OkStatus();
    }
    return InvalidInput("stage ", plan.name(), ": axis ", axis.name, " of extent ", extent,
                        " needs i64 indices: give Graph the index type i64");
  }

  absl::Status FindExtents(StagePlan& plan) {
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
      const int64_t extent = extent_of(relation.parent) + relation.before;
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

  absl::Status CheckThreads(const StagePlan& plan) const {
    for (const AxisData* leaf : plan.data().leaves) {
      if (leaf->kind != ForKind::kThread) continue;
      // What threads of a block share they also compute together.
      if (IsShared(plan) && IsBlockThread(leaf)) continue;
      for (const StagePlan* p = &plan; p->attach_plan != nullptr; p = p->attach_plan) {
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

  absl::Status PlanLoops(StagePlan& plan) {
    RETURN_IF_ERROR(FindRegion(plan, plans_));
    if (plan.head.empty()) return MakeLoops(plan);
    // What the stage reads, its parts read.
    std::vector<StagePlan*> parts;
    for (auto* some : {&plan.head, &plan.steps}) {
      for (const auto& part : *some) {
        RETURN_IF_ERROR(MakeLoops(*part));
        parts.push_back(part.get());
      }
    }
    for (const auto& producer : plans_.list) {
      std::vector<StagePlan*>& readers = producer->readers;
      if (std::erase(readers, &plan) > 0) readers.insert(readers.end(), parts.begin(), parts.end());
    }
    return absl::OkStatus();
  }

  absl::Status MakeLoops(StagePlan& plan) {
    RETURN_IF_ERROR(FindExtents(plan));
    RETURN_IF_ERROR(CheckThreads(plan));
    const StageData& data = plan.data();
    for (const AxisData* leaf : data.leaves) {
      const Expr var = NewLoopVar(*leaf, "");
      plan.leaf_vars[leaf] = var;
      const int64_t min = plans_.LoopMin(plan, leaf);
      plans_.ranges[var] = ConstRange{min, min + std::max<int64_t>(1, plan.extents.at(leaf)) - 1};
    }
    const ir::VarMap vars = plans_.BodyVars(plan, plans_.FindAxisValues(plan, plan.leaf_vars));
    for (const Body& body : plan.bodies) plan.values.push_back(ir::Substitute(body.value, vars));
    return absl::OkStatus();
  }

  // Threads are known by their axis: thread (tid, 4).
  Expr NewLoopVar(const AxisData& leaf, std::string_view suffix) const {
    return leaf.kind == ForKind::kThread ? context_.NewVar(leaf.thread, index_type_)
                                         : context_.NewVar(StrCat(leaf.name, suffix), index_type_);
  }

  absl::Status PlanBuffers(StagePlan& plan) {
    if (const StagePlan* reader = plan.in_place_reader) {
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
      const StagePlan& plan = *plans_.by_operation.at(operation);
      for (size_t d = 0; d < indices.size(); ++d) {
        if (plan.start[d] == plan.place[d]) continue;
        indices[d] = plans_.ToExpr(Decompose(indices[d]) - plan.start[d] + plan.place[d]);
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
  Stmt Guarded(const StagePlan& plan, const AxisValues& values, bool with_reduce, Stmt stmt) const {
    Expr condition;
    auto require = [&](Expr e) { condition = condition ? ir::And(condition, e) : e; };
    for (const AxisRelation& relation : plan.data().relations) {
      if (!plans_.NeedsGuard(plan, relation) || (relation.parent->is_reduce && !with_reduce))
        continue;
      const Expr value = values.at(relation.parent);
      if (relation.before > 0) require(context_.Int(index_type_, 0) <= value);
      require(value < plan.extents.at(relation.parent));
    }
    for (size_t d = 0; d < plan.size.size(); ++d) {
      const Expr coordinate = plans_.Coordinate(plan, values, d);
      if (plan.below[d]) require(context_.Int(index_type_, 0) <= coordinate);
      if (plan.above[d]) require(coordinate < plan.data().operation->shape[d]);
      for (const SymbolicInterval& limit : plan.limits[d]) {
        // What both sides have in common goes: tid*12 + xo*8 + j < tid*12 + 12 is xo*8 + j < 12.
        LinearForm left = Decompose(coordinate) - End(limit);
        const int64_t right = -left.constant();
        left = left + LinearForm::Constant(right);
        require(plans_.ToExpr(left) < right);
      }
    }
    return condition ? context_.If(condition, stmt) : stmt;
  }

  std::vector<Expr> StoreIndices(const StagePlan& plan, const AxisValues& values) const {
    std::vector<Expr> indices;
    for (size_t d = 0; d < plan.size.size(); ++d) {
      const Expr value = values.at(plan.data().spatial[d]);
      indices.push_back(
          plan.place[d] == LinearForm() ? value : plans_.ToExpr(plan.place[d] + Decompose(value)));
    }
    return indices;
  }

  Stmt Loop(const StagePlan& plan, const AxisData* leaf, Expr var,
            const std::vector<AxisPragma>& pragmas, Stmt body) const {
    const int64_t min = plans_.LoopMin(plan, leaf);
    Stmt loop = context_.For(var, context_.Int(index_type_, min),
                             context_.Int(index_type_, plan.extents.at(leaf)), body, leaf->kind,
                             leaf->thread);
    for (auto it = pragmas.rbegin(); it != pragmas.rend(); ++it) {
      loop = context_.Pragma(it->key, it->arguments, loop);
    }
    return loop;
  }

  // Stores the identity in all elements that the reduce loops from leaf `first` on update.
  Stmt Initialisation(const StagePlan& plan, size_t first) const {
    const auto& leaves = plan.data().leaves;
    AxisValues vars = plan.leaf_vars;
    for (size_t i = first; i < leaves.size(); ++i) {
      if (leaves[i]->is_reduce) continue;
      vars[leaves[i]] = NewLoopVar(*leaves[i], ".init");
    }
    const AxisValues values = plans_.FindAxisValues(plan, vars);
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
  Stmt Update(const StagePlan& plan) const {
    const AxisValues values = plans_.FindAxisValues(plan, plan.leaf_vars);
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
  Stmt Inside(const StagePlan& plan, size_t depth) const {
    const auto& leaves = plan.data().leaves;
    Stmt stmt = depth == leaves.size() ? Update(plan)
                                       : Loop(plan, leaves[depth], plan.leaf_vars.at(leaves[depth]),
                                              leaves[depth]->pragmas, Inside(plan, depth + 1));
    if (plan.is_reduction() && depth == plan.FirstReduceLeaf()) {
      stmt = context_.Seq({Initialisation(plan, depth), stmt});
    }
    if (depth == 0) return stmt;
    // The heads of windows stand before the loop, and behind what they read.
    const std::vector<StagePlan*>& windows = plan.stored[depth - 1];
    std::vector<Stmt> stmts;
    for (const StagePlan* window : windows) AddParts(window->head, stmts);
    stmts.push_back(stmt);
    stmt = WithStages(plan.attached[depth - 1], context_.Seq(stmts));
    for (auto it = windows.rbegin(); it != windows.rend(); ++it) {
      const Expr ahead = context_.I64((*it)->data().ahead);
      stmt = context_.Pragma(pragma::kSlidingWindow, {ahead}, WithStorage(**it, stmt));
    }
    return stmt;
  }

  // The loops of `plans` before `rest`, and the storage of their results around both.
  Stmt WithStages(const std::vector<StagePlan*>& plans, Stmt rest) const {
    std::vector<Stmt> stmts;
    for (const StagePlan* plan : plans) {
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
  void AddParts(const std::vector<std::unique_ptr<StagePlan>>& parts,
                std::vector<Stmt>& stmts) const {
    for (size_t i = 0; i < parts.size(); ++i) {
      const StagePlan& part = *parts[i];
      Stmt stmt = Inside(part, 0);
      if (part.restarts) stmt = context_.If(part.restarts, Inside(*parts[++i], 0), stmt);
      if (part.condition) stmt = context_.If(part.condition, stmt);
      const bool is_plain = !part.condition && !part.restarts;
      stmts.push_back(is_plain ? stmt : context_.Pragma(pragma::kNoPartition, {}, stmt));
    }
  }

  Stmt WithStorage(const StagePlan& plan, Stmt stmt) const {
    for (size_t i = plan.buffers.size(); i-- > 0;) {
      if (!plan.is_allocated[i]) continue;
      stmt = context_.Allocate(plan.buffers[i], stmt);
      const int copies = plan.data().copies;
      if (copies == 1) continue;
      // Two is what the pragma means without an argument.
      std::vector<Expr> arguments;
      if (copies > 2) arguments.push_back(context_.I64(copies));
      stmt = context_.Pragma(pragma::kDoubleBuffer, arguments, stmt);
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
  Plans plans_;
  absl::flat_hash_map<const Operation*, Input> inputs_;
  absl::flat_hash_map<Buffer, Buffer> outputs_;  // by the graph's buffer
  std::vector<ir::Param> params_;
};

}  // namespace

absl::StatusOr<ir::Function> Lower(const Schedule& schedule) {
  RETURN_IF_ERROR(schedule.status());
  return Lowering(schedule).Run();
}

}  // namespace polynao::te
