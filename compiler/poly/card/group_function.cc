#include "compiler/poly/card/group_function.h"

#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "compiler/mapping/clusters.h"
#include "compiler/te/card/card_group.h"
#include "compiler/te/card/card_program.h"
#include "isa/machine.h"

namespace polynao::poly {
namespace {

// The cheapest schedule's function, or that of another one if it leaves scalar code, which costs more then.
absl::StatusOr<ir::Function> BestOf(const te::CardProgram& program,
                                    const CountScalarStores& scalar_stores, double& cycles) {
  std::vector<te::CardSchedule> schedules = program.Schedules({}, true);
  ASSIGN_OR_RETURN(ir::Function best, program.Build(schedules[0].choice));
  cycles = schedules[0].cycles;
  absl::StatusOr<int64_t> least = scalar_stores(best);
  if (least.ok() && *least == 0) return best;
  // More are tried while none compiles: tiles whose nodes share NMEM fit by an estimate alone.
  constexpr size_t kMostTries = 12, kMostFailures = 100;
  schedules = program.Schedules({}, false);
  for (size_t i = 1; i < schedules.size(); ++i) {
    if (i >= (least.ok() ? kMostTries : kMostFailures)) break;
    absl::StatusOr<ir::Function> other = program.Build(schedules[i].choice);
    if (!other.ok()) continue;
    const absl::StatusOr<int64_t> stores = scalar_stores(*other);
    if (!stores.ok() || (least.ok() && *stores >= *least)) continue;
    least = stores;
    best = *std::move(other);
    cycles = schedules[i].cycles;
    if (*least == 0) break;
  }
  RETURN_IF_ERROR(least.status());
  // An element takes the scalar unit some hundred cycles.
  constexpr double kScalarStore = 100;
  cycles += kScalarStore * static_cast<double>(*least);
  return best;
}

// The cycles that the vector unit needs at least for the sums of products: a product and a sum each. 0: there are
// none.
double VectorCyclesOfProducts(const te::Tensor& output, const isa::Machine& m) {
  double bytes = 0;
  for (const te::Operation* compute : te::Computes(output)) {
    if (!te::IsSumOfProducts(*compute)) continue;
    auto of_sums = static_cast<double>(ir::ByteSize(compute->outputs[0]->type));
    for (const int64_t extent : compute->shape) of_sums *= static_cast<double>(extent);
    for (const te::ReduceAxis& axis : compute->bodies[0].axes) {
      of_sums *= static_cast<double>(axis.extent);
    }
    bytes += 2 * of_sums;
  }
  return bytes / static_cast<double>(m.Get("vector.bytes") * m.cores());
}

}  // namespace

absl::StatusOr<ir::Function> GroupFunction(const te::Tensor& output, const Target& target,
                                           const std::string& place, double limit,
                                           const CountScalarStores& scalar_stores, double& cycles) {
  const double vector_cycles = VectorCyclesOfProducts(output, *target.machine);
  std::optional<te::CardProgram> best;
  absl::Status error;
  double least = std::numeric_limits<double>::infinity();
  std::deque<isa::Machine> machines;  // of which programs have pointers
  std::deque<Target> targets;
  const std::vector<int64_t> counts = mapping::ClusterCounts(*target.machine);
  int64_t at_most = counts[0];
  for (const int64_t clusters : counts) {
    if (clusters > at_most) continue;
    machines.push_back(mapping::WithClusters(*target.machine, clusters));
    targets.push_back(target);
    targets.back().machine = &machines.back();
    const bool has_all = machines.size() == 1;
    absl::StatusOr<te::CardProgram> program = te::CardProgram::Create(
        output, targets.back(), /*by_vector=*/has_all && vector_cycles < std::min(limit, least));
    // What does not fit all clusters fits fewer no better.
    if (!program.ok()) {
      error = program.status();
      break;
    }
    const bool is_vector = program->is_vector(), has_products = program->has_products();
    if (!has_all && !has_products) break;
    const std::vector<te::CardSchedule> first = program->Schedules({}, true, least);
    const bool is_better = !first.empty() && first[0].cycles < least;
    if (is_better) {
      least = first[0].cycles;
      best = *std::move(program);
    }
    // The search of a vector group takes long: half as many each time, as long as that is faster.
    if (!has_products || (is_vector && !is_better)) break;
    if (is_vector) at_most = clusters / 2;
  }
  if (!best && !error.ok()) return WithContext(StrCat("'", place, "'"), error);
  if (!best) return InvalidInput("'", place, "': no schedule fits");
  return BestOf(*best, scalar_stores, cycles);
}

}  // namespace polynao::poly
