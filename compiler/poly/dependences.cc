#include "compiler/poly/dependences.h"

#include <isl/map.h>
#include <isl/set.h>
#include <isl/union_map.h>

#include <utility>

namespace polynao::poly {

namespace {

struct Accesses {
  isl::union_map reads, must_writes, may_writes;  // may includes must
};

isl::union_map Order(const isl::schedule& schedule, const isl::union_map& sinks,
                     const isl::union_map& must_sources, const isl::union_map& may_sources,
                     const isl::union_map& kills) {
  return isl::union_access_info(sinks)
      .set_must_source(must_sources)
      .set_may_source(may_sources)
      .set_kill(kills)
      .set_schedule(schedule)
      .compute_flow()
      .may_dependence();
}

isl::union_map Flow(const isl::schedule& schedule, const Accesses& a) {
  return Order(schedule, a.reads, a.must_writes, a.may_writes, a.must_writes);
}

isl::union_map Output(const isl::schedule& schedule, const Accesses& a) {
  return Order(schedule, a.may_writes, a.must_writes, a.may_writes, a.must_writes);
}

isl::union_map Anti(const isl::schedule& schedule, const Accesses& a) {
  const isl::union_map none = isl::union_map::empty(schedule.ctx());
  return Order(schedule, a.may_writes, none, a.reads, a.must_writes);
}

isl::union_map WithArrays(const isl::union_map& accesses, const isl::union_set& arrays,
                          bool inside) {
  return inside ? accesses.intersect_range(arrays) : accesses.subtract_range(arrays);
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

Accesses Only(const Accesses& all, const isl::union_set& arrays, bool inside) {
  return {.reads = WithArrays(all.reads, arrays, inside),
          .must_writes = WithArrays(all.must_writes, arrays, inside),
          .may_writes = WithArrays(all.may_writes, arrays, inside)};
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

isl::union_map PairsOfUpdates(const Scop& scop, const DependenceOptions& options) {
  isl::union_map pairs = isl::union_map::empty(scop.isl->ctx());
  for (const Statement& s : scop.statements) {
    if (!IsFree(s, options)) continue;
    const isl::union_set domain = s.domain.to_union_set();
    pairs = pairs.unite(isl::union_map::from_domain_and_range(domain, domain));
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
  for (ir::Buffer buffer : scop.private_buffers) {
    std::string name;
    const isl::union_set array = ArrayOf(scop, buffer, &name);
    if (name.empty()) continue;
    private_arrays = private_arrays.unite(array);
    const Accesses mine = Only(all, array, true);
    result.private_order.push_back(
        {.buffer = buffer,
         .array = name,
         .flow = Flow(scop.schedule, mine).coalesce(),
         .order = Anti(scop.schedule, mine).unite(Output(scop.schedule, mine)).coalesce()});
  }
  const Accesses shared = Only(all, private_arrays, false);
  const isl::union_flow flow = isl::union_access_info(shared.reads)
                                   .set_must_source(shared.must_writes)
                                   .set_may_source(shared.may_writes)
                                   .set_schedule(scop.schedule)
                                   .compute_flow();
  result.flow = flow.may_dependence();
  result.live_in = flow.may_no_source().coalesce();
  result.output = Output(scop.schedule, shared);
  result.anti = Anti(scop.schedule, shared);
  // Overwritten for certain: the sources of output dependences that end in a must-write of the same
  // element.
  const isl::union_map overwritten = isl::union_access_info(shared.must_writes)
                                         .set_may_source(shared.may_writes)
                                         .set_schedule(scop.schedule)
                                         .compute_flow()
                                         .full_may_dependence()  // { S[i] -> [T[j] -> A[k]] }
                                         .range_factor_range();  // { S[i] -> A[k] }
  result.live_out = shared.may_writes.subtract(overwritten).coalesce();

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

isl::union_map Violated(const isl::union_map& order, const isl::union_map& schedule) {
  const isl::union_map not_before =
      isl::manage(isl_union_map_lex_ge_union_map(schedule.copy(), schedule.copy()));
  return order.intersect(not_before);
}

namespace {

// "S1[2, 3]".
std::string InstanceText(const isl::set& singleton) {
  std::string text = TupleName(singleton) + "[";
  const isl::multi_val values = singleton.plain_multi_val_if_fixed();
  for (int i = 0; i < Dimensions(singleton); ++i) {
    StrAppend(&text, i == 0 ? "" : ", ", Text(values.at(i)));
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
  const isl::union_map times = schedule.map();
  const std::pair<const char*, const isl::union_map*> kinds[] = {
      {"a flow", &dependences.flow},
      {"an anti", &dependences.anti},
      {"an output", &dependences.output}};
  for (const auto& [kind, pairs] : kinds) {
    const isl::union_map violated = Violated(*pairs, times);
    if (!violated.is_empty()) return Describe(scop, violated, kind, times);
  }
  for (const PrivateOrder& p : dependences.private_order) {
    const isl::union_map violated = Violated(p.order, times);
    if (violated.is_empty()) continue;
    // Instances that share an element may swap if each still reads what it read: if, in the new order,
    // the same stores reach the same reads.
    std::string name;
    const Accesses mine =
        Only(AllAccesses(scop, dependences.options), ArrayOf(scop, p.buffer, &name), true);
    const isl::union_map flow =
        Flow(schedule, mine).subtract(PairsOfUpdates(scop, dependences.options));
    if (!flow.is_subset(p.flow)) return Describe(scop, violated, "an anti or output", times);
  }
  return "";
}

}  // namespace polynao::poly
