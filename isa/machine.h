// The parameters of an accelerator card: what the compiler schedules for and the simulator runs.
// Read from simulator/configs/*.toml, where each value stands with its source.
#ifndef ISA_MACHINE_H_
#define ISA_MACHINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/type.h"
#include "isa/levels.h"
#include "isa/parameter_file.h"

namespace polynao::isa {

using MachineParameters = std::map<std::string, int64_t, std::less<>>;
using MachineTexts = std::map<std::string, std::string, std::less<>>;

// A validated machine description. Times are cycles, sizes bytes, rates bytes or operations a
// cycle. Every parameter is reachable by its dotted name in the file ("core.nmem_kib");
// docs/timing.md says what each one does. Whoever reads a parameter is seen by ParameterReads, except in Text.
class Machine {
 public:
  std::string name;  // "mlu270"

  int64_t Get(std::string_view dotted_name) const;  // the parameter must exist
  // Null if there is no such parameter.
  const int64_t* Find(std::string_view dotted_name) const;
  const std::string& GetText(std::string_view dotted_name) const;
  // A number or a text, as text; "none" if there is no such parameter. To compare machines: it is not noted as read.
  std::string Text(std::string_view dotted_name) const;
  // All parameters, with overrides applied, for results and for checks of names.
  const MachineParameters& parameters() const;
  // Those that are text: gmem.dram, and dram.map if that is not "flat".
  const MachineTexts& texts() const;
  void Set(std::string_view dotted_name, int64_t value);
  void SetText(std::string_view dotted_name, std::string text);

  // GMEM has channels of DRAM, with the parameters dram.*, not of a flat rate.
  bool has_dram() const;
  // Loads find in the last-level cache what was loaded before.
  bool caches_reads() const;
  double clock_ghz() const { return static_cast<double>(Get("card.clock_mhz")) / 1000; }

  int64_t clusters() const { return Get("card.clusters"); }
  int64_t cores_per_cluster() const { return Get("cluster.cores"); }
  int64_t cores() const { return clusters() * cores_per_cluster(); }
  // Bytes that a program may use: without what is reserved.
  int64_t nmem_bytes() const {
    return (Get("core.nmem_kib") - Get("core.nmem_reserved_kib")) * 1024;
  }
  int64_t wmem_bytes() const { return Get("core.wmem_kib") * 1024; }
  int64_t smem_bytes() const {
    return (Get("cluster.smem_kib") - Get("cluster.smem_reserved_kib")) * 1024;
  }
  // How many units of a level one unit of the level around it has.
  int64_t units(Level level) const {
    return level == Level::kCard ? 1 : level == Level::kCluster ? clusters() : cores_per_cluster();
  }
  // The bytes of an on-chip memory that a program may use.
  int64_t bytes(Space on_chip) const {
    return on_chip == Space::kSmem   ? smem_bytes()
           : on_chip == Space::kNmem ? nmem_bytes()
                                     : wmem_bytes();
  }
  // Bytes a cycle of all GMEM channels together; of DRAM, what refreshes leave.
  double gmem_bytes_per_cycle() const;
  // Segments of stores in flight of each core, if all cores of a cluster store.
  double store_segments_per_core() const;

 private:
  MachineParameters parameters_;
  MachineTexts texts_;
};

// Notes the names of the parameters that the current thread reads from machines while this object lives. What is made
// in that time depends on no others: on a machine of the same name, and of the same values of these, it is the same.
class ParameterReads {
 public:
  ParameterReads();
  ~ParameterReads();
  ParameterReads(const ParameterReads&) = delete;
  ParameterReads& operator=(const ParameterReads&) = delete;
  void Note(std::string_view dotted_name);
  // Returns the parameters that were read so far, with the values that `machine` has
  // (Machine::Text).
  std::map<std::string, std::string> Values(const Machine& machine) const;

 private:
  std::set<std::string, std::less<>> names_;
  ParameterReads* outer_;  // which gets the names as well
};

// Parses a machine file and applies overrides ("core.nmem_kib=256"). A file states its name and
// every parameter, each with its source:
//
//   name = "mlu270"
//   [core]
//   nmem_kib = { value = 512, source = "sourced: mlu-ops v0.4.0 build.sh" }
//
// gmem.dram names a preset of DRAM channels (dram_presets.h), whose parameters dram.* become the machine's;
// those that the file states under [dram] replace the preset's, and overrides replace both. "flat": none.
//
// Errors name file and line, the parameter, what is allowed and what came; contradictions too (NMEM
// not larger than what is reserved, a DMA burst larger than the channel interleave, DRAM whose rate is not
// that of the channel, ...).
absl::StatusOr<Machine> ParseMachine(std::string_view toml_text, std::string_view file,
                                     const std::vector<std::string>& overrides = {});

// Its two steps. A file has the parameters with unit, value and source, in their order.
absl::StatusOr<ParameterFile> ReadMachineFile(std::string_view toml_text, std::string_view file);
absl::StatusOr<Machine> MakeMachine(const ParameterFile& parsed, std::string_view file,
                                    const std::vector<std::string>& overrides);

}  // namespace polynao::isa

#endif  // ISA_MACHINE_H_
