#include "compiler/codegen/c/function_emitter.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "base/check.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

namespace {

// Larger expressions, in nodes, get a variable if they are used twice.
constexpr int kTinyExpression = 8;
// The analyzer is not asked about larger expressions: as trees they may be exponentially large.
constexpr int kProvableExpression = 64;

bool IsNarrowFloat(Type type) { return type == Type::kF16 || type == Type::kBF16; }
bool IsMathematical(Type type) { return type == Type::kI32 || type == Type::kI64; }
// The suffix of the helpers for a type: C computes smaller integers as int.
std::string_view HelperSuffix(Type type) {
  if (ir::IsFloat(type)) return type == Type::kF64 ? "f64" : "f32";
  return ir::BitWidth(type) < 32 ? "i32" : ir::TypeName(type);
}

// Words of C, C++ and CUDA, the names that emitted text uses, and what <math.h> and <stdlib.h> declare.
constexpr std::string_view kReserved[] = {
    "auto",      "break",    "case",      "char",      "const",     "continue", "default",
    "do",        "double",   "else",      "enum",      "extern",    "float",    "for",
    "goto",      "if",       "inline",    "int",       "long",      "main",     "register",
    "restrict",  "return",   "short",     "signed",    "sizeof",    "static",   "struct",
    "switch",    "typedef",  "union",     "unsigned",  "void",      "volatile", "while",
    "bool",      "true",     "false",     "asm",       "typeof",    "linux",    "unix",
    "buffers",   "scalars",  "NULL",      "NAN",       "INFINITY",  "abort",    "abs",
    "acos",      "acosh",    "asin",      "asinh",     "atan",      "atan2",    "atanh",
    "atof",      "atoi",     "atol",      "bsearch",   "calloc",    "cbrt",     "ceil",
    "ceilf",     "copysign", "cos",       "cosf",      "cosh",      "div",      "drem",
    "erf",       "erfc",     "exit",      "exp",       "exp2",      "expf",     "expm1",
    "fabs",      "fabsf",    "fdim",      "floor",     "floorf",    "fma",      "fmax",
    "fmin",      "fmod",     "free",      "frexp",     "gamma",     "getenv",   "hypot",
    "ilogb",     "index",    "isinf",     "isnan",     "j0",        "j1",       "jn",
    "labs",      "ldexp",    "lgamma",    "log",       "log10",     "log1p",    "log2",
    "logb",      "logf",     "lrint",     "lround",    "malloc",    "memcpy",   "memset",
    "modf",      "nan",      "nearbyint", "nextafter", "pow",       "powf",     "printf",
    "qsort",     "rand",     "random",    "realloc",   "remainder", "rint",     "rintf",
    "round",     "scalb",    "scalbn",    "signgam",   "sin",       "sinf",     "sinh",
    "sqrt",      "sqrtf",    "system",    "tan",       "tanh",      "tanhf",    "tgamma",
    "trunc",     "class",    "delete",    "explicit",  "export",    "friend",   "mutable",
    "namespace", "new",      "operator",  "private",   "protected", "public",   "template",
    "this",      "throw",    "try",       "typeid",    "typename",  "using",    "virtual",
    "and",       "not",      "or",        "xor",       "int2",      "int4",     "float2",
    "float4",    "dim3",     "threadIdx", "blockIdx",  "blockDim",  "gridDim",  "warpSize",
    "y0",        "y1",       "yn"};

std::string FloatLiteral(Type type, double value) {
  const std::string_view suffix = type == Type::kF64 ? "" : "f";
  if (std::isnan(value)) return type == Type::kF64 ? "(double)NAN" : "NAN";
  if (std::isinf(value)) {
    return StrCat(value < 0 ? "-" : "", type == Type::kF64 ? "(double)INFINITY" : "INFINITY");
  }
  // The fewest digits that are read back as the same value.
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    const double back = std::strtod(text, nullptr);
    if (type == Type::kF64 ? back == value : static_cast<float>(back) == value) break;
  }
  std::string result = text;
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return StrCat(result, suffix);
}

std::string IntLiteral(Type type, int64_t value) {
  if (type == Type::kI1) return value != 0 ? "true" : "false";
  if (type == Type::kI64 && value == INT64_MIN) return "INT64_MIN";
  if (type != Type::kU64 && value == INT32_MIN) return "INT32_MIN";
  // Without a suffix it would be signed, and wider.
  if (type == Type::kU32) return StrCat(value, "u");
  if (type == Type::kU64) return StrCat(ir::IntText(type, value), "ull");
  return StrCat(value);
}

}  // namespace

std::string CName(std::string_view name) {
  std::string result;
  for (char c : name) result += absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
  // Names that begin with an underscore belong to the compiler, those with nao_ to the helpers.
  if (result.empty() || absl::ascii_isdigit(static_cast<unsigned char>(result[0])) ||
      result[0] == '_' || result.starts_with("nao_")) {
    result = StrCat("x_", result);
  }
  for (std::string_view word : kReserved) {
    if (result == word) return StrCat(result, "_");
  }
  return result;
}

std::string_view ValueType(Type type) {
  switch (type) {
    case Type::kI1:
      return "bool";
    case Type::kI8:
      return "int8_t";
    case Type::kI16:
      return "int16_t";
    case Type::kI32:
      return "int32_t";
    case Type::kI64:
      return "int64_t";
    case Type::kU8:
      return "uint8_t";
    case Type::kU16:
      return "uint16_t";
    case Type::kU32:
      return "uint32_t";
    case Type::kU64:
      return "uint64_t";
    case Type::kF16:
    case Type::kBF16:
    case Type::kF32:
      return "float";
    case Type::kF64:
      return "double";
  }
  POLYNAO_UNREACHABLE(static_cast<int>(type));
}

std::string_view MemoryType(Type type) {
  if (type == Type::kI1) return "uint8_t";
  if (type == Type::kF16 || type == Type::kBF16) return "uint16_t";
  return ValueType(type);
}

std::string SignatureText(const ir::Function& function) {
  ir::Function header = function;
  header.body = function.context->Nop();
  const std::string printed = ir::Print(header);
  const size_t at = printed.find("func ");
  std::string first = printed.substr(at, printed.find('\n', at) - at);
  if (first.ends_with(" {")) first.resize(first.size() - 2);
  return first;
}

std::string FunctionEmitter::Lines() const {
  std::string text;
  for (const CodeLine& line : lines_) {
    StrAppend(&text, std::string(line.text.empty() ? 0 : 2 * line.indent, ' '), line.text, "\n");
  }
  return text;
}

std::vector<std::string> FunctionEmitter::Parameters(std::string_view pointer,
                                                     std::string_view restricted) {
  std::vector<std::string> parameters;
  for (const ir::Param& param : function_.params) {
    if (!param.buffer) {
      parameters.push_back(
          StrCat(ValueType(param.var.type()), " ", Bind(param.var.node(), param.name())));
      continue;
    }
    const std::string name = Bind(param.buffer.node(), param.buffer->name);
    parameters.push_back(StrCat(stored_.contains(param.buffer.node()) ? "" : "const ",
                                MemoryType(param.buffer->type),
                                aliases_.Group(param.buffer) ? pointer : restricted, name));
  }
  return parameters;
}

std::string FunctionEmitter::Bind(const void* node, std::string_view name) {
  std::string unique = NewName(name);
  names_[node] = unique;
  return unique;
}

std::string FunctionEmitter::NewName(std::string_view name) {
  const std::string base = CName(name);
  std::string unique = base;
  for (int i = 1; !in_scope_.insert(unique).second; ++i) unique = StrCat(base, "_", i);
  return unique;
}

void FunctionEmitter::Unbind(const std::string& name) { in_scope_.erase(name); }

void FunctionEmitter::CollectUses() {
  CollectUses(function_.body);
  for (const ir::Param& param : function_.params) {
    if (param.buffer) CollectUsesOfExtents(param.buffer);
  }
}

void FunctionEmitter::CollectUses(Expr root) {
  ForEachExpr(root, [&](Expr e) {
    if (e.Is(ExprKind::kVar)) used_.insert(e.node());
    if (e.Is(ExprKind::kLoad)) {
      used_.insert(e.buffer());
      read_.insert(e.buffer());
    }
  });
}

void FunctionEmitter::CollectUses(Stmt s) {
  for (Stmt child : s.children()) CollectUses(child);
  if (s.Is(StmtKind::kLet) && !used_.contains(s.var().node())) return;
  if (s.Is(StmtKind::kStore)) {
    used_.insert(s.buffer().node());
    stored_.insert(s.buffer().node());
  }
  if (s.Is(StmtKind::kAllocate)) {
    CollectUsesOfExtents(s.buffer());
    if (used_.contains(s.buffer().node()) && !s.buffer()->extents.empty()) {
      CollectUses(s.buffer()->extents[0]);  // its size
    }
  }
  if (s.Is(StmtKind::kPragma)) return;
  if (s.Is(StmtKind::kFor) && !used_.contains(s.var().node())) {
    // The loop's lower bound is not used then.
    CollectUses(s.extent());
    return;
  }
  for (Expr e : s.operands()) CollectUses(e);
}

void FunctionEmitter::CollectUsesOfExtents(Buffer buffer) {
  if (!used_.contains(buffer.node())) return;
  for (size_t d = 1; d < buffer->extents.size(); ++d) CollectUses(buffer->extents[d]);
}

absl::Status FunctionEmitter::EmitStmt(Stmt s) {
  switch (s.kind()) {
    case StmtKind::kFor:
      return EmitFor(s);
    case StmtKind::kIf: {
      ASSIGN_OR_RETURN(const Text condition, Operand(s.cond(), true));
      Line(StrCat("if (", condition.text, ") {"));
      for (const bool truth : {true, false}) {
        const Stmt branch = truth ? s.then_case() : s.else_case();
        if (!truth && branch.IsEmpty()) break;
        if (!truth) Line("} else {");
        arith::Analyzer::Scope scope(analyzer_);
        analyzer_.Assume(s.cond(), truth);
        RETURN_IF_ERROR(EmitBlock(branch));
      }
      Line("}");
      return absl::OkStatus();
    }
    case StmtKind::kLet: {
      if (!used_.contains(s.var().node())) return EmitStmt(s.body());
      arith::Analyzer::Scope known(analyzer_);
      std::optional<ScopedNames> scope(this);
      CountUses({s.value()});
      ASSIGN_OR_RETURN(const std::string name, EmitLet(s.var(), s.value()));
      scope.reset();
      RETURN_IF_ERROR(EmitStmt(s.body()));
      Unbind(name);
      return absl::OkStatus();
    }
    case StmtKind::kAllocate:
      return EmitAllocate(s);
    case StmtKind::kStore:
      return EmitStore(s);
    case StmtKind::kPragma:
      Line(StrCat("// pragma ", s.name()));
      return EmitStmt(s.body());
    case StmtKind::kEvaluate:
      return Operand(s.value(), false).status();
    case StmtKind::kSeq:
      for (Stmt child : s.children()) {
        // A declaration's scope ends with its statement's.
        const bool declares = child.Is(StmtKind::kLet) || child.Is(StmtKind::kAllocate) ||
                              child.Is(StmtKind::kPragma);
        if (!declares || child == s.children().back()) {
          RETURN_IF_ERROR(EmitStmt(child));
          continue;
        }
        Line("{");
        RETURN_IF_ERROR(EmitBlock(child));
        Line("}");
      }
      return absl::OkStatus();
  }
  POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
}

absl::StatusOr<std::string> FunctionEmitter::EmitLet(Expr var, Expr value) {
  const Type type = var.type();
  const bool exact = IsExact(value);
  ASSIGN_OR_RETURN(const Text text, EmitExpr(value, exact));
  std::string name = Bind(var.node(), var.name());
  Line(StrCat("const ", ValueType(type), " ", name, " = ", text.text, ";"));
  analyzer_.BindLet(var, value, exact ? arith::Mode::kIndex : arith::Mode::kData);
  if (exact) exact_lets_.emplace(var, value);
  return name;
}

absl::Status FunctionEmitter::EmitBlock(Stmt s) {
  ++indent_;
  const auto outer = in_scope_;
  RETURN_IF_ERROR(EmitStmt(s));
  in_scope_ = outer;
  --indent_;
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitExtents(Buffer buffer) {
  std::vector<std::string>& extents = extents_[buffer.node()];
  for (size_t d = 0; d < buffer->extents.size(); ++d) {
    const Expr extent = buffer->extents[d];
    if (d == 0 || !used_.contains(buffer.node())) {
      extents.emplace_back();
      continue;
    }
    ASSIGN_OR_RETURN(const Text text, Operand(extent, true));
    if (extent.Is(ExprKind::kIntImm) || extent.Is(ExprKind::kVar)) {
      extents.push_back(text.text);
      continue;
    }
    const std::string name = NewName(StrCat(buffer->name, "_extent", d));
    Line(StrCat("const ", ValueType(extent.type()), " ", name, " = ", text.text, ";"));
    extents.push_back(name);
  }
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitStore(Stmt s) {
  // All operands are one evaluation, so that they share subexpressions.
  ScopedNames scope(this);
  CountUses(s.operands());
  ASSIGN_OR_RETURN(const std::string element, Element(s.buffer(), s.indices()));
  ASSIGN_OR_RETURN(const std::string value, StoredValue(s));
  Line(StrCat(element, " = ", value, ";"));
  return absl::OkStatus();
}

absl::StatusOr<std::string> FunctionEmitter::StoredValue(Stmt store) {
  const Type type = store.buffer()->type;
  if (IsNarrowFloat(type)) {
    ASSIGN_OR_RETURN(const Text unrounded, EmitUnrounded(store.value()));
    return StrCat("nao_", ir::TypeName(type), "_of_f32(", unrounded.text, ")");
  }
  ASSIGN_OR_RETURN(Text text, EmitExpr(store.value(), false));
  return std::move(text.text);
}

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
  const bool share = uses != use_counts_.end() && uses->second > 1 &&
                     (TreeSize(e) > kTinyExpression || e.Is(ExprKind::kLet));
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
  bool is_zero = true;
  for (size_t d = DroppedDimensions(buffer); d < indices.size(); ++d) {
    if (is_zero && indices[d].IsInt(0)) continue;
    ASSIGN_OR_RETURN(const Text index, EmitExpr(indices[d], true));
    if (!is_zero) {
      offset = {StrCat(offset.At(kMultiplicative), " * ", extents_.at(buffer.node())[d], " + ",
                       index.At(kAdditive)),
                kAdditive};
      continue;
    }
    is_zero = false;
    offset = index;
    // Products of this index with further extents may need 64 bits.
    const bool wide = indices[d].type() == Type::kI64 && Has64Bits(indices[d]);
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

bool FunctionEmitter::FitsI32(Buffer buffer) {
  int64_t elements = 1;
  for (Expr extent : buffer->extents) {
    if (!extent.Is(ExprKind::kIntImm)) return false;
    if (extent.int_value() <= 0) return true;
    if (extent.int_value() > INT32_MAX) return false;
    elements *= extent.int_value();
    if (elements > INT32_MAX) return false;
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

absl::StatusOr<Text> FunctionEmitter::EmitCall(Expr e, bool math) {
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

absl::Status FunctionEmitter::EmitLoop(Stmt s, absl::Span<const std::string> pragmas,
                                       std::string_view comment) {
  const Var var = s.var();
  Text min;
  if (s.min().IsConst() || used_.contains(var.node())) {
    ASSIGN_OR_RETURN(min, Operand(s.min(), true));
  }
  ASSIGN_OR_RETURN(Text extent, Operand(s.extent(), true));
  // A variable or a constant can stand in the loop's condition: it does not change.
  if (!s.extent().Is(ExprKind::kVar) && !s.extent().IsConst()) {
    const std::string name = NewName(StrCat(var.name(), "_extent"));
    Line(StrCat("const ", ValueType(var.type()), " ", name, " = ", extent.text, ";"));
    extent = {name};
  }
  for (const std::string& pragma : pragmas) Line(pragma);
  const auto outer = in_scope_;
  const std::string name = Bind(var.node(), var.name());
  const std::string_view type = ValueType(var.type());
  arith::Analyzer::Scope scope(analyzer_);
  analyzer_.BindLoop(var, s.min(), s.extent());
  // The loop's end, if it is known to fit the variable's type.
  std::optional<std::string> end;
  if (s.min().IsInt(0)) {
    end = extent.At(kAdditive);
  } else if (s.min().Is(ExprKind::kIntImm) && s.extent().Is(ExprKind::kIntImm)) {
    const int64_t last = s.min().int_value() + std::max<int64_t>(s.extent().int_value(), 0);
    if (last < INT32_MAX && ir::FitsInt(var.type(), last)) end = StrCat(last);
  }
  const std::string counter = end ? name : NewName(StrCat(name, "_step"));
  if (end) {
    Line(StrCat("for (", type, " ", name, " = ", min.text, "; ", name, " < ", *end, "; ++", name,
                ") {", comment));
  } else {
    Line(StrCat("for (int64_t ", counter, " = 0; ", counter, " < ", extent.At(kAdditive), "; ++",
                counter, ") {", comment));
    if (used_.contains(var.node())) {
      ++indent_;
      Line(StrCat("const ", type, " ", name, " = (", type, ")(", min.At(kAdditive), " + ", counter,
                  ");"));
      --indent_;
    }
  }
  RETURN_IF_ERROR(EmitBlock(s.body()));
  Line("}");
  in_scope_ = outer;
  return absl::OkStatus();
}

}  // namespace polynao::codegen
