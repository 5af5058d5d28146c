// Functions that the operators' checks and schedules share.
#ifndef KERNELS_TE_SCHEDULE_UTIL_H_
#define KERNELS_TE_SCHEDULE_UTIL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "base/math.h"
#include "base/status.h"
#include "compiler/te/card/tile_cost.h"
#include "compiler/te/schedule.h"
#include "kernels/te/operator.h"

namespace polynao::kernels {

inline ir::Expr To(ir::Type type, ir::Expr value) { return value.context().Cast(type, value); }

// The type in which operators that add up many elements of `type` compute their sums: f32 for narrower floats, i32 for
// bytes.
inline ir::Type SumType(ir::Type type) {
  if (type == ir::Type::kI8) return ir::Type::kI32;
  return type == ir::Type::kF16 || type == ir::Type::kBF16 ? ir::Type::kF32 : type;
}

// A mean, not yet in its type, from the sum of `count` elements: of integers in f32, rounded to the nearest.
inline ir::Expr MeanOf(ir::Expr sum, int64_t count) {
  const bool is_int = ir::IsInt(sum.type());
  if (is_int) sum = To(ir::Type::kF32, sum);
  const ir::Expr mean = sum * ir::ConstantLike(sum, 1.0 / static_cast<double>(count));
  return is_int ? mean.context().Call(mean.type(), "round", {mean}) : mean;
}

// ---- checks

// "operator pad 4x4: ...": wrong input that has to do with shapes or attributes.
template <typename... Words>
absl::Status WrongCase(const OperatorCase& c, const Words&... words) {
  return InvalidInput("operator ", c.op, " ", ShapesText(c), ": ", words...);
}

// That the attribute is a whole number from `low` to `high`.
absl::Status CheckNumber(const Operator& op, const OperatorCase& c, std::string_view attribute,
                         int64_t low, int64_t high = 1 << 20);
// That all shapes have as many dimensions as `ranks` says, in order, of 1 and more elements.
absl::Status CheckShapes(const OperatorCase& c, const std::vector<size_t>& ranks);
// That the type is one of `types`. Errors: WrongType.
absl::Status CheckType(const OperatorCase& c, const std::vector<ir::Type>& types);
// That an accelerator has the instructions ("add.f32"); nothing for other targets.
absl::Status CheckInstructions(const OperatorCase& c, const Target& target,
                               const std::vector<std::string>& mnemonics);

// That no schedule of the case has the choices that it names. `why`: the candidate with them that comes closest, and
// what it lacks (ResourceExhausted); "" if there is no candidate with them.
absl::Status NoSchedule(const OperatorCase& c, std::string_view why);

// ---- tiles on the card

using te::Divisors, te::Fractions, te::OnChipBytes, te::TileNeeds, te::VectorCycles;

// How the cores of a card share an output of rows and columns. Clusters take runs of `cluster_rows` rows; their cores
// runs of `core_rows` rows of those; tiles are `rows` x `columns`. Columns divide the output's, so that tiles run
// through memory on chip without gaps.
struct GridTiling {
  int64_t cluster_rows = 0, core_rows = 0;
  int64_t rows = 0, columns = 0;
  int64_t tiles = 0;  // of a core
  TileNeeds needs = {};
  double cycles = 0;  // by PipelinedParts
  ScheduleChoice choice = {};
};

// All tilings of an output of so many rows and columns that fit NMEM and agree with the case's schedule, the cheapest
// first. `needs` says what a tile of rows x columns needs. Errors: the smallest tile does not fit; there is no such
// schedule.
absl::StatusOr<std::vector<GridTiling>> GridTilings(
    const OperatorCase& c, int64_t rows, int64_t columns, const isa::Machine& m,
    const std::function<TileNeeds(int64_t rows, int64_t columns)>& needs);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_SCHEDULE_UTIL_H_
