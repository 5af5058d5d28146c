#include <cstdio>
#include <memory>
#include <optional>

#include "base/status.h"
#include "compiler/codegen/c/emit_c.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/text.h"
#include "compiler/passes/registry.h"
#include "isa/program.h"
#include "tools/driver/case.h"
#include "tools/driver/commands.h"
#include "tools/driver/files.h"

namespace polynao::driver {
namespace {

struct CompileFlags {
  CaseText what;  // an operator or FILE.nir
  std::string target = "diannao";
  std::string config = "mlu270";
  std::vector<std::string> overrides;
  std::string directory;
  bool explain = false;
};

struct OutputFile {
  std::string name;
  std::string contents;
};

// The files of one function for a target.
absl::StatusOr<std::vector<OutputFile>> Generate(ir::Function function, const Target& target,
                                                 bool explain) {
  ASSIGN_OR_RETURN(std::vector<PassSpec> passes, PipelineFor(target));
  PipelineOptions options;
  options.explain = explain;
  options.on_step = [](const PipelineOptions::Step& step) {
    for (const std::string& text : step.explanations) std::fputs(text.c_str(), stderr);
  };
  RETURN_IF_ERROR(RunPasses(function, passes, target, options));
  const std::string& name = function.name;
  std::vector<OutputFile> files = {{StrCat(name, ".nir"), ir::Print(function)}};
  if (target.name == "diannao") {
    ASSIGN_OR_RETURN(isa::Program program, GenerateDianNao(function, target));
    ASSIGN_OR_RETURN(std::string text, isa::Disassemble(*target.instructions, program));
    files.push_back({StrCat(name, ".bin"), isa::Serialize(program)});
    files.push_back({StrCat(name, ".nasm"), std::move(text)});
  } else if (target.name == "c") {
    ASSIGN_OR_RETURN(std::string text, codegen::EmitC(function));
    files.push_back({StrCat(name, ".c"), std::move(text)});
  } else if (target.name == "cpu") {
    const ir::Module module = {function.context, {function}};
    for (const auto& [suffix, output] : {std::pair(".ll", codegen::LlvmOutput::kOptimizedIr),
                                         std::pair(".s", codegen::LlvmOutput::kAssembly),
                                         std::pair(".o", codegen::LlvmOutput::kObject)}) {
      ASSIGN_OR_RETURN(std::string text, codegen::EmitLlvm(module, output));
      files.push_back({StrCat(name, suffix), std::move(text)});
    }
  }
  return files;
}

absl::Status Compile(const CompileFlags& flags) {
  ASSIGN_OR_RETURN(isa::Machine machine, LoadMachine(flags.config, flags.overrides));
  ASSIGN_OR_RETURN(Target target, MakeTarget(flags.target, &machine));
  ASSIGN_OR_RETURN(ir::Module module, LoadFunctions(flags.what, target));
  // Everything is made before anything is written.
  std::vector<OutputFile> files;
  for (ir::Function& function : module.functions) {
    ASSIGN_OR_RETURN(std::vector<OutputFile> made,
                     Generate(std::move(function), target, flags.explain));
    for (OutputFile& file : made) files.push_back(std::move(file));
  }
  RETURN_IF_ERROR(MakeDirectory(flags.directory));
  for (const OutputFile& file : files) {
    const std::string path = StrCat(flags.directory, "/", file.name);
    RETURN_IF_ERROR(WriteFile(path, file.contents));
    std::printf("%s\n", path.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddCompileCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CompileFlags>();
  CLI::App* command = app.add_subcommand("compile", "write the code of an operator or a .nir file");
  command->add_option("WHAT", flags->what.op, "an operator, or FILE.nir")->required();
  AddCaseOptions(*command, flags->what);
  command
      ->add_option("--target", flags->target,
                   "diannao (.bin, .nasm), cpu (.ll, .s, .o), c (.c) or interp (.nir)")
      ->capture_default_str();
  command->add_option("--config", flags->config, "the machine")->capture_default_str();
  command->add_option("--set", flags->overrides, "machine parameters: core.nmem_kib=256 ...");
  command->add_flag("--explain", flags->explain,
                    "print why marked loops became no instruction, on stderr");
  command->add_option("-o", flags->directory, "directory for the files")->required();
  command->callback([&action, flags] {
    action = [flags] { return Outcome{.status = Compile(*flags), .values_agree = true}; };
  });
}

}  // namespace polynao::driver
