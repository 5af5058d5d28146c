#include "simulator/dram/testing.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "simulator/dram/address_map.h"
#include "simulator/dram/preset.h"

namespace polynao::simulator {
namespace {

// least..most, both included.
int64_t Between(std::mt19937_64& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
}

}  // namespace

DramTiming TestDram(const std::string& preset, const std::vector<std::string>& overrides) {
  const absl::StatusOr<DramTiming> timing = DramPreset(preset, overrides);
  POLYNAO_CHECK(timing.ok()) << timing.status();
  return *timing;
}

DramTiming RandomDram(std::mt19937_64& random) {
  const auto between = [&](int64_t least, int64_t most) { return Between(random, least, most); };
  DramTiming t;
  t.clock_mhz = 1000;
  t.bus_bits = int64_t{8} << between(0, 4);
  t.beats_per_clock = int64_t{1} << between(0, 2);
  t.burst_length = t.beats_per_clock << between(0, 2);
  t.ranks = int64_t{1} << between(0, 2);
  t.bank_groups = int64_t{1} << between(0, 2);
  t.banks = int64_t{1} << between(0, 2);
  t.rows = t.banks_per_rank() << between(0, 5);
  t.row_bytes = t.burst_bytes() << between(0, 5);
  t.cl = between(0, 20);
  t.cwl = between(0, 20);
  t.trcd = between(1, 20);
  t.trp = between(1, 20);
  t.tras = t.trcd + between(0, 30);
  t.trc = t.tras + t.trp + between(0, 20);
  t.tccd_s = t.burst_clocks() + (between(0, 1) ? 0 : between(0, 4));
  t.tccd_l = t.tccd_s + between(0, 5);
  t.trrd_s = between(1, 8);
  t.trrd_l = t.trrd_s + between(0, 6);
  t.tfaw = t.trrd_s + between(0, 32);
  t.twr = between(0, 20);
  t.twtr_s = between(0, 8);
  t.twtr_l = t.twtr_s + between(0, 8);
  t.trtp = between(1, 12);
  t.turnaround = between(0, 4);
  t.rank_switch = between(0, 4);
  t.trfc = between(1, 100);
  t.trefi = between(0, 3) == 0 ? 0 : between(2000, 4000);
  t.read_queue = between(1, 40);
  t.write_queue = between(1, 40);
  t.write_high = between(1, t.write_queue);
  t.write_low = between(0, t.write_high - 1);
  t.starvation = between(0, 2) == 0 ? between(0, 4) : between(4, 60);
  t.keep_rows = between(0, 3) == 0 ? 1 : 0;
  t.posted = between(0, 1);
  t.hash = between(0, 2);
  // Not every order of fields is a permutation with hash = 2.
  do {
    std::vector<std::string> fields = {"row", "bank", "bank_group", "rank", "column"};
    std::shuffle(fields.begin(), fields.end(), random);
    if (t.bursts_per_row() > 1 && between(0, 1)) fields.push_back("column:1");
    t.map.clear();
    for (const std::string& field : fields) StrAppend(&t.map, t.map.empty() ? "" : " ", field);
  } while (!AddressMap::Make(t, "random timing").ok());
  const absl::Status valid = ValidateDram(t, "random timing");
  POLYNAO_CHECK(valid.ok()) << valid;
  return t;
}

TrafficShape RandomShape(const DramTiming& timing, std::mt19937_64& random) {
  TrafficShape shape;
  shape.span = std::min(timing.capacity(), timing.row_bytes << Between(random, 0, 8));
  shape.max_bytes = Between(random, 1, 8 * timing.burst_bytes());
  shape.write_percent = static_cast<int>(Between(random, 0, 2) * Between(random, 0, 50));
  shape.stream_percent = static_cast<int>(Between(random, 0, 99));
  shape.max_wait = Between(random, 0, 1) ? 0 : Between(random, 0, 120);
  return shape;
}

std::vector<DramRequest> RandomTraffic(const TrafficShape& shape, int64_t count,
                                       std::mt19937_64& random) {
  std::vector<DramRequest> requests;
  DramRequest request;
  for (int64_t i = 0; i < count; ++i) {
    request.id = i;
    const bool goes_on = Between(random, 0, 99) < shape.stream_percent;
    request.address = goes_on ? (request.address + request.bytes) % shape.span
                              : Between(random, 0, shape.span - 1);
    request.bytes = Between(random, 1, shape.max_bytes);
    request.is_write = Between(random, 0, 99) < shape.write_percent;
    request.clock += Between(random, 0, shape.max_wait);
    if (Between(random, 0, 199) == 0) request.clock += Between(random, 0, 10'000);
    requests.push_back(request);
  }
  return requests;
}

std::string DescribeDram(const DramTiming& timing) {
  std::string text = StrCat("map=\"", timing.map, "\"");
  for (const DramField& field : DramFields()) {
    StrAppend(&text, " ", field.name, "=", timing.*field.field);
  }
  return text;
}

}  // namespace polynao::simulator
