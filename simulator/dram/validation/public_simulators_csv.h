// The recorded figures, put into the program when it is built.
#ifndef SIMULATOR_DRAM_VALIDATION_PUBLIC_SIMULATORS_CSV_H_
#define SIMULATOR_DRAM_VALIDATION_PUBLIC_SIMULATORS_CSV_H_

namespace polynao::simulator {

// public_simulators.csv. README.md says where each column comes from.
extern const char kPublicSimulatorsCsv[];

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_VALIDATION_PUBLIC_SIMULATORS_CSV_H_
