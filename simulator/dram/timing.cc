#include "simulator/dram/timing.h"

#include <utility>

#include "base/status.h"

namespace polynao::simulator {
namespace {

struct Row {
  const char* name;
  int64_t DramTiming::* field;
  int64_t min;
  int64_t max;
  const char* unit;
  const char* meaning;
};

constexpr Row kRows[] = {
#define POLYNAO_DRAM_ROW(name, min, max, unit, meaning) \
  {#name, &DramTiming::name, min, max, unit, meaning},
    POLYNAO_DRAM_PARAMETERS(POLYNAO_DRAM_ROW)
#undef POLYNAO_DRAM_ROW
};

bool IsPowerOfTwo(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

}  // namespace

const std::vector<DramField>& DramFields() {
  static const auto* fields = [] {
    auto* result = new std::vector<DramField>;
    for (const Row& row : kRows) result->push_back({row.name, row.field});
    return result;
  }();
  return *fields;
}

absl::Status ValidateDram(const DramTiming& t, std::string_view place) {
  const auto error = [&](const auto&... pieces) { return InvalidInput(place, ": ", pieces...); };
  for (const Row& p : kRows) {
    const int64_t value = t.*p.field;
    if (value < p.min || value > p.max) {
      return error("dram.", p.name, " is ", value, "; allowed are ", p.min, " to ", p.max,
                   p.unit[0] ? " " : "", p.unit, " (", p.meaning, ")");
    }
  }
  const std::pair<const char*, int64_t> powers[] = {{"bus_bits", t.bus_bits},
                                                    {"ranks", t.ranks},
                                                    {"bank_groups", t.bank_groups},
                                                    {"banks", t.banks},
                                                    {"rows", t.rows},
                                                    {"row_bytes", t.row_bytes},
                                                    {"beats_per_clock", t.beats_per_clock},
                                                    {"burst_length", t.burst_length}};
  for (const auto& [name, value] : powers) {
    if (!IsPowerOfTwo(value)) {
      return error("dram.", name, " must be a power of two, not ", value);
    }
  }
  if (t.burst_length < t.beats_per_clock) {
    return error("dram.burst_length (", t.burst_length, ") must be at least dram.beats_per_clock (",
                 t.beats_per_clock, "), so that a burst takes whole clocks");
  }
  if (t.row_bytes < t.burst_bytes()) {
    return error("dram.row_bytes (", t.row_bytes, ") must hold a burst of ", t.burst_bytes(),
                 " bytes");
  }
  if (t.bank_count() > kMaxDramBanks) {
    return error("a channel has at most ", kMaxDramBanks,
                 " banks; dram.ranks, dram.bank_groups and dram.banks make ", t.bank_count());
  }
  const auto at_least = [&](const char* larger, int64_t value, const char* smaller,
                            int64_t bound) -> absl::Status {
    if (value >= bound) return absl::OkStatus();
    return error(larger, " (", value, ") must be at least ", smaller, " (", bound, ")");
  };
  RETURN_IF_ERROR(at_least("dram.tccd_s", t.tccd_s, "the clocks of a burst", t.burst_clocks()));
  RETURN_IF_ERROR(at_least("dram.tccd_l", t.tccd_l, "dram.tccd_s", t.tccd_s));
  RETURN_IF_ERROR(at_least("dram.trrd_l", t.trrd_l, "dram.trrd_s", t.trrd_s));
  RETURN_IF_ERROR(at_least("dram.twtr_l", t.twtr_l, "dram.twtr_s", t.twtr_s));
  RETURN_IF_ERROR(at_least("dram.trc", t.trc, "dram.tras + dram.trp", t.tras + t.trp));
  RETURN_IF_ERROR(at_least("dram.tras", t.tras, "dram.trcd", t.trcd));
  RETURN_IF_ERROR(at_least("dram.tfaw", t.tfaw, "dram.trrd_s", t.trrd_s));
  RETURN_IF_ERROR(at_least("dram.write_queue", t.write_queue, "dram.write_high", t.write_high));
  if (t.write_low >= t.write_high) {
    return error("dram.write_low (", t.write_low, ") must be less than dram.write_high (",
                 t.write_high, ")");
  }
  if (t.hash == 1 && t.banks_per_rank() > t.rows) {
    return error("with dram.hash = 1 a bank needs as many rows as a rank has banks (",
                 t.banks_per_rank(), "), not ", t.rows);
  }
  // A refresh waits for the open rows to be written and precharged, and every rank has its turn.
  const int64_t busy = t.ranks * (t.trfc + t.trp + t.trc + t.cwl + t.burst_clocks() + t.twr);
  if (t.trefi != 0) {
    RETURN_IF_ERROR(at_least("dram.trefi", t.trefi,
                             "twice the clocks that the refreshes of all ranks take", 2 * busy));
  }
  return absl::OkStatus();
}

}  // namespace polynao::simulator
