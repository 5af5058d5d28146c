#include "compiler/passes/preprocess.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/loop_partition.h"
#include "isa/affine.h"

namespace polynao {
namespace {

using arith::Analyzer;
using arith::ConstRange;
using arith::LinearForm;
using ir::Buffer;
using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Function;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

constexpr std::string_view kPad = "pad";
constexpr std::string_view kRagged = "ragged";
constexpr std::string_view kSlidingWindow = "sliding_window";

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// ---- what the table asks for ---------------------------------------------------------------------

// How a family of instructions treats its nests; by the meanings of its instructions.
struct Family {
  bool reduces = false;  // accumulates over loops that the result's index does not have
  bool copies = false;   // stores what it loads
  struct Weights {
    Type type;
    int64_t lanes;     // banks
    int64_t multiple;  // of the pitch, in elements
  };
  std::vector<Weights> weights;  // by their element type
};

// The store in `meaning` that accumulates, with the loops around it; null if none does.
Stmt FindUpdate(Stmt s, std::vector<Stmt>& loops) {
  if (s.Is(StmtKind::kStore)) {
    bool accumulates = false;
    ir::ForEachExpr(s.value(), [&](Expr e) {
      accumulates |= e.Is(ExprKind::kLoad) && Buffer(e.buffer()) == s.buffer();
    });
    if (!accumulates) return Stmt();
    for (Stmt loop : loops) {
      bool in_index = false;
      for (Expr index : s.indices()) in_index = in_index || ir::UsesVar(index, loop.var());
      if (!in_index) return s;
    }
    return Stmt();
  }
  if (s.Is(StmtKind::kFor)) loops.push_back(s);
  for (Stmt child : s.children()) {
    if (Stmt update = FindUpdate(child, loops)) return update;
  }
  if (s.Is(StmtKind::kFor)) loops.pop_back();
  return Stmt();
}

// The multiple of which `@require(pitch * size % multiple == 0)` wants `pitch` to be; 1 if nothing
// does.
int64_t RequiredMultiple(const Function& meaning, Expr pitch) {
  int64_t result = 1;
  for (const ir::Attribute& attribute : meaning.attributes) {
    if (attribute.key != "require") continue;
    for (const ir::AttributeValue& value : attribute.values) {
      const Expr* condition = std::get_if<Expr>(&value);
      if (condition == nullptr || !condition->Is(ExprKind::kEq) ||
          !condition->operand(1).IsInt(0) || !condition->operand(0).Is(ExprKind::kMod)) {
        continue;
      }
      const Expr modulo = condition->operand(0);
      const std::optional<isa::Affine> size = isa::Linearize(modulo.operand(0), {pitch});
      if (!size || size->constant || !size->coefficients[0] ||
          !size->coefficients[0].Is(ExprKind::kIntImm) ||
          !modulo.operand(1).Is(ExprKind::kIntImm)) {
        continue;
      }
      const int64_t multiple = modulo.operand(1).int_value();
      result = std::lcm(result, multiple / std::gcd(multiple, size->coefficients[0].int_value()));
    }
  }
  return result;
}

// The layout of weights that an accumulating meaning asks for:
//   dst[.., c * lanes + l] += ... weights[l, c * pitch + ...]
std::optional<Family::Weights> FindWeights(const Function& meaning, Stmt update,
                                           absl::Span<const Stmt> loops) {
  std::vector<Var> vars;
  for (Stmt loop : loops) vars.push_back(loop.var());
  const std::optional<isa::Affine> channel = isa::Linearize(update.indices().back(), vars);
  std::optional<Family::Weights> weights;
  ir::ForEachExpr(update.value(), [&](Expr e) {
    if (!channel || !e.Is(ExprKind::kLoad) || e.buffer()->scope != "wmem" ||
        e.operands().size() != 2) {
      return;
    }
    const auto lane = std::find(vars.begin(), vars.end(), e.operand(0));
    const std::optional<isa::Affine> place = isa::Linearize(e.operand(1), vars);
    if (lane == vars.end() || !place) return;
    const Expr lanes = loops[lane - vars.begin()].extent();
    const Expr unit = channel->coefficients[lane - vars.begin()];
    if (!lanes.Is(ExprKind::kIntImm) || !unit || !unit.IsInt(1)) return;
    for (size_t c = 0; c < vars.size(); ++c) {
      const Expr stride = channel->coefficients[c];
      const Expr pitch = place->coefficients[c];
      if (!stride || !stride.IsInt(lanes.int_value()) || !pitch || !pitch.Is(ExprKind::kVar)) {
        continue;
      }
      weights = {e.type(), lanes.int_value(), RequiredMultiple(meaning, pitch)};
    }
  });
  return weights;
}

Family MakeFamily(const isa::InstructionSet& set, std::string_view name) {
  Family family;
  for (const isa::Instruction& instruction : set.instructions()) {
    if (instruction.family != name || instruction.queue == isa::Queue::kNone || instruction.waits) {
      continue;
    }
    // In a context of its own: the table's is shared.
    const Function meaning = ir::CloneInto(instruction.meaning, std::make_shared<Context>());
    std::vector<Stmt> loops;
    if (Stmt update = FindUpdate(meaning.body, loops)) {
      family.reduces = true;
      if (auto weights = FindWeights(meaning, update, loops)) family.weights.push_back(*weights);
      continue;
    }
    Stmt s = meaning.body;
    while (s.Is(StmtKind::kFor)) s = s.body();
    if (s.Is(StmtKind::kStore) && s.value().Is(ExprKind::kLoad)) family.copies = true;
  }
  return family;
}

// ---- nests ---------------------------------------------------------------------------------------

// A condition around a store.
struct Guard {
  Expr condition;
  // All >= 0 if and only if the condition holds; none: not affine, stays where it is.
  std::vector<LinearForm> forms;
  std::vector<Var> vars;   // the nest's loops in it
  bool on_all = true;      // around each store of the nest
  bool is_inside = false;  // a condition of a select, under "pad"
};

struct NestLoop {
  Stmt loop;
  Expr min;
  Expr extent;
};

// A store with the loops and ifs around it in its nest.
struct Leaf {
  Stmt store;
  std::vector<Stmt> loops;
  std::vector<Expr> conditions;
};

// How an access's innermost index depends on the nest: var + base, or base alone.
struct ChannelIndex {
  Var var;  // null: none
  Expr base;
};

// An index that may reach behind a buffer's extent if no guard holds.
struct Need {
  Buffer buffer;
  size_t dimension;
  int64_t extent;
};

// The condition `form >= 0` on the elements of a buffer: loop variables are replaced by indices.
using ElementGuard = LinearForm;

struct Nest {
  Stmt pragma;
  const Family* family = nullptr;  // null: pad
  std::vector<Leaf> leaves;
  size_t shared_loops = 0;  // that all leaves stand in
  // Shared loops, then the last leaf's own.
  std::vector<NestLoop> loops;
  std::vector<Guard> guards;
  std::vector<Need> needs;
  int64_t used = 0;          // one more than the largest innermost index of the store
  bool stays_inside = true;  // all indices are inside or in `needs`, guards or not
  // Under "pad".
  Expr inside_value;
  Expr fill_value;  // null: there is no select

  // Decided later.
  std::string kept;                 // why guards or layout are not as asked for
  std::vector<bool> dropped;        // by guard
  std::vector<bool> bounds;         // by guard: put into the loops' bounds
  std::vector<Expr> outside;        // by guard: the condition of an if around the nest, or null
  std::vector<NestLoop> new_loops;  // with bounds
  std::vector<Expr> fewer;  // by guard: iterations of the outermost loop if it bounds that, or null
  std::vector<bool> may_be_empty;  // by loop
  Expr some_outside;               // pad: some element is not inside
  int64_t lanes = 0;               // the loop over channels is split by it
  int64_t groups = 0;
  Var channel;           // the loop that is split or extended; null: none or a new one
  Expr weights_base;     // group of the nest's first channel
  int64_t channels = 0;  // extent of the channel loop after ALIGN, 0: as it was
};

// A buffer allocated on chip.
struct Allocation {
  Stmt stmt;
  // Positions of the walk at which it begins and ends.
  int begin = 0;
  int end = 0;
  // What stores to it: marked nests, and whether anything else does.
  std::vector<size_t> writers;
  std::vector<size_t> readers;
  bool other_writers = false;
  bool has_address = false;
  // One more than the largest innermost index stored to by marked nests.
  int64_t used = 0;
  // Of each writer: conditions on the elements that it stores to. Made when first needed.
  std::vector<std::vector<ElementGuard>> writer_guards;
  std::vector<int64_t> extents;  // after ALIGN and COM; empty if not constant
  std::vector<Var> dimensions;   // stand for indices in ElementGuards
  // LAYOUT: the dimension of channels, filters' elements and pitch.
  std::optional<Family::Weights> layout;
  size_t channel_dimension = 0;
  int64_t pitch = 0;
  Buffer replacement;  // null: stays as it is
};

// A buffer under pragma "sliding_window".
struct Window {
  std::optional<Expr> fill_value;  // what pads it
  bool other_writers = false;      // nests that do not pad, or with another value
};

std::string FirstLine(Stmt s) {
  const std::string text = ir::Print(s);
  return text.substr(0, text.find('\n'));
}

void SplitConjunction(Expr e, std::vector<Expr>& parts) {
  if (e.Is(ExprKind::kAnd)) {
    SplitConjunction(e.operand(0), parts);
    SplitConjunction(e.operand(1), parts);
  } else if (!e.IsInt(1)) {
    parts.push_back(e);
  }
}

// Not(e), pushed down to comparisons.
Expr Negation(Expr e) {
  switch (e.kind()) {
    case ExprKind::kNot:
      return e.operand(0);
    case ExprKind::kOr:
      return ir::And(Negation(e.operand(0)), Negation(e.operand(1)));
    case ExprKind::kAnd:
      return ir::Or(Negation(e.operand(0)), Negation(e.operand(1)));
    case ExprKind::kLt:
    case ExprKind::kLe:
      if (!ir::IsInt(e.operand(0).type())) return ir::Not(e);
      return e.Is(ExprKind::kLt) ? e.operand(1) <= e.operand(0) : e.operand(1) < e.operand(0);
    default:
      return ir::Not(e);
  }
}

class Preprocessor {
 public:
  Preprocessor(Function& function, const Target& target, std::vector<PreprocessDecision>* decisions)
      : function_(function),
        target_(target),
        c_(*function.context),
        decisions_(decisions),
        analyzer_(c_) {}

  bool Run() {
    if (!HasComplexNest()) return false;
    Collect(function_.body);
    for (size_t n = 0; n < nests_.size(); ++n) NoteAccesses(n);
    for (Nest& nest : nests_) PlanLayout(nest);
    AlignChannels();
    for (Nest& nest : nests_) {
      if (IsComputing(nest)) PlanGuards(nest);
    }
    MakeBuffers();
    const Stmt body = Rewriter(*this).Mutate(function_.body);
    const bool changed = body != function_.body;
    function_.body = body;
    return changed;
  }

 private:
  // ---- finding

  const Family* FindFamily(std::string_view name) {
    auto [it, added] = families_.try_emplace(std::string(name));
    if (added) {
      for (const isa::Instruction& instruction : target_.instructions->instructions()) {
        if (instruction.family != name || instruction.queue == isa::Queue::kNone) continue;
        it->second = MakeFamily(*target_.instructions, name);
        break;
      }
    }
    return it->second ? &*it->second : nullptr;
  }

  bool HasComplexNest() {
    bool found = false;
    ir::ForEachStmt(function_.body, [&](Stmt s) {
      if (found || !s.Is(StmtKind::kPragma)) return !found;
      const Family* family = FindFamily(s.name());
      found = s.name() == kPad || s.name() == kRagged || (family != nullptr && family->reduces);
      return !found;
    });
    return found;
  }

  static bool IsPad(const Nest& nest) { return nest.family == nullptr; }
  static bool IsCopy(const Nest& nest) { return nest.family != nullptr && nest.family->copies; }
  static bool IsComputing(const Nest& nest) { return !IsPad(nest) && !IsCopy(nest); }

  void Collect(Stmt s) {
    Analyzer::Scope scope(analyzer_);
    const int position = position_++;
    switch (s.kind()) {
      case StmtKind::kPragma: {
        if (s.name() == kSlidingWindow && s.body().Is(StmtKind::kAllocate)) {
          windows_[s.body().buffer()] = {};
        }
        const Family* family = FindFamily(s.name());
        if (family == nullptr && s.name() != kPad) break;
        Nest nest;
        nest.pragma = s;
        nest.family = family;
        if (ParseNest(nest)) {
          NoteWindow(nest);
          nests_.push_back(std::move(nest));
          return;
        }
        Report(s.body(), StrCat("kept: ", nest.kept));
        break;
      }
      case StmtKind::kFor:
        bound_at_[s.var()] = position;
        analyzer_.BindLoop(s.var(), s.min(), s.extent());
        break;
      case StmtKind::kLet:
        bound_at_[s.var()] = position;
        if (ir::IsInt(s.var().type())) analyzer_.BindLet(s.var(), s.value());
        break;
      case StmtKind::kIf:
        for (const bool truth : {true, false}) {
          Analyzer::Scope branch(analyzer_);
          analyzer_.Assume(s.cond(), truth);
          Collect(truth ? s.then_case() : s.else_case());
        }
        return;
      case StmtKind::kAllocate:
        if (IsOnChip(s.buffer()->scope)) {
          in_order_.push_back(s.buffer());
          Allocation& allocation = allocations_[s.buffer()];
          allocation.stmt = s;
          allocation.begin = position;
          for (Expr extent : s.buffer()->extents) {
            if (!extent.Is(ExprKind::kIntImm)) {
              allocation.extents.clear();
              break;
            }
            allocation.extents.push_back(extent.int_value());
          }
          Collect(s.body());
          allocations_[s.buffer()].end = position_;
          return;
        }
        break;
      case StmtKind::kStore:
        if (Allocation* allocation = Find(s.buffer())) allocation->other_writers = true;
        break;
      case StmtKind::kEvaluate:
        for (Expr operand : s.value().operands()) {
          if (!operand.Is(ExprKind::kAddress)) continue;
          if (Allocation* allocation = Find(Buffer(operand.buffer()))) {
            allocation->other_writers = true;
            allocation->has_address = true;
          }
        }
        break;
      case StmtKind::kSeq:
        break;
    }
    for (Stmt child : s.children()) Collect(child);
  }

  // What a marked nest stores to a sliding window.
  void NoteWindow(const Nest& nest) {
    const auto it = windows_.find(nest.leaves[0].store.buffer());
    if (it == windows_.end()) return;
    Window& window = it->second;
    const bool pads = IsPad(nest) && nest.fill_value && !nest.some_outside.IsInt(0);
    window.other_writers = window.other_writers || !IsPad(nest) ||
                           (pads && window.fill_value && *window.fill_value != nest.fill_value);
    if (pads) window.fill_value = nest.fill_value;
  }

  // Whether one fill of all of a window pads all that is stored to it.
  bool IsFilled(const Window& window, Buffer buffer) {
    return window.fill_value && !window.other_writers && !Find(buffer)->other_writers;
  }

  Allocation* Find(Buffer buffer) {
    auto it = allocations_.find(buffer);
    return it == allocations_.end() ? nullptr : &it->second;
  }

  // ---- taking nests apart

  // Goes down to the stores; false with nest.kept set if the nest has not the form.
  bool FindLeaves(Nest& nest, Stmt s, Leaf path) {
    while (true) {
      if (s.Is(StmtKind::kFor)) {
        if (s.for_kind() == ir::ForKind::kThread) {
          nest.kept = StrCat("the thread loop '", s.var().name(), "' stands inside");
          return false;
        }
        path.loops.push_back(s);
        s = s.body();
      } else if (s.Is(StmtKind::kIf) && s.else_case().IsEmpty()) {
        SplitConjunction(s.cond(), path.conditions);
        s = s.then_case();
      } else {
        break;
      }
    }
    if (s.Is(StmtKind::kStore)) {
      path.store = s;
      nest.leaves.push_back(std::move(path));
      return true;
    }
    if (s.Is(StmtKind::kSeq) && s.children().size() == 2 && nest.leaves.empty() &&
        nest.family != nullptr && nest.family->reduces) {
      nest.shared_loops = path.loops.size();
      if (!FindLeaves(nest, s.children()[0], path) || !FindLeaves(nest, s.children()[1], path)) {
        return false;
      }
      const Leaf& init = nest.leaves[0];
      if (nest.leaves.size() == 2 && init.loops.size() == nest.shared_loops &&
          init.store.buffer() == nest.leaves[1].store.buffer() &&
          init.store.indices() == nest.leaves[1].store.indices()) {
        return true;
      }
    }
    nest.kept = "not a perfect nest over one store";
    return false;
  }

  bool ParseNest(Nest& nest) {
    if (!FindLeaves(nest, nest.pragma.body(), {})) return false;
    const Leaf& last = nest.leaves.back();
    if (nest.leaves.size() == 1) nest.shared_loops = last.loops.size();
    for (Stmt loop : last.loops) nest.loops.push_back({loop, loop.min(), loop.extent()});
    for (const NestLoop& a : nest.loops) {
      for (const NestLoop& b : nest.loops) {
        if (ir::UsesVar(a.min, b.loop.var()) || ir::UsesVar(a.extent, b.loop.var())) {
          nest.kept = StrCat("the bounds of '", a.loop.var().name(), "' depend on '",
                             b.loop.var().name(), "'");
          return false;
        }
      }
    }
    if (IsPad(nest) && !FindPadding(nest)) return false;
    FindGuards(nest);
    if (!NarrowLoops(nest)) {
      nest.kept = "it has no iteration";
      return false;
    }
    for (const NestLoop& loop : nest.loops) {
      analyzer_.BindLoop(loop.loop.var(), loop.min, loop.extent);
    }
    SettleGuards(nest);
    FindNeeds(nest);
    nest.dropped.resize(nest.guards.size());
    nest.bounds.resize(nest.guards.size());
    nest.outside.resize(nest.guards.size());
    nest.fewer.resize(nest.guards.size());
    nest.new_loops = nest.loops;
    if (IsPad(nest) || IsCopy(nest)) PlanBounds(nest);
    if (IsComputing(nest) && nest.family->reduces) PlanFewer(nest);
    return true;
  }

  // select(inside, load, constant), in either order, nested; or a load or a constant alone.
  bool FindPadding(Nest& nest) {
    Expr value = nest.leaves[0].store.value();
    while (value.Is(ExprKind::kSelect)) {
      const bool fills_else = value.operand(2).IsConst();
      const Expr fill = value.operand(fills_else ? 2 : 1);
      if (!fill.IsConst() || (nest.fill_value && nest.fill_value != fill)) break;
      nest.fill_value = fill;
      std::vector<Expr> parts;
      SplitConjunction(fills_else ? value.operand(0) : Negation(value.operand(0)), parts);
      for (Expr part : parts) {
        nest.guards.push_back({.condition = part, .forms = {}, .vars = {}, .is_inside = true});
      }
      value = value.operand(fills_else ? 1 : 2);
    }
    if (value.IsConst() && !nest.fill_value) {
      // Nothing is inside.
      nest.family = FindFamily("fill");
      if (nest.family != nullptr) return true;
    }
    nest.inside_value = value;
    if (!value.Is(ExprKind::kLoad)) {
      nest.kept = "the value is no load, nor a select of a load or a constant";
      return false;
    }
    return true;
  }

  void FindGuards(Nest& nest) {
    for (const Leaf& leaf : nest.leaves) {
      for (Expr condition : leaf.conditions) {
        const auto known = std::find_if(
            nest.guards.begin(), nest.guards.end(),
            [&](const Guard& guard) { return guard.condition == condition && !guard.is_inside; });
        if (known != nest.guards.end()) continue;
        Guard guard = {.condition = condition, .forms = {}, .vars = {}};
        for (const Leaf& other : nest.leaves) {
          guard.on_all = guard.on_all && std::find(other.conditions.begin(), other.conditions.end(),
                                                   condition) != other.conditions.end();
        }
        nest.guards.push_back(std::move(guard));
      }
    }
  }

  // The forms that are >= 0 if the condition holds, and only then.
  std::vector<LinearForm> FormsOf(Expr condition) {
    if (!IsAffineComparison(condition)) return {};
    LinearForm difference = analyzer_.Form(condition.operand(1));
    if (!difference.Add(analyzer_.Form(condition.operand(0)), -1)) return {};
    if (condition.Is(ExprKind::kEq)) {
      LinearForm opposite = difference;
      if (!opposite.Scale(-1)) return {};
      return {difference, opposite};
    }
    if (condition.Is(ExprKind::kLt) && !difference.AddConstant(-1)) return {};
    return {difference};
  }

  static bool IsAffineComparison(Expr condition) {
    if (!condition.Is(ExprKind::kLt) && !condition.Is(ExprKind::kLe) &&
        !condition.Is(ExprKind::kEq)) {
      return false;
    }
    const Type type = condition.operand(0).type();
    return (type == Type::kI32 || type == Type::kI64) && !MayTrap(condition);
  }

  // Whether evaluating `e` elsewhere than under the conditions before it may stop the program.
  static bool MayTrap(Expr root) {
    bool found = false;
    ir::ForEachExpr(root, [&](Expr e) {
      found |= e.Is(ExprKind::kLoad) || e.Is(ExprKind::kCall) || e.Is(ExprKind::kLet) ||
               DividesByUnknown(e);
    });
    return found;
  }

  static bool DividesByUnknown(Expr e) {
    return (e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod)) && ir::IsInt(e.type()) &&
           (!e.operand(1).IsConst() || e.operand(1).IsInt(0));
  }

  // Guards that bound one loop by constants become its bounds. False if nothing is left.
  bool NarrowLoops(Nest& nest) {
    std::erase_if(nest.guards, [&](const Guard& guard) {
      if (!guard.on_all || guard.is_inside) return false;
      const std::vector<LinearForm> forms = FormsOf(guard.condition);
      if (forms.empty()) return false;
      NestLoop* loop = nullptr;
      for (const LinearForm& form : forms) {
        if (form.terms().size() != 1) return false;
        for (NestLoop& l : nest.loops) {
          if (form.IsConstant() || form.terms()[0].atom != l.loop.var()) continue;
          loop = &l;
        }
      }
      if (loop == nullptr || !loop->min.Is(ExprKind::kIntImm) ||
          !loop->extent.Is(ExprKind::kIntImm)) {
        return false;
      }
      int64_t first = loop->min.int_value();
      int64_t last = first + loop->extent.int_value() - 1;
      for (const LinearForm& form : forms) {
        const int64_t k = form.terms()[0].coefficient;
        if (k > 0) {
          first = std::max(first, -arith::FloorDiv(form.constant(), k));
        } else {
          last = std::min(last, arith::FloorDiv(form.constant(), -k));
        }
      }
      const Type type = loop->loop.var().type();
      loop->min = c_.Int(type, first);
      loop->extent = c_.Int(type, std::max<int64_t>(last - first + 1, 0));
      return true;
    });
    return std::none_of(nest.loops.begin(), nest.loops.end(),
                        [](const NestLoop& loop) { return loop.extent.IsInt(0); });
  }

  // With the loops bound: guards that always hold go.
  void SettleGuards(Nest& nest) {
    std::erase_if(nest.guards,
                  [&](const Guard& guard) { return analyzer_.CanProve(guard.condition); });
    for (Guard& guard : nest.guards) {
      guard.forms = FormsOf(guard.condition);
      for (const NestLoop& loop : nest.loops) {
        const bool in_form =
            guard.forms.empty()
                ? ir::UsesVar(guard.condition, loop.loop.var())
                : std::any_of(guard.forms.begin(), guard.forms.end(), [&](const LinearForm& form) {
                    return UsesVar(form, loop.loop.var());
                  });
        if (in_form) guard.vars.push_back(loop.loop.var());
      }
    }
  }

  static bool UsesVar(const LinearForm& form, Var var) {
    return std::any_of(form.terms().begin(), form.terms().end(),
                       [&](const LinearForm::Term& term) { return ir::UsesVar(term.atom, var); });
  }

  // What the indices reach if no guard holds.
  void FindNeeds(Nest& nest) {
    if (const Stmt store = nest.leaves[0].store; !store.indices().empty()) {
      const ConstRange range = analyzer_.Range(store.indices().back());
      nest.used = range.IsBounded() ? range.max + 1 : arith::kInfinity;
    }
    const auto access = [&](Buffer buffer, absl::Span<const Expr> indices) {
      const bool is_allocated = allocations_.contains(buffer);
      for (size_t d = 0; d < indices.size(); ++d) {
        const Expr extent = buffer->extents[d];
        const ConstRange range = analyzer_.Range(indices[d]);
        if (range.min >= 0 && extent.Is(ExprKind::kIntImm) && range.max < extent.int_value()) {
          continue;
        }
        const Type type = indices[d].type();
        const Expr bound = extent.Is(ExprKind::kIntImm) ? c_.Int(type, extent.int_value()) : extent;
        if (bound.type() == type && analyzer_.CanProve(indices[d] < bound) &&
            analyzer_.CanProve(c_.Int(type, 0) <= indices[d])) {
          continue;
        }
        if (range.min >= 0 && range.IsBounded() && is_allocated && extent.Is(ExprKind::kIntImm)) {
          nest.needs.push_back({buffer, d, range.max + 1});
        } else {
          nest.stays_inside = false;
        }
      }
    };
    for (const Leaf& leaf : nest.leaves) {
      access(leaf.store.buffer(), leaf.store.indices());
      ir::ForEachExpr(leaf.store.value(), [&](Expr e) {
        if (e.Is(ExprKind::kLoad)) access(Buffer(e.buffer()), e.operands());
        // A divisor that nobody stored may be 0.
        if (DividesByUnknown(e)) nest.stays_inside = false;
      });
    }
  }

  // ---- bounds of copies

  // A bound on `var` from `form` >= 0, in which its coefficient is `k`: var >= result if k > 0, else
  // var < result. None if the rest is no sum in the variable's type.
  std::optional<Expr> BoundOn(Var var, const LinearForm& form, int64_t k) {
    LinearForm rest = form;
    if (!rest.AddTerm(var, -k)) return std::nullopt;
    for (const LinearForm::Term& term : rest.terms()) {
      if (term.atom.type() != var.type()) return std::nullopt;
    }
    const auto sum = [&](const LinearForm& f) {
      return SumExpr(c_, var.type(), f.terms(), f.constant());
    };
    if (k > 0) {
      // k * var >= -rest, rounded up.
      if (!rest.Scale(-1) || !rest.AddConstant(k - 1)) return std::nullopt;
      return k == 1 ? sum(rest) : sum(rest) / k;
    }
    // -k * var < rest + 1, rounded up.
    if (!rest.AddConstant(-k)) return std::nullopt;
    return k == -1 ? sum(rest) : sum(rest) / -k;
  }

  void PlanBounds(Nest& nest) {
    std::vector<Expr> ends;
    for (const NestLoop& loop : nest.loops) {
      ends.push_back(analyzer_.Simplify(loop.min + loop.extent));
    }
    // Loops of one iteration, whose variables conditions may still name.
    ir::VarMap only_values;
    for (const NestLoop& loop : nest.loops) {
      if (loop.extent.IsInt(1)) only_values[loop.loop.var()] = loop.min;
    }
    Expr some_outside = c_.Bool(false);
    for (size_t g = 0; g < nest.guards.size(); ++g) {
      const Guard& guard = nest.guards[g];
      if (guard.forms.empty()) {
        some_outside = c_.Bool(true);
        continue;
      }
      if (guard.vars.empty()) {
        nest.outside[g] = ir::Substitute(guard.condition, only_values);
        some_outside = ir::Or(some_outside, Negation(nest.outside[g]));
        continue;
      }
      std::vector<std::pair<Expr, bool>> bounds;  // and whether it is a lower one
      size_t at = 0;
      while (at < nest.loops.size() && nest.loops[at].loop.var() != guard.vars[0]) ++at;
      const Var var = nest.loops[at].loop.var();
      for (const LinearForm& form : guard.forms) {
        const int64_t k = form.CoefficientOf(var);
        LinearForm rest = form;
        const bool is_linear =
            guard.vars.size() == 1 && k != 0 && rest.AddTerm(var, -k) && !UsesVar(rest, var);
        const std::optional<Expr> bound = is_linear ? BoundOn(var, form, k) : std::nullopt;
        if (bound) bounds.emplace_back(*bound, k > 0);
      }
      if (bounds.size() != guard.forms.size()) {
        some_outside = c_.Bool(true);
        continue;
      }
      nest.bounds[g] = true;
      const NestLoop& old = nest.loops[at];
      const Expr old_end = old.min + old.extent;
      for (const auto& [bound, is_lower] : bounds) {
        NestLoop& loop = nest.new_loops[at];
        if (is_lower) {
          loop.min = analyzer_.Simplify(ir::Max(loop.min, bound));
          some_outside = ir::Or(some_outside, old.min < bound);
        } else {
          ends[at] = analyzer_.Simplify(ir::Min(ends[at], bound));
          some_outside = ir::Or(some_outside, bound < old_end);
        }
      }
    }
    for (size_t k = 0; k < nest.loops.size(); ++k) {
      const Expr extent = analyzer_.Simplify(ends[k] - nest.new_loops[k].min);
      nest.new_loops[k].extent = extent;
      // What stood in the loop before may be so, too.
      nest.may_be_empty.push_back(extent != nest.loops[k].extent &&
                                  !analyzer_.CanProve(ConstantLike(extent, 0) < extent));
    }
    nest.some_outside = analyzer_.Simplify(some_outside);
  }

  // Guards that may go, but whose elements cost much: those on an instruction that reduces. Where one
  // bounds the outermost loop alone, and never to nothing, fewer iterations do.
  void PlanFewer(Nest& nest) {
    if (nest.shared_loops == 0) return;
    const NestLoop& outermost = nest.loops[0];
    const Var var = outermost.loop.var();
    const absl::Span<const Expr> indices = nest.leaves[0].store.indices();
    // Channels are computed in whole groups.
    if (indices.empty() || ir::UsesVar(indices.back(), var)) return;
    for (size_t g = 0; g < nest.guards.size(); ++g) {
      const Guard& guard = nest.guards[g];
      if (guard.forms.size() != 1 || guard.vars != std::vector<Var>{var}) continue;
      const int64_t k = guard.forms[0].CoefficientOf(var);
      LinearForm rest = guard.forms[0];
      if (k >= 0 || !rest.AddTerm(var, -k) || UsesVar(rest, var)) continue;
      const std::optional<Expr> bound = BoundOn(var, guard.forms[0], k);
      if (!bound) continue;
      const Expr count =
          analyzer_.Simplify(ir::Min(outermost.min + outermost.extent, *bound) - outermost.min);
      if (analyzer_.CanProve(ConstantLike(count, 0) < count)) nest.fewer[g] = count;
    }
  }

  // ---- who accesses what

  void NoteAccesses(size_t n) {
    const Nest& nest = nests_[n];
    absl::flat_hash_set<Buffer> read;
    for (const Leaf& leaf : nest.leaves) {
      ir::ForEachExpr(leaf.store.value(), [&](Expr e) {
        if (e.Is(ExprKind::kLoad)) read.insert(Buffer(e.buffer()));
      });
    }
    for (Buffer buffer : read) {
      if (Allocation* allocation = Find(buffer)) allocation->readers.push_back(n);
    }
    Allocation* allocation = Find(nest.leaves[0].store.buffer());
    if (allocation == nullptr) return;
    allocation->writers.push_back(n);
    allocation->used = std::max(allocation->used, nest.used);
  }

  void Bind(const Nest& nest) {
    for (const NestLoop& loop : nest.loops) {
      analyzer_.BindLoop(loop.loop.var(), loop.min, loop.extent);
    }
  }

  const NestLoop* LoopOf(const Nest& nest, Var var) const {
    for (const NestLoop& loop : nest.loops) {
      if (loop.loop.var() == var) return &loop;
    }
    return nullptr;
  }

  // `index` as a loop of the nest plus what does not change in it; none if it is more.
  std::optional<ChannelIndex> Channel(const Nest& nest, Expr index) {
    const LinearForm form = analyzer_.Form(index);
    ChannelIndex channel;
    LinearForm rest = form;
    for (const NestLoop& loop : nest.loops) {
      const Var var = loop.loop.var();
      if (!UsesVar(form, var)) continue;
      if (channel.var || form.CoefficientOf(var) != 1) return std::nullopt;
      channel.var = var;
      if (!rest.AddTerm(var, -1) || UsesVar(rest, var)) return std::nullopt;
    }
    for (const LinearForm::Term& term : rest.terms()) {
      if (term.atom.type() != index.type()) return std::nullopt;
    }
    channel.base = SumExpr(c_, index.type(), rest.terms(), rest.constant());
    return channel;
  }

  // ---- LAYOUT

  // Splits the loop over channels of a reducing nest, and lays out its weights.
  void PlanLayout(Nest& nest) {
    if (IsPad(nest) || nest.family->weights.empty()) return;
    Analyzer::Scope scope(analyzer_);
    Bind(nest);
    const std::string why = TryLayout(nest);
    if (!why.empty()) Report(nest.pragma.body(), StrCat("kept: ", why));
  }

  std::string TryLayout(Nest& nest) {
    const Stmt update = nest.leaves.back().store;
    Allocation* result = Find(update.buffer());
    Expr load;
    ir::ForEachExpr(update.value(), [&](Expr e) {
      if (e.Is(ExprKind::kLoad) && e.buffer()->scope == "wmem") load = e;
    });
    if (!load || update.indices().empty()) return "it reads no weights in wmem";
    Allocation* weights = Find(Buffer(load.buffer()));
    if (weights == nullptr || result == nullptr || weights->extents.size() < 2 ||
        result->extents.empty()) {
      return "weights or result are not allocated in constant size";
    }
    const auto layout =
        std::find_if(nest.family->weights.begin(), nest.family->weights.end(),
                     [&](const Family::Weights& w) { return w.type == load.type(); });
    if (layout == nest.family->weights.end()) {
      return StrCat("no instruction has weights of ", ir::TypeName(load.type()));
    }
    const int64_t lanes = layout->lanes;
    const std::optional<ChannelIndex> channel = Channel(nest, update.indices().back());
    if (!channel) return "the result's innermost index is more than a loop";
    // The dimension of the weights that the same loop runs through. A single channel has no loop.
    std::optional<ChannelIndex> filter;
    size_t dimension = 0;
    for (; dimension < load.operands().size(); ++dimension) {
      filter = Channel(nest, load.operand(dimension));
      if (filter && filter->var == channel->var &&
          (channel->var || (filter->base.IsInt(0) && weights->extents[dimension] == 1))) {
        break;
      }
    }
    if (dimension == load.operands().size()) return "the loop over channels is not the filters'";
    for (Expr e : update.value().operands()) {
      bool elsewhere = false;
      ir::ForEachExpr(e, [&](Expr x) {
        if (!x.Is(ExprKind::kLoad) || x == load || Buffer(x.buffer()) == update.buffer()) return;
        for (Expr index : x.operands()) {
          elsewhere = elsewhere || (channel->var && ir::UsesVar(index, channel->var));
        }
      });
      if (elsewhere) return "the channel's loop occurs in an input's index";
    }
    int64_t count = 1;
    if (channel->var) {
      const NestLoop* loop = LoopOf(nest, channel->var);
      const bool is_shared =
          loop - nest.loops.data() < static_cast<std::ptrdiff_t>(nest.shared_loops);
      if (!is_shared || !loop->min.IsInt(0) || !loop->extent.Is(ExprKind::kIntImm)) {
        return "the loop over channels has no constant bounds from 0 on";
      }
      count = loop->extent.int_value();
    }
    const int64_t rounded = RoundUp(count, lanes);
    if (weights->has_address || result->has_address) return "an instruction uses them as they are";
    if (rounded != count && (!channel->base.IsInt(0) || !filter->base.IsInt(0) ||
                             result->other_writers || result->used > count)) {
      return StrCat(count, " channels are no multiple of ", lanes,
                    ", and further ones of the result may be in use");
    }
    for (Expr base : {channel->base, filter->base}) {
      if (!analyzer_.CanProve(ir::Eq(base % lanes, ConstantLike(base, 0)))) {
        return StrCat("'", ir::Print(base), "' is not known to be a multiple of ", lanes);
      }
    }
    // As laid out already.
    if (count == lanes && dimension == 0 && weights->extents.size() == 2 &&
        weights->extents[0] == lanes && weights->extents[1] % layout->multiple == 0 &&
        filter->base.IsInt(0)) {
      return "";
    }
    if (weights->layout &&
        (weights->channel_dimension != dimension || weights->layout->lanes != lanes)) {
      return "another nest reads the weights in another order";
    }
    if (!weights->layout) {
      weights->layout = *layout;
      weights->channel_dimension = dimension;
      int64_t elements = 1;
      for (size_t d = 0; d < weights->extents.size(); ++d) {
        if (d != dimension) elements *= weights->extents[d];
      }
      weights->pitch = RoundUp(elements, layout->multiple);
    }
    nest.lanes = lanes;
    nest.groups = rounded / lanes;
    nest.channel = channel->var;
    nest.weights_base = analyzer_.Simplify(filter->base / lanes);
    nest.channels = rounded;
    const int64_t width = RoundUp(result->extents.back(), lanes);
    result->extents.back() = std::max(result->extents.back(), width);
    if (rounded != count) to_align_.push_back({update.buffer(), count, rounded});
    return "";
  }

  // ---- ALIGN

  struct Alignment {
    Buffer buffer;
    int64_t count;    // channels in use ...
    int64_t rounded;  // ... and computed
  };

  // Widens the marked elementwise nests that share an innermost loop with a widened result.
  void AlignChannels() {
    absl::flat_hash_map<Buffer, int64_t> aligned;
    while (!to_align_.empty()) {
      const Alignment alignment = to_align_.front();
      to_align_.pop_front();
      if (!aligned.try_emplace(alignment.buffer, alignment.rounded).second) continue;
      Allocation& allocation = *Find(alignment.buffer);
      allocation.extents.back() = std::max(allocation.extents.back(), alignment.rounded);
      for (const std::vector<size_t>* users : {&allocation.readers, &allocation.writers}) {
        for (size_t n : *users) Widen(nests_[n], alignment);
      }
    }
  }

  void Widen(Nest& nest, const Alignment& alignment) {
    if (!IsComputing(nest) || nest.family->reduces || nest.channels != 0) return;
    Analyzer::Scope scope(analyzer_);
    Bind(nest);
    const Stmt store = nest.leaves[0].store;
    if (store.indices().empty()) return;
    const std::optional<ChannelIndex> target = Channel(nest, store.indices().back());
    if (!target || !target->base.IsInt(0)) return;
    const Var var = target->var;
    if (var) {
      const NestLoop* loop = LoopOf(nest, var);
      if (!loop->min.IsInt(0) || !loop->extent.IsInt(alignment.count)) return;
    } else if (alignment.count != 1) {
      return;
    }
    std::vector<Buffer> buffers;
    // Whether an access goes through the channels, in its innermost dimension only.
    const auto access = [&](Buffer buffer, absl::Span<const Expr> indices) {
      for (size_t d = 0; d < indices.size(); ++d) {
        const bool is_last = d + 1 == indices.size();
        const Allocation* allocation = Find(buffer);
        const bool may_grow =
            allocation != nullptr && !allocation->extents.empty() && !allocation->has_address;
        const bool follows = is_last && (var ? indices[d] == var : Has1Channel(buffer));
        if (follows && may_grow) {
          buffers.push_back(buffer);
        } else if (var && ir::UsesVar(indices[d], var)) {
          return false;
        }
      }
      return true;
    };
    bool fits = access(store.buffer(), store.indices()) && !buffers.empty();
    ir::ForEachExpr(store.value(), [&](Expr e) {
      if (e.Is(ExprKind::kLoad)) fits = fits && access(Buffer(e.buffer()), e.operands());
    });
    if (std::find(buffers.begin(), buffers.end(), alignment.buffer) == buffers.end()) return;
    const Allocation& written = *Find(store.buffer());
    if (!fits || written.other_writers || written.used > alignment.count) {
      Report(nest.pragma.body(), StrCat("kept: it can not run over ", alignment.rounded,
                                        " channels instead of ", alignment.count));
      return;
    }
    nest.channel = var;
    nest.channels = alignment.rounded;
    for (Buffer buffer : buffers) to_align_.push_back({buffer, alignment.count, alignment.rounded});
  }

  bool Has1Channel(Buffer buffer) {
    return !buffer->extents.empty() && buffer->extents.back().IsInt(1);
  }

  // ---- COM

  // The guard as conditions on the elements that the nest stores to; none if it is not one.
  std::optional<std::vector<ElementGuard>> OnElements(Nest& nest, const Guard& guard) {
    const Stmt store = nest.leaves.back().store;
    Allocation& allocation = *Find(store.buffer());
    if (guard.forms.empty() || !guard.on_all) return std::nullopt;
    while (allocation.dimensions.size() < store.indices().size()) {
      allocation.dimensions.push_back(
          c_.NewVar("index", store.indices()[allocation.dimensions.size()].type()));
    }
    std::vector<ElementGuard> result = guard.forms;
    for (Var var : guard.vars) {
      std::optional<size_t> dimension;
      ChannelIndex index;
      for (size_t d = 0; d < store.indices().size(); ++d) {
        if (!ir::UsesVar(store.indices()[d], var)) continue;
        const std::optional<ChannelIndex> here = Channel(nest, store.indices()[d]);
        if (!here || here->var != var || dimension) return std::nullopt;
        dimension = d;
        index = *here;
      }
      if (!dimension) return std::nullopt;
      // var = index - base
      LinearForm value = LinearForm::Atom(allocation.dimensions[*dimension]);
      if (!value.Add(analyzer_.Form(index.base), -1)) return std::nullopt;
      for (ElementGuard& form : result) {
        const int64_t k = form.CoefficientOf(var);
        if (!form.AddTerm(var, -k) || UsesVar(form, var) || !form.Add(value, k)) {
          return std::nullopt;
        }
      }
    }
    for (const ElementGuard& form : result) {
      for (const LinearForm::Term& term : form.terms()) {
        if (Changes(term.atom, allocation)) return std::nullopt;
      }
    }
    return result;
  }

  // Whether the value of `e` may change while the buffer lives.
  bool Changes(Expr e, const Allocation& allocation) const {
    for (Var var : ir::FreeVars(e)) {
      auto it = bound_at_.find(var);
      if (it != bound_at_.end() && allocation.begin < it->second && it->second < allocation.end) {
        return true;
      }
    }
    return false;
  }

  // Whether each execution of the padding nest stores to the same elements, as no other statement.
  bool IsOnlyStore(Nest& nest) {
    const Stmt store = nest.leaves[0].store;
    const Allocation* target = Find(store.buffer());
    if (target == nullptr || target->other_writers || target->writers.size() != 1) return false;
    Analyzer::Scope scope(analyzer_);
    Bind(nest);
    for (Expr index : store.indices()) {
      const std::optional<ChannelIndex> channel = Channel(nest, index);
      if (!channel || Changes(channel->base, *target)) return false;
    }
    for (const Guard& guard : nest.guards) {
      if (!guard.is_inside && !OnElements(nest, guard)) return false;
    }
    return true;
  }

  std::vector<ElementGuard> ElementGuards(size_t n) {
    Nest& nest = nests_[n];
    Analyzer::Scope scope(analyzer_);
    Bind(nest);
    std::vector<ElementGuard> all;
    for (const Guard& guard : nest.guards) {
      if (guard.is_inside) continue;
      if (auto forms = OnElements(nest, guard)) all.insert(all.end(), forms->begin(), forms->end());
    }
    return all;
  }

  // Decides which guards of a computing nest go.
  void PlanGuards(Nest& nest) {
    if (nest.guards.empty()) return;
    const std::string why = TryGuards(nest);
    if (!why.empty()) Report(nest.pragma.body(), StrCat("kept: ", why));
  }

  std::string TryGuards(Nest& nest) {
    const Stmt store = nest.leaves.back().store;
    Allocation* allocation = Find(store.buffer());
    if (allocation == nullptr) {
      return StrCat("guarded, and '", store.buffer()->name, "' is not allocated on chip");
    }
    if (allocation->other_writers) {
      return StrCat("guarded, and not only marked nests store to '", store.buffer()->name, "'");
    }
    if (!nest.stays_inside) return "guarded, and indices or divisors need that";
    for (const Guard& guard : nest.guards) {
      if (MayTrap(guard.condition)) {
        return StrCat("the guard ", ir::Print(guard.condition), " may need the others");
      }
    }
    for (const Need& need : nest.needs) {
      const Allocation& needed = *Find(need.buffer);
      if (needed.layout && need.dimension == needed.channel_dimension && nest.lanes != 0) {
        const int64_t lanes = needed.layout->lanes;
        if (need.extent <= RoundUp(needed.extents[need.dimension], lanes)) continue;
      }
      if (needed.layout || needed.has_address) {
        return StrCat("guarded, and '", need.buffer->name, "' can not be enlarged");
      }
    }
    if (allocation->writer_guards.empty()) {
      for (size_t n : allocation->writers) {
        allocation->writer_guards.push_back(ElementGuards(n));
      }
    }
    Analyzer::Scope scope(analyzer_);
    Bind(nest);
    std::string why;
    for (size_t g = 0; g < nest.guards.size(); ++g) {
      const std::optional<std::vector<ElementGuard>> forms = OnElements(nest, nest.guards[g]);
      bool may_go = forms.has_value();
      for (const std::vector<ElementGuard>& others : allocation->writer_guards) {
        for (size_t f = 0; may_go && f < forms->size(); ++f) {
          may_go = std::find(others.begin(), others.end(), (*forms)[f]) != others.end();
        }
      }
      nest.dropped[g] = may_go;
      if (may_go && nest.fewer[g]) {
        Expr& extent = nest.new_loops[0].extent;
        extent = extent == nest.loops[0].extent ? nest.fewer[g] : ir::Min(extent, nest.fewer[g]);
      }
      if (!may_go && why.empty()) {
        why = StrCat("the guard ", ir::Print(nest.guards[g].condition),
                     forms ? " is not that of all nests that store there"
                           : " is not one on the stored elements alone");
      }
    }
    for (const Need& need : nest.needs) {
      Allocation& needed = *Find(need.buffer);
      if (needed.layout) continue;
      int64_t& extent = needed.extents[need.dimension];
      extent = std::max(extent, need.extent);
    }
    return why;
  }

  // ---- rewriting

  void MakeBuffers() {
    for (Buffer buffer : in_order_) {
      Allocation& allocation = *Find(buffer);
      if (allocation.extents.empty()) continue;
      const Type type = buffer->extents[0].type();
      if (allocation.layout) {
        const int64_t lanes = allocation.layout->lanes;
        const int64_t groups =
            RoundUp(allocation.extents[allocation.channel_dimension], lanes) / lanes;
        allocation.replacement = c_.NewBuffer(
            buffer->name, buffer->type,
            {c_.Int(type, lanes), c_.Int(type, groups * allocation.pitch)}, buffer->scope);
      } else {
        bool changed = false;
        std::vector<Expr> extents;
        for (size_t d = 0; d < allocation.extents.size(); ++d) {
          extents.push_back(c_.Int(buffer->extents[d].type(), allocation.extents[d]));
          changed = changed || extents.back() != buffer->extents[d];
        }
        if (!changed) continue;
        allocation.replacement =
            c_.NewBuffer(buffer->name, buffer->type, std::move(extents), buffer->scope);
      }
    }
    for (size_t n = 0; n < nests_.size(); ++n) nest_of_[nests_[n].pragma] = n;
  }

  // Where a laid out buffer has the element at `indices`: [lane, group * pitch + the rest].
  std::vector<Expr> LaidOut(const Allocation& allocation, absl::Span<const Expr> indices, Expr lane,
                            Expr group) {
    Expr rest;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (d == allocation.channel_dimension) continue;
      rest = rest ? Sum(Product(rest, allocation.extents[d]), indices[d]) : indices[d];
    }
    return {lane, Sum(Product(group, allocation.pitch), rest)};
  }

  // Sums of indices of mixed types are i64.
  Expr Sum(Expr a, Expr b) {
    if (a.IsInt(0)) return b;
    if (a.type() == b.type()) return a + b;
    return c_.Cast(Type::kI64, a) + c_.Cast(Type::kI64, b);
  }
  static Expr Product(Expr a, int64_t b) { return a * b; }

  // Puts in new buffers, and what has become of nests.
  class Rewriter : public ir::Mutator {
   public:
    explicit Rewriter(Preprocessor& p) : p_(p) {}
    Expr Mutate(Expr e) override {
      const bool is_access = e.Is(ExprKind::kLoad) || e.Is(ExprKind::kAddress);
      const Allocation* allocation = is_access ? p_.Replaced(Buffer(e.buffer())) : nullptr;
      if (allocation == nullptr) return Mutator::Mutate(e);
      const std::vector<Expr> indices = Indices(*allocation, e.operands());
      return e.Is(ExprKind::kLoad) ? p_.c_.Load(allocation->replacement, indices)
                                   : p_.c_.Address(allocation->replacement, indices);
    }
    Stmt Mutate(Stmt s) override {
      if (s.Is(StmtKind::kPragma)) {
        auto it = p_.nest_of_.find(s);
        if (it != p_.nest_of_.end()) {
          const Stmt built = p_.Build(p_.nests_[it->second]);
          return built == s ? Mutator::Mutate(s) : Mutate(built);
        }
      }
      if (s.Is(StmtKind::kAllocate)) {
        // The padding of a window, of which no element is stored twice, comes before all else.
        const auto window = p_.windows_.find(s.buffer());
        if (window != p_.windows_.end() && p_.IsFilled(window->second, s.buffer())) {
          const Stmt fill = p_.FillAll(s.buffer(), *window->second.fill_value);
          s = p_.c_.Allocate(s.buffer(), p_.c_.Seq({fill, s.body()}));
        }
      }
      const Allocation* allocation =
          s.Is(StmtKind::kAllocate) || s.Is(StmtKind::kStore) ? p_.Replaced(s.buffer()) : nullptr;
      if (allocation == nullptr) return Mutator::Mutate(s);
      if (s.Is(StmtKind::kAllocate)) {
        return p_.c_.Allocate(allocation->replacement, Mutate(s.body()));
      }
      return p_.c_.Store(allocation->replacement, Indices(*allocation, s.indices()),
                         Mutate(s.value()));
    }

   private:
    std::vector<Expr> Indices(const Allocation& allocation, absl::Span<const Expr> old) {
      std::vector<Expr> indices;
      for (Expr index : old) indices.push_back(Mutate(index));
      if (!allocation.layout) return indices;
      const Expr channel = indices[allocation.channel_dimension];
      const int64_t lanes = allocation.layout->lanes;
      return p_.LaidOut(allocation, indices, channel % lanes, channel / lanes);
    }
    Preprocessor& p_;
  };

  const Allocation* Replaced(Buffer buffer) {
    const Allocation* allocation = Find(buffer);
    return allocation != nullptr && allocation->replacement ? allocation : nullptr;
  }

  // Replaces the loop over channels in a nest's accesses, and lays out weights.
  class NestRewriter : public ir::Mutator {
   public:
    NestRewriter(Preprocessor& p, const Nest& nest) : p_(p), nest_(nest) {}

    ir::VarMap vars;   // loop variables to put in
    Expr new_channel;  // index of the channel where there was one and no loop; may be null
    Expr lane;         // in laid out buffers; null: their accesses stay
    Expr group;

    Expr Mutate(Expr e) override {
      if (e.Is(ExprKind::kVar)) {
        auto it = vars.find(e);
        return it == vars.end() ? e : it->second;
      }
      if (!e.Is(ExprKind::kLoad)) return Mutator::Mutate(e);
      const Allocation* allocation = p_.Replaced(Buffer(e.buffer()));
      const bool lay_out = lane && allocation != nullptr && allocation->layout;
      return p_.c_.Load(lay_out ? allocation->replacement : Buffer(e.buffer()),
                        Indices(Buffer(e.buffer()), e.operands()));
    }
    using Mutator::Mutate;

    Stmt Store(Stmt s, Expr value) {
      const Allocation* allocation = p_.Replaced(s.buffer());
      const bool lay_out = lane && allocation != nullptr && allocation->layout;
      return p_.c_.Store(lay_out ? allocation->replacement : s.buffer(),
                         Indices(s.buffer(), s.indices()), Mutate(value));
    }

   private:
    std::vector<Expr> Indices(Buffer buffer, absl::Span<const Expr> old) {
      std::vector<Expr> indices;
      for (Expr index : old) indices.push_back(Mutate(index));
      const Allocation* allocation = p_.Replaced(buffer);
      if (allocation == nullptr) return indices;
      if (allocation->layout) {
        return lane ? p_.LaidOut(*allocation, indices, lane, group) : indices;
      }
      const bool has_channels = nest_.lanes == 0 || buffer == nest_.leaves.back().store.buffer();
      if (new_channel && has_channels && p_.Has1Channel(buffer)) indices.back() = new_channel;
      return indices;
    }
    Preprocessor& p_;
    const Nest& nest_;
  };

  Stmt Around(absl::Span<const NestLoop> loops, Stmt body) {
    for (size_t k = loops.size(); k-- > 0;) {
      const Stmt loop = loops[k].loop;
      body = c_.For(loop.var(), loops[k].min, loops[k].extent, body, loop.for_kind(), loop.name());
    }
    return body;
  }

  Stmt NewLoop(Var var, int64_t extent, Stmt body) {
    return c_.For(var, c_.Int(var.type(), 0), c_.Int(var.type(), extent), body);
  }

  // Whether the guard stays around the store.
  static bool Stays(const Nest& nest, size_t g) {
    return !nest.dropped[g] && !nest.bounds[g] && !nest.outside[g];
  }

  Expr Kept(const Nest& nest, const Leaf& leaf, NestRewriter& rewriter) {
    Expr all;
    for (size_t g = 0; g < nest.guards.size(); ++g) {
      const Guard& guard = nest.guards[g];
      const bool on_leaf =
          guard.is_inside || std::find(leaf.conditions.begin(), leaf.conditions.end(),
                                       guard.condition) != leaf.conditions.end();
      if (!on_leaf || !Stays(nest, g)) continue;
      const Expr condition = rewriter.Mutate(guard.condition);
      all = all ? ir::And(all, condition) : condition;
    }
    return all;
  }

  Stmt Guarded(const Nest& nest, const Leaf& leaf, Expr value, NestRewriter& rewriter) {
    const Stmt store = rewriter.Store(leaf.store, value);
    const Expr kept = Kept(nest, leaf, rewriter);
    return kept ? c_.If(kept, store) : store;
  }

  Stmt Build(Nest& nest) {
    if (IsComputing(nest)) return BuildComputing(nest);
    return BuildCopy(nest);
  }

  Stmt BuildComputing(const Nest& nest) {
    const bool is_all_padding = nest.pragma.name() == kPad;
    bool changed = nest.channels != 0 || is_all_padding;
    for (const Leaf& leaf : nest.leaves) {
      for (Expr condition : leaf.conditions) {
        bool stays = false;
        for (size_t g = 0; g < nest.guards.size(); ++g) {
          stays = stays || (nest.guards[g].condition == condition && Stays(nest, g));
        }
        changed = changed || !stays;
      }
    }
    if (!changed) return nest.pragma;
    const Type type = nest.channel ? nest.channel.type()
                                   : (nest.leaves[0].store.indices().empty()
                                          ? Type::kI32
                                          : nest.leaves[0].store.indices().back().type());
    const Var c = c_.NewVar("c", type);
    const Var l = c_.NewVar("l", type);
    NestRewriter rewriter(*this, nest);
    if (nest.lanes != 0) {
      const Expr channel = c * nest.lanes + l;
      if (nest.channel) {
        rewriter.vars[nest.channel] = channel;
      } else {
        rewriter.new_channel = channel;
      }
      rewriter.lane = l;
      rewriter.group = Sum(nest.weights_base, c);
    } else if (nest.channels != 0 && !nest.channel) {
      rewriter.new_channel = c;
    }
    const absl::Span<const NestLoop> loops(nest.new_loops);
    std::vector<Stmt> parts;
    for (size_t i = 0; i < nest.leaves.size(); ++i) {
      const Leaf& leaf = nest.leaves[i];
      const Stmt part = Guarded(nest, leaf, leaf.store.value(), rewriter);
      const bool is_last = i + 1 == nest.leaves.size();
      parts.push_back(is_last ? Around(loops.subspan(nest.shared_loops), part) : part);
    }
    Stmt body = c_.Seq(parts);
    const auto channels = [&](Stmt s) {
      if (nest.lanes != 0) return NewLoop(c, nest.groups, NewLoop(l, nest.lanes, s));
      return NewLoop(nest.channel ? nest.channel : c, nest.channels, s);
    };
    if (nest.channels != 0 && !nest.channel) body = channels(body);
    for (size_t k = nest.shared_loops; k-- > 0;) {
      const bool is_channel = nest.channels != 0 && loops[k].loop.var() == nest.channel;
      body = is_channel ? channels(body) : Around(loops.subspan(k, 1), body);
    }
    std::string what;
    const auto dropped = std::count(nest.dropped.begin(), nest.dropped.end(), true);
    if (dropped != 0) what = StrCat("guards dropped: ", dropped);
    if (nest.channels != 0) {
      StrAppend(&what, what.empty() ? "" : ", ", nest.channels, " channels");
      if (nest.lanes != 0) StrAppend(&what, " in groups of ", nest.lanes);
    }
    const bool is_shorter = !loops.empty() && loops[0].extent != nest.loops[0].extent;
    if (is_shorter) StrAppend(&what, ", ", ir::Print(loops[0].extent), " times");
    if (what.empty()) what = is_all_padding ? "fill" : "loops narrowed";
    Report(nest.pragma.body(), what);
    if (is_all_padding) return c_.Pragma("fill", {}, body);
    const Stmt result = c_.Rebuild(nest.pragma, nest.pragma.operands(), {body});
    return is_shorter ? c_.Pragma(kNoPartitionPragma, {}, result) : result;
  }

  Stmt BuildCopy(Nest& nest) {
    const Leaf& leaf = nest.leaves[0];
    const Allocation* target = Find(leaf.store.buffer());
    Stmt fill;
    if (IsPad(nest)) {
      const auto window = windows_.find(leaf.store.buffer());
      if (window != windows_.end() && window->second.fill_value) {
        if (!IsFilled(window->second, leaf.store.buffer())) {
          Report(nest.pragma.body(), "kept: the window is not padded alike everywhere");
          return nest.pragma;
        }
      } else if (nest.fill_value && !nest.some_outside.IsInt(0)) {
        if (IsOnlyStore(nest)) {
          fill = FillAll(leaf.store.buffer(), nest.fill_value);
          if (!nest.some_outside.IsInt(1)) fill = c_.If(nest.some_outside, fill);
        } else {
          Report(nest.pragma.body(),
                 "kept: not the only store to a buffer on chip, or not always of all of it");
          return nest.pragma;
        }
      }
    } else {
      bool changed = target != nullptr && target->layout;
      for (size_t k = 0; k < nest.loops.size(); ++k) {
        changed = changed || nest.new_loops[k].min != nest.loops[k].loop.min() ||
                  nest.new_loops[k].extent != nest.loops[k].loop.extent();
      }
      for (size_t g = 0; g < nest.guards.size(); ++g) changed = changed || !Stays(nest, g);
      if (!changed) return nest.pragma;
    }
    std::vector<Stmt> copies = Copies(nest, target);
    Stmt copy = c_.Seq(copies);
    std::string bounds;
    bool at_run_time = false;
    bool has_guards = false;
    for (const NestLoop& loop : nest.new_loops) {
      if (loop.min.IsConst() && loop.extent.IsConst()) continue;
      at_run_time = true;
      StrAppend(&bounds, ", ", loop.loop.var().name(), " from ", ir::Print(loop.min), ", ",
                ir::Print(loop.extent), " times");
    }
    Expr outside;
    for (size_t g = 0; g < nest.guards.size(); ++g) {
      has_guards = has_guards || Stays(nest, g);
      const Expr condition = nest.outside[g];
      if (!condition) continue;
      outside = outside ? ir::And(outside, condition) : condition;
    }
    for (size_t k = 0; k < nest.new_loops.size(); ++k) {
      if (!nest.may_be_empty[k]) continue;
      const Expr condition = IsNotEmpty(nest.new_loops[k].extent);
      outside = outside ? ir::And(outside, condition) : condition;
    }
    if (outside) copy = c_.If(outside, copy);
    std::string what = IsPad(nest) ? "memcpy of the part inside" : "copy";
    if (fill) {
      what = StrCat("fill", fill.Is(StmtKind::kIf) ? StrCat(" if ", ir::Print(fill.cond())) : "",
                    " and ", what);
    }
    if (target != nullptr && target->layout) {
      StrAppend(&what, " to ", target->layout->lanes, " banks, pitch ", target->pitch);
    }
    Report(nest.pragma.body(), StrCat(what, bounds));
    const Stmt result = fill ? c_.Seq({fill, copy}) : copy;
    const bool may_split = at_run_time || outside || (fill && fill.Is(StmtKind::kIf));
    return may_split && !has_guards ? c_.Pragma(kNoPartitionPragma, {}, result) : result;
  }

  // pragma "fill": all of the buffer.
  Stmt FillAll(Buffer buffer, Expr value) {
    const Allocation* allocation = Replaced(buffer);
    const absl::Span<const Expr> extents =
        (allocation != nullptr ? allocation->replacement : buffer)->extents;
    std::vector<Expr> vars;
    for (Expr extent : extents) vars.push_back(c_.NewVar("f", extent.type()));
    Stmt body = c_.Store(buffer, vars, value);
    for (size_t d = extents.size(); d-- > 0;) {
      body = c_.For(vars[d], c_.Int(vars[d].type(), 0), extents[d], body);
    }
    return c_.Pragma("fill", {}, body);
  }

  // An instruction's address must be in its buffer even if it moves nothing, so empty loops, which the
  // copies become, get a condition around.
  static Expr IsNotEmpty(Expr extent) { return ConstantLike(extent, 0) < extent; }

  // The copy, in two nests where groups of channels and a rest of them are laid out.
  std::vector<Stmt> Copies(const Nest& nest, const Allocation* target) {
    const Leaf& leaf = nest.leaves[0];
    const Expr value = IsPad(nest) ? nest.inside_value : leaf.store.value();
    NestRewriter rewriter(*this, nest);
    const auto pragma = [&](Stmt body) {
      return IsPad(nest) ? c_.Pragma("memcpy", {}, body)
                         : c_.Rebuild(nest.pragma, nest.pragma.operands(), {body});
    };
    size_t at = nest.new_loops.size();
    std::optional<ChannelIndex> channel;
    if (target != nullptr && target->layout) {
      channel = Channel(nest, leaf.store.indices()[target->channel_dimension]);
      for (size_t k = 0; channel && channel->var && k < nest.loops.size(); ++k) {
        if (nest.loops[k].loop.var() == channel->var) at = k;
      }
    }
    const int64_t lanes = at < nest.new_loops.size() ? target->layout->lanes : 1;
    if (at == nest.new_loops.size() || !nest.new_loops[at].min.IsInt(0) ||
        !nest.loops[at].extent.Is(ExprKind::kIntImm) ||
        !analyzer_.CanProve(ir::Eq(channel->base % lanes, ConstantLike(channel->base, 0)))) {
      return {pragma(Around(nest.new_loops, Guarded(nest, leaf, value, rewriter)))};
    }
    const Var var = channel->var;
    const Expr group = analyzer_.Simplify(channel->base / lanes);
    if (nest.loops[at].extent.int_value() <= lanes) {
      rewriter.lane = var;
      rewriter.group = group;
      return {pragma(Around(nest.new_loops, Guarded(nest, leaf, value, rewriter)))};
    }
    // A count below 0 means none.
    const Expr count =
        analyzer_.Simplify(ir::Max(nest.new_loops[at].extent, c_.Int(var.type(), 0)));
    const Expr full = analyzer_.Simplify(count / lanes);
    const Expr left = analyzer_.Simplify(count % lanes);
    const absl::Span<const NestLoop> loops(nest.new_loops);
    const Expr zero = c_.Int(var.type(), 0);
    std::vector<Stmt> copies;
    if (!full.IsInt(0)) {
      const Var c = c_.NewVar("c", var.type());
      const Var l = c_.NewVar("l", var.type());
      rewriter.vars[var] = c * lanes + l;
      rewriter.lane = l;
      rewriter.group = Sum(group, c);
      Stmt body = Around(loops.subspan(at + 1), Guarded(nest, leaf, value, rewriter));
      body = c_.For(c, zero, full, c_.For(l, zero, c_.Int(var.type(), lanes), body));
      body = pragma(Around(loops.subspan(0, at), body));
      copies.push_back(full.IsConst() ? body : c_.If(IsNotEmpty(full), body));
    }
    if (!left.IsInt(0)) {
      const Var l = c_.NewVar("l", var.type());
      rewriter.vars[var] = full * lanes + l;
      rewriter.lane = l;
      rewriter.group = Sum(group, full);
      Stmt body = Around(loops.subspan(at + 1), Guarded(nest, leaf, value, rewriter));
      body = c_.For(l, zero, left, body);
      body = pragma(Around(loops.subspan(0, at), body));
      if (!left.IsConst()) body = c_.If(IsNotEmpty(left), body);
      copies.push_back(copies.empty() ? body : ir::CloneWithFreshBindings(body));
    }
    return copies;
  }

  void Report(Stmt nest, std::string what) {
    if (decisions_ != nullptr) decisions_->push_back({FirstLine(nest), std::move(what)});
  }

  Function& function_;
  const Target& target_;
  Context& c_;
  std::vector<PreprocessDecision>* const decisions_;
  Analyzer analyzer_;
  std::map<std::string, std::optional<Family>> families_;  // nests point there
  std::deque<Nest> nests_;
  absl::flat_hash_map<Stmt, size_t> nest_of_;
  absl::flat_hash_map<Buffer, Window> windows_;
  absl::flat_hash_map<Buffer, Allocation> allocations_;
  std::vector<Buffer> in_order_;
  std::deque<Alignment> to_align_;
  // Where in the walk loops and lets outside of nests begin.
  absl::flat_hash_map<Var, int> bound_at_;
  int position_ = 0;
};

}  // namespace

absl::StatusOr<bool> Preprocess(Function& function, const Target& target,
                                std::vector<PreprocessDecision>* decisions) {
  if (target.instructions == nullptr) {
    return InvalidInput("preprocess: target '", target.name, "' has no tensor instructions");
  }
  return Preprocessor(function, target, decisions).Run();
}

}  // namespace polynao
