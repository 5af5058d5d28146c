// Elements at places that other elements say, as one group on a card: rows of a table by their numbers.
//
//   Y[i, j] = X[min(max(I[i], 0), 999), j]
//
// A core brings its numbers to NMEM; for each of them the scalar unit computes an address, and one transfer loads the
// row. Rows leave tile by tile.
#ifndef COMPILER_TE_CARD_GATHER_GROUP_H_
#define COMPILER_TE_CARD_GATHER_GROUP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/mapping/estimate.h"
#include "compiler/te/card/card_schedule.h"
#include "compiler/te/graph.h"
#include "isa/machine.h"

namespace polynao::te {

// Whether an element of the compute stands at a place that another element says.
bool IsGather(const Operation& operation);

class GatherGroup {
 public:
  // Errors: an output that is more than such an element; a table or numbers that are computed; a smallest tile that
  // does not fit.
  static absl::StatusOr<GatherGroup> Create(const Tensor& output, const isa::Machine& machine);

  // The tilings that fit NMEM, the cheapest first. The choices `tile`: rows; `part`, where not even one fits: of a row,
  // places along its first dimension.
  std::vector<CardSchedule> Schedules() const;
  absl::StatusOr<ir::Function> Build(const CardChoice& choice) const;
  absl::StatusOr<mapping::Estimate> EstimateOf(const CardChoice& choice) const;
  // What the smallest tile with the choices needs; "" if none has them.
  std::string WhyNone(const CardChoice& wanted) const;

 private:
  GatherGroup(const Tensor& output, const isa::Machine& machine)
      : output_(output), machine_(&machine) {}

  // Rows of the output that a core takes.
  int64_t CoreRows() const;
  struct Tile {
    int64_t rows = 1, part = 0;  // part = 0: whole rows
    CardChoice choice() const;
  };
  static std::optional<Tile> TileOf(const CardChoice& choice);
  mapping::Estimate Cost(const Tile& tile) const;
  std::vector<std::pair<Tile, double>> Tilings(bool fitting) const;

  Tensor output_;
  const isa::Machine* machine_;
  std::vector<Tensor> numbers_;  // inputs that say places
  size_t outer_ = 0;             // the leading dimensions along which places differ
};

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_GATHER_GROUP_H_
