// Method. The program becomes a tree of places (struct Node): blocks, their items (statements in
// order), and the sides of expressions that are evaluated only sometimes. Expressions are taken in
// an order that has users before operands. For each the places are known by then where it is
// evaluated, since every user is either bound, and then evaluates its operands at one place, or
// stays where it is. So each pair of an expression and a place is looked at once.
//
// Whether two loads see the same memory is answered by versions: a walk in program order gives each
// buffer a new version wherever it may have changed; the versions at a place are found by the time
// of the walk. Of several buffers the highest version counts, for a version is given only once.
#include "compiler/passes/cse.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/numbers.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/expr_map.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/effects.h"
#include "compiler/passes/facts.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/unify.h"

namespace polynao {
namespace {

using arith::Analyzer;
using arith::ConstRange;
using arith::Mode;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;

// A place where expressions are evaluated, or a group of such places.
struct Node {
  enum Kind : uint8_t {
    kBlock,   // items in order
    kItem,    // one statement, before its inner blocks; a variable can be bound in front of it
    kSide,    // an expression that is evaluated only sometimes; can be wrapped into a let
    kMaybe,   // one child, evaluated or not: a loop's body, the right side of && and ||
    kChoice,  // two children, of which exactly one is evaluated: branches, sides of a select
    kOnce,    // one child, evaluated: the body of a let inside an expression, a side by itself
  };
  Kind kind;
  int parent = -1;
  int depth = 0;
  int item = -1;     // the item that this is in, or is
  int64_t time = 0;  // of the walk
  // kMaybe, kChoice, kOnce: how many times the expression that it belongs to stands at the parent.
  int64_t times = 1;
  // Whether `times` of this or of a node around it is more than one.
  bool is_multiplied = false;
  Expr var = {};  // kOnce: what the let binds
};

// A statement in a block. A let or an allocation is an item of its own if all that follows in the
// block is its body.
struct Item {
  Stmt stmt;
  int node;
  bool is_header;
  std::vector<int> blocks;  // numbers of inner blocks: body; then and else
};

struct Block {
  Stmt stmt;
  int node;
  std::vector<Item> items;
};

// Expression e is evaluated at `node`.
struct Use {
  int node;
  int64_t count;  // how many times it stands there
  bool strict;    // whether an element never stored in it would stop the program
  int binding = -1;
  Expr result = {};
};
using Uses = absl::InlinedVector<Use, 2>;

struct ExprInfo {
  int64_t size = 1;  // operators and operands
  bool loads_allocation = false;
  // Variables of lets inside expressions that it is to be evaluated in the bodies of.
  absl::InlinedVector<Expr, 1> let_vars = {};
};

struct Binding {
  int expr;          // number of the bound expression
  int node;          // kItem: before it. kSide: around it
  int64_t uses;      // occurrences that it replaces
  bool is_existing;  // the item is `let var = expr`
  Expr var = {};
  Expr value = {};
};

// More occurrences than this are as good as this many.
constexpr int64_t kMany = int64_t{1} << 30;

constexpr std::string_view kNameStem = "cse_var_";

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

class Eliminator {
 public:
  explicit Eliminator(ir::Function& function, const CseOptions& options)
      : function_(function),
        context_(*function.context),
        effects_(function, options.intrinsics),
        facts_(context_) {
    AssumeParameters(function, facts_);
    for (const ir::Param& param : function.params) {
      if (param.var) NoteName(param.var);
      if (!param.buffer) continue;
      parameters_.insert(param.buffer.node());
    }
  }

  struct Result {
    bool changed = false;
    // Whether another run may find more: with variables for their parts, two expressions have become
    // equal; or one that was left alone, because of a load or a division in it, has changed.
    bool may_find_more = false;
  };

  Result Eliminate(std::vector<CseBinding>* report) {
    const int body = BuildBlock(function_.body, -1);
    FindLetVars();
    for (int e = static_cast<int>(exprs_.size()) - 1; e >= 0; --e) {
      MergeUses(uses_[e]);
      if (IsCandidate(e)) Place(e);
      Propagate(e);
    }
    Result result;
    if (bindings_.empty()) return result;
    NameBindings();
    for (int e = 0; e < static_cast<int>(exprs_.size()); ++e) Rewrite(e);
    function_.body = Rebuild(blocks_[body]);
    if (report != nullptr) Report(*report);
    result.changed = true;
    result.may_find_more = may_find_more_ || std::any_of(refused_.begin(), refused_.end(),
                                                         [&](int e) { return HasChanged(e); });
    return result;
  }

 private:
  // ---- the tree of places -----------------------------------------------------------------------

  int NewNode(Node::Kind kind, int parent, int64_t times = 1) {
    Node node{.kind = kind, .parent = parent, .time = time_, .times = times};
    if (parent >= 0) {
      const Node& p = nodes_[parent];
      node.depth = p.depth + 1;
      node.item = p.item;
      node.is_multiplied = p.is_multiplied || times > 1;
      if (kind != Node::kBlock && kind != Node::kItem) node.time = p.time;
    }
    const int number = static_cast<int>(nodes_.size());
    if (kind == Node::kItem) node.item = number;
    nodes_.push_back(node);
    return number;
  }

  // The number of the new block.
  int BuildBlock(Stmt s, int parent) {
    const int number = static_cast<int>(blocks_.size());
    const int node = NewNode(Node::kBlock, parent);
    blocks_.push_back({.stmt = s, .node = node, .items = {}});
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
    blocks_[number].items = std::move(items);
    return number;
  }

  Item BuildItem(Stmt s, int block, bool is_last) {
    ++time_;
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
        if (runs && s.min().Is(ExprKind::kIntImm)) {
          const int64_t min = s.min().int_value();
          facts_.BindRange(s.var(),
                           ConstRange::Point(min) + ConstRange{0, s.extent().int_value() - 1});
        }
        // What the body writes may have changed at the start of any iteration.
        NewVersions(effects_.Writes(s.body()));
        item.blocks.push_back(BuildBlock(s.body(), runs ? at : NewNode(Node::kMaybe, at)));
        NewVersions(effects_.Writes(s.body()));
        return item;
      }
      case StmtKind::kIf: {
        AddUse(s.cond(), at, 1, true);
        const int choice = NewNode(Node::kChoice, at);
        const BufferSet& written = effects_.Writes(s.then_case());
        const std::vector<std::pair<size_t, int64_t>> before = Versions(written);
        item.blocks.push_back(BuildBlock(s.then_case(), choice));
        ++time_;
        for (const auto& [slot, version] : before) SetVersion(slot, version);
        item.blocks.push_back(BuildBlock(s.else_case(), choice));
        NewVersions(effects_.Writes(s));
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
          let_of_item_.emplace(at, s);
        } else {
          KeepVariables(s.buffer()->extents);
          ++time_;
          SetVersion(effects_.Number(s.buffer()) + 1, ++last_version_);
        }
        return item;
      case StmtKind::kStore: {
        for (Expr index : s.indices()) AddUse(index, at, 1, true);
        AddUse(s.value(), at, 1, parameters_.contains(s.buffer().node()));
        NewVersions(effects_.Writes(s));
        return item;
      }
      case StmtKind::kPragma:
        // Its operands are hints, not evaluated.
        KeepVariables(s.operands());
        item.blocks.push_back(BuildBlock(s.body(), at));
        return item;
      case StmtKind::kEvaluate:
        AddUse(s.value(), at, 1, true);
        NewVersions(effects_.Writes(s));
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
        if (x.Is(ExprKind::kVar)) kept_vars_.insert(x);
      });
    }
  }

  void NoteName(Expr var) {
    const std::string_view name = var.name();
    int64_t number = 0;
    if (name.starts_with(kNameStem) &&
        absl::SimpleAtoi(std::string(name.substr(kNameStem.size())), &number)) {
      last_name_ = std::max(last_name_, number);
    }
  }

  // ---- versions of memory -----------------------------------------------------------------------

  // A buffer has the slot after its number. The first one changes when something may write to all.
  static constexpr size_t kEveryBuffer = 0;

  std::vector<std::pair<int64_t, int64_t>>& History(size_t slot) {
    if (slot >= history_.size()) history_.resize(slot + 1);
    return history_[slot];
  }

  void SetVersion(size_t slot, int64_t version) { History(slot).emplace_back(time_, version); }

  template <typename Visit>
  void ForEachSlot(const BufferSet& set, const Visit& visit) {
    if (set.is_everything()) {
      visit(kEveryBuffer);
    } else {
      set.ForEach([&](size_t number) { visit(number + 1); });
    }
  }

  // From now on the buffers in `written` may hold something else.
  void NewVersions(const BufferSet& written) {
    ++time_;
    ForEachSlot(written, [&](size_t slot) { SetVersion(slot, ++last_version_); });
  }

  std::vector<std::pair<size_t, int64_t>> Versions(const BufferSet& set) {
    std::vector<std::pair<size_t, int64_t>> versions;
    ForEachSlot(set, [&](size_t slot) {
      const auto& history = History(slot);
      versions.emplace_back(slot, history.empty() ? 0 : history.back().second);
    });
    return versions;
  }

  int64_t VersionAt(size_t slot, int64_t time) {
    const auto& history = History(slot);
    const auto later =
        std::upper_bound(history.begin(), history.end(), time,
                         [](int64_t t, const auto& event) { return t < event.first; });
    return later == history.begin() ? 0 : std::prev(later)->second;
  }

  // Equal at two places exactly if the elements that expression e loads are.
  int64_t MemoryAt(int e, int64_t time) {
    const BufferSet& loads = effects_.Loads(exprs_[e]);
    if (loads.empty()) return 0;
    int64_t version = VersionAt(kEveryBuffer, time);
    ForEachSlot(loads, [&](size_t slot) { version = std::max(version, VersionAt(slot, time)); });
    return version;
  }

  // ---- uses -------------------------------------------------------------------------------------

  void AddUse(Expr root, int node, int64_t count, bool strict) {
    // New expressions get numbers with operands before users; without recursion, as they get deep.
    if (!numbers_.Contains(root)) {
      std::vector<std::pair<Expr, size_t>> stack = {{root, 0}};
      while (!stack.empty()) {
        auto& [e, next] = stack.back();
        if (next < e.operands().size()) {
          const Expr operand = e.operand(next++);
          if (!numbers_.Contains(operand)) stack.emplace_back(operand, 0);
          continue;
        }
        if (numbers_.TryAdd(e, static_cast<int>(exprs_.size())).second) AddExpr(e);
        stack.pop_back();
      }
    }
    AddUse(numbers_.At(root), node, count, strict);
  }

  void AddExpr(Expr e) {
    ExprInfo info;
    for (Expr operand : e.operands()) {
      const ExprInfo& inner = infos_[numbers_.At(operand)];
      info.size = std::min(kMany, info.size + inner.size);
      info.loads_allocation = info.loads_allocation || inner.loads_allocation;
    }
    if (e.Is(ExprKind::kLoad) && !parameters_.contains(e.buffer())) info.loads_allocation = true;
    if (e.Is(ExprKind::kLet)) {
      NoteName(e.var());
      let_vars_.insert(e.var());
      lets_of_value_[numbers_.At(e.operand(0))].push_back(static_cast<int>(exprs_.size()));
    }
    exprs_.push_back(e);
    infos_.push_back(info);
    uses_.emplace_back();
  }

  void FindLetVars() {
    if (let_vars_.empty()) return;
    for (size_t e = 0; e < exprs_.size(); ++e) {
      const Expr expr = exprs_[e];
      auto& vars = infos_[e].let_vars;
      if (let_vars_.contains(expr)) vars.push_back(expr);
      for (Expr operand : expr.operands()) {
        for (Expr var : infos_[numbers_.At(operand)].let_vars) {
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
    if (infos_[e].let_vars.empty()) return -1;
    while (nodes_[node].kind != Node::kOnce || !Contains(infos_[e].let_vars, nodes_[node].var)) {
      node = nodes_[node].parent;
    }
    return node;
  }

  void AddUse(int e, int node, int64_t count, bool strict) {
    // Constants stay what they are, and variables, but for those of copies.
    if (exprs_[e].operands().empty() && !exprs_[e].Is(ExprKind::kLoad)) return;
    uses_[e].push_back({.node = node, .count = count, .strict = strict});
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
    const Expr expr = exprs_[e];
    switch (expr.kind()) {
      case ExprKind::kIntImm:
      case ExprKind::kFloatImm:
      case ExprKind::kVar:
      case ExprKind::kAddress:
        return false;
      default:
        return effects_.IsPure(expr);
    }
  }

  // The place of operand `i` of expression e, where e is evaluated at `node`.
  int OperandNode(int e, size_t i, int node) const {
    const Expr expr = exprs_[e];
    const bool has_sides = expr.Is(ExprKind::kAnd) || expr.Is(ExprKind::kOr) ||
                           expr.Is(ExprKind::kSelect) || expr.Is(ExprKind::kLet);
    if (i == 0 || !has_sides) return node;
    return sides_.at({node, e}) + static_cast<int>(i) - 1;
  }

  void MakeSides(int e, int node, int64_t count) {
    const Expr expr = exprs_[e];
    if (expr.Is(ExprKind::kSelect)) {
      const int choice = NewNode(Node::kChoice, node, count);
      sides_[{node, e}] = NewNode(Node::kSide, choice);
      NewNode(Node::kSide, choice);
    } else if (expr.Is(ExprKind::kAnd) || expr.Is(ExprKind::kOr)) {
      sides_[{node, e}] = NewNode(Node::kSide, NewNode(Node::kMaybe, node, count));
    } else if (expr.Is(ExprKind::kLet)) {
      const int once = NewNode(Node::kOnce, node, count);
      nodes_[once].var = expr.var();
      sides_[{node, e}] = NewNode(Node::kSide, once);
    }
  }

  // Tells the operands of expression e where they are evaluated.
  void Propagate(int e) {
    for (const Use& use : uses_[e]) {
      if (use.binding < 0) PropagateFrom(e, use.node, use.count, use.strict);
    }
    for (int b : BindingsOf(e)) PropagateFrom(e, bindings_[b].node, 1, true);
  }

  absl::Span<const int> BindingsOf(int e) const {
    const auto it = bindings_of_.find(e);
    return it == bindings_of_.end() ? absl::Span<const int>() : it->second;
  }

  void PropagateFrom(int e, int node, int64_t count, bool strict) {
    MakeSides(e, node, count);
    const Expr expr = exprs_[e];
    for (size_t i = 0; i < expr.operands().size(); ++i) {
      const int place = OperandNode(e, i, node);
      const bool decides = expr.Is(ExprKind::kLoad) || expr.Is(ExprKind::kAddress) ||
                           (expr.Is(ExprKind::kCall) && !ir::IsPureIntrinsic(expr.name())) ||
                           (expr.Is(ExprKind::kSelect) && i == 0) ||
                           ((expr.Is(ExprKind::kDiv) || expr.Is(ExprKind::kMod)) &&
                            ir::IsInt(expr.type()) && i == 1);
      AddUse(numbers_.At(expr.operand(i)), place, place == node ? count : 1, strict || decides);
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
    const Uses& uses = uses_[e];
    if (uses.empty()) return;
    if (uses.size() == 1 && uses[0].count < 2 && !nodes_[uses[0].node].is_multiplied) return;
    absl::InlinedVector<SeenUse, 8> seen;
    for (size_t i = 0; i < uses.size(); ++i) {
      const int node = uses[i].node;
      seen.push_back({.scope = ScopeOf(e, node),
                      .memory = MemoryAt(e, nodes_[node].time),
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
    summary_of_.resize(nodes_.size(), -1);
    // Deepest first; of equal depth the last.
    absl::InlinedVector<std::pair<int, int>, 8> open;
    const auto at = [&](int node) {
      int& number = summary_of_[node];
      if (number < 0) {
        number = static_cast<int>(summaries_.size());
        summaries_.emplace_back().node = node;
        open.emplace_back(nodes_[node].depth, node);
        std::push_heap(open.begin(), open.end());
      }
      return number;
    };
    for (const SeenUse& seen : group) {
      const int number = at(uses_[e][seen.use].node);
      summaries_[number].uses.push_back(seen.use);
    }
    while (true) {
      const int node = open.front().second;
      std::pop_heap(open.begin(), open.end());
      open.pop_back();
      const int s = summary_of_[node];
      Summarize(e, s);
      // An expression that stands several times has its sides once in this tree.
      const bool may_bind = nodes_[node].kind <= Node::kSide;
      const bool found = (may_bind && summaries_[s].on_path >= 2) || !nodes_[node].is_multiplied;
      // What does not use a let's variable is bound in front of it: the body is no other case.
      const int parent = nodes_[node].parent;
      const bool is_in_let =
          nodes_[node].kind == Node::kOnce || (parent >= 0 && nodes_[parent].kind == Node::kOnce);
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
    const Node& node = nodes_[s.node];
    for (int use : s.uses) {
      s.on_path += uses_[e][use].count;
      s.occurrences += uses_[e][use].count;
      s.anticipated = true;
      s.strict = s.strict || uses_[e][use].strict;
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
    switch (nodes_[s.node].kind) {
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

  // Whether evaluating expression e in front of `node` gives what its uses need, and stops no
  // program that went on. `anticipated`: it is evaluated there anyway.
  bool MayBindAt(int e, int node, bool anticipated, bool strict, int64_t memory) {
    const Expr expr = exprs_[e];
    bool may = false;
    if (!effects_.Loads(expr).empty()) {
      may = anticipated && MemoryAt(e, nodes_[node].time) == memory &&
            (strict || !infos_[e].loads_allocation);
    } else if (anticipated) {
      may = true;
    } else if (nodes_[node].kind == Node::kItem) {
      // Inside an expression the arithmetic may be that of an index, where it must not wrap.
      may = effects_.NeverTraps(expr, Mode::kData) || !effects_.MayTrap(expr, facts_, Mode::kData);
    }
    if (!may) refused_.insert(e);
    return may;
  }

  void Bind(int e, int node, absl::Span<const int> bound) {
    const int number = static_cast<int>(bindings_.size());
    Binding binding{.expr = e, .node = node, .uses = 0, .is_existing = false};
    const auto let = let_of_item_.find(node);
    if (let != let_of_item_.end() && let->second.value() == exprs_[e]) {
      binding.is_existing = true;
      binding.var = let->second.var();
    }
    for (int s : bound) binding.uses += summaries_[s].occurrences;
    absl::InlinedVector<int, 8> below(bound.begin(), bound.end());
    while (!below.empty()) {
      const Summary& s = summaries_[below.back()];
      below.pop_back();
      for (int use : s.uses) uses_[e][use].binding = number;
      below.insert(below.end(), s.children.begin(), s.children.end());
    }
    bindings_.push_back(binding);
    bindings_of_[e].push_back(number);
    bindings_at_[node].push_back(number);
  }

  // ---- rewriting --------------------------------------------------------------------------------

  // Names follow the places; at one place the longest expression comes first.
  void NameBindings() {
    std::vector<int> order(bindings_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      const Binding& x = bindings_[a];
      const Binding& y = bindings_[b];
      return std::make_tuple(nodes_[x.node].item, x.node, -infos_[x.expr].size, x.expr) <
             std::make_tuple(nodes_[y.node].item, y.node, -infos_[y.expr].size, y.expr);
    });
    for (int b : order) {
      Binding& binding = bindings_[b];
      if (binding.is_existing) continue;
      binding.var = context_.NewVar(StrCat(kNameStem, ++last_name_), exprs_[binding.expr].type());
    }
    report_order_ = std::move(order);
    // Operands are bound around what uses them.
    for (auto& [node, list] : bindings_at_) {
      std::sort(list.begin(), list.end(),
                [&](int a, int b) { return bindings_[a].expr < bindings_[b].expr; });
    }
  }

  // What expression e, evaluated at `node`, became.
  Expr ResultAt(Expr e, int node) const {
    if (e.Is(ExprKind::kVar)) {
      const auto copy = copies_.find(e);
      return copy == copies_.end() ? e : copy->second;
    }
    const Uses& uses = uses_[numbers_.At(e)];
    const auto it = std::lower_bound(uses.begin(), uses.end(), node,
                                     [](const Use& use, int wanted) { return use.node < wanted; });
    return it == uses.end() || it->node != node ? e : it->result;
  }

  // Expression e over what its operands became, evaluated at `node`.
  Expr RebuildAt(int e, int node) {
    const Expr expr = exprs_[e];
    absl::InlinedVector<Expr, 4> operands;
    for (size_t i = 0; i < expr.operands().size(); ++i) {
      const int place = OperandNode(e, i, node);
      Expr operand = ResultAt(expr.operand(i), place);
      if (place != node) operand = WrapInLets(operand, place);
      operands.push_back(operand);
    }
    if (expr.Is(ExprKind::kLet) && copies_.contains(expr.var())) {
      // Its body may now be what others are, and need not stay together.
      may_find_more_ = true;
      return operands[1];
    }
    const Expr result = context_.Rebuild(expr, operands);
    const auto [other, added] = became_.TryAdd(result, e);
    may_find_more_ = may_find_more_ || (!added && other != e);
    return result;
  }

  // `let var = before` became `let var = after`: if that is a copy of a variable, it goes. All that
  // uses `var` has higher numbers than `before`, so it is rewritten later.
  void NoteCopy(Expr var, Expr before, Expr after) {
    if (!before.Is(ExprKind::kVar) && after.Is(ExprKind::kVar) && !kept_vars_.contains(var)) {
      copies_[var] = after;
    }
  }

  Expr WrapInLets(Expr e, int side) {
    const auto it = bindings_at_.find(side);
    if (it == bindings_at_.end()) return e;
    for (size_t i = it->second.size(); i-- > 0;) {
      const Binding& binding = bindings_[it->second[i]];
      e = context_.Let(binding.var, binding.value, e);
    }
    return e;
  }

  void Rewrite(int e) {
    for (int b : BindingsOf(e)) bindings_[b].value = RebuildAt(e, bindings_[b].node);
    for (Use& use : uses_[e]) {
      use.result = use.binding >= 0 ? bindings_[use.binding].var : RebuildAt(e, use.node);
      const auto let = let_of_item_.find(use.node);
      if (let != let_of_item_.end() && let->second.value() == exprs_[e] &&
          let->second.var() != use.result) {
        NoteCopy(let->second.var(), exprs_[e], use.result);
      }
    }
    if (const auto it = lets_of_value_.find(e); it != lets_of_value_.end()) {
      for (int let : it->second) {
        const int node = OnlyPlaceOf(let);
        if (node >= 0) NoteCopy(exprs_[let].var(), exprs_[e], ResultAt(exprs_[e], node));
      }
    }
  }

  // Where expression e is evaluated; -1 if that is at several places. (A let that stands in several
  // may be a copy of different variables.)
  int OnlyPlaceOf(int e) const {
    int node = -1;
    int places = 0;
    const auto add = [&](int place) {
      node = place;
      ++places;
    };
    for (const Use& use : uses_[e]) {
      if (use.binding < 0) add(use.node);
    }
    for (int b : BindingsOf(e)) add(bindings_[b].node);
    return places == 1 ? node : -1;
  }

  // Whether expression e became another one somewhere.
  bool HasChanged(int e) const {
    return std::any_of(uses_[e].begin(), uses_[e].end(),
                       [&](const Use& use) { return use.result != exprs_[e]; });
  }

  // Whether the operands of the item's statement are evaluated there, and may be bound.
  static bool IsRewritten(const Item& item) {
    const Stmt s = item.stmt;
    if (s.Is(StmtKind::kFor)) return s.for_kind() != ForKind::kThread;
    return !s.Is(StmtKind::kPragma) && (!s.Is(StmtKind::kLet) || item.is_header);
  }

  Stmt Rebuild(const Block& block) {
    bool changed = false;
    std::vector<std::vector<Expr>> operands(block.items.size());
    std::vector<std::vector<Stmt>> children(block.items.size());
    for (size_t i = 0; i < block.items.size(); ++i) {
      const Item& item = block.items[i];
      const Stmt s = item.stmt;
      changed = changed || bindings_at_.contains(item.node);
      operands[i].assign(s.operands().begin(), s.operands().end());
      if (IsRewritten(item)) {
        for (Expr& e : operands[i]) {
          const Expr result = ResultAt(e, item.node);
          changed = changed || result != e;
          e = result;
        }
      }
      for (size_t b = 0; b < item.blocks.size(); ++b) {
        const Block& inner = blocks_[item.blocks[b]];
        children[i].push_back(Rebuild(inner));
        changed = changed || children[i].back() != inner.stmt;
      }
    }
    if (!changed) return block.stmt;
    // Backwards: what follows an item may be its body. The statements so far, the last one first.
    std::vector<Stmt> after;
    const auto rest = [&] {
      std::reverse(after.begin(), after.end());
      const Stmt seq = context_.Seq(after);
      after.clear();
      return seq;
    };
    for (size_t i = block.items.size(); i-- > 0;) {
      const Item& item = block.items[i];
      const Stmt s = item.stmt;
      const auto bound = bindings_at_.find(item.node);
      const bool has_bindings = bound != bindings_at_.end();
      if (item.is_header && s.Is(StmtKind::kLet)) {
        Expr value = operands[i][0];
        if (has_bindings) {
          for (int b : bound->second) {
            if (bindings_[b].is_existing) value = bindings_[b].value;
          }
        }
        if (!copies_.contains(s.var())) after.push_back(context_.LetStmt(s.var(), value, rest()));
      } else if (item.is_header) {
        after.push_back(context_.Allocate(s.buffer(), rest()));
      } else if (s.Is(StmtKind::kLet) || s.Is(StmtKind::kAllocate)) {
        after.push_back(children[i][0]);  // a block of its own
      } else {
        after.push_back(context_.Rebuild(s, operands[i], children[i]));
      }
      if (!has_bindings) continue;
      for (size_t b = bound->second.size(); b-- > 0;) {
        const Binding& binding = bindings_[bound->second[b]];
        if (binding.is_existing) continue;
        after.push_back(context_.LetStmt(binding.var, binding.value, rest()));
      }
    }
    return rest();
  }

  void Report(std::vector<CseBinding>& report) const {
    for (int b : report_order_) {
      const Binding& binding = bindings_[b];
      report.push_back({.variable = std::string(binding.var.name()),
                        .value = ir::Print(binding.value),
                        .uses = binding.uses});
    }
  }

  ir::Function& function_;
  ir::Context& context_;
  Effects effects_;
  Analyzer facts_;
  absl::flat_hash_set<const ir::BufferNode*> parameters_;

  std::vector<Node> nodes_;
  std::vector<Block> blocks_;
  absl::flat_hash_map<int, Stmt> let_of_item_;
  // The sides of expression e at a node: the first; the second has the next number.
  absl::flat_hash_map<std::pair<int, int>, int> sides_;

  int64_t time_ = 0;
  int64_t last_version_ = 0;
  // For each slot the versions, and from which time on they hold.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> history_;

  // Expressions, operands before users, and where they are evaluated.
  std::vector<Expr> exprs_;
  ir::ExprMap<int> numbers_;
  std::vector<ExprInfo> infos_;
  std::vector<Uses> uses_;
  // Lets inside expressions: their variables, and by number of their values.
  absl::flat_hash_set<Expr> let_vars_;
  absl::flat_hash_map<int, std::vector<int>> lets_of_value_;
  // Of one group, and by node.
  std::vector<Summary> summaries_;
  std::vector<int> summary_of_;

  std::vector<Binding> bindings_;
  absl::flat_hash_map<int, std::vector<int>> bindings_of_;  // by expression
  absl::flat_hash_map<int, std::vector<int>> bindings_at_;  // by node
  std::vector<int> report_order_;
  // Lets that became copies of other variables.
  ir::VarMap copies_;
  // Variables in extents of allocations, bounds of thread loops and operands of pragmas.
  absl::flat_hash_set<Expr> kept_vars_;
  absl::flat_hash_set<int> refused_;  // expressions that some place may not have
  // What expressions became, and which ones.
  ir::ExprMap<int> became_;
  bool may_find_more_ = false;
  int64_t last_name_ = 0;
};

}  // namespace

absl::StatusOr<bool> Cse(ir::Function& function, const CseOptions& options,
                         std::vector<CseBinding>* bindings) {
  bool changed = false;
  while (true) {
    const Stmt before = function.body;
    if (options.semantic) UnifyEqualIntegers(function);
    const Eliminator::Result result = Eliminator(function, options).Eliminate(bindings);
    changed = changed || result.changed;
    if (!result.changed) function.body = before;
    // Such chains are short. (What is bound is data, where more is equal than in an index.)
    if (!result.changed || !(result.may_find_more || options.semantic)) return changed;
  }
}

namespace {

absl::StatusOr<bool> RunCse(ir::Function& function, const PassEnvironment& environment,
                            CseOptions options) {
  if (environment.target.instructions != nullptr) {
    options.intrinsics = &environment.target.instructions->intrinsics();
  }
  std::vector<CseBinding> bindings;
  ASSIGN_OR_RETURN(bool changed, Cse(function, options, environment.stats ? &bindings : nullptr));
  for (const CseBinding& binding : bindings) {
    environment.stats->push_back(
        StrCat(binding.variable, " = ", binding.value, "  for ", binding.uses, " uses"));
  }
  return changed;
}

}  // namespace

PassInfo CsePass() {
  return WithOptions<CseOptions>(
      {.name = "cse", .doc = "binds what is evaluated more than once"},
      {BoolOption("semantic", &CseOptions::semantic,
                  "take equal integers in other words for one expression")},
      FixedDefaults, RunCse);
}

}  // namespace polynao
