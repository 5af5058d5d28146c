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
#include "compiler/target/target.h"

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

// Schedules of which at least one turns round any two conflicting accesses that no wait and no barrier
// orders, and `random` random ones. Two accesses conflict if they share a byte and one is a write. Let
// X, in queue q, stand before Y, in another queue, without a wait for q in between.
//  - q in flight, all others at once: Y reads the garbage of X, which runs;
//  - q late, all others at once: Y overwrites what X reads, or X overwrites what Y has written;
//  - q late, all others in flight: X reads the garbage of Y, also where Y writes the old values again.
std::vector<QueueSchedule> QueueSchedules(int random, uint64_t seed = 1);

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
  // memory, a barrier that some core does not reach, and all errors of ir::Interpreter.
  absl::Status Run(const std::vector<ir::Argument>& arguments, const QueueSchedule& schedule);

 private:
  class Card;
  explicit QueueInterpreter(std::unique_ptr<Card> card);
  std::unique_ptr<Card> card_;
};

// Runs `function` with ir::Interpreter and by every schedule of QueueSchedules(random, seed), on the
// same inputs. The error names the first schedule whose result differs, and the first element.
absl::Status CheckQueueOrder(const ir::Function& function, const Target& target, uint64_t seed,
                             int random = 4);

}  // namespace polynao

#endif  // COMPILER_PASSES_QUEUE_INTERPRETER_H_
