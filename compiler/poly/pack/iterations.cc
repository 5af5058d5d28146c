#include "compiler/poly/pack/iterations.h"

#include <isl/ast_build.h>
#include <isl/set.h>

#include "compiler/ir/replace.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/generate/instance.h"
#include "compiler/poly/isl/estimate.h"

namespace polynao::poly {

using ir::Expr;
using ir::Stmt;
using ir::Type;
using ir::Var;

Expr Quotient(Expr a, Expr b) {
  if (b.IsInt(1)) return a;
  const bool is_constant = IsConstant(a) && IsConstant(b);
  return is_constant ? a.context().I64(ir::FloorDiv(a.int_value(), b.int_value())) : a / b;
}

Expr CeilQuotient(Expr a, Expr b) { return b.IsInt(1) ? a : Quotient(Plus(a, Plus(b, -1)), b); }

Expr Remainder(Expr a, Expr b) {
  if (b.IsInt(1)) return a.context().I64(0);
  const bool is_constant = IsConstant(a) && IsConstant(b);
  return is_constant ? a.context().I64(ir::FloorMod(a.int_value(), b.int_value())) : a % b;
}

Expr Least(Expr a, Expr b) {
  if (IsConstant(a) && IsConstant(b)) return a.int_value() < b.int_value() ? a : b;
  return ir::Min(a, b);
}

Stmt Within(const Lets& lets, Stmt body) {
  for (size_t i = lets.size(); i-- > 0;) {
    body = body.context().LetStmt(lets[i].first, lets[i].second, body);
  }
  return body;
}

PartNames::PartNames(const Scop& scop) : scop_(scop), context_(scop.place.context()) {
  for (const Parameter& p : scop.parameters) {
    const Var var = context_.NewVar(p.name, Type::kI64);
    lets_.emplace_back(var, p.value);
    names_[p.name] = var;
    if (p.value.Is(ir::ExprKind::kVar)) outer_[p.value] = var;
    if (p.value.Is(ir::ExprKind::kCast) && p.value.operand(0).Is(ir::ExprKind::kVar)) {
      outer_[p.value.operand(0)] = var;
    }
  }
}

Expr PartNames::Condition(const isl::set& parameters) const {
  const isl::set condition = parameters.gist(scop_.context);
  if (condition.is_equal(isl::set::universe(condition.space()))) return context_.Bool(true);
  const isl::ast_build build = isl::ast_build::from_context(scop_.context);
  return AstValue(build.expr_from(condition), names_, context_);
}

Expr PartNames::Value(const isl::pw_aff& f, const isl::set& where) const {
  const isl::ast_build build = isl::ast_build::from_context(scop_.context.intersect(where));
  return AstValue(build.expr_from(f), names_, context_);
}

Stmt PartNames::Bind(Stmt body) const {
  for (size_t i = lets_.size(); i-- > 0;) {
    if (ir::UsesVar(body, lets_[i].first)) {
      body = context_.LetStmt(lets_[i].first, lets_[i].second, body);
    }
  }
  return body;
}

Range RangeOf(const Scop& scop, const Statement& statement, size_t loop, const PartNames& names,
              const AssumedParameters& assumed) {
  const auto place = static_cast<int>(loop);
  const isl::set where = statement.domain.params();
  const isl::pw_aff first = isl::manage(isl_set_dim_min(statement.domain.copy(), place));
  const isl::pw_aff last = isl::manage(isl_set_dim_max(statement.domain.copy(), place));
  Range range{.var = statement.iterators[loop]};
  range.first = names.Value(first, where);
  range.count = Plus(Minus(names.Value(last, where), range.first), 1);
  if (IsConstant(range.count)) {
    range.assumed = static_cast<double>(range.count.int_value());
    return range;
  }
  isl::set one = AtAssumed(statement.domain, scop, assumed);
  const auto n = static_cast<unsigned>(Dimensions(one));
  one = isl::manage(isl_set_project_out(one.release(), isl_dim_set, static_cast<unsigned>(loop) + 1,
                                        n - static_cast<unsigned>(loop) - 1));
  one =
      isl::manage(isl_set_project_out(one.release(), isl_dim_set, 0, static_cast<unsigned>(loop)));
  range.assumed = EstimateCount(one);
  return range;
}

Expr CountOf(ir::Context& context, const std::vector<Range>& loops) {
  Expr count = context.I64(1);
  for (const Range& loop : loops) count = Times(count, loop.count);
  return count;
}

double AssumedCount(const std::vector<Range>& loops) {
  double count = 1;
  for (const Range& loop : loops) count *= loop.assumed;
  return count;
}

void SetIteration(const std::vector<Range>& loops, Expr number, Values& at, Lets& lets) {
  const auto bind = [&](const Range& loop, Expr value) -> Expr {
    if (IsConstant(value) || value.Is(ir::ExprKind::kVar)) return value;
    const Var var = value.context().NewVar(loop.var.name(), Type::kI64);
    lets.emplace_back(var, value);
    return var;
  };
  for (size_t i = loops.size(); i-- > 1;) {
    at[loops[i].var] = bind(loops[i], Plus(loops[i].first, Remainder(number, loops[i].count)));
    number = bind(loops[i], Quotient(number, loops[i].count));
  }
  if (!loops.empty()) at[loops[0].var] = Plus(loops[0].first, number);
}

void SetIterationInline(const std::vector<Range>& loops, Expr number, Values& at) {
  Lets lets;
  SetIteration(loops, number, at, lets);
  for (const Range& loop : loops) {
    for (size_t i = lets.size(); i-- > 0;) {
      const absl::flat_hash_map<Expr, Expr> by = {{lets[i].first, lets[i].second}};
      at[loop.var] = ir::Replace(at[loop.var], by);
    }
  }
}

Expr ValueAt(const Statement& statement, Expr value, const Values& at) {
  // The store needs a value of the buffer's type; what is asked for may have another one.
  ir::Context& c = value.context();
  Statement changed = statement;
  const ir::Buffer any = c.NewBuffer("any", value.type(), {});
  changed.code = c.Store(any, {}, value);
  return InstanceCode(changed, at, nullptr).value();
}

std::vector<Expr> ElementAt(const Statement& statement, const Values& at) {
  const Stmt store = InstanceCode(statement, at, nullptr);
  return {store.indices().begin(), store.indices().end()};
}

Stmt LoopOver(ir::Context& context, std::string_view name, Expr count, ir::ForKind kind,
              const std::function<Stmt(Expr)>& body) {
  const bool is_plain = kind == ir::ForKind::kSerial || kind == ir::ForKind::kUnroll;
  if (count.IsInt(1) && is_plain) return body(context.I64(0));
  const Var var = context.NewVar(name, Type::kI64);
  return context.For(var, context.I64(0), count, body(var), kind);
}

}  // namespace polynao::poly
