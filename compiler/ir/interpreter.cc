#include "compiler/ir/interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/device.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/text.h"

namespace polynao::ir {

// ---- bytecode -----------------------------------------------------------------------------------

namespace {

union Slot {
  int64_t i;
  double f;
};

// V(code, field of Counts that executing it adds to)
#define POLYNAO_CODES(V)                                                                        \
  V(Move, nullptr)            /* dst = a */                                                     \
  V(AddInt, &Counts::int_add) /* dst = wrap(a op b) */                                          \
  V(SubInt, &Counts::int_add)                                                                   \
  V(MulInt, &Counts::int_mul)                                                                   \
  V(AddIndex, &Counts::int_add) /* the same, but a result that wraps traps */                   \
  V(SubIndex, &Counts::int_add)                                                                 \
  V(MulIndex, &Counts::int_mul)                                                                 \
  V(DivInt, &Counts::int_div)                                                                   \
  V(ModInt, &Counts::int_div)                                                                   \
  V(AndInt, &Counts::int_add)                                                                   \
  V(OrInt, &Counts::int_add)                                                                    \
  V(XorInt, &Counts::int_add)                                                                   \
  V(ShiftLeft, &Counts::int_add)                                                                \
  V(ShiftRight, &Counts::int_add)                                                               \
  V(MinInt, &Counts::int_compare)                                                               \
  V(MaxInt, &Counts::int_compare)                                                               \
  V(EqInt, &Counts::int_compare)                                                                \
  V(NeInt, &Counts::int_compare)                                                                \
  V(LtInt, &Counts::int_compare)                                                                \
  V(LeInt, &Counts::int_compare)                                                                \
  V(DivU64, &Counts::int_div) /* where the sign of an i64 would count */                        \
  V(ModU64, &Counts::int_div)                                                                   \
  V(MinU64, &Counts::int_compare)                                                               \
  V(MaxU64, &Counts::int_compare)                                                               \
  V(LtU64, &Counts::int_compare)                                                                \
  V(LeU64, &Counts::int_compare)                                                                \
  V(AddFloat, &Counts::float_ops)                                                               \
  V(SubFloat, &Counts::float_ops)                                                               \
  V(MulFloat, &Counts::float_ops)                                                               \
  V(DivFloat, &Counts::float_ops)                                                               \
  V(MinFloat, &Counts::float_ops)                                                               \
  V(MaxFloat, &Counts::float_ops)                                                               \
  V(EqFloat, &Counts::float_ops)                                                                \
  V(NeFloat, &Counts::float_ops)                                                                \
  V(LtFloat, &Counts::float_ops)                                                                \
  V(LeFloat, &Counts::float_ops)                                                                \
  V(Not, &Counts::logic)                                                                        \
  V(CastIntInt, &Counts::casts) /* type: the result's */                                        \
  V(CastIntFloat, &Counts::casts)                                                               \
  V(CastU64Float, &Counts::casts)                                                               \
  V(CastFloatInt, &Counts::casts)                                                               \
  V(CastFloatFloat, &Counts::casts)                                                             \
  V(Intrinsic, &Counts::float_ops) /* dst = intrinsic number `target` of a (and b) */           \
  V(Index, nullptr)                /* dst = a, checked against the extent in slot b */          \
  V(NextIndex, nullptr)      /* dst = dst * extent + a, checked against the extent in slot b */ \
  V(LoadInt, &Counts::loads) /* dst = element a of buffer b, which must be stored if !target */ \
  V(LoadFloat, &Counts::loads)                                                                  \
  V(StoreInt, &Counts::stores) /* element dst of buffer b = a */                                \
  V(StoreFloat, &Counts::stores)                                                                \
  V(Jump, nullptr)                                                                              \
  V(Branch, &Counts::branches)   /* to target if a is 0 */                                      \
  V(ShortAnd, &Counts::logic)    /* to target if a is 0; counts as logic */                     \
  V(ShortOr, &Counts::logic)     /* to target if a is not 0 */                                  \
  V(LoopTest, &Counts::branches) /* to target unless slot dst < slot a */                       \
  V(LoopNext, nullptr)           /* ++dst, to target */                                         \
  V(LoopEnd, nullptr)            /* dst = a + max(b, 0), checked */                             \
  V(Enter, &Counts::iterations)                                                                 \
  V(Allocate, nullptr) /* buffer b of the extents in slots a .. */                              \
  V(Release, nullptr)                                                                           \
  V(CallInstruction, &Counts::instructions) /* call number `target` */                          \
  V(End, nullptr)

enum class Code : uint8_t {
#define V(name, count) k##name,
  POLYNAO_CODES(V)
#undef V
};

constexpr int kCodeCount = 0
#define V(name, count) +1
    POLYNAO_CODES(V)
#undef V
    ;

constexpr int64_t Counts::* kCountOf[] = {
#define V(name, count) count,
    POLYNAO_CODES(V)
#undef V
};

struct Op {
  Code code;
  Type type = Type::kI64;
  int32_t dst = 0;
  int32_t a = 0;
  int32_t b = 0;
  int32_t target = 0;
};

double RoundTo(Type type, double value) {
  if (type == Type::kF32) return static_cast<float>(value);
  if (type == Type::kF64) return value;
  return RoundFloat(type, value);
}

// A buffer while the program runs.
struct Memory {
  uint8_t* data = nullptr;
  uint8_t* defined = nullptr;  // one byte an element; null: all defined
  int64_t count = 0;           // elements
  std::vector<uint8_t> storage;
  std::vector<uint8_t> flags;
};

// Where an operation came from, for messages.
struct Place {
  Stmt stmt;
  std::vector<std::pair<std::string, int32_t>> loops;  // variable and slot, outermost first
};

struct InstructionCall {
  const Function* meaning;
  std::unique_ptr<Interpreter> interpreter;  // null with a device
  struct Argument {
    int32_t slot;         // value, or flat element index for an address
    int32_t buffer = -1;  // memory index of an address
  };
  std::vector<Argument> arguments;
};

}  // namespace

struct Interpreter::Program {
  std::string name;
  std::vector<Op> ops;
  std::vector<int32_t> op_place;  // index in places
  std::vector<Place> places;
  std::vector<Slot> initial;  // constants; the rest is zero
  std::vector<Slot> slots;
  std::vector<Memory> memories;
  std::vector<const BufferNode*> buffers;     // of each memory
  std::vector<std::vector<int32_t>> extents;  // slots of each memory's extents
  std::vector<Param> params;
  std::vector<int32_t> param_index;  // slot or memory of each parameter
  std::vector<std::unique_ptr<InstructionCall>> calls;
  int64_t max_operations = 0;
  Device* device = nullptr;
  int32_t resume_at = -1;  // where a suspended run goes on; -1 if none is
  int64_t executed[kCodeCount] = {};
  // While an instruction's meaning runs: all loads of undefined elements are allowed. They make the
  // next store undefined.
  bool propagate_undefined = false;
  int32_t body_start = 0;  // after the code that evaluates extents of parameters

  absl::Status Execute(int32_t start);
  absl::Status CallInstruction(const Op& op, int64_t at);
  // Whether the run goes on.
  absl::StatusOr<bool> CallDevice(const Op& op);
  absl::Status TrapAt(int64_t at, std::string_view why) const;
};

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

  // Emits the code of `e` and returns the slot of its value. `index`: in an index, bound or
  // condition, where overflow traps, and so does a load of what was never stored.
  absl::StatusOr<int32_t> Value(Expr e, bool index);
  absl::Status ValueInto(int32_t slot, Expr e, bool index);
  absl::StatusOr<int32_t> FlatIndex(const BufferNode* buffer, absl::Span<const Expr> indices);
  absl::Status Statement(Stmt s);
  absl::Status Call(Stmt s);
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
  // Within a value that goes to an allocation: what was never stored may be loaded.
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

// A wrap in these types stops the program where the value is an index.
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
    case ExprKind::kCast: {
      ASSIGN_OR_RETURN(int32_t a, Value(e.operand(0), index));
      const bool from_float = IsFloat(e.operand(0).type());
      const bool to_float = IsFloat(e.type());
      const Code int_to_float =
          e.operand(0).type() == Type::kU64 ? Code::kCastU64Float : Code::kCastIntFloat;
      const Code code = from_float ? (to_float ? Code::kCastFloatFloat : Code::kCastFloatInt)
                                   : (to_float ? int_to_float : Code::kCastIntInt);
      Emit({.code = code, .type = e.type(), .dst = slot, .a = a});
      return absl::OkStatus();
    }
    case ExprKind::kNot: {
      ASSIGN_OR_RETURN(int32_t a, Value(e.operand(0), index));
      Emit({.code = Code::kNot, .dst = slot, .a = a});
      return absl::OkStatus();
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      RETURN_IF_ERROR(ValueInto(slot, e.operand(0), index));
      const Code code = e.Is(ExprKind::kAnd) ? Code::kShortAnd : Code::kShortOr;
      const int32_t skip = Emit({.code = code, .a = slot});
      RETURN_IF_ERROR(ValueInto(slot, e.operand(1), index));
      Here(skip);
      return absl::OkStatus();
    }
    case ExprKind::kSelect: {
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
    case ExprKind::kLet: {
      // The variable has a slot of its own: an operand on the way may be evaluated into
      // temporaries.
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
    case ExprKind::kCall: {
      if (!IsPureIntrinsic(e.name())) {
        return InvalidInput("the instruction ", e.name(), " is called inside an expression");
      }
      ASSIGN_OR_RETURN(int32_t a, Value(e.operand(0), index));
      int32_t b = a;
      if (e.operands().size() > 1) {
        ASSIGN_OR_RETURN(b, Value(e.operand(1), index));
      }
      Emit({.code = Code::kIntrinsic,
            .type = e.type(),
            .dst = slot,
            .a = a,
            .b = b,
            .target = static_cast<int32_t>(FindPureIntrinsic(e.name()) - PureIntrinsics().data())});
      return absl::OkStatus();
    }
    default: {
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
  }
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
  const Function* meaning =
      options_.intrinsics == nullptr ? nullptr : options_.intrinsics->FindMeaning(call.name());
  if (meaning == nullptr) return InvalidInput("no instruction is named '", call.name(), "'");
  // Registers, the program counter and arguments are the machine's; compiled calls have none.
  auto instruction = std::make_unique<InstructionCall>();
  instruction->meaning = meaning;
  if (meaning->params.size() != call.operands().size()) {
    return InvalidInput(call.name(), " takes ", meaning->params.size(), " arguments, found ",
                        call.operands().size());
  }
  for (size_t i = 0; i < call.operands().size(); ++i) {
    const Expr operand = call.operands()[i];
    const Param& param = meaning->params[i];
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
    instruction->arguments.push_back(argument);
  }
  if (options_.device == nullptr) {
    ASSIGN_OR_RETURN(instruction->interpreter, Interpreter::Create(*meaning, options_));
  }
  Emit({.code = Code::kCallInstruction, .target = static_cast<int32_t>(p_.calls.size())});
  p_.calls.push_back(std::move(instruction));
  return absl::OkStatus();
}

absl::Status Compiler::Statement(Stmt s) {
  next_temp_ = 0;
  if (!s.Is(StmtKind::kSeq) && !s.Is(StmtKind::kPragma)) At(s);
  switch (s.kind()) {
    case StmtKind::kFor: {
      const int32_t var = NewSlot();
      const int32_t end = NewSlot();
      RETURN_IF_ERROR(ValueInto(var, s.min(), true));
      ASSIGN_OR_RETURN(int32_t extent, Value(s.extent(), true));
      Emit({.code = Code::kLoopEnd, .type = s.var().type(), .dst = end, .a = var, .b = extent});
      var_slots_[s.var().node()] = var;
      const int32_t test = Emit({.code = Code::kLoopTest, .dst = var, .a = end});
      loops_.emplace_back(std::string(s.var().name()), var);
      Emit({.code = Code::kEnter});
      RETURN_IF_ERROR(Statement(s.body()));
      loops_.pop_back();
      At(s);
      Emit({.code = Code::kLoopNext, .dst = var, .target = test});
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

// ---- execution ----------------------------------------------------------------------------------

absl::Status Interpreter::Program::TrapAt(int64_t at, std::string_view why) const {
  const Place& place = places[op_place[at]];
  const std::string text = place.stmt ? PrintFirstLine(place.stmt) : "";
  std::string values;
  for (const auto& [name, slot] : place.loops) {
    if (slot >= 0) StrAppend(&values, values.empty() ? " with " : ", ", name, " = ", slots[slot].i);
  }
  return absl::FailedPreconditionError(StrCat(
      "function '", name, "'", text.empty() ? "" : StrCat(", in '", text, "'"), values, ": ", why));
}

absl::Status Interpreter::Program::CallInstruction(const Op& op, int64_t at) {
  InstructionCall& call = *calls[op.target];
  Program& inner = *call.interpreter->program_;
  inner.slots = inner.initial;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (call.arguments[i].buffer < 0) {
      inner.slots[inner.param_index[i]] = slots[call.arguments[i].slot];
    }
  }
  absl::Status status = inner.Execute(0);  // extents
  for (size_t i = 0; status.ok() && i < call.arguments.size(); ++i) {
    const InstructionCall::Argument& argument = call.arguments[i];
    if (argument.buffer < 0) continue;
    const struct Memory& outer = memories[argument.buffer];
    struct Memory& view = inner.memories[inner.param_index[i]];
    view.count = 1;
    for (int32_t extent : inner.extents[inner.param_index[i]]) view.count *= inner.slots[extent].i;
    const int64_t begin = slots[argument.slot].i;
    if (view.count > 0 && begin + view.count > outer.count) {
      return TrapAt(at, StrCat("operand '", inner.params[i].name(), "' reaches element ",
                               begin + view.count - 1, " of ", buffers[argument.buffer]->name,
                               ", which has ", outer.count));
    }
    view.data = outer.data + begin * ByteSize(buffers[argument.buffer]->type);
    view.defined = outer.defined == nullptr ? nullptr : outer.defined + begin;
  }
  if (status.ok()) {
    inner.propagate_undefined = true;
    status = inner.Execute(inner.body_start);
  }
  if (!status.ok()) return TrapAt(at, ToStd(status.message()));
  return absl::OkStatus();
}

absl::StatusOr<bool> Interpreter::Program::CallDevice(const Op& op) {
  const InstructionCall& call = *calls[op.target];
  std::vector<RawArgument> arguments(call.arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto [slot, buffer] = call.arguments[i];
    const Param& param = call.meaning->params[i];
    if (param.buffer) {
      arguments[i].address = memories[buffer].data + slots[slot].i * ByteSize(param.buffer->type);
    } else if (IsFloat(param.var.type())) {
      arguments[i].float_value = slots[slot].f;
    } else {
      arguments[i].int_value = slots[slot].i;
    }
  }
  return device->Call(call.meaning->name, arguments);
}

absl::Status Interpreter::Program::Execute(int32_t start) {
  resume_at = -1;
  Slot* const s = slots.data();
  const Op* const code = ops.data();
  const absl::Span<const PureIntrinsic> intrinsics = PureIntrinsics();
  bool undefined = false;
  int64_t budget = max_operations;
  const Op* op = code + start;
  // clang-format off
#define TRAP(why) return TrapAt(op - code, why)
#define NEXT ++op; continue
#define INDEX_ARITHMETIC(builtin)                                        \
  {                                                                      \
    int64_t result;                                                      \
    if (builtin(s[op->a].i, s[op->b].i, &result) || !FitsInt(op->type, result)) { \
      TRAP(StrCat("the index arithmetic overflows ", TypeName(op->type)));  \
    }                                                                    \
    s[op->dst].i = result;                                               \
    NEXT;                                                                \
  }
#define WRAPPING(operation)                                              \
  s[op->dst].i = WrapInt(op->type, static_cast<int64_t>(                 \
      static_cast<uint64_t>(s[op->a].i) operation static_cast<uint64_t>(s[op->b].i))); \
  NEXT
  // clang-format on
  while (true) {
    ++executed[static_cast<int>(op->code)];
    switch (op->code) {
      case Code::kMove:
        s[op->dst] = s[op->a];
        NEXT;
      case Code::kAddInt:
        WRAPPING(+);
      case Code::kSubInt:
        WRAPPING(-);
      case Code::kMulInt:
        WRAPPING(*);
      case Code::kAddIndex:
        INDEX_ARITHMETIC(__builtin_add_overflow)
      case Code::kSubIndex:
        INDEX_ARITHMETIC(__builtin_sub_overflow)
      case Code::kMulIndex:
        INDEX_ARITHMETIC(__builtin_mul_overflow)
      case Code::kDivInt:
        if (s[op->b].i == 0) TRAP("division by zero");
        s[op->dst].i = WrapInt(op->type, FloorDiv(s[op->a].i, s[op->b].i));
        NEXT;
      case Code::kModInt:
        if (s[op->b].i == 0) TRAP("remainder of a division by zero");
        s[op->dst].i = FloorMod(s[op->a].i, s[op->b].i);
        NEXT;
      case Code::kMinInt:
        s[op->dst].i = s[op->b].i < s[op->a].i ? s[op->b].i : s[op->a].i;
        NEXT;
      case Code::kMaxInt:
        s[op->dst].i = s[op->a].i < s[op->b].i ? s[op->b].i : s[op->a].i;
        NEXT;
      case Code::kAndInt:
        s[op->dst].i = s[op->a].i & s[op->b].i;
        NEXT;
      case Code::kOrInt:
        s[op->dst].i = s[op->a].i | s[op->b].i;
        NEXT;
      case Code::kXorInt:
        s[op->dst].i = s[op->a].i ^ s[op->b].i;
        NEXT;
      case Code::kShiftLeft:
        s[op->dst].i = ir::ShiftLeft(op->type, s[op->a].i, s[op->b].i);
        NEXT;
      case Code::kShiftRight:
        s[op->dst].i = ir::ShiftRight(op->type, s[op->a].i, s[op->b].i);
        NEXT;
      case Code::kDivU64:
        if (s[op->b].i == 0) TRAP("division by zero");
        s[op->dst].i = DivInt(Type::kU64, s[op->a].i, s[op->b].i);
        NEXT;
      case Code::kModU64:
        if (s[op->b].i == 0) TRAP("remainder of a division by zero");
        s[op->dst].i = ModInt(Type::kU64, s[op->a].i, s[op->b].i);
        NEXT;
      case Code::kMinU64:
        s[op->dst].i = IntLess(Type::kU64, s[op->b].i, s[op->a].i) ? s[op->b].i : s[op->a].i;
        NEXT;
      case Code::kMaxU64:
        s[op->dst].i = IntLess(Type::kU64, s[op->a].i, s[op->b].i) ? s[op->b].i : s[op->a].i;
        NEXT;
      case Code::kLtU64:
        s[op->dst].i = IntLess(Type::kU64, s[op->a].i, s[op->b].i);
        NEXT;
      case Code::kLeU64:
        s[op->dst].i = !IntLess(Type::kU64, s[op->b].i, s[op->a].i);
        NEXT;
      case Code::kEqInt:
        s[op->dst].i = s[op->a].i == s[op->b].i;
        NEXT;
      case Code::kNeInt:
        s[op->dst].i = s[op->a].i != s[op->b].i;
        NEXT;
      case Code::kLtInt:
        s[op->dst].i = s[op->a].i < s[op->b].i;
        NEXT;
      case Code::kLeInt:
        s[op->dst].i = s[op->a].i <= s[op->b].i;
        NEXT;
      case Code::kAddFloat:
        s[op->dst].f = RoundTo(op->type, s[op->a].f + s[op->b].f);
        NEXT;
      case Code::kSubFloat:
        s[op->dst].f = RoundTo(op->type, s[op->a].f - s[op->b].f);
        NEXT;
      case Code::kMulFloat:
        s[op->dst].f = RoundTo(op->type, s[op->a].f * s[op->b].f);
        NEXT;
      case Code::kDivFloat:
        s[op->dst].f = RoundTo(op->type, s[op->a].f / s[op->b].f);
        NEXT;
      case Code::kMinFloat:
        s[op->dst].f = s[op->b].f < s[op->a].f ? s[op->b].f : s[op->a].f;
        NEXT;
      case Code::kMaxFloat:
        s[op->dst].f = s[op->a].f < s[op->b].f ? s[op->b].f : s[op->a].f;
        NEXT;
      case Code::kEqFloat:
        s[op->dst].i = s[op->a].f == s[op->b].f;
        NEXT;
      case Code::kNeFloat:
        s[op->dst].i = s[op->a].f != s[op->b].f;
        NEXT;
      case Code::kLtFloat:
        s[op->dst].i = s[op->a].f < s[op->b].f;
        NEXT;
      case Code::kLeFloat:
        s[op->dst].i = s[op->a].f <= s[op->b].f;
        NEXT;
      case Code::kNot:
        s[op->dst].i = !s[op->a].i;
        NEXT;
      case Code::kCastIntInt:
        s[op->dst].i = op->type == Type::kI1 ? s[op->a].i != 0 : WrapInt(op->type, s[op->a].i);
        NEXT;
      case Code::kCastIntFloat:
        s[op->dst].f = op->type == Type::kF32 ? static_cast<float>(s[op->a].i)
                                              : IntToFloat(Type::kI64, s[op->a].i, op->type);
        NEXT;
      case Code::kCastU64Float:
        s[op->dst].f = IntToFloat(Type::kU64, s[op->a].i, op->type);
        NEXT;
      case Code::kCastFloatInt:
        s[op->dst].i = FloatToInt(op->type, s[op->a].f);
        NEXT;
      case Code::kCastFloatFloat:
        s[op->dst].f = RoundTo(op->type, s[op->a].f);
        NEXT;
      case Code::kIntrinsic:
        s[op->dst].f = RoundTo(op->type, intrinsics[op->target].evaluate(s[op->a].f, s[op->b].f));
        NEXT;
      case Code::kIndex:
      case Code::kNextIndex: {
        const int64_t index = s[op->a].i;
        const int64_t extent = s[op->b].i;
        if (index < 0 || index >= extent) {  // a negative extent is that of no element
          TRAP(StrCat("index ", index, " of dimension ", op->target, " is outside 0 .. ",
                      extent - 1));
        }
        s[op->dst].i = op->code == Code::kIndex ? index : s[op->dst].i * extent + index;
        NEXT;
      }
      case Code::kLoadInt:
      case Code::kLoadFloat: {
        const struct Memory& memory = memories[op->b];
        const int64_t index = s[op->a].i;
        if (memory.defined != nullptr && !memory.defined[index]) {
          if (!propagate_undefined && op->target == 0) {
            TRAP(StrCat("element ", index, " of ", buffers[op->b]->name,
                        " is read before it is stored"));
          }
          undefined = true;
        }
        switch (op->type) {
          case Type::kF32: {
            float value;
            std::memcpy(&value, memory.data + index * 4, 4);
            s[op->dst].f = value;
            break;
          }
          case Type::kI32: {
            int32_t value;
            std::memcpy(&value, memory.data + index * 4, 4);
            s[op->dst].i = value;
            break;
          }
          default:
            if (op->code == Code::kLoadFloat) {
              s[op->dst].f = LoadFloat(op->type, memory.data + index * ByteSize(op->type));
            } else {
              s[op->dst].i = ir::LoadInt(op->type, memory.data + index * ByteSize(op->type));
            }
        }
        NEXT;
      }
      case Code::kStoreInt:
      case Code::kStoreFloat: {
        struct Memory& memory = memories[op->b];
        const int64_t index = s[op->dst].i;
        if (memory.defined != nullptr) memory.defined[index] = !undefined;
        undefined = false;
        if (op->type == Type::kF32) {
          const float value = static_cast<float>(s[op->a].f);
          std::memcpy(memory.data + index * 4, &value, 4);
        } else if (op->code == Code::kStoreFloat) {
          StoreFloat(op->type, memory.data + index * ByteSize(op->type), s[op->a].f);
        } else {
          ir::StoreInt(op->type, memory.data + index * ByteSize(op->type), s[op->a].i);
        }
        NEXT;
      }
      case Code::kJump:
        op = code + op->target;
        continue;
      case Code::kBranch:
      case Code::kShortAnd:
        if (s[op->a].i == 0) {
          op = code + op->target;
          continue;
        }
        NEXT;
      case Code::kShortOr:
        if (s[op->a].i != 0) {
          op = code + op->target;
          continue;
        }
        NEXT;
      case Code::kLoopEnd: {
        const int64_t extent = std::max<int64_t>(s[op->b].i, 0);
        int64_t end;
        if (__builtin_add_overflow(s[op->a].i, extent, &end) ||
            (extent > 0 && !FitsInt(op->type, end - 1))) {
          TRAP(StrCat("the loop's last value overflows ", TypeName(op->type)));
        }
        s[op->dst].i = end;
        NEXT;
      }
      case Code::kLoopTest:
        if (s[op->dst].i >= s[op->a].i) {
          op = code + op->target;
          continue;
        }
        if (--budget < 0) TRAP(StrCat("more than ", max_operations, " loop iterations"));
        NEXT;
      case Code::kLoopNext:
        ++s[op->dst].i;
        op = code + op->target;
        continue;
      case Code::kEnter:
        NEXT;
      case Code::kAllocate: {
        struct Memory& memory = memories[op->b];
        int64_t count = 1;
        for (int32_t extent : extents[op->b]) {
          if (s[extent].i < 0) {
            TRAP(StrCat("allocation of ", buffers[op->b]->name, " with the extent ", s[extent].i));
          }
          if (__builtin_mul_overflow(count, s[extent].i, &count)) TRAP("allocation overflows");
        }
        if (count > (int64_t{1} << 34)) TRAP(StrCat("allocation of ", count, " elements"));
        memory.count = count;
        if (device != nullptr) {
          absl::StatusOr<uint8_t*> data = device->Allocate(*buffers[op->b]);
          if (!data.ok()) TRAP(ToStd(data.status().message()));
          memory.data = *data;
          memory.defined = nullptr;
          NEXT;
        }
        memory.storage.resize(count * ByteSize(buffers[op->b]->type));
        memory.flags.assign(count, 0);
        memory.data = memory.storage.data();
        memory.defined = memory.flags.data();
        NEXT;
      }
      case Code::kRelease:
        NEXT;
      case Code::kCallInstruction:
        if (device != nullptr) {
          const absl::StatusOr<bool> goes_on = CallDevice(*op);
          if (!goes_on.ok()) TRAP(ToStd(goes_on.status().message()));
          if (!*goes_on) {
            resume_at = static_cast<int32_t>(op - code) + 1;
            return absl::OkStatus();
          }
          NEXT;
        }
        RETURN_IF_ERROR(CallInstruction(*op, op - code));
        NEXT;
      case Code::kEnd:
        return absl::OkStatus();
    }
  }
#undef TRAP
#undef NEXT
#undef INDEX_ARITHMETIC
#undef WRAPPING
}

Interpreter::Interpreter(std::unique_ptr<Program> program) : program_(std::move(program)) {}
Interpreter::~Interpreter() = default;

bool Interpreter::IsSuspended() const { return program_->resume_at >= 0; }

absl::Status Interpreter::Resume() {
  POLYNAO_CHECK(IsSuspended()) << "function " << program_->name << " is not suspended";
  return program_->Execute(program_->resume_at);
}

absl::StatusOr<std::unique_ptr<Interpreter>> Interpreter::Create(
    const Function& function, const InterpreterOptions& options) {
  auto program = std::make_unique<Program>();
  RETURN_IF_ERROR(WithContext(StrCat("function '", function.name, "'"),
                              Compiler(function, options, *program).Run()));
  return std::unique_ptr<Interpreter>(new Interpreter(std::move(program)));
}

absl::Status Interpreter::RunRaw(const std::vector<RawArgument>& arguments, Counts* counts) {
  Program& p = *program_;
  if (arguments.size() != p.params.size()) {
    return InvalidInput("function '", p.name, "' takes ", p.params.size(), " arguments, found ",
                        arguments.size());
  }
  p.slots = p.initial;
  std::fill(std::begin(p.executed), std::end(p.executed), 0);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!p.params[i].var) continue;
    const Type type = p.params[i].var.type();
    Slot& slot = p.slots[p.param_index[i]];
    if (IsFloat(type)) {
      slot.f = RoundFloat(type, arguments[i].float_value);
    } else {
      slot.i = WrapInt(type, arguments[i].int_value);
    }
  }
  RETURN_IF_ERROR(p.Execute(0));
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!p.params[i].buffer) continue;
    struct Memory& memory = p.memories[p.param_index[i]];
    memory.data = arguments[i].address;
    memory.defined = nullptr;
    memory.count = 1;
    for (int32_t extent : p.extents[p.param_index[i]]) {
      memory.count *= std::max<int64_t>(p.slots[extent].i, 0);
    }
  }
  std::fill(std::begin(p.executed), std::end(p.executed), 0);
  const absl::Status status = p.Execute(p.body_start);
  if (counts != nullptr) {
    for (int i = 0; i < kCodeCount; ++i) {
      if (kCountOf[i] != nullptr) counts->*kCountOf[i] += p.executed[i];
    }
  }
  return status;
}

absl::Status Interpreter::Run(const std::vector<Argument>& arguments, Counts* counts) {
  Program& p = *program_;
  if (arguments.size() != p.params.size()) {
    return InvalidInput("function '", p.name, "' takes ", p.params.size(), " arguments, found ",
                        arguments.size());
  }
  std::vector<RawArgument> raw(arguments.size());
  p.slots = p.initial;
  for (size_t i = 0; i < arguments.size(); ++i) {
    raw[i].int_value = arguments[i].int_value;
    raw[i].float_value = arguments[i].float_value;
    if (p.params[i].buffer) {
      if (arguments[i].tensor == nullptr) {
        return InvalidInput("function '", p.name, "': parameter '", p.params[i].name(),
                            "' needs a tensor");
      }
      raw[i].address = arguments[i].tensor->bytes.data();
    } else if (!IsFloat(p.params[i].var.type())) {
      p.slots[p.param_index[i]].i = WrapInt(p.params[i].var.type(), arguments[i].int_value);
    }
  }
  RETURN_IF_ERROR(p.Execute(0));
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!p.params[i].buffer) continue;
    const Tensor& tensor = *arguments[i].tensor;
    std::vector<int64_t> expected;
    for (int32_t extent : p.extents[p.param_index[i]]) {
      expected.push_back(std::max<int64_t>(p.slots[extent].i, 0));
    }
    const Type type = p.params[i].buffer->type;
    if (tensor.type != type || tensor.shape != expected) {
      const auto text = [](Type t, const std::vector<int64_t>& shape) {
        std::string out(TypeName(t));
        for (size_t d = 0; d < shape.size(); ++d) StrAppend(&out, d == 0 ? "[" : ", ", shape[d]);
        return shape.empty() ? out + "[]" : out + "]";
      };
      return InvalidInput("function '", p.name, "': parameter '", p.params[i].name(), "' is ",
                          text(type, expected), ", found ", text(tensor.type, tensor.shape));
    }
  }
  return RunRaw(raw, counts);
}

absl::Status Interpret(const Function& function, const std::vector<Argument>& arguments,
                       Counts* counts, const InterpreterOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Interpreter> interpreter,
                   Interpreter::Create(function, options));
  return interpreter->Run(arguments, counts);
}

}  // namespace polynao::ir
