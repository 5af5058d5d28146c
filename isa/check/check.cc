#include "isa/check/check.h"

#include <algorithm>

#include "base/status.h"
#include "base/text.h"
#include "isa/check/code.h"
#include "isa/check/conflicts.h"
#include "isa/check/findings.h"
#include "isa/check/walk.h"

namespace polynao::isa {

absl::Status ProgramCheck::ToStatus(const Program& program) const {
  for (const ProgramFinding& finding : findings) {
    if (finding.kind == ProgramFinding::Kind::kUndecided) continue;
    return InvalidInput("program ", program.name, ": ", finding.text);
  }
  return absl::OkStatus();
}

ProgramCheck CheckProgram(const InstructionSet& set, const Program& program, const Machine& machine,
                          const CheckedArguments& arguments, int64_t max_steps) {
  const CheckedCode code(set, program);
  const CheckedTensors tensors(program, arguments);
  Findings findings(set, program);
  CheckedProgram checked = {set, machine, code, tensors, findings, max_steps};
  std::vector<CoreTrace> traces;
  const int cores = static_cast<int>(machine.cores_per_cluster());
  for (int cluster = 0; cluster < machine.clusters(); ++cluster) {
    for (int core = 0; core <= cores; ++core) {
      traces.push_back(WalkCore(checked, {cluster, core, core == cores}));
    }
  }
  FindSharedHazards(traces, findings);
  FindMissedBarriers(traces, findings);
  return {.findings = findings.Take(),
          .steps = max_steps - std::max<int64_t>(0, checked.steps_left)};
}

absl::Status CheckQuickly(const InstructionSet& set, const Program& program, const Machine& machine,
                          const CheckedArguments& arguments) {
  constexpr int64_t kQuickSteps = 50'000;
  return CheckProgram(set, program, machine, arguments, kQuickSteps).ToStatus(program);
}

}  // namespace polynao::isa
