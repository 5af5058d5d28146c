// Runs random programs for as long as one likes and reports what it finds:
//
//   bazel run //tests/random_programs:random_run -- --first=1 --programs=1000000
//   bazel run //tests/random_programs:random_run -- --first=1 --programs=100000 --schedules
//
// A line per batch tells how far it is, so that a run that was ended goes on with --first; each finding is printed when
// it is found, as a program that shows it. The exit code is 1 if there are any.
#include <cstdio>
#include <iostream>

#include "CLI/CLI.hpp"
#include "tests/random_programs/random_run.h"

int main(int argc, char** argv) {
  CLI::App app(
      "Compares passes, schedules, the CPU and the C target with the interpreter on random "
      "programs.",
      "random_run");
  polynao::RandomRunOptions options;
  bool whole = false;
  app.add_option("--first", options.first_seed, "the first program's seed");
  app.add_option("--programs", options.programs, "how many")->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "of them, compiled together")
      ->check(CLI::PositiveNumber);
  app.add_flag("--schedules", options.schedules,
               "affine programs through the strategies of the scheduler");
  app.add_flag("--whole", whole, "prints programs as they are, without shrinking them");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  options.shrink = !whole;
  size_t printed = 0;
  const polynao::RandomTally tally =
      polynao::RunRandomPrograms(options, [&](const polynao::RandomTally& so_far) {
        for (; printed < so_far.findings.size(); ++printed) {
          const polynao::RandomFinding& finding = so_far.findings[printed];
          std::cout << "FINDING seed " << finding.seed << ", " << StageName(finding.stage) << ": "
                    << finding.what << "\n";
        }
        std::cout << so_far.ToString(options) << std::endl;
      });
  return tally.findings.empty() ? 0 : 1;
}
