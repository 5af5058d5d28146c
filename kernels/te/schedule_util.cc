#include "kernels/te/schedule_util.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "compiler/target/target.h"
#include "compiler/te/card/card_schedule.h"
#include "isa/granularity.h"
#include "isa/levels.h"

namespace polynao::kernels {
namespace {

// The ways to take a part of the channels.
std::vector<int64_t> Parts(int64_t channels) {
  std::vector<int64_t> parts = {channels};
  for (int64_t d : Divisors(channels)) {
    if (d < channels && d % isa::kVectorGroup == 0) parts.push_back(d);
  }
  return parts;
}

}  // namespace

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
  return InvalidInput("operator ", c.op, " of ", ir::TypeName(c.dtype), ": expected ", expected);
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
      StrCat("operator ", c.op, ": no schedule that fits has ", ChoiceText(c.schedule));
  return why.empty() ? InvalidInput(what) : absl::ResourceExhaustedError(StrCat(what, ": ", why));
}

int64_t Segments(const te::Shape& whole, int64_t rows, int64_t columns, int64_t channels) {
  if (channels < whole[2]) return rows * columns;
  return columns < whole[1] ? rows : 1;
}

absl::StatusOr<std::vector<GridTiling>> GridTilings(
    const OperatorCase& c, const te::Shape& output, const isa::Machine& m,
    const std::function<TileNeeds(int64_t rows, int64_t columns, int64_t channels)>& needs) {
  std::vector<GridTiling> tilings;
  int64_t least = INT64_MAX, least_wanted = INT64_MAX;
  ScheduleChoice nearest;  // of those with what the case names
  for (int64_t across : Divisors(m.cores_per_cluster())) {
    GridTiling t;
    if (output[2] % across != 0) continue;
    t.core_channels = output[2] / across;
    if (across > 1 && t.core_channels % isa::kVectorGroup != 0) continue;
    const int64_t runs = m.cores_per_cluster() / across;
    t.core_rows = CeilDiv(output[0], m.clusters() * runs);
    t.cluster_rows = t.core_rows * runs;
    for (int64_t channels : Parts(t.core_channels)) {
      for (int64_t columns : Divisors(output[1])) {
        for (const int64_t rows : Fractions(t.core_rows)) {
          t.rows = rows, t.columns = columns, t.channels = channels;
          t.needs = needs(rows, columns, channels);
          least = std::min(least, t.needs.nmem_bytes);
          t.choice = {
              {"across", across}, {"channels", channels}, {"columns", columns}, {"rows", rows}};
          if (!Agrees(t.choice, c.schedule)) continue;
          if (t.needs.nmem_bytes > m.nmem_bytes()) {
            if (t.needs.nmem_bytes >= least_wanted) continue;
            least_wanted = t.needs.nmem_bytes, nearest = t.choice;
            continue;
          }
          t.tiles = t.core_channels / channels * (output[1] / columns) * CeilDiv(t.core_rows, rows);
          t.cycles = PipelinedCycles(m, t.tiles, t.needs);
          tilings.push_back(t);
        }
      }
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

GridLoops TileGrid(te::Schedule& s, const te::Tensor& output, const GridTiling& t) {
  te::Stage& y = s[output];
  auto [cid, row] = y.Split(y.axis(0), t.cluster_rows);
  auto [core_row, core_y] = y.Split(row, t.core_rows);
  auto [tile_row, yy] = y.Split(core_y, t.rows);
  auto [tile_column, xx] = y.Split(y.axis(1), t.columns);
  auto [core_channel, core_c] = y.Split(y.axis(2), t.core_channels);
  auto [block, cc] = y.Split(core_c, t.channels);
  y.Reorder({cid, core_row, core_channel, block, tile_row, tile_column, yy, xx, cc});
  const te::Axis tid = y.Fuse(core_row, core_channel);
  const te::Axis tile = y.Fuse(tile_row, tile_column);
  y.Bind(cid, isa::kClusterAxis).Bind(tid, isa::kCoreAxis).Pragma(yy, "memcpy");
  return {block, tile};
}

}  // namespace polynao::kernels
