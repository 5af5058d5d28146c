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
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/nest_stages.h"
#include "compiler/poly/card/turned_convolution.h"
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
  for (Expr extent : buffer->extents) {
    const absl::StatusOr<int64_t> number = ir::EvaluateInt(extent, {});
    shape.push_back(number.ok() ? *number : -1);
  }
  if (shape.empty()) shape.push_back(1);  // one element
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

// The load that is a factor of a product, under casts.
Expr LoadOf(Expr factor) {
  while (factor.Is(ExprKind::kCast)) factor = factor.operand(0);
  return factor.Is(ExprKind::kLoad) ? factor : Expr();
}

// A sum of products whose weights, or whose image, stand in memory in another order than the tensor unit reads them:
// results' axes, then the reduced ones. `copies` are stages that turn them around, for buffers of their own.
//
//   C[i, j] += A[i, l] * B[l, j]   -->   B.turned[j, l] = B[l, j]   C[i, j] += A[i, l] * B.turned[j, l]
std::optional<NestStage> WithTurnedFactors(const NestStage& stage, ir::Context& c,
                                           std::vector<NestStage>& copies) {
  if (stage.reduction != ExprKind::kAdd || !stage.element.Is(ExprKind::kMul)) return std::nullopt;
  std::vector<Expr> order(stage.axes.begin(), stage.axes.end());
  for (const NestStage::ReduceRange& range : stage.ranges) order.push_back(range.var);
  NestStage turned = stage;
  for (size_t f = 0; f < 2; ++f) {
    const Expr load = LoadOf(stage.element.operand(f));
    if (!load) return std::nullopt;
    // Each index one variable, plus a constant.
    std::vector<std::pair<size_t, size_t>>
        places;  // in the order of variables, and which index that is
    for (size_t d = 0; d < load.operands().size(); ++d) {
      size_t variable = order.size();
      for (size_t v = 0; v < order.size(); ++v) {
        if (!ir::UsesVar(load.operands()[d], order[v])) continue;
        if (variable < order.size()) return std::nullopt;
        variable = v;
      }
      if (variable == order.size()) return std::nullopt;
      places.emplace_back(variable, d);
    }
    if (std::is_sorted(places.begin(), places.end())) continue;
    std::sort(places.begin(), places.end());
    NestStage copy = {.name = stage.name,
                      .place = stage.place,
                      .target = {},
                      .axes = {},
                      .low = {},
                      .extents = {},
                      .value = {}};
    std::vector<Expr> extents, indices;
    ir::VarMap by;
    for (const auto& [v, d] : places) {
      const bool is_axis = v < stage.axes.size();
      const NestStage::ReduceRange* range =
          is_axis ? nullptr : &stage.ranges[v - stage.axes.size()];
      const int64_t extent = is_axis ? stage.extents[v] : range->extent;
      const int64_t min = is_axis ? 0 : range->min;
      const ir::Var axis = c.NewVar(ir::Var(order[v]).name(), order[v].type());
      copy.axes.push_back(axis);
      copy.low.push_back(0);
      copy.extents.push_back(extent);
      extents.push_back(c.Int(order[v].type(), extent));
      by[order[v]] = min == 0 ? Expr(axis) : axis + min;
      indices.push_back(min == 0 ? order[v] : order[v] - min);
    }
    copy.value = ir::Substitute(load, by);
    copy.target =
        c.NewBuffer(StrCat(ir::Buffer(load.buffer())->name, ".turned"), load.type(), extents);
    turned.element = ir::Replace(turned.element, {{load, c.Load(copy.target, indices)}});
    copies.push_back(std::move(copy));
  }
  if (copies.empty()) return std::nullopt;
  return turned;
}

// Some stages as one graph, in the order of the nest; the last one's target is the output.
class StageGraph {
 public:
  StageGraph(const ir::Function& function, ir::Type index_type)
      : g_(NewState(function, index_type)) {}

  void Add(const NestStage& stage) {
    const auto at = [&](const te::Axes& axes, ir::VarMap& by) {
      for (size_t d = 0; d < stage.axes.size(); ++d) by[stage.axes[d]] = axes[d];
    };
    const te::Shape extents = stage.extents.empty() ? te::Shape{1} : stage.extents;
    te::Tensor tensor;
    if (stage.reduction) {
      const te::Reducer reducer = *stage.reduction == ExprKind::kAdd   ? te::Reducer::kSum
                                  : *stage.reduction == ExprKind::kMin ? te::Reducer::kMin
                                                                       : te::Reducer::kMax;
      const std::string name = stage.value ? StrCat(stage.name, ".all") : NameOf(stage);
      tensor = g_.Compute(name, extents, [&](const te::Axes& axes) {
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
        tensor = g_.Compute(NameOf(stage), extents, [&](const te::Axes& axes) {
          ir::VarMap by;
          at(axes, by);
          const Expr start = Value(stage.value, by);
          return start.context().Binary(*stage.reduction, start, all(axes));
        });
      }
    } else {
      tensor = g_.Compute(NameOf(stage), extents, [&](const te::Axes& axes) {
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
      // A loop may have a variable of another type than the graph's axes.
      const auto it = by.find(e);
      if (it == by.end() || it->second.type() == e.type()) return it == by.end() ? e : it->second;
      return e.context().Cast(e.type(), it->second);
    }
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) {
      const auto it = e.Is(ExprKind::kLoad) ? by.find(operand) : by.end();
      operands.push_back(it == by.end() ? Value(operand, by) : it->second);
    }
    if (!e.Is(ExprKind::kLoad)) {
      return operands.empty() ? e : e.context().Rebuild(e, operands);
    }
    const Buffer buffer(e.buffer());
    if (operands.empty()) operands.push_back(g_.context().Int(g_.index_type(), 0));
    if (const auto it = computed_.find(buffer); it != computed_.end()) {
      const auto& [tensor, stage] = it->second;
      for (size_t d = 0; d < stage->low.size(); ++d) {
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
  Scheduler(const ir::Function& function, const Target& target, const NestStages& stages,
            const CountScalarStores& scalar_stores)
      : function_(function),
        target_(target),
        stages_(stages),
        scalar_stores_(scalar_stores),
        c_(*function.context) {}

  absl::StatusOr<NestProgram> Run() {
    RETURN_IF_ERROR(CheckShapes());
    FindGroups();
    MakeBuffers();
    for (size_t i = 0; i < stages_.list.size(); ++i) {
      if (group_of_[i] == i) RETURN_IF_ERROR(AddGroup(i));
    }
    MakeFunction();
    return std::move(program_);
  }

 private:
  absl::Status CheckShapes() const {
    for (const NestStage& stage : stages_.list) {
      absl::flat_hash_set<Buffer> buffers = ReadsOf(stage);
      buffers.insert(stage.target);
      for (Buffer buffer : buffers) {
        for (int64_t extent : ShapeOf(buffer)) {
          if (extent >= 0) continue;
          return InvalidInput("buffer '", buffer->name, "': expected extents that are numbers");
        }
      }
    }
    return absl::OkStatus();
  }

  // The buffer of which another one is a view.
  Buffer Whole(Buffer buffer) const {
    for (auto it = stages_.views.rbegin(); it != stages_.views.rend(); ++it) {
      if (it->first == buffer) buffer = it->second;
    }
    return buffer;
  }
  bool Reads(const NestStage& stage, Buffer whole) const {
    for (Buffer read : ReadsOf(stage)) {
      if (Whole(read) == whole) return true;
    }
    return false;
  }

  // Of each stage the last stage of its group: that of its only reader, or its own. A stage that stores another shape
  // of a buffer ends a group.
  void FindGroups() {
    const auto& list = stages_.list;
    const absl::flat_hash_set<Buffer> locals(stages_.locals.begin(), stages_.locals.end());
    absl::flat_hash_map<Buffer, int> writers;
    for (const NestStage& stage : list) ++writers[Whole(stage.target)];
    group_of_.resize(list.size());
    for (size_t i = list.size(); i-- > 0;) {
      group_of_[i] = i;
      if (!locals.contains(list[i].target) || writers[list[i].target] > 1) continue;
      std::set<size_t> groups;
      for (size_t k = i + 1; k < list.size(); ++k) {
        if (Reads(list[k], list[i].target)) groups.insert(group_of_[k]);
      }
      if (groups.size() != 1) continue;
      // What the group's tiles store, none of them may read.
      if (Reads(list[i], Whole(list[*groups.begin()].target))) continue;
      // Nothing that the stage reads may be stored before the group.
      bool is_stable = true;
      for (size_t k = i + 1; k < *groups.begin(); ++k) {
        if (group_of_[k] == k && Reads(list[i], Whole(list[k].target))) is_stable = false;
      }
      if (is_stable) group_of_[i] = *groups.begin();
    }
  }

  // Buffers of one dimension for parameters and locals.
  void MakeBuffers() {
    for (const ir::Param& param : function_.params) MakeBuffer(param.buffer);
    for (Buffer local : stages_.locals) MakeBuffer(local);
    for (const auto& [view, whole] : stages_.views) MakeView(view, whole);
  }
  void MakeBuffer(Buffer buffer) {
    int64_t elements = 1;
    for (int64_t extent : ShapeOf(buffer)) elements *= extent;
    flat_[buffer] = c_.NewBuffer(buffer->name, buffer->type, {c_.Int(IndexType(), elements)});
  }

  void MakeView(Buffer view, Buffer whole) {
    const Buffer flat = flat_.at(whole);
    flat_[view] = flat;
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

  // Some stages as statements, with what they cost.
  struct Piece {
    std::vector<ir::Stmt> body;
    std::vector<Buffer> temporaries;
    double cycles = 0;
    bool reassociates = false;
    std::vector<std::string> notes;
  };
  using Members = std::vector<const NestStage*>;

  absl::Status AddGroup(size_t last) {
    Members members;
    for (size_t i = 0; i <= last; ++i) {
      if (group_of_[i] == last) members.push_back(&stages_.list[i]);
    }
    absl::StatusOr<Piece> together = CheapestPiece(members);
    // Where what is on chip costs much more than what crosses GMEM, several groups may be cheaper.
    constexpr double kMuch = 2.5, kStart = 5000;
    const bool is_cheap = together.ok() && together->cycles < kMuch * GmemCycles(members) + kStart;
    if (is_cheap || members.size() == 1) {
      if (together.ok()) Take(members, *std::move(together), all_);
      return together.status();
    }
    if (!together.ok()) {
      all_.notes.push_back(StrCat("not together: ", together.status().message()));
    }
    const absl::StatusOr<Piece> apart = InParts(members);
    if (!apart.ok() && !together.ok()) return apart.status();
    const bool is_whole = together.ok() && (!apart.ok() || together->cycles <= apart->cycles);
    if (is_whole) {
      Take(members, *std::move(together), all_);
    } else {
      Add(*apart, all_);
    }
    return absl::OkStatus();
  }

  // Iterations that are alike are noted once.
  void Take(const Members& members, Piece piece, Piece& all) {
    if (!taken_.insert(KeyOf(members)).second) piece.notes.clear();
    Add(piece, all);
  }

  static std::string KeyOf(const Members& members) {
    std::string key;
    for (const NestStage* stage : members) StrAppend(&key, stage->name, ";");
    return key;
  }

  // The members in groups of neighbours. Each group takes in more, a few at a time, as long as that is cheaper than
  // what they cost by themselves.
  absl::StatusOr<Piece> InParts(const Members& members) {
    constexpr size_t kMostAhead = 4;
    const double barrier = static_cast<double>(target_.machine->Get("sync.drain") +
                                               target_.machine->Get("sync.global"));
    Piece all;
    for (size_t first = 0; first < members.size();) {
      ASSIGN_OR_RETURN(Piece best, CheapestPiece({members[first]}));
      size_t end = first + 1;
      double apart = best.cycles;
      for (size_t k = end; k < std::min(members.size(), end + kMostAhead); ++k) {
        ASSIGN_OR_RETURN(const Piece single, CheapestPiece({members[k]}));
        apart += single.cycles + barrier;
        const Members part(members.begin() + static_cast<ptrdiff_t>(first),
                           members.begin() + static_cast<ptrdiff_t>(k) + 1);
        if (part.size() == members.size() || !IsClosed(part)) continue;
        const absl::StatusOr<Piece> piece = CheapestPiece(part);
        if (!piece.ok() || piece->cycles > apart) break;
        best = *piece;
        apart = best.cycles;
        end = k + 1;
      }
      Take(Members(members.begin() + static_cast<ptrdiff_t>(first),
                   members.begin() + static_cast<ptrdiff_t>(end)),
           std::move(best), all);
      first = end;
    }
    return all;
  }

  // Whether nothing but `members` reads what they store, the last one's target aside.
  bool IsClosed(const Members& members) const {
    for (const NestStage& stage : stages_.list) {
      if (std::find(members.begin(), members.end(), &stage) != members.end()) continue;
      for (size_t i = 0; i + 1 < members.size(); ++i) {
        if (Reads(stage, Whole(members[i]->target))) return false;
      }
    }
    return true;
  }

  // What moving each buffer of the members once takes, but for what is computed and read there alone.
  double GmemCycles(const Members& members) const {
    absl::flat_hash_set<Buffer> buffers;
    for (const NestStage* stage : members) {
      const absl::flat_hash_set<Buffer> reads = ReadsOf(*stage);
      buffers.insert(reads.begin(), reads.end());
    }
    for (const NestStage* stage : members) buffers.erase(stage->target);
    buffers.insert(members.back()->target);
    double bytes = 0;
    for (Buffer buffer : buffers) {
      double of_buffer = ir::ByteSize(buffer->type);
      for (const int64_t extent : ShapeOf(buffer)) of_buffer *= static_cast<double>(extent);
      bytes += of_buffer;
    }
    return bytes / target_.machine->gmem_bytes_per_cycle();
  }

  // The cheapest way to compute the members.
  absl::StatusOr<Piece> CheapestPiece(const Members& members) {
    // Iterations that are alike have the same stages.
    const std::string key = KeyOf(members);
    if (const auto it = pieces_.find(key); it != pieces_.end()) {
      Piece again = it->second;
      for (ir::Stmt& s : again.body) s = ir::CloneWithFreshBindings(s);
      return again;
    }
    absl::StatusOr<Piece> piece = NewPiece(members);
    if (piece.ok()) pieces_[key] = *piece;
    return piece;
  }

  absl::StatusOr<Piece> NewPiece(const Members& members) {
    absl::StatusOr<Piece> best = WithTurned(members);
    absl::StatusOr<Piece> other = WithTurnedConvolution(members);
    return other.ok() && (!best.ok() || other->cycles < best->cycles) ? other : best;
  }

  // The members with their only reduction, a convolution, as several groups.
  absl::StatusOr<Piece> WithTurnedConvolution(const Members& members) {
    const auto is_reduction = [](const NestStage* stage) { return stage->reduction.has_value(); };
    const auto sums = std::find_if(members.begin(), members.end(), is_reduction);
    const absl::Status none = InvalidInput("no convolution");
    if (std::count_if(members.begin(), members.end(), is_reduction) != 1) return none;
    const Members before(members.begin(), sums), after(sums + 1, members.end());
    for (const NestStage* stage : after) {
      for (const NestStage* made : before) {
        if (ReadsOf(*stage).contains(made->target)) return none;
      }
    }
    const TurnedConvolution turned = TurnConvolution(**sums, before, c_);
    if (turned.stages.empty()) return none;
    for (const auto& [view, whole] : turned.views) {
      if (!flat_.contains(whole)) MakeBuffer(whole);
      MakeView(view, whole);
    }
    Piece all;
    absl::flat_hash_map<Buffer, std::map<std::string, std::pair<Piece, Shift>>> made;  // by target
    for (const NestStage& stage : turned.stages) {
      const bool is_result = stage.target == (*sums)->target;
      if (!flat_.contains(stage.target)) MakeBuffer(stage.target);
      const std::optional<Shift> shift = ShiftOf(stage);
      auto& of_target = made[stage.target];
      const auto it = shift ? of_target.find(shift->key) : of_target.end();
      if (it != of_target.end() && it->second.second.read == shift->read) {
        Add(Again(it->second.first, stage.target, it->second.second, *shift), all);
        continue;
      }
      ASSIGN_OR_RETURN(const Piece piece, PieceOf({&stage}));
      Add(piece, all);
      if (shift) of_target[shift->key] = {piece, *shift};
      const Buffer flat = flat_.at(stage.target);
      if (!is_result && std::count(all.temporaries.begin(), all.temporaries.end(), flat) == 0) {
        all.temporaries.push_back(flat);
      }
    }
    if (!after.empty()) {
      ASSIGN_OR_RETURN(const Piece piece, PieceOf(after));
      Add(piece, all);
    }
    return all;
  }

  // Stages of one key differ in no more than where they begin in the buffer that they read, and in their target.
  struct Shift {
    std::string key;
    Buffer read;
    int64_t from = 0, to = 0;
  };
  // None of stages that read several elements for one, but for sums: those of one convolution are alike.
  std::optional<Shift> ShiftOf(const NestStage& stage) {
    Shift shift;
    if (stage.reduction) {
      shift.key = StrCat("sums of ", stage.target->name);
      return shift;
    }
    Expr load;
    int loads = 0;
    ir::ForEachExpr(stage.value, [&](Expr e) {
      if (e.Is(ExprKind::kLoad)) load = e, ++loads;
    });
    if (loads != 1) return std::nullopt;
    shift.read = Buffer(load.buffer());
    const te::Shape shape = ShapeOf(shift.read), whole = ShapeOf(stage.target);
    std::vector<Expr> indices(load.operands().size());
    int64_t stride = 1;
    for (size_t d = indices.size(); d-- > 0; stride *= shape[d]) {
      const arith::LinearForm form = arith::Decompose(load.operands()[d]);
      shift.from += form.constant() * stride;
      indices[d] = arith::SumExpr(c_, load.operands()[d].type(), form.terms(), 0);
    }
    stride = 1;
    for (size_t d = whole.size(); d-- > 0; stride *= whole[d]) shift.to += stage.low[d] * stride;
    ir::VarMap by;
    for (size_t d = 0; d < stage.axes.size(); ++d) {
      Expr& axis = axes_[{d, stage.axes[d].type()}];
      if (!axis) axis = c_.NewVar(StrCat("axis", d), stage.axes[d].type());
      by[stage.axes[d]] = axis;
      StrAppend(&shift.key, stage.extents[d], " ");
    }
    const Expr value = ir::Replace(stage.value, {{load, c_.Load(shift.read, indices)}});
    StrAppend(&shift.key, stage.target->name, " = ", ir::Print(ir::Substitute(value, by)));
    return shift;
  }
  // The piece of a stage with `made`'s key for one with that of `wanted`.
  Piece Again(const Piece& piece, Buffer target, const Shift& made, const Shift& wanted) const {
    te::Rename::Map to;
    if (made.read && wanted.from != made.from) {
      const Buffer flat = flat_.at(made.read);
      to[flat] = {.to = flat, .strides = {1}, .offset = wanted.from - made.from};
    }
    if (wanted.to != made.to) {
      const Buffer flat = flat_.at(target);
      to[flat] = {.to = flat, .strides = {1}, .offset = wanted.to - made.to};
    }
    Piece again = piece;
    again.temporaries.clear();
    for (ir::Stmt& s : again.body) s = ir::CloneWithFreshBindings(te::Rename(to).Mutate(s));
    return again;
  }

  // The members as they are, or after copies that turn factors of products around.
  absl::StatusOr<Piece> WithTurned(const Members& members) {
    absl::StatusOr<Piece> best = PieceOf(members);
    std::vector<NestStage> copies;
    std::vector<NestStage> turned;
    turned.reserve(members.size());
    Members others = members;
    for (const NestStage*& stage : others) {
      std::optional<NestStage> other = WithTurnedFactors(*stage, c_, copies);
      if (!other) continue;
      turned.push_back(*std::move(other));
      stage = &turned.back();
    }
    // What is computed on chip cannot be turned around before.
    for (const NestStage& copy : copies) {
      for (const NestStage* stage : members) {
        if (ReadsOf(copy).contains(stage->target)) return best;
      }
    }
    if (copies.empty()) return best;
    Piece all;
    for (const NestStage& copy : copies) {
      MakeBuffer(copy.target);
      absl::StatusOr<Piece> piece = PieceOf({&copy});
      if (!piece.ok()) return best;
      Add(*piece, all);
      all.temporaries.push_back(flat_.at(copy.target));
    }
    absl::StatusOr<Piece> piece = PieceOf(others);
    if (!piece.ok()) return best;
    Add(*piece, all);
    return best.ok() && best->cycles <= all.cycles ? best : all;
  }
  static void Add(const Piece& piece, Piece& all) {
    all.body.insert(all.body.end(), piece.body.begin(), piece.body.end());
    all.temporaries.insert(all.temporaries.end(), piece.temporaries.begin(),
                           piece.temporaries.end());
    all.cycles += piece.cycles;
    all.reassociates = all.reassociates || piece.reassociates;
    all.notes.insert(all.notes.end(), piece.notes.begin(), piece.notes.end());
  }

  // The cheapest schedule's function, or that of another one if it leaves scalar code.
  absl::StatusOr<ir::Function> BestOf(const te::CardProgram& program, const NestStage& last,
                                      double& cycles) {
    std::vector<te::CardSchedule> schedules = program.Schedules({}, true);
    if (schedules.empty()) return InvalidInput("'", last.place, "': no schedule fits");
    ASSIGN_OR_RETURN(ir::Function best, program.Build(schedules[0].choice));
    cycles = schedules[0].cycles;
    absl::StatusOr<int64_t> least = scalar_stores_(best);
    if (least.ok() && *least == 0) return best;
    // More are tried while none compiles: tiles whose nodes share NMEM fit by an estimate alone.
    constexpr size_t kMostTries = 12, kMostFailures = 100;
    schedules = program.Schedules({}, false);
    for (size_t i = 1; i < schedules.size(); ++i) {
      if (i >= (least.ok() ? kMostTries : kMostFailures)) break;
      absl::StatusOr<ir::Function> other = program.Build(schedules[i].choice);
      if (!other.ok()) continue;
      const absl::StatusOr<int64_t> stores = scalar_stores_(*other);
      if (!stores.ok() || (least.ok() && *stores >= *least)) continue;
      least = stores;
      best = *std::move(other);
      cycles = schedules[i].cycles;
      if (*least == 0) break;
    }
    RETURN_IF_ERROR(least.status());
    return best;
  }

  absl::StatusOr<Piece> PieceOf(const Members& members) {
    StageGraph graph(function_, IndexType());
    Piece piece;
    std::string note;
    for (const NestStage* stage : members) {
      graph.Add(*stage);
      StrAppend(&note, note.empty() ? "" : " ", stage->name);
      const bool is_float = ir::IsFloat(stage->target->type);
      if (stage->reduction == ExprKind::kAdd && is_float) piece.reassociates = true;
    }
    const NestStage& last = *members.back();
    absl::StatusOr<te::CardProgram> program =
        te::CardProgram::Create(graph.output(), target_, /*by_vector=*/true);
    if (!program.ok()) return WithContext(StrCat("'", last.place, "'"), program.status());
    ASSIGN_OR_RETURN(const ir::Function part, BestOf(*program, last, piece.cycles));
    te::Rename::Map to;
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      to[part.params[i].buffer] = {.to = flat_.at(graph.inputs()[i])};
    }
    const Buffer output = part.params.back().buffer;
    te::Renamed& place = to[output];
    place.to = flat_.at(last.target);
    const te::Shape whole = ShapeOf(last.target);
    if (!last.extents.empty() && last.extents != whole) {
      RETURN_IF_ERROR(PlaceBox(last, whole, ShapeOf(output), place));
    }
    ir::Stmt body = te::Rename(to).Mutate(part.body);
    for (; body.Is(ir::StmtKind::kAllocate) && body.buffer()->scope == "gmem"; body = body.body()) {
      piece.temporaries.push_back(body.buffer());
    }
    piece.body = {body};
    piece.notes = {StrCat(note, " -> ", last.target->name)};
    return piece;
  }

  // Where the elements of a box stand in the whole tensor.
  static absl::Status PlaceBox(const NestStage& stage, const te::Shape& whole,
                               const te::Shape& shape, te::Renamed& place) {
    std::vector<int64_t> strides(whole.size(), 1);
    for (size_t d = whole.size(); d-- > 1;) strides[d - 1] = strides[d] * whole[d];
    for (size_t d = 0; d < whole.size(); ++d) place.offset += stage.low[d] * strides[d];
    // A dimension of the shape is one of the box, or several that stand one in the other without gaps.
    size_t d = whole.size();
    place.strides.assign(shape.size(), 1);
    for (size_t k = shape.size(); k-- > 0;) {
      int64_t elements = 1;
      while (elements < shape[k] && d > 0) {
        --d;
        if (stage.extents[d] == 1) continue;
        if (elements == 1) place.strides[k] = strides[d];
        if (elements * place.strides[k] != strides[d]) break;
        elements *= stage.extents[d];
      }
      if (elements != shape[k]) {
        return InvalidInput("'", stage.place, "': expected a store of whole rows");
      }
    }
    return absl::OkStatus();
  }

  void MakeFunction() {
    ir::Function& whole = program_.function;
    whole.name = function_.name;
    whole.context = function_.context;
    for (const ir::Param& param : function_.params) {
      whole.params.push_back(
          {.var = {}, .buffer = flat_.at(param.buffer), .access = param.access, .scope = ""});
    }
    program_.cycles = all_.cycles;
    program_.reassociates = all_.reassociates;
    program_.notes = all_.notes;
    whole.body = c_.Seq(all_.body);
    for (Buffer local : stages_.locals) all_.temporaries.push_back(flat_.at(local));
    // Pieces that are alike have the same temporaries.
    absl::flat_hash_set<Buffer> allocated;
    for (Buffer temporary : all_.temporaries) {
      if (!allocated.insert(temporary).second) continue;
      if (ir::UsesBuffer(whole.body, temporary)) whole.body = c_.Allocate(temporary, whole.body);
    }
  }

  const ir::Function& function_;
  const Target& target_;
  const NestStages& stages_;
  const CountScalarStores& scalar_stores_;
  ir::Context& c_;
  std::vector<size_t> group_of_;
  absl::flat_hash_map<Buffer, Buffer> flat_;
  Piece all_;
  absl::flat_hash_map<std::string, Piece> pieces_;
  absl::flat_hash_set<std::string> taken_;            // keys of pieces that the program has
  std::map<std::pair<size_t, ir::Type>, Expr> axes_;  // of ShiftOf's keys
  NestProgram program_;
};

}  // namespace

absl::StatusOr<NestProgram> ScheduleForCard(const ir::Function& function, const Target& target,
                                            const CountScalarStores& scalar_stores) {
  ASSIGN_OR_RETURN(const NestStages stages, FindStages(function));
  return Scheduler(function, target, stages, scalar_stores).Run();
}

}  // namespace polynao::poly
