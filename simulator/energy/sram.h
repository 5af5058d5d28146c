// Energy, area and leakage of an on-chip memory, from its size, width, ports and the points of an energy table.
#ifndef SIMULATOR_ENERGY_SRAM_H_
#define SIMULATOR_ENERGY_SRAM_H_

#include "simulator/energy/table.h"

namespace polynao::simulator {

struct MemoryShape {
  double bytes = 0;
  double port_bytes = 8;  // bytes a cycle of one port
  int ports = 1;
  bool is_edram = false;
};

struct MemoryFigures {
  double read_fj_per_byte = 0;
  double write_fj_per_byte = 0;
  double um2 = 0;
  double static_uw = 0;
};

// docs/energy.md states the formulas. A memory is as many banks as its port has words; a bank's energy per bit is a
// power of its size, fitted to the table's three points by least squares of logarithms.
MemoryFigures FiguresOf(const MemoryShape& shape, const EnergyTable& table);

// The fit alone: energy in fJ of one bit of a bank of `bytes`, read or written.
double BitEnergy(const EnergyTable& table, double bytes, bool is_write);

}  // namespace polynao::simulator

#endif  // SIMULATOR_ENERGY_SRAM_H_
