#include "kernels/te/tuned.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/text.h"

namespace polynao::kernels {

double TuningLimit(double cycles, double modelled, double first_cycles, double first_modelled) {
  return first_cycles / first_modelled * modelled / cycles;
}

std::string TuningKey(const OperatorCase& c, const isa::Machine& machine) {
  std::string key = StrCat(machine.name, " ", c.op, " ", ShapesText(c), " ", ir::TypeName(c.dtype));
  for (const auto& [name, value] : c.attributes) StrAppend(&key, " ", name, "=", value);
  return key;
}

std::string TuningLine(const OperatorCase& c, const isa::Machine& machine,
                       const TunedSchedule& tuned) {
  // Rounded up, so that the line holds on the machine of the search itself.
  return StrCat(TuningKey(c, machine),
                ": within=", absl::StrFormat("%.4f", std::ceil(tuned.within * 1e4) / 1e4), " ",
                ChoiceText(tuned.choice));
}

std::optional<TunedSchedule> FindTuned(std::string_view text, const OperatorCase& c,
                                       const isa::Machine& machine) {
  const std::string wanted = StrCat("\n", TuningKey(c, machine), ": ");
  const std::string lines = StrCat("\n", text);
  const size_t at = lines.find(wanted);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + wanted.size();
  const std::string line = lines.substr(begin, lines.find('\n', begin) - begin);
  TunedSchedule tuned;
  for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(word, '=');
    int64_t value;
    if (parts.size() == 2 && parts[0] == "within" && absl::SimpleAtod(parts[1], &tuned.within)) {
      continue;
    }
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &value)) return std::nullopt;
    tuned.choice[parts[0]] = value;
  }
  return tuned;
}

std::optional<TunedSchedule> TunedFor(const OperatorCase& c, const isa::Machine& machine) {
  if (!c.use_tuned || !c.schedule.empty()) return std::nullopt;
  return FindTuned(TunedText(), c, machine);
}

}  // namespace polynao::kernels
