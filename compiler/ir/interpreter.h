// The interpreter: the meaning of loop IR. Every other way to run a program is compared with it.
#ifndef COMPILER_IR_INTERPRETER_H_
#define COMPILER_IR_INTERPRETER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/counts.h"
#include "compiler/ir/instruction_meanings.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/tensor.h"

namespace polynao::ir {

class Device;  // compiler/ir/device.h

struct InterpreterOptions {
  const Intrinsics* intrinsics = nullptr;
  // Calls of instructions and allocations go to this device. Without one, a call takes effect where it stands and
  // allocations have memory of their own.
  Device* device = nullptr;
  // Runs stop with an error after so many loop iterations, against programs that never end.
  int64_t max_operations = int64_t{1} << 42;
};

// A function prepared for running; preparing costs time linear in its size.
class Interpreter {
 public:
  struct Program;  // the bytecode

  static absl::StatusOr<std::unique_ptr<Interpreter>> Create(
      const Function& function, const InterpreterOptions& options = {});
  ~Interpreter();
  // Runs the body on `arguments`, one per parameter. On an error (out of bounds, division by zero,
  // overflow of an index, read of memory never stored, ...) the message names the statement and the
  // values of its loop variables; tensors then hold what was stored so far. Adds to `counts`.
  absl::Status Run(const std::vector<Argument>& arguments, Counts* counts = nullptr);

  // The same on raw memory: the address of each buffer parameter's first element, scalars as above.
  // Extents are not checked against the memory's size; the caller has checked them. Used to execute
  // meanings of instructions in simulated memories.
  struct RawArgument {
    uint8_t* address = nullptr;
    int64_t int_value = 0;
    double float_value = 0;
  };
  absl::Status RunRaw(const std::vector<RawArgument>& arguments, Counts* counts = nullptr);

  // Returns true if the last run, or Resume, has stopped behind a call because the device said so.
  bool IsSuspended() const;
  // Goes on behind that call.
  absl::Status Resume();

 private:
  explicit Interpreter(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program_;
};

// Creates an Interpreter and runs it once.
absl::Status Interpret(const Function& function, const std::vector<Argument>& arguments,
                       Counts* counts = nullptr, const InterpreterOptions& options = {});

}  // namespace polynao::ir

#endif  // COMPILER_IR_INTERPRETER_H_
