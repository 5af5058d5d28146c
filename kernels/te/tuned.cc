#include "kernels/te/tuned.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
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

std::string ScheduleLine(const OperatorCase& c, const isa::Machine& machine,
                         const ScheduleChoice& choice) {
  return StrCat(TuningKey(c, machine), ": ", ChoiceText(choice));
}

absl::StatusOr<TunedSchedule> ParseSchedule(std::string_view text, std::string_view place) {
  TunedSchedule schedule;
  const auto is_space = [](char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); };
  int number = 0;
  bool has_limit = false;
  for (size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && !is_space(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    at = end, ++number;
    const auto wrong = [&](const auto&... what) {
      return InvalidInput(place, ": word ", number, ": ", what...);
    };
    const size_t equals = std::min(word.find('='), word.size());
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(std::min(equals + 1, word.size()));
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      const auto letter = static_cast<unsigned char>(c);
      return absl::ascii_islower(letter) || absl::ascii_isdigit(letter) || c == '_';
    });
    const auto shown = [](std::string_view all) {
      constexpr size_t kMost = 40;
      return all.size() <= kMost ? std::string(all) : StrCat(all.substr(0, kMost), "..");
    };
    if (!is_name || equals == word.size()) {
      return wrong("expected name=number, found '", shown(word), "'");
    }
    if (name == "within") {
      double limit = 0;
      if (!absl::SimpleAtod(ToAbsl(value), &limit) || !std::isfinite(limit) || limit <= 0) {
        return wrong("within: expected a number above 0, found '", shown(value), "'");
      }
      if (std::exchange(has_limit, true)) return wrong("within has a value already");
      schedule.within = limit;
      continue;
    }
    int64_t choice = 0;
    if (!absl::SimpleAtoi(ToAbsl(value), &choice) || choice < 0 || choice >= int64_t{1} << 40) {
      return wrong(shown(name), ": expected a number from 0, found '", shown(value), "'");
    }
    if (!schedule.choice.emplace(name, choice).second) {
      return wrong(shown(name), " has a value already");
    }
  }
  if (schedule.choice.empty()) return InvalidInput(place, ": expected name=number, found nothing");
  return schedule;
}

std::string WithScheduleLines(std::string_view text, const std::vector<std::string>& lines) {
  const auto key = [](std::string_view line) { return line.substr(0, line.find(": ")); };
  std::vector<std::string> all = absl::StrSplit(ToAbsl(text), '\n', absl::SkipEmpty());
  if (all.empty()) {
    all.emplace_back(
        "# Schedules found by `nao tune`: machine, operator, shapes, type: limit "
        "(TunedSchedule::within), choices.");
  }
  for (const std::string& line : lines) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const std::string& other) {
      return other[0] != '#' && key(other) == key(line);
    });
    if (known == all.end()) {
      all.push_back(line);
    } else {
      *known = line;
    }
  }
  return StrCat(absl::StrJoin(all, "\n"), "\n");
}

absl::StatusOr<FoundSchedule> FindSchedule(std::string_view text, std::string_view file,
                                           const OperatorCase& c, const isa::Machine& machine) {
  const std::string wanted = TuningKey(c, machine);
  std::optional<FoundSchedule> found;
  int number = 0, found_at = 0;
  std::string other;  // a key
  for (const absl::string_view row : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    const std::string_view line = ToStd(absl::StripAsciiWhitespace(row));
    if (line.empty() || line[0] == '#') continue;
    const std::string place = StrCat(file, ":", number);
    const size_t colon = line.find(": ");
    const bool has_key = colon != std::string_view::npos;
    ASSIGN_OR_RETURN(const TunedSchedule schedule,
                     ParseSchedule(has_key ? line.substr(colon + 2) : line, place));
    if (has_key && line.substr(0, colon) != wanted) {
      other = std::string(line.substr(0, std::min<size_t>(colon, 80)));
      continue;
    }
    if (found) return InvalidInput(place, ": line ", found_at, " is a schedule of this case, too");
    found = FoundSchedule{schedule.choice, place}, found_at = number;
  }
  if (found) return *std::move(found);
  return InvalidInput(file, ": expected a line '", wanted, ": ..', found ",
                      other.empty() ? "no schedule" : StrCat("'", other, "'"));
}

std::optional<TunedSchedule> FindTuned(std::string_view text, const OperatorCase& c,
                                       const isa::Machine& machine) {
  const std::string wanted = StrCat("\n", TuningKey(c, machine), ": ");
  const std::string lines = StrCat("\n", text);
  const size_t at = lines.find(wanted);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + wanted.size();
  const absl::StatusOr<TunedSchedule> tuned = ParseSchedule(
      std::string_view(lines).substr(begin, lines.find('\n', begin) - begin), "tuned.txt");
  return tuned.ok() ? std::optional(*tuned) : std::nullopt;
}

std::optional<TunedSchedule> TunedFor(const OperatorCase& c, const isa::Machine& machine) {
  if (!c.use_tuned || !c.schedule.empty()) return std::nullopt;
  return FindTuned(TunedText(), c, machine);
}

}  // namespace polynao::kernels
