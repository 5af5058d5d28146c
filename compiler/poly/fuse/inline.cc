#include "compiler/poly/fuse/inline.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {

namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// Cycles by the vector, roughly.
constexpr double kOperation = 0.5, kLoad = 0.5, kGather = 12, kStore = 1, kDivision = 4, kCall = 20;
// So much more may be computed than is saved.
constexpr double kWorth = 2;
// A statement that reads few elements may compute them for itself, at so much of what computing all of them costs.
constexpr double kFew = 0.5;
// In what is put in place of a load.
constexpr size_t kMaxExpressions = 300;

// Where an array is stored.
struct Definition {
  Stmt store;
  std::vector<Stmt> loops;  // inside of the allocation
  int begin = 0;            // of the outermost loop
  int position = 0;
  bool is_plain = false;  // nothing but loops between the allocation and the store
};

// What a function stores and loads, in the order of the program.
class Uses {
 public:
  explicit Uses(Stmt body) { Visit(body); }

  // The only store of an allocated array.
  const Definition* Find(ir::Buffer buffer) const {
    const auto it = definitions_.find(buffer);
    return it != definitions_.end() && it->second.size() == 1 ? &it->second[0] : nullptr;
  }
  // Loops around the allocation of an array; nothing if it is none.
  std::optional<size_t> DepthOf(ir::Buffer buffer) const {
    const auto it = places_.find(buffer);
    return it == places_.end() ? std::nullopt : std::optional(it->second.loops);
  }
  // Whether the buffer is stored behind a place.
  bool IsStoredAfter(ir::Buffer buffer, int position) const {
    const auto it = definitions_.find(buffer);
    return it != definitions_.end() && it->second.back().position > position;
  }
  // Allocated arrays, the last one first.
  std::vector<ir::Buffer> Arrays() const { return {allocated_.rbegin(), allocated_.rend()}; }
  // Calls of instructions, and of extern functions that are not pure, may do anything.
  bool has_calls() const { return has_calls_; }

 private:
  void Visit(Stmt s) {
    ++position_;
    for (Expr operand : s.operands()) {
      ir::ForEachExpr(operand,
                      [&](Expr e) { has_calls_ |= e.Is(ExprKind::kCall) && !ir::IsPureCall(e); });
    }
    switch (s.kind()) {
      case StmtKind::kFor: {
        loops_.push_back(s);
        begins_.push_back(position_);
        const int others = s.for_kind() == ir::ForKind::kSerial ? 0 : 1;
        others_ += others;
        Visit(s.body());
        others_ -= others;
        begins_.pop_back();
        loops_.pop_back();
        return;
      }
      case StmtKind::kAllocate:
        allocated_.push_back(s.buffer());
        places_[s.buffer()] = {.loops = loops_.size(), .others = others_};
        Visit(s.body());
        return;
      case StmtKind::kStore: {
        Definition definition{.store = s, .loops = {}, .begin = position_, .position = position_};
        if (const auto it = places_.find(s.buffer()); it != places_.end()) {
          const Place& place = it->second;
          definition.loops.assign(loops_.begin() + static_cast<std::ptrdiff_t>(place.loops),
                                  loops_.end());
          if (place.loops < loops_.size()) definition.begin = begins_[place.loops];
          definition.is_plain = others_ == place.others;
        }
        definitions_[s.buffer()].push_back(std::move(definition));
        return;
      }
      case StmtKind::kIf:
      case StmtKind::kLet:
      case StmtKind::kPragma:
        ++others_;
        for (Stmt child : s.children()) {
          if (child) Visit(child);
        }
        --others_;
        return;
      case StmtKind::kSeq:
        for (Stmt child : s.children()) Visit(child);
        return;
      case StmtKind::kEvaluate:
        return;
    }
  }

  struct Place {
    size_t loops = 0;
    int others = 0;
  };

  int position_ = 0;
  int others_ = 0;  // around this place: neither serial loops nor allocations
  bool has_calls_ = false;
  std::vector<Stmt> loops_;
  std::vector<int> begins_;  // of these
  std::vector<ir::Buffer> allocated_;
  absl::flat_hash_map<ir::Buffer, Place> places_;
  absl::flat_hash_map<ir::Buffer, std::vector<Definition>> definitions_;
};

// Each lane of a vector has an access of its own where the data say where.
double LoadCost(Expr load) {
  bool gathers = false;
  for (Expr index : load.operands())
    ir::ForEachExpr(index, [&](Expr e) { gathers |= e.Is(ExprKind::kLoad); });
  return gathers ? kGather : kLoad;
}

// Of expressions that are not in `seen`. Indices cost nothing, besides what they load.
double CostOf(Expr e, absl::flat_hash_set<Expr>& seen) {
  if (!seen.insert(e).second) return 0;
  if (e.Is(ExprKind::kLoad)) return LoadCost(e);
  double cost = 0;
  for (Expr operand : e.operands()) cost += CostOf(operand, seen);
  if (e.operands().empty() || e.Is(ExprKind::kCast)) return cost;
  const bool divides = e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod);
  return cost + (e.Is(ExprKind::kCall) ? kCall : divides ? kDivision : kOperation);
}

// Iterations of one loop, at most: a number, or the number beside what is not known in a min; else what is assumed of
// it.
double IterationsOf(Expr extent, double assumed) {
  if (extent.Is(ExprKind::kIntImm))
    return static_cast<double>(std::max<int64_t>(extent.int_value(), 1));
  if (extent.Is(ExprKind::kMin)) {
    return std::min(IterationsOf(extent.operand(0), assumed),
                    IterationsOf(extent.operand(1), assumed));
  }
  return assumed;
}

double Iterations(const std::vector<Stmt>& loops, double assumed) {
  double count = 1;
  for (Stmt loop : loops) count *= IterationsOf(loop.extent(), assumed);
  return count;
}

// t[i + 1, j] in loops over i and j: the index along each dimension is a loop's variable and a constant.
struct Iterator {
  Stmt loop;
  Expr shift;  // null: none
};

std::optional<std::vector<Iterator>> IteratorsOf(const Definition& definition) {
  std::vector<Iterator> result;
  absl::flat_hash_set<Stmt> used;
  for (Expr index : definition.store.indices()) {
    Expr var = index, shift;
    const bool is_sum = index.Is(ExprKind::kAdd) || index.Is(ExprKind::kSub);
    if (is_sum && index.operand(1).Is(ExprKind::kIntImm)) {
      var = index.operand(0);
      shift = index.Is(ExprKind::kAdd)
                  ? index.operand(1)
                  : index.context().Int(index.type(), -index.operand(1).int_value());
    }
    const auto loop = std::find_if(definition.loops.begin(), definition.loops.end(),
                                   [&](Stmt l) { return Expr(l.var()) == var; });
    if (loop == definition.loops.end() || !used.insert(*loop).second) return std::nullopt;
    result.push_back({.loop = *loop, .shift = shift});
  }
  if (used.size() != definition.loops.size()) return std::nullopt;
  return result;
}

// Takes the place of the loads of one array: of all, or of those of one store, so that the array stays.
class Inliner : public ir::Mutator {
 public:
  // `loaded`: allocations that the definition loads from.
  Inliner(ir::Context& c, const Definition& definition, std::vector<Iterator> iterators,
          const absl::flat_hash_set<ir::Buffer>& loaded, double assumed, Stmt only = {})
      : c_(c),
        analyzer_(c),
        definition_(definition),
        iterators_(std::move(iterators)),
        needed_(loaded),
        assumed_(assumed),
        only_(only) {}

  bool is_sound() const { return is_sound_; }
  // What computing in place costs, and what the loads have cost, for each element of the array.
  double computed() const { return computed_ / Iterations(definition_.loops, assumed_); }
  double loaded() const { return loaded_ / Iterations(definition_.loops, assumed_); }
  // How often each element is computed.
  double times() const { return times_ / Iterations(definition_.loops, assumed_); }
  const std::vector<Stmt>& readers() const { return readers_; }

  using Mutator::Mutate;
  Stmt Mutate(Stmt s) override {
    Forget();
    switch (s.kind()) {
      case StmtKind::kFor: {
        const arith::Analyzer::Scope scope(analyzer_);
        analyzer_.BindLoop(s.var(), s.min(), s.extent());
        const Expr min = MutateExact(s.min()), extent = MutateExact(s.extent());
        loops_.push_back(s);
        const Stmt body = Mutate(s.body());
        loops_.pop_back();
        return c_.For(s.var(), min, extent, body, s.for_kind());
      }
      case StmtKind::kIf: {
        const Expr condition = MutateExact(s.cond());
        Stmt then_case, else_case;
        {
          const arith::Analyzer::Scope scope(analyzer_);
          analyzer_.Assume(s.cond());
          then_case = Mutate(s.then_case());
        }
        if (s.else_case()) {
          const arith::Analyzer::Scope scope(analyzer_);
          analyzer_.Assume(s.cond(), false);
          else_case = Mutate(s.else_case());
        }
        return c_.If(condition, then_case, else_case);
      }
      case StmtKind::kAllocate: {
        if (s.buffer() == definition_.store.buffer() && !only_) return Mutate(s.body());
        // A rewrite leaves the sizes of arrays as they are, so what they load has to stay.
        for (Expr extent : s.buffer()->extents) {
          ir::ForEachExpr(extent, [&](Expr e) {
            if (e.Is(ExprKind::kLoad) && ir::Buffer(e.buffer()) == definition_.store.buffer())
              is_sound_ = is_sound_ && only_;
          });
        }
        in_scope_.insert(s.buffer());
        const Stmt result = Mutator::Mutate(s);
        in_scope_.erase(s.buffer());
        return result;
      }
      case StmtKind::kStore: {
        if (only_ && s != only_) return s;
        if (s == definition_.store) return c_.Seq({});
        seen_.clear();
        counted_.clear();
        std::vector<Expr> indices;
        for (Expr index : s.indices()) indices.push_back(MutateExact(index));
        const Stmt result = c_.Store(s.buffer(), indices, Mutate(s.value()));
        if (!seen_.empty()) readers_.push_back(s);
        return result;
      }
      default:
        return Mutator::Mutate(s);
    }
  }

  Expr Mutate(Expr e) override {
    // Most of a function needs no facts.
    if (!Reads(e)) return e;
    auto& done = done_[is_exact_ ? 1 : 0];
    if (const auto it = done.find(e); it != done.end()) return it->second;
    Expr result = e;
    if (e.Is(ExprKind::kSelect)) {
      result = InBranches(e);
    } else if (e.Is(ExprKind::kLoad)) {
      std::vector<Expr> indices;
      for (Expr index : e.operands()) indices.push_back(MutateExact(index));
      result = Replaced(c_.Load(ir::Buffer(e.buffer()), indices));
    } else {
      result = Mutator::Mutate(e);
    }
    done_[is_exact_ ? 1 : 0].emplace(e, result);
    return result;
  }

 private:
  void Forget() {
    for (auto& done : done_) done.clear();
  }

  // Whether `e` loads what the definition stores.
  bool Reads(Expr e) {
    if (e.operands().empty()) return false;
    if (const auto it = reads_.find(e); it != reads_.end()) return it->second;
    bool reads = e.Is(ExprKind::kLoad) && ir::Buffer(e.buffer()) == definition_.store.buffer();
    for (Expr operand : e.operands()) reads = reads || Reads(operand);
    reads_.emplace(e, reads);
    return reads;
  }

  // An index, bound or condition, where sums and products must not wrap around as they do in stored values.
  Expr MutateExact(Expr e) {
    const bool was_exact = std::exchange(is_exact_, true);
    const Expr result = Mutate(e);
    is_exact_ = was_exact;
    return result;
  }

  // Whether a <= b. A proof by simplifying keeps loads, which may stop the program; one by ranges does not need them.
  bool IsInOrder(Expr a, Expr b) {
    return analyzer_.CanProve(a <= b) || analyzer_.Range(a).max <= analyzer_.Range(b).min;
  }

  // A branch of a select is computed where its condition holds, or does not.
  Expr InBranches(Expr e) {
    const Expr condition = MutateExact(e.operand(0));
    const auto in_branch = [&](size_t i, bool truth) {
      const arith::Analyzer::Scope scope(analyzer_);
      analyzer_.Assume(e.operand(0), truth);
      auto outside = std::exchange(done_, {});
      const Expr result = Mutate(e.operand(i));
      done_ = std::move(outside);
      return result;
    };
    const Expr then_value = in_branch(1, true);
    return c_.Select(condition, then_value, in_branch(2, false));
  }

  Expr Replaced(Expr e) {
    if (!e.Is(ExprKind::kLoad) || ir::Buffer(e.buffer()) != definition_.store.buffer()) return e;
    ir::VarMap values;
    for (size_t d = 0; d < iterators_.size(); ++d) {
      Expr value = e.operand(d);
      if (iterators_[d].shift) value = value - c_.Cast(value.type(), iterators_[d].shift);
      const ir::Var var = iterators_[d].loop.var();
      values[var] = value.type() == var.type() ? value : c_.Cast(var.type(), value);
    }
    for (const Iterator& iterator : iterators_) {
      const Expr value = values.at(iterator.loop.var());
      const Expr first = ir::Substitute(iterator.loop.min(), values);
      const Expr extent = ir::Substitute(iterator.loop.extent(), values);
      is_sound_ = is_sound_ && IsInOrder(first, value) &&
                  IsInOrder(value, first + extent - first.context().Int(first.type(), 1));
    }
    for (ir::Buffer buffer : needed_) is_sound_ = is_sound_ && in_scope_.contains(buffer);
    const bool is_new = seen_.insert(e).second;
    if (!is_sound_) return e;
    const Expr value = ir::Substitute(definition_.store.value(), values);
    if (is_exact_ && analyzer_.CanOverflow(value)) is_sound_ = false;
    if (is_new) {
      const double times = Iterations(loops_, assumed_);
      times_ += times;
      computed_ += times * CostOf(value, counted_);
      loaded_ += times * LoadCost(e);
    }
    return value;
  }

  ir::Context& c_;
  arith::Analyzer analyzer_;
  const Definition& definition_;
  const std::vector<Iterator> iterators_;
  const absl::flat_hash_set<ir::Buffer>& needed_;
  absl::flat_hash_set<ir::Buffer> in_scope_;
  const double assumed_;  // iterations of a loop of which that is not known
  std::vector<Stmt> loops_;
  const Stmt only_;
  std::vector<Stmt> readers_;
  absl::flat_hash_map<Expr, bool> reads_;  // answers of Reads
  absl::flat_hash_set<Expr> seen_;         // loads of the statement at hand
  absl::flat_hash_set<Expr> counted_;      // what takes their place
  // Of the branch at hand: values, and what stands in indices, bounds and conditions.
  std::array<absl::flat_hash_map<Expr, Expr>, 2> done_;
  bool is_exact_ = false;
  double computed_ = 0, loaded_ = 0, times_ = 0;
  bool is_sound_ = true;
};

struct Result {
  Stmt body;
  std::string name;
};

// The function's body without the array, if that is right and pays; or with one statement that computes the few
// elements that it reads.
std::optional<Result> Inlined(Stmt body, const Uses& uses, ir::Buffer buffer, double assumed) {
  const Definition* definition = uses.Find(buffer);
  if (definition == nullptr || !definition->is_plain) return std::nullopt;
  auto iterators = IteratorsOf(*definition);
  if (!iterators) return std::nullopt;
  // Whether what is read of another array for the definition is the same when it is read instead of the definition.
  const auto is_same_later = [&](ir::Buffer loaded) {
    if (loaded == buffer) return false;
    const std::optional<size_t> depth = uses.DepthOf(loaded);
    if (depth > uses.DepthOf(buffer)) return false;  // another one in each iteration
    if (!uses.IsStoredAfter(loaded, definition->begin)) return true;
    // Each element once, at most.
    const Definition* other = uses.Find(loaded);
    return depth && other != nullptr && IteratorsOf(*other).has_value();
  };
  bool stays = true;
  absl::flat_hash_set<ir::Buffer> loaded;  // allocations
  ir::ForEachExpr(definition->store.value(), [&](Expr e) {
    if (e.Is(ExprKind::kLoad)) {
      const ir::Buffer other(e.buffer());
      stays &= is_same_later(other);
      if (uses.DepthOf(other)) loaded.insert(other);
    }
    stays &= !e.Is(ExprKind::kAddress) && !(e.Is(ExprKind::kCall) && !ir::IsPureCall(e));
  });
  if (!stays) return std::nullopt;
  absl::flat_hash_set<Expr> seen;
  const double each = CostOf(definition->store.value(), seen);
  if (seen.size() > kMaxExpressions) return std::nullopt;
  Inliner everywhere(body.context(), *definition, *iterators, loaded, assumed);
  const Stmt result = everywhere.Mutate(body);
  if (everywhere.is_sound() &&
      everywhere.computed() <= kWorth * (each + kStore + everywhere.loaded())) {
    std::string name = buffer->name;
    if (everywhere.times() > 1.005)
      absl::StrAppendFormat(&name, " (%.3g times)", everywhere.times());
    return Result{.body = result, .name = std::move(name)};
  }
  if (everywhere.readers().size() < 2) return std::nullopt;
  for (Stmt reader : everywhere.readers()) {
    Inliner here(body.context(), *definition, *iterators, loaded, assumed, reader);
    const Stmt partly = here.Mutate(body);
    if (!here.is_sound() || here.computed() > kFew * each) continue;
    return Result{.body = partly, .name = StrCat(buffer->name, " in ", reader.buffer()->name)};
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> InlineStages(ir::Function& function, int64_t assumed_extent) {
  std::vector<std::string> names;
  bool changed = true;
  absl::flat_hash_set<ir::Buffer> tried;
  while (changed) {
    changed = false;
    const Uses uses(function.body);
    if (uses.has_calls()) break;
    for (ir::Buffer buffer : uses.Arrays()) {
      if (tried.contains(buffer)) continue;
      const std::optional<Result> inlined =
          Inlined(function.body, uses, buffer, static_cast<double>(assumed_extent));
      if (!inlined) {
        tried.insert(buffer);
        continue;
      }
      function.body = inlined->body;
      names.push_back(inlined->name);
      changed = true;
      break;
    }
  }
  return names;
}

}  // namespace polynao::poly
