#include "compiler/codegen/diannao/scalar_code.h"

#include <bit>
#include <cctype>
#include <cstring>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/logic.h"
#include "compiler/ir/text.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"
#include "isa/levels.h"

namespace polynao::diannao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Type;

// A float as its bit pattern in the low bits of a register.
int64_t FloatBits(Type type, double value) {
  uint8_t bytes[8] = {};
  ir::StoreFloat(type, bytes, value);
  int64_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

bool IsPowerOfTwo(Expr e) {
  return e.Is(ExprKind::kIntImm) && e.int_value() > 0 &&
         std::has_single_bit(static_cast<uint64_t>(e.int_value()));
}

}  // namespace

ScalarCode::ScalarCode(const ir::Function& function, const isa::InstructionSet& set)
    : function_(function), set_(set), addresses_(CollectAddresses(function.body)) {
  code_.name = function.name;
  code_.set = &set_;
  code_.blocks.emplace_back();
}

// ---- emission

absl::Status ScalarCode::Emit(std::string_view mnemonic, absl::Span<const int64_t> fields) {
  const isa::Instruction* instruction = set_.Find(mnemonic);
  if (instruction == nullptr) {
    return InvalidInput("the instruction set has no '", mnemonic, "'");
  }
  POLYNAO_CHECK(instruction->operands.size() == fields.size())
      << mnemonic << " takes " << instruction->operands.size() << " operands, not "
      << fields.size();
  code_.blocks.back().ops.push_back({instruction, {fields.begin(), fields.end()}});
  return absl::OkStatus();
}

absl::StatusOr<int> ScalarCode::Value(std::string_view mnemonic,
                                      std::initializer_list<int64_t> operands) {
  absl::InlinedVector<int64_t, 4> fields = {code_.NewRegister()};
  fields.insert(fields.end(), operands.begin(), operands.end());
  RETURN_IF_ERROR(Emit(mnemonic, fields));
  return static_cast<int>(fields[0]);
}

absl::StatusOr<int> ScalarCode::BranchTo(std::string_view mnemonic,
                                         std::initializer_list<int64_t> compared, int64_t target) {
  absl::InlinedVector<int64_t, 4> fields(compared);
  fields.push_back(target);
  RETURN_IF_ERROR(Emit(mnemonic, fields));
  code_.blocks.emplace_back();
  return Here() - 1;
}

absl::Status ScalarCode::NewBlock() {
  const int64_t next = Here() + 1;
  RETURN_IF_ERROR(Emit("jump", {next}));
  code_.blocks.emplace_back();
  return absl::OkStatus();
}

absl::Status ScalarCode::ContinueFrom(absl::Span<const int> branches) {
  if (branches.empty()) return absl::OkStatus();
  if (!code_.blocks.back().ops.empty()) RETURN_IF_ERROR(NewBlock());
  for (int block : branches) *BranchTarget(code_.blocks[block].ops.back()) = Here();
  return absl::OkStatus();
}

void ScalarCode::Label(std::string name) {
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  // A register's name would be no label in text.
  const bool is_register = name.size() > 1 && name[0] == 'r' &&
                           std::all_of(name.begin() + 1, name.end(),
                                       [](unsigned char c) { return std::isdigit(c) != 0; });
  if (is_register) name = StrCat("loop_", name);
  std::string unique = name;
  for (int i = 2; !label_names_.insert(unique).second; ++i) unique = StrCat(name, "_", i);
  code_.blocks.back().label = unique;
}

std::optional<int> ScalarCode::Cached(Expr e) const {
  for (size_t i = caches_.size(); i-- > 0;) {
    auto it = caches_[i].find(e);
    if (it != caches_[i].end()) return it->second;
  }
  return std::nullopt;
}

absl::StatusOr<int> ScalarCode::Get(Expr e, bool data) {
  if (e.Is(ExprKind::kVar)) {
    auto it = vars_.find(e);
    if (it == vars_.end()) return InvalidInput("variable '", e.name(), "' has no register");
    return it->second;
  }
  if (std::optional<int> reg = Cached(e)) return *reg;
  ASSIGN_OR_RETURN(int reg, Compute(e, data));
  // What wraps as data may be wanted unwrapped as an index only where both are the same.
  if (!arith::ReadsMemory(e)) caches_.back()[e] = reg;
  return reg;
}

absl::StatusOr<int> ScalarCode::Op(std::string_view mnemonic, absl::Span<const Expr> operands,
                                   bool data) {
  absl::InlinedVector<int64_t, 4> fields = {0};
  for (Expr operand : operands) {
    ASSIGN_OR_RETURN(int value, Get(operand, data));
    fields.push_back(value);
  }
  fields[0] = code_.NewRegister();
  RETURN_IF_ERROR(Emit(mnemonic, fields));
  return static_cast<int>(fields[0]);
}

// Writes the value of `e` to a variable, in a block of its own for what it computes.
absl::Status ScalarCode::Assign(int variable, Expr e, bool data) {
  PushCache();
  ASSIGN_OR_RETURN(int value, Get(e, data));
  PopCache();
  return Emit("mov", {variable, value});
}

absl::StatusOr<int> ScalarCode::Wrap(int value, Type type, bool data) {
  if (type == Type::kI64 || (type == Type::kI32 && !data)) return value;
  return Value(StrCat("wrap.", ir::TypeName(type)), {value});
}

absl::StatusOr<int> ScalarCode::Compute(Expr e, bool data) {
  const Type type = e.type();
  if (type == Type::kU16 || type == Type::kU32 || type == Type::kU64) {
    return InvalidInput("a value of ", ir::TypeName(type),
                        ", which the scalar unit of a DianNao core does not have");
  }
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return Constant(e.int_value());
    case ExprKind::kFloatImm:
      return Constant(FloatBits(type, e.float_value()));
    case ExprKind::kCast:
      return Cast(e, data);
    case ExprKind::kNot: {
      ASSIGN_OR_RETURN(int value, Get(e.operand(0), data));
      ASSIGN_OR_RETURN(int zero, Zero());
      return Value("seq", {value, zero});
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      if (!arith::CanTrap(e.operand(1))) {
        return Op(e.Is(ExprKind::kAnd) ? "and" : "or", e.operands(), data);
      }
      const int result = code_.NewRegister(Here());
      ASSIGN_OR_RETURN(int first, Get(e.operand(0), data));
      RETURN_IF_ERROR(Emit("mov", {result, first}));
      ASSIGN_OR_RETURN(int zero, Zero());
      ASSIGN_OR_RETURN(int skip, BranchTo(e.Is(ExprKind::kAnd) ? "beq" : "bne", {first, zero}));
      RETURN_IF_ERROR(Assign(result, e.operand(1), data));
      RETURN_IF_ERROR(ContinueFrom({skip}));
      code_.home[result] = Here();
      return result;
    }
    case ExprKind::kSelect: {
      if (!arith::CanTrap(e.operand(1)) && !arith::CanTrap(e.operand(2))) {
        return Op("select", e.operands(), data);
      }
      const int result = code_.NewRegister(Here());
      ASSIGN_OR_RETURN(int condition, Get(e.operand(0), data));
      ASSIGN_OR_RETURN(int zero, Zero());
      ASSIGN_OR_RETURN(int to_else, BranchTo("beq", {condition, zero}));
      RETURN_IF_ERROR(Assign(result, e.operand(1), data));
      ASSIGN_OR_RETURN(int to_end, BranchTo("jump", {}));
      RETURN_IF_ERROR(ContinueFrom({to_else}));
      RETURN_IF_ERROR(Assign(result, e.operand(2), data));
      RETURN_IF_ERROR(ContinueFrom({to_end}));
      code_.home[result] = Here();
      return result;
    }
    case ExprKind::kLet: {
      ASSIGN_OR_RETURN(vars_[e.var()], Get(e.operand(0), data));
      PushCache();  // what depends on the variable may depend on memory
      ASSIGN_OR_RETURN(int body, Get(e.operand(1), data));
      PopCache();
      return body;
    }
    case ExprKind::kLoad: {
      ASSIGN_OR_RETURN(std::string mnemonic, AccessMnemonic("load", e.buffer()));
      ASSIGN_OR_RETURN(int address, Address(Buffer(e.buffer()), e.operands()));
      return Value(mnemonic, {address});
    }
    case ExprKind::kAddress:
      return ComputeAddress(Buffer(e.buffer()), e.operands());
    case ExprKind::kCall:
      return Op(StrCat("math.", e.name(), ".", ir::TypeName(type)), e.operands(), data);
    default:
      return ComputeBinary(e, data);
  }
}

absl::StatusOr<int> ScalarCode::ComputeBinary(Expr e, bool data) {
  if ((e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod)) && IsPowerOfTwo(e.operand(1))) {
    // A shift and a mask round down as division does, in an eighth of its time.
    const int64_t divisor = e.operand(1).int_value();
    const bool is_div = e.Is(ExprKind::kDiv);
    const int64_t other = is_div ? std::countr_zero(static_cast<uint64_t>(divisor)) : divisor - 1;
    ASSIGN_OR_RETURN(int value, Get(e.operand(0), data));
    ASSIGN_OR_RETURN(int constant, Get(e.context().I64(other), false));
    return Value(is_div ? "shr" : "and", {value, constant});
  }
  const Type type = e.type();
  const Type operand_type = e.operand(0).type();
  const std::string suffix = StrCat(".", ir::TypeName(operand_type));
  const bool is_float = ir::IsFloat(operand_type);
  const auto op = [&](std::string_view int_name, std::string_view float_name) {
    return Op(is_float ? StrCat(float_name, suffix) : std::string(int_name), e.operands(), data);
  };
  const auto arithmetic = [&](std::string_view int_name,
                              std::string_view float_name) -> absl::StatusOr<int> {
    ASSIGN_OR_RETURN(int value, op(int_name, float_name));
    return is_float ? value : Wrap(value, type, data);
  };
  switch (e.kind()) {
    case ExprKind::kBitAnd:
      return op("and", "");
    case ExprKind::kBitOr:
      return op("or", "");
    case ExprKind::kBitXor:
      return op("xor", "");
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight: {
      // The unit's shifts take counts from 0 to 63 and know one width.
      const Expr count = e.operand(1);
      if (!count.Is(ExprKind::kIntImm) || count.int_value() < 0 ||
          count.int_value() >= ir::BitWidth(type)) {
        return InvalidInput("a shift by a count that is no constant from 0 to ",
                            ir::BitWidth(type) - 1, ", which the DianNao target does not generate");
      }
      if (e.Is(ExprKind::kShiftRight)) return op("shr", "");
      ASSIGN_OR_RETURN(const int shifted, op("shl", ""));
      return Wrap(shifted, type, /*data=*/true);  // in indices too
    }
    case ExprKind::kAdd:
      return arithmetic("add", "fadd");
    case ExprKind::kSub:
      return arithmetic("sub", "fsub");
    case ExprKind::kMul:
      return arithmetic("mul", "fmul");
    case ExprKind::kDiv: {
      // The one quotient that does not fit, by -1, wraps in indices and conditions too.
      const Expr divisor = e.operand(1);
      const bool fits = divisor.Is(ExprKind::kIntImm) && !divisor.IsInt(-1);
      ASSIGN_OR_RETURN(int value, op("div", "fdiv"));
      return is_float ? value : Wrap(value, type, data || !fits);
    }
    case ExprKind::kMod:
      return arithmetic("mod", "");
    case ExprKind::kMin:
      return op("min", "fmin");
    case ExprKind::kMax:
      return op("max", "fmax");
    case ExprKind::kEq:
      return op("seq", "feq");
    case ExprKind::kNe:
      return op("sne", "fne");
    case ExprKind::kLt:
      return op("slt", "flt");
    case ExprKind::kLe:
      return op("sle", "fle");
    default:
      POLYNAO_UNREACHABLE(ir::ExprKindName(e.kind()));
  }
}

absl::StatusOr<int> ScalarCode::Cast(Expr e, bool data) {
  const Expr source = e.operand(0);
  const Type to = e.type();
  const Type from = source.type();
  ASSIGN_OR_RETURN(int value, Get(source, data));
  const std::string to_name(ir::TypeName(to));
  const std::string from_name(ir::TypeName(from));
  if (ir::IsFloat(to)) {
    return Value(StrCat("convert.", to_name, ".", ir::IsFloat(from) ? from_name : "i64"), {value});
  }
  if (to == Type::kI1) {
    ASSIGN_OR_RETURN(int zero, Get(e.context().Const(from, 0), false));
    if (!ir::IsFloat(from)) return Value("sne", {value, zero});
    // Below or above 0. A NaN is neither, and gives 0 as in every cast to an integer.
    const std::string less = StrCat("flt.", from_name);
    ASSIGN_OR_RETURN(int above, Value(less, {zero, value}));
    ASSIGN_OR_RETURN(int below, Value(less, {value, zero}));
    return Value("or", {below, above});
  }
  if (ir::IsFloat(from)) return Value(StrCat("convert.", to_name, ".", from_name), {value});
  if (to == Type::kI64) return value;
  return Value(StrCat("wrap.", to_name), {value});
}

absl::StatusOr<std::string> ScalarCode::AccessMnemonic(std::string_view op,
                                                       const ir::BufferNode* buffer) {
  if (!isa::ParseSpace(buffer->scope) || buffer->scope == isa::kWmem) {
    return InvalidInput("'", buffer->name, "' is in '", buffer->scope,
                        "', which the scalar unit of a DianNao core does not reach (gmem, smem, "
                        "nmem)");
  }
  const Type type = buffer->type == Type::kI1 ? Type::kU8 : buffer->type;
  return StrCat(op, ".", ir::TypeName(type), ".", buffer->scope);
}

absl::StatusOr<int> ScalarCode::Address(Buffer buffer, absl::Span<const Expr> indices) {
  return Get(buffer->context->Address(buffer, indices), false);
}

absl::StatusOr<int> ScalarCode::ComputeAddress(Buffer buffer, absl::Span<const Expr> indices) {
  if (indices.size() != 1) {
    return InvalidInput("'", buffer->name, "' has ", indices.size(), " dimensions; flatten first");
  }
  const int64_t bytes = ir::ByteSize(buffer->type);
  const Expr index = indices[0];
  auto param = param_registers_.find(buffer);
  auto address = addresses_.find(buffer);
  if (param == param_registers_.end() && address == addresses_.end()) {
    return InvalidInput("'", buffer->name, "' in '", buffer->scope, "' has no address");
  }
  ASSIGN_OR_RETURN(int element, Get(index, false));
  ASSIGN_OR_RETURN(int offset, Value("muli", {element, bytes}));
  return param == param_registers_.end() ? Value("addi", {offset, address->second})
                                         : Value("add", {offset, param->second});
}

}  // namespace polynao::diannao
