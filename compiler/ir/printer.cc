#include <cmath>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "compiler/ir/buffer_names.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/reserved.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::ir {
namespace {

// Binding strength, weakest first; a subexpression weaker than its place is put in parentheses.
enum Precedence {
  kLowest,
  kOrLevel,
  kAndLevel,
  kEqual,
  kCompare,
  kBitOr,
  kBitXor,
  kBitAnd,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kAtom
};

struct Operator {
  std::string_view text;  // empty: printed as a function, min(a, b)
  Precedence precedence;
};

Operator OperatorOf(ExprKind kind) {
  switch (kind) {
    case ExprKind::kAdd:
      return {"+", kSum};
    case ExprKind::kSub:
      return {"-", kSum};
    case ExprKind::kMul:
      return {"*", kProduct};
    case ExprKind::kDiv:
      return {"/", kProduct};
    case ExprKind::kMod:
      return {"%", kProduct};
    case ExprKind::kBitOr:
      return {"|", kBitOr};
    case ExprKind::kBitXor:
      return {"^", kBitXor};
    case ExprKind::kBitAnd:
      return {"&", kBitAnd};
    case ExprKind::kShiftLeft:
      return {"<<", kShift};
    case ExprKind::kShiftRight:
      return {">>", kShift};
    case ExprKind::kEq:
      return {"==", kEqual};
    case ExprKind::kNe:
      return {"!=", kEqual};
    case ExprKind::kLt:
      return {"<", kCompare};
    case ExprKind::kLe:
      return {"<=", kCompare};
    case ExprKind::kAnd:
      return {"&&", kAndLevel};
    case ExprKind::kOr:
      return {"||", kOrLevel};
    default:
      return {"", kAtom};
  }
}

// Whether the parser gives a bare literal the type of `e` if its place does not decide the type.
bool HasDefaultLiteralType(Expr e) {
  return e.type() == (IsFloat(e.type()) ? Type::kF32 : Type::kI32) || e.type() == Type::kI1;
}

class Printer {
 public:
  std::string PrintFunction(const Function& f) {
    const auto buffers = BufferNames(f);
    for (Attribute attribute : f.attributes) {
      if (attribute.key == "may_alias") {
        // A pass may have removed an allocation, whose name no text may have then.
        std::erase_if(attribute.values, [&](const AttributeValue& value) {
          const auto* name = std::get_if<std::string>(&value);
          return name != nullptr && !buffers.contains(*name);
        });
        if (attribute.values.empty()) continue;
      }
      // Attributes may name scalar parameters, which are bound below under their own names.
      StrAppend(&out_, "@", attribute.key);
      if (!attribute.values.empty()) {
        StrAppend(&out_, "(",
                  absl::StrJoin(attribute.values, ", ",
                                [&](std::string* out, const AttributeValue& value) {
                                  StrAppend(out, Value(value));
                                }),
                  ")");
      }
      StrAppend(&out_, "\n");
    }
    StrAppend(&out_, "func ", f.name, "(");
    Params(f.params);
    StrAppend(&out_, ")");
    BracedBody(f.body);
    return std::move(out_);
  }

  std::string PrintExtern(const ExternNode& declared) {
    StrAppend(&out_, "extern ", EffectName(declared.effect), " func ", declared.name, "(");
    Params(declared.params);
    StrAppend(&out_, ")");
    if (declared.result) StrAppend(&out_, " -> ", TypeName(*declared.result));
    if (declared.value) StrAppend(&out_, " = ", Text(declared.value, kLowest, true));
    if (declared.body) {
      BracedBody(declared.body);
    } else {
      StrAppend(&out_, "\n");
    }
    return std::move(out_);
  }

  std::string PrintStmt(Stmt s) {
    Block(s);
    return std::move(out_);
  }

  std::string PrintFirstLine(Stmt s) {
    first_line_only_ = true;
    Block(s);
    return out_.substr(0, out_.find('\n'));
  }

  std::string PrintExpr(Expr e) { return Text(e, kLowest, false); }

 private:
  void BracedBody(Stmt body) {
    StrAppend(&out_, " {\n");
    ++indent_;
    Block(body);
    --indent_;
    StrAppend(&out_, "}\n");
  }

  // Binds and prints parameters.
  void Params(const std::vector<Param>& params) {
    for (const Param& param : params) {
      if (param.var) Bind(param.var.node(), param.var.name());
      if (param.buffer) Bind(param.buffer.node(), param.buffer->name);
    }
    bool first = true;
    for (const Param& param : params) {
      if (!first) StrAppend(&out_, ", ");
      first = false;
      if (param.var) {
        StrAppend(&out_, NameOf(param.var.node(), param.var.name()), ": ",
                  TypeName(param.var.type()));
        if (!param.scope.empty()) StrAppend(&out_, " @", param.scope);
      } else {
        StrAppend(&out_, Declaration(param.buffer));
        if (param.access == Access::kIn) StrAppend(&out_, " in");
        if (param.access == Access::kOut) StrAppend(&out_, " out");
      }
    }
  }

  std::string Value(const AttributeValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) return QuotedText(*text);
    return Text(std::get<Expr>(value), kLowest, false);
  }

  static std::string QuotedText(std::string_view text) {
    std::string quoted = "\"";
    for (char c : text) {
      if (c == '"' || c == '\\') quoted += '\\';
      if (c == '\n') {
        quoted += "\\n";
      } else {
        quoted += c;
      }
    }
    return quoted + "\"";
  }

  void Bind(const void* node, std::string_view name) {
    std::string unique(name);
    if (unique.empty() || IsReserved(unique)) unique += "_";
    for (int i = 1; taken_.contains(unique); ++i) unique = StrCat(name, "_", i);
    taken_.insert(unique);
    names_[node] = std::move(unique);
  }

  void Unbind(const void* node) {
    auto it = names_.find(node);
    taken_.erase(it->second);
    names_.erase(it);
  }

  std::string NameOf(const void* node, std::string_view name) const {
    auto it = names_.find(node);
    return it == names_.end() ? std::string(name) : it->second;
  }

  std::string Declaration(Buffer buffer) {
    std::string text = StrCat(NameOf(buffer.node(), buffer->name), ": ", TypeName(buffer->type),
                              "[", List(buffer->extents), "]");
    if (buffer->scope != "gmem") StrAppend(&text, " @", buffer->scope);
    return text;
  }

  std::string List(absl::Span<const Expr> list) {
    return absl::StrJoin(
        list, ", ", [&](std::string* out, Expr e) { StrAppend(out, Text(e, kLowest, false)); });
  }

  // With `typed_place`, the place gives a bare literal the type of `e`.
  std::string Literal(Expr e, bool typed_place) {
    if (e.type() == Type::kI1) return e.int_value() ? "true" : "false";
    std::string text;
    if (e.Is(ExprKind::kIntImm)) {
      text = IntText(e.type(), e.int_value());
    } else if (std::isnan(e.float_value())) {
      return StrCat(TypeName(e.type()), "(nan)");
    } else if (std::isinf(e.float_value())) {
      return StrCat(TypeName(e.type()), e.float_value() < 0 ? "(-inf)" : "(inf)");
    } else {
      text = ShortestDecimal(e.type(), e.float_value());
    }
    if (typed_place || HasDefaultLiteralType(e)) return text;
    return StrCat(TypeName(e.type()), "(", text, ")");
  }

  // The shortest decimal that rounds back to `value` in `type`, always with a point or exponent.
  static std::string ShortestDecimal(Type type, double value) {
    std::string text;
    for (int digits = 1; digits <= 17; ++digits) {
      text = absl::StrFormat("%.*g", digits, value);
      double back = 0;
      if (absl::SimpleAtod(text, &back) && RoundFloat(type, back) == value) break;
    }
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }

  std::string Text(Expr e, Precedence place, bool typed_place) {
    switch (e.kind()) {
      case ExprKind::kIntImm:
      case ExprKind::kFloatImm:
        return Literal(e, typed_place);
      case ExprKind::kVar:
        return NameOf(e.node(), e.name());
      case ExprKind::kCast:
        return StrCat("cast(", TypeName(e.type()), ", ", Text(e.operand(0), kLowest, false), ")");
      case ExprKind::kNot:
        return StrCat("!", Text(e.operand(0), kUnary, false));
      case ExprKind::kSelect: {
        const auto [a, b] = Pair(e.operand(1), e.operand(2), kLowest, kLowest);
        return StrCat("select(", Text(e.operand(0), kLowest, false), ", ", a, ", ", b, ")");
      }
      case ExprKind::kLet: {
        const std::string value = Text(e.operand(0), kLowest, true);
        Bind(e.var().node(), e.var().name());
        std::string text =
            StrCat("(let ", NameOf(e.var().node(), ""), ": ", TypeName(e.var().type()), " = ",
                   value, " in ", Text(e.operand(1), kLowest, false), ")");
        Unbind(e.var().node());
        return text;
      }
      case ExprKind::kLoad:
        return StrCat(NameOf(e.buffer(), e.buffer()->name), "[", List(e.operands()), "]");
      case ExprKind::kAddress:
        return StrCat("&", NameOf(e.buffer(), e.buffer()->name), "[", List(e.operands()), "]");
      case ExprKind::kCall: {
        if (e.callee() != nullptr) {
          return StrCat(e.name(), "(",
                        absl::StrJoin(e.operands(), ", ",
                                      [&](std::string* out, Expr x) {
                                        StrAppend(out, Text(x, kLowest, true));
                                      }),
                        ")");
        }
        // Arguments of instructions are i64 unless they say otherwise.
        const bool pure = IsPureIntrinsic(e.name());
        return StrCat(e.name(), "(",
                      absl::StrJoin(e.operands(), ", ",
                                    [&](std::string* out, Expr x) {
                                      const bool bare = !pure && x.type() == Type::kI64;
                                      std::string text = Text(x, kLowest, bare);
                                      if (!pure && x.IsConst() && x.type() == Type::kI32) {
                                        text = StrCat("i32(", text, ")");
                                      }
                                      StrAppend(out, text);
                                    }),
                      ")");
      }
      default:
        break;
    }
    if (e.Is(ExprKind::kBitXor) && e.operand(1) == e.context().Int(e.type(), -1)) {
      // The parser reads ~x as x ^ -1.
      return StrCat("~", Text(e.operand(0), kUnary, typed_place));
    }
    const Operator op = OperatorOf(e.kind());
    if (op.text.empty()) {
      const auto [a, b] = Pair(e.operand(0), e.operand(1), kLowest, kLowest);
      return StrCat(e.kind() == ExprKind::kMin ? "min(" : "max(", a, ", ", b, ")");
    }
    // All infix operators associate to the left.
    const auto [a, b] =
        Pair(e.operand(0), e.operand(1), op.precedence, static_cast<Precedence>(op.precedence + 1));
    std::string text = StrCat(a, " ", op.text, " ", b);
    return op.precedence < place ? StrCat("(", text, ")") : text;
  }

  // Two operands of one type: a literal next to an operand with a type takes that type.
  std::pair<std::string, std::string> Pair(Expr a, Expr b, Precedence place_a, Precedence place_b) {
    return {Text(a, place_a, !ParsesFlexibly(b)), Text(b, place_b, !ParsesFlexibly(a))};
  }

  // Whether the text of `e` consists of bare literals only, so that the parser leaves its type open.
  bool ParsesFlexibly(Expr e) {
    if (e.IsConst()) return true;
    if (e.kind() < ExprKind::kAdd || e.kind() > ExprKind::kShiftRight) return false;
    return ParsesFlexibly(e.operand(0)) && ParsesFlexibly(e.operand(1));
  }

  void Line(std::string_view text) { StrAppend(&out_, std::string(2 * indent_, ' '), text, "\n"); }

  // The statements of `s` as lines of the current block.
  void Block(Stmt s) {
    if (first_line_only_ && !out_.empty()) return;
    if (s.Is(StmtKind::kSeq)) {
      for (size_t i = 0; i < s.children().size(); ++i) {
        Statement(s.children()[i], i + 1 == s.children().size());
      }
    } else {
      Statement(s, true);
    }
  }

  void Braced(std::string_view head, Stmt body) {
    Line(StrCat(head, " {"));
    ++indent_;
    Block(body);
    --indent_;
    Line("}");
  }

  // `last`: whether `s` is the last statement of its block. Only then may a let or an allocation go
  // without braces, since its scope is the rest of the block.
  void Statement(Stmt s, bool last) {
    switch (s.kind()) {
      case StmtKind::kFor: {
        const std::string min = Text(s.min(), kLowest, true);
        const std::string extent = Text(s.extent(), kLowest, true);
        Bind(s.var().node(), s.var().name());
        std::string var = NameOf(s.var().node(), "");
        std::string type;
        if (s.var().type() != Type::kI32) type = StrCat(": ", TypeName(s.var().type()));
        if (s.for_kind() == ForKind::kThread) {
          std::string axis;
          if (s.name() != var) axis = StrCat(" = ", QuotedText(s.name()));
          const std::string bounds = s.min().IsInt(0) ? extent : StrCat(min, ", ", extent);
          Braced(StrCat("thread (", var, type, axis, ", ", bounds, ")"), s.body());
        } else {
          static constexpr std::string_view kKeywords[] = {"for", "parallel", "unroll",
                                                           "vectorize"};
          Braced(StrCat(kKeywords[static_cast<int>(s.for_kind())], " (", var, type, ", ", min, ", ",
                        extent, ")"),
                 s.body());
        }
        Unbind(s.var().node());
        return;
      }
      case StmtKind::kIf: {
        Line(StrCat("if (", Text(s.cond(), kLowest, false), ") {"));
        ++indent_;
        Block(s.then_case());
        --indent_;
        if (!s.else_case().IsEmpty()) {
          Line("} else {");
          ++indent_;
          Block(s.else_case());
          --indent_;
        }
        Line("}");
        return;
      }
      case StmtKind::kLet:
      case StmtKind::kAllocate: {
        if (!last) {
          Line("{");
          ++indent_;
        }
        const void* node;
        if (s.Is(StmtKind::kLet)) {
          const std::string value = Text(s.value(), kLowest, true);
          node = s.var().node();
          Bind(node, s.var().name());
          Line(StrCat("let ", NameOf(node, ""), ": ", TypeName(s.var().type()), " = ", value));
        } else {
          node = s.buffer().node();
          Bind(node, s.buffer()->name);
          Line(StrCat("allocate ", Declaration(s.buffer())));
        }
        Block(s.body());
        Unbind(node);
        if (!last) {
          --indent_;
          Line("}");
        }
        return;
      }
      case StmtKind::kStore:
        Line(StrCat(NameOf(s.buffer().node(), s.buffer()->name), "[", List(s.indices()),
                    "] = ", Text(s.value(), kLowest, true)));
        return;
      case StmtKind::kPragma: {
        std::string head = StrCat("pragma ", QuotedText(s.name()));
        if (!s.operands().empty()) StrAppend(&head, " (", List(s.operands()), ")");
        Braced(head, s.body());
        return;
      }
      case StmtKind::kEvaluate:
        Line(Text(s.value(), kLowest, false));
        return;
      case StmtKind::kSeq:
        Line("{");
        ++indent_;
        Block(s);
        --indent_;
        Line("}");
        return;
    }
  }

  bool first_line_only_ = false;
  std::string out_;
  int indent_ = 0;
  absl::flat_hash_map<const void*, std::string> names_;
  absl::flat_hash_set<std::string> taken_;
};

}  // namespace

namespace {

// The declarations of what `functions` call, each once, and a blank line.
std::string Declarations(absl::Span<const Function> functions) {
  absl::flat_hash_set<std::string_view> seen;
  std::string text;
  for (const Function& function : functions) {
    for (const ExternNode* callee : ExternsOf(function)) {
      if (seen.insert(callee->text).second) StrAppend(&text, callee->text);
    }
  }
  if (!text.empty()) StrAppend(&text, "\n");
  return text;
}

}  // namespace

std::string Print(const Function& function) {
  return StrCat(Declarations(absl::MakeConstSpan(&function, 1)), Printer().PrintFunction(function));
}

std::string Print(const Module& module) {
  return StrCat(Declarations(module.functions),
                absl::StrJoin(module.functions, "\n", [](std::string* out, const Function& f) {
                  StrAppend(out, Printer().PrintFunction(f));
                }));
}

std::string PrintExtern(const ExternNode& declared) { return Printer().PrintExtern(declared); }

std::string Print(Stmt s) { return Printer().PrintStmt(s); }

std::string Print(Expr e) { return Printer().PrintExpr(e); }

std::string PrintFirstLine(Stmt s) { return Printer().PrintFirstLine(s); }

}  // namespace polynao::ir
