#include "compiler/poly/arrange/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "compiler/poly/arrange/loop_model.h"

namespace polynao::poly {

namespace {

BandPlan Make(BandPlan::Kind kind) {
  BandPlan plan;
  plan.kind = kind;
  return plan;
}

// The plan of one leaf band.
class Planner {
 public:
  Planner(const Scop& scop, const Dependences& dependences, const CpuMachine& machine,
          const AssumedParameters& assumed, const Place& place, const isl::multi_union_pw_aff& band,
          const Buffers& warm)
      : scop_(scop),
        dependences_(dependences),
        machine_(machine),
        place_(place),
        band_(band),
        warm_(warm) {
    model_ = ModelOf(scop, place, band, assumed);
  }

  // Of all of the band. Inside of a parallel loop all cores are busy already.
  BandPlan Run(bool is_inside_parallel) {
    Names all;
    for (const Statement& s : scop_.statements) {
      if (model_.Find(s.name) != nullptr) all.push_back(s.name);
    }
    std::vector<int> members(band_.size());
    for (size_t i = 0; i < members.size(); ++i) members[i] = static_cast<int>(i);
    std::vector<int> around;
    for (int m = model_.members; m < model_.all; ++m) around.push_back(m);
    BandPlan plan = Leaf(all, members, around, is_inside_parallel);
    if (BytesIfItFits(model_, around, warm_, machine_)) {
      for (const StatementModel& s : model_.statements) {
        for (const LinearAccess& a : s.accesses) plan.warm.insert(a.buffer);
      }
    }
    plan.cycles *= Fill();
    return plan;
  }

 private:
  // The part of the members' boxes that has instances: a third, where i < k and j < k.
  double Fill() const {
    double count = 0, boxes = 0;
    for (const StatementModel& s : model_.statements) {
      count += s.count;
      boxes += s.Instances();
    }
    return boxes > 0 ? std::min(count / boxes, 1.0) : 1;
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // The place of some of the statements, inside of loops over the members `around`.
  Place At(const Names& names, const std::vector<int>& around) const {
    Place place = place_;
    for (const int m : around) {
      if (m < model_.members) place = Inside(place, band_.at(m));
    }
    if (names.size() < model_.statements.size()) {
      std::optional<isl::union_set> domain;
      for (const std::string& name : names) {
        const isl::union_set one =
            place_.domain.extract_set(scop_.Find(name)->domain.space()).to_union_set();
        domain = domain ? domain->unite(one) : one;
      }
      place.domain = *domain;
    }
    return place;
  }

  // The statements of `names`, with one iteration along the members that are around.
  LoopModel ModelFor(const Names& names, const std::vector<int>& around) const {
    LoopModel model = model_;
    model.statements.clear();
    for (const std::string& name : names) model.statements.push_back(*model_.Find(name));
    for (const int m : around) {
      model.runs *= static_cast<double>(model.Extent(m));
      for (StatementModel& s : model.statements) s.extents[static_cast<size_t>(m)] = 1;
    }
    return model;
  }

  // Strongly connected groups of statements, each before those that wait for it.
  const std::vector<Names>& GroupsOf(const Names& names, std::vector<int> around) {
    std::sort(around.begin(), around.end());
    const auto [it, is_new] = groups_.try_emplace({names, around});
    if (is_new) it->second = FindGroups(names, around);
    return it->second;
  }

  std::vector<Names> FindGroups(const Names& names, const std::vector<int>& around) const {
    const size_t n = names.size();
    std::vector<std::vector<bool>> reaches(n, std::vector<bool>(n, false));
    const auto index = [&](const std::string& name) {
      return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    };
    if (n > 1) {
      for (const isl::map& map : MapsOf(Active(dependences_.All(), At(names, around)))) {
        if (!map.is_empty()) reaches[index(DomainName(map))][index(RangeName(map))] = true;
      }
    }
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j)
          reaches[i][j] = reaches[i][j] || (reaches[i][k] && reaches[k][j]);
      }
    }
    std::vector<Names> groups;
    std::vector<bool> done(n, false);
    while (std::find(done.begin(), done.end(), false) != done.end()) {
      for (size_t i = 0; i < n; ++i) {
        if (done[i]) continue;
        bool ready = true;
        for (size_t j = 0; j < n; ++j) ready &= done[j] || !reaches[j][i] || reaches[i][j];
        if (!ready) continue;
        Names group;
        for (size_t j = 0; j < n; ++j) {
          if (j != i && !(reaches[i][j] && reaches[j][i])) continue;
          group.push_back(names[j]);
          done[j] = true;
        }
        groups.push_back(group);
        break;
      }
    }
    return groups;
  }

  std::vector<int> Others(int member) const {
    std::vector<int> others;
    for (int m = 0; m < model_.members; ++m) {
      if (m != member) others.push_back(m);
    }
    return others;
  }

  struct Innermost {
    Carried carried = Carried::kOrder;
    std::vector<ir::Buffer> copies;
  };

  // What stands between the iterations of the member where it is innermost.
  const Innermost& InnermostOf(const Names& names, int member) {
    const auto [it, is_new] = innermost_.try_emplace({names, member});
    if (is_new) it->second = FindInnermost(names, member);
    return it->second;
  }

  Innermost FindInnermost(const Names& names, int member) const {
    const Place inside = At(names, Others(member));
    const std::optional<std::vector<ir::Buffer>> copies =
        CopiesForParallel(dependences_, inside, band_.at(member));
    if (copies) {
      for (ir::Buffer buffer : *copies) {
        if (!buffer->extents.empty()) return {};
      }
      return {.carried = Carried::kNothing, .copies = *copies};
    }
    if (dependences_.reduction.is_empty()) return {};
    Dependences without = dependences_;
    without.reduction = isl::union_map::empty(scop_.isl->ctx());
    const auto relaxed = CopiesForParallel(without, inside, band_.at(member));
    if (relaxed && relaxed->empty()) return {.carried = Carried::kReduction, .copies = {}};
    return {};
  }

  // The loops inside of a tile.
  BandPlan Points(const Names& names, const std::vector<int>& members,
                  const std::vector<int>& around) {
    const std::vector<Names> groups = GroupsOf(names, around);
    if (groups.size() > 1) {
      BandPlan plan = Make(BandPlan::Kind::kSequence);
      plan.groups = groups;
      for (const Names& group : groups) {
        plan.children.push_back(Points(group, members, around));
        plan.cycles += plan.children.back().cycles;
      }
      if (!HaveSameLoops(names)) return plan;
      BandPlan together = Innermosts(names, members);
      const bool waits = together.points.carried == Carried::kOrder;
      return waits || plan.cycles <= together.cycles ? plan : together;
    }
    if (names.size() == 1 || members.size() <= 1) return Innermosts(names, members);
    // The members may swap; so any of them may be the serial one.
    std::optional<BandPlan> best;
    for (const int m : members) {
      if (!AnyMoves(names, m)) continue;
      BandPlan inside = Points(names, Without(members, m), With(around, m));
      if (best && inside.cycles >= best->cycles) continue;
      best = Make(BandPlan::Kind::kSerial);
      best->serial = m;
      best->cycles = inside.cycles;
      best->children = {std::move(inside)};
    }
    return best ? *best : Innermosts(names, members);
  }

  // Whether the statements run at the same iterations, so that one loop for all of them needs no conditions.
  bool HaveSameLoops(const Names& names) {
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return IterationsOf(name).is_equal(IterationsOf(names[0]));
    });
  }

  // { [around.., members..] }
  const isl::set& IterationsOf(const std::string& name) {
    if (const auto it = iterations_.find(name); it != iterations_.end()) return it->second;
    const isl::multi_union_pw_aff all =
        place_.has_prefix ? place_.prefix.flat_range_product(band_) : band_;
    const isl::union_set domain = At({name}, {}).domain;
    return iterations_.emplace(name, domain.apply(isl::union_map::from(all)).as_set())
        .first->second;
  }

  bool AnyMoves(const Names& names, int member) const {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return model_.Find(name)->Moves(member); });
  }

  static std::vector<int> Without(std::vector<int> members, int member) {
    members.erase(std::find(members.begin(), members.end(), member));
    return members;
  }
  static std::vector<int> With(std::vector<int> members, int member) {
    members.push_back(member);
    return members;
  }

  BandPlan Innermosts(const Names& names, const std::vector<int>& members) {
    BandPlan plan = Make(BandPlan::Kind::kPoints);
    std::vector<Carried> carried(static_cast<size_t>(model_.all), Carried::kOrder);
    std::vector<Innermost> innermost(carried.size());
    for (const int m : members) {
      const auto at = static_cast<size_t>(m);
      if (!AnyMoves(names, m)) continue;
      innermost[at] = InnermostOf(names, m);
      carried[at] = innermost[at].carried;
    }
    std::vector<const StatementModel*> statements;
    const StatementModel* most = nullptr;
    for (const std::string& name : names) {
      statements.push_back(model_.Find(name));
      if (most == nullptr || statements.back()->Instances() > most->Instances())
        most = statements.back();
    }
    if (names.size() == 1) {
      plan.points = PlanPoints(*most, members, carried, machine_);
    } else {
      plan.points = PlanTogether(statements, members, carried, machine_);
    }
    plan.cycles = plan.points.cycles * most->Instances();
    if (!plan.points.order.empty()) {
      const auto back = static_cast<size_t>(plan.points.order.back());
      const Innermost& last = innermost[back];
      // Loops of few iterations are written out, and what is around them is the vector, if anything is.
      const auto iterations = static_cast<double>(most->extents[back]);
      plan.is_vector = last.carried == Carried::kNothing && most->Moves(plan.points.order.back()) &&
                       2 * iterations >= Lanes(*most, machine_);
      plan.copies = last.copies;
      if (!plan.is_vector) plan.copies.clear();
      plan.accumulates = !plan.is_vector && names.size() == 1 && most->statement->reduction &&
                         WritesStay(*most, plan.points.order.back());
    }
    return plan;
  }

  // The point plan that takes longest.
  static const BandPlan* Longest(const BandPlan& plan) {
    if (plan.children.empty()) return &plan;
    const BandPlan* longest = nullptr;
    for (const BandPlan& child : plan.children) {
      const BandPlan* candidate = Longest(child);
      if (longest == nullptr || candidate->cycles > longest->cycles) longest = candidate;
    }
    return longest;
  }

  static void MultiplesOf(const BandPlan& plan, std::vector<int64_t>& multiples) {
    for (const BandPlan& child : plan.children) MultiplesOf(child, multiples);
    for (size_t m = 0; m < plan.points.jam.size(); ++m)
      multiples[m] = std::max(multiples[m], plan.points.jam[m]);
  }

  static void RowsOf(const BandPlan& plan, double runs, std::vector<TileQuery::Rows>& rows) {
    for (const BandPlan& child : plan.children) RowsOf(child, runs, rows);
    if (plan.points.row_cycles > 0) {
      rows.push_back({.member = plan.points.order.back(),
                      .cycles = plan.points.row_cycles,
                      .instances = plan.cycles / plan.points.cycles / runs});
    }
  }

  static void InnermostMembers(const BandPlan& plan, std::vector<bool>& innermost) {
    for (const BandPlan& child : plan.children) InnermostMembers(child, innermost);
    if (plan.children.empty() && !plan.points.order.empty())
      innermost[static_cast<size_t>(plan.points.order.back())] = true;
    if (plan.points.serial >= 0) innermost[static_cast<size_t>(plan.points.serial)] = true;
  }

  // Loops that are to be planned.
  struct Level {
    const std::vector<int>& members;
    LoopModel model;
    BandPlan points;  // the loops inside of a tile
    std::optional<double>
        fitting;  // bytes from memory, if what these loops touch fits into the cache
  };

  BandPlan TileWith(const Level& level, int parallel, std::vector<ir::Buffer> copies, bool is_wave,
                    bool is_inside_parallel) {
    const LoopModel& model = level.model;
    TileQuery query;
    query.members = level.members;
    query.together = level.points.kind == BandPlan::Kind::kPoints;
    query.multiples.assign(static_cast<size_t>(model.all), 1);
    query.parallel = parallel;
    query.is_wave = is_wave;
    query.is_inside_parallel = is_inside_parallel;
    query.point_cycles = level.points.cycles / model.runs;
    MultiplesOf(level.points, query.multiples);
    std::vector<bool> innermost(static_cast<size_t>(model.all), false);
    InnermostMembers(level.points, innermost);
    for (const bool is : innermost) query.may_be_one.push_back(!is);
    RowsOf(level.points, model.runs, query.rows);
    const BandPlan* longest = Longest(level.points);
    if (!longest->points.order.empty()) {
      query.innermost = longest->points.order.back();
      query.serial = longest->points.serial;
      query.serial_cycles = longest->points.serial_cycles;
      query.jam = longest->points.jam;
      query.far_cycles = longest->points.far_cycles;
    }
    BandPlan plan = Make(BandPlan::Kind::kTile);
    plan.children = {level.points};
    plan.copies = std::move(copies);
    plan.parallel = parallel;
    plan.is_wave = is_wave;
    plan.tiles = PlanTiles(model, query, machine_);
    if (plan.tiles.sizes.empty()) {
      plan.cycles = kNever;
      return plan;
    }
    const double memory = level.fitting.value_or(plan.tiles.bytes) * machine_.cycles_per_byte;
    const double speed_up = plan.tiles.speed_up, starts = plan.tiles.starts;
    plan.cycles = (level.points.cycles + model.runs * plan.tiles.other_cycles) / speed_up +
                  model.runs * (memory / std::min(speed_up, machine_.memory_scaling) +
                                starts * machine_.parallel_cycles);
    return plan;
  }

  BandPlan Leaf(const Names& names, const std::vector<int>& members, const std::vector<int>& around,
                bool is_inside_parallel) {
    const Level level = {.members = members,
                         .model = ModelFor(names, around),
                         .points = Points(names, members, around),
                         .fitting = BytesIfItFits(ModelFor(names, {}), around, warm_, machine_)};
    BandPlan best = TileWith(level, -1, {}, false, is_inside_parallel);
    const auto consider = [&](BandPlan plan) {
      if (plan.cycles < best.cycles) best = std::move(plan);
    };
    const Place place = At(names, around);
    bool has_parallel = false;
    if (!is_inside_parallel && machine_.cores > 1) {
      for (const int m : members) {
        if (level.model.Extent(m) == 1) continue;
        const auto copies = CopiesForParallel(dependences_, place, band_.at(m));
        if (!copies) continue;
        has_parallel = true;
        consider(TileWith(level, m, *copies, false, false));
      }
      if (!has_parallel && members.size() > 1) consider(TileWith(level, -1, {}, true, false));
    }
    const std::vector<Names> groups = GroupsOf(names, around);
    if (groups.size() > 1) {
      BandPlan plan = Make(BandPlan::Kind::kSequence);
      plan.groups = groups;
      for (const Names& group : groups) {
        plan.children.push_back(Leaf(group, members, around, is_inside_parallel));
        plan.cycles += plan.children.back().cycles;
      }
      consider(std::move(plan));
    } else if (members.size() > 1 && (names.size() > 1 || !has_parallel)) {
      // As the scheduler has it, the outermost loop that carries most.
      const int m = members[0];
      BandPlan plan = Make(BandPlan::Kind::kSerial);
      plan.serial = m;
      plan.children = {Leaf(names, Without(members, m), With(around, m), is_inside_parallel)};
      plan.cycles = plan.children[0].cycles;
      consider(std::move(plan));
    }
    return best;
  }

  const Scop& scop_;
  const Dependences& dependences_;
  const CpuMachine& machine_;
  const Place place_;
  const isl::multi_union_pw_aff band_;
  const Buffers& warm_;
  LoopModel model_;
  std::map<std::pair<Names, std::vector<int>>, std::vector<Names>> groups_;
  std::map<std::pair<Names, int>, Innermost> innermost_;
  std::map<std::string, isl::set> iterations_;
};

}  // namespace

BandPlan MakePlan(const Scop& scop, const Dependences& dependences, const CpuMachine& machine,
                  const AssumedParameters& assumed, const Place& place,
                  const isl::multi_union_pw_aff& band, bool is_inside_parallel,
                  const Buffers& warm) {
  return Planner(scop, dependences, machine, assumed, place, band, warm).Run(is_inside_parallel);
}

}  // namespace polynao::poly
