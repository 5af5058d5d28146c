#include "compiler/ir/visit.h"

#include <algorithm>
#include <array>

#include "compiler/ir/externs.h"

namespace polynao::ir {
namespace {

// The expressions that a visit has met. Most have a handful of nodes, which are compared faster than hashed.
class Seen {
 public:
  // False if it was there.
  bool Insert(const ExprNode* node) {
    if (!rest_.empty()) return rest_.insert(node).second;
    const auto end = first_.begin() + count_;
    if (std::find(first_.begin(), end, node) != end) return false;
    if (count_ < first_.size()) {
      first_[count_++] = node;
    } else {
      rest_.insert(first_.begin(), first_.end());
      rest_.insert(node);
    }
    return true;
  }

 private:
  std::array<const ExprNode*, 12> first_;
  size_t count_ = 0;
  absl::flat_hash_set<const ExprNode*> rest_;  // all of them, when they are more
};

// Visits the distinct expressions below `root` in post-order, without recursion: generated programs
// have deep expressions.
template <typename Visit>
void PostOrder(Expr root, Seen& seen, const Visit& visit) {
  if (!seen.Insert(root.node())) return;
  if (root.operands().empty()) return visit(root);
  struct Frame {
    Expr expr;
    size_t next;
  };
  std::vector<Frame> stack = {{root, 0}};
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.expr.operands().size()) {
      Expr operand = top.expr.operand(top.next++);
      if (!seen.Insert(operand.node())) continue;
      if (operand.operands().empty()) {
        visit(operand);
      } else {
        stack.push_back({operand, 0});
      }
    } else {
      visit(top.expr);
      stack.pop_back();
    }
  }
}

}  // namespace

void ForEachExpr(Expr root, const std::function<void(Expr)>& visit) {
  Seen seen;
  PostOrder(root, seen, visit);
}

void ForEachStmt(Stmt root, const std::function<bool(Stmt)>& visit) {
  if (!visit(root)) return;
  for (Stmt child : root.children()) ForEachStmt(child, visit);
}

bool AnyStmt(Stmt root, const std::function<bool(Stmt)>& matches) {
  if (matches(root)) return true;
  for (Stmt child : root.children()) {
    if (AnyStmt(child, matches)) return true;
  }
  return false;
}

void ForEachExprIn(Stmt root, const std::function<void(Expr)>& visit) {
  Seen seen;
  ForEachStmt(root, [&](Stmt s) {
    for (Expr e : s.operands()) PostOrder(e, seen, visit);
    if (s.Is(StmtKind::kAllocate)) {
      for (Expr extent : s.buffer()->extents) PostOrder(extent, seen, visit);
    }
    return true;
  });
}

absl::flat_hash_set<Var> FreeVars(Expr e) {
  absl::flat_hash_set<Var> free;
  absl::flat_hash_set<Var> bound;
  ForEachExpr(e, [&](Expr x) {
    if (x.Is(ExprKind::kVar)) free.insert(x);
    if (x.Is(ExprKind::kLet)) bound.insert(x.var());
  });
  // A variable is bound only once, so one that a let inside `e` binds is free nowhere in `e`.
  for (Var var : bound) free.erase(var);
  return free;
}

bool UsesVar(Expr e, Var var) {
  if (e.id() < var.id()) return false;  // operands are older than their users
  bool found = false;
  ForEachExpr(e, [&](Expr x) { found = found || x == var; });
  return found;
}

bool UsesVar(Stmt s, Var var) {
  bool found = false;
  ForEachExprIn(s, [&](Expr x) { found = found || x == var; });
  return found;
}

size_t NodeCount(Stmt root) {
  size_t count = 0;
  ForEachStmt(root, [&](Stmt) {
    ++count;
    return true;
  });
  ForEachExprIn(root, [&](Expr) { ++count; });
  return count;
}

Expr Mutator::Mutate(Expr e) { return MutateOperands(e); }
Stmt Mutator::Mutate(Stmt s) { return MutateChildren(s); }

Expr Mutator::MutateOperands(Expr e) {
  if (e.operands().empty()) return e;
  std::vector<Expr> operands;
  operands.reserve(e.operands().size());
  for (Expr operand : e.operands()) operands.push_back(Mutate(operand));
  return e.context().Rebuild(e, operands);
}

Stmt Mutator::MutateChildren(Stmt s) {
  std::vector<Expr> operands;
  operands.reserve(s.operands().size());
  for (Expr operand : s.operands()) operands.push_back(Mutate(operand));
  std::vector<Stmt> children;
  children.reserve(s.children().size());
  for (Stmt child : s.children()) children.push_back(Mutate(child));
  return s.context().Rebuild(s, operands, children);
}

namespace {

// Rebuilds trees with other variables and buffers, each distinct expression once. With `target` set
// the result belongs to that context.
class Substituter {
 public:
  Substituter(VarMap vars, BufferMap buffers, bool fresh_bindings, Context* target)
      : vars_(std::move(vars)),
        buffers_(std::move(buffers)),
        fresh_bindings_(fresh_bindings),
        target_(target) {}

  Expr Replace(Expr e) {
    if (vars_.empty() && buffers_.empty() && !target_ && !fresh_bindings_) return e;
    if (auto it = done_.find(e); it != done_.end()) return it->second;
    Expr result = ReplaceNew(e);
    done_.emplace(e, result);
    return result;
  }

  Stmt Replace(Stmt s) {
    Context& out = target_ ? *target_ : s.context();
    std::vector<Expr> operands;
    operands.reserve(s.operands().size());
    for (Expr e : s.operands()) operands.push_back(Replace(e));
    Var var = s.var();
    if (s.Is(StmtKind::kFor) || s.Is(StmtKind::kLet)) var = Bind(var);
    Buffer buffer = s.buffer();
    if (s.Is(StmtKind::kAllocate)) buffer = BindBuffer(buffer);
    if (s.Is(StmtKind::kStore)) buffer = ReplaceBuffer(buffer);
    std::vector<Stmt> children;
    children.reserve(s.children().size());
    for (Stmt child : s.children()) children.push_back(Replace(child));
    if (!target_ && var == s.var() && buffer == s.buffer()) {
      return out.Rebuild(s, operands, children);
    }
    switch (s.kind()) {
      case StmtKind::kFor:
        return out.For(var, operands[0], operands[1], children[0], s.for_kind(), s.name());
      case StmtKind::kIf:
        return out.If(operands[0], children[0], children[1]);
      case StmtKind::kLet:
        return out.LetStmt(var, operands[0], children[0]);
      case StmtKind::kAllocate:
        return out.Allocate(buffer, children[0]);
      case StmtKind::kStore: {
        const Expr value = operands.back();
        operands.pop_back();
        return out.Store(buffer, operands, value);
      }
      case StmtKind::kPragma:
        return out.Pragma(s.name(), operands, children[0]);
      case StmtKind::kEvaluate:
        return out.Evaluate(operands[0]);
      case StmtKind::kSeq:
        return out.Seq(children);
    }
    POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
  }

  bool IsBound(Var var) const { return vars_.contains(var); }

  Var Bind(Var var) {
    if (!fresh_bindings_) return var;
    Context& out = target_ ? *target_ : var.context();
    Var fresh = out.NewVar(var.name(), var.type());
    vars_[var] = fresh;
    done_.clear();
    return fresh;
  }

  // Scalars first: buffers' extents may use any of them.
  void BindParams(std::vector<Param>& params) {
    for (Param& param : params) {
      if (param.var) param.var = Bind(param.var);
    }
    for (Param& param : params) {
      if (param.buffer) param.buffer = BindBuffer(param.buffer);
    }
  }

  // A buffer that is allocated keeps its identity unless its extents change.
  Buffer BindBuffer(Buffer buffer) {
    Context& out = target_ ? *target_ : *buffer->context;
    std::vector<Expr> extents;
    for (Expr e : buffer->extents) extents.push_back(Replace(e));
    if (!fresh_bindings_ && extents == buffer->extents) return buffer;
    Buffer fresh = out.NewBuffer(buffer->name, buffer->type, std::move(extents), buffer->scope);
    buffers_[buffer] = fresh;
    done_.clear();
    return fresh;
  }

 private:
  Buffer ReplaceBuffer(Buffer buffer) {
    auto it = buffers_.find(buffer);
    if (it != buffers_.end()) return it->second;
    POLYNAO_CHECK(!target_) << "buffer " << buffer->name << " is not bound";
    return buffer;
  }

  // `callee`, declared in `out` too. Its meaning binds what it uses itself.
  static const ExternNode* CloneExtern(const ExternNode& callee, Context& out) {
    Substituter substituter({}, {}, true, &out);
    auto clone = std::make_shared<ExternNode>(callee);
    clone->context = &out;
    substituter.BindParams(clone->params);
    if (callee.value) clone->value = substituter.Replace(callee.value);
    if (callee.body) clone->body = substituter.Replace(callee.body);
    return out.AddExtern(std::move(clone));
  }

  Expr ReplaceNew(Expr e) {
    Context& out = target_ ? *target_ : e.context();
    if (e.Is(ExprKind::kVar)) {
      auto it = vars_.find(e);
      if (it != vars_.end()) return it->second;
      POLYNAO_CHECK(!target_) << "variable " << e.name() << " is not bound";
      return e;
    }
    if (e.Is(ExprKind::kLet)) {
      const Expr value = Replace(e.operand(0));
      const Var var = Bind(e.var());
      return out.Let(var, value, Replace(e.operand(1)));
    }
    std::vector<Expr> operands;
    operands.reserve(e.operands().size());
    for (Expr operand : e.operands()) operands.push_back(Replace(operand));
    switch (e.kind()) {
      case ExprKind::kLoad:
        return out.Load(ReplaceBuffer(Buffer(e.buffer())), operands);
      case ExprKind::kAddress:
        return out.Address(ReplaceBuffer(Buffer(e.buffer())), operands);
      case ExprKind::kIntImm:
        return out.Int(e.type(), e.int_value());
      case ExprKind::kFloatImm:
        return out.Float(e.type(), e.float_value());
      case ExprKind::kCall:
        if (e.callee() == nullptr) return out.Call(e.type(), e.name(), operands);
        return out.Call(target_ ? CloneExtern(*e.callee(), out) : e.callee(), operands);
      default:
        return out.Rebuild(e, operands);
    }
  }

  VarMap vars_;
  BufferMap buffers_;
  const bool fresh_bindings_;
  Context* const target_;
  absl::flat_hash_map<Expr, Expr> done_;
};

}  // namespace

Expr Substitute(Expr e, const VarMap& vars, const BufferMap& buffers) {
  return Substituter(vars, buffers, false, nullptr).Replace(e);
}

Stmt Substitute(Stmt s, const VarMap& vars, const BufferMap& buffers) {
  return Substituter(vars, buffers, false, nullptr).Replace(s);
}

Stmt CloneWithFreshBindings(Stmt s) { return Substituter({}, {}, true, nullptr).Replace(s); }

Function CloneInto(const Function& function, std::shared_ptr<Context> target) {
  Substituter substituter({}, {}, true, target.get());
  Function clone;
  clone.name = function.name;
  clone.context = target;
  clone.params = function.params;
  substituter.BindParams(clone.params);
  for (const Attribute& attribute : function.attributes) {
    Attribute copy = attribute;
    for (AttributeValue& value : copy.values) {
      auto* e = std::get_if<Expr>(&value);
      if (e == nullptr) continue;
      // Words of the attribute's own language are variables that nothing else binds.
      ForEachExpr(*e, [&](Expr x) {
        if (x.Is(ExprKind::kVar) && !substituter.IsBound(x)) substituter.Bind(x);
      });
      value = substituter.Replace(*e);
    }
    clone.attributes.push_back(std::move(copy));
  }
  clone.body = substituter.Replace(function.body);
  return clone;
}

namespace {

class ExternCollector {
 public:
  void Add(Expr root) {
    ForEachExpr(root, [&](Expr e) {
      const ExternNode* callee = e.callee();
      if (callee == nullptr || std::find(found.begin(), found.end(), callee) != found.end()) return;
      Add(callee->params);
      if (callee->value) Add(callee->value);
      if (callee->body) Add(callee->body);
      found.push_back(callee);
    });
  }
  void Add(Stmt body) {
    ForEachExprIn(body, [&](Expr e) {
      if (e.callee() != nullptr) Add(e);
    });
    ForEachStmt(body, [&](Stmt s) {
      if (s.Is(StmtKind::kAllocate)) Add(s.buffer());
      return true;
    });
  }
  void Add(Buffer buffer) {
    for (Expr extent : buffer->extents) Add(extent);
  }
  void Add(const std::vector<Param>& params) {
    for (const Param& param : params) {
      if (param.buffer) Add(param.buffer);
    }
  }

  std::vector<const ExternNode*> found;
};

}  // namespace

std::vector<const ExternNode*> ExternsOf(const Function& function) {
  ExternCollector collector;
  collector.Add(function.params);
  collector.Add(function.body);
  return std::move(collector.found);
}

namespace {

// Compares b with a: b's variables and buffers are mapped to a's, statement by statement, in a's context, where equal
// expressions are identical.
class Comparison {
 public:
  bool AreSame(const std::vector<Param>& a, const std::vector<Param>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      const Param &x = a[i], &y = b[i];
      if (static_cast<bool>(x.var) != static_cast<bool>(y.var) || x.scope != y.scope) return false;
      if (x.var && !Bind(x.var, y.var)) return false;
    }
    for (size_t i = 0; i < a.size(); ++i) {
      if (!a[i].buffer) continue;
      if (a[i].access != b[i].access || !Bind(a[i].buffer, b[i].buffer)) return false;
    }
    return true;
  }

  bool AreSame(Stmt x, Stmt y) {
    if (x.kind() != y.kind() || x.for_kind() != y.for_kind() || x.name() != y.name() ||
        x.operands().size() != y.operands().size() || x.children().size() != y.children().size()) {
      return false;
    }
    for (size_t i = 0; i < x.operands().size(); ++i) {
      if (!AreSame(x.operands()[i], y.operands()[i])) return false;
    }
    if ((x.Is(StmtKind::kFor) || x.Is(StmtKind::kLet)) && !Bind(x.var(), y.var())) return false;
    if (x.Is(StmtKind::kAllocate) && !Bind(x.buffer(), y.buffer())) return false;
    if (x.Is(StmtKind::kStore) && x.buffer() != Mapped(y.buffer())) return false;
    for (size_t i = 0; i < x.children().size(); ++i) {
      if (!AreSame(x.children()[i], y.children()[i])) return false;
    }
    return true;
  }

 private:
  bool Bind(Expr x, Expr y) {
    if (x.type() != y.type()) return false;
    vars_[y] = x;
    equal_.clear();
    return true;
  }

  bool Bind(Buffer x, Buffer y) {
    if (x->type != y->type || x->scope != y->scope || x->extents.size() != y->extents.size()) {
      return false;
    }
    for (size_t i = 0; i < x->extents.size(); ++i) {
      if (x->extents[i] != Substitute(y->extents[i], vars_, buffers_)) return false;
    }
    buffers_[y] = x;
    equal_.clear();
    return true;
  }

  Buffer Mapped(Buffer y) const {
    const auto it = buffers_.find(y);
    return it == buffers_.end() ? y : it->second;
  }

  bool AreSame(Expr x, Expr y) {
    if (auto it = equal_.find(y); it != equal_.end() && it->second == x) return true;
    if (!HaveSameShape(x, y)) return false;
    equal_[y] = x;
    return true;
  }

  // Lets inside expressions bind too; expressions equal up to them are compared by their shape.
  bool HaveSameShape(Expr x, Expr y) {
    if (x == y && vars_.empty()) return true;
    if (y.Is(ExprKind::kVar)) {
      const auto it = vars_.find(y);
      return x == (it == vars_.end() ? y : it->second);
    }
    if (x.kind() != y.kind() || x.type() != y.type() || x.name() != y.name() ||
        x.callee() != y.callee() || x.operands().size() != y.operands().size()) {
      return false;
    }
    if (x.IsConst()) return x == y;
    if (y.buffer() && Buffer(x.buffer()) != Mapped(Buffer(y.buffer()))) return false;
    for (size_t i = 0; i < x.operands().size(); ++i) {
      if (i == 1 && x.Is(ExprKind::kLet) && !Bind(x.var(), y.var())) return false;
      if (!AreSame(x.operand(i), y.operand(i))) return false;
    }
    return true;
  }

  VarMap vars_;
  BufferMap buffers_;
  // Expressions of b that were found equal to one of a, which holds until something is bound: expressions share parts,
  // which are compared once.
  absl::flat_hash_map<Expr, Expr> equal_;
};

}  // namespace

bool StructurallyEqual(const Function& a, const Function& b) {
  if (a.params.size() != b.params.size() || a.name != b.name) return false;
  const Function in_b = a.context == b.context ? b : CloneInto(b, a.context);
  Comparison comparison;
  return comparison.AreSame(a.params, in_b.params) && comparison.AreSame(a.body, in_b.body);
}

}  // namespace polynao::ir
