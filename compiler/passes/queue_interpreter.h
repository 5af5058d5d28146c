// An adversarial interpreter of the IR after sync: instructions take effect when their queues and the
// program's waits allow it, not where they stand.
#ifndef COMPILER_PASSES_QUEUE_INTERPRETER_H_
#define COMPILER_PASSES_QUEUE_INTERPRETER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/core_program.h"
#include "compiler/target/target.h"
#include "isa/instruction_set.h"

namespace polynao {

// One way to run the queues. ir::Interpreter runs every instruction where it stands, so it cannot see
// a missing wait. A schedule instead chooses one of the many orders that the machine may take.
struct QueueSchedule {
  // When the instructions of a queue start and end. While one runs, the bytes that it writes hold
  // garbage; they get their values at its end.
  enum class Timing : uint8_t {
    kAtOnce,  // starts and ends where it stands
    kInFlight,  // reads and starts where it stands; ends before the next one of its queue, or at a wait
    kLate,      // starts and ends at a wait for the queue, or before one in flight elsewhere ends
  };
  std::array<Timing, isa::kQueueCount> queues = {};
  // Cores take turns, each until it has to wait. The first turn is core 0's, or its memory core's.
  bool memory_core_first = false;
  // Not 0: every choice is made at random instead.
  uint64_t seed = 0;

  std::string Name() const;  // "compute at once, io late, move at once"
};

// First the schedule that runs everything at once; then schedules of which at least one reverses any two
// conflicting accesses that no wait and no barrier orders; then `random` random ones. Two accesses
// conflict if they share a byte and one is a write. Let X, in queue q, stand before Y, in another queue,
// without a wait for q in between.
//  - q in flight, all others at once: Y finds the garbage of X, which runs;
//  - q late, all others at once: X finds what Y has written;
//  - q late, all others in flight: X finds the garbage of Y, also where Y writes the old values again.
std::vector<QueueSchedule> QueueSchedules(int random, uint64_t seed = 1);

// Records what the instructions of one run found in memory. If waits and barriers order all conflicting accesses, the
// record is the same by every schedule. If they leave two unordered, the later of them finds other bytes by some
// schedule, whether or not the program's results depend on these bytes.
struct QueueRecord {
  struct Step {
    const isa::Instruction* instruction;
    // A hash of the bytes of its operands before it took effect: those that it reads, and those that it
    // overwrites.
    uint64_t operands;
  };
  struct OfCore {
    CoreId id;
    std::vector<Step> steps;  // in the order of issue
  };
  std::vector<OfCore> cores;       // those that have something to run
  std::vector<uint64_t> memories;  // hashes of what each memory on chip holds at the end
};

// "" if the records of two runs of one program on the same arguments agree, else where they first differ:
// "instruction 7 of core 1 of cluster 0, add.f16, finds other bytes in its operands".
std::string Difference(const QueueRecord& a, const QueueRecord& b);

// A function prepared for running on the cores of the target's machine. Instructions are asynchronous,
// wait, drain queues and form barriers as their rows in the instruction table say. Every core and
// memory core has its program (CoreProgram), its queues and its memories, which start with garbage;
// allocations lie at their addresses from storage, or behind all others without one.
class QueueInterpreter {
 public:
  // `function` and `target` outlive the interpreter. Errors: an unknown instruction; an allocation
  // that is not on chip; parameters on chip of a function with loops over cid.
  static absl::StatusOr<std::unique_ptr<QueueInterpreter>> Create(const ir::Function& function,
                                                                  const Target& target);
  ~QueueInterpreter();

  // Runs the function on `arguments`, one per parameter, tensors of the parameters' shapes. Like
  // ir::Interpreter, it does not check the constraints of instructions. Errors: an operand outside its
  // memory, a barrier that some core does not reach, and all errors of ir::Interpreter. `record` may be
  // null.
  absl::Status Run(const std::vector<ir::Argument>& arguments, const QueueSchedule& schedule,
                   QueueRecord* record = nullptr);

 private:
  class Card;
  explicit QueueInterpreter(std::unique_ptr<Card> card);
  std::unique_ptr<Card> card_;
};

// Runs `function` with ir::Interpreter and by every schedule of QueueSchedules(random, seed), on the
// same inputs. The error names the first schedule whose result differs, and the first element; or the
// first schedule whose record differs, and the instruction.
absl::Status CheckQueueOrder(const ir::Function& function, const Target& target, uint64_t seed,
                             int random = 4);

}  // namespace polynao

#endif  // COMPILER_PASSES_QUEUE_INTERPRETER_H_
