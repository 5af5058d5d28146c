#include "compiler/te/stages.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/te/rewrite_loads.h"

namespace polynao::te {
namespace {

using ir::Buffer;
using ir::ExprKind;
using ir::ForKind;

class Stages {
 public:
  Stages(const Schedule& schedule, Plans& plans)
      : schedule_(schedule), graph_(plans.graph), plans_(plans) {}

  absl::Status Run() {
    MakePlans();
    RETURN_IF_ERROR(Attach());
    return ResolveInPlace();
  }

 private:
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
      plans_.list.push_back(std::make_unique<StagePlan>());
      StagePlan& plan = *plans_.list.back();
      plan.stage = stages.at(operation);
      plan.bodies = final_bodies.at(operation);
      plan.order = plans_.list.size();
      plan.attached.resize(plan.data().leaves.size());
      plan.stored.resize(plan.data().leaves.size());
      plans_.by_operation[operation] = &plan;
      for (const Operation* read : ReadOperations(graph_, plan.bodies)) {
        auto it = plans_.by_operation.find(read);
        if (it != plans_.by_operation.end()) it->second->readers.push_back(&plan);
      }
    }
  }

  // Resolves ComputeAt and checks that every reader is inside the loop.
  absl::Status Attach() {
    for (const auto& plan : plans_.list) {
      const StageData& data = plan->data();
      if (data.attach_stage == nullptr) continue;
      const std::string place =
          StrCat("stage ", plan->name(), ": ComputeAt(", data.attach_stage->name(), ", ",
                 data.attach_axis->name, "): ");
      auto it = plans_.by_operation.find(data.attach_stage->data().operation);
      if (it == plans_.by_operation.end()) {
        return InvalidInput(place, "stage ", data.attach_stage->name(),
                            " is inlined or needed by no output");
      }
      StagePlan& consumer = *it->second;
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
    for (const auto& plan : plans_.list) {
      if (plan->attach_plan == nullptr) continue;
      for (const StagePlan* reader : plan->readers) {
        if (IsInside(*reader, *plan->attach_plan, plan->attach_leaf)) continue;
        return InvalidInput("stage ", plan->name(), ": ComputeAt(", plan->attach_plan->name(), ", ",
                            plan->data().attach_axis->name, "): stage ", reader->name(), " reads ",
                            plan->name(), " outside that loop");
      }
    }
    return absl::OkStatus();
  }

  // Resolves InPlace and checks all of its conditions but the size, which is not known yet.
  absl::Status ResolveInPlace() {
    for (const auto& plan : plans_.list) {
      const Operation* source = plan->data().in_place_of;
      if (source == nullptr) continue;
      const auto it = plans_.by_operation.find(source);
      std::string why;
      if (it == plans_.by_operation.end()) {
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
  static std::string WhyNotInPlace(const StagePlan& plan, const StagePlan& source) {
    const Operation& from = *source.data().operation;
    const Operation& to = *plan.data().operation;
    const auto is_here = [&](const StagePlan& p) {
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
    for (const StagePlan* reader : source.readers) {
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
  static bool IsInside(const StagePlan& plan, const StagePlan& outer, size_t leaf) {
    for (const StagePlan* p = &plan; p != nullptr; p = p->attach_plan) {
      if (p == &outer) return true;
      if (p->attach_plan == &outer) return p->attach_leaf >= leaf;
    }
    return false;
  }

  const Schedule& schedule_;
  const GraphState& graph_;
  Plans& plans_;
};

}  // namespace

absl::Status PlanStages(const Schedule& schedule, Plans& plans) {
  return Stages(schedule, plans).Run();
}

}  // namespace polynao::te
