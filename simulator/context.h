// All modules of one simulation share a Context.
#ifndef SIMULATOR_CONTEXT_H_
#define SIMULATOR_CONTEXT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"
#include "isa/program.h"
#include "simulator/access_checker.h"
#include "simulator/profile.h"
#include "simulator/report.h"

namespace polynao::simulator {

using Values = absl::InlinedVector<int64_t, 8>;

// An instruction that was issued to a queue, its operands resolved.
struct Issued {
  const isa::Instruction* instruction = nullptr;
  int64_t pc = 0;
  Values values;
  int64_t cost = 0;
  int64_t ready = 0;  // the cycle from which its unit may start it
  std::vector<isa::ByteRanges> ranges;
};

struct Context {
  Context(const isa::Machine& m, const isa::InstructionSet& s, const isa::Program& p)
      : machine(m), set(s), program(p) {}

  const isa::Machine& machine;
  const isa::InstructionSet& set;
  const isa::Program& program;
  std::vector<std::optional<isa::InstructionSet::Decoded>> code;  // none: does not decode
  // By pc: the cycles of scalar instructions that no operand changes; -1: others.
  std::vector<int64_t> fixed_costs;
  std::vector<int64_t> parameters;  // the machine's, for set.Cost
  std::vector<int64_t> params;      // what `arg` reads from kFirstParam on
  AccessChecker* checker = nullptr;
  RunResult* result = nullptr;

  // Trace window; nothing is recorded outside, or beyond the limit.
  int64_t trace_begin = 0;
  int64_t trace_end = -1;
  int64_t trace_limit = 0;

  RunProfile* profile = nullptr;  // if one was asked for
  bool timing_only = false;       // RunOptions::timing_only

  int64_t last_gmem_write = -1;
  int64_t last_activity = 0;
  // The first error, which stops the simulation.
  absl::Status status;

  std::pair<int, int> failed_core;

  // Stops the simulation with an error of `core` at `pc`.
  void Fail(AccessChecker::CoreId core, int64_t pc, const absl::Status& rule);

  void Trace(const Slice& slice) {
    if (slice.begin >= trace_end || slice.end <= trace_begin || slice.begin >= slice.end) return;
    if (static_cast<int64_t>(result->slices.size()) >= trace_limit) {
      result->slices_complete = false;
      return;
    }
    result->slices.push_back(slice);
  }
};

// "cluster 0 core 1", "cluster 0 memory core".
std::string CoreName(const isa::Machine& machine, AccessChecker::CoreId core);

}  // namespace polynao::simulator

#endif  // SIMULATOR_CONTEXT_H_
