// Work in a process of its own, so that a crash or a hang is a result like another.
#ifndef TESTING_PROCESSES_H_
#define TESTING_PROCESSES_H_

#include <functional>
#include <string>

namespace polynao {

struct ProcessOutcome {
  std::string output;
  bool crashed = false;
  std::string how;  // it crashed: "ends by signal 11", "takes more than 20 s"
};

// Runs `work` in a process of its own, which ends after `seconds`; its result is the output.
ProcessOutcome InProcess(const std::function<std::string()>& work, int seconds);

// CPU time of this process and of its children that have ended, in seconds.
double CpuSeconds();

}  // namespace polynao

#endif  // TESTING_PROCESSES_H_
