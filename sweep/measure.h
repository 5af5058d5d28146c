// One program at one point of a sweep, simulated.
#ifndef SWEEP_MEASURE_H_
#define SWEEP_MEASURE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cases/program_file.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"
#include "isa/program.h"
#include "simulator/energy/table.h"
#include "sweep/table.h"

namespace polynao::sweep {

struct InstructionTable {
  std::string name;  // isa::TableName
  std::shared_ptr<const isa::InstructionSet> set;
};

// All points of a sweep share this setting.
struct Setting {
  std::string config = "mlu270";  // a machine's name, or the path of its file
  std::vector<std::string> base;  // overrides
  std::string energy;             // an energy table, or empty
  // Instruction tables to compare, which become the last axis; none: the built-in one alone.
  std::vector<InstructionTable> tables = {};
};

// Adds the tables of these files (isa::LoadTableFile). Errors: those of the files; two of one name.
absl::Status LoadTables(const std::vector<std::string>& paths, Setting& setting);

// The instructions of a point of `table`, a table of this setting.
const isa::InstructionSet& InstructionsAt(const Setting& setting, const Table& table,
                                          const Point& point);

// The table of a sweep without rows, checked: the machine exists, and so do the axes and the energy table. Its axes are
// `axes`, then that of the instruction tables, if the setting has some.
absl::StatusOr<Table> EmptyTable(const Setting& setting, const std::vector<Axis>& axes,
                                 const std::vector<std::string>& programs);

// A program of a point, or why there is none.
struct Candidate {
  std::optional<kernels::OperatorCase> operator_case;  // for its bounds
  std::map<std::string, std::string> arguments;        // cases::ProgramFile::arguments
  isa::Program program;
  std::string error;
};

// The row of `candidate` at a point of `table`: metrics of simulator::RunForTiming, since values change no cycle, or
// the error of the point's machine, of the candidate or of the simulation.
Row Measure(const Setting& setting, const Table& table, const Point& point,
            const Candidate& candidate);

}  // namespace polynao::sweep

#endif  // SWEEP_MEASURE_H_
