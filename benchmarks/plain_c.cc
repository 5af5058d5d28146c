#include "benchmarks/plain_c.h"

#include <algorithm>
#include <bit>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/codegen/c/independent_iterations.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::benchmarks {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;

// Together, of one function.
constexpr int64_t kMostStackBytes = int64_t{1} << 20;

// `name` as a C identifier: "i.outer" is i_outer. Words of C and names that the file uses get an underscore.
std::string CName(std::string_view name) {
  static const auto& taken = *new std::set<std::string>{
      "auto",   "break",   "buffers", "case",     "char",   "const",    "continue", "default",
      "do",     "double",  "else",    "enum",     "exp",    "extern",   "float",    "float_of",
      "goto",   "if",      "inline",  "int",      "log",    "long",     "pow",      "register",
      "return", "short",   "signed",  "scalars",  "sizeof", "sqrt",     "static",   "struct",
      "switch", "typedef", "union",   "unsigned", "void",   "volatile", "while",    "restrict"};
  std::string c_name = absl::StrReplaceAll(ToAbsl(name), {{".", "_"}});
  return taken.contains(c_name) ? c_name + "_" : c_name;
}

class Writer {
 public:
  Writer(const ir::Function& function, const ir::IntValues& integers, const PlainCOptions& options)
      : function_(function), integers_(integers), options_(options), analyzer_(*function.context) {}

  absl::StatusOr<std::string> Write() {
    for (const ir::Param& param : function_.params) {
      if (param.var && ir::IsInt(param.var.type()) && !integers_.contains(param.var)) {
        return InvalidInput("function '", function_.name, "': '", param.name(), "' has no value");
      }
    }
    std::vector<std::string> parameters, arguments;
    int buffers = 0, scalars = 0;
    for (const ir::Param& param : function_.params) {
      if (param.buffer) {
        if (aliases_.Group(param.buffer)) return Unsupported("buffers that overlap");
        ASSIGN_OR_RETURN(const std::string declared, Declare(param.buffer, /*parameter=*/true));
        parameters.push_back(declared);
        arguments.push_back(StrCat("buffers[", buffers++, "]"));
        continue;
      }
      const Type type = param.var.type();
      if (ir::IsFloat(type)) {
        ASSIGN_OR_RETURN(const std::string_view c_type, CType(type));
        parameters.push_back(StrCat(c_type, " ", Bind(param.var.node(), param.name())));
        arguments.push_back(StrCat("float_of(scalars[", scalars, "])"));
      }
      ++scalars;
    }
    RETURN_IF_ERROR(Statement(function_.body, 1));
    const std::string name = CName(function_.name);
    return StrCat(
        "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n\n"
        "__attribute__((noinline)) void ",
        name, "(", absl::StrJoin(parameters, ", "), ") {\n", text_,
        "}\n\n"
        "#ifndef FLOAT_OF\n"
        "#define FLOAT_OF\n"
        "static inline double float_of(int64_t bits) {\n"
        "  double value;\n"
        "  memcpy(&value, &bits, sizeof(value));\n"
        "  return value;\n"
        "}\n"
        "#endif\n\n"
        "int32_t ",
        name, "_entry(void *const *buffers, const int64_t *scalars) {\n  ", name, "(",
        absl::StrJoin(arguments, ", "), ");\n  (void)scalars;\n  return 0;\n}\n");
  }

 private:
  absl::Status Unsupported(std::string_view what) const {
    return absl::UnimplementedError(
        StrCat("function '", function_.name, "' has ", what, ", which plain C does not get"));
  }

  absl::StatusOr<std::string_view> CType(Type type) const {
    switch (type) {
      case Type::kI1:
        return "int";
      case Type::kI8:
        return "int8_t";
      case Type::kU8:
        return "uint8_t";
      case Type::kI16:
        return "int16_t";
      case Type::kU16:
        return "uint16_t";
      case Type::kI32:
        return "int";
      case Type::kI64:
        return "int64_t";
      case Type::kF32:
        return "float";
      case Type::kF64:
        return "double";
      default:
        return Unsupported(StrCat("values of ", ir::TypeName(type)));
    }
  }

  std::string Bind(const void* node, std::string_view name) {
    std::string c_name = CName(name);
    const std::string base = c_name;
    for (int i = 1; names_.contains(c_name); ++i) c_name = StrCat(base, "_", i);
    names_.insert(c_name);
    name_of_[node] = c_name;
    return c_name;
  }

  // With the values of integer parameters, simplified.
  Expr Fold(Expr e) { return analyzer_.Simplify(ir::Substitute(e, Constants())); }

  const ir::VarMap& Constants() {
    if (constants_.empty()) {
      for (const auto& [var, value] : integers_) {
        constants_.emplace(var, function_.context->Int(var.type(), value));
      }
    }
    return constants_;
  }

  absl::StatusOr<std::string> Declare(Buffer buffer, bool parameter) {
    ASSIGN_OR_RETURN(const std::string_view type, CType(buffer->type));
    std::string text = StrCat(type, " ", Bind(buffer.node(), buffer->name));
    int64_t bytes = ir::ByteSize(buffer->type);
    for (size_t d = 0; d < buffer->extents.size(); ++d) {
      ASSIGN_OR_RETURN(const int64_t extent, ir::EvaluateInt(buffer->extents[d], integers_));
      // C has no arrays without elements.
      const int64_t declared = std::max<int64_t>(extent, 1);
      StrAppend(&text, "[", parameter && d == 0 ? "restrict " : "", declared, "]");
      bytes *= declared;
    }
    if (parameter) {
      // A buffer without dimensions is one element.
      if (buffer->extents.empty()) StrAppend(&text, "[restrict 1]");
      return text;
    }
    if (buffer->extents.empty()) StrAppend(&text, "[1]");
    stack_bytes_ += bytes;
    if (stack_bytes_ <= kMostStackBytes) return text;
    stack_bytes_ -= bytes;
    return StrCat("static ", text);
  }

  void Line(int depth, const std::string& text) {
    StrAppend(&text_, std::string(2 * static_cast<size_t>(depth), ' '), text, "\n");
  }

  absl::Status Statement(Stmt s, int depth) {
    switch (s.kind()) {
      case StmtKind::kFor: {
        if (s.for_kind() == ir::ForKind::kThread) return Unsupported("thread loops");
        ASSIGN_OR_RETURN(const std::string_view type, CType(s.var().type()));
        ASSIGN_OR_RETURN(const std::string first, Text(Fold(s.min())));
        ASSIGN_OR_RETURN(const std::string end, Text(Fold(s.min() + s.extent())));
        const std::string name = Bind(s.var().node(), s.var().name());
        const bool outermost = !in_loop_;
        if (outermost && options_.threads > 1 && codegen::IterationsAreIndependent(s, aliases_)) {
          Line(depth, StrCat("#pragma omp parallel for num_threads(", options_.threads, ")"));
        }
        in_loop_ = true;
        Line(depth, StrCat("for (", type, " ", name, " = ", first, "; ", name, " < ", end, "; ++",
                           name, ") {"));
        RETURN_IF_ERROR(Statement(s.body(), depth + 1));
        Line(depth, "}");
        if (outermost) in_loop_ = false;
        names_.erase(name);
        return absl::OkStatus();
      }
      case StmtKind::kIf: {
        ASSIGN_OR_RETURN(const std::string condition, Text(s.cond()));
        Line(depth, StrCat("if (", condition, ") {"));
        RETURN_IF_ERROR(Statement(s.then_case(), depth + 1));
        if (!s.else_case().IsEmpty()) {
          Line(depth, "} else {");
          RETURN_IF_ERROR(Statement(s.else_case(), depth + 1));
        }
        Line(depth, "}");
        return absl::OkStatus();
      }
      case StmtKind::kLet: {
        ASSIGN_OR_RETURN(const std::string_view type, CType(s.var().type()));
        ASSIGN_OR_RETURN(const std::string value, Text(s.value()));
        Line(depth,
             StrCat("const ", type, " ", Bind(s.var().node(), s.var().name()), " = ", value, ";"));
        return Statement(s.body(), depth);
      }
      case StmtKind::kAllocate: {
        // A block of its own: the same name may come again behind it.
        Line(depth, "{");
        ASSIGN_OR_RETURN(const std::string declared, Declare(s.buffer(), /*parameter=*/false));
        Line(depth + 1, declared + ";");
        RETURN_IF_ERROR(Statement(s.body(), depth + 1));
        Line(depth, "}");
        return absl::OkStatus();
      }
      case StmtKind::kStore: {
        ASSIGN_OR_RETURN(const std::string target, Element(s.buffer(), s.indices()));
        ASSIGN_OR_RETURN(const std::string value, Text(s.value()));
        Line(depth, StrCat(target, " = ", value, ";"));
        return absl::OkStatus();
      }
      case StmtKind::kSeq:
        for (Stmt child : s.children()) RETURN_IF_ERROR(Statement(child, depth));
        return absl::OkStatus();
      case StmtKind::kPragma:
        return Statement(s.body(), depth);
      case StmtKind::kEvaluate:
        return Unsupported("instructions");
    }
    return Unsupported("an unknown statement");
  }

  absl::StatusOr<std::string> Element(Buffer buffer, absl::Span<const Expr> indices) {
    std::string text = name_of_.at(buffer.node());
    for (Expr index : indices) {
      ASSIGN_OR_RETURN(const std::string place, Text(index));
      StrAppend(&text, "[", place, "]");
    }
    if (indices.empty()) StrAppend(&text, "[0]");
    return text;
  }

  absl::StatusOr<std::string> Text(Expr e) {
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return StrCat(e.int_value());
      case ExprKind::kFloatImm: {
        const std::string digits = absl::StrFormat("%.17g", e.float_value());
        const bool whole = digits.find_first_of(".en") == std::string::npos;
        return StrCat(digits, whole ? ".0" : "", e.type() == Type::kF32 ? "f" : "");
      }
      case ExprKind::kVar: {
        const auto value = integers_.find(ir::Var(e));
        if (value != integers_.end()) return StrCat(value->second);
        return name_of_.at(e.node());
      }
      case ExprKind::kCast: {
        ASSIGN_OR_RETURN(const std::string_view type, CType(e.type()));
        ASSIGN_OR_RETURN(const std::string value, Text(e.operand(0)));
        return StrCat("(", type, ")(", value, ")");
      }
      case ExprKind::kLoad:
        return Element(Buffer(e.buffer()), e.operands());
      case ExprKind::kSelect: {
        ASSIGN_OR_RETURN(const std::string condition, Text(e.operand(0)));
        ASSIGN_OR_RETURN(const std::string a, Text(e.operand(1)));
        ASSIGN_OR_RETURN(const std::string b, Text(e.operand(2)));
        return StrCat("(", condition, " ? ", a, " : ", b, ")");
      }
      case ExprKind::kNot: {
        ASSIGN_OR_RETURN(const std::string value, Text(e.operand(0)));
        return StrCat("!(", value, ")");
      }
      case ExprKind::kCall:
        return Call(e);
      default:
        break;
    }
    return Binary(e);
  }

  absl::StatusOr<std::string> Call(Expr e) {
    const std::string_view name = e.name();
    if (name == "abs" && ir::IsFloat(e.type())) {
      ASSIGN_OR_RETURN(const std::string value, Text(e.operand(0)));
      return StrCat(e.type() == Type::kF32 ? "fabsf(" : "fabs(", value, ")");
    }
    if (name != "exp" && name != "sqrt" && name != "log" && name != "pow") {
      return Unsupported(StrCat("calls of ", name));
    }
    std::vector<std::string> arguments;
    for (Expr operand : e.operands()) {
      ASSIGN_OR_RETURN(arguments.emplace_back(), Text(operand));
    }
    return StrCat(name, e.type() == Type::kF32 ? "f" : "", "(", absl::StrJoin(arguments, ", "),
                  ")");
  }

  absl::StatusOr<std::string> Binary(Expr e) {
    const char* op = nullptr;
    const bool division = e.Is(ExprKind::kDiv) && ir::IsFloat(e.type());
    switch (e.kind()) {
      case ExprKind::kAdd:
        op = "+";
        break;
      case ExprKind::kSub:
        op = "-";
        break;
      case ExprKind::kMul:
        op = "*";
        break;
      case ExprKind::kDiv:
        op = division ? "/" : nullptr;
        break;
      case ExprKind::kEq:
        op = "==";
        break;
      case ExprKind::kNe:
        op = "!=";
        break;
      case ExprKind::kLt:
        op = "<";
        break;
      case ExprKind::kLe:
        op = "<=";
        break;
      case ExprKind::kAnd:
        op = "&&";
        break;
      case ExprKind::kOr:
        op = "||";
        break;
      case ExprKind::kMin:
        op = "min";
        break;
      case ExprKind::kMax:
        op = "max";
        break;
      default:
        break;
    }
    if (op == nullptr) return PowerOfTwo(e);
    ASSIGN_OR_RETURN(const std::string a, Text(e.operand(0)));
    ASSIGN_OR_RETURN(const std::string b, Text(e.operand(1)));
    if (e.Is(ExprKind::kMin)) return StrCat("(", b, " < ", a, " ? ", b, " : ", a, ")");
    if (e.Is(ExprKind::kMax)) return StrCat("(", a, " < ", b, " ? ", b, " : ", a, ")");
    // -x
    if (e.Is(ExprKind::kSub) && a == "0.0") return StrCat("(-", b, ")");
    return StrCat("(", a, " ", op, " ", b, ")");
  }

  // Integers divided by powers of two, rounded down as in loop IR: shifts and masks do the same for negative ones.
  absl::StatusOr<std::string> PowerOfTwo(Expr e) {
    const bool division = e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod);
    if (!division && !e.Is(ExprKind::kShiftRight)) return Unsupported(ir::Print(e));
    ASSIGN_OR_RETURN(const std::string a, Text(e.operand(0)));
    const Expr b = Fold(e.operand(1));
    if (!ir::IsInt(e.type()) || !b.Is(ExprKind::kIntImm)) return Unsupported(ir::Print(e));
    const int64_t value = b.int_value();
    if (!division) return StrCat("(", a, " >> ", value, ")");
    if (value <= 0 || !std::has_single_bit(static_cast<uint64_t>(value))) {
      return Unsupported(ir::Print(e));
    }
    if (e.Is(ExprKind::kMod)) return StrCat("(", a, " & ", value - 1, ")");
    return StrCat("(", a, " >> ", std::countr_zero(static_cast<uint64_t>(value)), ")");
  }

  const ir::Function& function_;
  const ir::IntValues& integers_;
  const PlainCOptions options_;
  bool in_loop_ = false;
  const ir::Aliases aliases_{function_};
  arith::Analyzer analyzer_;
  ir::VarMap constants_;
  std::set<std::string> names_;
  absl::flat_hash_map<const void*, std::string> name_of_;
  int64_t stack_bytes_ = 0;
  std::string text_;
};

}  // namespace

absl::StatusOr<std::string> PlainC(const ir::Function& function, const ir::IntValues& integers,
                                   const PlainCOptions& options) {
  return Writer(function, integers, options).Write();
}

}  // namespace polynao::benchmarks
