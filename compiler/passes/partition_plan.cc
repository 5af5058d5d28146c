#include "compiler/passes/partition_plan.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "compiler/ir/text.h"

namespace polynao {

using arith::Interval;
using arith::Intervals;
using ir::Stmt;
using ir::Var;

namespace {

// `i < n - 7` is false from 2^31 - 8 on because n has 32 bits; such a piece serves nobody.
void DropFarIntervals(Intervals& intervals, Interval range) {
  constexpr int64_t kFar = int64_t{1} << 24;
  auto is_far = [](int64_t value) { return value < -kFar || value > kFar; };
  std::erase_if(intervals, [&](const Interval& interval) {
    return (interval.first > range.first && is_far(interval.first)) ||
           (interval.last < range.last && is_far(interval.last));
  });
}

}  // namespace

GuardsBelow PartitionPlanner::FindGuards(Stmt loop, Stmt body) {
  return finder_.Find(body, loop.var(), pragmas_ > 0 || !options_.only_in_pragmas);
}

int PartitionPlanner::PieceLimit() const {
  const int room = std::max(0, options_.max_nest_pieces - nest_pieces_);
  return std::min(options_.max_pieces, room + 1);
}

PiecePlan PartitionPlanner::Plan(Stmt loop, Stmt body, Interval range, bool is_symbolic) {
  if (!finder_.HasGuard(body)) return {{{range, {}}}, {}};
  GuardsBelow found;
  {
    Surroundings::Scope scope(around_);
    // The loop's own range; a thread loop has one from outside already.
    around_.analyzer().BindRange(loop.var(), {range.first, range.last});
    found = FindGuards(loop, body);
    solver_.Solve(range, found);
  }
  if (is_symbolic) {
    for (LoopGuard& guard : found.guards) {
      DropFarIntervals(guard.always, range);
      DropFarIntervals(guard.never, range);
    }
  }

  // Cuts in the order of guards, while they fit.
  std::set<int64_t> cuts = {range.first};
  const size_t limit = PieceLimit();
  for (LoopGuard& guard : found.guards) {
    std::set<int64_t> with = cuts;
    for (const Intervals* intervals : {&guard.always, &guard.never}) {
      for (const Interval& interval : *intervals) {
        with.insert(interval.first);
        if (interval.last < range.last) with.insert(interval.last + 1);
      }
    }
    guard.taken = with.size() <= limit;
    if (guard.taken) cuts = std::move(with);
  }
  std::vector<Piece> pieces;
  for (auto it = cuts.begin(); it != cuts.end(); ++it) {
    const auto next = std::next(it);
    Piece piece = {{*it, next == cuts.end() ? range.last : *next - 1}, {}};
    auto all_in = [&](const Intervals& intervals) {
      return Complement(intervals, piece.range).empty();
    };
    for (const LoopGuard& guard : found.guards) {
      if (all_in(guard.always)) {
        piece.truths[{guard.place, guard.node}] = true;
      } else if (all_in(guard.never)) {
        piece.truths[{guard.place, guard.node}] = false;
      }
    }
    pieces.push_back(std::move(piece));
  }
  TakePieces(pieces.size());
  return {std::move(pieces), std::move(found)};
}

void PartitionPlanner::Record(Var var, Interval range, const PiecePlan& plan,
                              const std::string& bounds,
                              const std::vector<std::string>& piece_bounds) {
  if (stats_ == nullptr) return;
  const bool is_constant = bounds.empty();
  LoopPartitionStats::Loop loop = {
      .variable = std::string(var.name()),
      .bounds = is_constant ? arith::ToString({range}) : bounds,
  };
  // The ends of the range are those of the type if the bounds are not constant.
  auto text = [&](const Intervals& intervals) {
    if (is_constant || intervals.empty()) return arith::ToString(intervals);
    std::string result;
    for (const Interval& interval : intervals) {
      StrAppend(&result, result.empty() ? "[" : " [",
                interval.first == range.first ? ".." : StrCat(interval.first), ", ",
                interval.last == range.last ? ".." : StrCat(interval.last), "]");
    }
    return result;
  };
  absl::flat_hash_set<std::string> seen;
  for (const LoopGuard& guard : plan.found.guards) {
    if (guard.always.empty() && guard.never.empty()) continue;
    const Intervals both = Complement(Union(guard.always, guard.never), range);
    LoopPartitionStats::Guard record = {.condition = ir::Print(guard.condition),
                                        .always = guard.always,
                                        .never = guard.never,
                                        .true_set = text(guard.always),
                                        .false_set = text(guard.never),
                                        .both_set = text(both),
                                        .taken = guard.taken};
    // At several places with the same result: once.
    if (!seen.insert(StrCat(record.condition, ":", record.true_set, ":", record.false_set))
             .second) {
      continue;
    }
    loop.guards.push_back(std::move(record));
  }
  if (loop.guards.empty()) return;
  for (const Piece& piece : plan.pieces) {
    loop.pieces.push_back(piece.range);
    if (is_constant) loop.piece_bounds.push_back(arith::ToString({piece.range}));
  }
  if (!is_constant) loop.piece_bounds = piece_bounds;
  stats_->loops.push_back(std::move(loop));
}

}  // namespace polynao
