// Schedules that a search on the simulator found to be the fastest (nao tune), for cases that are
// used much.
#ifndef KERNELS_TE_TUNED_H_
#define KERNELS_TE_TUNED_H_

#include <optional>
#include <string>
#include <string_view>

#include "isa/machine.h"
#include "kernels/te/operators.h"

namespace polynao::kernels {

// The case and the machine as a line of tuned.txt names them, up to the colon:
//   "mlu270/0123456789abcdef add 255x27x27 f16"
// The number stands for all parameters of the machine: with one changed, a schedule is chosen by the
// cost model again.
std::string TuningKey(const OperatorCase& c, const isa::Machine& machine);

// A whole line: "KEY: rotate=1 tile=5824".
std::string TuningLine(const OperatorCase& c, const isa::Machine& machine,
                       const ScheduleChoice& choice);

// What `text` (tuned.txt, lines as above; those of # are comments) says of the case.
std::optional<ScheduleChoice> FindTuned(std::string_view text, const OperatorCase& c,
                                        const isa::Machine& machine);

// tuned.txt, which is part of the program.
std::string_view TunedText();

// What the case asks for, else what tuned.txt has, unless OperatorCase::use_tuned says no.
ScheduleChoice WantedSchedule(const OperatorCase& c, const isa::Machine& machine);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_TUNED_H_
