#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "base/files.h"
#include "base/status.h"
#include "benchmarks/licm_result.h"
#include "cases/build.h"
#include "cases/bundles.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/nest_bundles.h"
#include "cases/pipeline_variants.h"
#include "cases/program_file.h"
#include "cases/run_nest.h"
#include "cases/schedule.h"
#include "compiler/codegen/back_ends.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "compiler/codegen/output_file.h"
#include "compiler/ir/text.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "isa/program.h"
#include "kernels/pipelines/pipelines.h"
#include "kernels/polybench/polybench.h"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct CompileFlags {
  cases::CaseText what;  // an operator or FILE.nir
  std::string target = "diannao";
  std::string config = "mlu270";
  std::vector<std::string> overrides;
  std::string instructions;  // a table's file, or empty
  std::string directory;
  const CLI::App* command = nullptr;
  bool explain = false;
  codegen::NvccOptions nvcc;
  std::vector<std::string> without;
  bool pair = false;
  // Of FILE.nir and polybench/NAME for CUDA.
  std::vector<std::string> arguments;
  std::string size = "LARGE";
  // Of the card.
  std::string impl = "compiled";
  std::string assembly;  // a .nasm file that computes the operator
  std::string name;      // of the files, with NAME.json
  bool record_error = false;
  bool quiet = false;
};

using codegen::OutputFile;

// The files of one function for a target; `reads` has seen what was read of the machine to make the function.
absl::StatusOr<std::vector<OutputFile>> Generate(ir::Function function, const Target& target,
                                                 const CompileFlags& flags,
                                                 const isa::ParameterReads& reads) {
  ASSIGN_OR_RETURN(std::vector<PassSpec> passes, PipelineFor(target));
  RETURN_IF_ERROR(CheckPassNames("--without", flags.without, passes));
  PipelineOptions options;
  options.explain = flags.explain;
  options.skip = flags.without;
  options.on_step = [](const PipelineOptions::Step& step) {
    for (const std::string& text : step.explanations) std::fputs(text.c_str(), stderr);
  };
  RETURN_IF_ERROR(RunPasses(function, passes, target, options));
  const std::string& name = function.name;
  std::vector<OutputFile> files = {{StrCat(name, ".nir"), ir::Print(function)}};
  ASSIGN_OR_RETURN(std::vector<OutputFile> code,
                   codegen::FindBackEnd(target.name)
                       .Write(function, target, {.reads = &reads, .nvcc = flags.nvcc}));
  files.insert(files.end(), std::make_move_iterator(code.begin()),
               std::make_move_iterator(code.end()));
  return files;
}

// An operator for a GPU machine: each function of the case with values to check against.
absl::StatusOr<std::vector<OutputFile>> Bundles(const CompileFlags& flags) {
  ASSIGN_OR_RETURN(const std::vector<kernels::OperatorCase> cases,
                   cases::ParseCases(flags.what, Target{.name = "cuda"}));
  std::vector<OutputFile> files;
  std::vector<cases::BundleVariant> variants = {{"", flags.without}};
  if (flags.pair) {
    const std::vector<std::string> measured(std::begin(benchmarks::kLicmPasses),
                                            std::end(benchmarks::kLicmPasses));
    variants = {{"baseline", measured}, {"optimised", flags.without}};
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    ASSIGN_OR_RETURN(std::vector<OutputFile> bundle,
                     cases::BuildBundles(cases[i], flags.nvcc, 1, variants));
    // Further functions of a case stand in folders beside the first one's files.
    const std::string folder = i == 0 ? "" : StrCat("function", i, "/");
    for (OutputFile& file : bundle) {
      files.push_back({StrCat(folder, file.name), std::move(file.contents)});
    }
  }
  return files;
}

constexpr std::string_view kPolyBench = "polybench/";

// A function of a .nir file with values for its scalars, a pipeline, or a kernel of PolyBench, scheduled for a GPU.
absl::StatusOr<std::vector<OutputFile>> NestBundles(const CompileFlags& flags) {
  const std::string& what = flags.what.op;
  if (flags.what.schedule.size() > 1) return InvalidInput("expected one --schedule");
  cases::NestBundleSettings settings{.nvcc = flags.nvcc, .pair = flags.pair};
  if (!flags.what.schedule.empty()) settings.schedule = flags.what.schedule[0];
  if (what.starts_with(kPolyBench)) {
    ASSIGN_OR_RETURN(const kernels::PolyBenchKernel* kernel,
                     kernels::FindPolyBenchKernel(what.substr(kPolyBench.size())));
    ASSIGN_OR_RETURN(const size_t size, kernels::FindPolyBenchSize(flags.size));
    ASSIGN_OR_RETURN(const ir::Function function, kernels::PolyBenchFunction(*kernel));
    ASSIGN_OR_RETURN(
        const ir::RandomArguments arguments,
        kernels::PolyBenchArguments(*kernel, function, kernel->sizes[size], settings.seed));
    return cases::BuildNestBundles(function, arguments, StrCat(what, " ", flags.size), settings);
  }
  if (const kernels::Pipeline* pipeline = kernels::FindPipeline(what)) {
    // Three bundles instead of a pair: stage by stage, and fused, in tiles of our own and in published ones.
    if (flags.what.schedule.empty()) settings.schedule = "fuse";
    if (flags.pair) settings.variants = cases::PipelineVariants(*pipeline, settings.schedule);
    settings.pixel_levels = pipeline->image_levels;
    ASSIGN_OR_RETURN(const kernels::PipelineSize shape,
                     kernels::ParsePipelineSize(*pipeline, flags.what.shape));
    ASSIGN_OR_RETURN(const ir::Function function,
                     kernels::PipelineFunction(*pipeline, shape.rows, shape.cols));
    ASSIGN_OR_RETURN(const ir::RandomArguments arguments,
                     kernels::PipelineArguments(*pipeline, function, settings.seed));
    return cases::BuildNestBundles(function, arguments,
                                   StrCat(what, " ", shape.rows, "x", shape.cols), settings);
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(what));
  ASSIGN_OR_RETURN(const ir::Module module, ir::ParseModule(text, what));
  ASSIGN_OR_RETURN(const ir::Function function, cases::FindFunction(module, "", what));
  settings.checks = true;
  cases::NestSettings nest;
  nest.arguments = flags.arguments;
  nest.seed = settings.seed;
  ASSIGN_OR_RETURN(const ir::RandomArguments arguments, cases::NestArguments(function, nest));
  return cases::BuildNestBundles(function, arguments, function.name, settings);
}

// The functions of FILE.nir, a pipeline or a kernel of PolyBench, in the order of --schedule, for a target that is no
// GPU.
absl::StatusOr<ir::Module> ScheduledFunctions(const CompileFlags& flags, const Target& target) {
  if (IsCard(target.name)) {
    return InvalidInput(
        "--schedule gives loop nests an order: expected --target=cpu, c, cuda or interp, found "
        "--target=diannao");
  }
  if (flags.what.schedule.size() > 1) return InvalidInput("expected one --schedule");
  const std::string schedule = flags.what.schedule.empty() ? "none" : flags.what.schedule[0];
  ir::Module module;
  if (flags.what.op.starts_with(kPolyBench)) {
    ASSIGN_OR_RETURN(const kernels::PolyBenchKernel* kernel,
                     kernels::FindPolyBenchKernel(flags.what.op.substr(kPolyBench.size())));
    ASSIGN_OR_RETURN(const ir::Function function, kernels::PolyBenchFunction(*kernel));
    module = {function.context, {function}};
  } else {
    cases::CaseText what = flags.what;
    what.schedule.clear();
    ASSIGN_OR_RETURN(module, cases::LoadFunctions(what, target));
  }
  for (ir::Function& function : module.functions) {
    absl::StatusOr<cases::Scheduled> scheduled =
        cases::ScheduleFunction(function, schedule, 0, HasTiles(target.name));
    if (!scheduled.ok())
      return WithContext(StrCat("function '", function.name, "'"), scheduled.status());
    function = std::move(scheduled->function);
  }
  return module;
}

// Makes instructions of the plain nests of FILE.nir; prints what became of them. The values of --arg that are written
// into them: those of scalars.
absl::StatusOr<std::map<std::string, std::string>> MakeInstructions(const CompileFlags& flags,
                                                                    const Target& target,
                                                                    ir::Module& module) {
  if (flags.what.schedule.size() > 1) return InvalidInput("expected one --schedule");
  std::map<std::string, std::string> scalars;
  for (ir::Function& function : module.functions) {
    const std::string schedule = flags.what.schedule.empty() ? "auto" : flags.what.schedule[0];
    const size_t params = function.params.size();
    absl::StatusOr<cases::NestSchedule> scheduled =
        cases::ScheduleOnCard(function, schedule, flags.arguments, target);
    if (!scheduled.ok()) return WithContext(flags.what.op, scheduled.status());
    function = std::move(scheduled->function);
    if (!flags.quiet) {
      for (const std::string& note : scheduled->notes) {
        std::fprintf(stderr, "%s: %s\n", function.name.c_str(), note.c_str());
      }
    }
    if (function.params.size() == params) continue;
    for (const std::string& argument : flags.arguments) {
      const size_t equals = argument.find('=');
      scalars[argument.substr(0, equals)] = argument.substr(equals + 1);
    }
  }
  return scalars;
}

// A program of the card that is no function's: hand-written for an operator's case, or the user's own assembly.
absl::StatusOr<cases::BuiltProgram> HandWritten(const CompileFlags& flags, const Target& target,
                                                const cases::ProgramFile& made) {
  cases::BuiltProgram built;
  if (made.impl != "assembly") {
    return cases::BuildProgram(*made.operator_case, target, made.impl);
  }
  const std::string& path = flags.assembly.empty() ? flags.what.op : flags.assembly;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(built.program, isa::Assemble(*target.instructions, text, path));
  built.scalars.assign(built.program.params.size(), 0);
  return built;
}

// The card's program with NAME.json. Errors say why there is none.
absl::StatusOr<std::vector<OutputFile>> NamedProgram(const CompileFlags& flags,
                                                     const Target& target, cases::ProgramFile& made,
                                                     const isa::ParameterReads& reads) {
  std::vector<OutputFile> files;
  cases::BuiltProgram built;
  if (made.impl == "compiled") {
    const bool is_file = flags.what.op.ends_with(".nir");
    cases::CaseText what = flags.what;
    if (is_file) what.schedule.clear();
    ASSIGN_OR_RETURN(ir::Module module, cases::LoadFunctions(what, target));
    if (module.functions.size() != 1) {
      return InvalidInput(flags.what.op, ": --name is for one function, found ",
                          module.functions.size());
    }
    if (is_file) {
      ASSIGN_OR_RETURN(made.scalars, MakeInstructions(flags, target, module));
    }
    ASSIGN_OR_RETURN(files, Generate(module.functions[0], target, flags, reads));
    for (OutputFile& file : files) {
      const std::string suffix = file.name.substr(file.name.rfind('.'));
      file.name = StrCat(flags.name, suffix);
      if (suffix == ".bin") {
        ASSIGN_OR_RETURN(built.program, isa::Deserialize(file.contents, file.name));
      }
    }
    built.scalars.assign(built.program.params.size(), 0);
  } else {
    ASSIGN_OR_RETURN(built, HandWritten(flags, target, made));
    ASSIGN_OR_RETURN(std::string text, isa::Disassemble(*target.instructions, built.program));
    files.push_back({StrCat(flags.name, ".bin"), isa::Serialize(built.program)});
    files.push_back({StrCat(flags.name, ".nasm"), std::move(text)});
  }
  if (made.operator_case) {
    ASSIGN_OR_RETURN(const kernels::Operator* op, kernels::FindOperator(*made.operator_case));
    const std::vector<kernels::TensorSpec> specs = op->tensors(*made.operator_case);
    size_t tensors = 0;
    for (const isa::ProgramParam& param : built.program.params) {
      tensors += param.is_tensor && !param.is_temporary;
    }
    if (tensors != specs.size()) {
      return InvalidInput(built.program.name, ": expected ", specs.size(),
                          " tensors, those of operator ", op->name, ", found ", tensors);
    }
    made.arguments = cases::ArgumentsOf(built, specs);
  }
  for (const std::string& argument : flags.arguments) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) {
      return InvalidInput("--arg: expected name=value, found '", argument, "'");
    }
    const std::string name = argument.substr(0, equals);
    if (made.scalars.contains(name)) continue;
    const bool is_known =
        std::any_of(built.program.params.begin(), built.program.params.end(),
                    [&](const isa::ProgramParam& p) { return p.name == name && !p.is_temporary; });
    if (!is_known) {
      return InvalidInput("--arg ", argument, ": program ", built.program.name,
                          " has no parameter '", name, "'");
    }
    made.arguments[name] = argument.substr(equals + 1);
  }
  return files;
}

// The files of --name; with --record-error those that say why there is no program.
absl::StatusOr<std::vector<OutputFile>> NamedFiles(CompileFlags flags) {
  cases::ProgramFile made = {.name = flags.name, .impl = flags.impl};
  const bool is_assembly = flags.what.op.ends_with(".nasm") || !flags.assembly.empty();
  if (is_assembly) made.impl = "assembly";
  const bool is_operator = !flags.what.op.ends_with(".nir") && !flags.what.op.ends_with(".nasm");
  absl::StatusOr<std::vector<OutputFile>> files = [&]() -> absl::StatusOr<std::vector<OutputFile>> {
    ASSIGN_OR_RETURN(const isa::Machine machine, cases::LoadMachine(flags.config, flags.overrides));
    ASSIGN_OR_RETURN(Target target, MakeTarget("diannao", &machine));
    ASSIGN_OR_RETURN(const auto instructions, UseInstructions(flags.instructions, target));
    const isa::ParameterReads reads;
    if (is_operator) {
      ASSIGN_OR_RETURN(made.operator_case, cases::ParseCase(flags.what, target));
      if (flags.what.search > 0) {
        // NAME.json says which schedule was found.
        ASSIGN_OR_RETURN(made.operator_case,
                         cases::SearchSchedule(*made.operator_case, target, flags.what.search));
        flags.what.search = 0;
        flags.what.schedule.clear();
        for (const auto& [name, value] : made.operator_case->schedule) {
          flags.what.schedule.push_back(StrCat(name, "=", value));
        }
      }
    } else if (!is_assembly && made.impl != "compiled") {
      return InvalidInput(flags.what.op, ": expected an operator for --impl=", made.impl);
    }
    return NamedProgram(flags, target, made, reads);
  }();
  if (files.ok()) {
    files->push_back({StrCat(flags.name, ".json"), cases::ProgramFileText(made)});
  } else if (flags.record_error) {
    made.error = std::string(files.status().message());
    const bool has_function = made.impl == "compiled";
    std::vector<OutputFile> failed = {{StrCat(flags.name, ".bin"), ""},
                                      {StrCat(flags.name, ".nasm"), ""}};
    if (has_function) failed.push_back({StrCat(flags.name, ".nir"), ""});
    failed.push_back({StrCat(flags.name, ".json"), cases::ProgramFileText(made)});
    return failed;
  }
  return files;
}

// What the command's options are for. Errors: one that nothing reads.
absl::Status CheckOptions(const CompileFlags& flags) {
  const std::string& what = flags.what.op;
  const bool is_card = IsCard(flags.target), is_cuda = IsGpu(flags.target);
  const auto check = [&](std::string_view use, std::string_view options) {
    return command_line::CheckRead(*flags.command, what, use,
                                   StrCat("--target -o --quiet ", options));
  };
  if (what.starts_with(kPolyBench)) {
    return is_cuda ? check("a kernel of PolyBench on cuda",
                           "--size --schedule --arch --nvcc --host-compiler --pair")
                   : check(StrCat("a kernel of PolyBench on ", flags.target),
                           "--schedule --name --without --explain");
  }
  if (kernels::FindPipeline(what) != nullptr) {
    return is_cuda ? check("a pipeline on cuda",
                           "--shape --schedule --arch --nvcc --host-compiler --pair")
                   : check(StrCat("a pipeline on ", flags.target),
                           "--shape --schedule --name --without --explain");
  }
  if (what.ends_with(".nasm")) {
    return check("assembly", "--name --arg --config --set --instructions --record-error");
  }
  if (what.ends_with(".nir")) {
    if (is_card) {
      return check("a function on the card",
                   "--name --arg --schedule --config --set --instructions --record-error --without "
                   "--explain "
                   "--impl --asm");
    }
    const bool is_nest = !flags.arguments.empty() || !flags.what.schedule.empty();
    return is_nest && is_cuda ? check("a function with values on cuda",
                                      "--arg --schedule --arch --nvcc --host-compiler --pair")
           : is_cuda          ? check("a function on cuda",
                                      "--arg --schedule --arch --nvcc --host-compiler --without --explain")
                              : check(StrCat("a function on ", flags.target),
                                      "--arg --schedule --name --without --explain");
  }
  const bool is_compiled = flags.impl == "compiled" && flags.assembly.empty();
  return CheckOperatorOptions(*flags.command, what, flags.target,
                              flags.assembly.empty() ? flags.impl : "assembly",
                              StrCat("--target -o --quiet ",
                                     is_cuda ? "--arch --nvcc --host-compiler --pair --without"
                                     : is_compiled ? "--without --explain --name"
                                                   : "--name",
                                     is_card ? " --impl --asm --record-error --instructions" : "",
                                     is_card && !flags.name.empty() ? " --arg" : ""));
}

absl::Status CheckNameFlags(const CompileFlags& flags) {
  if (!IsCard(flags.target) &&
      (flags.impl != "compiled" || !flags.assembly.empty() || flags.record_error)) {
    return InvalidInput(
        "--impl, --asm and --record-error are of the card's programs: expected --target=diannao, "
        "found --target=",
        flags.target);
  }
  if (flags.name.empty() && (flags.impl != "compiled" || !flags.assembly.empty() ||
                             flags.record_error || flags.what.op.ends_with(".nasm"))) {
    return InvalidInput(
        "compile: expected --name for a hand-written program (--impl, --asm, FILE.nasm) and for "
        "--record-error");
  }
  if (flags.name.empty() && !flags.arguments.empty() && IsCard(flags.target) &&
      !flags.what.op.ends_with(".nir")) {
    return InvalidInput("--arg: expected --name, whose NAME.json has the values");
  }
  if (flags.name.find('/') != std::string::npos) {
    return InvalidInput("--name: expected a file's name without '/', found '", flags.name, "'");
  }
  return absl::OkStatus();
}

// All files that the command writes.
absl::StatusOr<std::vector<OutputFile>> MakeFiles(const CompileFlags& flags) {
  RETURN_IF_ERROR(CheckNameFlags(flags));
  RETURN_IF_ERROR(CheckOptions(flags));
  const bool is_assembly = !flags.assembly.empty();
  RETURN_IF_ERROR(CheckSearch(flags.what, flags.target, is_assembly ? "assembly" : flags.impl));
  if (!flags.name.empty() && IsCard(flags.target)) return NamedFiles(flags);
  ASSIGN_OR_RETURN(isa::Machine machine, cases::LoadMachine(flags.config, flags.overrides));
  ASSIGN_OR_RETURN(Target target, MakeTarget(flags.target, &machine));
  ASSIGN_OR_RETURN(const auto instructions, UseInstructions(flags.instructions, target));
  const bool is_file = flags.what.op.ends_with(".nir");
  const bool is_kernel = flags.what.op.starts_with(kPolyBench);
  const bool is_pipeline = kernels::FindPipeline(flags.what.op) != nullptr;
  if (is_file && !flags.arguments.empty() && !IsGpu(target.name) && !IsCard(target.name)) {
    return InvalidInput(flags.what.op,
                        ": --arg makes a bundle, or a program of the card: expected --target=cuda "
                        "or diannao");
  }
  const bool is_bundle =
      is_kernel || (is_file && (!flags.arguments.empty() || !flags.what.schedule.empty()));
  if (IsGpu(target.name) && is_bundle) {
    absl::StatusOr<std::vector<OutputFile>> files = NestBundles(flags);
    return files.ok() ? std::move(files) : WithContext(flags.what.op, files.status());
  }
  if (IsGpu(target.name) && !is_file) return is_pipeline ? NestBundles(flags) : Bundles(flags);
  const isa::ParameterReads reads;
  const bool on_card = is_file && IsCard(target.name);
  const bool is_scheduled =
      is_kernel || ((is_file || is_pipeline) && !on_card && !flags.what.schedule.empty());
  cases::CaseText what = flags.what;
  if (on_card) what.schedule.clear();
  absl::StatusOr<ir::Module> loaded =
      is_scheduled ? ScheduledFunctions(flags, target) : cases::LoadFunctions(what, target);
  if (!loaded.ok() && is_scheduled) return WithContext(flags.what.op, loaded.status());
  ASSIGN_OR_RETURN(ir::Module module, std::move(loaded));
  if (on_card) RETURN_IF_ERROR(MakeInstructions(flags, target, module).status());
  if ((IsGpu(target.name) || !flags.name.empty()) && module.functions.size() != 1) {
    return InvalidInput(flags.what.op, ": ", IsGpu(target.name) ? "a bundle" : "--name",
                        " is for one function, found ", module.functions.size());
  }
  std::vector<OutputFile> files;
  for (ir::Function& function : module.functions) {
    ASSIGN_OR_RETURN(std::vector<OutputFile> made,
                     Generate(std::move(function), target, flags, reads));
    for (OutputFile& file : made) {
      if (!flags.name.empty() && !IsGpu(target.name)) {
        file.name = StrCat(flags.name, file.name.substr(file.name.rfind('.')));
      }
      files.push_back(std::move(file));
    }
  }
  return files;
}

absl::Status Compile(const CompileFlags& flags) {
  RETURN_IF_ERROR(command_line::CheckFolder("-o", flags.directory));
  // Everything is made before anything is written.
  ASSIGN_OR_RETURN(const std::vector<OutputFile> files, MakeFiles(flags));
  RETURN_IF_ERROR(MakeDirectory(flags.directory));
  for (const OutputFile& file : files) {
    const std::string path = StrCat(flags.directory, "/", file.name);
    if (const size_t slash = file.name.rfind('/'); slash != std::string::npos) {
      RETURN_IF_ERROR(MakeDirectory(StrCat(flags.directory, "/", file.name.substr(0, slash))));
    }
    RETURN_IF_ERROR(WriteFile(path, file.contents));
    if (!flags.quiet) std::printf("%s\n", path.c_str());
  }
  return absl::OkStatus();
}

// "diannao (.bin, .nasm), .. or interp (.nir)": what is written for each target.
std::string WrittenText() {
  std::string text;
  for (const TargetFacts& facts : Targets()) {
    StrAppend(&text,
              text.empty()                  ? ""
              : &facts == &Targets().back() ? " or "
                                            : ", ",
              facts.name, " (", facts.writes, ")");
  }
  return text;
}

}  // namespace

void AddCompileCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CompileFlags>();
  CLI::App* command = app.add_subcommand("compile", "write the code of an operator or a .nir file");
  command->add_option("WHAT", flags->what.op, "an operator, FILE.nir, FILE.nasm, or polybench/NAME")
      ->required();
  AddCaseOptions(*command, flags->what);
  AddSearchOption(*command, flags->what);
  command->add_option("--target", flags->target, WrittenText())->capture_default_str();
  AddMachineOptions(*command, flags->config, flags->overrides);
  AddInstructionsOption(*command, flags->instructions);
  command->get_option("--schedule")
      ->description(
          StrCat("sizes taken out of the schedule's hands (nao tune): --schedule tile=4096; "
                 "FILE.nir for the card: auto (instructions), none; elsewhere, and for pipelines "
                 "and polybench/NAME: ",
                 cases::ScheduleNames(),
                 ", or a file with a schedule's text. Default: auto for the card, else none; for "
                 "cuda fuse for pipelines, auto for others with --arg"));
  command
      ->add_option(
          "--arg", flags->arguments,
          "FILE.nir for cuda and the card: the value of a scalar parameter, n=1000; with --name "
          "also the shape of a tensor that the program leaves open, x=5x7")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--size", flags->size, "polybench/NAME: a data set, MINI to EXTRALARGE")
      ->capture_default_str();
  command->add_flag("--explain", flags->explain,
                    "print why marked loops became no instruction, on stderr");
  command->add_option("--arch", flags->nvcc.arch, "what nvcc compiles for; none: only CUDA C")
      ->capture_default_str();
  command->add_option(
      "--nvcc", flags->nvcc.nvcc,
      "for cuda: where nvcc is (default: on PATH, in $CUDA_HOME or /usr/local/cuda)");
  command->add_option("--host-compiler", flags->nvcc.host_compiler,
                      "for cuda: the C++ compiler that nvcc uses");
  command->add_flag("--pair", flags->pair,
                    "for cuda: two bundles, baseline/ without the passes normalize, licm, hoist_if "
                    "and cse (a scheduled function: without shared memory and registers; a "
                    "pipeline: --schedule=min), and optimised/; of a pipeline also published/, "
                    "fused in the tiles of MICRO 2020");
  command
      ->add_option("--impl", flags->impl, "for the card: compiled, library or expert (with --name)")
      ->capture_default_str();
  command->add_option("--asm", flags->assembly,
                      "for the card: a .nasm file that computes the operator (with --name)");
  command->add_option("--name", flags->name,
                      "name the files NAME.bin, NAME.nasm, ... and write NAME.json, which says "
                      "what they were made from");
  command->add_flag("--record-error", flags->record_error,
                    "if there is no program, write an empty one, and NAME.json with the reason");
  command->add_flag("--quiet", flags->quiet, "do not print the names of the files");
  command->add_option("--without", flags->without, "passes to leave out")->delimiter(',');
  command->add_option("-o", flags->directory, "directory for the files")->required();
  command->callback([&action, flags, command] {
    flags->command = command;
    action = [flags] { return Outcome{.status = Compile(*flags), .values_agree = true}; };
  });
}

}  // namespace polynao::driver
