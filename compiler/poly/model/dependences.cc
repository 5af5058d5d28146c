#include "compiler/poly/model/dependences.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/point.h>
#include <isl/set.h>
#include <isl/union_map.h>

#include <map>
#include <utility>

namespace polynao::poly {

namespace {

struct Accesses {
  isl::union_map reads, must_writes, may_writes;  // may includes must
};

// The sources of each sink: earlier accesses to the same element with no kill and no other must-source in between.
isl::union_flow Order(const isl::schedule& schedule, const isl::union_map& sinks,
                      const isl::union_map& must_sources, const isl::union_map& may_sources,
                      const isl::union_map& kills) {
  return isl::union_access_info(sinks)
      .set_must_source(must_sources)
      .set_may_source(may_sources)
      .set_kill(kills)
      .set_schedule(schedule)
      .compute_flow();
}

// { S0[i] -> [S1[j] -> A[x]] }: all sources of each sink that run before it.
isl::union_map AllBefore(const isl::schedule& schedule, const isl::union_map& sinks,
                         const isl::union_map& sources) {
  const isl::union_map none = isl::union_map::empty(schedule.ctx());
  return Order(schedule, sinks, none, sources, none).full_may_dependence();
}

isl::union_flow Flow(const isl::schedule& schedule, const Accesses& a) {
  return Order(schedule, a.reads, a.must_writes, a.may_writes, a.must_writes);
}

isl::union_flow Output(const isl::schedule& schedule, const Accesses& a) {
  return Order(schedule, a.may_writes, a.must_writes, a.may_writes, a.must_writes);
}

isl::union_map Anti(const isl::schedule& schedule, const Accesses& a) {
  const isl::union_map none = isl::union_map::empty(schedule.ctx());
  return Order(schedule, a.may_writes, none, a.reads, a.must_writes).full_may_dependence();
}

// Arrays with a write like A[i % 2]: a relation with integer divisions.
isl::union_set Periodic(const Accesses& all) {
  isl::union_set periodic = isl::union_set::empty(all.reads.ctx());
  for (const isl::map& write : MapsOf(all.may_writes)) {
    write.foreach_basic_map([&](const isl::basic_map& piece) {
      if (isl_basic_map_dim(piece.get(), isl_dim_div) == 0) return;
      periodic = periodic.unite(write.range().to_union_set().universe());
    });
  }
  return periodic;
}

// As Anti, for periodic arrays: isl (0.25) crashes on some kills of theirs. All pairs, without those that a must-write
// comes between: { S0[i] -> [K[k] -> A[x]] } followed by { [K[k] -> A[x]] -> [S1[j] -> A[x]] }.
isl::union_map AntiOfPeriodic(const isl::schedule& schedule, const Accesses& a) {
  const isl::union_map pairs = AllBefore(schedule, a.may_writes, a.reads);
  const isl::union_map killed = AllBefore(schedule, a.must_writes, a.reads);
  const isl::union_map later = AllBefore(schedule, a.may_writes, a.must_writes);
  // { [K[k] -> [S1[j] -> A[x]]] -> [K[k] -> A[x]] }
  const isl::union_map kill =
      later.domain_map().range_product(later.range_map().range_factor_range());
  return pairs.subtract(killed.apply_range(kill.reverse()).apply_range(later.range_map()));
}

// { S0[i] -> S1[j] } of { S0[i] -> [S1[j] -> A[x]] }, for each array by its name.
std::map<std::string, isl::union_map> ByArray(const isl::union_map& order) {
  std::map<std::string, isl::union_map> pairs;
  for (const isl::map& map : MapsOf(order)) {
    const isl::union_map one = map.range_factor_domain().to_union_map();
    const auto [it, is_new] = pairs.emplace(RangeName(map.range().unwrap()), one);
    if (!is_new) it->second = it->second.unite(one);
  }
  return pairs;
}

// { A[x] }: the elements of a buffer, and its name; empty if nothing accesses it.
isl::union_set ArrayOf(const Scop& scop, ir::Buffer buffer, std::string* name) {
  isl::union_set array = isl::union_set::empty(scop.isl->ctx());
  for (const Statement& s : scop.statements) {
    for (const Access& access : s.accesses) {
      if (access.buffer != buffer) continue;
      array = array.unite(access.map.range().to_union_set().universe());
      *name = RangeName(access.map);
    }
  }
  return array;
}

Accesses Only(const Accesses& all, const isl::union_set& arrays) {
  return {.reads = all.reads.intersect_range(arrays),
          .must_writes = all.must_writes.intersect_range(arrays),
          .may_writes = all.may_writes.intersect_range(arrays)};
}

Accesses Except(const Accesses& all, const isl::union_set& arrays) {
  return {.reads = all.reads.subtract_range(arrays),
          .must_writes = all.must_writes.subtract_range(arrays),
          .may_writes = all.may_writes.subtract_range(arrays)};
}

// Arrays of which no element is stored twice: each read has its one source, and isl need not look for the last one, for
// which it takes most of its time.
isl::union_set StoredOnce(const Accesses& all) {
  isl::union_set once = isl::union_set::empty(all.reads.ctx());
  all.may_writes.range().foreach_set([&](const isl::set& elements) {
    const isl::union_set array = elements.to_union_set().universe();
    const Accesses its = Only(all, array);
    if (its.must_writes.is_injective() && its.may_writes.is_subset(its.must_writes))
      once = once.unite(array);
  });
  return once;
}

bool IsFree(const Statement& s, const DependenceOptions& options) {
  return s.reduction && (s.reduction->is_exact || options.reassociate_floats);
}

// An update of a reduction that is free to move overwrites nothing for good, so it is no must-write:
// what comes behind depends on all updates, not on the last one.
Accesses AllAccesses(const Scop& scop, const DependenceOptions& options) {
  const isl::set& context = scop.context;
  isl::union_map must_writes = isl::union_map::empty(scop.isl->ctx());
  for (const Statement& s : scop.statements) {
    for (const Access& access : s.accesses) {
      if (IsFree(s, options) || !access.is_write || !access.is_must) continue;
      must_writes = must_writes.unite(access.map.to_union_map());
    }
  }
  return {.reads = scop.Reads().intersect_params(context),
          .must_writes = must_writes.intersect_params(context),
          .may_writes = scop.MayWrites().intersect_params(context)};
}

// { S[i] -> S[j] } that update one element. They read no other one that the other instance stores (FindReduction).
isl::union_map PairsOfUpdates(const Scop& scop, const DependenceOptions& options) {
  isl::union_map pairs = isl::union_map::empty(scop.isl->ctx());
  for (const Statement& s : scop.statements) {
    if (!IsFree(s, options)) continue;
    for (const Access& access : s.accesses) {
      if (!access.is_write) continue;
      const isl::map updated = access.map.intersect_domain(s.domain);
      pairs = pairs.unite(updated.apply_range(updated.reverse()).to_union_map());
    }
  }
  return pairs;
}

}  // namespace

isl::union_map Dependences::All() const {
  isl::union_map all = Validity();
  for (const PrivateOrder& p : private_order) all = all.unite(p.order);
  return all;
}

Dependences ComputeDependences(const Scop& scop, const DependenceOptions& options) {
  const isl::ctx ctx = scop.isl->ctx();
  const isl::union_map none = isl::union_map::empty(ctx);
  const Accesses all = AllAccesses(scop, options);
  isl::union_set private_arrays = isl::union_set::empty(ctx);
  Dependences result{.options = options,
                     .flow = none,
                     .anti = none,
                     .output = none,
                     .reduction = none,
                     .private_order = {},
                     .live_in = none,
                     .live_out = none};
  // isl walks the whole schedule for each of these, whatever the number of buffers.
  const isl::union_set stored_once = StoredOnce(all);
  const Accesses once = Only(all, stored_once);
  const Accesses others = Except(all, stored_once);
  const isl::union_flow last_flow = Flow(scop.schedule, others);
  const isl::union_map once_flow = AllBefore(scop.schedule, once.reads, once.may_writes);
  const isl::union_map all_output = Output(scop.schedule, others).full_may_dependence();
  std::map<std::string, isl::union_map> flow =
      ByArray(last_flow.full_may_dependence().unite(once_flow));
  std::map<std::string, isl::union_map> output = ByArray(all_output);
  const isl::union_set periodic = Periodic(others);
  std::map<std::string, isl::union_map> anti =
      ByArray(Anti(scop.schedule, Except(others, periodic))
                  .unite(AntiOfPeriodic(scop.schedule, Only(others, periodic)))
                  .unite(AllBefore(scop.schedule, once.may_writes, once.reads)));
  const auto take = [&](std::map<std::string, isl::union_map>& pairs, const std::string& array) {
    const auto node = pairs.extract(array);
    return node.empty() ? none : node.mapped();
  };
  for (ir::Buffer buffer : scop.private_buffers) {
    std::string name;
    const isl::union_set array = ArrayOf(scop, buffer, &name);
    if (name.empty()) continue;
    private_arrays = private_arrays.unite(array);
    result.private_order.push_back(
        {.buffer = buffer,
         .array = name,
         .flow = take(flow, name).coalesce(),
         .order = take(anti, name).unite(take(output, name)).coalesce()});
  }
  for (const auto& [array, pairs] : flow) result.flow = result.flow.unite(pairs);
  for (const auto& [array, pairs] : anti) result.anti = result.anti.unite(pairs);
  for (const auto& [array, pairs] : output) result.output = result.output.unite(pairs);
  result.live_in = last_flow.may_no_source()
                       .unite(once.reads.subtract(once_flow.range().unwrap()))
                       .subtract_range(private_arrays)
                       .coalesce();
  // Overwritten for certain: the sources of output dependences that end in a must-write of the same
  // element.
  const isl::union_map overwritten =
      all_output.intersect_range(all.must_writes.wrap()).range_factor_range();  // { S[i] -> A[k] }
  result.live_out = all.may_writes.subtract(overwritten).subtract_range(private_arrays).coalesce();

  const isl::union_map updates = PairsOfUpdates(scop, options);
  const auto relax = [&](isl::union_map& pairs) {
    result.reduction = result.reduction.unite(pairs.intersect(updates));
    pairs = pairs.subtract(updates).coalesce();
  };
  relax(result.flow);
  relax(result.anti);
  relax(result.output);
  for (PrivateOrder& p : result.private_order) {
    relax(p.flow);
    relax(p.order);
    result.flow = result.flow.unite(p.flow);
  }
  result.reduction = result.reduction.coalesce();
  return result;
}

namespace {

// The pairs of `order` that `times`, { S0[i] -> [t0, t1, ..] }, does not keep in order.
isl::union_map Violated(const isl::union_map& order, const isl::multi_union_pw_aff& times) {
  return isl::manage(isl_union_map_lex_ge_at_multi_union_pw_aff(order.copy(), times.copy()));
}

// "S1[2, 3]".
std::string InstanceText(const isl::set& singleton) {
  std::string text = TupleName(singleton) + "[";
  // Of the constraints alone, isl does not see the value of a coordinate with "mod" or "floor".
  const isl::point point = isl::manage(isl_set_sample_point(singleton.copy()));
  for (int i = 0; i < Dimensions(singleton); ++i) {
    const isl::val value = isl::manage(isl_point_get_coordinate_val(point.get(), isl_dim_set, i));
    StrAppend(&text, i == 0 ? "" : ", ", Text(value));
  }
  return text + "]";
}

std::string TimeText(const isl::set& instance, const isl::union_map& schedule) {
  for (const isl::set& time : SetsOf(instance.to_union_set().apply(schedule))) {
    isl_set* plain = isl_set_reset_tuple_id(time.copy());
    return InstanceText(isl::manage(plain));
  }
  return "never";
}

std::string Describe(const Scop& scop, const isl::union_map& violated, const char* kind,
                     const isl::union_map& schedule) {
  const std::vector<isl::map> maps = MapsOf(violated);
  isl::map one = isl::manage(isl_map_from_basic_map(isl_map_sample(maps[0].copy())));
  std::string parameters;
  for (unsigned i = 0; i < static_cast<unsigned>(isl_map_dim(one.get(), isl_dim_param)); ++i) {
    const std::string name = isl_map_get_dim_name(one.get(), isl_dim_param, i);
    const isl::val value =
        isl::manage(isl_set_plain_get_val_if_fixed(one.domain().params().get(), isl_dim_param, i));
    StrAppend(&parameters, parameters.empty() ? " where " : ", ", name, " = ", Text(value));
  }
  // Values of parameters are constraints of the sample; carry them over.
  const isl::union_map fixed = schedule.intersect_params(one.domain().params());
  const isl::union_set source = one.domain().to_union_set(), target = one.range().to_union_set();
  std::string element;
  const isl::union_map accesses = scop.Reads().unite(scop.MayWrites());
  const isl::union_set both = source.apply(accesses).intersect(target.apply(accesses)).coalesce();
  for (const isl::set& set : SetsOf(both)) {
    isl::set e = isl::manage(isl_set_from_basic_set(isl_set_sample(set.copy())));
    element = InstanceText(e);
    break;
  }
  return StrCat(kind, " dependence from ", InstanceText(one.domain()), " at time ",
                TimeText(one.domain(), fixed), " to ", InstanceText(one.range()), " at time ",
                TimeText(one.range(), fixed), " on ", element, parameters);
}

}  // namespace

std::string FindViolation(const Scop& scop, const Dependences& dependences,
                          const isl::schedule& schedule) {
  const isl::union_map schedule_map = schedule.map();
  const isl::multi_union_pw_aff times =
      isl::manage(isl_multi_union_pw_aff_from_union_map(schedule_map.copy()));
  const std::pair<const char*, const isl::union_map*> kinds[] = {
      {"a flow", &dependences.flow},
      {"an anti", &dependences.anti},
      {"an output", &dependences.output}};
  for (const auto& [kind, pairs] : kinds) {
    const isl::union_map violated = Violated(*pairs, times);
    if (!violated.is_empty()) return Describe(scop, violated, kind, schedule_map);
  }
  for (const PrivateOrder& p : dependences.private_order) {
    const isl::union_map violated = Violated(p.order, times);
    if (violated.is_empty()) continue;
    // Instances that share an element may swap if each still reads what it read: if, in the new order,
    // the same stores reach the same reads.
    std::string name;
    const Accesses mine =
        Only(AllAccesses(scop, dependences.options), ArrayOf(scop, p.buffer, &name));
    const isl::union_map flow =
        Flow(schedule, mine).may_dependence().subtract(PairsOfUpdates(scop, dependences.options));
    if (!flow.is_subset(p.flow)) return Describe(scop, violated, "an anti or output", schedule_map);
  }
  return "";
}

}  // namespace polynao::poly
