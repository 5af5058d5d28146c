// The list of all parameters that a machine may have, for checks that leave none out.
#ifndef ISA_MACHINE_ROWS_H_
#define ISA_MACHINE_ROWS_H_

#include "absl/types/span.h"
#include "isa/parameter_file.h"

namespace polynao::isa {

// Lists the parameters that a machine file may state, in the order of the documentation: what it must state, what only
// energy depends on, and dram.*.
absl::Span<const ParameterRow> MachineRows();

}  // namespace polynao::isa

#endif  // ISA_MACHINE_ROWS_H_
