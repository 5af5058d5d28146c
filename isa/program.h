// A tensor-ISA program: what the assembler makes, the disassembler shows and the simulator runs.
//
// All cores run the same instructions from the first one on; each memory core too. A program asks
// with `arg` who it runs on (ArgSlot) and where its parameters are.
#ifndef ISA_PROGRAM_H_
#define ISA_PROGRAM_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "isa/instruction_set.h"

namespace polynao::isa {

// The `arg` instruction reads these slots. Slots from kFirstParam on hold the parameters in order:
// a tensor's byte address in GMEM (a multiple of kTensorAlignment), or a scalar's value.
enum ArgSlot : int64_t {
  kCoreId = 0,  // 0 .. cores_per_cluster - 1; the memory core has cores_per_cluster
  kClusterId = 1,
  kCoresPerCluster = 2,
  kClusters = 3,
  kIsMemoryCore = 4,  // 0 or 1
  kNmemBytes = 5,     // sizes of this machine's memories that a program may use
  kSmemBytes = 6,
  kWmemBytes = 7,
  kFirstParam = 8,
};
inline constexpr int64_t kTensorAlignment = 256;

struct ProgramParam {
  std::string name;
  bool is_tensor = true;
  ir::Type type = ir::Type::kF16;
  // Extents of a tensor; empty with `any_shape` for a program that serves any element count.
  std::vector<int64_t> shape = {};
  bool any_shape = false;
  ir::Access access = ir::Access::kIn;
  // A tensor for the program alone, undefined when it starts: GMEM has room for it while the program runs, and the
  // caller passes no argument. Temporaries have a shape, are `out`, and come after all other parameters.
  bool is_temporary = false;
  // If `parts` is more than 1, the caller lays out the tensor, an input of `rows` rows, in parts: for each part of a
  // row that part of all rows (compiler/ir/parts_layout.h).
  int64_t rows = 1, parts = 1;
  bool operator==(const ProgramParam&) const = default;
};

// Returns true if the parameter is a tensor of so many rows and parts, or has one part.
bool HasValidParts(const ProgramParam& param);

struct Program {
  std::string name;
  // The parameters that were read to make it and their values, of ParameterReads (machine.h); empty for a program that
  // asks with `arg` for what it needs to know and serves every machine.
  std::map<std::string, std::string> machine = {};
  // Conditions that its scalars keep, as the function's `@assert` has them: "n % 64 == 0".
  std::vector<std::string> assertions = {};
  // Floats are added up in another order than what the program was made of says, so that results agree within a
  // tolerance (`@reassociated` of the function).
  bool is_reassociated = false;
  std::vector<ProgramParam> params;
  std::vector<Word> code;
  // Names of places in the code, for listings and error messages.
  std::map<int64_t, std::string> labels;
  bool operator==(const Program&) const = default;
};

// Checks that a run's scalars keep the program's assertions: `values` are what registers hold, one for each parameter,
// of which those of tensors are left out. Errors: "program clear: '@assert(n % 64 == 0)' does not hold: n = 5"; an
// assertion that cannot be read.
absl::Status CheckAssertions(const Program& program, absl::Span<const int64_t> values);

// The binary form: a header with magic, version and a checksum, then parameters, code and labels.
std::string Serialize(const Program& program);
// `body` behind the header that belongs to it; Serialize ends with this.
std::string WithProgramHeader(std::string_view body);
inline constexpr size_t kProgramHeaderBytes = 4 + 4 + 8 + 8;
// Errors say at which byte the file is truncated or malformed. `file` names it in errors.
absl::StatusOr<Program> Deserialize(std::string_view bytes, std::string_view file);

// Text to program and back (isa/README.md has the syntax):
//
//   .program add
//   .machine "core.nmem_kib=512"
//   .assert "n % 64 == 0"
//   .reassociated
//   .tensor x f16 any in
//   .scalar n i64
//   .temporary t f32 [16, 64]
//   start:
//     arg r1, 8            # address of x
//     beq r1, r2, start
//
// Errors: "add.nasm:3:5: expected ..., found ...".
absl::StatusOr<Program> Assemble(const InstructionSet& set, std::string_view text,
                                 std::string_view file);
// Text that assembles to the same program. Errors: a word that does not decode.
absl::StatusOr<std::string> Disassemble(const InstructionSet& set, const Program& program);

// "add.f16 r1, r2, r3, r4" for one word; "<bad word ...>" if it does not decode.
std::string DisassembleWord(const InstructionSet& set, const Program& program, int64_t pc);

}  // namespace polynao::isa

#endif  // ISA_PROGRAM_H_
