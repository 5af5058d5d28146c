// One program for a card of any graph of groups.
//
//   ASSIGN_OR_RETURN(CardProgram program, CardProgram::Create(y, target));
//   ASSIGN_OR_RETURN(ir::Function function, program.Build(program.Schedules({}, true)[0].choice));
#ifndef COMPILER_TE_CARD_CARD_PROGRAM_H_
#define COMPILER_TE_CARD_CARD_PROGRAM_H_

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "compiler/te/card/card_group.h"
#include "compiler/te/card/card_schedule.h"
#include "compiler/te/graph.h"

namespace polynao::te {

struct TwoGroups;

// A graph that is one group (CardGroup) is that group, or, where it has several contractions, a group for each, as the
// cost model says. A graph with column sums (column_sums.h) is a sequence of groups in one function. What later groups
// read lies in GMEM between: the sums, and the results of contractions that sums or several groups read. `sync` puts
// barriers of the card between the groups. What is elementwise between belongs to the groups that read it.
class CardProgram {
 public:
  ~CardProgram();
  CardProgram(CardProgram&&) noexcept;
  CardProgram& operator=(CardProgram&&) noexcept;

  // `by_vector` and errors are those of CardGroup::Create.
  static absl::StatusOr<CardProgram> Create(const Tensor& output, const Target& target,
                                            bool by_vector = false);

  // Whether it is one group that is so (CardGroup).
  bool is_vector() const { return group_ && group_->is_vector(); }
  bool has_products() const { return group_ && group_->has_products(); }

  // Returns the schedules that have the choices `wanted`, the cheapest first, or that one alone. The choices of the
  // group, if it is one. Of column sums `sums_along`: 1 takes those that read only what a contraction's group computes
  // in that group's pass, 0 in a pass of their own. Of several contractions `cut`: 1 makes a group of each. Of one
  // `blocks`: with 1 its results lie in blocks of channels first (channel_blocks.h); and `sum_clusters`: so many parts
  // of the input channels, whose sums clusters of their own make (split_reduction.h), are added by a second group.
  // Groups of a sequence have their cost models' first choices. Contractions may leave out what takes more cycles than
  // `limit`.
  std::vector<CardSchedule> Schedules(const CardChoice& wanted, bool only_first,
                                      double limit = std::numeric_limits<double>::infinity()) const;
  // Whether sums of floats are added up in another order than the expressions say: a reduction has two steps.
  static bool ReordersSums(const CardChoice& choice);
  // Says so of sums of floats that it adds in another order (ir::IsReassociated).
  absl::StatusOr<ir::Function> Build(const CardChoice& choice) const;
  // As those of CardGroup. A sequence takes what its groups take, one after the other.
  absl::StatusOr<mapping::Estimate> EstimateOf(const CardChoice& choice) const;
  std::string WhyNone(const CardChoice& wanted) const;

 private:
  // A way in which a contraction's group and a second one follow one another: a choice.
  using Kind = std::pair<std::string_view, int64_t>;
  struct Plans;
  CardProgram();
  // Sequences in which the only reduction is computed in two steps.
  void AddSplits();
  absl::StatusOr<ir::Function> FunctionOf(const CardChoice& choice) const;
  void AddKinds();
  std::optional<TwoGroups> Plan(const Kind& kind) const;
  // The two groups of a choice of a kind, planned when somebody first asks; null if it is of none, or does not go.
  const TwoGroups* Planned(const CardChoice& choice) const;
  // No schedule of the kind takes less.
  double LeastOf(const Kind& kind) const;
  // The choice as the first of two groups has it.
  static CardChoice OfFirst(CardChoice choice);

  const Target* target_ = nullptr;
  Tensor output_;
  std::optional<CardGroup> group_;  // of the whole graph, if it is one
  // Of several groups.
  std::vector<CardSchedule> sequences_;
  std::vector<mapping::Estimate> estimates_;
  std::string why_no_group_;  // of several contractions
  bool has_cut_ = false, by_vector_ = false;
  const Operation* reduction_ = nullptr;  // that may be split
  const Operation* end_of_blocks_ = nullptr;
  std::vector<Kind> kinds_;
  std::unique_ptr<Plans> plans_;
};

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_CARD_PROGRAM_H_
