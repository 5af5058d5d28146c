#include "compiler/codegen/c/c_text.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "compiler/ir/text.h"
#include "compiler/ir/type.h"

namespace polynao::codegen {

using ir::Type;

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
  const size_t at = printed.rfind("func ");  // behind attributes and declarations
  std::string first = printed.substr(at, printed.find('\n', at) - at);
  if (first.ends_with(" {")) first.resize(first.size() - 2);
  return first;
}

}  // namespace polynao::codegen
