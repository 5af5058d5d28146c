// Energy tables: what actions cost and components take, per technology node and per kind of DRAM, with sources.
#ifndef SIMULATOR_ENERGY_TABLE_H_
#define SIMULATOR_ENERGY_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/parameter_file.h"
#include "simulator/energy/scaling.h"

namespace polynao::simulator {

// A resolved table: every row of a node's file and of one group of dram.toml ("dram.rd_fj"), by dotted name. Names
// end in units: _fj is 10^-15 J, _um2 and _nm2 areas.
class EnergyTable {
 public:
  // As a user names it: "65nm", "16nm", "65nm,hbm2".
  const std::string& name() const { return name_; }
  Process process() const;
  // The preset of DRAM whose rows dram.* are: "hbm2".
  const std::string& dram() const { return dram_; }
  // The row must exist.
  double Get(std::string_view row) const;
  bool Has(std::string_view row) const;
  const std::vector<isa::MachineParameter>& rows() const { return rows_; }

 private:
  friend absl::StatusOr<EnergyTable> ParseEnergyTable(std::string_view, std::string_view);
  friend absl::StatusOr<EnergyTable> ScaleTable(const EnergyTable&, const Process&);
  friend absl::Status AddDram(std::string_view, std::string_view, std::string_view, EnergyTable*);
  friend absl::StatusOr<EnergyTable> LoadEnergyTable(std::string_view, std::string_view);
  std::string name_;
  std::string dram_;
  std::vector<isa::MachineParameter> rows_;
};

// Reads a node's table. Errors: one line with file and line, for rows that are unknown, missing, negative, zero where
// that means nothing, or that contradict one another.
absl::StatusOr<EnergyTable> ParseEnergyTable(std::string_view text, std::string_view file);

// The table at another node or voltage: each row of logic and SRAM multiplied by its factor (ScaleBetween) and
// rounded; its source says so. Rows of DRAM stay.
absl::StatusOr<EnergyTable> ScaleTable(const EnergyTable& table, const Process& to);

// Adds the rows of one preset of a DRAM file as dram.*. Errors as for ParseEnergyTable; no such preset.
absl::Status AddDram(std::string_view text, std::string_view file, std::string_view preset,
                     EnergyTable* table);

// "TABLE[,DRAM]": TABLE is a file of simulator/energy, a node ("16nm": the file of the next node, scaled), or the path
// of a .toml file; DRAM a preset, else `machine_dram`, the machine's gmem.dram, or ddr4_3200 if that is "flat".
// Error: two different presets.
absl::StatusOr<EnergyTable> LoadEnergyTable(std::string_view spec,
                                            std::string_view machine_dram = "flat");

// The texts of simulator/energy/*.toml, put into the program when it is built, by name.
struct EnergyText {
  std::string_view name;  // "65nm", "dram"
  std::string_view text;
};
const std::vector<EnergyText>& EnergyTexts();

}  // namespace polynao::simulator

#endif  // SIMULATOR_ENERGY_TABLE_H_
