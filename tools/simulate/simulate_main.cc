// nao_sim: what `nao sim` does, in a program that starts in a few milliseconds. The rules of //:polynao.bzl run it.
#include "CLI/CLI.hpp"
#include "base/text.h"
#include "tools/command_line/command_line.h"
#include "tools/simulate/simulate.h"

int main(int argc, char** argv) {
  CLI::App app("Simulates a tensor-ISA program on random inputs.", "nao_sim");
  polynao::simulate::Flags flags;
  polynao::simulate::AddOptions(app, flags);
  if (const auto code = polynao::command_line::Parse(app, {argv + 1, argv + argc})) return *code;
  const absl::Status status = polynao::simulate::Simulate(flags);
  if (status.ok()) return 0;
  polynao::command_line::PrintError("nao_sim", polynao::ToStd(status.message()));
  return 1;
}
