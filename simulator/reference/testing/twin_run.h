// Runs of random programs through both models, some hundreds or some hundred thousand.
#ifndef SIMULATOR_REFERENCE_TESTING_TWIN_RUN_H_
#define SIMULATOR_REFERENCE_TESTING_TWIN_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "simulator/reference/testing/random_case.h"

namespace polynao::simulator::reference {

struct TwinRunOptions {
  uint64_t first_seed = 1;
  int64_t programs = 500;
  int64_t batch = 250;  // programs of one process
  bool shrink = true;
  int seconds_per_batch = 1200;  // a batch that takes longer counts as a hang
};

// A program on which the models differ, or that crashes one or stops in a way that no random program should.
struct TwinFinding {
  uint64_t seed = 0;
  std::string what;  // with the program and its machine, shrunk if asked for
};

struct TwinTally {
  // By name: "programs", "deadlocks", "too long", "timing alone" (without values), "machine mlu270" (programs on it or
  // a variation), "channels 12" (programs with so many), "row add.f16" (how often instructions of that row of the table
  // were issued), and sums of the rows of RunResult::Rows ("sum end_cycle").
  std::map<std::string, int64_t> counts;
  std::vector<TwinFinding> findings;
  double seconds = 0, cpu_seconds = 0;

  int64_t count(const std::string& name) const;
  void Add(const TwinTally& other);
  // Rows of the instruction table that were never issued.
  std::vector<std::string> RowsNeverIssued() const;
  // "seeds 1 to 500: 500 programs, 1.2 million cycles, ..": some lines.
  std::string ToString(const TwinRunOptions& options) const;
};

// "" if both models report the same for the case; else the difference, or what is wrong with the case. Adds to `tally`,
// if it is given.
std::string RunCase(const RandomCase& c, TwinTally* tally = nullptr);

// The programs of `options`, each batch in a process of its own. `on_batch` is called after each with the tally so far.
TwinTally RunTwin(const TwinRunOptions& options,
                  const std::function<void(const TwinTally&)>& on_batch = {});

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_TESTING_TWIN_RUN_H_
