#include "compiler/te/card/contraction_group.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/visit.h"
#include "compiler/mapping/search.h"
#include "isa/granularity.h"

namespace polynao::te {
namespace {

using ir::ExprKind;

Expr WithoutCast(Expr e) { return e.Is(ExprKind::kCast) ? e.operand(0) : e; }

// The one load below `e`; none if there are several.
std::optional<Expr> OnlyLoad(Expr e) {
  std::vector<Expr> loads;
  ir::ForEachExpr(e, [&](Expr x) {
    if (x.Is(ExprKind::kLoad)) loads.push_back(x);
  });
  return loads.size() == 1 ? std::optional(loads[0]) : std::nullopt;
}

// Whether the compute is select(inside, source, constant), the condition of its
// axes alone.
bool IsPad(const Operation& operation) {
  if (operation.kind != Operation::Kind::kCompute || operation.bodies.size() != 1) return false;
  const Body& body = operation.bodies[0];
  if (body.reducer || !body.value.Is(ExprKind::kSelect)) return false;
  bool reads = false;
  ir::ForEachExpr(body.value.operand(0), [&](Expr e) { reads = reads || e.Is(ExprKind::kLoad); });
  return !reads && body.value.operand(1).Is(ExprKind::kLoad) && body.value.operand(2).IsConst();
}

// Whether each element of the compute is that element of another tensor.
bool IsCopy(const Operation& operation) {
  const Body& body = operation.bodies[0];
  return !body.reducer && body.value.Is(ExprKind::kLoad) &&
         std::equal(operation.axes.begin(), operation.axes.end(), body.value.operands().begin(),
                    body.value.operands().end());
}

}  // namespace

absl::StatusOr<ContractionGroup> ContractionGroup::Create(const Tensor& output,
                                                          const LaneInstructions& instructions,
                                                          const Target& target,
                                                          const TileExtras& extras) {
  RETURN_IF_ERROR(output.graph()->status);
  ContractionGroup group(output, instructions, target, extras);
  if (output.rank() < group.lead() + 2 || output.rank() > group.lead() + 3) {
    return InvalidInput("tensor ", output.name(),
                        ": expected rows, or rows and columns, of channels, found ", output.rank(),
                        " dimensions");
  }
  RETURN_IF_ERROR(group.AddLevel(output));
  return group;
}

absl::Status ContractionGroup::AddLevel(const Tensor& result) {
  Level level;
  ASSIGN_OR_RETURN(level.steps, CutIntoSteps(result, *instructions_));
  for (size_t i = 0; i < level.steps.list.size(); ++i) {
    const Step& step = level.steps.list[i];
    if (step.tensor == nullptr || step.tensor->kind != Operation::Kind::kCompute) continue;
    const bool is_whole =
        std::all_of(step.varies.begin(), step.varies.end(), [](bool v) { return v; });
    if (level.contracted >= 0 || !is_whole) {
      return InvalidInput("tensor ", result.name(),
                          ": expected one convolution or product, of its own "
                          "shape, found also ",
                          step.name);
    }
    level.contracted = static_cast<int>(i);
    ASSIGN_OR_RETURN(level.contraction, ReadContraction(*step.tensor));
  }
  for (size_t i = 0; i < level.steps.list.size(); ++i) {
    const isa::Instruction* form;
    const std::vector<Use> uses = Uses(level, i, form);
    const auto has = [&uses](Use use) {
      return std::find(uses.begin(), uses.end(), use) != uses.end();
    };
    if (!has(Use::kSpread) || has(Use::kWhole) || IsRow(level.steps.list[i])) continue;
    if (level.steps.domain.back() % isa::kVectorGroup == 0) continue;
    return InvalidInput("tensor ", level.steps.list[i].name,
                        ": expected channels in whole groups of ", isa::kVectorGroup,
                        ", since all operands of a step are repeated, found ",
                        level.steps.domain.back());
  }
  const Operation* source = level.contraction.source;
  levels_.push_back(std::move(level));
  if (source == nullptr || source->kind != Operation::Kind::kCompute) return absl::OkStatus();
  return AddLevel(Tensor(result.graph(), source));
}

absl::StatusOr<Contraction> ContractionGroup::ReadContraction(const Operation& operation) const {
  const auto fail = [&](const std::string& what) {
    return InvalidInput("tensor ", operation.name,
                        ": expected a sum of products of an image and weights: ", what);
  };
  const GraphState& graph = *output_.graph();
  const Body& body = operation.bodies[0];
  if (operation.bodies.size() != 1 || body.reducer != Reducer::kSum ||
      !body.value.Is(ExprKind::kMul)) {
    return fail("it is no such sum");
  }
  Contraction c;
  c.sums = &operation;
  // Weights: the last axis, then the axes of the sum in their order, the last one in the sum's part.
  Axes row = {operation.axes.back()};
  row.insert(row.end(), body.axes.begin(), body.axes.end());
  if (lead() > 0) {
    row.back() = operation.axes[0] * body.axes.back().extent + Expr(body.axes.back());
  }
  for (size_t side : {0, 1}) {
    const std::optional<Expr> load = OnlyLoad(body.value.operand(side));
    if (!load || WithoutCast(body.value.operand(side)) != *load)
      return fail("a factor is no tensor");
    const Operation* read = graph.producers.at(ir::Buffer(load->buffer())).first;
    const bool is_row =
        std::equal(row.begin(), row.end(), load->operands().begin(), load->operands().end());
    const bool is_weights = is_row && read->kind != Operation::Kind::kCompute;
    if (is_weights && c.weights == nullptr && (lead() == 0 || read->is_constant)) {
      c.weights = read;
    } else {
      c.image = *load;
    }
  }
  if (!c.image) return fail("both factors are weights");
  c.type = c.image.type();
  const isa::Instruction* found =
      instructions_->SumOfProducts(c.type, operation.axes.size() - lead(), body.axes.size());
  const std::string rate = StrCat("tensor.macs_", ir::TypeName(c.type));
  const int64_t* const macs = machine().Find(rate);
  if (macs == nullptr || *macs == 0) {
    return absl::UnimplementedError(
        StrCat("tensor ", operation.name, " of ", ir::TypeName(c.type), ": ", machine().name,
               " has no tensor instruction for it (", macs == nullptr ? "there is no " : "", rate,
               macs == nullptr ? ")" : " = 0)"));
  }
  if (c.weights == nullptr) return fail("no factor is weights of one row for each channel");
  if (found == nullptr) return fail("no instruction has these loops");
  for (const ReduceAxis& axis : body.axes) c.filter_elements *= axis.extent;
  const Operation* image = graph.producers.at(ir::Buffer(c.image.buffer())).first;
  c.source = image;
  if (IsPad(*image)) {
    c.pad = image;
    c.source = graph.producers.at(ir::Buffer(image->bodies[0].value.operand(1).buffer())).first;
  }
  // What is only a copy of an input is that input.
  while (c.source->kind == Operation::Kind::kCompute && IsCopy(*c.source)) {
    c.source = graph.producers.at(ir::Buffer(c.source->bodies[0].value.buffer())).first;
  }
  c.family = found->family;
  c.macs_per_cycle = static_cast<double>(*macs);
  return c;
}

int64_t ContractionGroup::Lanes(int64_t block) { return RoundUp(block, isa::kTensorLanes); }

bool ContractionGroup::IsRow(const Step& step) {
  return std::none_of(step.varies.begin(), step.varies.end() - 1, [](bool v) { return v; });
}

std::vector<ContractionGroup::Use> ContractionGroup::Uses(const Level& level, size_t step,
                                                          const isa::Instruction*& form) const {
  const Step& s = level.steps.list[step];
  form = s.instruction;
  std::vector<Use> uses;
  for (size_t operand : s.operands) {
    const bool is_whole = level.steps.list[operand].varies == s.varies;
    uses.push_back(is_whole ? Use::kWhole : Use::kSpread);
  }
  for (const Step::RowForm& row : s.row_forms) {
    const Step& operand = level.steps.list[s.operands[row.operand]];
    if (uses[row.operand] != Use::kSpread || !IsRow(operand) || !operand.varies.back()) continue;
    form = row.instruction;
    uses[row.operand] = Use::kRow;
    break;
  }
  return uses;
}

std::vector<int> ContractionGroup::Places(const Level& level) const {
  const std::vector<Step>& steps = level.steps.list;
  const std::vector<size_t> last = level.steps.LastReaders();
  std::vector<int> places(steps.size(), -1);
  // Of steps that are repeated, or read in another loop than their own, the last reader is not the last in time. And
  // preprocess keeps the guards of a nest that overwrites what a nest before it has read.
  std::vector<bool> is_kept(steps.size());
  std::vector<int> readers(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const isa::Instruction* form;
    const std::vector<Use> uses = Uses(level, i, form);
    for (size_t o = 0; o < uses.size(); ++o) {
      const size_t operand = steps[i].operands[o];
      const bool is_elsewhere = uses[o] == Use::kSpread || IsRow(steps[i]) != IsRow(steps[operand]);
      if (is_elsewhere || ++readers[operand] > 1) is_kept[operand] = true;
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].tensor != nullptr) continue;
    const isa::Instruction* form;
    const std::vector<Use> uses = Uses(level, i, form);
    for (size_t o = 0; o < uses.size(); ++o) {
      const size_t operand = steps[i].operands[o];
      const bool is_free = places[i] < 0 && uses[o] == Use::kWhole && last[operand] == i &&
                           operand != level.steps.result && !is_kept[operand] &&
                           steps[operand].type == steps[i].type;
      if (is_free) places[i] = static_cast<int>(operand);
    }
  }
  return places;
}

ContractionGroup::Tiling ContractionGroup::StreamTiling(const mapping::Layer& layer,
                                                        const mapping::Mapping& m) const {
  const mapping::Shares shares = mapping::SharesOf(layer, card_, m);
  Tiling t = {.across = m.across, .block = m.block};
  t.cluster_rows = shares.cluster_rows, t.cluster_channels = shares.cluster_channels;
  t.core_rows = t.rows = shares.core_rows;
  t.core_columns = t.columns = shares.core_columns;
  if (shares.image_columns != layer.image_columns.Of(shares.core_columns)) {
    t.image_columns = shares.image_columns;
    // As much is there behind the last core's columns.
    const int64_t last = (m.columns_apart - 1) * shares.core_columns * layer.image_columns.step;
    t.padded_columns = std::max(layer.image_columns.whole, last + t.image_columns);
  }
  t.weights_by_smem = m.weights_by_smem;
  t.stream = m;
  return t;
}

std::vector<CardSchedule> ContractionGroup::Streams(const CardChoice& wanted, bool only_first,
                                                    double limit) const {
  std::vector<CardSchedule> schedules;
  const std::map<std::string, int64_t> names = mapping::Mapping().Values();
  for (const auto& [name, value] : wanted) {
    if (name != kStream && !names.contains(name)) return schedules;
  }
  const std::optional<mapping::Layer> layer = StreamLayer();
  if (!layer) return schedules;
  if (wanted.size() == names.size() + 1) {  // all that there is to choose
    const absl::StatusOr<mapping::Mapping> m = MappingOf(wanted);
    const double cycles = m.ok() ? mapping::CostOf(*layer, card_, *m).cycles() : 0;
    if (m.ok()) schedules.push_back({.choice = wanted, .cycles = cycles});
    return schedules;
  }
  const bool is_searched = only_first && wanted.empty();
  for (const mapping::Ranked& ranked : is_searched ? mapping::Search(*layer, card_, limit).best
                                                   : mapping::AllMappings(*layer, card_)) {
    CardSchedule schedule;
    schedule.cycles = ranked.cycles;
    for (const auto& [name, value] : ranked.mapping.Values()) schedule.choice[name] = value;
    schedule.choice[kStream] = 1;
    if (!Agrees(schedule.choice, wanted)) continue;
    schedules.push_back(std::move(schedule));
    if (only_first) break;
  }
  return schedules;
}

std::vector<CardSchedule> ContractionGroup::Schedules(const CardChoice& wanted, bool only_first,
                                                      double limit) const {
  std::vector<CardSchedule> schedules = Streams(wanted, only_first, limit);
  if (only_first && !schedules.empty()) limit = std::min(limit, schedules[0].cycles);
  // Results of more pixels go by way of SMEM.
  if (lead() == 0 && !extras_.sub_pixels) {
    for (CardSchedule& tiling : Tilings(wanted, only_first, limit)) {
      schedules.push_back(std::move(tiling));
    }
  }
  std::sort(schedules.begin(), schedules.end(), IsBefore);
  if (only_first && schedules.size() > 1) schedules.resize(1);
  return schedules;
}

absl::StatusOr<mapping::Mapping> ContractionGroup::MappingOf(const CardChoice& choice) const {
  std::string text;
  for (const auto& [name, value] : choice) {
    if (name != kStream) StrAppend(&text, " ", name, "=", value);
  }
  ASSIGN_OR_RETURN(const mapping::Mapping m, mapping::ParseMapping(text));
  const std::optional<mapping::Layer> layer = StreamLayer();
  const std::string why =
      layer ? mapping::WhyNot(*layer, card_, m) : std::string("its weights cannot stream");
  if (!why.empty()) return InvalidInput("mapping", text, " of ", output_.name(), ": ", why);
  return m;
}

absl::StatusOr<mapping::Estimate> ContractionGroup::EstimateOf(const CardChoice& choice) const {
  if (choice.contains(kStream)) {
    ASSIGN_OR_RETURN(const mapping::Mapping m, MappingOf(choice));
    const mapping::Layer layer = *StreamLayer();
    return mapping::Estimate{.kind = "weights stream",
                             .cost = mapping::CostOf(layer, card_, m),
                             .needs = mapping::NeedsOf(layer, card_, m)};
  }
  ASSIGN_OR_RETURN(const Tiling tiling, TilingOf(choice));
  return mapping::Estimate{.kind = "tiles",
                           .cost = Cost(tiling, std::numeric_limits<double>::infinity()),
                           .needs = NeedsOf(tiling)};
}

std::string ContractionGroup::WhyNone(const CardChoice& wanted) const {
  const CardChoice of_tilings = ChoiceOf({});
  CardChoice of_streams = {{kStream, 1}};
  for (const auto& [name, value] : mapping::Mapping().Values()) of_streams[name] = value;
  bool can_stream = true, can_tile = lead() == 0;
  for (const auto& [name, value] : wanted) {
    can_stream = can_stream && of_streams.contains(name);
    can_tile = can_tile && of_tilings.contains(name);
  }
  std::pair<double, std::string> nearest = {0, ""};
  if (can_tile && !extras_.sub_pixels) nearest = NearestTiling(wanted);
  const auto stream = wanted.find(kStream);
  if (!can_stream || (stream != wanted.end() && stream->second != 1)) return nearest.second;
  const std::optional<mapping::Layer> layer = StreamLayer();
  if (!layer) return can_tile ? nearest.second : "its weights cannot stream";
  CardChoice values = wanted;
  values.erase(kStream);
  const std::optional<mapping::Misfit> misfit = mapping::NearestMisfit(*layer, card_, values);
  const bool is_nearer = misfit && (nearest.first == 0 || misfit->times < nearest.first);
  if (!is_nearer) return nearest.second;
  return StrCat(misfit->why, " with stream=1 ", misfit->mapping.Text());
}

}  // namespace polynao::te
