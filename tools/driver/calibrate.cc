// nao calibrate: measures what schedules for this machine's processor ask for.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "CLI/CLI.hpp"
#include "base/files.h"
#include "base/status.h"
#include "benchmarks/core_rates.h"
#include "benchmarks/processor_rates.h"
#include "benchmarks/provenance.h"
#include "compiler/poly/arrange/machine.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct CalibrateFlags {
  std::string target = "cpu";
  std::string out;
  int threads = 0;
};

absl::Status Calibrate(const CalibrateFlags& flags) {
  const int threads =
      flags.threads > 0 ? flags.threads : static_cast<int>(std::thread::hardware_concurrency());
  // The system's caches, not those of an older file.
  unsetenv("POLYNAO_CPU");
  ASSIGN_OR_RETURN(const poly::CpuMachine machine, poly::HostMachine(threads));
  poly::CpuRates rates = benchmarks::MeasureProcessor(threads);
  ASSIGN_OR_RETURN(rates.core, benchmarks::MeasureCore(machine, rates.clock_hz));
  const std::string name = benchmarks::ProcessorName();
  const std::string text =
      poly::CpuFileText(name, benchmarks::Date().substr(0, 10), machine, rates);
  if (!flags.out.empty()) RETURN_IF_ERROR(WriteFile(flags.out, text));
  std::printf("%s, %d thread%s\n", name.c_str(), threads, threads == 1 ? "" : "s");
  std::printf("  clock %.2f GHz\n", rates.clock_hz / 1e9);
  std::printf("  memory %.1f GB/s for one core, %.1f for all: %.2f times\n",
              rates.bytes_of_one / 1e9, rates.bytes_of_all / 1e9,
              rates.bytes_of_all / rates.bytes_of_one);
  std::printf("  a parallel loop's start and end %.1f us\n", rates.start_seconds * 1e6);
  const double lanes = machine.vector_bytes / 4;
  std::printf(
      "  f32: a multiply-add of %.0f lanes each %.2f cycles, %.0f GFLOP/s a core; it takes %.1f\n",
      lanes, rates.core.operation, 2 * lanes / rates.core.operation * rates.clock_hz / 1e9,
      rates.core.latency);
  std::printf(
      "  nearest cache: a load each %.2f cycles, a store %.2f; second cache %.0f bytes a cycle\n",
      rates.core.load, rates.core.store, rates.core.next_bytes);
  for (const auto& [name, cycles] : rates.core.instructions)
    std::printf("  %s each %.2f cycles\n", name.c_str(), cycles);
  if (flags.out.empty()) {
    std::printf("\n%s", text.c_str());
    return absl::OkStatus();
  }
  std::printf("wrote %s: schedules are made with it where POLYNAO_CPU=%s is set\n",
              flags.out.c_str(), flags.out.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddCalibrateCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CalibrateFlags>();
  CLI::App* command = app.add_subcommand("calibrate",
                                         "measure clock, memory, starts of threads, vectors and "
                                         "instructions, and write the file for POLYNAO_CPU");
  command
      ->add_option("--target", flags->target,
                   "what is measured; cards have files (nao list configs)")
      ->check(CLI::IsMember({"cpu"}))
      ->capture_default_str();
  command
      ->add_option("--threads", flags->threads,
                   "how many cores are measured together (default: the hardware's)")
      ->check(CLI::Range(1, 4096));
  command->add_option("-o,--out", flags->out, "the file to write (default: print it)");
  command->callback(
      [&action, flags] { action = [flags] { return Outcome{.status = Calibrate(*flags)}; }; });
}

}  // namespace polynao::driver
