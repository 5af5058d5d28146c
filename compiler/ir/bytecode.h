// The interpreter's bytecode. bytecode.cc translates functions to it, interpreter.cc executes it.
#ifndef COMPILER_IR_BYTECODE_H_
#define COMPILER_IR_BYTECODE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/counts.h"
#include "compiler/ir/device.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

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
  V(DivU64, &Counts::int_div) /* slots read as unsigned numbers */                              \
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
  V(Fma, &Counts::float_ops)       /* dst = a * b + slot `target`, rounded once */              \
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
  V(LoopTest, &Counts::branches) /* to target if slot a, the iterations left, is 0 */           \
  V(LoopNext, nullptr)           /* ++dst, --a, to target */                                    \
  V(LoopCount, nullptr)          /* dst = max(b, 0); from a on they must fit the type */        \
  V(Enter, &Counts::iterations)                                                                 \
  V(Allocate, nullptr) /* buffer b of the extents in slots a .. */                              \
  V(Release, nullptr)                                                                           \
  V(CallInstruction, &Counts::instructions) /* call number `target` */                          \
  V(CallExtern, &Counts::instructions)      /* the same; a result goes to dst */                \
  V(End, nullptr)

enum class Code : uint8_t {
#define V(name, count) k##name,
  POLYNAO_CODES(V)
#undef V
};

inline constexpr int kCodeCount = 0
#define V(name, count) +1
    POLYNAO_CODES(V)
#undef V
    ;

inline constexpr int64_t Counts::* kCountOf[] = {
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

// A buffer while the program runs.
struct Memory {
  uint8_t* data = nullptr;
  uint8_t* defined = nullptr;  // one byte an element; null: all defined
  int64_t count = 0;           // elements
  std::vector<uint8_t> storage;
  std::vector<uint8_t> flags;
};

// The statement and loops that an operation belongs to, for messages.
struct Place {
  Stmt stmt;
  std::vector<std::pair<std::string, int32_t>> loops;  // variable and slot, outermost first
};

struct InstructionCall {
  const Function* meaning;
  Function extern_meaning;                   // what `meaning` is of an extern function
  std::unique_ptr<Interpreter> interpreter;  // null with a device
  struct Argument {
    int32_t slot;         // value, or flat element index for an address
    int32_t buffer = -1;  // memory index of an address
  };
  std::vector<Argument> arguments;
};

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
  // Set while the meaning of an instruction runs: it may load undefined elements everywhere. The next
  // store is then undefined.
  bool propagate_undefined = false;
  int32_t body_start = 0;  // after the code that evaluates extents of parameters

  absl::Status Execute(int32_t start);
  absl::Status Allocate(const Op& op, int64_t at);
  absl::Status CallInstruction(const Op& op, int64_t at);
  // Runs call number op.target on what its arguments are now. `propagate`: what it computes from
  // undefined elements is undefined, rather than an error.
  absl::Status RunMeaning(const Op& op, int64_t at, bool propagate);
  absl::Status CallExtern(const Op& op, int64_t at);
  // Returns true if the run goes on.
  absl::StatusOr<bool> CallDevice(const Op& op);
  absl::Status TrapAt(int64_t at, std::string_view why) const;
};

// Turns `function` into bytecode. Errors: a function that is not well-formed; a call of an
// instruction that `options` does not know, or with arguments of other kinds than its meaning's.
absl::Status CompileToBytecode(const Function& function, const InterpreterOptions& options,
                               Interpreter::Program& program);

}  // namespace polynao::ir

#endif  // COMPILER_IR_BYTECODE_H_
