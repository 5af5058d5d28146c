// The tensor ISA: one table row describes an instruction once, and everything reads that row.
//
// A row is a function in loop IR's text form (isa/instructions.nir). Its name is the mnemonic, its
// parameters are the operands in the order in which they are encoded and written, its body is the
// meaning; attributes give the rest:
//
//   @doc("dst = lhs + rhs, element by element.")
//   @opcode(32)
//   @variants(T, f16, f32, i32)              one instruction for each: add.f16, add.f32, add.i32
//   @unit(vector)                            the unit that executes it, and so its queue
//   @require(count % 64 == 0)                constraints; checked when it issues
//   @cost(vector_start + (count * sizeof(T) + vector_bytes - 1) / vector_bytes)
//   func add(dst: T[count] @nmem out, lhs: T[count] @nmem, rhs: T[count] @nmem, count: i64) {
//     for (i: i64, 0, count) { dst[i] = lhs[i] + rhs[i] }
//   }
//
// docs/isa.md has the format of the table and the generated reference.
#ifndef ISA_INSTRUCTION_SET_H_
#define ISA_INSTRUCTION_SET_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/instruction_meanings.h"
#include "compiler/ir/ir.h"
#include "isa/levels.h"
#include "isa/machine.h"

namespace polynao::isa {

// A unit executes instructions. Scalar instructions execute in program order as they issue; all
// others wait in their unit's queue.
enum class Unit : uint8_t {
  kScalar,   // registers, branches, arguments, scalar memory access
  kVector,   // elementwise, fill, reduction, copies inside NMEM   (compute queue)
  kTensor,   // convolution, matrix multiplication                 (compute queue)
  kIoDma,    // copies with GMEM on one side                       (io queue)
  kMoveDma,  // copies between SMEM and NMEM, WMEM, SMEM           (move queue)
  kControl,  // sync and barriers; waits in no queue
};
inline constexpr int kUnitCount = 6;
std::string_view UnitName(Unit unit);

// The in-order queues of a core.
enum class Queue : uint8_t { kCompute, kIo, kMove, kNone };
inline constexpr int kQueueCount = 3;
std::string_view QueueName(Queue queue);
Queue QueueOf(Unit unit);

inline constexpr int kRegisterCount = 64;
inline constexpr int kRegisterBits = 6;

enum class OperandKind : uint8_t {
  kWritten,    // a register that the instruction writes
  kValue,      // a register that holds a scalar
  kAddress,    // a register that holds a byte address in `space`
  kImmediate,  // a constant in the instruction
};

struct Operand {
  std::string name;
  OperandKind kind;
  ir::Type type;            // of the scalar, or of the buffer's elements
  Space space{};            // kAddress
  bool is_written = false;  // kAddress: whether the instruction may write there
  bool is_read = false;     // kAddress
  bool is_target = false;   // kImmediate: an index in the program, where a branch goes
  int bit = 0;              // lowest bit in the instruction word
  int bits = 0;
  int param = 0;  // index in meaning.params
};

// One 128-bit instruction word, bits 0..63 in `low`.
struct Word {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Word&) const = default;
};

// A strided set of bytes: for all 0 <= i_k < counts[k], the `run` bytes at
// begin + sum of i_k * strides[k].
struct ByteRanges {
  Space space;
  bool is_write = false;
  int operand = 0;  // index in Instruction::operands
  int64_t begin = 0;
  int64_t run = 0;
  std::vector<std::pair<int64_t, int64_t>> dims;  // (count, stride), outermost first
  int64_t byte_count() const;
  // One past the last byte; begin if there are none.
  int64_t end() const;
  // Calls visit(begin, size) for each contiguous run, in order of the meaning's loops.
  template <typename Visit>
  void ForEachRun(const Visit& visit) const;
};

// How the values that one store of a meaning writes depend on those that one load below it reads: in
// the iteration (i_0, i_1, ...) of its loops it reads the read_bytes bytes at
// read_begin + sum of i_k * loops[k].read_stride for the write_bytes bytes at
// write_begin + sum of i_k * loops[k].write_stride.
struct Flow {
  struct Loop {
    int64_t count;
    int64_t read_stride;  // in bytes
    int64_t write_stride;
  };
  Space read_space, write_space;
  int64_t read_begin, read_bytes;
  int64_t write_begin, write_bytes;
  bool is_copy = false;     // the value is what was loaded, nothing else
  std::vector<Loop> loops;  // outermost first
};

struct Instruction;
struct ActionCounts;  // isa/actions.h

struct Constraint {
  ir::Expr condition;  // i1
  std::string text;    // as in the table: "count % 64 == 0"
};

// One variant of a row, with its type and memories fixed: "add.f16", "memcpy.f16.nmem.gmem".
struct Instruction {
  std::string mnemonic;
  std::string family;  // "add"
  // @form(of): the family whose nests may also become this instruction ("memcpy" for memcpy3d); or empty.
  std::string form_of;
  std::vector<std::string> variant;  // {"f16"}
  std::string doc;
  uint8_t opcode = 0;
  uint8_t variant_code = 0;
  int index = 0;  // position in InstructionSet::instructions()
  Unit unit = Unit::kScalar;
  Queue queue = Queue::kNone;
  bool waits = false;  // @wait: the core issues nothing more until this one has completed
  std::vector<Operand> operands;
  std::vector<Constraint> constraints;
  ir::Expr cost;  // cycles in its unit; docs/timing.md says what DMA transfers add
  // kControl: which queues it drains, and whether it waits for the cluster or the whole card.
  std::vector<Queue> drains;
  enum class Barrier : uint8_t { kNone, kCluster, kGlobal } barrier = Barrier::kNone;
  // Element i of each written buffer depends on element i of the read ones only, for all i < count
  // (derived from the meaning). Such an instruction may process more elements than needed.
  bool lanewise = false;
  ir::Function meaning;
};

// Operand values of an instruction about to execute: registers resolved, in operand order.
// kWritten operands have no value. Floats in registers are their bit patterns.
using OperandValues = absl::Span<const int64_t>;

class InstructionSet {
 public:
  ~InstructionSet();
  // Reads a table; several texts make one set. Errors name file, line and what a row lacks or
  // contradicts (an opcode used twice, operands that need more than 128 bits, ...).
  static absl::StatusOr<std::unique_ptr<InstructionSet>> Load(
      const std::vector<std::pair<std::string, std::string>>& files_and_texts);

  // The same of a table that PackTable (isa/packed_table.h) has parsed; `file` names it in errors. What else belongs to
  // an instruction, such as its footprint and native routine, is made when it is first asked for.
  static absl::StatusOr<std::unique_ptr<InstructionSet>> LoadPacked(std::string_view bytes,
                                                                    std::string_view file);

  absl::Span<const Instruction> instructions() const { return instructions_; }
  // Null if there is none.
  const Instruction* Find(std::string_view mnemonic) const;
  const Instruction* FindCode(uint8_t opcode, uint8_t variant_code) const;

  // The word of an instruction: `fields` are register numbers or immediates, in operand order.
  // Errors: a register that does not exist, an immediate that does not fit.
  absl::StatusOr<Word> Encode(const Instruction& instruction,
                              absl::Span<const int64_t> fields) const;
  struct Decoded {
    const Instruction* instruction;
    std::vector<int64_t> fields;  // register numbers or immediates, in operand order
  };
  // Errors: unknown opcode or variant, unused bits that are not zero.
  absl::StatusOr<Decoded> Decode(Word word) const;

  // Checks the constraints of `instruction` for these operands; the error tells the constraint, the
  // operands' values and what would be a multiple. Besides the table's constraints: what it writes
  // must not overlap another operand, unless both are the same elements and the meaning goes
  // element by element (add in place).
  absl::Status CheckConstraints(const Instruction& instruction, OperandValues values) const;

  // Cycles from the @cost row. Error: the cost divides by zero, as it does for an instruction that
  // the machine lacks (tensor.macs_f16 = 0); a parameter that the machine lacks.
  absl::StatusOr<int64_t> Cost(const Instruction& instruction, OperandValues values,
                               const isa::Machine& machine) const;
  // The same with the machine's parameters looked up once, by ResolveParameters.
  absl::StatusOr<int64_t> Cost(const Instruction& instruction, OperandValues values,
                               absl::Span<const int64_t> parameters) const;
  // The names in @cost rows that are no operands, and their values in `machine`.
  const std::vector<std::string>& parameter_names() const { return parameter_names_; }
  absl::StatusOr<std::vector<int64_t>> ResolveParameters(const isa::Machine& machine) const;
  // Which of them the cost of `instruction` names.
  absl::Span<const int> CostParameters(const Instruction& instruction) const;

  // Bytes that the instruction reads and writes in each memory, from its meaning's loop nest: as a
  // set exact for affine accesses (all rows of the built-in table). Reads of what the instruction
  // itself has written (`out` operands) are left out. Windows of a convolution may overlap in one
  // ByteRanges.
  std::vector<ByteRanges> Footprint(const Instruction& instruction, OperandValues values) const;

  // Which of the values read each value written depends on, for operands whose footprint lies inside
  // the memories: one Flow for each load in each store's value. Reads of what the instruction itself
  // has written are left out, as in Footprint. None if the meaning has another form: conditions or
  // loops over loaded values, memory of its own, indices that are not affine.
  std::optional<std::vector<Flow>> Flows(const Instruction& instruction,
                                         OperandValues values) const;

  // Adds what the instruction does with these operands, as far as energy depends on it.
  void CountActions(const Instruction& instruction, OperandValues values,
                    ActionCounts* counts) const;

  // How an instruction sees its memories and registers while it executes.
  struct CoreView {
    uint8_t* memory[kSpaceCount] = {};  // first byte of each memory, null where the core has none
    int64_t size[kSpaceCount] = {};     // bytes
    int64_t* pc = nullptr;              // index of the next instruction; branches write it
    absl::Span<const int64_t> args;     // what `arg` reads
  };
  // Executes the meaning: reads and writes memories, writes the kWritten operands' new values to
  // `written` (one slot per operand). Uses a native routine where there is one, else interprets.
  // The caller has checked constraints and bounds. Errors come from the interpreter.
  absl::Status Execute(const Instruction& instruction, OperandValues values, const CoreView& core,
                       absl::Span<int64_t> written) const;
  // The same, always by interpreting the meaning (what Execute is tested against).
  absl::Status Interpret(const Instruction& instruction, OperandValues values, const CoreView& core,
                         absl::Span<int64_t> written) const;

  // Returns true if Execute has something faster than Interpret for it.
  bool HasNativeRoutine(const Instruction& instruction) const;

  // The meanings for ir::Interpreter, by mnemonic.
  const ir::Intrinsics& intrinsics() const;

 private:
  InstructionSet();
  struct Prepared;  // compiled costs, constraints, footprints, interpreters; one per instruction
  // Of a row read from `place`: file and line.
  absl::Status Add(Instruction instruction, const std::string& place,
                   std::map<int, std::string>* opcode_places);
  absl::Status Finish(const std::map<int, std::string>& opcode_places);
  void AddParameterNames(const Instruction& instruction);
  absl::StatusOr<std::unique_ptr<Prepared>> Prepare(const Instruction& instruction) const;
  // Made on first use; any thread may ask.
  Prepared& PreparedOf(const Instruction& instruction) const;
  // Each @form names a family. `places`: file and line of the row of each opcode.
  absl::Status CheckForms(const std::map<int, std::string>& places) const;
  // The first byte of each buffer parameter of the meaning.
  absl::Status FillBuffers(const Instruction& instruction, OperandValues values,
                           const CoreView& core, absl::Span<int64_t> written,
                           uint8_t** buffers) const;
  std::vector<Instruction> instructions_;
  mutable std::deque<std::atomic<Prepared*>> prepared_;  // null: not made yet
  // Held while one is made: the meanings' context is for one thread at a time.
  mutable std::mutex prepare_mutex_;
  absl::flat_hash_map<std::string, int> by_mnemonic_;
  std::vector<int> by_code_;
  std::vector<std::string> parameter_names_;
  std::unique_ptr<ir::Intrinsics> intrinsics_;
};

// The built-in DianNao set (isa/instructions.nir).
const InstructionSet& DianNao();

// ---- inline definitions ---------------------------------------------------------------

template <typename Visit>
void ByteRanges::ForEachRun(const Visit& visit) const {
  for (const auto& [count, stride] : dims) {
    if (count <= 0) return;
  }
  if (run <= 0) return;
  std::vector<int64_t> index(dims.size(), 0);
  int64_t at = begin;
  while (true) {
    visit(at, run);
    size_t d = dims.size();
    while (d > 0) {
      --d;
      at += dims[d].second;
      if (++index[d] < dims[d].first) break;
      at -= dims[d].second * dims[d].first;
      index[d] = 0;
      if (d == 0) return;
    }
    if (dims.empty()) return;
  }
}

}  // namespace polynao::isa

#endif  // ISA_INSTRUCTION_SET_H_
