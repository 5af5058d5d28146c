#include "compiler/poly/model/expand.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/ir/visit.h"

namespace polynao::poly {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

namespace {

bool Reads(Expr root, Buffer buffer) {
  bool reads = false;
  ir::ForEachExpr(root, [&](Expr e) {
    const bool is_access = e.Is(ExprKind::kLoad) || e.Is(ExprKind::kAddress);
    reads = reads || (is_access && Buffer(e.buffer()) == buffer);
  });
  return reads;
}

// Whether the extents of an array that `s` allocates read the buffer.
bool SizesRead(Stmt s, Buffer buffer) {
  if (!s.Is(StmtKind::kAllocate)) return false;
  const std::vector<Expr>& extents = s.buffer()->extents;
  return std::any_of(extents.begin(), extents.end(), [&](Expr e) { return Reads(e, buffer); });
}

// Whether `s` itself does, without what stands inside.
bool Reads(Stmt s, Buffer buffer) {
  for (Expr e : s.operands()) {
    if (Reads(e, buffer)) return true;
  }
  return SizesRead(s, buffer);
}

bool Uses(Stmt root, Buffer buffer) {
  return ir::AnyStmt(root, [&](Stmt s) {
    return (s.Is(StmtKind::kStore) && s.buffer() == buffer) || Reads(s, buffer);
  });
}

// Follows control through `s`. `written`: whether the scalar has been stored; becomes whether it has been at the end.
// False if it is read before.
bool IsWrittenFirst(Stmt s, Buffer buffer, bool* written) {
  if (!*written && Reads(s, buffer)) return false;
  switch (s.kind()) {
    case StmtKind::kStore:
      *written = *written || s.buffer() == buffer;
      return true;
    case StmtKind::kFor: {
      bool inside = *written;  // the body may not run
      return IsWrittenFirst(s.body(), buffer, &inside);
    }
    case StmtKind::kIf: {
      bool all = s.children().size() == 2;
      const bool before = *written;
      for (Stmt child : s.children()) {
        bool inside = before;
        if (!IsWrittenFirst(child, buffer, &inside)) return false;
        all = all && inside;
      }
      *written = before || all;
      return true;
    }
    default:
      for (Stmt child : s.children()) {
        if (!IsWrittenFirst(child, buffer, written)) return false;
      }
      return true;
  }
}

// Needs nothing that was stored before.
bool IsSelfContained(Stmt s, Buffer buffer) {
  bool written = false;
  return IsWrittenFirst(s, buffer, &written);
}

Stmt AllocateAround(Stmt s, Buffer buffer) {
  ir::Context& c = s.context();
  const Buffer own = c.NewBuffer(buffer->name, buffer->type, {}, buffer->scope);
  return c.Allocate(own, ir::Substitute(s, {}, {{buffer, own}}));
}

// `s`, in which nothing needs a value of the scalar from outside, with an allocation as far inside as possible.
Stmt Narrow(Stmt s, Buffer buffer) {
  if (!Uses(s, buffer)) return s;
  ir::Context& c = s.context();
  if (s.Is(StmtKind::kSeq)) {
    // A step begins where what is left needs nothing that was stored before: not at `if (c) { t[] = 1 }` in front of a
    // statement that reads t.
    std::vector<std::vector<Stmt>> groups;
    for (size_t i = 0; i < s.children().size(); ++i) {
      const Stmt child = s.children()[i];
      const bool starts =
          Uses(child, buffer) && IsSelfContained(c.Seq(s.children().subspan(i)), buffer);
      if (groups.empty() || starts) groups.emplace_back();
      groups.back().push_back(child);
    }
    std::vector<Stmt> steps;
    for (const std::vector<Stmt>& group : groups) {
      steps.push_back(group.size() == 1 ? Narrow(group[0], buffer)
                                        : AllocateAround(c.Seq(group), buffer));
    }
    return c.Seq(steps);
  }
  const bool passes = s.Is(StmtKind::kFor) || s.Is(StmtKind::kIf) || s.Is(StmtKind::kLet) ||
                      s.Is(StmtKind::kAllocate);
  if (!passes || Reads(s, buffer)) return AllocateAround(s, buffer);
  for (Stmt child : s.children()) {
    if (!IsSelfContained(child, buffer)) return AllocateAround(s, buffer);
  }
  return ir::MapChildren(s, [&](Stmt child) { return Narrow(child, buffer); });
}

Stmt NarrowAll(Stmt s) {
  s = ir::MapChildren(s, NarrowAll);
  const bool is_scalar = s.Is(StmtKind::kAllocate) && s.buffer()->extents.empty();
  return is_scalar && IsSelfContained(s.body(), s.buffer()) ? Narrow(s.body(), s.buffer()) : s;
}

class UseElement : public ir::Mutator {
 public:
  UseElement(Buffer scalar, Buffer array, Expr index)
      : scalar_(scalar), array_(array), index_(index) {}
  using Mutator::Mutate;
  Expr Mutate(Expr e) override {
    if (e.Is(ExprKind::kLoad) && Buffer(e.buffer()) == scalar_)
      return e.context().Load(array_, {index_});
    return Mutator::Mutate(e);
  }
  Stmt Mutate(Stmt s) override {
    if (s.Is(StmtKind::kStore) && s.buffer() == scalar_)
      return s.context().Store(array_, {index_}, Mutate(s.value()));
    return Mutator::Mutate(s);
  }

 private:
  Buffer scalar_, array_;
  Expr index_;
};

// The greatest value of a sum of loop variables and others, in i64, or the least. Nothing if it is no sum.
class Bounds {
 public:
  explicit Bounds(const std::vector<Stmt>& around) : around_(around) {}

  std::optional<Expr> Of(Expr e, bool greatest) const {
    ir::Context& c = e.context();
    if (e.Is(ExprKind::kIntImm)) return c.I64(e.int_value());
    if (e.Is(ExprKind::kVar)) {
      for (Stmt loop : around_) {
        if (loop.var() != e) continue;
        const std::optional<Expr> first = Of(loop.min(), greatest);
        if (!first || !greatest) return first;
        const std::optional<Expr> extent = Of(loop.extent(), true);
        return extent ? std::optional(*first + *extent - c.I64(1)) : std::nullopt;
      }
      return e.type() == ir::Type::kI64 ? e : c.Cast(ir::Type::kI64, e);
    }
    if (!e.Is(ExprKind::kAdd) && !e.Is(ExprKind::kSub)) return std::nullopt;
    const std::optional<Expr> a = Of(e.operand(0), greatest);
    const std::optional<Expr> b = Of(e.operand(1), e.Is(ExprKind::kAdd) == greatest);
    if (!a || !b) return std::nullopt;
    return e.Is(ExprKind::kAdd) ? *a + *b : *a - *b;
  }

 private:
  const std::vector<Stmt>& around_;
};

// Takes scalars' allocations out of the body of a loop: those that a loop inside uses.
class Lifter {
 public:
  // `extent`: of the arrays, at least that of the loop.
  Lifter(Stmt loop, Expr extent) : loop_(loop), extent_(extent) {}

  Stmt Run(Stmt body) {
    ir::Context& c = loop_.context();
    Stmt result = c.Rebuild(loop_, loop_.operands(), {Visit(body)});
    for (const Buffer array : arrays_) result = c.Allocate(array, result);
    return result;
  }

 private:
  Stmt Visit(Stmt s) {
    if (s.Is(StmtKind::kFor)) return s;
    s = ir::MapChildren(s, [&](Stmt child) { return Visit(child); });
    if (!s.Is(StmtKind::kAllocate) || !s.buffer()->extents.empty()) return s;
    const Buffer scalar = s.buffer();
    const bool is_used_inside = ir::AnyStmt(
        s.body(), [&](Stmt inner) { return inner.Is(StmtKind::kFor) && Uses(inner, scalar); });
    bool has_address = false;
    ir::ForEachExprIn(s.body(), [&](Expr e) { has_address |= e.Is(ExprKind::kAddress); });
    const bool is_size =
        ir::AnyStmt(s.body(), [&](Stmt inner) { return SizesRead(inner, scalar); });
    if (!is_used_inside || has_address || is_size) return s;
    const Buffer array =
        s.context().NewBuffer(scalar->name, scalar->type, {extent_}, scalar->scope);
    arrays_.push_back(array);
    const Expr index = loop_.min().IsInt(0) ? loop_.var() : loop_.var() - loop_.min();
    return UseElement(scalar, array, index).Mutate(s.body());
  }

  Stmt loop_;
  Expr extent_;
  std::vector<Buffer> arrays_;
};

// `around`: the loops, innermost last.
Stmt ExpandAll(Stmt s, std::vector<Stmt>& around) {
  if (!s.Is(StmtKind::kFor)) {
    return ir::MapChildren(s, [&](Stmt child) { return ExpandAll(child, around); });
  }
  // Bounds of extents hold only where no variable is bound but by loops around.
  const std::optional<Expr> extent = Bounds(around).Of(s.extent(), /*greatest=*/true);
  around.push_back(s);
  const Stmt body = ExpandAll(s.body(), around);
  around.pop_back();
  ir::Context& c = s.context();
  if (!extent) return c.Rebuild(s, s.operands(), {body});
  return Lifter(s, ir::Max(*extent, c.I64(0))).Run(body);
}

}  // namespace

bool ExpandScalars(ir::Function& function) {
  std::vector<Stmt> around;
  const Stmt body = ExpandAll(NarrowAll(function.body), around);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

}  // namespace polynao::poly
