// One operator case, compiled or hand-written, run on a target and compared with its reference.
#ifndef TOOLS_DRIVER_CASE_H_
#define TOOLS_DRIVER_CASE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/cuda/bundle.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "isa/machine.h"
#include "isa/program.h"
#include "kernels/library/kernel.h"
#include "kernels/te/operators.h"
#include "nlohmann/json.hpp"
#include "simulator/report.h"
#include "simulator/simulator.h"

namespace polynao::driver {

struct CaseSettings {
  std::string target = "diannao";
  std::string impl = "compiled";       // or "library", "expert"
  std::string config = "mlu270";       // a name in simulator/configs, or a path
  std::vector<std::string> overrides;  // "core.nmem_kib=256"
  uint64_t seed = 1;
  simulator::TraceOptions trace;
  bool check_hazards = true;
  // Passes that the compiler leaves out, by name.
  std::vector<std::string> without;
};

// A case in the words of the command line.
struct CaseText {
  std::string op;     // "add"; where a file may stand too: FILE.nir
  std::string shape;  // "255x27x27", "56x56x256,128x3x3x256"
  std::string dtype = "f16";
  std::optional<double> scalar = {};
  std::vector<std::string> attributes = {};  // "stride=2"
  std::vector<std::string> schedule = {};    // "tile=4096"
  bool untuned = false;                      // OperatorCase::use_tuned
  // A case of the TOPI table, by its number, instead of a shape, a type and attributes.
  std::optional<int> table_case = {};
};

// The case of `text`. Errors: a shape, a type or an attribute that is none. Whether there is such an
// operator is for FindOperator to say.
absl::StatusOr<kernels::OperatorCase> ParseCase(const CaseText& text);

// The same, where text.table_case may name a case of the table: those of all its functions.
absl::StatusOr<std::vector<kernels::OperatorCase>> ParseCases(const CaseText& text);

struct CaseReport {
  kernels::OperatorCase operator_case;
  CaseSettings settings;
  bool ok = false;  // all values agree with the reference, within the operator's tolerance
  double max_abs_error = 0;
  double max_rel_error = 0;
  int64_t bound_cycles = 0;
  // What the host did before the program started, which is not in its cycles; empty: nothing.
  std::string host_step;
  double compile_ms = 0;
  // DianNao.
  std::optional<isa::Machine> machine;
  std::optional<simulator::RunResult> simulated;
  double simulate_ms = 0;
  // CPU and C: median of several runs. CUDA has none: the shim executes, it does not measure.
  std::optional<double> time_ns;
  bool by_shim = false;

  double efficiency() const;  // bound_cycles / cycles; 0 if nothing was simulated
  // The object that `nao run --json` prints.
  nlohmann::ordered_json ToJson() const;
};

// The machine of a configuration: a name in simulator/configs or the path of a .toml file.
absl::StatusOr<isa::Machine> LoadMachine(const std::string& config,
                                         const std::vector<std::string>& overrides);

// The target of that name; accelerators point to `machine`, which must outlive it.
absl::StatusOr<Target> MakeTarget(const std::string& name, const isa::Machine* machine);

// The functions of a .nir file, checked; or, if what.op does not end in .nir, the operator of that
// name as its tensor expression is lowered for `target`, before any pass.
absl::StatusOr<ir::Module> LoadFunctions(const CaseText& what, const Target& target);

// The DianNao program of a case: compiled from its tensor expression, leaving out the passes named
// `without`, or from kernels/library; `expert` tries some on the simulator. NotFound: there is no such
// implementation of this operator.
using BuiltProgram = kernels::HandWrittenKernel;
absl::StatusOr<BuiltProgram> BuildProgram(const kernels::OperatorCase& c, const Target& target,
                                          const std::string& impl,
                                          const std::vector<std::string>& without = {});

// A way to compile a case for CUDA: the passes left out, by name.
struct BundleVariant {
  std::string name;  // of the folder; empty: none
  std::vector<std::string> without;
};

// Bundles of a case for a GPU machine (compiler/codegen/cuda/bundle.h), one for each variant, whose
// name stands in front of the files'. With values to check against and, unless `arch` is "none" or
// there is no nvcc, machine code for it.
absl::StatusOr<std::vector<codegen::BundleFile>> BuildBundles(
    const kernels::OperatorCase& c, const std::string& arch, uint64_t seed,
    const std::vector<BundleVariant>& variants);

// Runs a case. Errors: what is wrong with the case or the settings, and what stopped the run;
// values that differ from the reference are no error here but `ok == false`. NotFound: there is no
// such operator, or no such implementation of it.
absl::StatusOr<CaseReport> RunCase(const kernels::OperatorCase& c, const CaseSettings& settings);

}  // namespace polynao::driver

#endif  // TOOLS_DRIVER_CASE_H_
