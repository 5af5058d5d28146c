#include "compiler/poly/fuse/part_variants.h"

#include <isl/id.h>
#include <isl/map.h>
#include <isl/schedule.h>
#include <isl/schedule_node.h>
#include <isl/set.h>
#include <isl/union_map.h>
#include <isl/union_set.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/model/dependences.h"

namespace polynao::poly {

namespace {

// Without a dot: isl reads no name of a statement that has one.
constexpr std::string_view kSecondForm = "_new";

isl::map WithDomainName(const isl::map& map, const std::string& name) {
  return isl::manage(isl_map_set_tuple_name(map.copy(), isl_dim_in, name.c_str()));
}

isl::map WithRangeName(const isl::map& map, const std::string& name) {
  return isl::manage(isl_map_set_tuple_name(map.copy(), isl_dim_out, name.c_str()));
}

// "A" of an access { S[i] -> A[a] } of the buffer.
std::string ArrayOf(const Statement& statement, ir::Buffer buffer) {
  for (const Access& access : statement.accesses) {
    if (access.buffer == buffer) return RangeName(access.map);
  }
  POLYNAO_UNREACHABLE(static_cast<int>(statement.accesses.size()));
}

// Replaces a buffer and its tuple in a statement.
void Replace(Statement& statement, ir::Buffer from, ir::Buffer to, const std::string& array) {
  for (Access& access : statement.accesses) {
    if (access.buffer != from) continue;
    access.buffer = to;
    access.map = WithRangeName(access.map, array);
  }
  if (statement.reduction && statement.reduction->buffer == from) statement.reduction->buffer = to;
  statement.code = ir::Substitute(statement.code, {}, {{from, to}});
}

ir::Buffer NewArray(const Scop& scop, ir::Buffer like, const std::string& name) {
  const std::vector<ir::Expr> extents(like->extents.begin(), like->extents.end());
  return scop.place.context().NewBuffer(name, like->type, extents, like->scope);
}

// A part whose statements are those of another one, and copies of them at the same places of its schedule.
class Variant {
 public:
  explicit Variant(const Scop& scop) : old_(scop), scop_(scop) { scop_.statements.clear(); }

  void Add(const Statement& statement) {
    AddOrigin(statement.domain.identity());
    scop_.statements.push_back(statement);
  }
  // The instances `domain` of `statement` under another name, to be changed and then added by AddCopy.
  static Statement CopyOf(const Statement& statement, const isl::set& domain,
                          const std::string& name) {
    Statement copy = statement;
    copy.name = name;
    const isl::map origin = WithDomainName(domain.identity(), name);
    copy.domain = origin.domain();
    for (Access& access : copy.accesses) access.map = origin.apply_range(access.map);
    return copy;
  }
  void AddCopy(Statement copy, const std::string& of) {
    AddOrigin(WithRangeName(copy.domain.identity(), of));
    scop_.statements.push_back(std::move(copy));
  }
  void AddLocal(ir::Buffer buffer) {
    scop_.locals.push_back(buffer);
    scop_.private_buffers.push_back(buffer);
  }
  void RemoveLocal(ir::Buffer buffer) {
    std::erase(scop_.locals, buffer);
    std::erase(scop_.private_buffers, buffer);
  }

  // Copies are in no order with each other and with what they are copies of.
  Scop Make() {
    scop_.schedule = isl::manage(isl_schedule_pullback_union_pw_multi_aff(
        old_.schedule.copy(), isl_union_pw_multi_aff_from_union_map(origin_->copy())));
    return std::move(scop_);
  }

 private:
  void AddOrigin(const isl::map& map) {
    origin_ = origin_ ? origin_->unite(map.to_union_map()) : map.to_union_map();
  }

  const Scop& old_;
  Scop scop_;
  std::optional<isl::union_map> origin_;  // { S0_1[i] -> S0[i] }
};

// Instances of two statements that share a leaf.
struct Order {
  std::string first, second;
};

// A leaf with both becomes a sequence.
isl_schedule_node* InOrder(isl_schedule_node* node, void* user) {
  const Order& order = *static_cast<Order*>(user);
  if (isl_schedule_node_get_type(node) != isl_schedule_node_leaf) return node;
  const isl::union_set domain = isl::manage(isl_schedule_node_get_domain(node));
  std::optional<isl::union_set> first, second;
  for (const isl::set& set : SetsOf(domain)) {
    if (TupleName(set) == order.first) first = isl::set::universe(set.space()).to_union_set();
    if (TupleName(set) == order.second) second = isl::set::universe(set.space()).to_union_set();
  }
  if (!first || !second) return node;
  isl_union_set_list* list = isl_union_set_list_from_union_set(first->copy());
  return isl_schedule_node_insert_sequence(node, isl_union_set_list_add(list, second->copy()));
}

// The only access of a statement that stores, if it is a plain store to an array that lives on.
const Access* LivingStoreOf(const Scop& scop, const Statement& statement) {
  const Access* store = nullptr;
  for (const Access& access : statement.accesses) {
    if (access.is_write) store = &access;
  }
  const bool is_plain = store != nullptr && !statement.is_opaque && store->is_must &&
                        statement.code.Is(ir::StmtKind::kStore) && !scop.IsPrivate(store->buffer);
  return is_plain ? store : nullptr;
}

bool IsUpdate(const Scop& scop, const Statement& statement) {
  const Access* store = LivingStoreOf(scop, statement);
  if (store == nullptr || !store->map.intersect_domain(statement.domain).is_injective())
    return false;
  const auto of_array = [&](const Access& a) { return a.buffer == store->buffer; };
  for (const Statement& s : scop.statements) {
    for (const Access& access : s.accesses) {
      if (!of_array(access)) continue;
      if (&s == &statement ? !access.map.is_subset(store->map) : access.is_write) return false;
    }
  }
  return true;
}

}  // namespace

bool HasLastingSize(ir::Buffer buffer) {
  bool loads = false;
  for (ir::Expr extent : buffer->extents)
    ir::ForEachExpr(extent, [&](ir::Expr e) { loads |= e.Is(ir::ExprKind::kLoad); });
  return !loads;
}

isl::union_map ReadsOf(const std::vector<const Statement*>& statements, ir::Buffer buffer) {
  std::optional<isl::union_map> reads;
  for (const Statement* s : statements) {
    for (const Access& access : s->accesses) {
      if (access.is_write || access.buffer != buffer) continue;
      const isl::union_map one = access.map.intersect_domain(s->domain).to_union_map();
      reads = reads ? reads->unite(one) : one;
    }
  }
  return *reads;
}

Scop WithCopies(const Scop& scop, const Stage& stage,
                const std::vector<std::vector<const Statement*>>& readers) {
  const ir::Buffer buffer = stage.buffers[0];
  POLYNAO_CHECK(HasLastingSize(buffer)) << buffer->name;
  struct Copy {
    ir::Buffer buffer;
    isl::union_map reads;
  };
  std::vector<Copy> copies;
  for (size_t k = 0; k < readers.size(); ++k) {
    copies.push_back(
        {NewArray(scop, buffer, StrCat(buffer->name, ".", k)), ReadsOf(readers[k], buffer)});
  }
  Variant variant(scop);
  for (const Statement& s : scop.statements) {
    const bool is_copied =
        std::find(stage.statements.begin(), stage.statements.end(), &s) != stage.statements.end();
    for (size_t k = 0; is_copied && k < copies.size(); ++k) {
      isl::set needed = s.domain;
      for (const Access& access : s.accesses) {
        if (!access.is_write || access.buffer != buffer) continue;
        const isl::union_set storing =
            copies[k].reads.range().apply(access.map.reverse().to_union_map());
        // Simple loops, which may store a little more.
        const isl::set exact =
            storing.intersect(s.domain.to_union_set()).extract_set(s.domain.space());
        needed = isl::set(isl::manage(isl_set_simple_hull(exact.coalesce().release())))
                     .intersect(s.domain)
                     .coalesce();
        break;
      }
      if (needed.is_empty()) continue;
      Statement copy = Variant::CopyOf(s, needed, StrCat(s.name, "_", k));
      Replace(copy, buffer, copies[k].buffer, StrCat(ArrayOf(s, buffer), ".", k));
      variant.AddCopy(std::move(copy), s.name);
    }
    if (is_copied) continue;
    Statement other = s;
    for (size_t k = 0; k < copies.size(); ++k) {
      if (std::find(readers[k].begin(), readers[k].end(), &s) != readers[k].end())
        Replace(other, buffer, copies[k].buffer, StrCat(ArrayOf(s, buffer), ".", k));
    }
    variant.Add(other);
  }
  variant.RemoveLocal(buffer);
  for (const Copy& copy : copies) variant.AddLocal(copy.buffer);
  return variant.Make();
}

std::vector<std::string> UpdatesIn(const Scop& scop) {
  std::vector<std::string> names;
  for (const Statement& s : scop.statements) {
    if (IsUpdate(scop, s)) names.push_back(s.name);
  }
  return names;
}

std::optional<Scop> WithLateUpdate(const Scop& scop, const std::string& name) {
  const Statement* update = scop.Find(name);
  POLYNAO_CHECK(update != nullptr) << name;
  const ir::Buffer buffer = LivingStoreOf(scop, *update)->buffer;
  if (!HasLastingSize(buffer)) return std::nullopt;
  // As no sum: of each element it is the only term.
  Scop plain = scop;
  for (Statement& s : plain.statements) {
    if (s.name == name) s.reduction.reset();
  }
  const isl::union_map live_in = ComputeDependences(plain).live_in;
  // No other statement stores, so that what is read was there before the part, or is the update's.
  std::set<std::string> readers;
  for (const Statement& s : scop.statements) {
    bool reads_old = false, reads_new = false;
    for (const Access& access : s.accesses) {
      if (&s == update || access.buffer != buffer) continue;
      const isl::union_map reads = access.map.intersect_domain(s.domain).to_union_map();
      const bool is_new = reads.intersect(live_in).is_empty();
      if (!is_new && !reads.is_subset(live_in)) return std::nullopt;
      (is_new ? reads_new : reads_old) = true;
    }
    if (reads_old && reads_new) return std::nullopt;
    if (reads_new) readers.insert(s.name);
  }
  if (readers.empty()) return std::nullopt;
  const ir::Buffer own = NewArray(scop, buffer, StrCat(buffer->name, "_new"));
  const std::string own_array = StrCat(ArrayOf(*update, buffer), kSecondForm);
  Variant variant(scop);
  for (const Statement& s : scop.statements) {
    if (&s == update) {
      Statement early = Variant::CopyOf(s, s.domain, SecondForm(name));
      early.reduction.reset();
      for (Access& access : early.accesses) {
        if (!access.is_write) continue;
        access.buffer = own;
        access.map = WithRangeName(access.map, own_array);
      }
      early.code = scop.place.context().Store(own, s.code.indices(), s.code.value());
      variant.AddCopy(std::move(early), name);
    }
    Statement same = s;
    if (readers.contains(s.name)) Replace(same, buffer, own, own_array);
    variant.Add(same);
  }
  variant.AddLocal(own);
  Scop result = variant.Make();
  Order order{.first = SecondForm(name), .second = name};
  result.schedule = isl::manage(
      isl_schedule_map_schedule_node_bottom_up(result.schedule.copy(), InOrder, &order));
  return result;
}

std::string SecondForm(std::string_view update) { return StrCat(update, kSecondForm); }

bool IsSecondForm(const Statement& statement) {
  return statement.name.find(kSecondForm) != std::string::npos;
}

}  // namespace polynao::poly
