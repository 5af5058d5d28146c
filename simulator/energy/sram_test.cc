#include "simulator/energy/sram.h"

#include <gtest/gtest.h>

#include <cmath>

namespace polynao::simulator {
namespace {

const EnergyTable& Table() {
  static const auto* table = new EnergyTable(LoadEnergyTable("45nm").value());
  return *table;
}

TEST(Sram, TheFitIsCloseToItsPoints) {
  // A power law through three points; the figure in docs/energy.md.
  for (const char* point : {"small", "medium", "large"}) {
    const std::string prefix = std::string("sram.") + point;
    const double expected = Table().Get(prefix + "_read_fj") / Table().Get(prefix + "_bits");
    EXPECT_NEAR(BitEnergy(Table(), Table().Get(prefix + "_bytes"), false) / expected, 1, 0.45)
        << point;
  }
  // Least squares leave no mean error of the logarithms.
  double sum = 0;
  for (const char* point : {"small", "medium", "large"}) {
    const std::string prefix = std::string("sram.") + point;
    sum += std::log(BitEnergy(Table(), Table().Get(prefix + "_bytes"), true) /
                    (Table().Get(prefix + "_write_fj") / Table().Get(prefix + "_bits")));
  }
  EXPECT_NEAR(sum, 0, 1e-9);
}

TEST(Sram, LargerMemoriesTakeMoreAreaAndMoreEnergyAnAccess) {
  for (bool is_edram : {false, true}) {
    MemoryFigures less =
        FiguresOf({.bytes = 1024, .port_bytes = 64, .is_edram = is_edram}, Table());
    for (double bytes = 2048; bytes <= (1 << 24); bytes *= 2) {
      const MemoryFigures more =
          FiguresOf({.bytes = bytes, .port_bytes = 64, .is_edram = is_edram}, Table());
      EXPECT_GT(more.um2, less.um2);
      EXPECT_GT(more.static_uw, less.static_uw);
      EXPECT_GE(more.read_fj_per_byte, less.read_fj_per_byte);
      if (!is_edram) EXPECT_GT(more.write_fj_per_byte, less.write_fj_per_byte);
      less = more;
    }
  }
}

TEST(Sram, WiderPortsMeanMoreAndSmallerBanks) {
  const MemoryFigures narrow = FiguresOf({.bytes = 32768, .port_bytes = 8}, Table());
  const MemoryFigures wide = FiguresOf({.bytes = 32768, .port_bytes = 512}, Table());
  EXPECT_LT(wide.read_fj_per_byte, narrow.read_fj_per_byte);
  EXPECT_DOUBLE_EQ(wide.um2 - narrow.um2, 63 * 64 * Table().Get("sram.word_bit_um2"));
  EXPECT_DOUBLE_EQ(wide.read_fj_per_byte, 8 * BitEnergy(Table(), 512, false));
}

TEST(Sram, PortsTakeAreaAndEnergy) {
  const MemoryFigures one = FiguresOf({.bytes = 4096, .port_bytes = 8}, Table());
  const MemoryFigures two = FiguresOf({.bytes = 4096, .port_bytes = 8, .ports = 2}, Table());
  EXPECT_DOUBLE_EQ(two.um2, one.um2 * (1 + Table().Get("sram.port_area_permille") / 1000));
  EXPECT_DOUBLE_EQ(two.read_fj_per_byte,
                   one.read_fj_per_byte * (1 + Table().Get("sram.port_energy_permille") / 1000));
  EXPECT_EQ(two.static_uw, one.static_uw);
}

TEST(Sram, EmbeddedDramIsDenser) {
  const MemoryFigures sram = FiguresOf({.bytes = 1 << 21, .port_bytes = 512}, Table());
  const MemoryFigures edram =
      FiguresOf({.bytes = 1 << 21, .port_bytes = 512, .is_edram = true}, Table());
  // DaDianNao states a ratio of 2.85.
  EXPECT_GT(sram.um2 / edram.um2, 2);
}

}  // namespace
}  // namespace polynao::simulator
