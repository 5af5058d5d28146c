// The driver: ./nao COMMAND. For example: ./nao tune conv2d --shape=14x14x256,256x3x3x256 --dtype=i8
#include "tools/driver/commands.h"

int main(int argc, char** argv) {
  using namespace polynao::driver;
  constexpr AddCommand kCommands[] = {
      AddDemoCommand,    AddRunCommand,     AddBenchCommand,  AddTuneCommand,
      AddCompileCommand, AddOptCommand,     AddPolyCommand,   AddSimCommand,
      AddCheckCommand,   AddCompareCommand, AddCyclesCommand, AddSweepCommand,
      AddAsmCommand,     AddDisasmCommand,  AddListCommand,   AddCalibrateCommand};
  return Main(argc, argv, kCommands);
}
