// The command `nao tune`, by what is tuned.
#ifndef TOOLS_DRIVER_TUNE_H_
#define TOOLS_DRIVER_TUNE_H_

#include <string>

#include "absl/status/statusor.h"
#include "cases/case_text.h"
#include "cases/run_case.h"
#include "kernels/pipelines/pipelines.h"

namespace CLI {
class App;
}  // namespace CLI

namespace polynao::driver {

struct TuneFlags {
  const CLI::App* command = nullptr;
  cases::CaseText text;  // its operator may be a suite or a pipeline
  cases::CaseSettings settings;
  int threads = 0;  // of a pipeline; 0: as many as run at once
  int top = 16;
  bool json = false;
  std::string save;
};

// Times the tiles that the model ranks first, and the model's own choice. Whether all values agree.
absl::StatusOr<bool> TunePipeline(const kernels::Pipeline& pipeline, const TuneFlags& flags);

}  // namespace polynao::driver

#endif  // TOOLS_DRIVER_TUNE_H_
