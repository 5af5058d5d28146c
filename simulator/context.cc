#include "simulator/context.h"

#include "absl/strings/str_cat.h"
#include "simulator/clock.h"

namespace polynao::simulator {

std::string CoreName(const isa::Machine& machine, AccessChecker::CoreId core) {
  return core.core == machine.cores_per_cluster()
             ? absl::StrCat("cluster ", core.cluster, " memory core")
             : absl::StrCat("cluster ", core.cluster, " core ", core.core);
}

void Context::Fail(AccessChecker::CoreId core, int64_t pc, const absl::Status& rule) {
  // The other timers of the cycle still run, which may bring more errors: the first core's error is reported.
  const std::pair<int, int> order(core.cluster, core.core);
  const bool first = status.ok();
  if (!first && failed_core <= order) return;
  failed_core = order;
  const std::string text = pc >= 0 && pc < static_cast<int64_t>(program.code.size())
                               ? absl::StrCat(" \"", isa::DisassembleWord(set, program, pc), "\"")
                               : "";
  status =
      absl::Status(rule.code(), absl::StrCat(CoreName(machine, core), " pc ", pc, text, " cycle ",
                                             Now(), ": ", std::string(rule.message())));
  if (first) Calendar::Get().Stop();
}

}  // namespace polynao::simulator
