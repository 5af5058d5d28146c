// Method. The program becomes a tree of places (struct Node): blocks, their items (statements in
// order), and the sides of expressions that are evaluated only sometimes. Expressions are taken in
// an order that has users before operands. When an expression is taken, all places that evaluate it
// are known: each user is either bound, and then evaluates its operands at one place, or stays where
// it is. So each pair of an expression and a place is looked at once.
#include "compiler/passes/cse_plan.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "base/check.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/effects.h"
#include "compiler/passes/left_to_compiler.h"
#include "compiler/passes/memory_versions.h"

namespace polynao::cse {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;

// More occurrences than this are as good as this many.
constexpr int64_t kMany = int64_t{1} << 30;

// A number of places of one expression that lie below a node.
struct Summary {
  int node = -1;
  int64_t on_path = 0;       // the most evaluations that one run through the node can make
  int64_t occurrences = 0;   // in the text
  bool anticipated = false;  // every run through the node evaluates it ...
  bool strict = false;       // ... where an element never stored would stop the program
  absl::InlinedVector<int, 4> uses = {};
  absl::InlinedVector<int, 4> children = {};
};

class Planner {
 public:
  Planner(const ir::Function& function, const CseOptions& options)
      : options_(options), effects_(function, options.intrinsics) {
    for (const ir::Param& param : function.params) {
      if (param.var) NoteName(param.var);
      if (!param.buffer) continue;
      parameters_.insert(param.buffer.node());
    }
  }

  CsePlan Make(Stmt body) {
    BuildBlock(body, -1);
    FindLetVars();
    for (int e = static_cast<int>(plan_.exprs.size()) - 1; e >= 0; --e) {
      MergeUses(plan_.uses[e]);
      if (IsCandidate(e)) {
        plan_.infos[e].is_candidate = true;
        Place(e);
      }
      Propagate(e);
    }
    return std::move(plan_);
  }

 private:
  // ---- the tree of places -----------------------------------------------------------------------

  int NewNode(Node::Kind kind, int parent, int64_t times = 1) {
    Node node{.kind = kind, .parent = parent, .time = versions_.now(), .times = times};
    if (parent >= 0) {
      const Node& p = plan_.nodes[parent];
      node.depth = p.depth + 1;
      node.item = p.item;
      node.is_multiplied = p.is_multiplied || times > 1;
      if (kind != Node::kBlock && kind != Node::kItem) node.time = p.time;
    }
    const int number = static_cast<int>(plan_.nodes.size());
    if (kind == Node::kItem) node.item = number;
    plan_.nodes.push_back(node);
    return number;
  }

  // The number of the new block.
  int BuildBlock(Stmt s, int parent) {
    const int number = static_cast<int>(plan_.blocks.size());
    const int node = NewNode(Node::kBlock, parent);
    plan_.blocks.push_back({.stmt = s, .node = node, .items = {}});
    std::vector<Item> items;
    while (true) {
      if (s.Is(StmtKind::kSeq)) {
        if (s.children().empty()) break;
        for (Stmt child : s.children().subspan(0, s.children().size() - 1)) {
          items.push_back(BuildItem(child, node, /*is_last=*/false));
        }
        s = s.children().back();
      }
      items.push_back(BuildItem(s, node, /*is_last=*/true));
      if (!items.back().is_header) break;
      s = s.body();
    }
    plan_.blocks[number].items = std::move(items);
    return number;
  }

  Item BuildItem(Stmt s, int block, bool is_last) {
    versions_.Tick();
    Item item{.stmt = s, .node = NewNode(Node::kItem, block), .is_header = false, .blocks = {}};
    const int at = item.node;
    switch (s.kind()) {
      case StmtKind::kFor: {
        NoteName(s.var());
        if (s.for_kind() == ForKind::kThread) {
          KeepVariables(s.operands());
        } else {
          AddUse(s.min(), at, 1, true);
          AddUse(s.extent(), at, 1, true);
        }
        const bool runs = s.extent().Is(ExprKind::kIntImm) && s.extent().int_value() > 0;
        // What the body writes may have changed at the start of any iteration.
        versions_.Write(effects_.Writes(s.body()));
        item.blocks.push_back(BuildBlock(s.body(), runs ? at : NewNode(Node::kMaybe, at)));
        versions_.Write(effects_.Writes(s.body()));
        return item;
      }
      case StmtKind::kIf: {
        AddUse(s.cond(), at, 1, true);
        const int choice = NewNode(Node::kChoice, at);
        const BufferSet& written = effects_.Writes(s.then_case());
        const MemoryVersions::Saved before = versions_.Save(written);
        item.blocks.push_back(BuildBlock(s.then_case(), choice));
        versions_.Restore(before);
        item.blocks.push_back(BuildBlock(s.else_case(), choice));
        versions_.Write(effects_.Writes(s));
        return item;
      }
      case StmtKind::kLet:
      case StmtKind::kAllocate:
        if (!is_last) {
          // A block of its own, that ends with the scope of the variable.
          item.blocks.push_back(BuildBlock(s, at));
          return item;
        }
        item.is_header = true;
        if (s.Is(StmtKind::kLet)) {
          NoteName(s.var());
          AddUse(s.value(), at, 1, true);
          plan_.let_of_item.emplace(at, s);
        } else {
          KeepVariables(s.buffer()->extents);
          versions_.Write(effects_.Number(s.buffer()));
        }
        return item;
      case StmtKind::kStore: {
        for (Expr index : s.indices()) AddUse(index, at, 1, true);
        AddUse(s.value(), at, 1, parameters_.contains(s.buffer().node()));
        versions_.Write(effects_.Writes(s));
        return item;
      }
      case StmtKind::kPragma:
        // Its operands are hints, not evaluated.
        KeepVariables(s.operands());
        item.blocks.push_back(BuildBlock(s.body(), at));
        return item;
      case StmtKind::kEvaluate:
        AddUse(s.value(), at, 1, true);
        versions_.Write(effects_.Writes(s));
        return item;
      case StmtKind::kSeq:
        item.blocks.push_back(BuildBlock(s, at));
        return item;
    }
    POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
  }

  // What stays as it is needs the variables in it.
  void KeepVariables(absl::Span<const Expr> list) {
    for (Expr e : list) {
      ir::ForEachExpr(e, [&](Expr x) {
        if (x.Is(ExprKind::kVar)) plan_.kept_vars.insert(x);
      });
    }
  }

  void NoteName(Expr var) {
    const std::string_view name = var.name();
    int64_t number = 0;
    if (name.starts_with(kNameStem) &&
        absl::SimpleAtoi(std::string(name.substr(kNameStem.size())), &number)) {
      plan_.last_name = std::max(plan_.last_name, number);
    }
  }

  // Equal at two places exactly if the elements that expression e loads are.
  int64_t MemoryAt(int e, int64_t time) {
    return versions_.At(effects_.Loads(plan_.exprs[e]), time);
  }

  // ---- uses -------------------------------------------------------------------------------------

  void AddUse(Expr root, int node, int64_t count, bool strict) {
    // New expressions get numbers with operands before users; without recursion, as they get deep.
    if (!plan_.numbers.Contains(root)) {
      std::vector<std::pair<Expr, size_t>> stack = {{root, 0}};
      while (!stack.empty()) {
        auto& [e, next] = stack.back();
        if (next < e.operands().size()) {
          const Expr operand = e.operand(next++);
          if (!plan_.numbers.Contains(operand)) stack.emplace_back(operand, 0);
          continue;
        }
        if (plan_.numbers.TryAdd(e, static_cast<int>(plan_.exprs.size())).second) AddExpr(e);
        stack.pop_back();
      }
    }
    AddUse(plan_.numbers.At(root), node, count, strict);
  }

  void AddExpr(Expr e) {
    ExprInfo info{.is_left = options_.leave && IsLeftToCompiler(e)};
    for (Expr operand : e.operands()) {
      const ExprInfo& inner = plan_.infos[plan_.numbers.At(operand)];
      info.size = std::min(kMany, info.size + inner.size);
      info.is_left = info.is_left && inner.is_left;
      info.loads_allocation = info.loads_allocation || inner.loads_allocation;
    }
    if (e.buffer() != nullptr && !parameters_.contains(e.buffer())) info.loads_allocation = true;
    if (e.Is(ExprKind::kLet)) {
      NoteName(e.var());
      let_vars_.insert(e.var());
      plan_.lets_of_value[plan_.numbers.At(e.operand(0))].push_back(
          static_cast<int>(plan_.exprs.size()));
    }
    plan_.exprs.push_back(e);
    plan_.infos.push_back(info);
    plan_.uses.emplace_back();
  }

  void FindLetVars() {
    if (let_vars_.empty()) return;
    for (size_t e = 0; e < plan_.exprs.size(); ++e) {
      const Expr expr = plan_.exprs[e];
      auto& vars = plan_.infos[e].let_vars;
      if (let_vars_.contains(expr)) vars.push_back(expr);
      for (Expr operand : expr.operands()) {
        for (Expr var : plan_.infos[plan_.numbers.At(operand)].let_vars) {
          const bool is_own = expr.Is(ExprKind::kLet) && var == expr.var();
          if (!is_own && !Contains(vars, var)) vars.push_back(var);
        }
      }
    }
  }

  static bool Contains(absl::Span<const Expr> list, Expr e) {
    return std::find(list.begin(), list.end(), e) != list.end();
  }

  // The node that expression e, evaluated at `node`, can not be bound outside of: the body of a let;
  // -1 if there is none.
  int ScopeOf(int e, int node) const {
    if (plan_.infos[e].let_vars.empty()) return -1;
    while (plan_.nodes[node].kind != Node::kOnce ||
           !Contains(plan_.infos[e].let_vars, plan_.nodes[node].var)) {
      node = plan_.nodes[node].parent;
    }
    return node;
  }

  void AddUse(int e, int node, int64_t count, bool strict) {
    // Constants stay what they are, and variables, but for those of copies.
    const Expr expr = plan_.exprs[e];
    if (expr.IsConst() || expr.Is(ExprKind::kVar)) return;
    plan_.uses[e].push_back({.node = node, .count = count, .strict = strict});
  }

  static void MergeUses(Uses& uses) {
    if (uses.size() < 2) return;
    std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.node < b.node; });
    size_t kept = 0;
    for (size_t i = 0; i < uses.size(); ++i) {
      if (kept > 0 && uses[kept - 1].node == uses[i].node) {
        uses[kept - 1].count = std::min(kMany, uses[kept - 1].count + uses[i].count);
        uses[kept - 1].strict = uses[kept - 1].strict || uses[i].strict;
      } else {
        uses[kept++] = uses[i];
      }
    }
    uses.resize(kept, Use{.node = -1, .count = 0, .strict = false});
  }

  bool IsCandidate(int e) {
    const Expr expr = plan_.exprs[e];
    switch (expr.kind()) {
      case ExprKind::kIntImm:
      case ExprKind::kFloatImm:
      case ExprKind::kVar:
      case ExprKind::kAddress:
        return false;
      default:
        return effects_.IsPure(expr) && !plan_.infos[e].is_left;
    }
  }

  void MakeSides(int e, int node, int64_t count) {
    const Expr expr = plan_.exprs[e];
    if (expr.Is(ExprKind::kSelect)) {
      const int choice = NewNode(Node::kChoice, node, count);
      plan_.sides[{node, e}] = NewNode(Node::kSide, choice);
      NewNode(Node::kSide, choice);
    } else if (expr.Is(ExprKind::kAnd) || expr.Is(ExprKind::kOr)) {
      plan_.sides[{node, e}] = NewNode(Node::kSide, NewNode(Node::kMaybe, node, count));
    } else if (expr.Is(ExprKind::kLet)) {
      const int once = NewNode(Node::kOnce, node, count);
      plan_.nodes[once].var = expr.var();
      plan_.sides[{node, e}] = NewNode(Node::kSide, once);
    }
  }

  // Tells the operands of expression e where they are evaluated.
  void Propagate(int e) {
    for (const Use& use : plan_.uses[e]) {
      if (use.binding < 0) PropagateFrom(e, use.node, use.count, use.strict);
    }
    for (int b : plan_.BindingsOf(e)) PropagateFrom(e, plan_.bindings[b].node, 1, true);
  }

  void PropagateFrom(int e, int node, int64_t count, bool strict) {
    MakeSides(e, node, count);
    const Expr expr = plan_.exprs[e];
    for (size_t i = 0; i < expr.operands().size(); ++i) {
      const int place = plan_.OperandNode(e, i, node);
      const bool decides = expr.Is(ExprKind::kLoad) || expr.Is(ExprKind::kAddress) ||
                           (expr.Is(ExprKind::kCall) && !ir::IsPureIntrinsic(expr.name())) ||
                           (expr.Is(ExprKind::kSelect) && i == 0) ||
                           ((expr.Is(ExprKind::kDiv) || expr.Is(ExprKind::kMod)) &&
                            ir::IsInt(expr.type()) && i == 1);
      AddUse(plan_.numbers.At(expr.operand(i)), place, place == node ? count : 1,
             strict || decides);
    }
  }

  // ---- where to bind ----------------------------------------------------------------------------

  // A use of an expression, what may not be left by it, and the memory that it sees.
  struct SeenUse {
    int scope;
    int64_t memory;
    int use;
    auto operator<=>(const SeenUse&) const = default;
  };

  void Place(int e) {
    const Uses& uses = plan_.uses[e];
    if (uses.empty()) return;
    if (uses.size() == 1 && uses[0].count < 2 && !plan_.nodes[uses[0].node].is_multiplied) return;
    absl::InlinedVector<SeenUse, 8> seen;
    for (size_t i = 0; i < uses.size(); ++i) {
      const int node = uses[i].node;
      seen.push_back({.scope = ScopeOf(e, node),
                      .memory = MemoryAt(e, plan_.nodes[node].time),
                      .use = static_cast<int>(i)});
    }
    std::sort(seen.begin(), seen.end());
    for (size_t begin = 0, end; begin < seen.size(); begin = end) {
      end = begin + 1;
      while (end < seen.size() && seen[end].scope == seen[begin].scope &&
             seen[end].memory == seen[begin].memory) {
        ++end;
      }
      PlaceGroup(e, absl::MakeConstSpan(seen).subspan(begin, end - begin));
    }
  }

  // Binds expression e for its uses in `group`, of one scope and one memory.
  void PlaceGroup(int e, absl::Span<const SeenUse> group) {
    const auto [scope, memory, first] = group[0];
    summaries_.clear();
    summary_of_.resize(plan_.nodes.size(), -1);
    // Deepest first; of equal depth the last.
    absl::InlinedVector<std::pair<int, int>, 8> open;
    const auto at = [&](int node) {
      int& number = summary_of_[node];
      if (number < 0) {
        number = static_cast<int>(summaries_.size());
        summaries_.emplace_back().node = node;
        open.emplace_back(plan_.nodes[node].depth, node);
        std::push_heap(open.begin(), open.end());
      }
      return number;
    };
    for (const SeenUse& seen : group) {
      const int number = at(plan_.uses[e][seen.use].node);
      summaries_[number].uses.push_back(seen.use);
    }
    while (true) {
      const int node = open.front().second;
      std::pop_heap(open.begin(), open.end());
      open.pop_back();
      const int s = summary_of_[node];
      Summarize(e, s);
      // An expression that stands several times has its sides once in this tree.
      const bool may_bind = plan_.nodes[node].kind <= Node::kSide;
      const bool found =
          (may_bind && summaries_[s].on_path >= 2) || !plan_.nodes[node].is_multiplied;
      // What does not use a let's variable is bound in front of it: the body is no other case.
      const int parent = plan_.nodes[node].parent;
      const bool is_in_let = plan_.nodes[node].kind == Node::kOnce ||
                             (parent >= 0 && plan_.nodes[parent].kind == Node::kOnce);
      if ((open.empty() && found && !is_in_let) || parent == scope) {
        for (const Summary& summary : summaries_) summary_of_[summary.node] = -1;
        PlaceAt(e, s, memory);
        return;
      }
      const int above = at(parent);
      summaries_[above].children.push_back(s);
    }
  }

  void Summarize(int e, int number) {
    Summary& s = summaries_[number];
    const Node& node = plan_.nodes[s.node];
    for (int use : s.uses) {
      s.on_path += plan_.uses[e][use].count;
      s.occurrences += plan_.uses[e][use].count;
      s.anticipated = true;
      s.strict = s.strict || plan_.uses[e][use].strict;
    }
    const bool is_choice = node.kind == Node::kChoice;
    if (is_choice) s.anticipated = s.strict = s.children.size() == 2;
    for (int child : s.children) {
      const Summary& c = summaries_[child];
      s.occurrences += c.occurrences;
      if (is_choice) {
        s.on_path = std::max(s.on_path, c.on_path);
        s.anticipated = s.anticipated && c.anticipated;
        s.strict = s.strict && c.strict;
      } else {
        s.on_path += c.on_path;
        s.anticipated = s.anticipated || c.anticipated;
        s.strict = s.strict || c.strict;
      }
    }
    if (node.kind == Node::kMaybe) s.anticipated = s.strict = false;
    s.on_path = std::min(kMany, s.on_path * node.times);
    s.occurrences = std::min(kMany, s.occurrences * node.times);
    std::sort(s.children.begin(), s.children.end(),
              [&](int a, int b) { return summaries_[a].node < summaries_[b].node; });
  }

  void PlaceAt(int e, int number, int64_t memory) {
    const Summary& s = summaries_[number];
    if (s.on_path < 2) return;
    switch (plan_.nodes[s.node].kind) {
      case Node::kItem:
      case Node::kSide:
        if (!MayBindAt(e, s.node, s.anticipated, s.strict, memory)) break;
        Bind(e, s.node, absl::MakeConstSpan(&number, 1));
        return;
      case Node::kBlock:
        PlaceInBlock(e, s.children, memory);
        return;
      case Node::kMaybe:
      case Node::kChoice:
      case Node::kOnce:
        break;
    }
    for (int child : s.children) PlaceAt(e, child, memory);
  }

  // Binds before the first of the items from which on that is possible.
  void PlaceInBlock(int e, absl::Span<const int> items, int64_t memory) {
    // What the items from i on have together.
    std::vector<Summary> rest(items.size() + 1);
    for (size_t i = items.size(); i-- > 0;) {
      const Summary& item = summaries_[items[i]];
      rest[i].on_path = rest[i + 1].on_path + item.on_path;
      rest[i].anticipated = rest[i + 1].anticipated || item.anticipated;
      rest[i].strict = rest[i + 1].strict || item.strict;
    }
    for (size_t i = 0; i < items.size() && rest[i].on_path >= 2; ++i) {
      const int node = summaries_[items[i]].node;
      if (MayBindAt(e, node, rest[i].anticipated, rest[i].strict, memory)) {
        Bind(e, node, items.subspan(i));
        return;
      }
      PlaceAt(e, items[i], memory);
    }
  }

  // Whether evaluating expression e in front of `node` gives what its uses need, stops no program that
  // would go on, and costs no run more than before: every run that gets there evaluates it anyway
  // (`anticipated`).
  bool MayBindAt(int e, int node, bool anticipated, bool strict, int64_t memory) {
    if (!anticipated) return false;
    if (effects_.Loads(plan_.exprs[e]).empty()) return true;
    const bool may = MemoryAt(e, plan_.nodes[node].time) == memory &&
                     (strict || !plan_.infos[e].loads_allocation);
    if (!may) plan_.refused.insert(e);
    return may;
  }

  void Bind(int e, int node, absl::Span<const int> bound) {
    const int number = static_cast<int>(plan_.bindings.size());
    Binding binding{.expr = e, .node = node, .uses = 0, .is_existing = false};
    const auto let = plan_.let_of_item.find(node);
    if (let != plan_.let_of_item.end() && let->second.value() == plan_.exprs[e]) {
      binding.is_existing = true;
      binding.var = let->second.var();
    }
    for (int s : bound) binding.uses += summaries_[s].occurrences;
    absl::InlinedVector<int, 8> below(bound.begin(), bound.end());
    while (!below.empty()) {
      const Summary& s = summaries_[below.back()];
      below.pop_back();
      for (int use : s.uses) plan_.uses[e][use].binding = number;
      below.insert(below.end(), s.children.begin(), s.children.end());
    }
    plan_.bindings.push_back(binding);
    plan_.bindings_of[e].push_back(number);
    plan_.bindings_at[node].push_back(number);
  }

  const CseOptions& options_;
  Effects effects_;
  absl::flat_hash_set<const ir::BufferNode*> parameters_;
  CsePlan plan_;
  MemoryVersions versions_;
  absl::flat_hash_set<Expr> let_vars_;  // of lets inside expressions
  // Of one group, and by node.
  std::vector<Summary> summaries_;
  std::vector<int> summary_of_;
};

}  // namespace

int CsePlan::OperandNode(int e, size_t i, int node) const {
  const Expr expr = exprs[e];
  const bool has_sides = expr.Is(ExprKind::kAnd) || expr.Is(ExprKind::kOr) ||
                         expr.Is(ExprKind::kSelect) || expr.Is(ExprKind::kLet);
  if (i == 0 || !has_sides) return node;
  return sides.at({node, e}) + static_cast<int>(i) - 1;
}

absl::Span<const int> CsePlan::BindingsOf(int e) const {
  const auto it = bindings_of.find(e);
  return it == bindings_of.end() ? absl::Span<const int>() : it->second;
}

CsePlan MakePlan(const ir::Function& function, const CseOptions& options) {
  return Planner(function, options).Make(function.body);
}

}  // namespace polynao::cse
