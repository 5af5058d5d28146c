#include "simulator/energy/components.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "isa/dram_presets.h"

namespace polynao::simulator {
namespace {

// An operand, another one and a result at once: what the vector unit needs of NMEM each cycle.
constexpr double kVectorOperands = 3;
// A port's word stands in registers at both ends.
constexpr double kPortEnds = 2;
constexpr double kDirections = 2;

// Bits of what waits or is under way. An instruction holds its 64 bits of encoding and six operands of 32 bits; a burst
// an address, its length and its place in the core's memory; a segment address, stride and counts of two loops; a
// transfer those of all its loops.
constexpr double kInstructionBits = 256;
constexpr double kBurstBits = 64;
constexpr double kSegmentBits = 128;
constexpr double kTransferBits = 256;
// A line of the cache: its number and its place in the order of use. Each granule has a bit more.
constexpr double kTagBits = 56;
// Queues of a core: compute, IO-DMA, Move-DMA; a memory core computes nothing.
constexpr double kCoreQueues = 3;
constexpr double kMemoryCoreQueues = 2;
// DMA ports of a core at its memories: IO-DMA in and out, Move-DMA.
constexpr double kDmaPorts = 3;

constexpr ir::Type kMacTypes[] = {ir::Type::kI8, ir::Type::kI16, ir::Type::kF16, ir::Type::kF32};

// Cells of logic, which layout spreads and which leak by their area; memories, which are laid out and have a leakage of
// their own.
struct Part {
  double cells_um2 = 0;
  double laid_out_um2 = 0;
  double memory_um2 = 0;
  double memory_uw = 0;

  Part operator+(const Part& other) const {
    return {cells_um2 + other.cells_um2, laid_out_um2 + other.laid_out_um2,
            memory_um2 + other.memory_um2, memory_uw + other.memory_uw};
  }
  Part operator*(double n) const {
    return {cells_um2 * n, laid_out_um2 * n, memory_um2 * n, memory_uw * n};
  }
};

Part Memory(const MemoryFigures& figures) {
  return {.memory_um2 = figures.um2, .memory_uw = figures.static_uw};
}

class Builder {
 public:
  Builder(const isa::Machine& machine, const EnergyTable& table)
      : machine_(machine), table_(table) {
    absl::StatusOr<isa::ParameterFile> preset = isa::ReadDramPreset(table.dram());
    POLYNAO_CHECK(preset.ok()) << preset.status().message();
    preset_ = std::move(preset->parameters);
  }

  Components Build() {
    Components result;
    const double cores = static_cast<double>(machine_.cores());
    const double clusters = static_cast<double>(machine_.clusters());
    // A memory core has a scalar unit, queues and DMAs too.
    const double issuers = cores + clusters;
    result.nmem = FiguresOf({.bytes = Kib("core.nmem_kib"),
                             .port_bytes = NmemPort(),
                             .ports = static_cast<int>(Get("core.nmem_ports"))},
                            table_);
    result.wmem = FiguresOf({.bytes = Kib("core.wmem_kib"),
                             .port_bytes = WmemPort(),
                             .ports = static_cast<int>(Get("core.wmem_ports")),
                             .is_edram = IsSet("core.wmem_edram")},
                            table_);
    result.smem = FiguresOf({.bytes = Kib("cluster.smem_kib"),
                             .port_bytes = Get("smem.bytes"),
                             .is_edram = IsSet("cluster.smem_edram")},
                            table_);
    result.dram = Dram();

    Add("tensor", (Tensor() + Port(Get("tensor.read_bytes") + Get("tensor.write_bytes"))) * cores,
        result);
    Add("vector", (Vector() + Port(kVectorOperands * Get("vector.bytes"))) * cores, result);
    Add("scalar", Part{.laid_out_um2 = table_.Get("scalar.core_um2")} * issuers, result);
    const Part queue = Table(Get("core.queue_depth"), kInstructionBits);
    Add("queue", queue * (kCoreQueues * cores + kMemoryCoreQueues * clusters), result);
    const Part line_buffers = Registers(kDmaPorts * 8 * DmaLine());
    Add("dma",
        (IoDma(Get("io_dma.port_bytes")) + MoveDma() + line_buffers) * cores +
            (IoDma(Get("io_dma.memory_core_port_bytes")) + MoveDma()) * clusters,
        result);
    Add("nmem", Memory(result.nmem) * cores, result);
    Add("wmem", Memory(result.wmem) * cores, result);
    Add("smem",
        (Memory(result.smem) + Port(Get("smem.bytes")) +
         Buffer(Get("smem.burst"), Get("smem.bytes"))) *
            clusters,
        result);
    Add("cache", Cache(result), result);
    // Way from the controllers, at an edge, to a place in the chip: half of its side on average. Links and PHYs do not
    // count.
    const double way_mm = std::sqrt(Total(result.area_mm2)) / 2;
    result.link_fj_per_byte = table_.Get("link.fj_per_byte_mm") * way_mm;
    Add("link", Link(way_mm) * clusters, result);
    Add("controller", Controller(result.dram) * Get("gmem.channels"), result);
    Add("phy", Phy(result.dram) * Get("gmem.channels"), result);
    // A byte is written to the burst's buffer and to the port.
    result.dma_fj_per_byte = kPortEnds * table_.Get("register.byte_fj");
    return result;
  }

 private:
  double Get(std::string_view name) const { return static_cast<double>(machine_.Get(name)); }
  double Kib(std::string_view name) const { return Get(name) * 1024; }
  // Parameters that only energy and area depend on; a file need not state them.
  bool IsSet(std::string_view name) const {
    const int64_t* const found = machine_.Find(name);
    return found != nullptr && *found != 0;
  }
  double MacRate(ir::Type type) const {
    return Get(absl::StrCat("tensor.macs_", std::string(ir::TypeName(type))));
  }

  // Computing has one instruction at a time, so its units share a port.
  double NmemPort() const {
    return std::max(kVectorOperands * Get("vector.bytes"),
                    Get("tensor.read_bytes") + Get("tensor.write_bytes"));
  }
  // Every multiply-accumulate reads a weight of its own.
  double WmemPort() const {
    double bytes = 8;
    for (ir::Type type : kMacTypes) bytes = std::max(bytes, MacRate(type) * ir::ByteSize(type));
    return bytes;
  }
  // Without lines a port still aligns what it moves.
  double DmaLine() const {
    const double line = Get("core.nmem_line");
    return line > 0 ? line : std::max(Get("io_dma.port_bytes"), Get("move_dma.port_bytes"));
  }

  Part Registers(double bits) const {
    return {.cells_um2 = bits * table_.Get("register.bit_nm2") / 1e6};
  }
  Part Port(double bytes) const { return Registers(kPortEnds * 8 * bytes); }
  // `entries` of `bits`: registers, or an SRAM with words of that width, whichever is smaller. It leaks as logic of its
  // area does.
  Part Table(double entries, double bits) const {
    const double spread = 1000 / table_.Get("logic.density_permille");
    const double registers = Registers(entries * bits).cells_um2 * spread;
    const double sram =
        entries * bits * table_.Get("sram.bit_nm2") / 1e6 + bits * table_.Get("sram.word_bit_um2");
    return {.laid_out_um2 = std::min(registers, sram)};
  }
  // A burst of `bytes` between two places, filled and emptied `width` bytes at a time.
  Part Buffer(double bytes, double width) const {
    return Table(std::ceil(bytes / width), 8 * width);
  }

  // Multipliers of one type serve the others where they can, so the largest need decides; each product has an adder, of
  // integers or of floats.
  Part Tensor() const {
    double multipliers = 0, integers = 0, floats = 0;
    for (ir::Type type : kMacTypes) {
      const double rate = MacRate(type);
      const std::string row = absl::StrCat("tensor.mul_", std::string(ir::TypeName(type)), "_um2");
      multipliers = std::max(multipliers, rate * table_.Get(row));
      double& adders = ir::IsFloat(type) ? floats : integers;
      adders = std::max(adders, rate);
    }
    return {.cells_um2 = multipliers + integers * table_.Get("tensor.add_i32_um2") +
                         floats * table_.Get("tensor.add_f32_um2")};
  }
  // A unit that divides in fewer passes has as many more multipliers and adders.
  Part Vector() const {
    const double copies = std::max(1.0, table_.Get("vector.slow_passes") / Get("vector.slow"));
    return {.cells_um2 = Get("vector.bytes") * table_.Get("vector.lane_um2") * copies};
  }

  Part Dma(double port_bytes, double transfers, double outstanding) const {
    return Part{.cells_um2 = table_.Get("dma.um2")} + Port(kDirections * port_bytes) +
           Table(transfers, kTransferBits) + Table(outstanding, kBurstBits);
  }
  Part IoDma(double port_bytes) const {
    return Dma(port_bytes, Get("io_dma.transfers"), Get("io_dma.outstanding")) +
           Table(Get("io_dma.strided_reads"), kSegmentBits) +
           Table(Get("io_dma.strided_writes"), kSegmentBits) +
           Buffer(Get("io_dma.burst"), port_bytes);
  }
  Part MoveDma() const {
    return Dma(Get("move_dma.port_bytes"), Get("move_dma.transfers"), Get("move_dma.outstanding"));
  }

  // Both directions of a cluster's link, and what it knows of stores under way: of all that there can be where they are
  // not limited.
  Part Link(double way_mm) const {
    const double bytes = kDirections * Get("cluster.link_bytes");
    const double segments = Get("cluster.store_segments");
    const double most =
        (static_cast<double>(machine_.cores_per_cluster()) + 1) * Get("io_dma.outstanding");
    return Port(bytes) +
           Part{.cells_um2 = bytes * way_mm * table_.Get("link.repeater_um2_per_byte_mm")} +
           Table(segments > 0 ? segments : most, kSegmentBits);
  }

  // Slices with their tags; `result` gets energies.
  Part Cache(Components& result) const {
    const double kib = Get("gmem.cache_kib");
    if (kib == 0) return {};
    const double channels = Get("gmem.channels");
    const double bytes = kib * 1024 / channels;
    const double burst = Get("io_dma.burst");
    const double tag_bits = kTagBits + burst / Get("gmem.granule");
    const double lines = std::floor(bytes / burst);
    result.cache = FiguresOf({.bytes = bytes, .port_bytes = Get("gmem.cache_bytes")}, table_);
    result.cache.um2 *= channels;
    result.cache.static_uw *= channels;
    result.tag_lookup_fj = tag_bits * BitEnergy(table_, lines * tag_bits / 8, false);
    return Memory(result.cache) +
           (Table(lines, tag_bits) + Port(Get("gmem.cache_bytes"))) * channels;
  }

  // Of one channel. Where GMEM is flat, a channel is as wide as its rate needs at the preset's rate a bit.
  Part Controller(const DramScale& scale) const {
    const double bits = Preset("bus_bits") * (machine_.has_dram() ? scale.bus : scale.rate);
    Part part = {.laid_out_um2 = bits * table_.Get("controller.um2_per_bit")};
    if (!machine_.has_dram()) return part;
    const double burst_bits = scale.burst * table_.Get("dram.burst_bits");
    return part + Table(Get("dram.read_queue"), kBurstBits) +
           Table(Get("dram.write_queue"), kBurstBits + burst_bits);
  }
  Part Phy(const DramScale& scale) const {
    // Pads leak nothing that matters beside what the row's other part does.
    const double um2 = table_.Get("dram.phy_um2") * scale.rate;
    const double logic = um2 * table_.Get("dram.phy_logic_permille") / 1000;
    return {.laid_out_um2 = logic, .memory_um2 = um2 - logic};
  }

  // Of the preset whose rows the table has.
  double Preset(std::string_view name) const {
    const std::string dotted = absl::StrCat("dram.", std::string(name));
    for (const isa::MachineParameter& parameter : preset_) {
      if (parameter.name == dotted) return static_cast<double>(parameter.value);
    }
    POLYNAO_UNREACHABLE(dotted);
  }
  DramScale Dram() const {
    DramScale scale;
    if (!machine_.has_dram()) {
      // Bytes of 1000 cycles, a million of which are a second at 1 MHz: 1000 B/s.
      const double rate = Get("gmem.channel_bytes_per_kilocycle") * Get("card.clock_mhz") * 1e3;
      scale.rate =
          rate / (Preset("clock_mhz") * 1e6 * Preset("beats_per_clock") * Preset("bus_bits") / 8);
      return scale;
    }
    const auto ratio = [&](std::string_view name) {
      return Get(absl::StrCat("dram.", std::string(name))) / Preset(name);
    };
    scale.bus = ratio("bus_bits");
    scale.rate = ratio("clock_mhz") * ratio("beats_per_clock") * scale.bus;
    scale.ranks = Get("dram.ranks");
    scale.burst = Get("dram.bus_bits") * Get("dram.burst_length") / table_.Get("dram.burst_bits");
    scale.row = ratio("row_bytes");
    scale.rank_size = ratio("bank_groups") * ratio("banks") * ratio("rows") * scale.row;
    return scale;
  }

  void Add(const char* name, const Part& part, Components& result) const {
    const double logic =
        part.cells_um2 * 1000 / table_.Get("logic.density_permille") + part.laid_out_um2;
    result.area_mm2.emplace_back(name, (logic + part.memory_um2) / 1e6);
    result.static_mw.emplace_back(
        name, logic / 1e6 * table_.Get("logic.leakage_uw_per_mm2") / 1e3 + part.memory_uw / 1e3);
  }

  const isa::Machine& machine_;
  const EnergyTable& table_;
  std::vector<isa::MachineParameter> preset_;
};

}  // namespace

double Total(const ByComponent& components) {
  double sum = 0;
  for (const auto& [name, value] : components) sum += value;
  return sum;
}

double ValueOf(const ByComponent& components, std::string_view name) {
  for (const auto& [each, value] : components) {
    if (each == name) return value;
  }
  return 0;
}

absl::StatusOr<OperatingPoint> OperatingPointOf(const isa::Machine& machine,
                                                const EnergyTable& table) {
  const Process rated = table.process();
  const int64_t clock = machine.Get("card.clock_mhz");
  const double rated_clock = table.Get("technology.clock_mhz");
  const double least = table.Get("technology.least_supply_mv") / 1000;
  absl::StatusOr<double> volts = SupplyFor(rated, rated_clock, static_cast<double>(clock), least);
  if (!volts.ok()) {
    return WithContext(absl::StrCat("energy table ", table.name(), ": card.clock_mhz"),
                       volts.status());
  }
  if (const int64_t* const stated = machine.Find("card.supply_mv"); stated != nullptr) {
    const double supply = static_cast<double>(*stated) / 1000;
    // Half a millivolt, since supplies are whole numbers of them.
    if (supply + 0.0005 < *volts) {
      return InvalidInput("energy table ", table.name(), ": card.supply_mv: expected at least ",
                          std::ceil(*volts * 1000 - 0.5), " for card.clock_mhz ", clock, ", found ",
                          *stated);
    }
    volts = supply;
  }
  const double ratio = *volts / rated.volts;
  return OperatingPoint{*volts, ratio * ratio, ratio * ratio * ratio};
}

Components ComponentsOf(const isa::Machine& machine, const EnergyTable& table) {
  return Builder(machine, table).Build();
}

ByComponent AreaOf(const isa::Machine& machine, const EnergyTable& table) {
  return ComponentsOf(machine, table).area_mm2;
}

DramStandby DramStandbyOf(const isa::Machine& machine, const EnergyTable& table) {
  if (!machine.has_dram()) return {};
  const DramScale scale = ComponentsOf(machine, table).dram;
  const double ranks =
      static_cast<double>(machine.Get("gmem.channels")) * scale.ranks * scale.bus / 1e3;
  return {ranks * table.Get("dram.active_standby_uw"),
          ranks * table.Get("dram.precharged_standby_uw")};
}

}  // namespace polynao::simulator
