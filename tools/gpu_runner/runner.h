// Runs bundles (docs/cuda.md) on a GPU: checks values, takes times.
#ifndef TOOLS_GPU_RUNNER_RUNNER_H_
#define TOOLS_GPU_RUNNER_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/gpu_runner/compare.h"
#include "tools/gpu_runner/cuda_api.h"

namespace polynao::gpu {

struct RunnerOptions {
  std::string driver;  // paths of libraries; empty: by their names
  std::string nvrtc = {};
  int samples = 15;
  double sample_ms = 1;  // of one sample: short kernels run several times in it
  // Also time the same cases by others (compare.h), the hand-written ones from this directory.
  bool compare = false;
  std::string kernels = {};
};

// A bundle on disk and its machine code.
struct Bundle {
  std::string path;  // the directory
  Json json;
  std::string code;
  std::string compiled_by;  // "nvrtc", "kernel.cubin" or "kernel.ptx"
  double compile_ms = 0;
  Error error;
};

class Runner {
 public:
  Error Start(const RunnerOptions& options);

  // Returns what stands in each line of results: device, driver, architecture.
  const Json& machine() const { return machine_; }

  // Reads a bundle and compiles it: by NVRTC, if there is one, or what the bundle brings. May be called
  // by several threads.
  Bundle Load(const std::string& path) const;

  // Runs and checks each bundle of a group, then takes their times in turns, so that what changes in
  // the machine meanwhile is the same for all. A line of results for each; "ok" says whether values agree
  // and nothing failed, "error" what did.
  std::vector<Json> RunGroup(const std::vector<const Bundle*>& group);

 private:
  struct Loaded;
  Error Prepare(const Bundle& bundle, Loaded& loaded, Json& line);
  static Error ReadLaunches(const Json& json, Loaded& loaded);
  Error LaunchAll(Loaded& loaded);
  Error Check(const Bundle& bundle, Loaded& loaded, Json& line);
  Error Time(std::vector<std::unique_ptr<Loaded>>& group);
  Error Sample(const std::function<Error()>& run, int launches, double* milliseconds);
  // So many runs are a sample of about sample_ms; after a few runs to warm up.
  Error RunsOfSample(const std::function<Error()>& run, int* runs);
  // Checks and times others on the case; lines for each.
  Json Compare(const Bundle& bundle, Loaded& loaded);
  void Release(Loaded& loaded);

  RunnerOptions options_;
  Driver driver_;
  Nvrtc nvrtc_;
  bool has_nvrtc_ = false;
  Peers peers_;
  std::string arch_;
  Json machine_;
  CuHandle begin_ = nullptr;
  CuHandle end_ = nullptr;
};

// The directories with bundles in and below `root`, in groups: those named "baseline", "optimised" and "published"
// beside each other are one, every other is its own. In order of their paths.
std::vector<std::vector<std::string>> FindBundles(const std::string& root);

}  // namespace polynao::gpu

#endif  // TOOLS_GPU_RUNNER_RUNNER_H_
