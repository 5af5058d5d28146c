#include "compiler/poly/generate/instance.h"

#include <vector>

#include "compiler/ir/visit.h"
#include "compiler/poly/model/affine.h"
#include "compiler/poly/model/ast_value.h"

namespace polynao::poly {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;

namespace {

class InstanceWriter : public ir::Mutator {
 public:
  InstanceWriter(const Statement& statement, const absl::flat_hash_map<ir::Var, Expr>& values,
                 MarkHandler* handler)
      : statement_(statement), handler_(handler) {
    for (const auto& [var, value] : values) {
      Expr narrow = value;
      if (var.type() != Type::kI64) {
        narrow = IsConstant(value) ? value.context().Int(var.type(), value.int_value())
                                   : value.context().Cast(var.type(), value);
      }
      narrow_[var] = narrow;
      wide_[narrow] = value;
    }
  }

  using Mutator::Mutate;
  Expr Mutate(Expr e) override {
    if (const auto it = done_.find(e); it != done_.end()) return it->second;
    const Expr result = Rewrite(e);
    done_.emplace(e, result);
    return result;
  }

  Stmt Mutate(Stmt s) override {
    if (s.Is(StmtKind::kAllocate)) return MutateAllocate(s);
    if (!s.Is(StmtKind::kStore)) {
      s = MutateChildren(s);
      if (!s.Is(StmtKind::kIf)) return s;
      return s.context().If(WidenCondition(s.cond()), s.then_case(), s.else_case());
    }
    std::vector<Expr> indices;
    for (Expr index : s.indices()) indices.push_back(Widen(Mutate(index), wide_));
    const Expr value = Mutate(s.value());
    if (handler_ != nullptr) {
      if (const Stmt store = handler_->Store(statement_, s.buffer(), indices, value)) return store;
    }
    return s.context().Store(Own(s.buffer()), indices, value);
  }

 private:
  // The extents of an opaque statement's own array are values over the iterators, too.
  Stmt MutateAllocate(Stmt s) {
    ir::Context& c = s.context();
    std::vector<Expr> extents;
    bool changed = false;
    for (Expr extent : s.buffer()->extents) {
      const Expr value = Mutate(extent);
      changed |= value != extent;
      extents.push_back(value == extent ? extent : Widen(value, wide_));
    }
    if (!changed) return MutateChildren(s);
    const ir::Buffer own =
        c.NewBuffer(s.buffer()->name, s.buffer()->type, extents, s.buffer()->scope);
    own_[s.buffer()] = own;
    return c.Allocate(own, Mutate(s.body()));
  }

  ir::Buffer Own(ir::Buffer buffer) const {
    const auto it = own_.find(buffer);
    return it != own_.end() ? it->second : buffer;
  }

  Expr Rewrite(Expr e) {
    if (e.Is(ExprKind::kVar)) {
      const auto it = narrow_.find(e);
      return it != narrow_.end() ? it->second : e;
    }
    const Expr original = e;
    e = MutateOperands(e);
    ir::Context& c = e.context();
    if (e.Is(ExprKind::kLoad)) {
      std::vector<Expr> indices;
      for (Expr index : e.operands()) indices.push_back(Widen(index, wide_));
      if (handler_ != nullptr) {
        if (const Expr load = handler_->Load(statement_, original, indices)) return load;
      }
      return c.Load(Own(ir::Buffer(e.buffer())), indices);
    }
    if (e.Is(ExprKind::kSelect)) {
      return c.Select(WidenCondition(e.operand(0)), e.operand(1), e.operand(2));
    }
    return e;
  }

  // The arithmetic of i32 and i64 in a condition does not wrap.
  Expr WidenCondition(Expr e) {
    ir::Context& c = e.context();
    if (e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr)) {
      return c.Binary(e.kind(), WidenCondition(e.operand(0)), WidenCondition(e.operand(1)));
    }
    if (e.Is(ExprKind::kNot)) return c.Not(WidenCondition(e.operand(0)));
    if (!ir::IsComparison(e.kind()) || !ir::IsIndexable(e.operand(0).type())) return e;
    const Expr a = Widen(e.operand(0), wide_), b = Widen(e.operand(1), wide_);
    // Only if that makes the comparison one of loop variables.
    const auto is_cast = [](Expr x) { return x.Is(ExprKind::kCast); };
    if (is_cast(a) && is_cast(b)) return e;
    return c.Binary(e.kind(), a, b);
  }

  const Statement& statement_;
  MarkHandler* const handler_;
  absl::flat_hash_map<ir::Var, Expr> narrow_;  // of the variable's type
  absl::flat_hash_map<Expr, Expr> wide_;       // i64s of these
  absl::flat_hash_map<Expr, Expr> done_;
  ir::BufferMap own_;  // arrays of the statement's own, with extents over the new iterators
};

}  // namespace

Stmt InstanceCode(const Statement& statement, const absl::flat_hash_map<ir::Var, Expr>& values,
                  MarkHandler* handler) {
  return InstanceWriter(statement, values, handler).Mutate(statement.code);
}

}  // namespace polynao::poly
