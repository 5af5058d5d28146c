// nao asm and nao disasm.
#include <iostream>
#include <memory>

#include "CLI/CLI.hpp"
#include "base/files.h"
#include "base/status.h"
#include "isa/program.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

absl::Status Asm(const std::string& file, const std::string& output) {
  ASSIGN_OR_RETURN(std::string text, ReadFile(file));
  ASSIGN_OR_RETURN(isa::Program program, isa::Assemble(isa::DianNao(), text, file));
  return WriteFile(output, isa::Serialize(program));
}

absl::Status Disasm(const std::string& file, const std::string& output) {
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(file));
  ASSIGN_OR_RETURN(isa::Program program, isa::Deserialize(bytes, file));
  absl::StatusOr<std::string> text = isa::Disassemble(isa::DianNao(), program);
  if (!text.ok()) return WithContext(file, text.status());
  if (!output.empty()) return WriteFile(output, *text);
  std::cout << *text;
  return absl::OkStatus();
}

}  // namespace

void AddAsmCommand(CLI::App& app, Action& action) {
  auto file = std::make_shared<std::string>();
  auto output = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("asm", "assemble a tensor-ISA program");
  command->add_option("FILE", *file, "a .nasm file")->required();
  command->add_option("-o", *output, "the program to write")->required();
  command->callback([&action, file, output] {
    action = [file, output] { return Outcome{Asm(*file, *output)}; };
  });
}

void AddDisasmCommand(CLI::App& app, Action& action) {
  auto file = std::make_shared<std::string>();
  auto output = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("disasm", "print a program as assembly");
  command->add_option("FILE", *file, "a program made by nao asm or nao compile")->required();
  command->add_option("-o", *output, "file to write instead of stdout");
  command->callback([&action, file, output] {
    action = [file, output] { return Outcome{Disasm(*file, *output)}; };
  });
}

}  // namespace polynao::driver
