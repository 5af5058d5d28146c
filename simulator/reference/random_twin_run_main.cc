// Runs random programs on random machines through both models for as long as one likes and reports where they differ:
//
//   bazel run //simulator/reference:random_twin_run -- --first=1 --programs=100000
//
// Lines after each batch tell how far it is, so that a run that was ended goes on with --first; each finding is printed
// when it is found, as a program that shows it. At the end, the rows of the instruction table that no program executed.
// The exit code is 1 if there are any findings.
#include <cstddef>
#include <iostream>

#include "CLI/CLI.hpp"
#include "absl/strings/str_join.h"
#include "simulator/reference/testing/twin_run.h"

int main(int argc, char** argv) {
  namespace reference = polynao::simulator::reference;
  CLI::App app("Compares the event-driven simulator with the clocked model on random programs.",
               "random_twin_run");
  reference::TwinRunOptions options;
  bool whole = false;
  app.add_option("--first", options.first_seed, "the first program's seed");
  app.add_option("--programs", options.programs, "how many")->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "of them, in one process")->check(CLI::PositiveNumber);
  app.add_flag("--whole", whole, "prints programs as they are, without shrinking them");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  options.shrink = !whole;
  size_t printed = 0;
  const reference::TwinTally tally =
      reference::RunTwin(options, [&](const reference::TwinTally& so_far) {
        for (; printed < so_far.findings.size(); ++printed) {
          const reference::TwinFinding& finding = so_far.findings[printed];
          std::cout << "FINDING seed " << finding.seed << ": " << finding.what << "\n";
        }
        std::cout << so_far.ToString(options) << std::endl;
      });
  const auto rows = tally.RowsNeverIssued();
  if (!rows.empty()) std::cout << "never executed: " << absl::StrJoin(rows, " ") << "\n";
  return tally.findings.empty() ? 0 : 1;
}
