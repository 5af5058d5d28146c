#include "sweep/run.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/status.h"
#include "cases/build.h"
#include "cases/machines.h"
#include "cases/nest_on_card.h"
#include "compiler/ir/visit.h"
#include "compiler/target/target.h"
#include "isa/machine.h"

namespace polynao::sweep {
namespace {

absl::StatusOr<Candidate> Compile(const Entry& entry, const isa::Machine& machine,
                                  const isa::InstructionSet& instructions) {
  ASSIGN_OR_RETURN(Target target, MakeTarget("diannao", &machine));
  target.instructions = &instructions;
  if (entry.function) {
    // Its own context: other threads compile the same function.
    const ir::Function own = ir::CloneInto(*entry.function, std::make_shared<ir::Context>());
    ASSIGN_OR_RETURN(cases::NestOnCard nest, cases::CompileForCard(own, entry.arguments, target));
    Candidate candidate;
    candidate.program = std::move(nest.program);
    return candidate;
  }
  kernels::OperatorCase c = entry.operator_case;
  // A schedule found by a search is known for some machines only; points beside them would be at a disadvantage.
  c.use_tuned = false;
  ASSIGN_OR_RETURN(c, cases::SearchSchedule(c, target, entry.search));
  ASSIGN_OR_RETURN(const cases::BuiltProgram built, cases::BuildProgram(c, target, entry.impl));
  ASSIGN_OR_RETURN(const kernels::Operator* op, kernels::FindOperator(c));
  Candidate candidate;
  candidate.operator_case = c;
  candidate.arguments = cases::ArgumentsOf(built, op->tensors(c));
  candidate.program = built.program;
  return candidate;
}

// Programs, and what was read of the machine to make each. Two threads that need one at the same time both compile it.
class Compiled {
 public:
  std::shared_ptr<const Candidate> Get(const Entry& entry, const isa::Machine& machine,
                                       const isa::InstructionSet& instructions) {
    const auto key = std::pair(entry.name, &instructions);
    {
      const std::lock_guard lock(mutex_);
      for (const Made& made : programs_[key]) {
        const bool is_same =
            std::all_of(made.read.begin(), made.read.end(), [&](const auto& parameter) {
              return machine.Text(parameter.first) == parameter.second;
            });
        if (is_same) return made.candidate;
      }
    }
    const isa::ParameterReads reads;
    auto candidate = std::make_shared<Candidate>();
    if (absl::StatusOr<Candidate> compiled = Compile(entry, machine, instructions); compiled.ok()) {
      *candidate = *std::move(compiled);
    } else {
      candidate->error = std::string(compiled.status().message());
    }
    const std::lock_guard lock(mutex_);
    programs_[key].push_back({reads.Values(machine), candidate});
    return candidate;
  }

 private:
  struct Made {
    std::map<std::string, std::string> read;  // with the values that the machine had
    std::shared_ptr<const Candidate> candidate;
  };
  std::mutex mutex_;
  std::map<std::pair<std::string, const isa::InstructionSet*>, std::vector<Made>> programs_;
};

}  // namespace

absl::StatusOr<Table> RunSweep(const Setting& setting, const std::vector<Axis>& axes,
                               const std::vector<Entry>& entries, int jobs,
                               const std::function<void(size_t done, size_t total)>& on_row) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  ASSIGN_OR_RETURN(Table table, EmptyTable(setting, axes, names));
  const std::vector<Point> points = table.points();
  table.rows.resize(points.size() * entries.size());
  Compiled compiled;
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t done = 0;
  const auto work = [&] {
    for (size_t i = next++; i < table.rows.size(); i = next++) {
      const size_t p = i / entries.size();
      const Entry& entry = entries[i % entries.size()];
      std::vector<std::string> overrides = setting.base;
      for (std::string& override : Overrides(table.axes, points[p])) {
        overrides.push_back(std::move(override));
      }
      const absl::StatusOr<isa::Machine> machine = cases::LoadMachine(setting.config, overrides);
      // Measure says what is wrong with a machine.
      const isa::InstructionSet& instructions = InstructionsAt(setting, table, points[p]);
      Row row = Measure(setting, table, points[p],
                        machine.ok() ? *compiled.Get(entry, *machine, instructions) : Candidate());
      row.point = static_cast<int64_t>(p);
      row.program = entry.name;
      table.rows[i] = std::move(row);
      if (!on_row) continue;
      const std::lock_guard lock(mutex);
      on_row(++done, table.rows.size());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  RETURN_IF_ERROR(CheckFeasible(table));
  return table;
}

}  // namespace polynao::sweep
