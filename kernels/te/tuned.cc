#include "kernels/te/tuned.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/text.h"

namespace polynao::kernels {
namespace {

// FNV-1a: the same in every process and on every machine.
uint64_t Fingerprint(const isa::Machine& machine) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const auto& [name, value] : machine.parameters) {
    for (const char c : StrCat(name, "=", value, ";")) {
      hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
    }
  }
  return hash;
}

}  // namespace

std::string TuningKey(const OperatorCase& c, const isa::Machine& machine) {
  std::string key = StrCat(machine.name, "/", absl::StrFormat("%016x", Fingerprint(machine)), " ",
                           c.op, " ", ShapesText(c), " ", ir::TypeName(c.dtype));
  for (const auto& [name, value] : c.attributes) StrAppend(&key, " ", name, "=", value);
  return key;
}

std::string TuningLine(const OperatorCase& c, const isa::Machine& machine,
                       const ScheduleChoice& choice) {
  return StrCat(TuningKey(c, machine), ": ", ChoiceText(choice));
}

std::optional<ScheduleChoice> FindTuned(std::string_view text, const OperatorCase& c,
                                        const isa::Machine& machine) {
  const std::string wanted = StrCat("\n", TuningKey(c, machine), ": ");
  const std::string lines = StrCat("\n", text);
  const size_t at = lines.find(wanted);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + wanted.size();
  const std::string line = lines.substr(begin, lines.find('\n', begin) - begin);
  ScheduleChoice choice;
  for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(word, '=');
    int64_t value;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &value)) return std::nullopt;
    choice[parts[0]] = value;
  }
  return choice;
}

ScheduleChoice WantedSchedule(const OperatorCase& c, const isa::Machine& machine) {
  if (!c.use_tuned) return c.schedule;
  const std::optional<ScheduleChoice> tuned = FindTuned(TunedText(), c, machine);
  // Some choices given by hand: the rest is the cost model's.
  return c.schedule.empty() && tuned ? *tuned : c.schedule;
}

}  // namespace polynao::kernels
