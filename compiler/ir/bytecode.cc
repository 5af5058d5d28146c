#include "compiler/ir/bytecode.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/intrinsics.h"

namespace polynao::ir {
namespace {

// Turns a function into bytecode.
class Compiler {
 public:
  Compiler(const Function& function, const InterpreterOptions& options,
           Interpreter::Program& program)
      : function_(function), options_(options), p_(program) {}

  absl::Status Run();

 private:
  int32_t NewSlot() {
    p_.initial.push_back(Slot{0});
    return static_cast<int32_t>(p_.initial.size()) - 1;
  }
  // Temporaries are reused from statement to statement.
  int32_t Temp() {
    if (next_temp_ == temps_.size()) temps_.push_back(NewSlot());
    return temps_[next_temp_++];
  }
  int32_t Emit(Op op) {
    p_.ops.push_back(op);
    p_.op_place.push_back(static_cast<int32_t>(p_.places.size()) - 1);
    return static_cast<int32_t>(p_.ops.size()) - 1;
  }
  void Here(int32_t op) { p_.ops[op].target = static_cast<int32_t>(p_.ops.size()); }
  void At(Stmt s) { p_.places.push_back({s, loops_}); }

  int32_t Memory(const BufferNode* buffer) const { return memory_of_.at(buffer); }

  int32_t Constant(Expr e) {
    auto [it, added] = constants_.try_emplace(e.node(), 0);
    if (added) {
      it->second = NewSlot();
      if (e.Is(ExprKind::kIntImm)) {
        p_.initial[it->second].i = e.int_value();
      } else {
        p_.initial[it->second].f = e.float_value();
      }
    }
    return it->second;
  }

  // Emits the code of `e` and returns the slot of its value. `index`: the value is used in an index, a
  // bound or a condition, where overflow traps, and so does loading an element never stored.
  absl::StatusOr<int32_t> Value(Expr e, bool index);
  absl::Status ValueInto(int32_t slot, Expr e, bool index);
  absl::Status CastInto(int32_t slot, Expr e, bool index);
  absl::Status ShortCircuitInto(int32_t slot, Expr e, bool index);
  absl::Status SelectInto(int32_t slot, Expr e, bool index);
  absl::Status IntrinsicInto(int32_t slot, Expr e, bool index);
  absl::Status BinaryInto(int32_t slot, Expr e, bool index);
  absl::StatusOr<int32_t> FlatIndex(const BufferNode* buffer, absl::Span<const Expr> indices);
  absl::Status Statement(Stmt s);
  absl::Status Call(Stmt s);
  // A call of an extern function; `result` is the slot of its result, -1 if it has none.
  absl::Status CallExtern(Expr call, int32_t result);
  // Evaluates the arguments of `call`, which does `meaning`.
  absl::Status Arguments(Expr call, const Function& meaning, InstructionCall& prepared);
  absl::Status NewMemory(Buffer buffer, bool evaluate_extents);

  const Function& function_;
  const InterpreterOptions& options_;
  Interpreter::Program& p_;
  absl::flat_hash_map<const ExprNode*, int32_t> constants_;
  absl::flat_hash_map<const ExprNode*, int32_t> var_slots_;
  absl::flat_hash_map<const BufferNode*, int32_t> memory_of_;
  absl::flat_hash_set<const BufferNode*> allocated_;
  std::vector<int32_t> temps_;
  size_t next_temp_ = 0;
  std::vector<std::pair<std::string, int32_t>> loops_;
  // Set within a value that is stored to an allocation: it may load elements never stored.
  bool may_be_undefined_ = false;
};

Code IntCode(ExprKind kind, Type type, bool index) {
  const bool is_u64 = type == Type::kU64;
  switch (kind) {
    case ExprKind::kAdd:
      return index ? Code::kAddIndex : Code::kAddInt;
    case ExprKind::kSub:
      return index ? Code::kSubIndex : Code::kSubInt;
    case ExprKind::kMul:
      return index ? Code::kMulIndex : Code::kMulInt;
    case ExprKind::kDiv:
      return is_u64 ? Code::kDivU64 : Code::kDivInt;
    case ExprKind::kMod:
      return is_u64 ? Code::kModU64 : Code::kModInt;
    case ExprKind::kMin:
      return is_u64 ? Code::kMinU64 : Code::kMinInt;
    case ExprKind::kMax:
      return is_u64 ? Code::kMaxU64 : Code::kMaxInt;
    case ExprKind::kBitAnd:
      return Code::kAndInt;
    case ExprKind::kBitOr:
      return Code::kOrInt;
    case ExprKind::kBitXor:
      return Code::kXorInt;
    case ExprKind::kShiftLeft:
      return Code::kShiftLeft;
    case ExprKind::kShiftRight:
      return Code::kShiftRight;
    case ExprKind::kEq:
      return Code::kEqInt;
    case ExprKind::kNe:
      return Code::kNeInt;
    case ExprKind::kLt:
      return is_u64 ? Code::kLtU64 : Code::kLtInt;
    case ExprKind::kLe:
      return is_u64 ? Code::kLeU64 : Code::kLeInt;
    default:
      POLYNAO_UNREACHABLE(ExprKindName(kind));
  }
}

Code FloatCode(ExprKind kind) {
  switch (kind) {
    case ExprKind::kAdd:
      return Code::kAddFloat;
    case ExprKind::kSub:
      return Code::kSubFloat;
    case ExprKind::kMul:
      return Code::kMulFloat;
    case ExprKind::kDiv:
      return Code::kDivFloat;
    case ExprKind::kMin:
      return Code::kMinFloat;
    case ExprKind::kMax:
      return Code::kMaxFloat;
    case ExprKind::kEq:
      return Code::kEqFloat;
    case ExprKind::kNe:
      return Code::kNeFloat;
    case ExprKind::kLt:
      return Code::kLtFloat;
    case ExprKind::kLe:
      return Code::kLeFloat;
    default:
      POLYNAO_UNREACHABLE(ExprKindName(kind));
  }
}

// In an index, arithmetic of these types that wraps stops the program.
bool IsIndexType(Type type) { return type == Type::kI32 || type == Type::kI64; }

absl::StatusOr<int32_t> Compiler::Value(Expr e, bool index) {
  if (e.IsConst()) return Constant(e);
  if (e.Is(ExprKind::kVar)) {
    auto it = var_slots_.find(e.node());
    if (it == var_slots_.end()) {
      return InvalidInput("variable '", e.name(), "' is used outside its scope");
    }
    return it->second;
  }
  const int32_t slot = Temp();
  RETURN_IF_ERROR(ValueInto(slot, e, index));
  return slot;
}

absl::Status Compiler::ValueInto(int32_t slot, Expr e, bool index) {
  switch (e.kind()) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kVar: {
      ASSIGN_OR_RETURN(int32_t value, Value(e, index));
      Emit({.code = Code::kMove, .dst = slot, .a = value});
      return absl::OkStatus();
    }
    case ExprKind::kCast:
      return CastInto(slot, e, index);
    case ExprKind::kNot: {
      ASSIGN_OR_RETURN(int32_t a, Value(e.operand(0), index));
      Emit({.code = Code::kNot, .dst = slot, .a = a});
      return absl::OkStatus();
    }
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return ShortCircuitInto(slot, e, index);
    case ExprKind::kSelect:
      return SelectInto(slot, e, index);
    case ExprKind::kLet: {
      // The variable has its own slot, since evaluating the body reuses temporaries.
      const int32_t var = NewSlot();
      RETURN_IF_ERROR(ValueInto(var, e.operand(0), index));
      var_slots_[e.var().node()] = var;
      return ValueInto(slot, e.operand(1), index);
    }
    case ExprKind::kLoad: {
      ASSIGN_OR_RETURN(int32_t flat, FlatIndex(e.buffer(), e.operands()));
      Emit({.code = IsFloat(e.type()) ? Code::kLoadFloat : Code::kLoadInt,
            .type = e.type(),
            .dst = slot,
            .a = flat,
            .b = Memory(e.buffer()),
            .target = may_be_undefined_ && !index});
      return absl::OkStatus();
    }
    case ExprKind::kAddress:
      return InvalidInput("an address outside an instruction's arguments");
    case ExprKind::kCall:
      return e.callee() != nullptr ? CallExtern(e, slot) : IntrinsicInto(slot, e, index);
    default:
      return BinaryInto(slot, e, index);
  }
}

absl::Status Compiler::CastInto(int32_t slot, Expr e, bool index) {
  const Type from = e.operand(0).type();
  ASSIGN_OR_RETURN(int32_t a, Value(e.operand(0), index));
  Code code = IsFloat(e.type()) ? Code::kCastIntFloat : Code::kCastIntInt;
  if (IsFloat(from)) {
    code = IsFloat(e.type()) ? Code::kCastFloatFloat : Code::kCastFloatInt;
  } else if (IsFloat(e.type()) && from == Type::kU64) {
    code = Code::kCastU64Float;
  }
  Emit({.code = code, .type = e.type(), .dst = slot, .a = a});
  return absl::OkStatus();
}

absl::Status Compiler::ShortCircuitInto(int32_t slot, Expr e, bool index) {
  RETURN_IF_ERROR(ValueInto(slot, e.operand(0), index));
  const Code code = e.Is(ExprKind::kAnd) ? Code::kShortAnd : Code::kShortOr;
  const int32_t skip = Emit({.code = code, .a = slot});
  RETURN_IF_ERROR(ValueInto(slot, e.operand(1), index));
  Here(skip);
  return absl::OkStatus();
}

absl::Status Compiler::SelectInto(int32_t slot, Expr e, bool index) {
  // The condition decides what is evaluated, so it counts as an index even in a stored value.
  ASSIGN_OR_RETURN(int32_t condition, Value(e.operand(0), true));
  const int32_t to_else = Emit({.code = Code::kBranch, .a = condition});
  RETURN_IF_ERROR(ValueInto(slot, e.operand(1), index));
  const int32_t to_end = Emit({.code = Code::kJump});
  Here(to_else);
  RETURN_IF_ERROR(ValueInto(slot, e.operand(2), index));
  Here(to_end);
  return absl::OkStatus();
}

absl::Status Compiler::IntrinsicInto(int32_t slot, Expr e, bool index) {
  if (!IsPureIntrinsic(e.name())) {
    return InvalidInput("the instruction ", e.name(), " is called inside an expression");
  }
  ASSIGN_OR_RETURN(int32_t a, Value(e.operand(0), index));
  int32_t b = a;
  if (e.operands().size() > 1) {
    ASSIGN_OR_RETURN(b, Value(e.operand(1), index));
  }
  if (e.operands().size() > 2) {
    // The only one of three arguments.
    ASSIGN_OR_RETURN(const int32_t c, Value(e.operand(2), index));
    Emit({.code = Code::kFma, .type = e.type(), .dst = slot, .a = a, .b = b, .target = c});
    return absl::OkStatus();
  }
  Emit({.code = Code::kIntrinsic,
        .type = e.type(),
        .dst = slot,
        .a = a,
        .b = b,
        .target = static_cast<int32_t>(FindPureIntrinsic(e.name()) - PureIntrinsics().data())});
  return absl::OkStatus();
}

absl::Status Compiler::BinaryInto(int32_t slot, Expr e, bool index) {
  const Type type = e.operand(0).type();
  ASSIGN_OR_RETURN(int32_t a, Value(e.operand(0), index));
  // A divisor decides whether the program goes on.
  const bool divides = IsInt(type) && (e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod));
  const bool may_be_undefined = std::exchange(may_be_undefined_, may_be_undefined_ && !divides);
  ASSIGN_OR_RETURN(int32_t b, Value(e.operand(1), index));
  may_be_undefined_ = may_be_undefined;
  const Code code =
      IsFloat(type) ? FloatCode(e.kind()) : IntCode(e.kind(), type, index && IsIndexType(type));
  Emit({.code = code, .type = type, .dst = slot, .a = a, .b = b});
  return absl::OkStatus();
}

absl::StatusOr<int32_t> Compiler::FlatIndex(const BufferNode* buffer,
                                            absl::Span<const Expr> indices) {
  auto it = memory_of_.find(buffer);
  if (it == memory_of_.end()) {
    return InvalidInput("buffer '", buffer->name, "' is used outside its scope");
  }
  const std::vector<int32_t>& extents = p_.extents[it->second];
  const int32_t flat = Temp();
  if (indices.empty()) {
    Emit({.code = Code::kMove, .dst = flat, .a = Constant(buffer->context->I64(0))});
  }
  for (size_t d = 0; d < indices.size(); ++d) {
    ASSIGN_OR_RETURN(int32_t index, Value(indices[d], true));
    Emit({.code = d == 0 ? Code::kIndex : Code::kNextIndex,
          .dst = flat,
          .a = index,
          .b = extents[d],
          .target = static_cast<int32_t>(d)});
  }
  return flat;
}

absl::Status Compiler::NewMemory(Buffer buffer, bool evaluate_extents) {
  const int32_t memory = static_cast<int32_t>(p_.memories.size());
  p_.memories.emplace_back();
  p_.buffers.push_back(buffer.node());
  p_.extents.emplace_back();
  for (Expr extent : buffer->extents) {
    const int32_t slot = NewSlot();
    if (evaluate_extents) RETURN_IF_ERROR(ValueInto(slot, extent, true));
    p_.extents.back().push_back(slot);
  }
  memory_of_[buffer.node()] = memory;
  return absl::OkStatus();
}

absl::Status Compiler::Call(Stmt s) {
  const Expr call = s.value();
  if (call.callee() != nullptr) return CallExtern(call, /*result=*/-1);
  const Function* meaning =
      options_.intrinsics == nullptr ? nullptr : options_.intrinsics->FindMeaning(call.name());
  if (meaning == nullptr) return InvalidInput("no instruction is named '", call.name(), "'");
  auto instruction = std::make_unique<InstructionCall>();
  instruction->meaning = meaning;
  if (meaning->params.size() != call.operands().size()) {
    return InvalidInput(call.name(), " takes ", meaning->params.size(), " arguments, found ",
                        call.operands().size());
  }
  RETURN_IF_ERROR(Arguments(call, *meaning, *instruction));
  if (options_.device == nullptr) {
    ASSIGN_OR_RETURN(instruction->interpreter, Interpreter::Create(*meaning, options_));
  }
  Emit({.code = Code::kCallInstruction, .target = static_cast<int32_t>(p_.calls.size())});
  p_.calls.push_back(std::move(instruction));
  return absl::OkStatus();
}

absl::Status Compiler::CallExtern(Expr call, int32_t result) {
  const ExternNode& callee = *call.callee();
  if (!HasMeaning(callee)) {
    return InvalidInput("the extern function '", callee.name,
                        "' has no meaning to interpret: only its declaration is known; declare it "
                        "with ",
                        callee.result ? "'= value'" : "a block");
  }
  auto prepared = std::make_unique<InstructionCall>();
  prepared->extern_meaning = MeaningOf(callee);
  prepared->meaning = &prepared->extern_meaning;
  RETURN_IF_ERROR(Arguments(call, *prepared->meaning, *prepared));
  InterpreterOptions options = options_;
  options.device = nullptr;
  ASSIGN_OR_RETURN(prepared->interpreter, Interpreter::Create(*prepared->meaning, options));
  Emit({.code = Code::kCallExtern,
        .type = call.type(),
        .dst = result,
        .target = static_cast<int32_t>(p_.calls.size())});
  p_.calls.push_back(std::move(prepared));
  return absl::OkStatus();
}

absl::Status Compiler::Arguments(Expr call, const Function& meaning, InstructionCall& prepared) {
  // What a callee does with an element never stored is not known.
  const bool may_be_undefined = std::exchange(may_be_undefined_, false);
  for (size_t i = 0; i < call.operands().size(); ++i) {
    const Expr operand = call.operands()[i];
    const Param& param = meaning.params[i];
    InstructionCall::Argument argument;
    if (param.buffer) {
      if (!operand.Is(ExprKind::kAddress)) {
        return InvalidInput(call.name(), ": argument '", param.name(), "' must be an address");
      }
      if (operand.buffer()->type != param.buffer->type) {
        return InvalidInput(call.name(), ": argument '", param.name(), "' is an address of ",
                            TypeName(param.buffer->type), ", found one of ",
                            TypeName(operand.buffer()->type));
      }
      ASSIGN_OR_RETURN(argument.slot, FlatIndex(operand.buffer(), operand.operands()));
      argument.buffer = Memory(operand.buffer());
    } else {
      if (operand.type() != param.var.type()) {
        return InvalidInput(call.name(), ": argument '", param.name(), "' is ",
                            TypeName(param.var.type()), ", found ", TypeName(operand.type()));
      }
      ASSIGN_OR_RETURN(argument.slot, Value(operand, true));
    }
    prepared.arguments.push_back(argument);
  }
  may_be_undefined_ = may_be_undefined;
  return absl::OkStatus();
}

absl::Status Compiler::Statement(Stmt s) {
  next_temp_ = 0;
  if (!s.Is(StmtKind::kSeq) && !s.Is(StmtKind::kPragma)) At(s);
  switch (s.kind()) {
    case StmtKind::kFor: {
      const int32_t var = NewSlot();
      const int32_t left = NewSlot();
      RETURN_IF_ERROR(ValueInto(var, s.min(), true));
      ASSIGN_OR_RETURN(int32_t extent, Value(s.extent(), true));
      Emit({.code = Code::kLoopCount, .type = s.var().type(), .dst = left, .a = var, .b = extent});
      var_slots_[s.var().node()] = var;
      const int32_t test = Emit({.code = Code::kLoopTest, .a = left});
      loops_.emplace_back(std::string(s.var().name()), var);
      Emit({.code = Code::kEnter});
      RETURN_IF_ERROR(Statement(s.body()));
      loops_.pop_back();
      At(s);
      Emit({.code = Code::kLoopNext, .dst = var, .a = left, .target = test});
      Here(test);
      return absl::OkStatus();
    }
    case StmtKind::kIf: {
      ASSIGN_OR_RETURN(int32_t condition, Value(s.cond(), true));
      const int32_t to_else = Emit({.code = Code::kBranch, .a = condition});
      RETURN_IF_ERROR(Statement(s.then_case()));
      if (s.else_case().IsEmpty()) {
        Here(to_else);
        return absl::OkStatus();
      }
      const int32_t to_end = Emit({.code = Code::kJump});
      Here(to_else);
      RETURN_IF_ERROR(Statement(s.else_case()));
      Here(to_end);
      return absl::OkStatus();
    }
    case StmtKind::kLet: {
      const int32_t var = NewSlot();
      RETURN_IF_ERROR(ValueInto(var, s.value(), false));
      var_slots_[s.var().node()] = var;
      loops_.emplace_back(std::string(s.var().name()), IsFloat(s.var().type()) ? -1 : var);
      RETURN_IF_ERROR(Statement(s.body()));
      loops_.pop_back();
      return absl::OkStatus();
    }
    case StmtKind::kAllocate: {
      RETURN_IF_ERROR(NewMemory(s.buffer(), true));
      const int32_t memory = Memory(s.buffer().node());
      allocated_.insert(s.buffer().node());
      Emit({.code = Code::kAllocate, .b = memory});
      RETURN_IF_ERROR(Statement(s.body()));
      Emit({.code = Code::kRelease, .b = memory});
      return absl::OkStatus();
    }
    case StmtKind::kStore: {
      ASSIGN_OR_RETURN(int32_t flat, FlatIndex(s.buffer().node(), s.indices()));
      may_be_undefined_ = allocated_.contains(s.buffer().node());
      ASSIGN_OR_RETURN(int32_t value, Value(s.value(), false));
      may_be_undefined_ = false;
      Emit({.code = IsFloat(s.buffer()->type) ? Code::kStoreFloat : Code::kStoreInt,
            .type = s.buffer()->type,
            .dst = flat,
            .a = value,
            .b = Memory(s.buffer().node())});
      return absl::OkStatus();
    }
    case StmtKind::kPragma:
      return Statement(s.body());
    case StmtKind::kEvaluate:
      return Call(s);
    case StmtKind::kSeq:
      for (Stmt child : s.children()) RETURN_IF_ERROR(Statement(child));
      return absl::OkStatus();
  }
  POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
}

absl::Status Compiler::Run() {
  p_.name = function_.name;
  p_.params = function_.params;
  p_.max_operations = options_.max_operations;
  p_.device = options_.device;
  p_.places.push_back({});
  for (const Param& param : function_.params) {
    if (!param.var) {
      p_.param_index.push_back(-1);
      continue;
    }
    p_.param_index.push_back(NewSlot());
    var_slots_[param.var.node()] = p_.param_index.back();
  }
  for (size_t i = 0; i < function_.params.size(); ++i) {
    if (!function_.params[i].buffer) continue;
    p_.param_index[i] = static_cast<int32_t>(p_.memories.size());
    RETURN_IF_ERROR(NewMemory(function_.params[i].buffer, true));
  }
  Emit({.code = Code::kEnd});
  p_.body_start = static_cast<int32_t>(p_.ops.size());
  RETURN_IF_ERROR(Statement(function_.body));
  Emit({.code = Code::kEnd});
  p_.slots = p_.initial;
  return absl::OkStatus();
}

}  // namespace

absl::Status CompileToBytecode(const Function& function, const InterpreterOptions& options,
                               Interpreter::Program& program) {
  return Compiler(function, options, program).Run();
}

}  // namespace polynao::ir
