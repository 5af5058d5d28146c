#include "simulator/energy/sram.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace polynao::simulator {

double BitEnergy(const EnergyTable& table, double bytes, bool is_write) {
  double n = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  for (const char* point : {"small", "medium", "large"}) {
    const double x = std::log(table.Get(StrCat("sram.", point, "_bytes")));
    const double energy = table.Get(StrCat("sram.", point, is_write ? "_write_fj" : "_read_fj"));
    const double y = std::log(energy / table.Get(StrCat("sram.", point, "_bits")));
    n += 1;
    sum_x += x;
    sum_y += y;
    sum_xx += x * x;
    sum_xy += x * y;
  }
  const double slope = (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
  return std::exp((sum_y - slope * sum_x) / n + slope * std::log(bytes));
}

MemoryFigures FiguresOf(const MemoryShape& shape, const EnergyTable& table) {
  const double bits = shape.bytes * 8;
  const double kib = shape.bytes / 1024;
  const double more_ports = shape.ports - 1;
  const double port_area = 1 + more_ports * table.Get("sram.port_area_permille") / 1000;
  const double port_energy = 1 + more_ports * table.Get("sram.port_energy_permille") / 1000;
  if (shape.is_edram) {
    return {.read_fj_per_byte = table.Get("edram.read_fj_per_byte") * port_energy,
            .write_fj_per_byte = table.Get("edram.write_fj_per_byte") * port_energy,
            .um2 = bits * table.Get("edram.bit_nm2") / 1e6 * port_area,
            .static_uw = kib * table.Get("edram.static_nw_per_kib") / 1000};
  }
  const double word_bits = table.Get("sram.word_bits");
  const double banks = std::max(1.0, shape.port_bytes * 8 / word_bits);
  const double bank_bytes = shape.bytes / banks;
  const double cells = bits * table.Get("sram.bit_nm2") / 1e6;
  const double periphery = banks * word_bits * table.Get("sram.word_bit_um2");
  return {.read_fj_per_byte = 8 * BitEnergy(table, bank_bytes, false) * port_energy,
          .write_fj_per_byte = 8 * BitEnergy(table, bank_bytes, true) * port_energy,
          .um2 = (cells + periphery) * port_area,
          .static_uw = kib * table.Get("sram.leakage_nw_per_kib") / 1000};
}

}  // namespace polynao::simulator
