#include "compiler/codegen/c/c_text.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "base/check.h"
#include "compiler/ir/text.h"
#include "compiler/ir/type.h"

namespace polynao::codegen {

using ir::Type;

namespace {

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

}  // namespace

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

std::string_view HelperSuffix(Type type) {
  if (ir::IsFloat(type)) return type == Type::kF64 ? "f64" : "f32";
  return ir::BitWidth(type) < 32 ? "i32" : ir::TypeName(type);
}

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

}  // namespace polynao::codegen
