#include "compiler/poly/model/scop.h"

#include <isl/schedule.h>

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_set.h"

namespace polynao::poly {

isl::union_set Scop::Domain() const {
  isl::union_set all = isl::union_set::empty(isl->ctx());
  for (const Statement& s : statements) all = all.unite(s.domain.to_union_set());
  return all;
}

namespace {

template <typename Wanted>
isl::union_map Accesses(const Scop& scop, const Wanted& wanted) {
  isl::union_map all = isl::union_map::empty(scop.isl->ctx());
  for (const Statement& s : scop.statements) {
    for (const Access& access : s.accesses) {
      if (wanted(access)) all = all.unite(access.map.to_union_map());
    }
  }
  return all;
}

}  // namespace

isl::union_map Scop::Reads() const {
  return Accesses(*this, [](const Access& a) { return !a.is_write; });
}

isl::union_map Scop::MustWrites() const {
  return Accesses(*this, [](const Access& a) { return a.is_write && a.is_must; });
}

isl::union_map Scop::MayWrites() const {
  return Accesses(*this, [](const Access& a) { return a.is_write; });
}

const Statement* Scop::Find(const std::string& name) const {
  for (const Statement& s : statements) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

bool Scop::IsPrivate(ir::Buffer buffer) const {
  return std::find(private_buffers.begin(), private_buffers.end(), buffer) != private_buffers.end();
}

Scop PartOf(const Scop& scop, absl::FunctionRef<bool(const Statement&)> is_here) {
  Scop part = scop;
  part.statements.clear();
  absl::flat_hash_set<ir::Buffer> elsewhere;
  std::optional<isl::union_set> domain;
  for (const Statement& s : scop.statements) {
    if (!is_here(s)) {
      for (const Access& access : s.accesses) elsewhere.insert(access.buffer);
      continue;
    }
    part.statements.push_back(s);
    const isl::union_set one = s.domain.to_union_set();
    domain = domain ? domain->unite(one) : one;
  }
  part.schedule = isl::manage(isl_schedule_intersect_domain(scop.schedule.copy(), domain->copy()));
  part.assumed = isl::set::universe(scop.assumed.space());
  const auto is_elsewhere = [&](ir::Buffer buffer) { return elsewhere.contains(buffer); };
  std::erase_if(part.locals, is_elsewhere);
  std::erase_if(part.private_buffers, is_elsewhere);
  return part;
}

}  // namespace polynao::poly
