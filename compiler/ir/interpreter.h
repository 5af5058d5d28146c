// The interpreter: the meaning of loop IR. Every other way to run a program is compared with it.
#ifndef COMPILER_IR_INTERPRETER_H_
#define COMPILER_IR_INTERPRETER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// The contents of one buffer: dense, row-major, little-endian elements of `type`.
struct Tensor {
  Type type = Type::kF32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  Tensor() = default;
  // All zero.
  Tensor(Type type, std::vector<int64_t> shape);
  int64_t element_count() const;
  // Element i in row-major order, as the wide value of its type.
  double Float(int64_t i) const;
  int64_t Int(int64_t i) const;
  // The same for either kind of type.
  double Value(int64_t i) const;
  void SetValue(int64_t i, double value);
  void SetInt(int64_t i, int64_t value);
};

// Small random values (integers of a few bits, floats that are exact in f16), so that sums and
// products of a few of them are exact in every type. Same seed, same values.
Tensor RandomTensor(Type type, std::vector<int64_t> shape, uint64_t seed);

// The largest |a - b| and |a - b| / max(|a|, |b|, 1e-30) over all elements; NaN equals NaN.
struct Difference {
  double max_abs = 0;
  double max_rel = 0;
  int64_t where = -1;  // element of the largest |a - b|; -1 if all are equal
};
// Shapes and types must agree.
Difference Compare(const Tensor& a, const Tensor& b);

// What a run executed.
struct Counts {
  int64_t loads = 0;
  int64_t stores = 0;
  int64_t int_add = 0;  // + and - on integers
  int64_t int_mul = 0;
  int64_t int_div = 0;      // / and %
  int64_t int_compare = 0;  // comparisons, min, max on integers
  int64_t logic = 0;        // && || !
  int64_t float_ops = 0;    // arithmetic, comparisons and intrinsics on floats
  int64_t casts = 0;
  int64_t branches = 0;      // ifs, selects, short-circuits and loop back-edges taken or not
  int64_t iterations = 0;    // loop bodies entered
  int64_t instructions = 0;  // calls of tensor instructions
  int64_t int_ops() const { return int_add + int_mul + int_div + int_compare + logic; }
  int64_t total() const;
  bool operator==(const Counts&) const = default;
};
// (name, value) of each count, in a fixed order.
std::vector<std::pair<std::string, int64_t>> CountRows(const Counts& counts);

// Where the meanings of calls that are not pure intrinsics come from.
class Intrinsics {
 public:
  virtual ~Intrinsics() = default;
  // The meaning of `name`: its buffer parameters take addresses, its scalars values, in order.
  // Null if there is no such instruction.
  virtual const Function* FindMeaning(std::string_view name) const = 0;
};

class Device;  // compiler/ir/device.h

struct InterpreterOptions {
  const Intrinsics* intrinsics = nullptr;
  // What calls of instructions and allocations go to. Without one, a call takes effect where it stands
  // and allocations have memory of their own.
  Device* device = nullptr;
  // Runs stop with an error after so many loop iterations, against programs that never end.
  int64_t max_operations = int64_t{1} << 42;
};

// One argument of a call: a scalar or the tensor of a buffer parameter (kept by the caller; its
// shape must equal the parameter's extents).
struct Argument {
  int64_t int_value = 0;
  double float_value = 0;
  Tensor* tensor = nullptr;
  static Argument Int(int64_t value) { return {.int_value = value}; }
  static Argument Float(double value) { return {.float_value = value}; }
  static Argument Of(Tensor* tensor) { return {.tensor = tensor}; }
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

  // Whether the last run, or Resume, has stopped behind a call because the device said so.
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
