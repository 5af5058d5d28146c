// Schedules for a card, found from a graph that has none.
//
//   ASSIGN_OR_RETURN(CardGroup group, CardGroup::Create(y, target));
//   ASSIGN_OR_RETURN(ir::Function function, group.Build(group.Schedules({}, true)[0].choice));
//
// README.md says what groups there are and how their tiles are found.
#ifndef COMPILER_TE_CARD_CARD_GROUP_H_
#define COMPILER_TE_CARD_CARD_GROUP_H_

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/mapping/estimate.h"
#include "compiler/target/target.h"
#include "compiler/te/card/card_schedule.h"
#include "compiler/te/graph.h"

namespace polynao::te {

// The computes that the output needs, readers first.
std::vector<const Operation*> Computes(const Tensor& output);

// Whether the compute is a sum of products of two elements, which is what the tensor unit computes.
bool IsSumOfProducts(const Operation& operation);

// All computes between a graph's inputs and one output, computed tile by tile: inputs are loaded once, the output is
// stored once, and what lies between stays on chip.
class CardGroup {
 public:
  // The choice that says whether reductions of columns are folded (folded_reduction.h): 1, they are.
  static constexpr char kFolded[] = "folded";

  // `target` is an accelerator; it must outlive the group. Errors: a compute that no group has, an expression that no
  // instruction computes, a smallest tile that does not fit the memories.
  // `by_vector`: sums of products that the tensor unit does not compute go to the vector unit.
  static absl::StatusOr<CardGroup> Create(const Tensor& output, const Target& target,
                                          const TileExtras& extras = {}, bool by_vector = false);
  ~CardGroup();
  CardGroup(CardGroup&&) noexcept;
  CardGroup& operator=(CardGroup&&) noexcept;

  // Whether it has reductions or elements at other places, on the vector unit.
  bool is_vector() const;
  // Whether the tensor unit computes a part of it.
  bool has_products() const;

  // Returns the schedules that have the choices `wanted`, the cost model's first choice first; or that one alone, which
  // is found sooner. Without `wanted` there is at least one. A contraction's first may lack where it takes more than
  // `limit`.
  std::vector<CardSchedule> Schedules(const CardChoice& wanted, bool only_first,
                                      double limit = std::numeric_limits<double>::infinity()) const;
  // The function under a choice of Schedules.
  absl::StatusOr<ir::Function> Build(const CardChoice& choice) const;
  // What the cost model says of a choice of Schedules; its cycles are theirs.
  absl::StatusOr<mapping::Estimate> EstimateOf(const CardChoice& choice) const;
  // Why no schedule has the choices `wanted`: the candidate with them that comes closest to fitting, the memory that it
  // lacks, what it needs and what there is; "" if there is no candidate with them.
  std::string WhyNone(const CardChoice& wanted) const;

 private:
  struct Parts;
  CardGroup();
  std::unique_ptr<Parts> parts_;
};

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_CARD_GROUP_H_
