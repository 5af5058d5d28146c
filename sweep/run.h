// The sweep of `nao sweep`: compiles for each point and simulates, several points at a time.
#ifndef SWEEP_RUN_H_
#define SWEEP_RUN_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"
#include "sweep/measure.h"

namespace polynao::sweep {

// A program of the sweep before it is compiled: a case of an operator, or a function of loop IR.
struct Entry {
  std::string name;
  kernels::OperatorCase operator_case = {};
  // A nest becomes instructions (cases::CompileForCard); one argument for each parameter, those of scalars have values.
  std::optional<ir::Function> function = std::nullopt;
  std::vector<ir::Argument> arguments = {};
  std::string impl = "compiled";
  int search = 0;  // cases::SearchSchedule's `count`
};

// The whole table. Each program is compiled for each point, by the cost model's schedule or a search's, but once only
// for points that agree in what was read of the machine to make it (isa::ParameterReads). `on_row` is called after each
// row, from one thread at a time. The number of jobs changes nothing. Errors: those of EmptyTable; no point is
// feasible.
absl::StatusOr<Table> RunSweep(const Setting& setting, const std::vector<Axis>& axes,
                               const std::vector<Entry>& entries, int jobs,
                               const std::function<void(size_t done, size_t total)>& on_row = {});

}  // namespace polynao::sweep

#endif  // SWEEP_RUN_H_
