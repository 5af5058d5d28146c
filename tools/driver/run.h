// The uses of `nao run`: an operator, an image pipeline, and a user's function of loop IR.
#ifndef TOOLS_DRIVER_RUN_H_
#define TOOLS_DRIVER_RUN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cases/case_text.h"
#include "cases/run_case.h"
#include "cases/run_nest.h"
#include "kernels/equake/equake.h"
#include "kernels/pipelines/pipelines.h"

namespace CLI {
class App;
}  // namespace CLI

namespace polynao::driver {

struct RunFlags {
  cases::CaseText text;  // its op may be FILE.nir
  cases::CaseSettings settings;
  bool no_hazards = false;
  bool no_check = false;
  std::string trace;
  std::string timeline;
  std::string report;
  const CLI::App* command = nullptr;
  bool has_shape = false;
  bool json = false;
  // Of operators on the card.
  bool explain = false;
  std::string save_schedule;
  std::string instructions;  // a table's file, or empty
  // Of functions and pipelines.
  std::string function;
  cases::NestSettings nest;
  // Of pipelines alone: PNG files.
  std::string image;
  std::string out;
};

// They print what they found; the value is whether no value is known to differ.
absl::StatusOr<bool> RunOperator(RunFlags& flags);  // run_operator.cc
absl::StatusOr<bool> RunPipeline(const kernels::Pipeline& pipeline,
                                 RunFlags& flags);                               // run_pipeline.cc
absl::StatusOr<bool> RunEquake(const kernels::Equake& equake, RunFlags& flags);  // run_equake.cc
absl::StatusOr<bool> RunFile(RunFlags& flags);                                   // run_nest.cc

// Prints what they all found, as the flags say.
bool Print(const cases::NestReport& report, const RunFlags& flags);  // run_nest.cc
// The same, behind the trace, pictures and page that the flags ask for of a run on the card.
absl::StatusOr<bool> WriteAndPrint(const cases::NestReport& report,
                                   const RunFlags& flags);  // run_nest.cc
absl::Status WritePictures(const RunFlags& flags, const simulator::RunResult& run);
// The machine, its instructions, and what is recorded. Errors: what is of the card for another target; files that
// cannot be written.
absl::Status ReadCardFlags(const RunFlags& flags, cases::NestSettings& nest);  // run_nest.cc
// --threads is of the CPU target alone.
absl::Status CheckThreads(const RunFlags& flags);  // run_nest.cc

}  // namespace polynao::driver

#endif  // TOOLS_DRIVER_RUN_H_
