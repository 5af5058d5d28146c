#include "compiler/passes/licm_places.h"

#include <bit>
#include <functional>

#include "compiler/ir/visit.h"
#include "compiler/passes/facts.h"
#include "compiler/passes/left_to_compiler.h"

namespace polynao {

using arith::Analyzer;
using arith::Mode;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;

namespace {

// For each loop: how many lets around it bind a value that is used in it. Such a value takes a
// register, as a value that moves out of the loop does. So a second run has no more room than the
// first one left.
absl::flat_hash_map<Stmt, int> LiveLets(Stmt body) {
  absl::flat_hash_map<Stmt, int> live;
  absl::flat_hash_map<ir::Var, size_t> depths;  // of variables of lets: how many loops are around
  std::vector<absl::flat_hash_set<ir::Var>> used;  // in the loops around
  const std::function<void(Stmt)> walk = [&](Stmt s) {
    for (Expr operand : s.operands()) {
      ir::ForEachExpr(operand, [&](Expr e) {
        const auto depth = depths.find(e);
        if (depth == depths.end()) return;
        for (size_t p = depth->second; p < used.size(); ++p) used[p].insert(e);
      });
    }
    if (s.Is(StmtKind::kLet)) depths[s.var()] = used.size();
    if (s.Is(StmtKind::kFor)) used.emplace_back();
    for (Stmt child : s.children()) walk(child);
    if (s.Is(StmtKind::kFor)) {
      live[s] = static_cast<int>(used.back().size());
      used.pop_back();
    }
  };
  walk(body);
  return live;
}

int OperationCost(Expr e, const LicmOptions& options) {
  if (options.leave && IsLeftToCompiler(e)) return 0;
  switch (e.kind()) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kVar:
    case ExprKind::kLet:
    case ExprKind::kAddress:
      return 0;
    case ExprKind::kMul:
      return options.multiply;
    case ExprKind::kDiv:
    case ExprKind::kMod: {
      const Expr divisor = e.operand(1);
      if (ir::IsFloat(e.type())) return options.divide;
      if (!divisor.Is(ExprKind::kIntImm)) return options.divide_variable;
      const int64_t value = divisor.int_value();
      return value > 0 && (value & (value - 1)) == 0 ? options.divide_by_power : options.divide;
    }
    case ExprKind::kLoad:
      return options.load;
    case ExprKind::kCall:
      return options.intrinsic;
    default:
      return options.simple;
  }
}

}  // namespace

LicmPlaces::LicmPlaces(const ir::Function& function, const Target& target,
                       const LicmOptions& options, Crowds crowds)
    : function_(function),
      context_(*function.context),
      options_(options),
      crowds_(std::move(crowds)),
      effects_(function, target.instructions ? &target.instructions->intrinsics() : nullptr),
      live_lets_(LiveLets(function.body)),
      here_(*function.context) {
  AssumeParameters(function, here_);
  effects_.Writes(function.body);  // of all loops, in one walk
}

// ---- the walk -----------------------------------------------------------------------------------

const LicmPlaces::Loop& LicmPlaces::Enter(Stmt s) {
  const int live = live_lets_.at(s);
  Loop loop{.s = s, .facts = facts_.size(), .live = live, .live_lets = live};
  const bool constant = s.extent().Is(ExprKind::kIntImm);
  loop.runs = constant ? s.extent().int_value() > 0 : RunsAtLeastOnce(s.extent());
  if (s.for_kind() == ForKind::kThread) {
    loop.wall = threads_ == 0 || !options_.leave_inner_threads;
    loop.unrolled = true;
    ++threads_;
  } else {
    if (!options_.beside_instructions) {
      loop.wall = ir::AnyStmt(s.body(), [](Stmt inner) { return inner.Is(StmtKind::kEvaluate); });
    }
    loop.unrolled = constant && (s.for_kind() == ForKind::kUnroll ||
                                 s.extent().int_value() <= options_.unrolled_extent);
  }
  loops_.push_back(std::move(loop));
  facts_.push_back({s});
  Bind(s.var());
  plans_.Clear();
  return loops_.back();
}

LicmPlaces::Loop LicmPlaces::Leave() {
  plans_.Clear();
  PopFact();
  Loop loop = std::move(loops_.back());
  loops_.pop_back();
  if (loop.has_no_room) {
    const int room = std::max(0, options_.max_live - loop.live_lets);
    found_crowds_[loop.s] = MakeCrowd(std::move(loop.spared), static_cast<size_t>(room));
  }
  threads_ -= loop.s.for_kind() == ForKind::kThread;
  return loop;
}

void LicmPlaces::BindAllocation(ir::Buffer buffer) {
  places_[buffer.node()] = Here();
  allocations_.insert(buffer.node());
}

void LicmPlaces::Put(ir::Var var, Expr value, int place) {
  places_[var.node()] = place;
  loops_[place].lifted.emplace_back(var, value);
  for (int p = place; p < Here(); ++p) {
    if (loops_[p].analyzer) loops_[p].analyzer->BindLet(var, value);
  }
}

bool LicmPlaces::RunsAtLeastOnce(Expr extent) {
  while (scopes_.size() < facts_.size()) {
    scopes_.push_back(std::make_unique<Analyzer::Scope>(here_));
    AddFact(scopes_.size() - 1, here_);
  }
  return here_.Range(extent).min >= 1 || here_.CanProve(1 <= extent);
}

void LicmPlaces::AddFact(size_t i, Analyzer& analyzer) const {
  const Stmt s = facts_[i].s;
  if (s.Is(StmtKind::kFor)) {
    analyzer.BindLoop(s.var(), s.min(), s.extent());
  } else if (s.Is(StmtKind::kLet)) {
    analyzer.BindLet(s.var(), s.value());
  } else {
    analyzer.Assume(s.cond(), facts_[i].truth);
  }
}

void LicmPlaces::PopFact() {
  facts_.pop_back();
  if (scopes_.size() > facts_.size()) scopes_.pop_back();
}

Analyzer& LicmPlaces::FactsAt(int place) {
  Loop& loop = loops_[place];
  if (!loop.analyzer) {
    loop.analyzer = std::make_unique<Analyzer>(context_);
    AssumeParameters(function_, *loop.analyzer);
    for (size_t i = 0; i < loop.facts; ++i) AddFact(i, *loop.analyzer);
    for (int p = 0; p <= place; ++p) {
      for (const auto& [var, value] : loops_[p].lifted) loop.analyzer->BindLet(var, value);
    }
  }
  return *loop.analyzer;
}

// ---- plans --------------------------------------------------------------------------------------

const LicmPlaces::Info& LicmPlaces::InfoOf(Expr e) {
  if (const Info* known = infos_.Find(e)) return *known;
  Info info;
  if (e.Is(ExprKind::kVar)) {
    info.closed = !bound_inside_.contains(e);
    info.depths = info.closed ? DepthBit(PlaceOf(e.node())) : 0;
  }
  if (e.buffer() != nullptr) {
    info.depths |= DepthBit(PlaceOf(e.buffer()));
    info.loads_allocation = allocations_.contains(e.buffer());
  }
  if (e.Is(ExprKind::kLet)) bound_inside_.insert(e.var());
  for (Expr operand : e.operands()) {
    const Info& inner = InfoOf(operand);
    info.depths |= inner.depths;
    info.closed = info.closed && inner.closed;
    info.loads_allocation = info.loads_allocation || inner.loads_allocation;
  }
  if (e.Is(ExprKind::kLet)) {
    info.closed = true;
    for (Expr var : ir::FreeVars(e)) info.closed = info.closed && !bound_inside_.contains(var);
  }
  return infos_.Set(e, info);
}

int LicmPlaces::FirstPlace(Expr e) {
  const Info& info = InfoOf(e);
  int place = Here();
  if (!info.closed || !effects_.IsPure(e)) return place;
  const int bound = std::bit_width(info.depths | 1) - 1;
  const bool loads = !effects_.Loads(e).empty();
  while (place > bound && !loops_[place - 1].wall &&
         !(loads && effects_.MayChange(e, loops_[place - 1].s))) {
    --place;
  }
  // Leaving a thread loop spares nothing by itself.
  while (place < Here() && loops_[place].s.for_kind() == ForKind::kThread) ++place;
  return place;
}

bool LicmPlaces::Spares(int to, int from) const {
  for (int p = to; p < from; ++p) {
    if (!loops_[p].unrolled) return true;
  }
  return false;
}

const LicmPlaces::HoistPlan& LicmPlaces::PlanOf(Expr e) {
  if (const HoistPlan* known = plans_.Find(e)) return *known;
  // The compiler behind this one folds constants.
  const bool constant = InfoOf(e).depths == 0;
  HoistPlan plan{.place = FirstPlace(e), .cost = constant ? 0 : OperationCost(e, options_)};
  for (Expr operand : e.operands()) {
    const HoistPlan& inner = PlanOf(operand);
    const bool moves_on = inner.place < plan.place && IsWorth(inner.cost, inner.place, plan.place);
    // The sum counts shared operands several times and may exceed any int.
    if (!moves_on) plan.cost = std::min(plan.cost + inner.cost, kMaxCost);
  }
  return plans_.Set(e, plan);
}

int LicmPlaces::WholeCost(Expr e) const {
  LicmOptions all = options_;
  all.leave = false;
  int cost = 0;
  ir::ForEachExpr(e,
                  [&](Expr part) { cost = std::min(cost + OperationCost(part, all), kMaxCost); });
  return cost;
}

bool LicmPlaces::CanEvaluate(Expr e, int place, int certain_from, bool strict) {
  if (effects_.NeverTraps(e, Mode::kData)) return true;
  // The first iteration is certain to evaluate it. A value that was never stored may be copied
  // there, but a let of it stops the program.
  if (place >= certain_from && (strict || !InfoOf(e).loads_allocation)) return true;
  return !effects_.MayTrap(e, FactsAt(place), Mode::kData);
}

uint64_t LicmPlaces::DepthsOf(Stmt s) {
  if (auto it = stmt_depths_.find(s); it != stmt_depths_.end()) return it->second;
  uint64_t depths = 0;
  for (Expr e : s.operands()) depths |= InfoOf(e).depths;
  if (s.buffer()) {
    depths |= DepthBit(PlaceOf(s.buffer().node()));
    for (Expr extent : s.buffer()->extents) depths |= InfoOf(extent).depths;
  }
  for (Stmt child : s.children()) depths |= DepthsOf(child);
  return stmt_depths_[s] = depths;
}

// ---- room ---------------------------------------------------------------------------------------

double LicmPlaces::SparedIn(int p, int cost, int from) const {
  constexpr double kUnknownExtent = 8;
  double spared = cost;
  for (int q = p + 1; q < from; ++q) {
    const Expr extent = loops_[q].s.extent();
    spared *=
        extent.Is(ExprKind::kIntImm) ? static_cast<double>(extent.int_value()) : kUnknownExtent;
  }
  return spared;
}

void LicmPlaces::NoteSpared(Expr e, int cost, int to, int from) {
  for (int p = to; p < from; ++p) loops_[p].spared[e] += SparedIn(p, cost, from);
}

bool LicmPlaces::HasRoom(Expr e, int cost, int to, int from) {
  bool has_room = true;
  std::vector<Loop*> at_bar;
  for (int p = to; p < from; ++p) {
    Loop& loop = loops_[p];
    if (loop.live >= options_.max_live) {
      loop.has_no_room = true;
      has_room = false;
    }
    const auto it = crowds_.find(loop.s);
    if (it == crowds_.end()) continue;
    const Crowd& crowd = it->second;
    const auto known = crowd.spared.find(e);
    const double spared = known != crowd.spared.end() ? known->second : SparedIn(p, cost, from);
    if (spared < crowd.bar) has_room = false;
    if (spared > crowd.bar) continue;
    if (loop.at_bar >= crowd.at_bar) has_room = false;
    at_bar.push_back(&loop);
  }
  if (!has_room) return false;
  for (Loop* loop : at_bar) ++loop->at_bar;
  for (int p = to; p < from; ++p) ++loops_[p].live;
  return true;
}

LicmPlaces::Crowd LicmPlaces::MakeCrowd(absl::flat_hash_map<Expr, double> spared, size_t room) {
  Crowd crowd{.spared = std::move(spared)};
  std::vector<double> most;
  for (const auto& [e, value] : crowd.spared) most.push_back(value);
  std::sort(most.begin(), most.end(), std::greater<double>());
  // The least that one of the `room` best values spares.
  if (room == 0) crowd.bar = std::numeric_limits<double>::infinity();
  if (0 < room && room < most.size()) crowd.bar = most[room - 1];
  for (size_t i = 0; i < std::min(room, most.size()); ++i) crowd.at_bar += most[i] == crowd.bar;
  return crowd;
}

}  // namespace polynao
