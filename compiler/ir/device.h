// The machine that an interpreted program may run on: it decides when instructions take effect.
#ifndef COMPILER_IR_DEVICE_H_
#define COMPILER_IR_DEVICE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/interpreter.h"

namespace polynao::ir {

// An interpreter with a device (InterpreterOptions::device) evaluates expressions, loops, branches and
// scalar accesses by itself, in program order, and hands over the rest.
class Device {
 public:
  virtual ~Device() = default;

  // A call of the instruction `name`, one argument for each parameter of its meaning: the address of
  // the element that the program names, or the scalar's value. Whether the run goes on; if not, it
  // stops behind the call until Interpreter::Resume. Operands have not been compared with the extents
  // of their buffers. On an error the run ends.
  virtual absl::StatusOr<bool> Call(std::string_view name,
                                    absl::Span<const Interpreter::RawArgument> arguments) = 0;

  // The first byte of the memory of an allocation that the program enters.
  virtual absl::StatusOr<uint8_t*> Allocate(const BufferNode& buffer) = 0;
};

}  // namespace polynao::ir

#endif  // COMPILER_IR_DEVICE_H_
