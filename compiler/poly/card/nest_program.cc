#include "compiler/poly/card/nest_program.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/even_parts.h"
#include "compiler/poly/card/group_function.h"
#include "compiler/poly/card/interleaved.h"
#include "compiler/poly/card/join_parts.h"
#include "compiler/poly/card/nest_stages.h"
#include "compiler/poly/card/plane_products.h"
#include "compiler/poly/card/product_forms.h"
#include "compiler/poly/card/scalar_stage.h"
#include "compiler/poly/card/stage_copies.h"
#include "compiler/poly/card/stage_graph.h"
#include "compiler/poly/card/sum_windows.h"
#include "compiler/poly/card/turned_convolution.h"
#include "compiler/poly/card/wide_sums.h"
#include "compiler/te/card/lane_instructions.h"
#include "compiler/te/card/rename.h"
#include "compiler/te/graph.h"
#include "isa/machine.h"

namespace polynao::poly {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;

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

  // What the barriers between the groups take alone.
  double LeastCycles() {
    FindGroups();
    double cycles = 0;
    for (size_t i = 0; i < group_of_.size(); ++i) cycles += group_of_[i] == i ? Barrier() : 0;
    return cycles;
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

  bool Reads(const NestStage& stage, Buffer whole) const {
    for (Buffer read : ReadsOf(stage)) {
      if (stages_.WholeOf(read) == whole) return true;
    }
    return false;
  }

  // Of each stage the last stage of its group: that of its only reader, or its own. A stage that stores another shape
  // of a buffer ends a group.
  void FindGroups() {
    const auto& list = stages_.list;
    const absl::flat_hash_set<Buffer> locals(stages_.locals.begin(), stages_.locals.end());
    absl::flat_hash_map<Buffer, int> writers;
    for (const NestStage& stage : list) ++writers[stages_.WholeOf(stage.target)];
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
      if (Reads(list[i], stages_.WholeOf(list[*groups.begin()].target))) continue;
      // Nothing that the stage reads may be stored before the group.
      bool is_stable = true;
      for (size_t k = i + 1; k < *groups.begin(); ++k) {
        if (group_of_[k] == k && Reads(list[i], stages_.WholeOf(list[k].target))) is_stable = false;
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
    bool is_scalar = false;  // in part
    std::vector<std::string> notes;
  };
  using Members = std::vector<const NestStage*>;
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

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

  double Barrier() const {
    const isa::Machine& m = *target_.machine;
    return static_cast<double>(m.Get("sync.drain") + m.Get("sync.global"));
  }

  // The members in groups of neighbours. Each group takes in more, a few at a time, as long as that is cheaper than
  // what they cost by themselves.
  absl::StatusOr<Piece> InParts(const Members& members) {
    constexpr size_t kMostAhead = 4;
    Piece all;
    for (size_t first = 0; first < members.size();) {
      ASSIGN_OR_RETURN(Piece best, CheapestPiece({members[first]}));
      size_t end = first + 1;
      double apart = best.cycles;
      for (size_t k = end; k < std::min(members.size(), end + kMostAhead); ++k) {
        ASSIGN_OR_RETURN(const Piece single, CheapestPiece({members[k]}));
        apart += single.cycles + Barrier();
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
        if (Reads(stage, stages_.WholeOf(members[i]->target))) return false;
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
    piece = Cheaper(std::move(piece), WithOwnFactorsOf(members));
    piece = Cheaper(std::move(piece), AsTwoSumsOf(members));
    if (!piece.ok() && members.size() == 1) piece = ScalarPiece(*members[0], piece.status());
    if (piece.ok()) pieces_[key] = *piece;
    return piece;
  }

  // What has no instructions, for a reason, runs on the scalar units.
  Piece ScalarPiece(const NestStage& stage, const absl::Status& reason) {
    const ScalarLoops loops = ScalarLoopsOf(stage, IndexType(), *target_.machine, c_);
    te::Rename::Map to;
    const auto rename = [&](Buffer buffer) {
      const te::Shape shape = ShapeOf(buffer);
      std::vector<int64_t> strides(buffer->extents.size(), 1);
      for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
      to[buffer] = {.to = flat_.at(buffer), .strides = std::move(strides)};
    };
    rename(stage.target);
    for (Buffer read : ReadsOf(stage)) rename(read);
    Piece piece;
    piece.body = {te::Rename(to).Mutate(loops.body)};
    piece.cycles = loops.cycles;
    piece.is_scalar = true;
    piece.notes = {
        StrCat(stage.name, " -> ", stage.target->name, " on the scalar units: ", reason.message())};
    return piece;
  }

  static absl::StatusOr<Piece> Cheaper(absl::StatusOr<Piece> a, absl::StatusOr<Piece> b) {
    return b.ok() && (!a.ok() || b->cycles < a->cycles) ? b : a;
  }

  // With sums in the members' types, or in that of the tensor unit.
  absl::StatusOr<Piece> NewPiece(const Members& members) {
    const std::vector<NestStage> wide =
        WithWideSums(members, c_, [&](ir::Type type) { return MultipliesOnTensorUnit(type); });
    if (wide.empty()) return PieceInTypes(members);
    Members others;
    for (const NestStage& stage : wide) {
      if (!flat_.contains(stage.target)) MakeBuffer(stage.target);
      others.push_back(&stage);
    }
    absl::StatusOr<Piece> of_wide = PieceInTypes(others);
    return Cheaper(std::move(of_wide), PieceInTypes(members));
  }

  absl::StatusOr<Piece> WithOwnFactorsOf(const Members& members) {
    const OwnFactors own = WithOwnFactors(members, c_);
    if (own.stages.empty()) return InvalidInput("no tensor is multiplied with itself");
    for (const auto& [view, whole] : own.views) MakeView(view, whole);
    Members others;
    for (const NestStage& stage : own.stages) others.push_back(&stage);
    return NewPiece(others);
  }

  // A sum of two products that reads no other member's results, as two groups.
  absl::StatusOr<Piece> AsTwoSumsOf(const Members& members) {
    for (size_t i = 0; i < members.size(); ++i) {
      // Pieces are found by names, so the same stage gets the same buffer each time.
      auto& sums = two_sums_[members[i]->name];
      if (!sums) sums = AsTwoSums(*members[i], c_);
      const auto is_read = [&](const NestStage* m) {
        return m != members[i] && ReadsOf(*members[i]).contains(m->target);
      };
      if (!sums || std::any_of(members.begin(), members.end(), is_read)) continue;
      if (!flat_.contains(sums->first.target)) MakeBuffer(sums->first.target);
      ASSIGN_OR_RETURN(Piece all, CheapestPiece({&sums->first}));
      all.temporaries.push_back(flat_.at(sums->first.target));
      Members others = members;
      others[i] = &sums->second;
      ASSIGN_OR_RETURN(const Piece piece, CheapestPiece(others));
      Add(piece, all);
      return all;
    }
    return InvalidInput("no sum of two products");
  }

  bool MultipliesOnTensorUnit(ir::Type type) const {
    const te::LaneInstructions lanes(*target_.instructions, *target_.machine);
    return lanes.SumOfProducts(type, 2, 1) != nullptr;
  }

  // As they are, which may be found to take longer than the others without a search.
  absl::StatusOr<Piece> PieceInTypes(const Members& members) {
    const absl::StatusOr<Piece> turned =
        Cheaper(WithTurnedConvolution(members), WithTurnedFactorsOf(members));
    const double limit = turned.ok() ? turned->cycles : kNoLimit;
    absl::StatusOr<Piece> plain = PieceOf(members, limit);
    plain = Cheaper(plain, turned);
    // What takes little longer than its elements take to move walks no tensor with a stride.
    constexpr double kLittle = 1.5;
    if (plain.ok() && plain->cycles < kLittle * GmemCycles(members)) return plain;
    return Cheaper(plain, WithoutInterleaving(members));
  }

  // The members over tensors whose interleaved parts become rows on chip.
  absl::StatusOr<Piece> WithoutInterleaving(const Members& members) {
    const absl::Status none = InvalidInput("nothing is interleaved");
    std::vector<NestStage> stages;
    for (const NestStage* stage : members) {
      // Tiles may load more of what is turned than they store.
      if (Reads(*stage, stages_.WholeOf(members.back()->target))) return none;
      stages.push_back(*stage);
    }
    absl::StatusOr<Piece> best = none;
    const std::vector<Deinterleaved> ways = Deinterleave(c_, std::move(stages));
    for (const auto& [list, views] : ways) {
      for (const auto& [view, whole] : views) {
        if (flat_.contains(whole)) MakeView(view, whole);
      }
      Members turned;
      for (const NestStage& stage : list) turned.push_back(&stage);
      best = Cheaper(best, PieceOf(turned));
    }
    return best;
  }

  // The members with their only reduction, a convolution, as several groups: the cheapest way to do that.
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
    // The tensor unit's windows run forwards; vectors of filters are read in any order.
    NestStage forwards = **sums;
    Expr factor = forwards.element;
    while (factor.Is(ExprKind::kMul) || factor.Is(ExprKind::kCast)) factor = factor.operand(0);
    if (MultipliesOnTensorUnit(factor.type())) RunForwards(forwards);
    absl::StatusOr<Piece> best = TurnedPiece(forwards, before, after, {.with_sums = true});
    if (!best.ok()) best = TurnedPiece(forwards, before, after, {.with_sums = false});
    best = Cheaper(std::move(best), TurnedPiece(forwards, before, after, {.stacks = true}));
    const std::optional<PlaneProducts> planes = ProductsOfPlanes(forwards, before, c_);
    if (!planes) return best;
    for (const bool stacks : {false, true}) {
      best = Cheaper(std::move(best), PlanesPiece(forwards, *planes, before, after, stacks));
    }
    return best;
  }

  absl::StatusOr<Piece> TurnedPiece(const NestStage& sums, const Members& before,
                                    const Members& after, const TurnOptions& options) {
    const TurnedConvolution turned = TurnConvolution(sums, before, after, options, c_);
    ASSIGN_OR_RETURN(Piece all, PieceOfGroups(turned));
    // The last group's target is the result.
    all.temporaries.pop_back();
    if (!after.empty() && !turned.has_after) {
      ASSIGN_OR_RETURN(const Piece piece, PieceOf(after));
      Add(piece, all);
    }
    return all;
  }

  // Sums of products of planes.
  absl::StatusOr<Piece> PlanesPiece(const NestStage& sums, const PlaneProducts& planes,
                                    const Members& before, const Members& after, bool stacks) {
    const TurnOptions options = {.stacks = stacks, .results_stay = true};
    const TurnedConvolution turned = TurnConvolution(planes.products, before, {}, options, c_);
    ASSIGN_OR_RETURN(Piece all, PieceOfGroups(turned));
    const NestStage added = SumsOfPlanes(sums, planes, turned.results, turned.results_axes, c_);
    Members together = {&added};
    together.insert(together.end(), after.begin(), after.end());
    ASSIGN_OR_RETURN(const Piece piece, PieceOf(together));
    Add(piece, all);
    return all;
  }

  // All targets are temporaries, the last group's behind the others.
  absl::StatusOr<Piece> PieceOfGroups(const TurnedConvolution& turned) {
    if (turned.groups.empty()) return InvalidInput("no convolution");
    for (const auto& [view, whole] : turned.views) {
      if (!flat_.contains(whole)) MakeBuffer(whole);
      MakeView(view, whole);
    }
    Piece all;
    for (const TurnedConvolution::Group& group : turned.groups) {
      const Buffer target = group.stages.back().target;
      if (!flat_.contains(target)) MakeBuffer(target);
      Members together;
      for (const NestStage& member : group.stages) together.push_back(&member);
      ASSIGN_OR_RETURN(const Piece piece, PieceOf(together));
      for (size_t i = 0; i < group.images.size(); ++i) {
        ASSIGN_OR_RETURN(Piece image, From(piece, group.images[i]));
        if (i > 0) image.temporaries.clear(), image.notes.clear();
        Add(image, all);
      }
      all.temporaries.push_back(flat_.at(target));
    }
    return all;
  }

  // A piece with its buffers from other elements on.
  absl::StatusOr<Piece> From(const Piece& piece,
                             const TurnedConvolution::Group::Offsets& offsets) const {
    te::Rename::Map to;
    for (const auto& [buffer, offset] : offsets) {
      const Buffer flat = flat_.at(buffer);
      const auto [it, is_new] =
          to.try_emplace(flat, te::Renamed{.to = flat, .strides = {1}, .offset = offset});
      if (!is_new && it->second.offset != offset) {
        return InvalidInput("'", flat->name, "': read from two elements on");
      }
    }
    Piece other = piece;
    for (ir::Stmt& s : other.body) s = ir::CloneWithFreshBindings(te::Rename(to).Mutate(s));
    return other;
  }

  // The members after copies that turn factors of products around or compute them.
  absl::StatusOr<Piece> WithTurnedFactorsOf(const Members& members) {
    const absl::Status none = InvalidInput("no factors to turn around");
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
        if (ReadsOf(copy).contains(stage->target)) return none;
      }
    }
    if (copies.empty()) return none;
    Piece all;
    for (const NestStage& copy : copies) {
      MakeBuffer(copy.target);
      ASSIGN_OR_RETURN(const Piece piece, PieceOf({&copy}));
      Add(piece, all);
      all.temporaries.push_back(flat_.at(copy.target));
    }
    ASSIGN_OR_RETURN(const Piece piece, PieceOf(others));
    Add(piece, all);
    return all;
  }
  // Behind a barrier of the card, if it is not the first.
  void Add(const Piece& piece, Piece& all) const {
    if (!all.body.empty()) all.cycles += Barrier();
    all.body.insert(all.body.end(), piece.body.begin(), piece.body.end());
    all.temporaries.insert(all.temporaries.end(), piece.temporaries.begin(),
                           piece.temporaries.end());
    all.cycles += piece.cycles;
    all.reassociates = all.reassociates || piece.reassociates;
    all.is_scalar = all.is_scalar || piece.is_scalar;
    all.notes.insert(all.notes.end(), piece.notes.begin(), piece.notes.end());
  }

  absl::StatusOr<Piece> PieceOf(const Members& members, double limit = kNoLimit) {
    if (members.size() == 1) {
      if (const std::optional<MergedCopy> merged = MergeDimensions(*members[0], IndexType(), c_)) {
        for (const auto& [view, whole] : merged->views) MakeView(view, whole);
        return PieceOf({&merged->stage});
      }
    }
    absl::StatusOr<Piece> whole = GroupOf(members, limit);
    if (members.size() != 1) return whole;
    for (const int64_t unit : {4 * target_.machine->cores(), target_.machine->cores()}) {
      const std::vector<NestStage> parts = EvenParts(c_, *members[0], unit);
      if (parts.empty()) continue;
      absl::StatusOr<Piece> piece = PieceInParts(parts);
      // Stores with gaps take up to a tenth longer than the model says.
      const bool gains = piece.ok() && (!whole.ok() || piece->cycles < 0.9 * whole->cycles);
      if (gains) whole = std::move(piece);
    }
    return whole;
  }

  // One part after the other.
  absl::StatusOr<Piece> PieceInParts(const std::vector<NestStage>& parts) {
    Piece all;
    for (const NestStage& part : parts) {
      ASSIGN_OR_RETURN(Piece piece, GroupOf({&part}, kNoLimit));
      if (all.body.empty()) all.notes = piece.notes;
      all.cycles += piece.cycles;
      all.body.insert(all.body.end(), piece.body.begin(), piece.body.end());
      all.temporaries.insert(all.temporaries.end(), piece.temporaries.begin(),
                             piece.temporaries.end());
    }
    return all;
  }

  absl::StatusOr<Piece> GroupOf(const Members& members, double limit) {
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
    ASSIGN_OR_RETURN(const ir::Function part, GroupFunction(graph.output(), target_, last.place,
                                                            limit, scalar_stores_, piece.cycles));
    te::Rename::Map to;
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      to[part.params[i].buffer] = {.to = flat_.at(graph.inputs()[i])};
    }
    const Buffer output = part.params.back().buffer;
    te::Renamed& place = to[output];
    place.to = flat_.at(last.target);
    const te::Shape whole = ShapeOf(last.target);
    if (!last.extents.empty() && last.extents != whole) {
      RETURN_IF_ERROR(PlaceBox(last, ShapeOf(output), place));
    }
    ir::Stmt body = te::Rename(to).Mutate(part.body);
    for (; body.Is(ir::StmtKind::kAllocate) && body.buffer()->scope == "gmem"; body = body.body()) {
      piece.temporaries.push_back(body.buffer());
    }
    piece.body = {body};
    piece.notes = {StrCat(note, " -> ", last.target->name)};
    return piece;
  }

  void MakeFunction() {
    ir::Function& whole = program_.function;
    whole.name = function_.name;
    whole.context = function_.context;
    for (const ir::Param& param : function_.params) {
      const auto& first = stages_.read_first;
      const bool is_read = std::find(first.begin(), first.end(), param.buffer) != first.end();
      const bool is_out = param.access == ir::Access::kOut;
      whole.params.push_back({.var = {},
                              .buffer = flat_.at(param.buffer),
                              .access = is_read && is_out ? ir::Access::kInOut : param.access,
                              .scope = ""});
    }
    program_.cycles = all_.cycles;
    program_.reassociates = all_.reassociates;
    program_.has_scalar_stages = all_.is_scalar;
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
  std::map<std::string, std::optional<std::pair<NestStage, NestStage>>> two_sums_;
  absl::flat_hash_set<std::string> taken_;  // keys of pieces that the program has
  NestProgram program_;
};

// The program of stages, with stores with gaps or whole rows of sums, whichever is cheaper.
absl::StatusOr<NestProgram> ScheduleStages(const ir::Function& function, const Target& target,
                                           NestStages stages,
                                           const CountScalarStores& scalar_stores) {
  absl::StatusOr<NestProgram> program = Scheduler(function, target, stages, scalar_stores).Run();
  const bool joins = JoinParts(*function.context, stages, [&](ir::Type type) {
    return target.instructions->Find(StrCat("add.", ir::TypeName(type))) != nullptr;
  });
  if (!joins) return program;
  absl::StatusOr<NestProgram> joined = Scheduler(function, target, stages, scalar_stores).Run();
  const bool is_better = joined.ok() && !joined->has_scalar_stages &&
                         (!program.ok() || joined->cycles < program->cycles);
  return is_better ? std::move(joined) : std::move(program);
}

}  // namespace

absl::StatusOr<NestProgram> ScheduleForCard(const ir::Function& function, const Target& target,
                                            const CountScalarStores& scalar_stores) {
  ASSIGN_OR_RETURN(const NestStages stages, FindStages(function));
  absl::StatusOr<NestProgram> program = ScheduleStages(function, target, stages, scalar_stores);
  if (!stages.has_parts) return program;
  // What is stored by boxes may have no instructions, or many elements that are not stored.
  const absl::StatusOr<NestStages> others = FindStages(function, Parts::kOneByOne);
  if (!others.ok()) return program;
  if (program.ok() && !program->has_scalar_stages &&
      program->cycles <= Scheduler(function, target, *others, scalar_stores).LeastCycles()) {
    return program;
  }
  absl::StatusOr<NestProgram> other = ScheduleStages(function, target, *others, scalar_stores);
  const auto cost = [](const absl::StatusOr<NestProgram>& p) {
    return std::pair(!p.ok() ? 2 : p->has_scalar_stages ? 1 : 0, p.ok() ? p->cycles : 0);
  };
  return cost(other) < cost(program) ? std::move(other) : std::move(program);
}

}  // namespace polynao::poly
