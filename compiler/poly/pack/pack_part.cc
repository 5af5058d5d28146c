#include "compiler/poly/pack/pack_part.h"

#include <isl/schedule.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/arrange/schedule_part.h"
#include "compiler/poly/generate/generate.h"
#include "compiler/poly/isl/tree_text.h"
#include "compiler/poly/model/assumed.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/pack/contraction.h"
#include "compiler/poly/pack/packed_code.h"

namespace polynao::poly {

namespace {

// Statements by their number in the part, and which of them reach which along dependences.
class Order {
 public:
  Order(const Scop& scop, const Dependences& dependences) : n_(scop.statements.size()) {
    std::map<std::string, size_t> number;
    for (size_t i = 0; i < n_; ++i) number[scop.statements[i].name] = i;
    reach_.assign(n_, std::vector<bool>(n_, false));
    for (const isl::map& pairs : MapsOf(dependences.All()))
      reach_[number.at(DomainName(pairs))][number.at(RangeName(pairs))] = true;
    for (size_t k = 0; k < n_; ++k) {
      for (size_t i = 0; i < n_; ++i) {
        for (size_t j = 0; j < n_ && reach_[i][k]; ++j) reach_[i][j] = reach_[i][j] || reach_[k][j];
      }
    }
  }

  bool Reaches(size_t from, size_t to) const { return reach_[from][to]; }
  // In a circle with no other statement.
  bool IsAlone(size_t s) const {
    for (size_t t = 0; t < n_; ++t) {
      if (t != s && reach_[s][t] && reach_[t][s]) return false;
    }
    return true;
  }
  // Something has to run between the two.
  bool HasBetween(size_t from, size_t to) const {
    for (size_t t = 0; t < n_; ++t) {
      if (t != from && t != to && reach_[from][t] && reach_[t][to]) return true;
    }
    return false;
  }

 private:
  const size_t n_;
  std::vector<std::vector<bool>> reach_;
};

using Numbers = std::vector<size_t>;

// A contraction with the number of its statement, and of those that begin and end its sums.
struct Candidate {
  Contraction contraction;
  size_t statement = 0;
  std::optional<size_t> initial = {}, final = {};
  std::optional<PackedCode> packed = {};

  bool Has(size_t s) const { return s == statement || s == initial || s == final; }
  // What is computed for sums without a product.
  Numbers Others() const {
    Numbers numbers;
    for (const std::optional<size_t>& s : {initial, final}) {
      if (s) numbers.push_back(*s);
    }
    return numbers;
  }
  Numbers All() const {
    Numbers numbers = Others();
    numbers.push_back(statement);
    return numbers;
  }
};

// A single row is worth its panels only if its columns are packed before the run.
std::vector<Candidate> CandidatesOf(const Scop& scop, bool has_constants) {
  std::vector<Candidate> candidates;
  for (size_t s = 0; s < scop.statements.size(); ++s) {
    std::optional<Contraction> contraction = FindContraction(scop, scop.statements[s]);
    if (!contraction || (contraction->rows.empty() && !has_constants)) continue;
    candidates.push_back({.contraction = *std::move(contraction), .statement = s});
  }
  return candidates;
}

// The statement whose values nobody but the contraction needs.
void FindInitial(const Scop& scop, const Dependences& dependences, const Order& order,
                 Candidate& candidate) {
  for (size_t s = 0; s < scop.statements.size(); ++s) {
    const Statement& initial = scop.statements[s];
    const bool is_before =
        s != candidate.statement && order.Reaches(s, candidate.statement) && !order.Reaches(s, s);
    if (!is_before || order.HasBetween(s, candidate.statement)) continue;
    // Where the sums have products at all; elsewhere the initial statement runs by itself.
    const isl::union_map readers =
        dependences.flow.intersect_domain(initial.domain.to_union_set())
            .intersect_params(candidate.contraction.statement->domain.params());
    // Sums of integers may be added in any order, so that none of their stores is the last one, and what reads the sums
    // seems to read their beginning, too. It does not if it comes behind the sums: each element is updated.
    const isl::union_set others =
        readers.range().subtract(candidate.contraction.statement->domain.to_union_set());
    const auto reads_it = [&](size_t t) {
      return !order.Reaches(candidate.statement, t) &&
             !others.is_disjoint(scop.statements[t].domain.to_union_set());
    };
    bool has_others = false;
    for (size_t t = 0; t < scop.statements.size(); ++t) has_others |= reads_it(t);
    if (has_others || !CanBegin(scop, initial, candidate.contraction)) continue;
    candidate.initial = s;
    candidate.contraction.initial = &initial;
    return;
  }
}

// The statement that alone needs the sums.
void FindFinal(const Scop& scop, const Order& order, Candidate& candidate) {
  for (size_t s = 0; s < scop.statements.size(); ++s) {
    const bool is_behind = !candidate.Has(s) && order.Reaches(candidate.statement, s) &&
                           !order.Reaches(s, s) && !order.HasBetween(candidate.statement, s);
    if (!is_behind || !CanEnd(scop, scop.statements[s], candidate.contraction)) continue;
    candidate.final = s;
    candidate.contraction.final = &scop.statements[s];
    return;
  }
}

Scop PartOfNumbers(const Scop& scop, const Numbers& numbers) {
  return PartOf(scop, [&](const Statement& s) {
    return std::any_of(numbers.begin(), numbers.end(),
                       [&](size_t i) { return &scop.statements[i] == &s; });
  });
}

// Groups that run one after the other: a candidate, or what runs between two of them.
struct Step {
  Numbers statements;
  const Candidate* candidate = nullptr;
};

std::vector<Step> StepsOf(const Scop& scop, const Order& order,
                          const std::vector<Candidate>& candidates) {
  const size_t n = scop.statements.size();
  std::vector<bool> is_done(n, false);
  const auto candidate_of = [&](size_t s) -> const Candidate* {
    for (const Candidate& candidate : candidates) {
      if (candidate.Has(s)) return &candidate;
    }
    return nullptr;
  };
  const auto is_ready = [&](size_t s, const Candidate* own) {
    for (size_t t = 0; t < n; ++t) {
      const bool is_own = t == s || (own != nullptr && own->Has(t));
      const bool in_circle = order.Reaches(s, t) && order.Reaches(t, s);
      if (!is_own && !in_circle && !is_done[t] && order.Reaches(t, s)) return false;
    }
    return true;
  };
  std::vector<Step> steps;
  size_t left = n;
  const auto finish = [&](Step step) {
    left -= step.statements.size();
    steps.push_back(std::move(step));
  };
  while (left > 0) {
    Step plain;
    for (bool is_new = true; is_new;) {
      is_new = false;
      for (size_t s = 0; s < n; ++s) {
        if (is_done[s] || candidate_of(s) != nullptr || !is_ready(s, nullptr)) continue;
        // Circles are whole: each of their statements is ready as soon as one of them is.
        is_done[s] = is_new = true;
        plain.statements.push_back(s);
      }
    }
    if (!plain.statements.empty()) finish(std::move(plain));
    for (const Candidate& candidate : candidates) {
      if (is_done[candidate.statement]) continue;
      const Numbers own = candidate.All();
      if (!std::all_of(own.begin(), own.end(), [&](size_t s) { return is_ready(s, &candidate); }))
        continue;
      for (const size_t s : own) is_done[s] = true;
      finish({.statements = own, .candidate = &candidate});
      break;
    }
  }
  return steps;
}

// The order of the steps, for a check, and to look at.
isl::schedule ScheduleOf(const Scop& scop, const std::vector<Step>& steps) {
  std::optional<isl::schedule> all;
  for (const Step& step : steps) {
    const isl::schedule one = PartOfNumbers(scop, step.statements).schedule;
    all = all ? isl::manage(isl_schedule_sequence(all->copy(), one.copy())) : one;
  }
  return *all;
}

// Steps are scheduled one after the other, so that their times add up.
void Add(const PartReport& one, PartReport* report) {
  report->AddLoops(one);
  report->cycles += one.cycles;
  report->dependences_ms += one.dependences_ms;
  report->schedule_ms += one.schedule_ms;
  report->tile_ms += one.tile_ms;
  report->generate_ms += one.generate_ms;
}

absl::StatusOr<ir::Stmt> WriteSteps(const Scop& scop, const std::vector<Step>& steps,
                                    const ScheduleOptions& options, PartReport* report) {
  ir::Context& c = scop.place.context();
  std::vector<ir::Stmt> parts;
  absl::flat_hash_set<ir::Buffer> made_locals;
  for (const Step& step : steps) {
    if (step.candidate != nullptr) {
      const PackedCode& packed = *step.candidate->packed;
      parts.push_back(packed.code);
      ++report->bands;
      ++report->tiled_bands;
      report->parallel_loops += packed.parallel_loops;
      ++report->vector_loops;
      report->cycles += packed.plan.cycles;
      report->lines.push_back(packed.line);
      if (packed.before) report->before.push_back(*packed.before);
      continue;
    }
    const Scop part = PartOfNumbers(scop, step.statements);
    for (ir::Buffer buffer : part.locals) made_locals.insert(buffer);
    PartReport one;
    ASSIGN_OR_RETURN(const ir::Stmt code, SchedulePart(part, options, &one));
    Add(one, report);
    parts.push_back(code);
  }
  ir::Stmt body = c.Seq(parts);
  for (size_t i = scop.locals.size(); i-- > 0;) {
    const ir::Buffer local = scop.locals[i];
    if (!made_locals.contains(local) && ir::UsesBuffer(body, local)) body = c.Allocate(local, body);
  }
  report->tree = TreeText(ScheduleOf(scop, steps));
  return ir::CloneWithFreshBindings(WithTest(scop, body));
}

// Nothing is much faster than a plan that takes at most so many times what its arithmetic alone does.
constexpr double kNearTheBound = 1.5;

// Writes the candidate's code, if that is faster than what SchedulePart would make of it.
absl::StatusOr<bool> Pack(const Scop& scop, const ScheduleOptions& options,
                          const AssumedParameters& assumed, Candidate& candidate) {
  ir::Stmt otherwise;
  if (!candidate.Others().empty()) {
    PartReport none;
    Scop others = PartOfNumbers(scop, candidate.Others());
    others.locals.clear();
    ASSIGN_OR_RETURN(otherwise, SchedulePart(others, options, &none));
  }
  CpuMachine machine = options.machine;
  if (!options.parallel) machine.cores = 1;
  candidate.packed =
      WritePackedCode(scop, candidate.contraction, machine, assumed, options, otherwise);
  if (!candidate.packed->code) return false;
  if (candidate.contraction.rows.empty() && !candidate.packed->before) return false;
  const PackPlan& plan = candidate.packed->plan;
  if (options.packing == Packing::kAll) return true;
  if (plan.cycles <= kNearTheBound * plan.least_cycles) return true;
  PartReport alone;
  RETURN_IF_ERROR(SchedulePart(PartOfNumbers(scop, candidate.All()), options, &alone).status());
  return plan.cycles < alone.cycles;
}

}  // namespace

absl::StatusOr<ir::Stmt> SchedulePacked(const Scop& scop, const ScheduleOptions& options,
                                        PartReport* report) {
  const bool can_pack =
      options.strategy == "auto" && options.packing != Packing::kNone && options.vectorize;
  std::vector<Candidate> candidates;
  if (can_pack) candidates = CandidatesOf(scop, !options.constants.empty());
  if (candidates.empty()) return SchedulePart(scop, options, report);
  const Dependences dependences =
      ComputeDependences(scop, {.reassociate_floats = options.reassociate});
  const Order order(scop, dependences);
  std::erase_if(candidates, [&](const Candidate& c) { return !order.IsAlone(c.statement); });
  const AssumedParameters assumed = AssumeParameters(scop, options.machine.assumed_extent);
  std::vector<Candidate> kept;
  for (Candidate& candidate : candidates) {
    FindInitial(scop, dependences, order, candidate);
    FindFinal(scop, order, candidate);
    ASSIGN_OR_RETURN(const bool is_faster, Pack(scop, options, assumed, candidate));
    if (is_faster) kept.push_back(std::move(candidate));
  }
  if (kept.empty()) return SchedulePart(scop, options, report);
  const std::vector<Step> steps = StepsOf(scop, order, kept);
  // Arrays of the part's own may hold different values in iterations of a loop that is now in several steps.
  if (!dependences.private_order.empty() &&
      !FindViolation(scop, dependences, ScheduleOf(scop, steps)).empty()) {
    return SchedulePart(scop, options, report);
  }
  return WriteSteps(scop, steps, options, report);
}

}  // namespace polynao::poly
