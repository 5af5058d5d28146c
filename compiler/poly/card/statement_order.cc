#include "compiler/poly/card/statement_order.h"

#include <isl/map.h>
#include <isl/union_map.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/text.h"
#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {
namespace {

std::string FirstLineOf(const Statement& s) {
  const std::string code = ir::Print(s.code);
  return code.substr(0, code.find('\n'));
}

// Whether something of the part is stored to an element before `read` reads it.
bool IsStoredBefore(const Scop& scop, const isl::union_map& read) {
  const isl::union_map stores = scop.MayWrites().intersect_params(scop.context);
  return !isl::union_access_info(read)
              .set_may_source(stores)
              .set_schedule(scop.schedule)
              .compute_flow()
              .may_dependence()
              .is_empty();
}

const Access* StoreOf(const Statement& s, ir::Buffer buffer) {
  const auto it = std::find_if(s.accesses.begin(), s.accesses.end(), [&](const Access& access) {
    return access.is_write && access.buffer == buffer;
  });
  return it == s.accesses.end() ? nullptr : &*it;
}

}  // namespace

absl::StatusOr<std::vector<size_t>> OrderOfStatements(const Scop& scop,
                                                      const Dependences& dependences) {
  const size_t count = scop.statements.size();
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < count; ++i) numbers[scop.statements[i].name] = i;
  std::vector<std::set<size_t>> needs(count);
  for (const isl::map& pairs : MapsOf(dependences.All())) {
    const size_t from = numbers.at(DomainName(pairs)), to = numbers.at(RangeName(pairs));
    if (from == to) {
      return InvalidInput("statement '", FirstLineOf(scop.statements[to]),
                          "': expected that no iteration needs what another one stores");
    }
    needs[to].insert(from);
  }
  std::vector<size_t> order;
  std::set<size_t> left;
  for (size_t i = 0; i < count; ++i) left.insert(i);
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](size_t i) {
      return std::none_of(needs[i].begin(), needs[i].end(),
                          [&](size_t from) { return left.contains(from); });
    });
    if (next != left.end()) {
      order.push_back(*next);
      left.erase(next);
      continue;
    }
    // One of a circle's statements needs a later one.
    for (const size_t to : left) {
      const auto from = std::find_if(needs[to].upper_bound(to), needs[to].end(),
                                     [&](size_t i) { return left.contains(i); });
      if (from == needs[to].end()) continue;
      return InvalidInput("statement '", FirstLineOf(scop.statements[to]),
                          "': expected that no iteration needs what '",
                          FirstLineOf(scop.statements[*from]), "' stores in an earlier one");
    }
  }
  return order;
}

std::vector<std::pair<ir::Buffer, ir::Buffer>> ReadOldValues(Scop& scop, ir::Context& c) {
  std::vector<std::pair<ir::Buffer, ir::Buffer>> copies;
  const auto copy_of = [&](ir::Buffer buffer) {
    for (const auto& [whole, copy] : copies) {
      if (whole == buffer) return copy;
    }
    copies.emplace_back(buffer,
                        c.NewBuffer(StrCat(buffer->name, ".old"), buffer->type, buffer->extents));
    return copies.back().second;
  };
  const Scop before = scop;
  for (Statement& s : scop.statements) {
    if (s.is_opaque || !s.code.Is(ir::StmtKind::kStore)) continue;
    for (Access& access : s.accesses) {
      const bool is_stored =
          std::any_of(before.statements.begin(), before.statements.end(),
                      [&](const Statement& other) { return StoreOf(other, access.buffer); });
      if (access.is_write || access.indices.empty() || !is_stored) continue;
      if (scop.IsPrivate(access.buffer)) continue;
      const Access* own = StoreOf(s, access.buffer);
      if (own != nullptr && own->indices == access.indices) continue;
      const isl::map read = access.map.intersect_domain(s.domain).intersect_params(scop.context);
      if (IsStoredBefore(before, read.to_union_map())) continue;
      const ir::Buffer copy = copy_of(access.buffer);
      const ir::Expr load = c.Load(access.buffer, access.indices);
      s.code = c.Store(s.code.buffer(), s.code.indices(),
                       ir::Replace(s.code.value(), {{load, c.Load(copy, access.indices)}}));
      const std::string name = StrCat(RangeName(access.map), "_old");
      access.map =
          isl::manage(isl_map_set_tuple_name(access.map.release(), isl_dim_out, name.c_str()));
      access.buffer = copy;
    }
  }
  return copies;
}

}  // namespace polynao::poly
