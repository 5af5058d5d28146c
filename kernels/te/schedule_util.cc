#include "kernels/te/schedule_util.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "compiler/mapping/card_facts.h"
#include "compiler/target/target.h"
#include "compiler/te/card/card_schedule.h"

namespace polynao::kernels {
absl::Status CheckNumber(const Operator& op, const OperatorCase& c, std::string_view attribute,
                         int64_t low, int64_t high) {
  const std::optional<int64_t> value = AttributeInt(op, c, attribute);
  if (value && low <= *value && *value <= high) return absl::OkStatus();
  return WrongCase(c, "attribute ", attribute, ": expected a whole number from ", low, " to ", high,
                   ", found '", AttributeWord(op, c, attribute), "'");
}

absl::Status CheckShapes(const OperatorCase& c, const std::vector<size_t>& ranks) {
  std::vector<std::vector<int64_t>> shapes = {c.shape};
  shapes.insert(shapes.end(), c.operands.begin(), c.operands.end());
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].size() != ranks[i]) {
      return WrongCase(c, "expected ", ranks[i], " dimensions, found ", shapes[i].size());
    }
    if (std::find(shapes[i].begin(), shapes[i].end(), 0) != shapes[i].end()) {
      return WrongCase(c, "expected extents of 1 and more");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckType(const OperatorCase& c, const std::vector<ir::Type>& types) {
  if (std::find(types.begin(), types.end(), c.dtype) != types.end()) return absl::OkStatus();
  std::string expected;
  for (size_t i = 0; i < types.size(); ++i) {
    const char* before = i == 0 ? "" : i + 1 == types.size() ? " or " : ", ";
    StrAppend(&expected, before, ir::TypeName(types[i]));
  }
  return WrongType(c, expected);
}

absl::Status CheckInstructions(const OperatorCase& c, const Target& target,
                               const std::vector<std::string>& mnemonics) {
  if (target.instructions == nullptr) return absl::OkStatus();
  for (const std::string& mnemonic : mnemonics) {
    if (target.instructions->Find(mnemonic) != nullptr) continue;
    return InvalidInput("operator ", c.op, " of ", ir::TypeName(c.dtype),
                        ": the card has no instruction ", mnemonic);
  }
  return absl::OkStatus();
}

absl::Status NoSchedule(const OperatorCase& c, std::string_view why) {
  const std::string what =
      c.schedule.empty()
          ? StrCat("operator ", c.op, " ", ShapesText(c), ": there is no schedule that fits")
          : StrCat("operator ", c.op, ": no schedule that fits has ", ChoiceText(c.schedule));
  return why.empty() ? InvalidInput(what) : absl::ResourceExhaustedError(StrCat(what, ": ", why));
}

absl::StatusOr<std::vector<GridTiling>> GridTilings(
    const OperatorCase& c, int64_t output_rows, int64_t output_columns, const isa::Machine& m,
    const std::function<TileNeeds(int64_t rows, int64_t columns)>& needs) {
  const mapping::CardFacts card(m);
  std::vector<GridTiling> tilings;
  int64_t least = INT64_MAX, least_wanted = INT64_MAX;
  ScheduleChoice nearest;  // of those with what the case names
  GridTiling t;
  t.core_rows = CeilDiv(output_rows, m.cores());
  t.cluster_rows = t.core_rows * m.cores_per_cluster();
  for (const int64_t columns : Divisors(output_columns)) {
    for (const int64_t rows : Fractions(t.core_rows)) {
      t.rows = rows, t.columns = columns;
      t.needs = needs(rows, columns);
      least = std::min(least, t.needs.nmem_bytes);
      t.choice = {{"columns", columns}, {"rows", rows}};
      if (!Agrees(t.choice, c.schedule)) continue;
      if (t.needs.nmem_bytes > m.nmem_bytes()) {
        if (t.needs.nmem_bytes >= least_wanted) continue;
        least_wanted = t.needs.nmem_bytes, nearest = t.choice;
        continue;
      }
      t.tiles = output_columns / columns * CeilDiv(t.core_rows, rows);
      t.cycles = te::PipelinedParts(card, t.tiles, t.needs).cycles();
      tilings.push_back(t);
    }
  }
  if (least > m.nmem_bytes()) {
    return absl::ResourceExhaustedError(StrCat("operator ", c.op, " ", ShapesText(c),
                                               ": its smallest tile needs ", least,
                                               " bytes of nmem, which has ", m.nmem_bytes()));
  }
  if (tilings.empty()) {
    return NoSchedule(
        c, nearest.empty() ? "" : te::DoesNotFit("nmem", least_wanted, m.nmem_bytes(), nearest));
  }
  std::sort(tilings.begin(), tilings.end(), [](const GridTiling& a, const GridTiling& b) {
    return std::tie(a.cycles, a.choice) < std::tie(b.cycles, b.choice);
  });
  return tilings;
}

}  // namespace polynao::kernels
