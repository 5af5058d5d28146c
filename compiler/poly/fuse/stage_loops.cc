#include "compiler/poly/fuse/stage_loops.h"

#include <isl/schedule.h>
#include <isl/schedule_node.h>
#include <isl/set.h>
#include <isl/val.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/isl/tree.h"

namespace polynao::poly {

namespace {

using Node = isl::schedule_node;

// Terms of a sum whose loops are unrolled.
constexpr int64_t kMostTerms = 32;
// Elements that a statement stores with each one that it reads, whose loops are unrolled.
constexpr int64_t kMostCopies = 8;

isl::union_map Between(const Stage& stage, const Statement& a, const Statement& b) {
  return stage.pairs.intersect_domain(a.domain.to_union_set())
      .intersect_range(b.domain.to_union_set());
}

// Statements whose loops can be taken apart.
std::vector<Component> ComponentsOf(const Stage& stage) {
  std::vector<Component> components;
  for (const Statement* s : stage.statements) {
    components.push_back({s});
    // Each joins all components from the first one on that waits for it.
    for (size_t i = 0; i + 1 < components.size(); ++i) {
      const bool waits =
          std::any_of(components[i].begin(), components[i].end(),
                      [&](const auto* t) { return !Between(stage, *s, *t).is_empty(); });
      if (!waits) continue;
      for (size_t j = i + 1; j < components.size(); ++j) {
        components[i].insert(components[i].end(), components[j].begin(), components[j].end());
      }
      components.resize(i + 1);
    }
  }
  return components;
}

// How well a loop over `var` suits vectors: accesses that move to the next element count for it, those that jump
// against.
int VectorScore(const Statement& statement, ir::Var var) {
  int score = 0;
  for (const Access& access : statement.accesses) {
    const int weight = access.is_write ? 2 : 1;
    // Where the data says: an access for each lane in any case.
    if (access.indices.empty()) continue;
    for (size_t d = 0; d < access.indices.size(); ++d) {
      if (!ir::UsesVar(access.indices[d], var)) continue;
      score += d + 1 == access.indices.size() ? weight : -4 * weight;
    }
  }
  return score;
}

Node WithMark(const Node& node, const LoopMark& mark, std::map<std::string, LoopMark>& marks) {
  const std::string name = StrCat("stage", marks.size());
  marks[name] = mark;
  return node.insert_mark(name);
}

// The values of an iterator, whatever those of others are; nothing if their ends are no constants.
struct Values {
  isl::val least, most;
  int64_t count() const {
    return isl_val_get_num_si(most.get()) - isl_val_get_num_si(least.get()) + 1;
  }
};
std::optional<Values> ValuesOf(const Statement& s, int iterator) {
  Values values = {isl::manage(isl_set_dim_min_val(s.domain.copy(), iterator)),
                   isl::manage(isl_set_dim_max_val(s.domain.copy(), iterator))};
  if (!values.least.is_int() || !values.most.is_int()) return std::nullopt;
  return values;
}

// The iterators of a sum of few terms that number the terms, if the number is the same for each element: 3 * 3 in
//   c[i, j] = c[i, j] + a[i + p, j + q] * w[p, q]
// Their loops go inside of those over elements then, and are unrolled, so that each element stays in a register. Empty
// otherwise.
std::vector<int> FewTerms(const Stage& stage, const Statement& s) {
  if (!s.reduction) return {};
  const auto is_element = [&](ir::Var var) {
    return std::any_of(s.accesses.begin(), s.accesses.end(), [&](const Access& access) {
      return access.is_write &&
             (access.indices.empty() ||
              std::any_of(access.indices.begin(), access.indices.end(),
                          [&](ir::Expr index) { return ir::UsesVar(index, var); }));
    });
  };
  std::vector<int> terms;
  isl::set box = s.domain;  // any numbers of terms with each element
  int64_t count = 1;
  for (size_t i = 0; i < s.iterators.size(); ++i) {
    const int position = static_cast<int>(i);
    if (is_element(s.iterators[i])) {
      const isl::union_set domain = s.domain.to_union_set();
      if (!IsParallel(stage, {&s}, Coordinate(domain, position).at(0))) return {};
      continue;
    }
    const std::optional<Values> values = ValuesOf(s, position);
    if (!values || values->count() > kMostTerms) return {};
    count *= values->count();
    if (count > kMostTerms) return {};
    isl_set* any = isl_set_eliminate(box.copy(), isl_dim_set, static_cast<unsigned>(i), 1);
    any = isl_set_lower_bound_val(any, isl_dim_set, static_cast<unsigned>(i), values->least.copy());
    any = isl_set_upper_bound_val(any, isl_dim_set, static_cast<unsigned>(i), values->most.copy());
    box = isl::manage(any);
    terms.push_back(position);
  }
  return box.is_equal(s.domain) ? terms : std::vector<int>{};
}

// The iterators of few iterations that read nothing but what a statement stores, where the data says: c in
//   histogram[c, bin[i]] = histogram[c, bin[i]] + select(c == 0, weight[i], 1)
// Their loops go inside of all others and are unrolled, so that each bin and weight is read once.
std::vector<int> FewCopies(const Stage& stage, const Statement& s) {
  std::vector<int> copies;
  const auto store = std::find_if(s.accesses.begin(), s.accesses.end(), [](const Access& access) {
    return access.is_write && access.indices.empty();
  });
  if (s.is_opaque || store == s.accesses.end()) return copies;
  int64_t count = 1;
  for (size_t i = 0; i < s.iterators.size(); ++i) {
    const int position = static_cast<int>(i);
    const bool is_read = std::any_of(s.accesses.begin(), s.accesses.end(), [&](const Access& a) {
      return a.buffer != store->buffer &&
             (a.indices.empty() ||
              std::any_of(a.indices.begin(), a.indices.end(),
                          [&](ir::Expr index) { return ir::UsesVar(index, s.iterators[i]); }));
    });
    const std::optional<Values> values = ValuesOf(s, position);
    if (is_read || !values || count * values->count() > kMostCopies) continue;
    if (!IsParallel(stage, {&s}, Coordinate(s.domain.to_union_set(), position).at(0))) continue;
    copies.push_back(position);
    count *= values->count();
  }
  return copies;
}

Node WithLoops(Node leaf, int around, const Scop& part, const Stage& stage,
               const Component& statements, std::map<std::string, LoopMark>& marks) {
  const std::optional<isl::multi_union_pw_aff> loops = LoopsOf(part, statements);
  if (!loops) return leaf;
  if (statements.size() > 1) return leaf.insert_partial_schedule(*loops);
  const Statement& s = *statements[0];
  const int vector = VectorIterator(stage, s);
  std::vector<int> terms;
  if (vector >= 0) terms = FewTerms(stage, s);
  if (terms.empty()) terms = FewCopies(stage, s);
  const auto is_term = [&](int i) {
    return std::find(terms.begin(), terms.end(), i) != terms.end();
  };
  if (is_term(vector)) terms.clear();
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(s.iterators.size()); ++i) {
    if (i != vector && !is_term(i)) order.push_back(i);
  }
  const size_t loops_around = order.size() + (vector >= 0 ? 1 : 0);
  for (size_t k = terms.size(); k-- > 0;) {
    const int depth = around + DepthOf(leaf) + static_cast<int>(loops_around + k);
    leaf = leaf.insert_partial_schedule(Members(*loops, {terms[k]}));
    leaf = WithMark(leaf, {.kind = ir::ForKind::kUnroll, .depth = depth}, marks);
  }
  if (vector >= 0) {
    order.push_back(vector);
    const int depth = around + DepthOf(leaf) + static_cast<int>(order.size()) - 1;
    leaf = WithMark(leaf, {.kind = ir::ForKind::kVectorize, .depth = depth}, marks);
  }
  return order.empty() ? leaf : leaf.insert_partial_schedule(Members(*loops, order));
}

}  // namespace

int VectorIterator(const Stage& stage, const Statement& s) {
  if (s.is_opaque) return -1;
  int best = -1;
  int best_score = 0;
  for (size_t i = s.iterators.size(); i-- > 0;) {
    const int score = VectorScore(s, s.iterators[i]);
    if (score <= best_score) continue;
    if (!IsParallel(stage, {&s}, Coordinate(s.domain.to_union_set(), static_cast<int>(i)).at(0)))
      continue;
    best = static_cast<int>(i);
    best_score = score;
  }
  return best;
}

bool IsParallel(const Stage& stage, const Component& component, const isl::union_pw_aff& loop) {
  const isl::union_set domain = DomainOf(component);
  const isl::union_map at = isl::union_map::from(ToMulti(loop));
  const isl::union_map pairs = stage.pairs.intersect_domain(domain).intersect_range(domain);
  const isl::union_map moves = pairs.apply_domain(at).apply_range(at);
  if (moves.is_empty()) return true;
  const isl::set deltas = moves.as_map().deltas();
  return deltas.is_subset(isl::set(deltas.ctx(), "{ [0] }"));
}

std::optional<isl::multi_union_pw_aff> LoopsOf(const Scop& part, const Component& component) {
  const isl::union_set domain = DomainOf(component);
  if (component.size() > 1) {
    const isl::union_map order =
        isl::manage(isl_schedule_intersect_domain(part.schedule.copy(), domain.copy())).map();
    return isl::manage(isl_multi_union_pw_aff_from_union_map(order.copy()));
  }
  std::optional<isl::multi_union_pw_aff> loops;
  for (size_t i = 0; i < component[0]->iterators.size(); ++i) {
    const isl::multi_union_pw_aff one = Coordinate(domain, static_cast<int>(i));
    loops = loops ? loops->flat_range_product(one) : one;
  }
  return loops;
}

Node WithComponents(const Node& leaf, const Stage& stage,
                    const std::function<Node(Node, const Component&)>& loops) {
  const std::vector<Component> components = ComponentsOf(stage);
  if (components.size() == 1) return loops(leaf, components[0]);
  isl_union_set_list* filters =
      isl_union_set_list_alloc(leaf.ctx().release(), static_cast<int>(components.size()));
  for (const Component& statements : components) {
    filters = isl_union_set_list_add(filters, DomainOf(statements).universe().release());
  }
  Node node = isl::manage(isl_schedule_node_insert_sequence(leaf.copy(), filters));
  for (size_t i = 0; i < components.size(); ++i) {
    const Node child = node.child(static_cast<int>(i)).child(0);
    node = loops(child, components[i]).parent().parent();
  }
  return node;
}

Node WithStageLoops(Node leaf, int around, const Scop& part, const Stage& stage,
                    std::map<std::string, LoopMark>& marks) {
  return WithComponents(leaf, stage, [&](const Node& at, const Component& component) {
    return WithLoops(at, around, part, stage, component, marks);
  });
}

}  // namespace polynao::poly
