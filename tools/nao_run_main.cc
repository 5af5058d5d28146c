// The driver's part that ./nao builds first: what compiles, runs and simulates one thing. The other commands need an
// eighth more of the sources.
#include "tools/driver/commands.h"

int main(int argc, char** argv) {
  using namespace polynao::driver;
  constexpr AddCommand kCommands[] = {AddDemoCommand,  AddRunCommand,   AddOptCommand,
                                      AddSimCommand,   AddCheckCommand, AddAsmCommand,
                                      AddDisasmCommand};
  return Main(argc, argv, kCommands);
}
