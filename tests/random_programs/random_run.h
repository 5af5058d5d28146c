// Long runs of random programs: passes, schedules, the CPU target and the C target against the interpreter.
//
// Hundreds of programs are compiled in one LLVM module and one C file, so that a program costs milliseconds. Each batch
// runs in a process of its own: a crash or a hang is a finding like another, and the run goes on.
#ifndef TESTS_RANDOM_PROGRAMS_RANDOM_RUN_H_
#define TESTS_RANDOM_PROGRAMS_RANDOM_RUN_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace polynao {

// A program goes through these stages. The interpreter's result of the program as it is written is what all others must
// store.
enum class RandomStage : uint8_t { kPasses, kSchedule, kCpu, kC };
inline constexpr int kRandomStages = 4;
std::string_view StageName(RandomStage stage);  // "passes", "schedule", "cpu", "c"

struct RandomRunOptions {
  uint64_t first_seed = 1;
  int64_t programs = 1000;
  int64_t batch = 500;  // programs of one module and one C file
  // Affine programs through the strategies of the polyhedral scheduler, instead of all of passes, cpu and c.
  bool schedules = false;
  bool shrink = true;
  // A batch that takes longer counts as a hang.
  int seconds_per_batch = 600;
};

struct RandomFinding {
  uint64_t seed = 0;
  RandomStage stage = RandomStage::kPasses;
  std::string what;  // with the program, shrunk if asked for
};

struct RandomTally {
  int64_t programs = 0;
  std::array<int64_t, kRandomStages> compared =
      {};               // programs of which a stage's result was compared
  int64_t changed = 0;  // by passes or schedules
  int64_t refused = 0;  // by a pass, with a message
  std::vector<RandomFinding> findings;
  double seconds = 0, cpu_seconds = 0;

  void Add(const RandomTally& other);
  // "seeds 1 to 2000: 2000 programs, 1873 changed, ..; 9 s, 4.6 ms a program, 4.1 ms of CPU; 0 findings"
  std::string ToString(const RandomRunOptions& options) const;
};

// Runs the programs of `options`. `on_batch` is called after each batch with the tally so far.
RandomTally RunRandomPrograms(const RandomRunOptions& options,
                              const std::function<void(const RandomTally&)>& on_batch = {});

}  // namespace polynao

#endif  // TESTS_RANDOM_PROGRAMS_RANDOM_RUN_H_
