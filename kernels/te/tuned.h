// Schedules that a search on the simulator (nao tune) found to be the fastest, for cases that are used often.
#ifndef KERNELS_TE_TUNED_H_
#define KERNELS_TE_TUNED_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/machine.h"
#include "kernels/te/operator.h"

namespace polynao::kernels {

// A schedule that a search found for a case on a machine of some name.
struct TunedSchedule {
  ScheduleChoice choice;
  // A machine's parameters may differ from those of the search (--set core.nmem_kib=511). The schedule is
  // still taken where it fits and the cost model gives it at most `within` times the cycles of the model's
  // own first choice. TuningLimit says how the search sets this number.
  double within = 1;
};

// The limit for a schedule that the search measured. The simulator found `cycles` for it, where the
// cost model estimates `modelled`; for the model's own first choice they are `first_cycles` and
// `first_modelled`. The cost model errs on each of the two schedules by some factor. If these factors stay the
// same on a machine with other parameters, the tuned schedule is the faster one there exactly while
//   modelled there / first_modelled there <= (first_cycles / first_modelled) / (cycles / modelled).
double TuningLimit(double cycles, double modelled, double first_cycles, double first_modelled);

// The case and the name of the machine as a line of tuned.txt begins, up to the colon:
//   "mlu270 add 255x27x27 f16"
std::string TuningKey(const OperatorCase& c, const isa::Machine& machine);

// A whole line: "KEY: within=1.0213 rotate=1 tile=5824".
std::string TuningLine(const OperatorCase& c, const isa::Machine& machine,
                       const TunedSchedule& tuned);

// "tile=4096 rotate=0", in any order, with or without within=1.02. Errors begin with `place` and name the word by its
// number: what is no NAME=NUMBER (from 0, below 2^40), a name that stands there twice, no word at all.
absl::StatusOr<TunedSchedule> ParseSchedule(std::string_view text, std::string_view place);

// A line without a limit: "KEY: rotate=1 tile=5824".
std::string ScheduleLine(const OperatorCase& c, const isa::Machine& machine,
                         const ScheduleChoice& choice);

// The text of such a file with `lines` put in: each in the place of the one with the same key, or at the end. A file
// that is empty gets a comment first.
std::string WithScheduleLines(std::string_view text, const std::vector<std::string>& lines);

struct FoundSchedule {
  ScheduleChoice choice;
  std::string place;  // "FILE:3"
};
// The schedule that a file has for the case: the line of its key, or one without a key. Errors name file, line and
// word: a line that is malformed, two that apply, none that does.
absl::StatusOr<FoundSchedule> FindSchedule(std::string_view text, std::string_view file,
                                           const OperatorCase& c, const isa::Machine& machine);

// The schedule that `text` (lines like those of tuned.txt; a line that begins with # is a comment) has
// for the case on a machine of this name.
std::optional<TunedSchedule> FindTuned(std::string_view text, const OperatorCase& c,
                                       const isa::Machine& machine);

// tuned.txt, which is part of the program.
std::string_view TunedText();

// Returns what tuned.txt has for the case; nothing if the case forbids it (OperatorCase::use_tuned) or names choices of
// its own.
std::optional<TunedSchedule> TunedFor(const OperatorCase& c, const isa::Machine& machine);

// Chooses from tilings, which have `choice` and `cycles` (by the cost model). They are not empty, the cost
// model's first choice stands first, and all agree with what the case asks for. A tuned schedule is taken
// where it is among them and within its limit.
template <typename Tiling>
const Tiling& Choose(const std::vector<Tiling>& tilings,
                     const std::optional<TunedSchedule>& tuned) {
  if (!tuned) return tilings[0];
  for (const Tiling& tiling : tilings) {
    if (tiling.choice != tuned->choice) continue;
    return tiling.cycles <= tuned->within * tilings[0].cycles ? tiling : tilings[0];
  }
  return tilings
      [0];  // It does not fit this machine, or the operator no longer has such a schedule.
}

template <typename Tiling>
std::vector<RankedSchedule> Ranked(const std::vector<Tiling>& tilings) {
  std::vector<RankedSchedule> ranked;
  ranked.reserve(tilings.size());
  for (const Tiling& tiling : tilings) ranked.push_back({tiling.choice, tiling.cycles});
  return ranked;
}

}  // namespace polynao::kernels

#endif  // KERNELS_TE_TUNED_H_
