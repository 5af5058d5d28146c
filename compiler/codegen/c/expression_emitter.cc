// The part of FunctionEmitter that emits expressions: which ones get a variable, and the C text of each.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/check.h"
#include "compiler/codegen/c/function_emitter.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Type;

namespace {

// Larger expressions, in nodes, get a variable if they are used twice.
constexpr int kTinyExpression = 8;

// Of a buffer whose offsets are computed in i32: half of what that holds.
constexpr int64_t kMostElements = int64_t{1} << 30;

}  // namespace

absl::StatusOr<Text> FunctionEmitter::Operand(Expr e, bool math) {
  ScopedNames scope(this);
  CountUses({e});
  return EmitExpr(e, math);
}

void FunctionEmitter::CountUses(absl::Span<const Expr> roots) {
  use_counts_.clear();
  absl::flat_hash_set<Expr> seen;
  for (Expr root : roots) {
    ++use_counts_[root];
    if (!seen.insert(root).second) continue;
    ForEachExpr(root, [&](Expr e) {
      if (e != root && !seen.insert(e).second) return;
      for (Expr operand : e.operands()) ++use_counts_[operand];
    });
  }
}

int FunctionEmitter::TreeSize(Expr e) {
  auto [it, added] = tree_sizes_.try_emplace(e, 1);
  if (!added) return it->second;
  int size = 1;
  for (Expr operand : e.operands()) {
    size = std::min(size + TreeSize(operand), kProvableExpression + 1);
  }
  return tree_sizes_[e] = size;
}

bool FunctionEmitter::IsExact(Expr e) {
  return IsMathematical(e.type()) && TreeSize(e) <= kProvableExpression &&
         !analyzer_.CanOverflow(e);
}

absl::StatusOr<Text> FunctionEmitter::EmitExpr(Expr e, bool math) {
  math = math || IsExact(e);
  // Leaves and loads have the same text whether or not arithmetic wraps.
  const bool same = e.operands().empty() || e.Is(ExprKind::kLoad);
  const Key key(e, math && !same);
  if (auto it = variables_.find(key); it != variables_.end()) return Text{it->second};
  // A variable that an index or a condition computed has not wrapped, so it holds the value.
  if (auto it = variables_.find({e, true}); it != variables_.end()) return Text{it->second};
  absl::StatusOr<Text> text = EmitUnshared(e, math);
  if (!text.ok()) return text;
  auto uses = use_counts_.find(e);
  const bool share =
      uses != use_counts_.end() && uses->second > 1 &&
      (TreeSize(e) > kTinyExpression || e.Is(ExprKind::kLet) || e.callee() != nullptr);
  if (!share) return text;
  return NewVariable(key, text->text);
}

Text FunctionEmitter::NewVariable(const Key& key, const std::string& value) {
  const std::string name = NewName(StrCat("v", ++variable_count_));
  Line(StrCat("const ", ValueType(key.first.type()), " ", name, " = ", value, ";"));
  variables_[key] = name;
  made_.push_back(key);
  return {name};
}

absl::StatusOr<std::string> FunctionEmitter::Element(Buffer buffer,
                                                     absl::Span<const Expr> indices) {
  Text offset{"0"};
  bool is_zero = true, is_wide = false;
  for (size_t d = DroppedDimensions(buffer); d < indices.size(); ++d) {
    if (is_zero && indices[d].IsInt(0)) continue;
    ASSIGN_OR_RETURN(const Text index, EmitExpr(indices[d], true));
    const bool wide = indices[d].type() == Type::kI64 && Has64Bits(indices[d]);
    if (!is_zero) {
      const bool apart = HasLargeTerms(indices[d], /*in_64_bits=*/is_wide);
      offset = {StrCat(offset.At(kMultiplicative), " * ", extents_.at(buffer.node())[d], " + ",
                       index.At(apart ? kMultiplicative : kAdditive)),
                kAdditive};
      is_wide |= wide;
      continue;
    }
    is_zero = false;
    offset = index;
    // Products of this index with further extents may need 64 bits.
    is_wide = wide || !FitsI32(buffer);
    if (d + 1 < indices.size() && !wide && !FitsI32(buffer)) {
      offset = {StrCat("(int64_t)", index.At(kUnary)), kUnary};
    }
  }
  return StrCat(names_.at(buffer.node()), "[", offset.text, "]");
}

std::string FunctionEmitter::LoadedValue(Type type, const std::string& element) {
  if (type == Type::kI1) return StrCat("(", element, " != 0)");
  if (!IsNarrowFloat(type)) return element;
  return StrCat("nao_f32_of_", ir::TypeName(type), "(", element, ")");
}

size_t FunctionEmitter::DroppedDimensions(Buffer buffer) const {
  const auto it = dropped_dimensions_.find(buffer.node());
  return it == dropped_dimensions_.end() ? 0 : it->second;
}

bool FunctionEmitter::MayOverlap(Buffer a, Buffer b) const {
  return a == b || (aliases_.Group(a) && aliases_.Group(a) == aliases_.Group(b));
}

bool FunctionEmitter::HasLargeTerms(Expr index, bool in_64_bits) {
  if (in_64_bits && ir::BitWidth(index.type()) < 64) return false;
  if (TreeSize(index) > kProvableExpression) return true;
  const int64_t most = ir::BitWidth(index.type()) < 64 ? kMostElements : int64_t{1} << 62;
  for (Expr e = index; e.Is(ExprKind::kAdd) || e.Is(ExprKind::kSub);) {
    e = e.operand(0);
    const arith::ConstRange range = analyzer_.Range(e);
    if (range.min < -most || range.max > most) return true;
  }
  return false;
}

bool FunctionEmitter::FitsI32(Buffer buffer) {
  int64_t elements = 1;
  for (Expr extent : buffer->extents) {
    if (!extent.Is(ExprKind::kIntImm)) return false;
    if (extent.int_value() <= 0) return true;
    if (extent.int_value() > kMostElements) return false;
    elements *= extent.int_value();
    if (elements > kMostElements) return false;
  }
  return true;
}

absl::StatusOr<Text> FunctionEmitter::EmitUnshared(Expr e, bool math) {
  const Type type = e.type();
  switch (e.kind()) {
    case ExprKind::kIntImm: {
      const bool negative = ir::IntLess(type, e.int_value(), 0);
      return Text{IntLiteral(type, e.int_value()), negative ? kUnary : kPrimary};
    }
    case ExprKind::kFloatImm:
      // A cast or a sign may stand in front.
      return Text{FloatLiteral(type, e.float_value()), kUnary};
    case ExprKind::kVar:
      return Text{names_.at(e.node())};
    case ExprKind::kCast: {
      ASSIGN_OR_RETURN(const Text value, EmitExpr(e.operand(0), math));
      return Cast(value, e.operand(0), type);
    }
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return EmitAndOr(e, math);
    case ExprKind::kNot: {
      ASSIGN_OR_RETURN(const Text value, EmitExpr(e.operand(0), math));
      // As loose as a comparison, so that `(!a) == b` has its parentheses.
      return Text{StrCat("!", value.At(kPrimary)), kEquality};
    }
    case ExprKind::kSelect: {
      ASSIGN_OR_RETURN(const Text condition, EmitExpr(e.operand(0), true));
      return EmitSelect(e, condition, math);
    }
    case ExprKind::kLet: {
      arith::Analyzer::Scope known(analyzer_);
      ASSIGN_OR_RETURN(const std::string name, EmitLet(e.var(), e.operand(0)));
      ScopedNames scope(this);
      if (!BodyUses(e)) Line(StrCat("(void)", name, ";"));
      return EmitExpr(e.operand(1), math);
    }
    case ExprKind::kLoad: {
      ASSIGN_OR_RETURN(const std::string element, Element(Buffer(e.buffer()), e.operands()));
      return Text{LoadedValue(type, element)};
    }
    case ExprKind::kAddress:
      return InvalidInput(function_.name, ": the address of an element of '", e.buffer()->name,
                          "' is an argument of tensor instructions, which the ", target_,
                          " target does not have");
    case ExprKind::kCall:
      return EmitCall(e, math);
    default:
      break;
  }
  POLYNAO_CHECK(IsBinary(e.kind())) << ExprKindName(e.kind());
  ASSIGN_OR_RETURN(const Text value, EmitBinary(e, math));
  if (!IsNarrowArithmetic(e)) return value;
  return Text{StrCat("nao_round_", ir::TypeName(type), "(", value.text, ")")};
}

bool FunctionEmitter::BodyUses(Expr let) {
  bool uses = false;
  ForEachExpr(let.operand(1), [&](Expr x) { uses |= x == let.var(); });
  return uses;
}

bool FunctionEmitter::IsNarrowArithmetic(Expr e) {
  return IsNarrowFloat(e.type()) && e.kind() >= ExprKind::kAdd && e.kind() <= ExprKind::kDiv;
}

absl::StatusOr<Text> FunctionEmitter::EmitUnrounded(Expr e) {
  if (use_counts_.at(e) == 1) {
    if (IsNarrowArithmetic(e)) return EmitBinary(e, false);
    if (e.Is(ExprKind::kCast) && e.operand(0).type() == Type::kF32) {
      return EmitExpr(e.operand(0), false);
    }
  }
  return EmitExpr(e, false);
}

absl::StatusOr<Text> FunctionEmitter::EmitBinary(Expr e, bool math) {
  ASSIGN_OR_RETURN(const Text a, EmitExpr(e.operand(0), math));
  ASSIGN_OR_RETURN(const Text b, EmitExpr(e.operand(1), math));
  return Binary(e, a, b, math);
}

bool FunctionEmitter::Has64Bits(Expr e) {
  if (e.Is(ExprKind::kSelect)) return Has64Bits(e.operand(1)) || Has64Bits(e.operand(2));
  if (e.Is(ExprKind::kLet)) return Has64Bits(e.operand(1));
  return !e.Is(ExprKind::kIntImm);
}

Text FunctionEmitter::Binary(Expr e, Text a, const Text& b, bool math) {
  const Type type = e.operand(0).type();
  if (type == Type::kI64 && !Has64Bits(e.operand(0)) && !Has64Bits(e.operand(1))) {
    a = {StrCat("(int64_t)", a.At(kUnary)), kUnary};
  }
  const auto infix = [&](Precedence precedence, std::string_view op) {
    // The second operand of - / and % must bind tighter; for + and * too, since floats and
    // overflow do not associate.
    const auto tighter = static_cast<Precedence>(precedence + 1);
    return Text{StrCat(a.At(precedence), " ", op, " ", b.At(tighter)), precedence};
  };
  const auto helper = [&](std::string_view name) {
    return Text{StrCat("nao_", name, "_", HelperSuffix(type), "(", a.text, ", ", b.text, ")")};
  };
  // Integers of 8 and 16 bits are computed as int and cut to their type.
  const auto narrow = [&](Text text) {
    if (ir::IsFloat(type) || ir::BitWidth(type) >= 32) return text;
    return Text{StrCat("(", ValueType(type), ")", text.At(kUnary)), kUnary};
  };
  const bool helper_wraps = IsMathematical(type) && !math;
  switch (e.kind()) {
    case ExprKind::kAdd:
      return helper_wraps ? helper("add") : narrow(infix(kAdditive, "+"));
    case ExprKind::kSub:
      return helper_wraps ? helper("sub") : narrow(infix(kAdditive, "-"));
    case ExprKind::kMul:
      // A product of two of these does not fit in an int.
      if (type == Type::kU16) a = {StrCat("(uint32_t)", a.At(kUnary)), kUnary};
      return helper_wraps ? helper("mul") : narrow(infix(kMultiplicative, "*"));
    case ExprKind::kDiv:
    case ExprKind::kMod: {
      const std::string_view op = e.Is(ExprKind::kDiv) ? "/" : "%";
      const bool plain =
          ir::IsFloat(type) || ir::IsUnsigned(type) ||
          (math && IsMathematical(type) && e.operand(1).Is(ExprKind::kIntImm) &&
           e.operand(1).int_value() > 0 && TreeSize(e.operand(0)) <= kProvableExpression &&
           analyzer_.Range(e.operand(0)).min >= 0);
      if (plain) return narrow(infix(kMultiplicative, op));
      return narrow(helper(e.Is(ExprKind::kDiv) ? "div" : "mod"));
    }
    case ExprKind::kBitAnd:
    case ExprKind::kBitOr:
    case ExprKind::kBitXor: {
      const std::string_view op = e.Is(ExprKind::kBitAnd)  ? "&"
                                  : e.Is(ExprKind::kBitOr) ? "|"
                                                           : "^";
      // C's precedence of these operators surprises readers: composite operands get parentheses, and so
      // does the result, which is therefore marked as binding like a comparison.
      return Text{StrCat(a.At(kUnary), " ", op, " ", b.At(kUnary)), kEquality};
    }
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight: {
      const bool is_left = e.Is(ExprKind::kShiftLeft);
      // In C, shifts by the width or more are undefined, and so are left shifts of negative numbers.
      const Expr count = e.operand(1);
      const bool in_range = count.Is(ExprKind::kIntImm) && count.int_value() >= 0 &&
                            count.int_value() < ir::BitWidth(type);
      if (in_range && (ir::IsUnsigned(type) || !is_left)) {
        const Text shift{StrCat(a.At(kUnary), is_left ? " << " : " >> ", count.int_value()),
                         kEquality};
        return is_left ? narrow(shift) : shift;
      }
      return Text{StrCat("nao_", is_left ? "shl" : "shr", "_", ir::TypeName(type), "(", a.text,
                         ", ", b.text, ")")};
    }
    case ExprKind::kMin:
      return helper("min");
    case ExprKind::kMax:
      return helper("max");
    case ExprKind::kEq:
    case ExprKind::kNe: {
      // An operand that compares itself needs parentheses for the reader (and the compiler).
      const std::string_view op = e.Is(ExprKind::kEq) ? "==" : "!=";
      return Text{StrCat(a.At(kAdditive), " ", op, " ", b.At(kAdditive)), kEquality};
    }
    case ExprKind::kLt:
    case ExprKind::kLe: {
      const std::string_view op = e.Is(ExprKind::kLt) ? "<" : "<=";
      return Text{StrCat(a.At(kAdditive), " ", op, " ", b.At(kAdditive)), kRelational};
    }
    default:
      POLYNAO_UNREACHABLE(ExprKindName(e.kind()));
  }
}

Text FunctionEmitter::Cast(const Text& value, Expr from_expr, Type to) {
  const Type from = from_expr.type();
  if (from == to) return value;
  const auto c_cast = [&](std::string_view type) {
    return Text{StrCat("(", type, ")", value.At(kUnary)), kUnary};
  };
  if (to == Type::kI1) {
    if (!ir::IsFloat(from)) return {StrCat(value.At(kAdditive), " != 0"), kEquality};
    // Not `!= 0`, which a NaN would satisfy.
    return {StrCat("fabs(", value.text, ") > 0"), kRelational};
  }
  if (ir::IsInt(from) && ir::IsInt(to)) return c_cast(ValueType(to));
  if (ir::IsFloat(from) && ir::IsInt(to)) {
    return {StrCat("nao_to_", ir::TypeName(to), "(", value.text, ")")};
  }
  if (!IsNarrowFloat(to)) {
    // f16 and bf16 values are floats already.
    if (to == Type::kF32 && IsNarrowFloat(from)) return value;
    return c_cast(ValueType(to));
  }
  const std::string round = StrCat("nao_round_", ir::TypeName(to), "(");
  if (ir::IsFloat(from) && from != Type::kF64) return {StrCat(round, value.text, ")")};
  // 64-bit integers do not all fit in a double.
  const std::string wide = !ir::IsInt(from) ? value.text
                           : ir::BitWidth(from) == 64
                               ? StrCat("nao_odd_", ir::TypeName(from), "(", value.text, ")")
                               : c_cast("double").text;
  return {StrCat(round, "nao_odd_f32(", wide, "))")};
}

absl::StatusOr<Text> FunctionEmitter::EmitExternCall(Expr e) {
  if (!has_externs_) {
    return InvalidInput(function_.name, ": call of '", e.name(), "': the ", target_,
                        " target has no extern functions");
  }
  std::string arguments;
  for (Expr operand : e.operands()) {
    std::string argument;
    if (operand.Is(ExprKind::kAddress)) {
      ASSIGN_OR_RETURN(argument, Element(Buffer(operand.buffer()), operand.operands()));
      argument = StrCat("&", argument);
    } else {
      ASSIGN_OR_RETURN(Text value, EmitExpr(operand, true));
      argument = std::move(value.text);
    }
    StrAppend(&arguments, arguments.empty() ? "" : ", ", argument);
  }
  Text call = {StrCat(e.name(), "(", arguments, ")")};
  // A function that is defined elsewhere returns a float.
  if (IsNarrowFloat(e.type()))
    call = {StrCat("nao_round_", ir::TypeName(e.type()), "(", call.text, ")")};
  return call;
}

absl::StatusOr<Text> FunctionEmitter::EmitCall(Expr e, bool math) {
  if (e.callee() != nullptr) return EmitExternCall(e);
  const std::string_view name = e.name();
  if (!ir::IsPureIntrinsic(name)) {
    return InvalidInput(function_.name, ": call of '", name, "': the ", target_,
                        " target has no tensor instructions; expected a pure intrinsic "
                        "such as exp");
  }
  const std::string_view f = e.type() == Type::kF64 ? "" : "f";
  std::string arguments;
  for (Expr operand : e.operands()) {
    ASSIGN_OR_RETURN(const Text value, EmitExpr(operand, math));
    StrAppend(&arguments, arguments.empty() ? "" : ", ", value.text);
  }
  Text call;
  if (name == "sigmoid") {
    call = {StrCat("nao_sigmoid_", HelperSuffix(e.type()), "(", arguments, ")")};
  } else if (name == "fma" && IsNarrowFloat(e.type())) {
    return Text{StrCat("nao_fma_", ir::TypeName(e.type()), "(", arguments, ")")};
  } else if (name == "rsqrt") {
    call = {StrCat("1 / sqrt", f, "(", arguments, ")"), kMultiplicative};
  } else {
    const std::string_view c_name = name == "abs" ? "fabs" : name == "round" ? "rint" : name;
    call = {StrCat(c_name, f, "(", arguments, ")")};
  }
  if (!IsNarrowFloat(e.type())) return call;
  return Text{StrCat("nao_round_", ir::TypeName(e.type()), "(", call.text, ")")};
}

absl::StatusOr<Text> FunctionEmitter::EmitAndOr(Expr e, bool math) {
  const bool is_and = e.Is(ExprKind::kAnd);
  ASSIGN_OR_RETURN(const Text a, EmitExpr(e.operand(0), math));
  std::vector<CodeLine> outer = std::exchange(lines_, {});
  ++indent_;
  std::optional<ScopedNames> scope(this);
  absl::StatusOr<Text> b = EmitExpr(e.operand(1), math);
  scope.reset();
  --indent_;
  std::vector<CodeLine> inner = std::exchange(lines_, std::move(outer));
  if (!b.ok()) return b;
  if (inner.empty()) {
    // `a && b || c` is right without parentheses, but compilers warn of it.
    const Precedence least = is_and ? kAnd : kOr;
    const auto operand = [&](const Text& text) {
      return text.precedence == least ? text.text : text.At(kEquality);
    };
    return Text{StrCat(operand(a), is_and ? " && " : " || ", operand(*b)), least};
  }
  const std::string name = NewName(StrCat("v", ++variable_count_));
  Line(StrCat("bool ", name, " = ", a.text, ";"));
  Line(StrCat("if (", is_and ? "" : "!", name, ") {"));
  lines_.insert(lines_.end(), inner.begin(), inner.end());
  ++indent_;
  Line(StrCat(name, " = ", b->text, ";"));
  --indent_;
  Line("}");
  return Text{name};
}

absl::StatusOr<Text> FunctionEmitter::EmitSelect(Expr e, const Text& condition, bool math) {
  Text values[2];
  std::vector<CodeLine> lines[2];
  for (bool then_side : {true, false}) {
    std::vector<CodeLine> outer = std::exchange(lines_, {});
    ++indent_;
    std::optional<ScopedNames> scope(this);
    absl::StatusOr<Text> value = EmitExpr(e.operand(then_side ? 1 : 2), math);
    scope.reset();
    --indent_;
    lines[then_side] = std::exchange(lines_, std::move(outer));
    if (!value.ok()) return value;
    values[then_side] = *std::move(value);
  }
  if (lines[0].empty() && lines[1].empty()) {
    return Text{StrCat(condition.At(kOr), " ? ", values[1].At(kOr), " : ", values[0].text),
                kTernary};
  }
  const std::string name = NewName(StrCat("v", ++variable_count_));
  Line(StrCat(ValueType(e.type()), " ", name, ";"));
  Line(StrCat("if (", condition.text, ") {"));
  for (bool then_side : {true, false}) {
    lines_.insert(lines_.end(), lines[then_side].begin(), lines[then_side].end());
    ++indent_;
    Line(StrCat(name, " = ", values[then_side].text, ";"));
    --indent_;
    Line(then_side ? "} else {" : "}");
  }
  return Text{name};
}

}  // namespace polynao::codegen
