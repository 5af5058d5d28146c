#include "testing/processes.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>

#include "base/check.h"
#include "base/text.h"

namespace polynao {

ProcessOutcome InProcess(const std::function<std::string()>& work, int seconds) {
  int ends[2];
  POLYNAO_CHECK(pipe(ends) == 0) << "no pipe";
  const pid_t child = fork();
  POLYNAO_CHECK(child >= 0) << "no process";
  if (child == 0) {
    close(ends[0]);
    alarm(static_cast<unsigned>(seconds));
    const std::string output = work();
    for (size_t done = 0; done < output.size();) {
      const ssize_t wrote = write(ends[1], output.data() + done, output.size() - done);
      if (wrote <= 0) break;
      done += static_cast<size_t>(wrote);
    }
    _exit(0);
  }
  close(ends[1]);
  ProcessOutcome outcome;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    outcome.output.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    outcome.crashed = true;
    outcome.how = WTERMSIG(status) == SIGALRM ? StrCat("takes more than ", seconds, " s")
                                              : StrCat("ends by signal ", WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    outcome.crashed = true;
    outcome.how = StrCat("ends with status ", WEXITSTATUS(status));
  }
  return outcome;
}

double CpuSeconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
      seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    }
  }
  return seconds;
}

}  // namespace polynao
