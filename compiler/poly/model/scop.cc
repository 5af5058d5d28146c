#include "compiler/poly/model/scop.h"

#include <algorithm>

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

}  // namespace polynao::poly
