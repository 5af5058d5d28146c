#include "compiler/te/card/card_program.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/float_rules.h"
#include "compiler/ir/parts_layout.h"
#include "compiler/ir/visit.h"
#include "compiler/te/card/channel_blocks.h"
#include "compiler/te/card/column_sums.h"
#include "compiler/te/card/graph_copy.h"
#include "compiler/te/card/lane_instructions.h"
#include "compiler/te/card/rename.h"
#include "compiler/te/card/split_reduction.h"
#include "compiler/te/card/steps.h"
#include "compiler/te/card/sub_pixel_graph.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"

namespace polynao::te {

// A contraction's group and a second one, which reads its results out of GMEM.
struct TwoGroups {
  Tensor output;             // of the graph of both
  const Operation* between;  // what the first one stores
  std::string name;          // of that in GMEM
  CardGroup first, second;
  std::vector<const Operation*> first_inputs, second_inputs;  // in the order of the placeholders
  mapping::Estimate estimate;                                 // of the second
  double more = 0;                                            // cycles of that, and of barriers
};

namespace {

using ir::Buffer;
using ir::Stmt;
using Operations = absl::flat_hash_set<const Operation*>;

bool IsSum(const Operation& operation) {
  return operation.kind == Operation::Kind::kCompute && operation.bodies[0].reducer.has_value();
}

// Several readers might want several layouts.
bool IsReadOnce(const GraphState& graph, const Operation& operation) {
  int readers = 0;
  for (const Operation& other : graph.operations) {
    const std::vector<const Operation*> read = ReadOperations(graph, other.bodies);
    if (other.base == &operation || std::find(read.begin(), read.end(), &operation) != read.end()) {
      ++readers;
    }
  }
  return readers == 1;
}

// A part of a graph as a graph of its own, in the same context: `output` and what it needs up to the operations that
// are stored, which are placeholders there.
struct Part {
  std::shared_ptr<GraphState> graph;
  std::vector<const Operation*>
      inputs;         // in the whole graph, in the order of the part's placeholders
  OwnOperations own;  // of the whole graph's operations

  Part(const GraphState& whole, const Operation* output, const Operations& stored) {
    Operations needed = {output};
    for (auto it = whole.operations.rbegin(); it != whole.operations.rend(); ++it) {
      if (!needed.contains(&*it)) continue;
      if (it->kind == Operation::Kind::kView) needed.insert(it->base);
      if (it->kind != Operation::Kind::kCompute) continue;
      if (stored.contains(&*it) && &*it != output) continue;
      for (const Operation* read : ReadOperations(whole, it->bodies)) needed.insert(read);
    }
    graph = whole.Empty();
    for (const Operation& operation : whole.operations) {
      if (!needed.contains(&operation)) continue;
      Operation& copy = CopyTo(*graph, operation, own);
      copy.is_constant = copy.is_constant && IsReadOnce(whole, operation);
      if (stored.contains(&operation) && &operation != output) {
        copy.kind = Operation::Kind::kPlaceholder;
        copy.axes.clear();
        copy.bodies.clear();
      }
      if (copy.kind == Operation::Kind::kPlaceholder) inputs.push_back(&operation);
    }
  }

  Tensor Of(const Operation* operation) const { return Tensor(graph, own.at(operation)); }
};

// The elements that a column sum adds, as a compute over all its axes.
Tensor Elements(const std::shared_ptr<GraphState>& graph, const Operation& sum) {
  const Body& body = sum.bodies[0];
  Shape shape;
  for (const ReduceAxis& axis : body.axes) shape.push_back(axis.extent);
  shape.push_back(sum.shape[0]);
  Axes axes(body.axes.begin(), body.axes.end());
  axes.push_back(sum.axes[0]);
  Graph g(graph);
  return g.Compute(StrCat(sum.name, ".elements"), shape, [&](const Axes& at) {
    ir::VarMap variables;
    for (size_t d = 0; d < at.size(); ++d) variables[axes[d]] = at[d];
    return ir::Substitute(body.value, variables);
  });
}

// Adds another group, behind a barrier of the card.
void AddBehind(mapping::Estimate& sequence, const mapping::Estimate& group,
               const isa::Machine& machine) {
  sequence.cost.Append(group.cost);
  sequence.cost.Phase("barrier behind a group", 1), sequence.cost.Lane();
  sequence.cost.Add("barrier", mapping::kWaits,
                    static_cast<double>(machine.Get("sync.drain") + machine.Get("sync.global")));
  sequence.needs.nmem = std::max(sequence.needs.nmem, group.needs.nmem);
  sequence.needs.wmem = std::max(sequence.needs.wmem, group.needs.wmem);
  sequence.needs.smem = std::max(sequence.needs.smem, group.needs.smem);
}
mapping::Estimate EmptySequence() {
  return {.kind = "groups in sequence", .cost = {}, .needs = {}};
}

// Names of choices.
constexpr char kAlong[] = "sums_along", kCut[] = "cut", kChunks[] = "chunks", kLength[] = "length",
               kBlocks[] = "blocks", kSumClusters[] = "sum_clusters";

// Puts groups one after the other.
class Writer {
 public:
  // `is_cut`: contractions that another one reads are groups of their own. `stored`: crosses GMEM besides.
  Writer(const Tensor& output, const Target& target, bool sums_along, bool is_cut,
         const Operation* stored = nullptr, bool by_vector = false)
      : output_(output),
        target_(target),
        sums_along_(sums_along),
        is_cut_(is_cut),
        by_vector_(by_vector),
        whole_(*output.graph()),
        c_(*whole_.context),
        instructions_(*target.instructions, *target.machine) {
    if (stored != nullptr) stored_.insert(stored);
  }

  absl::StatusOr<ir::Function> Run() {
    // Where the caller says what crosses GMEM, all else is computed with it, sums too.
    if (stored_.empty()) FindStored();
    const Operation* const result = output_.operation();
    for (const Operation& operation : whole_.operations) {
      if (!stored_.contains(&operation)) continue;
      if (IsColumnSum(operation)) {
        if (!is_taken_.contains(&operation)) {
          RETURN_IF_ERROR(AddGroup(nullptr, {&operation}));
        }
        continue;
      }
      const std::vector<const Operation*> sums = SumsOf(operation);
      if (sums_along_ || sums.empty()) {
        RETURN_IF_ERROR(AddGroup(&operation, sums));
      } else {
        RETURN_IF_ERROR(AddGroup(&operation, {}));
        RETURN_IF_ERROR(AddCopyGroup(operation, sums));
      }
    }
    if (!stored_.contains(result)) RETURN_IF_ERROR(AddGroup(result, {}));
    return Whole();
  }

  // Both groups, the first one by a choice.
  absl::StatusOr<ir::Function> RunTwo(const TwoGroups& two, const CardChoice& choice) {
    ASSIGN_OR_RETURN(ir::Function function, two.first.Build(choice));
    std::vector<size_t> slots;
    for (const Operation* input : two.first_inputs) slots.push_back(SlotOf(input));
    const size_t between = slots_.size();
    slots_.push_back({nullptr, two.between->outputs[0]->type, two.name});
    slots.push_back(between);
    AddPiece(std::move(function), std::move(slots));
    ASSIGN_OR_RETURN(function, two.second.Build(two.second.Schedules({}, true)[0].choice));
    slots.clear();
    for (const Operation* input : two.second_inputs) {
      slots.push_back(input == two.between ? between : SlotOf(input));
    }
    slots.push_back(SlotOf(output_.operation()));
    AddPiece(std::move(function), std::move(slots));
    return Whole();
  }

  const mapping::Estimate& estimate() const { return estimate_; }

 private:
  struct Slot {
    const Operation* operation;  // null: partial sums
    Type type;
    std::string name;
    std::vector<Shape> shapes = {};
    Buffer buffer = {};
  };
  struct Piece {
    ir::Function function;
    std::vector<size_t> slots;  // of its parameters
  };

  // All sums over pixels, and the ends of contractions' groups.
  void FindStored() {
    absl::flat_hash_map<const Operation*, std::vector<const Operation*>> readers;
    Operations live = {output_.operation()};
    for (auto it = whole_.operations.rbegin(); it != whole_.operations.rend(); ++it) {
      if (!live.contains(&*it) || it->kind != Operation::Kind::kCompute) continue;
      for (const Operation* read : ReadOperations(whole_, it->bodies)) {
        live.insert(read);
        readers[read].push_back(&*it);
      }
    }
    for (const Operation& operation : whole_.operations) {
      if (!live.contains(&operation)) continue;
      if (!IsColumnSum(operation) && !IsSumOfProducts(operation)) continue;
      if (IsColumnSum(operation)) {
        stored_.insert(&operation);
        continue;
      }
      // To the last elementwise compute before several read it, or a sum does.
      const Operation* end = &operation;
      while (readers[end].size() == 1 && IsElementwise(*readers[end][0]) &&
             readers[end][0]->shape == end->shape && !ReadsColumnSum(*readers[end][0])) {
        end = readers[end][0];
      }
      const auto& last = readers[end];
      // A contraction that another one reads is in its group.
      const bool is_inner = last.size() == 1 && !IsColumnSum(*last[0]) && !ReadsColumnSum(*last[0]);
      if (!is_inner || is_cut_) stored_.insert(end);
    }
  }

  // Whether a column sum is below the compute and above all that is stored.
  bool ReadsColumnSum(const Operation& operation) const {
    if (operation.kind != Operation::Kind::kCompute) return false;
    for (const Operation* read : ReadOperations(whole_, operation.bodies)) {
      if (IsColumnSum(*read)) return true;
      if (!IsSum(*read) && ReadsColumnSum(*read)) return true;
    }
    return false;
  }

  // The steps of the sum's elements if they are of `source` alone.
  std::optional<Steps> StepsOver(const Operation& sum, const Operation& source) const {
    const Part part(whole_, &sum, stored_);
    if (part.inputs.size() != 1 || part.inputs[0] != &source) return std::nullopt;
    absl::StatusOr<Steps> steps =
        CutIntoSteps(Elements(part.graph, *part.own.at(&sum)), instructions_);
    if (!steps.ok() || steps->domain != source.shape) return std::nullopt;
    for (const Step& step : steps->list) {
      if (!std::all_of(step.varies.begin(), step.varies.end(), [](bool v) { return v; })) {
        return std::nullopt;
      }
    }
    return *std::move(steps);
  }

  std::vector<const Operation*> SumsOf(const Operation& source) {
    std::vector<const Operation*> sums;
    for (const Operation* operation : stored_) {
      if (IsColumnSum(*operation) && StepsOver(*operation, source)) sums.push_back(operation);
    }
    std::sort(sums.begin(), sums.end(), [](const Operation* a, const Operation* b) {
      return a->outputs[0]->id < b->outputs[0]->id;
    });
    return sums;
  }

  size_t SlotOf(const Operation* operation) {
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].operation == operation) return i;
    }
    slots_.push_back({operation, operation->outputs[0]->type, operation->name});
    return slots_.size() - 1;
  }

  void AddPiece(ir::Function function, std::vector<size_t> slots) {
    POLYNAO_CHECK(function.params.size() == slots.size()) << function.name;
    for (size_t i = 0; i < slots.size(); ++i) {
      Shape shape;
      for (Expr extent : function.params[i].buffer->extents) shape.push_back(extent.int_value());
      std::vector<Shape>& shapes = slots_[slots[i]].shapes;
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    }
    pieces_.push_back({std::move(function), std::move(slots)});
  }

  // The group that ends in `end`, and sums of its elements; without `end`, of one sum's elements.
  absl::Status AddGroup(const Operation* end, const std::vector<const Operation*>& sums) {
    const Part part(whole_, end != nullptr ? end : sums[0], stored_);
    std::vector<ColumnSum> along;
    Tensor base;
    if (end != nullptr) {
      base = part.Of(end);
      for (const Operation* sum : sums) along.push_back({sum->name, *StepsOver(*sum, *end)});
    } else {
      base = Elements(part.graph, *part.own.at(sums[0]));
      along.push_back(OfItself(sums[0]->name, base));
    }
    return AddGroup(part, end, base, sums, along);
  }

  // The sums of a stored tensor, in a pass over it.
  absl::Status AddCopyGroup(const Operation& source, const std::vector<const Operation*>& sums) {
    const Part part(whole_, sums[0], stored_);
    Graph g(part.graph);
    const Tensor from = part.Of(&source);
    const Tensor base =
        g.Compute(source.name + ".again", source.shape, [&](const Axes& at) { return from(at); });
    std::vector<ColumnSum> along;
    for (const Operation* sum : sums) along.push_back({sum->name, *StepsOver(*sum, source)});
    return AddGroup(part, nullptr, base, sums, along);
  }

  static ColumnSum OfItself(const std::string& name, const Tensor& tensor) {
    Step step = {.name = name,
                 .type = tensor.type(),
                 .varies = std::vector<bool>(tensor.rank(), true),
                 .tensor = tensor.operation()};
    return {name, {.domain = tensor.shape(), .list = {step}}};
  }

  absl::Status AddGroup(const Part& part, const Operation* end, const Tensor& base,
                        const std::vector<const Operation*>& sums,
                        const std::vector<ColumnSum>& along) {
    TileExtras extras = {.sums = static_cast<int>(sums.size()), .is_stored = end != nullptr};
    for (const ColumnSum& sum : along) {
      extras.values +=
          static_cast<int>(std::count_if(sum.steps.list.begin(), sum.steps.list.end(),
                                         [](const Step& step) { return step.tensor == nullptr; }));
    }
    ASSIGN_OR_RETURN(const CardGroup group, CardGroup::Create(base, target_, extras, by_vector_));
    const CardSchedule schedule = group.Schedules({}, true)[0];
    ASSIGN_OR_RETURN(const mapping::Estimate estimate, group.EstimateOf(schedule.choice));
    AddBehind(estimate_, estimate, *target_.machine);
    ASSIGN_OR_RETURN(ir::Function function, group.Build(schedule.choice));
    std::vector<size_t> slots;
    for (const Operation* input : part.inputs) slots.push_back(SlotOf(input));
    if (end != nullptr) slots.push_back(SlotOf(end));
    if (!sums.empty()) {
      const auto number = [&](std::string_view name) {
        const auto it = schedule.choice.find(name);
        return it == schedule.choice.end() ? 1 : it->second;
      };
      RETURN_IF_ERROR(AddColumnSums(function, along, end != nullptr, number("channel_clusters"),
                                    number("across")));
    }
    const size_t first = slots_.size();
    for (const Operation* sum : sums) {
      slots.push_back(slots_.size());
      slots_.push_back({nullptr, Type::kF32, sum->name + ".parts"});
    }
    AddPiece(std::move(function), slots);
    for (size_t i = 0; i < sums.size(); ++i) {
      is_taken_.insert(sums[i]);
      RETURN_IF_ERROR(AddPartsOf(*sums[i], first + i));
    }
    return absl::OkStatus();
  }

  absl::Status AddPartsOf(const Operation& sum, size_t slot) {
    auto graph = std::make_shared<GraphState>();
    graph->name = whole_.name;
    graph->context = whole_.context;
    graph->index_type = whole_.index_type;
    Graph g(graph);
    const Tensor partial =
        g.Placeholder(slots_[slot].name, slots_[slot].shapes[0], slots_[slot].type);
    ASSIGN_OR_RETURN(ir::Function function, AddParts(g, partial, target_));
    const size_t of_sum = SlotOf(&sum);
    AddPiece(std::move(function), {slot, of_sum});
    return absl::OkStatus();
  }

  // Parameters are the graph's, temporaries all other slots.
  ir::Function Whole() {
    ir::Function function;
    function.name = whole_.name;
    function.context = whole_.context;
    const auto declare = [&](Slot& slot) {
      Shape shape = slot.shapes.empty() ? slot.operation->shape : slot.shapes[0];
      if (slot.shapes.size() > 1) shape = {ElementCount(shape)};
      std::vector<Expr> extents;
      for (int64_t extent : shape) extents.push_back(c_.Int(whole_.index_type, extent));
      slot.buffer = c_.NewBuffer(slot.name, slot.type, extents);
    };
    for (const Operation& operation : whole_.operations) {
      if (operation.kind != Operation::Kind::kPlaceholder) continue;
      Slot& slot = slots_[SlotOf(&operation)];
      declare(slot);
      function.params.push_back(
          {.var = {}, .buffer = slot.buffer, .access = ir::Access::kIn, .scope = ""});
    }
    Slot& result = slots_[SlotOf(output_.operation())];
    declare(result);
    function.params.push_back(
        {.var = {}, .buffer = result.buffer, .access = ir::Access::kOut, .scope = ""});
    std::vector<Buffer> temporaries;
    for (Slot& slot : slots_) {
      if (slot.buffer) continue;
      declare(slot);
      temporaries.push_back(slot.buffer);
    }
    std::vector<Stmt> stmts;
    for (const Piece& piece : pieces_) {
      Rename::Map to;
      for (size_t i = 0; i < piece.slots.size(); ++i) {
        to[piece.function.params[i].buffer] = {.to = slots_[piece.slots[i]].buffer};
      }
      stmts.push_back(Rename(to).Mutate(piece.function.body));
      for (const ir::PartsLayout& layout : ir::PartsLayoutsOf(piece.function)) {
        ir::AddPartsLayout(function, layout);
      }
    }
    function.body = c_.Seq(stmts);
    for (auto it = temporaries.rbegin(); it != temporaries.rend(); ++it) {
      function.body = c_.Allocate(*it, function.body);
    }
    return function;
  }

  const Tensor output_;
  const Target& target_;
  const bool sums_along_, is_cut_, by_vector_;
  const GraphState& whole_;
  ir::Context& c_;
  const LaneInstructions instructions_;
  Operations stored_, is_taken_;
  std::deque<Slot> slots_;
  std::vector<Piece> pieces_;
  mapping::Estimate estimate_ = EmptySequence();
};

}  // namespace

namespace {

// The graph's reduction if it has one only; else null.
const Operation* OnlyReduction(const Tensor& output) {
  const Operation* reduction = nullptr;
  for (const Operation* compute : Computes(output)) {
    if (!IsSum(*compute)) continue;
    if (reduction != nullptr) return nullptr;
    reduction = compute;
  }
  return reduction;
}

}  // namespace

absl::StatusOr<CardProgram> CardProgram::Create(const Tensor& output, const Target& target,
                                                bool by_vector) {
  CardProgram program;
  program.plans_ = std::make_unique<Plans>();
  program.by_vector_ = by_vector;
  program.target_ = &target;
  program.output_ = output;
  const GraphState& graph = *output.graph();
  RETURN_IF_ERROR(graph.status);
  if (const std::optional<SubPixelGraph> places = ReadSubPixels(output)) {
    ASSIGN_OR_RETURN(program.group_, CardGroup::Create(places->output, target,
                                                       {.sub_pixels = places->places}, by_vector));
    return program;
  }
  const bool has_sums = std::any_of(graph.operations.begin(), graph.operations.end(), IsColumnSum);
  const int64_t contractions = std::count_if(
      graph.operations.begin(), graph.operations.end(), [](const Operation& operation) {
        return IsSumOfProducts(operation) && !IsColumnSum(operation);
      });
  absl::Status error;
  if (contractions == 0) {
    absl::StatusOr<CardGroup> group = CardGroup::Create(output, target, {}, by_vector);
    if (group.ok()) program.group_ = *std::move(group);
    error = group.status();
    program.AddSplits();
    if (program.group_ || !program.sequences_.empty()) return program;
    if (!has_sums) return error;
  }
  if (!has_sums) {
    absl::StatusOr<CardGroup> group = CardGroup::Create(output, target, {}, by_vector);
    if (contractions < 2) RETURN_IF_ERROR(group.status());
    error = group.status();
    if (group.ok()) program.group_ = *std::move(group);
    program.why_no_group_ = std::string(error.message());
    if (contractions < 2 && program.group_->is_vector()) program.AddSplits();
    if (contractions < 2) {
      if (!program.group_->is_vector()) program.AddKinds();
      return program;
    }
    program.has_cut_ = true;
  }
  // A cut group computes nothing twice, but its result crosses GMEM.
  for (const bool is_cut : {false, true}) {
    for (const bool along : {true, false}) {
      if ((is_cut && contractions < 2) || (!has_sums && (!is_cut || !along))) continue;
      Writer writer(output, target, along, is_cut);
      const absl::StatusOr<ir::Function> function = writer.Run();
      if (!function.ok()) {
        if (error.ok()) error = function.status();
        continue;
      }
      CardSchedule schedule = {.choice = {}, .cycles = writer.estimate().cost.cycles()};
      if (has_sums) schedule.choice[kAlong] = along;
      if (contractions > 1) schedule.choice[kCut] = is_cut;
      program.sequences_.push_back(std::move(schedule));
      program.estimates_.push_back(writer.estimate());
    }
  }
  if (program.sequences_.empty() && !program.group_) return error;
  return program;
}

bool CardProgram::ReordersSums(const CardChoice& choice) {
  const auto folded = choice.find(CardGroup::kFolded);
  return (folded != choice.end() && folded->second == 1) || choice.contains(kChunks) ||
         choice.contains(kSumClusters);
}

void CardProgram::AddSplits() {
  reduction_ = OnlyReduction(output_);
  if (reduction_ == nullptr) return;
  const int64_t extent = reduction_->bodies[0].axes[0].extent;
  const int64_t cores = target_->machine->cores();
  // Where the inputs take GMEM nearly as long, parts gain nothing.
  constexpr double kNear = 1.25;
  double bytes = 0;
  for (const Operation& operation : output_.graph()->operations) {
    if (operation.kind != Operation::Kind::kPlaceholder) continue;
    bytes += static_cast<double>(ElementCount(operation.shape) *
                                 ir::ByteSize(operation.outputs[0]->type));
  }
  if (group_ && group_->Schedules({}, true)[0].cycles <
                    kNear * bytes / target_->machine->gmem_bytes_per_cycle()) {
    return;
  }
  std::set<std::pair<int64_t, int64_t>> splits;
  for (const int64_t chunks : {cores, 4 * cores, 16 * cores}) {
    if (extent < 4 * chunks) continue;
    if (chunks > 4 * cores && group_) continue;
    const int64_t length = extent / chunks;
    splits.insert({chunks, length});
    // Few results stand in rows of what is reduced, which begin at whole groups then.
    const bool is_along = ElementCount(reduction_->shape) < isa::kVectorGroup;
    if (is_along && length >= isa::kVectorGroup) {
      splits.insert({chunks, length / isa::kVectorGroup * isa::kVectorGroup});
    }
  }
  for (const auto& [chunks, length] : splits) {
    const SplitReduction split = Split(output_, *reduction_, 0, chunks, length);
    Writer writer(split.output, *target_, true, false, split.partial, by_vector_);
    if (!writer.Run().ok()) continue;
    sequences_.push_back({.choice = {{kChunks, chunks}, {kLength, length}},
                          .cycles = writer.estimate().cost.cycles()});
    estimates_.push_back(writer.estimate());
  }
}

// Ways in which two groups follow one another, planned when somebody first asks; null if it does not go.
struct CardProgram::Plans {
  std::map<Kind, std::optional<TwoGroups>> by_kind;
};

void CardProgram::AddKinds() {
  end_of_blocks_ = EndOfBlocks(output_);
  if (end_of_blocks_ != nullptr) kinds_.emplace_back(kBlocks, 1);
  reduction_ = OnlyReduction(output_);
  if (reduction_ == nullptr || reduction_->bodies[0].axes.empty()) return;
  const int64_t clusters = target_->machine->clusters();
  const int64_t channels = reduction_->bodies[0].axes.back().extent;
  for (const int64_t parts : Divisors(clusters)) {
    if (parts > 1 && channels % parts == 0) kinds_.emplace_back(kSumClusters, parts);
  }
}

CardProgram::CardProgram() = default;
CardProgram::~CardProgram() = default;
CardProgram::CardProgram(CardProgram&&) noexcept = default;
CardProgram& CardProgram::operator=(CardProgram&&) noexcept = default;

std::optional<TwoGroups> CardProgram::Plan(const Kind& kind) const {
  Tensor output = output_;
  const Operation* between = end_of_blocks_;
  std::string name;
  absl::StatusOr<CardGroup> first, second;
  std::vector<const Operation*> first_inputs, second_inputs;
  if (kind.first == kBlocks) {
    name = between->name + ".blocks";
    const Part part(*output.graph(), between, {});
    first = CardGroup::Create(part.Of(between), *target_, {.in_blocks = true});
    first_inputs = part.inputs;
    BlockReader reader = ReadBlocks(output, *between);
    second = CardGroup::Create(reader.output, *target_);
    second_inputs = std::move(reader.inputs);
  } else {
    const size_t axis = reduction_->bodies[0].axes.size() - 1;
    const int64_t channels = reduction_->bodies[0].axes[axis].extent / kind.second;
    const SplitReduction split = Split(output, *reduction_, axis, kind.second, channels);
    output = split.output;
    between = split.partial;
    name = between->name;
    const Part part(*output.graph(), between, {});
    first = CardGroup::Create(part.Of(between), *target_, {.sum_parts = kind.second});
    first_inputs = part.inputs;
    const Part rest(*output.graph(), output.operation(), {between});
    second = CardGroup::Create(rest.Of(output.operation()), *target_);
    second_inputs = rest.inputs;
  }
  if (!first.ok() || !second.ok()) return std::nullopt;
  absl::StatusOr<mapping::Estimate> estimate =
      second->EstimateOf(second->Schedules({}, true)[0].choice);
  if (!estimate.ok()) return std::nullopt;
  mapping::Estimate more = EmptySequence();
  AddBehind(more, {}, *target_->machine);
  AddBehind(more, *estimate, *target_->machine);
  return TwoGroups{.output = output,
                   .between = between,
                   .name = std::move(name),
                   .first = *std::move(first),
                   .second = *std::move(second),
                   .first_inputs = std::move(first_inputs),
                   .second_inputs = std::move(second_inputs),
                   .estimate = *std::move(estimate),
                   .more = more.cost.cycles()};
}

const TwoGroups* CardProgram::Planned(const CardChoice& choice) const {
  for (const Kind& kind : kinds_) {
    const auto it = choice.find(kind.first);
    if (it == choice.end() || it->second != kind.second) continue;
    const auto [plan, is_new] = plans_->by_kind.try_emplace(kind);
    if (is_new) plan->second = Plan(kind);
    return plan->second ? &*plan->second : nullptr;
  }
  return nullptr;
}

double CardProgram::LeastOf(const Kind& kind) const {
  const auto bytes = [](const Operation& operation) {
    return static_cast<double>(ElementCount(operation.shape) *
                               ir::ByteSize(operation.outputs[0]->type));
  };
  const double between = kind.first == kBlocks
                             ? bytes(*end_of_blocks_)
                             : static_cast<double>(kind.second) * bytes(*reduction_);
  double moved = bytes(*output_.operation()) + 2 * between;
  for (const Operation& operation : output_.graph()->operations) {
    if (operation.kind == Operation::Kind::kPlaceholder) moved += bytes(operation);
  }
  return moved / target_->machine->gmem_bytes_per_cycle();
}

CardChoice CardProgram::OfFirst(CardChoice choice) {
  choice.erase(kBlocks);
  choice.erase(kSumClusters);
  return choice;
}

std::vector<CardSchedule> CardProgram::Schedules(const CardChoice& wanted, bool only_first,
                                                 double limit) const {
  std::vector<CardSchedule> schedules;
  for (const CardSchedule& sequence : sequences_) {
    if (Agrees(sequence.choice, wanted)) schedules.push_back(sequence);
  }
  CardChoice of_group = wanted;
  const auto cut = of_group.find(kCut);
  const bool is_whole = cut == of_group.end() || (has_cut_ && cut->second == 0);
  if (cut != of_group.end() && is_whole) of_group.erase(cut);
  // What says that there is one group.
  const auto is_one = [&](std::string_view name, int64_t value) {
    const auto it = of_group.find(name);
    if (it != of_group.end() && it->second == value) of_group.erase(it);
  };
  is_one(kBlocks, 0), is_one(kSumClusters, 1);
  bool is_complete = false;  // all choices of one group are there
  if (group_ && is_whole) {
    for (CardSchedule& schedule : group_->Schedules(of_group, only_first, limit)) {
      is_complete = is_complete || schedule.choice == of_group;
      if (has_cut_) schedule.choice[kCut] = 0;
      schedules.push_back(std::move(schedule));
    }
  }
  if (only_first && !schedules.empty()) limit = std::min(limit, schedules[0].cycles);
  for (const Kind& kind : kinds_) {
    const std::string name(kind.first);
    const auto value = wanted.find(name);
    CardChoice of_first = of_group;
    of_first.erase(name);
    // Another value, or another kind, is wanted.
    const bool is_other =
        (value != wanted.end() && value->second != kind.second) || of_first != OfFirst(of_first);
    if (is_complete || is_other || LeastOf(kind) >= limit) continue;
    const TwoGroups* two = Planned({{name, kind.second}});
    if (two == nullptr) continue;
    for (CardSchedule& schedule : two->first.Schedules(of_first, only_first, limit - two->more)) {
      schedule.cycles += two->more;
      schedule.choice[name] = kind.second;
      if (only_first) limit = std::min(limit, schedule.cycles);
      schedules.push_back(std::move(schedule));
    }
  }
  // A group has an order of its own.
  if (!sequences_.empty() || !kinds_.empty()) {
    std::sort(schedules.begin(), schedules.end(), IsBefore);
  }
  if (only_first && schedules.size() > 1) schedules.resize(1);
  return schedules;
}

absl::StatusOr<mapping::Estimate> CardProgram::EstimateOf(const CardChoice& choice) const {
  for (size_t i = 0; i < sequences_.size(); ++i) {
    if (sequences_[i].choice == choice) return estimates_[i];
  }
  if (!group_) return InvalidInput("no such schedule of ", output_.name());
  if (const TwoGroups* two = Planned(choice); two != nullptr) {
    ASSIGN_OR_RETURN(const mapping::Estimate first, two->first.EstimateOf(OfFirst(choice)));
    mapping::Estimate estimate = EmptySequence();
    AddBehind(estimate, first, *target_->machine);
    AddBehind(estimate, two->estimate, *target_->machine);
    return estimate;
  }
  CardChoice of_group = choice;
  of_group.erase(kCut);
  return group_->EstimateOf(of_group);
}

std::string CardProgram::WhyNone(const CardChoice& wanted) const {
  if (!group_) return why_no_group_;
  CardChoice of_group = wanted;
  const auto cut = of_group.find(kCut);
  if (cut != of_group.end() && (!has_cut_ || cut->second != 0)) return "";
  if (cut != of_group.end()) of_group.erase(cut);
  return group_->WhyNone(of_group);
}

absl::StatusOr<ir::Function> CardProgram::Build(const CardChoice& choice) const {
  ASSIGN_OR_RETURN(ir::Function function, FunctionOf(choice));
  const bool adds_floats = reduction_ != nullptr && ir::IsFloat(reduction_->outputs[0]->type);
  if (ReordersSums(choice) && adds_floats) ir::SayReassociated(function);
  return function;
}

absl::StatusOr<ir::Function> CardProgram::FunctionOf(const CardChoice& choice) const {
  if (const auto chunks = choice.find(kChunks); chunks != choice.end()) {
    const auto length = choice.find(kLength);
    if (length == choice.end()) return InvalidInput("no such schedule of ", output_.name());
    const SplitReduction split = Split(output_, *reduction_, 0, chunks->second, length->second);
    return Writer(split.output, *target_, true, false, split.partial, by_vector_).Run();
  }
  if (const TwoGroups* two = Planned(choice); two != nullptr) {
    return Writer(two->output, *target_, true, false).RunTwo(*two, OfFirst(choice));
  }
  const auto along = choice.find(kAlong), cut = choice.find(kCut);
  const bool is_cut = cut != choice.end() && cut->second != 0;
  if (group_ && !is_cut) {
    CardChoice of_group = choice;
    of_group.erase(kCut);
    return group_->Build(of_group);
  }
  if (along == choice.end() && !is_cut) return InvalidInput("no such schedule of ", output_.name());
  return Writer(output_, *target_, along == choice.end() || along->second != 0, is_cut).Run();
}

}  // namespace polynao::te
