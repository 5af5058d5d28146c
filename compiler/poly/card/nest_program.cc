#include "compiler/poly/card/nest_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/nest_stages.h"
#include "compiler/te/card/card_program.h"
#include "compiler/te/card/rename.h"
#include "compiler/te/graph.h"

namespace polynao::poly {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;

te::Shape ShapeOf(Buffer buffer) {
  te::Shape shape;
  for (Expr extent : buffer->extents) shape.push_back(extent.int_value());
  return shape;
}

// The buffers that a stage reads.
absl::flat_hash_set<Buffer> ReadsOf(const NestStage& stage) {
  absl::flat_hash_set<Buffer> reads;
  for (Expr e : {stage.value, stage.element}) {
    if (!e) continue;
    ir::ForEachExpr(e, [&](Expr part) {
      if (part.Is(ExprKind::kLoad)) reads.insert(Buffer(part.buffer()));
    });
  }
  return reads;
}

// Whether the statement itself reads or stores the buffer, or names its address.
bool UsesBuffer(ir::Stmt s, Buffer buffer) {
  if (s.Is(ir::StmtKind::kStore) && s.buffer() == buffer) return true;
  bool uses = false;
  for (Expr operand : s.operands()) {
    ir::ForEachExpr(operand, [&](Expr e) {
      const bool names = e.Is(ExprKind::kLoad) || e.Is(ExprKind::kAddress);
      uses = uses || (names && Buffer(e.buffer()) == buffer);
    });
  }
  return uses;
}

// Some stages as one graph, in the order of the nest; the last one's target is the output.
class StageGraph {
 public:
  StageGraph(const ir::Function& function, ir::Type index_type)
      : g_(NewState(function, index_type)) {}

  void Add(const NestStage& stage) {
    const auto at = [&](const te::Axes& axes, ir::VarMap& by) {
      for (size_t d = 0; d < axes.size(); ++d) by[stage.axes[d]] = axes[d];
    };
    te::Tensor tensor;
    if (stage.reduction) {
      const te::Reducer reducer = *stage.reduction == ExprKind::kAdd   ? te::Reducer::kSum
                                  : *stage.reduction == ExprKind::kMin ? te::Reducer::kMin
                                                                       : te::Reducer::kMax;
      const std::string name = stage.value ? StrCat(stage.name, ".all") : NameOf(stage);
      tensor = g_.Compute(name, stage.extents, [&](const te::Axes& axes) {
        ir::VarMap by;
        at(axes, by);
        std::vector<te::ReduceAxis> over;
        for (const NestStage::ReduceRange& range : stage.ranges) {
          over.push_back(g_.ReduceAxisOf(range.var.name(), range.min, range.extent));
          by[range.var] = over.back();
        }
        return te::Body(reducer, Value(stage.element, by), over);
      });
      if (stage.value) {
        const te::Tensor all = tensor;
        tensor = g_.Compute(NameOf(stage), stage.extents, [&](const te::Axes& axes) {
          ir::VarMap by;
          at(axes, by);
          const Expr start = Value(stage.value, by);
          return start.context().Binary(*stage.reduction, start, all(axes));
        });
      }
    } else {
      tensor = g_.Compute(NameOf(stage), stage.extents, [&](const te::Axes& axes) {
        ir::VarMap by;
        at(axes, by);
        return Value(stage.value, by);
      });
    }
    computed_[stage.target] = {tensor, &stage};
    output_ = tensor;
  }

  const te::Tensor& output() const { return output_; }
  // The buffers of the placeholders, in order.
  const std::vector<Buffer>& inputs() const { return inputs_; }

 private:
  static std::shared_ptr<te::GraphState> NewState(const ir::Function& function,
                                                  ir::Type index_type) {
    auto state = std::make_shared<te::GraphState>();
    state->name = function.name;
    state->context = function.context;
    state->index_type = index_type;
    return state;
  }
  static std::string NameOf(const NestStage& stage) { return stage.target->name; }

  // `e` over the graph's tensors.
  Expr Value(Expr e, const ir::VarMap& by) {
    if (e.Is(ExprKind::kVar)) {
      const auto it = by.find(e);
      return it == by.end() ? e : it->second;
    }
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(Value(operand, by));
    if (!e.Is(ExprKind::kLoad)) {
      return operands.empty() ? e : e.context().Rebuild(e, operands);
    }
    const Buffer buffer(e.buffer());
    if (const auto it = computed_.find(buffer); it != computed_.end()) {
      const auto& [tensor, stage] = it->second;
      for (size_t d = 0; d < operands.size(); ++d) {
        if (stage->low[d] != 0) operands[d] = operands[d] - stage->low[d];
      }
      return tensor(operands);
    }
    auto [it, is_new] = placeholders_.try_emplace(buffer);
    if (is_new) {
      it->second = g_.Placeholder(buffer->name, ShapeOf(buffer), buffer->type);
      inputs_.push_back(buffer);
    }
    return it->second(operands);
  }

  te::Graph g_;
  absl::flat_hash_map<Buffer, std::pair<te::Tensor, const NestStage*>> computed_;
  absl::flat_hash_map<Buffer, te::Tensor> placeholders_;
  std::vector<Buffer> inputs_;
  te::Tensor output_;
};

class Scheduler {
 public:
  Scheduler(const ir::Function& function, const Target& target, const NestStages& stages)
      : function_(function), target_(target), stages_(stages), c_(*function.context) {}

  absl::StatusOr<NestProgram> Run() {
    FindGroups();
    MakeBuffers();
    for (size_t i = 0; i < stages_.list.size(); ++i) {
      if (group_of_[i] == i) RETURN_IF_ERROR(AddGroup(i));
    }
    Whole();
    return std::move(program_);
  }

 private:
  // Of each stage the last stage of its group: that of its only reader, or its own.
  void FindGroups() {
    const auto& list = stages_.list;
    const absl::flat_hash_set<Buffer> locals(stages_.locals.begin(), stages_.locals.end());
    absl::flat_hash_map<Buffer, int> writers;
    for (const NestStage& stage : list) ++writers[stage.target];
    group_of_.resize(list.size());
    for (size_t i = list.size(); i-- > 0;) {
      group_of_[i] = i;
      if (!locals.contains(list[i].target) || writers[list[i].target] > 1) continue;
      std::set<size_t> groups;
      for (size_t k = i + 1; k < list.size(); ++k) {
        if (ReadsOf(list[k]).contains(list[i].target)) groups.insert(group_of_[k]);
      }
      if (groups.size() != 1) continue;
      // What the group's tiles store, none of them may read.
      if (ReadsOf(list[i]).contains(list[*groups.begin()].target)) continue;
      // Nothing that the stage reads may be stored before the group.
      bool is_stable = true;
      for (size_t k = i + 1; k < *groups.begin(); ++k) {
        if (ReadsOf(list[i]).contains(list[k].target) && group_of_[k] == k) is_stable = false;
      }
      if (is_stable) group_of_[i] = *groups.begin();
    }
  }

  // Buffers of one dimension for parameters and locals.
  void MakeBuffers() {
    const auto make = [&](Buffer buffer) {
      int64_t elements = 1;
      for (int64_t extent : ShapeOf(buffer)) elements *= extent;
      flat_[buffer] = c_.NewBuffer(buffer->name, buffer->type, {c_.Int(IndexType(), elements)});
    };
    for (const ir::Param& param : function_.params) make(param.buffer);
    for (Buffer local : stages_.locals) make(local);
  }

  ir::Type IndexType() const {
    for (const NestStage& stage : stages_.list) {
      for (const ir::Var& axis : stage.axes) {
        if (axis.type() == ir::Type::kI64) return ir::Type::kI64;
      }
      for (const NestStage::ReduceRange& range : stage.ranges) {
        if (range.var.type() == ir::Type::kI64) return ir::Type::kI64;
      }
    }
    return ir::Type::kI32;
  }

  absl::Status AddGroup(size_t last) {
    std::vector<size_t> members;
    for (size_t i = 0; i <= last; ++i) {
      if (group_of_[i] == last) members.push_back(i);
    }
    const absl::Status together = AddPiece(members);
    if (together.ok() || members.size() == 1) return together;
    program_.notes.push_back(StrCat("not together: ", together.message()));
    // One after the other.
    for (size_t i : members) RETURN_IF_ERROR(AddPiece({i}));
    return absl::OkStatus();
  }

  absl::Status AddPiece(const std::vector<size_t>& members) {
    StageGraph graph(function_, IndexType());
    std::string note;
    for (size_t i : members) {
      graph.Add(stages_.list[i]);
      StrAppend(&note, note.empty() ? "" : " ", stages_.list[i].name);
    }
    const NestStage& last = stages_.list[members.back()];
    absl::StatusOr<te::CardProgram> program = te::CardProgram::Create(graph.output(), target_);
    if (!program.ok()) return WithContext(StrCat("'", last.place, "'"), program.status());
    const std::vector<te::CardSchedule> schedules = program->Schedules({}, true);
    if (schedules.empty()) return InvalidInput("'", last.place, "': no schedule fits");
    ASSIGN_OR_RETURN(const ir::Function part, program->Build(schedules[0].choice));
    te::Rename::Map to;
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      to[part.params[i].buffer] = {.to = flat_.at(graph.inputs()[i])};
    }
    const Buffer output = part.params.back().buffer;
    te::Renamed& place = to[output];
    place.to = flat_.at(last.target);
    const te::Shape whole = ShapeOf(last.target);
    if (last.extents != whole) {
      RETURN_IF_ERROR(PlaceBox(last, whole, ShapeOf(output), place));
    }
    ir::Stmt body = te::Rename(to).Mutate(part.body);
    for (; body.Is(ir::StmtKind::kAllocate) && body.buffer()->scope == "gmem"; body = body.body()) {
      temporaries_.push_back(body.buffer());
    }
    body_.push_back(body);
    for (size_t i : members) {
      const NestStage& stage = stages_.list[i];
      if (stage.reduction == ExprKind::kAdd && ir::IsFloat(stage.target->type)) {
        program_.reassociates = true;
      }
    }
    program_.cycles += schedules[0].cycles;
    program_.notes.push_back(StrCat(note, " -> ", last.target->name));
    return absl::OkStatus();
  }

  // Where the elements of a box stand in the whole tensor.
  static absl::Status PlaceBox(const NestStage& stage, const te::Shape& whole,
                               const te::Shape& shape, te::Renamed& place) {
    std::vector<int64_t> strides(whole.size(), 1);
    for (size_t d = whole.size(); d-- > 1;) strides[d - 1] = strides[d] * whole[d];
    for (size_t d = 0; d < whole.size(); ++d) place.offset += stage.low[d] * strides[d];
    if (shape == stage.extents) {
      place.strides = strides;
      return absl::OkStatus();
    }
    // Another shape of as many elements: they must stand side by side.
    size_t first = 0;
    while (first < whole.size() && stage.extents[first] == 1) ++first;
    for (size_t d = first + 1; d < whole.size(); ++d) {
      if (stage.extents[d] != whole[d]) {
        return InvalidInput("'", stage.place, "': expected a store of whole rows");
      }
    }
    place.strides.assign(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;) place.strides[d - 1] = place.strides[d] * shape[d];
    return absl::OkStatus();
  }

  void Whole() {
    ir::Function& whole = program_.function;
    whole.name = function_.name;
    whole.context = function_.context;
    for (const ir::Param& param : function_.params) {
      whole.params.push_back(
          {.var = {}, .buffer = flat_.at(param.buffer), .access = param.access, .scope = ""});
    }
    whole.body = c_.Seq(body_);
    for (Buffer local : stages_.locals) temporaries_.push_back(flat_.at(local));
    for (Buffer temporary : temporaries_) {
      const auto uses = [&](ir::Stmt s) { return UsesBuffer(s, temporary); };
      if (ir::AnyStmt(whole.body, uses)) whole.body = c_.Allocate(temporary, whole.body);
    }
  }

  const ir::Function& function_;
  const Target& target_;
  const NestStages& stages_;
  ir::Context& c_;
  std::vector<size_t> group_of_;
  absl::flat_hash_map<Buffer, Buffer> flat_;
  std::vector<ir::Stmt> body_;
  std::vector<Buffer> temporaries_;
  NestProgram program_;
};

}  // namespace

absl::StatusOr<NestProgram> ScheduleForCard(const ir::Function& function, const Target& target) {
  ASSIGN_OR_RETURN(const NestStages stages, FindStages(function));
  return Scheduler(function, target, stages).Run();
}

}  // namespace polynao::poly
