#include "compiler/ir/interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/bytecode.h"
#include "compiler/ir/device.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/text.h"

namespace polynao::ir {
namespace {

// Elements of one allocation: a function that asks for more does so by mistake, or as a random one in a test.
constexpr int64_t kMaxAllocated = int64_t{1} << 26;

double RoundTo(Type type, double value) {
  if (type == Type::kF32) return static_cast<float>(value);
  if (type == Type::kF64) return value;
  return RoundFloat(type, value);
}

// The types that most programs load and store come first.
void LoadElement(const Op& op, const uint8_t* data, int64_t index, Slot& result) {
  if (op.type == Type::kF32) {
    float value;
    std::memcpy(&value, data + index * 4, 4);
    result.f = value;
  } else if (op.type == Type::kI32) {
    int32_t value;
    std::memcpy(&value, data + index * 4, 4);
    result.i = value;
  } else if (op.code == Code::kLoadFloat) {
    result.f = LoadFloat(op.type, data + index * ByteSize(op.type));
  } else {
    result.i = ir::LoadInt(op.type, data + index * ByteSize(op.type));
  }
}

void StoreElement(const Op& op, uint8_t* data, int64_t index, Slot value) {
  if (op.type == Type::kF32) {
    const float single = static_cast<float>(value.f);
    std::memcpy(data + index * 4, &single, 4);
  } else if (op.code == Code::kStoreFloat) {
    StoreFloat(op.type, data + index * ByteSize(op.type), value.f);
  } else {
    ir::StoreInt(op.type, data + index * ByteSize(op.type), value.i);
  }
}

}  // namespace

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
  return RunMeaning(op, at, /*propagate=*/true);
}

absl::Status Interpreter::Program::CallExtern(const Op& op, int64_t at) {
  if (op.dst < 0) return RunMeaning(op, at, /*propagate=*/true);
  // The result is the meaning's last parameter.
  Program& inner = *calls[op.target]->interpreter->program_;
  uint8_t bytes[8];
  struct Memory& result = inner.memories[inner.param_index.back()];
  result.data = bytes;
  result.defined = nullptr;
  result.count = 1;
  RETURN_IF_ERROR(RunMeaning(op, at, /*propagate=*/false));
  if (IsFloat(op.type)) {
    slots[op.dst].f = LoadFloat(op.type, bytes);
  } else {
    slots[op.dst].i = ir::LoadInt(op.type, bytes);
  }
  return absl::OkStatus();
}

absl::Status Interpreter::Program::RunMeaning(const Op& op, int64_t at, bool propagate) {
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
    inner.propagate_undefined = propagate;
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

absl::Status Interpreter::Program::Allocate(const Op& op, int64_t at) {
  struct Memory& memory = memories[op.b];
  const BufferNode* const buffer = buffers[op.b];
  int64_t count = 1;
  for (int32_t slot : extents[op.b]) {
    const int64_t extent = slots[slot].i;
    if (extent < 0) {
      return TrapAt(at, StrCat("allocation of ", buffer->name, " with the extent ", extent));
    }
    if (__builtin_mul_overflow(count, extent, &count)) return TrapAt(at, "allocation overflows");
  }
  if (count > kMaxAllocated) return TrapAt(at, StrCat("allocation of ", count, " elements"));
  memory.count = count;
  if (device != nullptr) {
    absl::StatusOr<uint8_t*> data = device->Allocate(*buffer);
    if (!data.ok()) return TrapAt(at, ToStd(data.status().message()));
    memory.data = *data;
    memory.defined = nullptr;
    return absl::OkStatus();
  }
  memory.storage.resize(count * ByteSize(buffer->type));
  memory.flags.assign(count, 0);
  memory.data = memory.storage.data();
  memory.defined = memory.flags.data();
  return absl::OkStatus();
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
#define JUMP op = code + op->target; continue
// Operations that neither stop nor jump: `result` over operands x and y.
#define INT(code, result) \
  case Code::code: { const int64_t x = s[op->a].i, y = s[op->b].i; s[op->dst].i = (result); NEXT; }
#define INT_OF_FLOAT(code, result) \
  case Code::code: { const double x = s[op->a].f, y = s[op->b].f; s[op->dst].i = (result); NEXT; }
#define FLOAT(code, result) \
  case Code::code: { const double x = s[op->a].f, y = s[op->b].f; s[op->dst].f = (result); NEXT; }
#define WRAPPING(code, operation) \
  INT(code, WrapInt(op->type, static_cast<int64_t>(static_cast<uint64_t>(x) operation static_cast<uint64_t>(y))))
#define ROUNDED(code, result) FLOAT(code, RoundTo(op->type, result))
#define DIVISION(code, name, result) \
  case Code::code: if (s[op->b].i == 0) TRAP(name " by zero"); s[op->dst].i = (result); NEXT;
#define INDEX_ARITHMETIC(code, builtin) \
  case Code::code: { \
    int64_t result; \
    if (builtin(s[op->a].i, s[op->b].i, &result) || !FitsInt(op->type, result)) { \
      TRAP(StrCat("the index arithmetic overflows ", TypeName(op->type))); \
    } \
    s[op->dst].i = result; \
    NEXT; \
  }
  while (true) {
    ++executed[static_cast<int>(op->code)];
    switch (op->code) {
      case Code::kMove: s[op->dst] = s[op->a]; NEXT;
      WRAPPING(kAddInt, +)
      WRAPPING(kSubInt, -)
      WRAPPING(kMulInt, *)
      INDEX_ARITHMETIC(kAddIndex, __builtin_add_overflow)
      INDEX_ARITHMETIC(kSubIndex, __builtin_sub_overflow)
      INDEX_ARITHMETIC(kMulIndex, __builtin_mul_overflow)
      DIVISION(kDivInt, "division", WrapInt(op->type, FloorDiv(s[op->a].i, s[op->b].i)))
      DIVISION(kModInt, "remainder of a division", FloorMod(s[op->a].i, s[op->b].i))
      DIVISION(kDivU64, "division", DivInt(Type::kU64, s[op->a].i, s[op->b].i))
      DIVISION(kModU64, "remainder of a division", ModInt(Type::kU64, s[op->a].i, s[op->b].i))
      INT(kMinInt, y < x ? y : x)
      INT(kMaxInt, x < y ? y : x)
      INT(kAndInt, x & y)
      INT(kOrInt, x | y)
      INT(kXorInt, x ^ y)
      INT(kShiftLeft, ir::ShiftLeft(op->type, x, y))
      INT(kShiftRight, ir::ShiftRight(op->type, x, y))
      INT(kMinU64, IntLess(Type::kU64, y, x) ? y : x)
      INT(kMaxU64, IntLess(Type::kU64, x, y) ? y : x)
      INT(kLtU64, IntLess(Type::kU64, x, y))
      INT(kLeU64, !IntLess(Type::kU64, y, x))
      INT(kEqInt, x == y)
      INT(kNeInt, x != y)
      INT(kLtInt, x < y)
      INT(kLeInt, x <= y)
      ROUNDED(kAddFloat, x + y)
      ROUNDED(kSubFloat, x - y)
      ROUNDED(kMulFloat, x * y)
      ROUNDED(kDivFloat, x / y)
      ROUNDED(kIntrinsic, intrinsics[op->target].evaluate(op->type, x, y, 0))
      ROUNDED(kFma, FusedMultiplyAdd(op->type, x, y, s[op->target].f))
      FLOAT(kMinFloat, y < x ? y : x)
      FLOAT(kMaxFloat, x < y ? y : x)
      INT_OF_FLOAT(kEqFloat, x == y)
      INT_OF_FLOAT(kNeFloat, x != y)
      INT_OF_FLOAT(kLtFloat, x < y)
      INT_OF_FLOAT(kLeFloat, x <= y)
      case Code::kNot: s[op->dst].i = !s[op->a].i; NEXT;
      // clang-format on
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
      case Code::kIndex:
      case Code::kNextIndex: {
        const int64_t index = s[op->a].i;
        const int64_t extent = s[op->b].i;
        // A negative extent counts as 0.
        if (index < 0 || index >= extent) {
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
        LoadElement(*op, memory.data, index, s[op->dst]);
        NEXT;
      }
      case Code::kStoreInt:
      case Code::kStoreFloat: {
        struct Memory& memory = memories[op->b];
        const int64_t index = s[op->dst].i;
        if (memory.defined != nullptr) memory.defined[index] = !undefined;
        undefined = false;
        StoreElement(*op, memory.data, index, s[op->a]);
        NEXT;
      }
      case Code::kJump:
        JUMP;
      case Code::kBranch:
      case Code::kShortAnd:
        if (s[op->a].i == 0) {
          JUMP;
        }
        NEXT;
      case Code::kShortOr:
        if (s[op->a].i != 0) {
          JUMP;
        }
        NEXT;
      case Code::kLoopCount: {
        const int64_t extent = std::max<int64_t>(s[op->b].i, 0);
        int64_t last;
        if (extent > 0 &&
            (__builtin_add_overflow(s[op->a].i, extent - 1, &last) || !FitsInt(op->type, last))) {
          TRAP(StrCat("the loop's last value overflows ", TypeName(op->type)));
        }
        s[op->dst].i = extent;
        NEXT;
      }
      case Code::kLoopTest:
        if (s[op->a].i == 0) {
          JUMP;
        }
        if (--budget < 0) TRAP(StrCat("more than ", max_operations, " loop iterations"));
        NEXT;
      case Code::kLoopNext:
        // Behind the last iteration there may be no next value.
        s[op->dst].i = static_cast<int64_t>(static_cast<uint64_t>(s[op->dst].i) + 1);
        --s[op->a].i;
        JUMP;
      case Code::kAllocate:
        RETURN_IF_ERROR(Allocate(*op, op - code));
        NEXT;
      case Code::kEnter:
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
      case Code::kCallExtern:
        RETURN_IF_ERROR(CallExtern(*op, op - code));
        NEXT;
      case Code::kEnd:
        return absl::OkStatus();
    }
  }
#undef TRAP
#undef NEXT
#undef JUMP
#undef INT
#undef INT_OF_FLOAT
#undef FLOAT
#undef WRAPPING
#undef ROUNDED
#undef DIVISION
#undef INDEX_ARITHMETIC
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
                              CompileToBytecode(function, options, *program)));
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
