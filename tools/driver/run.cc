#include "tools/driver/run.h"

#include <memory>

#include "CLI/CLI.hpp"
#include "base/text.h"
#include "cases/schedule.h"
#include "tools/driver/commands.h"

namespace polynao::driver {

namespace {

// Options of FILE.nir.
void AddNestOptions(CLI::App& command, RunFlags& flags) {
  command.add_option("--function", flags.function, "FILE.nir: which function, if it has several");
  command
      .add_option("--arg", flags.nest.arguments,
                  "FILE.nir: the value of a scalar parameter, n=1000; all need one")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option(
          "--values", flags.nest.values,
          "FILE.nir: elements of tensors: uniform (of [-1, 1)), exact (few bits), finite, or all")
      ->capture_default_str();
  command
      .add_option("--threads", flags.nest.executable.threads,
                  "FILE.nir on cpu: threads of parallel loops (default: the hardware's)")
      ->check(CLI::Range(1, 4096));
  command.add_flag("--contract", flags.nest.executable.float_rules.contract,
                   "FILE.nir: a*b+c may be rounded once");
  command.add_flag("--reassociate", flags.nest.executable.float_rules.reassociate,
                   "FILE.nir: sums and products of floats may be computed in any order");
  command.add_flag("--reciprocal", flags.nest.executable.float_rules.reciprocal,
                   "FILE.nir: x / y may be computed as x * (1 / y)");
  command.add_flag("--dots", flags.nest.executable.float_rules.dots,
                   "FILE.nir: sums of products of bf16 in f32 may be made by instructions of the "
                   "processor, which add "
                   "them in another order and take subnormal numbers for zeros");
}

}  // namespace

void AddRunCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand(
      "run",
      "compile an operator, run it, compare it with its reference; or a function "
      "of yours, and compare it with the interpreter");
  command->add_option("OP", flags->text.op, "an operator or a pipeline (nao list ops), or FILE.nir")
      ->required();
  CLI::Option* shape = AddCaseOptions(*command, flags->text);
  AddSearchOption(*command, flags->text);
  command
      ->add_option(
          "--target", flags->settings.target,
          "diannao, cpu, c, cuda (by a shim, on the CPU) or interp; default of pipelines and "
          "FILE.nir: cpu")
      ->capture_default_str();
  command->add_option("--impl", flags->settings.impl, "compiled, or hand-written: library, expert")
      ->capture_default_str();
  AddMachineOptions(*command, flags->settings.config, flags->settings.overrides);
  AddInstructionsOption(*command, flags->instructions);
  command->add_option("--seed", flags->settings.seed, "of the inputs")->capture_default_str();
  command->add_option("--trace", flags->trace, "write a Chrome/Perfetto trace (JSON)");
  command->add_option("--timeline", flags->timeline, "write a picture (.svg or .html)");
  command->add_option("--report", flags->report,
                      "write a page: roofline, what each core's cycles went into, channels and "
                      "banks over time, timeline, all counters");
  command->add_flag("--no-hazards", flags->no_hazards,
                    "simulate without checks of hazards and definedness");
  command->add_flag(
      "--no-check", flags->no_check,
      "compute no reference and compare no values: the report says that they were not checked");
  command->add_flag("--timing-only", flags->settings.timing_only,
                    "operators on the card: cycles and counters alone, the same ones; no values");
  command->add_option("--energy", flags->settings.energy,
                      "the card's energy and area: 65nm, 45nm, 28nm, another node by scaling, or a "
                      ".toml file; then the DRAM: 28nm,hbm2");
  command->get_option("--schedule")
      ->description(
          StrCat("of operators: choices taken out of the compiler's hands, 'tile=4096' or a file "
                 "with a line for the case (--save-schedule); "
                 "pipelines (default: fuse) and FILE.nir (default: auto): a strategy (nao list "
                 "strategies) of ",
                 cases::ScheduleNames(),
                 " with that tile, a schedule '{ S0[i, j] -> [j, i] }' or '[S1(i, j) → (j, i)]', "
                 "or a file with one"));
  AddNestOptions(*command, *flags);
  command->add_option("--image", flags->image, "a pipeline's input: a PNG file");
  command->add_option("--out", flags->out, "a pipeline's output: the PNG file to write");
  command->add_flag("--explain", flags->explain,
                    "operators on the card: what the cost model says of the schedule that is "
                    "taken, of the best others, and of those that do not fit");
  command->add_option("--save-schedule", flags->save_schedule,
                      "operators on the card: write the schedule that is taken to a file for "
                      "--schedule=FILE, in the place of the case's line or at the end");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->callback([&action, flags, shape, command] {
    flags->command = command;
    flags->has_shape = shape->count() > 0;
    if (command->get_option("--target")->count() > 0) {
      flags->nest.executable.target = flags->settings.target;
    }
    action = [flags] {
      const kernels::Pipeline* pipeline = kernels::FindPipeline(flags->text.op);
      const kernels::Equake* equake = kernels::FindEquake(flags->text.op);
      return OutcomeOf(flags->text.op.ends_with(".nir") ? RunFile(*flags)
                       : pipeline != nullptr            ? RunPipeline(*pipeline, *flags)
                       : equake != nullptr              ? RunEquake(*equake, *flags)
                                                        : RunOperator(*flags));
    };
  });
}

}  // namespace polynao::driver
