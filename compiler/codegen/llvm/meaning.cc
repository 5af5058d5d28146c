#include "compiler/codegen/llvm/meaning.h"

#include <bit>
#include <utility>

#include "compiler/codegen/llvm/vector_loop.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

namespace {

bool AreAlike(absl::Span<const Expr> meaning, absl::Span<const Expr> code, Likeness& likeness) {
  if (meaning.size() != code.size()) return false;
  for (size_t i = 0; i < meaning.size(); ++i) {
    if (!IsAlike(meaning[i], code[i], likeness)) return false;
  }
  return true;
}

// An element of the meaning's own memory, or the one element of a parameter.
bool IsAlikeLoad(Expr meaning, Expr code, Likeness& likeness) {
  const Buffer parameter(meaning.buffer()), from(code.buffer());
  if (const auto local = likeness.locals.find(parameter); local != likeness.locals.end())
    return local->second == from && AreAlike(meaning.operands(), code.operands(), likeness);
  if (from->type != parameter->type) return false;
  const auto [it, is_new] = likeness.loads.emplace(parameter, code);
  return is_new || it->second == code;
}

}  // namespace

bool IsAlike(Expr meaning, Expr code, Likeness& likeness) {
  if (meaning.kind() != code.kind() || meaning.type() != code.type()) return false;
  switch (meaning.kind()) {
    case ExprKind::kLoad:
      return IsAlikeLoad(meaning, code, likeness);
    case ExprKind::kIntImm:
      return meaning.int_value() == code.int_value();
    case ExprKind::kFloatImm:
      return std::bit_cast<uint64_t>(meaning.float_value()) ==
             std::bit_cast<uint64_t>(code.float_value());
    case ExprKind::kVar: {
      const auto var = likeness.vars.find(Var(meaning));
      return var != likeness.vars.end() && var->second == code;
    }
    case ExprKind::kLet:
      if (!IsAlike(meaning.operand(0), code.operand(0), likeness)) return false;
      likeness.vars.insert_or_assign(Var(meaning.var()), code.var());
      return IsAlike(meaning.operand(1), code.operand(1), likeness);
    case ExprKind::kCall:
      return code.callee() == nullptr && meaning.name() == code.name() &&
             AreAlike(meaning.operands(), code.operands(), likeness);
    case ExprKind::kAdd:
    case ExprKind::kMul:
      // In any order.
      for (const size_t first : {size_t{0}, size_t{1}}) {
        Likeness found = likeness;
        if (IsAlike(meaning.operand(0), code.operand(first), found) &&
            IsAlike(meaning.operand(1), code.operand(1 - first), found)) {
          likeness = std::move(found);
          return true;
        }
      }
      return false;
    case ExprKind::kAddress:
      return false;
    default:
      return AreAlike(meaning.operands(), code.operands(), likeness);
  }
}

bool IsAlike(Stmt meaning, Stmt code, Likeness& likeness) {
  if (meaning.kind() != code.kind()) return false;
  switch (meaning.kind()) {
    case StmtKind::kFor:
      if (code.for_kind() == ir::ForKind::kParallel || code.for_kind() == ir::ForKind::kThread ||
          !code.min().IsInt(0) || !code.extent().Is(ExprKind::kIntImm) ||
          code.extent().int_value() != meaning.extent().int_value()) {
        return false;
      }
      likeness.vars.insert_or_assign(Var(meaning.var()), code.var());
      likeness.loops.push_back(code);
      break;
    case StmtKind::kAllocate: {
      const Buffer own(meaning.buffer()), other(code.buffer());
      if (own->type != other->type || own->extents.size() != other->extents.size()) return false;
      if (!AreAlike(own->extents, other->extents, likeness)) return false;
      likeness.locals.insert_or_assign(own, other);
      break;
    }
    case StmtKind::kStore: {
      if (!IsAlike(meaning.value(), code.value(), likeness)) return false;
      const auto local = likeness.locals.find(meaning.buffer());
      if (local != likeness.locals.end())
        return local->second == code.buffer() &&
               AreAlike(meaning.indices(), code.indices(), likeness);
      if (likeness.store) return false;
      likeness.store = code;
      return true;
    }
    case StmtKind::kSeq:
      break;
    default:
      return false;
  }
  if (meaning.children().size() != code.children().size()) return false;
  for (size_t i = 0; i < meaning.children().size(); ++i) {
    if (!IsAlike(meaning.children()[i], code.children()[i], likeness)) return false;
  }
  return true;
}

namespace {

// A number that stands for the form, the same for equal ones.
Expr KeyOf(ir::Context& c, const arith::LinearForm& form) {
  Expr sum = c.I64(form.constant());
  for (const arith::LinearForm::Term& term : form.terms())
    sum = sum + c.Cast(ir::Type::kI64, term.atom) * c.I64(term.coefficient);
  return sum;
}

// Quotients by a constant, and remainders by way of them, in one way, so that they cancel out:
//
//   (32 * b + r) / 14 = 2 * b + (4 * b + r) / 14          (32 * b + r) % 14 = (4 * b + r) - 14 * ((4 * b + r) / 14)
std::optional<arith::LinearForm> WithWholeParts(const arith::LinearForm& form,
                                                arith::Analyzer& analyzer) {
  arith::LinearForm result = arith::LinearForm::Constant(form.constant());
  for (const arith::LinearForm::Term& term : form.terms()) {
    const Expr atom = term.atom;
    const bool is_quotient = atom.Is(ExprKind::kDiv), is_remainder = atom.Is(ExprKind::kMod);
    const bool has_divisor = (is_quotient || is_remainder) && ir::IsInt(atom.type()) &&
                             atom.operand(1).Is(ExprKind::kIntImm) &&
                             atom.operand(1).int_value() > 0;
    if (!has_divisor) {
      if (!result.AddTerm(atom, term.coefficient)) return std::nullopt;
      continue;
    }
    const int64_t divisor = atom.operand(1).int_value();
    const arith::LinearForm numerator = analyzer.Form(atom.operand(0));
    const auto whole = [&](int64_t n) { return ir::FloorDiv(n, divisor); };
    arith::LinearForm wholes = arith::LinearForm::Constant(whole(numerator.constant()));
    arith::LinearForm rest =
        arith::LinearForm::Constant(numerator.constant() - divisor * whole(numerator.constant()));
    for (const arith::LinearForm::Term& one : numerator.terms()) {
      const int64_t part = whole(one.coefficient), left = one.coefficient - divisor * part;
      if (part != 0 && !wholes.AddTerm(one.atom, part)) return std::nullopt;
      if (left != 0 && !rest.AddTerm(one.atom, left)) return std::nullopt;
    }
    ir::Context& c = atom.context();
    const Expr quotient = c.Binary(ExprKind::kDiv, KeyOf(c, rest), c.I64(divisor));
    const bool fits = is_quotient ? result.Add(wholes, term.coefficient) &&
                                        result.AddTerm(quotient, term.coefficient)
                                  : result.Add(rest, term.coefficient) &&
                                        result.AddTerm(quotient, -term.coefficient * divisor);
    if (!fits) return std::nullopt;
  }
  return result;
}

}  // namespace

std::optional<arith::LinearForm> NumberOf(Buffer buffer, absl::Span<const Expr> indices,
                                          arith::Analyzer& analyzer, size_t outer) {
  arith::LinearForm number;
  int64_t size = 1;
  for (size_t d = indices.size(); d-- > outer;) {
    if (!number.Add(analyzer.Form(indices[d]), size)) return std::nullopt;
    if (d == outer) break;
    const Expr extent = buffer->extents[d];
    if (!extent.Is(ExprKind::kIntImm) || __builtin_mul_overflow(size, extent.int_value(), &size))
      return std::nullopt;
  }
  return WithWholeParts(number, analyzer);
}

std::optional<int64_t> StepOf(Buffer buffer, absl::Span<const Expr> indices, ir::Var var,
                              arith::Analyzer& analyzer) {
  // Outer indices that do not move do not count: their extents may be open.
  size_t outer = 0;
  while (outer < indices.size() && !ir::UsesVar(indices[outer], var)) ++outer;
  if (outer == indices.size()) return 0;
  const auto number = NumberOf(buffer, indices, analyzer, outer);
  return number ? SlopeIn(*number, var) : std::nullopt;
}

}  // namespace polynao::codegen
