// Calls: intrinsics, casts, min and max, select, instructions.
#include <optional>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compiler/ir/expression_parser.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/intrinsics.h"

namespace polynao::ir {

absl::StatusOr<std::vector<ExpressionParser::Argument>> ExpressionParser::ParseArguments() {
  RETURN_IF_ERROR(Expect("("));
  std::vector<Argument> arguments;
  while (!Accept(")")) {
    if (!arguments.empty()) RETURN_IF_ERROR(Expect(","));
    Argument argument{{}, &Peek()};
    ASSIGN_OR_RETURN(argument.value, ParseExpr());
    arguments.push_back(argument);
  }
  return arguments;
}

absl::StatusOr<Expr> ExpressionParser::ParseInstruction(const Token& name) {
  ASSIGN_OR_RETURN(const std::vector<Argument> arguments, ParseArguments());
  std::vector<Expr> operands;
  for (const auto& [value, place] : arguments) {
    if (value.flexible && IsInt(value.e.type()) && CanRetype(value.e, Type::kI64)) {
      operands.push_back(Retype(value.e, Type::kI64));
    } else {
      operands.push_back(Settle(value).e);
    }
  }
  return c_.Call(Type::kI32, name.text, operands);
}

const ExternNode* ExpressionParser::FindExtern(std::string_view name) const {
  const auto it = externs_.find(name);
  return it == externs_.end() ? nullptr : it->second;
}

absl::StatusOr<Expr> ExpressionParser::ParseExternCall(const Token& name,
                                                       const ExternNode* callee) {
  ASSIGN_OR_RETURN(const std::vector<Argument> arguments, ParseArguments());
  if (arguments.size() != callee->params.size()) {
    return ErrorAt(name, StrCat(callee->name, " takes ", callee->params.size(),
                                " arguments, found ", arguments.size()));
  }
  std::vector<Expr> operands;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& [value, place] = arguments[i];
    const Param& param = callee->params[i];
    const bool is_address = value.e.Is(ExprKind::kAddress);
    const Type wanted = param.buffer ? param.buffer->type : param.var.type();
    if (param.buffer && !is_address) {
      return ErrorAt(*place, StrCat("expected the address of an element of ", TypeName(wanted),
                                    " for '", param.name(), "'"));
    }
    if (param.var && value.flexible && !is_address) {
      if (!CanRetype(value.e, wanted)) {
        return ErrorAt(*place,
                       Misfit(value.e, wanted, StrCat("the argument '", param.name(), "'")));
      }
      operands.push_back(Retype(value.e, wanted));
      continue;
    }
    operands.push_back(Settle(value).e);
    const Type found = param.buffer ? value.e.buffer()->type : operands.back().type();
    if (found != wanted || (param.var && is_address)) {
      return ErrorAt(
          *place,
          StrCat("expected ", param.buffer ? "the address of an element of " : "", TypeName(wanted),
                 " for '", param.name(), "', found ", is_address ? "an address of " : "",
                 TypeName(is_address ? value.e.buffer()->type : found)));
    }
  }
  return c_.Call(callee, operands);
}

absl::StatusOr<Parsed> ExpressionParser::ParseCastOrSize(const Token& name) {
  RETURN_IF_ERROR(Expect("("));
  const Token& place = Peek();
  ASSIGN_OR_RETURN(Type type, TypeWord());
  if (name.text == "sizeof") {
    RETURN_IF_ERROR(Expect(")"));
    return Parsed{c_.I64(ByteSize(type))};
  }
  RETURN_IF_ERROR(Expect(","));
  ASSIGN_OR_RETURN(Parsed value, ParseExpr());
  RETURN_IF_ERROR(Expect(")"));
  value = Settle(value);
  if (value.e.type() == type) {
    return ErrorAt(place, StrCat("cast of ", TypeName(type), " to itself"));
  }
  return Parsed{c_.Cast(type, value.e)};
}

absl::StatusOr<Parsed> ExpressionParser::ParseCall(const Token& name) {
  if (name.text == "cast" || name.text == "sizeof") return ParseCastOrSize(name);
  const std::optional<Type> type = ir::ParseType(name.text);
  const bool is_min_max = name.text == "min" || name.text == "max";
  const PureIntrinsic* intrinsic = FindPureIntrinsic(name.text);
  if (const ExternNode* callee = FindExtern(name.text); callee != nullptr && !in_attribute_) {
    if (!callee->result) {
      return ErrorAt(
          name, StrCat(callee->name, " has no result: it is called as a statement of its own"));
    }
    ASSIGN_OR_RETURN(const Expr call, ParseExternCall(name, callee));
    return Parsed{call};
  }
  if (!type && !is_min_max && name.text != "select" && intrinsic == nullptr) {
    if (in_attribute_) {
      // A function of the attribute's own language.
      ASSIGN_OR_RETURN(const Expr call, ParseInstruction(name));
      return Parsed{call};
    }
    return ErrorAt(name, StrCat("no function is named '", name.text, "': expected one of ",
                                absl::StrJoin(PureIntrinsics(), ", ",
                                              [](std::string* out, const PureIntrinsic& row) {
                                                StrAppend(out, row.name);
                                              }),
                                ", min, max, select, cast or a type (an instruction is called "
                                "as a statement of its own)"));
  }
  ASSIGN_OR_RETURN(std::vector<Argument> arguments, ParseArguments());
  const size_t arity = type                    ? 1
                       : is_min_max            ? 2
                       : name.text == "select" ? 3
                                               : static_cast<size_t>(intrinsic->arity);
  if (arguments.size() != arity) {
    return ErrorAt(name,
                   StrCat(name.text, " takes ", arity, " arguments, found ", arguments.size()));
  }
  Parsed& first = arguments[0].value;
  if (type) {
    // f16(1.5): a literal of that type; of anything else, a cast.
    if (first.e.type() == *type && !first.flexible) return first;
    if (!first.flexible) return Parsed{c_.Cast(*type, first.e)};
    if (!CanRetype(first.e, *type)) {
      return ErrorAt(*arguments[0].place, Misfit(first.e, *type, "this literal"));
    }
    return Parsed{Retype(first.e, *type)};
  }
  if (name.text == "select") {
    if (first.e.type() != Type::kI1) {
      return ErrorAt(*arguments[0].place,
                     StrCat("expected a condition, found ", TypeName(first.e.type())));
    }
    Argument& a = arguments[1];
    Argument& b = arguments[2];
    if (a.value.flexible && b.value.flexible) {
      a.value = Settle(a.value);
      b.value = Settle(b.value);
    }
    RETURN_IF_ERROR(Unify(*a.place, "select", a, b));
    return Parsed{c_.Select(first.e, a.value.e, b.value.e)};
  }
  if (arity == 2) RETURN_IF_ERROR(Unify(name, name.text, arguments[0], arguments[1]));
  if (is_min_max) {
    if (first.e.type() == Type::kI1) return ErrorAt(name, StrCat(name.text, " of conditions"));
    const ExprKind kind = name.text == "min" ? ExprKind::kMin : ExprKind::kMax;
    return Parsed{c_.Binary(kind, first.e, arguments[1].value.e),
                  first.flexible && arguments[1].value.flexible};
  }
  std::vector<Expr> operands;
  for (const Argument& argument : arguments) operands.push_back(Settle(argument.value).e);
  if (!IsFloat(operands[0].type())) {
    return ErrorAt(*arguments[0].place,
                   StrCat(name.text, " takes floats, found ", TypeName(operands[0].type())));
  }
  return Parsed{c_.Call(operands[0].type(), name.text, operands)};
}

}  // namespace polynao::ir
