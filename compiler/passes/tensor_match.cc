#include "compiler/passes/tensor_match.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao {
namespace {

using arith::Analyzer;
using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::Var;

// The number of ways to lay a nest's loops over a pattern's loops that are followed to the end. A
// convolution has a handful.
constexpr int kMaxAssignments = 64;

// Whether a nest under a pragma of this key (empty: none) may become `instruction`.
bool Allows(std::string_view key, const isa::Instruction& instruction) {
  return key.empty() || key == pragma::kTensorize || key == instruction.family ||
         key == instruction.form_of;
}

bool IsCommutative(Expr e) {
  const ExprKind kind = e.kind();
  // min and max of floats are not: a NaN on the left is the result, a NaN on the right is not.
  if (kind == ExprKind::kMin || kind == ExprKind::kMax) return ir::IsInt(e.type());
  return kind == ExprKind::kAdd || kind == ExprKind::kMul || kind == ExprKind::kEq ||
         kind == ExprKind::kNe;
}

// The value with an operator of this kind at the top, where another one means the same: x - c and x + -c, integers 0 -
// x and x * -1. Simplification keeps the shorter one, whatever the instruction. Otherwise the value itself.
Expr WithKind(ExprKind kind, Expr value) {
  const ir::Type type = value.type();
  ir::Context& c = value.context();
  const auto negated = [&](Expr number) {
    if (ir::IsFloat(type)) return c.Float(type, -number.float_value());
    return c.Int(type, static_cast<int64_t>(0 - static_cast<uint64_t>(number.int_value())));
  };
  if (value.Is(ExprKind::kAdd) && kind == ExprKind::kSub && value.operand(1).IsConst())
    return value.operand(0) - negated(value.operand(1));
  if (value.Is(ExprKind::kSub) && kind == ExprKind::kAdd && value.operand(1).IsConst())
    return value.operand(0) + negated(value.operand(1));
  if (value.Is(ExprKind::kSub) && kind == ExprKind::kMul && ir::IsInt(type) &&
      value.operand(0).IsInt(0))
    return value.operand(1) * negated(c.Int(type, 1));
  return value;
}

// The number of the pattern's loops behind number j that stand for loops of the nest.
int Assigned(const TensorAttempt& a, int j) {
  int assigned = 0;
  for (size_t i = j + 1; i < a.runs.size(); ++i) assigned += a.runs[i].first < a.runs[i].second;
  return assigned;
}

}  // namespace

TensorMatcher::TensorMatcher(const Target& target, std::shared_ptr<ir::Context> context,
                             Analyzer& analyzer, const NestSurroundings& surroundings)
    : context_(std::move(context)),
      analyzer_(analyzer),
      candidates_(MakeCandidates(*target.instructions)),
      conditions_(target, analyzer, surroundings, closest_) {}

std::vector<TensorMatcher::Candidate> TensorMatcher::MakeCandidates(
    const isa::InstructionSet& set) {
  std::vector<Candidate> candidates;
  for (const isa::Instruction& instruction : set.instructions()) {
    // Of a queued instruction and its waiting twin the queued one is chosen; sync places the waits.
    if (instruction.queue == isa::Queue::kNone || instruction.waits) continue;
    const NestShape shape = ShapeOf(instruction.meaning.body);
    if (!shape.store) continue;
    candidates.push_back({.instruction = &instruction,
                          .store_buffer = shape.store.buffer(),
                          .value_kind = shape.store.value().kind(),
                          .initialises = shape.initialises});
  }
  return candidates;
}

std::optional<TensorMatch> TensorMatcher::Best(const TensorNest& nest, std::string_view key) {
  std::optional<TensorMatch> best;
  // The value as it is written, then in other ways.
  for (const bool rewrites : {false, true}) {
    rewrites_ = rewrites;
    for (Candidate& candidate : candidates_) {
      if (!Allows(key, *candidate.instruction)) continue;
      const TensorPattern* pattern = PatternFor(candidate, nest);
      if (pattern == nullptr) continue;
      std::optional<TensorMatch> match = TryPattern(nest, *pattern);
      if (match && (!best || match->Rank() < best->Rank())) best = std::move(match);
    }
    if (best) break;
  }
  return best;
}

// The candidate's pattern, if a look at the store shows that it may match the nest; else null.
const TensorPattern* TensorMatcher::PatternFor(Candidate& candidate, const TensorNest& nest) {
  const isa::Instruction& instruction = *candidate.instruction;
  const Expr value =
      rewrites_ ? WithKind(candidate.value_kind, nest.store.value()) : nest.store.value();
  if (candidate.store_buffer->type != nest.target.buffer->type ||
      candidate.store_buffer->scope != nest.target.buffer->scope) {
    // Worth a message only where no other instruction comes closer.
    if (closest_.IsCloser(0)) {
      closest_.difference = {
          .progress = 0,
          .mnemonic = instruction.mnemonic,
          .why = StrCat("'", nest.target.buffer->name, "' is ",
                        ir::TypeName(nest.target.buffer->type), " in ", nest.target.buffer->scope,
                        ", not ", ir::TypeName(candidate.store_buffer->type), " in ",
                        candidate.store_buffer->scope),
          .program = StoreText(nest.store),
          .pattern = StoreText(ShapeOf(instruction.meaning.body).store)};
    }
    return nullptr;
  }
  if (candidate.value_kind != ExprKind::kVar && candidate.value_kind != value.kind()) {
    if (closest_.IsCloser(1)) {
      closest_.difference = {
          .progress = 1,
          .mnemonic = instruction.mnemonic,
          .why = StrCat("'", ir::Print(value), "' is ", ir::ExprKindName(value.kind()), ", not ",
                        ir::ExprKindName(candidate.value_kind)),
          .program = StoreText(nest.store),
          .pattern = StoreText(ShapeOf(instruction.meaning.body).store)};
    }
    return nullptr;
  }
  if (candidate.initialises != static_cast<bool>(nest.init)) {
    if (closest_.IsCloser(2)) {
      closest_.difference = {
          .progress = 2,
          .mnemonic = instruction.mnemonic,
          .why = candidate.initialises
                     ? "nothing stores a constant before the update"
                     : StrCat("'", StoreText(nest.init), "' stands before the update"),
          .program = StoreText(nest.init ? nest.init : nest.store),
          .pattern = StoreText(ShapeOf(instruction.meaning.body).store)};
    }
    return nullptr;
  }
  if (!candidate.made) {
    candidate.made = true;
    candidate.pattern = MakeTensorPattern(instruction, context_);
  }
  return candidate.pattern ? &*candidate.pattern : nullptr;
}

std::optional<TensorMatch> TensorMatcher::TryPattern(const TensorNest& nest,
                                                     const TensorPattern& pattern) {
  const size_t loops = nest.loops.size();
  const size_t max_around = std::min(nest.max_around, loops - std::min<size_t>(loops, 1));
  // First with all loops inside the instruction, then with fewer and fewer.
  Analyzer::Scope scope(analyzer_);
  for (size_t around = 0; around <= max_around; ++around) {
    if (around > 0) {
      const Stmt loop = nest.loops[around - 1].loop;
      analyzer_.BindLoop(loop.var(), loop.min(), loop.extent());
    }
    // Loops of updates may be reordered as long as each element keeps the order of its own updates.
    std::optional<TensorNest> sorted;
    if (pattern.accumulates && !pattern.init && nest.accumulates()) {
      sorted = SortLoops(nest, around, analyzer_);
    }
    if (std::optional<TensorMatch> match = TryOrder(sorted ? *sorted : nest, pattern, around)) {
      return match;
    }
    // The operators differ, and they would in another order and with fewer loops inside.
    if (structure_differs_) break;
    const std::optional<TensorNest> ordered = InStoredOrder(nest, around, analyzer_);
    if (!ordered) continue;
    if (std::optional<TensorMatch> match = TryOrder(*ordered, pattern, around)) return match;
  }
  return std::nullopt;
}

std::optional<TensorMatch> TensorMatcher::TryOrder(const TensorNest& nest,
                                                   const TensorPattern& pattern, size_t around) {
  TensorAttempt a{.nest = nest, .pattern = pattern, .around = around};
  a.to_min = nest.single;
  for (size_t k = around; k < nest.loops.size(); ++k) {
    const Stmt loop = nest.loops[k].loop;
    const Expr last = loop.min() + (loop.extent() - 1);
    a.to_min[loop.var()] = nest.loops[k].backwards ? analyzer_.Simplify(last) : loop.min();
  }
  structure_differs_ = true;
  return MatchPattern(a) ? a.match : std::nullopt;
}

// ---- values

bool TensorMatcher::MatchPattern(TensorAttempt& a) {
  TensorBinding binding;
  if (!MatchBuffer(a, binding, a.pattern.store.buffer(), a.nest.target, 3)) return false;
  binding.accesses.emplace_back(&a.pattern.store_index, &a.nest.target);
  std::vector<std::pair<Expr, Expr>> pairs = {{a.pattern.store.value(), a.nest.store.value()}};
  if (a.pattern.init) pairs.emplace_back(a.pattern.init.value(), a.nest.init.value());
  return MatchValues(a, std::move(binding), std::move(pairs), 4);
}

bool TensorMatcher::MatchBuffer(const TensorAttempt& a, TensorBinding& binding, Buffer pattern,
                                const NestAccess& access, int progress) {
  auto [it, added] = binding.buffers.try_emplace(pattern, &access);
  if (pattern->type == access.buffer->type && pattern->scope == access.buffer->scope &&
      (added || (it->second->buffer == access.buffer && it->second->index == access.index))) {
    return true;
  }
  if (closest_.IsCloser(progress)) {
    std::string why;
    if (pattern->type != access.buffer->type) {
      why = StrCat("'", access.buffer->name, "' holds ", ir::TypeName(access.buffer->type),
                   ", not ", ir::TypeName(pattern->type));
    } else if (pattern->scope != access.buffer->scope) {
      why = StrCat("'", access.buffer->name, "' is in ", access.buffer->scope, ", not ",
                   pattern->scope);
    } else {
      why = StrCat("two addresses for '", pattern->name, "'");
    }
    closest_.difference = {.progress = progress,
                           .mnemonic = a.pattern.instruction->mnemonic,
                           .why = std::move(why),
                           .program = StoreText(a.nest.store),
                           .pattern = StoreText(a.pattern.store)};
  }
  return false;
}

bool TensorMatcher::Differs(const TensorAttempt& a, int progress, Expr pattern, Expr value,
                            std::string_view what, std::string_view expected) {
  if (closest_.IsCloser(progress)) {
    closest_.difference = {.progress = progress,
                           .mnemonic = a.pattern.instruction->mnemonic,
                           .why = StrCat("'", ir::Print(value), "' is ", what, ", not ", expected),
                           .program = ir::Print(value),
                           .pattern = ir::Print(pattern)};
  }
  return false;
}

// Matches pairs of expressions (pattern, nest), the last pair first. Operands of commutative
// operators are tried in either order until one order leads to a match of the whole nest.
bool TensorMatcher::MatchValues(TensorAttempt& a, TensorBinding binding,
                                std::vector<std::pair<Expr, Expr>> pairs, int progress) {
  while (!pairs.empty()) {
    const Expr pattern = pairs.back().first;
    const Expr value =
        rewrites_ ? WithKind(pattern.kind(), pairs.back().second) : pairs.back().second;
    pairs.pop_back();
    ++progress;
    if (pattern.type() != value.type()) {
      return Differs(a, progress, pattern, value, ir::TypeName(value.type()),
                     ir::TypeName(pattern.type()));
    }
    if (pattern.Is(ExprKind::kVar)) {
      if (!MatchScalar(a, binding, pattern, value, progress)) return false;
      continue;
    }
    if (pattern.kind() != value.kind()) {
      return Differs(a, progress, pattern, value, ir::ExprKindName(value.kind()),
                     ir::ExprKindName(pattern.kind()));
    }
    if (pattern.Is(ExprKind::kLoad)) {
      const NestAccess& access = a.nest.loads.at(value);
      if (!MatchBuffer(a, binding, Buffer(pattern.buffer()), access, progress)) return false;
      binding.accesses.emplace_back(&a.pattern.load_index.at(pattern), &access);
      continue;
    }
    if (pattern.IsConst()) {
      if (pattern != value) {
        return Differs(a, progress, pattern, value, "the constant", ir::Print(pattern));
      }
      continue;
    }
    if (pattern.Is(ExprKind::kCall) && pattern.name() != value.name()) {
      return Differs(a, progress, pattern, value, StrCat("a call of ", value.name()),
                     pattern.name());
    }
    if (IsCommutative(pattern)) {
      std::vector<std::pair<Expr, Expr>> other = pairs;
      other.emplace_back(pattern.operand(1), value.operand(0));
      other.emplace_back(pattern.operand(0), value.operand(1));
      pairs.emplace_back(pattern.operand(1), value.operand(1));
      pairs.emplace_back(pattern.operand(0), value.operand(0));
      return MatchValues(a, binding, std::move(pairs), progress) ||
             MatchValues(a, std::move(binding), std::move(other), progress);
    }
    for (size_t i = pattern.operands().size(); i-- > 0;) {
      pairs.emplace_back(pattern.operand(i), value.operand(i));
    }
  }
  structure_differs_ = false;
  a.binding = std::move(binding);
  a.runs.assign(a.pattern.vars.size(), {0, 0});
  return AssignLoops(a, static_cast<int>(a.pattern.vars.size()) - 1, a.nest.loops.size());
}

bool TensorMatcher::MatchScalar(const TensorAttempt& a, TensorBinding& binding, Var pattern,
                                Expr value, int progress) {
  value = ir::Substitute(value, a.nest.single);
  for (size_t k = a.around; k < a.nest.loops.size(); ++k) {
    const Var var = a.nest.loops[k].loop.var();
    if (!ir::UsesVar(value, var)) continue;
    structure_differs_ = false;  // it may be the same with this loop around the instruction
    if (closest_.IsCloser(progress)) {
      closest_.difference = {
          .progress = progress,
          .mnemonic = a.pattern.instruction->mnemonic,
          .why = StrCat("'", ir::Print(value), "' changes with '", var.name(), "'"),
          .program = StoreText(a.nest.store),
          .pattern = StoreText(a.pattern.store)};
    }
    return false;
  }
  // The scalar unit would read a value from memory once, the loop reads it in every iteration. So
  // only values without loads are taken.
  bool loads = false;
  ir::ForEachExpr(value, [&](Expr e) { loads = loads || e.Is(ExprKind::kLoad); });
  if (loads) {
    return Differs(a, progress, pattern, value, "read from memory", "in a register");
  }
  // A stored value wraps around; the same arithmetic in an argument stops the program.
  if (ir::IsInt(value.type()) && analyzer_.CanOverflow(value)) {
    return Differs(a, progress, pattern, value, "a sum that may wrap",
                   "an argument, which may not");
  }
  auto [it, added] = binding.values.try_emplace(pattern, value);
  return added || it->second == value;
}

// ---- loops

// Lays the nest's loops up to number `end` over the pattern's loops up to number `j`, innermost
// first. A loop of the pattern takes as many loops of the nest as can be joined, or none.
bool TensorMatcher::AssignLoops(TensorAttempt& a, int j, size_t end) {
  const bool reduces = a.pattern.init && j >= static_cast<int>(a.pattern.outer_loops);
  const bool turn = a.pattern.init && j == static_cast<int>(a.pattern.outer_loops) - 1;
  if (j < 0 || (turn && end > a.nest.outer_loops)) {
    if (j < 0 && end == a.around) return conditions_.Hold(a);
    if (closest_.IsCloser(kProgressLoops + Assigned(a, j))) {
      const Stmt loop = a.nest.loops[end - 1].loop;
      closest_.difference = {.progress = kProgressLoops + Assigned(a, j),
                             .mnemonic = a.pattern.instruction->mnemonic,
                             .why = StrCat("the loop '", loop.var().name(), "' has no counterpart"),
                             .program = ir::PrintFirstLine(loop),
                             .pattern = ir::PrintFirstLine(a.pattern.meaning.body)};
    }
    return false;
  }
  const size_t low = reduces ? a.nest.outer_loops : a.around;
  size_t begin = end;
  if (end > low) --begin;
  while (begin > low && a.nest.joinable[begin - 1]) --begin;
  for (;; ++begin) {
    if (a.assignments > kMaxAssignments) return false;
    a.runs[j] = {begin, end};
    if (LoopFits(a, j) && AssignLoops(a, j - 1, begin)) return true;
    if (begin == end) return false;
  }
}

// Whether the constant extent and strides of the pattern's loop `j` are those of the nest.
bool TensorMatcher::LoopFits(TensorAttempt& a, int j) {
  const auto [begin, end] = a.runs[j];
  const auto same = [&](Expr pattern, Expr value) {
    if (!pattern) return value.IsInt(0);
    if (!pattern.Is(ExprKind::kIntImm)) return true;
    return value.Is(ExprKind::kIntImm) ? value == pattern
                                       : analyzer_.CanProve(ir::Eq(pattern, value));
  };
  const auto differ = [&](const auto& make_why) {
    const int progress = kProgressLoops + Assigned(a, j - 1);
    if (!closest_.IsCloser(progress)) return false;
    closest_.difference = {
        .progress = progress,
        .mnemonic = a.pattern.instruction->mnemonic,
        .why = make_why(),
        .program = begin < end ? ir::PrintFirstLine(a.nest.loops[end - 1].loop) : "no loop",
        .pattern = StrCat("for (", a.pattern.vars[j].name(), ": i64, 0, ",
                          NumberText(a.pattern.extents[j]), ")")};
    return false;
  };
  const Expr extent = conditions_.Extent(a, j);
  if (!same(a.pattern.extents[j], extent)) {
    return differ([&] {
      return StrCat("a loop has ", NumberText(extent), " iterations, not ",
                    NumberText(a.pattern.extents[j]));
    });
  }
  if (begin == end) return true;
  for (const auto& [pattern, access] : a.binding.accesses) {
    const Expr expected = pattern->coefficients[j];
    const Expr stride = access->coefficients[end - 1];
    if (same(expected, stride)) continue;
    return differ([&, access = access] {
      return StrCat("'", access->buffer->name, "' has the stride ", NumberText(stride), " over '",
                    a.nest.loops[end - 1].loop.var().name(), "', not ",
                    expected ? NumberText(expected) : "0");
    });
  }
  return true;
}

}  // namespace polynao
