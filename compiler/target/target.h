// A target is the machine that a function is compiled for.
#ifndef COMPILER_TARGET_TARGET_H_
#define COMPILER_TARGET_TARGET_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"

namespace polynao {

// Who runs the iterations of loops: schedules and passes ask for this, not for a target's name.
enum class TargetKind : uint8_t {
  kCard,         // clusters and cores with tensor instructions; a simulator runs its programs
  kProcessor,    // threads and vectors of this machine
  kGpu,          // blocks of threads; a shim runs its programs on this machine, and takes no time
  kInterpreter,  // one iteration after the other
};

// What an operation costs that stays in a loop, and when moving it pays (compiler/passes/licm.h). The unit is one
// simple operation. The cost of an expression is the sum over its operations (variables and constants: 0), without
// parts that move further out by themselves.
struct MotionCosts {
  int simple = 1;  // + - comparisons, logic, min, max, select, cast
  int multiply = 2;
  int divide = 3;            // / % by a constant, and of floats
  int divide_by_power = 1;   // / % by a power of two, a shift
  int divide_variable = 10;  // / % of integers by anything else
  int intrinsic = 10;        // exp, sqrt, ...
  int load = 4;
  // The paper's K: an expression that costs less stays. At least 1.
  int threshold = 2;
  // The compiler behind this one unrolls loops of at most so many iterations, and `unroll` loops of
  // constant extent, and then shares what their iterations have in common: there everything costs 0.
  int unrolled_extent = 4;
  // Values leave a loop as long as at most `max_live` values of lets around it, moved there or not,
  // are used in it: more would live in memory. Where more could move, the values that spare least
  // stay: cost times evaluations in one iteration of the loop. A loop inside of unknown extent
  // counts for 8 iterations. Of equal values the later ones stay.
  int max_live = 24;
  // This is true if values may leave a thread loop inside another one. None leaves the outermost
  // one.
  bool leave_inner_threads = false;
  // This is true if values may leave loops that call instructions.
  bool beside_instructions = true;
};

// Facts about a target that need nothing but this folder. The code generator of a target is its BackEnd
// (compiler/codegen/back_end.h).
struct TargetFacts {
  std::string_view name;
  std::string_view doc;  // half a line
  TargetKind kind;
  std::string_view writes;    // by `nao compile`, beside NAME.nir: ".bin, .nasm"
  std::string_view pipeline;  // its passes, in order, as ParsePasses reads them; "": none
  MotionCosts motion = {};
  // Who runs a program says on how many threads its parallel loops run.
  bool has_threads = false;
  // Its code generator finds the processor's instructions on tiles in loops (isa/processor).
  bool has_tiles = false;
  // Functions may call functions of C (compiler/ir/externs.h).
  bool has_externs = true;
  // exp, log and their like agree with the interpreter's to the last bit.
  bool has_exact_math = true;
  // Accelerators: their instructions. Others: null.
  const isa::InstructionSet& (*instructions)() = nullptr;
};

// All targets, in the order of listings.
absl::Span<const TargetFacts> Targets();

// Null if there is no target of that name. The questions below are false then.
const TargetFacts* FindTarget(std::string_view name);
bool IsCard(std::string_view name);
bool IsProcessor(std::string_view name);
bool IsGpu(std::string_view name);
bool IsInterpreter(std::string_view name);
bool HasTiles(std::string_view name);

// A target by the name that its facts have. Accelerators bring their instructions and the machine that programs are
// scheduled for; the other targets leave both null.
struct Target {
  std::string name;
  const isa::InstructionSet* instructions = nullptr;
  const isa::Machine* machine = nullptr;

  // The facts of `name`, which must be a target's.
  const TargetFacts& facts() const;
  // On-chip memories as functions name them, with their sizes in bytes on this machine.
  int64_t MemoryBytes(std::string_view scope) const;
};

// The target of that name; accelerators point to `machine`, which must outlive it. Errors: no target has that name.
absl::StatusOr<Target> MakeTarget(std::string_view name, const isa::Machine* machine);

// Allocations on chip start at multiples of this many bytes, so that no instruction's alignment
// rule can fail on the start of a buffer.
inline constexpr int64_t kOnChipAlignment = 128;

// "nmem", "smem", "wmem": memories that a program addresses by itself.
bool IsOnChip(std::string_view scope);

}  // namespace polynao

#endif  // COMPILER_TARGET_TARGET_H_
