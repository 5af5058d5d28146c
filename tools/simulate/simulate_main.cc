// nao_sim: what `nao sim` does, in a program that starts in a few milliseconds. The rules of //:polynao.bzl run it.
#include <iostream>

#include "tools/simulate/simulate.h"

int main(int argc, char** argv) {
  CLI::App app("Simulates a tensor-ISA program on random inputs.", "nao_sim");
  polynao::simulate::Flags flags;
  polynao::simulate::AddOptions(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  const absl::Status status = polynao::simulate::Simulate(flags);
  if (status.ok()) return 0;
  std::cerr << "nao_sim: " << status.message() << std::endl;
  return 1;
}
