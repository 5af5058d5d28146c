#include "compiler/poly/card/join_parts.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/stage_forms.h"

namespace polynao::poly {
namespace {

using ir::Expr;

class PartJoiner {
 public:
  PartJoiner(ir::Context& c, NestStages& stages, const std::function<bool(ir::Type)>& adds)
      : c_(c), stages_(stages), adds_(adds) {}

  bool Run() {
    absl::flat_hash_map<ir::Buffer, std::vector<size_t>> writers_of;
    for (size_t i = 0; i < stages_.list.size(); ++i) {
      writers_of[stages_.list[i].target].push_back(i);
    }
    std::vector<NestStage> list;
    for (size_t i = 0; i < stages_.list.size(); ++i) {
      const std::vector<size_t>& writers = writers_of.at(stages_.list[i].target);
      const std::optional<size_t> axis = AxisOfParts(writers);
      if (!axis) {
        list.push_back(stages_.list[i]);
        continue;
      }
      const size_t number = std::find(writers.begin(), writers.end(), i) - writers.begin();
      list.push_back(Part(stages_.list[i], *axis, number));
      parts_.push_back(list.back().target);
      if (i == writers.back()) list.push_back(Whole(stages_.list[i], writers));
    }
    stages_.list = std::move(list);
    return !parts_.empty();
  }

 private:
  // Each part fills and adds whole rows.
  static constexpr size_t kMostParts = 4;

  // The axis along which the stages store one part each of a whole tensor, in rows of several elements with gaps.
  std::optional<size_t> AxisOfParts(const std::vector<size_t>& writers) const {
    const ir::Buffer target = stages_.list[writers[0]].target;
    if (writers.size() < 2 || writers.size() > kMostParts || !adds_(target->type)) {
      return std::nullopt;
    }
    std::optional<size_t> axis;
    std::vector<std::pair<int64_t, int64_t>> parts;
    for (const size_t i : writers) {
      const NestStage& stage = stages_.list[i];
      if (stage.reduction || !stage.value) return std::nullopt;
      for (size_t d = 0; d < stage.axes.size(); ++d) {
        if (stage.low[d] == 0 && target->extents[d].IsInt(stage.extents[d])) continue;
        if (axis.value_or(d) != d) return std::nullopt;
        axis = d;
      }
      if (!axis) return std::nullopt;
      parts.emplace_back(stage.low[*axis], stage.low[*axis] + stage.extents[*axis]);
    }
    std::sort(parts.begin(), parts.end());
    int64_t end = 0;
    for (const auto& [begin, next] : parts) {
      if (begin != end || next <= begin) return std::nullopt;
      end = next;
    }
    // Parts along an outer axis have rows of their own.
    bool has_rows = false;
    for (size_t d = 0; d < *axis; ++d) has_rows = has_rows || !target->extents[d].IsInt(1);
    const bool is_last = *axis + 1 == target->extents.size();
    if (!has_rows || !is_last || !target->extents[*axis].IsInt(end)) return std::nullopt;
    // Nothing in between reads what is stored last now, or stores it in another shape.
    const ir::Buffer whole = stages_.WholeOf(target);
    for (size_t i = writers.front(); i <= writers.back(); ++i) {
      const NestStage& stage = stages_.list[i];
      if (stage.target != target && stages_.WholeOf(stage.target) == whole) return std::nullopt;
      for (const ir::Buffer read : ReadsOf(stage)) {
        if (stages_.WholeOf(read) == whole) return std::nullopt;
      }
    }
    return axis;
  }

  std::vector<ir::Var> NewAxes(const NestStage& stage) const {
    std::vector<ir::Var> axes;
    for (const ir::Var& axis : stage.axes) axes.push_back(c_.NewVar(axis.name(), axis.type()));
    return axes;
  }
  static std::vector<int64_t> ExtentsOf(ir::Buffer buffer) {
    std::vector<int64_t> extents;
    for (const Expr extent : buffer->extents) extents.push_back(extent.int_value());
    return extents;
  }

  NestStage Part(const NestStage& stage, size_t axis, size_t number) {
    NestStage part = stage;
    const ir::Buffer target = stage.target;
    part.target = c_.NewBuffer(StrCat(target->name, ".", number), target->type, target->extents);
    stages_.locals.push_back(part.target);
    part.axes = NewAxes(stage);
    part.low.assign(stage.low.size(), 0);
    part.extents = ExtentsOf(target);
    ir::VarMap by;
    for (size_t d = 0; d < stage.axes.size(); ++d) by[stage.axes[d]] = part.axes[d];
    const Expr place = part.axes[axis];
    const int64_t begin = stage.low[axis], end = begin + stage.extents[axis];
    if (begin > 0) by[stage.axes[axis]] = place - begin;
    const auto number_of = [&](int64_t i) { return c_.Int(place.type(), i); };
    Expr condition;
    if (begin > 0) condition = number_of(begin) <= place;
    if (end < part.extents[axis]) {
      const Expr before = place < number_of(end);
      condition = condition ? ir::And(condition, before) : before;
    }
    // What changes no number when it is added: x + 0 is 0 for x = -0.
    const Expr none =
        ir::IsFloat(target->type) ? c_.Float(target->type, -0.0) : c_.Int(target->type, 0);
    part.value = c_.Select(condition, ir::Substitute(stage.value, by), none);
    return part;
  }

  NestStage Whole(const NestStage& last, const std::vector<size_t>& writers) {
    NestStage whole = last;
    whole.name += ".joined";
    whole.axes = NewAxes(last);
    whole.low.assign(last.low.size(), 0);
    whole.extents = ExtentsOf(last.target);
    const std::vector<Expr> at(whole.axes.begin(), whole.axes.end());
    whole.value = Expr();
    for (size_t k = parts_.size() - writers.size(); k < parts_.size(); ++k) {
      const Expr part = c_.Load(parts_[k], at);
      whole.value = whole.value ? whole.value + part : part;
    }
    return whole;
  }

  ir::Context& c_;
  NestStages& stages_;
  const std::function<bool(ir::Type)>& adds_;
  std::vector<ir::Buffer> parts_;
};

}  // namespace

bool JoinParts(ir::Context& c, NestStages& stages, const std::function<bool(ir::Type)>& adds) {
  if (!PartJoiner(c, stages, adds).Run()) return false;
  TakeMarginsOff(c, stages);
  return true;
}

}  // namespace polynao::poly
